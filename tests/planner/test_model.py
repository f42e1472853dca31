"""The cost model: its terms, its coefficients, and the launch that it assumes."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pyg_sparse.formats import Coo, Csr, FormatSpec, Hyb
from pyg_sparse.order import Order
from pyg_sparse.planner import cpu_terms, cuda_terms
from pyg_sparse.planner.device import Device
from pyg_sparse.planner.launch import launch_of
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.model import fitted, predict
from pyg_sparse.planner.profile import OrderProfile, order_profile
from pyg_sparse.planner.work import Work, work_of
from tests.planner.graphs import CPU, H200, LENGTHS, rows_of_lengths

DEVICES = pytest.mark.parametrize("device", [H200, CPU], ids=lambda d: d.kind)
SPECS = (Csr(), Csr(8), Coo(1024), Hyb(1, 3))


def work(lengths: list[int], spec: FormatSpec | None = None, order: str = "degree", num_cols: int = 500) -> Work:
    rows = rows_of_lengths(lengths, num_cols)
    profile = order_profile(rows, Order(torch.arange(rows.num_rows), None))
    found = work_of(spec or Csr(), rows.num_cols, Lengths.of(rows), profile, order)
    assert found is not None
    return found


def with_profile(found: Work, **changed: object) -> Work:
    return dataclasses.replace(found, profile=dataclasses.replace(found.profile, **changed))


@DEVICES
@pytest.mark.parametrize("name", LENGTHS)
def test_every_product_has_a_time_made_of_named_terms(name: str, device: Device) -> None:
    names = (cuda_terms if device.kind == "cuda" else cpu_terms).TERMS
    for spec in SPECS:
        for k in (1, 3, 8, 32, 47, 128, 600):
            for itemsize in (2, 4, 8):
                found = predict(work(LENGTHS[name], spec), k, itemsize, device)
                assert found is not None
                assert found.ms > 0
                assert set(found.terms) <= set(names)
                assert found.ms == pytest.approx(sum(found.terms.values()))
                assert found.rank >= found.ms


@DEVICES
def test_more_features_entries_and_misses_take_longer(device: Device) -> None:
    def ms(found: Work, k: int = 64) -> float:
        prediction = predict(found, k, 4, device)
        assert prediction is not None
        return prediction.ms

    base = work([20] * 5000, num_cols=1 << 16)
    assert ms(base, 128) > ms(base, 64) > ms(base, 32)
    assert ms(work([40] * 5000, num_cols=1 << 16)) > ms(base)
    ones, halves = (1.0,) * 6, (0.5,) * 6
    far = dataclasses.replace(
        with_profile(base, reuse=ones, reuse_of_8=ones, core=1.0, core_of_8=1.0), num_cols=1 << 22
    )
    near = with_profile(far, reuse=halves, reuse_of_8=halves, core=0.5, core_of_8=0.5)
    assert ms(near) < 0.8 * ms(far)


@DEVICES
def test_a_faster_device_takes_less(device: Device) -> None:
    faster = dataclasses.replace(
        device, near_gbs=2 * device.near_gbs, far_gbs=2 * device.far_gbs, copy_gbs=2 * device.copy_gbs
    )
    found = work([20] * 20_000, num_cols=1 << 16)
    slow, fast = (predict(found, 128, 4, d) for d in (device, faster))
    assert slow is not None
    assert fast is not None
    assert fast.ms < slow.ms


@DEVICES
def test_all_kernels_were_fitted(device: Device) -> None:
    classes = {"cuda": {"csr, short", "csr, long", "csr, tile", "hyb, short", "hyb, long", "coo, long"},
               "cpu": {"csr", "hyb", "coo"}}  # fmt: skip
    found = fitted(device.kind)
    assert set(found) == classes[device.kind]
    assert all(c > 0 for own in found.values() for c in own.values())


def test_a_class_that_was_never_measured_has_no_prediction() -> None:
    assert predict(work([3]), 8, 4, CPU, {"hyb": {"near": 1.0}}) is None


def test_what_is_cut_short_waits_for_a_second_launch() -> None:
    whole, cut = (cuda_terms.terms(work([3000] * 600, spec), 64, 4, H200) for spec in (Csr(4096), Csr(64)))
    assert "second launch" not in whole
    assert cut["second launch"] > 0
    assert cut["partials"] > 0


def test_a_long_row_that_starts_late_is_waited_for() -> None:
    first, late = (
        cuda_terms.terms(work([3] * 5000 + [2000], Csr(4096), order), 32, 4, H200) for order in ("degree", "given")
    )
    assert first["late"] == 0
    assert late["late"] > 0


def test_a_cpu_finds_in_its_cache_what_it_used_lately() -> None:
    profile = OrderProfile(1.0, 1.0, (0.9, 0.8, 0.5, 0.3, 0.2, 0.1), (0.9, 0.8, 0.5, 0.3, 0.2, 0.1), (1.0,) * 5)
    found = dataclasses.replace(work([5] * 1000), num_cols=1 << 20, profile=profile)
    assert cpu_terms.missing(found, 128, 1 << 28) == 0  # all of x fits
    # 256 entries hold (1 + 0.9) / 2 * 256 distinct columns.
    assert cpu_terms.missing(found, 128, round(0.95 * 256 * 128)) == pytest.approx(0.9, abs=1e-3)
    shares = [cpu_terms.missing(found, 128, 128 << i) for i in range(20)]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("lengths", "k", "kernel", "sharing", "slices"),
    [
        ([5] * 3000, 32, "short", 4, 1),
        ([50] * 3000, 32, "short", 4, 1),
        ([50] * 3000, 128, "long", 1, 1),  # too few rows to share warps
        ([50] * 30_000, 16, "short", 4, 1),
        ([200] * 3000, 128, "long", 1, 2),
        ([200] * 3000, 8, "long", 1, 1),
        ([300] * 3000, 1, "tile", 1, 1),
    ],
)
def test_the_launch_is_that_of_the_kernels(lengths: list[int], k: int, kernel: str, sharing: int, slices: int) -> None:
    found = launch_of(work(lengths), k, 4, H200.cores, H200.cache_bytes)
    assert (found.kernel, found.slices) == (kernel, slices)
    if kernel != "short" or len(lengths) > 3000:
        assert found.sharing == sharing or kernel == "short"
    assert found.lanes * found.neighbours * found.sharing <= 32
