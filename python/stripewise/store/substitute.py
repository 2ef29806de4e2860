"""Taking a target out of a layout: another takes its place in the cycle, or the cycle gets shorter.

The rule, region by region: the roomiest active target of the same class that the cycle does not name takes the place
and the width; where there is none with room for the share, the cycle goes on without it; where nothing is left of the
cycle, the roomiest active target of any class takes all. Widths of the others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from ..cluster import Cluster, Target
from ..layout import Layout, Region, Stripes, share_bytes


def without(stripes: Stripes, gone: str, share: int, cluster: Cluster, free: MutableMapping[str, int]) -> Stripes:
    """The cycle without the target `gone`, of which it holds `share` bytes.

    `free` is what targets have left in bytes (absent: enough); what is put somewhere is taken off there.
    """
    klass = next((target.klass for target in cluster.targets if target.name == gone), "any")
    used = {name for name, _ in stripes}
    heirs = [t for t in _roomiest(cluster.active, free) if t.klass == klass and t.name not in used]
    rest = tuple(stripe for stripe in stripes if stripe[0] != gone)
    for heir in heirs:
        if free.get(heir.name, share) >= share:
            _take(free, heir.name, share)
            return tuple((heir.name if name == gone else name, width) for name, width in stripes)
    if rest:
        return rest
    # Whoever has most: a move that does not fit says so before it changes anything.
    heir = _roomiest(cluster.active, free)[0]
    _take(free, heir.name, share)
    return tuple((heir.name, width) for name, width in stripes if name == gone)


def _roomiest(targets: Iterable[Target], free: MutableMapping[str, int]) -> list[Target]:
    return sorted(targets, key=lambda target: -free.get(target.name, 1 << 62))


def _take(free: MutableMapping[str, int], name: str, share: int) -> None:
    if name in free:
        free[name] = max(0, free[name] - share)


def on_active(layout: Layout, cluster: Cluster, size: int = 0, free: MutableMapping[str, int] | None = None) -> Layout:
    """The layout of a file of `size` bytes on active targets only; itself when it names no other."""
    gone = {target.name for target in cluster.targets if not target.is_active}
    left: MutableMapping[str, int] = {} if free is None else free
    regions = []
    for position, region in enumerate(layout.regions):
        stripes = region.stripes
        end = size if position + 1 == len(layout.regions) else min(size, region.start + region.len)
        for name in [name for name, _ in region.stripes if name in gone]:
            share = share_bytes(stripes, max(0, end - region.start))[name]
            stripes = without(stripes, name, share, cluster, left)
        regions.append(Region(region.start, region.len, stripes))
    return Layout(tuple(regions))
