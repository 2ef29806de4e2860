"""Where the managed files of a trace lay when it was first collected: `layouts.json` beside trace.parquet
(docs/formats.md).

A layout may be another one by the time that somebody looks at the trace, or collects it once more: what is recorded
of a run stays.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import WorkloadError
from ..files.fields import Fields, read_json
from ..files.parts import write_durably
from ..layout import Layout, layout_json, parse_regions

NAME = "layouts.json"
VERSION = 1
#: Of a target: the model's figures, seconds.
FIGURES = ("startup_read_s", "startup_write_s", "per_byte_read_s", "per_byte_write_s")
CHANNELS_MAX = 1 << 20
#: A startup, and the time of a byte.
SECONDS_MAX = 1e6
PER_BYTE_MAX = 1.0
#: The end of year 9999.
UNIX_S_MAX = 253_402_300_799
#: The cure for whatever is wrong with the file: nobody writes it by hand.
WRITTEN = "collect the run anew, or remove this file"


@dataclass(frozen=True)
class TracedTarget:
    """A target as it was then: name, class (hdd, ssd, swd or any), channels, the model's figures in seconds."""

    name: str
    klass: str
    channels: int
    startup_read_s: float
    startup_write_s: float
    per_byte_read_s: float
    per_byte_write_s: float


@dataclass(frozen=True)
class TracedStore:
    """A store of the run: its path, its targets, and the layouts of files by path."""

    root: str
    targets: tuple[TracedTarget, ...]
    layouts: dict[str, Layout]
    #: When collecting the trace read that, seconds since 1970; of earlier versions' traces not known.
    read_unix_s: int | None = None

    @property
    def as_read(self) -> str:
        """Since when its files lie as recorded: where the record was lost, that is no time of the run's."""
        if self.read_unix_s is None:
            return "as its files lay when the trace was first collected"
        return time.strftime("as 'collect' found its files on %Y-%m-%d at %H:%M UTC", time.gmtime(self.read_unix_s))


def write_layouts(out: Path, stores: Sequence[TracedStore]) -> None:
    """Writes layouts.json into a collected trace, or removes one that is there where nothing is known.

    Raises OSError.
    """
    place = out / NAME
    if not stores:
        place.unlink(missing_ok=True)
        return
    said = {"version": VERSION, "stores": [_store_json(store) for store in stores]}
    write_durably(place, json.dumps(said) + "\n")


def with_recorded(recorded: Sequence[TracedStore], found: Sequence[TracedStore]) -> list[TracedStore]:
    """What is recorded of a run, with those files among the `found` ones that it lacks."""
    stores = {store.root: store for store in recorded}
    for store in found:
        first = stores.get(store.root, store)
        # Names of targets mean what they meant at first; those that came later stand behind them.
        names = {target.name for target in first.targets}
        later = tuple(target for target in store.targets if target.name not in names)
        stores[store.root] = TracedStore(
            store.root, first.targets + later, store.layouts | first.layouts, first.read_unix_s
        )
    return list(stores.values())


def _store_json(store: TracedStore) -> dict[str, Any]:
    return {
        "store": store.root,
        **({} if store.read_unix_s is None else {"read_unix_s": store.read_unix_s}),
        "targets": [
            {
                "name": target.name,
                "class": target.klass,
                **{key: getattr(target, key) for key in FIGURES},
                "channels": target.channels,
            }
            for target in store.targets
        ],
        "files": [{"path": path, **layout_json(layout)} for path, layout in store.layouts.items()],
    }


def store_of_trace(trace: Path) -> str | None:
    """The store that held the managed files of a collected trace, where it was one and is still there."""
    try:
        stores = read_layouts(trace)
    except WorkloadError:
        return None
    roots = [store.root for store in stores if os.path.lexists(os.path.join(store.root, "store.toml"))]
    return roots[0] if len(stores) == len(roots) == 1 else None


def read_layouts(trace: Path) -> tuple[TracedStore, ...]:
    """The stores of a collected trace (its directory, or its trace.parquet), none where it has no layouts.json.

    Raises WorkloadError with file and key.
    """
    path = (trace if trace.is_dir() else trace.parent) / NAME
    if not os.path.lexists(path):
        return ()
    try:
        now = os.stat(path)
    except OSError:
        # What is wrong with it the reader says.
        return _read(path, ())
    return _read(path, (now.st_ino, now.st_mtime_ns, now.st_size))


@functools.lru_cache(maxsize=1)
def _read(path: Path, _: tuple[int, ...]) -> tuple[TracedStore, ...]:
    """The file as it is now: a verb asks for it several times, and there may be a million stripes in it."""
    said = read_json(path, WorkloadError, "what 'stripewise collect' wrote, or remove it", path.parent)
    top = Fields(said, path, "", WorkloadError, WRITTEN)
    version = top.integer("version", 1, 2**31)
    if version > VERSION:
        raise WorkloadError(
            f"{path}: version = {version} is newer than this program knows ({VERSION}); upgrade stripewise"
        )
    top.only({"version", "stores"})
    return tuple(_store(entry, path, f"stores[{number}].") for number, entry in enumerate(top.tables("stores")))


def _store(entry: Any, path: Path, where: str) -> TracedStore:
    fields = Fields(entry, path, where, WorkloadError, WRITTEN)
    fields.only({"store", "read_unix_s", "targets", "files"})
    targets = []
    for number, each in enumerate(fields.tables("targets")):
        target = Fields(each, path, f"{where}targets[{number}].", WorkloadError, WRITTEN)
        target.only({"name", "class", "channels", *FIGURES})
        targets.append(
            TracedTarget(
                target.text("name"),
                target.text("class"),
                target.integer("channels", 1, CHANNELS_MAX, 1),
                **{
                    key: target.number(key, 0.0, PER_BYTE_MAX if key.startswith("per_byte") else SECONDS_MAX)
                    for key in FIGURES
                },
            )
        )
    names = [target.name for target in targets]
    layouts = {}
    for number, each in enumerate(fields.tables("files")):
        file = Fields(each, path, f"{where}files[{number}].", WorkloadError, WRITTEN)
        file.only({"path", "regions"})
        regions = parse_regions(file.items("regions"), path, f"{where}files[{number}].regions", names, WorkloadError)
        layouts[file.text("path")] = Layout(regions)
    at = fields.integer("read_unix_s", 0, UNIX_S_MAX) if "read_unix_s" in fields.data else None
    return TracedStore(fields.text("store"), tuple(targets), layouts, at)
