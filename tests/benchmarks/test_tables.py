from itertools import product

import pytest

from benchmarks import make_tables, results, tables, variant_tables
from tests.markdown import cells

META = {
    **dict.fromkeys(results.META_KEYS),
    "commit": "0123456789abcdef",
    "device": "Some GPU",
    "torch": "2.11",
    "date": "2026-01-02T03:04:05+00:00",
    "command": "python -m something",
}


def spmm_row(impl, layout, k, ms, **fields):
    time = results.failed("not supported") if ms is None else results.timed([ms])
    return {
        "bench": "spmm",
        "graph": "reddit-shaped",
        "source": "shaped",
        "scale": 1.0,
        "num_nodes": 1000,
        "num_edges": 5000,
        "op": "spmm",
        "k": k,
        "dtype": "float32",
        "direction": "fwd",
        "values": "implicit",
        "impl": impl,
        "format": layout,
        "limit_ms": 0.5,
        **time,
        **fields,
    }


def epoch_row(impl, ms, **fields):
    time = results.failed("out of memory") if ms is None else results.timed([ms])
    case = {
        "bench": "epoch",
        "graph": "reddit-shaped",
        "source": "shaped",
        "scale": 0.1,
        "op": "gcn",
        "k": 128,
    }
    return {**case, "dtype": "float32", "direction": "epoch", "impl": impl, "format": "csr", **time, **fields}


SPMM = [
    spmm_row("torch.sparse.mm", "csr int64", 8, 6.0),
    spmm_row("cuSPARSE", "csr_alg3", 8, 2.0, preprocess_ms=1.5, peak_mb=900.0),
    spmm_row("cuSPARSE", "coo_alg1", 8, None),
    spmm_row("pyg_sparse", "csr", 8, 1.6),
    spmm_row("pyg_sparse", "hyb(c=1)", 8, 1.0),
    spmm_row("torch.sparse.mm", "csr int64", 32, 8.0),
    spmm_row("pyg_sparse", "csr", 32, None),
]
EPOCH = [
    epoch_row("pyg_sparse", 20.0, peak_mb=2000.0, test_acc=0.95),
    epoch_row("torch-sparse", 80.0, peak_mb=16000.0),
    epoch_row("pyg", None),
]


def test_summary_compares_the_fastest():
    table = tables.spmm(META, SPMM)
    title = "reddit-shaped (synthetic)"
    assert cells(table, title, "fastest rival") == [
        "2.00 (cuSPARSE csr_alg3)",
        "8.00 (torch.sparse.mm csr int64)",
    ]
    assert cells(table, title, "pyg_sparse, fastest format") == ["1.00 (hyb(c=1))", "-"]
    assert cells(table, title, "speed-up") == ["2.00", "-"]


def test_summary_is_of_the_forward_product_over_ones_in_fp32():
    others = [
        spmm_row("pyg_sparse", "csr", 8, 0.1, **field)
        for field in ({"dtype": "bfloat16"}, {"direction": "bwd"}, {"values": "explicit"})
    ]
    assert tables.spmm(META, [*SPMM, *others]) == tables.spmm(META, SPMM)


def test_scales_of_one_shape_are_not_mixed():
    small = [{**row, "scale": 0.1} for row in SPMM]
    for render in (tables.spmm, tables.detail):
        both = render(META, [*SPMM, *small])
        assert "reddit-shaped (synthetic)" in both
        assert "reddit-shaped (synthetic, scale 0.1)" in both
    table = tables.spmm(META, [*SPMM, spmm_row("pyg_sparse", "coo", 8, 0.1, scale=0.1)])
    assert cells(table, "reddit-shaped (synthetic)", "speed-up")[0] == "2.00"


