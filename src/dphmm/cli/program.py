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
from click.shell_completion import CompletionItem

from dphmm import __version__
from dphmm.errors import (
    BudgetError,
    CollapsedAnswersWarning,
    DphmmError,
    ExposureError,
    UnknownLawWarning,
)

__all__ = ["COMMANDS", "program"]

COMMANDS = {
    "audit": "a black-box test of the noise against its epsilon, with broken controls first",
    "check": "who is exposed when, what repair adds, and what an answer is worth",
    "completion": "a script that lets your shell complete what you type",
    "demo": "a small city, its policy and a day of private releases, in under a minute",
    "design": "the radius, epsilon, schedule or budget that meets a wish",
    "evaluate": "whether a model helps, on people it was not learned from (private)",
    "export": "GeoJSON of a map, a policy, answers or estimates, for QGIS and kepler.gl",
    "grid": "a map of cells, places or roads, and a scenario for it",
    "import": "trips from GPS files of any kind, on a new map or one that is there",
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

MODULES = {"import": "importing"}
"""Except where Python has the name for itself."""

CONTINUED = ("demo", "release", "reproduce")
"""Commands that go on where they were stopped."""

FILES = {
    *(
        "book",
        "key_file",
        "ledger",
        "model_file",
        "moves",
        "output",
        "places",
        "private_truth",
        "releases",
    ),
    *("roads", "scenario_file", "states_file", "store", "tracks", "trips", "from_releases"),
}
"""Parameters that are files, so that shells complete them."""


class _ReaderLeftError(Exception):
    """Whoever read the output has had enough."""


def _be_quiet(context: click.Context, option: click.Parameter, quiet: bool) -> None:
    context.meta["dphmm.quiet"] = quiet or context.meta.get("dphmm.quiet", False)


def _choose_color(context: click.Context, option: click.Parameter, when: str | None) -> None:
    if when is not None:
        context.color = program.color = {"always": True, "never": False}.get(when)


COMMON: tuple[click.Option, ...] = (
    click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=_be_quiet,
        help="No progress and no summary: results, notes and errors only.",
    ),
    click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_choose_color,
        help="Whether to color what is printed.",
    ),
)
"""Options that every command has, before its name or after."""


def _finish(command: click.Command) -> click.Command:
    """Give a command, and those below it, what all of them have."""
    # In a raw docstring the mark of a paragraph that keeps its lines is two characters.
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    command.params += [option for option in COMMON if option not in command.params]
    for parameter in command.params:
        if parameter.name in FILES and parameter.type is click.STRING:
            parameter.type = click.Path()
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        _finish(below)
    return command


class Program(click.Group):
    """A group that loads a command when it is called and says every error in one line."""

    color: bool | None = None
    """Of what is printed after the commands have ended."""
    running = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as `--help` lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        self.running = cmd_name
        module = MODULES.get(cmd_name, cmd_name)
        return _finish(import_module(f"dphmm.cli.{module}").command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, without loading any command."""
        found = [
            CompletionItem(name, help=what)
            for name, what in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

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
        self.color = False if os.environ.get("NO_COLOR") else None
        options.setdefault("color", self.color)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                for kind in (CollapsedAnswersWarning, UnknownLawWarning):
                    warnings.simplefilter("always", kind)
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
            self._say_stopped()
        except OSError as fault:
            _forget_output()
            _fail(_what_the_system_said(fault), 2)
        except Exception as fault:
            # Python turns what comes while it makes a class, as in an import, into another error.
            if isinstance(fault.__cause__, KeyboardInterrupt):
                click.echo(err=True)
                self._say_stopped()
            # Its message may hold anything, a true state too; its place is enough to find it.
            place = extract_tb(fault.__traceback__)[-1]
            _fail(
                f"a mistake of dphmm: {type(fault).__name__} in {place.name}, "
                f"{place.filename}:{place.lineno}; please report it",
                3,
            )

    def _say_stopped(self) -> NoReturn:
        _forget_output()
        again = "; run again to continue" if self.running in CONTINUED else ""
        _fail(f"stopped{again}", 130)


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    note = click.style("dphmm: note:", fg="yellow")
    click.echo(f"{note} {message}", err=True, color=program.color)


def _fail(message: str, code: int) -> NoReturn:
    name = click.style("dphmm:", fg="red", bold=True)
    click.echo(f"{name} {' '.join(message.split())}", err=True, color=program.color)
    sys.exit(code)


def _what_the_system_said(fault: OSError) -> str:
    place = f"{fault.filename}: " if fault.filename else "standard output: "
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{place}disk must have room, got: {fault.strerror}; run again to continue"
    return f"{place}{fault.strerror or fault}"


def _forget_output() -> None:
    """Let nothing more be written to an output that is gone or full."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Program, no_args_is_help=True, params=list(COMMON))
@click.version_option(__version__, prog_name="dphmm")
def program() -> None:
    """Release what a Markov chain is doing, privately, under a policy drawn as a graph.

    Exit codes: 0, 1 if the answer is no (exposed, over budget), 2 for bad input, 3 for a
    mistake of the program itself.
    """
