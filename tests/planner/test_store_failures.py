"""What the disk, the system and other processes may do to the cache: kills, races, full and read-only disks."""

import ctypes
import os
import pwd
import random
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pyg_sparse.planner.folder import FOLDER, CacheWarning
from pyg_sparse.planner.store import Store

SKIPPED = 77


def fork(body: Callable[[], None]) -> int:
    """Runs body in a copy of this process, in which an unexpected warning of the cache is an error."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        torch.set_num_threads(1)  # the other threads were not copied
        warnings.simplefilter("error", CacheWarning)
        body()
        status = 0
    except pytest.skip.Exception:
        status = SKIPPED
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait(child: int) -> int:
    """The exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def put(store: Store, i: int, length: int = 200_000) -> bool:
    return store.put({"i": i}, {"i": i}, {"x": torch.full((length,), i), "y": torch.arange(3)})


def check(store: Store, i: int) -> bool:
    """Whether the record is there; if so, it is the right one."""
    record = store.get({"i": i})
    if record is None:
        return False
    assert record.about == {"i": i}
    assert record.tensors["x"].eq(i).all()
    assert record.tensors["y"].tolist() == [0, 1, 2]
    return True


def test_killed_while_writing(tmp_path):
    store = Store(tmp_path / "cache", 1 << 30)
    choose = random.Random(0)

    def write_forever() -> None:
        for i in range(1_000_000):
            assert put(store, i % 5)

    for i in range(5):
        put(store, i)
    for _ in range(40):
        child = fork(write_forever)
        time.sleep(choose.uniform(0.005, 0.04))
        os.kill(child, signal.SIGKILL)
        assert wait(child) == -signal.SIGKILL
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert all(check(store, i) for i in range(5))
    left = list(store.folder.glob("*.tmp"))
    assert left, "no process was killed while it wrote"
    for path in left:
        os.utime(path, (0, 0))
    put(store, 0)
    assert not any(path.exists() for path in left)
    assert len(list(store.folder.iterdir())) == 5


@pytest.mark.parametrize("limit", [0, 1, 100, 4096, 50_000])
@pytest.mark.parametrize("action", [signal.SIG_DFL, signal.SIG_IGN], ids=["killed", "error"])
def test_files_cannot_grow(tmp_path, limit, action):
    """The limit of a file's size: the system ends the process at that byte, or tells it so."""
    store = Store(tmp_path / "cache", 1 << 30)
    put(store, 0)
    put(store, 1)

    def write() -> None:
        signal.signal(signal.SIGXFSZ, action)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.warns(CacheWarning, match="nothing is kept in .*: .*File too large"):
            assert not put(store, 1)
        assert len(os.listdir(store.folder)) == 2

    assert wait(fork(write)) == (-signal.SIGXFSZ if action == signal.SIG_DFL else 0)
    assert check(store, 0)
    assert check(store, 1)


def test_many_processes_share_a_folder(tmp_path):
    record_bytes = 8 * 30_000
    store = Store(tmp_path / "cache", 4 * record_bytes)

    def work(seed: int) -> None:
        choose = random.Random(seed)
        found = 0
        for _ in range(150):
            i = choose.randrange(6)
            if choose.random() < 0.6:
                found += check(store, i)
            else:  # another length each time: a reader must not mix two files
                assert put(store, i, choose.randrange(1000, 30_000))
        assert found > 10

    children = [fork(lambda seed=seed: work(seed)) for seed in range(8)]
    assert [wait(child) for child in children] == [0] * 8
    entries = store.entries()
    assert 0 < sum(entry.bytes for entry in entries) <= store.max_bytes
    assert all(problem is None for _, problem in store.verify())
    assert len(os.listdir(store.folder)) == len(entries)


def test_cleared_while_in_use(tmp_path):
    store = Store(tmp_path / "cache", 1 << 30)

    def work() -> None:
        warnings.simplefilter("ignore", CacheWarning)  # what is being written may go, too
        for i in range(100):
            put(store, i % 3, 20_000)
            check(store, i % 3)

    children = [fork(work) for _ in range(3)]
    running = set(children)
    while running:
        assert all(problem is None for _, problem in store.verify())
        store.clear()
        running -= {child for child in running if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)}
    assert [wait(child) for child in children] == [0] * 3


