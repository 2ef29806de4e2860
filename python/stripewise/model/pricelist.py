"""The price list of one request: every layout, term by term, by the model it comes from, with the bound's view beside.

A layout is one entry of `LAYOUTS`: a name, its source, where it applies, and candidates with the servers that the
request meets. The models answer different questions, so a price counts only within its view: `shared` (section 1: all p
processes' requests meet on the same servers), `spread` (sections 2 and 4: processes spread over the servers), `alone`
(section 3: one request, no network). The bound (section 7) compares all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..cluster import Network
from ..units import GRANULE_BYTES, round_up
from .bound import service_bound
from .figures import CostParameters, DeviceFigures, OpFigures
from .general import Cycle, bytes_on_servers, request_cost
from .one_class import ClassParameters, group_counts, one_dh, one_dv, pdla_by_corners, two_d
from .radar import RadarFigures, best_servers_per_client, coarse
from .segment import mean_startup, optimal_stripe, segment_cost, startup
from .terms import Terms, request_terms

VIEWS = {"shared": "request models", "spread": "process models", "alone": "segment model"}
HSERVERS, SSERVERS, BOTH = "hservers", "sservers", "both"
SHORT = {HSERVERS: "r/M", SSERVERS: "r/N"}
#: A width that holds any request whole.
WHOLE_BYTES = 1 << 62
#: Pairs of Algorithm 1 that are listed: the best and its runners-up.
PAIRS_LISTED = 4
#: Prices that differ by less are equal: the same sum in another order.
TIE = 1.0 + 1e-9
#: Requests back to back over which the bound is averaged, at most.
SEQUENCE_MAX = 64


@dataclass(frozen=True)
class Question:
    """One request of r bytes at an offset, asked of M HServers and N SServers with `params`.

    `pairs` are Algorithm 1's candidates for it; `stripe_bytes` is DEF's; startup of section 3 is uniform on
    a*(1 -/+ `startup_spread`).
    """

    params: CostParameters
    M: int
    N: int
    request_bytes: int
    offset: int = 0
    write: bool = False
    pairs: Sequence[tuple[int, int]] = ()
    stripe_bytes: int = 64 << 10
    startup_spread: float = 1.0

    def device(self, ssd: bool) -> OpFigures:
        """The figures of a class for this request's operation."""
        device: DeviceFigures = self.params.ssd if ssd else self.params.hdd
        return device.write if self.write else device.read

    def count(self, ssd: bool) -> int:
        """Servers of a class."""
        return self.N if ssd else self.M

    def one_class(self, ssd: bool) -> ClassParameters:
        """One class for section 2."""
        return ClassParameters.of(self.params, self.count(ssd), ssd, self.write)


@dataclass(frozen=True)
class Candidate:
    """One layout with its numbers: the cycle that the request meets, and its model's terms (None: the general case)."""

    on: str
    parameters: dict[str, int]
    cycle: Cycle
    terms: Terms | None = None


@dataclass(frozen=True)
class LayoutModel:
    """An entry of the list: `why_not` says why it does not apply, `candidates` makes its variants, best first."""

    name: str
    source: str
    about: str
    view: str
    why_not: Callable[[Question], str | None]
    candidates: Callable[[Question], list[Candidate]]


@dataclass(frozen=True)
class Price:
    """A row of the list: seconds by the layout's own model, and what the bound sees.

    `pieces` are accesses (K) on HServers and SServers, `busiest_s` what the request adds to its busiest server,
    `bound_s` seconds per request at best when such requests follow each other and layouts rotate from region to region,
    `limit` what sets it.
    """

    model: LayoutModel = field(repr=False)
    on: str
    parameters: dict[str, int]
    terms: Terms
    decides: str
    pieces: tuple[int, int]
    busiest_s: float
    bound_s: float
    limit: str

    @property
    def total_s(self) -> float:
        return float(self.terms.total_s)

    @property
    def label(self) -> str:
        """A short name that tells layouts apart, not their widths."""
        if self.model.name in SHORT:
            return SHORT[self.model.name]
        groups = f"({self.parameters['groups']})" if "groups" in self.parameters else ""
        suffix = (
            {HSERVERS: "/H", SSERVERS: "/S", BOTH: ""}[self.on] if self.model.name not in (HSERVERS, SSERVERS) else ""
        )
        return f"{self.model.name}{groups}{suffix}"


