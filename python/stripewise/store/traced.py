"""A traced workload as a store sees it: only what touches the store's files, with their ids and sizes there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..files.spelling import path_meant
from ..units import command_line, quoted
from ..workload import Workload
from ..workload.renames import as_renamed, renames_in
from .config import Rule, StoreConfig, manages
from .globs import manage_globs
from .placed import is_plain
from .store import Store

#: So many globs of a store are named where no file of a program is of one.
GLOBS_NAMED = 3


def on_store(workload: Workload, store: Store) -> Workload:
    """The files of the workload that the store holds, under the names that they have at last; none may be left."""
    renames = renames_in(Path(workload.source)) if Path(workload.source).is_file() else []
    workload = as_renamed(workload, renames, lambda path: store.resolve(path) is not None)
    known = {file.id: file for file in store.files()}
    files = []
    for file in workload.files:
        identity = store.resolve(file.path)
        if identity is not None:
            held = known[identity].size if identity in known else 0
            files.append(replace(file, id=identity, size_bytes=max(file.size_bytes, held)))
    return replace(workload, files=tuple(files))


def with_sizes(workload: Workload, store: Store) -> Workload:
    """The workload with files that the store holds as long as they are there: a run need not have touched their end."""
    held = {file.spelled: file.size for file in store.files()}
    files = (replace(file, size_bytes=max(file.size_bytes, held.get(file.path, 0))) for file in workload.files)
    return replace(workload, files=tuple(files))


def managed_advice(config: StoreConfig) -> str:
    """What makes new files go into a store, with its rules for directories: a template is of the files of one name."""
    rules = [rule for rule in config.rules if rule.action == "manage"]
    globs = [rule.glob for rule in rules if rule.layout is None] or [rule.glob for rule in rules]
    named = ", ".join(globs[:GLOBS_NAMED]) + ", ..." * (len(globs) > GLOBS_NAMED) if globs else "none now"
    return (
        f"new files go into the store where a [[rule]] in {config.path} has a glob of their path ({named}): add one "
        "there, or name the files with --manage"
    )


def _may_come_in(path: str) -> bool:
    """A plain file, and no program: one that lies in a store cannot be started."""
    path = path_meant(path)
    return is_plain(path) and not os.access(path, os.X_OK)


def adopt_advice(workload: Workload, store: Store, manage: Sequence[str] = ()) -> str:
    """Names plain files of the workload that stood already where the store (or `manage`, as of --manage) manages new
    ones, and the command that takes them into it; empty where there are none. Only new files go into a store.
    """
    rules = (*map(Rule, manage_globs(manage)), *store.config.rules)
    plain = [file.path for file in workload.files if _may_come_in(file.path) and manages(rules, file.path)]
    if not plain:
        return ""
    first = plain[0]
    others = f" (so are {len(plain) - 1} more)" if len(plain) > 1 else ""
    command = f"stripewise store adopt --store {quoted(store.root)} {quoted(path_meant(first))}"
    return (
        f"{os.path.basename(first)} is a plain file in a managed directory{others}, for only new files go into a "
        f"store by themselves; take it in with '{command}'"
    )


def plain_advice(workload: Workload, store: Store, manage: Sequence[str] = (), is_kept: bool = True) -> str:
    """What to do with plain files of the workload, so that the store serves them; empty where there are none now.
    `manage` is as of --manage; where the trace is not kept, another one is to be made for copies.
    """
    copies = command_line(
        ["stripewise", "replicate", workload.source if is_kept else "DIR", "--store", str(store.root)]
    )
    beside = f"copies of what it reads can stand beside it: {copies}"
    if not is_kept:
        beside += " (DIR: a trace by 'stripewise run --trace DIR', collected)"
    if advice := adopt_advice(workload, store, manage):
        return f"{advice}; or leave it, and {beside}"
    plain = [file.path for file in workload.files if _may_come_in(file.path)]
    if not plain:
        return ""
    others = f" (so are {len(plain) - 1} more)" if len(plain) > 1 else ""
    adopt = command_line(["stripewise", "store", "adopt", "--store", str(store.root), path_meant(plain[0])])
    return (
        f"{os.path.basename(plain[0])} is a plain file elsewhere{others}; take it in where it is: {adopt}; or leave it "
        f"plain, and {beside}"
    )
