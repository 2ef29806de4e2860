"""Collective calls of unmodified programs that all processes of a file make independently, or do not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kinds
import pytest
from kinds import Mpi
from rig import MPIEXEC, SOAK, Result, mpiio_command, stripewise

from stripewise.preloaded import OFF

HERE = Path(__file__).resolve().parent
MPIS = {mpi.name: mpi for mpi in kinds.installed()}
#: Random programs: of the wheel's MPICH, and of each other MPI.
PROGRAMS, FEWER = (1000, 500) if SOAK else (150, 40)
MIB = 1 << 20


@pytest.fixture(scope="module")
def chance(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], Path]:
    """Random programs that check themselves, by the compiler of an MPI."""
    place = tmp_path_factory.mktemp("chance")

    def made(mpi: Mpi) -> Path:
        program = place / mpi.name
        if not program.exists():
            command = [str(mpi.compiler), "-O1", "-w", "-o", str(program), str(HERE / "chance.c")]
            subprocess.run(command, check=True, env=mpi.environment())
        return program

    return made


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that lets the first process of MPICH's write late."""
    made = tmp_path_factory.mktemp("slow") / "slow.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, HERE / "slow.c"], check=True)
    return made


def profile_of(path: Path) -> dict[tuple[str, str], dict[str, object]]:
    return {(Path(each["file"]).name, each["op"]): each for each in json.loads(path.read_text())["files"]}


def job(tmp_path: Path, *options: str | Path, processes: int = 2, words: tuple[str, ...] = ()) -> Result:
    """A program whose requests interleave, all of its calls collective."""
    shape = ("--pattern", "strided", "--file-size", "8MiB", "--request-size", "32KiB", "--phases", "write,read,check")
    command = mpiio_command(processes, tmp_path / "data", "--collective", *shape, *words)
    return stripewise("run", "--engine", *options, "--", *command)


@pytest.mark.parametrize("name", MPIS)
def test_random_programs_do_the_same(name: str, chance: Callable[[Mpi], Path], tmp_path: Path) -> None:
    mpi = MPIS[name]
    plain = [] if "mpich" in name else ["plain"]
    seed = int(os.environ.get("STRIPEWISE_SEED", "1"))
    for processes in (2, 3):
        count = (PROGRAMS if name == "mpich-wheel" else FEWER) // (1 if processes == 2 else 3)
        command = [*mpi.launcher, "-n", str(processes), chance(mpi), tmp_path / "data", str(seed), str(count), *plain]
        environment = {**mpi.environment(), "TMPDIR": str(tmp_path)}
        said = stripewise("run", "--engine", "--explain", "--", *command, env=environment, timeout_s=600)
        assert f"ok {count}\n" in said.out
        # They were decided on.
        assert " made independently; " in said.err and ", 0 made independently" not in said.err


def test_what_others_have_just_written_is_read(chance: Callable[[Mpi], Path], slow: Path, tmp_path: Path) -> None:
    """And what an aggregator has been given is not overtaken: one process is late with all that it writes."""
    mpi = MPIS["mpich-wheel"]
    command = [*mpi.launcher, "-n", "2", chance(mpi), tmp_path / "data", "1", "400" if SOAK else "25"]
    said = stripewise("run", "--engine", "--", *command, env={**os.environ, "LD_PRELOAD": str(slow)})
    assert "ok " in said.out


def test_a_job_is_told_how_its_calls_were_made(tmp_path: Path) -> None:
    said = job(tmp_path, "--explain", "--by-rules")
    reads, writes = said.err.splitlines()
    assert reads == (
        f"stripewise: {tmp_path}/data: 256 collective read calls of 2 processes, 256 made independently; they began "
        "independent: reads are independent (IO-Engine's rule 3)"
    )
    assert writes == (
        f"stripewise: {tmp_path}/data: 256 collective write calls of 2 processes, 0 made independently; they began "
        "collective: views leave gaps for others' data (rule 7)"
    )
    said = job(tmp_path, "--dry-run")
    assert said.err.splitlines() == [
        f"stripewise: {tmp_path}/data: 256 collective {op} calls of 2 processes would begin {how}"
        for op, how in (
            ("read", "independent: reads are independent (IO-Engine's rule 3)"),
            ("write", "collective: views leave gaps for others' data (rule 7)"),
        )
    ]
    assert job(tmp_path).err == ""


