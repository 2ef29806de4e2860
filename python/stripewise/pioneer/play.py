"""Plays a workload path: starts the player (workloads/player) with mpiexec, under the library where it is asked for."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError, UsageError
from ..run import runner
from ..run.collect import note_run
from ..run.measure import LastObject
from .path import info

#: Names the player where it is neither in the package nor in the tree that the package was built in.
VARIABLE = "STRIPEWISE_PLAYER"

#: Statuses of the player itself: played; not played, or wrong bytes; a wrong command line.
OWN_STATUSES = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be played, and how. `trace` is an empty directory; `store` the root of a store."""

    path: Path
    directory: Path
    processes: int | None = None
    speed: float = 1.0
    is_fast: bool = False
    replace: bool = False
    trace: Path | None = None
    store: Path | None = None


@dataclass(frozen=True)
class Played:
    """How it ended: the exit status, and what the player says of it (empty where it could not play).

    `why` is one sentence where a signal ended it or was heard meanwhile, of which the player says nothing; else empty.
    """

    status: int
    said: Mapping[str, Any]
    why: str = ""


def player() -> Path:
    """The program; StoreError where there is none."""
    package = Path(__file__).resolve().parents[1]
    named = os.environ.get(VARIABLE)
    places = [Path(named)] if named else [package / "lib" / "player", package.parents[1] / "target/workloads/player"]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return place.resolve()
    raise StoreError(
        f"{places[-1]}: the player is missing; build it with 'make build', or from workloads/player with your MPI's "
        f"mpicc, and set {VARIABLE} to it"
    )


def mpiexec() -> str:
    """The launcher beside this Python, else that on PATH; StoreError where there is none."""
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.is_file() else shutil.which("mpiexec")
    if found is None:
        raise StoreError(
            "mpiexec is not found; install an MPI, or start the player by hand: mpiexec -n N player PATH DIR"
        )
    return found


def processes_of(asked: Asked) -> int:
    """As asked, else the path's own number, else 1.

    Raises WorkloadError for a file that is no path, and UsageError for a number that cannot play it.
    """
    own = int(info(asked.path)["processes"])
    if asked.processes is not None and own and asked.processes != own:
        raise UsageError(
            f"-n: {asked.path} is for {own} processes, not {asked.processes}; leave -n out, or make a path with "
            f"'stripewise synth -n {asked.processes}'"
        )
    return asked.processes or own or 1


def play(asked: Asked) -> Played:
    """Prepares the files of the path and plays it.

    A traced run is prepared by one that is not traced, so that the trace holds nothing but the path. Raises
    WorkloadError, UsageError and StoreError before anything is started, and NotStartedError.
    """
    words = [mpiexec(), "-n", str(processes_of(asked)), str(player())]
    place = [str(asked.path), str(asked.directory)]
    how = ["--as-fast-as-possible"] if asked.is_fast else ["--speed", repr(asked.speed)]
    replace = ["--replace"] if asked.replace else []
    if asked.trace is None:
        return _run([*words, *how, *replace, *place], _environment(asked, None))
    prepared = _run([*words, "--prepare", *replace, *place], _environment(asked, None))
    if prepared.status:
        return prepared
    note_run(asked.trace, store=asked.store)
    seen = LastObject()
    ended = runner.run([*words, *how, "--prepared", *place], _environment(asked, asked.trace), seen.see)
    note_run(asked.trace, ended, asked.store)
    return _played(ended, seen.value)


def _environment(asked: Asked, trace: Path | None) -> Mapping[str, str]:
    if trace is None and asked.store is None:
        return os.environ
    return runner.environment(os.environ, asked.store, trace, [])


def _run(command: list[str], env: Mapping[str, str]) -> Played:
    seen = LastObject()
    return _played(runner.run(command, env, seen.see), seen.value)


def _played(ended: runner.Ended, said: Mapping[str, Any]) -> Played:
    if ended.heard is not None:
        # Whoever asked for an end wants no status that says all is well.
        status = ended.status or 128 + ended.heard
        return Played(status, said, f"the run was ended by {_signal_name(ended.heard)}; files may be incomplete")
    if ended.signal is not None:
        return Played(ended.status, said, f"mpiexec was ended by {_signal_name(ended.signal)}")
    return Played(ended.status, said, "" if said else reason(ended.status))


def reason(status: int) -> str:
    """What a status says that none of the player's own is; empty for its own, with which it says itself what is wrong.

    A launcher ends with the number of the signal that ended a process, or as a shell with 128 more.
    """
    if status in OWN_STATUSES:
        return ""
    number = status - 128 if status > 128 else status
    if number in {known.value for known in signal.Signals}:
        return f"a process of the run was ended by {_signal_name(number)}; files may be incomplete"
    return f"a process of the run ended with status {status}; see what mpiexec says of it"


def _signal_name(number: int) -> str:
    return f"signal {number} ({signal.Signals(number).name})"
