"""Figure 11 of paper 000 (H2DP), run on emulated devices: what dynamic migration (DDM) gains at four request sizes.

The store's 4 hard disks and 2 SSDs, which hold 1/6 of the file, are emulated: their time is kept by a clock per device
that all processes share, their bytes are real. (The paper's 12 and 4 would deliver more at 4 MiB than two cores can
copy and check.) Two processes per device, as in the paper. mpiio reads a shared file in windows, Zipf 0.8, and in each
window the regions --shift places further down in popularity are the hot ones; every byte that it reads is checked.
"without" stays where window 0 is placed; "with" has a mover beside it that follows the plan; "min-gain 1" does so with
a plan that moves only what pays for its copy within a window. The three take turns --repeat times. The mover does not
yield to the program unless --max-slowdown says so.

Beside what was measured stand the published figure, the cost model's gain (sums of request costs) and the bound's (the
busiest device) for the same plan. docs/figure11.md says what came out, tools/figure11.py computes the paper's own case.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import figure11
import numpy as np
from figure11_run import Bench, Outcome

from stripewise.errors import StripewiseError, UsageError
from stripewise.plan import Plan
from stripewise.policy.toolkit.pricing import plan_bound
from stripewise.policy.toolkit.regions import window_tables
from stripewise.units import MIB, format_size, parse_size
from stripewise.workload.zipf import ZipfRun

#: By the bound, window 0 fills this share of its time: later windows take longer, above all beside a mover.
FILL = 0.65
WITHOUT, WITH, PAYING = "without", "with", "min-gain 1"


def bounds_s(shape: ZipfRun, plan: Plan, bench: Bench, window_0: bool) -> list[float]:
    """The bound on every window's seconds: as the plan has it, or had all stayed as in window 0."""
    _, tables = window_tables(shape.workload(bench.path), shape.region_bytes, round(shape.window_s * 1e9))
    found = []
    for number, each in enumerate(tables):
        placed = [region.stripes for region in plan.layout_in_window(bench.path, 0 if window_0 else number)]
        found.append(plan_bound(each.table, bench.cluster, placed).makespan_s(shape.processes) if each.table else 0.0)
    return found


def filled(shape: ZipfRun, bench: Bench) -> ZipfRun:
    """`shape` with as many reads as fill window 0 by the bound."""
    pilot = figure11.with_requests(shape, figure11.PILOT_REQUESTS, writing=False)
    plan = figure11.planned(pilot, bench.cluster, bench.path)
    each_s = bounds_s(pilot, plan, bench, window_0=True)[0] / figure11.PILOT_REQUESTS
    return figure11.with_requests(shape, max(1, math.floor(FILL * shape.window_s / each_s)), writing=False)


def measured(shape: ZipfRun, bench: Bench, repeat: int, max_slowdown: float) -> dict[str, Any]:
    """One request size: all its runs, and what they come to."""
    shape = filled(shape, bench)
    plan = figure11.planned(shape, bench.cluster, bench.path)
    paying = figure11.planned(shape, bench.cluster, bench.path, min_gain=1.0)
    variants = {WITHOUT: (plan, False), WITH: (plan, True), PAYING: (paying, True)}
    outcomes: dict[str, list[Outcome]] = {name: [] for name in variants}
    for turn in range(repeat):
        for name, (followed, moves) in variants.items():
            mover = ["--max-slowdown", str(max_slowdown)] if moves else None
            outcomes[name].append(bench.measured(f"{name.replace(' ', '-')}-{turn}", followed, shape, mover))
    static, moving = (bounds_s(shape, plan, bench, window_0) for window_0 in (True, False))
    expected = figure11.gains(plan)
    without = outcomes[WITHOUT]
    return {
        "request_bytes": shape.request_bytes,
        "emulated": True,
        "reads_per_window": shape.reads // shape.windows * shape.processes,
        "model_gain": expected["gain"],
        "bound_gain": sum(static) / sum(moving) - 1,
        "bound_seconds": {WITHOUT: static, WITH: moving},
        "plan_hybrid": {WITHOUT: expected["hybrid_without"], WITH: expected["hybrid_with"]},
        "published": figure11.PUBLISHED.get(shape.request_bytes, {}),
        "variants": {
            name: figures(found, without, bench, variants[name][0], shape) for name, found in outcomes.items()
        },
    }


def figures(
    found: Sequence[Outcome], without: Sequence[Outcome], bench: Bench, plan: Plan, shape: ZipfRun
) -> dict[str, Any]:
    """What the runs of one variant come to; means over its runs."""
    pairs = [other.seconds / each.seconds - 1 for each, other in zip(found, without, strict=True)]
    each_region = shape.region_bytes / shape.file_bytes
    wanted = [bench.wanted(plan, window) for window in range(shape.windows)]
    settled = (
        [[each.settled(w, wanted[w]) for w in range(1, shape.windows)] for each in found] if found[0].mover else []
    )
    return {
        "window_seconds": np.mean([each.window_seconds for each in found], axis=0).tolist(),
        "seconds": [each.seconds for each in found],
        "gain": sum(each.seconds for each in without) / sum(each.seconds for each in found) - 1,
        "gain_of_pairs": pairs,
        "gain_after_moves": after_moves(found, without, settled),
        "moved_in": float(np.mean([each.came_in for each in found])) * each_region,
        "moved": float(np.mean([each.mover.get("moved_bytes", 0) for each in found])) / shape.file_bytes,
        "moves": [each.mover.get("moves", 0) for each in found],
        "left": [len(each.mover.get("left", ())) for each in found],
        "hybrid": float(np.mean([each.hybrid.mean() for each in found])),
        "verified_bytes": [each.verified_bytes for each in found],
        "settled_after_s": [
            None if at is None else at - float(each.start[each.window_reads(w)].min())
            for each, times in zip(found, settled, strict=False)
            for w, at in enumerate(times, 1)
        ],
        "frozen_max_s": max((float(each.status.get("frozen_max_s", 0)) for each in found), default=0.0),
        "aborted_freezes": sum(int(each.status.get("aborted_freezes", 0)) for each in found),
    }


