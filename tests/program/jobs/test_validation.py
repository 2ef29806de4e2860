"""The tool that holds the simulator against emulated devices, on two short points.

Bandwidths need a quiet machine and are left to `make validate`. Counters do not: they say what was cut into which
accesses, which of these continued one another, and how long the devices worked for them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from rig import ROOT, execute

# How long devices work is measured, to some percent.
pytestmark = pytest.mark.alone

POINTS = ("zipf-read-64KiB-p16-h2dp", "random-write-512KiB-p8-padp")
#: No bandwidth comes so near that the tool would let it pass.
OPTIONS = ("--file-mib", "48", "--seconds", "0.6", "--repeat", "1", "--tolerance", "0")


def test_devices_work_as_long_for_a_run_as_simulated_and_the_tool_fails_beyond_its_tolerance(scratch: Path) -> None:
    chosen = [word for point in POINTS for word in ("--only", point)]
    tool = [sys.executable, ROOT / "tools" / "validate_simulator.py", *chosen, *OPTIONS, "--json", scratch / "out.json"]
    said = execute(tool, {**os.environ, "PYTHONPATH": str(ROOT / "python")}, 1)
    report = json.loads((scratch / "out.json").read_text())
    assert report["emulated"] and [row["point"] for row in report["points"]] == report["off"] == list(POINTS), (
        said.report
    )
    for row in report["points"]:
        assert row["simulated_accesses"] > row["requests"], row
        assert row["measured_accesses"] == row["simulated_accesses"], row
        assert row["measured_busy_s"] == pytest.approx(row["simulated_busy_s"], rel=0.03), row
        assert row["measured_startups"] == pytest.approx(row["simulated_startups"], rel=0.03), row
