"""Whether ranks pause on their own (ours; the thesis has the root's slack alone).

Where all wait for each other in between, or compute the same, one length for all ranks keeps them together as they
are. Where each goes on as it has computed, that would let them move in step as they do not: they drift apart.
"""

from __future__ import annotations

import numpy as np

from .calls import Bool, Int

#: Long pauses, ns: from here on, and from this share of the longest ones on.
LONG_NS = 1_000_000
LONG_SHARE = 0.25
#: So many make a judgement.
PAUSES_MIN = 8
#: Pauses that differ by less than this share of their mean are equal.
EQUAL = 0.005
#: Ranks whose pauses correlate (by rank order) less than this may pause on their own.
CORRELATED = 0.5
#: They do where they drift by this many times as much as one pause differs (standard deviations): a walk of k
#: independent ones has about the root of k / 6, ranks that wait for each other the root of 1/2.
DRIFTED = 1.1


def are_independent(root_ns: Int, child_ns: Int) -> bool:
    """Whether the slacks of requests that both make, in one order, are independent where both are long."""
    pauses = [each[_both_long(root_ns, child_ns)].astype(np.float64) for each in (root_ns, child_ns)]
    if len(pauses[0]) < PAUSES_MIN or any(each.std() < EQUAL * each.mean() for each in pauses):
        return False
    orders = [np.argsort(np.argsort(each)) for each in pauses]
    return bool(np.corrcoef(orders[0], orders[1])[0, 1] < CORRELATED)


def _both_long(root_ns: Int, child_ns: Int) -> Bool:
    if len(root_ns) < PAUSES_MIN:
        return np.zeros(len(root_ns), np.bool_)
    limits = [max(LONG_NS, LONG_SHARE * float(np.sort(each)[-3])) for each in (root_ns, child_ns)]
    found: Bool = (root_ns >= limits[0]) & (child_ns >= limits[1])
    return found


def is_apart(root_ns: Int, child_ns: Int, root_start_ns: Int, child_start_ns: Int) -> bool:
    """Whether the slacks of requests that both make, in one order, are independent where both are long, and add up."""
    if not are_independent(root_ns, child_ns):
        return False
    both = _both_long(root_ns, child_ns)
    pauses = root_ns[both].astype(np.float64), child_ns[both].astype(np.float64)
    behind = (root_start_ns - child_start_ns)[both].astype(np.float64)
    return bool(behind.std() >= DRIFTED * (pauses[0] - pauses[1]).std())
