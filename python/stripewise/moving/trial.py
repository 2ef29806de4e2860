"""A note on the files that lie in a layout under trial, in the lock file of `tune` while it works.

Whoever finds it with nobody at work knows that a tune was killed, for one that ends takes it back, however it ends.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import LayoutError
from ..files.parts import is_locked, overwrite_part, read_part
from ..files.spelling import path_meant
from ..layout import Layout, layout_json, parse_layout
from ..store.config import TUNE_LOCK
from ..units import command_line, quoted

#: So many of the files are noted, the others counted.
NOTED_MAX = 1000
#: Regions of former layouts that are noted, all files together.
REGIONS_MAX = 2000
#: So many are named in a command.
NAMED = 8


def note_trial(root: Path, command: Sequence[str], paths: Sequence[str], before: Mapping[str, Layout]) -> None:
    """Notes that a tune of `command` lays these files out, and how they lay before; by who has the lock. A full disk
    keeps nobody.
    """
    layouts, regions = {}, 0
    for path in paths[:NOTED_MAX]:
        regions += len(before[path].regions) if path in before else 0
        if path in before and regions <= REGIONS_MAX:
            layouts[path] = layout_json(before[path])
    said = {"command": command_line(command), "files": list(paths[:NOTED_MAX]), "count": len(paths), "before": layouts}
    with suppress(OSError):
        overwrite_part(root, TUNE_LOCK, json.dumps(said))


def former_layouts(root: Path, targets: Sequence[str]) -> dict[str, Layout]:
    """How the files of a killed tune lay before it, by path, as far as that was noted and the targets are there yet."""
    found = {}
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        for path, layout in dict(json.loads(read_part(root, TUNE_LOCK))["before"]).items():
            with suppress(LayoutError):
                found[str(path)] = parse_layout(layout, root / TUNE_LOCK, targets)
    return found


def noted_text(root: Path) -> str:
    """What is noted, as it stands; nothing where nothing is."""
    with suppress(OSError, UnicodeDecodeError):
        return read_part(root, TUNE_LOCK).decode()
    return ""


def end_trial(root: Path, left: str = "") -> None:
    """No file lies in a layout under trial any more, or who is concerned has been told; but for what is `left`, as an
    earlier tune had noted it.
    """
    with suppress(OSError):
        overwrite_part(root, TUNE_LOCK, left)


def settle(root: Path, paths: Collection[str]) -> None:
    """These files have a layout that somebody wanted, so a tune that was killed has left nothing of them."""
    if is_locked(root, TUNE_LOCK) or (said := _noted(root)) is None:
        return
    left = [path for path in said["files"] if path not in paths]
    count = said["count"] - (len(said["files"]) - len(left))
    with suppress(OSError):
        overwrite_part(root, TUNE_LOCK, json.dumps({**said, "files": left, "count": count}) if left else "")


def cut_short(root: Path) -> str:
    """That a tune was killed here, of which command, and which files it may have left; empty where none was."""
    if is_locked(root, TUNE_LOCK) or (said := _noted(root)) is None:
        return ""
    more = f" (and {said['count'] - 1} more)" if said["count"] > 1 else ""
    return (
        f"a tune of '{said['command']}' was killed: {said['files'][0]}{more} may lie in a layout under trial, not in "
        "its former one"
    )


def cure_of(root: Path) -> str:
    """The ways out of that."""
    said = _noted(root)
    names = said["files"] if said is not None and said["count"] <= NAMED else ["FILE"]
    words = ["stripewise", "store", "set-layout", *map(path_meant, names), "--layout", "def"]
    return f"tune again, or lay the files out: stripewise apply PLAN --store {quoted(root)}, or {command_line(words)}"


def _noted(root: Path) -> dict[str, Any] | None:
    """What is noted; nothing where it cannot be read, or a kill has torn it."""
    try:
        said = json.loads(read_part(root, TUNE_LOCK))
        files = [str(path) for path in said["files"]]
        return {"command": str(said["command"]), "files": files, "count": int(said["count"])} if files else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
