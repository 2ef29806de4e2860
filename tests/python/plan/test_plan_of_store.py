"""A plan held against a store: its targets and its files, and that it is no other store's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stripewise.cli.main import app


def stripewise(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def plan_of(path: Path, file: Path, target: str = "ssd0") -> Path:
    regions = [{"start": 0, "len": 1 << 20, "stripes": [[target, 65536]]}]
    body = {"version": 1, "policy": "by hand", "files": [{"path": str(file), "size": 5, "regions": regions}]}
    path.write_text(json.dumps(body))
    return path


@pytest.fixture
def labs(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores, of which the first holds a file."""
    for name in ("one", "two"):
        stripewise("init", "--emulate", tmp_path / name)
    (tmp_path / "one/f").write_text("bytes")
    stripewise("store", "adopt", "--store", tmp_path / "one/store", tmp_path / "one/f")
    return tmp_path / "one/store", tmp_path / "two/store"


def test_a_check_against_a_store_looks_at_its_targets_and_files(labs: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = labs
    plan = plan_of(tmp_path / "p.json", tmp_path / "one/f")
    assert "sound" in stripewise("plan", "--check", plan, "--store", one).output
    refused = stripewise("plan", "--check", plan, "--store", two, code=1).stderr
    assert f"is a plan for another store: {tmp_path}/one/f lies in {one}, not in {two}" in refused, refused
    assert f"stripewise apply {plan} --store {one}" in refused and refused.count("\n") == 1, refused
    refused = stripewise("plan", "--check", plan_of(plan, tmp_path / "one/f", "tape"), "--store", one, code=1).stderr
    assert "names the target 'tape'" in refused, refused
    said = stripewise("plan", "--check", plan_of(plan, tmp_path / "one/new"), "--store", one).stderr
    assert "one/new is not there now; it can be laid out when it is made" in said, said
    refused = stripewise("plan", "--check", plan, "--store", one, "--keep", code=2).stderr
    assert "--check: takes a plan, --cluster and --store" in refused, refused


def test_a_store_keeps_no_plan_for_files_of_another_one(labs: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = labs
    plan = plan_of(tmp_path / "p.json", tmp_path / "one/f")
    words = ("--application", "app x", "--processes", "1")
    refused = stripewise("store", "plan", "add", two, plan, *words, code=1).stderr
    assert f"to keep it, stripewise store plan add {one} {plan}" in refused, refused
    assert "no plans" in stripewise("store", "plan", "ls", two).output
    said = stripewise("store", "plan", "add", two, plan_of(plan, tmp_path / "one/new"), *words).stderr
    assert f"one/new is not there, nor where {two} takes new files" in said, said
    (tmp_path / "two/plain").write_text("x")
    said = stripewise("store", "plan", "add", two, plan_of(plan, tmp_path / "two/plain"), *words).stderr
    assert f"is a plain file, which the plan does not move; stripewise store adopt --store {two}" in said, said
    assert not stripewise("store", "plan", "add", one, plan_of(plan, tmp_path / "one/f"), *words).stderr


def test_targets_that_are_away_are_told_with_what_is_planned_on_them(labs: tuple[Path, Path], tmp_path: Path) -> None:
    one, _ = labs
    plan, logs, trace = plan_of(tmp_path / "p.json", tmp_path / "one/f"), tmp_path / "logs", tmp_path / "trace"
    stripewise("run", "--store", one, "--trace", logs, "--", "cat", tmp_path / "one/f")
    stripewise("collect", logs, "-o", trace)
    told = " is away: "
    assert told not in stripewise("plan", "--check", plan, "--store", one).stderr
    for name in ("hdd0", "ssd0", "ssd1"):
        (one.parent / "targets" / name).rename(one.parent / name)
    said = stripewise("plan", "--check", plan, "--store", one).stderr
    first, second = said.splitlines()
    assert "target hdd0 is away: " in first and "the files have bytes on it" in first, said
    assert "target ssd0 is away: " in second and "the plan puts bytes on it" in second, said
    said = " ".join(stripewise("plan", trace, "--store", one, "--policy", "def", "-o", tmp_path / "q").output.split())
    assert "stripewise: warning: target hdd0 is away: " in said and "next, once its targets are back: " in said, said
    told_json = json.loads(stripewise("plan", trace, "--store", one, "--policy", "def", "--json").stdout)
    assert any(each.startswith("target hdd0 is away: ") for each in told_json["caveats"]), told_json
