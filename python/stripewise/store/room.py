"""Room on a store's targets, and the layout that files get by it: the library's own rule (crates/layout, spread.rs)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .. import native
from ..cluster import Cluster
from ..layout import Layout, Region, Stripes, from_indexes, to_indexes
from .store import Store

#: A file that fills such a part of all room, on the targets that new files use, need not be laid out anew.
FILLS = 0.9
#: A target with a smaller part of the room of the largest is told of.
SMALL = 0.25


def room_bytes(store: Store) -> dict[str, int]:
    """Bytes that each target can take when all do; those on one file system share what is free there."""
    return {str(row["name"]): int(row["free_bytes"] or 0) for row in store.devices()}


def spread(template: Layout, cluster: Cluster, room: Mapping[str, int], identity: str) -> Layout:
    """What the file `identity` gets in place of the store's default layout on targets with so much room."""
    rooms = [room.get(target.name, 0) for target in cluster.targets]
    text = json.dumps(to_indexes(template.regions, cluster))
    return from_indexes(native.call("store_spread", text, rooms, int(identity, 16)), cluster)


def is_default(regions: tuple[Region, ...], template: Layout) -> bool:
    """Whether nobody gave a file its layout: it has one cycle throughout, of the template's widths or unequal ones, or
    a head of the template's stripes before an unequal tail.
    """
    if len({region.stripes for region in regions}) == 1:
        widths = {width for _, width in regions[0].stripes}
        return len(widths) > 1 or widths <= {width for region in template.regions for _, width in region.stripes}
    return (
        len(regions) == 2
        and len(template.regions) == 1
        and set(regions[0].stripes) <= set(template.regions[0].stripes)
        and {name for name, _ in regions[1].stripes} <= {name for name, _ in template.regions[0].stripes}
    )


def fills(stripes: Stripes, room: Mapping[str, int]) -> float:
    """The part of all room that a file of this cycle fills until its first target is full; 1 where there is none."""
    whole = sum(room.values())
    cycle = sum(width for _, width in stripes)
    return min(room.get(name, 0) * cycle / width for name, width in stripes) / whole if whole else 1.0


def small_targets(store: Store) -> dict[str, int]:
    """Active targets with much less room than the largest has, and their room; not those that are away."""
    active = {target.name for target in store.config.cluster.active}
    room = {str(row["name"]): row["free_bytes"] for row in store.devices() if row["name"] in active}
    known = {name: int(free) for name, free in room.items() if free is not None}
    return {name: free for name, free in known.items() if free < SMALL * max(known.values())}
