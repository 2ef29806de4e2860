"""What a plan is expected to gain: the likely figure first, each other one with what it is; and what was measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from runs import write_rows
from stripewise.cli.main import app
from stripewise.cli.moving.apply import _like
from stripewise.plan import Expected, FilePlan, Plan, RegionPlan, Window, read_plan, write_plan
from stripewise.plan.migrations import Migration, Move
from stripewise.plan.summary import likely_lines, summary_of, why_left, windows_text
from stripewise.policy import PlanOptions
from stripewise.policy.best.reasons import as_other
from stripewise.units import quoted
from support import KIB
from test_cli import a_trace, cluster_toml, paper, store, stripewise
from test_cluster import TARGET

__all__ = ["a_trace", "cluster_toml", "paper", "store"]

BOUND = Expected(8.0, 64.0, 1.0, 7.5, gain_low=6.75, gain_high=9.25)


MOVED = Move("/data/f", 4096, 4096, (("s1", 4096),), "in", 4096, 0.5, 0.25)


def checked(path: Path, expected: Expected) -> list[str]:
    """What `plan --check` prints of the plan from its expectation on."""
    file = FilePlan("/data/f", None, 4096, (RegionPlan(0, 4096, (("s0", 4096),)),))
    write_plan(Plan("best", {}, "", ("job",), 1, (Window(0, 1),), (file,), {"s0": 4096}, expected), path)
    assert read_plan(path).expected == expected
    said = CliRunner().invoke(app, ["plan", "--check", str(path)], catch_exceptions=False).output
    return said[said.index("by the model ") :].splitlines()


def test_simulated_runs_are_the_headline_and_the_interval_is_the_bounds(tmp_path: Path) -> None:
    simulated = Expected(**{**BOUND.__dict__, "simulated_s": 2.0, "simulated_def_s": 7.0})
    first, *rest = checked(tmp_path / "plan.json", simulated)
    assert first == "by the model 3.15 to 4.32 times as fast as def (simulated runs of the traced"
    told = " ".join([first, *rest])
    assert (
        "traced requests, as far as the devices' figures are known) not measured: the model has devices alone" in told
    )
    io = Expected(**{**simulated.__dict__, "simulated_io_s": 1.0, "simulated_io_def_s": 6.0})
    assert " ".join(checked(tmp_path / "io.json", io)).startswith(
        "by the model 5.40 to 7.40 times as fast as def in I/O, 3.50 for the whole simulated run (simulated runs of "
        "the traced requests, as far as the devices' figures are known)"
    )
    near = Expected(**{**simulated.__dict__, "simulated_io_s": 1.0, "simulated_io_def_s": 3.6})
    assert " ".join(checked(tmp_path / "near.json", near)).startswith(
        "by the model 3.24 to 4.44 times as fast as def in I/O (simulated runs of the traced requests, as far as "
    )
    more = " ".join(" ".join(rest).split())
    assert (
        "bound 7.50 work of the busiest target, or of all requests alone" in more
        and "6.75 to 9.25 with nine chances in ten" in more
    )
    assert "request model 8.00 sum of the costs of all requests" in more and "measured by tune" not in more
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


def planned(*migrations: Migration, windows: int = 1, length_ns: int = 2 * 10**8, end_ns: int = 13 * 10**9) -> Plan:
    """One file of two regions, its windows of `length_ns`, the last of them up to `end_ns`."""
    regions = tuple(RegionPlan(at, 4096, (("s0", 4096),)) for at in (0, 4096))
    spans = [Window(n * length_ns, (n + 1) * length_ns) for n in range(windows - 1)]
    spans.append(Window((windows - 1) * length_ns, end_ns))
    file = FilePlan("/data/f", None, 8192, regions)
    options = {"window_ns": length_ns}
    return Plan("best", options, "", ("job",), 1, tuple(spans), (file,), {"s0": 8192}, BOUND, migrations=migrations)


def test_one_window_of_a_long_run_is_not_said_to_hold_the_start_of_all_requests() -> None:
    assert windows_text(summary_of(planned())) == "windows: 1, the whole run; nothing moves during the run"
    short = windows_text(summary_of(planned(end_ns=10**8)))
    assert short == "windows: 1, for all requests start within 0.2 s; nothing moves during the run"


def test_windows_without_moves_have_no_rows_and_are_counted(tmp_path: Path) -> None:
    moves = (MOVED,)
    plan = tmp_path / "plan.json"
    write_plan(planned(Migration(9, 18 * 10**8, moves), windows=65), plan)
    said = stripewise("plan", "--check", plan).stdout
    assert "windows: 65 of 0.2 s each; 1 move(s) of a region between them" in said
    assert [line.split()[0] for line in said.splitlines() if re.match(r"\d+  ", line)] == ["0", "9", "9"]
    assert "and 63 window(s) more, at whose beginning nothing moves" in said
    assert "no moves at the beginning of 64 window(s)" in said
    write_plan(planned(Migration(2, 4 * 10**8, moves), windows=4), plan)
    said = stripewise("plan", "--check", plan).stdout
    assert [line.split()[0] for line in said.splitlines() if re.match(r"\d+  ", line)] == ["0", "1", "2", "3", "2"]
    write_plan(planned(windows=4), plan)
    assert "moves at their beginning" not in stripewise("plan", "--check", plan).stdout


def test_a_new_plan_that_moves_during_the_run_tells_how_to_run_with_it(a_trace: Path, cluster_toml: Path) -> None:
    plan = a_trace / "plan.json"
    words = ("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "--region-size", "1MiB", "-o", plan)
    said = stripewise(*words).stdout
    assert "--migrate" not in said
    begun = [row["start_ns"] for row in pq.read_table(a_trace / "trace.parquet").to_pylist()]
    with patch("stripewise.cli.plan.plan.why_left", lambda plan: ""):
        said = stripewise(*words, "--window", f"{((max(begun) - min(begun)) // 8 + 1) / 1e6:f}ms").stdout
    moves = sum(len(each.moves) for each in read_plan(plan).migrations)
    assert bool(moves) == (f"during the run: stripewise run --store STORE --migrate {plan} -- CMD" in said)
    later = summary_of(planned(Migration(1, 2 * 10**8, (MOVED,)), windows=2))
    assert later.later_moves == 1 and summary_of(planned(windows=2)).later_moves == 0


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


def test_plan_and_apply_have_one_rule_for_plans_that_lose(a_trace: Path, cluster_toml: Path) -> None:
    words = ("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "--region-size", "1MiB")
    plan = a_trace / "plan.json"
    said = " ".join(stripewise(*words, "-o", plan).stdout.split())
    made = read_plan(plan)
    worse = replace(made, expected=Expected(1.0, 1.0, bound_s=2.0, bound_def_s=1.0))
    assert why_left(worse) == "is expected to be 0.50 times as fast as def" and why_left(replace(made, leave=True))
    assert bool(why_left(made)) == ("next:" not in said) == ("leave it as it is" in said)
    # The rule speaks for whatever the plan itself says, and the command is whole.
    with patch("stripewise.cli.plan.plan.why_left", lambda plan: why_left(worse)):
        said = " ".join(stripewise(*words, "-o", plan).stdout.split())
    assert "leave it as it is: this plan is expected to be 0.50 times as fast as def" in said and "next:" not in said
    assert said.endswith(f"leave it as it is, or: stripewise apply {plan} --store STORE --anyway")


def test_a_new_plan_tells_the_likely_factor_and_where_the_others_are(a_trace: Path, cluster_toml: Path) -> None:
    words = ("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp")
    plan = a_trace / "a plan.json"
    said = stripewise(*words, "-o", plan).stdout
    assert f"bounds and proof: stripewise show {quoted(plan)}" in said and said.count("by the model ") == 1
    assert "request model" not in said and "request model" in stripewise("show", plan).stdout
    assert "bounds and proof: -o PLAN writes them" in stripewise(*words).stdout
    # As best's: a bound is no yardstick beside simulated runs.
    assert "(simulated runs of the traced requests" in " ".join(said.split()) and "stripewise simulate" not in said
    with patch("stripewise.cli.plan.plan.with_simulation", lambda plan, *_: plan):
        said = stripewise(*words).stdout
    assert f"stripewise simulate --trace {a_trace} --cluster {cluster_toml} --policy def,best,h2dp" in said
    for word in ("proven", "gap", "expected"):
        assert "plan" in stripewise("glossary", word).stdout


def test_a_plan_that_was_changed_by_hand_promises_nothing(a_trace: Path, cluster_toml: Path) -> None:
    """What was expected of other regions: a tenth of the speed was told as five times as fast."""
    plan = a_trace / "plan.json"
    stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "-o", plan)
    text = plan.read_text()
    told = read_plan(plan)
    assert told.expected.is_known and told.files[0].regions[0].reason
    first = told.files[0].regions[0].stripes[0][0]
    elsewhere = text.replace(f'[["{first}"', f'[["{"hdd0" if first == "ssd0" else "ssd0"}"')
    for changed in (elsewhere, text.replace('"size": ', '"size": 1')):
        plan.write_text(changed)
        assert changed != text and read_plan(plan).expected == Expected(0.0, 0.0)
    plan.write_text(text.replace('"start": 0,', '"start": 0 ,'))
    assert read_plan(plan) == told
    plan.write_text(elsewhere)
    for words in (("plan", "--check", plan), ("show", plan)):
        said = " ".join(stripewise(*words).stdout.split())
        assert "how fast it is nobody has told" in said and "times as fast" not in said and "proven" not in said
    assert not why_left(read_plan(plan)) and not read_plan(plan).files[0].regions[0].reason


def test_without_simulated_runs_the_bound_is_said_to_be_all(tmp_path: Path) -> None:
    first, *_ = checked(tmp_path / "plan.json", BOUND)
    assert first == "by the model 7.50 times as fast as def (the bound alone, no simulated runs)"


def test_what_tune_measured_stays_in_the_plan(tmp_path: Path) -> None:
    measured = Expected(**{**BOUND.__dict__, "measured_gain": 4.06})
    assert checked(tmp_path / "plan.json", measured)[1] == "measured by tune: 4.06 times as fast as def"
    # Of a plan that nobody measured, what measured ones of the store gained.
    alone = "the plan that a tune kept in this store gained 0.50 times what the model had said"
    assert list(likely_lines(BOUND, (0.5,)))[1] == f"not measured: {alone}"
    several = "the 3 plans that tunes kept in this store gained 0.50 to 1.10 times what the model had said"
    assert list(likely_lines(BOUND, (0.5, 0.7, 1.1)))[1] == f"not measured: {several}"
    assert list(likely_lines(measured, (0.5,)))[1].startswith("measured by tune: 4.06")


def test_a_layout_that_moves_nothing_says_that_it_was_quicker_than_those_that_move() -> None:
    still, moving = planned(), planned(Migration(1, 2 * 10**8, (MOVED,)), windows=2)
    asked = PlanOptions()
    least = "of 2 layouts none had a run that was shorter by more than 0.2% in simulation"
    shortest = f"this is the layout that best proposes: {least}"
    assert as_other(still, [still, moving], 1, asked) == as_other(moving, [still, moving], 2, asked) == shortest
    than = "those with moves between the 65 windows among them"
    assert as_other(still, [still, moving], 65, asked) == f"{shortest}, {than}"
    assert than not in as_other(still, [still], 65, asked)
    # The options with which that policy plans just this, where they are not those of this plan.
    coarse = replace(still, policy="h2dp", options={"step_bytes": 64 << 10, "stripe_bytes": 64 << 10})
    assert as_other(coarse, [coarse], 1, asked).startswith(
        "this is the layout that h2dp proposes with --step-size 64KiB: of 1 "
    )
    wide = replace(coarse, policy="def", options={"step_bytes": 64 << 10, "stripe_bytes": 1 << 20})
    assert as_other(wide, [wide], 1, asked).startswith(
        "this is the layout that def proposes with --stripe-size 1MiB: of 1 "
    )


def test_apply_tells_which_of_several_files_a_template_is_like() -> None:
    plan = planned()
    small = replace(plan.files[0], path="/data/1", made_as="/data/*", size=4096)
    large = replace(plan.files[0], path="/data/2", made_as="/data/*")
    assert _like(replace(plan, files=(small, large)), "/data/*") == "as planned"
    small = replace(small, regions=(RegionPlan(0, 4096, (("s1", 4096),)),))
    said = _like(replace(plan, files=(small, large)), "/data/*")
    assert said == "like /data/2, the largest of 2 planned files, which have different layouts"


def test_several_policies_are_compared_by_simulate(a_trace: Path, cluster_toml: Path) -> None:
    said = stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", "def,h2dp", code=2).stderr
    command = f"stripewise simulate --trace {a_trace} --cluster {cluster_toml} --policy def,h2dp"
    assert f"plan takes one policy; to compare several: {command}" in " ".join(said.split())


def test_a_plan_for_files_of_no_store_names_the_whole_command_that_works(
    tmp_path: Path, store: Path, paper: object, a_trace: Path
) -> None:
    plan = tmp_path / "p.json"
    said = stripewise("plan", a_trace, "--store", store, "--policy", "h2dp", "-o", plan, code=2).stderr
    *_, command = " ".join(said.split()).partition("stripewise plan ")
    assert command == f"{a_trace} --cluster {store} --policy h2dp -o {plan}"
    stripewise("plan", *command.split())
    assert plan.is_file()
    said = " ".join(stripewise("plan", a_trace, code=2).stderr.split())
    assert f"stripewise plan {a_trace} --cluster CLUSTER" in said and "or --store STORE" in said


def simulated_trace(path: Path, rows: list[tuple[int, str, str, int | None, int]]) -> Path:
    """A trace with the columns that `simulate` reads beside those that planners do."""
    trace = write_rows(path, rows)
    table = pq.read_table(trace / "trace.parquet")
    for column in ("thread", "flags"):
        table = table.append_column(column, pa.array([0] * len(rows), pa.int32()))
    pq.write_table(table, trace / "trace.parquet")
    return trace


def test_processes_that_ran_one_after_another_are_simulated_so(tmp_path: Path) -> None:
    """In `simulate` and in the runs of `plan`: a script's steps take as long as all of them, not as if side by side."""
    cluster = tmp_path / "cluster.toml"
    cluster.write_text("".join(TARGET.replace("hdd0", f"hdd{number}").replace("1048576", "0") for number in range(4)))

    def seconds(name: str, rows: list[tuple[int, str, str, int | None, int]]) -> list[float]:
        trace, plan = simulated_trace(tmp_path / name, rows), tmp_path / f"{name}.json"
        stripewise("plan", trace, "--cluster", cluster, "--policy", "h2dp", "-o", plan)
        expected = read_plan(plan).expected
        words = ("simulate", "--trace", trace, "--cluster", cluster, "--policy", "def", "--json")
        (row,) = json.loads(stripewise(*words).stdout)["rows"]
        assert expected.simulated_def_s is not None and expected.simulated_io_def_s is not None
        return [expected.simulated_def_s, expected.simulated_io_def_s, row["end_s"]]

    reads = [("read", "/data/f", k * 23 % 40 * 64 * KIB, 64 * KIB) for k in range(40)]
    alone = seconds("alone", [(0, *each) for each in reads])
    # Between two of them another call, so that the one is over when the next begins.
    steps = [(rank, *each) for rank in range(3) for each in [("open", "/data/f", None, 3), *reads]]
    assert seconds("steps", steps) == pytest.approx([3 * each for each in alone], rel=1e-3)
    beside = seconds("beside", [(rank, *reads[(k + rank) % 40]) for k in range(40) for rank in range(3)])
    assert all(each < 2 * one for each, one in zip(beside, alone, strict=True)), (beside, alone)


