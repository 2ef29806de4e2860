"""Root and children joined to a generic workload path (thesis, section 2.6.2).

Requests that only children make are put in where they make them (ours: the thesis leaves them out).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..operations import operations
from .calls import Bool, Code, Int
from .generic_path import ALL, CHILDREN, FIRST_GROUP, ROOT, SELF, WORLD, Communicator, Gwp, GwpFile
from .meetings import meetings_of
from .pauses import is_apart
from .records import Records
from .shadow import match
from .subgroups import Subgroup
from .templates import Templates, base_of, relative, templates_of
from .views import spanned


def joined(
    records: Mapping[int, Records],
    names: Sequence[str],
    root: int,
    groups: Sequence[Subgroup],
    processes: int,
    opened: Mapping[int, Mapping[int, Communicator]],
    alike: Callable[[Records], Iterable[Records]] = lambda _: (),
) -> Gwp:
    """The path of the root's records and those of each group's chosen child; `alike` gives ranks that do exactly as a
    chosen child."""
    ops = operations()
    mpi_open = ops["mpi_open"].number
    # Names that a rename makes count, though nothing else may touch them.
    used = {
        rank: np.unique(np.append(each.file, each.file2[each.file2 >= 0])).tolist() for rank, each in records.items()
    }
    together = {
        names[file]
        for each in records.values()
        for file in np.unique(each.file[(each.op == mpi_open) & (each.comm_size > 1)]).tolist()
    }
    templates = templates_of({rank: [names[file] for file in of] for rank, of in used.items()}, root, together)
    order = list(templates.classes)
    number = {template: at for at, template in enumerate(order)}
    lookup = {rank: _lookup(templates, rank, names, of, number) for rank, of in used.items()}
    parts = _Parts(records[root], lookup[root], processes)
    ends = np.zeros(256, np.bool_)
    ends[[ops[name].number for name in ("open", "close", "opendir", "mpi_open", "mpi_close")]] = True
    for at, group in enumerate(groups):
        child = records[group.chosen]
        found = match(parts.root, parts.root_file, child, lookup[group.chosen][child.file], ends)
        parts.add(child, lookup[group.chosen], found, at, alike)
    parts.meet([records[group.chosen] for group in groups], alike)
    return _path(parts, templates, order, processes, groups, opened, root, lookup)


def _lookup(templates: Templates, rank: int, names: Sequence[str], used: Sequence[int], number: Any) -> Code:
    found = np.full(len(names) + 1, -1, np.int32)
    for file in used:
        found[file] = number[templates.of[rank][names[file]]]
    return found


#: Records, their files, who makes them, shifts, slack, the root's row that they stand at, the rank that they are of.
_Piece = tuple[Records, Code, Int, Int, Int, Int, int]
#: Rank 0 and a child are no further apart, bytes; else sums of places might have more than 63 bits.
_FAR = 1 << 60


class _Parts:
    """The root's records and what children add to them."""

    def __init__(self, root: Records, lookup: Code, processes: int) -> None:
        self.root = root
        self.processes = processes
        self.root_file = lookup[root.file]
        self.matches: list[Int] = []
        #: Of each of these the sizes of the child's, its places (the root's, where the shift from it tells the child's)
        #: and the shifts, by the root's rows.
        self.sizes: list[Int] = []
        self.places: list[Int] = []
        self.shifts: list[Int] = []
        #: Rows that children alone make: records, templates, the root's row before each, shift, their group and rank.
        self.alone: list[tuple[Records, Code, Int, Int, int, int]] = []
        self.apart = False
        self.slack = _slack(root)
        self.together = np.zeros(len(root), np.bool_)
        self.waited = np.zeros(len(root), np.int64)
        self._sessions = int(root.session.max()) + 1 if len(root) else 0
        rows = np.flatnonzero(root.session >= 0)
        #: First and last row of each session; one more stands for none.
        self._ends = np.full(self._sessions + 1, len(root)), np.zeros(self._sessions + 1, np.int64)
        np.minimum.at(self._ends[0], root.session[rows], rows)
        np.maximum.at(self._ends[1], root.session[rows], rows)

    @property
    def shift(self) -> Int:
        """Of what all make: that of the first group."""
        return self.shifts[0] if self.shifts else np.zeros(len(self.root), np.int64)

    def add(
        self, child: Records, lookup: Code, found: Int, group: int, alike: Callable[[Records], Iterable[Records]]
    ) -> None:
        """The child of a group, and which of its records mimics which of the root's."""
        hit = np.flatnonzero(found >= 0)
        theirs = found[hit]
        self.shifts.append(np.zeros(len(found), np.int64))
        self.shifts[-1][hit] = shift = _shift(self.root.take(hit), child.take(theirs))
        self.places.append(self.root.offset.copy())
        self.places[-1][hit] = child.offset[theirs] - (child.rank - self.root.rank) * shift
        if not self.matches:
            starts = self.root.start_ns[hit], child.start_ns[theirs]
            self.apart = is_apart(self.slack[hit], _slack(child)[theirs], *starts)
        self.matches.append(found)
        self.sizes.append(np.zeros(len(found), np.int64))
        self.sizes[-1][hit] = child.size[theirs]
        mimics = np.zeros(len(child), np.bool_)
        mimics[theirs] = True
        # A call that all make together is the root's as well, wherever the shadows have met.
        mimics |= child.collective & (child.comm_size == max(2, self.processes))
        rows = np.flatnonzero(~mimics)
        if not len(rows):
            return
        before = np.full(len(child), -1, np.int64)
        before[theirs] = hit
        before = np.maximum.accumulate(before)[rows]
        # In a session of the root's a request stays between its open and its close, wherever others have met.
        place = np.full(int(child.session.max()) + 2, -1, np.int64)
        inside = child.session[theirs] >= 0
        place[child.session[theirs[inside]]] = self.root.session[hit[inside]]
        within = place[child.session[rows]]
        low, high = self._ends
        before = np.where(within >= 0, np.clip(before, low[within], high[within] - 1), before)
        session = np.full(int(child.session.max()) + 2, -1, np.int64)
        own = np.unique(child.session[rows])
        own = own[own >= 0]
        session[own] = self._sessions + np.arange(len(own))
        self._sessions += len(own)
        session[place >= 0] = place[place >= 0]
        mine = child.take(rows)
        slack = _slack(child)[rows]
        offset, shift = _from_second(child, rows, alike)
        mine = replace(mine, session=session[mine.session], held_ns=slack, offset=offset)
        self.alone.append((mine, lookup[mine.file], before, shift, group, child.rank))

    def meet(self, children: Sequence[Records], alike: Callable[[Records], Iterable[Records]]) -> None:
        """The root's slack without the waiting, where all ranks wait for each other."""
        found = meetings_of(self.root, list(zip(children, self.matches, strict=True)), alike)
        self.together[found.rows] = True
        pause = found.pause_ns + self.root.held_ns[found.rows]
        self.waited[found.rows] = np.maximum(self.slack[found.rows] - pause, 0)
        self.slack[found.rows] = pause
        self.apart |= found.apart


