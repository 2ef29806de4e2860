"""Reads of a traced run that copies of its files served (`stripewise replicate`): their homes had no part in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..units import format_size
from .columns import checked_columns, codes_of_text, numbers
from .trace import FLAG_COPIED, opened, trace_file


@dataclass(frozen=True)
class Copied:
    """Reads of one file that copies of it have served."""

    reads: int
    bytes: int

    @property
    def sentence(self) -> str:
        """Both."""
        return f"copies of it served {self.reads:,} read(s), {format_size(self.bytes)}"


def copied_of(table: Any) -> dict[str, Copied]:
    """By path, of rows of a trace with the columns op, file, done and, where there are any flags, flags."""
    op, ops = codes_of_text(table, "op")
    file, paths = codes_of_text(table, "file")
    done = np.maximum(numbers(table, "done", 0), 0)
    is_read = np.isin(op, [code for code, name in enumerate(ops) if name == "read"]) & (file >= 0)
    chosen = is_read & ((numbers(table, "flags", 0) & FLAG_COPIED) != 0)
    reads, moved = np.bincount(file[chosen]), np.bincount(file[chosen], done[chosen])
    return {paths[code]: Copied(int(reads[code]), int(moved[code])) for code in np.flatnonzero(reads).tolist()}


def copied_in(collected: Path, files: Collection[str]) -> dict[str, Copied]:
    """The same of a collected trace, of these files alone. Raises WorkloadError naming the trace."""
    source = trace_file(collected)
    found: dict[str, Copied] = {}
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, ("op", "file", "done"), ("flags",))
        for group in range(parquet.num_row_groups if "flags" in columns else 0):
            for path, more in copied_of(parquet.read_row_group(group, columns=columns)).items():
                known = found.get(path, Copied(0, 0))
                found[path] = Copied(known.reads + more.reads, known.bytes + more.bytes)
    return {path: each for path, each in found.items() if path in files}


def copied_text(copied: Mapping[str, Copied]) -> str:
    """How much of which files copies served; empty where none did."""
    if not copied:
        return ""
    first = max(copied, key=lambda path: copied[path].bytes)
    others = f" and {len(copied) - 1:,} more" if len(copied) > 1 else ""
    reads, moved = sum(each.reads for each in copied.values()), sum(each.bytes for each in copied.values())
    return f"copies served {reads:,} read(s), {format_size(moved)}, of {first}{others}"
