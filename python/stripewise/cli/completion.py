"""`stripewise completion`: the script by which a shell completes verbs and options, from the table of the verbs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer import completion as typers

from .verbs import COMPLETE_VARIABLE, PROGRAM

# zsh runs a file that it finds in fpath as the completion itself, the first time.
_ZSH_FROM_FPATH = """
if [ "$funcstack[1]" = "_stripewise" ]; then
  _stripewise_completion "$@"
fi
"""


class Shell(StrEnum):
    """Those whose completion is known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script(shell: Shell) -> str:
    """What the shell has to run."""
    text = typers.get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value)  # type: ignore[attr-defined]
    return f"{text}\n" + (_ZSH_FROM_FPATH if shell is Shell.ZSH else "")


def prepare() -> None:
    """Makes the program answer the question with which a shell has started it."""
    typers.completion_init()  # type: ignore[attr-defined]


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Shell.")]) -> None:
    """Print a shell completion script.

    In the start-up file of the shell: eval "$(stripewise completion bash)".
    """
    typer.echo(script(shell), nl=False)
