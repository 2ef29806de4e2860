"""A file's layout in JSON form: regions, each with the widths that the targets of its cycle take in turn.

    {"regions": [{"start": 0, "len": 67108864, "stripes": [["hdd0", 65536], ["ssd0", 65536]]}, ...]}

The last region repeats for ever. Targets go by name here and by number in the form that the store takes
(`to_indexes`). The rules are those of docs/formats.md: regions without gaps from 0, everything in multiples of 4 KiB, a
target at most once in a cycle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import native
from .cluster import Cluster, Target
from .errors import LayoutError, StripewiseError
from .files.fields import Fields
from .units import GRANULE_BYTES, OFFSET_BYTES_MAX, nearest_granules

#: (target name, width in bytes), in the order of the cycle.
Stripes = tuple[tuple[str, int], ...]
#: Targets that a cycle of a plan names at most, which may be for a simulation; a store has fewer (MAX_TARGETS).
STRIPES_MAX = 4096


@dataclass(frozen=True)
class Region:
    """The file's bytes [start, start + len) go round robin over `stripes`."""

    start: int
    len: int
    stripes: Stripes


@dataclass(frozen=True)
class Layout:
    """Regions from 0 on; the last one repeats."""

    regions: tuple[Region, ...]


def share_bytes(stripes: Stripes, length: int) -> dict[str, int]:
    """Bytes that each target of the cycle holds of a region's first `length` bytes."""
    cycle = sum(width for _, width in stripes)
    cycles, rest = divmod(length, cycle)
    shares = {}
    start = 0
    for name, width in stripes:
        shares[name] = cycles * width + min(max(rest - start, 0), width)
        start += width
    return shares


def target_bytes(regions: Iterable[Region], size: int) -> dict[str, int]:
    """Bytes that each target holds of a file of `size` bytes, every slice rounded up to 4 KiB."""
    held: dict[str, int] = {}
    last: Region | None = None
    # Regions that share their stripes are counted at once.
    alike: dict[tuple[int, int], tuple[Stripes, int]] = {}
    for region in regions:
        last = region
        length = min(region.len, size - region.start)
        stripes, times = alike.get((id(region.stripes), length), (region.stripes, 0))
        alike[id(stripes), length] = (stripes, times + 1)
    for (_, length), (stripes, times) in alike.items():
        _add(held, stripes, length, times)
    if last is not None and size > last.start + last.len:
        whole, rest = divmod(size - last.start - last.len, last.len)
        _add(held, last.stripes, last.len, whole)
        _add(held, last.stripes, rest)
    return held


