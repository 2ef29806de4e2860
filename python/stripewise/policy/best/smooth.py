"""What a run like the traced one will ask of every piece: the trace's demands without its chance.

A place that was asked for five times where four were to be expected will not be asked for five times again, and one
that was never asked for may be. Three estimates take the chance out, each as strong as the trace itself says, and none
has a constant to be set (empirical Bayes; Efron, Large-Scale Inference, 2010, chapter 1):

- a region's rate: counts are Poisson of rates with an unknown distribution, which is the one that makes the counts of
  all regions most likely (Kiefer and Wolfowitz 1956; Laird 1978), and a rate is its mean given the region's count;
- a piece's part of its region: Gamma of mean 1 with the variance that the pieces' counts have beyond Poisson's; where
  they have no more, all parts of a region are asked for alike;
- what one request asks: between the piece's mean and that of all requests by their numbers (Buehlmann's credibility),
  as sizes differ within pieces and between them.
"""

from __future__ import annotations

import numpy as np

from ...model.general import Float, Int
from ..toolkit.regions import RegionTable

#: Rates that are told apart, in requests per region, and the least above none.
RATES, RATE_LEAST = 120, 0.02
#: Stands for no requests at all.
RATE_NONE = 1e-3
#: Steps of expectation and maximisation: the means stand still long before.
STEPS = 300
#: Pieces of which fewer requests are expected count as not asked for.
NEGLIGIBLE = 0.01


def expected_features(table: RegionTable, group: Int, valid_bytes: Int, counted: Float) -> Float:
    """Features of the requests to expect, of the shape of `counted` (pieces, shapes, FEATURES), for one window.

    `table` has the pieces' requests as they were counted, `group` the region of every piece, cut by heat alone: its
    pieces differ in rate by chance only, as far as is known.
    """
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    weights = table.count.astype(np.float64)
    count: Float = np.bincount(rows, weights=weights, minlength=table.regions).astype(np.float64)
    requests = expected_counts(count, group, valid_bytes)
    trust = size_trust(rows, table.size.astype(np.float64), weights, count)
    mean = counted.sum(axis=0) / count.sum()
    own = np.divide(counted, count[:, None, None], out=np.zeros_like(counted), where=count[:, None, None] > 0)
    each = mean + (own - mean) * trust[:, None, None]
    return np.asarray(each * requests[:, None, None])


def expected_counts(count: Float, group: Int, valid_bytes: Int) -> Float:
    """Requests to expect of every piece; as many in all as were counted."""
    counts: Float = np.bincount(group, weights=count).astype(np.float64)
    bytes_of = np.bincount(group, weights=valid_bytes.astype(np.float64))
    rate = expected_rates(counts)
    part = np.divide(valid_bytes, bytes_of[group], out=np.zeros(len(group)), where=bytes_of[group] > 0)
    share = rate[group] * part
    # Pieces against their region's own count, as a multinomial: its parts differ from even ones by this much.
    told = np.bincount(group)[group] > 1
    even = counts[group] * part
    beyond = float(((count - even) ** 2 - even * (1 - part))[told].sum())
    if beyond > 0:
        shape = float((even[told] ** 2).sum()) / beyond
        share = np.where(told, share * (count + shape) / (even + shape), share)
    made = np.where(share < NEGLIGIBLE, 0.0, share)
    return np.asarray(made * (count.sum() / max(float(made.sum()), 1e-300)))


def expected_rates(counts: Float) -> Float:
    """The mean rate given each count, under the distribution of rates that makes all counts most likely."""
    values, inverse, number = np.unique(np.rint(counts), return_inverse=True, return_counts=True)
    top = 1.2 * float(values[-1]) + 1.0
    rates = np.concatenate([[RATE_NONE], np.geomspace(RATE_LEAST, top, RATES)])
    log = values[:, None] * np.log(rates) - rates
    likely = np.exp(log - log.max(axis=1, keepdims=True))
    weight = np.full(len(rates), 1 / len(rates))
    for _ in range(STEPS):
        given = likely * weight
        given /= given.sum(axis=1, keepdims=True)
        weight = number @ given / number.sum()
    given = likely * weight
    given /= given.sum(axis=1, keepdims=True)
    return np.asarray((given @ rates)[inverse])


def size_trust(rows: Int, size: Float, weights: Float, count: Float) -> Float:
    """By piece, 0 to 1: how far its own requests' sizes tell what its next ones ask, and not all requests' sizes."""
    pieces, total = len(count), float(count.sum())
    sums = np.bincount(rows, weights=weights * size, minlength=pieces)
    mean = np.divide(sums, count, out=np.zeros(pieces), where=count > 0)
    asked = int((count > 0).sum())
    within = float((weights * (size - mean[rows]) ** 2).sum()) / max(1.0, total - asked)
    whole = sums.sum() / total
    # The pieces' means spread by the sizes within them as well, each by within / count.
    freedom = total - float((count**2).sum()) / total
    between = (float((count * (mean - whole) ** 2).sum()) - (asked - 1) * within) / max(freedom, 1e-300)
    if between <= 0:
        return np.zeros(pieces)
    return np.asarray(count / (count + within / between))
