"""How far the expected gain may be off, as far as the devices' figures are known.

Every target's service times are taken to be off by one factor of its own, normally distributed about 1; its width is
what the target's calibration found that its line misses (the largest misfit or residual of its figures), or a tenth
where the figures were typed. Both layouts run on the same devices, so every draw is used for both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import default_rng

from ...cluster import Cluster, Target
from ...cluster.calibration import FIGURE_KINDS
from ...model import Bound

#: Of the service time, where figures were typed.
TYPED_SHARE = 0.1
DRAWS = 400
#: Nine chances in ten lie between these.
PERCENTILES = (5.0, 95.0)


def unsure_share(target: Target) -> float:
    """The standard deviation of the target's service times about its figures, as a share of them."""
    if target.calibration is None:
        return TYPED_SHARE
    fits = [fit for kind, fit in target.calibration.fits if kind in FIGURE_KINDS]
    return max((max(fit.residual, fit.misfit) for fit in fits), default=TYPED_SHARE)


def gain_interval(
    plan: Sequence[Bound], default: Sequence[Bound], cluster: Cluster, processes: int, seed: int
) -> tuple[float, float]:
    """How many times shorter than DEF's the bound is, with nine chances in ten; one bound per window and layout."""
    names = [target.name for target in cluster.targets]
    rng = default_rng(seed)
    drawn = rng.standard_normal((DRAWS, len(names))) * [unsure_share(target) for target in cluster.targets]
    factors = np.clip(1 + drawn, 0.1, None)
    mine, theirs = (_makespans(bounds, names, factors, processes) for bounds in (plan, default))
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(mine > 0, theirs / mine, 1.0)
    low, high = np.percentile(gains, PERCENTILES)
    return float(low), float(high)


def _makespans(bounds: Sequence[Bound], names: Sequence[str], factors: np.ndarray, processes: int) -> np.ndarray:
    """Seconds of all windows together under every draw."""
    total = np.zeros(len(factors))
    for bound in bounds:
        demand = np.array([bound.demand_s.get(name, 0.0) for name in names])
        busy = float(demand.sum())
        # Requests alone spend their time where the servers spend theirs.
        mean = factors @ (demand / busy) if busy > 0 else np.ones(len(factors))
        limits = bound.limits_s(processes)
        network = max(seconds for key, seconds in limits.items() if key not in ("servers", "concurrency"))
        total += np.maximum.reduce(
            [(factors * demand).max(axis=1), limits["concurrency"] * mean, np.full(len(factors), network)]
        )
    return total
