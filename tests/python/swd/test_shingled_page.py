"""docs/shingled.md and docs/shingled/adaptive.md: commands run, numbers are theirs, the picture is what they draw."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from test_cli import stripewise

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [(DOCS / name).read_text() for name in ("shingled.md", "shingled/adaptive.md")]
COMMANDS = [line.strip() for page in PAGES for line in page.splitlines() if line.startswith("    stripewise ")]


@pytest.mark.parametrize("line", COMMANDS)
def test_their_commands_run(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What a shell would take for its own, as the parentheses of R(4123), must be quoted.
    assert not re.search(r"[()]", re.sub(r"'[^']*'", "", line))
    said = stripewise(*shlex.split(line)[1:]).output
    if " war " in line:
        costs = {name: cells for name, *cells in map(str.split, said.splitlines())}
        assert costs["R(4123)"] == costs["14R(23)"] == ["1.00", "1.00", "1.67", "4.00"]
        assert costs["1234"] == ["4.00"] * 4 and costs["124R(3)"] == ["1.67"] * 3 + ["4.00"]
        assert "1.60" in said
    if "--plot" in line:
        drawn, shown = ((place / "shingled.svg").read_text() for place in (tmp_path, DOCS / "shingled"))
        assert re.findall(r">([^<>]+)</text>", drawn) == re.findall(r">([^<>]+)</text>", shown) != []
