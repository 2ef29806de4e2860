"""Stores of which one manages what the other does: `init` warns of both orders in which they are made."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from stripewise.cli.main import app
from stripewise.setup.neighbours import LEVELS_MAX, overlaps


def made(directory: Path) -> Path:
    directory.parent.mkdir(parents=True)
    done = CliRunner().invoke(app, ["init", "--emulate", str(directory)])
    assert done.exit_code == 0, done.output
    return directory / "store"


def test_an_outer_store_around_one_that_is_there_is_warned_of(tmp_path: Path) -> None:
    inner = made(tmp_path / "a/b/lab")
    (said,) = overlaps(tmp_path / "outer", [f"{tmp_path}/a/**"])
    place, outer = inner.parent, tmp_path / "outer"
    assert said.startswith(f"{place}, whose new files the store {inner} manages, lies in what this store manages"), said
    assert overlaps(outer, [f"{tmp_path}/other/**"]) == [] and overlaps(outer, [f"{tmp_path}/a/*.h5"]) == []
    deep = made(tmp_path / "deep" / "/".join("x" * (LEVELS_MAX + 1)) / "lab")
    assert deep.is_dir() and overlaps(outer, [f"{tmp_path}/deep/**"]) == []
