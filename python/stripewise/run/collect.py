"""Where the raw logs of a traced run go, what is noted of the run, and how they become one Parquet file."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import native
from ..errors import StripewiseError, UsageError, WorkloadError
from ..files.fields import Fields, read_json
from ..files.parts import check_outside, write_durably
from ..files.spelling import path_meant
from ..layout import Layout
from ..store import Store
from .runner import Ended

# Brings numpy, which other verbs of this module's users do without.
if TYPE_CHECKING:
    from ..workload.layouts import TracedStore

#: Layouts of so many files go into a trace.
LAYOUTS_MAX = 1000
#: Beside the logs, what `run` notes of the run; collecting skips hidden names.
NOTE = ".run.json"
NOTE_VERSION = 1
#: Of a run whose directory has its note and no log.
NOTHING_RECORDED = (
    "nothing was recorded, for the program did no I/O that is traced, or is one that the library does not reach "
    "('stripewise doctor -- CMD' tells); there is nothing to collect"
)
#: Exit statuses of the kernel and of shells, and its signals.
STATUS_MAX, SIGNAL_MAX = 255, 64


def trace_directory(path: Path) -> Path:
    """The directory for raw logs, made if need be in one that is there; UsageError when something is in it."""
    path = path.absolute()
    if not path.parent.is_dir():
        raise UsageError(f"--trace: {path.parent} is not a directory; create it, or name a new one in a directory")
    check_outside(path.parent, path, "--trace")
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--trace: {path} is not a directory; name a new one") from error
    if any(path.iterdir()) and not _recorded_nothing(path):
        raise UsageError(f"--trace: {path} is not empty; name a new directory, for runs must not mix")
    return path


def _recorded_nothing(logs: Path) -> bool:
    """Whether all that is there is the note of a run that has ended: one that has not may record something yet."""
    if [each.name for each in logs.iterdir()] != [NOTE]:
        return False
    with contextlib.suppress(WorkloadError):
        return _noted(logs).get("exit_status") is not None
    return False


def note_run(logs: Path, ended: Ended | None = None, store: Path | None = None) -> str:
    """Notes beside the logs where the run works, its `store`, and once it has `ended`, how; returns why that cannot be.

    Without the second note how it ended is unknown: whoever was to write it was killed.
    """
    # As paths in traces are written: bytes that are not UTF-8 as \xNN.
    place = os.fsencode(os.getcwd()).decode("utf-8", "backslashreplace")
    note: dict[str, Any] = {"version": NOTE_VERSION, "cwd": place, "exit_status": None}
    if store is not None:
        note["store"] = os.fsencode(store).decode("utf-8", "backslashreplace")
    if ended is not None:
        note["exit_status"] = ended.status
        if ended.signal is not None:
            note["signal"] = ended.signal
        if ended.heard is not None:
            note["interrupted_by"] = ended.heard
    try:
        write_durably(logs / NOTE, json.dumps(note))
    except OSError as error:
        return f"{logs / NOTE}: cannot be written ({error.strerror}), so the trace will not tell how the run ended"
    return ""


def _noted(logs: Path) -> dict[str, Any]:
    """What was noted of the run, as meta.json has it; empty where nothing was. Raises WorkloadError for a bad note."""
    path = logs / NOTE
    if not path.exists():
        return {}
    cure = "what 'stripewise run' noted of the run, or remove this file"
    fields = Fields(read_json(path, WorkloadError, cure), path, "", WorkloadError)
    if fields.integer("version", 1, 1 << 31) > NOTE_VERSION:
        raise fields.error("version", f"is newer than this program knows ({NOTE_VERSION})", "upgrade stripewise")
    found: dict[str, Any] = {"cwd": fields.text("cwd"), "exit_status": None}
    if fields.data.get("store") is not None:
        found["store"] = fields.text("store")
    if fields.data.get("exit_status") is not None:
        found["exit_status"] = fields.integer("exit_status", 0, STATUS_MAX)
    if fields.data.get("signal") is not None:
        found["signal"] = fields.integer("signal", 1, SIGNAL_MAX)
    if fields.data.get("interrupted_by") is not None:
        found["interrupted_by"] = fields.integer("interrupted_by", 1, SIGNAL_MAX)
    return found


def collect_logs(logs: Path, out: Path, lenient: bool = False) -> dict[str, Any]:
    """Collects the raw logs in `logs` into `out`/trace.parquet, with what was noted of the run and the layouts that
    managed files have now; of a run that was collected before those of then stay.

    Returns what meta.json has, files with most bytes first.
    """
    if not logs.is_dir():
        raise WorkloadError(f"{logs}: is not a directory; give the one that 'stripewise run --trace' wrote")
    if not any(logs.glob("*.swt")):
        from ..workload.trace import runs_inside

        if runs := runs_inside(logs):
            raise WorkloadError(f"{logs}: has no trace logs, but {runs} to 'stripewise show'")
    from ..workload.layouts import with_recorded, write_layouts

    noted, before = _noted(logs), [*_recorded(out), *_recorded(logs)]
    try:
        account = dict(native.call("trace_collect", str(logs.absolute()), str(out), lenient) or {}) | noted
    except WorkloadError as error:
        if noted and not any(logs.glob("*.swt")):
            raise WorkloadError(f"{logs}: {NOTHING_RECORDED}") from error
        raise
    account.get("files", []).sort(key=lambda file: (-(file["bytes_read"] + file["bytes_written"]), file["path"]))
    try:
        write_durably(out / "meta.json", json.dumps(account, indent=2) + "\n")
        # A run is known by the moment of its first record.
        recorded = [stores for began, stores in before if began == account.get("zero_unix_ns")]
        write_layouts(out, with_recorded(recorded[0] if recorded else (), _stores(account)))
    except OSError as error:
        raise WorkloadError(f"{out}: cannot be written to ({error.strerror}); choose another place") from error
    return account


def _recorded(place: Path) -> Iterator[tuple[int, tuple[TracedStore, ...]]]:
    """When the run began whose collected trace is there, if one is, and how its files lay."""
    from ..workload.layouts import read_layouts
    from ..workload.trace import read_meta

    # What is damaged is written anew.
    with contextlib.suppress(WorkloadError):
        began = read_meta(place).get("zero_unix_ns") if place.is_dir() else None
        if isinstance(began, int) and began and (stores := read_layouts(place)):
            yield began, stores


def _stores(account: dict[str, Any]) -> list[TracedStore]:
    """The stores that hold managed files of the run now, with those files' layouts: of the files with most bytes."""
    managed = [file for file in account.get("files", []) if file["managed"]]
    opened: dict[str, Store | None] = {}
    layouts: dict[str, dict[str, Layout]] = {}
    for file in managed[:LAYOUTS_MAX]:
        # A file that is gone lies nowhere, and a store that this user may not open keeps it to itself.
        with contextlib.suppress(StripewiseError):
            found = native.call("store_resolve", path_meant(file["path"]))
            if found and (store := _opened(found["store"], opened)) is not None:
                layouts.setdefault(found["store"], {})[file["path"]] = store.layout(str(found["id"]))
    return [_traced(store, layouts[root]) for root, store in opened.items() if store is not None and root in layouts]


def _opened(root: str, opened: dict[str, Store | None]) -> Store | None:
    if root not in opened:
        opened[root] = None
        opened[root] = Store(Path(root))
    return opened[root]


def _traced(store: Store, layouts: dict[str, Layout]) -> TracedStore:
    from ..workload.layouts import FIGURES, TracedStore, TracedTarget

    named = {name for layout in layouts.values() for region in layout.regions for name, _ in region.stripes}
    targets = tuple(
        TracedTarget(target.name, target.klass, target.channels, **{key: getattr(target, key) for key in FIGURES})
        for target in store.config.cluster.targets
        if target.state != "removed" or target.name in named
    )
    return TracedStore(str(store.root), targets, layouts, int(time.time()))
