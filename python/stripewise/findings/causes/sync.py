"""Syncs one behind the other: a process waits for the device longer than it reads and writes."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size, seconds_text
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import Seconds


def frequent_syncs(file: FileFacts, _run: RunFacts, _cluster: Cluster) -> Finding | None:
    """Of a file's busiest process in syncs; its price is what was measured, since no model prices them."""
    syncs = file.syncs
    if syncs is None or len(syncs) < choices.SYNCS_MIN:
        return None
    ranks, of = np.unique(syncs.rank if file.records.is_ranked else syncs.process, return_inverse=True)
    spent = np.bincount(of, weights=syncs.seconds)
    longest = int(spent.argmax())
    moved_s = float(file.io_s[file.ranks == ranks[longest]].sum())
    each = int(file.size[file.write].sum()) // len(syncs)
    waited = float(spent[longest])
    if waited < choices.SYNC_S or waited < choices.MOST * (waited + moved_s) or each >= choices.SYNCED_BYTES:
        return None
    return Finding(
        "sync",
        "frequent syncs",
        file.path,
        (
            f"{len(syncs):,} syncs (fsync and the like) for {format_size(each)} written each, on average",
            f"{file.who} {int(ranks[longest])} is {seconds_text(waited)} s in syncs, "
            f"{seconds_text(moved_s)} s in its reads and writes",
        ),
        Seconds(waited, float(spent.sum())),
        f"measured in this run: the longest {file.who}, and all {file.who_all} together",
        "sync once at the end, or once per checkpoint, and write more between two syncs",
    )
