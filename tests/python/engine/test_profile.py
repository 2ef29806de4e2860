"""What runs know of collective calls from earlier ones, in a file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from stripewise.engine.board import Board, Known, Site
from stripewise.engine.profile import BYTES_MAX, ENTRIES_MAX, read_profile, write_profile
from stripewise.errors import InvalidError, WorkloadError

ENTRY: dict[str, Any] = {"file": "/d/f", "op": "write", "processes": 4, "mode": "independent", "other_costs": 2.5}


def profile(path: Path, *entries: Any, version: Any = 1) -> Path:
    path.write_text(json.dumps({"version": version, "files": list(entries)}))
    return path


def site(**changed: Any) -> Site:
    values: dict[str, Any] = {
        "file": "/d/f", "write": True, "processes": 4, "opens": 1, "calls": 100, "independent": 80, "bytes": 1000,
        "contests": 1, "changes": 1, "mode": "independent", "reason": "crowded", "strided": None,
        "ratio": 3.0, "collective_s_per_byte": 6e-9, "independent_s_per_byte": 2e-9,
        "sieving": None,
    }  # fmt: skip
    return Site(**{**values, **changed})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p"
    assert read_profile(path) == ()
    write_profile(path, [site(), site(write=False, mode="collective", ratio=0.97)])
    known = read_profile(path)
    assert known == (
        Known(file="/d/f", write=True, processes=4, independent=True, ratio=pytest.approx(3)),
        Known(file="/d/f", write=False, processes=4, independent=False, ratio=1),
    )
    # Runs that have compared nothing change nothing, and others the one entry.
    write_profile(path, [site(ratio=None, contests=0), site(mode="collective", contests=0)])
    assert read_profile(path) == known
    write_profile(path, [site(processes=8), site(mode="collective", ratio=12)])
    assert {(each.write, each.processes, each.independent) for each in read_profile(path)} == {
        (False, 4, False), (True, 8, True), (True, 4, False)
    }  # fmt: skip


def test_what_is_no_finding_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "p"
    unmeasured = {"ratio": None, "contests": 0}
    sites = [site(reason="given"), site(mode=None), site(reason="deferred"), site(file="/\ufffd"), site(**unmeasured)]
    write_profile(path, [*sites, site(file="/" + "x" * 399)])
    assert read_profile(path) == ()
    write_profile(path, [site(file=f"/{number}") for number in range(ENTRIES_MAX + 10)])
    known = read_profile(path)
    assert len(known) == ENTRIES_MAX and known[-1].file == f"/{ENTRIES_MAX + 9}"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({**ENTRY, "more": 1}, "must have the keys"),
        ([], "must have the keys"),
        ({**ENTRY, "file": "d"}, "file: is no absolute path"),
        ({**ENTRY, "file": "/\ud800"}, "file: is no absolute path"),
        ({**ENTRY, "op": "append"}, "op: is not read or write"),
        ({**ENTRY, "processes": 1}, "processes: is no number"),
        ({**ENTRY, "processes": True}, "processes: is no number"),
        ({**ENTRY, "processes": 1 << 31}, "processes: is no number"),
        ({**ENTRY, "mode": 3}, "mode: is not"),
        ({**ENTRY, "other_costs": 0.5}, "other_costs: is neither"),
        ({**ENTRY, "file": "/d\0"}, "file: is no absolute path"),
        ({**ENTRY, "other_costs": float("nan")}, "other_costs: is neither"),
        ({**ENTRY, "other_costs": 10**400}, "other_costs: is neither"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, entry: Any, text: str) -> None:
    path = profile(tmp_path / "p", ENTRY, entry)
    with pytest.raises(WorkloadError, match=text) as told:
        read_profile(path)
    assert str(told.value).startswith(f"{path}: files[1]: ")


def test_a_file_that_is_no_profile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p"
    for text in (
        "",
        "{",
        "[]",
        '{"version": 2, "files": []}',
        '{"version": true, "files": []}',
        '{"version": 1, "files": {}}',
        "[" * 100_000,
    ):
        path.write_text(text)
        with pytest.raises(WorkloadError, match="is no"):
            read_profile(path)
    path.write_bytes(bytes(BYTES_MAX + 1))
    with pytest.raises(WorkloadError, match="is longer than"):
        read_profile(path)
    with pytest.raises(WorkloadError, match=r"at most 1024 can be"):
        read_profile(profile(path, *[ENTRY] * (ENTRIES_MAX + 1)))
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_profile(tmp_path)


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(21)
    path = profile(tmp_path / "p", ENTRY, {**ENTRY, "op": "read", "other_costs": None})
    good, read = path.read_bytes(), 0
    for _ in range(3000):
        text = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            text[at : at + chance.choice([0, 1, 1, 3])] = bytes(chance.choices(range(256), k=chance.choice([0, 1, 2])))
        path.write_bytes(text)
        try:
            known = read_profile(path)
        except WorkloadError as error:
            assert str(path) in str(error)
        else:
            read += 1
            # What is read can be given to a run.
            with Board(policy="price", known=known) as board:
                assert board.became().sites == ()
    assert read > 10


def test_a_board_that_is_damaged_is_refused() -> None:
    with Board(policy="dry") as board:
        assert board.path.stat().st_mode & 0o777 == 0o600 and board.became().missed == 0
        board.path.write_bytes(b"x" * 100)
        with pytest.raises(InvalidError, match="is no board of this version"):
            board.became()
    assert not board.path.exists()
