"""Regions that one could stand for are joined, and every byte stays on its target."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.cli.plan.show import _show_plan
from stripewise.layout import JOINED_BYTES_MAX, Region, Stripes, runs_of
from stripewise.plan import FilePlan, Plan, RegionPlan, write_plan
from stripewise.policy import POLICIES, PlanOptions, plan_by
from stripewise.policy.best import polish
from stripewise.policy.best.trial import Trials
from stripewise.policy.toolkit.build import MORE, join_runs, joined_reason
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, zipf_workload

G = 4 * KIB


def laid(*stripes: Stripes, lengths: list[int] | None = None) -> list[Region]:
    """Regions one behind the other, one cycle long where no lengths are given, and one behind them that repeats."""
    regions, start = [], 0
    for number, each in enumerate([*stripes, (("end", G),)]):
        length = lengths[number] if lengths and number < len(lengths) else sum(width for _, width in each)
        regions.append(Region(start, length, each))
        start += length
    return regions


def on(name: str, granules: int = 1) -> Stripes:
    return ((name, granules * G),)


def joined(regions: list[Region]) -> list[Region]:
    made, at = [], 0
    for run in runs_of(regions):
        made += regions[at : run.first]
        of = regions[run.first : run.behind]
        made.append(Region(of[0].start, sum(each.len for each in of), run.stripes))
        at = run.behind
    return made + regions[at:]


def lies(regions: list[Region]) -> list[str]:
    """The target of every granule: the slow map."""
    found = []
    for region in regions:
        granules = [name for name, width in region.stripes for _ in range(width // G)]
        found += list(itertools.islice(itertools.cycle(granules), region.len // G))
    return found


def planned(regions: list[Region], **more) -> Plan:
    made = tuple(RegionPlan(each.start, each.len, each.stripes, 1.0, 2.0, "why") for each in regions)
    file = FilePlan("/f", None, regions[-1].start, made)
    plan = POLICIES["def"].plan(Workload((file_of([0], 4096, path="/f"),), 1), cluster(1, 0), PlanOptions())
    return replace(plan, files=(file,), **more)


def test_regions_of_two_targets_in_turn_are_stripes_of_one_region() -> None:
    regions = laid(*[on("ssd0", 2), on("ssd1", 2)] * 2048)
    assert len(regions) == 4097
    assert joined(regions) == [Region(0, 32 * MIB, (("ssd0", 8 * KIB), ("ssd1", 8 * KIB))), regions[-1]]


@pytest.mark.parametrize(
    ("regions", "made"),
    [
        # Stripes wider than their regions: as `def` has it where --region-size is below --stripe-size.
        (laid(*[on("a", 16), on("b", 16)] * 3, lengths=[2 * G] * 6), [(0, 12, (("a", 2), ("b", 2)))]),
        (laid(*[on("a", 2), on("b", 1)] * 2), [(0, 6, (("a", 2), ("b", 1)))]),
        # A last round that is not whole.
        (laid(*[on("a"), on("b"), on("c")] * 2, on("a")), [(0, 7, (("a", 1), ("b", 1), ("c", 1)))]),
        # A cycle that goes on in the next region, in the middle of it and of a stripe.
        (
            laid((*on("a", 2), *on("b", 2)), (*on("b", 1), *on("a", 2), *on("b", 1))[:2], lengths=[7 * G, 3 * G]),
            [(0, 10, (("a", 2), ("b", 2)))],
        ),
        # Neighbours on one target.
        (laid(on("a"), on("a", 3), on("a")), [(0, 5, (("a", 5),))]),
        # One round is no cycle, and a target stands in a cycle once.
        (laid(on("a"), on("b")), [(0, 1, (("a", 1),)), (1, 1, (("b", 1),))]),
    ],
)
def test_what_is_joined(regions: list[Region], made: list[tuple[int, int, tuple[tuple[str, int], ...]]]) -> None:
    expected = [Region(at * G, count * G, tuple((name, width * G) for name, width in each)) for at, count, each in made]
    assert joined(regions)[:-1] == expected


def test_regions_that_rotate_their_own_cycle_stay() -> None:
    pair = (*on("a"), *on("b"))
    regions = laid(*[pair, pair[::-1]] * 8)
    assert not list(runs_of(regions))


def test_what_moves_at_once_stays_small() -> None:
    regions = laid(*[on("a", 256), on("b", 256), on("c", 256)] * 100)
    made = joined(regions)
    assert [each.len for each in made[:-1]] == [63 * MIB] * 4 + [48 * MIB]
    assert len({each.stripes for each in made[:-1]}) == 1
    # What is left of a run, less than two cycles of it, goes on in the same.
    rest = joined(laid(*[on("a", 256), on("b", 256)] * 33))
    assert [each.len for each in rest[:-1]] == [64 * MIB, 2 * MIB] and rest[0].stripes == rest[1].stripes
    whole = [Region(n * JOINED_BYTES_MAX, JOINED_BYTES_MAX, on("a")) for n in range(9)]
    assert not list(runs_of(whole))


CYCLES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 3)), min_size=1, max_size=4, unique_by=lambda p: p[0]
)
PARTS = st.tuples(CYCLES, st.integers(1, 9), st.integers(1, 4))


@given(st.lists(st.tuples(st.lists(PARTS, min_size=1, max_size=4), st.integers(1, 5)), min_size=1, max_size=5))
def test_every_byte_stays_on_its_target(drawn) -> None:
    cycles: list[Stripes] = []
    lengths: list[int] = []
    for parts, times in drawn:
        for cycle, length, again in parts * times:
            cycles += [tuple((name, width * G) for name, width in cycle)] * again
            lengths += [length * G] * again
    regions = laid(*cycles, lengths=lengths)
    made = joined(regions)
    assert lies(made) == lies(regions)
    assert made[-1] == regions[-1] and len(made) <= len(regions)
    assert [each.start for each in made[1:]] == list(itertools.accumulate(each.len for each in made[:-1]))
    assert all(len(dict(each.stripes)) == len(each.stripes) for each in made)
    assert joined(made) == made
    # A region that is left alone is left as it was.
    starts = {each.start: each for each in regions}
    assert all(each == starts[each.start] or each.len > starts[each.start].len for each in made)


@given(st.integers(2, 5), st.integers(2, 40), st.integers(1, 3))
def test_targets_in_turn_are_always_one_region(targets: int, rounds: int, width: int) -> None:
    regions = laid(*[on(f"t{number}", width) for number in range(targets)] * rounds)
    assert len(joined(regions)) == 2


def test_sums_and_reasons_are_those_of_all_that_are_joined() -> None:
    plan = join_runs(planned(laid(*[on("a"), on("b")] * 4)))
    (one, _) = plan.files[0].regions
    assert (one.cost_s, one.cost_def_s, one.reason, one.len) == (8.0, 16.0, "why", 8 * G)
    assert joined_reason(["a", "b", "a", ""]) == "a | b"
    assert joined_reason([f"{n} {'x' * 300}" for n in range(4)]).endswith(MORE)


def test_a_region_with_a_comment_stays() -> None:
    plan = planned(laid(*[on("a"), on("b")] * 6))
    (file,) = plan.files
    regions = tuple(replace(each, comment="mine") if number == 5 else each for number, each in enumerate(file.regions))
    (made,) = join_runs(replace(plan, files=(replace(file, regions=regions),))).files
    assert [each.comment for each in made.regions] == ["", "mine", "", ""]


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"best"}))
@pytest.mark.parametrize("region_bytes", [8 * KIB, MIB])
def test_a_plan_of_any_policy_keeps_its_bytes_its_room_and_its_costs(name: str, region_bytes: int) -> None:
    offsets = [number * 8 * KIB for number in range(1024)]
    workload = Workload((file_of(offsets, 8 * KIB),), 8)
    for on_servers in (cluster(4, 2, 2 * MIB), cluster(0, 2), cluster(3, 0)):
        options = PlanOptions(region_bytes=region_bytes)
        was, plan = POLICIES[name].plan(workload, on_servers, options), None
        plan = plan_by(POLICIES[name], workload, on_servers, options)
        assert lies(list(plan.files[0].layout)) == lies(list(was.files[0].layout))
        assert plan.bytes_per_target() == was.bytes_per_target() == {k: v for k, v in plan.target_bytes.items() if v}
        assert sum(each.cost_s for each in plan.files[0].regions) == pytest.approx(plan.expected.cost_s)


def test_def_with_regions_below_a_stripe_is_one_striped_region() -> None:
    workload = Workload((file_of([number * 8 * KIB for number in range(4096)], 8 * KIB),), 8)
    options = PlanOptions(region_bytes=8 * KIB)
    assert len(POLICIES["def"].plan(workload, cluster(0, 2), options).files[0].regions) == 4097
    (one, growth) = plan_by(POLICIES["def"], workload, cluster(0, 2), options).files[0].regions
    assert one.region == Region(0, 32 * MIB, (("ssd0", 8 * KIB), ("ssd1", 8 * KIB)))
    assert growth.start == 32 * MIB


def test_best_expects_what_the_joined_regions_of_its_plan_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """It simulated them before they were joined: the records took three times the I/O time, for seeks at borders."""
    monkeypatch.setattr(polish, "IN_VAIN", 40)
    monkeypatch.setattr(polish, "IN_VAIN_LATE", 40)
    records = Workload((file_of([number * 64 * KIB for number in range(100)] * 4, 16 * KIB),), 1)
    moved = replace(zipf_workload(16, 200, 64 * KIB), processes=2)
    default = PlanOptions()
    for workload, options in ((records, default), (moved, PlanOptions(smooth=False))):
        on_servers = cluster(4, 2, 8 * MIB)
        plan = plan_by(POLICIES["best"], workload, on_servers, options)
        trials = Trials([workload], on_servers)
        plan_def = plan_by(POLICIES["def"], workload, on_servers, default)
        (run,), (run_def,) = (trials.run(each) for each in (plan, plan_def))
        assert (plan.expected.simulated_s, plan.expected.simulated_def_s) == (run.seconds, run_def.seconds)
        assert plan.expected.simulated_io_s == trials.in_flight_s(plan)


def test_regions_that_move_in_a_later_window_stay() -> None:
    offsets = [number % 64 * 8 * KIB for number in range(4096)]
    half = file_of([0 if n < 2048 else 512 * KIB for n in range(4096)], 8 * KIB)
    half.requests["offset"] += offsets
    workload = Workload((half,), 8)
    options = PlanOptions(region_bytes=64 * KIB, window_ns=2048 * 1000)
    plan = plan_by(POLICIES["h2dp"], workload, cluster(4, 2, 256 * KIB), options)
    assert any(each.moves for each in plan.migrations)
    starts = {region.start for region in plan.files[0].regions}
    assert all(move.start in starts for each in plan.migrations for move in each.moves)


def test_the_table_of_a_plan_has_one_row_for_what_repeats(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    pair = (*on("a"), *on("b"))
    write_plan(planned(laid(*[pair, on("c", 2)] * 50)), tmp_path / "plan.json")
    _show_plan(tmp_path / "plan.json", False)
    shown = capsys.readouterr().out
    said = " ".join(shown.split())
    assert "101 entries" in said and "0 to 99" in said and len(shown.splitlines()) < 20
    assert "50 times: 8KiB in stripes of 4KiB on a b, then 8KiB whole on c" in said
    _show_plan(tmp_path / "plan.json", True)
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 101
