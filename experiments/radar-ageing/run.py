"""RADAR's ageing: runs whose use of an array changes, copies in bounded space, and what a clairvoyant would have had.

--requests is the number of runs in a sequence. Simulated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from choices import NOTHING, Costs, Sets, added_gains, clairvoyant, in_hindsight, lfu, lru
from manager import Manager, simulated
from sequences import COLUMNS, SEQUENCES, USES

from common import Given, arguments, finish, home_of, progress, write_result
from copies import FILE
from emulated import interval
from stripewise.replicas.decay import decay_named, half_life, identity
from stripewise.report import new_figure, save_figure

SEEDS, RUNS = 10, 48
#: Bounds of space, in sets of the largest kind.
BOUNDS = (1, 2)
#: RADAR's by its decay, then the others.
DECAYS = {
    "identity": identity,
    "half-life": half_life,
    "quickly": decay_named(f"{home_of(__file__) / 'own.py'}:quickly"),
}
OTHERS: dict[str, Callable[[Sequence[str], Costs, int], list[Sets]]] = {
    "lru": lru,
    "lfu": lfu,
    "added gains": added_gains,
    "in hindsight": in_hindsight,
    "clairvoyant, seen": partial(clairvoyant, seen_only=True),
    "clairvoyant": clairvoyant,
}
SCHEMES = ("none", "no bound", *DECAYS, *OTHERS)
#: Okabe and Ito's, which colour-blind readers tell apart.
COLOURS = {
    "none": "#7f7f7f", "identity": "#E69F00", "half-life": "#D55E00", "quickly": "#F0C0A0", "lru": "#56B4E9",
    "lfu": "#0072B2", "added gains": "#009E73", "in hindsight": "#CC79A7", "clairvoyant, seen": "#000000",
}  # fmt: skip
#: What all are measured by.
BEST = "clairvoyant"
#: k of b x 2^(-k x age): 0 is identity, 1 half-life, 8 `quickly`.
RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
#: Runs that a use waits for at most.
HANDOVER_MAX = 60


@dataclass(frozen=True)
class Ran:
    """A scheme on one sequence: seconds of the runs and of making sets, by the store too, which makes all of a file's
    sets anew when one changes; runs that found their own set; sets made; what copies of other uses cost the runs; runs
    by columns without their set; the most runs in a row for which a set stood unused.
    """

    run_s: float
    build_s: float
    store_build_s: float
    hits: int
    made: int
    harm_s: float
    column_misses: int
    idle: int

    @property
    def total_s(self) -> float:
        return self.run_s + self.build_s


def ran(runs: Sequence[str], standing: Sequence[Sets], costs: Costs) -> Ran:
    """A scheme's figures."""
    run_s, build_s = costs.seconds(runs, standing)
    before = [NOTHING, *standing]
    changes = [(a, b) for a, b in zip(before, standing, strict=False) if a != b]
    return Ran(
        run_s,
        build_s,
        sum(costs.made_s(NOTHING, after) for _, after in changes),
        sum(use in sets for use, sets in zip(runs, standing, strict=True)),
        sum(len(b - a) for a, b in changes),
        sum(costs.run_s(use, sets) - costs.run_s(use, sets & {use}) for use, sets in zip(runs, standing, strict=True)),
        sum(use in COLUMNS and use not in sets for use, sets in zip(runs, standing, strict=True)),
        longest_idle(runs, standing),
    )


def longest_idle(runs: Sequence[str], standing: Sequence[Sets]) -> int:
    """The most runs in a row for which a set stood without being used."""
    idle: dict[str, int] = {}
    most = 0
    for use, sets in zip(runs, standing, strict=True):
        idle = {each: 0 if each == use else idle.get(each, 0) + 1 for each in sets}
        most = max(most, *idle.values(), 0)
    return most


@dataclass(frozen=True)
class Drawn:
    """A sequence under one seed and bound: every scheme, total seconds by the rate of decay, and of a clairvoyant whom
    making sets costs nothing the seconds of runs.
    """

    schemes: dict[str, Ran]
    by_rate_s: tuple[float, ...]
    free_s: float


