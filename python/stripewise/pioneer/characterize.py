"""Traces in, a profile out: what the verb `characterize` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import UsageError
from ..workload.counted import BY_DEFAULT, Choice
from .characterization.anonymous import anonymous_gwps, anonymous_profile
from .characterization.characteristics import profile_of
from .characterization.profile import Profile
from .characterization.profile_reader import profile_of as read_again
from .extraction.gwp import Gwp, read_gwp
from .synthesis.coverage import programs
from .synthesis.program import has_program
from .synthesis.synthesize import digests


@dataclass(frozen=True)
class Characterized:
    """A profile, and how many records of how many traces stand behind it."""

    profile: Profile
    records: int
    traces: int


def characterize_traces(
    traces: Sequence[Path], choice: Choice = BY_DEFAULT, subgroups: str | None = None, anonymous: bool = False
) -> Characterized:
    """The profile of the first trace; of traces with unlike numbers of processes its programs become formulas.

    Raises WorkloadError; UsageError for subgroups that are none.
    """
    paths = [read_gwp(trace, choice, subgroups) for trace in traces]
    counts = [each.processes for each in paths]
    if len(set(counts)) < len(counts):
        said = ", ".join(f"{trace}: {count}" for trace, count in zip(traces, counts, strict=True))
        raise UsageError(f"TRACE: two are of equally many processes ({said}); give one, or runs of different sizes")
    named = paths
    if anonymous:
        paths = anonymous_gwps(paths)
    profile = profile_of(paths[0], "" if anonymous else f"stripewise {__version__}")
    if anonymous:
        profile = anonymous_profile(profile)
    return Characterized(
        replace(profile, programs=_programs(paths, named, profile)), sum(each.records for each in paths), len(traces)
    )


def _programs(paths: list[Gwp], named: list[Gwp], profile: Profile) -> dict[str, Any]:
    found = programs(paths, named)
    if has_program(found):
        found |= digests(read_again(profile.as_json(), "").as_json())
    return found
