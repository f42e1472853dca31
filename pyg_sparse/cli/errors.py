"""What goes wrong in a command and is not a bug: told in a line, without a traceback."""

from __future__ import annotations


class UsageError(Exception):
    """Something that the user gave cannot be used; the message names it, its value and what is allowed. Exit code 2."""


class Failure(Exception):
    """What was asked for was tried and failed. Exit code 1."""
