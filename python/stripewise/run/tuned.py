"""What came out of a circle of `tune`: the layouts that were measured, the fastest, and how sure that is.

Plans of two policies may be one layout; that is measured once, for runs of it under two names would only differ by
chance. What makes the runs tell less than they seem to is a sentence each (`of_...`; None: nothing does).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..layout import Region, Stripes
from ..plan import FilePlan, Plan
from ..units import format_size
from .repeats import Repeated

#: I/O that takes less than so many seconds tells little of a layout.
SHORT_S = 1.0
#: Runs whose bytes differ by more than this factor did not do the same work.
SAME_WORK = 1.05


@dataclass(frozen=True)
class Tuned:
    """The layouts that were measured, the baseline's first, and which one stays; None: files went back."""

    layouts: tuple[Repeated, ...]
    kept: Repeated | None
    remarks: tuple[str, ...] = ()
    #: Globs of the names of files that the program makes anew, each with the planned file that it stands for.
    anew: Mapping[str, FilePlan] = field(default_factory=dict)
    #: Policies whose layout is that of one that was measured, and this one.
    same: Mapping[str, str] = field(default_factory=dict)
    #: Planned files that later runs do not touch, for not all runs did, and made anew under other names what they are.
    passing: frozenset[str] = frozenset()

    @property
    def fastest(self) -> Repeated:
        """The layout with the least mean I/O time."""
        return min(self.layouts, key=lambda each: each.mean.io_seconds)

    @property
    def expected_gain(self) -> float:
        """How many times as fast as DEF the fastest layout's plan was likely to be."""
        return self.fastest.plan.expected.likely_gain

    @property
    def measured_gain(self) -> float | None:
        """The baseline's mean I/O time over that of the fastest layout."""
        first, fastest = self.layouts[0].mean, self.fastest.mean
        return first.io_seconds / fastest.io_seconds if fastest.io_seconds > 0 else None

    @property
    def measured_range(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the measured gain; None with one run each, or without a gain."""
        first, fastest = self.layouts[0], self.fastest
        return None if fastest is first else fastest.gain_range(first)

    @property
    def unsure(self) -> bool:
        """Whether the runs had so little I/O that chance may have made the gain: no interval says otherwise."""
        known = self.measured_range
        return self.layouts[0].mean.io_seconds < SHORT_S and (known is None or known[0] <= 1)

    @property
    def rivals(self) -> tuple[Repeated, ...]:
        """Layouts beside the baseline and the fastest one that this one is not surely faster than."""
        others = (each for each in self.layouts[1:] if each is not self.fastest)
        return tuple(each for each in others if not self.fastest.beats(each))

    def as_json(self) -> dict[str, Any]:
        """As `tune --json` prints it."""
        return {
            "runs": [each.as_json() for each in self.layouts],
            "kept": None if self.kept is None else self.kept.policy,
            "expected_gain": self.expected_gain,
            "measured_gain": self.measured_gain,
            "measured_range": self.measured_range,
            "made_anew": {glob: file.path for glob, file in self.anew.items()},
            "same_layout": dict(self.same),
            "not_told_apart": [each.policy for each in self.rivals],
            "remarks": list(self.remarks),
        }


def without_files(plan: Plan, paths: Collection[str]) -> Plan:
    """The plan, with what it moves later, for all files but these."""
    if not paths:
        return plan
    files = tuple(file for file in plan.files if file.path not in paths)
    migrations = tuple(
        replace(each, moves=tuple(move for move in each.moves if move.file not in paths)) for each in plan.migrations
    )
    plan = replace(plan, files=files, migrations=migrations)
    return replace(plan, target_bytes=plan.bytes_per_target())


def twin_of(plan: Plan, others: Iterable[Plan]) -> str | None:
    """The policy among `others` that puts the same bytes of the same files on the same targets; None where none does.

    Where files would grow behind their planned ends does not count.
    """
    here = {file.path: _pieces(file) for file in plan.files}
    return next((each.policy for each in others if {file.path: _pieces(file) for file in each.files} == here), None)


def _pieces(file: FilePlan) -> list[Region]:
    """The regions up to the end of the file; neighbours with the same cycle, which goes on across them, are one."""
    found: list[Region] = []
    for region in file.layout:
        length = min(region.len, file.size - region.start)
        if length <= 0:
            break
        stripes = _reached(region.stripes, length)
        last = found[-1] if found else None
        if last is not None and last.stripes == stripes and not last.len % sum(width for _, width in stripes):
            found[-1] = Region(last.start, last.len + length, stripes)
        else:
            found.append(Region(region.start, length, stripes))
    return found


def _reached(stripes: Stripes, length: int) -> Stripes:
    """The part of a cycle that so many bytes reach; on one target alone no width matters."""
    reached: list[tuple[str, int]] = []
    at = 0
    for name, width in stripes:
        if at >= length:
            break
        reached.append((name, min(width, length - at)))
        at += width
    return ((reached[0][0], 1),) if len(reached) == 1 else tuple(reached)


def of_unsure(layouts: Sequence[Repeated], most: int, sure: float) -> str | None:
    """That the most rounds that are made without --repeat were not enough."""
    known = [each.half_width for each in layouts if each.half_width is not None]
    rounds = len(layouts[0].runs)
    if rounds < most or not known or max(known) <= sure:
        return None
    return (
        f"after {rounds} runs of each layout the mean I/O time is known to {max(known):.0%}, not to {sure:.0%}; "
        "--repeat N makes more"
    )


def of_other_work(moved: Sequence[int], is_reset: bool) -> str | None:
    """That runs moved unlike amounts: inputs that grow from run to run change no byte that was read."""
    least, most = min(moved), max(moved)
    if most <= SAME_WORK * least:
        return None
    cure = "" if is_reset else "; if each goes on where the last one ended, give --reset CMD"
    return f"the runs moved from {format_size(least)} to {format_size(most)}, so their times tell less of layouts{cure}"


def of_memory(cached: Sequence[tuple[str, int, int]], measured_runs: int) -> str | None:
    """That memory served what runs read: of each its name, bytes read, and those of them that came from devices."""
    if not cached:
        return None
    runs, read, from_devices = zip(*cached, strict=True)
    which = "all measured runs" if len(runs) == measured_runs > 1 else ", ".join(runs)
    return (
        f"{which}: of {format_size(sum(read))} read, {format_size(sum(from_devices))} came from devices, the rest "
        f"from memory, where no layout is faster than another: read more than memory holds, or drop the page cache "
        f"before each run (as root: --reset 'sync; echo 3 >/proc/sys/vm/drop_caches')"
    )
