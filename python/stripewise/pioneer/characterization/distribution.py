"""Distributions of a profile: what a trace showed, value by value or in quantiles, or a law that a person writes.

In the profile each is one JSON object (docs/formats.md, Profile of a workload); draws are made from them in Rust.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...files.fields import Fields

#: Distinct values that a profile lists with their weights; of more it keeps quantiles.
VALUES_MAX = 512
#: Steps between the quantiles, which are one more.
QUANTILE_STEPS = 256
#: Beyond this whole numbers are no longer exact in JSON readers that have floats alone.
NUMBER_MAX = float(1 << 63)

Number = int | float


@dataclass(frozen=True)
class Values:
    """Distinct values, ascending, and how often each was seen."""

    values: tuple[Number, ...]
    weights: tuple[Number, ...]

    def mean(self) -> float:
        """The expected value."""
        total = math.fsum(self.weights)
        return math.fsum(value * (weight / total) for value, weight in zip(self.values, self.weights, strict=True))

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        return {"values": list(self.values), "weights": list(self.weights)}


@dataclass(frozen=True)
class Quantiles:
    """Values at equal steps of probability, from the least to the greatest; linear in between."""

    quantiles: tuple[Number, ...]

    def mean(self) -> float:
        """The expected value."""
        inner = math.fsum(self.quantiles) - (self.quantiles[0] + self.quantiles[-1]) / 2
        return inner / (len(self.quantiles) - 1)

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        return {"quantiles": list(self.quantiles)}


@dataclass(frozen=True)
class Law:
    """A distribution by its parameters, in the order of `PARAMETERS`."""

    name: str
    parameters: tuple[Number, ...]

    #: Laws and their parameters; one without names is written as a number or a list of two.
    PARAMETERS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "constant": ("",),
        "uniform": ("", ""),
        "exponential": ("mean",),
        "pareto": ("scale", "shape"),
        "normal": ("mean", "deviation"),
    }

    def mean(self) -> float:
        """The expected value; of a Pareto law without one (shape <= 1) infinity. A normal law is cut off at 0 by who
        draws from it, which is left out here."""
        first = float(self.parameters[0])
        if self.name == "uniform":
            return (first + self.parameters[1]) / 2
        if self.name == "pareto":
            shape = self.parameters[1]
            return first * shape / (shape - 1) if shape > 1 else math.inf
        return first

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        names = self.PARAMETERS[self.name]
        if names[0]:
            return {self.name: dict(zip(names, self.parameters, strict=True))}
        return {self.name: self.parameters[0] if len(names) == 1 else list(self.parameters)}


Distribution = Values | Quantiles | Law


@dataclass(frozen=True)
class Bursts:
    """Times in bursts: mostly short ones, and after every so many requests a long one.

    Ours: independent draws would deal the long ones out over the whole run.
    """

    short: Distribution
    long: Distribution
    #: Requests from one long time to the next.
    every: Distribution

    def mean(self) -> float:
        """The expected value."""
        share = 1 / max(1.0, self.every.mean())
        return self.short.mean() * (1 - share) + self.long.mean() * share

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        return {"short": self.short.as_json(), "long": self.long.as_json(), "every": self.every.as_json()}


#: Times between requests.
Slack = Distribution | Bursts


def constant(value: Number) -> Law:
    """Always the same."""
    return Law("constant", (value,))


#: What stands where a profile says nothing: see who uses them.
ZERO, ONE, TWO = constant(0), constant(1), constant(2)


def empirical(sample: npt.NDArray[Any], weights: npt.NDArray[Any] | None = None) -> Distribution:
    """What a sample of at least one shows: its value if there is one, its values, or its quantiles if there are many.

    Whole numbers stay whole. `weights` counts each value of the sample; all once by default.
    """
    if weights is None:
        values, counts = np.unique(sample, return_counts=True)
    else:
        values, inverse = np.unique(sample, return_inverse=True)
        counts = np.bincount(inverse, weights=weights)
    if len(values) == 1:
        return constant(values[0].item())
    if len(values) <= VALUES_MAX:
        return Values(tuple(values.tolist()), tuple(_whole(counts.tolist())))
    ends = np.cumsum(counts)
    places = np.linspace(0, ends[-1], QUANTILE_STEPS + 1)
    found = values[np.minimum(np.searchsorted(ends, places, side="left"), len(values) - 1)]
    return Quantiles(tuple(found.tolist()))


def _whole(weights: list[Number]) -> list[Number]:
    return [int(weight) if float(weight).is_integer() else weight for weight in weights]


def read_distribution(fields: Fields, key: str, low: float, high: float = NUMBER_MAX) -> Distribution:
    """The distribution under `key`, whose values lie in [low, high]; a bare number is a constant.

    Raises the error class of `fields`.
    """
    given = fields.data.get(key)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return constant(_number(fields, key, given, low, high))
    if not isinstance(given, Mapping):
        raise fields.error(key, f"= {given!r:.60} is no distribution", _CURE)
    inner = Fields(given, fields.source, f"{fields.where}{key}.", fields.raises)
    names = set(given)
    if names == {"values", "weights"}:
        return _values(inner, low, high)
    if names == {"quantiles"}:
        found = _numbers(inner, "quantiles", low, high)
        if len(found) < 2 or any(b < a for a, b in itertools.pairwise(found)):
            raise inner.error("quantiles", "are not two numbers or more in ascending order", "sort them")
        return Quantiles(tuple(found))
    if len(names) == 1 and (law := next(iter(names))) in Law.PARAMETERS:
        return _law(inner, law, low, high)
    raise fields.error(key, f"has the keys {', '.join(sorted(map(str, names))) or 'of nothing'}", _CURE)


def read_slack(fields: Fields, key: str) -> Slack:
    """Seconds under `key`: a distribution, or bursts. Raises the error class of `fields`."""
    given = fields.data.get(key)
    if not isinstance(given, Mapping) or not {"short", "long", "every"} & set(given):
        return read_distribution(fields, key, 0)
    inner = Fields(given, fields.source, f"{fields.where}{key}.", fields.raises)
    inner.only({"short", "long", "every"})
    for name in ("short", "long", "every"):
        if name not in given:
            raise inner.error(name, "is missing", "give all of short, long and every, or one distribution instead")
    short, long = (read_distribution(inner, name, 0) for name in ("short", "long"))
    return Bursts(short, long, read_distribution(inner, "every", 1))


_CURE = (
    'give a number, {"values": [...], "weights": [...]}, {"quantiles": [...]}, {"constant": v}, {"uniform": [a, b]}, '
    '{"exponential": {"mean": m}}, {"pareto": {"scale": s, "shape": a}} or {"normal": {"mean": m, "deviation": d}}'
)


def _number(fields: Fields, key: str, given: object, low: float, high: float) -> Number:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(_as_float(given)):
        raise fields.error(key, f"has {given!r:.60}, which is no number", "give a finite number")
    if not low <= given <= high:
        raise fields.error(key, f"has {given!r:.60}, which is out of range", f"give numbers from {low:g} to {high:g}")
    return given


def _as_float(given: Number) -> float:
    try:
        return float(given)
    except OverflowError:
        return math.inf


def _numbers(fields: Fields, key: str, low: float, high: float) -> list[Number]:
    return [_number(fields, key, each, low, high) for each in fields.items(key)]


def _values(fields: Fields, low: float, high: float) -> Values:
    values, weights = _numbers(fields, "values", low, high), _numbers(fields, "weights", 0, NUMBER_MAX)
    if not values or len(values) != len(weights):
        problem = f"has {len(weights)} numbers for {len(values)} values"
        raise fields.error("weights", problem, "give each value one weight, and at least one value")
    if not math.fsum(weights) > 0:
        raise fields.error("weights", "are all 0", "give at least one value a weight above 0")
    together: dict[Number, Number] = {}
    for value, weight in zip(values, weights, strict=True):
        together[value] = together.get(value, 0) + weight
    rows: Sequence[tuple[Number, Number]] = sorted(each for each in together.items() if each[1] > 0)
    return Values(tuple(value for value, _ in rows), tuple(weight for _, weight in rows))


def _law(fields: Fields, law: str, low: float, high: float) -> Law:
    names = Law.PARAMETERS[law]
    if law == "constant":
        return constant(_number(fields, law, fields.data[law], low, high))
    if law == "uniform":
        bounds = _numbers(fields, law, low, high)
        if len(bounds) != 2 or bounds[0] > bounds[1]:
            raise fields.error(law, "is not a lower and an upper bound", 'write {"uniform": [a, b]} with a <= b')
        return Law(law, tuple(bounds))
    given = fields.data[law]
    inner = Fields(given, fields.source, f"{fields.where}{law}.", fields.raises)
    inner.only(set(names))
    found = []
    for name in names:
        if name not in inner.data:
            raise inner.error(name, "is missing", "add it")
        # A mean may lie on the bound, where all draws are equal; what spreads must be positive.
        least = low if name == "mean" else 0
        value = _number(inner, name, inner.data[name], least, high)
        if law == "pareto" and value <= 0:
            raise inner.error(name, f"= {value!r:.60} is not above 0", "give a number above 0")
        found.append(value)
    return Law(law, tuple(found))
