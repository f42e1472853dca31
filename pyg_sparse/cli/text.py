"""Numbers and tables as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def size(count: int) -> str:
    """Bytes, in powers of 1000."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def ms(value: float) -> str:
    """Milliseconds, in three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def age(seconds: float) -> str:
    """How long ago something was, by its largest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def plain(value: object) -> str:
    """What a file holds, without characters that steer a terminal."""
    shown = str(value)
    return shown if shown.isprintable() else ascii(shown)


def count(number: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Lines of aligned cells, two spaces apart; the columns in ``right`` end together, the others start together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
