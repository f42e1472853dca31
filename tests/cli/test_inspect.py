"""inspect, and what all commands that look at a graph have in common."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib.image
import pytest
import torch

from pyg_sparse.cli import inspect
from pyg_sparse.cli.degrees import octaves
from pyg_sparse.cli.drawing import of_plan
from pyg_sparse.cli.graph import load_graph
from pyg_sparse.cli.page import page
from pyg_sparse.cli.picture import save
from pyg_sparse.cli.report import Report, Section
from pyg_sparse.cli.spy import spy
from pyg_sparse.cli.survey import products, survey
from pyg_sparse.formats import Coo, Csr, Hyb
from pyg_sparse.plan import plan
from pyg_sparse.planner.features import features_of
from tests.conftest import FAMILIES, variants


def process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyg_sparse", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


def test_json(command, small_graph):
    code, out, err = command("inspect", small_graph, "--json", "--widths", "47,8", "--dtypes", "fp32,bf16")
    assert (code, err) == (0, "")
    found = json.loads(out)
    graph = load_graph(str(small_graph))
    assert found["graph"] == {"name": "small", "num_src": 200, "num_dst": 100, "num_edges": 1500}
    assert found["features"] == json.loads(json.dumps(features_of(graph.edge_index, (200, 100)).as_dict()))
    assert sum(octave["targets"] for octave in found["degrees"]) == 100
    assert sum(octave["sources"] for octave in found["degrees"]) == 200
    sizes = {size["format"]: size for size in found["formats"]}
    csr = plan(graph.edge_index, (200, 100), format=Csr()).forward.stats()
    assert (sizes["csr"]["bytes"], sizes["csr"]["padding"], sizes["csr"]["built"]) == (csr["bytes"], 0.0, True)
    assert any(size["padding"] > 0 for name, size in sizes.items() if name.startswith("hyb"))
    for candidate in found["candidates"]:
        asked = [(time["k"], time["dtype"]) for time in candidate["times"]]
        assert asked == [(8, "float32"), (47, "float32"), (8, "bfloat16"), (47, "bfloat16")]
        assert all(time["predicted_ms"] > 0 for time in candidate["times"])
    assert found["auto"]["by_model"] is False
    assert found["auto"]["forward"][0] | {"k": 8} == {
        "k": 8, "dtype": "float32", "order": "given", "format": "csr", "split": None
    }  # fmt: skip


def test_text(command, small_graph):
    code, out, err = command("inspect", small_graph)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert out.startswith("small: 200 sources -> 100 targets, 1,500 edges; on cpu (")
    for expected in ("shape class: ", "row_mean", "Degrees", "hyb(c=1, k=4)", "K=256 float32", "* what plan() takes"):
        assert expected in out


def test_the_choice_is_that_of_plan():
    shaped = load_graph("shape:arxiv@0.13")
    found = survey(shaped, products((32, 256), (torch.float32,)), torch.device("cpu"))
    planned = plan(shaped.edge_index, shaped.num_src, widths=(32, 256))
    assert found.by_model
    for product in found.products:
        chosen = found.auto(product)
        pair = planned.at(product.k, product.dtype)
        assert (chosen.order, chosen.spec.name) == (pair.orders[0], pair.forward.name)


def test_octaves():
    found = octaves(torch.tensor([0, 1, 2, 3, 4, 7, 8]), torch.tensor([1, 1]))
    assert found == [(0, 0, 1, 0), (1, 1, 1, 2), (2, 3, 2, 0), (4, 7, 2, 0), (8, 15, 1, 0)]
    assert octaves(torch.zeros(0), torch.zeros(0)) == []


def test_sizes_of_what_is_not_built(monkeypatch):
    graph = load_graph("shape:arxiv@0.01")
    found = survey(graph, products((32,), (torch.float32,)), torch.device("cpu"))
    built = inspect.sizes.sizes(found)
    monkeypatch.setattr(inspect.sizes, "MAX_BUILT", 0)
    estimated = inspect.sizes.sizes(found)
    for real, guess in zip(built, estimated, strict=True):
        assert guess.format == real.format
        assert guess.padding == pytest.approx(real.padding)
        assert guess.bytes == pytest.approx(real.bytes, rel=0.15)
        assert not guess.built
    assert "estimates" in inspect.sizes.section(estimated).lines[0]


@pytest.mark.parametrize("family", ["empty", "no_edges", "one_node", "wide", "hub"])
def test_any_graph(command, tmp_path, family):
    graph = FAMILIES[family]
    path = tmp_path / "g.pt"
    torch.save({"edge_index": graph.edge_index, "num_nodes": (graph.num_src, graph.num_dst)}, path)
    code, out, _ = command("inspect", path, "--json", "--widths", "1,8", "--plot", tmp_path / "g.png")
    assert code == 0
    assert json.loads(out)["graph"]["num_edges"] == graph.edge_index.size(1)


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG\r\n\x1a\n"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_picture(command, small_graph, tmp_path, suffix, start):
    path = tmp_path / f"out{suffix}"
    code, _, err = command("inspect", small_graph, "--plot", path)
    assert (code, err) == (0, f"wrote {path}\n")
    assert path.read_bytes().startswith(start)
    if suffix == ".png":
        image = matplotlib.image.imread(path)
        assert image.shape == (750, 2250, 4)
        assert image.std() > 0.05  # not empty


@pytest.mark.parametrize("spec", variants(), ids=repr)
def test_spy_shows_every_entry_once(spec):
    graph = FAMILIES["power_law"]
    found = spy(plan(graph.edge_index, (graph.num_src, graph.num_dst), format=spec).forward)
    assert len(found.row) == graph.edge_index.size(1)
    assert sorted(found.col) == sorted(graph.edge_index[0].tolist())
    assert 0 <= found.row.min() <= found.row.max() < found.height
    assert 0 <= found.kind.min() <= found.kind.max() < len(found.kinds)


def test_dense_tiles():
    dense = torch.cartesian_prod(torch.arange(16), torch.arange(16)).t() + 32
    graph = torch.cat([dense, torch.tensor([[0, 5], [60, 3]])], dim=1)
    found = spy(plan(graph, 64, format=Csr(), order="degree").forward)
    assert found.tiles == 1
    assert found.in_tile.sum() == 256


@pytest.mark.parametrize("spec", [Coo(8), Hyb(2, 3)], ids=repr)
def test_picture_of_other_formats(tmp_path, spec):
    graph = FAMILIES["power_law"]
    save(of_plan("power law", plan(graph.edge_index, 200, format=spec)), tmp_path / "out.png")
    assert matplotlib.image.imread(tmp_path / "out.png").std() > 0.05


class Links(HTMLParser):
    """All tags, and what they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loaded: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page(command, small_graph, tmp_path):
    code, _, err = command("inspect", small_graph, "--html", tmp_path / "out.html")
    assert (code, err) == (0, f"wrote {tmp_path / 'out.html'}\n")
    content = (tmp_path / "out.html").read_text()
    parser = Links()
    parser.feed(content)
    assert parser.open == []
    assert {"h1", "h2", "table", "img"} <= parser.tags
    assert parser.tags.isdisjoint({"script", "link", "iframe"})
    assert "http" not in content
    assert [link[:22] for link in parser.loaded] == ["data:image/png;base64,"]
    assert "row_mean" in content


