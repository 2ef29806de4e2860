"""The least that regions can cost whose requests are of different sizes but begin at the same places (`heads.py`).

Sizes s_1 < s_2 < .. cut a period into intervals; the k-th is asked for by all requests of at least s_k bytes. Whatever
a layout does with a period, moving a whole interval to the cheapest of the servers that share it costs no more, so a
layout is a partition of the intervals into blocks, a server each. At given prices a block B on server i costs

    C(min B) * fixed_i + sum over k in B of ( C(k) * len_k * byte_i + space_i * len_k * periods ),

C(k) requests reaching interval k: all that touch the block's first interval start its server once. So the least over
all layouts of a period is a minimum over partitions, found by dynamic programming over subsets of intervals. It is
exact where every period is asked for alike, which is what space is priced by. The requests' own time counts as if all
servers shared each request.
"""

from __future__ import annotations

import numpy as np

from ...model.general import Float, Int

#: Intervals at most; subsets of them are gone through, a thousand pairs at seven.
INTERVALS_MAX = 7
#: Regions times servers times subsets: beyond, fewer intervals are told apart.
WORK_MAX = 100_000_000
#: Elements of the largest table at a time.
CHUNK = 4_000_000


def levels_of(sizes: Int, regions: int, servers: int) -> Int:
    """The sizes that are told apart, ascending; others count as the next smaller one, which costs no more.

    The smallest size is always among them.
    """
    every = np.unique(sizes)
    fit = int(np.log2(max(2.0, WORK_MAX / max(1, regions * servers))))
    most = max(1, min(INTERVALS_MAX, fit))
    if len(every) <= most:
        return every
    if most == 1:
        return every[:1]
    wanted = np.linspace(np.log(every[0]), np.log(every[-1]), most)
    below = np.searchsorted(np.log(every), wanted + 1e-9, side="right") - 1
    return np.unique(every[below])


def least_of_blocks(started: Float, asked: Float, space: Float) -> Float:
    """Per region the least cost over all partitions of its intervals into blocks of one server each.

    `started` is the cost of all requests that reach an interval starting a server, `asked` that of their bytes in it,
    `space` that of its room: each of shape (regions, intervals, servers).
    """
    regions, intervals, servers = asked.shape
    masks = 1 << intervals
    result = np.zeros(regions)
    at_once = max(1, CHUNK // (masks * servers))
    for low in range(0, regions, at_once):
        part = slice(low, low + at_once)
        result[part] = _partitioned(started[part], asked[part] + space[part])
    return result


def _partitioned(started: Float, inside: Float) -> Float:
    regions, intervals, servers = inside.shape
    masks = 1 << intervals
    within = np.zeros((masks, regions, servers))
    block = np.zeros((masks, regions))
    for mask in range(1, masks):
        first = (mask & -mask).bit_length() - 1
        within[mask] = within[mask & (mask - 1)] + inside[:, first]
        block[mask] = (within[mask] + started[:, first]).min(axis=1)
    best = np.zeros((masks, regions))
    for mask in range(1, masks):
        # The block that the first interval is in, with any of the others.
        first = mask & -mask
        others = mask ^ first
        best[mask] = block[mask]
        more = (others - 1) & others if others else 0
        while others:
            best[mask] = np.minimum(best[mask], block[first | more] + best[others ^ more])
            if not more:
                break
            more = (more - 1) & others
    return np.asarray(best[masks - 1])
