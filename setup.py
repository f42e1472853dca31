"""Builds the one native library, pyg_sparse/_C.so; everything else about the package is in pyproject.toml.

The library uses only torch's stable ABI and no Python API, so one binary serves every torch from 2.11 on and
every Python.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch
from setuptools import Extension, setup
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parent
TORCH_TARGET = "-DTORCH_TARGET_VERSION=0x020b000000000000"  # 2.11, the oldest torch the binary runs on

# PYG_SPARSE_SANITIZE=1: checks of memory accesses and undefined behaviour, for a process that has loaded libasan and
# libubsan before (make sanitize).
SANITIZE = (
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    if os.environ.get("PYG_SPARSE_SANITIZE") == "1"
    else []
)

# Machine code for 8.x and 9.0. The driver compiles PTX for what is newer: that of 90 up to 12.0, that of 120 beyond.
DEFAULT_ARCHES = ("sm_80", "sm_90", "compute_90", "compute_120")


def use_cuda(requested: str, torch_version: str, torch_cuda: str | None, cuda_home: str | None) -> bool:
    """Whether to build the CUDA kernels; exits with the reason when they are requested and impossible."""
    if requested not in ("auto", "0", "1"):
        raise SystemExit(f"PYG_SPARSE_CUDA={requested!r} is not one of auto, 0, 1")
    if requested == "0":
        return False
    if torch_cuda is None:
        reason = f"torch {torch_version} was built without CUDA"
    elif cuda_home is None:
        reason = "no nvcc: CUDA_HOME is not set and nvcc is not on PATH"
    elif nvcc(cuda_home) is None:
        reason = f"no nvcc: CUDA_HOME is {cuda_home}, which has no bin/nvcc"
    else:
        return True
    if requested == "1":
        raise SystemExit(f"PYG_SPARSE_CUDA=1, but the CUDA kernels cannot be built: {reason}")
    print(f"pyg_sparse: building for the CPU only: {reason}")
    return False


def nvcc(cuda_home: str) -> str | None:
    return shutil.which("nvcc", path=os.path.join(cuda_home, "bin"))


def arch_flags(cuda_home: str) -> list[str]:
    """What TORCH_CUDA_ARCH_LIST selects, or else as much of DEFAULT_ARCHES as this nvcc knows."""
    if os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return cpp_extension._get_cuda_arch_flags()
    command = [nvcc(cuda_home) or "nvcc", "--list-gpu-arch"]
    known = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    virtual = {arch: arch.replace("sm_", "compute_") for arch in DEFAULT_ARCHES}
    return [f"-gencode=arch={virtual[arch]},code={arch}" for arch in DEFAULT_ARCHES if virtual[arch] in known]


def arch_names(flags: list[str]) -> str:
    """For build_info: "80,90,90+PTX"."""
    codes = [flag.rpartition("=")[2] for flag in flags]
    return ",".join(re.sub(r"compute_(\w+)", r"\1+PTX", code).removeprefix("sm_") for code in codes)


def sources(*patterns: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))


def extension(cuda_home: str | None) -> Extension:
    """The library, with CUDA kernels when cuda_home is given."""
    # -isystem keeps warnings out of torch's headers; it overrides the -I that torch adds for the same folder.
    system = [f"-isystem{path}" for path in cpp_extension.include_paths()]
    optimize = "-O0" if SANITIZE else "-O3"  # templates take the sanitizers minutes to optimize
    cxx = [optimize, "-g0", "-std=c++20", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi"]
    cxx += [TORCH_TARGET, *system, *SANITIZE]
    options: dict[str, Any] = {
        "include_dirs": [str(ROOT / "csrc/include")],
        "depends": sources("csrc/**/*.h", "csrc/**/*.cuh"),
        # The sanitizers' functions are those of the process.
        "extra_link_args": SANITIZE or ["-Wl,--no-undefined"],
        "py_limited_api": True,  # keeps torch from linking libtorch_python
    }
    paths = sources("csrc/cpu/**/*.cpp", "csrc/torch/**/*.cpp")
    if cuda_home is None:
        return cpp_extension.CppExtension("pyg_sparse._C", paths, extra_compile_args={"cxx": cxx}, **options)

    arches = arch_flags(cuda_home)
    defines = ["-DPYG_SPARSE_CUDA", "-DUSE_CUDA", f'-DPYG_SPARSE_ARCHES="{arch_names(arches)}"']
    # torch disables the conversions of half types in every .cu file; the kernels are plain CUDA.
    restore = [f"-U{flag[2:]}" for flag in cpp_extension.COMMON_NVCC_FLAGS if flag.startswith("-D__CUDA_NO_")]
    cu = ["-O3", "-std=c++20", "--threads", "2", "-Xcompiler", "-fvisibility=hidden", *arches, *restore]
    return cpp_extension.CUDAExtension(
        "pyg_sparse._C",
        paths + sources("csrc/cuda/**/*.cu"),
        extra_compile_args={"cxx": cxx + defines, "nvcc": cu},
        **options,
    )


class BuildExtension(cpp_extension.BuildExtension):
    """Keeps objects in build/, also for editable installs, so that ninja recompiles only what changed."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.build_temp = str(ROOT / "build" / ("sanitize/objects" if SANITIZE else "objects"))


if __name__ == "__main__":
    os.chdir(ROOT)
    requested, cuda_home = os.environ.get("PYG_SPARSE_CUDA", "auto"), cpp_extension.CUDA_HOME
    with_cuda = use_cuda(requested, torch.__version__, torch.version.cuda, cuda_home)
    setup(
        ext_modules=[extension(cuda_home if with_cuda else None)],
        cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
