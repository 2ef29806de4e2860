"""What the simulator may be told of a device beyond its startup and transfer figures: the table `[target.device]`.

A plain target is one channel with a fixed startup, which an access that continues the one before is spared, as emulated
devices do it. Nothing else reads this table; a store.toml keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import ClusterError
from .fields import Fields

STARTUPS = ("fixed", "exponential", "seek")
CHANNELS_MAX = 1 << 16
SEEK_S_MAX = 1000.0
#: Startup and its spread in seconds, seconds per byte.
Figures = tuple[float, float, float]


@dataclass(frozen=True)
class Device:
    """One device; None where the simulator's own default counts.

    `startup` says where a startup comes from: `fixed`, the target's figure and spread; `exponential` (the whole service
    time, for queueing formulas); `seek`: startup_*_s + factor_s * sqrt(distance / capacity_bytes) + a rotation delay
    below rotation_s.
    """

    startup: str | None = None
    factor_s: float | None = None
    rotation_s: float | None = None
    capacity_bytes: int | None = None
    sequential_discount: float | None = None
    channels: int | None = None

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

    def _others(self) -> dict[str, Any]:
        return {key: value for key, value in self.given().items() if key in ("sequential_discount", "channels")}


#: Keys that startup = "seek" needs, and no other takes.
_SEEK = ("factor_s", "rotation_s", "capacity_bytes")


def parse_device(target: Fields) -> Device:
    """The table `device` of a target; ClusterError with file, key and cure."""
    if "device" not in target.data:
        return Device()
    fields = Fields(target.table("device"), target.source, f"{target.where}device.", ClusterError)
    fields.only(set(vars(Device())))
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


def device_lines(device: Device) -> list[str]:
    """The lines of a TOML file that say this; none for a plain device."""
    given = device.given()
    if not given:
        return []
    lines = [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value!r}" for key, value in given.items()]
    return ["", "[target.device]", *lines]
