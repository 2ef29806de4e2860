"""Why parts of a plan lie where they do: what is expected of each, what that costs there, and on other servers.

Said of the plan that is chosen; strategies propose thousands of parts that nobody looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...model.general import Float
from ...plan import Plan
from ...units import exact_size, format_size, round_up
from ...workload.requests import Workload
from ..base import PlanOptions
from ..toolkit.elsewhere import Place, with_seconds
from .expected.heats import FileHeat
from .expected.spans import groups_of_run
from .expected.touched import touched
from .proven.duality import Prices, alike, prices_of
from .proven.kinds import Kinds, kinds_of
from .regions.layout import named
from .strategies.case import Piece
from .tuning import TIED

#: Fewer requests than this are hardly any.
HARDLY = 0.05


def pieces_of(plan: Plan, workload: Workload) -> list[Piece]:
    """The pieces of a plan's files, up to where the files end."""
    number = {file.path: each for each, file in enumerate(workload.files)}
    return [
        Piece(
            number[file.path], region.start, min(region.len, round_up(file.size) - region.start), region.stripes,
            region.reason,
        )
        for file in plan.files
        for region in file.regions
        if region.start < file.size
    ]  # fmt: skip


def explained(
    plan: Plan, heats: Sequence[FileHeat | None], runs: Sequence[Workload], cluster: Cluster, rooms: Float
) -> Plan:
    """The plan with a reason for every region that has none: by the requests of the traced run, of a mean run where
    that has none there; why it lies nowhere else is told by the prices of the least makespan of a mean run."""
    pieces = pieces_of(plan, runs[0])
    if all(piece.reason for piece in pieces):
        return plan
    groups = groups_of_run(heats)
    asked, traced = (touched(pieces, heats, some, groups).sum(axis=1) for some in (runs, runs[:1]))
    kinds, processes = kinds_of(cluster, rooms), max(1, runs[0].processes)
    work = asked @ kinds.figures
    length = np.array([piece.length for piece in pieces], dtype=np.float64)
    rows, _, many = alike(np.column_stack([work, work / processes, length]))
    distinct, alone, bytes_ = np.split(rows, [kinds.count, 2 * kinds.count], axis=1)
    prices = prices_of(distinct, bytes_[:, 0], many, kinds.channels, kinds.rooms, alone)
    names = _kind_names(kinds, cluster)
    kind = {target.name: each for target, each in zip(cluster.active, kinds.of.tolist(), strict=True)}
    texts = {}
    for row, piece in enumerate(pieces):
        # What servers of several kinds do for a piece together is not told by what it costs whole on one.
        here = {kind[name] for name, _ in piece.stripes}
        of = here.pop() if len(here) == 1 else None
        told = traced[row] if _asked_text(traced[row]) else asked[row]
        places = _places(names, told @ kinds.figures, work[row], float(length[row]), processes, prices)
        texts[runs[0].files[piece.file].path, piece.start] = piece.reason or _reason(
            named(piece.stripes, cluster), traced[row], asked[row], of, places, len(piece.stripes)
        )
    files = tuple(
        replace(
            file,
            regions=tuple(
                replace(region, reason=texts.get((file.path, region.start), region.reason)) for region in file.regions
            ),
        )
        for file in plan.files
    )
    return replace(plan, files=files)


def _kind_names(kinds: Kinds, cluster: Cluster) -> list[str]:
    """What a server of every kind is called, by a name where a class has several."""
    members = [cluster.active[int(np.flatnonzero(kinds.of == kind)[0])] for kind in range(kinds.count)]
    classes = ["ssd" if target.is_ssd else target.klass for target in members]
    return [
        f"one {klass}" if classes.count(klass) == 1 else f"one {klass} like {target.name}"
        for klass, target in zip(classes, members, strict=True)
    ]


def _places(
    names: Sequence[str], busy_s: Float, work: Float, length: float, processes: int, prices: Prices
) -> list[Place]:
    """Every kind as a place of a piece: for how long it keeps one server busy, and what is paid for time and room."""
    time = work * prices.second[0] + work / processes * prices.alone[0]
    room = length * prices.byte
    return [Place(*each) for each in zip(names, busy_s.tolist(), time.tolist(), room.tolist(), strict=True)]


def _asked_text(asked: Float) -> str:
    """Startups and bytes of reads and writes in words; empty where there is hardly any."""
    reads, writes, read_bytes, written = asked.tolist()
    return " and ".join(
        f"{format_size(round(moved))} {word} in {f'{count:,.0f}' if count == round(count) else f'{count:.1f}'} accesses"
        for count, moved, word in ((reads, read_bytes, "read"), (writes, written, "written"))
        if count >= HARDLY
    )


def _reason(where: str, traced: Float, mean: Float, here: int | None, places: Sequence[Place], stripes: int) -> str:
    """Why a piece of so many stripes lies where it does: what the traced run asked of it, or where that was nothing
    what a mean run will, and for how long that keeps one server of every kind busy; `here` is the kind of its own, if
    that is one.
    """
    said = _asked_text(traced)
    if not said:
        likely = _asked_text(mean)
        said = f"not used in the traced run, {likely} in a likely one" if likely else ""
    if not said:
        return f"{where}: hardly a request expected"
    # How often requests meet each of several stripes is not known here.
    if here is None or stripes > 1:
        return f"{said}: {where}"
    return with_seconds(f"{said}: {where}", places[here], [*places[:here], *places[here + 1 :]])


def as_other(chosen: Plan, plans: Sequence[Plan], windows: int, asked: PlanOptions) -> str:
    """Why another policy's plan was chosen, with the options that make it, where these are not those `asked` for; of
    one window also where moves between several were asked for.
    """
    flags = [
        f"--{name}-size {exact_size(size)}"
        for name, own in (("stripe", asked.stripe_bytes), ("step", asked.step_bytes))
        if isinstance(size := chosen.options.get(f"{name}_bytes"), int) and size != own
    ]
    # DEF and its kin have no search that a step is for.
    flags = [flag for flag in flags if chosen.policy != "def" or flag.startswith("--stripe")]
    made = f" with {' '.join(flags)}" if flags else ""
    least = f"of {len(plans):,} layouts none had a run that was shorter by more than {TIED:.1%} in simulation"
    said = f"this is the layout that {chosen.policy} proposes{made}: {least}"
    if windows == 1 or len(chosen.windows) > 1:
        return said
    if any(plan.migrations for plan in plans):
        return f"{said}, those with moves between the {windows:,} windows among them"
    return f"{said}; none that was found moves anything between the {windows:,} windows"
