"""New files in the stripes that a job asks MPI-IO for, and what is said of those that it does not get."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kinds
import pytest
import script
from kinds import Mpi
from rig import MPIEXEC, Maker, Result, Store, dirs, mpiio_command, stripewise

MPIS = {mpi.name: mpi for mpi in kinds.installed()}
KIB, MIB = 1 << 10, 1 << 20


def hints(**given: object) -> list[str]:
    return [word for key, value in given.items() for word in ("--hint", f"{key}={value}")]


def stripes_of(file: Path) -> list[list[object]]:
    """Of a file in one region."""
    (told,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
    (region,) = told["regions"]
    return list(region["stripes"])


def job(
    store: Store, name: str, *words: str, engine: bool = True, **given: object
) -> tuple[Result, list[list[object]]]:
    """What a job of three processes said that made a file, and the stripes of this."""
    shape = ("--file-size", "1MiB", "--request-size", "64KiB", "--phases", "write,read")
    command = mpiio_command(3, store.data / name, *shape, *hints(**given))
    options = ["--engine"] if engine else []
    said = stripewise("run", "--store", store.root, *options, *words, "--", *command)
    return said, stripes_of(store.data / name)


def test_a_new_file_has_the_stripes_that_are_asked_for(make_store: Maker) -> None:
    store = make_store(dirs(5))
    said, cycle = job(store, "both", striping_factor=2, striping_unit=MIB, start_iodevice=3)
    assert cycle == [["t3", MIB], ["t4", MIB]]
    assert f"stripewise: {store.root}: new files have 2 stripe(s) of {MIB} bytes, as hints of MPI ask for\n" in said.err
    _, cycle = job(store, "round", striping_factor=3, romio_lustre_start_iodevice=4, start_iodevice=-1)
    assert [name for name, _ in cycle] == ["t4", "t0", "t1"]
    said, cycle = job(store, "many", striping_factor=64, striping_unit=5000, start_iodevice=7)
    assert len(cycle) == 5 and {width for _, width in cycle} == {8 * KIB}
    assert (
        "new files have 5 stripe(s) of 8192 bytes, as hints of MPI ask for (of more there are no targets)" in said.err
    )
    store.fsck()


def test_without_hints_or_engine_a_file_lies_as_any_other(make_store: Maker) -> None:
    store = make_store(dirs(3))
    said, cycle = job(store, "none")
    assert sorted(cycle) == [[f"t{number}", 64 * KIB] for number in range(3)] and "stripe(s)" not in said.err
    said, cycle = job(store, "off", engine=False, striping_factor=1)
    assert len(cycle) == 3 and "stripe(s)" not in said.err
    # A file that is there stays as it is.
    said, cycle = job(store, "off", striping_factor=1)
    assert len(cycle) == 3 and "stripe(s)" not in said.err


def test_hints_that_are_no_numbers_are_told(make_store: Maker) -> None:
    """However long: to ask MPICH for a value that is longer than the room for it ends the job."""
    store = make_store(dirs(3))
    ignored = (
        f"stripewise: {store.root}: a hint of MPI for the stripes of new files is no whole number, and was ignored\n"
    )
    for number, value in enumerate(("two", "-2", 1 << 70, "0" * 40 + "1", "9" * 300)):
        said, cycle = job(store, f"odd{number}", striping_factor=value, striping_unit=128 * KIB)
        assert len(cycle) == 3 and {width for _, width in cycle} == {128 * KIB} and ignored in said.err
    said, cycle = job(store, "blank", striping_factor=" 2 ", start_iodevice=-1)
    assert len(cycle) == 2 and ignored not in said.err


def test_what_somebody_has_given_counts_more(make_store: Maker) -> None:
    store = make_store(dirs(3))
    layout = store.base / "layout.json"
    layout.write_text('{"regions": [{"start": 0, "len": 4194304, "stripes": [["t1", 131072]]}]}')
    stripewise("store", "template", "add", store.root, f"{store.data}/given*", "--layout", layout)
    said, cycle = job(store, "given", striping_factor=2)
    assert cycle == [["t1", 128 * KIB]]
    assert "new files have not the stripes that hints of MPI ask for: a kept plan or a rule of the store" in said.err


def test_a_target_without_room_is_not_taken(make_store: Maker) -> None:
    small, *others = dirs(3)
    store = make_store([type(small)(**{**vars(small), "capacity_bytes": 8 * MIB}), *others])
    said, cycle = job(store, "f", striping_factor=2, striping_unit=64 * MIB, start_iodevice=0)
    assert "a target of them has no room for a stripe" in said.err and max(width for _, width in cycle) < 64 * MIB
    # Over all of them it is spread by their room, whatever the first one.
    for given in ({"striping_unit": 64 * KIB}, {"striping_factor": 3, "start_iodevice": 0}):
        said, _ = job(store, f"g{len(given)}", **given)
        assert "its targets have unlike room, so they are spread by that" in said.err
    store.fsck()


def test_stripes_of_many_files_are_told_once_and_of_files_that_are_made(make_store: Maker) -> None:
    program = """
import sys
from mpi4py import MPI
info = MPI.Info.Create()
info.Set("striping_factor", "2")
info.Set("start_iodevice", "-1")
for name in [f"{sys.argv[1]}/{number}" for number in range(40)] + ["/nowhere/f"]:
    try:
        MPI.File.Open(MPI.COMM_SELF, name, MPI.MODE_CREATE | MPI.MODE_RDWR, info).Close()
    except MPI.Exception:
        assert name == "/nowhere/f"
