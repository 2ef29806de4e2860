"""plan.json: what a policy decided, as data that can be read, diffed, edited by hand and validated.

One region stands on one line with its expected cost, DEF's cost and the reason; so does every move between windows. A
hand edit of stripes, lengths or comments survives reading and writing; sums (`target_bytes`, `expected`, a window's
figures) are the policy's and only checked. The schema is drawn in docs/formats.md.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..files.fields import Fields, read_json
from ..files.parts import write_durably
from ..layout import Region, Stripes, parse_regions, target_bytes
from ..units import OFFSET_BYTES_MAX
from .made_as import glob_problem
from .migrations import SECONDS_MAX, Migration, Move, dump_migrations, moved_layout, parse_migrations
from .mpi_way import MpiWay, parse_way
from .replicas import PlannedReplicas, dump_replicas, parse_replicas

VERSION = 1
#: What errors ask for in place of something else.
A_PLAN = "a plan that 'stripewise plan -o' wrote"


@dataclass(frozen=True)
class RegionPlan:
    """One region: where it goes, what its requests cost there and under DEF (seconds), and why."""

    start: int
    len: int
    stripes: Stripes
    cost_s: float = 0.0
    cost_def_s: float = 0.0
    reason: str = ""
    comment: str = ""

    @property
    def region(self) -> Region:
        """The region without its prices."""
        return Region(self.start, self.len, self.stripes)


@dataclass(frozen=True)
class FilePlan:
    """One file: `id` is the store's name for it when it is known, `size` its bytes when it was planned.

    `made_as` is the glob of the names with which programs make it anew; empty where they do not.
    """

    path: str
    id: str | None
    size: int
    regions: tuple[RegionPlan, ...]
    comment: str = ""
    made_as: str = ""

    @property
    def layout(self) -> tuple[Region, ...]:
        """The regions without their prices."""
        return tuple(region.region for region in self.regions)


@dataclass(frozen=True)
class WindowFigures:
    """A window of several, in figures; `static` means that every region had stayed where it lies in window 0.

    Requests are counted after cutting at region borders, costs are sums of request costs in seconds without copies.
    """

    requests: int
    hybrid_regions: int
    hybrid_requests: int
    hybrid_requests_static: int
    cost_s: float
    cost_static_s: float


@dataclass(frozen=True)
class Window:
    """A span of the trace that the plan is for, ns of the trace's clock."""

    start_ns: int
    end_ns: int
    figures: WindowFigures | None = None


def _times(before_s: float | None, after_s: float | None) -> float | None:
    """How many times shorter `after_s` is; None where either is missing or nothing."""
    return before_s / after_s if before_s and after_s else None


@dataclass(frozen=True)
class Expected:
    """Sums over all requests in seconds: the model's cost, and the bound on the makespan; each also under DEF.

    What only policies that optimise tell, else None: `objective_s` is the least bound that was found, `proven_s` what
    no layout undercuts where every access pays its startup, `proven_continued_s` what none does even if every access
    continues the one before it; `gain_low` and `gain_high` hold the factor over DEF with nine chances in ten, as far as
    the devices' figures are known; `simulated_s` and `simulated_def_s` are simulated runs of the requests
    with the program's own time in between, `simulated_io_s` and `simulated_io_def_s` their seconds with reads and those
    with writes under way, added.
    `measured_gain` is what `tune` measured: DEF's I/O time over that with the plan; None without it.
    """

    cost_s: float
    cost_def_s: float
    bound_s: float = 0.0
    bound_def_s: float = 0.0
    objective_s: float | None = None
    proven_s: float | None = None
    proven_continued_s: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    simulated_s: float | None = None
    simulated_def_s: float | None = None
    simulated_io_s: float | None = None
    simulated_io_def_s: float | None = None
    measured_gain: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything is expected of the plan: not so of one that was written, or changed, by hand."""
        return self.bound_def_s > 0 or self.cost_def_s > 0

    @property
    def gain(self) -> float:
        """How many times cheaper than DEF the model thinks the plan is."""
        return self.cost_def_s / self.cost_s if self.cost_s > 0 else 1.0

    @property
    def bound_gain(self) -> float:
        """How many times shorter than DEF's the bound on the makespan is."""
        return self.bound_def_s / self.bound_s if self.bound_s > 0 else 1.0

    @property
    def gap(self) -> float | None:
        """By what share the best bound that was found may be too long; None where nothing is proven."""
        if self.objective_s is None or self.proven_s is None:
            return None
        if self.proven_s <= 0:
            return 0.0 if self.objective_s <= 0 else None
        return max(0.0, self.objective_s / self.proven_s - 1)

    @property
    def simulated_gain(self) -> float | None:
        """How many times shorter than DEF's the simulated run is; None where none was made."""
        return _times(self.simulated_def_s, self.simulated_s)

    @property
    def simulated_io_gain(self) -> float | None:
        """The same of the I/O time alone, as `tune` measures it; None where it was not simulated."""
        return _times(self.simulated_io_def_s, self.simulated_io_s)

    @property
    def likely_gain(self) -> float:
        """How many times as fast as DEF the I/O is expected to be: by simulated runs, or else by the bound."""
        found = (self.simulated_io_gain, self.simulated_gain)
        return next((gain for gain in found if gain is not None), self.bound_gain)

    def optional(self) -> dict[str, float]:
        """What only policies that optimise tell, and `tune`, by key."""
        found = {key: getattr(self, key) for key in OPTIONAL}
        return {key: value for key, value in found.items() if value is not None}


