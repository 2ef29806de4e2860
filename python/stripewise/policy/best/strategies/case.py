"""What a strategy is given, and what it answers with.

A strategy is a function from a `Case` to proposals. A proposal is one idea of a layout as a row of attempts, each
filling less of the room than the one before; the first that fits is tried. A newcomer writes one in a file of its own
and adds it to `STRATEGIES` in `propose.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....cluster import Cluster
from ....layout import Stripes
from ....model.general import Float
from ....workload.requests import Workload
from ..expected.heats import FileHeat


@dataclass(frozen=True)
class Case:
    """The heat of every file (None: nothing in it), the cluster, bytes that each active target takes, processes, and
    the trace, and likely runs (or the trace, where it will be repeated)."""

    heats: Sequence[FileHeat | None]
    cluster: Cluster
    rooms: Float
    processes: int
    workload: Workload
    runs: Sequence[Workload]


@dataclass(frozen=True)
class Piece:
    """Bytes [start, start + length) of a file, by its number in the workload, their stripes, and why they lie so."""

    file: int
    start: int
    length: int
    stripes: Stripes
    reason: str = ""

    @property
    def end(self) -> int:
        """The byte behind the last one."""
        return self.start + self.length


#: The pieces of all files in order, without gaps in a file.
Attempt = Sequence[Piece]
Proposals = Iterator[Iterator[Attempt]]
