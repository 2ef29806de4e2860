"""Sanitised requests (thesis, section 2.6.1): what a program asked for, each call one record, names decoded.

Calls made inside MPI calls are theirs; seeks and waits fold into the calls that they belong to (section 2.5.2), so that
`read1` is a read after a seek. `sanitise` does it for ranks of a collected trace; whoever compares two traces uses the
same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...workload.counted import BY_DEFAULT, Choice
from ..operations import operations
from .calls import Bool, Calls, Code, Int, Trace, open_trace
from .folding import folded
from .records import COLLECTIVE, NONBLOCKING, UNKNOWN_OFFSET, Records
from .sessions import Ends, sessions_of
from .views import NO_VIEW, views_of

__all__ = ["Records", "Sanitised", "sanitise"]

#: `size` of an open: bits of a path's open mode (crates/workpath/src/node.rs).
READ, WRITE, CREATE, EXCLUSIVE, TRUNCATE, APPEND = 1, 2, 4, 8, 16, 32
_OPEN_FLAGS = ((0o100, CREATE), (0o200, EXCLUSIVE), (0o1000, TRUNCATE), (0o2000, APPEND))
_DIRECTORY = 0o200000
_AMODES = ((1, CREATE), (2, READ), (4, WRITE), (8, READ | WRITE), (64, EXCLUSIVE), (128, APPEND))
#: Operations of the posix layer by their name in a trace, where flags do not matter.
_POSIX = {
    "open": "open", "close": "close", "read": "pread", "write": "pwrite", "copy": "pwrite", "seek": "seek",
    "truncate": "truncate", "fallocate": "fallocate", "sync": "fsync", "stat": "stat", "getattr": "stat",
    "statfs": "statfs", "access": "access", "unlink": "unlink", "rename": "rename", "lock": "lock", "fcntl": "fcntl",
    "mmap": "mmap", "munmap": "munmap", "mkdir": "mkdir", "rmdir": "rmdir", "link": "link", "symlink": "symlink",
    "readlink": "readlink", "opendir": "opendir", "readdir": "readdir", "setattr": "setattr", "advise": "advise",
    "mknod": "mknod",
}  # fmt: skip
_MPI = {
    "mpi_open": "mpi_open", "mpi_close": "mpi_close", "mpi_read": "mpi_read_at", "mpi_write": "mpi_write_at",
    "mpi_seek": "mpi_seek", "view": "mpi_view", "mpi_set_size": "mpi_set_size", "mpi_preallocate": "mpi_preallocate",
    "mpi_sync": "mpi_sync", "mpi_delete": "mpi_delete", "mpi_get_size": "mpi_get_size", "mpi_wait": "mpi_wait",
    "mpi_atomicity": "mpi_atomicity",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sanitised:
    """Several processes of a run."""

    #: By rank.
    records: dict[int, Records]
    names: list[str]
    processes: int


def sanitise(path: Path, choice: Choice = BY_DEFAULT, ranks: Sequence[int] | None = None) -> Sanitised:
    """The requests of these ranks of a collected trace (None: of all that were traced), on files that count.

    Names in `names` are by `Records.file`. Raises WorkloadError.
    """
    with open_trace(path, choice) as trace:
        wanted = trace.ranks if ranks is None else ranks
        return Sanitised({rank: records_of(trace, rank) for rank in wanted}, trace.names, trace.processes)


def each_process(path: Path, choice: Choice = BY_DEFAULT) -> Iterator[Records]:
    """The same process by process, for traces that do not fit in memory."""
    with open_trace(path, choice) as trace:
        for rank in trace.ranks:
            yield records_of(trace, rank)


def records_of(trace: Trace, rank: int) -> Records:
    """The requests of a rank of an open trace. Raises WorkloadError."""
    return near_data(sanitised_calls(trace.calls(rank), len(trace.names)), trace.names)


def near_data(records: Records, names: Sequence[str]) -> Records:
    """The records without those on files that nobody opens to write, or moves bytes of, and that lie nowhere near such:
    what programs and libraries look for when they start."""
    ops = operations()
    is_data = np.zeros(256, np.bool_)
    is_data[[each.number for each in ops.values() if each.is_data]] = True
    opens = np.isin(records.op, [ops[name].number for name in ("open", "mpi_open")])
    used = np.unique(records.file[is_data[records.op] | (opens & ((records.size & WRITE) != 0))])
    places = {os.path.dirname(names[file]) for file in used.tolist()}
    if not places:
        return records
    wanted = np.zeros(len(names), np.bool_)
    wanted[used] = True
    for file in np.setdiff1d(np.unique(records.file), used).tolist():
        place = names[file]
        while not (at_place := place in places) and place not in ("", "/"):
            place = os.path.dirname(place)
        wanted[file] = at_place
    rows = wanted[records.file]
    return records if rows.all() else _renumbered(records.take(np.flatnonzero(rows)))


def _renumbered(records: Records) -> Records:
    """The sessions that are left, counted from 0 on."""
    found, place = np.unique(records.session, return_inverse=True)
    return replace(records, session=place.astype(np.int64) - int(len(found) > 0 and found[0] < 0))


def sanitised_calls(calls: Calls, names: int) -> Records:
    """The requests in the calls of a process, of files numbered below `names`."""
    number = {name: each.number for name, each in operations().items()}
    columns = dict(calls.columns)
    op = _numbers(calls, number)
    failed = np.where(calls.is_mpi, columns["errno"] != 0, columns["done"] < 0)
    op = _without_failed(op, failed, calls.file, names, number)
    flags, aux = columns["flags"], columns["aux"]
    size = _sizes(op, calls, number)
    offset = np.where((flags & UNKNOWN_OFFSET) != 0, -1, columns["offset"])
    is_seek = op == number["seek"]
    offset = np.where(is_seek, columns["done"], offset)
    # A directory that is opened as a file is.
    op = np.where((op == number["open"]) & ((aux & _DIRECTORY) != 0), number["opendir"], op)
    order = np.flatnonzero(op)
    starts = columns["start_ns"][order]
    if np.any(starts[1:] < starts[:-1]):
        order = order[np.argsort(starts, kind="stable")]
    records = Records(
        rank=calls.rank,
        op=op[order].astype(np.int32),
        file=calls.file[order],
        file2=calls.file2[order],
        offset=offset[order],
        size=size[order],
        start_ns=columns["start_ns"][order],
        end_ns=columns["end_ns"][order],
        held_ns=np.zeros(len(order), np.int64),
        session=np.full(len(order), -1, np.int64),
        comm_size=columns["comm_size"][order],
        handle=columns["handle"][order],
        collective=(flags[order] & COLLECTIVE) != 0,
        view=np.broadcast_to(np.array(NO_VIEW, np.int64), (len(order), len(NO_VIEW))),
        records=calls.records,
    )
    flags, fd = flags[order], columns["fd"][order]
    records, flags, kept = _with_sessions(records, flags, fd, number)
    view = views_of(records, calls, np.where(kept >= 0, order[kept], -1), number["mpi_view"])
    return folded(replace(records, view=view), flags, number)


def _numbers(calls: Calls, number: dict[str, int]) -> Int:
    """The operation of each call; 0 for what is none. Reads and writes get theirs when they are folded."""
    posix = np.array([number[_POSIX[op]] if op in _POSIX else 0 for op in calls.ops] + [0], np.int64)
    mpi = np.array([number[_MPI[op]] if op in _MPI else 0 for op in calls.ops] + [0], np.int64)
    op = np.where(calls.is_mpi, mpi[calls.op], posix[calls.op])
    fd, requested = calls.columns["fd"], calls.columns["requested"]
    held = (fd >= 0) & ~calls.is_mpi
    for name, with_descriptor in (("truncate", "ftruncate"), ("stat", "fstat")):
        op[held & (op == number[name])] = number[with_descriptor]
    op[(op == number["fsync"]) & (requested == 1)] = number["fdatasync"]
    return op


def _without_failed(op: Int, failed: Bool, file: Code, names: int, number: dict[str, int]) -> Int:
    """Calls that failed did nothing, but asked for the name: they become `access`, inside of sessions they go. Files
    on which no call went well go: a program, or MPI, has looked for them in vain."""
    if not failed.any():
        return op
    found = np.zeros(names, np.bool_)
    found[file[~failed & (op > 0)]] = True
    op = np.where(found[file], op, 0)
    stay = [number[name] for name in ("stat", "access", "statfs", "readlink")]
    outside = [each.number for each in operations().values() if each.place == "outside"]
    asks = np.isin(op, [*outside, number["open"], number["opendir"]])
    return np.where(failed, np.where(np.isin(op, stay), op, np.where(asks, number["access"], 0)), op)


def _sizes(op: Int, calls: Calls, number: dict[str, int]) -> Int:
    columns = calls.columns
    done, requested, offset, aux = (columns[name] for name in ("done", "requested", "offset", "aux"))
    size = np.zeros(len(op), np.int64)
    data = np.isin(op, [number[name] for name in ("pread", "pwrite", "mpi_read_at", "mpi_write_at")])
    # What nobody waited for has done nothing as far as the trace knows.
    unknown = (done == 0) & ((columns["flags"] & NONBLOCKING) != 0)
    size = np.where(data, np.where(unknown, requested, np.maximum(done, 0)), size)
    sized = np.isin(op, [number[name] for name in ("ftruncate", "truncate", "mpi_set_size", "mpi_preallocate")])
    size = np.where(sized, np.maximum(offset, 0), size)
    ranged = np.isin(op, [number[name] for name in ("fallocate", "mmap", "munmap", "lock", "advise", "mpi_atomicity")])
    size = np.where(ranged, np.maximum(requested, 0), size)
    opens = np.flatnonzero(op == number["open"])
    if len(opens):
        given = aux[opens]
        mode = np.array([READ, WRITE, READ | WRITE, READ | WRITE])[given & 3]
        size[opens] = mode | _bits(given, _OPEN_FLAGS)
    opens = np.flatnonzero(op == number["mpi_open"])
    if len(opens):
        size[opens] = _bits(requested[opens], _AMODES)
    return size


def _bits(given: Int, table: Sequence[tuple[int, int]]) -> Int:
    found = np.zeros(len(given), np.int64)
    for theirs, ours in table:
        found |= np.where(given & theirs != 0, ours, 0)
    return found


def _with_sessions(records: Records, flags: Int, fd: Int, number: dict[str, int]) -> tuple[Records, Int, Int]:
    """The records in their sessions, with opens and closes that the trace lacks; flags, and the row of each before (-1:
    made)."""
    ops = operations()
    inside = np.zeros(256, np.bool_)
    inside[[each.number for each in ops.values() if each.place != "outside"]] = True
    data = np.zeros(256, np.bool_)
    data[[each.number for each in ops.values() if each.is_data]] = True
    is_mpi = np.zeros(256, np.bool_)
    is_mpi[[each.number for each in ops.values() if each.layer == "mpi"]] = True
    op = records.op
    ends = {
        False: Ends([number["open"], number["opendir"]], number["close"]),
        True: Ends([number["mpi_open"]], number["mpi_close"]),
    }
    found = sessions_of(
        op,
        records.file,
        np.where(is_mpi[op], records.handle, fd),
        is_mpi[op],
        inside[op],
        data[op],
        ends,
    )
    made = len(found.made_op)
    rows = np.append(np.flatnonzero(found.keep), np.full(made, -1, np.int64))
    key = np.append(2 * np.flatnonzero(found.keep), found.made_key)
    order = np.argsort(key, kind="stable") if made else np.arange(len(rows))
    rows = rows[order]
    new = np.flatnonzero(rows < 0)
    model = rows.copy()
    model[new] = found.made_like[order[new] - (len(rows) - made)]
    out = records.take(model)
    session = found.session[model]
    flags = flags[model]
    if made:
        at = order[new] - (len(rows) - made)
        out.op[new] = found.made_op[at]
        session[new] = found.made_session[at]
        out.offset[new] = -1
        out.file2[new] = -1
        flags[new] = np.where(is_mpi[out.op[new]], flags[new] & COLLECTIVE, 0)
        times = np.where(found.is_open[at], out.start_ns[new], out.end_ns[new])
        out.start_ns[new], out.end_ns[new] = times, times
        out.size[new] = np.where(found.is_open[at], found.made_mode[at], 0)
    return replace(out, session=session), flags, rows
