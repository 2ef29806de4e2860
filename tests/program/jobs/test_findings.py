"""`show` of five real MPI runs: what is found is the true cause of each, and none of another's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rig import MPIEXEC, mpiio_command, stripewise

STORM = """
import os, sys
rank, place = os.environ["PMI_RANK"], sys.argv[1]
for number in range(150):
    path = f"{place}/part.{rank}.{number}"
    with open(path, "wb") as part:
        part.write(b"x" * 100)
    os.stat(path)
"""
COLLECTIVE = ("--phases", "write", "--collective", "--hint", "cb_buffer_size=65536", "--hint", "romio_cb_write=enable")
RUNS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "contiguous, big": (
        ("--pattern", "sequential", "--file-size", "64MiB", "--request-size", "4MiB", "--phases", "write,read"),
        [],
    ),
    "tiny, shared, strided": (
        ("--pattern", "interleaved", "--file-size", "2MiB", "--request-size", "2KiB", "--phases", "write"),
        ["interleaved"],
    ),
    "collective, a bad buffer": (
        ("--pattern", "interleaved", "--file-size", "16MiB", "--request-size", "64KiB", *COLLECTIVE),
        ["collective_buffer"],
    ),
    "collective, pieces of large requests, a bad buffer": (
        ("--pattern", "strided", "--pieces", "64", "--file-size", "32MiB", "--request-size", "1MiB",
         "--phases", "write", "--collective", "--hint", "cb_buffer_size=16384", "--hint", "romio_cb_write=enable",
         "--hint", "cb_nodes=1"),
        ["collective_buffer"],
    ),
    "random reads of a hot region": (
        ("--pattern", "zipf", "--alpha", "1.2", "--file-size", "256MiB", "--request-size", "16KiB",
         "--requests", "1000", "--phases", "fill,read"),
        ["hot_region"],
    ),
    "metadata": ((), ["metadata"]),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_the_true_cause_is_found_and_no_other(scratch: Path, name: str) -> None:
    words, expected = RUNS[name]
    trace, file = scratch / "trace", scratch / "out.dat"
    if words:
        command = mpiio_command(4, file, *words)
        file.touch()
    else:
        (scratch / "parts").mkdir()
        command = [MPIEXEC, "-n", "4", sys.executable, "-c", STORM, scratch / "parts"]
    assert stripewise("run", "--trace", trace, "--", *command).code == 0
    stripewise("collect", trace)
    said = json.loads(stripewise("show", trace, "--json").out)
    assert [each["cause"] for each in said["findings"]] == expected
    for found in said["findings"]:
        assert found["evidence"] and found["advice"] and 0 < found["price"]["low"] <= found["price"]["high"]
    page = stripewise("show", trace).out
    assert ("findings: none" in page) == (not expected)


@pytest.mark.parametrize(
    ("pieces", "advice"),
    [
        (64, "use collective calls, which join the pieces of all processes"),
        (
            2,
            "use collective calls, or set the hint romio_ds_read to disable "
            "(automatic was in force, not by the program)",
        ),
    ],
)
def test_sieving_is_done_without_only_where_pieces_are_large(scratch: Path, pieces: int, advice: str) -> None:
    trace, file = scratch / "trace", scratch / "out.dat"
    words = ("--pattern", "strided", "--pieces", str(pieces), "--request-size", "256KiB", "--file-size", "16MiB")
    stripewise("run", "--trace", trace, "--", *mpiio_command(4, file, *words, "--phases", "fill,read"))
    stripewise("collect", trace)
    found = json.loads(stripewise("show", trace, "--json").out)["findings"]
    copied = "; where later runs read the same, 'stripewise replicate' copies it"
    assert [each["advice"] for each in found if each["cause"] == "sieving"] == [advice + copied]


def test_a_program_that_reads_by_maps_alone_is_told_so(scratch: Path) -> None:
    trace, file = scratch / "mapped", scratch / "data.bin"
    file.write_bytes(bytes(4 << 20))
    script = "import mmap, sys; f = open(sys.argv[1], 'rb'); mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:]"
    stripewise("run", "--trace", trace, "--", sys.executable, "-c", script, file)
    said = stripewise("collect", trace).out
    told = "1 file was mapped (4.0 MiB): what a program reads and writes through maps is not in the trace"
    assert f"{told}\nnothing to plan: no read or write moved a byte\n" in said and "next:" not in said, said
    assert told in " ".join(stripewise("show", trace).out.split())
