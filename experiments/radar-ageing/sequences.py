"""Sequences of runs whose uses of one file change: which use each run has, drawn by a seed.

Each takes the number of runs, and for how many sets there is room: uses are one more, so that one lacks room at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Of the array (RADAR, section III-B), and its columns in other steps, which gain what columns gain.
USES = ("row", "column", "cube", "time")
COLUMNS = ("column", "later column", "earlier column")
#: Of the runs of a phase, those of its own use.
MAIN = 0.9
#: Runs until another use has its turn, where turns are long.
TURN = 6

Random = np.random.Generator


def phases(random: Random, count: int, room: int) -> list[str]:
    """A phase for each use, in which it dominates, in an order that is drawn; whatever the room."""
    order = _drawn(random, USES, len(USES))
    found = []
    for number in range(count):
        main = order[number * len(order) // count]
        others = [each for each in USES if each != main]
        found.append(main if random.random() < MAIN else str(random.choice(others)))
    return found


def drift(random: Random, count: int, room: int) -> list[str]:
    """One use gives way to the next, run by run likelier."""
    order = _drawn(random, USES, room + 1)
    at = (np.arange(count) + 0.5) / count * room
    return [order[int(each) + int(random.random() < each % 1)] for each in at]


def turns(random: Random, count: int, room: int) -> list[str]:
    """Uses in turn, a run each."""
    return _in_turn(_drawn(random, USES, room + 1), count, 1)


def long_turns(random: Random, count: int, room: int) -> list[str]:
    """Uses in turn, six runs each."""
    return _in_turn(_drawn(random, USES, room + 1), count, TURN)


def interloper(random: Random, count: int, room: int) -> list[str]:
    """As many uses in turn as there is room for, and in the first third one run by columns, which gain most of all."""
    found = _in_turn(_drawn(random, [each for each in USES if each != "column"], room), count, 1)
    found[int(random.integers(0, max(1, count // 3)))] = "column"
    return found


def mix(random: Random, count: int, room: int) -> list[str]:
    """Each run another use, all as likely; whatever the room."""
    return [str(each) for each in random.choice(USES, count)]


def equal_gains(random: Random, count: int, room: int) -> list[str]:
    """Columns of other steps, which gain the same, in turns of six in an order that is drawn."""
    return _in_turn(_drawn(random, COLUMNS, room + 1), count, TURN)


def _drawn(random: Random, uses: list[str] | tuple[str, ...], count: int) -> list[str]:
    return [str(each) for each in random.choice(uses, count, replace=False)]


def _in_turn(uses: list[str], count: int, length: int) -> list[str]:
    return [uses[number // length % len(uses)] for number in range(count)]


SEQUENCES: dict[str, Callable[[Random, int, int], list[str]]] = {
    "phases": phases,
    "drift": drift,
    "turns of one": turns,
    "turns of six": long_turns,
    "interloper": interloper,
    "mix": mix,
    "equal gains": equal_gains,
}
