"""What a plan is expected to gain, for people: all factors, each with what it is."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan import Expected
from ...plan.summary import likely_lines
from ..output import aligned, wrapped


def all_lines(expected: Expected) -> Iterator[str]:
    """The headline, then every factor over def with what it is, and how near the plan is to the best there can be.

    Only simulated runs wait and queue; limits and sums of costs may be far above what a run shows, or below it.
    """
    yield from map(wrapped, likely_lines(expected))
    if not expected.is_known:
        return
    yield from aligned(("measure", "times def", "of what"), _factors(expected), 1, "  ", words=True)
    if expected.gap is not None:
        own = f"; this plan's, which simulated runs chose, is {expected.bound_s:.4g} s" * _is_another(expected)
        yield wrapped(
            f"proven: no layout has a bound below {expected.proven_s:.4g} s, every access paying its startup; the best "
            f"that was found has {expected.objective_s:.4g} s, a gap of {expected.gap:.1%}{own}"
        )


def _is_another(expected: Expected) -> bool:
    """Whether the plan is another one than that with the best bound."""
    return expected.objective_s is not None and expected.bound_s > expected.objective_s * 1.001


def _factors(expected: Expected) -> Iterator[tuple[str, str, str]]:
    def row(name: str, gain: float, what: str) -> tuple[str, str, str]:
        return name, f"{gain:.2f}", what

    if expected.simulated_io_gain is not None:
        yield row(
            "simulated I/O",
            expected.simulated_io_gain,
            "seconds with reads under way and those with writes, added, as tune measures",
        )
    if expected.simulated_gain is not None:
        yield row(
            "simulated run",
            expected.simulated_gain,
            "seconds from its beginning to its end, where reads beside writes count once",
        )
    bound = "work of the busiest target, or of all requests alone over the processes, whichever is more, without "
    bound += "queueing and the order of requests: a limit and no speed, so below 1 a plan may be faster"
    if expected.gain_low is not None and expected.gain_high is not None:
        between = f"{expected.gain_low:.2f} to {expected.gain_high:.2f} with nine chances in ten"
        bound += f"; {between}, as far as the targets' figures are known"
    yield row("bound", expected.bound_gain, bound)
    yield row("request model", expected.gain, "sum of the costs of all requests, one after another; no speed either")
