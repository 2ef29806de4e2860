"""The operations of workload paths, by name and number, as Rust defines them (crates/workpath/src/op.rs)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .. import native


@dataclass(frozen=True)
class Operation:
    """One operation; `place` is where it stands: `inside` file open sessions, `outside`, or `both`."""

    name: str
    number: int
    #: `data` or `metadata`.
    kind: str
    place: str
    #: `posix` or `mpi`.
    layer: str
    #: All processes of the communicator make the call together.
    collective: bool

    @property
    def is_data(self) -> bool:
        """Whether it moves bytes of a file."""
        return self.kind == "data"


@cache
def operations() -> dict[str, Operation]:
    """All by name. Raises StoreError where the native module is missing."""
    found = native.call("workpath_ops")
    rows = (
        Operation(*(row[key] for key in ("name", "number", "kind", "place", "layer", "collective"))) for row in found
    )
    return {each.name: each for each in rows}


@cache
def by_number() -> dict[int, Operation]:
    """All by number."""
    return {each.number: each for each in operations().values()}


def inside(layer: str) -> list[str]:
    """Names of those that stand inside sessions of a layer, the open and the close left out."""
    ends = {"open", "close", "opendir", "mpi_open", "mpi_close"}
    return [
        each.name
        for each in operations().values()
        if each.layer == layer and each.place != "outside" and each.name not in ends
    ]
