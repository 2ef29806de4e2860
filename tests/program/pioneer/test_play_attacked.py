"""Hostile and unlucky paths: the player harms no file of the user, does not hang, and lost bytes are wrong ones."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from paths import KIB, PLAYER, Written, complaint, file, node, played, said, small_disk
from rig import BIN, execute, stripewise

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as workpath
from stripewise.pioneer.play import reason

HEADER, NODE, FILE = 128, 64, 32


def refused(path: Path, processes: int = 1) -> str:
    """What the player's check says of a path; Rust must refuse it as well."""
    with pytest.raises(WorkloadError):
        workpath.requests(path, processes, 0)
    result = execute([PLAYER, "--check", str(processes), path], code=1)
    assert len(result.out.splitlines()) == 1 and "ok" not in result.out.split(), result.report
    return result.out


def patched(path: Path, at: int, what: bytes) -> Path:
    """A sound path with other bytes behind its header; from the end where `at` is below 0."""
    data = bytearray(path.read_bytes())
    at += len(data) if at < 0 else 0
    data[at : at + len(what)] = what
    path.write_bytes(data)
    return path


def marked(path: Path, nodes: int, at: int = 0) -> Path:
    """The same path, a file of which is now marked as a directory."""
    return patched(path, HEADER + NODE * nodes + FILE * at + 1, b"\2")


@pytest.mark.parametrize(
    "op", ["open", "mpi_open", "unlink", "truncate", "rename", "link", "symlink", "mknod", "mpi_delete"]
)
def test_the_mark_of_a_directory_opens_no_way_to_a_file(scratch: Path, op: str) -> None:
    path = Written([file("thesis.tex", "root"), file("other", "root")])
    path.add(op, 0, size=2 if op in ("rename", "link", "symlink") else 0)
    marked(path.write(scratch / "p.swp"), 1)
    assert "node 0 " in refused(scratch / "p.swp") and "director" in refused(scratch / "p.swp")


@pytest.mark.parametrize("op", ["rename", "link", "symlink"])
def test_no_file_takes_the_name_of_a_directory(scratch: Path, op: str) -> None:
    path = Written([file("a", "root"), file("thesis.tex", "root")])
    path.add(op, 0, size=2)
    assert "name of a directory" in refused(marked(path.write(scratch / "p.swp"), 1, at=1))


def test_a_directory_that_is_there_is_only_opened(scratch: Path) -> None:
    keep = scratch / "d" / "mine" / "thesis.tex"
    keep.parent.mkdir(parents=True)
    keep.write_text("years of work")
    for ops in (("rmdir",), ("mkdir", "rmdir"), ("setattr",), ("mkdir", "rename")):
        path = Written([file("mine", "root", directory=True), file("other", "root", directory=True)])
        for op in ops:
            path.add(op, 0, size=2 if op == "rename" else 0)
        written = path.write(scratch / "p.swp")
        assert "mine is there already" in complaint(played(written, scratch / "d", 1, code=None))
        assert "something else in it" in complaint(played(written, scratch / "d", 1, "--replace", code=None))
        assert keep.read_text() == "years of work" and keep.parent.stat().st_mode & 0o700 == 0o700
    path = Written([file("mine", directory=True)])
    for op in ("stat", "opendir", "readdir", "fsync", "fstat", "close"):
        path.add(op)
    assert said(played(path.write(scratch / "p.swp"), scratch / "d", 2))["refused"] == 0
    path = Written([file("mine/thesis.tex", directory=True)])
    path.add("opendir", alone=True)
    assert "is no directory" in complaint(
        played(path.write(scratch / "p.swp"), scratch / "d", 1, "--replace", code=None)
    )


def test_directories_of_the_path_are_made_again_with_all_that_is_in_them(scratch: Path) -> None:
    path = Written(
        [file("a", "root", directory=True), file("a/{rank}", "private", directory=True), file("a/{rank}/f", "private")]
    )
    path.add("mkdir", 0, who="root")
    path.add("mpi_open", 2, comm=0)
    path.nodes.pop()
    path.files.append(file("bar"))
    path.add("mpi_open", 3)
    path.add("mpi_close", 3)
    path.add("mkdir", 1)
    path.add("open", 2)
    path.add("write0", 2, size=100)
    path.add("close", 2)
    written = path.write(scratch / "p.swp")
    for options in ((), ("--replace",), ("--replace",)):
        assert said(played(written, scratch / "d", 3, *options))["refused"] == 0
    assert (scratch / "d/a/2/f").stat().st_size == 100


