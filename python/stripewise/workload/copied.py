"""Reads of a traced run that copies of its files served (`stripewise replicate`), and which replica served how many.

Their homes had no part in them. A replica is called by its number in the file's copies, from 0 on in the order in which
they were made; traces of earlier versions do not tell it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..units import format_size
from .columns import checked_columns, codes_of_text, numbers
from .trace import FLAG_COPIED, opened, read_meta, run_place, trace_file

Numbers = npt.NDArray[Any]

#: Replicas that a sentence names.
NAMED = 6


@dataclass(frozen=True)
class ReplicaBlocks:
    """What a replica holds: `block` bytes from `base` on, under loops of (stride, count), outermost first."""

    base: int
    block: int
    dims: tuple[tuple[int, int], ...]

    def has(self, offset: Numbers, size: Numbers) -> npt.NDArray[np.bool_]:
        """Which requests lie in one of its blocks."""
        _, rest = self._found(offset)
        found: npt.NDArray[np.bool_] = (rest >= 0) & (rest + size <= self.block)
        return found

    def place(self, offset: Numbers) -> Numbers:
        """Where bytes of its blocks stand, from its first block on: these follow each other as the loops have them."""
        number, rest = self._found(offset)
        return number * self.block + rest

    def _found(self, offset: Numbers) -> tuple[Numbers, Numbers]:
        """The block that begins last before each byte, by its number, and how far behind its beginning that lies."""
        rest, number = offset - self.base, np.zeros(len(offset), dtype=np.int64)
        below = [math.prod(count for _, count in self.dims[at + 1 :]) for at in range(len(self.dims))]
        loops = (each for each in zip(self.dims, below, strict=True) if each[0][1] > 1)
        for (stride, count), blocks in sorted(loops, reverse=True):
            round_ = np.clip(rest // stride, 0, count - 1)
            rest, number = rest - round_ * stride, number + round_ * blocks
        return number, rest


@dataclass(frozen=True)
class ReplicaReads:
    """Reads that one replica has served."""

    #: None: the trace does not tell which replica.
    number: int | None
    reads: int
    bytes: int
    #: None where the store does not know these copies any more.
    blocks: ReplicaBlocks | None = None

    @property
    def name(self) -> str:
        """For people."""
        return "replicas that the trace does not name" if self.number is None else f"replica {self.number:,}"


@dataclass(frozen=True)
class Copied:
    """Reads of one file that copies of it have served."""

    reads: int
    bytes: int
    #: Those that served the most bytes first, at last those that served none.
    replicas: tuple[ReplicaReads, ...] = ()

    @property
    def sentence(self) -> str:
        """Both."""
        return f"copies of it served {self.reads:,} read(s), {format_size(self.bytes)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """That, which replicas served how much, and which none."""
        return tuple(filter(None, (self.sentence, self._used(), self._unused())))

    def _used(self) -> str:
        used = [each for each in self.replicas if each.reads]
        if not used or (len(used) == 1 and used[0].number is None):
            return ""
        if len(used) == 1:
            return f"all of them by {used[0].name}"
        told = [f"{each.name}: {each.reads:,} read(s), {format_size(each.bytes)}" for each in used[:NAMED]]
        return "; ".join(told) + (f";{more}" if (more := _more(len(used))) else "")

    def _unused(self) -> str:
        unused = [each.number for each in self.replicas if not each.reads]
        if not unused:
            return ""
        named = ", ".join(f"{number:,}" for number in unused[:NAMED])
        return f"{len(unused):,} of its {len(self.replicas):,} replicas served no read: {named}{_more(len(unused))}"

    def among(self, blocks: Sequence[ReplicaBlocks]) -> Copied:
        """With what the replicas hold, by their numbers, and with those among them that served no read."""
        used = [
            each if each.number is None else replace(each, blocks=blocks[each.number])
            for each in self.replicas
            if each.number is None or each.number < len(blocks)
        ]
        known = {each.number for each in used}
        unused = (ReplicaReads(n, 0, 0, held) for n, held in enumerate(blocks) if n not in known)
        return replace(self, replicas=(*used, *unused))


def _more(count: int) -> str:
    return f" and {count - NAMED:,} more" if count > NAMED else ""


def are_those(blocks: Sequence[ReplicaBlocks], replica: Numbers, offset: Numbers, size: Numbers) -> bool:
    """Whether each read lies in a block of the replica that served it: of copies that were made anew since, hardly."""
    if not len(replica) or int(replica.min()) < 0 or int(replica.max()) >= len(blocks):
        return False
    order = np.argsort(replica, kind="stable")
    begins = np.flatnonzero(np.diff(replica[order], prepend=-1)).tolist()
    parts = (order[begin:end] for begin, end in zip(begins, [*begins[1:], len(order)], strict=True))
    return all(bool(blocks[int(replica[rows[0]])].has(offset[rows], size[rows]).all()) for rows in parts)


def replica_of(aux: Numbers, copied: npt.NDArray[np.bool_]) -> Numbers:
    """The number of the replica that served each read; -1: none, or the trace does not tell."""
    return np.where(copied, aux, 0).astype(np.int64) - 1


def summed(replica: Numbers, moved: Numbers) -> Copied:
    """Of reads that copies served: the replicas of `replica_of`, and bytes."""
    numbered, row = np.unique(replica, return_inverse=True)
    reads, sums = np.bincount(row).tolist(), np.bincount(row, moved).tolist()
    each = zip(numbered.tolist(), reads, sums, strict=True)
    return _joined(ReplicaReads(number if number >= 0 else None, count, int(total)) for number, count, total in each)


def _joined(parts: Iterable[ReplicaReads]) -> Copied:
    found: dict[int | None, ReplicaReads] = {}
    for part in parts:
        known = found.get(part.number, ReplicaReads(part.number, 0, 0))
        found[part.number] = replace(known, reads=known.reads + part.reads, bytes=known.bytes + part.bytes)
    order = sorted(found.values(), key=lambda each: (-each.bytes, -1 if each.number is None else each.number))
    return Copied(sum(each.reads for each in order), sum(each.bytes for each in order), tuple(order))


def copied_of(table: Any) -> dict[str, Copied]:
    """By path, of rows of a trace with the columns op, file, done and, where there are any, flags and aux."""
    op, ops = codes_of_text(table, "op")
    file, paths = codes_of_text(table, "file")
    done = np.maximum(numbers(table, "done", 0), 0)
    is_read = np.isin(op, [code for code, name in enumerate(ops) if name == "read"]) & (file >= 0)
    chosen = is_read & ((numbers(table, "flags", 0) & FLAG_COPIED) != 0)
    replica = replica_of(numbers(table, "aux", 0), chosen)
    masks = ((code, chosen & (file == code)) for code in np.unique(file[chosen]).tolist())
    return {paths[code]: summed(replica[mask], done[mask]) for code, mask in masks}


def copied_in(collected: Path, files: Collection[str]) -> dict[str, Copied]:
    """The same of a collected trace, of these files alone. Raises WorkloadError naming the trace."""
    source = trace_file(collected)
    found: dict[str, list[ReplicaReads]] = {}
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, ("op", "file", "done"), ("flags", "aux"))
        for group in range(parquet.num_row_groups if "flags" in columns else 0):
            for path, more in copied_of(parquet.read_row_group(group, columns=columns)).items():
                found.setdefault(path, []).extend(more.replicas)
    return {path: _joined(each) for path, each in found.items() if path in files}


def copying_store(collected: Path) -> str:
    """The store that the run was started with, whose copies served it; empty where none, or it is not known."""
    meta = read_meta(collected)
    store = meta.get("store")
    return os.path.join(run_place(meta), store) if isinstance(store, str) and store else ""


def copied_text(copied: Mapping[str, Copied]) -> str:
    """How much of which files copies served; empty where none did."""
    if not copied:
        return ""
    first = max(copied, key=lambda path: copied[path].bytes)
    others = f" and {len(copied) - 1:,} more" if len(copied) > 1 else ""
    reads, moved = sum(each.reads for each in copied.values()), sum(each.bytes for each in copied.values())
    return f"copies served {reads:,} read(s), {format_size(moved)}, of {first}{others}"