@dataclass(frozen=True)
class SplitLoss:
    """Disks that a request starts split over all HServers and kept whole, and how many times faster whole ones are."""

    split_disks: int
    whole_disks: int
    times: float


@dataclass(frozen=True)
class PriceList:
    """All rows in the order of `LAYOUTS`, and why the layouts without a row do not apply."""

    rows: list[Price]
    skipped: dict[str, str]

    def cheapest(self, view: str) -> Price | None:
        """The row with the least price of a view, or with the least `bound_s` for "bound"; the first among equals."""
        rows = [row for row in self.rows if view in ("bound", row.model.view)]
        seconds = [row.bound_s if view == "bound" else row.total_s for row in rows]
        least = min(seconds, default=0.0) * TIE
        return next((row for row, each in zip(rows, seconds, strict=True) if each <= least), None)

    def loss_by_splitting(self) -> SplitLoss | None:
        """What a request loses by r/M on HServers; None where it loses nothing, or one of both was not priced."""
        split = next((row for row in self.rows if row.model.name == "hservers"), None)
        whole = next((row for row in self.rows if row.label == "whole/H"), None)
        if split is None or whole is None or split.bound_s <= whole.bound_s * TIE:
            return None
        return SplitLoss(split.pieces[0], whole.pieces[0], split.bound_s / whole.bound_s)


def price_list(question: Question, on: str = "all") -> PriceList:
    """Prices `question` under every layout, or under those on one class only (`hservers` or `sservers`).

    Raises ValueError for a request without bytes or a cluster without servers.
    """
    if question.request_bytes < 1 or question.offset < 0 or question.M + question.N < 1:
        raise ValueError("a price needs a request of at least one byte, an offset of at least 0, and a server")
    rows, skipped = [], {}
    for model in LAYOUTS:
        reason = model.why_not(question)
        if reason is not None:
            skipped[model.name] = reason
            continue
        rows += [_price(question, model, each) for each in model.candidates(question) if on in ("all", each.on)]
    return PriceList(rows, skipped)


def _price(q: Question, model: LayoutModel, candidate: Candidate) -> Price:
    offset, size, write = np.array([q.offset]), np.array([q.request_bytes]), np.array([q.write])
    general, ssd_decides = request_terms(q.params, candidate.cycle, offset, size, write)
    terms = candidate.terms or general
    pieces, busiest = {False: 0, True: 0}, 0.0
    for ssd, share in zip(candidate.cycle.ssd, bytes_on_servers(candidate.cycle, offset, size), strict=True):
        if share[0] > 0:
            pieces[ssd] += 1
            busiest = max(busiest, q.device(ssd).startup_s + float(share[0]) * q.device(ssd).per_byte_s)
    bound_s, limit = _bound(q, candidate.cycle)
    return Price(
        model=model,
        on=candidate.on,
        parameters=candidate.parameters,
        terms=Terms(*(float(np.ravel(each)[0]) for each in
                      (terms.establish_s, terms.transfer_s, terms.startup_s, terms.storage_s))),
        decides="ssd" if ssd_decides[0] else "hdd",
        pieces=(pieces[False], pieces[True]),
        busiest_s=busiest,
        bound_s=bound_s,
        limit=limit,
    )  # fmt: skip