def after_moves(
    found: Sequence[Outcome], without: Sequence[Outcome], settled: Sequence[Sequence[float | None]]
) -> float | None:
    """The gain of the reads that began when their window's moves were done, over those windows' rate without."""
    with_s = without_s = 0.0
    for each, other, times in zip(found, without, settled, strict=False):
        for window, at in enumerate(times, 1):
            ours = each.window_reads(window)
            start, end = each.start[ours], (each.start + each.took_s)[ours].max()
            if at is None or at >= end:
                continue
            with_s += end - at
            without_s += (start >= at).sum() * other.window_seconds[window] / len(start)
    return without_s / with_s - 1 if with_s > 0 else None


def percent(share: float | None, digits: int = 0) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def seconds(values: Sequence[float | None]) -> str:
    return " + ".join("-" if value is None else f"{value:.1f}" for value in values)


def printed(found: dict[str, Any]) -> list[str]:
    """The lines of one request size; each says that it is emulated."""
    bound, variants = found["bound_seconds"], found["variants"]
    lines = [
        f"{found['reads_per_window']:,} reads per window; "
        f"by the bound {seconds(bound[WITHOUT])} s without, {seconds(bound[WITH])} s with"
    ]
    for name, each in variants.items():
        runs = ", ".join(f"{total:.1f}" for total in each["seconds"])
        lines.append(
            f"{name}: windows {seconds(each['window_seconds'])} s = {sum(each['window_seconds']):.1f} s (runs {runs}); "
            f"{percent(each['hybrid'])} of the reads on hybrid servers; "
            f"{sum(each['verified_bytes']) / 1e9:.1f} GB verified"
        )
        if name != WITHOUT:
            lines += [f"{name}: {line}" for line in variant_lines(each, found)]
    return [f"{format_size(found['request_bytes'])} emulated: {line}" for line in lines]


def variant_lines(each: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """A variant with a mover beside what was expected and published."""
    published = found["published"]
    pairs = ", ".join(percent(pair) for pair in each["gain_of_pairs"])
    more = each["hybrid"] / max(1e-9, found["variants"][WITHOUT]["hybrid"]) - 1
    moves, left = (", ".join(map(str, each[key])) for key in ("moves", "left"))
    return [
        f"gain {percent(each['gain'])} (pairs {pairs}; model {percent(found['model_gain'])}, "
        f"bound {percent(found['bound_gain'])}, published {percent(published.get('gain'))}); "
        f"{percent(each['gain_after_moves'])} once a window's moves were done",
        f"{percent(each['moved_in'])} came in (published {percent(published.get('moved'))}), "
        f"{percent(each['moved'])} moved in and out; moves {moves}, left {left}; "
        f"{percent(more)} more reads on hybrid servers (published {percent(published.get('more_requests_on_hybrid'))})",
        f"moves done {', '.join('-' if at is None else f'{at:.1f}' for at in each['settled_after_s'])} s into "
        f"their windows; writers kept out {1e3 * each['frozen_max_s']:.1f} ms at most",
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only 64 KiB, unless --size says otherwise")
    parser.add_argument("--size", action="append", help="request size, repeatable (default: the paper's four)")
    parser.add_argument("--file-size", default="512MiB")
    parser.add_argument("--region-size", default="4MiB")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--hservers", type=int, default=4, help="emulated hard disks")
    parser.add_argument("--sservers", type=int, default=2, help="emulated SSDs; they hold 1/6 of the file")
    parser.add_argument("--alpha", type=float, default=0.8)
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--shift", type=int, default=11, help="regions that the hot set moves by between windows")
    parser.add_argument("--window", default="10s", help="length of a window")
    parser.add_argument("--repeat", type=int, default=1, help="runs of every kind, by turns")
    parser.add_argument("--max-slowdown", type=float, default=0.0, help="the mover's; 0: it does not yield")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", type=Path, help="directory for the store (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write the figures as JSON here")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    sizes = [parse_size(text, "--size") for text in given.size or []] or figure11.SIZES[: 1 if given.quick else None]
    shape = figure11.run_of(given)
    if any(shape.region_bytes % size for size in sizes) or min(shape.regions, shape.windows - 1, given.repeat) < 1:
        raise UsageError("regions must be multiples of every request size, windows at least 2, runs at least 1")
    begun = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="stripewise-figure11-", dir=given.scratch))
    try:
        cluster = figure11.papers_cluster(
            shape.file_bytes, shape.region_bytes, 0.0, 0.0, hservers=given.hservers, sservers=given.sservers
        )
        bench = Bench(base, cluster, shape)
        print(
            f"figure 11, emulated: {given.hservers} emulated hard disks, {given.sservers} emulated SSDs; "
            f"{shape.processes} processes, {shape.file_bytes // MIB} MiB in regions of "
            f"{format_size(shape.region_bytes)}, {shape.windows} windows of {shape.window_s:g} s, shift {shape.shift}"
        )
        rows = []
        for size in sizes:
            rows.append(measured(replace(shape, request_bytes=size), bench, given.repeat, given.max_slowdown))
            print("\n".join(printed(rows[-1])), flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"figure 11, emulated: {time.monotonic() - begun:.0f} s in all")


if __name__ == "__main__":
    try:
        main()
    except StripewiseError as error:
        sys.exit(f"figure11_emulated: {error}")
