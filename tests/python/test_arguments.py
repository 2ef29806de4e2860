"""Verbs take options in groups, the command line takes them one by one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from stripewise.cli.arguments import flattened
from stripewise.cli.main import app
from stripewise.cli.verbs import TABLE

CLI = Path(__file__).resolve().parents[2] / "python/stripewise/cli"
PARAMETERS_MAX = 8


@dataclass(frozen=True, kw_only=True)
class Area:
    """Two options that belong together."""

    width: Annotated[int, typer.Option("--width", help="In tracks.")]
    height: Annotated[int, typer.Option("--height")] = 2


@dataclass(frozen=True, kw_only=True)
class HighArea(Area):
    """The same with another default, in its place."""

    height: Annotated[int, typer.Option("--height")] = 9


@flattened
def area(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    low: Area,
    loud: Annotated[bool, typer.Option("--loud")] = False,
) -> None:
    """Say an area."""
    typer.echo(f"{name}: {low.width * low.height}{'!' if loud else ''}")


@flattened
def high(*, area: HighArea) -> None:
    """Say a high area."""
    typer.echo(str(area.width * area.height))


def said(verb, *words: str):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(verb)
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize(
    ("words", "output"), [(("a", "--width", "3"), "a: 6\n"), (("a", "--height=4", "--width=3", "--loud"), "a: 12!\n")]
)
def test_fields_of_a_group_are_options(words, output):
    assert said(area, *words).stdout == output


def test_a_field_without_a_default_is_an_option_that_must_be_given():
    assert said(area, "a").exit_code == 2


def test_options_stand_in_the_help_where_their_group_stands():
    text = said(area, "--help").stdout
    assert text.index("--width") < text.index("--height") < text.index("--loud")
    assert "In tracks." in text and "Say an area." in text


def test_a_group_that_changes_a_default_keeps_the_order():
    assert said(high, "--width", "2").stdout == "18\n"
    text = said(high, "--help").stdout
    assert text.index("--width") < text.index("--height")


def test_no_function_of_the_command_line_has_many_parameters():
    many = {}
    for file in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                count = len(node.args.args) + len(node.args.kwonlyargs) + len(node.args.posonlyargs)
                if count > PARAMETERS_MAX:
                    many[f"{file.name}: {node.name}"] = count
    assert not many


def test_arguments_are_shown_by_their_names_alone() -> None:
    def verbs(table, *before):
        for name, each in table.items():
            inner = getattr(each, "verbs", None)
            yield from verbs(inner, *before, name) if inner else [(*before, name)]

    found = list(verbs(TABLE))
    assert ("store", "template", "rm") in found and len(found) > 40
    for words in found:
        said = CliRunner().invoke(app, [*words, "--help"]).output
        usage, _, rest = said.partition("\n")
        arguments = rest.partition("Arguments:")[2].partition("Options:")[0]
        assert usage.startswith("Usage: ") and not {*"{<"} & {*usage, *arguments}, said
