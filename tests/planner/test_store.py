"""One process and its folder. What the disk, the system and other processes do to it is in test_store_failures.py."""

import json
import os
import time
import warnings
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from pyg_sparse.planner import folder as settings
from pyg_sparse.planner import record as records
from pyg_sparse.planner.folder import CacheWarning
from pyg_sparse.planner.store import Store

KEY = {"structure": "0123", "operator": "spmm", "width": 32}
ABOUT = {"format": "csr", "split": 64, "cost": [1.5, None, True], "ünïcode": "\U0001f600"}
TENSORS = {
    "int8, odd length": torch.arange(17, dtype=torch.int8),
    "int32, odd length": torch.arange(5, dtype=torch.int32),
    "int64": torch.arange(9),
    "bool": torch.tensor([True, False, True]),
    "bf16": torch.randn(3, 5).bfloat16(),
    "fp16": torch.randn(2, 2, 2).half(),
    "fp64": torch.randn(4, dtype=torch.float64),
    "fp8": torch.randn(7).to(torch.float8_e4m3fn),
    "complex": torch.randn(3, dtype=torch.complex64),
    "transposed": torch.randn(3, 4).t(),
    "slice": torch.arange(100)[10:20:3],
    "no elements": torch.empty(0),
    "no rows": torch.empty(0, 3),
    "scalar": torch.tensor(2.5),
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", 1 << 30)


def get_quietly(store: Store, key=KEY):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return store.get(key)


def get_broken(store: Store, problem: str, key=KEY) -> None:
    """Nothing, a warning, and no file is left."""
    with pytest.warns(CacheWarning, match=problem):
        assert store.get(key) is None
    assert get_quietly(store, key) is None


def only_file(store: Store) -> Path:
    (path,) = store.folder.iterdir()
    return path


def raw(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def assert_is_what_was_put(record, about=ABOUT, tensors=TENSORS) -> None:
    assert record.about == about
    assert record.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        found = record.tensors[name]
        assert (found.dtype, found.shape, found.device.type) == (tensor.dtype, tensor.shape, "cpu"), name
        assert torch.equal(raw(found), raw(tensor)), name


def test_round_trip(store):
    assert get_quietly(store) is None
    assert store.put(KEY, ABOUT, TENSORS)
    assert_is_what_was_put(get_quietly(store))
    assert_is_what_was_put(get_quietly(Store(store.folder, 1)))


@pytest.mark.parametrize("count", [0, 1, 8, 15, 16, 17, 100_003])
def test_every_length(store, count):
    tensors = {"bytes": torch.randint(256, (count,), dtype=torch.uint8), "after": torch.arange(3, dtype=torch.int32)}
    assert store.put(KEY, {}, tensors)
    assert_is_what_was_put(get_quietly(store), {}, tensors)


def test_without_tensors(store):
    assert store.put(KEY, ABOUT)
    assert_is_what_was_put(get_quietly(store), ABOUT, {})


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_of_a_gpu_come_back_on_the_cpu(store):
    tensors = {"x": torch.randn(1000, device="cuda")}
    assert store.put(KEY, {}, tensors)
    assert torch.equal(get_quietly(store).tensors["x"], tensors["x"].cpu())


def test_tensors_may_share_memory(store):
    base = torch.arange(10)
    tensors = {"a": base, "b": base, "c": base[2:7], "d": base.view(2, 5)}
    assert store.put(KEY, {}, tensors)
    assert_is_what_was_put(get_quietly(store), {}, tensors)


def test_strides_of_axes_of_size_1(store):
    single = torch.arange(4)[::2][:1]
    tensors = {"view": single, "own": single.int()}
    assert {tensor.stride() for tensor in tensors.values()} == {(2,)}
    assert store.put(KEY, {}, tensors)
    assert get_quietly(store).tensors["own"].tolist() == [0]


def test_writing_to_a_tensor_does_not_write_to_the_file(store):
    store.put(KEY, {}, {"x": torch.zeros(5000)})
    get_quietly(store).tensors["x"].fill_(1)
    assert get_quietly(store).tensors["x"].eq(0).all()


def test_last_put_counts_and_readers_keep_theirs(store):
    store.put(KEY, {"n": 1}, {"x": torch.full((5000,), 1)})
    first = get_quietly(store)
    store.put(KEY, {"n": 2}, {"x": torch.full((9000,), 2)})
    assert get_quietly(store).about == {"n": 2}
    assert len(store.entries()) == 1
    assert first.tensors["x"].eq(1).all()
    store.clear()
    assert first.tensors["x"].eq(1).all()


def test_keys_are_told_apart(store):
    keys = [
        KEY,
        KEY | {"width": 64},
        KEY | {"width": "32"},
        KEY | {"more": 1},
        {"structure": "0123", "operator": "spmm"},
        {},
    ]
    for i, key in enumerate(keys):
        assert store.put(key, {"i": i})
    assert [get_quietly(store, key).about["i"] for key in keys] == list(range(len(keys)))
    assert get_quietly(store, dict(reversed(KEY.items()))).about == {"i": 0}


@pytest.mark.parametrize("value", [1.5, None, True, [1], b"x"])
def test_bad_key_is_named(store, value):
    for call in (store.get, lambda key: store.put(key, {})):
        with pytest.raises(TypeError, match=r"key holds 'width': .*; allowed are names with a str or an int each"):
            call({"width": value})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, torch.zeros(1)])
