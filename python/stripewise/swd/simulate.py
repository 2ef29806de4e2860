"""One simulated run of a shingled disk: drive, scheme, fill and requests in, the engine's report out.

A `Setup` is what runs share, a `Scheme` and a `Fill` are what a comparison varies. All figures are simulated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ClusterError, UsageError, WorkloadError
from ..units import parse_size
from .disk import Disk
from .words import Kind, count, finite, flag, setting
from .workload import BlockWorkload

BLOCK_BYTES = 512
SETTINGS_VERSION = 1
#: The random access zone, and the E-region, of a disk where nobody says: a share of it.
AREA_SHARE = 0.01
QUEUES = ("fcfs", "sstf", "c-look", "sptf")
#: What the disk's memory is used for: (reads, writes) of docs/formats.md, Shingled disk run.
CACHES = {
    "off": (False, "through"),
    "reads": (True, "through"),
    "writes": (False, "back"),
    "on": (True, "back"),
}
Progress = Callable[[int, int], None]

_STATIC: dict[str, Kind] = {"head_tracks": count, "band_tracks": count, "keeps_flushed": flag}
_TRACKS: dict[str, Kind] = {
    **_STATIC, "band_logical_tracks": count, "first_tracks": count, "spread_tracks": count, "gc_threshold": finite,
    "alternate_limit": finite, "checkpoint_writes": count, "victims_by_band": flag,
}  # fmt: skip
#: Every scheme and the parameters that it takes.
SCHEMES: dict[str, dict[str, Kind]] = {
    "hdd": {},
    **dict.fromkeys(("1234", "R(4123)", "124R(3)", "14R(23)"), _STATIC),
    "tstl-greedy": _TRACKS,
    **{name: {**_TRACKS, "declares_pools": flag} for name in ("tstl-smart", "tstl-adaptive")},
    "is": {"head_tracks": count, "cache_tracks": count, "s_block_sectors": count},
}


@dataclass(frozen=True)
class Scheme:
    """A scheme with those of its parameters that are not the seed's; `label` is how it was asked for."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """The name and whatever was set."""
        shown = (f"{key}={str(value).lower()}" for key, value in self.parameters.items())
        return ",".join([self.name, *shown])


def parse_schemes(text: str, option: str = "--scheme") -> list[Scheme]:
    """Schemes with commas between; `key=value` sets a parameter of the one before it.

    Raises UsageError for names, keys and values that there are not.
    """
    schemes: list[tuple[str, dict[str, Any]]] = []
    for word in text.split(","):
        if "=" not in word:
            if word not in SCHEMES:
                raise UsageError(f"{option}: '{word}' is not known; give some of {', '.join(SCHEMES)}")
            schemes.append((word, {}))
        elif not schemes:
            raise UsageError(f"{option}: {word} sets a parameter of no scheme; write the scheme's name before it")
        else:
            name, parameters = schemes[-1]
            parameters.update([setting(option, name, SCHEMES[name], word)])
    return [Scheme(name, parameters) for name, parameters in schemes]


@dataclass(frozen=True)
class Fill:
    """How much of a disk is in use: a `share` (0 to 1) of what the scheme has, or so many `used_bytes`."""

    label: str
    share: float | None = None
    used_bytes: int | None = None

    @property
    def used_blocks(self) -> int | None:
        """Blocks in use, where they are given in bytes."""
        return None if self.used_bytes is None else self.used_bytes // BLOCK_BYTES


