"""RADAR's manager, run after run, as `stripewise replicate` has it with a store, on uses of an array made in memory.

What stands when a run begins is what was decided after the one before; how long the run takes from it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from choices import Costs, Sets
from sequences import COLUMNS

from common import GIB
from copies import FILE, ROW, SIDE, STEPS_READ, Phase, Use, four_uses
from radar import PER_NODE, SERVERS, STRIPE, cluster_of
from stripewise.layout import Layout, whole_file
from stripewise.model.radar import READAHEAD_BYTES
from stripewise.replicas import Accesses, Candidate, Found, Options, Setting, decide
from stripewise.replicas.accesses import Extent
from stripewise.replicas.candidate import STANDS, ReplicaSet
from stripewise.replicas.decay import Decay, identity
from stripewise.replicas.radar import RadarOptions
from stripewise.replicas.simulated import simulate_served
from stripewise.simulate import Settings

PROCESSES = 16


def array() -> Use:
    """The four uses, and columns of the four steps behind and before theirs."""
    four = four_uses(PROCESSES)
    (column,) = (each for each in four.phases if each.words == COLUMNS[0])
    steps = (STEPS_READ[1] - STEPS_READ[0]) * SIDE * SIDE * ROW
    moved = zip(COLUMNS[1:], (steps, -steps), strict=True)
    return replace(
        four, phases=(*four.phases, *(replace(column, words=w, offset=column.offset + by) for w, by in moved))
    )


class Prices(Setting):
    """A setting that prices each use once: there are thousands of decisions about five."""

    def __init__(self) -> None:
        cluster = cluster_of(PER_NODE)
        super().__init__(cluster, {FILE: home_of_array()})
        self._candidates: dict[tuple[Accesses, Any], Candidate] = {}
        self._together: dict[tuple[Accesses, ...], tuple[float, float]] = {}

    def candidate(self, pattern: Accesses, shape: Any, chosen: Any) -> Candidate:
        key = pattern, chosen.layout
        if key not in self._candidates:
            self._candidates[key] = super().candidate(pattern, shape, chosen)
        return self._candidates[key]

    def together_s(self, patterns: Sequence[Accesses], candidates: Sequence[Candidate]) -> tuple[float, float]:
        key = tuple(patterns)
        if key not in self._together:
            self._together[key] = super().together_s(patterns, candidates)
        return self._together[key]


def home_of_array() -> Layout:
    """The file in the paper's stripes."""
    return whole_file(cluster_of(PER_NODE).active, STRIPE, GIB)


class Manager:
    """`stripewise replicate`, run after run, on patterns made in memory."""

    def __init__(self) -> None:
        self.use = array()
        self.setting = Prices()
        self.found = {each.words: self._found(each) for each in self.use.phases}
        alone = {name: self.decided(name, (), identity, None) for name in self.found}
        self.candidates = {name: sets[0].candidates for name, sets in alone.items()}
        self.benefit_s = {name: sets[0].benefit_s for name, sets in alone.items()}
        self._names = {sets[0].key: name for name, sets in alone.items()}

    def _found(self, phase: Phase) -> Found:
        # A trace's clock begins with its run.
        return Found(tuple(phase.patterns(0)), (), {FILE: Extent(self.use.file_bytes, phase.bytes)})

    def decided(
        self, name: str, stored: Sequence[ReplicaSet], decay: Decay, room_bytes: int | None
    ) -> tuple[ReplicaSet, ...]:
        """The sets after a run, by those before."""
        options = Options(room_bytes, radar=RadarOptions(decay=decay, stored=tuple(stored)))
        return decide("radar", self.found[name], self.setting, options).sets

    def standing(self, runs: Sequence[str], decay: Decay, room_bytes: int | None) -> list[Sets]:
        """What stands when each run begins."""
        stored: tuple[ReplicaSet, ...] = ()
        found = []
        for name in runs:
            found.append(frozenset(self._names[each.key] for each in stored))
            stored = carried(self.decided(name, stored, decay, room_bytes))
        return found

    def costs(self, run_s: Callable[[str, Sets], float]) -> Costs:
        """With the model's seconds to make sets."""
        return Costs(
            run_s,
            {name: sum(each.build_s for each in some) for name, some in self.candidates.items()},
            {name: sum(each.total_bytes for each in some) for name, some in self.candidates.items()},
            self.benefit_s,
        )


def carried(sets: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Sets as a store's replicas.json gives them back."""
    return tuple(
        replace(
            each,
            candidates=tuple(replace(one, build_s=0.0, reasons=STANDS) for one in each.candidates),
            is_stored=True,
        )
        for each in sets
    )


def simulated(manager: Manager, seed: int) -> Callable[[str, Sets], float]:
    """Seconds of a run by its use and what stands; the seed draws think times."""
    cluster, home = cluster_of(PER_NODE), home_of_array()
    numbers = {each.words: number for number, each in enumerate(manager.use.phases)}
    settings = Settings(seed, SERVERS * READAHEAD_BYTES)

    @cache
    def seconds(name: str, sets: Sets) -> float:
        copies = [one for each in sorted(sets) for one in manager.candidates[each]]
        workload = manager.use.workload(numbers[name], seed)
        (run,) = simulate_served(workload, cluster, {FILE: home}, [("copies", copies)] if copies else [], settings,
                                 not copies)  # fmt: skip
        return run.seconds

    return seconds
