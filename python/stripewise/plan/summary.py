"""A plan in figures, as verbs print it and programs read it: what it holds, expects, and does in every window."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..layout import region_json
from ..units import command_line, format_size
from .document import Expected, Plan, Window, WindowFigures
from .migrations import DIRECTIONS, Migration
from .region_table import ENTRY_BYTES


def _share(part: float, whole: float) -> float:
    """`part` of `whole`; 0 where there is nothing."""
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class WindowSummary:
    """One window: `moves` by direction at its beginning, what they copy, and the window's figures where they are known.

    `start_s` counts from the first window, `moved_share` is of all planned bytes, `copy_cost_s` modelled seconds.
    """

    number: int
    start_s: float
    moves: Mapping[str, int]
    moved_bytes: int
    moved_share: float
    copy_cost_s: float
    figures: WindowFigures | None

    @property
    def hybrid_share(self) -> float:
        """The share of requests that hybrid servers serve."""
        return 0.0 if self.figures is None else _share(self.figures.hybrid_requests, self.figures.requests)

    @property
    def hybrid_share_static(self) -> float:
        """The same had every region stayed as in window 0."""
        return 0.0 if self.figures is None else _share(self.figures.hybrid_requests_static, self.figures.requests)

    def as_json(self) -> dict[str, Any]:
        """The window as `plan --json` prints it."""
        row: dict[str, Any] = {
            "window": self.number,
            "start_s": self.start_s,
            **{f"moves_{direction}": count for direction, count in self.moves.items()},
            "moved_bytes": self.moved_bytes,
            "moved_share": self.moved_share,
            "copy_cost_s": self.copy_cost_s,
        }
        if self.figures is not None:
            row |= {
                "requests": self.figures.requests,
                "hybrid_regions": self.figures.hybrid_regions,
                "hybrid_share": self.hybrid_share,
                "hybrid_share_static": self.hybrid_share_static,
                "cost_s": self.figures.cost_s,
                "cost_static_s": self.figures.cost_static_s,
            }
        return row


@dataclass(frozen=True)
class MigrationGain:
    """How many times cheaper the moves make all windows than staying as in window 0, without and with the copies."""

    requests_only: float
    with_copies: float


@dataclass(frozen=True)
class PlanSummary:
    """A plan in figures; `table_*` are about the region mapping table, `migration_gain` is of plans with figures.

    `window_ns` is the length of windows that was asked for, None for a plan without; `fits_window` is whether the run
    surely had no more than one of them.
    """

    policy: str
    files: int
    regions: int
    target_bytes: Mapping[str, int]
    expected: Expected
    windows: tuple[WindowSummary, ...]
    migration_gain: MigrationGain | None
    table_entries: int
    table_bytes: int
    window_ns: int | None = None
    fits_window: bool = False

    @property
    def later_moves(self) -> int:
        """Moves during the run, after window 0."""
        return sum(sum(window.moves.values()) for window in self.windows if window.number)

    def as_json(self) -> dict[str, Any]:
        """The plan as `plan --json` prints it."""
        return {
            "policy": self.policy,
            "files": self.files,
            "regions": self.regions,
            "target_bytes": self.target_bytes,
            "expected": {
                **asdict(self.expected),
                "gain": self.expected.gain,
                "bound_gain": self.expected.bound_gain,
                "likely_gain": self.expected.likely_gain,
            },
            "windows": [window.as_json() for window in self.windows],
            "rmt": {"entries": self.table_entries, "bytes": self.table_bytes},
        }


#: A plan below this factor over DEF is expected to lose: rounding, or a tie, is no loss.
LOSES = 0.99
#: A range of the model's that is wider than this factor has one digit.
ROUGH = 1.5
#: The whole run is told beside its I/O, where reads and writes overlap in it so that it differs by more than this.
NEAR = 1.1


def why_left(plan: Plan) -> str:
    """Why files should stay where they lie rather than move as the plan has them; empty where they should move.

    The one rule of `plan`, which then proposes no `apply`, and of `apply`, which then wants --anyway.
    """
    if plan.replicas is not None:
        with_copies = plan.replicas.gain
        if with_copies is None or with_copies >= LOSES:
            return ""
        return f"is expected to be {with_copies:.2f} times as fast as def, with its copies"
    if plan.leave:
        return "no layout is expected to be faster than def"
    gain = plan.expected.likely_gain
    return f"is expected to be {gain:.2f} times as fast as def" if gain < LOSES else ""


def likely_text(expected: Expected) -> str:
    """How many times as fast as def a plan is likely to be, how sure that is, and what says so."""
    if expected.simulated_gain is None:
        return f"{expected.bound_gain:.2f} times as fast as def (the bound alone, no simulated runs)"
    io = "" if expected.simulated_io_gain is None else " in I/O"
    low, high = model_range(expected)
    ends = range_text(expected)
    said = ends if " to " in ends else f"about {ends}"
    known = ", as far as the devices' figures are known" if expected.gain_low and expected.gain_high else ""
    run = expected.simulated_gain
    whole = f", {run:.2f} for the whole simulated run" if io and run and not low / NEAR <= run <= high * NEAR else ""
    return f"{said} times as fast as def{io}{whole} (simulated runs of the traced requests{known})"


def range_text(expected: Expected) -> str:
    """`model_range` in words; one number where its ends are told by the same."""
    low, high = model_range(expected)
    digits = 2 if high <= low * ROUGH else 1
    ends = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return f"{expected.likely_gain:.2f}" if ends[0] == ends[1] else " to ".join(ends)


def model_range(expected: Expected) -> tuple[float, float]:
    """From where to where the factor over def is by the model, as far as the devices' figures are known."""
    found = [expected.likely_gain]
    if expected.gain_low and expected.gain_high and expected.bound_gain > 0:
        share = expected.likely_gain / expected.bound_gain
        found += [share * expected.gain_low, share * expected.gain_high]
    return min(found), max(found)


