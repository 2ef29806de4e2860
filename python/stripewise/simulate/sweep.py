"""Sweeps: one key of the workload, or the number of servers of a class, takes several values in turn.

processes=8..512        doubling from 8 to at most 512
processes=8..64:8       in steps of 8
kind=random,zipf        as listed
request_bytes=4KiB..1MiB
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from ..cluster import TARGETS_MAX, Cluster, Target
from ..errors import UsageError
from ..units import parse_size
from ..workload.describe import SIZE_KEYS, Description

POINTS_MAX = 1000
#: No key takes a number that is longer.
DIGITS_MAX = 40
#: Figures of the cluster that a sweep changes.
SERVER_KEYS = ("hservers", "sservers")
_WORKLOAD_KEYS = {each.name for each in fields_of(Description)} - {"source", "path"}
_FLAG = "--sweep"

Value = int | float | str | bool


@dataclass(frozen=True)
class Sweep:
    """The values of one key, in their order, as they stand in a description."""

    key: str
    values: tuple[Value, ...]

    @property
    def is_of_servers(self) -> bool:
        """Whether it changes the cluster, not the workload."""
        return self.key in SERVER_KEYS


def parse_sweep(text: str) -> Sweep:
    """The sweep in `key=values`. Raises UsageError naming what is wrong."""
    key, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"{_FLAG}: '{text}' is not a sweep; write key=8..512, key=8..64:8 or key=a,b,c")
    if key not in _WORKLOAD_KEYS and key not in SERVER_KEYS:
        known = ", ".join(sorted(_WORKLOAD_KEYS | set(SERVER_KEYS)))
        raise UsageError(f"{_FLAG}: '{key}' is not a key of a workload; use one of {known}")
    if ".." in values:
        return Sweep(key, _span(key, values))
    return Sweep(key, tuple(_value(key, each) for each in values.split(",")))


def _value(key: str, text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if key in SIZE_KEYS:
        return parse_size(text, f"{_FLAG} {key}")
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if not math.isfinite(value) or len(text) > DIGITS_MAX:
            raise UsageError(
                f"{_FLAG}: {key}: {text[:DIGITS_MAX]} is not a number that can be simulated; give a finite one"
            )
        return value
    if not text:
        raise UsageError(f"{_FLAG}: {key} has an empty value; write key=8..512, key=8..64:8 or key=a,b,c")
    return text


def _span(key: str, text: str) -> tuple[Value, ...]:
    low_text, _, rest = text.partition("..")
    high_text, _, step_text = rest.partition(":")
    low, high = _value(key, low_text), _value(key, high_text)
    step = _value(key, step_text) if step_text else None
    wrong = UsageError(f"{_FLAG}: '{key}={text}' is not a range; write a..b to double, a..b:step to go in steps")
    if any(isinstance(each, str | bool) for each in (low, high, step)):
        raise wrong
    if low > high:  # type: ignore[operator]
        raise UsageError(f"{_FLAG}: '{key}={text}' goes down; write {key}={high_text}..{low_text}")
    if low <= 0 if step is None else step <= 0:  # type: ignore[operator]
        why = "doubles from 0 on, which leads nowhere" if step is None else "has no step"
        raise UsageError(f"{_FLAG}: '{key}={text}' {why}; write {key}=a..b with a above 0, or a..b:step")
    values: list[Value] = []
    at: Any = low
    while at <= high:
        values.append(at)
        # Multiples, not sums, so that a fraction does not add up its rounding.
        at = at * 2 if step is None else low + len(values) * step  # type: ignore[operator]
        if len(values) > POINTS_MAX:
            raise UsageError(f"{_FLAG}: '{key}={text}' has more than {POINTS_MAX} points; use a larger step")
    return tuple(values)


def changed_cluster(cluster: Cluster, sweep: Mapping[str, Value]) -> Cluster:
    """The cluster with so many HServers or SServers: the first ones, and more like the last one where there are fewer.

    Raises UsageError for a number that cannot be.
    """
    if not sweep:
        return cluster
    classes = {"hservers": list(cluster.hservers), "sservers": list(cluster.sservers)}
    for key, count in sweep.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UsageError(f"{_FLAG}: {key} = {count} is not a number of servers; give a whole number")
        classes[key] = _resized(classes[key], count, key, cluster)
    targets = (*classes["hservers"], *classes["sservers"])
    if not 1 <= len(targets) <= TARGETS_MAX:
        raise UsageError(f"{_FLAG}: {len(targets)} servers cannot be simulated; give from 1 to {TARGETS_MAX} in all")
    return replace(cluster, targets=targets)


def _resized(servers: list[Target], count: int, key: str, cluster: Cluster) -> list[Target]:
    if count > len(servers) and not servers:
        raise UsageError(f"{_FLAG}: {key}: {cluster.source} has none to make more of; add one [[target]]")
    if count > TARGETS_MAX:
        raise UsageError(f"{_FLAG}: {key} = {count} is more than {TARGETS_MAX}; use fewer")
    made = servers[:count]
    taken = {target.name for target in cluster.targets}
    number = len(servers)
    while len(made) < count:
        name = f"{servers[-1].name}-{number}"
        number += 1
        if name not in taken:
            made.append(replace(servers[-1], name=name, path=Path(f"{servers[-1].path}-{number}")))
    return made
