"""Symbolic patterns of a generic workload path: its requests folded into loops whose numbers are formulas of P.

The recogniser (pattern/) folds the root's requests, all files in one stream, since programs interleave them. From paths
of unlike numbers of processes the numbers become every formula that fits both; from one path alone a place that is a
multiple of P times the shift between ranks is taken to grow with P, and all else to stay: weak scaling, a guess.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import native
from ...errors import StripewiseError
from ...pattern.local import columns_of
from ...pattern.scaling import formulas
from ...pattern.tree import Tree, tree_of
from .. import path as paths
from ..characterization.distribution import empirical
from ..characterization.makers import told_groups
from ..extraction.generic_path import ALL, CHILDREN, FIRST_GROUP, ROOT, Gwp
from ..extraction.pauses import LONG_NS
from ..operations import by_number
from .likeness import reference_of
from .program import NODES_MAX, write_program

_WHO = {ALL: "all", ROOT: "root", CHILDREN: "all but root"}
#: A pause is so many times as long as the median of a loop's slack, and at least so long.
PAUSE_TIMES = 5
PAUSE_NS = 100_000
_OTHER = ("rename", "link", "symlink")
#: Pauses of a node that are too few to be drawn from.
_FEW = 4
#: Pauses up to so many times as long are about as long.
_ALIKE = 1.5
#: All ranks wait for each other before a node's requests where they do before more than this share of them.
_MOST = 0.5


def programs(gwps: Sequence[Gwp]) -> dict[str, Any]:
    """What a profile keeps under `programs`: patterns, where there are any, and what the likeness is judged by.

    The first path is the profile's; the others are of the same program with other numbers of processes.
    """
    found = reference_of(gwps[0])
    folded = [_folded(gwp) for gwp in gwps]
    first = folded[0]
    if first is None:
        return found
    by_processes = {each.gwp.processes: each for each in folded if each is not None}
    alike = len({each.shape for each in by_processes.values()}) == 1 and None not in folded
    series = by_processes if alike and len(by_processes) > 1 else {first.gwp.processes: first}
    made = found | first.tables() | {"processes": sorted(series), "guess": len(series) == 1}
    made["body"] = _merged([series[each] for each in sorted(series)], first)
    if made["body"] is None:
        made |= {"processes": [first.gwp.processes], "guess": True, "body": _merged([first], first)}
    return made if _regenerates(made, first.gwp) else found


@dataclass(frozen=True)
class _Node:
    """A request or a loop, its numbers in one order: at, at_rank, stride, and size or count."""

    numbers: tuple[int, int, int, int]
    kind: int = 0
    body: tuple[_Node, ...] = ()
    #: Numbers in the list of distributions: first round of the innermost loop, others.
    slack: tuple[int, int] | None = None
    #: Whether all ranks wait for each other before it, in the same rounds.
    together: tuple[bool, bool] = (False, False)

    @property
    def shifts(self) -> frozenset[int]:
        """Bytes from rank to rank of the requests in it."""
        if not self.body:
            return frozenset({self.numbers[1]} - {0})
        return frozenset().union(*(part.shifts for part in self.body))


@dataclass(frozen=True)
class _Folded:
    gwp: Gwp
    nodes: tuple[_Node, ...]
    #: Kinds of requests: op, file, who, comm, view, other, alone.
    kinds: tuple[tuple[int, ...], ...]
    views: tuple[tuple[int, ...], ...]
    slack: tuple[dict[str, Any], ...]

    def key(self, kind: int) -> tuple[Any, ...]:
        op, file, who, comm, view, other, alone = self.kinds[kind]
        name = self.gwp.files[file].template
        return op, name, who, comm, view, self.gwp.files[other].template if other >= 0 else "", alone

    @property
    def shape(self) -> Any:
        """What is left without numbers: paths of one shape are one program's."""
        return tuple(self._shape(node) for node in self.nodes)

    def _shape(self, node: _Node) -> Any:
        return tuple(self._shape(part) for part in node.body) if node.body else self.key(node.kind)

    def tables(self) -> dict[str, Any]:
        """Files, communicators, groups, views and distributions."""
        gwp = self.gwp
        ops = {number: op.name for number, op in by_number().items()}
        opened_first = _first_ops(gwp)
        files = []
        for at, file in enumerate(gwp.files):
            name = file.template
            if file.file_class == "private" and "{rank}" not in name:
                name += ".{rank}"
            row: dict[str, Any] = {"name": name, "class": file.file_class, "bytes": file.bytes}
            if file.bytes and file.file_class == "shared" and file.bytes % gwp.processes == 0:
                row["bytes"] = f"{file.bytes // gwp.processes} x P"
            made = ops.get(opened_first.get(at, 0), "") in ("mkdir", "mknod")
            mode = opened_first.get(-1 - at, 0)
            if file.is_directory:
                row["directory"] = True
            if (file.is_directory and not made) or (not mode & 4 and not made and not file.bytes):
                row["present"] = True
            files.append(row)
        _make_directories(files)
        comms = [each.kind if not each.count else {each.kind: each.count} for each in gwp.communicators]
        keys = ("piece", "distance", "pieces", "tile")
        return {
            "files": files,
            "comms": comms or ["world"],
            "groups": told_groups(gwp) or [],
            "views": [dict(zip(keys, self._grown(view), strict=True)) for view in self.views],
            "slack": list(self.slack),
        }

    def _grown(self, view: tuple[int, ...]) -> tuple[int | str, ...]:
        """A view in which the ranks' pieces take turns is as far apart as there are ranks: a guess, as of offsets."""
        piece, distance, pieces, tile = view
        processes = self.gwp.processes
        unit = piece * processes
        if processes == 1 or (distance % unit and tile % unit):
            return view
        grown = [f"{each // processes} x P" if each % unit == 0 else each for each in (distance, tile)]
        return piece, grown[0], pieces, grown[1]


