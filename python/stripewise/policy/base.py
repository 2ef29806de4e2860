"""What a policy is: a name and one method from (workload, cluster, options) to a plan.

A policy registers itself with the decorator `register`; everything that lists or looks up policies reads that table.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..cluster import Cluster
from ..errors import UsageError
from ..plan import Plan
from ..units import GRANULE_BYTES, KIB, MIB
from ..workload.requests import Workload

REGION_BYTES_DEFAULT = 64 * MIB
STRIPE_BYTES_DEFAULT = 64 * KIB
MIN_GAIN_MAX = 1e9


@dataclass(frozen=True)
class PlanOptions:
    """What a user may set.

    `reserved_bytes` is what other files already hold per target name. `step_bytes` is Algorithm 1's step,
    `stripe_bytes` DEF's stripe, `seed` draws DEF's random order. `window_ns` cuts the trace into windows of that length
    (None: one window). `min_gain` is the factor of modelled gain over modelled cost of the copy above which a move
    between windows is made; None tests only moves to other stripes of the same class, with the factor 1.
    """

    region_bytes: int = REGION_BYTES_DEFAULT
    stripe_bytes: int = STRIPE_BYTES_DEFAULT
    step_bytes: int = GRANULE_BYTES
    seed: int = 0
    reserved_bytes: Mapping[str, int] = field(default_factory=dict)
    window_ns: int | None = None
    min_gain: float | None = None

    def __post_init__(self) -> None:
        for name in ("region_bytes", "stripe_bytes", "step_bytes"):
            value = getattr(self, name)
            if value < GRANULE_BYTES or value % GRANULE_BYTES:
                flag = "--" + name.removesuffix("_bytes") + "-size"
                raise UsageError(f"{flag}: {value} is not a positive multiple of 4096 bytes; round it up")
        if self.window_ns is not None and self.window_ns <= 0:
            raise UsageError(f"--window: {self.window_ns} ns is no span of time; give one like 30s or 10min")
        if self.min_gain is not None and not (0 <= self.min_gain <= MIN_GAIN_MAX):
            raise UsageError(f"--min-gain: {self.min_gain:g} is no factor from 0 to {MIN_GAIN_MAX:g}; 1 is break-even")

    def as_json(self) -> dict[str, Any]:
        """The options as the plan records them; those that only some policies have are left out when not given."""
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in asdict(self).items()
            if value is not None
        }


class Policy(ABC):
    """Decides where every region of every file goes."""

    name: str = ""
    summary: str = ""
    #: Whether it decides for every time window anew.
    windowed: bool = False

    @abstractmethod
    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        """A plan that overfills no target.

        Raises PlanError when the data do not fit and WorkloadError when there is nothing to plan.
        """


POLICIES: dict[str, Policy] = {}


def register(policy: type[Policy]) -> type[Policy]:
    """Puts one instance of the class into the table under its name."""
    POLICIES[policy.name] = policy()
    return policy


def policy_named(name: str) -> Policy:
    """The policy `name`, or UsageError listing those that exist."""
    if name in POLICIES:
        return POLICIES[name]
    near = difflib.get_close_matches(name, POLICIES, 1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(sorted(POLICIES))}"
    raise UsageError(f"--policy: there is no policy '{name}'; {hint}")
