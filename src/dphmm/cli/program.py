"""The program `dphmm`: its commands, loaded when they are called, and its one way to fail."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from traceback import extract_tb
from typing import Any, NoReturn, TextIO

import click

from dphmm import __version__
from dphmm.errors import BudgetError, CollapsedAnswersWarning, DphmmError, ExposureError

__all__ = ["COMMANDS", "program"]

COMMANDS = {
    "audit": "a black-box test of the noise against its epsilon, with broken controls first",
    "check": "who is exposed when, what repair adds, and what an answer is worth",
    "demo": "a small city, its policy and a day of private releases, in under a minute",
    "design": "the radius or epsilon that meets a wanted error or protection",
    "grid": "a map of square cells around a place, and GPS files as trips on it",
    "learn": "a model of how people move, from their trips or from earlier releases",
    "ledger": "what was said and spent; go on under a changed scenario or another key",
    "release": "private answers for trips from a file or a pipe",
    "report": "one page about a scenario and what was released under it",
    "reproduce": "the paper's evaluation on real data: tables, figures and a page (private)",
    "serve": "releases over HTTP, from a store",
    "store": "inspect, verify, export and erase what a store keeps; keys",
    "studio": "a page to draw a policy, see who is exposed and watch a simulated release",
}
"""Every command is the attribute `command` of the module of its name in this folder."""


class _ReaderLeftError(Exception):
    """Whoever read the output has had enough."""


class Program(click.Group):
    """A group that loads a command when it is called and says every error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as `--help` lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"dphmm.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what click would make of a closed pipe is not ours."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise _ReaderLeftError from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *arguments: Any,
        **options: Any,
    ) -> NoReturn:
        """Run and exit: 0, 1 for a no, 2 for bad input, 3 for a bug; one line says where."""
        options["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                warnings.simplefilter("always", CollapsedAnswersWarning)
                code = super().main(args, prog_name or "dphmm", *arguments, **options)
            sys.exit(code if isinstance(code, int) else 0)
        except _ReaderLeftError:
            _forget_output()
            sys.exit(0)
        except (BudgetError, ExposureError) as fault:
            _fail(str(fault), 1)
        except DphmmError as fault:
            _fail(str(fault), 2)
        except click.exceptions.NoArgsIsHelpError as fault:
            click.echo(fault.format_message())
            sys.exit(2)
        except click.ClickException as fault:
            _fail(fault.format_message(), 2)
        except (KeyboardInterrupt, click.Abort):
            _forget_output()
            sys.exit(130)
        except OSError as fault:
            _forget_output()
            _fail(_what_the_system_said(fault), 2)
        except Exception as fault:
            # Its message may hold anything, a true state too; its place is enough to find it.
            place = extract_tb(fault.__traceback__)[-1]
            _fail(
                f"a mistake of dphmm: {type(fault).__name__} in {place.name}, "
                f"{place.filename}:{place.lineno}; please report it",
                3,
            )


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    click.echo(f"dphmm: note: {message}", err=True)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"dphmm: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _what_the_system_said(fault: OSError) -> str:
    place = f"{fault.filename}: " if fault.filename else "output: "
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{place}disk must have room, got: {fault.strerror}; run again to continue"
    return f"{place}{fault.strerror or fault}"


def _forget_output() -> None:
    """Let nothing more be written to an output that is gone or full."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Program, no_args_is_help=True)
@click.version_option(__version__, prog_name="dphmm")
def program() -> None:
    """Release what a Markov chain is doing, privately, under a policy drawn as a graph.

    Exit codes: 0, 1 if the answer is no (exposed, over budget), 2 for bad input, 3 for a
    mistake of the program itself.
    """
