"""Kills inside of what changes a file's size: at every system call of it (ptrace), and at random moments.

What lies behind a file's size never becomes visible but as zeros: a killed cut leaves the old size with all bytes, or
the new size for ever; a killed write leaves nothing that a later growth shows. `tests/native/sizekills` says how it
looks. 200 kills here, 5,000 of each kind in `make soak`.
"""

from __future__ import annotations

import re

import pytest
from rig import LAYOUTS, NATIVE, SOAK, UNEVEN, Maker, Store, Target, dirs

SIZEKILLS = NATIVE / "sizekills"
#: The largest size that the file gets: some windows of each layout.
MOST = 600_000
SIX = [Target(f"t{number}", "hdd", "emulated" if number % 2 else "dir", 0, 0.0, 1e-10) for number in range(6)]
#: From one to six targets, plain and emulated, even and uneven.
CASES = {name: LAYOUTS[name] for name in ("one", "striped", "uneven", "emulated")} | {
    "two": (dirs(2), None),
    "six": (SIX, [*UNEVEN]),
}
KILLS = {"steps": 900, "random": 900} if SOAK else {"steps": 30, "random": 15}


def kill(store: Store, most: int, seed: int, kills: int, how: str) -> str:
    """Kills; what was said of it."""
    said = store.program(SIZEKILLS, store.data / "f", store.data / "g", *map(str, (most, seed, kills)), how, code=None)
    assert said.code == 0, said.report
    return said.out


@pytest.mark.parametrize("how", KILLS)
@pytest.mark.parametrize("case", CASES)
def test_after_a_kill_nothing_shows_but_what_was_written_and_zeros(make_store: Maker, case: str, how: str) -> None:
    targets, regions = CASES[case]
    store = make_store(targets, regions=regions)
    said = kill(store, MOST, 1 + list(CASES).index(case), KILLS[how], how)
    assert sum(map(int, re.findall(r"^(\d+) kills", said, re.MULTILINE))) == KILLS[how]
    # A kill may leave half a name, never a file that is not sound.
    store.fsck("--repair", code=None)
    store.fsck()


def test_a_cut_killed_between_two_objects_is_ended_by_whoever_writes_next(make_store: Maker) -> None:
    store = make_store(layout="striped")
    # 3,000,000 bytes lie on all four targets, each of whose objects is cut by a call of its own.
    assert "4 kills" in kill(store, 3_000_000, 7, 0, "cuts")
