"""Runs of the zipf pattern and the tool of figure 11 that plans with them. That mpiio draws alike is a program test."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from stripewise.plan import read_plan
from stripewise.plan.check import check_plan
from stripewise.workload.zipf import READ, WRITE, ZipfRun
from support import KIB, MIB, cluster

FIGURE11 = Path(__file__).resolve().parents[3] / "tools" / "figure11.py"
RUN = ZipfRun(
    processes=4, file_bytes=40 * MIB, region_bytes=MIB, request_bytes=64 * KIB, reads=3000, writes=40, alpha=1.0,
    windows=3, shift=7, window_s=2.0,
)  # fmt: skip


def test_every_request_lies_in_the_file_on_its_grid():
    for phase, count in ((READ, 3000), (WRITE, 40)):
        offsets = RUN.offsets(3, phase)
        assert len(offsets) == count and (offsets >= 0).all() and (offsets % (64 * KIB) == 0).all()
        assert offsets.max() + 64 * KIB <= 40 * MIB
    assert RUN.offsets(0, READ).tolist() != RUN.offsets(1, READ).tolist()


def test_the_hot_set_moves_by_shift_from_window_to_window():
    order = []
    for window in range(3):
        here = np.concatenate([RUN.offsets(rank, READ)[1000 * window : 1000 * (window + 1)] for rank in range(4)])
        order.append(np.bincount(here // MIB, minlength=40))
    # Popularity 1/k: the hottest gets 23 % of the requests; in the next window what was 7 places below is that hot.
    hottest = [int(np.argmax(counts)) for counts in order]
    assert len(set(hottest)) == 3
    # With an exponent this steep every request is to the hottest region; which one that is, the seed says alone.
    steep = replace(RUN, alpha=20.0, windows=15, shift=1, reads=15)
    places = steep.offsets(0, READ) // MIB
    assert hottest == [places[0], places[7], places[14]]
    assert all(counts.max() / counts.sum() > 0.2 for counts in order)


def test_windows_begin_at_their_time_and_reads_follow_writes():
    requests = RUN.workload().files[0].requests
    assert len(requests) == 4 * 3040 and (np.diff(requests["start_ns"]) >= 0).all()
    writes, reads = requests[requests["write"]], requests[~requests["write"]]
    assert writes["start_ns"].max() < 6 * 10**9 <= reads["start_ns"].min()
    assert set(reads["start_ns"] // (2 * 10**9)) == {3, 4, 5}


def test_the_options_of_mpiio_say_all_that_counts():
    words = RUN.mpiio_options()
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--shift"] == "7" and options["--windows"] == "3" and options["--window-seconds"] == "2.0"
    assert options["--reads"] == "3000" and options["--file-size"] == str(40 * MIB)


def test_figure_11_is_computed_and_leaves_plans_that_hold(tmp_path):
    said = subprocess.run(
        [
            *(sys.executable, FIGURE11, "--file-size", "48MiB", "--region-size", "1MiB", "--processes", "4"),
            *("--requests", "300", "--windows", "3", "--shift", "4", "--window", "10s"),
            *("--size", "64KiB", "--size", "256KiB", "--out", tmp_path, "--json", tmp_path / "rows.json"),
        ],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "modelled, nothing was run" in said.stdout and len(said.stdout.strip().splitlines()) == 4
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert all(row["modelled"] and row["gain"] > 0 and row["hybrid_with"] > row["hybrid_without"] for row in rows)
    assert rows[0]["published"]["gain"] == 0.26 and rows[1]["published"] == {}
    plan = read_plan(tmp_path / "plan-64KiB.json")
    assert len(plan.migrations) == 2 and any(migration.moves for migration in plan.migrations)
    words = shlex.split((tmp_path / "mpiio-64KiB.txt").read_text())
    assert words[words.index("--reads") + 1] == "900"
    assert "was made for other targets" in check_plan(plan, cluster(12, 4, 3 * MIB), tmp_path)[0]
