"""Which paths a store manages: shell patterns over absolute paths, as the preloaded library matches them.

`*` and `?` stay within a path component, `**` crosses them, `[...]` are classes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .cluster import Cluster

_WILD = "*?["


def escape(path: str) -> str:
    """The pattern that matches `path` and nothing else."""
    return "".join(f"[{char}]" if char in _WILD else char for char in path)


def absolute(pattern: str) -> str:
    """`pattern` from the working directory, normalised."""
    return os.path.normpath(os.path.join(os.getcwd(), os.path.expanduser(pattern)))


def manage_globs(patterns: Iterable[str]) -> list[str]:
    """The globs meant by --manage: a pattern is itself, a directory everything below it, another path itself."""
    globs = []
    for pattern in patterns:
        full = absolute(pattern)
        if os.path.isdir(full):
            globs += _below(full)
        elif any(char in pattern for char in _WILD):
            # The working directory is a path, not a pattern, whatever its name holds.
            globs.append(os.path.normpath(os.path.join(escape(os.getcwd()), os.path.expanduser(pattern))))
        else:
            # Not there yet: a file or a directory, whichever the program makes of it.
            globs += [escape(full), escape(full) + "/**"]
    return globs


def _below(directory: str) -> list[str]:
    """Everything below a directory, under the name given and under its real one."""
    names = dict.fromkeys((directory, os.path.realpath(directory)))
    return [escape(name).rstrip("/") + "/**" for name in names]


def default_manage(root: Path) -> list[str]:
    """Everything beside the store."""
    return _below(str(root.parent))


def ignored(root: Path, cluster: Cluster) -> list[str]:
    """What is never managed: the store, the targets' directories, and hidden directories beside the store."""
    globs = [escape(str(root)), escape(str(root)) + "/**"]
    for target in cluster.targets:
        globs += [escape(str(target.path)), escape(str(target.path)) + "/**"]
    parent = escape(str(root.parent)).rstrip("/")
    return [*globs, f"{parent}/**/.*/**"]