def test_bad_about_is_named(store, value):
    with pytest.raises(TypeError, match=r"about=.* must hold JSON's types only"):
        store.put(KEY, {"x": value})
    assert list(store.folder.iterdir()) == []


def test_another_keys_record_is_never_served(store):
    store.put(KEY, ABOUT)
    mine = only_file(store)
    other = KEY | {"width": 64}
    store.put(other, ABOUT)
    (theirs,) = set(store.folder.iterdir()) - {mine}
    os.replace(mine, theirs)
    get_broken(store, "is the record of another key", other)


def small(store: Store) -> tuple[Path, bytes]:
    """A record with data of every kind of length."""
    assert store.put(KEY, {"n": 1}, {"x": torch.arange(5), "y": torch.arange(19, dtype=torch.int8)})
    path = only_file(store)
    return path, path.read_bytes()


@pytest.mark.filterwarnings("ignore::pyg_sparse.planner.folder.CacheWarning")
def test_truncated_at_every_byte(store):
    path, whole = small(store)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.get(KEY) is None, length
        assert not path.exists(), length
    path.write_bytes(whole)
    assert store.get(KEY) is not None


@pytest.mark.filterwarnings("ignore::pyg_sparse.planner.folder.CacheWarning")
def test_every_changed_byte_is_found(store):
    path, whole = small(store)
    for at in range(len(whole)):
        for change in (0x01, 0x20, 0x80):
            broken = bytearray(whole)
            broken[at] ^= change
            path.write_bytes(broken)
            assert store.get(KEY) is None, (at, change)
    path.write_bytes(whole + b"\0")
    assert store.get(KEY) is None


def forge(store: Store, metadata, tensors=None) -> None:
    """A record that other software wrote in place of ours."""
    store.put(KEY, ABOUT)
    safetensors.torch.save_file(tensors or {"x": torch.zeros(3)}, only_file(store), metadata=metadata)


def said(**changes) -> str:
    return json.dumps({"version": 1, "library": "0.1.0", "created": 1.0, "key": KEY, "about": {}} | changes)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (None, "is not a readable record"),
        ({}, "is not a readable record"),
        ({"checksum": "0" * 32}, "is not a readable record"),
        ({"record": "{", "checksum": ""}, "is not a readable record"),
        ({"record": "[" * 200_000}, "is not a readable record"),
        ({"record": '{"version":' * 200_000}, "is not a readable record"),
        ({"record": "9" * 100_000}, "is not a readable record"),
        ({"record": "[1]"}, "has version None, this library reads 1"),
        ({"record": said(version=2)}, "has version 2, this library reads 1"),
        ({"record": said(version="x" * 1000)}, "has version x{20}, this"),
        ({"record": said(library=1)}, "lacks the library's version"),
        ({"record": said(created="now")}, "lacks the library's version"),
        ({"record": said(about=[])}, "lacks the library's version"),
        ({"record": said(key=[])}, "has a key of other types"),
        ({"record": said(key={"width": {"a": 1}})}, "has a key of other types"),
        ({"record": said()}, "does not have the checksum"),
        ({"record": said(), "checksum": "0" * 32}, "does not have the checksum"),
    ],
)
def test_hostile_metadata(store, metadata, problem):
    forge(store, metadata)
    get_broken(store, problem)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,  # a header of 2^64 - 1 bytes
        (1 << 62).to_bytes(8, "little") + b"{}",
        (100).to_bytes(8, "little") + b"\xff" * 100,
        b'\x80\x04\x95cos\nsystem\n(S"touch /tmp/pwned"\ntR.',
        *(
            len(header).to_bytes(8, "little") + header + bytes(8)
            for header in (
                b'{"x":{"dtype":"F4","shape":[16],"data_offsets":[0,8]}}',
                b'{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}',
                b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,1099511627776]}}',
                b'{"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},'
                b'"y":{"dtype":"I64","shape":[1],"data_offsets":[1,9]}}' + b" ",
                b'{"x":' * 10_000,
            )
        ),
    ],
)
def test_hostile_files(store, content):
    store.put(KEY, ABOUT)
    only_file(store).write_bytes(content)
    get_broken(store, "is not a readable record")


