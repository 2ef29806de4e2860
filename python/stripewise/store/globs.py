"""Which paths a store manages: shell patterns over absolute paths, as the preloaded library matches them.

`*` and `?` stay within a path component, `**` crosses them, `**/` as a component is no directory, too, `[...]` are
classes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from ..cluster import Cluster
from ..errors import StoreError
from ..files.spelling import is_byte, unspelled

_WILD = "*?["
#: What stands for something else than itself in a pattern.
_SPECIAL = _WILD + "\\"
_WILDCARDS = {b"**/": b"(?:.*/)?", b"**": b".*", b"*": b"[^/]*", b"?": b"[^/]"}
#: What a pattern is made of: a wildcard, a class, or a byte, which may stand behind a backslash.
_ELEMENT = re.compile(
    rb"(?<![^/])\*\*/|\*\*|\*|\?|\[(?P<not>(?:!|(?!!)))(?P<listed>.[^]]*)\]|\\?(?P<plain>.)", re.DOTALL
)
_RANGE = re.compile(rb"(.)(?:-(.))?", re.DOTALL)
#: The preloaded library leaves alone what lies here: devices, and what the kernel tells (runtime/open/create.rs).
_NEVER = ("/dev", "/proc", "/sys")


def escape(path: str) -> str:
    """The pattern that matches `path` and nothing else; a byte that is not UTF-8, which store.toml cannot hold, may be
    any byte.
    """
    return "".join(f"[{char}]" if char in _SPECIAL else "?" if is_byte(char) else char for char in path)


def matches(glob: str, path: str) -> bool:
    """Whether the library takes `path`, also as traces spell it, for one that `glob` means (crates/store, names.rs),
    byte by byte.
    """
    pattern = b""
    for found in _ELEMENT.finditer(os.fsencode(glob)):
        if found["listed"] is None:
            pattern += _WILDCARDS.get(found[0]) or re.escape(found["plain"])
            continue
        ranges = [(low[0], (high or low)[0]) for low, high in _RANGE.findall(found["listed"])]
        meant = {byte for byte in range(256) if any(low <= byte <= high for low, high in ranges) == (not found["not"])}
        pattern += b"[" + re.escape(bytes(sorted(meant - {ord("/")}))) + b"]" if meant - {ord("/")} else b"(?!)"
    return any(re.fullmatch(pattern, os.fsencode(each), re.DOTALL) for each in {path, unspelled(path)})


def absolute(pattern: str) -> str:
    """`pattern` from the working directory, normalised."""
    return os.path.normpath(os.path.join(os.getcwd(), os.path.expanduser(pattern)))


def manage_globs(patterns: Iterable[str]) -> list[str]:
    """The globs meant by --manage: a pattern is itself, a directory everything below it, another path itself.

    Raises StoreError for one of files that are never managed.
    """
    globs = []
    for pattern in patterns:
        if not pattern:
            raise StoreError("'' is no path; name a file, a directory or a glob")
        full = _checked(absolute(pattern))
        if os.path.isdir(full):
            globs += _below(full)
        elif any(char in pattern for char in _WILD):
            # The working directory is a path, not a pattern, whatever its name holds.
            globs.append(os.path.normpath(os.path.join(escape(os.getcwd()), os.path.expanduser(pattern))))
        else:
            # Not there yet: a file or a directory, whichever the program makes of it.
            globs += [escape(full), escape(full) + "/**"]
    return globs


def template_globs(pattern: str) -> list[str]:
    """The globs that a template's pattern means: as `manage_globs`, and with a / at its end always a directory."""
    if pattern.endswith("/") and not any(char in pattern for char in _WILD):
        return _below(absolute(pattern))
    return manage_globs([pattern])


def template_rank(glob: str) -> tuple[int, int]:
    """Where a template stands among others, lowest first: one path, a glob, then directories from the deepest up.

    DIR/* and DIR/** are the template of a directory, the first one for the files right in it.
    """
    for ending, below in (("/**", 1), ("/*", 0)):
        directory = glob.removesuffix(ending)
        if directory != glob and not _has_wild(directory):
            return (2, below - 2 * len(Path(directory).parts))
    return (1 if _has_wild(glob) else 0, 0)


def _has_wild(glob: str) -> bool:
    """Whether it matches more than one path: an escaped character is a class of one."""
    for char in _SPECIAL:
        glob = glob.replace(f"[{char}]", "")
    return any(char in glob for char in _WILD)


def one_of(glob: str) -> str:
    """One of the paths that a glob means."""
    path = ""
    for found in _ELEMENT.finditer(os.fsencode(glob)):
        if found["listed"] is not None:
            path += "x" if found["not"] else os.fsdecode(found["listed"][:1])
        else:
            path += os.fsdecode(found["plain"]) if found["plain"] and found[0] not in _WILDCARDS else "x"
    return path


def _below(directory: str) -> list[str]:
    """Everything below a directory, under the name given and under its real one."""
    names = dict.fromkeys((directory, os.path.realpath(directory)))
    return [escape(name).rstrip("/") + "/**" for name in names]


def default_manage(root: Path) -> list[str]:
    """Everything beside the store; raises StoreError where nothing is managed there."""
    return _below(_checked(str(root.parent)))


def _checked(path: str) -> str:
    for place in _NEVER:
        if path == place or path.startswith(place + "/"):
            raise StoreError(
                f"{path}: files below {place} are never managed, shared memory neither; give --manage another place"
            )
    return path


def ignored(root: Path, cluster: Cluster) -> list[str]:
    """What is never managed: the store, the targets' directories, and hidden directories beside the store."""
    globs = [escape(str(root)), escape(str(root)) + "/**"]
    for target in cluster.targets:
        globs += [escape(str(target.path)), escape(str(target.path)) + "/**"]
    parent = escape(str(root.parent)).rstrip("/")
    return [*globs, f"{parent}/**/.*/**"]


def managed_directories(globs: Iterable[str]) -> list[str]:
    """The directories that there are below which new files that match one of the globs go into the store."""
    return [place for place in map(_fixed_directory, globs) if os.path.isdir(place)]


def without_directory(globs: Collection[str]) -> list[str]:
    """A sentence on each glob that matches nothing until a directory is made. What is no pattern may become one."""
    # A path that is not there yet is two globs: itself, and all below.
    ones = [glob for glob in globs if glob.removesuffix("/**") == glob or glob.removesuffix("/**") not in globs]
    return [
        f"{glob}: no file goes into the store by it until there is a directory {place}; where that is misspelt, "
        "correct its rule in store.toml"
        for glob, place in ((glob, _fixed_directory(glob)) for glob in ones)
        if not os.path.isdir(place)
    ]


def _fixed_directory(glob: str) -> str:
    """The directory that a glob names before its first wildcard."""
    place = "/"
    for part in glob.split("/")[1:-1]:
        # An escaped character is a class of one.
        name = re.sub(r"\[([*?\[\\])\]", r"\1", part)
        if any(char in re.sub(r"\[([*?\[\\])\]", "", part) for char in _WILD):
            break
        place = os.path.join(place, name)
    return place
