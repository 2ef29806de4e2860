"""Experiments of the PDLA paper: kept gains are those of the kept rows, and a short run writes what a long one does."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stripewise.replicas.blocks import Standing

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"
#: Those that are simulated; what things cost is measured, and no gain.
NAMES = sorted(
    path.parent.name for path in EXPERIMENTS.glob("pdla-*/run.py") if not path.parent.name.endswith("-overhead")
)


def run_py(name):
    """The module of an experiment's run.py."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), EXPERIMENTS / name / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_kept_gains_are_those_of_the_kept_rows(monkeypatch, name):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    kept = json.loads((EXPERIMENTS / name / "result.json").read_text())
    told = {each["key"]: each for each in kept.get("stated", [])}
    stated = getattr(run_py(name), "STATED", ())
    assert set(told) == {each.key for each in stated}
    for each in stated:
        assert told[each.key]["published"] == [each.low, each.high] and told[each.key]["said"] == each.said
        gains = [row[each.of] / row[each.over] - 1 for row in kept["rows"] if row["operation"] == each.operation]
        low, high = told[each.key]["ours"]
        assert min(gains) - 1e-3 <= low <= high <= max(gains) + 1e-3
        if not each.ticks:
            assert [low, high] == pytest.approx([min(gains), max(gains)], abs=1e-3)


def test_a_short_run_writes_its_files(tmp_path):
    script = [sys.executable, EXPERIMENTS / "pdla-startup" / "run.py", "--requests", "2", "--out", tmp_path]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["simulated"] is True and len(result["rows"]) == 12
    assert (tmp_path / "result.svg").is_file()


def test_patterns_touch_each_byte_once(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    import pdla

    for part in (pdla.strided(6, 16, 160), pdla.nested(6, 16, 1024), pdla.tiles(9, 16, 160)):
        start = np.sort(part.offset.reshape(-1))
        assert (np.diff(start) >= part.request_bytes).all()
    # 2 x 2 tiles of two rows of 8 bytes.
    assert pdla.tiles(4, 8, 16).offset.tolist() == [[0, 16], [8, 24], [32, 48], [40, 56]]


def test_the_files_order_keeps_a_replicas_bytes(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    import pdla

    place = pdla.Place("", {}, (pdla.nested(4, 4096, 16 * 4096 * 2),), 1)
    made = pdla.replicas_of(place, ("h-pdla", "pd-file"), False, pdla.cluster_of(4, False, place.conditions))
    own, ordered = (Standing(made[scheme][0].blocks) for scheme in ("h-pdla", "pd-file"))
    assert own.bytes == ordered.bytes and (np.diff(ordered.at) > 0).all() and not (np.diff(own.at) > 0).all()
