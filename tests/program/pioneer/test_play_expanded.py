"""The player does what the path says: its requests are those of the Rust expansion, and a trace of the run has them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paths import KIB, PLAYER, Written, file, node
from rig import execute, stripewise

from stripewise import native
from stripewise.pioneer import path as workpath

NAMES = {op["number"]: op["name"] for op in native.call("workpath_ops")}
WHO = ["all", "root", "all but root", "last", "all but last", {"group": 0}, {"group": 1}]
PROCESSES = 3

leaves = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["pread", "write0", "stat", "mpi_read_at"]), "who": st.sampled_from(WHO),
        "at": st.integers(-(2**62), 2**62), "at_rank": st.integers(-1000, 1000), "stride": st.integers(-(2**40), 2**40),
        "size": st.integers(0, 1 << 30), "table": st.integers(0, 1), "slack_first": st.integers(0, 2),
        "slack_rest": st.integers(0, 2), "slack_ns": st.integers(0, 1 << 40), "apart": st.booleans(),
        "together_first": st.booleans(), "together_rest": st.booleans(),
    }
)  # fmt: skip
trees = st.recursive(
    leaves,
    lambda body: st.fixed_dictionaries(
        {
            "rounds": st.integers(0, 4), "body": st.lists(body, min_size=1, max_size=3), "who": st.sampled_from(WHO),
            "at": st.integers(-(2**40), 2**40), "at_rank": st.integers(-9, 9), "stride": st.integers(-99, 99),
            "table": st.integers(0, 1),
        }
    ),
    max_leaves=12,
)  # fmt: skip


def playable(tree: dict[str, Any], is_for_all: bool = True) -> dict[str, Any]:
    """The tree in which nobody waits for ranks that never come, or in other rounds."""
    is_for_all &= tree["who"] == "all" and ("op" in tree or not tree["table"])
    if "body" in tree:
        return tree | {"body": [playable(each, is_for_all) for each in tree["body"]]}
    return tree if is_for_all else tree | {"together_first": False, "together_rest": False}


def tables(seed: int) -> dict[str, Any]:
    return {
        "processes": PROCESSES, "seed": seed, "groups": [{"span": [0, 1 << 15]}, {"congruent": [2, 1]}],
        "distributions": [{"values": [[5, 1], [900, 3], [2**61, 9]]}, {"quantiles": [0, 10, 1000, 2**50]}],
        "numbers": [[[-7, 3, 2], [100, 0, 0], [5, -9, 3]]],
    }  # fmt: skip


def of_player(path: Path, rank: int) -> list[list[str]]:
    said = execute([PLAYER, "--requests", str(PROCESSES), str(rank), path]).out
    return [line.split() for line in said.splitlines()]


def of_rust(path: Path, rank: int) -> list[list[str]]:
    made = workpath.requests(path, PROCESSES, rank)
    positioned = {"pread", "mpi_read_at"}
    rows = []
    columns = ["op", "file", "offset", "size", "slack_ns", "together"]
    for op, number, offset, size, slack, is_together in made[columns].tolist():
        has_place = NAMES[op] in positioned or NAMES[op] == "write0"
        rows.append([NAMES[op], str(number), str(offset) if has_place else "-", str(size), str(slack)])
        rows[-1] += ["together"] * is_together
    return rows


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(trees, min_size=1, max_size=4), st.integers(0, 2**64 - 1))
def test_the_players_requests_are_those_of_the_expansion(nodes: list[dict[str, Any]], seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Written([file("f")], tables(seed), [playable(each) for each in nodes]).write(Path(place) / "p.swp")
        for rank in range(PROCESSES):
            assert of_player(path, rank) == of_rust(path, rank)


def test_a_trace_of_the_run_has_the_requests_of_the_path(scratch: Path) -> None:
    path = Written(
        [file("f"), file("p{rank}", "private")], {"processes": 4, "numbers": [[[0, 0, rank] for rank in range(4)]]}
    )
    path.add("open", 1)
    body = [
        node("pwrite", file=1, at=100, at_rank=8, stride=4 * KIB, size=KIB),
        node("pread", file=1, at=300, stride=KIB, size=200),
    ]
    path.loop(5, [{"rounds": 3, "stride": 64 * KIB, "body": body}])
    path.loop(0, [node("pwrite", file=1, at=1 << 30, size=77)], table=1)
    path.add("close", 1)
    path.add("mpi_open")
    path.loop(6, [node("mpi_write_at_all", at_rank=8 * KIB, stride=32 * KIB, size=8 * KIB)])
    path.add("mpi_read_at", who="last", at=5 * KIB, size=3 * KIB)
    path.add("mpi_close")
    written = path.write(scratch / "p.swp")
    (scratch / "d").mkdir()
    stripewise("play", written, "--directory", scratch / "d", "--trace", scratch / "t")
    stripewise("collect", scratch / "t")
    rows = pq.read_table(scratch / "t" / "trace.parquet").to_pylist()
    traced_as = {"pwrite": "write", "pread": "read", "mpi_write_at_all": "mpi_write", "mpi_read_at": "mpi_read"}
    for rank in range(4):
        names = [str(scratch / "d" / name) for name in ("f", f"p{rank}")]
        expected = [
            (traced_as[NAMES[op]], names[number], offset, size)
            for op, number, offset, size in workpath.requests(written, 4, rank)[
                ["op", "file", "offset", "size"]
            ].tolist()
            if NAMES[op] in traced_as
        ]
        found = [
            (row["op"], row["file"], row["offset"], row["requested"])
            for row in rows
            if row["rank"] == rank
            and row["parent"] is None
            and row["file"] in names
            and row["done"]
            and row["requested"]
        ]
        found = [row for row in found if row[0] in traced_as.values()]
        assert found == expected, rank
        assert len(expected) == 30 + rank + 6 + (rank == 3)


def test_all_ranks_draw_the_same_slack(scratch: Path) -> None:
    path = Written([file("f")], tables(5))
    path.loop(50, [node("stat", slack_first=2, slack_rest=2)])
    written = path.write(scratch / "p.swp")
    drawn = [workpath.requests(written, PROCESSES, rank)["slack_ns"] for rank in range(PROCESSES)]
    assert (
        np.array_equal(drawn[0], drawn[1]) and np.array_equal(drawn[0], drawn[2]) and len(set(drawn[0].tolist())) > 40
    )