def test_rivals_in_our_order_are_compared_with_us_on_the_given_one():
    ordered = [
        spmm_row("cuSPARSE", "csr_alg2", 8, 1.5, ordered=True),
        spmm_row("pyg_sparse", "csr", 8, 0.1, ordered=True),
    ]
    title = "reddit-shaped (synthetic)"
    table = tables.spmm(META, [*SPMM, *ordered])
    assert cells(table, title, "speed-up") == ["2.00", "-"]
    assert cells(table, title, "fastest rival, nodes numbered in our order") == ["1.50 (cuSPARSE csr_alg2)", "-"]
    assert cells(table, title, "speed-up over that") == ["1.50", "-"]
    assert "over that" not in tables.spmm(META, SPMM)
    assert "**reddit-shaped (synthetic)**, nodes numbered in our order, float32" in tables.detail(META, ordered)


def test_detail_has_every_row_and_every_reason():
    table = tables.detail(META, SPMM)
    assert cells(table, "torch.sparse.mm", "csr int64")[:2] == ["6.00 (3.00)", "8.00 (1.00)"]
    assert cells(table, "cuSPARSE", "csr_alg3") == ["2.00 (1.00)", "-", "1.50", "900"]
    assert cells(table, "limit") == ["", "0.500", "0.500", "", ""]
    assert "- cuSPARSE coo_alg1, K = 8: not supported" in table
    assert "- pyg_sparse csr, K = 32: not supported" in table


def test_a_reason_that_several_share_stands_once():
    rows = [
        spmm_row("RoDe", layout, k, None, why=f"RuntimeError: RoDe spmm:{layout}: not masked")
        for layout, k in product(("1 stream", "2 streams"), (8, 40))
    ]
    lines = [line for line in tables.detail(META, rows).splitlines() if line.startswith("- ")]
    assert lines == ["- RoDe 1 stream, 2 streams, K = 8, 40: RuntimeError: not masked"]


def test_dtypes_are_compared_each_with_its_own_rival():
    half = [{**row, "dtype": "float16", "ms": row["ms"] and row["ms"] / 4} for row in SPMM if row["k"] == 8]
    table = variant_tables.dtypes(META, [*SPMM, *half])
    title = "reddit-shaped (synthetic)"
    assert cells(table, title, "float32", "fastest rival")[0] == "2.00 (cuSPARSE csr_alg3)"
    assert cells(table, title, "float32", "speed-up") == ["2.00", "-"]
    assert cells(table, title, "float16", "fastest rival") == ["0.500 (cuSPARSE csr_alg3)", "-"]
    assert cells(table, title, "float16", "pyg_sparse") == ["0.250", "-"]


def test_variants_are_relative_to_the_plain_product():
    plain = [spmm_row("pyg_sparse", "csr", k, 2.0) for k in (8, 32)]
    title = "reddit-shaped (synthetic)"
    weighted = [spmm_row("pyg_sparse", "csr", 8, 3.0, values="explicit"), *plain]
    table = variant_tables.values(META, [spmm_row("cuSPARSE", "csr", 8, 0.1), *weighted])
    assert cells(table, title, "implicit") == ["2.00", "2.00"]
    assert cells(table, title, "explicit") == ["3.00 (1.50)", "- (-)"]
    back = [*plain, *(spmm_row("pyg_sparse", "csr", k, 1.0, direction="bwd") for k in (8, 32))]
    assert cells(variant_tables.directions(META, back), title, "bwd") == ["1.00 (0.50)", "1.00 (0.50)"]


def test_threads_and_dtypes_say_how_many_times_faster():
    title = "reddit-shaped (synthetic)"
    rows = [spmm_row("pyg_sparse", "auto", 8, ms, threads=threads) for threads, ms in ((1, 4.0), (2, 2.5))]
    assert cells(variant_tables.threads(META, rows), title, "1") == ["4.00"]
    assert cells(variant_tables.threads(META, rows), title, "2") == ["2.50 (1.60)"]
    rows = [spmm_row("pyg_sparse", "auto", 8, ms, dtype=dtype) for dtype, ms in (("float32", 3.0), ("bfloat16", 2.0))]
    assert cells(variant_tables.precisions(META, rows), title, "bfloat16") == ["2.00 (1.50)"]


