"""Marks of a profile checked: whom one may name where, and the groups that marks mean (marks.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import WorkloadError
from ...files.fields import Fields
from ..extraction.subgroups import GROUPS_MAX
from ..marks import GROUP_MARK, OTHERS_MARK, ROOT_MARK
from ..operations import operations
from .makers import PARTS
from .profile import Subgroup

#: Divisor of a group of congruent ranks, at most.
DIVISOR_MAX = 1 << 20


@dataclass(frozen=True)
class Marks:
    """Marks that may stand behind a name in some place, and what to do about others."""

    allowed: frozenset[str]
    cure: str

    def name(self, fields: Fields, key: str) -> str:
        """The name that a key has before its mark. Raises WorkloadError for a mark that cannot stand there."""
        name, at, _ = key.partition("@")
        mark = key[len(name) :]
        if at and mark not in self.allowed:
            raise fields.error(key, f"has the mark {mark}, which means nobody here", self.cure)
        operation = operations().get(name)
        if at and operation is not None and operation.collective and operation.place != "outside":
            raise fields.error(key, "is a collective call, which all ranks make", f"write {name}")
        return name

    def only(self, fields: Fields, known: set[str]) -> None:
        """Refuses keys that, without their marks, are not in `known`."""
        fields.only(known | {key for key in fields.data if self.name(fields, str(key)) in known})


def no_marks(why: str) -> Marks:
    """None at all, for what `why` says."""
    return Marks(frozenset(), f"leave it out: {why}")


def marks_of(subgroups: Sequence[Subgroup]) -> Marks:
    """Those of a profile: of the root, of all others, and of each group that is described."""
    described = [at for at, each in enumerate(subgroups[:GROUPS_MAX], 1) if each.group is not None]
    allowed = [ROOT_MARK, OTHERS_MARK, *(f"{GROUP_MARK}{at}" for at in described)]
    return Marks(frozenset(allowed), f"use {', '.join(allowed)}, or describe the group (subgroups[...].group)")


def read_subgroup(data: Any, source: Path | str, at: int) -> Subgroup:
    """One of the profile's subgroups. Raises WorkloadError."""
    fields = Fields(data, source, f"subgroups[{at}].", WorkloadError)
    fields.only({"ranks", "share", "group"})
    group: Mapping[str, list[int]] | None = None
    if "group" in fields.data:
        group = _group(Fields(fields.table("group"), source, f"subgroups[{at}].group.", WorkloadError), fields)
    return Subgroup(fields.text("ranks"), fields.number("share", 0, 1), group)


def _group(fields: Fields, outer: Fields) -> dict[str, list[int]]:
    fields.only({"span", "congruent"})
    if len(fields.data) != 1:
        cure = 'write {"span": [low, high]} or {"congruent": [divisor, rest]}'
        raise outer.error("group", f"has {len(fields.data)} keys in place of one", cure)
    (key,) = fields.data
    given = fields.items(key)
    if len(given) == 2 and all(type(each) is int for each in given):
        first, second = given
        if key == "span" and 0 <= first < second <= PARTS:
            return {key: [first, second]}
        if key == "congruent" and 0 <= second < first <= DIVISOR_MAX:
            return {key: [first, second]}
    cure = f"give two of 0 to {PARTS}, ascending" if key == "span" else "give a divisor and a rest below it"
    raise fields.error(key, f"= {given!r:.60} names no ranks", cure)
