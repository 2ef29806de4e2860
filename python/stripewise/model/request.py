"""The paper's two tables, to the letter: an aligned request over all servers, or over all HServers.

Source: H2DP, Tables 2 and 3. They hold for a request of r bytes with M*h + N*s = r and h > 0; the general
case, which planners use, is `general.py`. These stay as its yardstick.
"""

from __future__ import annotations

from .figures import CostParameters


def hybrid_cost(params: CostParameters, M: int, N: int, h: float, s: float, write: bool) -> float:
    """Seconds for one request on M HServers with stripe h and N SServers with stripe s (Table 2).

    r is M*h + N*s; a class with width 0 drops out of the storage term.
    """
    r = M * h + N * s
    hdd = params.hdd.write if write else params.hdd.read
    ssd = params.ssd.write if write else params.ssd.read
    establish = max(params.c * (M + N), params.p) * params.e
    transfer = max(params.c * r * params.t, params.p * max(h, s) * params.t)
    storage = params.p * max(
        hdd.startup_s + h * hdd.per_byte_s if h > 0 else 0.0,
        ssd.startup_s + s * ssd.per_byte_s if s > 0 else 0.0,
    )
    return establish + transfer + storage


def hservers_cost(params: CostParameters, M: int, r: float, write: bool) -> float:
    """Seconds for one request of r bytes on M HServers with stripe r/M (Table 3)."""
    hdd = params.hdd.write if write else params.hdd.read
    h = r / M
    establish = max(params.c * M, params.p) * params.e
    transfer = max(params.c * r * params.t, params.p * h * params.t)
    return establish + transfer + params.p * hdd.startup_s + params.p * h * hdd.per_byte_s
