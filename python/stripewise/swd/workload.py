"""Requests of a block device as the engine takes them: a trace, a generator or a look-alike, described in one text.

`zipf,alpha=0.8,write_share=0.5,arrivals=bursty:5:10` means the same here, on the command line and in experiments; the
engine (crates/blocks) checks what the keys may hold, this module which keys there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import native
from ..errors import UsageError, naming
from .words import Kind, arrivals, count, finite, flag, setting

FORMATS = ("msr", "spc", "disksim", "blkparse", "dtrs", "ssdsim", "mqsim")
#: The traces whose statistics the thesis prints (tables 4.1 and 5.2).
LOOK_ALIKES = ("web_0", "hp_c2247", "Financial2", "mds_0", "usr_0", "stg_0", "web_1")
BEYOND = ("fold", "clip")
WORKLOAD_VERSION = 1


@dataclass(frozen=True)
class BlockWorkload:
    """Where block requests come from and what is done to them before a disk gets them.

    `origin` is the key `from` of docs/formats.md, Block workload; `requests` the most that are taken (None: all),
    `stretch` the factor of times of arrival, `beyond` what becomes of requests beyond the space; `lba_factor` is the
    factor of first blocks before that (512: offsets in bytes taken for blocks).
    """

    name: str
    origin: Mapping[str, Any] = field(hash=False)
    requests: int | None = None
    stretch: float = 1.0
    beyond: str = "fold"
    seed: int = 0
    lba_factor: int = 1

    @property
    def is_generated(self) -> bool:
        """Whether requests are made and not read from a trace."""
        return bool(self.origin["kind"] != "trace")

    @property
    def needs_space(self) -> bool:
        """Whether requests go all over a space, which has to be given."""
        return self.origin["kind"] in ("uniform", "zipf", "syn")

    @property
    def is_finite(self) -> bool:
        """Whether a generator comes to an end by itself."""
        return bool(self.origin["kind"] == "syn" and not self.origin.get("again"))

    @property
    def filled_share(self) -> float | None:
        """The share of the used space that holds data before a run (None: all); SYN goes to an empty disk
        (chapter 4.6.3)."""
        return 0.0 if self.origin["kind"] == "syn" else None

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
                "lba_factor": self.lba_factor,
            }
        )

    def call(self, name: str, *arguments: Any, before: tuple[Any, ...] = ()) -> Any:
        """A function of the engine with this workload between the arguments `before` and the others.

        Raises WorkloadError with file or name, key and cure.
        """
        # What is wrong in a look-alike names it already.
        with naming(self.name, "look-alike"):
            return native.call(name, *before, self.as_json(), *arguments)


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
        raise UsageError(f"--action: '{action}' is not an action of blkparse; give Q or D")
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
    origin.update(setting("--workload", kind, _KEYS[kind], each) for each in settings)
    return BlockWorkload(text, origin, requests, stretch, beyond, seed)


_PLAIN: dict[str, Kind] = {"request_blocks": count, "write_share": finite, "arrivals": arrivals}
_KEYS: dict[str, dict[str, Kind]] = {
    "uniform": _PLAIN,
    "zipf": {**_PLAIN, "alpha": finite, "chunk_blocks": count},
    "syn": {**_PLAIN, "again": flag},
    "look-alike": {"alpha": finite, "arrivals": arrivals},
}
