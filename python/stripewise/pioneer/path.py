"""Files of workload paths (docs/formats.md, Workload path): what one holds, its requests, paths made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import native
from ..errors import WorkloadError

#: Columns of `requests`, as the binding gives them.
COLUMNS = (
    ("op", np.uint8), ("file", np.uint32), ("offset", np.int64), ("size", np.uint64), ("slack_ns", np.uint64),
    ("together", np.bool_), ("comm", np.uint16), ("node", np.uint32),
)  # fmt: skip
REQUEST_DTYPE = np.dtype(list(COLUMNS))


def _regular(path: Path) -> Path:
    """Not a pipe, which may keep its reader for ever."""
    if path.exists() and not path.is_file():
        raise WorkloadError(f"{path}: is not a file; give a path that 'stripewise synth' wrote")
    return path


def info(path: Path) -> dict[str, Any]:
    """version, processes (0 = any number), seed, nodes, requests (of rank 0), files, and how long the tables are.

    Raises WorkloadError.
    """
    return dict(native.call("workpath_info", _regular(path)))


def text(path: Path) -> str:
    """A listing, a line for each node; raises WorkloadError."""
    return str(native.call("workpath_text", _regular(path)))


def requests(path: Path, processes: int, rank: int) -> npt.NDArray[np.void]:
    """The requests that a rank makes, loops expanded, as rows of `REQUEST_DTYPE`: offset -1 = none, slack in ns;
    together: all ranks wait for each other before it.

    Raises WorkloadError, also for a number of processes that cannot play the path.
    """
    columns = native.call("workpath_requests", _regular(path), processes, rank)
    named: list[npt.NDArray[Any]] = [
        np.frombuffer(column, dtype=dtype) for column, (_, dtype) in zip(columns, COLUMNS, strict=True)
    ]
    rows = np.empty(len(named[0]), dtype=REQUEST_DTYPE)
    for (name, _), column in zip(COLUMNS, named, strict=True):
        rows[name] = column
    return rows


def from_json(path: Path, written: Mapping[str, Any]) -> None:
    """Writes a path from its JSON form (docs/formats.md); raises WorkloadError for what is none."""
    native.call("workpath_from_json", json.dumps(written), path)
