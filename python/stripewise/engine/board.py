"""The memory in which the processes of a run decide how their collective calls are made, and what became of that."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import native
from ..errors import InvalidError

VARIABLE = "STRIPEWISE_ENGINE_BOARD"
#: Memory that processes of this machine share, and none of another one.
PLACE = Path("/dev/shm")
PREFIX = "stripewise-engine-"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What an earlier run has found for one operation on a file by so many processes."""

    file: str
    write: bool
    processes: int
    #: The cheaper mode.
    independent: bool
    #: What the other one costs over it; None: it was not measured.
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class Sieving:
    """How independent reads behind the last view with gaps were made, and by what that was chosen."""

    is_sieved: bool
    #: Targets whose figures were known; 0: those of no device.
    servers: int
    piece_bytes: int
    #: From the beginning of one piece to that of the next.
    stride_bytes: int
    #: What one request takes either way by these figures.
    sieved_ns: int
    unsieved_ns: int


@dataclass(frozen=True, kw_only=True)
class Site:
    """One operation on a file in a run: its collective calls, and what was decided of them."""

    file: str
    write: bool
    processes: int
    opens: int
    #: Of all processes, and of them those that were made independently.
    calls: int
    independent: int
    bytes: int
    contests: int
    changes: int
    #: At the end of the last open, and why calls began in theirs; None: no open was closed by all.
    mode: str | None
    reason: str
    #: Whether requests left gaps for others'; None: not known.
    strided: bool | None
    #: What the mode that was not kept cost over the other one when they were compared last; None: they were not.
    ratio: float | None
    #: Seconds for a byte of all processes, of all calls of either mode in the last open; None: there were none.
    collective_s_per_byte: float | None
    independent_s_per_byte: float | None
    #: None: of writes, and where nothing was chosen.
    sieving: Sieving | None


@dataclass(frozen=True, kw_only=True)
class Became:
    """What became of a run; `missed` opens and files found no room in the memory."""

    sites: tuple[Site, ...]
    missed: int


def _sweep() -> None:
    """Removes what runs have left that were killed: their processes have it mapped, and need no name of it."""
    for path in PLACE.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdecimal() and not Path("/proc", pid).exists() and path.lstat().st_uid == os.geteuid():
                path.unlink()


def _site(told: dict[str, Any]) -> Site:
    sieving = told["sieving"]
    return Site(**{**told, "sieving": None if sieving is None else Sieving(**sieving)})


class Board:
    """The memory of one run, from its making to its end."""

    def __init__(self, *, policy: str, overrides: bool = False, known: tuple[Known, ...] = ()) -> None:
        """Makes it. Raises OSError where it cannot be."""
        begin = {"policy": policy, "overrides": overrides, "known": [asdict(each) for each in known]}
        memory = bytes(native.call("engine_board", json.dumps(begin)))
        _sweep()
        self.path = PLACE / f"{PREFIX}{os.getpid()}-{secrets.token_hex(16)}"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(memory)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def became(self) -> Became:
        """What became of the run. Raises OSError or InvalidError where the memory is gone or damaged."""
        memory = self.path.read_bytes()
        try:
            told = native.call("engine_board_told", memory)
        except InvalidError as error:
            raise InvalidError(f"{self.path}: {error}") from error
        sites = sorted(map(_site, told["files"]), key=lambda site: (site.file, site.write))
        return Became(sites=tuple(sites), missed=told["unposted"] + told["unnoted"])
