"""Collective reads that are made independently behind views with gaps: over several pieces at once or one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import kinds
import pytest
from kinds import Mpi, rows
from rig import MPIEXEC, SOAK, Maker, Result, Store, Target, mpiio_command, stripewise

HERE = Path(__file__).resolve().parent
KIB = 1 << 10
#: 64 KiB take six times as long as a start-up.
DISKS = [Target(f"h{number}", "hdd", "emulated", 0, 0.0001, 1e-8) for number in range(2)]
#: A start-up takes nothing, so that every gap is left out.
QUICK = [Target(f"q{number}", "ssd", "emulated", 0, 0.0, 1e-9) for number in range(2)]
#: Of four pieces, with as much between them as the other two processes have.
WIDE, NARROW = 256 * KIB, 4 * KIB


def job(place: Path, request_bytes: int, *options: str | Path, words: tuple[str, ...] = ()) -> Result:
    shape = ("--pattern", "strided", "--request-size", str(request_bytes), "--file-size", str(24 * request_bytes))
    command = mpiio_command(3, place, "--collective", *shape, "--phases", "write,read", *words)
    return stripewise("run", "--engine", "--explain", *options, "--", *command)


def reads(store: Store, trace: Path, request_bytes: int, *options: str, words: tuple[str, ...] = ()) -> set[int]:
    """Bytes of each read of the file that reads of its program have come to."""
    job(store.data / trace.name, request_bytes, "--store", store.root, "--trace", trace, *options, words=words)
    stripewise("collect", trace)
    found = Counter(
        row["done"]
        for row in rows(trace)
        if row["layer"] == "posix"
        and row["op"] == "read"
        and row["file"].endswith(f"/{trace.name}")
        and row["done"] > 0
    )
    # Sieved writes would have read, too: theirs are none.
    assert sum(found.values()) in (24, 96), found
    return set(found)


def test_wide_gaps_are_left_out_and_narrow_ones_are_read_over(make_store: Maker, tmp_path: Path) -> None:
    store = make_store(DISKS)
    assert reads(store, tmp_path / "wide", WIDE) == {WIDE // 4}
    assert reads(store, tmp_path / "narrow", NARROW) == {NARROW // 4 * 10}


def test_hints_of_the_program_count_more(make_store: Maker, tmp_path: Path) -> None:
    store = make_store(DISKS)
    sieved, unsieved = ("--hint", "romio_ds_read=enable"), ("--hint", "romio_ds_read=disable")
    assert reads(store, tmp_path / "a", WIDE, words=sieved) == {WIDE // 4 * 10}
    assert reads(store, tmp_path / "b", NARROW, words=unsieved) == {NARROW // 4}
    # In capitals, too, which ROMIO understands.
    loud = ("--hint", "romio_ds_read=ENABLE")
    assert reads(store, tmp_path / "f", WIDE, words=loud) == {WIDE // 4 * 10}
    # Unless they are taken for nothing.
    assert reads(store, tmp_path / "c", WIDE, "--override", words=sieved) == {WIDE // 4}
    assert reads(store, tmp_path / "d", NARROW, "--override", words=unsieved) == {NARROW // 4 * 10}
    # The rules of the thesis leave it to ROMIO.
    assert reads(store, tmp_path / "e", WIDE, "--by-rules") == {WIDE // 4 * 10}


def test_a_job_is_told_how_its_reads_were_made_and_why(make_store: Maker, tmp_path: Path) -> None:
    store = make_store(DISKS)
    said = job(store.data / "f", WIDE, "--store", store.root).err.splitlines()[0]
    told = "piece by piece behind views: pieces of 64.0 KiB, 128.0 KiB between them; ms a request: piece by piece "
    assert told in said and said.endswith("(2 targets' figures)"), said
    said = job(tmp_path / "f", NARROW).err.splitlines()
    assert "sieved behind views: pieces of 1.0 KiB, 2.0 KiB between them" in said[0], said
    assert said[0].endswith("(of no known device: a start-up as long as 64 KiB)") and "sieved" not in said[1]


def test_all_regions_of_a_layout_count(make_store: Maker) -> None:
    """A file that begins on a target without a start-up, and goes on where one takes longer than the gaps."""
    slow = Target("h0", "hdd", "emulated", 0, 0.01, 1e-8)
    first = {"start": 0, "len": 64 * KIB, "stripes": [["q0", 64 * KIB]]}
    rest = {"start": 64 * KIB, "len": 1024 * KIB, "stripes": [["h0", 64 * KIB]]}
    store = make_store([QUICK[0], slow], regions=[first, rest])
    said = job(store.data / "f", WIDE, "--store", store.root)
    assert "; sieved behind views: pieces of 64.0 KiB" in said.err and "(1 targets' figures)" in said.err, said.err


@pytest.mark.parametrize(
    ("lengths", "places", "extent", "told"),
    [
        # Two pieces close together, and the next copy far from them.
        ([4096, 4096], [0, 8192], 8 << 20, "sieved behind views: pieces of 4.0 KiB, 4.0 MiB between them"),
        # A short one before a long one.
        ([1024, 99 * 1024], [0, 2048], 128 * 1024, "sieved behind views: pieces of 50.0 KiB, 14.0 KiB between them"),
    ],
)
def test_pieces_are_told_as_they_are_on_average(
    lengths: list[int], places: list[int], extent: int, told: str, tmp_path: Path
) -> None:
    program = f"""