def _add(held: dict[str, int], stripes: Stripes, length: int, times: int = 1) -> None:
    if length <= 0 or times <= 0:
        return
    for name, share in share_bytes(stripes, length).items():
        held[name] = held.get(name, 0) + times * (-(-share // GRANULE_BYTES) * GRANULE_BYTES)


def rotate(targets: Sequence[Target], by: int) -> list[Target]:
    """`targets` with the first one moved on by `by`: neighbouring regions start on different servers."""
    if not targets:
        return []
    first = by % len(targets)
    return [*targets[first:], *targets[:first]]


def stripes_over(targets: Iterable[Target], width: int) -> Stripes:
    """Equal stripes of `width` bytes over `targets`; over the first 4,096 of more, for a cycle holds no others."""
    return tuple((target.name, width) for target in itertools.islice(targets, STRIPES_MAX))


def whole_file(targets: Sequence[Target], width: int, region_bytes: int) -> Layout:
    """One repeating region that stripes a file of any size over `targets`.

    The region is a whole number of cycles, so that its repetitions go on where the last one ended.
    """
    cycle = width * len(targets)
    return Layout((Region(0, -(-region_bytes // cycle) * cycle, stripes_over(targets, width)),))


def parse_regions(
    items: list[Any],
    source: Path | str,
    where: str,
    names: Sequence[str] | None,
    raises: type[StripewiseError] = LayoutError,
    extra_keys: frozenset[str] = frozenset(),
) -> tuple[Region, ...]:
    """Validates a JSON list of regions.

    `names` are the targets that exist (None: any). Raises `raises` with file and key.
    """
    if not items:
        raise raises(f"{source}: {where} is empty; a layout needs at least one region")
    if len(items) > (most := native.limit("MAX_REGIONS")):
        raise raises(f"{source}: {where} has {len(items)} regions, more than {most}; use longer regions")
    known = None if names is None else dict.fromkeys(names)
    regions = []
    end = 0
    for position, item in enumerate(items):
        fields = Fields(item, source, f"{where}[{position}].", raises)
        fields.only({"start", "len", "stripes"} | extra_keys)
        start = fields.integer("start", 0, OFFSET_BYTES_MAX)
        length = fields.integer("len", 1, OFFSET_BYTES_MAX)
        if start != end:
            raise fields.error("start", f"= {start} leaves a gap or an overlap", f"the region must start at {end}")
        if length % GRANULE_BYTES:
            raise fields.error(
                "len", f"= {length} is not a multiple of 4096", f"the nearest one is {nearest_granules(length)}"
            )
        end = start + length
        if end > OFFSET_BYTES_MAX:
            raise fields.error("len", f"= {length} ends past 2^62", "shorten the region")
        regions.append(Region(start, length, parse_stripes(fields, known)))
    return tuple(regions)


def parse_stripes(fields: Fields, known: Mapping[str, None] | None) -> Stripes:
    """The key `stripes` of a region; `known` are the targets that exist (None: any)."""
    pairs = fields.items("stripes")
    if not pairs or len(pairs) > STRIPES_MAX:
        raise fields.error("stripes", f"has {len(pairs)} entries", f"name 1 to {STRIPES_MAX} targets")
    stripes: list[tuple[str, int]] = []
    seen = set()
    for number, pair in enumerate(pairs):
        key = f"stripes[{number}]"
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise fields.error(key, "is not a pair", 'write ["target name", width in bytes]')
        name, width = pair
        if isinstance(width, bool) or not isinstance(width, int) or width <= 0 or width % GRANULE_BYTES:
            raise fields.error(key, f"has a bad width for '{name}'", "give a positive multiple of 4096 bytes")
        if width > OFFSET_BYTES_MAX:
            raise fields.error(key, f"has a width past 2^62 for '{name}'", "give a smaller width")
        if name in seen:
            raise fields.error(key, f"names '{name}' twice in one cycle", "name each target once")
        if known is not None and name not in known:
            raise fields.error(key, f"names the unknown target '{name}'", f"use one of {', '.join(known)}")
        seen.add(name)
        stripes.append((name, width))
    return tuple(stripes)


def parse_layout(data: Any, source: Path | str, names: Sequence[str] | None = None) -> Layout:
    """The layout in a JSON object; LayoutError with file and key."""
    fields = Fields(data, source, "", LayoutError)
    fields.only({"regions"})
    return Layout(parse_regions(fields.items("regions"), source, "regions", names))


def layout_json(layout: Layout) -> dict[str, Any]:
    """The layout as a JSON object with target names."""
    return {"regions": [region_json(region) for region in layout.regions]}


def region_json(region: Region) -> dict[str, Any]:
    """One region as a JSON object with target names."""
    return {"start": region.start, "len": region.len, "stripes": [list(stripe) for stripe in region.stripes]}


def to_indexes(regions: Iterable[Region], cluster: Cluster) -> dict[str, Any]:
    """The layout as the store takes it: target numbers instead of names.

    Raises LayoutError for a target that the cluster does not have.
    """
    index = {target.name: position for position, target in enumerate(cluster.targets)}
    entries = []
    for region in regions:
        stripes = []
        for name, width in region.stripes:
            if name not in index:
                raise LayoutError(
                    f"{cluster.source}: has no target '{name}', which the layout names; plan for this store's cluster"
                )
            stripes.append([index[name], width])
        entries.append({"start": region.start, "len": region.len, "stripes": stripes})
    return {"regions": entries}


def from_indexes(data: Mapping[str, Any], cluster: Cluster) -> Layout:
    """The reverse of `to_indexes`, for what the store reports; unknown keys are ignored."""
    regions = []
    for entry in data["regions"]:
        stripes = tuple((cluster.targets[int(number)].name, int(width)) for number, width in entry["stripes"])
        regions.append(Region(int(entry["start"]), int(entry["len"]), stripes))
    return Layout(tuple(regions))
