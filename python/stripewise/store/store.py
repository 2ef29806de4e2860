"""A store as Python sees it: store.toml beside the native module's operations, targets by name instead of by number."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import native
from ..errors import StoreError
from ..files.parts import is_locked, read_part
from ..files.spelling import path_meant, spelled
from ..layout import Layout, from_indexes, target_bytes, to_indexes
from ..plan import FilePlan, Plan
from ..units import command_line
from .config import TUNE_LOCK, StoreConfig, manages, read_store
from .globs import escape
from .rewrite import keep_compiled

#: Of the 1,024 rules a store can have, so many may be temporary.
TEMPORARY_RULES_MAX = 256


#: Stands for "compiled from something that is not on disk": the next verb compiles store.toml again.
FOREIGN_DIGEST = "0" * 64


def temporary_digest(digest: str) -> str:
    """What stands for "compiled from store.toml and something that is not on disk"; `digest` is that of store.toml."""
    return "0" * 32 + digest[:32]


def without_files(root: Path) -> str:
    """What is wrong, and the cure, where the directory of a store's files is gone; else empty.

    Programs on such a store would make plain files.
    """
    wrong = ""
    try:
        if not stat.S_ISDIR((root / "files").lstat().st_mode):
            wrong = "is no directory"
    except FileNotFoundError:
        wrong = "is missing"
    except OSError:
        # Who may not look leaves it to the library, which says so.
        pass
    cure = "without which the store has no file; put it back from a copy of the store"
    return wrong and f"{root / 'files'}: {wrong}, {cure}"


@dataclass(frozen=True)
class StoredFile:
    id: str
    path: str
    size: int
    details: Mapping[str, Any]

    @property
    def spelled(self) -> str:
        """Its path as traces and plans have it."""
        return spelled(self.path)


def compile_anew(root: Path) -> bool:
    """Compiles the store.toml of a store whose store.bin is missing or damaged; tells whether it was.

    Raises StoreError where the targets are not the store's, InUseError while programs use it.
    """
    config = read_store(root)
    return bool(native.call("store_recompile", str(config.root), config.spec(config.digest())))


def recorded_name(root: Path, identity: str) -> str:
    """Where a file's link was made; empty where no record of it is left."""
    with contextlib.suppress(OSError):
        words = read_part(root, f"files/{identity}/link").removesuffix(b"\n").split(b" ", 2)
        if len(words) == 3 and words[2].startswith(b"/"):
            return os.fsdecode(words[2])
    return ""


