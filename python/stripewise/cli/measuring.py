"""Directories measured while a verb shows how far it is: those of `init`, and the new one of `store add`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..calibration.calibrate import calibrated
from ..calibration.measure import Measurement, open_probe
from ..cluster import Target
from ..errors import NoSpaceError
from ..native import parsed
from ..setup.found import Measure
from ..units import format_size
from .output import printable, progress, say

#: Seconds for one directory at most.
SECONDS_MAX = 10.0
SCRATCH = "256MiB"
#: What crates/store/src/admin/probe/scratch.rs insists on (`BYTES_MIN`).
SCRATCH_MIN_BYTES = 4 << 20


@contextlib.contextmanager
def measuring(seconds: float, scratch_bytes: int, count: int = 1) -> Iterator[Measure]:
    """What measures `count` directories one after the other, each for so long at most."""
    what = "the directory" if count == 1 else f"{count} directories one after the other, each"
    say(
        f"measuring {what} for up to {seconds:g} s: writes up to {format_size(scratch_bytes)} (1/16 of what is free at "
        f"most) into a file without a name, which is gone afterwards"
    )
    with open_probe(None) as probe:

        def measure(target: Target) -> Target:
            with progress(f"measuring {printable(target.name)}") as step:
                try:
                    parsed(probe.begin, str(target.path), 0, scratch_bytes)
                except NoSpaceError as error:
                    raise too_little(target.path, scratch_bytes) from error
                return calibrated(target, Measurement(probe, target.name, seconds, step).run())

        yield measure


def too_little(path: Path, scratch_bytes: int) -> NoSpaceError:
    """That no directory can be measured with so small a scratch file."""
    if scratch_bytes < SCRATCH_MIN_BYTES:
        return NoSpaceError(f"--scratch: a measurement takes at least {format_size(SCRATCH_MIN_BYTES)}; ask for more")
    space = os.statvfs(path)
    return NoSpaceError(
        f"{path}: has {format_size(space.f_bavail * space.f_frsize)} free; a measurement takes a sixteenth of that, at "
        f"least {format_size(SCRATCH_MIN_BYTES)}: free {format_size(16 * SCRATCH_MIN_BYTES)} there, or measure nothing "
        f"(--no-calibrate)"
    )
