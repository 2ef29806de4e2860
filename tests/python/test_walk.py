"""ARCHITECTURE.md names the files that a plan walks through, as tools/walks/plan.py finds them, and they stay few."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES_MAX = 30


def walked(*options: str) -> set[str]:
    """What tools/walks/plan.py lists, in a process of its own: here much would be known already."""
    said = subprocess.run([sys.executable, "tools/walks/plan.py", *options], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    *files, count = said.stdout.splitlines()
    assert count == f"{len(files)} files"
    return set(files)


def named() -> tuple[set[str], set[str], set[str]]:
    """The files in the page's list of steps, and those in the paragraphs about simulated runs and windows behind it."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page[page.index("**The walk of a plan**") : page.index("**Slice addresses.**")]
    steps = "\n".join(re.findall(r"^\d\. .*", section, re.M))
    simulated, windows = section[section.index("Once it is made") :].split("With `--window`")
    file = re.compile(r"`([\w/]+\.py)`")
    return set(file.findall(steps)), set(file.findall(simulated)), set(file.findall(windows))


def test_the_page_lists_the_files_that_a_plan_walks_through() -> None:
    steps, simulated, _ = named()
    assert walked() == steps | simulated


def test_the_page_lists_what_windows_add_to_the_walk() -> None:
    steps, simulated, windows = named()
    assert walked("--window", "20ms") == steps | simulated | windows


def test_a_plan_walks_through_few_files() -> None:
    assert len(named()[0]) <= FILES_MAX


@pytest.mark.parametrize("options", [["show", "nowhere"], ["--window", "never"]])
def test_a_command_that_fails_has_no_walk(options: list[str]) -> None:
    said = subprocess.run([sys.executable, "tools/walks/plan.py", *options], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode and not said.stdout and "stripewise: " in said.stderr
