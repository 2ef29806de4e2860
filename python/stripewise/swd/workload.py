"""Requests of a block device as the engine takes them: a trace, a generator or a look-alike, described in one text.

`zipf,alpha=0.8,write_share=0.5,arrivals=bursty:5:10` means the same here, on the command line and in experiments; the
engine (crates/blocks) checks what the keys may hold, this module which keys there are.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import native
from ..errors import StoreError, UsageError, WorkloadError

FORMATS = ("msr", "spc", "disksim", "blkparse", "dtrs")
#: The traces whose statistics seed 002 prints (tables 4.1 and 5.2).
LOOK_ALIKES = ("web_0", "hp_c2247", "Financial2", "mds_0", "usr_0", "stg_0", "web_1")
BEYOND = ("fold", "clip")
WORKLOAD_VERSION = 1


@dataclass(frozen=True)
class BlockWorkload:
    """Where block requests come from and what is done to them before a disk gets them.

    `origin` is the key `from` of docs/formats.md, Block workload; `requests` the most that are taken (None: all),
    `stretch` the factor of times of arrival, `beyond` what becomes of requests beyond the space.
    """

    name: str
    origin: Mapping[str, Any] = field(hash=False)
    requests: int | None = None
    stretch: float = 1.0
    beyond: str = "fold"
    seed: int = 0

    def as_json(self) -> str:
        """The description that the engine takes."""
        return json.dumps(
            {
                "version": WORKLOAD_VERSION,
                "from": dict(self.origin),
                "requests": self.requests,
                "stretch": self.stretch,
                "beyond": self.beyond,
                "seed": self.seed,
            }
        )

    def call(self, name: str, *arguments: Any) -> Any:
        """A function of the engine with this workload first. Raises WorkloadError with file or name, key and cure."""
        try:
            return native.call(name, self.as_json(), *arguments)
        except StoreError as error:
            # What is wrong in a trace or a look-alike names it already.
            named = str(error).startswith((f"{self.name}:", "look-alike:"))
            raise WorkloadError(str(error) if named else f"{self.name}: {error}") from error


def trace_workload(
    path: Path,
    format: str | None = None,
    device: str | None = None,
    action: str = "Q",
    requests: int | None = None,
    stretch: float = 1.0,
    beyond: str = "fold",
) -> BlockWorkload:
    """The requests of a trace file; `format` None is recognised, `device` None takes all devices as one disk.

    `action` is the one taken of a blkparse trace. Raises UsageError for a format or action that there is not.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format: '{format}' is not known; give one of {', '.join(FORMATS)}")
    if len(action) != 1 or not action.isascii() or not action.isupper():
        raise UsageError(f"--action: '{action}' is no action of blkparse; give Q or D")
    origin = {"kind": "trace", "path": str(path), "format": format, "device": device, "action": action}
    return BlockWorkload(str(path), origin, requests, stretch, beyond)


def made_workload(
    text: str, requests: int | None = None, stretch: float = 1.0, beyond: str = "fold", seed: int = 0
) -> BlockWorkload:
    """The generated workload that `text` means: `kind`, or `look-alike:NAME`, then `,key=value` as often as needed.

    Raises UsageError for kinds, names, keys and numbers that there are not.
    """
    kind, *settings = text.split(",")
    kind, _, name = kind.partition(":")
    if kind not in _KEYS:
        raise UsageError(f"--workload: '{kind}' is not known; give one of {', '.join(_KEYS)}, look-alikes with a name")
    origin: dict[str, Any] = {"kind": kind}
    if kind == "look-alike":
        if name not in LOOK_ALIKES:
            raise UsageError(f"--workload: no look-alike of '{name}' is known; give one of {', '.join(LOOK_ALIKES)}")
        origin["name"] = name
    elif name:
        raise UsageError(f"--workload: {kind} has no name; write it without ':{name}'")
    for setting in settings:
        key, _, value = setting.partition("=")
        origin[key] = _value(kind, key, value)
    return BlockWorkload(text, origin, requests, stretch, beyond, seed)


def _value(kind: str, key: str, value: str) -> Any:
    keys = _KEYS[kind]
    if key not in keys:
        near = difflib.get_close_matches(key, list(keys), 1)
        cure = f"did you mean {near[0]}?" if near else f"it has {', '.join(keys)}"
        raise UsageError(f"--workload: {kind} has no key '{key}'; {cure}")
    try:
        return keys[key](value)
    except ValueError as error:
        raise UsageError(f"--workload: {key} = '{value}' does not fit; {_WANTED[keys[key]]}") from error


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


#: Laws of arrivals and their numbers, in the order in which they are written.
_LAWS = {
    "fixed": ("mean_ms",),
    "normal": ("mean_ms", "deviation_ms"),
    "exponential": ("mean_ms",),
    "bursty": ("mean_ms", "variation"),
}


def _arrivals(text: str) -> dict[str, Any]:
    law, *numbers = text.split(":")
    if law not in _LAWS:
        raise ValueError(law)
    return {"law": law, **dict(zip(_LAWS[law], map(_finite, numbers), strict=True))}


def _finite(text: str) -> float:
    number = float(text)
    if not -1e300 < number < 1e300:
        raise ValueError(text)
    return number


_WANTED: dict[Callable[[str], Any], str] = {
    int: "write a whole number",
    _finite: "write a number",
    _flag: "write true or false",
    _arrivals: "write fixed:MS, normal:MS:DEVIATION, exponential:MS or bursty:MS:VARIATION",
}
_PLAIN: dict[str, Callable[[str], Any]] = {"request_blocks": int, "write_share": _finite, "arrivals": _arrivals}
_KEYS: dict[str, dict[str, Callable[[str], Any]]] = {
    "uniform": _PLAIN,
    "zipf": {**_PLAIN, "alpha": _finite, "chunk_blocks": int},
    "syn": {**_PLAIN, "again": _flag},
    "look-alike": {"alpha": _finite, "arrivals": _arrivals},
}
