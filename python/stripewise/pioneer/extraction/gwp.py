"""The generic workload path of a trace (thesis, sections 2.5.1 and 2.6.2): `read_gwp`.

Root and one child of each subgroup stand for all processes: only their records are read whole, those of others where
these may wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import NoRequestsError
from ...workload.counted import BY_DEFAULT, Choice
from .calls import Trace, open_trace
from .generic_path import BLOCKS, CONGRUENT, SELF, WORLD, Calls, Communicator, Gwp, GwpFile
from .joining import joined
from .meetings import WITNESSED_MAX, WITNESSES_MAX
from .records import Records
from .sanitise import records_of
from .subgroups import FIRST, RECORDS_MIN, Subgroup, found_groups, given_groups, profile_of

__all__ = ["Communicator", "Gwp", "GwpFile", "read_gwp"]


def read_gwp(path: Path, choice: Choice = BY_DEFAULT, subgroups: str | None = None) -> Gwp:
    """The path in a collected trace. Raises WorkloadError, and UsageError for subgroups that are none."""
    with open_trace(path, choice) as trace:
        root = trace.ranks[0]
        children = trace.ranks[1:]
        if subgroups is not None:
            groups = given_groups(subgroups, trace.ranks, root)
        elif children:
            groups = _found(trace, children)
        else:
            groups = []
        records = {rank: records_of(trace, rank) for rank in (root, *(group.chosen for group in groups))}
        if not any(len(each) for each in records.values()):
            raise NoRequestsError(f"{trace.source}: holds no requests on files that count; --all-files counts all")
        command = trace.meta.get("command")
        application = str(command[0]) if isinstance(command, list) and command else None

        def alike(child: Records) -> Iterator[Records]:
            ranks = next(group.ranks for group in groups if group.chosen == child.rank)
            return _alike(trace, child, ranks, len(groups))

        made = joined(records, trace.names, root, groups, trace.processes, _communicators(trace), alike)
        mine = records[groups[0].chosen] if groups else None
        child = None if mine is None else Calls(mine.op.astype(np.int64), mine.size, mine.start_ns, mine.end_ns)
        read = sum(trace.rows(rank) for rank in trace.ranks)
        return replace(made, application=application, records=read, child=child)


def _found(trace: Trace, children: Sequence[int]) -> list[Subgroup]:
    """Subgroups from the first tenth of the children's traces."""
    if len(children) == 1:
        return [Subgroup(tuple(children), children[0])]
    kinds: dict[str, int] = {}
    ops = {}
    for rank in children:
        parts = trace.first(rank, max(RECORDS_MIN, int(trace.rows(rank) * FIRST)))
        known = [(op, np.array([kinds.setdefault(name, len(kinds)) for name in names] or [0])) for op, names in parts]
        ops[rank] = np.concatenate([number[op] for op, number in known] or [np.empty(0, np.int64)])
    profiles = {rank: profile_of(op, len(kinds), trace.rows(rank)) for rank, op in ops.items()}
    return found_groups(profiles, len(kinds))


def _alike(trace: Trace, child: Records, ranks: Sequence[int], groups: int) -> Iterator[Records]:
    """The records of further ranks of a child's group that make the very operations which it makes, in its order: this
    group's part of those that may be looked at, but at least two."""
    others = [rank for rank in ranks if rank != child.rank and rank in trace.ranks]
    most = min(WITNESSES_MAX, WITNESSED_MAX // max(1, len(child))) // groups
    count = min(max(2, most), len(others))
    for at in range(count):
        rank = others[at * len(others) // count]
        found = records_of(trace, rank)
        if np.array_equal(found.op, child.op):
            yield found


def _communicators(trace: Trace) -> dict[int, dict[int, Communicator]]:
    """By rank and handle what meta.json tells of communicators that are neither the world's nor one's own."""
    process_rank = {process: rank for rank, process in trace.process_of.items()}
    found: dict[int, dict[int, Communicator]] = {}
    sessions = trace.meta.get("sessions")
    for each in sessions if isinstance(sessions, list) else []:
        try:
            ranks = [int(first + step * at) for first, step, count in each["ranks"] for at in range(count)]
            members = [(process_rank.get(int(process)), int(handle)) for process, handle in each["members"]]
        except (KeyError, TypeError, ValueError):
            continue
        for rank, handle in members:
            if rank is not None:
                found.setdefault(rank, {})[handle] = _communicator(ranks, trace.processes)
    return found


def _communicator(ranks: Sequence[int], processes: int) -> Communicator:
    if len(ranks) == 1:
        return Communicator(SELF)
    if len(ranks) < processes:
        step = ranks[1] - ranks[0]
        regular = step > 0 and list(ranks) == list(range(ranks[0], ranks[0] + step * len(ranks), step))
        if regular and step == 1 and ranks[0] % len(ranks) == 0:
            return Communicator(BLOCKS, len(ranks))
        if regular and step > 1 and ranks[0] < step:
            return Communicator(CONGRUENT, step)
    return Communicator(WORLD)