def likely_lines(expected: Expected, shares: Sequence[float] = ()) -> Iterator[str]:
    """The model's factor, and the measured one where it is known; else what is known of the model, such as the
    `shares` of its factors that tunes of the same store measured. A sentence each.
    """
    if not expected.is_known:
        yield (
            "how fast it is nobody has told: it was written, or changed, by hand; 'stripewise simulate --trace TRACE "
            "--cluster STORE --plan PLAN' tells it for a trace"
        )
        return
    yield f"by the model {likely_text(expected)}"
    if expected.measured_gain is not None:
        yield f"measured by tune: {expected.measured_gain:.2f} times as fast as def"
    elif shares:
        of = f"{shares[0]:.2f}" if len(shares) == 1 else f"{shares[0]:.2f} to {shares[-1]:.2f}"
        plans = "the plan that a tune" if len(shares) == 1 else f"the {len(shares):,} plans that tunes"
        yield f"not measured: {plans} kept in this store gained {of} times what the model had said"
    else:
        yield (
            "not measured: the model has devices alone, so programs, library and caches make a run gain less, or "
            "nothing; 'stripewise tune' measures it"
        )


def windows_text(plan: PlanSummary) -> str:
    """How many windows a plan has, how long they are, and what moves between them; empty where none were asked for."""
    count, length = len(plan.windows), "" if plan.window_ns is None else f"{plan.window_ns / 1e9:g} s"
    if count < 2:
        why = f", for all requests start within {length}" if plan.fits_window else ", the whole run"
        return f"windows: 1{why}; nothing moves during the run" if length else ""
    moves = sum(sum(window.moves.values()) for window in plan.windows)
    moved = format_size(sum(window.moved_bytes for window in plan.windows))
    what = f"{moves:,} move(s) of a region between them, {moved} in all" if moves else "nothing moves between them"
    return f"windows: {count:,}{f' of {length} each' if length else ''}; {what}"


def run_moving(plan: Path, store: str | Path) -> str:
    """The command that runs a program with a mover that follows the plan."""
    return f"{command_line(['stripewise', 'run', '--store', str(store), '--migrate', str(plan)])} -- CMD"


def layouts_json(plan: Plan) -> list[dict[str, Any]]:
    """Where the plan puts every file to begin with, as `plan --json` prints it."""
    return [
        {"path": file.path, "size": file.size, "regions": [region_json(region) for region in file.layout]}
        for file in plan.files
    ]


def _in_order(held: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """Targets as `names` has them; others behind, those that are numbered by their numbers."""
    place = {name: number for number, name in enumerate(names)}

    def key(name: str) -> tuple[int, list[tuple[int, str]]]:
        parts = re.findall(r"[0-9]+|[^0-9]+", name)
        return place.get(name, len(place)), [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return {name: held[name] for name in sorted(held, key=key)}


def summary_of(plan: Plan, targets: Sequence[str] = ()) -> PlanSummary:
    """The figures of a plan, `targets` in that order; O(regions + moves)."""
    by_window = {migration.window: migration for migration in plan.migrations}
    planned_bytes = sum(file.size for file in plan.files)
    regions = sum(len(file.regions) for file in plan.files)
    # One for every region where it lies first, and one for every move.
    entries = regions + sum(len(migration.moves) for migration in plan.migrations)
    window_ns = _window_ns(plan)
    return PlanSummary(
        policy=plan.policy,
        files=len(plan.files),
        regions=regions,
        target_bytes=_in_order(plan.bytes_per_target(), targets),
        expected=plan.expected,
        windows=tuple(
            _window(number, window, plan.windows[0].start_ns, by_window.get(number), planned_bytes)
            for number, window in enumerate(plan.windows)
        ),
        migration_gain=_migration_gain(plan),
        table_entries=entries,
        table_bytes=ENTRY_BYTES * entries,
        window_ns=window_ns,
        fits_window=window_ns is not None
        and bool(plan.windows)
        and plan.windows[-1].end_ns - plan.windows[0].start_ns <= window_ns,
    )


def _window_ns(plan: Plan) -> int | None:
    """As the plan's options have it, which nobody checks."""
    found = plan.options.get("window_ns")
    return found if isinstance(found, int) and found > 0 else None


def _window(
    number: int, window: Window, first_ns: int, migration: Migration | None, planned_bytes: int
) -> WindowSummary:
    moves = migration.moves if migration else ()
    directions = Counter(move.direction for move in moves)
    moved_bytes = migration.moved_bytes if migration else 0
    return WindowSummary(
        number=number,
        start_s=(window.start_ns - first_ns) / 1e9,
        moves={direction: directions[direction] for direction in DIRECTIONS},
        moved_bytes=moved_bytes,
        moved_share=_share(moved_bytes, planned_bytes),
        copy_cost_s=sum(move.cost_s for move in moves),
        figures=window.figures,
    )


def _migration_gain(plan: Plan) -> MigrationGain | None:
    known = [window.figures for window in plan.windows if window.figures is not None]
    if not known:
        return None
    moving, static = sum(each.cost_s for each in known), sum(each.cost_static_s for each in known)
    copies = sum(move.cost_s for migration in plan.migrations for move in migration.moves)
    return MigrationGain(_share(static, moving), _share(static, moving + copies))
