"""Reads profile.json, checks every key and fills in what is left out (docs/formats.md, Profile of a workload)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...errors import WorkloadError
from ...files.fields import Fields, read_json
from ..marks import split_mark
from ..operations import inside, operations
from .distribution import ONE, TWO, ZERO, Distribution, Slack, constant, read_distribution, read_slack
from .mark_reader import Marks, marks_of, no_marks, read_subgroup
from .profile import CLASSES, KINDS, NAMES_MAX, VERSION, Counts, FileClass, Profile, SessionKind, View

_COMMUNICATOR = re.compile("world|self|(blocks|congruent)-[1-9][0-9]{0,6}")
#: Files of a class, sessions of a file, and processes, at most.
COUNT_MAX = 1 << 30
PROCESSES_MAX = 1 << 22
NAME_BYTES_MAX = 1024
_WHAT = "a profile that 'stripewise characterize' wrote, or one written as docs/formats.md says"
#: What a session does where RT1 is left out.
_USUAL = {
    "posix-read": "read0", "posix-write": "write0", "posix-readwrite": "write0", "posix-directory": "readdir",
    "mpi-read": "mpi_read_at", "mpi-write": "mpi_write_at", "mpi-readwrite": "mpi_write_at",
}  # fmt: skip
#: Operations that move no bytes, yet take a size.
_SIZED = {"ftruncate", "truncate", "fallocate", "mpi_set_size", "mpi_preallocate", "mmap"}


def read_profile(path: Path) -> Profile:
    """Reads and checks one. Raises WorkloadError with the file, the key and the cure."""
    return profile_of(read_json(path, WorkloadError, _WHAT), path)


def profile_of(data: Any, source: Path | str) -> Profile:
    """The profile in a JSON value. Raises WorkloadError as `read_profile`."""
    fields = Fields(data, source, "", WorkloadError)
    version = fields.integer("version", 1, COUNT_MAX)
    if version > VERSION:
        raise fields.error("version", f"= {version} is newer than this program knows ({VERSION})", "upgrade stripewise")
    fields.only(
        {
            "version", "tool", "application", "processes", "requests", "duration_s", "anonymous", "subgroups",
            "apart", "together", "classes", "programs",
        }
    )  # fmt: skip
    known = Fields(fields.table("classes"), source, "classes.", WorkloadError)
    known.only(set(CLASSES))
    application = data.get("application")
    if application is not None:
        application = fields.text("application")
    tool = data.get("tool", "")
    if not isinstance(tool, str):
        raise fields.error("tool", f"= {tool!r:.60} is not a string", "write it in quotes")
    subgroups = tuple(read_subgroup(each, source, at) for at, each in enumerate(fields.tables("subgroups")))
    marks = marks_of(subgroups)
    profile = Profile(
        processes=fields.integer("processes", 1, PROCESSES_MAX, 1),
        requests=fields.integer("requests", 0, 1 << 62, 0),
        duration_s=fields.number("duration_s", 0, 1e12, 0.0),
        tool=tool,
        application=application,
        anonymous=_switch(fields, "anonymous"),
        subgroups=subgroups,
        apart=_switch(fields, "apart"),
        together=_together(fields),
        classes={name: _class(known, name, marks) if name in known.data else FileClass() for name in CLASSES},
        programs=data.get("programs"),
    )
    if not any(each.files for each in profile.classes.values()) and not profile.programs:
        raise fields.error("classes", "have no file (OS)", 'write e.g. {"shared": {"OS": 1, "sessions": {...}}}')
    return profile


def _switch(fields: Fields, key: str) -> bool:
    given = fields.data.get(key, False)
    if not isinstance(given, bool):
        raise fields.error(key, f"= {given!r:.60} is neither true nor false", "write true or false")
    return given


def _together(fields: Fields) -> dict[str, float]:
    given = Fields(fields.table("together"), fields.source, "together.", WorkloadError)
    given.only(set(operations()))
    return {op: given.number(op, 0, 1e9) for op in given.data}


def _class(classes: Fields, name: str, marks: Marks) -> FileClass:
    if name == "root":
        marks = no_marks("files of this class are the root's alone")
    fields = Fields(classes.data[name], classes.source, f"classes.{name}.", WorkloadError)
    fields.only({"OS", "OT", "ISG", "FS", "RT2", "ST2", "names", "AM", "sessions"})
    files = fields.integer("OS", 0, COUNT_MAX)
    given = Fields(fields.table("sessions"), fields.source, f"{fields.where}sessions.", WorkloadError)
    marks.only(given, set(KINDS))
    order = sorted(given.data, key=lambda key: KINDS.index(split_mark(key)[0]))
    sessions = {key: _session(given, key, name, marks) for key in order}
    outside = _counts(fields, "RT2", _outside_ops(), "an operation that stands outside sessions", marks)
    first, following = _access(fields, tuple(sessions))
    if "OT" in fields.data:
        open_times = read_distribution(fields, "OT", 0, COUNT_MAX)
    else:
        open_times = constant(1 if sessions else 0)
    # A file that is only the new name of another has none, and says so.
    is_without = open_times.mean() == 0 and (outside or "OT" in fields.data)
    if files and not sessions and not is_without:
        raise fields.error("sessions", "are missing", "describe at least one kind of session, say posix-write")
    return FileClass(
        files=files,
        open_times=open_times,
        session_gap=_or_constant(fields, "ISG", ONE, 1),
        file_size=read_distribution(fields, "FS", 0) if "FS" in fields.data else None,
        outside=outside,
        outside_slack=_slacks(fields, "ST2", _outside_ops(), marks),
        names=_names(fields),
        first=first,
        next=following,
        sessions=sessions,
    )


def _session(kinds: Fields, key: str, file_class: str, marks: Marks) -> SessionKind:
    fields = Fields(kinds.data[key], kinds.source, f"{kinds.where}{key}.", WorkloadError)
    kind, mark = split_mark(key)
    if mark:
        marks = no_marks("all in these sessions is of those who open them")
    places = {"SEQ", "OFF", "SHIFT"}
    own = {each for each in fields.data if "@" in each and marks.name(fields, each) in places}
    fields.only({"D", "IRG", "RT1", "SIZE", "VIEW", "ST", "comm", *places, *own})
    layer = "mpi" if kind.startswith("mpi") else "posix"
    allowed = _allowed(kind)
    following = _following(fields, allowed, marks)
    if not following and "RT1" not in fields.data:
        usual = _USUAL[kind]
        following = {"": {usual: 1}, usual: {usual: 1}}
    used = {op for after in following.values() for op in after}
    size = _by_operation(fields, "SIZE", allowed, marks)
    for op in sorted(used - set(size)):
        name = split_mark(op)[0]
        if name in size:
            size[op] = size[name]
        elif operations()[name].is_data or name in _SIZED:
            raise fields.error(f"SIZE.{op}", "is missing", f'add its bytes, e.g. "SIZE": {{"{op}": 1048576}}')
    communicators: Counts = {}
    if layer == "mpi":
        communicators = _communicators(fields)
        if mark and set(communicators) - {"self"}:
            raise fields.error(
                "comm", "names ranks that do not open the file", "remove it: each of them opens by itself"
            )
        communicators = communicators or {"world" if file_class == "shared" and not mark else "self": 1}
    elif "comm" in fields.data:
        raise fields.error("comm", "stands in a kind without MPI", "remove it")
    return SessionKind(
        duration=_or_constant(fields, "D", TWO, 1),
        request_gap=_or_constant(fields, "IRG", ONE, 1),
        sequential=_place(fields, "SEQ") or ONE,
        following=following,
        offset=_place(fields, "OFF"),
        size=size,
        views=_views(fields, layer),
        shift=_place(fields, "SHIFT") or ZERO,
        slack=_slacks(fields, "ST", {*allowed, "open", "close"}, marks),
        communicators=communicators,
        own={each: read for each in sorted(own) if (read := _place(fields, each)) is not None},
    )


#: Characteristics of places: their least and greatest values.
_BOUNDS = {"SEQ": (0.0, 1.0), "OFF": (0.0, 2.0**62), "SHIFT": (-(2.0**62), 2.0**62)}


def _place(fields: Fields, key: str) -> Distribution | None:
    """SEQ, OFF or SHIFT, of whomever the mark names; None where the key is missing."""
    return read_distribution(fields, key, *_BOUNDS[split_mark(key)[0]]) if key in fields.data else None


def _views(fields: Fields, layer: str) -> tuple[View, ...]:
    if "VIEW" in fields.data and layer != "mpi":
        raise fields.error("VIEW", "stands in a kind without MPI", "remove it")
    found = []
    for at, row in enumerate(fields.tables("VIEW")):
        inner = Fields(row, fields.source, f"{fields.where}VIEW[{at}].", WorkloadError)
        inner.only({"piece", "distance", "pieces", "tile", "weight"})
        piece = inner.integer("piece", 0, 1 << 62)
        pieces = inner.integer("pieces", 0 if piece == 0 else 1, 1 << 40, min(piece, 1))
        distance = inner.integer("distance", piece, 1 << 62, piece)
        if distance * pieces > 1 << 62:
            raise inner.error("pieces", f"= {pieces} reach too far", "give fewer, or a smaller distance")
        tile = inner.integer("tile", max(0, (pieces - 1) * distance + piece), 1 << 62, distance * pieces)
        found.append(View(piece, distance, pieces, tile, inner.number("weight", 0, 1e18, 1)))
    return tuple(found)


def _communicators(fields: Fields) -> dict[str, float]:
    inner = Fields(fields.table("comm"), fields.source, f"{fields.where}comm.", WorkloadError)
    for name in inner.data:
        if not (isinstance(name, str) and _COMMUNICATOR.fullmatch(name)):
            raise inner.error(str(name), "is no communicator", "use world, self, blocks-N or congruent-N")
    return _counts(fields, "comm", set(inner.data), "a communicator", no_marks("a communicator has none"))


def _or_constant(fields: Fields, key: str, default: Distribution, low: int) -> Distribution:
    return read_distribution(fields, key, low) if key in fields.data else default


def _outside_ops() -> set[str]:
    return {each.name for each in operations().values() if each.place != "inside"}


def _allowed(kind: str) -> set[str]:
    """Operations that a session of a kind may have: no write in one that reads, and the reverse."""
    layer, mode = kind.split("-")
    found = inside(layer)
    if mode == "directory":
        return {"readdir", "fstat", "fsync", "fcntl", "seek"} & set(found)
    banned = {"read": "write", "write": "read"}.get(mode)
    return {op for op in found if banned is None or not (operations()[op].is_data and banned in op)}


def _counts(fields: Fields, key: str, known: set[str], what: str, marks: Marks) -> dict[str, float]:
    inner = Fields(fields.table(key), fields.source, f"{fields.where}{key}.", WorkloadError)
    for name in inner.data:
        if name not in known and marks.name(inner, str(name)) not in known:
            raise inner.error(str(name), f"is not {what}", f"use one of {', '.join(sorted(known))}")
    counts = {name: inner.number(name, 0, 1e18) for name in inner.data}
    return {name: int(count) if count.is_integer() else count for name, count in counts.items() if count > 0}


def _following(fields: Fields, allowed: set[str], marks: Marks) -> dict[str, dict[str, float]]:
    """RT1; operations that nothing leads to, or that lead to nothing, are refused: a walk would end there."""
    table = Fields(fields.table("RT1"), fields.source, f"{fields.where}RT1.", WorkloadError)
    what = "an operation of this kind of session"
    for op in table.data:
        if op != "" and marks.name(table, str(op)) not in allowed:
            raise table.error(str(op), f"is not {what}", f"use one of {', '.join(sorted(allowed))}")
    found = {op: _counts(table, op, allowed, what, marks) for op in table.data}
    if found and not found.get(""):
        raise fields.error("RT1", 'does not say what comes after the open (key "")', 'add e.g. "": {"write0": 1}')
    return {op: after for op, after in found.items() if after}


def _by_operation(fields: Fields, key: str, known: set[str], marks: Marks) -> dict[str, Distribution]:
    inner = Fields(fields.table(key), fields.source, f"{fields.where}{key}.", WorkloadError)
    marks.only(inner, known)
    return {op: read_distribution(inner, op, 0) for op in inner.data}


def _slacks(fields: Fields, key: str, known: set[str], marks: Marks) -> dict[str, Slack]:
    inner = Fields(fields.table(key), fields.source, f"{fields.where}{key}.", WorkloadError)
    marks.only(inner, known)
    return {op: read_slack(inner, op) for op in inner.data}


def _access(fields: Fields, kinds: tuple[str, ...]) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    inner = Fields(fields.table("AM"), fields.source, f"{fields.where}AM.", WorkloadError)
    inner.only({"first", "next"})
    what = "a kind of session that this class describes"
    unmarked = no_marks("this class describes no such kind of session")
    first = _counts(inner, "first", set(kinds), what, unmarked) or dict.fromkeys(kinds, 1.0)
    table = Fields(inner.table("next"), fields.source, f"{inner.where}next.", WorkloadError)
    for kind in table.data:
        if kind not in kinds:
            raise table.error(str(kind), f"is not {what}", f"use one of {', '.join(kinds) or 'those in sessions'}")
    following = {kind: _counts(table, kind, set(kinds), what, unmarked) for kind in table.data}
    return first, {kind: following.get(kind) or dict(first) for kind in kinds}


def _is_text(name: Any) -> bool:
    return isinstance(name, str) and not any(0xD800 <= ord(each) < 0xE000 for each in name)


def _names(fields: Fields) -> tuple[str, ...]:
    if "names" not in fields.data:
        return ()
    names = fields.items("names")
    for at, name in enumerate(names):
        key = f"names[{at}]"
        if not _is_text(name) or not 0 < len(name.encode()) <= NAME_BYTES_MAX:
            cure = f"give a string of 1 to {NAME_BYTES_MAX} bytes of UTF-8"
            raise fields.error(key, f"= {name!r:.60} is no name", cure)
        parts = name.split("/")
        if {"", ".", ".."} & set(parts) or any(ord(each) < 32 or ord(each) == 127 for each in name):
            cure = "give a path below the directory of the run, without '.', '..' and control characters"
            raise fields.error(key, f"= {name!r:.60} leads outside", cure)
    if len(names) > NAMES_MAX or len(set(names)) < len(names):
        raise fields.error("names", "are too many, or name a file twice", f"give at most {NAMES_MAX} different ones")
    return tuple(names)