"""
    store = make_store(dirs(4))
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", program, store.data]
    said = stripewise("run", "--store", store.root, "--engine", "--", *command)
    assert said.err.count("as hints of MPI ask for") == 1
    found = [stripes_of(store.data / f"{number}") for number in range(40)]
    # -1 is any first one.
    assert {len(each) for each in found} == {2} and {each[0][0] for each in found} == {"t0", "t1", "t2", "t3"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], list[str]]:
    """The script's interpreter in C, by the compiler of each MPI."""
    place = tmp_path_factory.mktemp("striping")
    return lambda mpi: kinds.interpreter(mpi, place)


@pytest.mark.parametrize("name", MPIS)
def test_every_mpi_is_asked(name: str, compiled: Callable[[Mpi], list[str]], make_store: Maker, tmp_path: Path) -> None:
    store, mpi = make_store(dirs(4)), MPIS[name]
    calls = script.Script(2)
    calls.open("world", "w", "striping_unit", str(256 * KIB))
    calls.move("write_at", [4, 4], script.INT, [0, 16])
    calls.all("close")
    for rank, lines in enumerate(calls.lines):
        (tmp_path / f"script.{rank}").write_text("".join(f"{line}\n" for line in lines))
    for data, options, width in (("first", ["--engine"], 256 * KIB), ("second", [], 64 * KIB)):
        command = [*mpi.launcher, "-n", "2", *compiled(mpi), store.data / data, tmp_path / "script"]
        stripewise("run", "--store", store.root, *options, "--", *command, env=mpi.environment())
        assert [each for _, each in stripes_of(store.data / data)] == [width] * 4


def test_what_an_open_asks_for_is_no_other_file_s(make_store: Maker) -> None:
    program = """
import sys
from mpi4py import MPI
info = MPI.Info.Create()
info.Set("striping_factor", "1")
for name, given in (("one", info), ("two", MPI.INFO_NULL)):
    file = MPI.File.Open(MPI.COMM_WORLD, f"{sys.argv[1]}/{name}", MPI.MODE_CREATE | MPI.MODE_RDWR, given)
    file.Write_at_all(MPI.COMM_WORLD.rank * 8, b"12345678")
    open(f"{sys.argv[1]}/{name}-{MPI.COMM_WORLD.rank}", "w").write("x")
    file.Close()
"""
    store = make_store(dirs(4))
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", program, store.data]
    stripewise("run", "--store", store.root, "--engine", "--", *command)
    names = ("one", "two", "one-0", "one-1", "two-0", "two-1")
    assert [len(stripes_of(store.data / name)) for name in names] == [1, 4, 4, 4, 4, 4]
    assert store.program("cat", store.data / "one").out == "12345678" * 2


JUMPS = """
#include <fcntl.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>
static jmp_buf out;
static void jump(MPI_File *file, int *code, ...) { longjmp(out, 1); }
static int make(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    return fd < 0 || write(fd, "x", 1) != 1 || close(fd);
}
int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    MPI_Info_set(info, "striping_factor", "1");
    MPI_File_create_errhandler(jump, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    char missing[4096];
    snprintf(missing, sizeof missing, "%s/missing", argv[1]);
    if (!setjmp(out)) return MPI_File_open(MPI_COMM_SELF, missing, MPI_MODE_RDWR, info, &file) + 1;
    int failed = make(argv[1], "after") || make(argv[1], "again");
    MPI_Finalize();
    return failed;
}
"""


def test_a_call_that_is_left_by_a_jump_asks_for_no_other_file(make_store: Maker, tmp_path: Path) -> None:
    store, mpi = make_store(dirs(4)), MPIS["mpich-wheel"]
    (tmp_path / "jumps.c").write_text(JUMPS)
    command = [str(mpi.compiler), "-o", str(tmp_path / "jumps"), str(tmp_path / "jumps.c")]
    subprocess.run(command, check=True, env=mpi.environment())
    stripewise("run", "--store", store.root, "--engine", "--", MPIEXEC, "-n", "1", tmp_path / "jumps", store.data)
    assert [len(stripes_of(store.data / name)) for name in ("after", "again")] == [4, 4]


def test_a_new_file_s_stripes_lie_between_the_requests_and_the_regions_that_its_user_tells_of(
    make_store: Maker,
) -> None:
    store = make_store(dirs(3))
    meant = {
        "read": ("RS=16KiB RE=1MiB read=90", 512 * KIB),
        "written": ("RS=16KiB,RE=1MiB,read=10", 64 * KIB),
        "large": ("RE=64MiB RS=1048576 read=0", 2 * MIB),
        "small": ("RS=4KiB RE=32KiB read=0", 16 * KIB),
    }
    for name, (text, width_bytes) in meant.items():
        said, cycle = job(store, name, stripewise_intent=text)
        assert len(cycle) == 3 and {width for _, width in cycle} == {width_bytes}, (name, cycle)
        assert f"new files have 3 stripe(s) of {width_bytes} bytes, as hints of MPI ask for\n" in said.err
    # Nothing lies between, or the stripes are said outright.
    _, cycle = job(store, "none", stripewise_intent="RS=1MiB RE=1MiB read=90")
    assert {width for _, width in cycle} == {64 * KIB}
    _, cycle = job(store, "outright", stripewise_intent="RS=16KiB RE=1MiB read=90", striping_unit=32 * KIB)
    assert {width for _, width in cycle} == {32 * KIB}
    _, cycle = job(store, "off", engine=False, stripewise_intent="RS=16KiB RE=1MiB read=90")
    assert {width for _, width in cycle} == {64 * KIB}
    for number, text in enumerate(("reads", "RS=16KiB RE=1MiB", "x" * 300)):
        said, cycle = job(store, f"odd{number}", stripewise_intent=text)
        assert {width for _, width in cycle} == {64 * KIB}
        assert "stripewise_intent is not as RS=64KiB RE=16MiB read=90, and was ignored" in said.err
    store.fsck()
