"""A real job of a regular and an irregular file becomes a workload of more processes, each file by what fits it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from kinds import VENV
from rig import stripewise

SOURCE = Path(__file__).with_name("half_regular.c")
#: So many that the requests of all files are too irregular together for patterns.
STEPS = 5000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("half-regular") / "half_regular"
    subprocess.run([VENV / "mpicc", "-O1", "-Wall", "-Werror", "-o", out, SOURCE], check=True)
    return out


def traced(program: Path, place: Path, processes: int) -> Path:
    """The collected trace of a run of its own directory."""
    place.mkdir()
    command = (VENV / "mpiexec", "-n", str(processes), program, place, str(STEPS))
    stripewise("run", "--trace", place / "trace", "--", *command)
    stripewise("collect", place / "trace")
    return place / "trace"


def writes(trace: Path, file: str, layer: str) -> dict[int, Any]:
    """By rank offsets and sizes of a file's writes, in their order."""
    rows = pq.read_table(trace / "trace.parquet", columns=["rank", "op", "layer", "file", "offset", "done"])
    is_mine = pc.and_(pc.match_substring(rows["file"], file), pc.equal(rows["layer"], layer))
    rows = rows.filter(pc.and_(is_mine, pc.match_substring(rows["op"], "write")))
    rank = rows["rank"].to_numpy()
    numbers = np.stack([rows["offset"].to_numpy(), rows["done"].to_numpy()], axis=1)
    return {each: numbers[rank == each] for each in np.unique(rank).tolist()}


def test_a_regular_file_is_written_as_the_program_would_at_twice_the_processes(program: Path, scratch: Path) -> None:
    small, large = traced(program, scratch / "small", 4), traced(program, scratch / "large", 8)
    profile, path = scratch / "profile.json", scratch / "workload.swp"
    stripewise("characterize", small, "-o", profile)
    said = stripewise("synth", profile, "-n", "8", "-o", path).out
    assert "symbolic patterns of the regular files and statistics of the others" in said
    assert "expected by mixture" in said and "expected by statistics" in said
    told = json.loads(stripewise("synth", profile, "-n", "8", "-o", path, "--json").out)
    assert (told["by"], sorted(told["expected"])) == ("mixture", ["mixture", "statistics"])
    assert [(each["file"], each["class"], each["by"]) for each in told["ways"]] == [
        ("strided.dat", "shared", "symbolic"), ("scattered.{rank}", "private", "statistics"),
    ]  # fmt: skip

    played = scratch / "played"
    played.mkdir()
    stripewise("play", path, "-n", "8", "--directory", played, "--as-fast-as-possible", "--trace", scratch / "trace")
    stripewise("collect", scratch / "trace")
    original, synthetic = (writes(each, "strided.dat", "mpi") for each in (large, scratch / "trace"))
    assert list(original) == list(synthetic) == list(range(8))
    for rank, rows in original.items():
        assert np.array_equal(rows, synthetic[rank]) and len(rows) == STEPS
    original, synthetic = (writes(each, "scattered.", "posix") for each in (large, scratch / "trace"))
    for rank, rows in original.items():
        assert abs(len(synthetic[rank]) / len(rows) - 1) < 0.04
        assert abs(synthetic[rank][:, 1].sum() / rows[:, 1].sum() - 1) < 0.04
    compared = json.loads(stripewise("compare", large, scratch / "trace", "--json").out)
    counts = {each["operation"]: each["difference"] for each in compared["counts"]}
    assert counts["mpi_write_at"] == 0 and counts["pwrite"] < 0.04
