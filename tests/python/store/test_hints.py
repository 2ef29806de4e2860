"""The library's log of a run: what is shown of it, where it stays, and that an empty one leaves nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from stripewise.run import hints
from stripewise.run.hints import HINTS_MAX, LOG, LOGS_MAX, REFUSED, Hints


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(hints.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "state"


def begun() -> tuple[Hints, Path]:
    env: dict[str, str] = {}
    return Hints(env), Path(env[LOG])


def kept(said: list[str]) -> Path:
    return Path(said[-1].rpartition(": ")[2])


def test_a_run_without_a_word_leaves_nothing(state, tmp_path):
    run, _ = begun()
    assert run.lines() == [] and list(tmp_path.iterdir()) == []


def test_different_lines_are_shown_once_and_at_most_ten_and_all_are_kept(state):
    run, log = begun()
    text = "".join(f"stripewise[{pid}]: /p: reason {pid % 12}\n" for pid in range(100, 148))
    log.write_text(text)
    said = run.lines()
    assert said[0] == "/p: reason 4" and len(said) == HINTS_MAX + 2 and said[-2] == "and 2 more"
    assert said[-1].startswith("48 lines of this run") and kept(said).read_text() == text
    assert kept(said).parent == state / "stripewise" / "logs" and not log.parent.exists()
    assert stat.S_IMODE(kept(said).stat().st_mode) == 0o600
    assert run.lines() == []


def test_one_line_is_one_line():
    run, log = begun()
    log.write_text("stripewise[1]: x\n")
    said = run.lines()
    assert said[0] == "x" and said[1].startswith("1 line of this run")


def test_refused_stores_are_named_however_much_else_was_logged(tmp_path):
    run, log = begun()
    lines = [f"stripewise[{n}]: /f{n}: something" for n in range(50)]
    lines += [f"stripewise[9]: /s{n}: {REFUSED}: it belongs to uid {n}" for n in range(30)]
    log.write_text("\n".join(lines) + "\n")
    said = run.lines()
    assert sum(REFUSED in line for line in said) == 30
    assert len(said) == 30 + HINTS_MAX + 2 and said[-2] == "and 40 more"


def test_a_log_of_the_users_own_is_named_with_this_runs_lines_and_left_alone(tmp_path):
    own = tmp_path / "own"
    own.write_text(f"stripewise[9]: /s: {REFUSED}\n")
    run = Hints({LOG: str(own)})
    assert run.lines() == []
    with own.open("a") as file:
        file.write(f"stripewise[1]: x\nstripewise[9]: /t: {REFUSED}\n")
    assert run.lines() == [f"/t: {REFUSED}", f"2 lines of this run in the library's log: {own}"]
    assert len(own.read_text().splitlines()) == 3


def test_only_the_newest_logs_are_kept_and_of_a_long_one_its_beginning(state, monkeypatch):
    monkeypatch.setattr(hints, "LOG_BYTES_MAX", 10)
    directory = state / "stripewise" / "logs"
    for number in range(LOGS_MAX + 3):
        run, log = begun()
        log.write_text(f"{number:09}\n" * 2)
        said = run.lines()
        # Names count seconds; those of one second come in no order.
        kept(said).rename(directory / f"2026{number:03}.log")
    run, log = begun()
    log.write_text("x\n")
    run.lines()
    left = sorted(directory.iterdir())
    assert len(left) == LOGS_MAX and left[0].name == "2026004.log" and left[0].read_text() == "000000004\n"


@pytest.mark.parametrize("wrong", ["a file", "another's", "everybody's", "a link"])
def test_where_the_state_directory_cannot_be_used_the_log_stays_where_it_was(state, tmp_path, wrong):
    directory = state / "stripewise" / "logs"
    if wrong == "a file":
        state.write_text("")
    elif wrong == "a link":
        directory.parent.mkdir(parents=True)
        (tmp_path / "elsewhere").mkdir()
        directory.symlink_to(tmp_path / "elsewhere")
    else:
        directory.mkdir(parents=True)
        if wrong == "everybody's":
            directory.chmod(0o777)
        elif os.geteuid():
            pytest.skip("root alone gives directories away")
        else:
            os.chown(state, 12345, 12345)
    run, log = begun()
    log.write_text("x\n")
    assert kept(run.lines()) == log and log.read_text() == "x\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "elsewhere").exists() or not any((tmp_path / "elsewhere").iterdir())


def test_without_a_place_for_a_log_the_program_runs_without(tmp_path, monkeypatch):
    monkeypatch.setattr(hints.tempfile, "tempdir", str(tmp_path / "none"))
    env: dict[str, str] = {}
    assert Hints(env).lines() == [] and LOG not in env


def test_a_log_has_room_of_its_own_before_the_disk_is_full():
    _, log = begun()
    found = log.stat()
    assert found.st_size == 0 and found.st_blocks * 512 >= hints.RESERVED_BYTES
