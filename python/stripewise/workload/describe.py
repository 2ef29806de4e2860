"""A workload as a few lines of TOML: the access pattern, who walks it, and when (docs/formats.md).

The requests themselves are made by one generator, in Rust, which takes `Description.as_json`; what only shows when the
keys meet (a file too small for its processes) is said by it too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from ..errors import UsageError, WorkloadError
from ..files.fields import Fields, read_toml
from ..units import MIB, OFFSET_BYTES_MAX, SIZE_CURE, parse_size

VERSION = 1
KINDS = ("sequential", "interleaved", "strided", "random", "zipf", "nested", "tiles")
FILES = ("shared", "per_process")
THINK = ("constant", "exponential")
ARRIVALS = ("poisson", "fixed")
#: Keys whose values are sizes.
SIZE_KEYS = frozenset({"request_bytes", "file_bytes", "region_bytes", "gap_bytes"})
PROCESSES_MAX = 1 << 24
COUNT_MAX = 1 << 20
REQUESTS_MAX = 1 << 48
#: A request of more is a slip of the unit.
REQUEST_BYTES_MAX = 1 << 40
SIZES_MAX = 64
SECONDS_MAX = 1e6
RATE_MAX = 1e12
SEED_MAX = (1 << 64) - 1
#: TOML's integers end here.
TOML_MAX = (1 << 63) - 1

Sizes = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Description:
    """A workload; the keys of the file are the names here. Sizes are bytes, times seconds.

    `request_bytes` are sizes with weights; `reads` and `writes` are per process, None meaning the file once (in a file,
    one of them alone makes the other 0). `rate_per_s` counts the requests of all processes; 0 is a closed loop.
    """

    kind: str
    processes: int
    request_bytes: Sizes
    file_bytes: int
    files: str = "shared"
    path: str = ""
    region_bytes: int = MIB
    alpha: float = 0.8
    pieces: int = 4
    gap_bytes: int = 0
    reads: int | None = None
    writes: int | None = None
    windows: int = 1
    shift: int = 0
    window_seconds: float = 0.0
    think_s: float = 0.0
    think: str = "constant"
    rate_per_s: float = 0.0
    arrivals: str = "poisson"
    collective: bool = False
    seed: int = 1
    source: str = "workload"

    def as_json(self) -> str:
        """What the generator takes."""
        data = {each.name: getattr(self, each.name) for each in fields_of(self)}
        del data["path"], data["source"]
        return json.dumps({"version": VERSION, **data})

    @property
    def paths(self) -> list[str]:
        """The files, in the order in which requests name them."""
        path = self.path or f"/data/{self.kind}.dat"
        return [path] if self.files == "shared" else [f"{path}.{process}" for process in range(self.processes)]


def read_description(path: str | os.PathLike[str], changes: Mapping[str, Any] | None = None) -> Description:
    """Reads and validates a description; `changes` replace keys of the file, as a sweep does.

    Raises WorkloadError with file, key and cure.
    """
    source = Path(path)
    return description_from(read_workload_toml(source), source, changes)


def read_workload_toml(path: Path) -> dict[str, Any]:
    """The parsed TOML file; WorkloadError when it is missing, not UTF-8 or not TOML."""
    return read_toml(path, WorkloadError, "a workload description")


def description_from(
    data: Mapping[str, Any], source: Path | str, changes: Mapping[str, Any] | None = None
) -> Description:
    """The description in parsed TOML; `source` names the file in errors."""
    top = Fields({**data, **(changes or {})}, source, "", WorkloadError)
    version = top.integer("version", 1, 2**31, default=VERSION)
    if version > VERSION:
        raise top.error("version", f"= {version} is newer than this program knows ({VERSION})", "upgrade stripewise")
    top.only({"version"} | {each.name for each in fields_of(Description)} - {"source"})
    given = {key for key in ("reads", "writes") if key in top.data}
    path = top.text("path", "")
    if path and not path.startswith("/"):
        raise top.error("path", f"= '{path}' is not absolute", "begin it with /")
    return Description(
        kind=top.choice("kind", KINDS),
        processes=top.integer("processes", 1, PROCESSES_MAX),
        request_bytes=_sizes(top),
        file_bytes=_size(top, "file_bytes"),
        files=top.choice("files", FILES, "shared"),
        path=path,
        region_bytes=_size(top, "region_bytes", MIB),
        alpha=top.number("alpha", 0.0, 20.0, 0.8),
        pieces=top.integer("pieces", 1, COUNT_MAX, 4),
        gap_bytes=_size(top, "gap_bytes", 0),
        # Who names one phase wants no other.
        reads=top.integer("reads", 0, REQUESTS_MAX, 0) if given else None,
        writes=top.integer("writes", 0, REQUESTS_MAX, 0) if given else None,
        windows=top.integer("windows", 1, COUNT_MAX, 1),
        shift=top.integer("shift", 0, TOML_MAX, 0),
        window_seconds=top.number("window_seconds", 0.0, SECONDS_MAX, 0.0),
        think_s=top.number("think_s", 0.0, SECONDS_MAX, 0.0),
        think=top.choice("think", THINK, "constant"),
        rate_per_s=top.number("rate_per_s", 0.0, RATE_MAX, 0.0),
        arrivals=top.choice("arrivals", ARRIVALS, "poisson"),
        collective=_flag(top, "collective"),
        seed=top.integer("seed", 0, SEED_MAX, 1),
        source=str(source),
    )


def _flag(top: Fields, key: str) -> bool:
    value = top.data.get(key, False)
    if not isinstance(value, bool):
        raise top.error(key, f"= {value!r:.60} is not true or false", "write true or false without quotes")
    return value


def _size(top: Fields, key: str, default: int | None = None) -> int:
    if key not in top.data and default is not None:
        return default
    value = top.data.get(key)
    if isinstance(value, str):
        return _parsed(top, key, value)
    return top.integer(key, 0 if key == "gap_bytes" else 1, _most(key))


def _most(key: str) -> int:
    return REQUEST_BYTES_MAX if key in ("request_bytes", "size") else OFFSET_BYTES_MAX


def _parsed(top: Fields, key: str, text: str) -> int:
    try:
        size = parse_size(text)
    except UsageError as error:
        raise top.error(key, f"= '{text:.60}' is not a size", SIZE_CURE) from error
    if size > _most(key):
        raise top.error(key, f"= '{text:.60}' is out of range", f"give at most {_most(key)} bytes")
    if size == 0 and key != "gap_bytes":
        raise top.error(key, f"= '{text:.60}' is nothing", "give at least 1 byte")
    return size


def _sizes(top: Fields) -> Sizes:
    """One size, sizes, or pairs of size and weight."""
    value = top.data.get("request_bytes")
    if not isinstance(value, list):
        return ((_size(top, "request_bytes"), 1.0),)
    if not 1 <= len(value) <= SIZES_MAX:
        raise top.error("request_bytes", f"has {len(value)} sizes", f"give 1 to {SIZES_MAX}")
    sizes = []
    for number, entry in enumerate(value):
        size, weight = entry if isinstance(entry, list) and len(entry) == 2 else (entry, 1.0)
        each = Fields({"size": size, "weight": weight}, top.source, f"request_bytes[{number}].", WorkloadError)
        sizes.append((_size(each, "size"), each.number("weight", 0.0, 1e12)))
    if not any(weight for _, weight in sizes):
        raise top.error("request_bytes", "has only weights of 0", "give one that is not")
    return tuple(sizes)
