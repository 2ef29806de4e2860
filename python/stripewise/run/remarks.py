"""What makes measured runs of a circle tell less than they seem to, in a sentence each; None where nothing does."""

from __future__ import annotations

from collections.abc import Sequence

from ..units import format_size
from .repeats import Repeated

#: Runs whose bytes differ by more than this factor did not do the same work.
SAME_WORK = 1.05


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