import sys
from mpi4py import MPI
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
pieces = MPI.BYTE.Create_hindexed({lengths}, {places}).Create_resized(0, {extent}).Commit()
file.Set_view(0, MPI.BYTE, pieces)
file.Read_at_all(0, bytearray(65536))
file.Close()
"""
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", program, tmp_path / "f"]
    said = stripewise("run", "--engine", "--explain", "--", *command)
    assert told in said.err, said.err


def test_writes_of_many_small_pieces_begin_collective(make_store: Maker) -> None:
    """Where processes wait for their turns on one processor, and a target for a start-up of each piece."""
    store = make_store([Target(f"h{number}", "hdd", "emulated", 0, 0.001, 1e-8) for number in range(2)])
    one = str(min(os.sched_getaffinity(0)))
    shape = ("--pattern", "strided", "--request-size", "4KiB", "--file-size", "96KiB", "--phases", "write,check")
    for pieces, why in (("64", "writes are of so many small pieces"), ("4", "there are more processes than")):
        command = mpiio_command(3, store.data / pieces, "--collective", *shape, "--pieces", pieces)
        options = ("--store", store.root, "--engine", "--explain")
        said = stripewise("run", *options, "--", "taskset", "-c", one, *command)
        assert '"errors": 0' in said.out and f": {why}" in said.err, said.err


@pytest.fixture(scope="module")
def chance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random programs that check themselves, by the wheel's MPICH; many pieces are large enough to be read alone."""
    made, mpi = tmp_path_factory.mktemp("chance") / "chance", wheel()
    command = [str(mpi.compiler), "-O1", "-w", "-DSCALE=64", "-o", str(made), str(HERE / "chance.c")]
    subprocess.run(command, check=True, env=mpi.environment())
    return made


def wheel() -> Mpi:
    return next(mpi for mpi in kinds.installed() if mpi.name == "mpich-wheel")


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_random_programs_read_the_same_piece_by_piece(processes: int, chance: Path, make_store: Maker) -> None:
    """Views that change, with gaps in some processes alone, and hints meanwhile."""
    store, count = make_store(QUICK), 300 if SOAK else 16
    seed = os.environ.get("STRIPEWISE_SEED", "1")
    command = [*wheel().launcher, "-n", str(processes), chance, store.data / "data", seed, str(count)]
    environment = {**os.environ, "TMPDIR": str(store.data)}
    options = ("--store", store.root, "--engine", "--explain")
    said = stripewise("run", *options, "--", *command, env=environment, timeout_s=600)
    assert f"ok {count}\n" in said.out and "piece by piece behind views" in said.err