def test_means_are_over_graphs_and_add_the_directions_up():
    times = {  # rivals' and ours
        ("a", 8, "fwd"): (8.0, 2.0),
        ("a", 8, "bwd"): (4.0, 4.0),
        ("b", 8, "fwd"): (3.0, 3.0),
        ("b", 32, "fwd"): (9.0, 1.0),
    }
    rows = [
        spmm_row(impl, "csr", k, ms, graph=graph, direction=direction)
        for (graph, k, direction), pair in times.items()
        for impl, ms in zip(("torch.sparse.mm", "pyg_sparse"), pair, strict=True)
    ]
    rows.append(spmm_row("scipy", "csr", 8, 99.0, graph="a"))  # not the fastest
    table = variant_tables.means(META, rows)
    assert cells(table, "forward") == ["2.00 (1.00)", "9.00 (9.00)", "3.30 (1.00)"]
    assert cells(table, "backward") == ["1.00 (1.00)", "-", "1.00 (1.00)"]
    assert cells(table, "forward + backward") == ["2.00 (2.00)", "-", "2.00 (2.00)"]


def test_rates_are_shares_of_both_speeds():
    meta = META | {"bandwidth": {"gather_gbs": 200.0, "far_gather_gbs": 20.0}}
    rows = [spmm_row("pyg_sparse", "auto", 8, 2.0, gather_bytes=80_000_000), spmm_row("scipy", "csr", 8, 1.0)]
    rows.append(spmm_row("pyg_sparse", "auto", 32, None))
    table, title = variant_tables.rates(meta, rows), "reddit-shaped (synthetic)"
    assert cells(table, title, "GB/s") == ["40", "-"]
    assert cells(table, title, "of 200 GB/s, from a core's own cache") == ["0.20", "-"]
    assert cells(table, title, "of 20 GB/s, from memory") == ["2.00", "-"]
    near = META | {"bandwidth": {"gather_gbs": 200.0}}  # as on a GPU
    assert "memory" not in variant_tables.rates(near, rows)


def test_widths_are_relative_to_the_nearest_power_of_two():
    rows = [spmm_row("pyg_sparse", "csr", k, ms) for k, ms in ((32, 1.0), (40, 1.5), (47, 2.0), (64, 2.0))]
    title = "reddit-shaped (synthetic)"
    table = variant_tables.widths(META, rows)
    assert cells(table, title, "of 32 features") == ["1.00", "1.20", "1.36", "1.00"]
    assert cells(table, title, "relative to a power of two") == ["", "1.20 (K = 32)", "1.36 (K = 64)", ""]
    with pytest.raises(ValueError, match="40"):
        variant_tables.widths(META, [row for row in rows if row["k"] != 40] + [spmm_row("pyg_sparse", "csr", 40, None)])


def test_device_time_stands_for_a_short_call():
    rows = [spmm_row("a", "csr", 8, 0.5, device_ms=0.1), spmm_row("pyg_sparse", "csr", 8, 0.4, device_ms=0.2)]
    assert cells(tables.detail(META, rows), "pyg_sparse", "csr")[0] == "0.200 (2.00)"


def test_epoch_table():
    table = tables.epoch(META, EPOCH)
    title = "reddit-shaped (synthetic, scale 0.1)"
    assert cells(table, title, "128", "pyg_sparse") == ["20.0", "1.00", "2.00 GB", "95.0%"]
    assert cells(table, title, "128", "torch-sparse") == ["80.0", "4.00", "16.00 GB", ""]
    assert "- pyg, float32, hidden 128: out of memory" in table.splitlines()


def test_epoch_table_of_several_widths_and_dtypes():
    rows = [
        epoch_row(impl, ms, k=k, dtype=dtype)
        for impl, times in (("pyg_sparse", (5.0, 4.0, 20.0, 16.0)), ("torch-sparse", (10.0, 12.0, 80.0, 88.0)))
        for (k, dtype), ms in zip(product((8, 128), ("float32", "bfloat16")), times, strict=True)
    ]
    table = tables.epoch(META, rows)
    title = "reddit-shaped (synthetic, scale 0.1)"
    assert cells(table, "graph")[:3] == ["hidden", "dtype", "backend"]
    assert cells(table, title, "8", "bfloat16", "torch-sparse")[:2] == ["12.0", "3.00"]
    assert cells(table, title, "128", "float32", "torch-sparse")[:2] == ["80.0", "4.00"]
    assert cells(table, title, "128", "bfloat16", "torch-sparse")[:2] == ["88.0", "5.50"]
    backends = [line.split("|")[4].strip() for line in table.splitlines() if title in line]
    assert backends == ["pyg_sparse", "torch-sparse"] * 4, "what is compared stands together"


