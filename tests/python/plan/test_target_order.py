"""Targets are listed as the cluster has them: hdd2 before hdd10, whatever is used first."""

from __future__ import annotations

import json

from stripewise.plan import Plan, read_plan
from stripewise.plan.summary import summary_of
from test_cli import SSD, a_trace, stripewise
from test_cluster import TARGET

__all__ = ["a_trace"]


def cluster_of(tmp_path, names):
    path = tmp_path / "c.toml"
    text = TARGET.replace("1048576", "0")
    path.write_text("".join(text.replace("hdd0", name) for name in names) + SSD)
    return path


def test_a_plan_lists_the_targets_of_its_cluster_in_order(a_trace, tmp_path):
    names = [f"hdd{number}" for number in (3, 0, 1, 2, *range(4, 12))]
    cluster = cluster_of(tmp_path, names)
    out = tmp_path / "p.json"
    words = ("plan", a_trace, "--cluster", cluster, "--policy", "h2dp", "-o", out)
    said = stripewise(*words, "--json").stdout
    order = [*names, "ssd0"]
    held = list(json.loads(said)["target_bytes"])
    assert held == [name for name in order if name in held] and len(held) > 4
    checked = list(
        json.loads(stripewise("plan", "--check", out, "--cluster", cluster, "--json").stdout)["target_bytes"]
    )
    assert checked == held
    alone = list(json.loads(stripewise("plan", "--check", out, "--json").stdout)["target_bytes"])
    assert alone == [name for name in [*(f"hdd{number}" for number in range(12)), "ssd0"] if name in held]


def test_targets_of_an_unknown_cluster_stand_by_their_numbers(a_trace, tmp_path, monkeypatch):
    out = tmp_path / "p.json"
    stripewise("plan", a_trace, "--cluster", cluster_of(tmp_path, ["hdd0"]), "--policy", "def", "-o", out)
    monkeypatch.setattr(Plan, "bytes_per_target", lambda _: dict.fromkeys(["b10", "b9", "a", "b1"], 1))
    assert list(summary_of(read_plan(out)).target_bytes) == ["a", "b1", "b9", "b10"]
    assert list(summary_of(read_plan(out), ["b9", "b10", "a"]).target_bytes) == ["b9", "b10", "a", "b1"]
