"""`characterize` on traces of real jobs: whose files are whose, what folds, that names go, and what is refused."""

from __future__ import annotations

import getpass
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kinds import VENV
from rig import stripewise

SOURCE = Path(__file__).with_name("characterized.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("characterized") / "characterized"
    subprocess.run([VENV / "mpicc", "-O1", "-Wall", "-Werror", "-o", out, SOURCE], check=True)
    return out


@pytest.fixture(scope="module")
def trace(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fusionshot")
    command = (VENV / "mpiexec", "-n", "4", program, place)
    stripewise("run", "--trace", place / "trace", "--", *command)
    stripewise("collect", place / "trace")
    return place / "trace"


def profile_of(trace: Path, *options: str) -> dict[str, Any]:
    out = trace.with_name("profile.json")
    stripewise("characterize", trace, "-o", out, *options)
    profile: dict[str, Any] = json.loads(out.read_text())
    return profile


def test_each_file_is_of_its_class(trace: Path) -> None:
    profile = profile_of(trace)
    names = {name: sorted(each.get("names", [])) for name, each in profile["classes"].items()}
    assert names == {
        "root": ["tokamak.txt"], "shared": ["fusion.dat", "strata.dat"],
        "private": ["lonely.{rank}", "plasma.{rank}", "progeny.{rank}"],
    }  # fmt: skip
    assert (profile["processes"], profile["subgroups"]) == (4, [{"ranks": "1-3", "share": 1.0}])


def test_calls_are_told_as_the_program_made_them(trace: Path) -> None:
    classes = profile_of(trace)["classes"]
    shared = classes["shared"]["sessions"]
    assert shared["mpi-readwrite"]["RT1"] == {
        "": {"mpi_write_at": 1},
        "mpi_write_at": {"mpi_write_at": 3, "mpi_iread11": 1},
        "mpi_iread11": {"mpi_iread11": 3},
    }
    assert shared["mpi-readwrite"]["SHIFT"] == {"constant": 65536}
    assert shared["mpi-write"]["VIEW"] == [{"piece": 1024, "distance": 4096, "pieces": 1, "tile": 4096, "weight": 1}]
    assert shared["mpi-write"]["RT1"]["mpi_view"] == {"mpi_write_all0": 1}
    assert classes["root"]["RT2"] == {"stat": 1, "unlink": 1}
    assert classes["root"]["sessions"]["posix-readwrite"]["RT1"] == {"": {"write0": 1}, "write0": {"read1": 1}}
    private = classes["private"]["sessions"]
    assert private["mpi-write"]["comm"] == {"self": 1}
    assert private["posix-read"]["RT1"] == {"": {"read1": 1}, "read1": {"read1": 3}}
    # Four sleeps of 2 ms, one before each write; the child's write has none.
    slept = private["posix-write"]["ST"]["write0"]
    assert sum(value >= 0.002 for value in slept["values"]) == 4


def test_no_word_of_a_real_trace_is_in_an_anonymous_profile(trace: Path) -> None:
    text = json.dumps(profile_of(trace, "--anonymous"))
    meta = json.loads((trace / "meta.json").read_text())
    job = [each for each in meta["processes"] if each["rank"] >= 0]
    files = pq.read_table(trace / "trace.parquet", columns=["file"]).column("file").unique().to_pylist()
    said = [meta["cwd"], *meta["command"], *(each for each in files if each and "fusionshot" in each)]
    said += [word for each in job for word in (each["host"], *each["command"])] + [getpass.getuser() + "@"]
    words = {word for each in said for word in re.split(r"[^A-Za-z]+", each) if len(word) > 3} - {"root"}
    assert {"fusionshot", "characterized", "tokamak", "strata", "progeny"} <= words
    assert not {word for word in words if word in text}
    assert str(meta["zero_unix_ns"]) not in text


def test_what_cannot_be_described_is_refused_and_nothing_is_left(trace: Path, scratch: Path) -> None:
    (scratch / "empty").mkdir()
    out = scratch / "p.json"
    for words, message in (
        ((scratch / "empty", "-o", out), "has no trace.parquet; trace a run with"),
        ((trace, "-o", out, "--subgroups", "0-3"), "--subgroups: 0-3 has rank 0"),
        ((trace, "-o", out, "--file", "*.none"), "no requests on files that count"),
        ((trace, trace, "-o", out), "TRACE: one is given twice"),
        ((trace, "-o", trace / "meta.json"), "is a part of the trace"),
    ):
        result = stripewise("characterize", *words, code=None)
        assert result.code != 0 and message in result.err and "Traceback" not in result.err
        assert not out.exists()