def test_sddmm_table():
    def sddmm_row(impl, layout, k, ms, **fields):
        row = spmm_row(impl, layout, k, ms, bench="sddmm", op="sddmm", **fields)
        del row["values"]
        return row

    rows = [
        sddmm_row("cuSPARSE", "csr", 32, 9.0),
        sddmm_row("torch.sparse.sampled_addmm", "csr int32", 32, 12.0),
        sddmm_row("pyg_sparse", "csr", 32, 3.0),
        sddmm_row("pyg_sparse", "coo", 32, 2.5),
        sddmm_row("cuSPARSE", "csr", 128, 30.0),
        sddmm_row("pyg_sparse", "csr", 128, 8.0),
        sddmm_row("pyg_sparse", "csr", 128, 0.1, dtype="bfloat16"),
    ]
    table = tables.sddmm(META, rows)
    title = "reddit-shaped (synthetic)"
    assert cells(table, "graph") == ["ms", "K = 32", "K = 128"]
    assert cells(table, title, "fastest rival") == ["9.00 (cuSPARSE csr)", "30.0 (cuSPARSE csr)"]
    assert cells(table, title, "pyg_sparse, fastest format") == ["2.50 (coo)", "8.00 (csr)"]
    assert cells(table, title, "speed-up") == ["3.60", "3.75"]

    detail = tables.detail(META, rows)
    assert "**reddit-shaped (synthetic)**, float32, fwd; 1,000 nodes" in detail
    assert cells(detail, "pyg_sparse", "coo")[:2] == ["2.50 (0.278)", "-"]


@pytest.mark.parametrize("render", [tables.spmm, tables.sddmm, tables.detail])
def test_tables_say_where_and_how(render):
    where, how = "Some GPU, torch 2.11; commit 0123456789ab, 2026-01-02", "`python -m something`"
    assert render(META, SPMM).splitlines()[-1] == f"Measured on {where}. To repeat it: {how}."


DOCUMENT = """before
<!-- table:epoch-h200 -->
old
<!-- /table -->
after
<!-- table:spmm-detail-cpu -->
<!-- /table -->
"""


def test_without_results_a_table_is_empty(tmp_path):
    assert "old" not in make_tables.update(DOCUMENT, tmp_path)
    assert make_tables.update(DOCUMENT, tmp_path).startswith(
        "before\n<!-- table:epoch-h200 -->\n<!-- /table -->\nafter"
    )


def test_tables_come_from_their_device(tmp_path):
    results.write(tmp_path / "h200" / "epoch.json", META, EPOCH)
    results.write(tmp_path / "cpu" / "spmm.json", META, SPMM)
    text = make_tables.update(DOCUMENT, tmp_path)
    assert tables.epoch(META, EPOCH) in text
    assert tables.detail(META, SPMM) in text
    assert make_tables.update(text, tmp_path) == text


def test_unknown_table_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="unknown table sales"):
        make_tables.update("<!-- table:sales-h200 -->\n<!-- /table -->", tmp_path)


def test_check_fails_until_the_document_is_rewritten(tmp_path, monkeypatch):
    document = tmp_path / "page.md"
    document.write_text(DOCUMENT)
    monkeypatch.setattr(make_tables, "DOCUMENTS", (document, tmp_path / "missing.md"))
    with pytest.raises(SystemExit, match=r"page\.md"):
        make_tables.main(["--check"])
    assert document.read_text() == DOCUMENT
    make_tables.main([])
    make_tables.main(["--check"])
    assert "old" not in document.read_text()


def test_committed_documents_are_current():
    make_tables.main(["--check"])
