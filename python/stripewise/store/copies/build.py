"""Building the copies of one file: replicas of strided blocks, each on a layout of its own bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import native
from ...layout import Layout, Region, to_indexes
from ...limits import Limits
from ...units import GRANULE_BYTES
from ..store import Store

#: Where records and the names of containers lie in a store (docs/formats.md).
COPIES_DIR = "copies"
#: What RADAR has made, and who decides about it now.
REPLICAS, REPLICAS_LOCK = "replicas.json", "replicate.lock"


@dataclass(frozen=True)
class Blocks:
    """A replica: `block` bytes from `base` on, under loops of (stride, count), outermost first; and their layout."""

    base: int
    block: int
    dims: tuple[tuple[int, int], ...]
    layout: Layout
    #: What writes of a managed file do to it: update, or invalidate.
    on_write: str = "update"


@dataclass(frozen=True)
class Built:
    """What was made of one file."""

    path: str
    #: Device and inode, or the id of a managed file, as `replica ls --json` shows them.
    name: str
    #: The id of the managed file that holds the copies.
    container: str
    replicas: int
    bytes: int
    seconds: float
    #: Whether the very same stood already and still counted: nothing was made.
    is_up_to_date: bool = False
    #: Whether others stood, or such as counted no more, which went.
    has_replaced: bool = False


def build(store: Store, path: str, blocks: Sequence[Blocks], lease: bool, limits: Limits) -> Built:
    """Makes copies of the file at `path`, in place of earlier ones; the same that still count are left alone.

    Raises InUseError while somebody writes a plain file, or has a managed one mapped, NoSpaceError, InvalidError, and
    other StoreErrors; nothing is left then.
    """
    cluster = store.config.cluster
    replicas = [
        {
            "base": each.base,
            "block": each.block,
            "dims": [list(loop) for loop in each.dims],
            "regions": to_indexes(each.layout.regions, cluster)["regions"],
            "on_write": each.on_write,
        }
        for each in blocks
    ]
    spec = json.dumps({"replicas": replicas})
    made = native.call("store_copies_make", str(store.root), os.path.abspath(path), spec, lease, limits.as_json())
    return Built(
        path,
        str(made["name"]),
        str(made["container"]),
        int(made["replicas"]),
        int(made["bytes"]),
        made["seconds"],
        made["earlier"] == "same",
        made["earlier"] == "replaced",
    )


def layout_from(layout: Layout, start: int) -> Layout:
    """The layout of what lies from byte `start` on in a file of this one, as a layout from 0 on.

    Its first region begins with the stripe in which that byte lies, whole.
    """
    regions = layout.regions
    last = regions[-1]
    if start >= last.start + last.len:
        start = last.start + (start - last.start) % last.len
    number = next(n for n, region in enumerate(regions) if start < region.start + region.len)
    inside = start - regions[number].start
    if not inside:
        return Layout(_from_zero(regions[number:]))
    first = regions[number]
    cycle = sum(width for _, width in first.stripes)
    turned, at = first.stripes, inside % cycle
    while at >= turned[0][1]:
        at -= turned[0][1]
        turned = (*turned[1:], turned[0])
    if number + 1 == len(regions) and first.len % cycle == 0:
        return Layout((Region(0, first.len, turned),))
    rest = -(-(first.len - inside) // GRANULE_BYTES) * GRANULE_BYTES
    following = regions[number + 1 :] or (first,)
    return Layout(_from_zero((Region(0, rest, turned), *following)))


def _from_zero(regions: Sequence[Region]) -> tuple[Region, ...]:
    """The same regions one behind the other from 0 on."""
    found: list[Region] = []
    end = 0
    for region in regions:
        found.append(Region(end, region.len, region.stripes))
        end += region.len
    return tuple(found)


def is_container(root: Path, path: str) -> bool:
    """Whether a managed file's recorded name is that of a container of copies."""
    return os.path.dirname(path) == str(root / COPIES_DIR) and path.endswith(".copy")
