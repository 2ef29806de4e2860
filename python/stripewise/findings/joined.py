"""What small requests cost against the same bytes in large ones, in a file that may have others between them.

The others stay as they are in what the run takes with the cure, so small requests are priced at no more than what the
model has them take.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..units import format_size
from . import choices
from .facts import FileFacts, RunFacts
from .price import Seconds, load_of, saved

Chosen = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Joined:
    """The small ones among requests of a file."""

    #: Of all requests of the file, which are those.
    small: Chosen
    #: How many of what size, of how many.
    evidence: str
    price: Seconds
    #: What they took in this run, of the process that waited longest.
    measured_s: float | None
    #: How they are told where their bytes are compared with the same ones otherwise.
    bytes_text: str


def small_of(file: FileFacts, among: Chosen) -> Chosen:
    """Which requests of the file are small, and of these."""
    return among & (file.size <= choices.SMALL_BYTES)


def joined(file: FileFacts, run: RunFacts, cluster: Cluster, among: Chosen, what: str) -> Joined:
    """The small ones among these requests, told as `what`."""
    small = small_of(file, among)
    count, of = int(small.sum()), int(among.sum())
    size = format_size(int(np.median(file.size[small])))
    evidence = f"{count:,} {what} of {size} (median)"
    if count < of:
        share = 1 - float(file.size[small].sum()) / float(file.size[among].sum())
        evidence = f"{count:,} small of {of:,} {what}, {size} (median); {share:.0%} of the bytes are in larger ones"
    mine, others = file.asked.of(small), file.asked.of(among & ~small)
    rest = load_of(others, cluster)
    price = saved(load_of(mine, cluster) + rest, load_of(mine.joined(choices.JOINED_BYTES), cluster) + rest)
    measured_s = run.measured_s(file if small.all() else file.only(small))
    return Joined(small, evidence, price, measured_s, "the same bytes" if count == of else "the small ones' bytes")
