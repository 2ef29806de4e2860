"""Copies of files from the command line: built of a traced run, listed, dropped, collected, undone, killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hostile import needs_root
from rig import STRIPEWISE, Maker, Store, Target, dirs, execute, stripewise, wait_until

from stripewise.units import format_size

KIB = 1024
BLOCK, COLUMNS, ROWS = 16 * KIB, 4, 64
SIZE = BLOCK * COLUMNS * ROWS
DATA = random.Random(3).randbytes(SIZE)

#: Reads every fourth block, then the next column.
READS = """
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
for column in range(4):
    for row in range(64):
        os.pread(f, 16384, (row * 4 + column) * 16384)
"""


@pytest.fixture
def store(make_store: Maker) -> tuple[Store, Path]:
    """A store over four directories, and a plain file beside it."""
    made = make_store(dirs(4))
    path = made.plain / "array"
    path.write_bytes(DATA)
    return made, path


def by_hand(path: Path) -> tuple[str, str]:
    """A pattern of columns of a matrix of 16 KiB blocks, for `--pattern`."""
    return "--pattern", f"{path},read:0:16KiB:{COLUMNS * 16}KiBx{ROWS}@4"


def traced(store: Store, path: Path) -> Path:
    """The trace of a program that reads the file by columns."""
    trace = store.base / "trace"
    command = ["run", "--trace", trace, "--store", store.root, "--", "python3", "-c", READS, path]
    stripewise(*command)
    stripewise("collect", trace)
    return trace


def building(store: Store, trace: Path) -> list[str | Path]:
    """The command that makes copies of the one file; h-pdla makes some of each pattern."""
    return ["replicate", trace, "--store", store.root, "--manager", "h-pdla", "--file", store.plain / "array"]


def build(store: Store, trace: Path, *options: str | Path, code: int | None = 0) -> str:
    said = stripewise(*building(store, trace), *options, code=code)
    return said.out if code == 0 else said.err


def states(store: Store) -> dict[str, str]:
    """The state of each file's copies, by its name."""
    told = json.loads(stripewise("store", "replica", "ls", store.root, "--json").out)
    return {os.path.basename(str(each["path"])): str(each["state"]) for each in told}


def bytes_in_copies(store: Store) -> bytes:
    """All that the only container holds."""
    told = json.loads(stripewise("store", "replica", "ls", store.root, "--json").out)
    words = [STRIPEWISE, "store", "cat", "--store", store.root, str(told[0]["container"])]
    return subprocess.run(words, check=True, capture_output=True).stdout


def test_copies_of_what_a_run_read_are_built_listed_used_up_and_dropped(store: tuple[Store, Path]) -> None:
    made, path = store
    trace = traced(made, path)
    said = " ".join(build(made, trace).split())
    assert f"{path}: " in said and "replica" in said
    assert states(made) == {"array": "in use"}
    column = b"".join(DATA[(row * COLUMNS) * BLOCK :][:BLOCK] for row in range(ROWS))
    assert column in bytes_in_copies(made)
    listed = stripewise("store", "replica", "ls", made.root).out
    assert str(path) in listed and "in use" in listed
    made.fsck()
    assert "nothing to free" in stripewise("store", "gc", made.root).out
    assert states(made) == {"array": "in use"}
    # A foreign writer is seen by the times of the file.
    with path.open("r+b") as file:
        file.write(b"other")
    assert states(made) == {"array": "changed"}
    assert "1 file(s) whose copies were dropped" in stripewise("store", "gc", made.root).out
    assert states(made) == {} and made.files() == []


