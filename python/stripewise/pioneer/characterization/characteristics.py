"""From a generic workload path to its profile: the characteristics of the thesis's table 2.4 (section 2.6.3).

They are taken within file open sessions, by file class and kind of session; a row's sequence id is its place in the
path, from 1 on, and the first session of a file counts from a close with id 0.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..extraction.calls import Bool, Int
from ..extraction.generic_path import ALL, ROOT, Gwp
from ..extraction.views import spanned
from ..marks import split_mark
from ..operations import by_number, operations
from .distribution import ONE, TWO, ZERO, Bursts, Distribution, Slack, empirical
from .makers import Told, mark_text, told
from .profile import CLASSES, KINDS, NAMES_MAX, FileClass, Profile, SessionKind, Subgroup, View

#: A slack is long from here on, in seconds, where it is also so many times the median.
LONG_S = 1e-3
LONG_TIMES = 20
#: Where more than this share is long, there are no bursts.
LONG_SHARE_MAX = 0.25
#: Slacks of an operation, at least, to look for bursts.
BURSTS_MIN = 8
#: Views of a kind of sessions that a profile keeps.
VIEWS_MAX = 64
#: Slacks of an operation behind which ranks wait, and others as long: so many times as many at most.
OTHERS_MAX = 0.1
#: Bits of the numbers of operations and of kinds with whose they are.
_BITS = 16
_ENDS = {"open": "open", "opendir": "open", "mpi_open": "open", "close": "close", "mpi_close": "close"}


@dataclass(frozen=True, eq=False)
class Framework:
    """The framework of file open sessions (thesis, section 2.5.3, figure 2.3): arrays by session, in order of opens."""

    #: Rows of the path that are in sessions, session by session.
    rows: Int
    #: Where in `rows` each session begins; one more at the end.
    begins: Int
    file: Int
    #: Number in profile.KINDS.
    kind: Int
    #: Whose its open is (generic_path.py).
    who: Int

    @property
    def count(self) -> int:
        """Number of sessions."""
        return len(self.file)

    @property
    def opening(self) -> Int:
        """Of each session its kind and whose its open is in one number, by which `opening_text` has a name."""
        return self.who * len(KINDS) + self.kind

    @property
    def session(self) -> Int:
        """Of each of `rows` its session."""
        return np.repeat(np.arange(self.count), np.diff(self.begins))


def opening_text(opening: int) -> str:
    """A kind of sessions in a profile: `mpi-write`, `posix-read@root`."""
    who, kind = divmod(opening, len(KINDS))
    return KINDS[kind] + mark_text(who)


def framework_of(gwp: Gwp) -> Framework:
    """The sessions of a path; rows outside are left out."""
    rows = np.flatnonzero(gwp.session >= 0)
    rows = rows[np.argsort(gwp.session[rows].astype(np.int32), kind="stable")]
    begins = np.flatnonzero(np.diff(gwp.session[rows], prepend=-1))
    # By their opens: sessions that children alone have are numbered behind the root's.
    order = np.argsort(rows[begins], kind="stable")
    lengths = np.diff(np.append(begins, len(rows)))[order]
    starts = np.repeat(begins[order] - np.append(0, np.cumsum(lengths)[:-1]), lengths)
    rows = rows[np.arange(len(rows)) + starts]
    begins = np.append(0, np.cumsum(lengths))
    opens = rows[begins[:-1]]
    return Framework(rows, begins, gwp.file[opens], _kinds(gwp, rows, begins), gwp.who[opens])


def _kinds(gwp: Gwp, rows: Int, begins: Int) -> Int:
    """The kind of each session: by its interface and the mode of its open; where that is not known, by what it does."""
    opens = rows[begins[:-1]]
    if not len(opens):
        return np.empty(0, np.int64)
    ops = operations()
    data = [each for each in ops.values() if each.is_data]
    does = np.zeros(256, np.int64)
    for each in data:
        does[each.number] = 1 if "read" in each.name else 2
    done = np.bitwise_or.reduceat(does[gwp.op[rows]], begins[:-1])
    mode = gwp.size[opens] & 3
    mode = np.where(mode == 0, np.where(done == 0, 3, done), mode)
    # What a session does it may do, whatever its open says.
    mode = mode | done
    is_mpi = gwp.op[opens] == ops["mpi_open"].number
    kind = np.where(is_mpi, KINDS.index("mpi-read"), 0) + mode - 1
    return np.where(gwp.op[opens] == ops["opendir"].number, KINDS.index("posix-directory"), kind)


def profile_of(gwp: Gwp, tool: str = "") -> Profile:
    """The characteristics of a path."""
    path, together = _together(told(gwp))
    gwp = path.gwp
    frame = framework_of(gwp)
    file_class = np.array([CLASSES.index(each.file_class) for each in gwp.files], np.int64)
    children = max(1, gwp.processes - 1)
    return Profile(
        apart=gwp.apart,
        together=together,
        processes=gwp.processes,
        requests=len(gwp),
        duration_s=gwp.duration_ns / 1e9,
        tool=tool,
        application=gwp.application,
        subgroups=tuple(
            Subgroup(each.text, len(each.ranks) / children, group)
            for each, group in itertools.zip_longest(gwp.groups, path.groups or ())
        ),
        classes={name: _class(path, frame, file_class, number) for number, name in enumerate(CLASSES)},
    )


def _together(path: Told) -> tuple[Told, dict[str, float]]:
    """By operation the slack, in seconds, from which on all ranks wait for each other before it: the least that takes
    in few others and most of those; without an operation that no slack tells apart.

    And the path with the waiting in the slack of requests before which statistics will not wait. Those whose own slack
    is below the limit get as much of it as there is up to the limit, where ranks wait.
    """
    gwp, found = path.gwp, {}
    slack = gwp.slack_ns + (0 if gwp.waited_ns is None else gwp.waited_ns * gwp.is_together)
    for op, rows in _groups(path, np.flatnonzero(np.isin(gwp.op, gwp.op[gwp.is_together]))):
        waits, others = (np.sort(gwp.slack_ns[rows[each]]) for each in (gwp.is_together[rows], ~gwp.is_together[rows]))
        for at, limit in enumerate(waits[: len(waits) // 2 + 1].tolist()):
            if len(others) - np.searchsorted(others, limit) <= OTHERS_MAX * (len(waits) - at):
                found[op] = limit // 1000 / 1e6
                slack[rows] = np.minimum(slack[rows], np.maximum(gwp.slack_ns[rows], limit))
                break
    return replace(path, gwp=replace(gwp, slack_ns=slack)), found


def session_gaps(gwp: Gwp, frame: Framework, of: Int) -> Int:
    """ISG of these sessions: ids from the close of the file's session before to the open; the first from id 0."""
    order = of[np.argsort(frame.file[of], kind="stable")]
    opens = gwp.ids[frame.rows[frame.begins[:-1]]][order]
    closes = gwp.ids[frame.rows[frame.begins[1:] - 1]][order]
    same = np.append(False, np.diff(frame.file[order]) == 0)
    before = np.where(same, np.append(0, closes[:-1]), 0)
    # Sessions of a file that overlap have no gap; ids are unique all the same.
    return np.maximum(opens - before, 1)


