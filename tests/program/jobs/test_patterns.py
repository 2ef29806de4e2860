"""Patterns of a real program: the MPI workload is told as what it does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rig import mpiio_command, stripewise

SIZES = ("--file-size", "8MiB", "--request-size", "64KiB", "--phases", "write,read")


def traced(place: Path, *command: str | Path) -> Path:
    """The collected trace of a program."""
    said = stripewise("run", "--trace", place, "--", *command)
    assert said.code == 0
    stripewise("collect", place)
    return place


def patterns(trace: Path, file: Path) -> list[dict[str, object]]:
    [found] = json.loads(stripewise("patterns", trace, "--file", str(file), "--json").out)["files"]
    return list(found["patterns"])


@pytest.mark.parametrize(
    "pattern, spatial, start",
    [("sequential", "contiguous", "r x 2 MiB"), ("interleaved", "strided", "r x 64 KiB")],
)
def test_the_workload_is_told_as_what_it_does(scratch: Path, pattern: str, spatial: str, start: str) -> None:
    file = scratch / "out.dat"
    command = mpiio_command(4, file, "--pattern", pattern, *SIZES)
    file.touch()
    trace = traced(scratch / "trace", *command)
    found = patterns(trace, file)
    said = [(each["operation"], each["spatial"], each["records"]) for each in found]
    assert said == [("write", spatial, 128), ("read", spatial, 128)]
    assert all("Each of 4 ranks " in str(each["sentence"]) for each in found), found
    assert all(start in str(each["sentence"]) and each["exact_cover"] for each in found), found
    # The launcher's own files are told by process, where they are asked for.
    assert "Process " not in stripewise("patterns", trace).out
    assert "Process " in stripewise("patterns", trace, "--all-files").out


def test_runs_of_the_workload_predict_another(scratch: Path) -> None:
    file = scratch / "out.dat"
    traces = {}
    for processes in (2, 3, 4):
        command = mpiio_command(processes, file, "--pattern", "interleaved", *SIZES, "--requests", "16")
        traces[processes] = traced(scratch / f"p{processes}", *command)
    words = [
        "patterns",
        "predict",
        traces[2],
        traces[3],
        "--processes",
        "4",
        "--file",
        str(file),
        "-o",
        scratch / "out",
    ]
    stripewise(*words)
    requests = []
    for place in (scratch / "out", traces[4]):
        rows = pq.read_table(place / "trace.parquet").to_pylist()
        moved = [row for row in rows if row["op"] in ("read", "write") and row["file"] == str(file) and row["done"] > 0]
        requests.append([(row["rank"], row["op"], row["offset"], row["done"]) for row in moved])
    assert requests[0] == requests[1]
    assert "no difference" in stripewise("patterns", "diff", scratch / "out", traces[4], "--file", str(file)).out
