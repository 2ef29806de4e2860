"""A traced workload as a store sees it: only what touches the store's files, with their ids and sizes there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..workload import Workload
from ..workload.renames import as_renamed, renames_in
from .store import Store


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