def _class(path: Told, frame: Framework, file_class: Int, number: int) -> FileClass:
    gwp = path.gwp
    files = np.flatnonzero(file_class == number)
    if not len(files):
        return FileClass()
    mine = np.flatnonzero(file_class[frame.file] == number)
    outside = np.flatnonzero((gwp.session < 0) & (file_class[gwp.file] == number))
    times = np.bincount(frame.file[mine], minlength=len(gwp.files))[files]
    first, following = _access(frame, mine)
    names = [gwp.files[file].template for file in files[:NAMES_MAX].tolist()]
    return FileClass(
        files=len(files),
        open_times=empirical(times),
        session_gap=empirical(session_gaps(gwp, frame, mine)) if len(mine) else ONE,
        file_size=empirical(_sizes(gwp)[files]),
        outside={act: len(at) for act, at in _groups(path, outside)},
        outside_slack=_slacks(path, outside),
        names=tuple(names),
        first=first,
        next=following,
        sessions={
            opening_text(opening): _session_kind(path, frame, mine[frame.opening[mine] == opening])
            for opening in np.unique(frame.opening[mine]).tolist()
        },
    )


def _sizes(gwp: Gwp) -> Int:
    """FS of each file: the largest sum of offset and size, of the last rank's writes where it is shared; what it has
    before the run counts as well."""
    writes = np.zeros(256, np.bool_)
    writes[[each.number for each in operations().values() if each.is_data and "write" in each.name]] = True
    view = np.stack([gwp.piece, gwp.distance, gwp.pieces, gwp.tile], axis=1)
    span = spanned(gwp.session, gwp.op == operations()["mpi_view"].number, gwp.size, view)
    end = gwp.offset + span + np.where(writes[gwp.op], np.maximum(gwp.shift, 0) * (gwp.processes - 1), 0)
    rows = np.flatnonzero(_is_data()[gwp.op] & (gwp.offset >= 0))
    found = np.array([each.bytes for each in gwp.files], np.int64)
    np.maximum.at(found, gwp.file[rows], end[rows])
    return found