def _bound(q: Question, cycle: Cycle) -> tuple[float, str]:
    """Seconds per request at best, and what sets them: requests back to back, each class evenly loaded by rotation."""
    count = max(1, min(SEQUENCE_MAX, int(cycle.length) // math.gcd(int(cycle.length), q.request_bytes)))
    if int(cycle.length) == WHOLE_BYTES:
        count = 1
    offset = q.offset + np.arange(count, dtype=np.int64) * q.request_bytes
    params = q.params
    servers = [
        (f"{number}", device.read, device.write)
        for number, device in enumerate(params.ssd if ssd else params.hdd for ssd in cycle.ssd)
    ]
    bound = service_bound(
        servers, cycle, offset, np.full(count, q.request_bytes), np.full(count, q.write),
        np.ones(count, dtype=np.int64), Network(params.e, params.t, params.c),
    )  # fmt: skip
    for by_server in (bound.demand_s, bound.link_s, bound.connect_s):
        for ssd in (False, True):
            members = [str(number) for number, each in enumerate(cycle.ssd) if each == ssd]
            total = sum(by_server[name] for name in members)
            for name in members:
                by_server[name] = total / q.count(ssd)
    limits = bound.limits_s(params.p)
    limit = max(limits, key=lambda name: limits[name])
    return limits[limit] / count, limit


def _always(q: Question) -> str | None:
    return None


def _needs_hservers(q: Question) -> str | None:
    return None if q.M else "there are no HServers"


def _needs_sservers(q: Question) -> str | None:
    return None if q.N else "there are no SServers"


def _needs_both(q: Question) -> str | None:
    return _needs_hservers(q) or _needs_sservers(q)


def _classes(q: Question) -> list[tuple[bool, str]]:
    return [(ssd, name) for ssd, name in ((False, HSERVERS), (True, SSERVERS)) if q.count(ssd)]


def _over(ssd: bool, n: int, width_bytes: int) -> Cycle:
    return Cycle.of([(ssd, width_bytes)] * n)


def _share(request_bytes: int, n: int) -> int:
    """r/n, rounded up to what a target takes."""
    return round_up(-(-request_bytes // n), GRANULE_BYTES)


def _def(q: Question) -> list[Candidate]:
    on = BOTH if q.M and q.N else HSERVERS if q.M else SSERVERS
    return [Candidate(on, {"stripe_bytes": q.stripe_bytes}, Cycle.pair(q.M, q.N, q.stripe_bytes, q.stripe_bytes))]


def _split(ssd: bool, on: str) -> Callable[[Question], list[Candidate]]:
    def candidates(q: Question) -> list[Candidate]:
        width = _share(q.request_bytes, q.count(ssd))
        return [Candidate(on, {"stripe_bytes": width}, _over(ssd, q.count(ssd), width))]

    return candidates


def _pairs(q: Question) -> list[Candidate]:
    if not q.pairs:
        return []
    widths = np.array([[h] * q.M + [s] * q.N for h, s in q.pairs], dtype=np.int64)
    cost = request_cost(
        q.params, Cycle(widths, (False,) * q.M + (True,) * q.N),
        np.array([q.offset]), np.array([q.request_bytes]), np.array([q.write]),
    )[:, 0]  # fmt: skip
    # Among equals the last, widest pair first, as the search of Algorithm 1 takes it.
    order = np.lexsort((-np.arange(len(cost)), cost))[:PAIRS_LISTED]
    made = []
    for h, s in (q.pairs[int(number)] for number in order):
        on = BOTH if h and q.M else SSERVERS
        made.append(Candidate(on, {"h_bytes": h, "s_bytes": s}, Cycle.pair(q.M, q.N, h, s)))
    return made


def _whole(q: Question) -> list[Candidate]:
    return [Candidate(on, {}, _over(ssd, 1, WHOLE_BYTES)) for ssd, on in _classes(q)]


def _pdla(q: Question) -> list[Candidate]:
    best = pdla_by_corners(q.params, q.M, q.N, q.request_bytes, q.write)
    h = round(best.h / GRANULE_BYTES) * GRANULE_BYTES
    s = max(GRANULE_BYTES, _share(q.request_bytes - q.M * h, q.N))
    return [Candidate(BOTH if h else SSERVERS, {"h_bytes": h, "s_bytes": s}, Cycle.pair(q.M, q.N, h, s))]


def _one_dv(q: Question) -> list[Candidate]:
    return [
        Candidate(on, {}, _over(ssd, 1, WHOLE_BYTES), one_dv(q.one_class(ssd), q.request_bytes))
        for ssd, on in _classes(q)
    ]


def _one_dh(q: Question) -> list[Candidate]:
    made = []
    for ssd, on in _classes(q):
        width = _share(q.request_bytes, q.count(ssd))
        terms = one_dh(q.one_class(ssd), q.request_bytes)
        made.append(Candidate(on, {"stripe_bytes": width}, _over(ssd, q.count(ssd), width), terms))
    return made


def _two_d(q: Question) -> list[Candidate]:
    made = []
    for ssd, on in _classes(q):
        for g in group_counts(q.count(ssd))[1:-1]:
            w = q.count(ssd) // g
            width = _share(q.request_bytes, w)
            terms = two_d(q.one_class(ssd), q.request_bytes, g)
            made.append(Candidate(on, {"groups": g, "stripe_bytes": width}, _over(ssd, w, width), terms))
    return made


def _radar(q: Question) -> list[Candidate]:
    made = []
    for ssd, on in _classes(q):
        device, p, c = q.device(ssd), q.params.p, q.params.c
        figures = RadarFigures(q.count(ssd), q.params.e, q.params.t, device.startup_s, device.per_byte_s)
        n_p = best_servers_per_client(figures, p, c, p * q.request_bytes)
        width = _share(q.request_bytes, n_p)
        terms = coarse(figures, p, c, p * q.request_bytes, n_p)
        made.append(Candidate(on, {"servers": n_p, "stripe_bytes": width}, _over(ssd, n_p, width), terms))
    return made


def _slal(q: Question) -> list[Candidate]:
    made = []
    for ssd, on in _classes(q):
        device, n, r = q.device(ssd), q.count(ssd), q.request_bytes
        t_min = device.startup_s * (1 - q.startup_spread)
        t_max = device.startup_s * (1 + q.startup_spread)
        stripe = optimal_stripe(r, n, t_min, t_max, device.per_byte_s)
        total = float(segment_cost(r, stripe, n, t_min, t_max, device.per_byte_s))
        k = min(n, -(-r // stripe))
        slowest = mean_startup(t_min, t_max) if k == 1 else float(startup(k, t_min, t_max))
        terms = Terms(0.0, 0.0, slowest, total - slowest)
        made.append(Candidate(on, {"stripe_bytes": stripe}, _over(ssd, n, stripe), terms))
    return made


#: Every layout that is priced; a new one is one more entry.
LAYOUTS: tuple[LayoutModel, ...] = (
    LayoutModel("def", "section 1", "every server, one stripe", "shared", _always, _def),
    LayoutModel(
        HSERVERS, "000, Table 3", "HServers only, r/M each", "shared", _needs_hservers, _split(False, HSERVERS)
    ),
    LayoutModel(SSERVERS, "000, Table 2", "SServers only, r/N each", "shared", _needs_sservers, _split(True, SSERVERS)),
    LayoutModel("pair", "000, Algorithm 1", "stripe pair (h, s)", "shared", _needs_sservers, _pairs),
    LayoutModel("pdla", "003, Table 5", "stripe pair by linear program", "shared", _needs_both, _pdla),
    LayoutModel("whole", "section 7", "one server holds the request", "shared", _always, _whole),
    LayoutModel("1-dv", "003, Tables 2, 4", "a process on one server", "spread", _always, _one_dv),
    LayoutModel("2-d", "003, Tables 2, 4", "a process on one group", "spread", _always, _two_d),
    LayoutModel("1-dh", "003, Tables 2, 4", "a process on all servers", "spread", _always, _one_dh),
    LayoutModel("radar", "004, eqs. 1-4", "n_p servers per client", "spread", _always, _radar),
    LayoutModel("slal", "001, eqs. 3-4", "a segment's stripe", "alone", _always, _slal),
)
