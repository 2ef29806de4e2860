"""Prints what a directory holds, as one JSON object: name -> [type, mode, bytes, SHA-256 or target of the link].

A program of its own because it runs under the library where the directory is managed. It uses nothing but open,
read, lstat and readdir: the calls whose correctness the rest of the suite establishes.
"""

import hashlib
import json
import os
import stat
import sys


def contents(path: str) -> str:
    """SHA-256 of a file, through read(2)."""
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while block := os.read(descriptor, 1 << 20):
            digest.update(block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def describe(path: str) -> list[object]:
    """One entry; a file that cannot be read says so."""
    status = os.lstat(path)
    mode = oct(stat.S_IMODE(status.st_mode))
    if stat.S_ISLNK(status.st_mode):
        return ["link", "", 0, os.readlink(path)]
    if stat.S_ISREG(status.st_mode):
        try:
            return ["file", mode, status.st_size, contents(path)]
        except OSError as error:
            return ["file", mode, status.st_size, f"unreadable: {error.strerror}"]
    return [oct(stat.S_IFMT(status.st_mode)), mode, 0, ""]


def walk(root: str, below: str, found: dict[str, list[object]]) -> None:
    """All entries below `root`, depth first."""
    for name in sorted(os.listdir(os.path.join(root, below))):
        relative = os.path.join(below, name)
        found[relative] = describe(os.path.join(root, relative))
        if os.path.isdir(os.path.join(root, relative)) and found[relative][0] != "link":
            walk(root, relative, found)


if __name__ == "__main__":
    entries: dict[str, list[object]] = {}
    walk(sys.argv[1], "", entries)
    print(json.dumps(entries))
