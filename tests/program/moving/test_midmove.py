"""What programs do to a file in the middle of a move, at a place of the test's choosing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from churning import identity
from rig import NATIVE, Maker, Store, Target, dirs, region, stripes

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

    def look(done: int, _: int) -> bool:
        if waiting and done >= copied:
            waiting.pop()()
        return True

    limits = json.dumps({"bandwidth_bytes_per_s": 8 * MIB if waiting else 0})
    mover = native.MoveSession(str(store.root), limits, "{}", look)
    try:
        mover.expect(1 << 40)
        said = json.loads(mover.apply(str(file), identity(file), layout, 0, 0))
    finally:
        mover.end("ended")
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


def test_what_a_cut_takes_does_not_come_back_when_the_file_grows(make_store: Maker) -> None:
    # On t0 the home has 2.5 MiB of the first 5; the second new region begins at 4.
    store = make_store(dirs(2), regions=[region(0, 2 * HALF_KIB, stripes(("t0", 64), ("t1", 64)))])
    file, size = store.data / "f", 16 * MIB
    (store.plain / "f").write_bytes(content(size))
    store.program("cp", store.plain / "f", file)
    with (store.plain / "f").open("r+b") as plain:
        plain.truncate(5 * MIB)
        plain.truncate(size)
    differences = []

    def cut_and_grow() -> None:
        store.program("truncate", "-s", str(5 * MIB), file)
        store.program("truncate", "-s", str(size), file)
        differences.append(store.program("cmp", file, store.plain / "f", code=None).out)

    new = [
        {"start": 0, "len": 4 * MIB, "stripes": [[0, 65536]]},
        {"start": 4 * MIB, "len": 12 * MIB, "stripes": [[1, 65536]]},
    ]
    moved(store, file, json.dumps({"regions": new}), 9 * MIB, cut_and_grow)
    differences.append(store.program("cmp", file, store.plain / "f", code=None).out)
    assert differences == ["", ""]


def test_a_thread_that_ends_inside_a_write_holds_nobody_up(make_store: Maker) -> None:
    # Writes last so long that the thread surely ends in one.
    store = make_store([Target("h0", "hdd", "emulated", 0, 3.0)])
    file = store.data / "f"
    (store.plain / "f").write_bytes(b"")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    user = subprocess.Popen([NATIVE / "quitter", file, "500"], env=store.environment(), **pipes)  # type: ignore[call-overload]
    try:
        assert user.stdout.readline() == "ended\n"
        # Waits for every I/O that is under way, and is refused when one does not end.
        store.program("truncate", "-s", "0", file)
    finally:
        out, err = user.communicate(timeout=60)
    assert (out, err) == ("", "")
