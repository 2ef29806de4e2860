"""What verbs say of a store whose figures, places or targets are not as one would think."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stripewise.cli.moving.mover import _copied_text
from test_cli import stripewise


def said(*words: str | Path, code: int = 0) -> str:
    ended = stripewise(*words, code=code)
    return " ".join((ended.stdout + ended.stderr).split())


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    stripewise("init", "--emulate", tmp_path / "lab", "--capacity", "hdd0=1MiB", "--capacity", "hdd1=1MiB")
    return tmp_path / "lab"


def test_targets_whose_capacity_says_what_is_free_have_no_part_of_a_file_system(lab: Path) -> None:
    told = said("store", "df", lab / "store")
    assert "hdd2, hdd3, ssd0, ssd1 are on one file system: free is the part" in told and "hdd1, hdd2" not in told, told


def test_a_file_that_no_rule_brings_in_is_told_when_it_is_adopted(lab: Path) -> None:
    for name, is_outside in ((lab / "f", False), (lab.parent / "g", True)):
        name.write_text("bytes")
        told = said("store", "adopt", "--store", lab / "store", name)
        assert ("adopted, 5 B; outside of all that the store's rules manage" in told) == is_outside, told


def test_a_target_that_this_user_cannot_write_is_told_by_df_and_fsck(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "hdd3" and access(path, mode))
    for verb in ("df", "fsck"):
        told = said("store", verb, lab / "store")
        assert told.count(" may not be written by this user; give permission") == 1 and "target hdd3: " in told, told


@pytest.mark.parametrize("source", ["binary", "stranger"])
def test_what_can_move_nothing_here_is_refused_before_a_program_runs(lab: Path, source: str) -> None:
    plan, there = lab.parent / "plan.json", lab.parent / "elsewhere"
    if source == "binary":
        plan.write_bytes(b"\x7fELF\x90")
        told = (
            "plan.json: not JSON: not UTF-8 at byte 4; save it as UTF-8, or give a plan that 'stripewise plan -o' wrote"
        )
    else:
        there.write_text("bytes")
        regions = [{"start": 0, "len": 1 << 20, "stripes": [["ssd0", 65536]]}]
        body = {"version": 1, "policy": "by hand", "files": [{"path": str(there), "size": 5, "regions": regions}]}
        plan.write_text(json.dumps(body))
        told = (
            f"{plan}: '{there}' is not a file of the store {lab / 'store'}, and no new one of that name would go there"
        )
    assert told in said("migrate", plan, "--store", lab / "store", code=1)
    made = lab / "made"
    assert told in said("run", "--store", lab / "store", "--migrate", plan, "--", "touch", made, code=1)
    assert not made.exists() and not made.is_symlink()


def test_a_verb_of_a_group_is_found_by_its_own_name() -> None:
    assert "No such command 'export'; did you mean store export?" in said("export", "f", code=2)


def test_a_mover_tells_what_it_has_moved_in_all_windows() -> None:
    ended = {"alive": False, "done_bytes": 0, "total_bytes": 0, "moves": 2, "moved_bytes": 32 << 20}
    assert _copied_text(ended) == "2 move(s), 32.0 MiB in all"
    going = {"alive": True, "done_bytes": 1 << 20, "total_bytes": 4 << 20, "moves": 2, "moved_bytes": 32 << 20}
    assert _copied_text(going) == "1.0 MiB of 4.0 MiB copied in this window, 2 move(s), 32.0 MiB in all"
    assert _copied_text({"alive": True, "done_bytes": 5, "total_bytes": 9}) == "5 B of 9 B copied"
