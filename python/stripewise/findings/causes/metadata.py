"""A storm of calls by name: opens, stats and creations outnumber the requests that move bytes."""

from __future__ import annotations

from ...units import seconds_text
from .. import choices
from ..facts import RunFacts
from ..finding import Finding
from ..price import Seconds


def metadata_storm(run: RunFacts) -> Finding | None:
    """Of the whole run; its price is what was measured, since no model prices names."""
    found = run.metadata
    if found.calls < choices.STORM_CALLS or found.calls < choices.STORM_CALLS_PER_REQUEST * run.requests:
        return None
    by_count = sorted(found.counts.items(), key=lambda each: -each[1])
    told = ", ".join(f"{count:,} {name}" for name, count in by_count[:4])
    return Finding(
        "metadata",
        "a storm of calls by name",
        None,
        (
            f"{found.calls:,} calls ({told}) on {found.files:,} files, {run.requests:,} requests that moved bytes",
            f"{seconds_text(found.total_s)} s in them, "
            f"{seconds_text(found.longest_s)} s of the process that waited longest",
        ),
        Seconds(found.longest_s, found.total_s),
        "measured in this run: the longest process, and all processes together",
        "keep what belongs together in one file (HDF5, a database, an archive), open it once, and keep it open",
    )
