"""Making a store: its directory, its store.toml with the first rules, and what the native module makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import native
from ..cluster import read_cluster
from ..errors import StoreError
from ..files.parts import write_durably
from ..units import quoted
from .config import BUILT_IN_LAYOUTS, Rule, StoreConfig, check_apart, check_store_size, new_uuid
from .globs import default_manage, ignored, manage_globs
from .layouts import read_layout, save_layout
from .owned import check_owned, real_parent
from .store import Store


def create_store(
    root: Path, cluster_path: Path, manage: Sequence[str], region_bytes: int, layout: str, shared: bool = False
) -> Store:
    """Makes a store: its directory, store.toml, and what the native module makes.

    `layout` is def, hservers or a JSON file, which is copied into the store. A `shared` store serves all users, each
    with the rights that a file's own owner, mode and ACL give; without it, only the one who made it (and root).
    """
    root = real_parent(root)
    check_owned(root, "", "give the store another name")
    cluster = read_cluster(cluster_path)
    check_store_size(cluster)
    check_apart(root, cluster.targets)
    if (root / "store.bin").exists():
        raise StoreError(f"{root}: is a store already; choose another directory, or edit its store.toml")
    if _has_files(root):
        raise StoreError(
            f"{root}: is a store with files, whose store.bin is missing; 'stripewise store fsck {quoted(root)} "
            "--repair' compiles it anew from store.toml"
        )
    rules = [Rule(glob, "ignore") for glob in ignored(root, cluster)]
    rules += [Rule(glob) for glob in (manage_globs(manage) if manage else default_manage(root))]
    config = StoreConfig(root, cluster, new_uuid(), region_bytes, "def", ()).with_rules(rules)
    made = False
    try:
        try:
            # Nobody else's for a moment either, whatever the umask.
            root.mkdir(0o755, parents=True)
            made = True
        except FileExistsError:
            if not root.is_dir():
                raise
            check_owned(root, "", "give the store another name")
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


def _has_files(root: Path) -> bool:
    try:
        return any(os.scandir(root / "files"))
    except OSError:
        return False


def _with_default(config: StoreConfig, layout: str) -> StoreConfig:
    if layout in BUILT_IN_LAYOUTS:
        return replace(config, default_layout=layout)
    return replace(config, default_layout=save_layout(config, "default", read_layout(Path(layout), config)))