def test_page_escapes():
    drawing = of_plan("", plan(FAMILIES["hub"].edge_index, 150))
    content = page(Report("<b>", {}, [Section("a & b", ["<i>"], [["<u>"], ["'\""]])], drawing))
    assert all(tag not in content for tag in ("<b>", "<i>", "<u>"))
    assert "a &amp; b" in content


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "GRAPH='none.npz': there is no such file"),
        (["KarateClub", "--widths", "0,8"], "argument --widths: '0,8' must be numbers of features, 1 or more"),
        (["KarateClub", "--widths", "x"], "argument --widths: 'x' must be"),
        (["KarateClub", "--dtypes", "int8"], "'int8' must be one of float64"),
        (["KarateClub", "--device", "tpu"], "argument --device: 'tpu' must be cpu, cuda or cuda:N"),
        (["KarateClub", "--plot", "out.jpg"], "argument --plot: 'out.jpg' must end in .png, .svg, .pdf"),
        (["KarateClub", "--plot", "no/folder/x.png"], "must be a file in a folder that exists"),
        (["KarateClub", "--html", "no/folder/x.html"], "must be a file in a folder that exists"),
        ([], "the following arguments are required: GRAPH"),
    ],
)
@pytest.mark.parametrize("name", ["inspect", "plan", "bench"])
def test_bad_usage(command, name, arguments, message):
    code, out, err = command(name, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda(command):
    code, _, err = command("inspect", "KarateClub", "--device", "cuda")
    assert code == 2
    assert "argument --device: 'cuda' cannot be used" in err


def test_pictures_need_matplotlib(command, monkeypatch):
    monkeypatch.setattr("pyg_sparse.cli.options.find_spec", lambda name: None)
    code, _, err = command("inspect", "KarateClub", "--plot", "out.png")
    assert code == 2
    assert "pip install 'pyg_sparse[plots]'" in err


def test_a_bad_environment(command, monkeypatch):
    monkeypatch.setenv("PYG_SPARSE_CACHE_BYTES", "8GB")
    code, out, err = command("inspect", "KarateClub")
    assert (code, out) == (2, "")
    assert "PYG_SPARSE_CACHE_BYTES='8GB'" in err


def test_interrupted(command, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyg_sparse.cli.command.load_graph", stop)
    assert command("inspect", "KarateClub") == (130, "", "python -m pyg_sparse: interrupted\n")


def test_as_a_process_in_a_pipe():
    result = process("inspect", "KarateClub", "--widths", "8", FORCE_COLOR="1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("KarateClub: 34 sources")
    assert "\x1b" not in result.stdout


def test_a_reader_that_is_gone():
    command = f"{sys.executable} -m pyg_sparse inspect KarateClub | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize(("columns", "has_rules"), [("120", True), ("40", False)])
def test_on_a_terminal(columns, has_rules):
    pytest.importorskip("rich")
    pytest.importorskip("pty")
    command = "[sys.executable, '-m', 'pyg_sparse', 'inspect', 'KarateClub', '--widths', '8']"
    result = subprocess.run(
        [sys.executable, "-c", f"import pty, sys; sys.exit(pty.spawn({command}) >> 8)"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | {"COLUMNS": columns, "TERM": "xterm-256color"},
    )
    assert result.returncode == 0
    assert b"\x1b[1mKarateClub" in result.stdout  # bold
    features = result.stdout.decode().partition("Features")[2].partition("Degrees")[0]
    assert ("\u2500" in features) == has_rules  # a table too wide for the terminal is plain