class Store:
    """An existing store. Every constructor call compiles store.toml again if it was edited.

    StoreError for one without its directory of files.
    """

    def __init__(self, root: Path) -> None:
        self.config: StoreConfig = read_store(root)
        self.root = self.config.root
        if wrong := without_files(self.root):
            raise StoreError(wrong)
        self.sync()

    def sync(self, force: bool = False) -> None:
        """Compiles store.toml for the library when it differs from what was compiled last.

        With `force` as it is now, whatever it was when this store was opened. A temporary form of this very store.toml
        stays while a tune is at work, whose new files it lays out: --reset may run other verbs.
        """
        if force:
            self.config = read_store(self.root)
        digest = self.config.digest()
        compiled = self.info().get("toml_sha256")
        if not force and compiled == temporary_digest(digest) and is_locked(self.root, TUNE_LOCK):
            return
        if force or compiled != digest:
            native.call("store_configure", str(self.root), self.config.spec(digest))
        keep_compiled(self.config)
        # For the day when a target's mark is lost. Who may not write here leaves that to who may.
        with contextlib.suppress(StoreError):
            native.call("store_note_targets", str(self.root))

    def info(self) -> dict[str, Any]:
        """What the native module says about the store."""
        return dict(native.call("store_info", str(self.root)))

    def files(self) -> list[StoredFile]:
        """All managed files, by path."""
        data = native.call("store_files", str(self.root))
        rows = data.get("files", []) if isinstance(data, dict) else data
        files = [
            StoredFile(str(row["id"]), self._exact(row), int(row.get("size_bytes", row.get("size", 0))), row)
            for row in rows
        ]
        return sorted(files, key=lambda file: (file.path, file.id))

    def _exact(self, row: Mapping[str, Any]) -> str:
        """A file's recorded path, byte by byte: the native module's rows have other characters for bytes that are not
        UTF-8.
        """
        path = str(row.get("path") or "")
        return (recorded_name(self.root, str(row["id"])) or path) if "\N{REPLACEMENT CHARACTER}" in path else path

    def layout(self, identity: str) -> Layout:
        """The layout of the file `identity`, with target names."""
        return from_indexes(native.call("store_layout", str(self.root), identity), self.config.cluster)

    def resolve(self, path: str) -> str | None:
        """The id of the file at `path`, also as traces and plans spell it, if it lies in this store."""
        found = native.call("store_resolve", path_meant(path))
        if not found or Path(found["store"]).resolve() != self.root.resolve():
            return None
        return str(found["id"])

    def devices(self) -> list[dict[str, Any]]:
        """The counters of every target since boot."""
        return list(native.call("store_devices", str(self.root))["targets"])

    def programs(self) -> list[dict[str, Any]]:
        """Living programs: `pid`, `is_stale` (began before the last change of store.toml), `targets` that they know."""
        return list(native.call("store_programs", str(self.root))["programs"])

    def fsck(self, repair: bool, purge: bool = False) -> dict[str, Any]:
        """What the check found; see docs/formats.md. A repair that may `purge` removes objects of no file."""
        return dict(native.call("store_fsck", str(self.root), json.dumps({"repair": repair, "purge": purge})))

    def identities(self, plan: Plan, source: Path | str) -> dict[str, str]:
        """The id of every planned file by path; StoreError for one that is not in this store.

        Where the planned file is gone, the one that has its name now is its successor.
        """
        ids = {}
        for number, file in enumerate(plan.files):
            identity = self.resolve(file.path)
            if identity is None:
                cure = "plan a trace of a run on this store"
                path = path_meant(file.path)
                if os.path.isfile(path) and not os.path.islink(path):
                    words = ["stripewise", "store", "adopt", "--store", str(self.root), path]
                    cure = f"it is a plain file, which comes in by '{command_line(words)}'; then {cure}"
                elif not os.path.lexists(path) and manages(self.config.rules, path):
                    words = ["stripewise", "store", "template", "add", str(self.root), escape(path)]
                    cure = (
                        "none has that name now (removed since?): run the program again and plan, or give new files of "
                        f"that name a layout: {command_line(words)} --layout LAYOUT"
                    )
                raise StoreError(
                    f"{source}: files[{number}].path '{file.path}' is not a file of the store {self.root}; {cure}"
                )
            if file.id is not None and file.id != identity and any(file.id == each.id for each in self.files()):
                raise StoreError(
                    f"{source}: files[{number}].id is {file.id}, but '{file.path}' is {identity} now; plan anew or "
                    f"remove the id"
                )
            ids[file.path] = identity
        return ids

    def used_by_others(self, paths: Collection[str]) -> dict[str, int]:
        """Bytes per target that files other than `paths`, as plans spell them, hold; holes count as full."""
        held: dict[str, int] = {}
        for file in self.files():
            if file.spelled in paths:
                continue
            for name, count in target_bytes(self.layout(file.id).regions, file.size).items():
                held[name] = held.get(name, 0) + count
        return held

    @functools.cached_property
    def limited_targets(self) -> frozenset[str]:
        """Targets with a capacity, and those with less room than all files have bytes."""
        held = sum(file.size for file in self.files())
        small = {str(row["name"]) for row in self.devices() if (row["free_bytes"] or 0) < held}
        return frozenset(small | {target.name for target in self.config.cluster.targets if target.capacity_bytes})

    def limited_growth(self, identity: str, file: FilePlan) -> int:
        """How many bytes more the file takes on targets of limited room once it lies as planned."""
        before = target_bytes(self.layout(identity).regions, file.size)
        after = target_bytes(file.layout, file.size)
        return sum(after.get(name, 0) - before.get(name, 0) for name in self.limited_targets)

    @contextlib.contextmanager
    def configured(self) -> Iterator[Temporary]:
        """Lets the caller change the compiled form for a while; store.toml's comes back at the end.

        A kill in between is harmless: the digest fits no store.toml, so the next verb without a tune compiles it anew.
        """
        try:
            yield Temporary(self)
        finally:
            self.sync(force=True)


class Temporary:
    """Changes to the compiled form of a store that store.toml does not have."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def default_layout(self, name: str) -> None:
        """New files get the built-in layout `name`."""
        config = read_store(self.store.root)
        spec = config.spec(temporary_digest(config.digest()), default_layout=name)
        native.call("store_configure", str(self.store.root), spec)

    def templates(self, globs: Mapping[str, FilePlan]) -> None:
        """New files that match a glob get the planned layout: programs that delete and create keep it."""
        config = read_store(self.store.root)
        rules = [
            {"glob": glob, "action": "manage", "layout": to_indexes(file.layout, config.cluster)}
            for glob, file in list(globs.items())[:TEMPORARY_RULES_MAX]
        ]
        native.call(
            "store_configure", str(self.store.root), config.spec(temporary_digest(config.digest()), first=rules)
        )
