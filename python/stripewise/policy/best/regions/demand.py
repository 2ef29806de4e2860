"""What a region's requests ask of the choices: numbers that are summed once, so that a price is eight products.

A request cut into pieces costs a server a startup per piece and its bytes (cost-models section 7). With requests coming
equally often everywhere in a region, every member of a team of g gets one in g of the pieces, and of the bytes its
share of the cycle. So a region's demand on a server is linear in eight sums over its requests that depend on nothing
but how many members there are.
"""

from __future__ import annotations

import numpy as np

from ....model.general import Float, Int
from ....units import GRANULE_BYTES
from ...toolkit.regions import RegionTable

#: Of reads, then of writes: pieces, bytes, requests, and the bytes of every request's largest piece.
FEATURES = 8
PIECES, BYTES, REQUESTS, LARGEST = 0, 2, 4, 6


def features(table: RegionTable, request_bytes: Int, members: int) -> Float:
    """Shape (regions, FEATURES): the sums for teams of `members` whose stripes cut a request of r bytes into that many.

    `request_bytes` is r of every region.
    """
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    count = table.count.astype(np.float64)
    size = table.size
    if members == 1:
        pieces, largest = np.ones(len(size)), size.astype(np.float64)
    else:
        granules = -(-np.maximum(1, request_bytes) // (members * GRANULE_BYTES))
        width = (granules * GRANULE_BYTES)[rows]
        pieces, largest = _pieces(table.offset, size, width, members)
    result = np.zeros((table.regions, FEATURES))
    for operation, chosen in enumerate((~table.write, table.write)):
        if not chosen.any():
            continue
        of = rows[chosen]
        for column, each in ((PIECES, pieces), (BYTES, size), (REQUESTS, None), (LARGEST, largest)):
            weights = count[chosen] if each is None else count[chosen] * each[chosen]
            result[:, column + operation] = np.bincount(of, weights=weights, minlength=table.regions)
    return result


def _pieces(offset: Int, size: Int, width: Int, members: int) -> tuple[Float, Float]:
    """Servers that every request touches on `members` equal stripes, and the bytes of its largest piece."""
    first, last = offset // width, (offset + size - 1) // width
    touched = last - first + 1
    # What the first and the last stripe lack; position 0 has the first one, `end` the last.
    head, tail = offset - first * width, (last + 1) * width - offset - size
    rounds, end = (touched - 1) // members, (touched - 1) % members
    at_first = (rounds + 1) * width - head - np.where(end == 0, tail, 0)
    at_end = np.where(end > 0, (rounds + 1) * width - tail, 0)
    between = np.where(end > 1, (rounds + 1) * width, 0)
    behind = np.where(end < members - 1, rounds * width, 0)
    largest = np.maximum.reduce([at_first, at_end, between, behind])
    return np.minimum(touched, members).astype(np.float64), largest.astype(np.float64)
