"""python -m pyg_sparse info"""

from __future__ import annotations

import argparse
import json
from typing import Any

from pyg_sparse import _info


def add(commands: Any) -> None:
    parser = commands.add_parser("info", help="versions, compiled kernels, devices")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    info = _info.collect()
    print(json.dumps(info, indent=2) if args.json else _info.render(info))
    return 0