def test_more_processes_than_processors_begin_independently(tmp_path: Path) -> None:
    """An exchange would wait for turns on them. One is all that these have."""
    one = min(os.sched_getaffinity(0))
    command = mpiio_command(3, tmp_path / "data", "--collective", "--pattern", "strided", "--file-size", "3MiB")
    said = stripewise("run", "--engine", "--explain", "--", "taskset", "-c", str(one), *command)
    assert said.err.count("there are more processes than processors") == 2


@pytest.mark.parametrize("way", ["enable", "disable"])
def test_what_a_hint_says_counts_more(tmp_path: Path, way: str) -> None:
    given = ("--hint", f"romio_cb_write={way}")
    said = job(tmp_path, "--explain", words=given)
    reads, writes = said.err.splitlines()
    assert (
        "256 made independently" in reads and ", 0 made independently; they began as CMD makes them: a hint" in writes
    )
    said = job(tmp_path, "--explain", "--override", "--by-rules", words=given)
    assert "views leave gaps for others' data (rule 7)" in said.err.splitlines()[1]
    deferred = ("--hint", "romio_no_indep_rw=true")
    said = job(tmp_path, "--explain", "--override", words=deferred)
    assert said.err.count(", 0 made independently; they began as CMD makes them: aggregators alone") == 2


def test_a_profile_is_followed_and_written_down(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    entry = {"file": f"{tmp_path}/data", "op": "write", "processes": 2, "mode": "independent", "other_costs": 1e6}
    profile.write_text(json.dumps({"version": 1, "files": [entry]}))
    said = job(tmp_path, "--explain", "--profile", profile)
    # What is known to be a million times as dear is not tried; one call may be too early for the decision.
    assert any(
        f"{count} made independently; they began so: the profile has it so" in said.err.splitlines()[1]
        for count in (256, 254)
    )
    assert profile_of(profile)["data", "write"] == entry
    # Of other numbers of processes it says nothing, and a run that compares nothing adds nothing.
    before = profile.read_text()
    said = job(tmp_path, "--explain", "--profile", profile, processes=1)
    assert "the profile has it so" not in said.err and profile.read_text() == before
    # Views with gaps begin collective, and are compared soon; on a busy machine one process may be done before that.
    profile.unlink()
    for _ in range(10):
        said = job(tmp_path, "--explain", "--profile", profile)
        if "; modes compared " in said.err.splitlines()[1]:
            break
    else:
        pytest.fail(said.err)
    found = profile_of(profile)["data", "write"]
    assert found["processes"] == 2 and float(str(found["other_costs"])) >= 1
    profile.write_text("{")
    said = stripewise("run", "--engine", "--profile", profile, "--", "true", code=1)
    assert said.err.count("\n") == 1 and f"{profile}: is no JSON" in said.err
    # What breaks meanwhile keeps nothing back that was asked for.
    profile.unlink()
    program = ["sh", "-c", f'echo "{{" > {profile}']
    said = stripewise("run", "--engine", "--explain", "--profile", profile, "--", *program)
    assert "no file was used" in said.err and f"nothing was written down: {profile}: is no JSON" in said.err


def test_nothing_is_decided_where_a_process_does_not_take_part(tmp_path: Path) -> None:
    """Of two programs of one job the second goes without the library; nor are calls of one process."""
    one = mpiio_command(1, tmp_path / "data", "--collective", "--file-size", "4MiB", "--pattern", "interleaved")
    words = one[one.index("-n") + 2 :]
    command = [MPIEXEC, "-n", "1", *words, ":", "-n", "1", "env", "-u", "LD_PRELOAD", f"{OFF}=1", *words]
    said = stripewise("run", "--engine", "--explain", "--", *command)
    assert "no file was used by collective calls of several processes of one machine" in said.err
    assert json.loads(said.out)["errors"] == 0
    said = stripewise("run", "--engine", "--explain", "--", *one)
    assert "no file was used by collective calls of several processes of one machine" in said.err


def test_jobs_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    """Two of them, on one file, whose processes have the same ranks; of other sizes each is told for itself."""
    words = ("--collective", "--pattern", "strided", "--file-size", "4MiB", "--request-size", "16KiB")
    more = ("--phases", "read", "--reads", "300", "--no-verify")
    stripewise("run", "--engine", "--", *mpiio_command(3, tmp_path / "data", *words, "--phases", "fill"))
    one = " ".join(map(str, mpiio_command(3, tmp_path / "data", *words, *more)))
    said = stripewise("run", "--engine", "--explain", "--", "sh", "-c", f"{one} & {one} & wait")
    assert said.out.count('"errors": 0') == 2
    assert "1,800 collective read calls of 3 processes in 2 opens" in said.err
    # Of other sizes each for itself.
    two = one.replace("-n 3", "-n 2", 1)
    said = stripewise("run", "--engine", "--explain", "--", "sh", "-c", f"{one} && {two}")
    assert "900 collective read calls of 3 processes, " in said.err
    assert "600 collective read calls of 2 processes, " in said.err


def test_ends_of_a_job_are_as_without(tmp_path: Path) -> None:
    """Its exit status, an abort, and files that are left open; nothing stays in memory."""
    program = """
import os, sys
from mpi4py import MPI
world, how = MPI.COMM_WORLD, sys.argv[2]
if world.rank == 0:
    print(os.environ.get("STRIPEWISE_ENGINE_BOARD", ""), flush=True)
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for turn in range(20):
    file.Write_at_all((turn * world.size + world.rank) * 4096, bytes(4096))
if how == "status":
    file.Close()
    MPI.Finalize()
    os._exit(7)
if how == "abort" and world.rank == 1:
    world.Abort(9)
if how == "abort":
    world.Barrier()
if how == "open":
    MPI.Finalize()
    os._exit(0)
if how == "killed":
    os.kill(os.getpid(), 9) if world.rank == 1 else world.Barrier()
"""
    for how in ("status", "abort", "open", "killed"):
        command = [str(MPIEXEC), "-n", "2", sys.executable, "-c", program, str(tmp_path / how), how]
        alone = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        said = stripewise("run", "--engine", "--", *command, code=None)
        assert said.code == alone.returncode, how
        board = Path(said.out.splitlines()[0])
        assert board.is_absolute() and not board.exists()
        assert (tmp_path / how).stat().st_size == 20 * 2 * 4096


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that a careless engine would break, by the wheel's MPICH: other MPIs fail in some by themselves."""
    made, mpi = tmp_path_factory.mktemp("ways") / "ways", MPIS["mpich-wheel"]
    command = [str(mpi.compiler), "-O1", "-w", "-o", str(made), str(HERE / "ways.c")]
    subprocess.run(command, check=True, env=mpi.environment())
    return made


@pytest.mark.parametrize("way", ["gaps", "alone", "spawn", "jump", "retry", "none", "contexts", "close"])
def test_nothing_is_lost_and_nobody_waits(way: str, ways: Path, tmp_path: Path) -> None:
    """Bytes in gaps of others' views, spawned worlds, jumps out of calls, errors of one process, few contexts."""
    count = "2" if way in ("spawn", "contexts") else "3"
    command = [MPIEXEC, "-n", count, ways, way, tmp_path / "data"]
    said = stripewise("run", "--engine", "--explain", "--", *command, timeout_s=100)
    assert f"end {way}\n" in said.out
    # They were decided on, but for the world that was spawned.
    assert " collective write calls of " in said.err


def test_a_view_that_was_refused_is_none(ways: Path, tmp_path: Path) -> None:
    """The one before is in force; one in its place is agreed on anew. On one processor writes begin independent."""
    one = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(one), MPIEXEC, "-n", "3", ways, "refused", tmp_path / "data"]
    said = stripewise("run", "--engine", "--explain", "--", *command, timeout_s=60)
    assert "end refused\n" in said.out and "there are more processes than processors" in said.err


