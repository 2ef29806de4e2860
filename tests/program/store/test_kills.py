"""Kills at random moments: of single ranks, of whole jobs, of `apply`; and Ctrl-C in `undo`.

Afterwards fsck finds a sound store, and all that was written is there.
9 kills here, 200 in `make soak` (STRIPEWISE_SOAK=1).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

from rig import (
    NATIVE,
    SOAK,
    STRIPEWISE,
    UNEVEN,
    Maker,
    Store,
    Target,
    children,
    execute,
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

KILLS = {"job": 70, "writer": 65, "apply": 65} if SOAK else {"job": 3, "writer": 3, "apply": 3}
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
