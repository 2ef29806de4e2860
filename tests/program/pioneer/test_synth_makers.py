"""Statistics know who makes a request: a job in which the root and odd ranks do things alone, made again larger."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
from kinds import VENV
from rig import stripewise

from stripewise.pioneer.comparison.run_operations import RunOperations, read_operations

SOURCE = Path(__file__).with_name("makers.c")


def traced(place: Path, program: Path, processes: int) -> Path:
    place.mkdir()
    stripewise("run", "--trace", place / "t", "--", VENV / "mpiexec", "-n", str(processes), program, place)
    stripewise("collect", place / "t")
    return place / "t"


def made_by(run: RunOperations, rank: int) -> dict[str, tuple[int, int]]:
    """How often a rank makes each operation, and the bytes that it moves with it."""
    mine = np.flatnonzero(run.rank == rank)
    counts = Counter(run.name[mine].tolist())
    return {
        run.names[each]: (count, int(run.bytes[mine][run.name[mine] == each].sum())) for each, count in counts.items()
    }


def test_each_rank_of_a_larger_job_makes_what_it_makes_in_the_program(scratch: Path) -> None:
    program = scratch / "makers"
    subprocess.run([VENV / "mpicc", "-O1", "-Wall", "-Werror", "-o", program, SOURCE], check=True)
    profile, path = scratch / "profile.json", scratch / "out.swp"
    stripewise("characterize", traced(scratch / "four", program, 4), "-o", profile)
    stripewise("synth", profile, "-o", path, "--by", "statistics", "-n", "8")
    (scratch / "d").mkdir()
    stripewise("play", path, "-n", "8", "--directory", scratch / "d", "--trace", scratch / "s")
    stripewise("collect", scratch / "s")
    original = read_operations(traced(scratch / "eight", program, 8))
    synthetic = read_operations(scratch / "s")
    for rank in range(8):
        assert made_by(synthetic, rank) == made_by(original, rank)
    of = [made_by(original, rank) for rank in range(3)]
    assert of[0]["mpi_write_at"][0] == of[1]["mpi_write_at"][0] + 3
    assert (of[0]["stat"][0], of[1]["stat"][0], of[2].get("stat")) == (3, 9, None)