def _shift(one: Records, other: Records) -> Int:
    """Bytes from rank to rank between records that are alike; 0 where a place is not known, or does not go evenly."""
    distance = other.rank - one.rank
    apart = other.offset - one.offset
    even = (one.offset >= 0) & (other.offset >= 0) & (apart % distance == 0)
    return np.where(even, apart // distance, 0)


def _from_second(child: Records, rows: Int, alike: Callable[[Records], Iterable[Records]]) -> tuple[Int, Int]:
    """Where rank 0 would make what a child makes alone, and the shift of it: from another rank of its group that does
    exactly as the child, in files that both have; where a third one goes by it, too. Else the child's place, and 0.

    Where rank 0 would be before the file's begin, all that the child makes alone in it is some shifts further on.
    """
    mine = child.take(rows)
    offset, shift = mine.offset.copy(), np.zeros(len(rows), np.int64)
    others = itertools.islice(alike(child), 2) if (mine.offset >= 0).any() else ()
    for at, other in enumerate(others):
        theirs = other.take(rows)
        found = np.where(theirs.file == mine.file, _shift(mine, theirs), 0)
        shift = np.where(found == shift, shift, 0) if at else np.where(np.abs(found) < _FAR // child.rank, found, 0)
    offset -= child.rank * shift
    before = (offset < 0) & (mine.offset >= 0)
    for file in np.unique(mine.file[before]).tolist():
        here = (mine.file == file) & (mine.offset >= 0)
        steps = np.unique(shift[here & before])
        if len(steps) == 1:
            offset[here] += -(int(offset[here].min()) // int(steps[0])) * int(steps[0])
        else:
            offset[here & before], shift[here & before] = mine.offset[here & before], 0
    return offset, shift


def _slack(records: Records) -> Int:
    """From the latest end before each request to its start, and what it held back; at least 0."""
    if not len(records):
        return np.empty(0, np.int64)
    latest = np.append(records.start_ns[0], np.maximum.accumulate(records.end_ns)[:-1])
    found: Int = np.maximum(records.start_ns - latest, 0) + records.held_ns
    return found


def _path(
    parts: _Parts,
    templates: Templates,
    order: Sequence[str],
    processes: int,
    groups: Sequence[Subgroup],
    opened: Mapping[int, Mapping[int, Communicator]],
    root_rank: int,
    lookup: Mapping[int, Code],
) -> Gwp:
    root = parts.root
    who = _who(parts, len(groups))
    pieces: list[_Piece] = [(root, parts.root_file, who, parts.shift, parts.slack, np.arange(len(root)), root_rank)]
    for group, found in enumerate(parts.matches if len(groups) > 1 else ()):
        # What some groups mimic and others do not: the root's row is its own, and each of these groups has one, before
        # what it makes alone after it.
        some = np.flatnonzero((who == ROOT) & (found >= 0))
        if len(some):
            whose = np.full(len(some), FIRST_GROUP + group, np.int64)
            slack = parts.slack[some]
            mine = replace(root.take(some), size=parts.sizes[group][some], offset=parts.places[group][some])
            pieces.append((mine, parts.root_file[some], whose, parts.shifts[group][some], slack, some, root_rank))
    for child, theirs, before, shifts, group, rank in parts.alone:
        is_all = len(groups) == 1
        whose = np.full(len(child), CHILDREN if is_all else FIRST_GROUP + group, np.int64)
        pieces.append((child, theirs, whose, shifts, child.held_ns, before, rank))
    communicators: dict[Communicator, int] = {}
    comm = [_comm_of(records, opened.get(rank, {}), processes, communicators) for records, *_, rank in pieces]
    key = np.concatenate([np.asarray(before) for *_, before, _ in pieces])
    at = np.argsort(key, kind="stable") if len(pieces) > 1 else np.arange(len(key))

    def column(name: str) -> Int:
        found: Int = np.concatenate([getattr(each[0], name) for each in pieces])[at].astype(np.int64)
        return found

    file: Int = np.concatenate([each[1] for each in pieces])[at].astype(np.int64)
    view = np.concatenate([records.view for records, *_ in pieces])[at]
    other = np.concatenate([_other(each[0], lookup[each[-1]]) for each in pieces])[at]
    shift = np.concatenate([each[3] for each in pieces])[at]
    op, offset, size = column("op"), column("offset"), column("size")
    base = base_of(templates.classes)
    span = spanned(column("session"), op == operations()["mpi_view"].number, size, view)
    # Where who stands for the others is, of what these make alone.
    reader = np.concatenate([np.full(len(each[0]), 0 if each[-1] == root_rank else each[-1]) for each in pieces])[at]
    before = _bytes_before(op, file, offset, span, shift, reader, processes, len(order))
    # What a rename or a link makes is not there before it.
    before[np.unique(other[other >= 0])] = 0
    directories = _directories(op, file, len(order))
    files = tuple(
        GwpFile(relative(name, base), templates.classes[name], int(before[at]), bool(directories[at]))
        for at, name in enumerate(order)
    )
    return Gwp(
        op=op,
        file=file,
        who=np.concatenate([each[2] for each in pieces])[at],
        offset=offset,
        size=size,
        shift=shift,
        start_ns=column("start_ns"),
        end_ns=column("end_ns"),
        slack_ns=np.concatenate([each[4] for each in pieces])[at],
        comm=np.concatenate(comm)[at],
        collective=np.concatenate([records.collective for records, *_ in pieces])[at],
        session=column("session"),
        piece=view[:, 0],
        distance=view[:, 1],
        pieces=view[:, 2],
        tile=view[:, 3],
        other=other,
        files=files,
        communicators=tuple(communicators),
        processes=processes,
        groups=tuple(groups),
        apart=parts.apart,
        together=np.concatenate([parts.together & (who == ALL), np.zeros(len(key) - len(root), np.bool_)])[at],
        waited_ns=np.concatenate([parts.waited, np.zeros(len(key) - len(root), np.int64)])[at],
    )


def _who(parts: _Parts, groups: int) -> Int:
    """All where every group mimics, and in calls that all make together; else the root alone."""
    together = parts.root.collective & (parts.root.comm_size == max(2, parts.processes))
    if groups:
        together |= np.min(np.stack(parts.matches), axis=0) >= 0
    else:
        # Nobody tells what children do but in files that they have opened, too.
        sessions = np.unique(parts.root.session[together])
        together |= (parts.root.session >= 0) & np.isin(parts.root.session, sessions)
    return np.where(together, ALL, ROOT)


def _comm_of(
    records: Records, opened: Mapping[int, Communicator], processes: int, found: dict[Communicator, int]
) -> Int:
    comm = np.full(len(records), -1, np.int64)
    mpi = np.flatnonzero(records.comm_size > 0)
    if not len(mpi):
        return comm
    # One communicator in each session, which the first of its requests tells.
    of, first = np.unique(records.session[mpi], return_index=True)
    number = np.empty(int(of[-1]) + 2, np.int64)
    for session, row in zip(of.tolist(), mpi[first].tolist(), strict=True):
        size = int(records.comm_size[row])
        usual = Communicator(SELF) if size == 1 < processes else Communicator(WORLD)
        each = opened.get(int(records.handle[row]), usual) if 1 < size < processes else usual
        number[session] = found.setdefault(each, len(found))
    comm[mpi] = number[records.session[mpi]]
    return comm


def _other(records: Records, lookup: Code) -> Int:
    return lookup[records.file2].astype(np.int64)


def _directories(op: Int, file: Int, files: int) -> Bool:
    found = np.zeros(files, np.bool_)
    found[file[np.isin(op, [operations()[name].number for name in ("mkdir", "rmdir", "opendir", "readdir")])]] = True
    return found


def _bytes_before(
    op: Int, file: Int, offset: Int, size: Int, shift: Int, reader: Int, processes: int, files: int
) -> Int:
    """How far each file is read by these ranks beyond what the run has written of it by then."""
    ops = operations().values()
    reads = np.zeros(256, np.bool_)
    writes = np.zeros(256, np.bool_)
    reads[[each.number for each in ops if each.is_data and "read" in each.name]] = True
    writes[[each.number for each in ops if each.is_data and "write" in each.name]] = True
    found = np.zeros(files, np.int64)
    rows = np.flatnonzero((reads | writes)[op] & (offset >= 0) & (size > 0))
    if not len(rows) or not reads[op[rows]].any():
        return found
    rows = rows[np.argsort(file[rows].astype(np.int32), kind="stable")]
    end = offset[rows] + size[rows] + np.maximum(shift[rows], 0) * (processes - 1)
    own = offset[rows] + size[rows] + shift[rows] * reader[rows]
    written = np.where(writes[op[rows]], end, 0)
    begins = np.flatnonzero(np.diff(file[rows], prepend=-1))
    for begin, stop in zip(begins.tolist(), np.append(begins[1:], len(rows)).tolist(), strict=True):
        reach = np.maximum.accumulate(written[begin:stop])
        # One rank's reads alone: what another one reads of its neighbour's may come round to the first.
        lacks = reads[op[rows[begin:stop]]] & (own[begin:stop] > reach)
        if lacks.any():
            found[file[rows[begin]]] = end[begin:stop][lacks].max()
    return found
