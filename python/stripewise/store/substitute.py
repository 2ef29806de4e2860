"""Taking a target out of a layout: another takes its place in the cycle, or the cycle gets shorter.

The rule, region by region: the roomiest active target of the same class that the cycle does not name takes the place
and the width; where there is none with room for the share, the cycle goes on without it; where the others have no room
for that, the roomiest target of another class takes the place, and at last the roomiest of all takes what has no room
elsewhere. Widths of the others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from ..cluster import Cluster, Target
from ..layout import Layout, Region, Stripes, share_bytes


def without(stripes: Stripes, gone: str, length: int, cluster: Cluster, free: MutableMapping[str, int]) -> Stripes:
    """The cycle of a region of `length` bytes without the target `gone`.

    `free` is what targets have left in bytes (absent: enough); what is put somewhere is taken off there.
    """
    klass = next((target.klass for target in cluster.targets if target.name == gone), "any")
    used = {name for name, _ in stripes}
    rest = tuple(stripe for stripe in stripes if stripe[0] != gone)
    others = [target for target in _roomiest(cluster.active, free) if target.name not in used]
    alike = [_in_place(stripes, gone, each.name) for each in others if each.klass == klass]
    unlike = [_in_place(stripes, gone, each.name) for each in others if each.klass != klass]
    for cycle in (*alike, *([rest] if rest else []), *unlike):
        more = _more(stripes, cycle, length)
        if all(free.get(name, count) >= count for name, count in more.items()):
            _take(free, more)
            return cycle
    if rest:
        return rest
    # Whoever has most: a move that does not fit says so before it changes anything.
    cycle = _in_place(stripes, gone, _roomiest(cluster.active, free)[0].name)
    _take(free, _more(stripes, cycle, length))
    return cycle


def _in_place(stripes: Stripes, gone: str, heir: str) -> Stripes:
    return tuple((heir if name == gone else name, width) for name, width in stripes)


def _more(before: Stripes, after: Stripes, length: int) -> dict[str, int]:
    """What targets hold of a region in one cycle beyond what they hold in another."""
    had = share_bytes(before, length)
    more = {name: count - had.get(name, 0) for name, count in share_bytes(after, length).items()}
    return {name: count for name, count in more.items() if count > 0}


def _roomiest(targets: Iterable[Target], free: MutableMapping[str, int]) -> list[Target]:
    return sorted(targets, key=lambda target: -free.get(target.name, 1 << 62))


def _take(free: MutableMapping[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        if name in free:
            free[name] = max(0, free[name] - count)


def on_active(layout: Layout, cluster: Cluster, size: int = 0, free: MutableMapping[str, int] | None = None) -> Layout:
    """The layout of a file of `size` bytes on active targets only; itself when it names no other."""
    gone = {target.name for target in cluster.targets if not target.is_active}
    left: MutableMapping[str, int] = {} if free is None else free
    regions = []
    for position, region in enumerate(layout.regions):
        stripes = region.stripes
        end = size if position + 1 == len(layout.regions) else min(size, region.start + region.len)
        for name in [name for name, _ in region.stripes if name in gone]:
            stripes = without(stripes, name, max(0, end - region.start), cluster, left)
        regions.append(Region(region.start, region.len, stripes))
    return Layout(tuple(regions))
