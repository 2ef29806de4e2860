"""A cluster: the targets that data can lie on, the network before them, and the file that says both, cluster.toml.

A store's store.toml is the same form plus the tables [store] and [[rule]], so that either can be given wherever a
cluster is asked for. The schema is drawn in docs/formats.md.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import ClusterError
from ..files.fields import Fields, read_toml
from ..units import GRANULE_BYTES, quoted, round_up
from .calibration import Calibration, calibration_from
from .device import Device, device_lines, parse_device

VERSION = 1
CLASSES = ("hdd", "ssd", "swd", "any")
KINDS = ("dir", "emulated")
#: A draining target gets nothing new; a removed one is a number that stays taken, without a directory of its own.
STATES = ("active", "draining", "removed")
#: What models and simulations take; a store takes fewer (store/config.py).
TARGETS_MAX = 65_536
#: Figures above an hour per access or a second per byte are slips of the unit.
STARTUP_S_MAX = 3600.0
PER_BYTE_S_MAX = 1.0
#: What models ask of every target, and the most that each can be.
FIGURES_MAX = (
    ("startup_read_s", STARTUP_S_MAX),
    ("startup_write_s", STARTUP_S_MAX),
    ("per_byte_read_s", PER_BYTE_S_MAX),
    ("per_byte_write_s", PER_BYTE_S_MAX),
)
#: Whether something holds for the target of a name; for none.
NameTest = Callable[[str], bool]
NO_NAME: NameTest = lambda _: False  # noqa: E731


def data_bytes(room_bytes: int) -> int:
    """What of a target's room slices can have: the file system takes a part for finding them, two blocks and a
    thousandth. Capacities are held against allocated blocks, and ext4 allocates one 4 KiB block per 340 extents.
    """
    return room_bytes - min(2 * GRANULE_BYTES + round_up(room_bytes // 1024), room_bytes // 16)


@dataclass(frozen=True)
class Target:
    """One storage server or device.

    `startup_*_s` are seconds per access, `per_byte_*_s` seconds per byte; `capacity_bytes` 0 means what the file system
    has, `room_bytes` what a store's target has for plans, where one has looked (`store/placed.py`; None: nobody).
    `startup_*_spread_s` is T_max - T_min of SLAL: the startup is uniform on its mean less and
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
    room_bytes: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether data may be put on this target."""
        return self.state == "active"

    @property
    def usable_bytes(self) -> int:
        """What plans may put on this target, slices in whole granules; 0 where only the file system limits it, and
        nobody has looked what that has.

        The one rule of capacity: the planners, the proof and `plan --check` ask it.
        """
        return data_bytes(self.capacity_bytes) if self.room_bytes is None else max(1, self.room_bytes)

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
    def holding(self) -> tuple[Target, ...]:
        """Targets that files may lie on, in order: active ones and those that are being drained."""
        return tuple(target for target in self.targets if target.state != "removed")

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


def read_cluster(path: str | os.PathLike[str], lacks_figures: NameTest = NO_NAME) -> Cluster:
    """Reads and validates cluster.toml or store.toml.

    Directories for whose name `lacks_figures` holds are to be measured: figures that they lack are 0.
    Raises ClusterError naming the file, the key and the cure.
    """
    source = Path(path)
    if source.is_dir() and (source / "store.toml").is_file():
        source = source / "store.toml"
    return cluster_from_mapping(read_toml(source, ClusterError, "a cluster.toml or store.toml"), source, lacks_figures)


def cluster_from_mapping(data: Mapping[str, Any], source: Path, lacks_figures: NameTest = NO_NAME) -> Cluster:
    """The cluster described by parsed TOML; `source` names the file in errors and anchors relative paths."""
    top = Fields(data, source, "", ClusterError)
    version = top.integer("version", 1, 2**31, default=VERSION)
    if version > VERSION:
        raise top.error("version", f"= {version} is newer than this program knows ({VERSION})", "upgrade stripewise")
    top.only({"version", "network", "target", "store", "rule", "plan"})
    network = _network(Fields(top.table("network"), source, "network.", ClusterError))
    entries = top.tables("target")
    if not entries:
        raise ClusterError(f"{source}: no [[target]] is given; describe at least one storage target")
    if len(entries) > TARGETS_MAX:
        raise ClusterError(f"{source}: {len(entries)} [[target]] tables are more than {TARGETS_MAX}; use fewer targets")
    targets: list[Target] = []
    names: set[str] = set()
    homes: dict[Path, str] = {}
    for position, entry in enumerate(entries):
        target = _target(Fields(entry, source, f"target[{position}].", ClusterError), source, lacks_figures)
        if target.name in names:
            raise ClusterError(f"{source}: target[{position}].name '{target.name}' is used twice; rename one")
        names.add(target.name)
        other = homes.setdefault(target.path, target.name)
        if other != target.name:
            raise ClusterError(
                f"{source}: target[{position}].path is the directory of '{other}' too; give each its own"
            )
        targets.append(target)
    if not any(target.is_active for target in targets):
        raise ClusterError(f"{source}: no target's state is active; give one of them back, or add one")
    return Cluster(source, network, tuple(targets))


def _network(fields: Fields) -> Network:
    fields.only({"establish_s", "per_byte_s", "processes_per_node"})
    return Network(
        fields.number("establish_s", 0.0, STARTUP_S_MAX, default=0.0),
        fields.number("per_byte_s", 0.0, PER_BYTE_S_MAX, default=0.0),
        fields.integer("processes_per_node", 1, 2**31, default=1),
    )


#: What is wrong with a target's name that is none.
MISNAMED = "holds a space, '/', ':', ',' or a control character"


def is_name(text: str) -> bool:
    """Whether a target may be called so."""
    return bool(text) and not any(ord(char) <= 32 or char in "/:,\x7f" for char in text)


def _target(fields: Fields, source: Path, lacks_figures: NameTest) -> Target:
    fields.only(
        {"name", "class", "kind", "path", "capacity_bytes", "startup_read_s", "startup_write_s",
         "per_byte_read_s", "per_byte_write_s", "state", "startup_read_spread_s", "startup_write_spread_s",
         "calibration", "device"}
    )  # fmt: skip
    name = fields.text("name")
    if not is_name(name):
        raise fields.error("name", f"'{name}' {MISNAMED}", "use letters and digits")
    path = fields.text("path")
    if "\x00" in path:
        raise fields.error("path", "holds a NUL character", "give a directory")
    # normpath, not resolve: a symbolic link stays what the user wrote.
    absolute = Path(os.path.normpath(os.path.join(os.path.abspath(source.parent), path)))
    kind, klass = fields.choice("kind", KINDS, default="dir"), fields.choice("class", CLASSES)
    capacity_bytes = fields.integer("capacity_bytes", 0, 2**62, default=0)
    # What is wrong with the rest is told before figures that only a measurement gives.
    figures = _figures(fields, source, kind == "dir" and lacks_figures(name))
    return Target(
        name=name,
        klass=klass,
        kind=kind,
        path=absolute,
        capacity_bytes=capacity_bytes,
        startup_read_s=figures["startup_read_s"],
        startup_write_s=figures["startup_write_s"],
        per_byte_read_s=figures["per_byte_read_s"],
        per_byte_write_s=figures["per_byte_write_s"],
        state=fields.choice("state", STATES, default="active"),
        # Half of it below the mean: a spread above twice the mean would begin before the request.
        startup_read_spread_s=fields.number("startup_read_spread_s", 0.0, 2 * figures["startup_read_s"], default=0.0),
        startup_write_spread_s=fields.number(
            "startup_write_spread_s", 0.0, 2 * figures["startup_write_s"], default=0.0
        ),
        calibration=None if (measured := _given(fields, "calibration")) is None else calibration_from(measured),
        device=Device() if (told := _given(fields, "device")) is None else parse_device(told),
    )


def _figures(fields: Fields, source: Path, may_lack: bool) -> dict[str, float]:
    found = {}
    for key, most in FIGURES_MAX:
        if key not in fields.data and not may_lack:
            raise fields.error(key, "is missing", _figure_cure(fields, source))
        found[key] = fields.number(key, 0.0, most, default=0.0)
    return found


def _figure_cure(fields: Fields, source: Path) -> str:
    if fields.data.get("kind") == "emulated" or source.name == "store.toml":
        return "add it"
    return f"add it, or have it measured: stripewise calibrate --cluster {quoted(source)} -o measured.toml"


def _given(fields: Fields, key: str) -> Fields | None:
    """The table `key` of a target; None where it has none."""
    if key not in fields.data:
        return None
    return Fields(fields.table(key), fields.source, f"{fields.where}{key}.", ClusterError)


def cluster_lines(cluster: Cluster) -> list[str]:
    """[network] and the [[target]] tables as they stand in cluster.toml and store.toml."""
    network = cluster.network
    lines = [
        "",
        "[network]",
        f"establish_s = {network.establish_s!r}",
        f"per_byte_s = {network.per_byte_s!r}",
        f"processes_per_node = {network.processes_per_node}",
    ]
    for t in cluster.targets:
        lines += [
            "",
            "[[target]]",
            f"name = {toml_string(t.name)}",
            f"class = {toml_string(t.klass)}",
            f"kind = {toml_string(t.kind)}",
            f"path = {toml_string(str(t.path))}",
            f"capacity_bytes = {t.capacity_bytes}",
            f"startup_read_s = {t.startup_read_s!r}",
            f"startup_write_s = {t.startup_write_s!r}",
            f"per_byte_read_s = {t.per_byte_read_s!r}",
            f"per_byte_write_s = {t.per_byte_write_s!r}",
            *(
                f"startup_{op}_spread_s = {spread!r}"
                for op, spread in (("read", t.startup_read_spread_s), ("write", t.startup_write_spread_s))
                if spread
            ),
            *([] if t.is_active else [f"state = {toml_string(t.state)}"]),
            *device_lines(t.device),
            *([] if t.calibration is None else t.calibration.toml_lines()),
        ]
    return lines


def cluster_text(cluster: Cluster) -> str:
    """A cluster.toml that says this."""
    return "\n".join([f"version = {VERSION}", *cluster_lines(cluster)]) + "\n"


def toml_string(text: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for DEL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ClusterError(f"{text!r}: is not UTF-8, which store.toml must be; rename it") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
