"""Disk or SSD: what the kernel says, what a short measurement shows, and which of both is believed.

A measurement is believed before the flag: virtual disks and RAID controllers say that they turn whatever is below, and
bridges to USB say that they do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..cluster import Target
from ..cluster.calibration import Calibration
from ..devices import Place

#: No disk that turns answers half of its reads at chance within this time: half a revolution takes 2 ms at 15,000/min.
TURNING_MIN_S = 0.001
#: Where reads at chance take this many times those in order, an arm moves.
SEEK_RATIO = 2.0
#: Without O_DIRECT the file system reads ahead, which makes reads in order faster on every device.
READ_AHEAD_MIN_S = 0.003
#: Seconds per access and per byte where nothing is measured, and of emulated targets: reads and writes alike.
_DISK = (0.003, 1e-8)
ASSUMED = {"hdd": _DISK, "ssd": (0.0001, 2.5e-9), "swd": _DISK, "any": _DISK}


#: By the kernel's flag, the class, and what the flag says.
FLAGS: dict[bool | None, tuple[str, str]] = {
    True: ("hdd", "the kernel says that it turns"),
    False: ("ssd", "the kernel says that it does not turn"),
    None: ("any", "the kernel names no disk there"),
}
#: Kinds of accesses that speak for a class: reads at chance and in order.
CLASS_KINDS = ("random_read", "sequential_read")


@dataclass(frozen=True)
class Decided:
    """A class, what decided it (given, measurement, kernel or nothing), and the sentence that says why."""

    klass: str
    by: str
    why: str


def decide(place: Place, measured: Calibration | None) -> Decided:
    """The class of a target from its place and, where there is one, its measurement."""
    flag = place.rotational
    klass, told = FLAGS[flag]
    by = "nothing" if flag is None else "kernel"
    if measured is None:
        return Decided(klass, by, f"{told}; not measured")
    seen, why = _seen(measured)
    if seen is None:
        return Decided(klass, by, f"{told}; {why}")
    believed = "" if flag is None or seen == klass else ", which the measurement contradicts"
    return Decided(seen, "measurement", f"{why}; {told}{believed}")


def _seen(measured: Calibration) -> tuple[str | None, str]:
    """The class that reads at chance and in order speak for, if they do, and what was seen."""
    chance, order = map(measured.fit, CLASS_KINDS)
    if chance is None or order is None:
        return None, "its reads were not measured"
    took = f"a small read at chance takes {_ms(chance.startup_s)}"
    if chance.startup_s < TURNING_MIN_S:
        return "ssd", f"{took}, too fast for a disk that turns"
    took += f", one in order {_ms(order.startup_s)}"
    least_s = TURNING_MIN_S if measured.method == "direct" else READ_AHEAD_MIN_S
    if chance.startup_s >= least_s and chance.startup_s >= SEEK_RATIO * order.startup_s:
        return "hdd", f"{took}: an arm moves"
    return None, f"{took}, which may be a slow way to it"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds < TURNING_MIN_S else f"{seconds * 1e3:.1f} ms"


def assumed(target: Target, klass: str) -> Target:
    """The target as one of this class that is not measured."""
    startup_s, per_byte_s = ASSUMED[klass]
    return replace(
        target,
        klass=klass,
        startup_read_s=startup_s,
        startup_write_s=startup_s,
        per_byte_read_s=per_byte_s,
        per_byte_write_s=per_byte_s,
    )