@pytest.mark.parametrize("options", [(), ("--replace",), ("--prepared",)])
def test_no_link_leads_out_of_the_directory(scratch: Path, options: tuple[str, ...]) -> None:
    (scratch / "home").mkdir()
    (scratch / "home" / "f").write_text("mine")
    for name, link, target in (("f", "f", "../home/f"), ("sub/f", "sub", "../home"), ("new", "new", "../home/new")):
        directory = scratch / name.replace("/", "-")
        directory.mkdir()
        (directory / link).symlink_to(target)
        path = Written([file(name)])
        path.add("open", size=2 | 4 | 16)
        path.add("write0", size=10)
        path.add("close")
        why = complaint(played(path.write(scratch / "p.swp"), directory, 2, *options, code=None))
        assert f"{directory}/{link} is a link" in why
    assert [(each.name, each.read_text()) for each in (scratch / "home").iterdir()] == [("f", "mine")]


def test_a_path_does_not_play_on_itself(scratch: Path) -> None:
    path = Written([file("p.swp")])
    path.add("unlink", who="root")
    written = path.write(scratch / "p.swp")
    before = written.read_bytes()
    assert "is the path itself" in complaint(played(written, scratch, 1, "--replace", code=None))
    assert written.read_bytes() == before


def reading(scratch: Path, op: tuple[str, str, str], bytes_before: int, size: int) -> Path:
    path = Written([file("f", bytes=bytes_before)])
    path.add(op[0], size=1)
    path.add(op[1], size=size)
    path.add(op[2])
    return path.write(scratch / "p.swp")


POSIX, MPI = ("open", "pread", "close"), ("mpi_open", "mpi_read_at", "mpi_close")
TOGETHER = ("mpi_open", "mpi_read_at_all", "mpi_close")
PENDING = ("mpi_open", "mpi_iread_at0", "mpi_close")


@pytest.mark.parametrize("ops", [POSIX, MPI, TOGETHER, PENDING])
def test_bytes_that_do_not_come_back_are_wrong(scratch: Path, ops: tuple[str, str, str]) -> None:
    written = reading(scratch, ops, 100 * KIB, 150 * KIB)
    played(written, scratch / "d", 1, "--prepare")
    assert said(played(written, scratch / "d", 2, "--prepared"))["wrong_bytes"] == 0
    os.truncate(scratch / "d/f", 60 * KIB)
    result = played(written, scratch / "d", 1, "--prepared", code=1)
    assert f"{40 * KIB} bytes are not what was written" in result.err and f"f at offset {60 * KIB}" in result.err


@pytest.mark.parametrize("ops", [POSIX, MPI])
def test_zeros_pass_only_where_nobody_wrote(scratch: Path, ops: tuple[str, str, str]) -> None:
    written = reading(scratch, ops, 4 * KIB, 16 * KIB)
    played(written, scratch / "d", 1, "--prepare")
    with (scratch / "d/f").open("r+b") as opened:
        opened.write(b"\0" * 16 * KIB)
    why = complaint(played(written, scratch / "d", 1, "--prepared", code=1))
    assert "f at offset 0" in why and 0.9 * 4 * KIB < int(why.split()[1]) <= 4 * KIB


def test_equal_totals_in_another_order_are_refused(scratch: Path) -> None:
    path = Written(
        [file("a"), file("b")], {"processes": 2, "numbers": [[[0, 0, 2], [0, 0, 3]], [[0, 0, 3], [0, 0, 2]]]}
    )
    path.add("mpi_open", 0)
    path.add("mpi_open", 1)
    inner = [{"rounds": 0, "table": 2, "body": [node("mpi_write_at_all", file=at, size=1024)]} for at in (0, 1)]
    path.loop(0, inner, table=1)
    assert "node 4 (mpi_write_at_all)" in refused(path.write(scratch / "p.swp"), 2)


def opened_twice(scratch: Path, *, who: str, then: list[tuple[str, int, str]]) -> Path:
    path = Written([file("f")], {"comms": ["world", "self"]})
    path.add("mpi_open", comm=1, who=who)
    path.add("mpi_write_at", comm=1, who=who, size=10)
    for op, comm, whose in then:
        path.add(op, comm=comm, who=whose, at_rank=10, size=10 if "write" in op else 0)
    return path.write(scratch / "p.swp")


