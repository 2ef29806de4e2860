"""What makes figures of the model worth less: copies that serve reads, targets that share a device or were assumed, and
processes that work in turns.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

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
from ...workload import Workload
from ...workload.copied import Copied, copied_text

#: Processes over those at work at one time, from which on simulated runs are of another program.
FEW = 1.5
#: Targets that a sentence names.
NAMED = 4


def of_copies(copied: Mapping[str, Copied], standing: Mapping[str, Copies], store: Path | None) -> Iterator[str]:
    """Sentences on files whose reads copies served, or whose copies the store has now, which may serve them."""
    words = ["stripewise", "store", "replica", "rm", str(store), *itertools.islice(standing, 1)]
    cure = "" if store is None or not standing else f" (copies are dropped by: {shlex.join(words)})"
    if said := copied_text(copied):
        yield f"{said}, in the traced run; the plan and its gains are as if the files themselves had{cure}"
    elif standing:
        first = next(iter(standing))
        others = f" and {len(standing) - 1:,} more" if len(standing) > 1 else ""
        yield f"{first}{others}: copies stand and may serve reads, whatever the layout; gains are as without them{cure}"


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


def of_devices(cluster: Cluster, store: Path | None) -> list[str]:
    """Sentences on targets of the cluster that share a device of this machine, and on those nobody has measured."""
    return [*modelled_apart(cluster.active), *_unmeasured(cluster, store)]


def of_turns(workload: Workload) -> Iterator[str]:
    """A sentence on a run whose processes were never all at work: simulated ones begin at once."""
    tables = [file.requests for file in workload.files]
    ranks = np.concatenate([table["rank"] for table in tables])
    found, number = np.unique(ranks, return_inverse=True)
    begun = np.full(len(found), np.iinfo(np.int64).max)
    ended = np.full(len(found), np.iinfo(np.int64).min)
    np.minimum.at(begun, number, np.concatenate([table["start_ns"] for table in tables]))
    np.maximum.at(ended, number, np.concatenate([table["end_ns"] for table in tables]))
    # One that ends as another begins leaves first.
    times = np.concatenate([ended, begun])
    order = np.argsort(times, kind="stable")
    steps = np.where(order < len(found), -1, 1)
    beside = int(np.cumsum(steps).max(initial=0))
    if beside and (ended > begun).all() and beside * FEW <= len(found):
        yield (
            f"of its {len(found):,} processes at most {beside:,} were at work at one time, one after another, while "
            "simulated ones begin at once and wait for each other: simulated seconds are too many, and factors others"
        )


def _unmeasured(cluster: Cluster, store: Path | None) -> Iterator[str]:
    """On directories of this machine with figures that are not measured; those of others may be known otherwise."""
    assumed = [each for each in cluster.active if each.kind == "dir" and not each.calibration and each.path.is_dir()]
    if assumed:
        names = ", ".join(each.name for each in assumed[:NAMED]) + (", ..." if len(assumed) > NAMED else "")
        cure = "" if store is None else f"; {shlex.join(['stripewise', 'calibrate', '--store', str(store), '--apply'])}"
        yield f"figures of {names} are assumed, none was measured, and so is what the model makes of them{cure}"
