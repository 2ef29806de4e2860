"""Manual pages and completion scripts from the command line's own table, for the wheel: `tools/wheel/manpages.py DIR`.

A page for each verb, `man stripewise-store-create`, holds what `stripewise store create --help` says and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from stripewise import __version__
from stripewise.cli.completion import Shell, script
from stripewise.cli.main import app
from stripewise.cli.verbs import PROGRAM

#: Where shells look for completions below a prefix.
COMPLETIONS = {
    Shell.BASH: f"share/bash-completion/completions/{PROGRAM}",
    Shell.ZSH: f"share/zsh/site-functions/_{PROGRAM}",
    Shell.FISH: f"share/fish/vendor_completions.d/{PROGRAM}.fish",
}


def escaped(text: str) -> str:
    """Text that roff sets as it stands, hyphens to be copied into a shell among it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("\n", " ")
    return "\\&" + text if text.startswith(".") else text


def page(context: Any, verbs: Mapping[str, Any]) -> str:
    """The page of the verb of `context`; `verbs` are those below it, by name."""
    command, words = context.command, context.command_path
    name = words.replace(" ", "-")
    first, *more = (paragraph.strip() for paragraph in (command.help or "").split("\n\n"))
    lines = [f'.TH {escaped(name.upper())} 1 "" "{PROGRAM} {__version__}" "{PROGRAM.capitalize()}"']
    lines += [".SH NAME", f"{escaped(name)} \\- {escaped(first.rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f"\\fB{escaped(words)}\\fR {escaped(' '.join(command.collect_usage_pieces(context)))}"]
    lines += [".SH DESCRIPTION", escaped(first)]
    for paragraph in more:
        lines += [".PP", escaped(paragraph)]
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        records = [
            record
            for parameter in command.get_params(context)
            if parameter.param_type_name == kind and (record := parameter.get_help_record(context))
        ]
        lines += [f".SH {title}"] if records else []
        for names, text in records:
            lines += [".TP", f"\\fB{escaped(names)}\\fR", escaped(text)]
    lines += [".SH COMMANDS"] if verbs else []
    for verb, below in verbs.items():
        lines += [".TP", f"\\fB{escaped(f'{name}-{verb}')}\\fR(1)", escaped((below.help or "").split("\n\n")[0])]
    if context.parent:
        lines += [".SH SEE ALSO", f"\\fB{escaped(context.parent.command_path.replace(' ', '-'))}\\fR(1)"]
    return "\n".join(lines) + "\n"


def pages(context: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of the pages of a verb and of all below it."""
    command = context.command
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    verbs = {name: command.get_command(context, name) for name in names}
    yield f"{context.command_path.replace(' ', '-')}.1", page(context, verbs)
    for name, verb in verbs.items():
        yield from pages(verb.make_context(name, [], parent=context, resilient_parsing=True))


def main(prefix: Path) -> None:
    """Writes everything below `prefix`, as it is to lie below the prefix of an installation."""
    root = typer.main.get_command(app).make_context(PROGRAM, [], resilient_parsing=True)
    texts = {f"share/man/man1/{name}": text for name, text in pages(root)}
    texts |= {COMPLETIONS[shell]: script(shell) for shell in Shell}
    for name, text in texts.items():
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
