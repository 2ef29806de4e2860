"""What tunes of a store measured beside what the model had expected: how far its promises went here."""

from __future__ import annotations

import contextlib

from ..errors import PlanError
from ..store.config import StoreConfig
from ..store.kept import read_kept


def measured_shares(config: StoreConfig) -> tuple[float, ...]:
    """Of the kept plans that `tune` has measured over def: the measured factor over the expected one, the least first.

    A tune that found nothing faster keeps no plan, so these are the better ones.
    """
    found = []
    for kept in config.plans:
        with contextlib.suppress(PlanError):
            expected = read_kept(config.root, kept).expected
            if expected.measured_gain is not None and expected.likely_gain > 0:
                found.append(expected.measured_gain / expected.likely_gain)
    return tuple(sorted(found))
