"""The formats of foreign traces by name, and the import of one: reader, writer, and what meta.json says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError, WorkloadError
from .comma import read_csv
from .darshan.reader import read_darshan
from .fio import read_fio
from .lanl.reader import read_lanl
from .records import Names, Notes, Reader
from .strace.reader import read_strace
from .writer import TraceWriter


@dataclass(frozen=True)
class Format:
    """A format: its reader and one phrase for --help."""

    read: Reader
    what: str


#: docs/traces/importing.md has a section on each.
FORMATS = {
    "darshan": Format(read_darshan, "Darshan logs, with DXT or counters alone"),
    "csv": Format(read_csv, "one record per line under a header, or IOSIG's fields"),
    "strace": Format(read_strace, "text of strace -f -ttt -T -y"),
    "lanl": Format(read_lanl, "text of LANL-Trace or ltrace -S -tt -T"),
    "fio": Format(read_fio, "fio's iolog, version 2 or 3"),
}


def import_trace(
    name: str, files: Sequence[Path], out: Path, lenient: bool = False, base: Path | None = None
) -> dict[str, Any]:
    """Writes the traces in `files`, of the format `name`, to `out`/trace.parquet and meta.json; returns meta.json.

    Relative paths in them stand below `base` (default: the present directory).

    Raises UsageError for an unknown format, WorkloadError naming file, line and cure.
    """
    chosen = FORMATS.get(name)
    if chosen is None:
        raise UsageError(f"FORMAT: '{name}' is unknown; use one of {', '.join(FORMATS)}")
    for path in files:
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is not a file"
            raise WorkloadError(f"{path}: {what}; give the files of a trace")
    for path in files:
        if any(each.exists() and each.samefile(path) for each in (out / "trace.parquet", out / "meta.json")):
            raise WorkloadError(f"{path}: would be replaced by the trace that is made of it; give -o another directory")
    seen: dict[tuple[int, int], Path] = {}
    for path in files:
        found = path.stat()
        first = seen.setdefault((found.st_dev, found.st_ino), path)
        if first is not path:
            raise WorkloadError(f"{path}: is given twice (as {first}), and would count twice; give it once")
    names, notes = Names((base or Path()).absolute()), Notes(lenient)
    with TraceWriter(out, names, notes) as writer:
        for batch in chosen.read(files, names, notes):
            writer.add(batch)
        if names.has_relative and base is None:
            notes.miss(f"relative names are taken to stand below {names.base}: say with --cwd where the program ran")
        if notes.skipped:
            notes.miss(f"{sum(notes.skipped.values()):,} bad lines or records were skipped")
        sources = [{"path": str(path.absolute()), "bytes": path.stat().st_size} for path in files]
        return writer.finish({"format": name, "files": sources})
