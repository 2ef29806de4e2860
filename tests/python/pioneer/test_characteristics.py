"""Characteristics of paths: the worked examples of the thesis's chapter 2, table 2.4, and what a real path gives."""

from __future__ import annotations

import numpy as np
import pytest

from stripewise.pioneer.characterization.characteristics import framework_of, profile_of, session_gaps, slack_of
from stripewise.pioneer.characterization.distribution import Bursts, Values, constant
from stripewise.pioneer.extraction.gwp import read_gwp
from traced import AT_POSITION, COLLECTIVE, MS, Run


def path_of(tmp_path, steps):
    """The path of one process: (operation, file) or (operation, file, offset, size), in the order of their ids."""
    run = Run(1)
    holders: dict[str, int] = {}
    for op, file, *place in steps:
        fd = holders.setdefault(file, len(holders) + 3)
        offset, size = place or (None, 0)
        if op == "open":
            run.opened(0, f"/d/{file}", 0o102, fd=fd)
        elif op == "mkdir":
            run.call(0, op, f"/d/{file}")
        else:
            run.call(0, op, f"/d/{file}", offset, size, fd=fd)
    return read_gwp(run.write(tmp_path / "t"))


def test_figure_2_3_the_second_request_to_a_waits_for_two_to_others(tmp_path):
    # Section 2.6.3: A's first session has requests 1, 4 and one more; 2 and 3 go to other files in between.
    gwp = path_of(
        tmp_path,
        [
            ("open", "A"),
            ("open", "C"),
            ("open", "D"),
            ("write", "A", 0, 8),
            ("close", "A"),
            ("close", "C"),
            ("close", "D"),
        ],
    )
    frame = framework_of(gwp)
    ids = gwp.ids[frame.rows].tolist()
    assert [ids[a:b] for a, b in zip(frame.begins, frame.begins[1:], strict=False)] == [[1, 4, 5], [2, 6], [3, 7]]
    kind = profile_of(gwp).classes["root"].sessions["posix-readwrite"]
    # IRG: 3 and 1 in A, 4 in C and in D; D counts what comes after the open, the close included.
    assert kind.request_gap == Values((1, 3, 4), (1, 1, 2))
    assert kind.duration == Values((1, 2), (2, 1))


def test_figure_2_5_gaps_leave_the_holes_that_metadata_fills(tmp_path):
    # Ids 1 to 3, 6 to 8 and 12 to 15 lie in sessions, 4, 5, 9, 10, 11 do not.
    inside = {1, 2, 3, 6, 7, 8, 12, 13, 14, 15}
    ends = {
        1: ("open", "A"), 2: ("open", "B"), 3: ("write", "A", 0, 8), 6: ("close", "A"), 7: ("write", "B", 0, 8),
        8: ("close", "B"), 12: ("open", "A"), 13: ("read", "A", 0, 8), 14: ("read", "A", 8, 8), 15: ("close", "A"),
    }  # fmt: skip
    gwp = path_of(tmp_path, [ends[at] if at in inside else ("mkdir", f"m{at}") for at in range(1, 16)])
    frame = framework_of(gwp)
    assert gwp.ids[gwp.session < 0].tolist() == [4, 5, 9, 10, 11]
    # The first sessions count from a close with id 0; A's second opens 6 ids after its close.
    assert session_gaps(gwp, frame, np.arange(3)).tolist() == [1, 6, 2]
    root = profile_of(gwp).classes["root"]
    assert root.outside == {"mkdir": 5}
    assert (root.files, root.open_times) == (7, Values((0, 1, 2), (5, 1, 1)))


def test_the_characteristics_of_a_shared_file(tmp_path):
    run = Run(4)
    for rank in range(4):
        run.call(rank, "mpi_open", "/d/f", requested=5, flags=COLLECTIVE)
        for at in range(3):
            run.call(rank, "mpi_write", "/d/f", (4 * at + rank) * 100, 100)
        run.call(rank, "mpi_close", "/d/f", flags=COLLECTIVE)
    profile = profile_of(read_gwp(run.write(tmp_path / "t")))
    shared = profile.classes["shared"]
    assert (profile.processes, profile.requests, profile.subgroups[0].ranks) == (4, 5, "1-3")
    assert (shared.files, shared.file_size, shared.names) == (1, constant(1200), ("f",))
    assert shared.first == {"mpi-write": 1}
    kind = shared.sessions["mpi-write"]
    assert kind.following == {"": {"mpi_write_at": 1}, "mpi_write_at": {"mpi_write_at": 2}}
    assert (kind.shift, kind.size["mpi_write_at"]) == (constant(100), constant(100))
    # The first of three begins at 0, where a sequential one would.
    assert kind.sequential == constant(pytest.approx(1 / 3, abs=1e-6))
    assert kind.offset == Values((400, 800), (1, 1))
    assert kind.slack["mpi_write_at"] == constant(0.001) and kind.communicators == {"world": 1}


def test_access_modes_follow_each_other_in_the_order_of_sessions(tmp_path):
    run = Run(1)
    for flags, op in ((0o101, "write"), (0, "read"), (0, "read")):
        run.opened(0, "/d/f", flags)
        run.call(0, op, "/d/f", 0, 8, flags=AT_POSITION)
        run.call(0, "close", "/d/f")
    root = profile_of(read_gwp(run.write(tmp_path / "t"))).classes["root"]
    assert root.first == {"posix-write": 1}
    assert root.next == {"posix-write": {"posix-read": 1}, "posix-read": {"posix-read": 1}}


def test_few_long_slacks_among_short_ones_are_bursts():
    slack = np.full(40, 1000)
    slack[[0, 10, 20, 30]] = 50 * MS
    found = slack_of(np.arange(40), slack)
    assert found == Bursts(constant(1e-6), constant(0.05), Values((1, 10), (1, 3)))
    assert slack_of(np.arange(40), np.full(40, 50 * MS)) == constant(0.05)
