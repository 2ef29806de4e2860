"""What the simulator may be told of a device beyond its startup and transfer figures: the table `[target.device]`.

A plain target is one channel with a fixed startup, which an access that continues the one before is spared, as emulated
devices do it. Nothing else reads this table; a store.toml keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ClusterError
from .fields import Fields

STARTUPS = ("fixed", "uniform", "exponential", "seek")
CHANNELS_MAX = 1 << 16
#: As cluster.STARTUP_S_MAX.
SECONDS_MAX = 3600.0
SEEK_S_MAX = 1000.0


@dataclass(frozen=True)
class Device:
    """One device; None where the simulator's own default counts.

    `startup` says where a startup comes from: `fixed`; `uniform` from startup_*_s to startup_max_*_s; `exponential`
    (the whole service time, for queueing formulas); `seek`: startup_*_s + factor_s * sqrt(distance / capacity_bytes)
    + a rotation delay below rotation_s.
    """

    startup: str | None = None
    startup_max_read_s: float | None = None
    startup_max_write_s: float | None = None
    factor_s: float | None = None
    rotation_s: float | None = None
    capacity_bytes: int | None = None
    sequential_discount: float | None = None
    channels: int | None = None

    def given(self) -> dict[str, Any]:
        """The keys that were given."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def as_scenario(self, read: Mapping[str, float], write: Mapping[str, float]) -> dict[str, Any]:
        """The device as a scenario has it, with the figures of both directions."""
        made: dict[str, Any] = {"read": dict(read), "write": dict(write)}
        if self.startup == "uniform":
            made["read"]["startup_max_s"], made["write"]["startup_max_s"] = (
                self.startup_max_read_s,
                self.startup_max_write_s,
            )
        if self.startup == "seek":
            seek = {"factor_s": self.factor_s, "rotation_s": self.rotation_s, "capacity_bytes": self.capacity_bytes}
            made["startup"] = {"kind": "seek", **seek}
        elif self.startup is not None:
            made["startup"] = {"kind": self.startup}
        for key in ("sequential_discount", "channels"):
            if getattr(self, key) is not None:
                made[key] = getattr(self, key)
        return made


#: Keys that one kind of startup needs, and no other takes.
_NEEDED = {
    "uniform": ("startup_max_read_s", "startup_max_write_s"),
    "seek": ("factor_s", "rotation_s", "capacity_bytes"),
}


def parse_device(target: Fields) -> Device:
    """The table `device` of a target; ClusterError with file, key and cure."""
    if "device" not in target.data:
        return Device()
    fields = Fields(target.table("device"), target.source, f"{target.where}device.", ClusterError)
    fields.only(set(vars(Device())))
    startup = fields.choice("startup", STARTUPS) if "startup" in fields.data else None
    for kind, keys in _NEEDED.items():
        for key in keys:
            if key in fields.data and startup != kind:
                raise fields.error(key, "is given", f'write startup = "{kind}" with it, or leave it out')
    needed = _NEEDED.get(startup or "", ())

    def seconds(key: str, low: float, high: float) -> float | None:
        return fields.number(key, low, high) if key in needed else None

    return Device(
        startup=startup,
        startup_max_read_s=seconds("startup_max_read_s", _least(target, "startup_read_s"), SECONDS_MAX),
        startup_max_write_s=seconds("startup_max_write_s", _least(target, "startup_write_s"), SECONDS_MAX),
        factor_s=seconds("factor_s", 0.0, SEEK_S_MAX),
        rotation_s=seconds("rotation_s", 0.0, SEEK_S_MAX),
        capacity_bytes=fields.integer("capacity_bytes", 1, 2**62) if startup == "seek" else None,
        sequential_discount=(
            fields.number("sequential_discount", 0.0, 1.0) if "sequential_discount" in fields.data else None
        ),
        channels=fields.integer("channels", 1, CHANNELS_MAX) if "channels" in fields.data else None,
    )


def _least(target: Fields, key: str) -> float:
    return target.number(key, 0.0, SECONDS_MAX)


def device_lines(device: Device) -> list[str]:
    """The lines of a TOML file that say this; none for a plain device."""
    given = device.given()
    if not given:
        return []
    lines = [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value!r}" for key, value in given.items()]
    return ["", "[target.device]", *lines]
