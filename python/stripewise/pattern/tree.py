"""Loops of records as the native recogniser finds them, and as a skeleton with numbers, which ranks and runs share.

A tree is a record or a loop around a body of trees. Its *skeleton* says which loops stand in which, and the kinds of
the records; its *numbers* are offsets, strides, counts and sizes, always in one order. Processes that do the same in
places of their own have one skeleton, and numbers that follow a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A skeleton: the kind of a record, or a tuple of the skeletons in a loop's body.
Skeleton = Any


@dataclass(frozen=True)
class Tree:
    """A record (`body` empty) or a loop.

    `at` is the offset of its first record in bytes, inside a loop counted from the loop's own; `stride` is how much
    further it lies in each next round of the loop around it.
    """

    at: int
    stride: int = 0
    kind: int = 0
    size: int = 0
    count: int = 1
    body: tuple[Tree, ...] = ()

    @property
    def records(self) -> int:
        """How many records it stands for."""
        return self.count * sum(part.records for part in self.body) if self.body else 1

    @property
    def bytes(self) -> int:
        """The sum of their sizes."""
        return self.count * sum(part.bytes for part in self.body) if self.body else self.size

    def leaves(self) -> Iterator[Tree]:
        """The records of one round of all loops."""
        if not self.body:
            yield self
        for part in self.body:
            yield from part.leaves()

    def span(self) -> tuple[int, int]:
        """Lowest byte, and the end of the highest."""
        low, high = 0, self.size
        if self.body:
            ends = [
                (part.span()[0] + moved, part.span()[1] + moved)
                for part in self.body
                for moved in (0, part.stride * (self.count - 1))
            ]
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return self.at + low, self.at + high

    def as_json(self) -> dict[str, Any]:
        """The form that the native module reads and writes (docs/formats.md, Patterns)."""
        inner: dict[str, Any] = (
            {"count": self.count, "body": [part.as_json() for part in self.body]}
            if self.body
            else {"kind": self.kind, "size": self.size}
        )
        return {"at": self.at, "stride": self.stride, **inner}


def tree_of(value: Mapping[str, Any]) -> Tree:
    """A tree from that form."""
    if "body" in value:
        body = tuple(tree_of(part) for part in value["body"])
        return Tree(value["at"], value["stride"], count=value["count"], body=body)
    return Tree(value["at"], value["stride"], value["kind"], value["size"])


def skeleton(tree: Tree) -> Skeleton:
    """What is left without the numbers."""
    return tuple(skeleton(part) for part in tree.body) if tree.body else tree.kind


def numbers(tree: Tree) -> list[tuple[str, int]]:
    """All numbers with what they are (at, stride, count, size), from the outermost loop inwards, in one order."""
    own = [("at", tree.at), ("stride", tree.stride)]
    if not tree.body:
        return [*own, ("size", tree.size)]
    return [*own, ("count", tree.count), *(pair for part in tree.body for pair in numbers(part))]


def rebuilt(form: Skeleton, values: Sequence[int]) -> Tree:
    """The tree of this skeleton with these numbers."""
    tree, rest = _rebuilt(form, list(values))
    assert not rest
    return tree


def _rebuilt(form: Skeleton, values: list[int]) -> tuple[Tree, list[int]]:
    at, stride, third, *rest = values
    if not isinstance(form, tuple):
        return Tree(at, stride, form, third), rest
    body = []
    for part in form:
        tree, rest = _rebuilt(part, rest)
        body.append(tree)
    return Tree(at, stride, count=third, body=tuple(body)), rest
