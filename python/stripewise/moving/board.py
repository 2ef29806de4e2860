"""Where a mover says how it gets on and hears what it should do: two small files in the store's run directory.

`mover.json` is replaced at once several times a second; `mover.command` is written by others (`stripewise migrate
--pause`), and removed by the mover when it obeys. Both are drawn in docs/formats.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from ..errors import StoreError

VERSION = 1
STATUS = "mover.json"
COMMAND = "mover.command"
COMMANDS = ("pause", "resume", "stop")
#: How often the status is written while the mover works, seconds.
STATUS_EVERY_S = 0.2
#: How long a command may take to be obeyed: longer than a mover waits between two looks.
OBEY_S = 30.0


def run_directory(root: Path) -> Path:
    """`<store>/run/<boot-id>`, made as a program makes it at its first use of the store. Raises StoreError."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    run = root / "run" / boot
    try:
        with contextlib.suppress(FileExistsError):
            run.mkdir()
            # Everybody makes files there, nobody removes another's.
            run.chmod(0o1777)
            machine = Path("/etc/machine-id")
            (run / "host").write_bytes(machine.read_bytes() if machine.exists() else b"")
    except OSError as error:
        raise StoreError(f"{run}: cannot be made ({error.strerror}); run as the store's owner") from error
    return run


def _replace(path: Path, text: str) -> None:
    """Replaces a file at once; it need not outlive a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


class Board:
    """The mover's side."""

    def __init__(self, root: Path, head: dict[str, Any]) -> None:
        self.run = run_directory(root)
        self.state: dict[str, Any] = {"version": VERSION, "pid": os.getpid(), **head}
        self._written = 0.0
        (self.run / COMMAND).unlink(missing_ok=True)

    def tell(self, force: bool = False, **state: Any) -> None:
        """Takes in what changed, and writes the status when it is time or when `force` says so."""
        self.state |= state
        now = time.monotonic()
        if force or now - self._written >= STATUS_EVERY_S:
            self._written = now
            # A full disk must not stop a mover that makes room.
            with contextlib.suppress(OSError):
                _replace(self.run / STATUS, json.dumps(self.state) + "\n")

    def command(self) -> str | None:
        """What somebody wants, once. Only the mover's own user and root are heard."""
        path = self.run / COMMAND
        try:
            with path.open(encoding="utf-8") as file:
                owner, text = os.fstat(file.fileno()).st_uid, file.read(64).strip()
        except (OSError, ValueError):
            return None
        with contextlib.suppress(OSError):
            path.unlink()
        return text if owner in (0, os.geteuid()) and text in COMMANDS else None


def status(root: Path) -> dict[str, Any]:
    """What the last mover of this boot said, with `alive`; `state` is `killed` when it died over its work.

    Raises StoreError when none has worked on the store since the machine started.
    """
    path = run_directory(root) / STATUS
    try:
        said = dict(json.loads(path.read_text(encoding="utf-8")))
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


def is_alive(root: Path, pid: int) -> bool:
    """Whether a mover works on the store: the process is there, and somebody has the movers' lock."""
    if not Path(f"/proc/{pid}").exists():
        return False
    try:
        with (root / "run" / "mover.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def send(root: Path, command: str) -> dict[str, Any]:
    """Tells the mover of a store to pause, resume or stop; returns its status once it has obeyed.

    Raises StoreError when there is none, or when it does not listen.
    """
    said = status(root)
    if not said["alive"]:
        raise StoreError(f"{root}: no mover is at work; see 'stripewise migrate --status {root}'")
    path = run_directory(root) / COMMAND
    try:
        _replace(path, command + "\n")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); run as the mover's user") from error
    end = time.monotonic() + OBEY_S
    wanted = {"pause": ("paused",), "resume": ("waiting", "moving"), "stop": ("stopped", "ended")}[command]
    while time.monotonic() < end:
        said = status(root)
        if said["state"] in wanted or not said["alive"]:
            return said
        time.sleep(0.05)
    raise StoreError(f"{root}: process {said['pid']} did not {command} within {OBEY_S:.0f} s; is it another user's?")