def test_rm_drops_the_named_or_the_stale_ones(store: tuple[Store, Path]) -> None:
    made, path = store
    other = made.plain / "other"
    other.write_bytes(DATA)
    trace = traced(made, path)
    build(made, trace, *by_hand(other))
    assert states(made) == {"array": "in use", "other": "in use"}
    wrong = stripewise("store", "replica", "rm", made.root, path, made.plain / "none", code=1).err
    assert "none: has no copies in" in wrong and states(made)["array"] == "in use"
    os.unlink(other)
    assert states(made) == {"array": "in use", "other": "gone"}
    assert f"removed the copies of {other}" in stripewise("store", "replica", "rm", made.root, "--stale").out
    assert "no copies to remove" in stripewise("store", "replica", "rm", made.root, "--stale").out
    assert f"removed the copies of {path}" in stripewise("store", "replica", "rm", made.root, path).out
    assert states(made) == {} and path.read_bytes() == DATA
    assert "--stale" in stripewise("store", "replica", "rm", made.root, code=2).err


def test_copies_of_a_plain_file_go_when_it_is_adopted(store: tuple[Store, Path]) -> None:
    made, path = store
    other = made.plain / "other"
    other.write_bytes(DATA)
    trace = traced(made, path)
    build(made, trace, *by_hand(other))
    said = stripewise("store", "adopt", "--store", made.root, path).out
    assert said == (
        f"{path}: adopted, 4.0 MiB; its copies as a plain file are dropped, 'stripewise replicate' makes them anew; "
        "outside of all that the store's rules manage, where new files stay plain\n"
    )
    assert states(made) == {"other": "in use"}
    build(made, trace)
    assert states(made) == {"array": "in use", "other": "in use"}
    made.fsck()