def test_a_directory_in_place_of_a_record(store):
    store.put(KEY, ABOUT)
    path = only_file(store)
    path.unlink()
    path.mkdir()
    with pytest.warns(CacheWarning, match="is not a regular file"):
        assert store.get(KEY) is None
    with pytest.warns(CacheWarning, match="nothing is kept"):
        assert not store.put(KEY, ABOUT)
    assert [problem for _, problem in store.verify()] == ["is not a regular file"]


def test_a_pipe_in_place_of_a_record(store):
    store.put(KEY, ABOUT)
    path = only_file(store)
    path.unlink()
    os.mkfifo(path)
    get_broken(store, "is not a regular file")


def test_a_link_in_place_of_a_record(store, tmp_path):
    store.put(KEY, ABOUT)
    path = only_file(store)
    os.replace(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="cannot be read"):
        assert store.get(KEY) is None


def test_a_file_that_others_may_write(store):
    store.put(KEY, ABOUT)
    only_file(store).chmod(0o666)
    get_broken(store, "could have been written by another user")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_and_a_folder_of_another_user(store):
    store.put(KEY, ABOUT)
    os.chown(only_file(store), 1234, -1)
    get_broken(store, "could have been written by another user")
    os.chown(store.folder, 1234, -1)
    with pytest.warns(CacheWarning, match="is not used as a cache: it belongs to user 1234, not to 0"):
        assert not store.put(KEY, ABOUT)


def test_a_folder_that_others_may_write(store):
    store.put(KEY, ABOUT)
    store.folder.chmod(0o777)
    for call in (lambda: store.get(KEY), lambda: store.put(KEY, ABOUT)):
        with pytest.warns(CacheWarning, match="is not used as a cache: every user may write to it"):
            assert not call()
    assert len(store.entries()) == 1


def test_the_folder_is_for_its_owner_alone(store):
    store.put(KEY, ABOUT, TENSORS)
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert only_file(store).stat().st_mode & 0o022 == 0