def _is_data() -> Bool:
    found = np.zeros(256, np.bool_)
    found[[each.number for each in operations().values() if each.is_data]] = True
    return found


def _access(frame: Framework, mine: Int) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """AM: which kind opens a file first, and which follows which."""
    if not len(mine):
        return {}, {}
    order = mine[np.argsort(frame.file[mine], kind="stable")]
    opening, same = frame.opening[order], np.append(False, np.diff(frame.file[order]) == 0)
    first = Counter(opening_text(each) for each in opening[~same].tolist())
    pairs = np.flatnonzero(same)
    number, counts = np.unique((opening[pairs - 1] << _BITS) + opening[pairs], return_counts=True)
    following: dict[str, dict[str, int]] = {}
    for each, count in zip(number.tolist(), counts.tolist(), strict=True):
        before, after = divmod(each, 1 << _BITS)
        following.setdefault(opening_text(before), {})[opening_text(after)] = count
    return dict(first), following


def _session_kind(path: Told, frame: Framework, of: Int) -> SessionKind:
    """The characteristics of these sessions, which are of one class and kind."""
    gwp = path.gwp
    lengths = (frame.begins[1:] - frame.begins[:-1])[of]
    begins = np.append(0, np.cumsum(lengths))
    places = np.arange(begins[-1]) + np.repeat(frame.begins[of] - begins[:-1], lengths)
    rows = frame.rows[places]
    session = np.repeat(np.arange(len(of)), lengths)
    is_open = np.zeros(len(rows), np.bool_)
    is_open[begins[:-1]] = True
    gaps = np.diff(gwp.ids[rows], prepend=0)[~is_open]
    after = np.flatnonzero(~is_open)
    data = np.flatnonzero(_is_data()[gwp.op[rows]] & (gwp.offset[rows] >= 0))
    whose = path.mark[rows[data]]
    own: dict[str, Distribution] = {}
    for mark in np.unique(whose[whose != ALL]).tolist():
        at = data[whose == mark]
        # SHIFT is nothing to rank 0.
        of_mark = _places(gwp, rows[at], session[at]).items()
        own |= {key + mark_text(mark): each for key, each in of_mark if (mark, key) != (ROOT, "SHIFT")}
    places = _places(gwp, rows[data[whose == ALL]], session[data[whose == ALL]])
    return SessionKind(
        duration=empirical(lengths - 1) if len(of) else TWO,
        request_gap=empirical(gaps) if len(after) else ONE,
        sequential=places.get("SEQ", ONE),
        following=_following(path, rows, is_open),
        offset=places.get("OFF"),
        size=_by_operation(path, rows[~is_open]),
        views=_views(gwp, rows),
        shift=places.get("SHIFT", ZERO),
        slack=_slacks(path, rows),
        communicators=_communicators(gwp, rows[is_open]),
        own=own,
    )


def _places(gwp: Gwp, rows: Int, session: Int) -> dict[str, Distribution]:
    """SEQ, OFF (where any jump) and SHIFT of these data operations, in their sessions."""
    if not len(rows):
        return {}
    sequential, jumps = _sequential(gwp.offset[rows], gwp.size[rows], session)
    totals = np.bincount(session)
    shares = np.bincount(session, sequential)[totals > 0] / totals[totals > 0]
    found = {"SEQ": empirical(np.round(shares, 6)), "SHIFT": empirical(gwp.shift[rows])}
    return found | ({"OFF": empirical(gwp.offset[rows][jumps])} if jumps.any() else {})


def _sequential(offset: Int, size: Int, session: Int) -> tuple[Bool, Bool]:
    """Which data operations begin where the one before in the session ended (the first one: at 0), and which do not."""
    if not len(offset):
        return np.empty(0, np.bool_), np.empty(0, np.bool_)
    same = np.append(False, np.diff(session) == 0)
    expected = np.where(same, np.append(0, (offset + size)[:-1]), 0)
    found = offset == expected
    return found, ~found


