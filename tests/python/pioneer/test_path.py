"""Workload paths made by hand: what is written is read, and what is no path is refused in one sentence."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as workpath
from stripewise.pioneer.synthesis import unfinished

FILES = [{"name": "a", "class": "shared"}, {"name": "b{rank}", "class": "private", "bytes": 9}]


def made(place: Path, *nodes: dict[str, Any], **tables: Any) -> Path:
    path = place / "p.swp"
    workpath.from_json(path, {"files": FILES, "nodes": list(nodes), **tables})
    return path


def test_loops_are_expanded_with_places_by_rank_and_round(tmp_path: Path) -> None:
    body = [{"op": "pread", "at": 5, "at_rank": 100, "stride": 10, "size": 7}]
    path = made(tmp_path, {"rounds": 2, "at": 1000, "body": [{"rounds": 3, "stride": 500, "body": body}]})
    rows = workpath.requests(path, 4, 2)
    assert rows["offset"].tolist() == [1205, 1215, 1225, 1705, 1715, 1725]
    assert workpath.info(path)["requests"] == 6 and set(rows["size"].tolist()) == {7}
    listing = workpath.text(path).splitlines()
    assert len(listing) == 3 and "2 times" in listing[0] and "pread a size 7" in listing[2]


def test_requests_are_those_of_their_ranks(tmp_path: Path) -> None:
    who = ["all", "root", "all but root", "last", "all but last", {"group": 0}]
    path = made(tmp_path, *({"op": "stat", "who": each} for each in who), groups=[{"span": [1 << 15, 1 << 16]}])
    nodes = [workpath.requests(path, 4, rank)["node"].tolist() for rank in range(4)]
    # The group: ranks from half of the processes on.
    assert nodes == [[0, 1, 4], [0, 2, 4], [0, 2, 4, 5], [0, 2, 3, 5]]


def test_numbers_of_each_rank_take_the_place_of_the_nodes(tmp_path: Path) -> None:
    table = [[[0, 1, 2], [50, 5, 3]]]
    path = made(tmp_path, {"rounds": 2, "body": [{"op": "pread", "table": 1}]}, processes=2, numbers=table)
    rows = [workpath.requests(path, 2, rank)[["offset", "size"]].tolist() for rank in range(2)]
    assert rows == [[(0, 2), (1, 2)], [(50, 3), (55, 3)]]
    with pytest.raises(WorkloadError, match="for 2 processes, not 3"):
        workpath.requests(path, 3, 0)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({"files": FILES, "nodes": [{"op": "fly"}]}, "'fly' is no operation"),
        ({"files": FILES, "nodes": [{"op": "stat", "rounds": 2}]}, "give one of 'op' and 'rounds'"),
        ({"files": FILES, "nodes": [{"rounds": 2, "body": []}]}, "whose body is not within"),
        ({"files": FILES, "nodes": [{"op": "stat", "file": 2}]}, "on a file that there is not"),
        ({"files": FILES, "nodes": [{"op": "pread", "size": 1 << 31}]}, "a size beyond the limit"),
        ({"files": FILES, "nodes": [{"op": "mpi_open", "comm": 1}]}, "a communicator that there is not"),
        ({"files": FILES, "nodes": [{"op": "stat", "slack_first": 1}]}, "a slack that there is not"),
        ({"files": FILES, "nodes": [{"op": "stat", "who": {"group": 0}}]}, "a group that there is not"),
        ({"files": [{"name": "../a", "class": "shared"}], "nodes": []}, "without '..'"),
        ({"files": [{"name": "a", "class": "private"}], "nodes": []}, "has no {rank}"),
        ({"files": [{"name": "a", "class": "mine"}], "nodes": []}, "'mine' is no class"),
        ({"files": FILES, "nodes": [], "views": [{"piece": 9, "distance": 8, "pieces": 1, "tile": 8}]}, "overlap"),
        ({"files": FILES, "nodes": [], "colour": 1}, "colour"),
        ({"nodes": []}, "files"),
    ],
)
def test_what_is_no_path_is_refused(tmp_path: Path, written: dict[str, Any], why: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        workpath.from_json(tmp_path / "p.swp", written)
    assert why in str(refused.value) and str(tmp_path / "p.swp") in str(refused.value)
    assert not (tmp_path / "p.swp").exists()


keys = st.sampled_from(
    ["op", "rounds", "body", "file", "who", "at", "size", "table", "comm", "view", "slack_first", "x"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=5) | st.just("pread"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
tops = st.sampled_from(["files", "nodes", "comms", "groups", "distributions", "views", "numbers", "processes", "seed"])


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(tops, values, max_size=5))
def test_no_json_crashes_the_writer(tmp_path: Path, written: dict[str, Any]) -> None:
    try:
        workpath.from_json(tmp_path / "f.swp", {"files": FILES, "nodes": [], **written})
    except WorkloadError:
        return
    workpath.text(tmp_path / "f.swp")
    json.dumps(workpath.info(tmp_path / "f.swp"))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400), st.booleans())
def test_bytes_that_are_no_path_are_refused(tmp_path: Path, data: bytes, with_magic: bool) -> None:
    (tmp_path / "g.swp").write_bytes((b"SWPATH1\0" if with_magic else b"") + data)
    with pytest.raises(WorkloadError):
        workpath.info(tmp_path / "g.swp")


def left(out: Path) -> Path:
    """What a killed synth left."""
    with unfinished.beside(out) as part:
        name = part
    name.write_bytes(b"half")
    return name


def test_a_directory_that_cannot_be_listed_takes_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    there = left(tmp_path / "o.swp")
    monkeypatch.setattr(os, "scandir", refused)
    with unfinished.beside(tmp_path / "o.swp") as part:
        assert part.exists() and there.exists()


def test_what_was_left_is_swept_where_only_files_open_for_writing_are_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def as_nfs(handle: int, how: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(handle, how)

    there = left(tmp_path / "o.swp")
    monkeypatch.setattr(fcntl, "flock", as_nfs)
    with unfinished.beside(tmp_path / "o.swp") as part, unfinished.beside(tmp_path / "o.swp") as other:
        assert not there.exists() and part.exists() and other.exists()
    assert not list(tmp_path.iterdir())


def test_what_another_node_writes_stays_whatever_locks_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = left(tmp_path / "o.swp")
    other = os.uname_result(("Linux", "elsewhere", "", "", ""))
    with monkeypatch.context() as patch:
        patch.setattr(os, "uname", lambda: other)
        with unfinished.beside(tmp_path / "o.swp"):
            assert there.exists()
    with unfinished.beside(tmp_path / "o.swp"):
        assert not there.exists()


def test_a_file_system_that_counts_no_links_takes_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fstat = os.fstat

    def without_links(handle: int) -> os.stat_result:
        found = list(fstat(handle))
        found[3] = 0
        return os.stat_result(found)

    there = left(tmp_path / "o.swp")
    monkeypatch.setattr(os, "fstat", without_links)
    with unfinished.beside(tmp_path / "o.swp"):
        assert len(list(tmp_path.iterdir())) == 1 and not there.exists()


def test_a_file_that_always_vanishes_is_an_error_and_no_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def swept(handle: int, how: int) -> None:
        for part in tmp_path.iterdir():
            part.unlink()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", swept)
    with pytest.raises(WorkloadError, match=r"o.swp: cannot be written .files beside it vanish"):
        unfinished.beside(tmp_path / "o.swp").__enter__()
