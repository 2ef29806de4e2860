"""Where the raw logs of a traced run go, and how they become one Parquet file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import native
from ..errors import StripewiseError, UsageError, WorkloadError
from ..layout import Layout
from ..store import Store

# Brings numpy, which other verbs of this module's users do without.
if TYPE_CHECKING:
    from ..workload.layouts import TracedStore

#: Layouts of so many files go into a trace.
LAYOUTS_MAX = 1000


def trace_directory(path: Path) -> Path:
    """The directory for raw logs, made if need be; UsageError when something is in it."""
    path = path.absolute()
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise UsageError(f"--trace: {path} is not empty; name a new directory, for runs must not mix")
    return path


def collect_logs(logs: Path, out: Path, lenient: bool = False) -> dict[str, Any]:
    """Collects the raw logs in `logs` into `out`/trace.parquet, with the layouts that managed files have now.

    Returns the native module's account.
    """
    if not logs.is_dir():
        raise WorkloadError(f"{logs}: is not a directory; give the one that 'stripewise run --trace' filled")
    from ..workload.layouts import write_layouts

    account = dict(native.call("trace_collect", str(logs.absolute()), str(out), lenient) or {})
    try:
        write_layouts(out, _stores(account))
    except OSError as error:
        raise WorkloadError(f"{out}: layouts cannot be written ({error.strerror}); choose another place") from error
    return account


def _stores(account: dict[str, Any]) -> list[TracedStore]:
    """The stores that hold managed files of the run now, with those files' layouts: of the files with most bytes."""
    managed = [file for file in account.get("files", []) if file["managed"]]
    managed.sort(key=lambda file: (-(file["bytes_read"] + file["bytes_written"]), file["path"]))
    opened: dict[str, Store | None] = {}
    layouts: dict[str, dict[str, Layout]] = {}
    for file in managed[:LAYOUTS_MAX]:
        # A file that is gone lies nowhere, and a store that this user may not open keeps it to itself.
        with contextlib.suppress(StripewiseError):
            found = native.call("store_resolve", file["path"])
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

    targets = tuple(
        TracedTarget(target.name, target.klass, target.channels, **{key: getattr(target, key) for key in FIGURES})
        for target in store.config.cluster.targets
    )
    return TracedStore(str(store.root), targets, layouts)
