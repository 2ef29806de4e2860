"""The options of planners, on the command line and as policies take them; loaded only by verbs that plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ...errors import UsageError
from ...policy import PlanOptions
from ...units import parse_size, parse_span
from ..options import MinGainOption, RegionOption, StepOption, StripeOption

WindowOption = Annotated[
    str | None,
    typer.Option("--window", help="Plan for every time window of this length anew, e.g. 30s or 10min (default: one)."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the random orders of DEF, PADP and PSA.")]
SigmaOption = Annotated[
    float | None,
    typer.Option("--sigma", help="SLAL: the imbalance of servers above which another stripe is tried (default: 0.2)."),
]
ServersOption = Annotated[
    str | None,
    typer.Option("--servers", help="SLAL: the servers that it takes as equals, hdd, ssd or all (default: hdd)."),
]
TimeLimitOption = Annotated[
    str | None, typer.Option("--time-limit", help="best: how long it may search, e.g. 10s or 5min (default: 60s).")
]
SmoothOption = Annotated[
    bool | None,
    typer.Option(
        "--smooth/--no-smooth",
        help="best: plan for runs like the traced one (default), or for one that repeats its very requests.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Sizes that planners go by."""

    region_size: RegionOption = "64MiB"
    stripe_size: StripeOption = "64KiB"
    step_size: StepOption = "4KiB"


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Time windows, and what moves between them must gain."""

    window: WindowOption = None
    min_gain: MinGainOption = None


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options that single policies take for their search."""

    sigma: SigmaOption = None
    servers: ServersOption = None
    time_limit: TimeLimitOption = None
    smooth: SmoothOption = None


def plan_options(
    sizes: SizeOptions, seed: int, search: SearchOptions, windows: WindowOptions | None = None
) -> PlanOptions:
    """The plan options of the command line. Raises UsageError for a bad one."""
    given = windows or WindowOptions()
    return PlanOptions(
        region_bytes=parse_size(sizes.region_size, "--region-size"),
        stripe_bytes=parse_size(sizes.stripe_size, "--stripe-size"),
        step_bytes=parse_size(sizes.step_size, "--step-size"),
        seed=seed,
        window_ns=None if given.window is None else parse_span(given.window, "--window"),
        min_gain=given.min_gain,
        sigma=search.sigma,
        servers=search.servers,
        time_limit_s=None if search.time_limit is None else parse_span(search.time_limit, "--time-limit") / 1e9,
        smooth=search.smooth,
    )


def require_window(windows: WindowOptions) -> None:
    """UsageError for --min-gain without --window."""
    if windows.min_gain is not None and windows.window is None:
        raise UsageError("--min-gain: is about moves between windows; give --window too")
