"""RMT, the region mapping table: where a region lies in every time window (H2DP, sections 3.6, 3.7 and 4.2).

The key is (application, processes, file, region number, window), the value the region's stripes, as in the paper. A
region has an entry in window 0 and one in every window in which it moves; in between the entry before it holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import PlanError
from ..layout import Stripes
from .application import application_of
from .document import Plan

#: What the paper reckons for one entry (section 5.4).
ENTRY_BYTES = 128


@dataclass(frozen=True)
class RegionKey:
    """Which region of which file, for which run of which application, in which window."""

    application: str
    processes: int
    file: str
    region: int
    window: int


class RegionMappingTable:
    """The table of one plan. Looking up costs O(log windows); building it O(regions + moves)."""

    def __init__(self, plan: Plan) -> None:
        self.application = application_of(plan.command)
        self.processes = plan.processes
        self.windows = max(1, len(plan.windows))
        #: Per file and region the windows with an entry, in order, and the entries.
        self._entries: dict[tuple[str, int], tuple[list[int], list[Stripes]]] = {}
        self._last_region = {file.path: len(file.regions) - 1 for file in plan.files}
        number: dict[tuple[str, int], int] = {}
        for file in plan.files:
            for position, region in enumerate(file.regions):
                number[file.path, region.start] = position
                self._entries[file.path, position] = ([0], [region.stripes])
        for migration in plan.migrations:
            for move in migration.moves:
                windows, stripes = self._entries[move.file, number[move.file, move.start]]
                windows.append(migration.window)
                stripes.append(move.stripes)

    def __len__(self) -> int:
        return sum(len(windows) for windows, _ in self._entries.values())

    @property
    def bytes(self) -> int:
        """What the table takes at the paper's 128 bytes an entry."""
        return ENTRY_BYTES * len(self)

    def lookup(self, key: RegionKey) -> Stripes:
        """The stripes of a region in a window; PlanError when the table is not for that application, file or region.

        A region past the last planned one is the last one, which repeats; so is a window past the last.
        """
        if (key.application, key.processes) != (self.application, self.processes):
            raise PlanError(
                f"the plan is for '{self.application}' with {self.processes} process(es), not for '{key.application}' "
                f"with {key.processes}; plan a trace of that run"
            )
        if key.file not in self._last_region or key.region < 0:
            raise PlanError(f"'{key.file}' has no region {key.region} in the plan; plan a trace that touches it")
        if key.window < 0:
            raise PlanError(f"window {key.window} is before the plan's first; windows count from 0")
        windows, stripes = self._entries[key.file, min(key.region, self._last_region[key.file])]
        return stripes[bisect_right(windows, key.window) - 1]

    def rows(self) -> Iterator[tuple[RegionKey, Stripes]]:
        """All entries, by file, region and window."""
        for (path, region), (windows, stripes) in self._entries.items():
            for window, each in zip(windows, stripes, strict=True):
                yield RegionKey(self.application, self.processes, path, region, window), each

    def as_json(self) -> dict[str, Any]:
        """The table as `show --json` prints it."""
        entries = [
            {"file": key.file, "region": key.region, "window": key.window, "stripes": [list(each) for each in stripes]}
            for key, stripes in self.rows()
        ]
        return {
            "application": self.application,
            "processes": self.processes,
            "windows": self.windows,
            "bytes": self.bytes,
            "entries": entries,
        }
