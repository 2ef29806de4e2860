"""Heat at every scale: how many requests of the next run will begin where, told from those of this one.

Places are slots, the requests' own grid. They are halved again and again; at every halving of every node the part of
its requests that begin in its left half is either half of them, as chance scatters them, or something else, of which a
Beta distribution of the level says how far from half. How often it is something else, and the distribution, are what
makes all splits of the level together most likely (an empirical-Bayes Polya tree; Kolaczyk 1999 has the recursive
splits of Poisson counts, Efron 2010 the test of all of them together). So heat is followed down to single slots where
the level shows that it is told by the trace, and is even where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....model.general import Bool, Float, Int
from ..tuning import ALIKE, EVEN_BEFORE, EVIDENCE, HEAT_STEPS, LAST_BEFORE, LAST_SIGMAS

#: How far from even splits may be: parameters of symmetric Beta distributions.
SHAPES = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4])
#: Splits of a level are taken by how many requests they divide: hot nodes split otherwise than cold ones.
SIZES = np.array([2.0, 4.0, 16.0, 64.0, 256.0])


@dataclass(frozen=True)
class Runs:
    """Runs of slots that are expected to be asked for alike: run k is [first[k], first[k + 1]), `expected` all its
    requests."""

    first: Int
    expected: Float

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self.expected)

    @property
    def slots(self) -> Int:
        """How many slots each has."""
        return np.diff(self.first)


def heat_of(slot: Int, weight: Float, slots: int, finest: int = 0, most: int = 50_000) -> Runs:
    """The runs of a file of `slots` slots in which requests began at `slot`, each standing for `weight`.

    No run ends inside 2^finest slots. Where there are more than `most` runs, those nearest in density are one.
    """
    places, inverse = np.unique(slot, return_inverse=True)
    count: Float = np.bincount(np.asarray(inverse).ravel(), weights=weight).astype(np.float64)
    top = max(finest, int(slots - 1).bit_length())
    node, mass = np.zeros(1, dtype=np.int64), np.array([count.sum()])
    done: list[tuple[Int, Int, Float]] = []
    for level in range(top - 1, finest - 1, -1):
        wholes, whole_count = _summed(places >> (level + 1), count)
        halves, half_count = _summed(places >> level, count)
        left = _at(halves, half_count, wholes * 2)
        told = _level(left, whole_count)
        told = np.where(_ends_within(wholes, level, slots), _last(left, whole_count, wholes, level, slots), told)
        # What nothing was asked of is not split again: below it all is even.
        empty = ~np.isin(node, wholes)
        done.append((node[empty] << (level + 1), (node[empty] + 1) << (level + 1), mass[empty]))
        node, mass = node[~empty], mass[~empty]
        part = told[np.searchsorted(wholes, node)]
        node = np.concatenate([node * 2, node * 2 + 1])
        mass = np.concatenate([mass * part, mass * (1 - part)])
        here = (node << level) < slots
        node, mass = node[here], mass[here]
    done.append((node << finest, (node + 1) << finest, mass))
    first, end, expected = (np.concatenate(column) for column in zip(*done, strict=True))
    order = np.argsort(first, kind="stable")
    return _merged(first[order], np.minimum(end[order], slots), expected[order], most)


def _summed(node: Int, count: Float) -> tuple[Int, Float]:
    """Ascending nodes once, and their counts."""
    first = np.flatnonzero(np.diff(node, prepend=-1))
    return node[first], np.add.reduceat(count, first)


def _at(node: Int, count: Float, wanted: Int) -> Float:
    """The counts of nodes; 0 of those that are not there."""
    at = np.minimum(np.searchsorted(node, wanted), len(node) - 1)
    return np.where(node[at] == wanted, count[at], 0.0)


def _level(left: Float, whole: Float) -> Float:
    """Of every node the part of its requests to expect in its left half."""
    k, n = np.rint(left), np.rint(whole)
    pairs, inverse, many = np.unique(np.column_stack([k, n]), axis=0, return_inverse=True, return_counts=True)
    k, n = pairs.T
    # No shape makes splits likelier than sure, and one request splits alike by any: too few tell nothing.
    if float((many * n)[n > 1].sum()) * np.log(2.0) < EVIDENCE:
        return np.full(len(left), 0.5)
    # Shape (pairs, 1 + shapes): even splits, then those of every shape.
    log = np.column_stack(
        [-n * np.log(2.0), *(_log_beta(k + shape, n - k + shape) - _log_beta(shape, shape) for shape in SHAPES)]
    )
    means = np.column_stack([np.full(len(k), 0.5), *((k + shape) / (n + 2 * shape) for shape in SHAPES)])
    size = np.maximum(0, np.searchsorted(SIZES, n, side="right") - 1)
    expected = np.full(len(k), 0.5)
    for each in np.unique(size).tolist():
        of = size == each
        expected[of] = _mixed(log[of], means[of], many[of].astype(np.float64))
    return np.asarray(expected[np.asarray(inverse).ravel()])


def _mixed(log: Float, means: Float, many: Float) -> Float:
    """The mean of every split under the mixture of even and uneven ones that makes all of them most likely."""
    top = log.max(axis=1, keepdims=True)
    likely = np.exp(log - top)
    weight = np.full(log.shape[1], 0.5 / (log.shape[1] - 1))
    weight[0] = 0.5
    for _ in range(HEAT_STEPS):
        given = likely * weight
        given /= given.sum(axis=1, keepdims=True)
        weight = many @ given
        weight[0] += EVEN_BEFORE
        weight /= weight.sum()
    gained = float((np.log(likely @ weight) + top[:, 0] - log[:, 0]) @ many)
    if gained < EVIDENCE:
        return np.full(len(log), 0.5)
    given = likely * weight
    given /= given.sum(axis=1, keepdims=True)
    return np.asarray((given * means).sum(axis=1))


def _ends_within(node: Int, level: int, slots: int) -> Bool:
    """Nodes in which the file ends: their halves are not of one length."""
    return np.asarray((node + 1) << (level + 1) > slots)


def _last(left: Float, whole: Float, node: Int, level: int, slots: int) -> Float:
    """The left part where the file ends within: that of its slots, unless the counts say otherwise."""
    begin = node << (level + 1)
    both = np.clip(slots - begin, 1, 2 << level)
    share = np.minimum(1.0, (1 << level) / both)
    chance = np.sqrt(np.maximum(whole * share * (1 - share), 1e-12))
    counted = (left + LAST_BEFORE * share) / (whole + LAST_BEFORE)
    return np.asarray(np.where(np.abs(left - whole * share) <= LAST_SIGMAS * chance, share, counted))


def _log_beta(a: Float | float, b: Float | float) -> Float:
    return np.asarray(_log_gamma(np.asarray(a)) + _log_gamma(np.asarray(b)) - _log_gamma(np.asarray(a) + np.asarray(b)))


def _log_gamma(x: Float) -> Float:
    """ln Gamma(x) for x > 0, to 1e-10: Stirling's series past 8."""
    shift = np.zeros_like(x, dtype=np.float64)
    at = np.array(x, dtype=np.float64)
    for _ in range(8):
        low = at < 8
        shift = shift + np.where(low, np.log(at), 0.0)
        at = np.where(low, at + 1, at)
    series = 1 / (12 * at) - 1 / (360 * at**3) + 1 / (1260 * at**5)
    return np.asarray((at - 0.5) * np.log(at) - at + 0.5 * np.log(2 * np.pi) + series - shift)


def _merged(first: Int, end: Int, expected: Float, most: int) -> Runs:
    """Neighbours of nearly the same density put together, more and more of them until there are few enough."""
    ratio = ALIKE
    slots = np.maximum(end - first, 1)
    while True:
        with np.errstate(divide="ignore"):
            level = np.floor(np.log(np.maximum(expected / slots, 1e-9)) / np.log(ratio) + 0.5)
        new = np.flatnonzero(np.diff(level, prepend=np.nan) != 0)
        if len(new) <= most:
            break
        ratio = ratio**1.5
    starts = np.append(first[new], end[-1])
    return Runs(starts, np.add.reduceat(expected, new))
