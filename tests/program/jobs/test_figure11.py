"""The tool that runs figure 11 on emulated devices, with tiny parameters: what it did, not how long it took."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rig import ROOT, execute

TINY = {
    "file-size": "16MiB", "region-size": "1MiB", "processes": "2", "hservers": "2", "sservers": "1", "windows": "2",
    "shift": "3", "window": "1s",
}  # fmt: skip


def test_the_run_on_emulated_devices_moves_verifies_and_fills_its_table(scratch: Path) -> None:
    options = [word for key, value in TINY.items() for word in (f"--{key}", value)]
    tool = [sys.executable, ROOT / "tools" / "figure11_emulated.py", "--quick", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    said = execute([*tool, "--scratch", scratch, "--json", scratch / "rows.json"], environment, 0)
    lines = said.out.splitlines()
    assert all("emulated" in line for line in lines), said.report

    (row,) = json.loads((scratch / "rows.json").read_text())
    without, moving, paying = (row["variants"][name] for name in ("without", "with", "min-gain 1"))
    read = row["reads_per_window"] * 2 * row["request_bytes"]
    assert all(each["verified_bytes"] == [read] for each in (without, moving, paying))
    assert all(len(each["window_seconds"]) == 2 for each in (without, moving, paying))
    assert without["moves"] == [0] and without["moved"] == 0
    assert moving["moves"][0] > 0 and moving["moved"] > 0 and len(moving["settled_after_s"]) == 1
    assert set(row["published"]) == {"gain", "moved", "more_requests_on_hybrid"}
    assert not list(scratch.glob("stripewise-figure11-*"))
