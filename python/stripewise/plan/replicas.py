"""The copies that a plan has beside its layouts, as the plan holds them: what manager chose them, and what they gain.

A replica is kept in the form of docs/replicas/reference.md; what reads one whole is `stripewise.replicas.stored`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..files.fields import Fields
from ..units import OFFSET_BYTES_MAX
from .migrations import SECONDS_MAX

#: What writes do to a copy: they update it, or leave it stale where they write.
ON_WRITE = ("update", "invalidate")
#: Where each list stands, in the order of the file.
_LISTS = ("sets", "replicas")


@dataclass(frozen=True)
class PlannedReplicas:
    """The replicas of a manager, RADAR's as `sets`, those of others as `replicas`.

    `space_bytes` is the bound that was given (None: none), `simulated_s` and `simulated_io_s` are simulated seconds of
    the traced run and of its I/O with them, `alone_io_s` of its I/O on the same layouts without them, `def_io_s` under
    DEF without any.
    """

    manager: str
    space_bytes: int | None
    sets: tuple[Mapping[str, Any], ...]
    replicas: tuple[Mapping[str, Any], ...]
    simulated_s: float = 0.0
    simulated_io_s: float = 0.0
    alone_io_s: float = 0.0
    def_io_s: float = 0.0

    @property
    def all(self) -> list[Mapping[str, Any]]:
        """Of all sets, or as they are."""
        return [*self.replicas, *(each for one in self.sets for each in one["replicas"])]

    @property
    def bytes(self) -> int:
        """The space of all."""
        return sum(sum(each["space_bytes"].values()) for each in self.all)

    @property
    def gain(self) -> float | None:
        """How many times as fast as DEF without copies the I/O is; None where neither was simulated."""
        return self.def_io_s / self.simulated_io_s if self.def_io_s and self.simulated_io_s else None

    def as_decision(self) -> dict[str, Any]:
        """What `replicate --json` would have printed of the manager."""
        return {"manager": self.manager, "sets": list(self.sets), "replicas": self.all}


def dump_replicas(made: PlannedReplicas) -> list[str]:
    """The lines of the key `replicas`, one set or replica per line, without a comma after the last."""
    head = {
        "manager": made.manager,
        **({} if made.space_bytes is None else {"space_bytes": made.space_bytes}),
        "simulated_s": made.simulated_s,
        "simulated_io_s": made.simulated_io_s,
        "alone_io_s": made.alone_io_s,
        "def_io_s": made.def_io_s,
    }
    name, some = ("sets", made.sets) if made.sets else ("replicas", made.replicas)
    lines = ['  "replicas": {']
    lines += [f'    "{key}": {json.dumps(value)},' for key, value in head.items()]
    lines += [f'    "{name}": [', ",\n".join(f"      {json.dumps(each)}" for each in some), "    ]", "  }"]
    return lines


def parse_replicas(top: Fields, source: Path | str) -> PlannedReplicas | None:
    """The key `replicas` of a plan, None where it is not there; PlanError with file, key and cure.

    The blocks and layouts of replicas are looked at where they are to be made.
    """
    if "replicas" not in top.data:
        return None
    fields = Fields(top.table("replicas"), source, "replicas.", PlanError)
    seconds = ("simulated_s", "simulated_io_s", "alone_io_s", "def_io_s")
    fields.only({"manager", "space_bytes", *_LISTS, *seconds})
    sets, replicas = (fields.tables(key) if key in fields.data else [] for key in _LISTS)
    if bool(sets) == bool(replicas):
        raise fields.error("sets", "or replicas, one of the two, must hold what is to be made", "keep one, or neither")
    for where, each in [*_within(fields, sets), *((f"{fields.where}replicas", each) for each in replicas)]:
        inner = Fields(each, source, f"{where}.", PlanError)
        inner.text("file")
        if "on_write" in each:
            inner.choice("on_write", ON_WRITE)
        held = Fields(inner.table("space_bytes"), source, f"{where}.space_bytes.", PlanError)
        for name in held.data:
            held.integer(str(name), 0, OFFSET_BYTES_MAX)
    return PlannedReplicas(
        fields.text("manager"),
        fields.integer("space_bytes", 0, OFFSET_BYTES_MAX) if "space_bytes" in fields.data else None,
        tuple(sets),
        tuple(replicas),
        *(fields.number(key, 0.0, SECONDS_MAX, 0.0) for key in seconds),
    )


def _within(fields: Fields, sets: list[Any]) -> list[tuple[str, Any]]:
    """The replicas of sets, and where each stands."""
    found = []
    for number, one in enumerate(sets):
        where = f"{fields.where}sets[{number}]"
        inner = Fields(one, fields.source, f"{where}.", PlanError)
        replicas = inner.tables("replicas")
        if not replicas:
            raise inner.error("replicas", "is empty or missing", "leave out a set that has none")
        found += [(f"{where}.replicas[{position}]", each) for position, each in enumerate(replicas)]
    return found