def _make_directories(files: Sequence[dict[str, Any]]) -> None:
    """Directories of what is there before the run are, too, though the run made them; so are the root's that files of
    other ranks lie in: the wait for it in between is in no trace.
    """
    of_others = {above for row in files if row["class"] != "root" for above in _directories_above(row["name"])}
    there = [row["name"] for row in files if row["bytes"] or row.get("present")]
    above_those = {above for name in there for above in _directories_above(name)}
    for row in files:
        if row["name"] in above_those or (row["name"] in of_others and row["class"] == "root"):
            row["present"] = row["directory"] = True


def _directories_above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _first_ops(gwp: Gwp) -> dict[int, int]:
    """By file its first operation, and under -1 - file the mode where that is an open."""
    file, first = np.unique(gwp.file, return_index=True)
    found = {int(at): int(gwp.op[row]) for at, row in zip(file, first, strict=True)}
    opens = {each.number for each in by_number().values() if each.name in ("open", "mpi_open")}
    found |= {-1 - int(at): int(gwp.size[row]) for at, row in zip(file, first, strict=True) if gwp.op[row] in opens}
    # A target of a rename, link or symlink is made by it.
    found |= {-1 - int(at): 4 for at in np.unique(gwp.other[gwp.other >= 0])}
    return found


def folds(gwp: Gwp) -> bool:
    """Whether the path is regular enough for patterns."""
    return _folded(gwp) is not None


def _folded(gwp: Gwp) -> _Folded | None:
    """The path as loops; None where it is too irregular for that, or its groups are."""
    if not len(gwp) or told_groups(gwp) is None:
        return None
    view_of, views = _views(gwp)
    columns, code = _coded(gwp, view_of)
    _, first = np.unique(code, return_index=True)
    offset, size = np.maximum(gwp.offset, 0), _sizes(gwp)
    made, (stream,) = recognised(gwp, code, np.zeros(len(gwp), np.uint64))
    kinds = tuple(tuple(int(column[row]) for column in columns[:-1]) for row in first)
    shifts = [int(gwp.shift[row]) for row in first]
    fold = _Fold(shifts, _Pauses(gwp), code, offset, size)
    for segment in stream["segments"]:
        if not fold.add(segment):
            return None
    kind, at, bytes_ = columns_of(made.expand(0))
    if not (np.array_equal(kind, code) and np.array_equal(at, offset) and np.array_equal(bytes_, size)):
        return None
    return _Folded(gwp, tuple(fold.nodes), kinds, views, tuple(fold.slack))


