"""A price in its parts: connections, network transfer, startup and storage transfer, kept apart.

All models of this package price a request as T_E + T_X + T_S + T_RW (the names of RADAR, eqs. 1-4); the sum ranks
layouts, the parts say why. `request_terms` takes the general case of section 1 apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .figures import CostParameters
from .general import Bool, Cycle, Int, bytes_on_servers


@dataclass(frozen=True)
class Terms:
    """Seconds for connections, network transfer, startup and storage transfer; numbers or arrays of one shape."""

    establish_s: Any
    transfer_s: Any
    startup_s: Any
    storage_s: Any

    @property
    def total_s(self) -> Any:
        """The price: the sum of the parts."""
        return self.establish_s + self.transfer_s + self.startup_s + self.storage_s


def request_terms(params: CostParameters, cycle: Cycle, offset: Int, size: Int, write: Bool) -> tuple[Terms, Bool]:
    """`request_cost` in its parts, and whether an SServer is the slowest, per request (cost-models section 1).

    The storage of the class that decides counts; the other class is done before it.
    """
    served = bytes_on_servers(cycle, offset, size)
    zero = np.zeros_like(served[0])
    most = {False: zero, True: zero}
    touched = zero
    for is_ssd, share in zip(cycle.ssd, served, strict=True):
        touched = touched + (share > 0)
        most[is_ssd] = np.maximum(most[is_ssd], share)
    startup, storage = {}, {}
    for is_ssd, device in ((False, params.hdd), (True, params.ssd)):
        busy = most[is_ssd] > 0
        startup[is_ssd] = np.where(busy, np.where(write, device.write.startup_s, device.read.startup_s), 0.0)
        storage[is_ssd] = most[is_ssd] * np.where(write, device.write.per_byte_s, device.read.per_byte_s)
    ssd_decides = startup[True] + storage[True] > startup[False] + storage[False]
    p, c = params.p, params.c
    terms = Terms(
        establish_s=np.maximum(c * touched, p) * params.e,
        transfer_s=np.maximum(c * size * params.t, p * np.maximum(most[False], most[True]) * params.t),
        startup_s=p * np.where(ssd_decides, startup[True], startup[False]),
        storage_s=p * np.where(ssd_decides, storage[True], storage[False]),
    )
    return terms, np.asarray(ssd_decides, dtype=np.bool_)
