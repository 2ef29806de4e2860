"""Marks behind names in a profile that say who makes a thing: `write0@root` (rank 0 alone), `@others` (all ranks but
0), `@group-2` (the ranks of the profile's second subgroup). Without one, all do who have the file.
"""

from __future__ import annotations

import re

ROOT_MARK, OTHERS_MARK, GROUP_MARK = "@root", "@others", "@group-"
_MARK = re.compile("@(root|others|group-[1-9][0-9]{0,2})")


def split_mark(key: str) -> tuple[str, str]:
    """A key's name and its mark, which is empty for all ranks; what is no mark stays in the name."""
    name, at, _ = key.partition("@")
    mark = key[len(name) :]
    return (name, mark) if at and _MARK.fullmatch(mark) else (key, "")


def is_named(wanted: str | None, key: str) -> bool:
    """Whether a user means `key` by `wanted`: a name without a mark means it whoever makes it, with `@all` only where
    all do, and None means all."""
    name, mark = split_mark(key)
    return wanted in (None, key, name) or (not mark and wanted == f"{name}@all")
