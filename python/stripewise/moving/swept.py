"""What a drain or rebalance did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Swept:
    """What a drain or rebalance did; `left` says why what is left is left. `files` are those of users, `copied` those
    whose copies moved, in a file of the store's own.

    Bytes that were copied are more than those `cleared` off a drained target: regions that name it move whole.
    Off one that `is_away` nothing moves.
    """

    files: int = 0
    copied: int = 0
    #: Files that a rebalance left as somebody laid them out.
    kept: int = 0
    moved_bytes: int = 0
    cleared_bytes: int = 0
    left: list[str] = field(default_factory=list)
    signal: int | None = None
    stopped: bool = False
    is_away: bool = False
    #: The target that is drained; empty for a rebalance.
    drained: str = ""
    #: The file of which a part had moved when the work was stopped; empty where none had.
    part: str = ""
    #: For so long nothing got better before it gave up.
    waited_s: float = 0.0

    def count(self, is_container: bool) -> None:
        """One more that moved whole."""
        self.files += not is_container
        self.copied += is_container

    @property
    def whole(self) -> str:
        """What moved whole, in words."""
        copies = f"the copies of {self.copied} file(s)" if self.copied else ""
        return " and ".join(
            part for part in (f"{self.files} file(s)" if self.files or not copies else "", copies) if part
        )

    def as_json(self) -> dict[str, Any]:
        """What was done as `--json` prints it."""
        return {
            "files": self.files,
            "copied": self.copied,
            "kept": self.kept,
            "moved_bytes": self.moved_bytes,
            "cleared_bytes": self.cleared_bytes,
            "left": self.left,
            "stopped": self.stopped,
        }
