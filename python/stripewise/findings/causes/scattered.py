"""Small requests in no order and of no preferred place: the disks' heads move for each of them."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..cures import on_ssds
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..hdf5 import is_hdf5
from ..price import load_of, saved


def scattered_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads, or of writes, that go backward nearly as often as a random order would: half of the times."""
    for write in (False, True):
        chosen = file.write == write
        count = int(chosen.sum())
        if count < choices.REQUESTS_MIN:
            continue
        median = int(np.median(file.size[chosen]))
        rank, offset = file.rank[chosen], file.offset[chosen]
        same = rank[1:] == rank[:-1]
        backward = float((offset[1:] < offset[:-1])[same].mean()) if same.any() else 0.0
        in_order = float(file.follows[chosen].mean())
        if median > choices.SMALL_BYTES or in_order >= choices.MOST or backward < choices.BACKWARD:
            continue
        op = "writes" if write else "reads"
        cure = on_ssds(file, run, cluster, file.asked.of(chosen))
        advice, command = cure.after(f"sort the {op} by place, join neighbours"), cure.command
        if not cure.words:
            advice = f"sort the {op} by place, or join neighbours"
        title, evidence = f"small {op} in no order", [f"{count:,} {op} of {format_size(median)} (median)"]
        evidence[0] += f", {backward:.0%} of them backward"
        large = file.size[chosen][file.size[chosen] > choices.SMALL_BYTES].sum() / file.size[chosen].sum()
        if large >= choices.MOST:
            evidence.append(f"{large:.0%} of the bytes are in larger ones")
            chosen = chosen & (file.size <= choices.SMALL_BYTES)
        if is_hdf5(file.path):
            title = f"small {op} of HDF5"
            advice = f"HDF5 metadata or a contiguous dataset: chunk it, {op[:-1]} larger hyperslabs"
            advice, command = (f"{advice}, flush less often" if write else advice), ""
        now = load_of(file.asked.of(chosen), cluster)
        then = load_of(file.asked.of(chosen).joined(choices.JOINED_BYTES), cluster)
        return Finding(
            "scattered",
            title,
            file.path,
            tuple(evidence),
            saved(now, then),
            f"against the same bytes in order, in requests of {format_size(choices.JOINED_BYTES)}",
            advice,
            command,
        )
    return None
