"""What a mover says of itself, and what others tell it: two small files in the store's run directory.

The mover replaces `mover.json` at once several times a second; `mover.command` is written here, and removed by the
mover when it obeys. Both are drawn in docs/formats.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..files.parts import ANYBODY, read_part, replace_part
from ..store.config import RUN_DIR
from ..units import quoted

VERSION = 1
STATUS = "mover.json"
COMMAND = "mover.command"
#: How long a command may take to be obeyed: longer than a mover waits between two looks.
OBEY_S = 30.0


def _replace(path: Path, text: str) -> None:
    """Replaces a file at once; it need not outlive a power cut."""
    replace_part(path.parent.parent, f"{path.parent.name}/{path.name}", text, durably=False)


def read_status(root: Path) -> dict[str, Any]:
    """What the last mover of this boot said, with `alive`; `state` is `killed` when it died over its work.

    Raises StoreError when none has worked on the store since the machine started.
    """
    path = root / RUN_DIR / STATUS
    try:
        said = dict(json.loads(read_part(root / RUN_DIR, STATUS, owners=ANYBODY)))
    except FileNotFoundError:
        raise StoreError(f"{root}: no mover has worked on this store since the machine started") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); remove it") from error
    if int(said.get("version", 0)) > VERSION:
        raise StoreError(f"{path}: was written by a newer stripewise; use that one")
    said["alive"] = is_alive(root, int(said.get("pid", 0)))
    if not said["alive"] and said.get("state") not in ("ended", "stopped"):
        said["state"] = "killed"
    return said


def check_idle(root: Path, file: str | None = None) -> None:
    """Raises StoreError where a mover is at work on the store, or on the `file` of it that is given."""
    try:
        said = read_status(root)
    except StoreError:
        return
    moving = said.get("moving") or {}
    if said["alive"] and file in (None, moving.get("file")):
        raise StoreError(
            f"{root}: process {said['pid']} is moving files of the store ({said['verb']}); wait until it is done, or "
            f"stop it: stripewise mover stop {quoted(root)}"
        )


def is_alive(root: Path, pid: int) -> bool:
    """Whether a mover works on the store: the process is there, and somebody has the movers' lock."""
    if not Path(f"/proc/{pid}").exists():
        return False
    try:
        with open(os.open(root / RUN_DIR / "mover.lock", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def send_command(root: Path, command: str) -> dict[str, Any]:
    """Tells the mover of a store to pause, resume or stop; returns its status once it has obeyed.

    Raises StoreError when there is none, or when it does not listen.
    """
    said = read_status(root)
    if not said["alive"]:
        raise StoreError(f"{root}: no mover is running; the last one: stripewise mover status {quoted(root)}")
    path = root / RUN_DIR / COMMAND
    try:
        _replace(path, command + "\n")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); run as the mover's user") from error
    end = time.monotonic() + OBEY_S
    wanted = {"pause": ("paused",), "resume": ("waiting", "moving"), "stop": ("stopped", "ended")}[command]
    while time.monotonic() < end:
        said = read_status(root)
        if said["state"] in wanted or not said["alive"]:
            return said
        time.sleep(0.05)
    raise StoreError(f"{root}: process {said['pid']} did not {command} within {OBEY_S:.0f} s; is it another user's?")
