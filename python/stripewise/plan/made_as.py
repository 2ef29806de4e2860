"""The globs of names that programs make planned files with: which of them a plan may hold.

Whoever applies a plan gets them as rules of his store, and sees them on his terminal.
"""

from __future__ import annotations

import unicodedata

#: Longest path that the kernel takes.
GLOB_BYTES_MAX = 4096


def glob_problem(glob: str) -> tuple[str, str] | None:
    """What is wrong with a glob of `made_as`, and the cure; None for one that a plan may hold."""
    if not glob.startswith("/"):
        return f"= {_short(glob)} is not absolute", "begin it with /, for whole paths match"
    try:
        length = len(glob.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return f"= {_short(glob)} holds half a surrogate pair, which no path does", "leave it out"
    if length > GLOB_BYTES_MAX:
        return f"= {_short(glob)} has {length:,} bytes", f"give at most {GLOB_BYTES_MAX:,}, or leave it out"
    if any(unicodedata.category(char) == "Cc" for char in glob):
        return f"= {_short(glob)} holds a control character", "write ? for it, or leave made_as out"
    parts = glob.split("/")[1:]
    if "" in parts or ".." in parts:
        return f"= {_short(glob)} has a component that is empty or ..", "write the path that is meant"
    return None


def _short(glob: str) -> str:
    return repr(glob if len(glob) <= 60 else f"{glob[:57]}...")