def _acts(path: Told, rows: Int) -> Int:
    """Operation and mark in one number, by which `_act_text` has a name."""
    found: Int = (path.mark[rows] << 8) + path.gwp.op[rows]
    return found


def _act_text(act: int) -> str:
    return by_number()[act & 255].name + mark_text(act >> 8)


def _following(path: Told, rows: Int, is_open: Bool) -> dict[str, dict[str, int]]:
    """RT1: which operation follows which; "" is the open. The close stands in D alone."""
    acts = _acts(path, rows)
    closes = np.isin(path.gwp.op[rows], [operations()[name].number for name in ("close", "mpi_close")])
    after = np.flatnonzero(~is_open & ~closes)
    before = np.where(is_open[after - 1], 0, acts[after - 1])
    pairs, counts = np.unique((before << _BITS) + acts[after], return_counts=True)
    found: dict[str, dict[str, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        first, then = divmod(pair, 1 << _BITS)
        found.setdefault(_act_text(first) if first else "", {})[_act_text(then)] = count
    # Sessions without anything between open and close need no word; D tells.
    return found


def _groups(path: Told, rows: Int) -> Iterable[tuple[str, Int]]:
    """The rows by operation with its mark, in their order."""
    if not len(rows):
        return
    acts = _acts(path, rows).astype(np.uint16)
    by_act = np.argsort(acts, kind="stable")
    order, acts = rows[by_act], acts[by_act]
    begins = np.flatnonzero(np.append(True, acts[1:] != acts[:-1]))
    for begin, end in zip(begins.tolist(), np.append(begins[1:], len(order)).tolist(), strict=True):
        yield _act_text(int(acts[begin])), order[begin:end]


def _by_operation(path: Told, rows: Int) -> dict[str, Distribution]:
    """SIZE of the operations that have one."""
    ops = operations()
    sized = {"ftruncate", "fallocate", "mpi_set_size", "mpi_preallocate", "mmap", "lock", "advise"}
    return {
        act: empirical(path.gwp.size[at])
        for act, at in _groups(path, rows)
        if ops[split_mark(act)[0]].is_data or split_mark(act)[0] in sized
    }


def _views(gwp: Gwp, rows: Int) -> tuple[View, ...]:
    at = rows[gwp.op[rows] == operations()["mpi_view"].number]
    if not len(at):
        return ()
    stacked = np.stack([gwp.piece[at], gwp.distance[at], gwp.pieces[at], gwp.tile[at]], axis=1)
    found, counts = np.unique(stacked, axis=0, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:VIEWS_MAX]
    rows_of = ((*found[each].tolist(), int(counts[each])) for each in most.tolist())
    return tuple(View(piece, distance, pieces, tile, weight) for piece, distance, pieces, tile, weight in rows_of)


def _communicators(gwp: Gwp, opens: Int) -> dict[str, int]:
    comm = gwp.comm[opens]
    number, counts = np.unique(comm[comm >= 0], return_counts=True)
    pairs = zip(number.tolist(), counts.tolist(), strict=True)
    return {gwp.communicators[each].text: count for each, count in pairs}


def _slacks(path: Told, rows: Int) -> dict[str, Slack]:
    """ST by operation: opens and closes of both interfaces go by these words."""
    gwp = path.gwp
    found: dict[str, list[Int]] = {}
    for act, at in _groups(path, rows):
        found.setdefault(_ENDS.get(act, act) if gwp.session[at[0]] >= 0 else act, []).append(at)
    return {act: slack_of(np.sort(np.concatenate(at)), gwp.slack_ns) for act, at in found.items()}


def slack_of(rows: Int, slack_ns: Int) -> Slack:
    """The distribution of slack in these rows, in seconds: bursts and pauses where few are long and most are short."""
    seconds = slack_ns[rows] / 1e9
    limit = max(LONG_S, LONG_TIMES * float(np.median(seconds)))
    is_long = seconds >= limit
    count = int(is_long.sum())
    if len(rows) < BURSTS_MIN or count < 2 or count > LONG_SHARE_MAX * len(rows):
        return empirical(seconds)
    places = np.flatnonzero(is_long)
    return Bursts(empirical(seconds[~is_long]), empirical(seconds[is_long]), empirical(np.diff(places, prepend=-1)))
