"""The command line: python -m pyg_sparse COMMAND. Each command is a module of pyg_sparse/cli/."""

import argparse
import os
import sys

import torch

from pyg_sparse.cli import bench, cache, info, inspect, plan
from pyg_sparse.cli.errors import Failure, UsageError

INTERRUPTED, NO_READER = 130, 141  # as a shell tells of a process that such a signal ended


def main(argv: list[str] | None = None) -> int:
    """Returns 0, 1 if what was asked for failed or found a problem, or 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m pyg_sparse")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    info.add(commands)
    inspect.add(commands)
    plan.add(commands)
    bench.add(commands)
    cache.add(commands)

    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help(sys.stderr)
        return 2
    try:
        status = int(args.run(args))
        sys.stdout.flush()  # so that a reader that is gone shows here
        return status
    except UsageError as problem:
        return _fail(problem, 2)
    except (Failure, MemoryError, torch.OutOfMemoryError) as problem:
        return _fail(problem, 1)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return NO_READER


def _fail(problem: object, status: int) -> int:
    print(f"python -m pyg_sparse: {problem}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
