"""Layouts of replicas: PDLA's 1-DH, 1-DV and 2-D on servers of one class, its pair on two, and RADAR's rotation.

A replica's bytes stand process after process, so that a layout by process is a region for each of them. Widths and
bounds of regions are whole granules: a process that ends within one shares it with the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ..cluster import Target
from ..layout import STRIPES_MAX, Layout, Region, Stripes, rotate, stripes_over
from ..units import GRANULE_BYTES, nearest_granules, round_up


def one_dh(targets: Sequence[Target], request_bytes: int, total_bytes: int) -> Layout:
    """Every request over all servers: stripes of r/n."""
    width = round_up(-(-request_bytes // len(targets)))
    return Layout((Region(0, round_up(total_bytes), stripes_over(targets, width)),))


def one_dv(targets: Sequence[Target], held: Sequence[int]) -> Layout:
    """Each process on one server, in turn; `held` are the bytes of each process."""
    return two_d(targets, len(targets), 0, held)


def two_d(targets: Sequence[Target], groups: int, request_bytes: int, held: Sequence[int]) -> Layout:
    """Each process on one of g groups of n/g servers, in turn, with stripes of r over the servers of a group."""
    each = len(targets) // groups
    width = round_up(max(1, -(-request_bytes // each)))
    regions = []
    for number, (start, length) in enumerate(_spans(held)):
        first = number % groups * each
        members = targets[first : first + each]
        stripes = stripes_over(members, length if each == 1 else width)
        regions.append(Region(start, length, stripes))
    return Layout(tuple(_joined(regions)))


def hybrid(
    hservers: Sequence[Target], sservers: Sequence[Target], h: float, request_bytes: int, total_bytes: int
) -> Layout:
    """Every request over all servers of both classes: h on an HServer, the rest on the SServers.

    h is rounded to granules, at least none, and s = (r - M*h)/N up.
    """
    width = nearest_granules(int(h)) if h >= GRANULE_BYTES / 2 else 0
    rest = max(1, request_bytes - len(hservers) * width)
    wide = round_up(-(-rest // len(sservers)))
    slow: Stripes = stripes_over(hservers, width) if width else ()
    stripes = (*slow, *stripes_over(sservers, wide))[:STRIPES_MAX]
    return Layout((Region(0, round_up(total_bytes), stripes),))


def rotating(targets: Sequence[Target], stripe_bytes: int, held: Sequence[int], first: int) -> tuple[Layout, int]:
    """Each process in stripes over as many servers as its bytes fill, from where the last process ended (RADAR,
    section II.A.2.c): more than its share takes more servers, less takes fewer. Also where the next begins.
    """
    width = round_up(stripe_bytes)
    regions = []
    for start, length in _spans(held):
        stripes = -(-length // width)
        members = rotate(targets, first)[: min(stripes, len(targets))]
        regions.append(Region(start, length, stripes_over(members, width)))
        first = (first + stripes) % len(targets)
    return Layout(tuple(regions)), first


def _spans(held: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and length of each process's part, in whole granules."""
    ends = [round_up(end) for end in accumulate(held)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            yield start, end - start


def _joined(regions: Sequence[Region]) -> Iterator[Region]:
    """Neighbours of one cycle as one region; a cycle of one target has the width of its region."""
    last: Region | None = None
    for region in regions:
        if last is not None and [name for name, _ in last.stripes] == [name for name, _ in region.stripes]:
            length = last.len + region.len
            wider = region.stripes if len(region.stripes) > 1 else ((region.stripes[0][0], length),)
            last = Region(last.start, length, wider)
            continue
        if last is not None:
            yield last
        last = region
    if last is not None:
        yield last
