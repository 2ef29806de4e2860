"""What a plan is expected to gain: the likely figure first, each other one with what it is; and what was measured."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from typer.testing import CliRunner

from stripewise.cli.main import app
from stripewise.plan import Expected, FilePlan, Plan, RegionPlan, Window, read_plan, write_plan
from test_cli import a_trace, cluster_toml, stripewise

__all__ = ["a_trace", "cluster_toml"]

BOUND = Expected(8.0, 64.0, 1.0, 7.5, gain_low=6.75, gain_high=9.25)


def checked(path: Path, expected: Expected) -> list[str]:
    """What `plan --check` prints of the plan from its expectation on."""
    file = FilePlan("/data/f", None, 4096, (RegionPlan(0, 4096, (("s0", 4096),)),))
    write_plan(Plan("best", {}, "", ("job",), 1, (Window(0, 1),), (file,), {"s0": 4096}, expected), path)
    assert read_plan(path).expected == expected
    said = CliRunner().invoke(app, ["plan", "--check", str(path)], catch_exceptions=False).output
    return said[said.index("expect ") :].splitlines()


def test_simulated_runs_are_the_headline_and_the_interval_is_the_bounds(tmp_path: Path) -> None:
    simulated = Expected(**{**BOUND.__dict__, "simulated_s": 2.0, "simulated_def_s": 7.0})
    first, *rest = checked(tmp_path / "plan.json", simulated)
    assert first == "expect about 3.50 times as fast as def (simulated runs of the traced requests)"
    io = Expected(**{**simulated.__dict__, "simulated_io_s": 1.0, "simulated_io_def_s": 6.0})
    assert " ".join(checked(tmp_path / "io.json", io)).startswith(
        "expect about 6.00 times as fast as def in I/O, 3.50 times with the program's own time between requests "
        "(simulated runs of the traced requests)"
    )
    near = Expected(**{**simulated.__dict__, "simulated_io_s": 1.0, "simulated_io_def_s": 3.6})
    assert " ".join(checked(tmp_path / "near.json", near)).startswith(
        "expect about 3.60 times as fast as def in I/O (simulated runs of the traced requests) "
    )
    more = " ".join(" ".join(rest).split())
    assert "7.50 bound: the busiest target's work" in more and "6.75 to 9.25 with nine chances in ten" in more
    assert "8.00 request model: the costs of all requests" in more and "measured" not in more
    assert "proven: no layout has a bound below 0.8 s" in " ".join(
        checked(tmp_path / "gap.json", Expected(**{**BOUND.__dict__, "objective_s": 1.0, "proven_s": 0.8}))
    )


def test_a_plan_tells_how_many_windows_it_has_how_long_and_what_moves_between_them(
    a_trace: Path, cluster_toml: Path
) -> None:
    words = ("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "--region-size", "1MiB")
    assert "window" not in stripewise(*words).stdout
    alone = " ".join(stripewise(*words, "--window", "1h").stdout.split())
    assert "windows: 1, for all requests start within 3600 s; nothing moves during the run" in alone
    begun = [row["start_ns"] for row in pq.read_table(a_trace / "trace.parquet").to_pylist()]
    half = (max(begun) - min(begun)) // 2 + 1
    plan = a_trace / "plan.json"
    said = " ".join(stripewise(*words, "--window", f"{half / 1e6:f}ms", "-o", plan).stdout.split())
    moves = sum(len(each.moves) for each in read_plan(plan).migrations)
    between = f"{moves} move(s) of a region between them" if moves else "nothing moves between them"
    assert f"windows: 2 of {half / 1e9:g} s each; {between}" in said
    assert f"windows: 2 of {half / 1e9:g} s each; {between}" in " ".join(stripewise("show", plan).stdout.split())


def test_a_plan_that_found_nothing_faster_leaves_all_as_it_is_and_does_not_tell_to_apply_it(
    a_trace: Path, cluster_toml: Path
) -> None:
    # One target: there is nothing to choose.
    cluster_toml.write_text("[[target]]".join(cluster_toml.read_text().split("[[target]]")[:2]))
    plan = a_trace / "plan.json"
    said = " ".join(stripewise("plan", a_trace, "--cluster", cluster_toml, "-o", plan).stdout.split())
    assert read_plan(plan).leave and "leave it as it is: no layout is quicker than def" in said
    assert said.endswith("plan.json: written; apply would move nothing") and "next:" not in said
    for policy in ("def", "h2dp"):
        stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", policy, "-o", plan)
        assert not read_plan(plan).leave


def test_a_new_plan_tells_the_likely_factor_and_where_the_others_are(a_trace: Path, cluster_toml: Path) -> None:
    words = ("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp")
    plan = a_trace / "a plan.json"
    said = stripewise(*words, "-o", plan).stdout
    assert f"bounds and proof: stripewise show '{plan}'" in said and said.count("expect ") == 1
    assert "request model" not in said and "request model" in stripewise("show", plan).stdout
    assert "bounds and proof: -o PLAN writes them" in stripewise(*words).stdout
    for word in ("proven", "gap", "expected"):
        assert "plan" in stripewise("glossary", word).stdout


def test_without_simulated_runs_the_bound_is_said_to_be_all(tmp_path: Path) -> None:
    first, *_ = checked(tmp_path / "plan.json", BOUND)
    assert first == "expect 7.50 times as fast as def (by the bound alone, not by simulated runs)"


def test_what_tune_measured_stays_in_the_plan(tmp_path: Path) -> None:
    measured = Expected(**{**BOUND.__dict__, "measured_gain": 4.06})
    assert checked(tmp_path / "plan.json", measured)[1] == "measured by tune: 4.06 times as fast as def"
