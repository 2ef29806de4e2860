"""What the simulator may be told of a device beyond its startup and transfer figures: the table `[target.device]`.

A plain target is one channel with a fixed startup, which an access that continues the one before is spared, as emulated
devices do it. Nothing else reads this table; a store.toml keeps it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ClusterError, StripewiseError
from ..files.fields import Fields
from ..swd.disk import GENERIC, read_disk
from ..swd.simulate import AREA_SHARE, Setup, parse_fill, parse_schemes

STARTUPS = ("fixed", "exponential", "seek")
CHANNELS_MAX = 1 << 16
SEEK_S_MAX = 1000.0
BACKGROUND_MS_MAX = 1e9
#: Startup and its spread in seconds, seconds per byte.
Figures = tuple[float, float, float]


@dataclass(frozen=True)
class Device:
    """One device; None where the simulator's own default counts.

    `startup` says where a startup comes from: `fixed`, the target's figure and spread; `exponential` (the whole service
    time, for queueing formulas); `seek`: startup_*_s + factor_s * sqrt(distance / capacity_bytes) + a rotation delay
    below rotation_s.

    `disk` is a mechanical disk in place of all that: a disk file (absolute) or `generic`, under `scheme` with its
    parameters as `stripewise swd simulate` takes them, of whose space `used` ("75%" or "60GB") is in use, and which
    collects after it was idle for `background_ms` (never, where None).
    """

    startup: str | None = None
    factor_s: float | None = None
    rotation_s: float | None = None
    capacity_bytes: int | None = None
    sequential_discount: float | None = None
    channels: int | None = None
    disk: str | None = None
    scheme: str | None = None
    used: str | None = None
    background_ms: float | None = None

    def given(self) -> dict[str, Any]:
        """The keys that were given."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def as_scenario(self, read: Figures, write: Figures) -> dict[str, Any]:
        """The device as a scenario has it; figures of a direction are startup, its spread and the time of a byte."""
        spread = self.startup in (None, "fixed") and (read[1] > 0 or write[1] > 0)
        made: dict[str, Any] = {}
        for key, (startup_s, spread_s, per_byte_s) in (("read", read), ("write", write)):
            least_s = startup_s - spread_s / 2 if spread else startup_s
            made[key] = {"startup_s": max(0.0, least_s), "per_byte_s": per_byte_s}
            if spread:
                made[key]["startup_max_s"] = startup_s + spread_s / 2
        if spread:
            made["startup"] = {"kind": "uniform"}
            return {**made, **self._others()}
        if self.startup == "seek":
            seek = {"factor_s": self.factor_s, "rotation_s": self.rotation_s, "capacity_bytes": self.capacity_bytes}
            made["startup"] = {"kind": "seek", **seek}
        elif self.startup is not None:
            made["startup"] = {"kind": self.startup}
        return {**made, **self._others()}

    def disk_settings(self) -> dict[str, Any] | None:
        """The disk as a scenario has it (docs/formats.md, Shingled disk run); None for a plain device.

        Raises StripewiseError for a disk file, a scheme or a size that cannot be.
        """
        if self.disk is None:
            return None
        drive = read_disk(self.disk)
        (scheme, *more) = parse_schemes(self.scheme or "hdd", "scheme")
        if more:
            raise ClusterError(f"scheme '{self.scheme}' is several; give one")
        area = int(AREA_SHARE * drive.size_bytes)
        fill = parse_fill(self.used or "100%", "used")
        setup = Setup(drive, random_access=area, e_region=area, background_after_ms=self.background_ms)
        made: dict[str, Any] = json.loads(setup.settings(scheme, fill))
        # The server before it has the queue.
        del made["queue"], made["arrivals"]
        return {**made, "used_share": fill.share}

    def _others(self) -> dict[str, Any]:
        return {key: value for key, value in self.given().items() if key in ("sequential_discount", "channels")}


#: Keys that startup = "seek" needs, and no other takes.
_SEEK = ("factor_s", "rotation_s", "capacity_bytes")
#: Keys that only a mechanical disk takes; the others are not for one.
_DISK = ("disk", "scheme", "used", "background_ms")


def parse_device(fields: Fields) -> Device:
    """The table `device` of a target; ClusterError with file, key and cure."""
    fields.only(set(vars(Device())))
    if any(key in fields.data for key in _DISK):
        return _disk(fields)
    startup = fields.choice("startup", STARTUPS) if "startup" in fields.data else None
    for key in _SEEK:
        if key in fields.data and startup != "seek":
            raise fields.error(key, "is given", 'write startup = "seek" with it, or leave it out')
    seeks = startup == "seek"
    return Device(
        startup=startup,
        factor_s=fields.number("factor_s", 0.0, SEEK_S_MAX) if seeks else None,
        rotation_s=fields.number("rotation_s", 0.0, SEEK_S_MAX) if seeks else None,
        capacity_bytes=fields.integer("capacity_bytes", 1, 2**62) if seeks else None,
        sequential_discount=(
            fields.number("sequential_discount", 0.0, 1.0) if "sequential_discount" in fields.data else None
        ),
        channels=fields.integer("channels", 1, CHANNELS_MAX) if "channels" in fields.data else None,
    )


def _disk(fields: Fields) -> Device:
    for key in fields.data:
        if key not in _DISK:
            raise fields.error(key, "is not for a mechanical disk", f"leave it out; it takes {', '.join(_DISK)}")
    disk = fields.text("disk")
    device = Device(
        disk=disk if disk == GENERIC else os.path.join(os.path.abspath(Path(fields.source).parent), disk),
        scheme=fields.text("scheme") if "scheme" in fields.data else None,
        used=fields.text("used") if "used" in fields.data else None,
        background_ms=(
            fields.number("background_ms", 0.0, BACKGROUND_MS_MAX) if "background_ms" in fields.data else None
        ),
    )
    try:
        device.disk_settings()
    except StripewiseError as error:
        raise fields.error("disk", f"cannot be had: {error}", "correct it (docs/formats.md, Disk)") from error
    return device


def device_lines(device: Device) -> list[str]:
    """The lines of a TOML file that say this; none for a plain device."""
    given = device.given()
    if not given:
        return []
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}" if isinstance(value, str) else f"{key} = {value!r}"
        for key, value in given.items()
    ]
    return ["", "[target.device]", *lines]
