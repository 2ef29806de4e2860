"""Programs that are watched while they run: the library works under valgrind and gdb as it does without."""

from __future__ import annotations

import shutil

import pytest
from rig import SOURCE_BYTES, Store

WATCHERS = {
    "valgrind": ["valgrind", "-q", "--error-exitcode=9"],
    "gdb": ["gdb", "-batch", "-ex", "run", "-ex", "quit $_exitcode", "--args"],
}


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_copy_onto_a_managed_file_is_the_same_under(store: Store, watcher: str) -> None:
    if shutil.which(watcher) is None:
        pytest.skip(f"not run: needs {watcher}")
    store.program(*WATCHERS[watcher], "cp", store.base / "source", store.data / "copy")
    store.program("cmp", store.base / "source", store.data / "copy")
    assert (store.base / "source").stat().st_size == SOURCE_BYTES
