"""The command line: parse, call, print."""

from __future__ import annotations

import sys

from dphmm.errors import MissingExtraError, require

__all__ = ["main"]


def main() -> None:
    """Run the command line; exits with 0, 1 (the answer is no), 2 (bad input) or 3 (a bug)."""
    try:
        require("click", "cli")
    except MissingExtraError as fault:
        print(f"dphmm: {fault}", file=sys.stderr)
        sys.exit(2)
    from dphmm.cli.program import program

    program.main(prog_name="dphmm")
