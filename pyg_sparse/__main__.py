"""The command line: python -m pyg_sparse COMMAND. Each command is a module of pyg_sparse/cli/."""

import argparse
import sys

from pyg_sparse.cli import cache, info


def main(argv: list[str] | None = None) -> int:
    """Returns 0, 1 if what was asked for failed or found a problem, or 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m pyg_sparse")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    info.add(commands)
    cache.add(commands)

    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help(sys.stderr)
        return 2
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
