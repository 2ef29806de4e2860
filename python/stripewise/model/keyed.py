"""The same prices over millions of request keys: `request_cost` and `service_bound`, summed by the native module.

A key is (offset in its region, size, read or write) with the number of such requests; keys of region g stand in the
rows [first[g], first[g + 1]). What `general.py` and `bound.py` say about single requests is the definition; tests hold
these sums against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import native
from ..cluster import Network
from .bound import Bound
from .figures import CostParameters, DeviceFigures, OpFigures
from .general import Bool, Float, Int

_NOTHING: Float = np.zeros(0, dtype=np.float64)


@dataclass(frozen=True)
class Keys:
    """Columns of equal length, and where each region's rows begin; `first` has one entry more than regions."""

    offset: Int
    size: Int
    write: Bool
    count: Int
    first: Int

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.first) - 1

    def of(self, regions: Int) -> Keys:
        """The keys of some regions, in their order."""
        starts = self.first[regions]
        lengths = self.first[regions + 1] - starts
        first = np.zeros(len(regions) + 1, dtype=np.int64)
        np.cumsum(lengths, out=first[1:])
        rows = np.arange(first[-1], dtype=np.int64) + np.repeat(starts - first[:-1], lengths)
        return Keys(self.offset[rows], self.size[rows], self.write[rows], self.count[rows], first)

    def columns(self) -> dict[str, Int | NDArray[np.uint8]]:
        """What the native module takes."""
        return {
            "offset": _plain(self.offset),
            "size": _plain(self.size),
            "write": _as_bytes(self.write),
            "count": _plain(self.count),
            "first": _plain(self.first),
        }


def _plain(column: Int) -> Int:
    """A copy, beside each other and aligned, which fields of records (and views of nothing) are not."""
    return np.array(column, dtype=np.int64)


def _as_bytes(flags: Bool) -> NDArray[np.uint8]:
    return np.ascontiguousarray(flags, dtype=np.bool_).view(np.uint8)


def group_requests(offset: Int, size: Int, write: Bool, region_bytes: int) -> tuple[Int, Int, Int, Bool, Int]:
    """Requests of one file cut at region borders and counted: region, offset in it, size, write, count.

    Sorted by region, offset, size and direction; requests of no bytes are left out.
    """
    columns = native.call(
        "group_requests",
        _plain(offset),
        _plain(size),
        _as_bytes(write),
        region_bytes,
    )
    region, cut, length, flags, count = columns
    return _int(region), _int(cut), _int(length), np.frombuffer(flags, dtype=np.bool_), _int(count)


def _int(raw: bytes) -> Int:
    return np.frombuffer(raw, dtype=np.int64)


def _figures(read: OpFigures, write: OpFigures) -> dict[str, float]:
    return {
        "startup_read_s": read.startup_s,
        "per_byte_read_s": read.per_byte_s,
        "startup_write_s": write.startup_s,
        "per_byte_write_s": write.per_byte_s,
    }


def _parameters(params: CostParameters) -> dict[str, object]:
    def both(figures: DeviceFigures) -> dict[str, float]:
        return _figures(figures.read, figures.write)

    return {
        "p": params.p, "c": params.c, "e": params.e, "t": params.t, "hdd": both(params.hdd), "ssd": both(params.ssd),
    }  # fmt: skip


def keyed_costs(params: CostParameters, cycle: Sequence[tuple[bool, int]], keys: Keys) -> Float:
    """Seconds of every region on the cycle of (is it an SSD, width) pairs: `request_cost` summed over its requests."""
    raw = native.call("cycle_costs", _parameters(params), list(cycle), keys.columns())
    return np.frombuffer(raw, dtype=np.float64)


def cheapest_pairs(
    params: CostParameters,
    M: int,
    N: int,
    pairs: Sequence[tuple[int, int]],
    keys: Keys,
    weight: Sequence[float] = (),
    others_s: Float = _NOTHING,
) -> tuple[Int, Float]:
    """For every region the position of the best of `pairs` (h, s) and the seconds T of its requests there.

    Best is the least T; with a `weight` w per pair and `others_s` per region the least w*T + (1 - w)*others. Among
    equals the last counts.
    """
    weighing = {"weight": list(weight), "others_s": np.ascontiguousarray(others_s, dtype=np.float64)}
    chosen, seconds = native.call("cheapest_pairs", _parameters(params), (M, N), list(pairs), keys.columns(), weighing)
    return _int(chosen), np.frombuffer(seconds, dtype=np.float64)


def keyed_bound(
    servers: Sequence[tuple[str, OpFigures, OpFigures]],
    widths: Sequence[int],
    keys: Keys,
    network: Network | None = None,
) -> Bound:
    """`service_bound` of all keys on servers (name, read figures, write figures) with `widths` in the cycle's order.

    Servers that nothing asks for are left out.
    """
    net = network or Network()
    cycle = [(width, _figures(read, write)) for (_, read, write), width in zip(servers, widths, strict=True)]
    loads, alone = native.call("service_demand", cycle, keys.columns(), (net.establish_s, net.per_byte_s))
    named = [(name, *load) for (name, _, _), load in zip(servers, loads, strict=True) if load[1]]
    bound = Bound({name: seconds for name, seconds, _, _ in named}, alone, processes_per_node=net.processes_per_node)
    if network is not None:
        bound.link_s = {name: size * net.per_byte_s for name, _, _, size in named}
        bound.connect_s = {name: accesses * net.establish_s for name, _, accesses, _ in named}
        bound.nodes_link_s = sum(bound.link_s.values())
        bound.nodes_connect_s = sum(bound.connect_s.values())
    return bound