#: The keys of `expected` that may be missing.
OPTIONAL = (
    "objective_s", "proven_s", "proven_continued_s", "gain_low", "gain_high", "simulated_s", "simulated_def_s",
    "simulated_io_s", "simulated_io_def_s", "measured_gain",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    policy: str
    options: Mapping[str, Any]
    cluster_digest: str
    command: tuple[str, ...]
    processes: int
    windows: tuple[Window, ...]
    files: tuple[FilePlan, ...]
    target_bytes: Mapping[str, int]
    expected: Expected
    comment: str = field(default="")
    migrations: tuple[Migration, ...] = ()
    #: No layout is expected to beat DEF: `apply` leaves the files where they lie.
    leave: bool = False
    #: Copies that `apply` makes beside the layouts.
    replicas: PlannedReplicas | None = None
    #: How runs that follow it carry out MPI-IO; None: as the program makes it.
    mpi: MpiWay | None = None

    def layout_in_window(self, file: FilePlan | str, window: int) -> tuple[Region, ...]:
        """All regions of a file (or of the file at a path), the last one repeating, as they lie in window `window`.

        Window 0 is the initial placement; past the last window everything stays as it is there. Raises PlanError for a
        path that is not planned.
        """
        path = file if isinstance(file, str) else file.path
        for planned in self.files:
            if planned.path == path:
                return moved_layout(planned.layout, self.moves_until(path, window))
        raise PlanError(f"'{path}' is not in the plan; plan a trace that touches it")

    def moves_until(self, path: str, window: int) -> Iterator[Move]:
        """The moves of one file that have been made when window `window` is served."""
        for migration in self.migrations:
            if migration.window <= window:
                yield from (move for move in migration.moves if move.file == path)

    def bytes_per_target(self) -> dict[str, int]:
        """Bytes that each target holds in window 0, when the plan is applied, from the regions as they stand."""
        held: dict[str, int] = {}
        for file in self.files:
            for name, count in target_bytes(file.layout, file.size).items():
                held[name] = held.get(name, 0) + count
        return held


def layout_digest(files: Iterable[FilePlan], migrations: Iterable[Migration]) -> str:
    """What a plan's expectations are of: 16 hexadecimal digits of the SHA-256 of its files, regions and moves."""
    digest = hashlib.sha256()

    def take(name: str, number: int, regions: Iterable[RegionPlan | Move]) -> None:
        rows = [f"{name!r} {number:d}"]
        rows += [f"{each.start:d} {each.len:d} {[(on, int(width)) for on, width in each.stripes]}" for each in regions]
        digest.update("\n".join([*rows, ""]).encode("utf-8", "surrogatepass"))

    for file in files:
        take(file.path, file.size, file.regions)
    for migration in migrations:
        for move in migration.moves:
            take(move.file, migration.window, [move])
    return digest.hexdigest()[:16]


def dump_plan(plan: Plan) -> str:
    """The plan as JSON text, one region per line."""
    head = {
        "version": VERSION,
        "policy": plan.policy,
        **({"comment": plan.comment} if plan.comment else {}),
        **({"leave": True} if plan.leave else {}),
        **({} if plan.mpi is None else {"mpi": plan.mpi.as_json()}),
        "options": dict(plan.options),
        "cluster_digest": plan.cluster_digest,
        "application": {"command": list(plan.command), "processes": plan.processes},
        "windows": [_window_json(window) for window in plan.windows],
        "target_bytes": dict(plan.target_bytes),
        "expected": {
            "cost_s": plan.expected.cost_s,
            "cost_def_s": plan.expected.cost_def_s,
            "gain": plan.expected.gain,
            "bound_s": plan.expected.bound_s,
            "bound_def_s": plan.expected.bound_def_s,
            "bound_gain": plan.expected.bound_gain,
            **plan.expected.optional(),
            **({} if plan.expected.gap is None else {"gap": plan.expected.gap}),
            **({"layout": layout_digest(plan.files, plan.migrations)} if plan.expected.is_known else {}),
        },
    }
    lines = ["{"]
    lines += [f'  "{key}": {json.dumps(value)},' for key, value in head.items()]
    lines.append('  "files": [')
    for number, file in enumerate(plan.files):
        top: dict[str, Any] = {"path": file.path}
        if file.id is not None:
            top["id"] = file.id
        top["size"] = file.size
        if file.made_as:
            top["made_as"] = file.made_as
        if file.comment:
            top["comment"] = file.comment
        inner = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in top.items())
        lines.append(f'    {{{inner}, "regions": [')
        rows = [f"      {json.dumps(_region_json(region))}" for region in file.regions]
        lines.append(",\n".join(rows))
        lines.append("    ]}" + ("," if number + 1 < len(plan.files) else ""))
    lines.append("  ]")
    for more in (
        dump_migrations(plan.migrations) if plan.migrations else [],
        [] if plan.replicas is None else dump_replicas(plan.replicas),
    ):
        if more:
            lines[-1] += ","
            lines += more
    return "\n".join([*lines, "}"]) + "\n"


