"""The columns of a collected trace (docs/formats.md, Trace Parquet): which there are, of which types, as arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import WorkloadError

NEEDED = ("op", "file", "offset", "done", "start_ns", "end_ns")
TEXTS = ("op", "file", "layer")
OPTIONAL = ("layer", "rank", "pid", "world", "flags")


def checked_columns(
    schema: Any, source: Path, needed: Iterable[str] = NEEDED, optional: Iterable[str] = OPTIONAL
) -> list[str]:
    """The columns to read: all `needed` ones, and the `optional` ones that are there.

    Raises WorkloadError naming `source` for one that is missing or of a wrong type.
    """
    cure = "give a trace that 'stripewise collect' wrote"
    for name in needed:
        if name not in schema.names:
            raise WorkloadError(f"{source}: has no column '{name}'; {cure}")
    columns = [name for name in (*needed, *optional) if name in schema.names]
    for name in columns:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if name in TEXTS and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise WorkloadError(f"{source}: its column '{name}' is of type {kind}, not text; {cure}")
        if name not in TEXTS and not pa.types.is_integer(kind):
            raise WorkloadError(f"{source}: its column '{name}' is of type {kind}, not of whole numbers; {cure}")
    return columns


def numbers(table: Any, name: str, default: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of whole numbers; `default` where it is null or missing."""
    if name not in table.column_names:
        return np.full(table.num_rows, default, dtype=np.int64)
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(default)
    return np.asarray(column.to_numpy()).astype(np.int64, copy=False)


def codes_of_text(table: Any, name: str) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    """A text column as numbers and the texts they stand for; null is -1."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [os.fsdecode(value) if value is not None else "" for value in column.dictionary.to_pylist()]
