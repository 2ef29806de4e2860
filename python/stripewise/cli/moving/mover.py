"""`stripewise mover status|pause|resume|stop`: watches and steers the mover of a store, whichever verb started it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...moving.mover_status import read_status, send_command
from ...moving.trial import cure_of, cut_short
from ...store.config import store_root
from ...units import format_size, quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, shown, standing

WATCH_S = 1.0


def status(
    store: StoreArgument,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat every second until the mover ends.")] = False,
    json: JsonOption = False,
) -> None:
    """Show mover progress: state, bytes, time left, slowdown."""
    root = store_root(store)
    said = read_status(root)
    killed = cut_short(root)
    _print({**said, **({"tune_killed": killed} if killed else {})}, json)
    if killed and not json:
        typer.echo(f"{printable(killed)}; {printable(cure_of(root))}")
    with standing(lambda: f"only the watching; the mover goes on ('stripewise mover stop {quoted(store)}' ends it)"):
        while watch and said["alive"]:
            time.sleep(WATCH_S)
            said = read_status(root)
            _print(said, json)


def pause(store: StoreArgument, json: JsonOption = False) -> None:
    """Pause the mover; 'resume' continues it."""
    _command(store, "pause", json)


def resume(store: StoreArgument, json: JsonOption = False) -> None:
    """Resume a paused mover."""
    _command(store, "resume", json)


def stop(store: StoreArgument, json: JsonOption = False) -> None:
    """Stop the mover; files stay consistent.

    The command that began the moves continues them later.
    """
    _command(store, "stop", json)


def _command(store: Path, word: str, json: bool) -> None:
    _print(send_command(store_root(store), word), json)


def _print(said: dict[str, Any], json: bool) -> None:
    if json:
        print_json(said)
        return
    left = said.get("seconds_left")
    typer.echo(
        f"{said['verb']} (process {said['pid']}): {said['state']}"
        + (" with all moves made" if said["state"] == "stopped" and said.get("complete") else "")
        + (f", window {said['window']}" if said.get("window") is not None else "")
        + f", {_copied_text(said)}"
        + (f", {left:.0f} s left" if left and said["alive"] else "")
    )
    if said["state"] == "killed":
        typer.echo("files are whole; run the same command again for the rest")
    if (moving := said.get("moving")) is not None and said["alive"]:
        size = format_size(moving["bytes"])
        typer.echo(f"current move: {printable(moving['file'])}, {size} at offset {moving['start']}")
    # Of a window in which no program did any I/O there is none.
    if said.get("baseline_s") and said.get("latency_s"):
        duty = f"; it copies {100 * said['duty']:.0f} % of the time" if said["alive"] else ""
        typer.echo(
            f"mean I/O time of programs: {shown(1e3 * said['latency_s'], 3)} ms while it copied last, "
            f"{shown(1e3 * said['baseline_s'], 3)} ms while it rested last, wherever their data lay then{duty}"
        )
    with contextlib.suppress(KeyError):
        typer.echo(f"longest pause of writers: {1e3 * said['frozen_max_s']:.1f} ms")


def _copied_text(said: Mapping[str, Any]) -> str:
    """What a mover has copied, of a plan with windows in the last of them that moves something, and in all."""
    done, total = (format_size(said.get(key, 0)) for key in ("done_bytes", "total_bytes"))
    if "moved_bytes" not in said:
        return f"{done} of {total} lie where they should"
    of = f"{done} of {total} copied in this window, " if said["alive"] and said.get("total_bytes") else ""
    moves = moves_text(said.get("moves", 0), said.get("first_moves", 0))
    return f"{of}{moves}, {format_size(said['moved_bytes'])} in all"


def moves_text(moves: int, first: int) -> str:
    """How many moves a mover of a plan made, and how many of these its windows do not have: the `first` ones."""
    which = "" if first == moves else f"{first:,} of them "
    return f"{moves:,} move(s)" + (f", {which}to where the plan begins" if first else "")
