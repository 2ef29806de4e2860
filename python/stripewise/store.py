"""A store as Python sees it: store.toml beside the native module's operations, targets by name instead of by number."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import native
from .cluster import read_cluster
from .documents import read_json
from .durable import write_durably
from .errors import LayoutError, StoreError
from .globs import default_manage, ignored, manage_globs
from .layout import Layout, from_indexes, layout_json, parse_layout, target_bytes, to_indexes
from .parts import replace_part
from .plan import FilePlan, Plan
from .store_toml import BUILT_IN_LAYOUTS, Rule, StoreConfig, check_store_size, new_uuid, read_store

#: Stands for "compiled from something that is not on disk": the next verb compiles store.toml again.
FOREIGN_DIGEST = "0" * 64
#: Layouts that store.toml names are kept here, inside the store.
LAYOUTS_DIR = "layouts"
#: Of the 1,024 rules a store can have, so many may be temporary.
TEMPORARY_RULES_MAX = 256


@dataclass(frozen=True)
class StoredFile:
    """One managed file."""

    id: str
    path: str
    size: int
    details: Mapping[str, Any]


class Store:
    """An existing store. Every constructor call compiles store.toml again if it was edited."""

    def __init__(self, root: Path) -> None:
        self.config: StoreConfig = read_store(root)
        self.root = self.config.root
        self.sync()

    def sync(self, force: bool = False) -> None:
        """Compiles store.toml for the library when it differs from what was compiled last."""
        digest = self.config.digest()
        if force or self.info().get("toml_sha256") != digest:
            native.call("store_configure", str(self.root), self.config.spec(digest))

    def info(self) -> dict[str, Any]:
        """What the native module says about the store."""
        return dict(native.call("store_info", str(self.root)))

    def files(self) -> list[StoredFile]:
        """All managed files, by path."""
        data = native.call("store_files", str(self.root))
        rows = data.get("files", []) if isinstance(data, dict) else data
        files = [
            StoredFile(str(row["id"]), str(row.get("path") or ""), int(row.get("size_bytes", row.get("size", 0))), row)
            for row in rows
        ]
        return sorted(files, key=lambda file: (file.path, file.id))

    def layout(self, identity: str) -> Layout:
        """The layout of the file `identity`, with target names."""
        return from_indexes(native.call("store_layout", str(self.root), identity), self.config.cluster)

    def resolve(self, path: str) -> str | None:
        """The id of the file at `path` if it lies in this store."""
        found = native.call("store_resolve", path)
        if not found or Path(found["store"]).resolve() != self.root.resolve():
            return None
        return str(found["id"])

    def devices(self) -> list[dict[str, Any]]:
        """The counters of every target since boot."""
        return list(native.call("store_devices", str(self.root))["targets"])

    def programs(self) -> list[dict[str, Any]]:
        """Living programs: `pid`, `is_stale` (began before the last change of store.toml), `targets` that they know."""
        return list(native.call("store_programs", str(self.root))["programs"])

    def fsck(self, rebuild: bool, repair: bool) -> dict[str, Any]:
        """What the check found; see docs/formats.md."""
        return dict(native.call("store_fsck", str(self.root), json.dumps({"rebuild": rebuild, "repair": repair})))

    def apply_layout(
        self, identity: str, plan_file: FilePlan, progress: native.Progress | None = None
    ) -> dict[str, Any]:
        """Moves one file's bytes to where `plan_file` puts them."""
        text = json.dumps(to_indexes(plan_file.layout, self.config.cluster))
        return dict(native.call("store_apply", str(self.root), identity, text, progress))

    def identities(self, plan: Plan, source: Path | str) -> dict[str, str]:
        """The id of every planned file by path; StoreError for one that is not in this store."""
        ids = {}
        for number, file in enumerate(plan.files):
            identity = self.resolve(file.path)
            if identity is None:
                raise StoreError(
                    f"{source}: files[{number}].path '{file.path}' is not a file of the store {self.root}; "
                    f"plan a trace of a run on this store"
                )
            if file.id is not None and file.id != identity:
                raise StoreError(
                    f"{source}: files[{number}].id is {file.id}, but '{file.path}' is {identity} now; plan anew or "
                    f"remove the id"
                )
            ids[file.path] = identity
        return ids

    def used_by_others(self, paths: Sequence[str]) -> dict[str, int]:
        """Bytes per target that files other than `paths` hold; holes count as full."""
        held: dict[str, int] = {}
        for file in self.files():
            if file.path in paths:
                continue
            for name, count in target_bytes(self.layout(file.id).regions, file.size).items():
                held[name] = held.get(name, 0) + count
        return held

    def limited_growth(self, identity: str, file: FilePlan) -> int:
        """How many bytes more the file takes on targets of limited capacity once it lies as planned."""
        limited = {target.name for target in self.config.cluster.targets if target.capacity_bytes}
        before = target_bytes(self.layout(identity).regions, file.size)
        after = target_bytes(file.layout, file.size)
        return sum(after.get(name, 0) - before.get(name, 0) for name in limited)

    def apply(self, plan: Plan, ids: Mapping[str, str], progress: native.Progress | None = None) -> dict[str, Any]:
        """Applies a plan file by file; those that free limited targets go first. Returns bytes moved and seconds."""
        order = sorted(plan.files, key=lambda file: self.limited_growth(ids[file.path], file))
        total = sum(file.size for file in plan.files)
        moved, seconds, base = 0, 0.0, 0
        for file in order:
            step = None if progress is None else _shifted(progress, base, total)
            result = self.apply_layout(ids[file.path], file, step)
            moved += int(result.get("moved_bytes", 0))
            seconds += float(result.get("seconds", 0.0))
            base += file.size
        return {"files": len(order), "moved_bytes": moved, "seconds": seconds}

    @contextlib.contextmanager
    def configured(self) -> Iterator[Temporary]:
        """Lets the caller change the compiled form for a while; store.toml's comes back at the end.

        A kill in between is harmless: the digest fits no store.toml, so the next verb compiles it anew.
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
        spec = self.store.config.spec(FOREIGN_DIGEST, default_layout=name)
        native.call("store_configure", str(self.store.root), spec)

    def templates(self, globs: Mapping[str, FilePlan]) -> None:
        """New files that match a glob get the planned layout: programs that delete and create keep it."""
        rules = [
            {"glob": glob, "action": "manage", "layout": to_indexes(file.layout, self.store.config.cluster)}
            for glob, file in list(globs.items())[:TEMPORARY_RULES_MAX]
        ]
        native.call("store_configure", str(self.store.root), self.store.config.spec(FOREIGN_DIGEST, first=rules))


def _shifted(progress: native.Progress, base: int, total: int) -> native.Progress:
    def step(done_bytes: int, total_bytes: int) -> None:
        progress(min(base + done_bytes, total), max(total, total_bytes))

    return step


def create_store(
    root: Path, cluster_path: Path, manage: Sequence[str], region_bytes: int, layout: str, shared: bool = False
) -> Store:
    """Makes a store: its directory, store.toml, and what the native module makes.

    `layout` is def, hservers or a JSON file, which is copied into the store. A `shared` store serves all users, each
    with the rights that a file's own owner, mode and ACL give; without it, only the one who made it (and root).
    """
    root = Path(os.path.realpath(root))
    cluster = read_cluster(cluster_path)
    check_store_size(cluster)
    if (root / "store.bin").exists():
        raise StoreError(f"{root}: is a store already; choose another directory, or edit its store.toml")
    rules = [Rule(glob, "ignore") for glob in ignored(root, cluster)]
    rules += [Rule(glob) for glob in (manage_globs(manage) if manage else default_manage(root))]
    config = StoreConfig(root, cluster, new_uuid(), region_bytes, "def", ()).with_rules(rules)
    made = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Whatever the umask: nobody else enters a store that is one user's, or he could hold its locks; and nobody
        # makes entries in the directory of a shared one.
        root.chmod(root.stat().st_mode & (0o7775 if shared else 0o7700))
        config = _with_default(config, layout)
        write_durably(config.path, config.text())
    except OSError as error:
        raise StoreError(f"{root}: cannot be made ({error.strerror}); choose another directory") from error
    try:
        native.call("store_create", str(root), config.spec(config.digest()), shared)
    except BaseException:
        if made:
            shutil.rmtree(root, ignore_errors=True)
        else:
            config.path.unlink(missing_ok=True)
        raise
    return Store(root)


def _with_default(config: StoreConfig, layout: str) -> StoreConfig:
    if layout in BUILT_IN_LAYOUTS:
        return replace(config, default_layout=layout)
    return replace(config, default_layout=save_layout(config, "default", read_layout(Path(layout), config)))


def read_layout(path: Path, config: StoreConfig) -> Layout:
    """A layout from a layout JSON or from a plan of one file."""
    data = read_json(path, LayoutError, "a layout or a plan")
    known = [target.name for target in config.cluster.targets]
    if isinstance(data, dict) and isinstance(data.get("files"), list):
        if len(data["files"]) != 1 or not isinstance(data["files"][0], dict):
            raise LayoutError(
                f"{path}: holds {len(data['files'])} files, a template comes from a plan of one; split it"
            )
        regions = data["files"][0].get("regions", [])
        if isinstance(regions, list):
            keys = ("start", "len", "stripes")
            regions = [{key: r[key] for key in keys if key in r} if isinstance(r, dict) else r for r in regions]
        data = {"regions": regions}
    return parse_layout(data, path, known)


def save_layout(config: StoreConfig, name: str, layout: Layout) -> str:
    """Keeps `layout` in the store; returns its name there as store.toml writes it."""
    relative = f"{LAYOUTS_DIR}/{name}.json"
    target = config.root / relative
    try:
        replace_part(config.root, relative, json.dumps(layout_json(layout)) + "\n", make=True)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}); make the store writable") from error
    return relative
