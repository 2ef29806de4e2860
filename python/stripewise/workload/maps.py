"""Files that a traced run mapped: what a program reads and writes through a map is in no trace, the call of mmap is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..errors import NoRequestsError
from ..units import format_size
from .columns import checked_columns, codes_of_text, numbers
from .counted import BY_DEFAULT, Choice, Chosen, Touched
from .trace import FLAG_MANAGED, opened, read_meta, run_place, trace_file, wanted_files


@dataclass(frozen=True)
class Maps:
    """How many files were mapped, and their bytes from the lowest to the highest that any map of a file had."""

    files: int = 0
    bytes: int = 0

    @property
    def text(self) -> str:
        """What is not in the trace; empty where nothing was mapped."""
        if not self.files:
            return ""
        were = "file was" if self.files == 1 else "files were"
        return (
            f"{self.files:,} {were} mapped ({format_size(self.bytes)}): what a program reads and writes through maps "
            "is not in the trace"
        )

    def as_json(self) -> dict[str, int]:
        """Both numbers."""
        return asdict(self)


def maps_in(collected: Path, files: Chosen = BY_DEFAULT) -> Maps:
    """The maps in a collected trace of the files that count. Raises WorkloadError naming the trace."""
    source = trace_file(collected)
    spans: dict[str, tuple[int, int]] = {}
    touched: dict[str, Touched] = {}
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, ("op", "file"), ("offset", "done", "flags"))
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=columns)
            op, ops = codes_of_text(table, "op")
            file, names = codes_of_text(table, "file")
            done = numbers(table, "done", 0)
            is_map = np.isin(op, [code for code, name in enumerate(ops) if name == "mmap"]) & (file >= 0) & (done > 0)
            begin, flags = numbers(table, "offset", 0), numbers(table, "flags", 0)
            for row in np.flatnonzero(is_map).tolist():
                name, low = names[file[row]], max(0, int(begin[row]))
                known = spans.get(name, (low, low))
                spans[name] = min(known[0], low), max(known[1], low + int(done[row]))
                managed = bool(flags[row] & FLAG_MANAGED) or (name in touched and touched[name].managed)
                touched[name] = Touched(spans[name][1] - spans[name][0], managed)
    choice = files if isinstance(files, Choice) else Choice(tuple(files))
    kept = wanted_files(touched, choice, place=run_place(read_meta(collected)), least_bytes=0).files
    return Maps(len(kept), sum(touched[name].bytes for name in kept))


def with_maps(nothing: NoRequestsError, collected: Path, files: Chosen = BY_DEFAULT) -> NoRequestsError:
    """The same of a trace that has no request, with what was mapped."""
    said = maps_in(collected, files).text
    return NoRequestsError(f"{nothing}; {said}") if said else nothing
