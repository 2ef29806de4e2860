"""Where the raw logs of a traced run go, and how they become one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import native
from ..errors import UsageError, WorkloadError


def trace_directory(path: Path) -> Path:
    """The directory for raw logs, made if need be; UsageError when something is in it."""
    path = path.absolute()
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise UsageError(f"--trace: {path} is not empty; name a new directory, for runs must not mix")
    return path


def collect_logs(logs: Path, out: Path, lenient: bool = False) -> dict[str, Any]:
    """Collects the raw logs in `logs` into `out`/trace.parquet; returns the native module's account."""
    if not logs.is_dir():
        raise WorkloadError(f"{logs}: is not a directory; give the one that 'stripewise run --trace' filled")
    return dict(native.call("trace_collect", str(logs.absolute()), str(out), lenient) or {})
