"""Command line: python -m pyg_sparse info"""

import argparse
import json
import sys

from pyg_sparse import _info


def _run_info(args: argparse.Namespace) -> int:
    info = _info.collect()
    print(json.dumps(info, indent=2) if args.json else _info.render(info))
    return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyg_sparse")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    info = commands.add_parser("info", help="versions, compiled kernels, devices")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_run_info)

    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help(sys.stderr)
        return 2
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