def parse_share(text: str, option: str) -> float:
    """The share from 0 to 1 meant by `50%`. Raises UsageError naming `option`."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError as error:
        raise UsageError(f"{option}: '{text}' is not a number of percent; write e.g. 50%") from error
    if not 0 <= percent <= 100:
        raise UsageError(f"{option}: {text} is not from 0% to 100%")
    return percent / 100


def parse_fill(text: str, option: str = "--used") -> Fill:
    """The fill meant by `50%` or `60GB`. Raises UsageError naming `option`."""
    if text.strip().endswith("%"):
        share = parse_share(text, option)
        if share == 0:
            raise UsageError(f"{option}: 0% leaves no room for requests; give more")
        return Fill(text.strip(), share=share)
    used_bytes = parse_size(text, option)
    if used_bytes < BLOCK_BYTES:
        raise UsageError(f"{option}: '{text}' is less than a block; give e.g. 50% or 60GB")
    return Fill(text.strip(), used_bytes=used_bytes)


def area_bytes(text: str, disk: Disk, option: str) -> int:
    """The bytes of an area of the disk meant by `1%` or `2GB`. Raises UsageError naming `option`."""
    if text.strip().endswith("%"):
        return int(parse_share(text, option) * disk.size_bytes)
    return parse_size(text, option)


@dataclass(frozen=True)
class Setup:
    """What runs share.

    `random_access` and `e_region` are sizes in bytes; `filled` the share of what is used that holds data when a run
    begins (None: all of it); `queue_depth` the requests that the disk holds (None: all); `closed` sends each request
    when the one before is done; `background_after_ms` lets an idle disk work after so long (None: never), each time
    for `background_budget_ms` (None: until it is asked); `stall_bound_ms` is the wait that counts as a stall;
    `warm_requests` come first and are not counted.
    """

    disk: Disk
    random_access: int = 0
    e_region: int = 0
    filled: float | None = None
    queue: str = "fcfs"
    queue_depth: int | None = None
    cache: str = "off"
    closed: bool = False
    background_after_ms: float | None = None
    background_budget_ms: float | None = None
    stall_bound_ms: float = 1000.0
    warm_requests: int = 0

    def settings(self, scheme: Scheme, fill: Fill) -> str:
        """The engine's settings (docs/formats.md, Shingled disk run)."""
        reads, writes = CACHES[self.cache]
        background = {"after_ms": self.background_after_ms, "budget_ms": self.background_budget_ms}
        return json.dumps(
            {
                "version": SETTINGS_VERSION,
                "disk": dict(self.disk.facts),
                "random_access_bytes": self.random_access,
                "e_region_bytes": self.e_region,
                "scheme": {"name": scheme.name, **scheme.parameters},
                "used_blocks": fill.used_blocks,
                "cache": {"reads": reads, "writes": writes},
                "queue": {"order": self.queue, "depth": self.queue_depth},
                "background": None if self.background_after_ms is None else background,
                "arrivals": "closed" if self.closed else "open",
                "stall_bound_ms": self.stall_bound_ms,
                "warm_requests": self.warm_requests,
            },
            default=str,
        )


def _called(
    name: str, setup: Setup, scheme: Scheme, fill: Fill, workload: BlockWorkload, progress: Progress | None
) -> Mapping[str, Any]:
    settings = setup.settings(scheme, fill)
    try:
        result: Mapping[str, Any] = workload.call(name, fill.share, setup.filled, progress, before=(settings,))
    except WorkloadError as error:
        text = str(error).removeprefix(f"{workload.name}: ")
        if text.startswith("disk"):
            raise ClusterError(f"{setup.disk.source}: {text.removeprefix('disk.')}") from error
        if text.startswith(("scheme", "used_blocks", "filled_blocks", "random_access", "e_region", "queue", "run_")):
            raise UsageError(f"{scheme.label} on {setup.disk.name}, {fill.label} used: {text}") from error
        if text.startswith("settings: "):
            # What the engine's reader of JSON says of its line and column is of no use to the caller.
            wrong = re.sub(r" at line \d+ column \d+", "", text.removeprefix("settings: "))
            raise UsageError(f"{scheme.label} on {setup.disk.name}: {wrong}") from error
        raise
    return result


def simulate_disk(
    setup: Setup, scheme: Scheme, fill: Fill, workload: BlockWorkload, progress: Progress | None = None
) -> Mapping[str, Any]:
    """The report of a run (docs/formats.md, Shingled disk run); times in seconds, simulated.

    Raises ClusterError for the disk's file, UsageError for a scheme or fill that the disk cannot have, WorkloadError
    for requests that cannot be read or served.
    """
    return _called("swd_simulate", setup, scheme, fill, workload, progress)


def map_disk(
    setup: Setup, scheme: Scheme, fill: Fill, workload: BlockWorkload, progress: Progress | None = None
) -> Mapping[str, Any]:
    """The states of all tracks after the writes of a workload (docs/formats.md, Track map). Raises as simulate_disk."""
    return _called("swd_map", setup, scheme, fill, workload, progress)
