"""Which sets of copies stand at the beginning of each run of a sequence, by choosers that RADAR's is held against.

A set is known by the use that it was made for. Choosers that know the future find the optimum: a dynamic programme over
all choices of sets that fit, and the best single choice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

Sets = frozenset[str]
NOTHING: Sets = frozenset()


@dataclass(frozen=True)
class Costs:
    """Seconds of a run by its use and what stands, seconds to make a set, its bytes, and its gain by the model (s)."""

    run_s: Callable[[str, Sets], float]
    build_s: Mapping[str, float]
    space_bytes: Mapping[str, int]
    gain_s: Mapping[str, float]

    def made_s(self, before: Sets, after: Sets) -> float:
        """To make what is new; removing takes no time."""
        return sum(self.build_s[each] for each in sorted(after - before))

    def seconds(self, runs: Sequence[str], standing: Sequence[Sets]) -> tuple[float, float]:
        """Of all runs, and of making what stands, the first run's sets too."""
        run_s = sum(self.run_s(use, sets) for use, sets in zip(runs, standing, strict=True))
        return run_s, sum(self.made_s(before, after) for before, after in pairwise([NOTHING, *standing]))

    def choices(self, uses: Collection[str], room_bytes: int) -> list[Sets]:
        """All sets of these uses that fit, by number and name."""
        names = sorted(set(uses))
        several = (frozenset(each) for count in range(len(names) + 1) for each in combinations(names, count))
        return [each for each in several if sum(self.space_bytes[name] for name in each) <= room_bytes]


def clairvoyant(runs: Sequence[str], costs: Costs, room_bytes: int, seen_only: bool = False) -> list[Sets]:
    """The sequence of sets with the least seconds, runs and making together, for one who knows all runs beforehand.

    It may make sets before the first run; with `seen_only` a set no sooner than after the first run of its use.
    """
    # By what may stand at the run at hand: seconds until then, and all that stood.
    found: dict[Sets, tuple[float, tuple[Sets, ...]]] = {NOTHING: (0.0, ())}
    for number, use in enumerate(runs):
        choices = costs.choices(runs[:number] if seen_only else runs, room_bytes)
        found = {after: _reached(found, after, use, costs) for after in choices}
    return list(min(found.values(), key=lambda each: each[0])[1])


def _reached(
    found: Mapping[Sets, tuple[float, tuple[Sets, ...]]], after: Sets, use: str, costs: Costs
) -> tuple[float, tuple[Sets, ...]]:
    """A run with these sets, after whatever stood before is cheapest to come from; of equals the first."""
    spent, before = min(
        ((seconds + costs.made_s(each, after), each) for each, (seconds, _) in found.items()), key=lambda pair: pair[0]
    )
    return spent + costs.run_s(use, after), (*found[before][1], after)


def in_hindsight(runs: Sequence[str], costs: Costs, room_bytes: int) -> list[Sets]:
    """One choice for all runs, the best of those that fit."""
    best = min(costs.choices(runs, room_bytes), key=lambda each: sum(costs.seconds(runs, [each] * len(runs))))
    return [best] * len(runs)


def lru(runs: Sequence[str], costs: Costs, room_bytes: int) -> list[Sets]:
    """What was used last, while it fits."""
    return _online(runs, _latest, costs, room_bytes)


def lfu(runs: Sequence[str], costs: Costs, room_bytes: int) -> list[Sets]:
    """What was used most often so far, while it fits; of equals what was used last."""
    return _online(runs, lambda seen: sorted(_latest(seen), key=lambda use: -seen.count(use)), costs, room_bytes)


def added_gains(runs: Sequence[str], costs: Costs, room_bytes: int) -> list[Sets]:
    """What would have gained most in all runs so far by the model, while it fits; of equals what was used last."""

    def ranked(seen: Sequence[str]) -> list[str]:
        return sorted(_latest(seen), key=lambda use: -seen.count(use) * costs.gain_s[use])

    return _online(runs, ranked, costs, room_bytes)


def _latest(seen: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(reversed(seen)))


def _online(
    runs: Sequence[str], ranked: Callable[[Sequence[str]], Iterable[str]], costs: Costs, room_bytes: int
) -> list[Sets]:
    found = [NOTHING]
    for number in range(1, len(runs)):
        left = room_bytes
        kept = []
        for use in ranked(runs[:number]):
            if costs.space_bytes[use] <= left:
                left -= costs.space_bytes[use]
                kept.append(use)
        found.append(frozenset(kept))
    return found[: len(runs)]
