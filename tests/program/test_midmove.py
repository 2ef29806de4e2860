"""What programs do to a file in the middle of a move, at a place of the test's choosing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from churning import identity
from conftest import Maker
from rig import Store, dirs, region, stripes

from stripewise import _stripewise as native

MIB = 1 << 20
HALF_KIB = 8 << 10
#: Two halves of 8 MiB on one target.
BOTH_ON_T1 = [region(0, HALF_KIB, stripes(("t1", 64))), region(HALF_KIB, HALF_KIB, stripes(("t1", 64)))]


def halves(*targets: int) -> str:
    """A layout of two halves, each on one target."""
    length = HALF_KIB << 10
    return json.dumps(
        {
            "regions": [
                {"start": i * length, "len": length, "stripes": [[target, 65536]]} for i, target in enumerate(targets)
            ]
        }
    )


def content(size: int) -> bytes:
    """Bytes that are nowhere zero and repeat at no stripe's length."""
    return (bytes(range(1, 252)) * (size // 251 + 1))[:size]


def filled(store: Store) -> Path:
    """A file of 16 MiB whose first half has moved to t0 already."""
    file = store.data / "f"
    (store.plain / "f").write_bytes(content(16 * MIB))
    store.program("cp", store.plain / "f", file)
    moved(store, file, halves(0, 1))
    return file


def moved(store: Store, file: Path, layout: str, copied: int = 0, meanwhile: Callable[[], None] | None = None) -> None:
    """Moves the file; `meanwhile` runs once so many bytes are copied."""
    waiting = [meanwhile] if meanwhile is not None else []

    def watch(told: str) -> str:
        if waiting and json.loads(told)["copied_bytes"] >= copied:
            waiting.pop()()
        return "go"

    mover = native.Mover(str(store.root), json.dumps({"bandwidth_bytes_per_s": 8 * MIB if waiting else 0}), watch)
    try:
        said = json.loads(mover.apply(identity(file), layout))
    finally:
        mover.close()
    assert "error" not in said, said
    assert not waiting


def test_a_cut_spares_what_was_copied_into_an_object_that_ends_earlier_at_home(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=BOTH_ON_T1)
    file = filled(store)

    def cut() -> None:
        store.program("truncate", "-s", str(15 * MIB), file)

    # The second half goes beside the first one, into the same object.
    moved(store, file, halves(0, 0), 5 * MIB, cut)
    assert store.program("cmp", "-n", str(15 * MIB), file, store.plain / "f").out == ""
