"""Which files a traced run made, or made anew: the next run's have another name, or none of their layout, unless a
template gives it to them."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .renames import first_names, renames_in, whole_path
from .series import days_around
from .trace import FLAG_CREATED, opened, read_meta, run_place, trace_file

_COLUMNS = ("op", "file", "errno", "aux")
#: An open with one of these beside O_CREAT begins a file from nothing, whatever was there.
_ANEW = os.O_TRUNC | os.O_EXCL


@dataclass(frozen=True)
class Made:
    """Names that files have at last, `names` that files were made with, and the first name of each that was renamed;
    `days` on which that may have been.
    """

    anew: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    first: dict[str, str] = field(default_factory=dict)
    days: frozenset[datetime.date] = frozenset()


def made_in(collected: Path) -> Made:
    """What a traced run created, unlinked, truncated to nothing or renamed into place.

    That an open found nothing at its name is in the traces of this version's library alone; in others a file is made
    where the flags of its open begin it from nothing.
    """
    opens: set[str] = set()
    anew: set[str] = set()
    meta = read_meta(collected)
    place = run_place(meta)
    with opened(trace_file(collected)) as parquet:
        # A table of another maker need not tell flags.
        known = set(parquet.schema_arrow.names)
        columns = [*_COLUMNS, *({"flags"} & known)]
        for group in range(parquet.num_row_groups if known.issuperset(_COLUMNS) else 0):
            table = parquet.read_row_group(group, columns=columns)
            table = table.filter(pc.is_in(table["op"].cast("string"), pa.array(["open", "unlink"])))
            for row in table.select(columns).to_pylist():
                if not row["file"] or row["errno"]:
                    continue
                flags = int(row["aux"] or 0)
                if row["op"] == "open" and not flags & os.O_CREAT:
                    continue
                path = whole_path(str(row["file"]), place)
                opens.add(path)
                if row["op"] == "unlink" or flags & _ANEW or int(row.get("flags") or 0) & FLAG_CREATED:
                    anew.add(path)
    first = first_names(renames_in(collected))
    # Of an imported trace the time may be unknown.
    began = meta.get("zero_unix_ns")
    days = days_around(began / 1e9) if isinstance(began, int) and 0 < began < 1 << 63 else frozenset[datetime.date]()
    return Made(frozenset(anew | set(first)), frozenset(opens | set(first.values())), first, days)
