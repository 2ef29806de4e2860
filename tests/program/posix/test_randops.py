"""Random operations against plain files: several seeds, layouts, processes and threads; managed and unmanaged."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from rig import LAYOUTS, NATIVE, SOAK, Maker, Store

RANDOPS = NATIVE / "randops"
# A soak is more than a million operations in all.
OPERATIONS = 40_000 if SOAK else 4_000
SEEDS = range(1, 6) if SOAK else range(1, 3)


#: What every run must have exercised; a refusal is a difference.
CARRIED = (
    *("copy_file_range", "sendfile", "splice", "aio", "lio_listio", "mmap to read", "mmap to write", "stdio"),
    *("freopen or dup2 of a stream", "link", "rename over an open file", "chmod", "utimens", "xattr"),
)
#: What only a process without threads does, and too rarely for short runs.
RARE = ("exec", "standard streams")


def leftovers(store: Store) -> list[str]:
    """Ids of files that the store keeps though no name in the managed directory leads to them."""
    named = {os.readlink(path).rpartition("/")[2] for path in store.data.iterdir() if path.is_symlink()}
    kept = {path.name for part in ("files", "trash") for path in (store.root / part).iterdir()}
    return sorted(kept - named)


def randops(store: Store, directory: Path, seed: int, *options: str, operations: int = OPERATIONS) -> None:
    """Run the tester; it must find no difference and have exercised what the library carries."""
    oracle = store.base / "oracle"
    oracle.mkdir(exist_ok=True)
    words = ["--dir", str(directory), "--oracle-dir", str(oracle), "--seed", str(seed), "--ops", str(operations)]
    said = store.program(RANDOPS, *words, *options, timeout_s=3600)
    print(said.out)
    carried = {call: int(count) for call, count in re.findall(r"^randops: ([\w ]+): (\d+) carried,", said.out, re.M)}
    for call in CARRIED if operations < 100_000 else CARRIED + RARE:
        assert carried[call] > 0, f"{call}: {said.report}"
    assert not leftovers(store), said.report


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_operations_do_what_they_do_on_a_plain_file(make_store: Maker, layout: str, seed: int) -> None:
    store = make_store(layout=layout)
    randops(store, store.data, seed)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_processes_share_files_offsets_and_locks(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    randops(store, store.data, 11, "--procs", "4")


@pytest.mark.parametrize("layout", ["striped", "uneven"])
def test_threads_share_files(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    randops(store, store.data, 12, "--threads", "4")


def test_large_files_hold_too(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    randops(store, store.data, 13, "--max-size", str(1 << 33), operations=4_000)


@pytest.mark.parametrize("options", [(), ("--procs", "4"), ("--threads", "4")], ids=["one", "processes", "threads"])
def test_unmanaged_files_are_as_without_the_library(make_store: Maker, options: tuple[str, ...]) -> None:
    store = make_store(layout="striped")
    randops(store, store.plain, 14, *options)
    assert store.files() == []


def test_many_operations(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    randops(store, store.data, 15, operations=100_000 if SOAK else 25_000)
