"""Requests before which all ranks wait for each other: they do so, none hangs, and paths in which ranks would wait for
those that never come are refused.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paths import PLAYER, Written, complaint, file, node, played, said
from rig import MPIEXEC, execute, stripewise

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as workpath

PROCESSES = 3
MS = 1_000_000
#: Random paths, and how many of them are played: each takes a run of mpiexec.
RANDOM, PLAYED = 400, 12


def waiting(**keys: Any) -> Written:
    """Rank 0 comes 120 ms later than the others to each of three stats before which all wait."""
    path = Written([file("f"), file("g")])
    path.loop(3, [node("access", who="root", slack_ns=120 * MS), node("stat", file=1, slack_ns=5 * MS, **keys)])
    return path


def starts(trace: Path, file: Path) -> list[list[int]]:
    """When the calls on a file begin, by rank, ns."""
    rows = [row for row in pq.read_table(trace / "trace.parquet").to_pylist() if row["file"] == str(file)]
    return [[row["start_ns"] for row in rows if row["rank"] == rank] for rank in range(PROCESSES)]


@pytest.mark.parametrize("is_together", [True, False])
def test_ranks_begin_together_what_they_wait_before(is_together: bool, scratch: Path) -> None:
    keys = {"together_first": is_together, "together_rest": is_together}
    path = waiting(**keys).write(scratch / "p.swp")
    (scratch / "d").mkdir()
    words = ("play", path, "-n", PROCESSES, "--directory", scratch / "d", "--trace", scratch / "t")
    stripewise(*[str(word) for word in words])
    stripewise("collect", scratch / "t")
    found = starts(scratch / "t", scratch / "d" / "g")
    # Nothing but the path's own requests is in the trace: a barrier is no call on a file.
    assert [len(each) for each in found] == [3] * PROCESSES
    ahead = [(found[0][at] - found[1][at]) / MS for at in range(3)]
    # Alone, rank 0 falls behind by 120 ms in each round.
    assert (max(ahead) < 100) == is_together and (ahead[2] > 300) == (not is_together), ahead
    assert [len(each) for each in starts(scratch / "t", scratch / "d" / "f")] == [3, 0, 0]


def test_the_wait_is_kept_without_slack_and_is_no_late_slack(scratch: Path) -> None:
    path = waiting(together_first=True, together_rest=True).write(scratch / "p.swp")
    told = said(played(path, scratch / "d", PROCESSES))
    # 120 ms are waited three times by two of three ranks; the other slacks are a few us late.
    assert told["slacks"] == 3 * (PROCESSES + 1) and told["slack_error_us"]["median"] < 50_000
    assert said(played(path, scratch / "d", PROCESSES, "--as-fast-as-possible", "--replace"))["slacks"] == 0
    text = workpath.text(path)
    assert text.count(", together") == 1 and ", together slack 5000000 ns" in text


def test_only_the_rounds_that_are_marked_wait(scratch: Path) -> None:
    for first, rest, expected in ((True, False, [1, 0, 0]), (False, True, [0, 1, 1]), (True, True, [1, 1, 1])):
        path = waiting(together_first=first, together_rest=rest).write(scratch / "p.swp")
        assert workpath.requests(path, PROCESSES, 1)["together"].tolist() == expected


def test_who_would_wait_for_those_that_never_come_is_refused(scratch: Path) -> None:
    with pytest.raises(WorkloadError, match="waits for all ranks, but not all make it"):
        waiting(together_first=True, who="root").write(scratch / "p.swp")
    for keys in ({"who": "root"}, {"table": 1}):
        path = Written([file("f")], {"processes": PROCESSES, "numbers": [[[0, 0, 1 + rank] for rank in range(3)]]})
        path.loop(2, [node("stat", together_first=True)], **keys)
        path.write(scratch / "p.swp")
        with pytest.raises(WorkloadError, match="waits for all ranks before it in other rounds than rank"):
            workpath.requests(scratch / "p.swp", PROCESSES, 0)
        assert "waits for all ranks before it in other rounds" in complaint(
            played(scratch / "p.swp", scratch / "d", PROCESSES, code=None)
        )


def late(nodes: list[dict[str, Any]], files: int = 1) -> Written:
    """All begin a collective write of overlapping pieces, for which ROMIO exchanges bytes; then the nodes."""
    path = Written([file(f"f{at}") for at in range(files)])
    path.nodes = [node("mpi_open", file=at) for at in range(files)]
    path.nodes += [COLLECTIVE, *nodes]
    path.nodes += [node("mpi_close", file=at) for at in range(files)]
    return path


COLLECTIVE = node("mpi_iwrite_at_all0", at_rank=1000, size=65_536)
WAITS, WAITS_LATE = node("mpi_wait", who="root"), node("mpi_wait", who="all but root")
BLOCKING = node("mpi_write_at_all", file=1, at_rank=1000, size=65_536)


@pytest.mark.parametrize(
    ("files", "between"),
    [
        (1, [WAITS, node("stat", together_first=True), WAITS_LATE]),
        (1, [node("mpi_iwrite_at0", who="root", size=4096), WAITS_LATE, node("stat", together_first=True), WAITS]),
        (2, [WAITS, BLOCKING, WAITS_LATE]),
        (2, [WAITS_LATE, node("mpi_sync", file=1), WAITS]),
        (1, [COLLECTIVE, WAITS, COLLECTIVE, WAITS_LATE, node("stat", together_first=True), WAITS, WAITS_LATE]),
    ],
)
def test_who_waits_for_others_advances_what_they_wait_for(
    scratch: Path, files: int, between: list[dict[str, Any]]
) -> None:
    path = late(between, files).write(scratch / "p.swp")
    assert said(played(path, scratch / "d", PROCESSES, "--as-fast-as-possible"))["wrong_bytes"] == 0


def test_ranks_with_different_paths_are_refused(scratch: Path) -> None:
    one, other = Written([file("f")]), Written([file("f")])
    one.loop(3, [node("stat", together_first=True, together_rest=True)])
    other.loop(4, [node("stat", together_first=True, together_rest=True)])
    ranks = [[PLAYER, made.write(scratch / f"{at}.swp"), scratch] for at, made in enumerate((one, other))]
    words = [MPIEXEC, "-n", "1", *ranks[0], ":", "-n", "1"]
    assert "ranks have different paths" in complaint(execute([*words, *ranks[1]], code=None, timeout_s=60))
    (player, *rest) = ranks[0]
    result = execute([*words, player, "--prepared", *rest], code=None, timeout_s=60)
    assert "ranks have different ones of --replace" in complaint(result)
    assert said(execute([*words, *ranks[0]], timeout_s=60))["requests"] == 6


def tree(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    who = chance.choice(["all"] * 6 + ["root", "last", "all but root", {"group": 0}])
    if depth < 3 and chance.random() < 0.45:
        body = [tree(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        return {"rounds": chance.randint(0, 3), "body": body, "who": who, "table": int(chance.random() < 0.15)}
    op = chance.choice(["stat", "access", "mpi_write_at_all", "mpi_get_size", "mpi_iwrite_at_all0", "mpi_wait"])
    wait = {key: who == "all" and chance.random() < 0.5 for key in ("together_first", "together_rest", "apart")}
    size = 64 if "write" in op else 0
    drawn = {"slack_first": chance.randint(0, 1), "slack_rest": chance.randint(0, 1)}
    return node(op, who=who, size=size, at_rank=16, **wait, **drawn)


def test_random_paths_end_or_are_refused(scratch: Path) -> None:
    """Those that a reader takes are played under a watchdog: a rank that waits for ever would hang the run."""
    chance = random.Random(7)
    tables = {
        "processes": PROCESSES, "groups": [{"congruent": [2, 1]}], "numbers": [[[0, 64, rank] for rank in range(3)]],
        "distributions": [{"quantiles": [0, 2 * MS]}],
    }  # fmt: skip
    ran = refused = 0
    for number in range(RANDOM):
        path = Written([file("f")], tables, [node("mpi_open")])
        path.nodes += [tree(chance) for _ in range(3)]
        path.add("mpi_close")
        written = path.write(scratch / f"{number}.swp")
        checked = execute([PLAYER, "--check", str(PROCESSES), written], code=None).out.strip()
        try:
            ranks = [workpath.requests(written, PROCESSES, rank) for rank in range(PROCESSES)]
        except WorkloadError as error:
            assert checked in str(error)
            refused += "waits for all ranks" in checked
            continue
        assert checked == "ok"
        waits = [int(each["together"].sum()) for each in ranks]
        assert len(set(waits)) == 1, number
        if ran < PLAYED and waits[0] > 1 and len(ranks[0]) < 200:
            told = said(played(written, scratch / "d", PROCESSES, "--replace"))
            assert told["requests"] == sum(map(len, ranks)) and told["wrong_bytes"] == 0
            ran += 1
    assert ran == PLAYED and refused > 20
