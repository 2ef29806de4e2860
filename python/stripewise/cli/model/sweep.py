"""What `--sweep` means: one or two axes of values, doubling from end to end, or listed."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import UsageError
from ...units import parse_size

#: In this order they are rows and columns of a map.
NAMES = ("request", "processes")
VALUES_MAX = 64


@dataclass(frozen=True)
class Axis:
    """A swept quantity and its values, ascending."""

    name: str
    values: list[int]


def parse_sweeps(texts: list[str]) -> list[Axis]:
    """The axes of all `--sweep` options, request before processes. Raises UsageError naming the option."""
    axes = [_axis(text) for text in texts]
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--sweep: {name} is swept twice; give each axis once")
    return sorted(axes, key=lambda axis: NAMES.index(axis.name))


def _axis(text: str) -> Axis:
    name, equals, values = text.partition("=")
    if name not in NAMES or not equals:
        raise UsageError(f"--sweep: '{text}' is not request=A..B or processes=A..B; write e.g. request=4KiB..16MiB")
    first, dots, last = values.partition("..")
    if not dots:
        found = [_value(name, each, text) for each in values.split(",")]
    else:
        at, end = _value(name, first, text), _value(name, last, text)
        if at > end:
            raise UsageError(f"--sweep: '{text}' runs backwards; put the smaller end first")
        found = []
        while at < end and len(found) < VALUES_MAX:
            found.append(at)
            at *= 2
        found.append(end)
    if len(found) > VALUES_MAX:
        raise UsageError(f"--sweep: '{text}' has more than {VALUES_MAX} values; narrow it")
    return Axis(name, sorted(set(found)))


def _value(name: str, text: str, whole: str) -> int:
    value = parse_size(text, f"--sweep {name}") if name == "request" else int(text) if text.isdecimal() else 0
    if value < 1:
        raise UsageError(f"--sweep: '{whole}' holds '{text}', which is no {name} of at least 1; correct it")
    return value
