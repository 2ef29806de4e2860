"""How the MPI-IO of a run is carried out, where a plan says so: tuned while it runs, or by hints for ROMIO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..files.fields import Fields

#: Hints in one way, and bytes of a key or a value.
HINTS_MAX, TEXT_MAX = 64, 256


@dataclass(frozen=True)
class MpiWay:
    """One way: `engine` as by `run --engine`, `hints` as in a file of ROMIO_HINTS."""

    name: str
    engine: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """For people."""
        return "run --engine" if self.engine else " ".join(f"{key}={value}" for key, value in self.hints.items())

    @property
    def hints_text(self) -> str:
        """The lines of a file of hints."""
        return "".join(f"{key} {value}\n" for key, value in self.hints.items())

    def as_json(self) -> dict[str, Any]:
        """As plan.json has it."""
        return {"way": self.name, "engine": self.engine, "hints": dict(self.hints)}


def parse_way(top: Fields, source: Path | str) -> MpiWay | None:
    """The way of a plan; None: MPI-IO is as the program makes it. Raises PlanError."""
    if "mpi" not in top.data:
        return None
    fields = Fields(top.table("mpi"), source, "mpi.", PlanError)
    fields.only({"way", "engine", "hints"})
    engine = fields.data.get("engine", False)
    if not isinstance(engine, bool):
        raise fields.error("engine", "is neither true nor false", "give one of them, or none")
    hints = Fields(fields.table("hints"), source, "mpi.hints.", PlanError)
    if len(hints.data) > HINTS_MAX:
        raise fields.error("hints", f"has more than {HINTS_MAX} keys", "leave those out that change nothing")
    for key in hints.data:
        value = hints.text(str(key))
        # A line of a file of hints is a key, a blank and a value, and ROMIO says nothing of one that is otherwise.
        for text in (str(key), value):
            if not 0 < len(text) <= TEXT_MAX or not text.isascii() or not text.isprintable() or " " in text:
                cure = f"give words of 1 to {TEXT_MAX} characters without blanks"
                raise hints.error(str(key), f"= '{value}' cannot be a line of a file of hints", cure)
    if engine == bool(hints.data):
        cure = "write engine = true, or hints, or no mpi at all"
        raise fields.error("engine", "says nothing, or goes with hints, which it would not heed", cure)
    return MpiWay(fields.text("way"), engine, {str(key): hints.text(str(key)) for key in hints.data})
