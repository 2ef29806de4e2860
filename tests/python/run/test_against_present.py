"""What a plan gains over how its files lie now, where that is not the default layout."""

from __future__ import annotations

from dataclasses import replace

from stripewise.layout import Layout, Region
from stripewise.policy import POLICIES, PlanOptions, plan_by
from stripewise.run.baseline import against_present
from stripewise.run.simulated import with_simulation
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, zipf_workload


def test_a_plan_is_compared_with_the_present_layout_where_that_is_not_the_default_one() -> None:
    on, workload = cluster(4, 2), replace(zipf_workload(8, 200), processes=4)
    options = PlanOptions(stripe_bytes=64 * KIB)
    default = POLICIES["def"].plan(workload, on, options)
    path, size = workload.files[0].path, 64 * MIB
    disk = next(target.name for target in on.active if not target.is_ssd)

    def told(plan, *stripes: tuple[str, int]) -> str:
        return against_present(plan, workload, on, options, {path: Layout((Region(0, size, stripes),))})

    cycle = default.files[0].regions[0].stripes
    assert told(default, *cycle) == "" and told(default, *cycle[1:], cycle[0]) == ""
    assert told(default, ("gone", MIB)) == "" and against_present(default, workload, on, options, {}) == ""
    assert told(default, (disk, MIB)).startswith(
        "the files had another layout than def; 'stripewise simulate --plan PLAN'"
    )
    simulated = with_simulation(default, workload, on, options)
    said = told(simulated, (disk, MIB))
    assert said.startswith("against how the files lie now: ") and said.endswith(" times as fast in simulated I/O")
    assert float(said.split()[6]) > 1.5


def test_a_plan_of_best_gains_nothing_over_files_that_lie_as_it_has_them() -> None:
    """Its regions were simulated before they were joined: 0.30 times as fast as itself."""
    workload, on = Workload((file_of([number * 64 * KIB for number in range(100)] * 4, 16 * KIB),), 1), cluster(4, 2)
    options = PlanOptions()
    plan = plan_by(POLICIES["best"], workload, on, options)
    lying = {file.path: Layout(tuple(file.layout)) for file in plan.files}
    said = against_present(plan, workload, on, options, lying)
    assert said == "against how the files lie now: 1.00 times as fast in simulated I/O"
