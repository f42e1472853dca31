"""python -m pyg_sparse cache {list,verify,clear}"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from pyg_sparse.cli import text
from pyg_sparse.planner.folder import DEFAULT_BYTES, FOLDER, CacheWarning, why_unsafe
from pyg_sparse.planner.store import Entry, Store


def add(commands: Any) -> None:
    parser = commands.add_parser("cache", help="the plans kept on disk", description="The plans kept on disk.")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, what in (
        ("list", _list, "show the records, the one used longest ago first"),
        ("verify", _verify, "read every record and check it; 1 if one is broken"),
        ("clear", _clear, "remove the records"),
    ):
        action = actions.add_parser(name, help=what, description=what)
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument("--folder", type=Path, help=f"another folder than that of {FOLDER} or the default")
        action.set_defaults(run=_of_store(run))
    action.add_argument(
        "--older-than", type=_days, default=0.0, metavar="DAYS", help="only those not used for this many days"
    )


def _days(value: str) -> float:
    try:
        days = float(value)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} must be a number of days, 0 or more")
    return days


def _of_store(run: Any) -> Any:
    return lambda args: _with_store(run, args)


def _with_store(run: Any, args: argparse.Namespace) -> int:
    if args.folder is not None and not args.folder.is_dir():
        return _fail(f"--folder {args.folder}: there is no such folder", 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CacheWarning)
        try:
            store = Store(args.folder, DEFAULT_BYTES) if args.folder is not None else Store.default()
        except ValueError as error:
            return _fail(str(error), 1)
    if store is None:
        return _fail(str(caught[0].message) if caught else f"the cache is off: {FOLDER} says so", 1)
    return int(run(store, args))


def _list(store: Store, args: argparse.Namespace) -> int:
    entries = store.entries()
    if args.json:
        print(json.dumps({"folder": str(store.folder), "records": [_facts(entry) for entry in entries]}, indent=2))
        return 0
    print(store.folder)
    if entries:
        print(_table(entries))
    print(_total(len(entries), sum(entry.bytes for entry in entries)))
    return 0


def _verify(store: Store, args: argparse.Namespace) -> int:
    checked = store.verify()
    broken = [(entry, problem) for entry, problem in checked if problem is not None]
    unsafe = why_unsafe(store.folder) if store.folder.exists() else None
    if args.json:
        records = [_facts(entry) | {"problem": problem} for entry, problem in checked]
        print(json.dumps({"folder": str(store.folder), "problem": unsafe, "records": records}, indent=2))
    else:
        print(store.folder)
        if unsafe:
            print(f"not used: {unsafe}")
        for entry, problem in broken:
            print(f"{entry.path.name} {problem}")
        print(f"{text.count(len(checked), 'record')} checked, {len(broken) or 'none'} broken")
    return 1 if broken or unsafe else 0


def _clear(store: Store, args: argparse.Namespace) -> int:
    removed = store.clear(older_than=args.older_than * 86400)
    left = len(store.entries())
    if args.json:
        print(json.dumps({"folder": str(store.folder), **removed._asdict(), "left": left}, indent=2))
    else:
        print(f"{store.folder}\nremoved {_total(*removed)}; {text.count(left, 'record')} left")
    return 0 if left == 0 or args.older_than else 1


def _total(records: int, size: int) -> str:
    return f"{text.count(records, 'record')}, {text.size(size)}"


def _facts(entry: Entry) -> dict[str, Any]:
    facts = {"file": entry.path.name, "bytes": entry.bytes, "last_used": entry.last_used}
    if entry.header is None:
        return facts | {"key": None, "created": None, "library": None}
    return facts | {"key": entry.header.key, "created": entry.header.created, "library": entry.header.library}


def _table(entries: list[Entry]) -> str:
    """The parts of the keys, a column each, then what is known of the file."""
    keys = [entry.header.key if entry.header else {} for entry in entries]
    names = list(dict.fromkeys(name for key in keys for name in key))
    rows = [[*map(text.plain, names), "written by", "size", "last used"]]
    for entry, key in zip(entries, keys, strict=True):
        library = entry.header.library if entry.header else f"broken: {entry.path.name}"
        used = f"{text.age(time.time() - entry.last_used)} ago"
        rows.append(
            [*(text.plain(key.get(name, "-")) for name in names), text.plain(library), text.size(entry.bytes), used]
        )
    return text.table(rows, right=(len(names) + 1, len(names) + 2))


def _fail(problem: str, status: int) -> int:
    print(f"python -m pyg_sparse cache: {problem}", file=sys.stderr)
    return status