def run_seed(seed: int, count: int) -> dict[tuple[str, int], Drawn]:
    """Every sequence in every bound."""
    manager = Manager()
    costs = manager.costs(simulated(manager, seed))
    largest = max(costs.space_bytes.values())
    found = {}
    for bound in BOUNDS:
        for number, (kind, drawn) in enumerate(SEQUENCES.items()):
            runs = drawn(np.random.default_rng([seed, number, bound]), count, bound)
            found[kind, bound] = _drawn(manager, costs, runs, bound * largest)
    return found


def _drawn(manager: Manager, costs: Costs, runs: Sequence[str], room: int) -> Drawn:
    def rated(rate: float) -> float:
        def decay(benefit_s: float, age: float) -> float:
            return float(benefit_s * 2.0 ** (-rate * age))

        return ran(runs, manager.standing(runs, decay, room), costs).total_s

    standing = {"none": [NOTHING] * len(runs), "no bound": manager.standing(runs, identity, None)}
    standing |= {name: manager.standing(runs, decay, room) for name, decay in DECAYS.items()}
    standing |= {name: choose(runs, costs, room) for name, choose in OTHERS.items()}
    free = replace(costs, build_s=dict.fromkeys(costs.build_s, 0.0))
    return Drawn(
        {name: ran(runs, standing[name], costs) for name in SCHEMES},
        tuple(rated(each) for each in RATES),
        ran(runs, clairvoyant(runs, free, room), free).run_s,
    )


def handover(manager: Manager) -> list[dict[str, Any]]:
    """After one run of a use, how many runs of another until its set stands, with room for one set; None: never."""
    largest = max(sum(each.total_bytes for each in some) for some in manager.candidates.values())
    found = []
    for before in USES:
        for after in USES:
            if before == after:
                continue
            runs = [before, *[after] * HANDOVER_MAX]
            stood = {
                name: [after in sets for sets in manager.standing(runs, decay, largest)]
                for name, decay in DECAYS.items()
            }
            share = manager.found[after].extents[FILE].read_bytes / manager.use.file_bytes
            found.append({
                "from": before, "to": after,
                "gain_ratio": manager.benefit_s[before] / manager.benefit_s[after], "read_share": share,
                "runs": {name: each.index(True) - 1 if any(each) else None for name, each in stood.items()},
            })  # fmt: skip
    return found


def row_of(kind: str, bound: int, drawn: Sequence[Drawn]) -> dict[str, Any]:
    """A row: total seconds over the clairvoyant's, and what they are made of."""
    several = [each.schemes for each in drawn]
    names = [name for name in SCHEMES if name != BEST]
    over = {name: [each[name].total_s / each[BEST].total_s for each in several] for name in names}
    paired = [each["half-life"].total_s / each["identity"].total_s for each in several]
    by_rate = [[seconds / each.schemes[BEST].total_s for seconds in each.by_rate_s] for each in drawn]
    return {
        "sequence": kind,
        "room_sets": bound,
        **{name: fmean(values) for name, values in over.items()},
        "interval": {name: interval(values) for name, values in over.items()},
        "worst": {name: max(values) for name, values in over.items()},
        "half_life_over_identity": {
            "mean": fmean(paired), "interval": interval(paired), "least": min(paired), "most": max(paired),
        },
        "free": {name: fmean(e.schemes[name].run_s / e.free_s for e in drawn) for name in names},
        "by_rate": {f"{rate:g}": fmean(values) for rate, values in zip(RATES, zip(*by_rate, strict=True), strict=True)},
        "total_s": {name: fmean(each[name].total_s for each in several) for name in SCHEMES},
        **{
            key.name: {name: fmean(asdict(each[name])[key.name] for each in several) for name in SCHEMES}
            for key in fields(Ran)
        },
    }  # fmt: skip


def all_seeds(given: Given) -> Iterator[dict[tuple[str, int], Drawn]]:
    """In order, on all cores."""
    seeds = range(1, given.seeds + 1)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(seeds))) as pool:
        yield from pool.map(run_seed, seeds, [given.requests] * len(seeds))


