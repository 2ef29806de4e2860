"""What makes figures of the model worth less: copies that serve reads, and targets that share a device, were assumed or
have no room; and what so many regions take to move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...cluster import Cluster
from ...errors import StripewiseError
from ...layout import Layout, target_bytes
from ...moving.plan_applier import lacking_room
from ...plan import Plan
from ...setup.remarks import modelled_apart
from ...store import Store
from ...store.copies.listed import Copies
from ...store.copies.of_files import copies_of_files
from ...store.room import read_only_targets
from ...units import command_line, seconds_text
from ...workload.copied import Copied, copied_text

#: From so many regions on what moving them takes is told.
REGIONS_TOLD = 500
#: Targets that a sentence names.
NAMED = 4


def of_copies(
    copied: Mapping[str, Copied], standing: Mapping[str, Copies], store: Path | None, is_measured: bool = False
) -> Iterator[str]:
    """Sentences on files whose reads copies served, or whose copies the store has now, which may serve them, and did in
    runs that were measured.
    """
    words = ["stripewise", "store", "replica", "rm", str(store), *itertools.islice(standing, 1)]
    cure = "" if store is None or not standing else f" (copies are dropped by: {command_line(words)})"
    if said := copied_text(copied):
        yield f"{said}, in the traced run; the plan and its gains are as if the files themselves had{cure}"
    elif standing:
        first = next(iter(standing))
        others = f" and {len(standing) - 1:,} more" if len(standing) > 1 else ""
        worth = "gains are as without them"
        if is_measured:
            worth = "what they serve no layout makes faster, so that measured gains tell less of layouts"
        yield f"{first}{others}: copies stand and may serve reads, whatever the layout; {worth}{cure}"


def standing_copies(store: Store | None, files: Sequence[str]) -> dict[str, Copies]:
    """The copies in use of these files; none where the store cannot tell."""
    try:
        return {} if store is None else copies_of_files(store, files)
    except StripewiseError:
        return {}


def of_lost_targets(store: Store, plan: Plan, lying: Mapping[str, Layout]) -> Iterator[str]:
    """Sentences on targets that are away or read-only and that a plan puts bytes on, or takes them from; `lying` are
    the layouts that its files have now, by path.
    """
    lost = {
        str(row["name"]): f"target {row['name']} is away: {row['away']}" for row in store.devices() if row.get("away")
    }
    lost |= {name: why for name, why in read_only_targets(store).items() if name not in lost}
    put = {name for name, count in plan.bytes_per_target().items() if count}
    put |= {name for moves in plan.migrations for move in moves.moves for name, _ in move.stripes}
    files = ((lying[file.path], file.size) for file in plan.files if file.path in lying)
    held = {name for layout, size in files for name, count in target_bytes(layout.regions, size).items() if count}
    for name, why in lost.items():
        if name in put | held:
            use = "the plan puts bytes on it" if name in put else "the files have bytes on it"
            yield f"{why}; {use}, so 'apply' cannot carry it out until then"


def of_room(store: Store, plan: Plan, ids: Mapping[str, str]) -> str:
    """That no room is there for moves of a plan, whose files have these `ids` by path; empty where there is."""
    try:
        why = lacking_room(store, plan, ids)
    except StripewiseError:
        # A file that has gone meanwhile, or a target that is away: of_lost_targets tells of that.
        return ""
    return f"'apply' cannot carry this plan out now: {why}" if why else ""


def of_regions(plan: Plan, cluster: Cluster) -> Iterator[str]:
    """A sentence on so many regions that moving them takes startups rather than bytes."""
    regions = [region for file in plan.files for region in file.regions]
    if len(regions) < REGIONS_TOLD:
        return
    startups = {each.name: (each.startup_read_s, each.startup_write_s) for each in cluster.targets}
    read_s = sum(startups[each.name][0] for each in cluster.active) / len(cluster.active)
    written_s = sum(max(startups.get(name, (0.0, 0.0))[1] for name, _ in region.stripes) for region in regions)
    total_s = len(regions) * read_s + written_s
    yield (
        f"the layout has {len(regions):,} regions, each of which moves by itself: 'apply', and every later drain or "
        f"rebalance of all of it, has startups of some {seconds_text(total_s)} s beside the bytes"
    )


def of_devices(cluster: Cluster, store: Path | None) -> list[str]:
    """Sentences on targets of the cluster that share a device of this machine, and on those nobody has measured."""
    return [*modelled_apart(cluster.active), *_unmeasured(cluster, store)]


def _unmeasured(cluster: Cluster, store: Path | None) -> Iterator[str]:
    """On directories of this machine with figures that are not measured; those of others may be known otherwise."""
    assumed = [each for each in cluster.active if each.kind == "dir" and not each.calibration and each.path.is_dir()]
    if assumed:
        names = ", ".join(each.name for each in assumed[:NAMED]) + (", ..." if len(assumed) > NAMED else "")
        cure = (
            "" if store is None else f"; {command_line(['stripewise', 'calibrate', '--store', str(store), '--apply'])}"
        )
        yield f"figures of {names} are assumed, none was measured, and so is what the model makes of them{cure}"
