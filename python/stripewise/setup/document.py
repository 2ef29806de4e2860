"""cluster.toml as init writes it: the file that calibrate would write, with what was found said before each target."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..cluster import Cluster, Target, cluster_text
from ..cluster.calibration import FIGURE_KINDS
from ..devices import Place
from ..units import MB, format_size
from .classes import CLASS_KINDS, Decided

#: Comments end before this column.
COLUMNS = 110
#: Measurements that decide a target's figures or its class.
_DECIDING = (*FIGURE_KINDS, *CLASS_KINDS)
#: What decided on a class, in words.
BY = {
    "measurement": "by measurement",
    "kernel": "by the kernel's flag",
    "given": "by choice",
    "nothing": "for want of anything better",
}


@dataclass(frozen=True)
class FoundTarget:
    """A target, the directory that was given for it, what lies under it, its class's reason, and what is free there."""

    target: Target
    directory: Path
    place: Place
    decided: Decided
    free_bytes: int
    total_bytes: int

    @property
    def is_emulated(self) -> bool:
        return self.target.kind == "emulated"

    @property
    def unreliable(self) -> list[str]:
        """What of the measurement is unreliable and decides the target's figures or class."""
        record = self.target.calibration
        return [] if record is None else [kind for kind in record.unreliable if kind in _DECIDING]

    @property
    def rate(self) -> str:
        """MB/s of large reads; a dash where the size of a read made no difference."""
        per_byte_s = self.target.per_byte_read_s
        return f"{1 / per_byte_s / MB:,.0f}" if per_byte_s else "-"


def cluster_document(cluster: Cluster, found: Sequence[FoundTarget], store: Path) -> str:
    """The text of cluster.toml."""
    head = [
        f"Targets of the store {store}, found by stripewise init. For the store its own copy counts, store.toml;",
        "this file serves plan --cluster, simulate --cluster and store create. Keys: docs/formats.md.",
    ]
    lines = []
    left = iter(found)
    for line in cluster_text(cluster).splitlines():
        if line == "[[target]]":
            lines += [part for text in comments(next(left)) for part in _comment(text)]
        lines.append(line)
    return "\n".join([*_comment(" ".join(head)), *lines]) + "\n"


def comments(found: FoundTarget) -> list[str]:
    """What stands before a target."""
    target = found.target
    if found.is_emulated:
        lines = [f"EMULATED, not a device: a directory slowed down to the figures below, on {found.place.words}."]
    else:
        lines = [
            f"{found.directory}: {found.place.words}.",
            f"Class {target.klass} {BY[found.decided.by]}: {found.decided.why}.",
        ]
    if not found.is_emulated and target.calibration is None:
        lines.append("Its figures are ASSUMED for its class; 'stripewise calibrate' measures them.")
    elif found.unreliable:
        kinds = ", ".join(found.unreliable)
        lines.append(
            f"Measured unreliably ({kinds}): a busy or shared device; docs/calibration.md, 'When a fit is bad'."
        )
    free = f"{format_size(found.free_bytes)} of {format_size(found.total_bytes)} were free"
    limit = (
        "capacity_bytes = 0 takes all that its file system has"
        if not target.capacity_bytes
        else "capacity_bytes was given"
    )
    return [*lines, f"{free}; {limit}."]


def _comment(text: str) -> Iterator[str]:
    plain = "".join(char if char.isprintable() else "?" for char in text)
    for number, part in enumerate(textwrap.wrap(plain, COLUMNS, break_long_words=False, break_on_hyphens=False)):
        yield f"# {'  ' if number else ''}{part}"
