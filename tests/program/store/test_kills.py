"""Kills at random moments: of single ranks, of whole jobs, of `apply`, of `undo`; and Ctrl-C in `undo`.

Afterwards fsck finds a sound store, and all that was written is there.
14 kills here, 260 in `make soak` (STRIPEWISE_SOAK=1).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import timeit
from pathlib import Path

import pytest
from rig import (
    NATIVE,
    SOAK,
    STRIPEWISE,
    UNEVEN,
    Maker,
    Store,
    Target,
    children,
    dirs,
    execute,
    is_managed,
    kill_job,
    launch,
    mpiio_command,
    parse_mpiio,
    ranks_of,
    region,
    stripes,
    stripewise,
    wait_until,
)
from test_undo import bytes_of, contents_of, full, gone, hidden, is_over, undo

from stripewise.files.parts import locked_part
from stripewise.store import Store as Opened
from stripewise.store.config import CONFIG_LOCK
from stripewise.store.undo import run as whole
from stripewise.store.undo.stopped import end_stopped, stopped

__all__ = ["full"]

KILLS = {"job": 70, "writer": 65, "apply": 65, "undo": 60} if SOAK else {"job": 3, "writer": 3, "apply": 3, "undo": 5}
ACKED = NATIVE / "acked"
#: Slow enough that a move of a few MiB takes a second.
TARGETS = [
    Target("t0", "hdd", "emulated", 0, 1e-5, 1.5e-8),
    Target("t1", "hdd"),
    Target("t2", "ssd", "emulated", 0, 1e-6, 5e-9),
]
OTHER = [region(0, 64, stripes(("t2", 16))), region(64, 4096, stripes(("t0", 128), ("t2", 8)))]


def sound(store: Store) -> None:
    """fsck mends what a kill may leave (half a move, a half-made file) and then has nothing to say."""
    store.repair()
    store.fsck()


def test_a_killed_job_leaves_no_foreign_byte(make_store: Maker) -> None:
    store = make_store(TARGETS, regions=UNEVEN)
    rng = random.Random(1)
    file = store.data / "f"
    words = [
        "--file-size",
        "3MiB",
        "--request-size",
        "24KiB",
        "--pieces",
        "3",
        "--requests",
        "100000",
        "--if-missing-fill",
    ]
    for number in range(KILLS["job"]):
        pattern = rng.choice(["random", "strided", "interleaved"])
        job = launch(store, mpiio_command(3, file, *words, "--pattern", pattern, "--seed", str(number)))
        wait_until(lambda job=job: len(children(job.pid)) >= 4, 10)
        time.sleep(rng.uniform(0.0, 1.2))
        ranks = ranks_of(job)
        if ranks and rng.random() < 0.5:
            os.kill(rng.choice(ranks), signal.SIGKILL)
            time.sleep(0.2)
        kill_job(job)
        sound(store)
        size = int(store.program("stat", "-c", "%s", file, code=None).out or 0)
        if size >= 65536:
            check = mpiio_command(
                2, file, "--file-size", str(size), "--request-size", "4096", "--phases", "check", "--holes-legal"
            )
            parse_mpiio(store.program(*check))


def test_a_killed_writer_loses_nothing_that_it_wrote(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(2)
    for number in range(KILLS["writer"]):
        file = store.data / f"f{number % 3}"
        acks = store.base / f"acks{number % 3}"
        with acks.open("ab") as sink:
            # Versions begin at 1 in every run, so a run is checked against its own lines on a fresh file.
            store.program("rm", "-f", file)
            sink.truncate(0)
            job = launch(
                store, [ACKED, "write", file, str(number + 1), str(rng.choice([5, 60, 400])), "written"], sink.fileno()
            )
            time.sleep(rng.uniform(0.02, 0.3))
            kill_job(job)
        if number % 3 == 2:
            sound(store)
        # A kill may cut the last line short; what is not a whole line was not promised.
        lines = acks.read_text()
        whole = lines[: lines.rfind("\n") + 1]
        if whole:
            store.program(ACKED, "check", file, stdin=whole)
    sound(store)


def test_a_killed_apply_changes_no_byte(make_store: Maker) -> None:
    store = make_store(TARGETS, regions=UNEVEN)
    rng = random.Random(3)
    file = store.data / "f"
    size = 5_000_003
    content = rng.randbytes(size)
    (store.base / "source").write_bytes(content)
    store.program("dd", f"if={store.base / 'source'}", f"of={file}", "bs=1M")
    plans = [store.plan(store.base / f"plan{k}.json", file, regions, size) for k, regions in enumerate((OTHER, UNEVEN))]
    layout = next((store.root / "files").glob("*/layout"))
    interrupted = 0
    for number in range(KILLS["apply"]):
        before = layout.read_bytes()
        job = subprocess.Popen(
            [STRIPEWISE, "apply", plans[number % 2], "--store", store.root],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(lambda before=before, job=job: layout.read_bytes() != before or job.poll() is not None, 30)
        time.sleep(rng.choice([0.0, 0.001, 0.01, 0.1, 0.3, 0.6]))
        interrupted += job.poll() is None
        kill_job(job)
        if number % 2:
            sound(store)
        execute(["dd", f"if={file}", f"of={store.base / 'sink'}", "bs=64K"], store.environment())
        assert (store.base / "sink").read_bytes() == content, f"kill {number} changed bytes"
    assert interrupted, "no kill hit a move"
    for plan in plans:
        execute([STRIPEWISE, "apply", plan, "--store", store.root])
    sound(store)


def test_ctrl_c_at_any_moment_of_an_undo_says_what_stands_and_the_next_one_ends_it(make_store: Maker) -> None:
    store = make_store([Target("t0"), Target("t1")])
    store.check_at_end = False
    files = [store.data / f"f{number}" for number in range(60)]
    script = 'for file; do head -c 200000 /dev/zero | tr "\\0" x >"$file"; done'
    store.program("sh", "-c", script, "sh", *files)
    stands = set()
    # On a busy machine the interpreter starts for longer than the first ones.
    for wait_ms in (80, 150, 220, 290, 360, 430, 500, 700, 1000, 1500, 2500):
        managed = sum(file.is_symlink() for file in files)
        words = [STRIPEWISE, "undo", store.root]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(wait_ms / 1e3)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        if child.returncode == 0:
            break
        if child.returncode == -signal.SIGINT and ", in main\n" not in err:
            # It came while the interpreter started, before the first line of the command.
            continue
        now = sum(file.is_symlink() for file in files)
        assert child.returncode == 130 and err.count("\n") == 1, (wait_ms, err)
        told = {
            "before it began, so nothing has changed": now == managed,
            "no file was made plain by this run; the store stands, and the same command goes on": now == managed,
            f"{managed - now} file(s) are plain by now, {now} are managed; the same command goes on from there": True,
            "all files are plain by now; the same command ends the removal of the store": now == 0,
        }
        said = err.removeprefix("stripewise: interrupted").removeprefix(";").strip()
        assert told.get(said), (wait_ms, now, err)
        stands.add(said)
    assert stands
    if store.root.exists():
        stripewise("undo", store.root)
    assert not store.root.exists() and all(file.read_bytes() == b"x" * 200_000 for file in files)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_a_killed_one_left_is_named_by_fsck_and_ended_by_its_repair(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stripewise.store.undo import files

    before = contents_of(full.data)
    for number, step in enumerate(("sum_of_plain", "_let_go")):
        with monkeypatch.context() as context:
            for name in (step, "_settle"):
                context.setattr(files, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                whole.undo(full.root, None, [], 0.0, print, lambda *_: None)
        assert sum(not is_managed(path) for path in before) == number
        said = full.fsck().out
        (line,) = (line for line in said.splitlines() if line.startswith("remark:"))
        assert "an undo was stopped while it made this file plain" in line, said
        assert [f"left the copy {path} " in line for path in hidden(full)] == [True] * (1 - number), said
        shown = json.loads(full.fsck("--json").out)["undo_stopped"]
        assert shown == [line.removeprefix("remark: ")] and f"undo {full.root}' goes on" in line
        said = full.fsck("--repair").out
        assert "an undo was stopped while it made 1 file(s) plain; ended, and its copies removed" in said, said
        assert not hidden(full) and full.fsck().out == f"{full.root}: sound\n"
        assert sum(not is_managed(path) for path in before) == number and contents_of(full.data) == before
    # Not while one is at work, which the lock tells.
    (full.root / "undo").mkdir(exist_ok=True)
    (full.root / "undo/0123456789abcdef.json").write_text("{")
    assert f"{full.root}/undo/0123456789abcdef.json: cannot be read" in full.fsck().out
    with locked_part(full.root, CONFIG_LOCK):
        assert stopped(Opened(full.root)) == [] and end_stopped(full.root) == 0


def test_killed_at_any_moment_and_run_again_it_ends_with_every_byte(full: Store) -> None:
    os.link(full.data / "a", full.data / "hard", follow_symlinks=False)
    (full.base / "targets/t2/foreign").write_text("mine")
    before = contents_of(full.data)
    # A whole run does more than a dry one, whatever the machine's speed.
    dry_s = min(timeit.repeat(lambda: undo(full, "--dry-run"), number=1, repeat=3))
    rng, kills = random.Random(5), 0
    while True:
        job = subprocess.Popen([STRIPEWISE, "undo", full.root], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            latest = 1.6 if kills else 0.5
            _, err = job.communicate(timeout=rng.uniform(0.4, latest) * dry_s if kills < KILLS["undo"] else 60)
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGKILL)
            job.communicate()
            kills += 1
            assert {path: bytes_of(path) for path in before} == before, f"kill {kills}"
            continue
        if job.returncode == 0 or is_over(full):
            break
        raise AssertionError(err.decode())
    gone(full, "foreign")
    assert kills and {path: bytes_of(path) for path in before} == before
    assert not any(is_managed(path) for path in before) and (full.data / "hard").samefile(full.data / "a")


SYSTEM_CALLS = "rename,renameat,renameat2,unlink,unlinkat,link,linkat,rmdir,symlinkat,fsync,mkdir"


@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="needs strace")
def test_killed_at_every_change_on_disk_it_goes_on(make_store: Maker) -> None:
    number = ended = 1
    step = 1 if SOAK else 11
    while ended:
        store = make_store(dirs(2))
        store.check_at_end = False
        for name in ("a", "b"):
            (store.data / name).write_bytes(os.urandom(20_000))
        stripewise("store", "adopt", "--store", store.root, store.data / "a", store.data / "b")
        os.link(store.data / "a", store.data / "hard", follow_symlinks=False)
        before = contents_of(store.data)
        inject = f"inject={SYSTEM_CALLS}:signal=KILL:when={number}"
        ended = subprocess.run(
            [*f"strace -f -o /dev/null -e trace={SYSTEM_CALLS} -e {inject}".split(), STRIPEWISE, "undo", store.root],
            capture_output=True,
            check=False,
        ).returncode
        assert {path: bytes_of(path) for path in before} == before, f"killed at change {number}"
        if ended and not is_over(store):
            undo(store)
        gone(store)
        assert {path: bytes_of(path) for path in before} == before and not is_managed(store.data / "hard")
        number += step
    assert number > 20, "the kills did not hit"
