"""Fixtures of the whole-program tests. Nothing is skipped because something was not built: that is a failure."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import Realm, make_realm
from rig import (
    LAYOUTS,
    LIBRARY,
    MPIEXEC,
    MPIIO,
    NATIVE,
    ROOT,
    SOURCE_BYTES,
    STRIPEWISE,
    Maker,
    Store,
    Target,
    create_store,
)
from trap import Ground, Trap, make_ground

# A shell's background ignores SIGINT, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And what nohup starts, SIGHUP.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

SOURCES = ROOT / "tests" / "native"
#: What the Makefile builds from them.
NATIVE_PROGRAMS = [
    *(source.stem for source in SOURCES.glob("*.c")),
    *(source.parent.name for source in SOURCES.glob("*/main.c")),
    *(f"{source.stem}.so" for source in SOURCES.glob("modules/*.c")),
    "failclosed-static",
]


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """Everything that these tests run."""
    needed = [STRIPEWISE, MPIEXEC, MPIIO, MPIIO.with_name("player"), LIBRARY]
    needed += [NATIVE / name for name in NATIVE_PROGRAMS]
    missing = [str(path) for path in needed if not path.exists()]
    assert not missing, f"not built: {', '.join(missing)}; run make build test"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory that any user may enter, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="stripewise-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture
def make_store(scratch: Path) -> Iterator[Maker]:
    """Makes stores; at the end each must pass fsck."""
    made: list[Store] = []

    def make(targets: list[Target] | None = None, layout: str | None = None, **options: object) -> Store:
        base = scratch / f"s{len(made)}"
        if layout is not None:
            targets, options["regions"] = LAYOUTS[layout]
        made.append(create_store(base, targets or LAYOUTS["striped"][0], **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for store in made:
        if store.check_at_end:
            store.fsck()


@pytest.fixture
def store(make_store: Maker) -> Store:
    """A store with one file of random bytes, `data/f`, which are in `source` too."""
    made = make_store(layout="striped")
    (made.base / "source").write_bytes(os.urandom(SOURCE_BYTES))
    made.program("dd", f"if={made.base / 'source'}", f"of={made.data / 'f'}", "bs=1M")
    return made


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    """Stores of root's and of an attacker's, for all tests of a file; see docs/security.md."""
    with make_realm() as made:
        yield made


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with make_ground() as made:
        yield made


@pytest.fixture
def trap(ground: Ground) -> Trap:
    """A store that any test may spoil."""
    return Trap(ground.fresh())