def mount(folder: Path, options: str) -> None:
    """Mounts memory as a file system of this process alone, or skips where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_user, private, recursive = 0x20000, 0x10000000, 1 << 18, 1 << 14
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(new_mounts | (new_user if user else 0)) != 0:
        pytest.skip("this user may not mount")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if libc.mount(b"none", b"/", None, private | recursive, None) != 0:
        pytest.skip("this user may not mount")
    if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, options.encode()) != 0:
        pytest.skip("this user may not mount")


def remount_read_only(folder: Path) -> None:
    read_only, remount = 1, 32
    assert ctypes.CDLL(None).mount(b"tmpfs", bytes(folder), b"tmpfs", read_only | remount, None) == 0


def run(body: Callable[[], None]) -> None:
    status = wait(fork(body))
    if status == SKIPPED:
        pytest.skip("this user may not mount a file system")
    assert status == 0


def test_full_disk(tmp_path):
    def body() -> None:
        mount(tmp_path, "size=1m")
        store = Store(tmp_path / "cache", 1 << 30)
        assert put(store, 0, 100_000)
        for length in (31_000, 120_000, 500_000):
            with pytest.warns(CacheWarning, match="nothing is kept in .*: .*No space left on device"):
                assert not put(store, 1, length)
            assert len(os.listdir(store.folder)) == 1
        assert check(store, 0)
        assert put(store, 1, 1000)
        assert check(store, 1)

    run(body)


def test_no_room_for_names(tmp_path):
    def body() -> None:
        mount(tmp_path, "nr_inodes=4")
        store = Store(tmp_path / "cache", 1 << 30)
        assert put(store, 0)
        with pytest.warns(CacheWarning, match="nothing is kept in .*: .*No space left on device"):
            assert not put(store, 1)
        assert check(store, 0)

    run(body)


def test_read_only_disk(tmp_path):
    def body() -> None:
        mount(tmp_path, "size=8m")
        store = Store(tmp_path / "cache", 1 << 30)
        assert put(store, 0)
        assert put(store, 1)
        path = store.entries()[0].path
        path.write_bytes(path.read_bytes()[:-1])
        remount_read_only(tmp_path)
        assert check(store, 1)
        for _ in range(2):  # it cannot be removed
            with pytest.warns(CacheWarning, match="is not a readable record"):
                assert not check(store, 0)
        with pytest.warns(CacheWarning, match="nothing is kept in .*: Read-only file system"):
            assert not put(store, 2)
        assert store.clear() == (0, 0)

    run(body)


def test_folder_without_permission(tmp_path):
    store = Store(tmp_path / "cache", 1 << 30)

    def body() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        with pytest.warns(CacheWarning, match="Permission denied"):
            assert not put(store, 0)
        assert store.entries() == []

    tmp_path.chmod(0o500)
    run(body)


@pytest.mark.parametrize("folder", ["file", "file/inside", "/proc/cache", "/dev/null"])
def test_folder_that_cannot_be(tmp_path, folder):
    (tmp_path / "file").write_text("here first")
    store = Store(tmp_path / folder, 1 << 30)
    with pytest.warns(CacheWarning, match="nothing is kept in|is not a folder"):
        assert not put(store, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not check(store, 0)
    assert store.entries() == []
    assert store.clear() == (0, 0)
    assert (tmp_path / "file").read_text() == "here first"


def test_folder_that_vanished(tmp_path):
    store = Store(tmp_path / "cache", 1 << 30)
    put(store, 0)
    os.rename(store.folder, tmp_path / "elsewhere")
    assert not check(store, 0)
    assert put(store, 0)
    assert check(store, 0)


def test_no_home(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", FOLDER):
        monkeypatch.delenv(name, raising=False)

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.warns(CacheWarning, match="this user has no home folder; name a folder in PYG_SPARSE_CACHE"):
        assert Store.default() is None


def test_home_that_cannot_be_written(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("HOME", "/proc/nobody")
    store = Store.default()
    assert store is not None
    with pytest.warns(CacheWarning, match="nothing is kept in /proc/nobody/.cache/pyg_sparse"):
        assert not put(store, 0)
