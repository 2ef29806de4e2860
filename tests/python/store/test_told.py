"""What verbs say of a store whose figures, places or targets are not as one would think."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.cli.moving.mover import _copied_text
from stripewise.store import Store
from stripewise.store.traced import plain_advice
from stripewise.units import quoted
from support import zipf_workload
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
    assert "no such command 'export'; did you mean store export?" in said("export", "f", code=2)


def test_a_mover_tells_what_it_has_moved_in_all_windows() -> None:
    ended = {"alive": False, "done_bytes": 0, "total_bytes": 0, "moves": 2, "moved_bytes": 32 << 20}
    assert _copied_text(ended) == "2 move(s), 32.0 MiB in all"
    going = {"alive": True, "done_bytes": 1 << 20, "total_bytes": 4 << 20, "moves": 2, "moved_bytes": 32 << 20}
    assert _copied_text(going) == "1.0 MiB of 4.0 MiB copied in this window, 2 move(s), 32.0 MiB in all"
    # What brings files to where a plan with windows begins is no move of the plan's table.
    for first, which in ((1, "1 of them "), (2, "")):
        told = f"2 move(s), {which}to where the plan begins, 32.0 MiB in all"
        assert _copied_text({**ended, "first_moves": first}) == told
    assert _copied_text({"alive": True, "done_bytes": 5, "total_bytes": 9}) == "5 B of 9 B lie where they should"


def test_printed_commands_are_whole_where_paths_have_spaces(tmp_path: Path) -> None:
    """As a shell splits them: those that are not end with two words of one path."""
    lab = tmp_path / "a b"
    stripewise("init", "--emulate", lab)
    store, file = lab / "store", lab / "f"
    file.write_bytes(bytes(100_000))
    told = [said("store", "adopt", "--store", store, file)]
    told += [said("store", verb, store) for verb in ("info", "ls", "df", "fsck")]
    told += [said("store", "template", "ls", store), said("store", "plan", "ls", store), said("undo", file, code=1)]
    told += [said("store", "drain", store, "ssd0"), said("store", "drain", store, "ssd0", "--undo")]
    told += [said("store", "remove", store, "hdd0", code=1), said("mover", "pause", store, code=1)]
    commands = [
        each
        for text in told
        for each in re.findall(r"stripewise (?:store|undo|mover|run|tune|collect|show) [^;:]*", text)
    ]
    assert len(commands) > 5
    for each in commands:
        assert "a b" not in each, each
    # Some stand in quotes themselves, so these are no quotes of a word.
    assert any(f"'stripewise store drain {tmp_path}/a\\ b/store hdd0'" in text for text in told), told


@given(st.text("ab/ '\"\\$`*?[]()#~&;-é", max_size=6))
def test_a_told_word_is_what_it_was_in_a_shell(text: str) -> None:
    assert shlex.split(quoted(text), posix=True) == [text]
    assert "'" not in quoted(text) or not text or {*text} & {*"*?[]'\"\\$`!"}


@pytest.mark.parametrize("text", ["a\nb", "\udcff", "a'b\\c\u200b\td", "\xa0f", "\udc80e\x01"])
def test_a_told_word_shows_what_has_no_sign_and_bash_reads_it(text: str) -> None:
    assert quoted(text).isprintable()
    read = subprocess.run(["bash", "-c", f"printf %s {quoted(text)}"], check=True, capture_output=True).stdout
    assert os.fsdecode(read) == text


def test_undo_of_a_managed_file_names_that_file(lab: Path) -> None:
    (lab / "f").write_text("bytes")
    stripewise("store", "adopt", "--store", lab / "store", lab / "f")
    told = said("undo", lab / "f", code=1)
    assert f"{lab / 'f'}: is a managed file and no store; 'stripewise store layout {lab / 'f'}' names its store" in told


def test_no_program_is_advised_into_a_store(tmp_path: Path, lab: Path) -> None:
    made = zipf_workload(2, 4)
    paths = [tmp_path / name for name in ("job.sh", "data")]
    files = tuple(replace(made.files[0], path=str(path), id=None) for path in paths)
    for path in paths:
        path.write_text("#!/bin/sh\n")
    paths[0].chmod(0o755)
    advice = plain_advice(replace(made, files=files), Store(lab / "store"))
    assert "data is a plain file elsewhere;" in advice and "job.sh" not in advice
    assert not plain_advice(replace(made, files=files[:1]), Store(lab / "store"))