def test_what_cannot_be_copied_is_left_out_with_its_reason(store: tuple[Store, Path], make_store: Maker) -> None:
    made, path = store
    trace = traced(made, path)
    managed = made.data / "managed"
    made.run("cp", path, managed)
    short = made.plain / "short"
    short.write_bytes(DATA[: SIZE // 2])
    elsewhere = make_store(dirs(2))
    others = elsewhere.data / "others"
    elsewhere.run("cp", path, others)
    patterns = [word for each in (managed, others, short, made.plain / "none") for word in by_hand(each)]
    home = ("--pattern", f"{made.plain}/home,write:0:16KiB:64KiBx64@4")
    said = " ".join(build(made, trace, *patterns, *home).split())
    assert f"left out: {others}: is a managed file of another store; give that one with --store" in said
    assert f"h-pdla: {others}" not in said and f"h-pdla: {short}" in said and f"h-pdla: {managed}" in said
    changed = f"{SIZE // 2:,} bytes, the run reached byte {SIZE - 3 * BLOCK:,}"
    assert f"not made of {short}: the file has changed since the trace: {changed}: " in said
    assert f"not made of {made.plain / 'none'}: the file does not exist any more: " in said
    assert f"not made of {made.plain / 'home'}: would be the home of what the run writes; only copies" in said
    assert states(made) == {"array": "in use", "managed": "in use"}


def test_a_managed_files_copies_are_written_with_it_and_read_from(store: tuple[Store, Path]) -> None:
    made, path = store
    managed = made.data / "managed"
    made.run("cp", path, managed)
    trace = traced(made, managed)
    words = ["replicate", trace, "--store", made.root, "--manager", "h-pdla", "--file", managed]
    told = json.loads(stripewise(*words, "--json").out)
    assert [each["file"] for each in told["made"]] == [str(managed)] and told["elsewhere"] == []
    assert f"{managed}: up to date: " in " ".join(stripewise(*words).out.split())
    shutil.rmtree(trace)
    again = traced(made, managed)
    assert "copies of it served" in stripewise("show", again).out
    made.run("dd", f"of={managed}", "if=/dev/zero", "bs=100000", "count=1", "conv=notrunc", "status=none")
    assert states(made) == {"managed": "in use"}
    made.run("truncate", "-s", str(SIZE - BLOCK), managed)
    made.run("truncate", "-s", str(SIZE), managed)
    (listed,) = json.loads(stripewise("store", "replica", "ls", made.root, "--json").out)
    assert listed["state"] == "in use" and 0 < listed["stale_bytes"] <= 2 * BLOCK
    assert f"in use, {format_size(listed['stale_bytes'])} stale" in stripewise("store", "replica", "ls", made.root).out
    assert "in place of earlier copies" in " ".join(stripewise(*words).out.split())
    made.run("cp", managed, made.plain / "out")
    expected = bytes(100_000) + DATA[100_000 : SIZE - BLOCK] + bytes(BLOCK)
    assert (made.plain / "out").read_bytes() == expected


def test_the_same_copies_are_left_alone_and_others_are_said_to_be_replaced(store: tuple[Store, Path]) -> None:
    made, path = store
    trace = traced(made, path)
    assert "earlier" not in build(made, trace) and states(made) == {"array": "in use"}
    record = next(each for each in (made.root / "copies").iterdir() if each.suffix != ".copy")
    before = record.stat()
    said = " ".join(build(made, trace).split())
    assert f"{path}: up to date: " in said and "left alone" in said and "no copies were made" not in said
    assert record.stat() == before
    told = json.loads(build(made, trace, "--json"))
    assert told["made"] == [] and [each["file"] for each in told["up_to_date"]] == [str(path)]
    os.utime(path)
    assert "in place of earlier copies" in " ".join(build(made, trace).split())
    assert record.stat().st_ino != before.st_ino and states(made) == {"array": "in use"}
    stripewise("store", "replica", "rm", made.root, path)
    assert [each["replaced"] for each in json.loads(build(made, trace, "--json"))["made"]] == [False]


def test_a_file_that_a_program_writes_gets_none_and_the_reason(store: tuple[Store, Path]) -> None:
    made, path = store
    trace = traced(made, path)
    with path.open("ab"):
        said = stripewise(*building(made, trace), code=1)
    assert "is open for writing in a program; close it there" in " ".join(said.out.split())
    assert "1 file(s) got no copies" in said.err
    assert states(made) == {} and made.files() == []
    told = json.loads(build(made, trace, "--without-lease", "--bandwidth", "1GiB", "--json"))
    assert [each["file"] for each in told["made"]] == [str(path)] and not told["skipped"]


def test_an_empty_list_of_copies_says_what_makes_some(store: tuple[Store, Path]) -> None:
    made, _ = store
    said = stripewise("store", "replica", "ls", made.root).out
    assert said == f"no copies; make some with 'stripewise replicate TRACE --store {made.root}'\n"


@needs_root
def test_an_undo_that_a_read_only_target_keeps_from_its_end_drops_no_copies(store: tuple[Store, Path]) -> None:
    made, path = store
    build(made, traced(made, path))
    place = made.base / "targets/t1"
    mounts = f"mount --bind {place} {place} && mount -o remount,bind,ro {place}"
    words = ["unshare", "-m", "sh", "-c", f"{mounts} && {STRIPEWISE} undo {made.root}"]
    said = execute(words, made.environment(), code=1)
    assert f"target t1: {place} is mounted read-only; mount it for writing" in said.err, said.report
    assert "dropping" not in said.err and states(made) == {"array": "in use"}, said.report


def test_undo_drops_copies_first_and_keeps_the_files(store: tuple[Store, Path]) -> None:
    made, path = store
    made.check_at_end = False
    build(made, traced(made, path))
    managed = made.data / "managed"
    made.run("cp", path, managed)
    looked = stripewise("undo", made.root, "--dry-run").out
    assert "the copies of 1 file(s) would be dropped" in looked and "1 file(s), " in looked
    assert states(made) == {"array": "in use"}
    assert "1 file's copies" in stripewise("undo", made.root).out
    assert not made.root.exists() and path.read_bytes() == managed.read_bytes() == DATA and not managed.is_symlink()
    left = [file for target in made.targets for file in (made.base / "targets" / target.name).iterdir()]
    assert not left


@pytest.mark.parametrize("number", range(4))
def test_a_build_that_is_killed_leaves_nothing_that_the_next_command_does_not_end(
    store: tuple[Store, Path], number: int
) -> None:
    made, path = store
    trace = traced(made, path)
    # Long enough for the commands below, beside whatever else the machine does.
    words = [*building(made, trace), "--bandwidth", "2MiB" if number else "200KiB"]
    child = subprocess.Popen([STRIPEWISE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    copies = made.root / "copies"
    assert wait_until(lambda: copies.exists() and any(copies.iterdir()))
    # While it is under way nobody takes it away, nor makes the same.
    if number == 0:
        stripewise("store", "gc", made.root)
        assert states(made) == {"": "unfinished"}
        assert "another command is making these" in stripewise("store", "replica", "rm", made.root, "--stale").err
        assert "another 'stripewise replicate' is at work here" in stripewise(*words, code=1).err
    time.sleep(0.3 * number)
    child.send_signal(signal.SIGKILL)
    child.wait()
    if number % 2:
        build(made, trace)
        assert states(made) == {"array": "in use"} and len(made.files()) == 1
        column = b"".join(DATA[(row * COLUMNS + 1) * BLOCK :][:BLOCK] for row in range(ROWS))
        assert column in bytes_in_copies(made)
    else:
        # One that was about to be created may still be there, without a byte; gc takes it when nobody uses the store.
        stripewise("store", "gc", made.root)
        assert states(made) == {} and made.files() == []
    made.fsck()


def test_an_interrupted_build_leaves_nothing(store: tuple[Store, Path]) -> None:
    made, path = store
    trace = traced(made, path)
    words = [*building(made, trace), "--bandwidth", "1MiB"]
    child = subprocess.Popen([STRIPEWISE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    copies = made.root / "copies"
    assert wait_until(lambda: copies.exists() and any(copies.iterdir()))
    child.send_signal(signal.SIGINT)
    assert child.wait(20) != 0
    assert list(copies.iterdir()) == [] and made.files() == []


def test_drain_and_fsck_and_scrub_know_containers_as_any_file(store: tuple[Store, Path]) -> None:
    made, path = store
    build(made, traced(made, path))
    before = bytes_in_copies(made)
    # As everywhere, files are the user's own: this one is plain.
    assert stripewise("store", "scrub", made.root).out.startswith("0 file(s) and the copies of 1, ")
    assert " of the copies of 1 file(s) moved off it" in stripewise("store", "drain", made.root, "t1").out
    assert states(made) == {"array": "in use"} and bytes_in_copies(made) == before
    layout = stripewise("store", "layout", str(next((made.root / "copies").glob("*.copy")))).out
    assert "t0" in layout and "t1" not in layout
    made.fsck()


def test_a_managed_file_is_priced_as_it_lies_now_and_nothing_is_built_that_gains_nothing_there(
    make_store: Maker,
) -> None:
    """In the run it lay in small stripes over disks; it was laid out anew since, as one piece on the fast one."""
    fast = Target("s0", "ssd", startup_s=1e-6, per_byte_s=1e-11)
    made = make_store([*(Target(f"d{number}", "hdd", startup_s=3e-3, per_byte_s=1e-8) for number in range(3)), fast])
    managed = made.data / "f"
    (made.plain / "f").write_bytes(DATA)
    made.run("cp", made.plain / "f", managed)
    stripewise("store", "set-layout", managed, "--targets", "d0,d1,d2", "--stripe-size", "64KiB")
    trace = traced(made, managed)
    words = ["replicate", trace, "--what-if", "--file", managed]
    before = stripewise(*words).out
    assert "radar: 1 replica" in before and "files as they lie now" in " ".join(before.split()) and "anew" not in before
    stripewise("store", "set-layout", managed, "--targets", "s0")
    out = stripewise("replicate", trace, "--store", made.root, "--file", managed).out
    said = " ".join(out.split())
    assert "radar: no replica is worth making" in said and "gains less than 10% over the file itself" in said
    assert "files as they lie now (laid out anew since the run)" in said and states(made) == {}
    assert "d0, d1, d2 and s0 share" in said and "takes them as separate devices" in said
    (found,) = json.loads(stripewise(*words, "--json").out)["laid_anew"]
    assert found == str(managed)