def test_filetypes_of_many_gigabytes_are_not_read_piece_by_piece(ways: Path, tmp_path: Path) -> None:
    """ROMIO would read other bytes from 4 GiB of one copy on."""
    data = tmp_path / "data"
    said = stripewise("run", "--engine", "--explain", "--", MPIEXEC, "-n", "2", ways, "far", data, timeout_s=100)
    data.unlink()
    assert "end far\n" in said.out and "sieved behind views: pieces of 1.0 MiB" in said.err


def test_file_systems_without_locks_need_none(ways: Path, tmp_path: Path) -> None:
    library = tmp_path / "nolock.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "nolock.c"], check=True)
    shape = ("--collective", "--pattern", "strided", "--file-size", "16MiB", "--phases", "write,read")
    env = {**os.environ, "LD_PRELOAD": str(library)}
    for _ in range(5):
        command = mpiio_command(2, tmp_path / "data", *shape)
        said = stripewise("run", "--engine", "--explain", "--", *command, env=env)
        assert json.loads(said.out)["errors"] == 0
        # Where the machine is busy all of a run may pass before an independent call has been tried.
        written = re.search(r"collective write calls of .* (\d+) made independently", said.err)
        if written is not None and written[1] != "0":
            return
    raise AssertionError(said.err)


def test_writes_that_nothing_sieves_change_no_hint(tmp_path: Path) -> None:
    """Behind views without gaps ROMIO is told nothing; by one with gaps, or whose copies lie in each other, it is."""
    program = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
