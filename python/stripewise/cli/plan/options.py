"""The options of planners on the command line as policies take them; loaded only by verbs that plan."""

from __future__ import annotations

from ...errors import UsageError
from ...policy import PlanOptions
from ...units import parse_span
from ..options import SearchOptions, SizeOptions, WindowOptions, size


def plan_options(
    sizes: SizeOptions, seed: int, search: SearchOptions, windows: WindowOptions | None = None
) -> PlanOptions:
    """The plan options of the command line. Raises UsageError for a bad one."""
    given = windows or WindowOptions()
    return PlanOptions(
        region_bytes=size(sizes.region_size, "--region-size"),
        stripe_bytes=size(sizes.stripe_size, "--stripe-size"),
        step_bytes=size(sizes.step_size, "--step-size"),
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
