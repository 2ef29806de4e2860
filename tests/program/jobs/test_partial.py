"""A trace directory that is full: the program does not notice, and every verb says that the trace is not the run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import mpiio_command, parse_mpiio, stripewise

JOB = ("--file-size", "8MiB", "--request-size", "2KiB", "--region-size", "64KiB", "--pattern", "interleaved")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 KiB: of some logs, the beginning."""
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("not run: mounting a file system needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("layers", ["posix", "mpi", "both"])
def test_a_full_disk_loses_records_and_nothing_else(small: Path, tmp_path: Path, layers: str) -> None:
    logs, trace, file = small / "t", tmp_path / "trace", tmp_path / "f"
    logs.mkdir()
    parse_mpiio(stripewise("run", "--trace", logs, "--layers", layers, "--", *mpiio_command(3, file, *JOB)))
    told = "the trace is partial: "
    assert told in (said := stripewise("collect", logs, "-o", trace)).err, said.report
    assert "records were dropped for want of space" in said.err
    layer = ("--layer", "mpi") if layers == "mpi" else ()
    assert told in stripewise("patterns", trace, "--file", file, *layer).err
    if layers != "mpi":
        assert told in stripewise("show", trace, "--file", file).err


def test_a_run_without_traced_requests_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    logs = tmp_path / "t"
    said = stripewise("run", "--trace", logs, "--", "true").err
    assert f"{logs}: nothing was recorded" in said and "stripewise collect" not in said, said
    assert f"{logs}: nothing was recorded" in stripewise("collect", logs, code=1).err
    (tmp_path / "empty").mkdir()
    assert "no trace logs" in stripewise("collect", tmp_path / "empty", code=1).err
