"""The cluster as models, policies and stores see it: the targets that data can lie on and the network before them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..units import GRANULE_BYTES, round_up
from .calibration import Calibration
from .device import Device


@dataclass(frozen=True)
class Target:
    """One storage server or device.

    `startup_*_s` are seconds per access, `per_byte_*_s` seconds per byte; `capacity_bytes` 0 means what the file system
    has. `startup_*_spread_s` is T_max - T_min of SLAL: the startup is uniform on its mean less and
    plus half of it. Targets of class ssd are the papers' SServers, all others their HServers.
    """

    name: str
    klass: str
    kind: str
    path: Path
    capacity_bytes: int
    startup_read_s: float
    startup_write_s: float
    per_byte_read_s: float
    per_byte_write_s: float
    state: str = "active"
    startup_read_spread_s: float = 0.0
    startup_write_spread_s: float = 0.0
    #: How the figures were measured; None when they were typed.
    calibration: Calibration | None = None
    #: What only the simulator needs to know of the device.
    device: Device = field(default_factory=Device)

    @property
    def is_active(self) -> bool:
        """Whether data may be put on this target."""
        return self.state == "active"

    @property
    def usable_bytes(self) -> int:
        """What plans may put on this target, slices in whole granules; 0 where only the file system limits it.

        The one rule of capacity: the planners, the proof and `plan --check` ask it. The file system takes a part for
        finding the slices, two blocks and a thousandth: capacities are held against allocated blocks, and ext4
        allocates one 4 KiB block per 340 extents.
        """
        metadata_bytes = 2 * GRANULE_BYTES + round_up(self.capacity_bytes // 1024)
        return self.capacity_bytes - min(metadata_bytes, self.capacity_bytes // 16)

    @property
    def channels(self) -> int:
        """Accesses that it serves at once."""
        return self.device.channels or 1

    @property
    def continued_part(self) -> float:
        """Part of its startup, 0 to 1, that an access pays which continues the one before; 0 unless given."""
        given = self.device.sequential_discount
        return 0.0 if given is None else 1.0 - given

    @property
    def is_ssd(self) -> bool:
        """Whether the models count this target as an SServer."""
        return self.klass == "ssd"


@dataclass(frozen=True)
class Network:
    """Seconds to establish a connection, seconds per byte, client processes on one node (the models' e, t and c)."""

    establish_s: float = 0.0
    per_byte_s: float = 0.0
    processes_per_node: int = 1


@dataclass(frozen=True)
class Cluster:
    """All targets in the order of the file, and the network."""

    source: Path
    network: Network
    targets: tuple[Target, ...]

    @cached_property
    def active(self) -> tuple[Target, ...]:
        """Targets that data may be put on, in order."""
        return tuple(target for target in self.targets if target.is_active)

    @cached_property
    def hservers(self) -> tuple[Target, ...]:
        """Active targets that are not SSDs, in order."""
        return tuple(target for target in self.active if not target.is_ssd)

    @cached_property
    def sservers(self) -> tuple[Target, ...]:
        """Active SSD targets, in order."""
        return tuple(target for target in self.active if target.is_ssd)

    def index(self, name: str) -> int:
        """Position of the target `name`; KeyError when there is none."""
        for position, target in enumerate(self.targets):
            if target.name == name:
                return position
        raise KeyError(name)

    def digest(self) -> str:
        """SHA-256 of what a plan depends on: network and targets, without paths."""
        parts = [repr((self.network.establish_s, self.network.per_byte_s, self.network.processes_per_node))]
        parts += [
            repr((t.name, t.klass, t.capacity_bytes, t.startup_read_s, t.startup_write_s,
                  t.per_byte_read_s, t.per_byte_write_s, *_spreads(t), *_served(t)))
            for t in self.active
        ]  # fmt: skip
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _spreads(target: Target) -> tuple[float, ...]:
    """Nothing where there is no spread: plans made before it could be said keep their cluster."""
    spreads = (target.startup_read_spread_s, target.startup_write_spread_s)
    return spreads if any(spreads) else ()


def _served(target: Target) -> tuple[object, ...]:
    """Nothing of a plain target, as with spreads."""
    served = (target.channels, target.continued_part)
    return () if served == (1, 0.0) else served