def _window_json(window: Window) -> dict[str, Any]:
    span = {"start_ns": window.start_ns, "end_ns": window.end_ns}
    return span if window.figures is None else {**span, **asdict(window.figures)}


def _region_json(region: RegionPlan) -> dict[str, Any]:
    data: dict[str, Any] = {
        "start": region.start,
        "len": region.len,
        "stripes": [list(stripe) for stripe in region.stripes],
        "cost_s": region.cost_s,
        "cost_def_s": region.cost_def_s,
        "reason": region.reason,
    }
    if region.comment:
        data["comment"] = region.comment
    return data


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Writes plan.json; a reader sees the old file or the new one, never half of one."""
    target = Path(path)
    try:
        write_durably(target, dump_plan(plan))
    except OSError as error:
        raise PlanError(f"{target}: cannot be written ({error.strerror}); choose another place with -o") from error


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Reads and validates plan.json; PlanError naming file, key and cure."""
    source = Path(path)
    return plan_from_json(read_json(source, PlanError, A_PLAN), source)


def plan_from_json(data: Any, source: Path | str) -> Plan:
    """The plan in a JSON object; `source` names the file in errors."""
    top = Fields(data, source, "", PlanError)
    if "version" not in top.data:
        raise PlanError(f"{source}: is no plan, for it has no version; give {A_PLAN}")
    version = top.integer("version", 1, 2**31)
    if version > VERSION:
        raise top.error("version", f"= {version} is newer than this program knows ({VERSION})", "upgrade stripewise")
    top.only(
        {"version", "policy", "comment", "leave", "options", "cluster_digest", "application", "windows", "files",
         "target_bytes", "expected", "migrations", "replicas", "mpi"}
    )  # fmt: skip
    application = Fields(top.table("application"), source, "application.", PlanError)
    application.only({"command", "processes"})
    command = application.data.get("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise application.error("command", "is not a list of strings", 'write ["program", "argument"]')
    expected = Fields(top.table("expected"), source, "expected.", PlanError)
    # The gains follow from the sums; they are there for people.
    expected.only({"cost_s", "cost_def_s", "gain", "bound_s", "bound_def_s", "bound_gain", "gap", "layout", *OPTIONAL})
    held = Fields(top.table("target_bytes"), source, "target_bytes.", PlanError)
    windows, files = _windows(top, source), _files(top, source)
    grid = {file.path: file.layout for file in files}
    sizes = {file.path: file.size for file in files}
    moves = parse_migrations(top, source, [window.start_ns for window in windows], grid, sizes)
    made = Plan(
        policy=top.text("policy"),
        options=dict(top.table("options")),
        cluster_digest=top.text("cluster_digest", ""),
        command=tuple(command),
        processes=application.integer("processes", 1, 2**31, 1),
        windows=tuple(windows),
        files=tuple(files),
        target_bytes={str(name): held.integer(str(name), 0, OFFSET_BYTES_MAX) for name in held.data},
        expected=Expected(
            *(_seconds(expected, key) for key in ("cost_s", "cost_def_s", "bound_s", "bound_def_s")),
            **{key: _seconds(expected, key) for key in OPTIONAL if key in expected.data},
        ),
        comment=top.text("comment", ""),
        migrations=moves,
        leave=_leave(top),
        replicas=parse_replicas(top, source),
        mpi=parse_way(top, source),
    )
    if expected.text("layout", "") in ("", layout_digest(files, moves)):
        return made
    # What was expected of other regions says nothing of these, nor do the reasons of those.
    bare = [replace(file, regions=tuple(map(_bare, file.regions))) for file in files]
    return replace(made, files=tuple(bare), expected=Expected(0.0, 0.0), leave=False)


def _bare(region: RegionPlan) -> RegionPlan:
    return replace(region, cost_s=0.0, cost_def_s=0.0, reason="")


def _leave(top: Fields) -> bool:
    leave = top.data.get("leave", False)
    if not isinstance(leave, bool):
        raise top.error("leave", "is neither true nor false", "give one of them, or none")
    return leave


def _seconds(fields: Fields, key: str) -> float:
    return fields.number(key, 0.0, SECONDS_MAX, 0.0)


def _windows(top: Fields, source: Path | str) -> list[Window]:
    windows: list[Window] = []
    figures = {each.name for each in fields_of(WindowFigures)}
    for number, entry in enumerate(top.tables("windows")):
        fields = Fields(entry, source, f"windows[{number}].", PlanError)
        fields.only({"start_ns", "end_ns", *figures})
        low = fields.integer("start_ns", -(2**63), 2**63 - 1)
        if windows and low <= windows[-1].start_ns:
            raise fields.error("start_ns", f"= {low} is not after the window before", "order windows by time")
        high = fields.integer("end_ns", low, 2**63 - 1)
        known = figures & set(entry)
        windows.append(Window(low, high, _figures(fields) if known else None))
    return windows


def _figures(fields: Fields) -> WindowFigures:
    counts = ("requests", "hybrid_regions", "hybrid_requests", "hybrid_requests_static")
    return WindowFigures(
        *(fields.integer(key, 0, 2**63 - 1, 0) for key in counts),
        *(_seconds(fields, key) for key in ("cost_s", "cost_static_s")),
    )


def _files(top: Fields, source: Path | str) -> list[FilePlan]:
    entries = top.tables("files")
    if not entries:
        raise top.error("files", "is empty or missing", "plan a trace that touches a file")
    files: list[FilePlan] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        fields = Fields(entry, source, f"files[{number}].", PlanError)
        fields.only({"path", "id", "size", "regions", "made_as", "comment"})
        path = fields.text("path")
        if path in seen:
            raise fields.error("path", f"= '{path}' is planned twice", "keep one of the two")
        seen.add(path)
        regions = parse_regions(
            fields.items("regions"),
            source,
            f"files[{number}].regions",
            None,
            PlanError,
            frozenset({"cost_s", "cost_def_s", "reason", "comment"}),
        )
        priced = []
        for position, (region, item) in enumerate(zip(regions, fields.items("regions"), strict=True)):
            extra = Fields(item, source, f"files[{number}].regions[{position}].", PlanError)
            priced.append(
                RegionPlan(
                    region.start,
                    region.len,
                    region.stripes,
                    _seconds(extra, "cost_s"),
                    _seconds(extra, "cost_def_s"),
                    extra.text("reason", ""),
                    extra.text("comment", ""),
                )
            )
        identity = None if fields.data.get("id") is None else fields.text("id")
        size = fields.integer("size", 0, OFFSET_BYTES_MAX)
        made_as = fields.text("made_as", "")
        if made_as and (problem := glob_problem(made_as)):
            raise fields.error("made_as", *problem)
        files.append(FilePlan(path, identity, size, tuple(priced), fields.text("comment", ""), made_as))
    return files