size, rank, piece = world.size, world.rank, bytes([65 + world.rank]) * 4
def told(file):
    info = file.Get_info()
    return info.Get("romio_ds_write")
def written(name, filetype):
    file = MPI.File.Open(world, sys.argv[1] + name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    if filetype is not None:
        file.Set_view(0, MPI.BYTE, filetype.Commit())
    for call in range(8):
        file.Write_at_all(4 * (call * size + rank), piece)
    said = told(file)
    file.Close()
    return said
gaps = MPI.BYTE.Create_vector(2, 4, 8)
within = MPI.BYTE.Create_indexed([4, 4], [0, 12]).Create_resized(0, 8)
whole = MPI.BYTE.Create_contiguous(16)
said = [written(str(n), view) for n, view in enumerate((None, whole, gaps, within))]
if rank == 0:
    print(*said)
"""
    count = (os.cpu_count() or 1) + 1
    said = stripewise(
        "run",
        "--engine",
        "--explain",
        "--",
        MPIEXEC,
        "-n",
        str(count),
        sys.executable,
        "-c",
        program,
        tmp_path / "data",
    )
    assert said.out.split() == ["automatic", "automatic", "disable", "disable"]
    assert said.err.count(f"{8 * count} made independently") == 4, said.err


def test_many_files_and_files_of_single_processes(tmp_path: Path) -> None:
    """As many open at once as are not followed any more, a thousand one behind the other, and one of each process."""
    program = """
import sys
from mpi4py import MPI
world, place = MPI.COMM_WORLD, sys.argv[1]
mode = MPI.MODE_CREATE | MPI.MODE_RDWR
def use(comm, name, keep=False):
    file = MPI.File.Open(comm, f"{place}/{name}", mode)
    for turn in range(3):
        file.Write_at_all((turn * comm.size + comm.rank) * 8, b"%08d" % (turn * comm.size + comm.rank))
    got = bytearray(24 * comm.size)
    world.Barrier()
    file.Read_at_all(0, got)
    assert got == b"".join(b"%08d" % n for n in range(3 * comm.size)), name
    return file if keep else file.Close()
use(MPI.COMM_SELF, f"own{world.rank}")
for number in range(1001):
    use(world, f"many{number % 7}")
kept = [use(world, f"kept{number}", True) for number in range(100)]
for file in kept:
    file.Close()
use(world, "many0")
"""
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", program, tmp_path]
    said = stripewise("run", "--engine", "--explain", "--", *command)
    assert f"{tmp_path}/many0: 864 collective write calls of 2 processes in 144 opens" in said.err
    assert f"{tmp_path}/own0" not in said.err


def test_tools_see_the_calls_that_are_made(tmp_path: Path) -> None:
    """What a tool between program and MPI would count is what MPI is asked for."""
    tool = tmp_path / "tool.so"
    source = tmp_path / "tool.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\nstatic int n;\n"
        "int MPI_File_read_at(MPI_File f, MPI_Offset at, void *to, int count, MPI_Datatype type, MPI_Status *status)\n"
        "{ n++; return PMPI_File_read_at(f, at, to, count, type, status); }\n"
        'int MPI_Finalize(void) { fprintf(stderr, "tool: %d\\n", n); return PMPI_Finalize(); }\n'
    )
    mpi = MPIS["mpich-wheel"]
    subprocess.run([str(mpi.compiler), "-shared", "-fPIC", "-o", tool, source], check=True, env=mpi.environment())
    command = mpiio_command(2, tmp_path / "data", "--collective", "--file-size", "4MiB", "--request-size", "64KiB")
    environment = {**os.environ, "LD_PRELOAD": str(tool)}
    said = stripewise("run", "--engine", "--by-rules", "--", *command, env=environment)
    assert said.err.count("tool: 32\n") == 2


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    for words, text in (
        (["--explain"], "--explain: needs --engine"),
        (["--profile", tmp_path / "p"], "--profile: needs --engine"),
        (["--engine", "--dry-run", "--by-rules"], "--dry-run: changes no call"),
        (["--engine", "--by-rules", "--profile", tmp_path / "p"], "--profile: is about prices"),
        (["--engine", "--profile"], "--profile: has no file behind it"),
        (["--engine", "--profile", tmp_path], "--profile: "),
        ([], "run: give --store, --trace or --engine"),
    ):
        extra = ["--trace", tmp_path / "t"] if words and "--engine" not in words else []
        said = stripewise("run", *words, *extra, "--", "true", code=2)
        assert said.err.count("\n") == 1 and text in said.err
