"""A small sweep over every CUDA kernel, to be run under a checker of memory accesses or races:

PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck python tools/sanitizer_sweep.py [graph ...]

Without torch's caching allocator every tensor is an allocation of its own, so a read or write past one is seen.
"""

import sys
from pathlib import Path

import torch

import pyg_sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.conftest import FAMILIES, Graph, variants

WIDTHS = (1, 3, 8, 33, 41, 64)


def graphs() -> dict[str, Graph]:
    """Some of the tests', and one of rows so long, and sorted, that sddmm writes its results in a second pass.

    The numbers of nodes are multiples of 8, so that matrices end with an aligned word of 16 bytes: the last load of a
    frame is of such a word, and may otherwise reach past a matrix in it, where no page can end (csrc/cuda/frame.cuh).
    """
    edge_index = torch.randint(100, (2, 30_000), generator=torch.Generator().manual_seed(0))
    found = {name: FAMILIES[name] for name in ("no_edges", "isolated", "hub", "power_law", "tall")}
    found["long_rows"] = Graph(edge_index[:, edge_index[1].argsort()], 100, 100)
    # Rows that tiles are cut from, that a block sums, and that are too long for the second pass of sddmm.
    length = torch.tensor([9000, 5000, 700, 40, *[3] * 996])
    dst = torch.repeat_interleave(torch.arange(1000), length)
    found["very_long_rows"] = Graph(torch.stack([torch.arange(dst.numel()) * 7 % 1000, dst]), 1000, 1000)
    dst = torch.repeat_interleave(torch.arange(200), torch.tensor([1000, 300, 40, 0, *[3] * 196]))
    found["blocks_of_rows"] = Graph(torch.stack([torch.arange(dst.numel()) * 7 % 200, dst]), 200, 200)
    dst = torch.repeat_interleave(torch.arange(100), torch.tensor([9000, 5000, *[80] * 98]))
    found["sorted_long_rows"] = Graph(torch.stack([torch.arange(dst.numel()) * 7 % 100, dst]), 100, 100)
    return {
        name: Graph(graph.edge_index, -(-graph.num_src // 8) * 8, -(-graph.num_dst // 8) * 8)
        for name, graph in found.items()
    }


def main() -> None:
    found = graphs()
    for name in sys.argv[1:] or found:
        graph = found[name]
        for spec in variants():
            plan = pyg_sparse.plan(graph.edge_index.cuda(), (graph.num_src, graph.num_dst), format=spec)
            for i, dtype in enumerate((torch.float64, torch.float32, torch.bfloat16, torch.float16)):
                for width in WIDTHS[i % 2 :: 2]:
                    # Rows one element apart from where vector loads could start, half of the time.
                    wide = torch.randn(graph.num_src, width + width // 8 % 2, device="cuda").to(dtype)
                    x = wide[:, :width].detach().requires_grad_()
                    value = torch.randn(plan.num_edges, device="cuda").to(dtype).requires_grad_()
                    implicit, explicit = pyg_sparse.spmm(plan, x, reduce="mean"), pyg_sparse.spmm(plan, x, value)
                    if graph.num_src == graph.num_dst:
                        scale = torch.rand(
                            graph.num_src, device="cuda", dtype=torch.promote_types(dtype, torch.float32)
                        )
                        implicit = implicit + pyg_sparse.spmm(plan, x, col_scale=scale, self_scale=scale)
                    largest, smallest = (
                        pyg_sparse.spmm(plan, x, v, reduce=r) for v, r in ((None, "max"), (value, "min"))
                    )
                    implicit, explicit = implicit + largest, explicit + smallest
                    implicit = implicit + pyg_sparse.spmm(plan, x, plan.store_weight(value.detach()))
                    (implicit.float().sum() + explicit.float().square().sum()).backward()
        torch.cuda.synchronize()
        print(name, "done", flush=True)


if __name__ == "__main__":
    main()
