"""Whether a file is gone through in sequence: most requests begin where one shortly before them ended.

Who asks does not count: processes that take the next record of a shared stream in turn go through it in sequence
together. Where places are few, requests follow each other by chance; the same requests in another order tell how often.
"""

from __future__ import annotations

import numpy as np

from ....model.general import Int
from ....workload.requests import Requests
from ..tuning import BEYOND_CHANCE, SEQUENCE, STREAMS_MAX


def is_sequence(requests: Requests) -> bool:
    """Whether most of these requests, all of one file, continue others."""
    if len(requests) < 2:
        return False
    order = np.lexsort((requests["rank"], requests["start_ns"]))
    offset = requests["offset"][order].astype(np.int64)
    end = offset + requests["size"][order]
    found = _continuing(offset, end)
    if found <= SEQUENCE * len(offset):
        return False
    shuffled = np.random.default_rng(0).permutation(len(offset))
    return found > BEYOND_CHANCE * _continuing(offset[shuffled], end[shuffled])


def is_of_one_process(requests: Requests) -> bool:
    """Whether most requests continue the one before them of the same process."""
    order = np.lexsort((requests["start_ns"], requests["rank"]))
    rank, offset = requests["rank"][order], requests["offset"][order]
    end = offset + requests["size"][order]
    follows = (rank[1:] == rank[:-1]) & (offset[1:] == end[:-1])
    return bool(follows.sum() > SEQUENCE * len(requests))


def _continuing(offset: Int, end: Int) -> int:
    """How many requests begin where one of the STREAMS_MAX before them ended."""
    count = len(offset)
    _, place = np.unique(np.concatenate([offset, end]), return_inverse=True)
    place = np.asarray(place).ravel().astype(np.int64)
    turn = np.arange(count)
    ended = np.sort(place[count:] * count + turn)
    begun = place[:count] * count + turn
    # The last end at this very place before this request.
    at = np.searchsorted(ended, begun) - 1
    last = ended[np.maximum(at, 0)]
    continues = (at >= 0) & (last // count == place[:count]) & (begun - last <= STREAMS_MAX)
    return int(continues.sum())
