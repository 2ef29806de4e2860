"""`stripewise plan --replicas`: copies chosen beside layouts, and what a plan says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...cluster import Cluster
from ...errors import UsageError
from ...pattern import report_as_asked
from ...plan import Plan, PlannedReplicas
from ...policy import PlanOptions, Policy
from ...replicas import MANAGERS, Options, accesses_of
from ...replicas.jointly import Joint, Tried, Wanted, plan_jointly
from ...units import format_size, parse_size, seconds_text
from ...workload import Workload
from ...workload.counted import Choice
from ..options import names_completed
from ..output import aligned, printable, wrapped
from .options import WindowOptions

#: Copies that are shown; -o and --json have all.
COPIES_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class CopyOptions:
    """Copies beside the layouts, and who chooses them."""

    replicas: Annotated[
        str | None,
        typer.Option(
            "--replicas",
            metavar="SIZE",
            help="Space for copies beside the layouts, which best weighs against better layouts (default: no copies).",
        ),
    ] = None
    manager: Annotated[
        str,
        typer.Option(
            "--manager",
            metavar="NAME",
            help=f"Who chooses copies: {', '.join(MANAGERS)}.",
            autocompletion=names_completed(MANAGERS),
        ),
    ] = "radar"
    read_ahead: Annotated[
        str,
        typer.Option("--read-ahead", metavar="SIZE", help="Read-ahead of servers in simulated runs with copies."),
    ] = "0"

    def check(self, windows: WindowOptions, keep: bool) -> None:
        """UsageError for what goes without copies or against them."""
        if self.manager not in MANAGERS:
            raise UsageError(f"--manager: '{self.manager}' is not known; give one of {', '.join(MANAGERS)}")
        if self.replicas is None:
            given = [flag for flag, value, default in self._others() if value != default]
            if given:
                raise UsageError(f"{given[0]}: is for copies; give --replicas SIZE too")
            return
        if windows.window is not None:
            raise UsageError("--replicas: copies stand for the whole run; leave out --window")
        if keep:
            raise UsageError("--keep: runs follow layouts alone; write the plan with -o, and 'apply' makes its copies")
        self.wanted()

    @property
    def space_bytes(self) -> int:
        """What copies may take. UsageError for a bad size."""
        return parse_size(self.replicas or "0", "--replicas")

    def wanted(self) -> Wanted:
        """As the search takes it. Raises UsageError for a bad size."""
        return Wanted(self.manager, Options(self.space_bytes), parse_size(self.read_ahead, "--read-ahead"))

    def jointly(
        self, trace: Path, choice: Choice, workload: Workload, on: tuple[Cluster, Policy, PlanOptions]
    ) -> Joint:
        """The layouts and copies of a run."""
        cluster, policy, options = on
        found = accesses_of(report_as_asked(trace, choice))
        return plan_jointly(workload, found, cluster, policy, options, self.wanted())

    def _others(self) -> tuple[tuple[str, str, str], ...]:
        return ("--manager", self.manager, "radar"), ("--read-ahead", self.read_ahead, "0")


def copies_lines(made: PlannedReplicas) -> Iterator[str]:
    """What the copies of a plan are worth, and the first of them."""
    count = len(made.all)
    replicas = f"{count:,} replica{'' if count == 1 else 's'}"
    gain = "" if made.gain is None else f", {made.gain:.2f} times as fast as def"
    yield wrapped(
        f"copies ({made.manager}): {replicas}, {format_size(made.bytes)} of space; simulated I/O of the traced run "
        f"{seconds_text(made.simulated_io_s)} s{gain}; from these layouts alone {seconds_text(made.alone_io_s)} s"
    )
    for each in made.all[:COPIES_SHOWN]:
        yield wrapped(printable(f"copy of {each['file']}: {each.get('pattern', 'a pattern')}"), "  ")
    if count > COPIES_SHOWN:
        yield f"  and {count - COPIES_SHOWN:,} more"


def copies_json(joint: Joint, plan: Plan) -> dict[str, Any]:
    """What `plan --json` has of copies: those of the plan, null where it has none, and all that was tried."""
    made = plan.replicas
    tried = [{**each.as_json(), "chosen": each is joint.chosen} for each in joint.tried]
    if made is None:
        return {"replicas": None, "tried": tried}
    figures = {"simulated_s": made.simulated_s, "simulated_io_s": made.simulated_io_s}
    figures |= {"alone_io_s": made.alone_io_s, "def_io_s": made.def_io_s, "bytes": made.bytes}
    return {"replicas": {**made.as_decision(), **figures}, "tried": tried}


def tried_lines(joint: Joint) -> Iterator[str]:
    """All that was tried, simulated, what was chosen marked."""
    rows = [
        (
            f"{each.home}{' *' if each is joint.chosen else ''}",
            f"{each.left:.0%}" if each.left else "-",
            each.copies,
            format_size(each.copied_bytes) if each.copied_bytes else "-",
            f"{each.run_s:#.3g}",
            f"{each.io_s:#.3g}",
        )
        for each in joint.tried
    ]
    ahead = "no read-ahead of servers (--read-ahead)" if not joint.read_ahead_bytes else "the read-ahead that was given"
    yield wrapped(
        f"tried, simulated with {ahead} (*: chosen, the quickest; of runs within 1 % of it the one with the least I/O "
        "time, then with the least to copy; room: part of SIZE that layouts leave on SSDs of limited capacity):"
    )
    yield from aligned(("layouts", "room", "copies", "space", "run s", "I/O s"), rows)
    if not joint.chosen.decision.chosen:
        yield wrapped(_why_none(joint.chosen, joint))


def _why_none(chosen: Tried, joint: Joint) -> str:
    others = [each for each in joint.tried if each.decision.chosen]
    if others:
        return "no copies: none of these is quicker than layouts alone"
    reasons = sorted({each.reason for one in joint.tried for each in one.decision.refused})
    return printable("no copies: " + (reasons[0] if reasons else "no pattern of this run is worth one"))
