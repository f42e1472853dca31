"""Counts the instructions of the CPU's kernels on a small fixed matrix with valgrind: load does not change them.

Fails where a case takes MARGIN more than instruction_budget.json says for this compiler.

    python tools/count_instructions.py            # compares
    python tools/count_instructions.py --write    # writes the figures found

The objects are those of the last build. valgrind has no AVX-512: the kernels for x86-64-v3 are counted.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
OBJECTS = ROOT / "build/objects/csrc/cpu"
BUDGET = TOOLS / "instruction_budget.json"
MARGIN = 0.03
SET = "x86-64-v3"
CASES = [
    *(f"sum csr float32 {width}" for width in (1, 8, 32, 47, 128)),
    "sum csr bfloat16 32",
    "sum csr float16 32",
    "weighted csr float32 32",
    "sum coo float32 32",
    "sum hyb float32 32",
    "max csr float32 32",
    "sddmm csr float32 32",
    "sddmm csr bfloat16 32",
]


def execute(*command: str | Path) -> str:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def count(program: Path, case: str) -> int:
    """Instructions of one call: those of a process with three less those of one with two."""

    def instructions(repeats: int) -> int:
        printed = execute(
            "env", f"PYG_SPARSE_CPU={SET}", "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
            program, *case.split(), str(repeats),
        )  # fmt: skip
        return int(re.findall(r"Collected : (\d+)", printed)[0])

    return instructions(3) - instructions(2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the figures found to instruction_budget.json")
    write = parser.parse_args().write
    if shutil.which("valgrind") is None or platform.machine() != "x86_64":
        print("count_instructions: skipped, needs valgrind on PATH and x86-64")
        return 0
    compiler = "g++ " + execute("g++", "-dumpversion").strip()
    objects = [OBJECTS / "dispatch.o", *sorted((OBJECTS / "isa").glob("*.o"))]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        program = Path(folder) / "count_instructions"
        source = TOOLS / "count_instructions.cpp"
        execute("g++", "-std=c++20", "-O1", f"-I{ROOT / 'csrc/include'}", source, *objects, "-o", program)
        found = dict(zip(CASES, pool.map(partial(count, program), CASES), strict=True))
    budget: dict[str, dict[str, int]] = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if write:
        BUDGET.write_text(json.dumps(budget | {compiler: found}, indent=2) + "\n")
    allowed = budget.get(compiler)
    if allowed is None and not write:
        print(f"count_instructions: {BUDGET.name} has no figures for {compiler}; these are not compared")
    over = 0
    for case, instructions in found.items():
        known = None if allowed is None or write else allowed.get(case)
        excess = known is not None and instructions > known * (1 + MARGIN)
        over += excess
        against = "" if known is None else f"  {instructions / known - 1:+.1%} of {known:,}"
        print(f"{'FAIL' if excess else 'ok':<4} {instructions:>12,}  {case}{against}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