def _coded(gwp: Gwp, view_of: Any) -> tuple[tuple[Any, ...], Any]:
    """What tells kinds of requests apart, the shift last, and a number for each kind."""
    alone = gwp.session < 0
    columns = (gwp.op, gwp.file, gwp.who, np.maximum(gwp.comm, 0), view_of, gwp.other, alone, gwp.shift)
    code = np.zeros(len(gwp), np.int64)
    for column in columns:
        _, inverse = np.unique(column, return_inverse=True)
        _, code = np.unique(code * (int(inverse.max()) + 1) + inverse, return_inverse=True)
    return columns, code


def _sizes(gwp: Gwp) -> Any:
    """Sizes as a path has them: of requests on two files the other one."""
    takes_other = np.isin(gwp.op, [number for number, op in by_number().items() if op.name in _OTHER])
    return np.where(takes_other, gwp.other + 1, gwp.size)


def recognised(gwp: Gwp, code: Any, key: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The recogniser's object for the requests, and the stream of each key (u64), in ascending order."""
    offset = np.ascontiguousarray(np.maximum(gwp.offset, 0))
    made = native.make("RecognisedTrace", key, code.astype(np.uint32), offset, np.ascontiguousarray(_sizes(gwp)))
    return made, native.parsed(made.json)


def nodes_by_file(gwp: Gwp) -> Any:
    """How many nodes the requests of each file make, folded for themselves."""
    _, code = _coded(gwp, _views(gwp)[0])
    _, streams = recognised(gwp, code, gwp.file.astype(np.uint64))
    found = np.zeros(len(gwp.files), np.int64)
    for file, stream in zip(np.unique(gwp.file).tolist(), streams, strict=True):
        found[file] = nodes_of(stream)
    return found


def nodes_of(stream: Mapping[str, Any]) -> int:
    """How many nodes a stream of the recogniser's makes."""

    def of(segment: Mapping[str, Any]) -> int:
        if "loop" in segment and "scattered" not in segment:
            return len(list(_all(tree_of(segment["loop"]))))
        return int(segment["records"])

    return sum(of(segment) for segment in stream["segments"])


def nodes_together(gwp: Gwp) -> int:
    """How many nodes the requests of all files make, in one stream."""
    _, code = _coded(gwp, _views(gwp)[0])
    return nodes_of(recognised(gwp, code, np.zeros(len(gwp), np.uint64))[1][0])


def _views(gwp: Gwp) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    rows = np.stack([gwp.piece, gwp.distance, gwp.pieces, gwp.tile], axis=1)
    is_view = rows[:, 0] > 0
    number = np.zeros(len(gwp), np.int64)
    if not is_view.any():
        return number, ()
    views, inverse = np.unique(rows[is_view], axis=0, return_inverse=True)
    number[is_view] = inverse.reshape(-1) + 1
    return number, tuple(tuple(int(each) for each in view) for view in views)


class _Pauses:
    """The slacks of a path by row; where ranks pause apart, a node of few pauses draws from all of its operation's that
    are about as long, for one that is not drawn would be the same for all ranks."""

    def __init__(self, gwp: Gwp) -> None:
        self.slack_ns, self.op, self.together = gwp.slack_ns, gwp.op, gwp.is_together
        self.is_long = (gwp.slack_ns >= LONG_NS) & gwp.apart

    def of(self, rows: Any) -> Any:
        """The sample that these rows' slack is drawn from."""
        if len(rows) <= _FEW and self.is_long[rows].all():
            low, high = self.slack_ns[rows].min() / _ALIKE, self.slack_ns[rows].max() * _ALIKE
            is_alike = self.is_long & (self.slack_ns >= low) & (self.slack_ns <= high)
            rows = np.flatnonzero(is_alike & (self.op == self.op[rows[0]]))
        return self.slack_ns[rows]


class _Fold:
    """Segments of the recogniser turned into nodes, with the slack of each."""

    def __init__(self, shifts: Sequence[int], pauses: _Pauses, kind: Any, offset: Any, size: Any) -> None:
        self.shifts, self.pauses = shifts, pauses
        self.kind, self.offset, self.size = kind, offset, size
        self.nodes: list[_Node] = []
        self.slack: list[dict[str, Any]] = []
        self.known: dict[str, int] = {}
        self.count = 0

    def add(self, segment: dict[str, Any]) -> bool:
        """False where there would be too many nodes."""
        first, records = segment["first"], segment["records"]
        if "loop" in segment and "scattered" not in segment:
            tree = tree_of(segment["loop"])
            leaf, _ = _rounds(tree)
            own = slice(first, first + records)
            columns = leaf, self.pauses.slack_ns[own], self.pauses.together[own]
            tree = _with_pauses(tree, *columns, itertools.count())
            leaf, is_first = _rounds(tree)
            self.count += len(list(_all(tree)))
            if self.count <= NODES_MAX:
                leaves = self.of_leaves(leaf, is_first, first)
                self.nodes.append(self.node(tree, iter(leaves)))
            return self.count <= NODES_MAX
        self.count += records
        if self.count > NODES_MAX:
            return False
        for row in range(first, first + records):
            slack = self.distribution(np.array([row]))
            numbers = (int(self.offset[row]), self.shifts[self.kind[row]], 0, int(self.size[row]))
            together = bool(self.pauses.together[row])
            self.nodes.append(_Node(numbers, int(self.kind[row]), slack=(slack, slack), together=(together, together)))
        return True

    def of_leaves(self, leaf: Any, is_first: Any, base: int) -> list[tuple[tuple[int, int], tuple[bool, bool]]]:
        """Slack of each leaf, and whether most of its requests wait for all ranks: first rounds, others."""
        found = []
        order = np.lexsort((~is_first, leaf))
        ends = np.searchsorted(leaf[order], np.arange(int(leaf.max()) + 2))
        for begin, end in itertools.pairwise(ends):
            rows = order[begin:end]
            split = int(is_first[rows].sum())
            parts = [base + each for each in (rows[:split], rows[split:]) if len(each)]
            slack = [self.distribution(each) for each in parts]
            together = [bool(self.pauses.together[each].mean() > _MOST) for each in parts]
            found.append(((slack[0], slack[-1]), (together[0], together[-1])))
        return found

    def distribution(self, rows: Any) -> int:
        """The number of the distribution that these rows' slack is drawn from, in seconds."""
        made = empirical(self.pauses.of(rows) / 1e9).as_json()
        number = self.known.setdefault(json.dumps(made), len(self.slack))
        if number == len(self.slack):
            self.slack.append(made)
        return number

    def node(self, tree: Tree, slack: Any) -> _Node:
        if tree.body:
            body = tuple(self.node(part, slack) for part in tree.body)
            return _Node((tree.at, 0, tree.stride, tree.count), body=body)
        numbers = (tree.at, self.shifts[tree.kind], tree.stride, tree.size)
        pauses, together = next(slack)
        return _Node(numbers, tree.kind, slack=pauses, together=together)


def _with_pauses(tree: Tree, leaf: Any, slack_ns: Any, together: Any, leaves: Iterator[int]) -> Tree:
    """The tree in which a loop that pauses every so many rounds is one of shorter loops, each begun by the pause.

    `leaf` is the number of each record's leaf, in the order of the records; `leaves` counts them. Slack is no part of a
    pattern, but what comes first in a loop has its own. Where ranks wait for each other in some of the rounds, these
    are the pauses, and no hiccup in between is one.
    """
    if not tree.body:
        next(leaves)
        return tree
    if any(part.body for part in tree.body):
        return replace(tree, body=tuple(_with_pauses(part, leaf, slack_ns, together, leaves) for part in tree.body))
    number = next(leaves)
    for _ in tree.body[1:]:
        next(leaves)
    mean, waits = (each[leaf == number].reshape(-1, tree.count).mean(axis=0) for each in (slack_ns, together))
    pauses = np.flatnonzero(waits > _MOST)
    if not len(pauses):
        pauses = np.flatnonzero(mean > max(PAUSE_TIMES * float(np.median(mean)), PAUSE_NS))
    step = _period(pauses, tree.count)
    strides = {part.stride for part in tree.body}
    if step is None or len(strides) > 1:
        return tree
    inner = Tree(0, step * strides.pop(), count=step, body=tree.body)
    return replace(tree, count=tree.count // step, body=(inner,))


def _period(long: Any, rounds: int) -> int | None:
    """Every how many rounds there is a pause, from the first one on; None where that is not so, or at once."""
    if not len(long):
        return None
    # The loop may begin behind a pause that is another one's.
    begin = 0 if long[0] == 0 else 1
    step = int(long[1 - begin]) if len(long) > 1 - begin else 0
    return step if step > 1 and _are_multiples(long, step, rounds, begin) else None


def _are_multiples(found: Any, step: int, rounds: int, begin: int) -> bool:
    return rounds % step == 0 and step < rounds and np.array_equal(found, np.arange(begin * step, rounds, step))


def _all(tree: Tree) -> Any:
    yield tree
    for part in tree.body:
        yield from _all(part)


def _rounds(tree: Tree) -> tuple[Any, Any]:
    """Of each record of a tree the number of its leaf, and whether it is in the first round of its innermost loop."""
    count = 0

    def of(part: Tree) -> tuple[Any, Any, bool]:
        nonlocal count
        if not part.body:
            count += 1
            return np.array([count - 1]), np.array([True]), True
        inner = [of(each) for each in part.body]
        leaf = np.concatenate([each[0] for each in inner])
        first = np.concatenate([each[1] for each in inner])
        direct = np.concatenate([np.full(len(each[0]), each[2]) for each in inner])
        others = np.where(direct, False, first)
        return (
            np.tile(leaf, part.count),
            np.concatenate([first, np.tile(others, part.count - 1)]),
            False,
        )

    leaf, first, _ = of(tree)
    return leaf, first


def _merged(series: Sequence[_Folded], names: _Folded) -> list[Any] | None:
    """The nodes as JSON, numbers as formulas; None where no formula fits."""
    try:
        rows = zip(*(each.nodes for each in series), strict=True)
        return [_node(nodes, series, names, names.nodes[at], None) for at, nodes in enumerate(rows)]
    except _NoFormulaError:
        return None


class _NoFormulaError(Exception):
    """Numbers of a node depend on P in a way that nobody knows."""


def _node(
    nodes: Sequence[_Node], series: Sequence[_Folded], names: _Folded, own: _Node, unit: int | None
) -> dict[str, Any]:
    processes = [each.gwp.processes for each in series]
    if len(series) == 1:
        shifts = own.shifts
        unit = processes[0] * max(shifts) if shifts and all(max(shifts) % each == 0 for each in shifts) else unit
    values = [_scaled(values, processes, unit if place in (0, 2) else None) for place, values in
              enumerate(zip(*(node.numbers for node in nodes), strict=True))]  # fmt: skip
    at, at_rank, stride, last = values
    found = {key: value for key, value in (("at", at), ("at_rank", at_rank), ("stride", stride)) if value != 0}
    if own.body:
        rows = zip(*(node.body for node in nodes), strict=True)
        body = [_node(parts, series, names, own.body[at], unit) for at, parts in enumerate(rows)]
        return {"count": last} | found | {"body": body}
    op, file, who, comm, view, other, alone = names.kinds[own.kind]
    name = by_number()[op].name
    made: dict[str, Any] = {"op": name, "file": file} | found
    # What is opened, or the other file, is no size.
    if last:
        made["size"] = own.numbers[3] if other >= 0 else last
    if who:
        made["who"] = _WHO[who] if who in _WHO else {"group": who - FIRST_GROUP}
    made |= {key: value for key, value in (("comm", comm), ("view", view)) if value}
    if alone and name == "opendir":
        made["alone"] = True
    if own.slack is not None:
        first, rest = own.slack
        made["slack"] = [first] if first == rest else [first, rest]
    if any(own.together):
        made["together"] = own.together[0] if own.together[0] == own.together[1] else list(own.together)
    return made


def _scaled(values: Sequence[int], processes: Sequence[int], unit: int | None) -> int | str:
    if len(values) == 1:
        (value,) = values
        return f"{value // processes[0]} x P" if unit and value and value % unit == 0 else value
    if len(set(values)) == 1:
        return values[0]
    found = next(formulas(dict(zip(processes, values, strict=True))), None)
    if found is None:
        raise _NoFormulaError
    return found.text


def _regenerates(made: dict[str, Any], gwp: Gwp) -> bool:
    """Whether the path of the patterns has the very requests of the root."""
    mine = np.flatnonzero((gwp.who == ALL) | (gwp.who == ROOT))
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "path.swp"
        try:
            write_program(made, gwp.processes, 1, out, "programs")
            found = paths.requests(out, gwp.processes, 0)
        except StripewiseError:
            return False
    placed = found["offset"] >= 0
    same = len(found) == len(mine) and np.array_equal(found["op"], gwp.op[mine])
    return bool(same and np.array_equal(found["offset"][placed], np.maximum(gwp.offset[mine], 0)[placed]))
