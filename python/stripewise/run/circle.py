"""What one circle of `tune` knows, and how its runs are repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..layout import Layout
from ..plan import Plan
from ..store import Temporary
from .measure import Measured
from .ways import Called


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
    propose, too, `called` the calls of MPI-IO of the first measured run (None: there was none yet),
    `in_force` whether the last run was in the way it was to be, `out` why pairs are measured no more.
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
    called: Called | None = None
    in_force: bool = True
    out: dict[str, str] = field(default_factory=dict)
    applied: str = ""
    number: int = 0

    @property
    def twins(self) -> dict[str, str]:
        """Of `same` those whose figures are told."""
        return {name: twin for name, twin in self.same.items() if twin in self.runs}