def test_a_call_finds_the_file_on_its_communicator_or_is_refused(scratch: Path) -> None:
    """A header that the root writes by itself, then all on the whole: the usual reason for two communicators."""
    rest = [("mpi_open", 0, "all"), ("mpi_write_at_all", 0, "all"), ("mpi_close", 0, "all")]
    sound = opened_twice(scratch, who="root", then=[("mpi_close", 1, "root"), *rest])
    assert workpath.info(sound)["nodes"] == 6 and said(played(sound, scratch / "d", 3))["wrong_bytes"] == 0
    for then in (
        [("mpi_close", 1, "all"), *rest],
        [*rest[:2], ("mpi_close", 1, "root")],
        [*rest[:1], ("mpi_write_at_all", 1, "all"), *rest[2:]],
        [*rest, ("mpi_write_at_all", 1, "all")],
    ):
        refused(opened_twice(scratch, who="root", then=then), 3)
    path = Written([file("f")], {"comms": ["world", "self"]})
    path.add("mpi_open")
    path.loop(2, [node("mpi_write_at_all", size=10), node("mpi_close"), node("mpi_open", comm=1)])
    refused(path.write(scratch / "p.swp"), 2)
    path.nodes = [node("mpi_open")]
    path.loop(2, [node("mpi_write_at_all", size=10), node("mpi_open", comm=1)])
    assert "leaves file 0 open" in refused(path.write(scratch / "p.swp"), 2)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_full_disk_ends_what_nobody_waits_for(scratch: Path, processes: int) -> None:
    with small_disk(scratch) as small:
        path = Written([file("f")])
        path.add("mpi_open")
        path.loop(60, [node("mpi_iwrite_at0", stride=64 * KIB, size=64 * KIB)])
        path.add("mpi_close")
        why = complaint(played(path.write(scratch / "p.swp"), small, processes, code=None))
        assert f"{small}/f" in why and ("does not end" in why or "No space left" in why or "bytes were written" in why)


def test_a_link_that_is_made_leads_to_the_file_that_is_named(scratch: Path) -> None:
    path = Written([file("data/a", "root"), file("deep/er/link", "root")])
    for op, at, keys in (
        ("open", 0, {}), ("write0", 0, {"size": 5000}), ("close", 0, {}), ("symlink", 0, {"size": 2}),
        ("open", 1, {"size": 1}), ("read0", 1, {"size": 5000}), ("close", 1, {}),
    ):  # fmt: skip
        path.add(op, at, **keys)
    told = said(played(path.write(scratch / "p.swp"), scratch / "d", 1))
    assert told["verified_bytes"] == 5000 and told["refused"] == 0
    assert (scratch / "d/deep/er/link").readlink() == scratch / "d/data/a"


@pytest.mark.parametrize("op", ["rename", "link"])
def test_no_link_that_is_made_leads_out_of_the_directory_by_another_name(scratch: Path, op: str) -> None:
    """A relative link, right where it was made, would lead to home/victim from the name that it gets."""
    (scratch / "home" / "runs" / "d").mkdir(parents=True)
    (scratch / "home" / "victim").write_text("years of work")
    path = Written([file("victim", "root"), file("p/q/l", "root"), file("l", "root")])
    path.add("symlink", 0, size=2)
    path.add(op, 1, size=3)
    path.add("open", 2, size=2 | 16)
    path.add("close", 2)
    why = complaint(played(path.write(scratch / "p.swp"), scratch / "home/runs/d", 1, code=None))
    assert "node 2" in why and "No such file" in why
    path.nodes[2]["size"] |= 4
    played(path.write(scratch / "p.swp"), scratch / "home/runs/e", 1)
    assert (scratch / "home/runs/e/victim").read_bytes() == b""
    assert (scratch / "home" / "victim").read_text() == "years of work"


def test_a_small_path_is_played_as_it_was_checked(scratch: Path) -> None:
    """Whoever writes it meanwhile changes nothing: neither an operation nor where it ends."""
    path = Written([file("f", bytes=10)])
    path.add("open", size=1)
    path.add("access", slack_ns=1_500_000_000)
    path.loop(50, [node("stat")])
    path.add("close")
    written = path.write(scratch / "p.swp")
    for change in ("write", "cut"):
        words = [PLAYER, "--replace", written, scratch]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        (scratch / "f").unlink(missing_ok=True)
        while not (scratch / "f").exists() and child.poll() is None:
            time.sleep(0.01)
        time.sleep(0.5)
        before = written.read_bytes()
        patched(written, HEADER + NODE * 3 + 4, b"\xff\xff\xff\x7f") if change == "write" else os.truncate(written, 100)
        out, err = child.communicate(timeout=30)
        written.write_bytes(before)
        assert child.returncode == 0 and not err and '"stat": 50' in out, (child.returncode, err)


def test_a_file_of_one_rank_that_becomes_that_of_all_is_right_for_all(scratch: Path) -> None:
    path = Written([file("tmp{rank}", "private"), file("final"), file("bar")])
    for op, at, keys in (
        ("open", 0, {}), ("pwrite", 0, {"size": 4096}), ("close", 0, {}), ("rename", 0, {"size": 2, "who": "root"}),
        ("mpi_open", 2, {}), ("mpi_close", 2, {}),
        ("open", 1, {"size": 1}), ("pread", 1, {"size": 4096}), ("close", 1, {}),
    ):  # fmt: skip
        path.add(op, at, **keys)
    assert said(played(path.write(scratch / "p.swp"), scratch / "d", 3))["verified_bytes"] == 3 * 4096


