"""Kills at every system call of a small file's life: made, written, given the name of another, removed.

A name leads to what the program had done with it by then, or did with it just before, whole: an old file under the name
it had is old until the rename and new from it on. What half a creation or half a removal leaves is in nobody's way, and
`fsck --repair` and `gc --purge` take it away: without the word nothing goes because its name is gone.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rig import Maker, Store, execute, stripewise

HERE = Path(__file__).resolve().parent
OLD = "old " * 5000
MARK = 'access("/begins"'


@pytest.fixture(scope="module")
def namekills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program whose file lives and dies."""
    made = tmp_path_factory.mktemp("namekills") / "namekills"
    subprocess.run(["cc", "-O1", "-o", made, HERE / "namekills.c"], check=True)
    return made


def strace(store: Store, program: Path, *options: str) -> tuple[int, str]:
    """The program under strace, which has no library itself: exit status, and the calls."""
    environment = store.environment()
    library = environment["LD_PRELOAD"]
    log = store.base / "calls"
    bare = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    told = ["strace", "-o", log, *options, "-E", f"LD_PRELOAD={library}", program, store.data / "f", store.data / "g"]
    done = execute(told, bare, code=None)
    return done.code, log.read_text(errors="replace")


def content(store: Store, name: str) -> str | None:
    """What a name leads to, told by a program of its own."""
    if not (store.data / name).is_symlink():
        return None
    return store.program("cat", store.data / name).out


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_kill_at_any_call_of_a_file_s_life_leaves_what_was_there_before_or_after(
    make_store: Maker, namekills: Path
) -> None:
    store = make_store(layout="striped")
    (store.base / "old").write_text(OLD)
    store.program("cp", store.base / "old", store.data / "g")
    code, calls = strace(store, namekills)
    assert code == 0, calls
    names = [line.split("(", 1)[0] for line in calls.splitlines() if not line.startswith("+++")]
    first = next(number for number, line in enumerate(calls.splitlines()) if MARK in line)
    seen = set()
    for number in range(first, len(names)):
        # strace counts the calls of each kind.
        name, which = names[number], names[: number + 1].count(names[number])
        store.program("rm", "-f", store.data / "f", store.data / "g")
        store.program("cp", store.base / "old", store.data / "g")
        code, calls = strace(store, namekills, "-e", f"inject={name}:signal=SIGKILL:when={which}")
        assert code != 0 and calls.rstrip().endswith("+++ killed by SIGKILL +++"), calls
        left = (content(store, "f"), content(store, "g"))
        seen.add(left)
        assert left in {(None, OLD), ("", OLD), ("new", OLD), (None, "new"), (None, None)}, calls
    assert len(seen) == 5, seen
    # Nobody is hindered by what is left, and the verbs that are there for that take all of it away.
    store.program("rm", "-f", store.data / "f", store.data / "g")
    assert not list(store.data.iterdir())
    store.fsck("--repair", code=None)
    stripewise("store", "gc", store.root, "--purge", "--older-than", "0s")
    store.fsck()
    assert not list((store.root / "files").iterdir()) and not list((store.root / "trash").iterdir())
    objects = [entry for target in store.base.glob("t*") for entry in target.glob("*.data*")]
    assert objects == []
