"""`dphmm completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    r"""Print a script for SHELL that completes commands, options and files.

    \b
    Example:
      eval "$(dphmm completion bash)"                                 # in ~/.bashrc
      eval "$(dphmm completion zsh)"                                  # in ~/.zshrc
      dphmm completion fish > ~/.config/fish/completions/dphmm.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.Group(), {}, "dphmm", "_DPHMM_COMPLETE")
    click.echo(script.source_template % script.source_vars())
    return 0
