"""Reading the Markdown tables that benchmarks generate."""

from __future__ import annotations


def cells(table: str, *first: str) -> list[str]:
    """The cells after `first` of the row that starts with them."""
    for line in table.splitlines():
        found = [cell.strip() for cell in line[1:-1].split("|")]
        if found[: len(first)] == list(first):
            return found[len(first) :]
    raise AssertionError(f"no row {first} in\n{table}")
