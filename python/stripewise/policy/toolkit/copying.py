"""What moving a region costs, in the same seconds as the requests that it is weighed against.

The mover copies a region in chunks: it reads a chunk from the old home and writes it to the new one. Both are priced as
requests of the chunk's size with the model's device figures (cost-models section 1, general case):

    cost = sum over chunks of T_read(chunk on the old stripes) + T_write(chunk on the new stripes)

T holds p processes in flight, as the requests' costs do: a second in which the copy has a server costs each of the p
processes a second, so gain and cost are both process-seconds and their ratio is that of elapsed times.
"""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes
from ...model import CostParameters, Cycle, request_cost

#: What the mover copies at once.
COPY_CHUNK_BYTES = 8 << 20
_Kind = tuple[tuple[bool, int], ...]


class CopyPrices:
    """Costs of copies on one cluster; what differs only in the names of servers is priced once."""

    def __init__(self, cluster: Cluster, params: CostParameters) -> None:
        self._ssd = {target.name: target.is_ssd for target in cluster.targets}
        self._params = params
        self._known: dict[tuple[_Kind, int, bool], float] = {}

    def cost_s(self, old: Stripes, new: Stripes, valid_bytes: int) -> float:
        """Seconds for copying a region's first `valid_bytes` from `old` to `new`."""
        return self._pass(old, valid_bytes, False) + self._pass(new, valid_bytes, True)

    def _pass(self, stripes: Stripes, valid_bytes: int, write: bool) -> float:
        key = (tuple((self._ssd[name], width) for name, width in stripes), valid_bytes, write)
        if key not in self._known:
            offset = np.arange(0, valid_bytes, COPY_CHUNK_BYTES, dtype=np.int64)
            size = np.minimum(COPY_CHUNK_BYTES, valid_bytes - offset)
            each = request_cost(self._params, Cycle.of(list(key[0])), offset, size, np.full(len(offset), write))
            self._known[key] = float(each.sum())
        return self._known[key]
