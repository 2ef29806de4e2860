"""What the doctor says, and what it looks at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Level(Enum):
    """How bad it is: BAD keeps files from working, NOTE is worth knowing."""

    OK = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """One sentence of what is so, and one of what to do; no cure where nothing is wrong."""

    level: Level
    what: str
    cure: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding as `doctor --json` prints it, behind the name of its check."""
        return {"level": self.level.value, "what": self.what, "cure": self.cure}


@dataclass(frozen=True)
class Examined:
    """A store, the command that is to run on it, and the machine's own descriptions of itself."""

    store: Path | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    proc: Path = Path("/proc")
    shm: Path = Path("/dev/shm")


def ok(what: str) -> Finding:
    """Nothing is wrong."""
    return Finding(Level.OK, what)


def note(what: str, cure: str) -> Finding:
    """Files work, but."""
    return Finding(Level.NOTE, what, cure)


def bad(what: str, cure: str) -> Finding:
    """Files would not work."""
    return Finding(Level.BAD, what, cure)
