"""What one circle of `tune` knows, and how its runs are repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..layout import Layout
from ..plan import Plan
from ..plan.mpi_way import MpiWay
from ..store import Temporary
from .measure import Measured


@dataclass(frozen=True)
class Turns:
    """How runs are repeated: so many rounds (None: until the times are known), and what sets the inputs back before
    each run but the first; `levers` are what is looked for (`LEVERS`)."""

    rounds: int | None = None
    reset: str | None = None
    levers: frozenset[str] = frozenset({"layout"})


@dataclass
class Circle:
    """What one circle knows: where traces go, what the runs were, where the files lay, and whose layout lies there.

    `ids` are those of the files by path, `made` the paths of those that a run made anew or that another run did not
    have, `always` of those that all runs touch, `there` of those before the first run, `first` the names that renamed
    files were made with, `known` all names that files were made with, `same` the measured policies whose layouts others
    propose, too, `ways` those of MPI-IO that may matter (None: not looked at).
    """

    temporary: Temporary
    place: Path
    runs: dict[str, list[Measured]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    before: dict[str, Layout] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    always: set[str] = field(default_factory=set)
    there: frozenset[str] = frozenset()
    first: dict[str, str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    ways: tuple[MpiWay, ...] | None = None
    applied: str = ""
    number: int = 0