def test_a_plan_is_simulated_beside_the_default_layout_that_it_was_made_beside(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text("".join(TARGET.replace("hdd0", f"hdd{number}").replace("1048576", "0") for number in range(4)))
    both = [(rank, k) for k in range(40) for rank in (0, 1)]
    reads = [(rank, "read", "/data/f", (k * 23 + rank * 7) % 40 * 64 * KIB, 64 * KIB) for rank, k in both]
    trace, plan = simulated_trace(tmp_path / "trace", reads), tmp_path / "p.json"
    sizes = ("--region-size", "256KiB", "--stripe-size", "32KiB")
    stripewise("plan", trace, "--cluster", cluster, "--policy", "h2dp", *sizes, "-o", plan)

    def of_default(*words: object) -> float:
        said = stripewise("simulate", "--trace", trace, "--cluster", cluster, *words, "--json").stdout
        rows = json.loads(said)["rows"]
        return next(row["io_s"] for row in rows if row["policy"] == "def")

    expected = read_plan(plan).expected.simulated_io_def_s
    assert of_default("--plan", plan) == of_default("--plan", plan, *sizes) == pytest.approx(expected, rel=1e-12)
    assert of_default("--plan", plan, "--region-size", "64MiB") == of_default("--policy", "def", *sizes[2:])
    assert of_default("--policy", "def", "--plan", plan) == of_default("--policy", "def") != expected
    # Plans of unlike sizes have no default layout in common; a size that was edited into no size is none.
    other = tmp_path / "other.json"
    other.write_text(plan.read_text().replace('"stripe_bytes": 32768', '"stripe_bytes": 65536'))
    assert of_default("--plan", plan, "--plan", other) == of_default("--policy", "def", *sizes[:2])
    other.write_text(plan.read_text().replace('"stripe_bytes": 32768', '"stripe_bytes": [1]'))
    assert of_default("--plan", other) == of_default("--policy", "def", *sizes[:2])
