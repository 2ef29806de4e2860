"""RADAR's layout manager: replicas of what is read at one time, as sets, and which sets are worth their space.

Patterns go into buckets by their start. A bucket's data is striped over n_p servers for each process, which the coarse
model finds; the fine model prices the bucket on the file as it lies and on its replicas. New sets and those that stand,
whose benefit fades, compete for the space (RADAR, Algorithm 1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cluster import Cluster, Target
from ..model.figures import class_figures
from ..model.radar import RadarFigures, best_servers_per_client
from ..units import KIB, format_size, time_text
from . import schemes
from .accesses import Accesses, Extent
from .candidate import STANDS_ALREADY, STANDS_STALE, Decision, Refused, ReplicaSet, Room
from .decay import Decay, half_life
from .pdla import PARTS_MAX
from .setting import Chosen, Setting, shared
from .stale import Stale, mark_bytes

#: Below this share of the time, a gain is the rounding of stripes: such a set is not made.
GAIN_MIN = 0.1
#: Ours, the paper has no such bound: a set that saves less time in all, or holds less data (headers of HDF5 files), is
#: not worth a container, its record, and the look-up at each open of the file.
GAIN_MIN_S, DATA_MIN_BYTES = 1e-3, 64 * KIB

#: Of the time that a replica takes by writes.
COPYING = "go into copying what the run writes there"
#: Of reads from a copy that writes invalidate.
OUTDATED = "are written before they are read, so they gain nothing"


@dataclass(frozen=True)
class RadarOptions:
    """delta in ns, gamma, and the sets that stand (RADAR, Algorithm 1).

    Without a delta, for which the paper has no figure, patterns are one bucket that run at one time.
    """

    bucket_ns: int | None = None
    decay: Decay = half_life
    stored: tuple[ReplicaSet, ...] = ()
    #: Whether this run was counted before: then nothing grows older by it.
    is_again: bool = False
    #: Ours: replicas on SServers alone, where there are any.
    on_sservers: bool = False


def figures_of(cluster: Cluster, on: Sequence[Target] | None = None) -> RadarFigures:
    """n, and the means of the figures for reads of targets, all active ones unless others are given (Table I)."""
    targets = cluster.active if on is None else on
    read = class_figures(targets).read
    network = cluster.network
    return RadarFigures(len(targets), network.establish_s, network.per_byte_s, read.startup_s, read.per_byte_s)


def buckets(patterns: Sequence[Accesses], bucket_ns: int | None) -> list[list[Accesses]]:
    """Patterns by file and time window of their start, counted from the first start of all (section II.A.1).

    Without a length of windows: by file and stretches of time in which some pattern of it runs throughout.
    """
    found: dict[tuple[int, str], list[Accesses]] = defaultdict(list)
    begin = min((each.start_ns for each in patterns), default=0)
    running: dict[str, tuple[int, int]] = {}
    for pattern in sorted(patterns, key=lambda each: each.key):
        if bucket_ns is not None:
            number = (pattern.start_ns - begin) // bucket_ns
        else:
            number, until = running.get(pattern.file, (pattern.start_ns, pattern.start_ns))
            if pattern.start_ns > until:
                number = pattern.start_ns
            running[pattern.file] = number, max(until, pattern.end_ns, pattern.start_ns)
        found[number, pattern.file].append(pattern)
    return [found[key] for key in sorted(found)]


def radar(
    patterns: Sequence[Accesses],
    setting: Setting,
    room: Room,
    extents: Mapping[str, Extent],
    options: RadarOptions,
    on_write: str = "update",
) -> Decision:
    """The sets that are worth their space, the most benefit first; `room` holds sigma, `on_write` is of new copies."""
    refused: list[Refused] = []
    wanted = []
    for pattern in patterns:
        if pattern.write.any():
            refused.append(
                Refused(pattern.file, pattern.words, "radar makes copies of what is only read", pattern.bytes)
            )
        elif len(setting.shape(pattern).blocks) > PARTS_MAX:
            refused.append(Refused(pattern.file, pattern.words, "its blocks follow no few strides", pattern.bytes))
        else:
            wanted.append(pattern)
    made: dict[object, ReplicaSet] = {}
    on_sservers = options.on_sservers and bool(setting.cluster.sservers)
    first = 0
    for bucket in buckets(wanted, options.bucket_ns):
        new, first = _set_of(bucket, setting, first, on_sservers)
        if on_write == "invalidate":
            new = _invalidated(new, bucket, extents)
        made[new.key] = _again(made[new.key], new) if new.key in made else new
    made = {key: _with_writes(each, setting, extents) for key, each in made.items()}
    aged = list(options.stored) if options.is_again else [_aged(each, extents) for each in options.stored]
    fresh = [_standing(each, aged) for each in made.values()]
    old = [each for each in aged if each.key not in made]
    chosen, without = _selected(fresh, old, options.decay, room)
    candidates = tuple(candidate for each in chosen for candidate in each.candidates)
    return Decision("radar", candidates, (*refused, *without), tuple(chosen))


def _set_of(bucket: Sequence[Accesses], setting: Setting, first: int, on_sservers: bool) -> tuple[ReplicaSet, int]:
    """A bucket's replicas on all servers or on SServers, priced together; the first server, and that of the next."""
    cluster = setting.cluster
    on = cluster.sservers if on_sservers else cluster.active
    shapes = [setting.shape(each) for each in bucket]
    clients = len(np.unique(np.concatenate([each.client for each in bucket])))
    whole = sum(shape.bytes for shape in shapes)
    on_node = min(cluster.network.processes_per_node, clients)
    per_client = best_servers_per_client(figures_of(cluster, on), clients, on_node, whole)
    stripe = -(-whole // (clients * per_client))
    candidates = []
    for pattern, shape in zip(bucket, shapes, strict=True):
        layout, first = schemes.rotating(on, stripe, shape.held, first)
        chosen = Chosen("SServers" if on_sservers else "all", f"n_p {per_client}", layout, 0.0)
        candidates.append(setting.candidate(pattern, shape, chosen))
    times = setting.together_s(bucket, candidates)
    benefit_s = times[0] - times[1]
    return ReplicaSet(bucket[0].file, shared(candidates, *times), bucket[0].start_ns, benefit_s), first


def _again(before: ReplicaSet, new: ReplicaSet) -> ReplicaSet:
    """A set whose blocks are read in a later bucket, too: made once, with the benefit of both."""
    candidates = tuple(
        replace(
            one,
            also=(*one.also, other.words, *other.also),
            requests=one.requests + other.requests,
            bytes=one.bytes + other.bytes,
            benefit_s=one.benefit_s + other.benefit_s,
            original_s=one.original_s + other.original_s,
            replica_s=one.replica_s + other.replica_s,
            reasons=tuple(dict.fromkeys((*one.reasons, *other.reasons))),
        )
        for one, other in zip(before.candidates, new.candidates, strict=True)
    )
    return replace(before, candidates=candidates, benefit_s=before.benefit_s + new.benefit_s)


def _with_writes(new: ReplicaSet, setting: Setting, extents: Mapping[str, Extent]) -> ReplicaSet:
    """A set with the time that the run's writes of its blocks take on it as well: a copy is written with its home.

    Ours: the paper's data sets are only read.
    """
    extent = extents.get(new.file)
    if extent is None or extent.writes is None or not len(extent.writes.size):
        return new
    updated = [each for each in new.candidates if each.on_write != "invalidate"]
    if not updated:
        return new
    seconds = iter(setting.copied_s(updated, extent.writes))
    candidates = []
    for each in new.candidates:
        if each.on_write == "invalidate":
            candidates.append(each)
            continue
        copied_s = next(seconds)
        said = (f"{time_text(copied_s)} of the replica's time {COPYING}",) if copied_s else ()
        candidates.append(
            replace(
                each,
                benefit_s=each.benefit_s - copied_s,
                replica_s=each.replica_s + copied_s,
                reasons=(*each.reasons, *said),
            )
        )
    copied_s = sum(each.replica_s for each in candidates) - sum(each.replica_s for each in new.candidates)
    return replace(new, candidates=tuple(candidates), benefit_s=new.benefit_s - copied_s)


def _invalidated(new: ReplicaSet, bucket: Sequence[Accesses], extents: Mapping[str, Extent]) -> ReplicaSet:
    """A set of copies that writes invalidate: no time goes into copying, and reads of blocks that the run has written
    before the pattern begins gain nothing, for the file serves them. Their share of the gain is that of their bytes.
    """
    extent = extents.get(new.file)
    candidates = []
    for each, pattern in zip(new.candidates, bucket, strict=True):
        stale_bytes = 0
        if extent is not None and extent.writes is not None:
            before = extent.writes.before(pattern.start_ns)
            stale = Stale(before.offset, before.size, mark_bytes(extent.size_bytes))
            stale_bytes = int(pattern.size[stale.touches(pattern.offset, pattern.size)].sum())
        lost_s = each.gain_s * stale_bytes / pattern.bytes
        said = (f"{format_size(stale_bytes)} of {format_size(pattern.bytes)} {OUTDATED}",) if stale_bytes else ()
        candidates.append(
            replace(
                each,
                benefit_s=each.benefit_s - lost_s,
                replica_s=each.replica_s + lost_s,
                reasons=(*each.reasons, *said),
                on_write="invalidate",
            )
        )
    lost_s = sum(each.replica_s for each in candidates) - sum(each.replica_s for each in new.candidates)
    return replace(new, candidates=tuple(candidates), benefit_s=new.benefit_s - lost_s)


def _aged(stored: ReplicaSet, extents: Mapping[str, Extent]) -> ReplicaSet:
    """A set that stands, older by what this run read of its file."""
    extent = extents.get(stored.file)
    if extent is None or not extent.size_bytes:
        return stored
    return replace(stored, age=stored.age + extent.read_bytes / extent.size_bytes)


def _standing(new: ReplicaSet, stored: Sequence[ReplicaSet]) -> ReplicaSet:
    """A set of the run; where it stands already, as it stands, with nothing to build unless it is stale.

    Copies to which writes do something else are made anew.
    """
    for each in stored:
        if each.key == new.key and _on_write(each) == _on_write(new):
            candidates = tuple(
                replace(one, layout=old.layout, space_bytes=old.space_bytes, scheme=old.scheme,
                        build_s=one.build_s if each.is_outdated else 0.0,
                        reasons=(*one.reasons, STANDS_STALE if each.is_outdated else STANDS_ALREADY))
                for one, old in zip(new.candidates, each.candidates, strict=True)
            )  # fmt: skip
            return replace(new, candidates=candidates, is_stored=True)
    return new


def _on_write(each: ReplicaSet) -> list[str]:
    return [one.on_write for one in each.candidates]


def _selected(
    fresh: Sequence[ReplicaSet], stored: Sequence[ReplicaSet], decay: Decay, room: Room
) -> tuple[list[ReplicaSet], list[Refused]]:
    """The sets that are kept, by benefit, and those without gain or room (Algorithm 1, lines 7 to 9).

    One that does not fit makes way for smaller ones below it.
    """
    ranked = [(each.benefit_s, each) for each in fresh]
    ranked += [(decay(each.benefit_s, each.age), each) for each in stored]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].file, pair[1].start_ns, repr(pair[1].key)))
    chosen: list[ReplicaSet] = []
    refused: list[Refused] = []
    for benefit_s, each in ranked:
        if not each.is_stored and benefit_s <= GAIN_MIN * sum(one.original_s for one in each.candidates):
            said = [reason for one in each.candidates for reason in one.reasons]
            why = ", for what the run writes there is copied, too" if any(COPYING in one for one in said) else ""
            why = ", for the run writes it before it reads it" if any(OUTDATED in one for one in said) else why
            refused += _refused(each, f"gains less than {GAIN_MIN:.0%} over the file itself{why}")
            continue
        if not each.is_stored and (reason := _too_small(each)):
            refused += _refused(each, reason)
            continue
        lack = room.lack(each.space_bytes)
        if lack is not None:
            refused += _refused(each, f"{'evicted: its set' if each.is_stored else 'its set'} {lack}")
            continue
        room.take(each.space_bytes)
        chosen.append(each)
    return chosen, refused


def _too_small(each: ReplicaSet) -> str:
    """Why a set is not worth a container, however many times as fast it is; empty where it is."""
    if sum(part.bytes for one in each.candidates for part in one.blocks) < DATA_MIN_BYTES:
        return f"holds less than {format_size(DATA_MIN_BYTES)}, too little for a copy of its own"
    if each.benefit_s < GAIN_MIN_S:
        return f"gains less than {GAIN_MIN_S * 1e3:g} ms in all, too little for a copy of its own"
    return ""


def _refused(each: ReplicaSet, reason: str) -> list[Refused]:
    return [Refused(one.file, one.words, reason, one.bytes, one) for one in each.candidates]
