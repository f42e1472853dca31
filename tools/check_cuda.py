"""Static checks of the CUDA kernels, for machines without a GPU: needs nvcc, and says so where there is none.

1. Every csrc/cuda/*.cu compiles for all of ARCHES without a warning, and no kernel spills more than
   spill_budget.json allows ({"csr.cu": {"sm_90a": bytes}}; what is not listed must not spill).
2. csrc/cuda, csrc/cpu and csrc/include do not include torch, and the last two do not include CUDA.
3. csrc/torch compiles with its CUDA parts.
4. Every launcher returns an error, and does not crash, where there is no GPU (no_gpu_check.cpp).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
CSRC = TOOLS.parent / "csrc"
ARCHES = ("sm_80", "sm_90a", "sm_100", "sm_120")
STANDARD = ["-std=c++20", f"-I{CSRC / 'include'}"]

FUNCTION = re.compile(
    r"Function properties for (\S+)\s+"
    r"\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
TORCH_HEADER = re.compile(r"/(torch|ATen|c10)/")
CUDA_HEADER = re.compile(r"/(cuda\w*|device_launch_parameters)\.h\b")

Problems = list[str]


class Failed(Exception):
    """A command failed; the message holds what it printed."""


def execute(*command: str | Path, env: dict[str, str] | None = None, stdin: str | None = None) -> str:
    result = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True)
    if result.returncode != 0:
        # No output: killed by a signal.
        raise Failed(result.stdout + result.stderr or f"{command[0]} ended with status {result.returncode}")
    return result.stdout + result.stderr


def spills(ptxas_output: str) -> dict[str, int]:
    return {name: max(int(stores), int(loads)) for name, stores, loads in FUNCTION.findall(ptxas_output)}


def check_kernels(nvcc: Path, source: Path, arch: str, allowed: int, output: Path) -> Problems:
    compute = arch.replace("sm_", "compute_")
    printed = execute(
        nvcc, "-c", *STANDARD, "-O3", "--expt-relaxed-constexpr", f"-gencode=arch={compute},code={arch}",
        "--Werror", "all-warnings", "-Xptxas", "-v", source, "-o", output,
    )  # fmt: skip
    over = {name: count for name, count in spills(printed).items() if count > allowed}
    names = execute("c++filt", stdin="\n".join(over)).splitlines() if over else []
    return [
        f"spills {count} bytes, {allowed} allowed: {name}" for name, count in zip(names, over.values(), strict=True)
    ]


def check_headers(compiler: Path | str, source: Path, *forbidden: re.Pattern[str]) -> Problems:
    language = ["-x", "c++"] if source.suffix == ".h" else []
    headers = re.split(r"[\s\\]+", execute(compiler, "-M", *STANDARD, *language, source))
    return [f"includes {h}" for h in headers if any(pattern.search(h) for pattern in forbidden)]


def check_torch_source(nvcc: Path, source: Path) -> Problems:
    from torch.utils.cpp_extension import include_paths

    # nvcc hands a .cpp to the host compiler, with CUDA's headers in reach.
    system = [f"-isystem={path}" for path in include_paths()]
    defines = ["-DTORCH_TARGET_VERSION=0x020b000000000000", "-DPYG_SPARSE_CUDA", "-DUSE_CUDA"]
    defines.append('-DPYG_SPARSE_ARCHES="80"')
    warnings = ["-Xcompiler", "-fvisibility=hidden,-Wall,-Wextra,-Werror"]
    execute(nvcc, "-c", *STANDARD, *warnings, *defines, *system, source, "-o", os.devnull)
    return []


def check_without_gpu(nvcc: Path, objects: list[Path], folder: Path) -> Problems:
    program, main = folder / "no_gpu_check", folder / "no_gpu_check.o"
    execute("g++", "-c", *STANDARD, "-Wall", "-Wextra", "-Werror", TOOLS / "no_gpu_check.cpp", "-o", main)
    execute(nvcc, "-cudart", "static", main, *objects, "-o", program)
    execute(program, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    launchers = execute("nm", "--demangle", "--defined-only", *objects)
    called = execute("nm", "--demangle", "--undefined-only", main)
    # nvcc also exports the host side of a kernel in an unnamed namespace, which nobody can call.
    names = re.findall(r" T (pyg_sparse::cuda::(?!\(anonymous namespace\)).*)", launchers)
    return [f"no_gpu_check.cpp does not call {name}" for name in names if name not in called]


def find_nvcc() -> Path | None:
    home = os.environ.get("CUDA_HOME")
    found = shutil.which("nvcc", path=os.path.join(home, "bin") if home else None)
    return Path(found) if found else None


def report(title: str, check: Callable[[], Problems]) -> bool:
    start = time.perf_counter()
    try:
        problems = check()
    except Failed as failure:
        problems = [str(failure)]
    print(f"{'FAIL' if problems else 'ok':<4} {time.perf_counter() - start:6.1f} s  {title}", flush=True)
    for problem in problems:
        print("     " + problem.strip().replace("\n", "\n     "), flush=True)
    return not problems


def main() -> int:
    nvcc = find_nvcc()
    if nvcc is None:
        print("check_cuda: skipped, no nvcc in CUDA_HOME or on PATH")
        return 0

    budget: dict[str, dict[str, int]] = json.loads((TOOLS / "spill_budget.json").read_text())
    kernels = sorted(CSRC.glob("cuda/**/*.cu"))
    stale = budget.keys() - {source.name for source in kernels}
    if stale:
        print(f"check_cuda: spill_budget.json lists files that do not exist: {', '.join(sorted(stale))}")
        return 1

    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(temporary)
        checks: list[tuple[str, Callable[[], Problems]]] = []
        for source in kernels:
            for arch in ARCHES:
                allowed = budget.get(source.name, {}).get(arch, 0)
                output = folder / f"{source.stem}.{arch}.o"
                job = partial(check_kernels, nvcc, source, arch, allowed, output)
                checks.append((f"{source.name} for {arch}", job))
            checks.append((f"headers of {source.name}", partial(check_headers, nvcc, source, TORCH_HEADER)))
        for source in sorted([*CSRC.glob("cpu/**/*.cpp"), *CSRC.glob("include/**/*.h")]):
            job = partial(check_headers, "g++", source, TORCH_HEADER, CUDA_HEADER)
            checks.append((f"headers of {source.relative_to(CSRC)}", job))
        for source in sorted(CSRC.glob("torch/**/*.cpp")):
            job = partial(check_torch_source, nvcc, source)
            checks.append((f"{source.relative_to(CSRC)} with CUDA", job))
        passed = list(pool.map(lambda check: report(*check), checks))
        if all(passed):
            objects = sorted(folder.glob(f"*.{ARCHES[0]}.o"))
            job = partial(check_without_gpu, nvcc, objects, folder)
            passed.append(report("launchers without a GPU", job))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
