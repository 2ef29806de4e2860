"""The general case: any request on any cycle, priced by what it really does.

A request is mapped through the candidate's cycle; h_eff and s_eff are the most bytes that one HServer or SServer
serves, k_h and k_s the servers touched, and these stand in the paper's formulas (H2DP, Table 2) in place of h, s, M
and N. Everything is elementwise over the requests and depends only on offset modulo the cycle: pricing distinct keys is
exact. Several candidates with the same servers but other widths are priced in one pass by giving widths a leading axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .figures import CostParameters

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Cycle:
    """Server after server with its width in bytes; width 0 leaves a server out.

    `widths` has the shape (servers,) or, for B candidates at once, (B, servers); `ssd` says which are SServers.
    """

    widths: Int
    ssd: tuple[bool, ...]

    @staticmethod
    def of(pairs: list[tuple[bool, int]]) -> Cycle:
        """The cycle of (is it an SSD, width) pairs."""
        return Cycle(np.array([width for _, width in pairs], dtype=np.int64), tuple(ssd for ssd, _ in pairs))

    @staticmethod
    def pair(M: int, N: int, h: int, s: int) -> Cycle:
        """M HServers with width h, then N SServers with width s."""
        return Cycle.of([(False, h)] * M + [(True, s)] * N)

    @property
    def length(self) -> Int:
        """Bytes of one cycle, per candidate."""
        return np.asarray(self.widths.sum(axis=-1), dtype=np.int64)


def bytes_on_servers(cycle: Cycle, offset: Int, size: Int) -> list[Int]:
    """For every server the bytes it serves of each request [offset, offset + size), offsets counted from the region.

    With widths of shape (B, servers) each result has the shape (B, requests).
    """
    length = cycle.length[..., None] if cycle.widths.ndim == 2 else cycle.length
    first_cycle, first_rest = np.divmod(offset, length)
    last_cycle, last_rest = np.divmod(offset + size, length)
    whole = last_cycle - first_cycle
    served = []
    start = np.zeros_like(length)
    for server in range(len(cycle.ssd)):
        width = cycle.widths[..., server]
        if cycle.widths.ndim == 2:
            width = width[:, None]
        served.append(whole * width + np.clip(last_rest - start, 0, width) - np.clip(first_rest - start, 0, width))
        start = start + width
    return served


def request_cost(params: CostParameters, cycle: Cycle, offset: Int, size: Int, write: Bool) -> Float:
    """Seconds for each request on `cycle` (cost-models section 1, general case)."""
    served = bytes_on_servers(cycle, offset, size)
    zero = np.zeros_like(served[0])
    h_eff, s_eff, touched = zero, zero, zero
    for is_ssd, share in zip(cycle.ssd, served, strict=True):
        touched = touched + (share > 0)
        if is_ssd:
            s_eff = np.maximum(s_eff, share)
        else:
            h_eff = np.maximum(h_eff, share)
    p, c, e, t = params.p, params.c, params.e, params.t
    establish = np.maximum(c * touched, p) * e
    transfer = np.maximum(c * size * t, p * np.maximum(h_eff, s_eff) * t)
    hdd_s = _service(params.hdd.read.startup_s, params.hdd.write.startup_s, write) + h_eff * _service(
        params.hdd.read.per_byte_s, params.hdd.write.per_byte_s, write
    )
    ssd_s = _service(params.ssd.read.startup_s, params.ssd.write.startup_s, write) + s_eff * _service(
        params.ssd.read.per_byte_s, params.ssd.write.per_byte_s, write
    )
    storage = p * np.maximum(np.where(h_eff > 0, hdd_s, 0.0), np.where(s_eff > 0, ssd_s, 0.0))
    return np.asarray(establish + transfer + storage, dtype=np.float64)


def _service(read: float, write: float, is_write: Bool) -> Float:
    return np.where(is_write, write, read)