def test_equal_warnings_are_shown_once(store):
    store.put(KEY, ABOUT)
    store.folder.chmod(0o777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(5):
            store.get(KEY)
    assert len(caught) == 1


def test_least_recently_used_goes_first(tmp_path):
    kilobyte = {"x": torch.zeros(1000, dtype=torch.uint8)}
    store = Store(tmp_path / "cache", 5 * 1400)
    for i in range(5):
        assert store.put({"i": i}, {}, kilobyte)
    assert len(store.entries()) == 5
    assert get_quietly(store, {"i": 0})
    assert get_quietly(store, {"i": 2})
    store.put({"i": 5}, {}, kilobyte)
    store.put({"i": 6}, {}, kilobyte)
    assert [entry.header.key["i"] for entry in store.entries()] == [4, 0, 2, 5, 6]
    assert sum(entry.bytes for entry in store.entries()) <= store.max_bytes
    for i in (1, 3):
        assert get_quietly(store, {"i": i}) is None


def test_a_record_above_the_bound_is_not_kept(tmp_path):
    store = Store(tmp_path / "cache", 2000)
    assert store.put({"i": 0}, {})
    with pytest.warns(CacheWarning, match="a record of 2,001 bytes is not kept: the cache may hold 2,000"):
        assert not store.put({"i": 1}, {}, {"x": torch.zeros(2001, dtype=torch.uint8)})
    assert [entry.header.key for entry in store.entries()] == [{"i": 0}]
    with pytest.raises(ValueError, match="max_bytes=0 must be positive"):
        Store(tmp_path, 0)


def leave_unfinished(store: Store, hours: float, size: int = 10) -> Path:
    path = store.folder / f"{'0' * 32}.abc_12.tmp"
    path.mkdir()
    (path / "part").write_bytes(bytes(size))
    then = time.time() - 3600 * hours
    os.utime(path, (then, then))
    return path


def test_what_killed_writers_left_goes_after_an_hour(store):
    store.put(KEY, {})
    path = leave_unfinished(store, hours=0.9)
    store.put(KEY, {})
    assert path.exists()
    os.utime(path, (0, time.time() - 3601))
    store.put(KEY, {})
    assert not path.exists()


def test_unfinished_records_count(tmp_path):
    store = Store(tmp_path / "cache", 100_000)
    store.put({"i": 0}, {}, {"x": torch.zeros(5000)})
    leave_unfinished(store, hours=0, size=90_000)
    store.put({"i": 1}, {}, {"x": torch.zeros(1000)})
    assert [entry.header.key for entry in store.entries()] == [{"i": 1}]


def test_entries_say_what_they_are(store):
    before = time.time()
    store.put(KEY, ABOUT, TENSORS)
    (entry,) = store.entries()
    assert entry.path == only_file(store)
    assert entry.bytes == entry.path.stat().st_size
    assert entry.header.key == KEY
    assert entry.header.library == "0.1.0"
    assert before <= entry.header.created <= time.time()
    assert before <= entry.last_used <= time.time()
    used = entry.last_used
    get_quietly(store)
    assert store.entries()[0].last_used > used


def test_verify(store):
    for i in range(4):
        store.put({"i": i}, {}, {"x": torch.arange(100)})
    paths = [entry.path for entry in store.entries()]
    damaged = bytearray(paths[1].read_bytes())
    damaged[-5] ^= 1
    paths[1].write_bytes(damaged)
    paths[2].write_bytes(b"")
    os.replace(paths[3], store.folder / f"{'0' * 32}.safetensors")
    problems = {entry.path: problem for entry, problem in store.verify()}
    assert problems[paths[0]] is None
    assert "checksum" in problems[paths[1]]
    assert "is not a readable record" in problems[paths[2]]
    assert "another key" in problems[store.folder / f"{'0' * 32}.safetensors"]
    assert len(store.entries()) == 4


def test_clear_leaves_other_files(store):
    assert store.clear() == (0, 0)
    store.put({"i": 0}, {})
    store.put({"i": 1}, {})
    leave_unfinished(store, hours=0)
    others = [store.folder / "notes.txt", store.folder / "model.safetensors"]
    for path in others:
        path.write_text("mine")
    size = sum(entry.bytes for entry in store.entries())
    tomorrow = time.time() + 86400
    os.utime(store.entries()[0].path, (tomorrow, tomorrow))  # by another machine's clock
    assert store.clear(older_than=60) == (0, 0)
    assert store.clear() == (2, size)
    assert sorted(store.folder.iterdir()) == sorted(others)


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.delenv(settings.FOLDER, raising=False)
    monkeypatch.delenv(settings.BYTES, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert (Store.default().folder, Store.default().max_bytes) == (tmp_path / "xdg" / "pyg_sparse", 8 << 30)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Store.default().folder == tmp_path / "home" / ".cache" / "pyg_sparse"
    monkeypatch.setenv(settings.FOLDER, "")
    assert Store.default().folder == tmp_path / "home" / ".cache" / "pyg_sparse"
    monkeypatch.setenv(settings.FOLDER, str(tmp_path / "named"))
    monkeypatch.setenv(settings.BYTES, "12345")
    assert (Store.default().folder, Store.default().max_bytes) == (tmp_path / "named", 12345)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(settings.FOLDER, "here")
    assert Store.default().folder == tmp_path / "here"
    assert not any(tmp_path.iterdir())  # nothing is made before something is put
    for off in ("off", "0"):
        monkeypatch.setenv(settings.FOLDER, off)
        assert Store.default() is None


@pytest.mark.parametrize("value", ["0", "-1", "8GB", "1e9", "1.5"])
def test_bad_bound_is_named(monkeypatch, value):
    monkeypatch.setenv(settings.BYTES, value)
    with pytest.raises(ValueError, match=f"PYG_SPARSE_CACHE_BYTES='{value}' must be a positive number of bytes"):
        Store.default()


def test_version_is_that_of_this_format():
    """Records of another layout need another number, so that they are told apart; then change ``said`` as well."""
    assert json.loads(said())["version"] == records.VERSION