def test_a_name_that_each_rank_takes_from_its_own_numbers_has_the_content_of_all(scratch: Path) -> None:
    path = Written([file("a"), file("b"), file("bar")], {"processes": 2, "numbers": [[[0, 0, 2], [0, 0, 2]]]})
    for op, at, keys in (
        ("open", 1, {}), ("pwrite", 1, {"size": 4096}), ("close", 1, {}),
        ("open", 0, {}), ("pwrite", 0, {"size": 100}), ("close", 0, {}),
        ("mpi_open", 2, {}), ("mpi_close", 2, {}), ("rename", 0, {"table": 1}),
        ("mpi_open", 2, {}), ("mpi_close", 2, {}),
        ("open", 1, {"size": 1}), ("pread", 1, {"size": 4096}), ("close", 1, {}),
    ):  # fmt: skip
        path.add(op, at, **keys)
    assert said(played(path.write(scratch / "p.swp"), scratch / "d", 2))["wrong_bytes"] == 0


def test_views_that_no_file_can_hold_are_refused(scratch: Path) -> None:
    view = {"piece": 1, "distance": 1, "pieces": 1, "tile": 4096}
    path = Written([file("f")], {"views": [view]})
    path.add("mpi_open")
    path.add("mpi_view", view=1)
    path.add("mpi_write_all0", size=200)
    path.add("mpi_close")
    written = path.write(scratch / "p.swp")
    assert workpath.info(written)["nodes"] == 4
    for tile in (2**63 - 1, 2**62 // 100):
        assert "view 0" in refused(patched(written, -1 - 8, tile.to_bytes(8, "little")))
    path.tables["views"] = [{**view, "tile": 2**54}]
    path.nodes[1]["at"] = 2**62
    why = complaint(played(path.write(scratch / "p.swp"), scratch / "d", 1, code=None))
    assert "node 2" in why and "beyond 2^62 bytes" in why


def test_names_cannot_write_on_the_terminal(scratch: Path) -> None:
    path = Written([file("x\x1b[31m\x9b\nplayer: all is well")])
    path.add("open", size=1)
    result = played(path.write(scratch / "p.swp"), scratch / "d", 1, code=None)
    assert r"x\x1b[31m\xc2\x9b\x0aplayer: all is well: No such file" in complaint(result) and "\x1b" not in result.err
    for bad in (b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"x\xe2\x82"):
        path.files = [file("x" * len(bad))]
        assert "name" in refused(patched(path.write(scratch / "p.swp"), -len(bad), bad))
    path.files = [file("µ€𝄞")]
    execute([PLAYER, "--check", "1", path.write(scratch / "p.swp")])


def test_a_process_that_dies_is_told(scratch: Path) -> None:
    path = Written([file("f")])
    path.add("mpi_open")
    path.add("pwrite", size=1 << 20)
    path.nodes[1:1] = [node("open")]
    written = path.write(scratch / "p.swp")
    # A file beyond the limit: the kernel ends the process.
    words = ["bash", "-c", 'ulimit -c 0; ulimit -f 64; exec "$0" "$@"', BIN / "stripewise", "play", written]
    result = execute([*words, "-n", "2", "--directory", scratch], code=None)
    (line,) = [line for line in result.err.splitlines() if line.startswith("stripewise: ")]
    assert result.code != 0 and f"ended by signal {signal.SIGXFSZ.value} (SIGXFSZ)" in line
    assert [reason(status) for status in (0, 1, 2)] == ["", "", ""]
    assert "SIGKILL" in reason(9) and "SIGSEGV" in reason(139) and "status 99" in reason(99)


def test_who_ends_a_run_is_told_so(scratch: Path) -> None:
    path = Written([file("f")])
    path.add("open")
    path.add("close", slack_ns=60_000_000_000)
    words = [BIN / "stripewise", "play", path.write(scratch / "p.swp"), "--directory", scratch]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if (scratch / "f").exists():
            break
        time.sleep(0.05)
    child.terminate()
    err = child.communicate(timeout=30)[1]
    assert child.returncode == 128 + signal.SIGTERM or child.returncode == signal.SIGTERM
    assert "stripewise: the run was ended by signal 15 (SIGTERM)" in err


def test_the_verb_says_why_it_does_not_play(scratch: Path) -> None:
    (scratch / "f").symlink_to("elsewhere")
    path = Written([file("f")])
    path.add("stat")
    result = stripewise("play", path.write(scratch / "p.swp"), "--directory", scratch, "--replace", code=1)
    assert "is a link" in result.err and "ended by" not in result.err
