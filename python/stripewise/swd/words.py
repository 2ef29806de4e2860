"""Settings written as `key=value` behind a name, as workloads and schemes have them on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UsageError

#: What a key holds: a function from its text that raises ValueError.
Kind = Callable[[str], Any]


def count(text: str) -> int:
    """A whole number that fits 32 bits."""
    number = int(text)
    if not 0 <= number < 1 << 32:
        raise ValueError(text)
    return number


def flag(text: str) -> bool:
    """True or false."""
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def finite(text: str) -> float:
    """A number that is no infinity."""
    number = float(text)
    if not -1e300 < number < 1e300:
        raise ValueError(text)
    return number


#: Laws of arrivals and their numbers, in the order in which they are written.
_LAWS = {
    "fixed": ("mean_ms",),
    "normal": ("mean_ms", "deviation_ms"),
    "exponential": ("mean_ms",),
    "bursty": ("mean_ms", "variation"),
}


def arrivals(text: str) -> dict[str, Any]:
    """A law of arrivals with its numbers: `normal:5:2`."""
    law, *numbers = text.split(":")
    if law not in _LAWS:
        raise ValueError(law)
    return {"law": law, **dict(zip(_LAWS[law], map(finite, numbers), strict=True))}


_WANTED: dict[Kind, str] = {
    count: "write a whole number from 0 to 4294967295",
    finite: "write a number",
    flag: "write true or false",
    arrivals: "write fixed:MS, normal:MS:DEVIATION, exponential:MS or bursty:MS:VARIATION",
}


def setting(option: str, name: str, keys: Mapping[str, Kind], text: str) -> tuple[str, Any]:
    """Key and value of `key=value` of what is called `name`. Raises UsageError naming `option`."""
    key, _, value = text.partition("=")
    if key not in keys:
        near = difflib.get_close_matches(key, list(keys), 1)
        known = f"it has {', '.join(keys)}" if keys else "it has none"
        raise UsageError(f"{option}: {name} has no key '{key}'; {f'did you mean {near[0]}?' if near else known}")
    try:
        return key, keys[key](value)
    except ValueError as error:
        raise UsageError(f"{option}: {key} = '{value}' does not fit; {_WANTED[keys[key]]}") from error
