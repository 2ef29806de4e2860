"""`stripewise glossary`: what a word means, and where it comes from; and the columns in the help of verbs."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import UsageError
from ..glossary import COLUMNS, WORDS, Entry, found, near
from .options import JsonOption
from .output import aligned, print_json


def glossary(
    word: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TERM...]", help="Terms of tables and pages, or names of policies (default: all)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain a term: table headings, layouts, models, policies."""
    wanted = " ".join(word or [])
    told = found(wanted) if word else dict(sorted(WORDS.items(), key=lambda each: each[0].casefold()))
    if not told:
        guess = near(wanted)
        cure = f"did you mean {', '.join(guess)}?" if guess else "'stripewise glossary' lists all words"
        raise UsageError(f"glossary: '{wanted}' is not in it; {cure}")
    if json:
        print_json({name: {"text": entry.text, "source": entry.source} for name, entry in told.items()})
        return
    for line in _drawn(told):
        typer.echo(line)


def columns_help(verb: str) -> str | None:
    """What a verb's columns mean, as the end of its help; None for a verb without a table."""
    if verb not in COLUMNS:
        return None
    # Help is indented once more.
    lines = [line[2:] for line in _drawn({name: Entry(WORDS[name].text) for name in COLUMNS[verb]}, "    ")]
    return "\n".join(["\b", "Columns ('stripewise glossary' tells of more words):", *lines])


def _drawn(told: dict[str, Entry], indent: str = "  ") -> list[str]:
    rows = [(name, f"{entry.text} [{entry.source}]" if entry.source else entry.text) for name, entry in told.items()]
    # Without the line of headings.
    return list(aligned(("", ""), rows, indent=indent, words=True))[1:]
