"""Patterns of real programs: the MPI workload is told as what it does, and fio does what `patterns --as fio` prints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rig import execute, mpiio_command, stripewise

SIZES = ("--file-size", "8MiB", "--request-size", "64KiB", "--phases", "write,read", "--requests", "16")


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
    [("sequential", "contiguous", "r x 1 MiB"), ("interleaved", "strided", "r x 64 KiB")],
)
def test_the_workload_is_told_as_what_it_does(scratch: Path, pattern: str, spatial: str, start: str) -> None:
    file = scratch / "out.dat"
    command = mpiio_command(4, file, "--pattern", pattern, *SIZES)
    file.touch()
    trace = traced(scratch / "trace", *command)
    found = patterns(trace, file)
    said = [(each["operation"], each["spatial"], each["records"]) for each in found]
    assert said == [("write", spatial, 64), ("read", spatial, 64)]
    assert all(start in str(each["sentence"]) and each["exact_cover"] for each in found), found


def test_runs_of_the_workload_predict_another(scratch: Path) -> None:
    file = scratch / "out.dat"
    traces = {}
    for processes in (2, 3, 4):
        command = mpiio_command(processes, file, "--pattern", "interleaved", *SIZES)
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


FIO = {
    "contiguous": ("--rw=write", "--bs=16k", "--size=512k"),
    "strided": ("--rw=write:48k", "--bs=16k", "--size=2m", "--io_size=512k"),
    "ranks": ("--rw=write", "--bs=16k", "--size=256k", "--numjobs=3", "--offset_increment=256k"),
    "segmented": ("--rw=write", "--bs=16k", "--size=2m", "--io_size=512k", "--zonemode=strided", "--zonesize=64k",
                  "--zonerange=64k", "--zoneskip=192k"),
    "backward": ("--rw=write:-32k", "--bs=16k", "--size=512k", "--io_size=512k"),
    "repeated": ("--rw=write", "--bs=4k", "--size=4k", "--io_size=256k"),
    "random": ("--rw=randwrite", "--bs=4k", "--size=1m", "--io_size=256k", "--norandommap"),
}  # fmt: skip


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", FIO)
def test_fio_does_what_is_printed_for_it(scratch: Path, name: str) -> None:
    file = scratch / "fio.dat"
    file.write_bytes(bytes(4 << 20))
    common = ("--ioengine=psync", "--invalidate=0", "--fallocate=none", "--thread=0", "--name=j", f"--filename={file}")
    first = traced(scratch / "first", "fio", *common, *FIO[name])
    printed = stripewise("patterns", first, "--file", str(file), "--as", "fio").out
    assert "#" not in printed, printed
    job = scratch / "job.fio"
    job.write_text(printed)
    second = traced(scratch / "second", "fio", "--fallocate=none", job)
    facts = ("operation", "spatial", "records", "bytes", "request_bytes", "repetitions", "exact_cover")
    told = [[{key: each[key] for key in facts} for each in patterns(trace, file)] for trace in (first, second)]
    assert told[0] == told[1], printed
    if name != "random":
        spans = [[each["span"] for each in patterns(trace, file)] for trace in (first, second)]
        assert spans[0] == spans[1], printed
    assert execute(["fio", "--parse-only", job]).code == 0
