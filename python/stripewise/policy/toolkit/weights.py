"""How a reason tells what a region weighs where it lies, and on rejected places: written and found here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Rejected places that are named.
RUNNERS_UP = 2
#: Stands in every reason with weights, and in no other.
_WEIGHED = ", weighed "


def with_weights(reason: str, here: float, others: Sequence[tuple[float, str]]) -> str:
    """The reason with the weight of its place, and the least of the others' (weight, name)."""
    rejected = ", ".join(f"{name} {weight:.4g}" for weight, name in sorted(others)[:RUNNERS_UP])
    return f"{reason}{_WEIGHED}{here:.4g}" + (f" (rejected: {rejected})" if rejected else "")


def are_weighed(reasons: Iterable[str]) -> bool:
    """Whether any of them has weights."""
    return any(_WEIGHED in reason for reason in reasons)
