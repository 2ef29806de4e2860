"""What `tune` says came out: the factor with its interval, as far as it is known, and what a kept plan holds of it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from stripewise.cli.run import tune as verb
from stripewise.cluster import Cluster
from stripewise.errors import NoSpaceError
from stripewise.layout import GIVEN, Layout, Region, Stripes
from stripewise.moving import plan_applier
from stripewise.moving.mover_session import Moved
from stripewise.plan import Expected, FilePlan, Plan, Window, read_plan
from stripewise.plan.document import RegionPlan
from stripewise.policy import POLICIES, PlanOptions, Policy
from stripewise.run import tune as tune_module
from stripewise.run.circle import Circle, Turns
from stripewise.run.measure import Measured
from stripewise.run.put_back import put_back_or_tell, standing, where_back
from stripewise.run.repeats import Repeated, together
from stripewise.run.shown import Shown
from stripewise.run.simulated import with_simulation
from stripewise.run.tune import Tuner
from stripewise.run.tuned import Tuned, of_memory, of_unsure, twin_of
from stripewise.store.config import Rule
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload
from support import KIB, MIB, target, zipf_workload
from support import cluster as cluster_of

SIMULATED = Expected(1.0, 8.0, 1.0, 9.0, simulated_s=2.0, simulated_def_s=7.0)
PLAN = Plan("best", {}, "", ("job",), 1, (Window(0, 1),), (), {}, SIMULATED)


TARGETS = (replace(target("a", "hdd"), kind="emulated"), target("b", "hdd"))


def lying(policy: str, size: int, *regions: tuple[int, int, Stripes]) -> Plan:
    """A plan of one file."""
    return replace(PLAN, policy=policy, files=(FilePlan("/f", None, size, tuple(RegionPlan(*row) for row in regions)),))


def layout(name: str, *seconds: float, verified: int | None = None) -> Repeated:
    return Repeated(PLAN, tuple(Measured(name, 2.0, None, each, each, {"a": each}, verified) for each in seconds))


def claimed(capsys: pytest.CaptureFixture[str], *layouts: Repeated, stays: bool = True) -> str:
    verb._print(Tuned(tuple(together(layouts)), layouts[-1] if stays else None), TARGETS)
    return " ".join(capsys.readouterr().out.split())


def test_the_factor_has_its_interval_and_the_likely_gain_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    said = claimed(capsys, layout("def", 4.0, 4.4), layout("best", 1.0, 1.1))
    low, high = layout("best", 1.0, 1.1).gain_range(layout("def", 4.0, 4.4)) or (0, 0)
    assert 2.9 < low < 4 < high < 5.5
    assert f"best: 4.00 times as fast as def, measured ({low:.2f} to {high:.2f} with 95 % confidence);" in said
    assert "I/O seconds 4.20 1.05 95 % interval 3.42 to 5.15 0.854 to 1.29" in said
    assert "by the model about 3.50 times as fast as def (simulated runs" in said
    assert "verified bytes" not in said
    assert "verified bytes" in claimed(capsys, layout("def", 4.0), layout("best", 1.0, verified=5))


def test_the_whole_run_stands_beside_its_io(capsys: pytest.CaptureFixture[str]) -> None:
    def waiting(name: str, io_s: float, *run_s: float) -> Repeated:
        return Repeated(PLAN, tuple(Measured(name, 2.0, None, io_s, each, {}, None) for each in run_s))

    layouts = waiting("def", 1.0, 3.7, 3.8, 9.0), waiting("best", 0.4, 3.1, 3.2, 3.3)
    said = claimed(capsys, *layouts)
    assert "whole run, s 3.80 3.20" in said, "the median, for a busy machine makes single runs long"
    assert "the whole run: 3.80 s with def, 3.20 s with best, 1.19 times as fast, start and end included" in said
    assert layouts[0].as_json()["run_seconds"] == 3.8
    assert "the whole run:" not in claimed(capsys, layouts[1], layouts[0]), "the first was the fastest"


def test_what_is_not_known_is_not_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    said = claimed(capsys, layout("def", 4.0), layout("best", 1.0))
    assert "(one run each, so nothing is known of how much it varies)" in said and "interval" not in said
    for short in (layout("def", 0.4), layout("best", 0.1)), (layout("def", 0.4, 0.9), layout("best", 0.1, 0.7)):
        said = claimed(capsys, *short)
        assert "in runs too short to be sure (" in said and ", measured (" not in said
        assert "times as fast as def (too little I/O" in said


def test_short_runs_that_hardly_vary_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    said = claimed(capsys, layout("def", 0.4, 0.41), layout("best", 0.1, 0.11))
    assert "best: 3.86 times as fast as def, measured (" in said and "to be sure" not in said
    assert "which may be chance" in claimed(capsys, layout("def", 4.0, 6.0), layout("best", 3.9, 5.9), stays=False)


def test_simulated_seconds_stand_beside_the_measured_ones(capsys: pytest.CaptureFixture[str]) -> None:
    plan = replace(PLAN, expected=replace(SIMULATED, simulated_io_s=0.5, simulated_io_def_s=4.25))
    runs = tuple(Measured("best", 2.0, None, each, each, {}, None) for each in (1.0, 1.01))
    assert "simulated I/O, s 4.25 0.500" in claimed(capsys, layout("def", 4.0, 4.01), Repeated(plan, runs))
    assert "simulated I/O" not in claimed(capsys, layout("def", 4.0, 4.01), layout("h2dp", 1.0, 1.1))


def test_simulated_seconds_are_those_of_the_sentence_and_other_runs_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def simulated(name: str, io_s: float, def_s: float, *seconds: float) -> Repeated:
        plan = replace(PLAN, policy=name, expected=replace(SIMULATED, simulated_io_s=io_s, simulated_io_def_s=def_s))
        return Repeated(plan, tuple(Measured(name, 2.0, None, each, each, {}, None) for each in seconds))

    layouts = simulated("def", 12.0, 12.0, 4.0, 4.01), simulated("h2dp", 5.0, 11.9, 2.0, 2.01)
    said = claimed(capsys, *layouts, simulated("best", 1.0, 9.07, 1.0, 1.01))
    assert "simulated I/O, s 9.07 5.00 1.00" in said and "simulated were 9.07 s" in said, said
    assert "note: simulated I/O of h2dp is of the run that it was planned from, in which that of def is 11.90 s" in said
    assert said.count("planned from") == 1


def test_an_expectation_outside_of_the_measured_interval_is_explained_by_the_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = replace(PLAN, expected=replace(SIMULATED, simulated_io_s=0.35, simulated_io_def_s=4.25))
    runs = tuple(Measured("best", 2.0, None, each, each, {}, None) for each in (1.0, 1.01))
    said = claimed(capsys, layout("def", 4.0, 4.01), Repeated(plan, runs))
    assert re.search(r"note: measured, 3\.9\d to [\d.]+, and the model, 12\.14, do not meet: ", said)
    assert (
        "I/O took 1.00 s with best, simulated were 0.350 s (devices alone, without library, program and what else the "
        "machine does), and I/O took 4.00 s with def, simulated were 4.25 s" in said
    )
    quick = replace(PLAN, expected=replace(SIMULATED, simulated_io_s=3.0, simulated_io_def_s=4.0))
    said = claimed(capsys, layout("def", 4.0, 4.01), Repeated(quick, runs))
    assert "simulated were 3.00 s (memory may have served some), and" in said
    near = replace(PLAN, expected=replace(SIMULATED, simulated_io_s=1.0, simulated_io_def_s=4.0))
    assert "note:" not in claimed(capsys, layout("def", 4.0, 4.01), Repeated(near, runs))


def test_layouts_of_policies_that_simulate_nothing_are_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    cluster, workload = cluster_of(2, 2), zipf_workload(4, 200)
    options = PlanOptions(region_bytes=MIB)
    plans = {name: POLICIES[name].plan(workload, cluster, options) for name in ("def", "h2dp")}
    found = {name: with_simulation(plan, workload, cluster, options).expected for name, plan in plans.items()}
    assert found["def"].simulated_io_s == found["h2dp"].simulated_io_def_s == found["def"].simulated_io_def_s
    assert 0 < (found["h2dp"].simulated_io_s or 0) < (found["def"].simulated_io_s or 0)
    known = replace(plans["h2dp"], expected=found["h2dp"])
    assert with_simulation(known, workload, cluster, options) is known
    # Files of other names than the plan's.
    twice = Workload((replace(workload.files[0], path="/a"), replace(workload.files[0], path="/b")), 4)
    assert with_simulation(plans["h2dp"], twice, cluster, options) is plans["h2dp"]
    runs = tuple(Measured("h2dp", 2.0, None, each, each, {}, None) for each in (1.0, 1.01))
    said = claimed(capsys, layout("def", 4.0, 4.01), Repeated(known, runs), layout("psa", 1.5, 1.51))
    assert "simulated I/O is - where the traced run had files of other names" in said


def test_one_layout_of_two_policies_is_found_however_its_regions_are_cut() -> None:
    both: Stripes = (("a", MIB), ("b", MIB))
    one = lying("h2dp", 4 * MIB, (0, 2 * MIB, both), (2 * MIB, 2 * MIB, both), (4 * MIB, MIB, (("a", MIB),)))
    same = lying("best", 4 * MIB, (0, 64 * MIB, both))
    assert twin_of(same, [lying("def", 4 * MIB, (0, 64 * MIB, (("a", KIB), ("b", KIB)))), one]) == "h2dp"
    # A cycle that begins anew in its middle is another layout.
    assert twin_of(lying("psa", 4 * MIB, (0, MIB, both), (MIB, 3 * MIB, both)), [one]) is None
    alone = lying("psa", MIB, (0, 64 * MIB, both))
    assert twin_of(alone, [lying("padp", MIB, (0, MIB, (("a", KIB),)))]) == "padp"
    assert twin_of(replace(alone, files=()), [alone]) is None


def test_layouts_that_runs_cannot_tell_apart_and_those_that_are_one_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    layouts = layout("def", 4.0, 4.1), layout("h2dp", 1.0, 1.1), layout("best", 1.0, 1.08)
    tuned = Tuned(tuple(together(layouts)), layouts[-1], same={"psa": "def"})
    verb._print(tuned, TARGETS)
    said = " ".join(capsys.readouterr().out.split())
    assert "note: best cannot be told apart from h2dp: 1.01 times as fast (0." in said
    assert "note: psa proposes the same layout as def: its figures are those of def" in said
    assert tuned.as_json()["not_told_apart"] == ["h2dp"] and tuned.as_json()["same_layout"] == {"psa": "def"}
    assert "told apart" not in claimed(capsys, layouts[0], layout("h2dp", 2.0, 2.1), layouts[-1])


def test_files_that_go_back_to_another_layout_than_the_winner_s_are_told_with_what_changes_that() -> None:
    rules = [Rule("/g"), Rule("/*", layout="l.json")]
    store: Any = SimpleNamespace(root=Path("/store"), files=list, config=SimpleNamespace(rules=rules))
    default = lying("def", MIB, (0, MIB, (("a", MIB),)))
    assert (
        where_back(store, {"/f": Layout((Region(0, MIB, (("a", MIB),)),))}, default)
        == "the files go back to their former layout"
    )
    before = {"/f": Layout((Region(0, MIB, (("b", MIB),)),))}
    assert where_back(store, before, default) == (
        "the files go back to their former layout, which is not def (/f); to give it to one: stripewise store "
        "set-layout /f --layout def; to give it to new files: stripewise store template rm /store '/*'"
    )
    assert where_back(store, before, replace(default, policy="psa")).endswith("which is not psa (/f)")
    rules.pop()
    assert where_back(store, before, default).endswith("--layout def")


def test_where_files_cannot_go_back_one_line_has_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("stripewise.run.put_back.lay_out", lambda *_, **__: SimpleNamespace(signal=2))
    file = SimpleNamespace(spelled="/f", size=MIB)
    lies = Layout((Region(0, MIB, (("b", MIB),)),))
    own = SimpleNamespace(default_layout="def", layout=lambda name: lies)
    store: Any = SimpleNamespace(
        root=Path("/store"), files=lambda: [file], resolve=lambda path: "id", layout=lambda identity: lies, config=own
    )
    said: list[str] = []
    show = Shown(said.append, print, lambda _: contextlib.nullcontext(lambda done, total: None))
    put_back_or_tell(store, {"/f": Layout((Region(0, MIB, (("a", MIB),)),))}, replace(PLAN, policy="def"), show)
    assert said[0] == "moving the files back to their former layout" and len(said) == 2
    assert (
        "not all files are back (stopped by a signal): 1 of 1 file(s) have another layout, /f among them; to put them "
        "back: " in said[1]
    )
    (left,) = tmp_path.iterdir()
    assert said[1].endswith(f"stripewise apply {left} --store /store --no-templates")
    assert read_plan(left).files[0].layout == (Region(0, MIB, (("a", MIB),)),)
    said.clear()
    put_back_or_tell(store, {"/f": lies}, replace(PLAN, policy="best"), show)
    assert said == ["the files have their former layout: nothing to put back"]
    there = standing(store, lying("best", MIB, (0, MIB, (("b", MIB),))))
    assert there == (
        "the files were made by the first run, so there is no earlier layout to put back; they lie as best"
    )
    assert "; 0 of 1 lie as best, the others" in standing(store, lying("best", MIB, (0, MIB, (("a", MIB),))))


def test_only_emulated_devices_tell_how_long_they_were_busy(capsys: pytest.CaptureFixture[str]) -> None:
    said = claimed(capsys, layout("def", 4.0), layout("best", 1.0))
    assert "busy a, s 4.00 1.00" in said and "busy b" not in said and "write MB/s" not in said


def test_short_times_are_told_with_three_digits(capsys: pytest.CaptureFixture[str]) -> None:
    said = claimed(capsys, layout("def", 0.0204), layout("best", 0.0198))
    assert "I/O seconds 0.0204 0.0198" in said and "busy a, s 0.0204 0.0198" in said


@pytest.mark.parametrize(
    ("read", "from_devices", "told"), [(3 * MIB, 0, True), (3 * MIB, 2 * MIB, False), (64 * KIB, 0, False)]
)
def test_a_few_mib_that_came_from_memory_are_told(read: int, from_devices: int, told: bool) -> None:
    requests = np.zeros(1, dtype=REQUEST_DTYPE)
    requests["size"] = read
    store: Any = SimpleNamespace(config=SimpleNamespace(cluster=SimpleNamespace(targets=TARGETS)))
    tuner = Tuner(store, ["job"], PlanOptions(), [], Turns(), Shown(print, print, contextlib.nullcontext))
    tuner._check_cache("run 2 (def)", Workload((FileRequests("/f", requests, read),), 1), from_devices)
    assert ("the rest from memory" in (of_memory(tuner.cached, 1) or "")) == told


@pytest.mark.parametrize(("baseline", "seconds", "kept"), [("def", 4.0, 4.0), ("psa", 4.0, None), ("def", 0.4, None)])
def test_a_kept_plan_holds_what_it_gained_over_def(
    baseline: str, seconds: float, kept: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []

    def keep(_root: Path, plan: Plan, _source: str, *, ran_in: str) -> tuple[Any, list[str]]:
        assert ran_in == os.getcwd()
        plans.append(plan)
        return SimpleNamespace(title="job"), []

    monkeypatch.setattr(verb.plans, "keep", keep)
    best = layout("best", seconds / 4)
    store: Any = SimpleNamespace(root=Path("/store"))
    verb._keep(store, Tuned((layout(baseline, seconds), best), best), best)
    assert plans[0].expected.measured_gain == kept


def test_planning_between_two_runs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextlib.contextmanager
    def working(what: str) -> Iterator[Any]:
        told.append(what)
        yield lambda done, total: None

    class Planned(Policy):
        name = "own"

        def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
            told.append("planned")
            return PLAN

    monkeypatch.setattr(tune_module, "ground_of", lambda store, workload, options: (None, options))
    store: Any = SimpleNamespace()
    show = Shown(lambda text: None, lambda text: None, working)
    tuner = Tuner(store, ["job"], PlanOptions(), [], Turns(), show)
    assert tuner._plan(Planned(), Workload((), 1)) is PLAN and told == ["planning with own", "planned"]


def test_where_a_file_leaves_itself_no_room_the_ways_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "the region at byte 0 fits its targets, but no target has room to keep it while it moves"
    session = SimpleNamespace(
        signal=None,
        expect=lambda size: None,
        move=lambda *_: Moved(0, "no space", f"{said}; free some space on any target", "NoSpaceError"),
    )
    monkeypatch.setattr(plan_applier, "MoverSession", lambda *_: contextlib.nullcontext(session))
    monkeypatch.setattr(plan_applier, "room_bytes", lambda _: {"a": 1})
    here, wanted = ((Region(0, MIB, ((a, 65536), (b, 65536))),) for a, b in ("ba", "ab"))
    store: Any = SimpleNamespace(root=Path("/store"), layout=lambda _: SimpleNamespace(regions=here))
    with pytest.raises(NoSpaceError, match="It lies in these stripes already, begun at another target"):
        plan_applier.lay_out(store, [plan_applier.Wanted("/f", "id", wanted, 0, GIVEN)])
    with pytest.raises(NoSpaceError) as error:
        plan_applier.lay_out(store, [plan_applier.Wanted("/f", "id", (), MIB, GIVEN)])
    told = str(error.value)
    assert told.startswith(f"/f: {said}. Remove other files. Where this one takes the room, take it out with")
    assert told.endswith("or add a target: 'stripewise store add /store NAME --path DIR'")
    assert "(" not in told and "free some space" not in told


def test_runs_that_do_not_tell_the_mean_well_enough_are_told() -> None:
    layouts = together([layout("def", 0.35, 0.6, 0.4, 0.65, 0.5)])
    told = of_unsure(layouts, 5, 0.05)
    assert told and re.fullmatch(r"after 5 runs .* is known to \d+%, not to 5%; --repeat N makes more", told)
    assert of_unsure(layouts, 6, 0.05) is None and of_unsure(layouts, 5, 2.0) is None


def test_all_files_that_runs_left_are_named_or_their_glob_if_it_takes_no_other() -> None:
    tuner = Tuner(cast(Any, None), ["job"], PlanOptions(), [], Turns(), cast(Any, None))
    circle = Circle(cast(Any, None), Path("/t"))
    few, many = ([f"/d/out_{n}.h5" for n in range(count)] for count in (5, 20))
    circle.known = set(many)
    assert tuner._together(circle, few) == " ".join(few)
    assert tuner._together(circle, many) == "/d/out_[0-9]*.h5"
    circle.there = frozenset(["/d/out_7old.h5"])
    assert tuner._together(circle, many) == " ".join(many)
