"""What a policy is: a name and one method from (workload, cluster, options) to a plan.

A policy registers itself with the decorator `register`; everything that lists or looks up policies reads that table.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from ..cluster import Cluster
from ..errors import UsageError
from ..plan import Plan
from ..units import GRANULE_BYTES, KIB, MIB, nearest_granules
from ..workload.requests import Workload

REGION_BYTES_DEFAULT = 64 * MIB
STRIPE_BYTES_DEFAULT = 64 * KIB
#: A cycle of 4,096 of them, and a file's last region behind many, still end below 2^62.
SIZE_BYTES_MAX = 1 << 50
MIN_GAIN_MAX = 1e9
#: The busiest of n servers has at most n times the mean: n - 1.
SIGMA_MAX = 4096.0
TIME_LIMIT_S_MAX = 86_400.0
SERVERS = ("hdd", "ssd", "all")
#: Options that only some policies take, and the flags they are given by.
OWN_OPTIONS = {
    "window_ns": "--window",
    "min_gain": "--min-gain",
    "sigma": "--sigma",
    "servers": "--servers",
    "time_limit_s": "--time-limit",
    "smooth": "--smooth",
}


@dataclass(frozen=True)
class PlanOptions:
    """What a user may set.

    `reserved_bytes` is what other files already hold per target name. `step_bytes` is Algorithm 1's step,
    `stripe_bytes` DEF's stripe, `seed` draws DEF's random order. `window_ns` cuts the trace into windows of that length
    (None: one window). `min_gain` is the factor of modelled gain over modelled cost of the copy above which a move
    between windows is made; None tests only moves to other stripes of the same class, with the factor 1. `sigma` is the
    imbalance above which SLAL looks for another stripe (None: 0.20), `servers` the ones it takes as equals: `hdd`,
    `ssd` or `all` (None: HServers where there are any, else SServers). `time_limit_s` is how long a search may take
    (None: a minute). `smooth` plans for runs like the traced one (None: so), False for one that repeats its very
    requests. What is None was not
    given; only policies that name it in `Policy.takes` may be given it.
    """

    region_bytes: int = REGION_BYTES_DEFAULT
    stripe_bytes: int = STRIPE_BYTES_DEFAULT
    step_bytes: int = GRANULE_BYTES
    seed: int = 0
    reserved_bytes: Mapping[str, int] = field(default_factory=dict)
    window_ns: int | None = None
    min_gain: float | None = None
    sigma: float | None = None
    servers: str | None = None
    time_limit_s: float | None = None
    smooth: bool | None = None

    def __post_init__(self) -> None:
        for name in ("region_bytes", "stripe_bytes", "step_bytes"):
            value, flag = getattr(self, name), "--" + name.removesuffix("_bytes") + "-size"
            if value < GRANULE_BYTES or value % GRANULE_BYTES:
                near = nearest_granules(value)
                raise UsageError(f"{flag}: {value} is not a positive multiple of 4096 bytes; the nearest one is {near}")
            if value > SIZE_BYTES_MAX:
                raise UsageError(f"{flag}: {value} is more than 1024 TiB; give a smaller size")
        if self.window_ns is not None and self.window_ns <= 0:
            raise UsageError(f"--window: {self.window_ns} ns is not a span of time; give one like 30s or 10min")
        if self.min_gain is not None and not (0 <= self.min_gain <= MIN_GAIN_MAX):
            raise UsageError(
                f"--min-gain: {self.min_gain:g} is not a factor from 0 to {MIN_GAIN_MAX:g}; 1 is break-even"
            )
        if self.sigma is not None and not (0 <= self.sigma <= SIGMA_MAX):
            raise UsageError(
                f"--sigma: {self.sigma:g} is not an imbalance from 0 to {SIGMA_MAX:g}; 0.2 is the usual one"
            )
        if self.time_limit_s is not None and not (0 < self.time_limit_s <= TIME_LIMIT_S_MAX):
            raise UsageError(f"--time-limit: {self.time_limit_s:g} s is not a search time; give one like 60s or 10min")
        if self.servers is not None and self.servers not in SERVERS:
            raise UsageError(f"--servers: '{self.servers}' is unknown; use one of {', '.join(SERVERS)}")

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
    #: Whether it decides for every time window anew.
    windowed: bool = False
    #: Whether the first server rotates from region to region; where not, every region begins on the first one.
    #: None: every region goes where its requests are served best.
    rotates: bool | None = True
    #: Those of `OWN_OPTIONS` that it takes.
    takes: frozenset[str] = frozenset()

    @abstractmethod
    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        """A plan that overfills no target.

        Raises PlanError when the data do not fit and WorkloadError when there is nothing to plan.
        """


POLICIES: dict[str, Policy] = {}
#: Where `register` puts what it is given: the table above, or a file's own while that is being read.
_table: ContextVar[dict[str, Policy]] = ContextVar("table", default=POLICIES)
PlanFunction = Callable[[Workload, Cluster, PlanOptions], Plan]
Registered = TypeVar("Registered", type[Policy], PlanFunction)


class _FunctionPolicy(Policy):
    """A function (workload, cluster, options) -> Plan as a policy of its name."""

    def __init__(self, function: PlanFunction) -> None:
        self.name = function.__name__.replace("_", "-")
        self._function = function

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        return self._function(workload, cluster, options)


def as_policy(made: object) -> Policy:
    """The policy that a subclass of Policy or a function stands for; TypeError for anything else."""
    if isinstance(made, type) and issubclass(made, Policy):
        policy = made()
        if not policy.name:
            raise TypeError(f'{made.__name__} has no name; give the class name = "..."')
        if not re.fullmatch(r"[\w.+-]+", policy.name):
            # Traces and tables are named after it.
            raise TypeError(f"the name {policy.name!r} holds more than letters, digits and . + - _")
        return policy
    if callable(made) and hasattr(made, "__name__"):
        return _FunctionPolicy(made)
    raise TypeError(f"{made!r} is neither a subclass of Policy nor a function")


def register(policy: Registered) -> Registered:
    """Puts a subclass of Policy, or a function (workload, cluster, options) -> Plan, into the table of policies.

    A class goes by its `name`, a function by its own with hyphens. Use it as a decorator.
    """
    made = as_policy(policy)
    _table.get()[made.name] = made
    return policy


@contextmanager
def registering() -> Iterator[dict[str, Policy]]:
    """What is registered within, apart from the policies that are always there."""
    found: dict[str, Policy] = {}
    token = _table.set(found)
    try:
        yield found
    finally:
        _table.reset(token)


def refuse_foreign(policies: Sequence[Policy], options: PlanOptions) -> None:
    """UsageError for a given option that none of `policies` takes: it would change nothing."""
    for option, flag in OWN_OPTIONS.items():
        if getattr(options, option) is not None and not any(option in policy.takes for policy in policies):
            names = " and ".join(sorted({policy.name for policy in policies}))
            others = ", ".join(sorted(name for name, each in POLICIES.items() if option in each.takes))
            who = f"the policy {names} does not take it" if names else "is for a policy, and none is named"
            raise UsageError(f"{flag}: {who}; drop it or use {others}")
