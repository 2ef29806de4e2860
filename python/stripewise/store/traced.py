"""A traced workload as a store sees it: only what touches the store's files, with their ids and sizes there."""

from __future__ import annotations

from dataclasses import replace

from ..workload import Workload
from .store import Store


def on_store(workload: Workload, store: Store) -> Workload:
    """The files of the workload that the store holds; none may be left."""
    known = {file.id: file for file in store.files()}
    files = []
    for file in workload.files:
        identity = store.resolve(file.path)
        if identity is not None:
            held = known[identity].size if identity in known else 0
            files.append(replace(file, id=identity, size_bytes=max(file.size_bytes, held)))
    return replace(workload, files=tuple(files))