#: What the keys of the rows mean, for the end of the result file.
MEANINGS = {
    "simulated": True,
    "unit": "seconds of all runs and of making sets, over those of the clairvoyant; the mean over the seeds",
    "column_label": "times clairvoyant, simulated",
    "room_sets": "bound of space in sets of 256 MiB (the set of `time` has 128 MiB)",
    "interval": "half the 95 % interval of the mean (Student's t)",
    "worst": "the largest of the seeds",
    "half_life_over_identity": "total seconds, seed by seed",
    "free": "seconds of runs alone over those of a clairvoyant whom making sets costs nothing",
    "by_rate": "over the clairvoyant, RADAR with benefits that fade by b x 2^(-k x age), by k: 0 identity, 1 half-life",
    "run_s": "of all runs; build_s: to make sets, by the model; store_build_s: as a store does it, all sets of the "
    "file anew when one changes (not in the totals)",
    "hits": "runs at whose beginning their own set stands; made: sets made; column_misses: runs by columns without it",
    "harm_s": "seconds that runs take longer for copies of other uses that serve them",
    "idle": "the most runs in a row for which a set stands unused",
    "handover": "with room for one set, after one run of `from`: runs of `to` until its set stands; null: never in "
    f"{HANDOVER_MAX}; gain_ratio: from's gain over to's by the model; read_share: of the file, by a run of `to`",
}


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, RUNS)
    several = list(all_seeds(given))
    rows = []
    for kind, bound in several[0]:
        row = row_of(kind, bound, [each[kind, bound] for each in several])
        told = ", ".join(f"{name} {row[name]:.2f} ± {half:.2f}" for name, half in row["interval"].items())
        progress(f"{kind}, room for {bound}: {BEST} {row['total_s'][BEST]:.0f} s; times that: {told}, simulated")
        rows.append(row)
    manager = Manager()
    none = simulated(manager, 1)
    sets = [
        {
            "use": use,
            "gain_s": manager.benefit_s[use],
            "build_s": manager.costs(none).build_s[use],
            "space_bytes": manager.costs(none).space_bytes[use],
            "run_s": none(use, NOTHING),
            "run_s_with": {other: none(use, frozenset([other])) for other in USES},
        }
        for use in USES
    ]
    result = {
        "rows": rows,
        **MEANINGS,
        "sets": sets,
        "handover": handover(manager),
        "seeds": given.seeds,
        "runs": given.requests,
    }
    write_result(given.out, result)
    draw(given.out / "result.svg", rows)


def draw(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """By room: bars of each scheme on every sequence, and lines over the rate of decay."""
    figure = new_figure(13.0, 8.0)
    grid = figure.subplots(2, len(BOUNDS), squeeze=False)
    shown = [name for name in SCHEMES if name not in (BEST, "no bound")]
    for (bars, lines), bound in zip(grid.T, BOUNDS, strict=True):
        mine = [row for row in rows if row["room_sets"] == bound]
        width = 0.8 / len(shown)
        for number, name in enumerate(shown):
            at = [place - 0.4 + (number + 0.5) * width for place in range(len(mine))]
            half = [row["interval"][name] for row in mine]
            bars.bar(at, [row[name] for row in mine], width, label=name, yerr=half, color=COLOURS[name])
        bars.set_xticks(range(len(mine)), [row["sequence"].replace(" ", "\n") for row in mine], fontsize="small")
        bars.set_title(f"room for {bound} of the sets", fontsize="medium")
        for row in mine:
            lines.plot(
                range(len(RATES)), list(row["by_rate"].values()), marker="o", markersize=4, label=row["sequence"]
            )
        lines.set_xticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
        lines.set_xlabel("k of b x 2^(-k x age): 0 identity, 1 half-life", fontsize="small")
        for axes in (bars, lines):
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.set_ylabel("times clairvoyant", fontsize="small")
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", alpha=0.3)
    for axes in grid[:, -1]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    title = "Copies over a sequence of changing uses, simulated"
    figure.suptitle(title)
    save_figure(figure, path, title, ("use",), [])


if __name__ == "__main__":
    finish(main)
