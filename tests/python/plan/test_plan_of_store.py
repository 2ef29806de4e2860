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
    assert stripewise("apply", plan, "--store", two, code=1).stderr == refused
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


#: A policy by which every file lies in the stripes that it has, begun one target later.
TURNED = """
from stripewise.policy import build_regions, register, rotate, static_plan, stripes_over

@register
def turned(workload, cluster, options):
    table = build_regions(workload, options.region_bytes)
    placed = [stripes_over(rotate(tuple(cluster.active), 1), 65536)] * table.regions
    return static_plan("turned", table, workload, cluster, options, placed, ["turned"] * table.regions)
"""


def test_tune_tells_that_a_layout_has_no_room_before_it_moves_anything(tmp_path: Path) -> None:
    lab, policy, file, store = tmp_path / "lab", tmp_path / "turned.py", tmp_path / "lab/f", tmp_path / "lab/store"
    policy.write_text(TURNED)
    rooms = [f"--capacity={name}=1MiB" for name in ("hdd0", "hdd1", "hdd2", "hdd3", "ssd0", "ssd1")]
    stripewise("init", "--emulate", lab, *rooms)
    file.write_bytes(bytes(range(1, 251)) * 20_000)
    small = lab / "a"
    small.write_bytes(bytes(200_000))
    stripewise("store", "adopt", "--store", store, "--layout", "def", file, small)
    stripewise("store", "set-layout", small, "--targets", "ssd0", "--stripe-size", "64KiB")
    before = stripewise("store", "layout", file, small).stdout
    said = stripewise("tune", "--store", store, "--policy", policy, "--", "cat", small, file, code=1).stderr
    assert "no target has room to keep it while it moves. It needs 4.8 MiB on one target; " in said, said
    assert stripewise("store", "layout", file, small).stdout == before
    assert "put back" not in said and "a tune of" not in stripewise("store", "fsck", store).stdout


@pytest.mark.parametrize(("capacity", "is_crowded"), [("1MiB", True), ("8MiB", False)])
def test_a_plan_without_room_for_its_moves_is_told_as_apply_tells_it(
    tmp_path: Path, capacity: str, is_crowded: bool
) -> None:
    lab, logs, trace = tmp_path / "lab", tmp_path / "logs", tmp_path / "trace"
    plan, policy, file, store = tmp_path / "p.json", tmp_path / "turned.py", lab / "f", lab / "store"
    policy.write_text(TURNED)
    rooms = [f"--capacity={name}={capacity}" for name in ("hdd0", "hdd1", "hdd2", "hdd3", "ssd0", "ssd1")]
    stripewise("init", "--emulate", lab, *rooms)
    file.write_bytes(bytes(range(1, 251)) * 20_000)
    stripewise("store", "adopt", "--store", store, file)
    stripewise("run", "--store", store, "--trace", logs, "--", "cat", file)
    stripewise("collect", logs, "-o", trace)
    words = ("plan", trace, "--store", store, "--policy", policy)
    planned = stripewise(*words, "-o", plan)
    checked = stripewise("plan", "--check", plan, "--store", store).stderr
    caveats = " ".join(json.loads(stripewise(*words, "--json").stdout)["caveats"])
    applied = stripewise("apply", plan, "--store", store, "--anyway", code=int(is_crowded)).stderr
    told = "no target has room to keep it while it moves. It needs 4.8 MiB on one target; "
    for said in (planned.stderr, checked, caveats, applied):
        assert (told in said) == is_crowded, said
    assert ("next, once there is room for it: " in " ".join(planned.stdout.split())) == is_crowded, planned.stdout
    if is_crowded:
        # Word by word what apply says, with its cure.
        why = applied.removeprefix("stripewise: ").strip()
        assert why.endswith("NAME --path DIR'") and f"'apply' cannot carry this plan out now: {why}" in planned.stderr


def test_a_kept_plan_is_named_as_commands_are_told_and_goes_by_words_however_they_are_quoted(
    labs: tuple[Path, Path], tmp_path: Path
) -> None:
    one, _ = labs
    plan = plan_of(tmp_path / "p.json", tmp_path / "one/f")
    for spelt in ("./mix 'a b' 4", "./mix a\\ b 4", './mix "a b" "4"'):
        said = stripewise("store", "plan", "add", one, plan, "--application", spelt, "--processes", "1").output
        assert "kept for './mix a\\ b 4' with 1 process" in " ".join(said.split()), said
        assert "./mix a\\ b 4" in stripewise("store", "plan", "ls", one).output
        assert "no plan for './mix a b 4'" in " ".join(
            stripewise("store", "plan", "rm", one, "./mix a b 4", code=2).stderr.split()
        )
        stripewise("store", "plan", "rm", one, spelt)
        assert "no plans" in stripewise("store", "plan", "ls", one).output
