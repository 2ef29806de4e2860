"""A policy of one's own on a real run: what docs/writing-a-policy.md shows, given as a file to plan and tune."""

from __future__ import annotations

import json
from pathlib import Path

from rig import ROOT, Maker, Target, mpiio_command, stripewise

JOB = [
    *("--pattern", "random", "--file-size", "2MiB", "--request-size", "64KiB", "--requests", "8"),
    *("--if-missing-fill", "--phases", "fill,write,read"),
]


def example(directory: Path) -> Path:
    page = (ROOT / "docs" / "writing-a-policy.md").read_text()
    path = directory / "whole.py"
    path.write_text(page.split("```python\n")[1].split("```")[0])
    return path


def test_the_policy_of_the_page_plans_tunes_and_the_bytes_are_verified(make_store: Maker) -> None:
    store = make_store([Target("h0"), Target("h1"), Target("s0", "ssd", capacity_bytes=1 << 20)])
    trace, policy, saved = store.base / "trace", example(store.base), store.base / "plan.json"
    job = mpiio_command(2, store.data / "f", *JOB)
    size = ("--region-size", "256KiB")
    tuned = stripewise(
        "tune",
        "--store",
        store.root,
        "--policy",
        policy,
        "--repeat",
        "1",
        *size,
        "--trace",
        trace,
        "--json",
        "--",
        *job,
    )
    runs = json.loads(tuned.out.strip().splitlines()[-1])["runs"]
    assert [run["policy"] for run in runs] == ["def", "whole"]
    assert runs[1]["verified_bytes"] > 0
    stripewise("plan", trace / "whole-collected", "--store", store.root, "--policy", policy, *size, "-o", saved)
    regions = json.loads(saved.read_text())["files"][0]["regions"][:-1]
    assert all(len(region["stripes"]) == 1 for region in regions)
    assert {region["stripes"][0][0] for region in regions} == {"h0", "h1", "s0"}
    assert "sound" in stripewise("plan", "--check", saved, "--cluster", store.cluster).out
    policy.write_text(policy.read_text().replace("space = Space(", "space = Spacious("))
    said = stripewise("plan", trace / "whole-collected", "--store", store.root, "--policy", policy, code=1).err
    assert "the policy whole failed" in said and "NameError: name 'Spacious'" in said and "Traceback" not in said
