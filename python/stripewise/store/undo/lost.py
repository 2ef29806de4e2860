"""What links to a store's files say of what a check found: of objects that no file has, and of files without a record
of their name.
"""

from __future__ import annotations

from typing import Any

from ...units import command_line
from ..store import Store
from .names import find_links

#: The findings of an object that belongs to no file, and of a file that has no record of its name.
STRAY, UNNAMED = "object-orphaned", "orphaned"
#: That of a file whose part of the store is gone.
LOST = "file-lost"


def with_links(store: Store, found: dict[str, Any]) -> dict[str, Any]:
    """What a check of the store found, with an error for each file whose directory is gone and that a link leads to, in
    place of what it says of that file's objects; and with the links that lead to files without a record of their name.
    """
    wanted = {each["file"] for each in found["findings"] if each["code"] in (STRAY, UNNAMED) and not each["repaired"]}
    by_id = find_links(store.config, {}, []).by_id if wanted else {}
    if not wanted & set(by_id):
        return found
    findings: list[dict[str, Any]] = []
    for each in found["findings"]:
        paths = by_id.get(each["file"], []) if not each["repaired"] else []
        if paths and each["code"] == UNNAMED and " leads to it" not in each["message"]:
            each = _named(each, paths)
        elif paths and each["code"] == STRAY:
            each = _lost(store, each["file"], paths)
            if each in findings:
                continue
        findings.append(each)
    lost = sum(each["code"] == LOST for each in findings)
    if lost > 1 and not found["files"]:
        findings.insert(0, _all_lost(store, lost))
    told = [each for each in findings if each["severity"] != "info"]
    counts = {
        f"{name}s": sum(each["severity"] == name and not each["repaired"] for each in findings)
        for name in ("error", "warning")
    }
    return {
        **found,
        **counts,
        "findings": findings,
        "mended": sum(each["repaired"] for each in findings),
        "problems": [f"{each['message']}; {each['cure']}" for each in told],
        "repaired": all(each["repaired"] for each in told),
    }


def _all_lost(store: Store, count: int) -> dict[str, Any]:
    """The finding that stands above those of single files where the store's directory of files holds none."""
    return {
        "severity": "error",
        "code": "files-empty",
        "file": None,
        "target": None,
        "path": str(store.root / "files"),
        "message": f"{store.root / 'files'} is empty, though objects of {count:,} files with a name are there",
        "cure": "put the whole directory back from a copy of the store",
        "repaired": False,
    }


def lost_names(found: dict[str, Any]) -> list[str]:
    """The names of lost files in what a check found."""
    return [each["path"] for each in found["findings"] if each["code"] == LOST]


def _named(finding: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """The finding of a file without a record of its name, which links lead to: one of them may be a copy, and which one
    its owner knows alone.
    """
    lead = f"{paths[0]} leads to it" if len(paths) == 1 else f"{len(paths)} links lead to it, {paths[0]} among them"
    words = ["stripewise", "store", "relink", paths[0]]
    which = "relink that, if it is the file's name" if len(paths) == 1 else "relink the one that is its name"
    return {**finding, "message": f"{finding['message']}, but {lead}", "cure": f"{which}: {command_line(words)}"}


def _lost(store: Store, identity: str, paths: list[str]) -> dict[str, Any]:
    more = f" and {len(paths) - 1} more name(s)" if len(paths) > 1 else ""
    part = store.root / "files" / identity
    return {
        "severity": "error",
        "code": LOST,
        "file": identity,
        "target": None,
        "path": paths[0],
        "message": f"file {identity} ({paths[0]}{more}): {part} is gone, though objects of it are there",
        "cure": f"restore that from a copy of the store, or give the file up: {command_line(['rm', *paths])}",
        "repaired": False,
    }
