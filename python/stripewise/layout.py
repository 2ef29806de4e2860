"""A file's layout in JSON form: regions, each with the widths that the targets of its cycle take in turn.

    {"regions": [{"start": 0, "len": 67108864, "stripes": [["hdd0", 65536], ["ssd0", 65536]]}, ...]}

The last region repeats for ever. Targets go by name here and by number in the form that the store takes
(`to_indexes`). The rules are those of docs/formats.md: regions without gaps from 0, everything in multiples of 4 KiB, a
target at most once in a cycle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import native
from .cluster import Cluster, Target
from .errors import LayoutError, StripewiseError
from .files.fields import Fields
from .units import GRANULE_BYTES, MIB, OFFSET_BYTES_MAX, nearest_granules

#: (target name, width in bytes), in the order of the cycle.
Stripes = tuple[tuple[str, int], ...]
#: Whose layout a file has: the store's own, one that somebody gave it (a plan, a template, `set-layout`), and such a
#: one that a drained target has left since.
OWN, GIVEN, DRAINED = "own", "given", "drained"
#: Regions that are joined to one are no longer than this, the size of regions by default: a region moves as a whole,
#: and its old and new copy both take room while it does.
JOINED_BYTES_MAX = 64 * MIB
#: Of targets that take turns, so many whole turns are a cycle.
CYCLES_MIN = 2
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
    """Regions from 0 on; the last one repeats. `origin` says whose layout it is (OWN, GIVEN, DRAINED), None where
    nobody says; layouts of other origins are equal.
    """

    regions: tuple[Region, ...]
    origin: str | None = field(default=None, compare=False)


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


def repetitions(regions: Sequence[Region], size: int) -> Iterator[Region]:
    """The regions that a file of `size` bytes has bytes in, each repetition of the last as one of its own."""
    for region in regions:
        if region.start < size:
            yield region
    if regions:
        last = regions[-1]
        for start in range(last.start + last.len, size, last.len):
            yield Region(start, last.len, last.stripes)


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


@dataclass(frozen=True)
class Run:
    """Regions from number `first` to before number `behind`, which are one region over `stripes` byte for byte.

    `is_cut` where it would have gone on, but for its length.
    """

    first: int
    behind: int
    stripes: Stripes
    is_cut: bool = False


def runs_of(regions: Sequence[Region], fixed: frozenset[int] = frozenset()) -> Iterator[Run]:
    """Neighbours that one region could stand for, with every byte on the target where it is.

    Regions on one target each that come in turn are stripes of one region, and so is a region that goes on in the cycle
    of the one before it, where there are CYCLES_MIN whole cycles; neighbours on the same target are one stripe. The
    regions that begin at `fixed` are left as they are, and so is the last, which repeats. A run that would be longer
    than JOINED_BYTES_MAX ends where its cycle does. O(regions * targets).
    """
    end = len(regions) - 1
    first = 0
    before: Stripes = ()
    while first < end:
        alone, length = first, 0
        while alone < end and _is_beside(regions[first], regions[alone], length, fixed):
            length += regions[alone].len
            alone += 1
        # What is left of a run that was too long may go round once.
        run = _run_of(regions, first, end, fixed, before, 1) if before else None
        if run is None and (cycle := _cycle_from(regions, first, end, fixed)):
            run = _run_of(regions, first, end, fixed, cycle, CYCLES_MIN)
        if run is None and alone - first > 1:
            run = Run(first, alone, ((regions[first].stripes[0][0], length),))
        if run is not None:
            yield run
        first = first + 1 if run is None else run.behind
        before = run.stripes if run is not None and run.is_cut else ()


def _is_beside(first: Region, region: Region, length: int, fixed: frozenset[int]) -> bool:
    """Whether a region lies on the one target of `first`, `length` bytes behind its begin, and may be joined to it."""
    if len(first.stripes) > 1 or len(region.stripes) > 1 or first.stripes[0][0] != region.stripes[0][0]:
        return False
    return region.start not in fixed and length + region.len <= JOINED_BYTES_MAX


def _cycle_from(regions: Sequence[Region], first: int, end: int, fixed: frozenset[int]) -> Stripes:
    """The stripes that the regions from number `first` on repeat, by where the first target comes again; empty where
    another one does, or none within the longest run.
    """
    made: dict[str, int] = {}
    last = ""
    length = 0
    for number in range(first, end):
        region = regions[number]
        length += region.len
        if region.start in fixed or length > JOINED_BYTES_MAX:
            return ()
        # A round and the begin of the next one tell the cycle.
        shown = sum(width for _, width in region.stripes) + region.stripes[0][1]
        for name, width in _pieces(
            region.stripes, 0, region.len if len(region.stripes) == 1 else min(region.len, shown)
        ):
            if name == last:
                made[name] += width
            elif name not in made:
                made[name] = width
            else:
                return tuple(made.items()) if name == next(iter(made)) else ()
            last = name
    return ()


def _run_of(
    regions: Sequence[Region], first: int, end: int, fixed: frozenset[int], stripes: Stripes, least: int
) -> Run | None:
    """The regions from number `first` on that go round `stripes`; None where they are one, or fewer cycles than
    `least`.
    """
    cycle = sum(width for _, width in stripes)
    length, whole, is_cut = 0, (first, 0), False
    for number in range(first, end):
        region = regions[number]
        if region.start in fixed or not _goes_on(region, stripes, cycle, length % cycle):
            behind = number
            break
        if length + region.len > JOINED_BYTES_MAX:
            (behind, length), is_cut = whole, True
            break
        length += region.len
        if length % cycle == 0:
            whole = (number + 1, length)
    else:
        behind = end
    return Run(first, behind, stripes, is_cut) if behind - first > 1 and length >= least * cycle else None


def _goes_on(region: Region, stripes: Stripes, cycle: int, phase: int) -> bool:
    """Whether a region's bytes lie as those of a round of `stripes`, whose sum is `cycle`, from byte `phase` on."""
    if region.len > cycle and sum(width for _, width in region.stripes) != cycle:
        return False
    length = min(region.len, cycle)
    return _pieces(region.stripes, 0, length) == _pieces(stripes, phase, length)


def _pieces(stripes: Stripes, phase: int, length: int) -> list[tuple[str, int]]:
    """What lies on which target of the `length` bytes of a round that begin at byte `phase` of its cycle, in order."""
    if len(stripes) == 1:
        return [(stripes[0][0], length)]
    found: list[tuple[str, int]] = []
    for name, width in itertools.cycle(stripes):
        part = min(width - phase, length)
        phase = max(phase - width, 0)
        if part > 0:
            found.append((name, part))
            length -= part
        if not length:
            return found
    return found


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
    if sum(width for _, width in stripes) > OFFSET_BYTES_MAX:
        raise fields.error("stripes", "is a cycle of more bytes than a file can have, 2^62", "give smaller widths")
    return tuple(stripes)


def is_rotation(one: Stripes, other: Stripes) -> bool:
    """Whether both are one cycle, begun at whichever of its stripes."""
    if one == other:
        return True
    if len(one) != len(other) or other[0] not in one:
        return False
    at = one.index(other[0])
    return one[at:] + one[:at] == other


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
    return Layout(tuple(regions), data.get("origin"))
