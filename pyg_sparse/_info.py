"""What is installed, compiled and present: the facts that a bug report needs."""

import os
import platform
from importlib.metadata import version
from typing import Any

import torch

import pyg_sparse
from pyg_sparse import formats
from pyg_sparse._extension import build_info, library_path


def collect() -> dict[str, Any]:
    return {
        "pyg_sparse": pyg_sparse.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "torch_geometric": version("torch_geometric"),
        "library": str(library_path()),
        "build": build_info(),
        "formats": sorted(formats.FORMATS),
        "dtypes": ["float64", "float32", "bfloat16", "float16"],
        "cpu": {
            "name": cpu_name(),
            "cores": len(os.sched_getaffinity(0)),
            "torch_threads": torch.get_num_threads(),
        },
        "devices": [_device(index) for index in range(torch.cuda.device_count())],
    }


def _device(index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
    }


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:  # not Linux
        names = []
    return names[0] if names else platform.machine()


def render(info: dict[str, Any]) -> str:
    build, cpu = info["build"], info["cpu"]
    cuda = f"CUDA {build['cuda_version']}, arches {build['arches']}" if build["cuda"] else "CPU only"
    rows = [
        ("pyg_sparse", info["pyg_sparse"]),
        ("python", info["python"]),
        ("torch", f"{info['torch']} (CUDA {info['torch_cuda'] or 'none'})"),
        ("torch_geometric", info["torch_geometric"]),
        ("library", info["library"]),
        ("compiled for", f"{cuda}; torch >= {build['torch_target']}; {build['compiler']}"),
        ("formats", ", ".join(info["formats"])),
        ("dtypes", ", ".join(info["dtypes"])),
        (
            "CPU",
            f"{cpu['name']}, {cpu['cores']} cores, {cpu['torch_threads']} torch threads, kernels for {build['cpu']}",
        ),
    ]
    for index, device in enumerate(info["devices"]):
        memory = device["memory_bytes"] / 2**30
        rows.append((f"cuda:{index}", f"{device['name']}, capability {device['capability']}, {memory:.1f} GiB"))
    if not info["devices"]:
        rows.append(("CUDA devices", "none"))
    return "\n".join(f"{name:<16} {value}" for name, value in rows)
