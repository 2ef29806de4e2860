"""The player: every operation makes its call, bytes are those of file and offset, and what goes wrong is said once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import KIB, PLAYER, Written, all_operations, complaint, file, node, played, said, small_disk
from rig import Maker, dirs, execute, stripewise

from stripewise import native
from stripewise.pioneer import path as workpath


def test_the_players_list_of_operations_is_that_of_the_paths() -> None:
    header = (Path(__file__).resolve().parents[3] / "workloads/player/path/ops.h").read_text()
    row = r'X\(\w+, (\d+), "(\w+)", (\w+), (\w+), (\w+), (\d), (\d)\)'
    listed = {name: (int(n), layer.lower(), int(coll)) for n, name, layer, _, _, coll, _ in re.findall(row, header)}
    kinds = {
        name: "metadata" if moves == "NOTHING" else "data" for _, name, _, moves, _, _, _ in re.findall(row, header)
    }
    ops = native.call("workpath_ops")
    assert listed == {op["name"]: (op["number"], op["layer"], int(op["collective"])) for op in ops}
    assert kinds == {op["name"]: op["kind"] for op in ops}


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_every_operation_is_played_and_no_byte_is_wrong(scratch: Path, processes: int) -> None:
    path = all_operations().write(scratch / "all.swp")
    told = said(played(path, scratch / "d", processes))
    assert set(told["ops"]) == {op["name"] for op in native.call("workpath_ops")}
    ranks = [workpath.requests(path, processes, rank) for rank in range(processes)]
    assert told["requests"] == sum(len(rank) for rank in ranks)
    assert told["wrong_bytes"] == 0 and told["verified_bytes"] > 0.9 * told["bytes_read"] > 0
    # A stat and an access of what is not there yet, of each rank.
    assert told["refused"] == 2 * processes
    # A run in which all is there already is refused, and played where that is asked for.
    assert "is there already" in complaint(played(path, scratch / "d", processes, code=None))
    assert said(played(path, scratch / "d", processes, "--replace"))["wrong_bytes"] == 0


def rewritten(scratch: Path, change: Callable[[Path], object]) -> Path:
    """A file of 1 MiB that one path writes and another reads, something being changed between."""
    writes = Written([file("f")])
    writes.add("open")
    writes.add("pwrite", who="root", size=1 << 20)
    writes.add("close")
    played(writes.write(scratch / "w.swp"), scratch / "d", 2)
    change(scratch / "d" / "f")
    reads = Written([file("f", bytes=1 << 20)])
    reads.add("open", size=1)
    reads.loop(16, [node("pread", stride=64 * KIB, size=64 * KIB)])
    reads.add("close")
    return reads.write(scratch / "r.swp")


def damage(at: int, what: bytes) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        with path.open("r+b") as opened:
            opened.seek(at)
            opened.write(what)

    return change


def test_contents_are_the_same_in_another_run(scratch: Path) -> None:
    path = rewritten(scratch, lambda _: None)
    told = said(played(path, scratch / "d", 3, "--prepared"))
    assert (told["verified_bytes"], told["wrong_bytes"]) == (3 << 20, 0)


@pytest.mark.parametrize("what", [b"\x01", b"\0" * 64, b"x" * 9000])
def test_a_byte_that_nobody_wrote_is_found(scratch: Path, what: bytes) -> None:
    path = rewritten(scratch, damage(700_001, what))
    result = played(path, scratch / "d", 1, "--prepared", code=None)
    assert result.code == 1 and "f at offset 7" in result.err
    wrong = json.loads(result.out)["wrong_bytes"]
    assert len(what) * 0.9 <= wrong <= len(what)


def test_bytes_of_another_place_are_found(scratch: Path) -> None:
    def swap(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: 512 * KIB] + data[: 512 * KIB])

    result = played(rewritten(scratch, swap), scratch / "d", 1, "--prepared", code=None)
    assert result.code == 1 and json.loads(result.out)["wrong_bytes"] > 500 * KIB


def broken(scratch: Path) -> Path:
    return all_operations().write(scratch / "all.swp")


def test_a_path_that_cannot_be_read_is_named_once(scratch: Path) -> None:
    good = broken(scratch).read_bytes()
    (scratch / "cut.swp").write_bytes(good[:5000])
    (scratch / "newer.swp").write_bytes(good[:8] + b"\2" + good[9:])
    (scratch / "other.swp").write_bytes(b"x" * 4000)
    for name, why in (
        ("none.swp", "cannot be read"), ("cut.swp", "the file has 5000 bytes"), ("newer.swp", "a path of version 2"),
        ("other.swp", "no workload path"),
    ):  # fmt: skip
        assert why in complaint(played(scratch / name, scratch / "d", 4, code=None))
    missing = execute([*["mpiexec", "-n", "4"], PLAYER, scratch / "all.swp", scratch / "nowhere"], code=None)
    assert "is no directory" in complaint(missing)


def test_collective_calls_that_do_not_match_are_refused_before_anything_is_made(scratch: Path) -> None:
    for who in ("root", "all but root", "last"):
        path = Written([file("f")])
        path.add("mpi_open")
        path.add("mpi_write_at_all", who=who, size=10)
        path.add("mpi_close")
        why = complaint(played(path.write(scratch / "p.swp"), scratch / "d", 3, code=None))
        assert "node 1 (mpi_write_at_all)" in why and not list((scratch / "d").iterdir())


def test_what_is_not_open_ends_all_ranks(scratch: Path) -> None:
    path = Written([file("f")])
    path.add("mpi_open")
    path.add("pread", who="last", size=10)
    path.add("mpi_close")
    why = complaint(played(path.write(scratch / "p.swp"), scratch / "d", 4, code=None))
    assert "rank 3: node 1 (pread)" in why and "not open" in why


@pytest.mark.parametrize("ops", [("open", "write0", "close"), ("mpi_open", "mpi_write_at", "mpi_close")])
def test_a_full_disk_ends_all_ranks_with_one_message(scratch: Path, ops: tuple[str, str, str]) -> None:
    with small_disk(scratch) as small:
        path = Written([file("f{rank}", "private")], {"comms": ["self"]})
        path.add(ops[0])
        path.loop(100, [node(ops[1], stride=64 * KIB, size=64 * KIB)])
        path.add(ops[2])
        why = complaint(played(path.write(scratch / "p.swp"), small, 4, code=None))
        assert re.search(r"No space left|only \d+ of \d+ bytes", why) and f"{small}/f" in why


def test_more_processes_than_cores_play_too(scratch: Path) -> None:
    path = Written([file("f"), file("p{rank}", "private")])
    path.add("mpi_open")
    path.loop(4, [node("mpi_write_at_all", at_rank=4096, stride=16 * 4096, size=4096, slack_ns=1_000_000)])
    path.loop(4, [node("mpi_read_at_all", at_rank=4096, stride=16 * 4096, size=4096)])
    path.add("mpi_close")
    told = said(played(path.write(scratch / "p.swp"), scratch / "d", 16))
    assert told["verified_bytes"] == 16 * 4 * 4096 and told["slacks"] == 64


def test_slack_is_kept_divided_or_left_out(scratch: Path) -> None:
    path = Written([file("p{rank}", "private")], {"distributions": [{"values": [[40_000_000, 1]]}]})
    path.add("open")
    path.loop(10, [node("pwrite", size=8, slack_first=1, slack_ns=20_000_000)])
    path.add("close")
    written = path.write(scratch / "p.swp")
    told = said(played(written, scratch / "d", 1))
    assert told["slacks"] == 10 and told["seconds"] >= 0.22
    assert 0.055 <= said(played(written, scratch / "d", 1, "--replace", "--speed", "4"))["seconds"] < told["seconds"]
    fast = said(played(written, scratch / "d", 1, "--replace", "--as-fast-as-possible"))
    assert fast["slacks"] == 0 and fast["seconds"] < 0.2


def test_memory_does_not_grow_with_requests(scratch: Path) -> None:
    def of(count: int) -> Path:
        path = Written([file("p")])
        path.add("open")
        path.nodes += [node("pwrite", at=at % 4096 * 512, size=512) for at in range(count)]
        path.add("close")
        return path.write(scratch / f"{count}.swp")

    small, large = of(1000), of(500_000)
    assert large.stat().st_size > 25_000_000
    fast = ("--as-fast-as-possible", "--replace")
    few, many = (said(played(path, scratch / "d", 1, *fast))["memory_kib"] for path in (small, large))
    assert few > 0 and many - few < 12 * 1024


def test_the_verb_plays_on_a_store_and_traces(make_store: Maker, scratch: Path) -> None:
    store = make_store(dirs(2))
    path = Written([file("in", bytes=200_000), file("out")])
    path.add("open", size=1)
    path.add("read0", size=200_000)
    path.add("close")
    path.add("mpi_open", 1)
    path.add("mpi_write_at_all", 1, at_rank=100_000, size=100_000)
    path.add("mpi_close", 1)
    words = ("play", path.write(scratch / "p.swp"), "-n", "2", "--directory", store.data, "--store", store.root)
    told = json.loads(stripewise(*words, "--trace", scratch / "t", "--json").out)
    assert (told["verified_bytes"], told["wrong_bytes"], told["bytes_written"]) == (400_000, 0, 200_000)
    assert {Path(str(one["path"])).name for one in store.files()} >= {"in", "out"}
    stripewise("collect", scratch / "t")
    meta = json.loads((scratch / "t" / "meta.json").read_text())
    moved = {Path(one["path"]).name: (one["bytes_read"], one["bytes_written"]) for one in meta["files"]}
    # What the preparation wrote is not in the trace.
    assert moved["in"] == (400_000, 0) and moved["out"][1] == 200_000
    assert "p.swp" not in moved


def test_the_verb_says_what_cannot_be(scratch: Path) -> None:
    path = broken(scratch)
    for words, why in (
        (("--speed", "0"), "--speed"), (("--speed", "2", "--as-fast-as-possible"), "--as-fast-as-possible"),
        (("--directory", scratch / "nowhere"), "--directory"),
    ):  # fmt: skip
        assert why in stripewise("play", path, *words, code=2).err
    path.write_bytes(path.read_bytes()[:-3])
    why = stripewise("play", path, "--directory", scratch, code=1).err
    assert str(path) in why and "bytes where its header says" in why and "Traceback" not in why
