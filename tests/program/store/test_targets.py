"""Targets that leave and come while programs run: drain, remove, add, rebalance."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from rig import (
    NATIVE,
    STRIPEWISE,
    Maker,
    Store,
    Target,
    dirs,
    execute,
    kill_job,
    launch,
    mpiio_command,
    ranks_of,
    stripewise,
    wait_until,
)
from test_migrate import check, read

from stripewise.cli.store import targets
from stripewise.layout import DRAINED, GIVEN, OWN, Layout, Region
from stripewise.limits import Limits
from stripewise.moving import retarget
from stripewise.moving.mover_session import MoverSession
from stripewise.run.put_back import put_back
from stripewise.run.shown import Shown
from stripewise.store import Store as Opened

ACKED, RANDOPS = NATIVE / "acked", NATIVE / "randops"


def write(store: Store, name: str, mebibytes: int = 3) -> tuple[Path, bytes]:
    content = (name.encode() * (1 << 20))[: mebibytes << 20]
    (store.base / "source").write_bytes(content)
    store.program("dd", f"if={store.base / 'source'}", f"of={store.data / name}", "bs=1M")
    return store.data / name, content


def add_target(store: Store, name: str) -> None:
    place = store.base / "targets" / name
    place.mkdir()
    stripewise("store", "add", store.root, name, "--path", place, "--no-calibrate")


def test_what_programs_read_and_write_is_counted_on_real_devices(make_store: Maker) -> None:
    store = make_store(targets=dirs(1))
    file, content = write(store, "f", 1)
    store.program("dd", f"if={file}", "of=/dev/null", "bs=64K")
    (device,) = json.loads(stripewise("store", "info", store.root, "--json").out)["devices"]
    assert (device["accesses_write"], device["bytes_written"]) == (1, len(content)), device
    # dd asks once more where the file ends, and no target is asked for that.
    assert (device["accesses_read"], device["bytes_read"]) == (len(content) >> 16, len(content)), device
    assert (device["startups"], device["busy_read_ns"], device["busy_write_ns"]) == (0, 0, 0), device


def objects(store: Store, target: str) -> list[str]:
    return [path.name for path in (store.base / "targets" / target).iterdir() if path.name != "stripewise-target"]


def start_writer(store: Store, name: str) -> tuple[subprocess.Popen[bytes], Path]:
    acks = store.base / f"{name}.acks"
    command = [ACKED, "write", store.data / name, "5", "200", "written"]
    with acks.open("wb") as out:
        job = subprocess.Popen(command, env=store.environment(), stdout=out, stdin=subprocess.DEVNULL)
    assert wait_until(lambda: acks.stat().st_size > 0)
    return job, acks


def test_a_drained_target_is_empty_and_its_directory_goes_while_a_job_writes(make_store: Maker) -> None:
    store = make_store([*dirs(3), Target("s0", "ssd")])
    file, content = write(store, "f")
    old, old_acks = start_writer(store, "old")
    try:
        # It began before, and could make a file there at any time.
        waits = stripewise("store", "drain", store.root, "t1", "--patience", "0s", "--json", code=1)
        assert f"{old.pid} began before" in json.loads(waits.out)["left"][0], waits.report
        assert not objects(store, "t1"), "what it has open moves all the same"
        job, acks = start_writer(store, "new")
    finally:
        old.kill()
        old.wait()
    try:
        write(store, "g")
        assert not objects(store, "t1"), "a new file landed on it"
        stripewise("store", "drain", store.root, "t1", "--remove")
        (store.base / "targets" / "t1").rmdir()
        lines = acks.stat().st_size
        assert wait_until(lambda: acks.stat().st_size > lines) and job.poll() is None
        write(store, "h")
    finally:
        job.kill()
        job.wait()
    check(store, store.data / "old", old_acks)
    check(store, store.data / "new", acks)
    assert read(store, file) == content
    assert "removed" in stripewise("store", "info", store.root).out
    stripewise("doctor", "--store", store.root, code=None)
    stripewise("store", "gc", store.root)


def test_a_target_goes_while_an_mpi_job_runs_that_began_before(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file = store.data / "f"
    words = ["--file-size", "8MiB", "--request-size", "64KiB", "--requests", "1000000", "--if-missing-fill"]
    store.program(*mpiio_command(2, file, *words[:4], "--phases", "fill"))
    go = store.base / "go"
    code = (
        "import os, sys, time\n"
        "os.open(sys.argv[1], os.O_RDONLY)\n"
        "print('open', flush=True)\n"
        "while not os.path.exists(sys.argv[2]):\n"
        "    time.sleep(0.05)\n"
        "try:\n"
        "    os.write(os.open(sys.argv[1] + '.late', os.O_CREAT | os.O_WRONLY), bytes(600000))\n"
        "except OSError as error:\n"
        "    print('Error', error)\n"
    )
    old = subprocess.Popen(
        [sys.executable, "-c", code, file, go],
        env=store.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert old.stdout is not None and old.stdout.readline() == b"open\n"
    job = launch(store, mpiio_command(2, file, *words, "--phases", "write,read"))
    try:
        assert wait_until(lambda: len(ranks_of(job)) == 2, 10)
        said = stripewise("store", "drain", store.root, "t1", "--remove", "--now").out
        place = store.base / "targets" / "t1.drained"
        assert str(place) in said and list(place.iterdir()) == []
        place.rmdir()
        assert job.poll() is None
        go.touch()
        assert "Error" in old.communicate(timeout=60)[0].decode(), "a new file of one that began before must fail"
        store.program("dd", "if=/dev/zero", f"of={store.data / 'new'}", "bs=64k", "count=9")
    finally:
        kill_job(job)
        old.kill()
        old.wait()
    store.program(*mpiio_command(2, file, *words[:4], "--phases", "check"))


def test_a_drain_tells_what_lay_on_the_target_apart_from_what_was_copied(make_store: Maker) -> None:
    store = make_store(dirs(4))
    file, _ = write(store, "four", 4)
    (placed,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
    held = placed["target_bytes"]["t3"]
    done = json.loads(stripewise("store", "drain", store.root, "t3", "--json").out)
    assert (done["files"], done["cleared_bytes"], done["moved_bytes"]) == (1, held, 4 << 20)
    assert 0 < held < 4 << 20
    stripewise("store", "drain", store.root, "t3", "--undo")
    stripewise("store", "set-layout", file, "--targets", "t2")
    said = stripewise("store", "drain", store.root, "t2").out
    assert "4.0 MiB of 1 file(s) moved off it\n" in said, said


#: Takes a target back; dies as it comes to the change that the last argument counts.
KILLED = """
import os, signal, sys
from pathlib import Path
from stripewise.moving import retarget
from stripewise.limits import Limits
from stripewise.moving.mover_session import MoverSession
from stripewise.store import Store
root, last = Path(sys.argv[1]), int(sys.argv[2])
count = 0
def counted(real):
    def call(*words, **keys):
        global count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words, **keys)
    return call
store = Store(root)
for name in ("open", "rename", "fsync", "unlink", "fchmod", "mkdir", "chmod"):
    setattr(os, name, counted(getattr(os, name)))
with MoverSession(store, {"verb": "drain"}, Limits()) as session:
    retarget.take_back(session, "t1")
"""


def state_of(store: Store, target: str) -> str:
    return next(each.state for each in Opened(store.root).config.cluster.targets if each.name == target)


def test_a_drain_is_taken_back_whatever_kills_the_verb(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, content = write(store, "f")
    for last in range(1, 200, 3):
        stripewise("store", "drain", store.root, "t1")
        write(store, "meanwhile", 1)
        assert not objects(store, "t1")
        done = execute([sys.executable, "-c", KILLED, store.root, str(last)], code=None)
        assert done.code in (0, -signal.SIGKILL), done.report
        assert state_of(store, "t1") in ("active", "draining") and read(store, file) == content
        said = stripewise("store", "drain", store.root, "t1", "--undo").out
        assert ("active again" in said) != ("is not being drained" in said) and state_of(store, "t1") == "active", said
        if done.code == 0:
            break
    else:
        raise AssertionError("was killed every time")
    write(store, "after")
    assert objects(store, "t1"), "new files use it again"
    stripewise("store", "rebalance", store.root)
    assert len(objects(store, "t1")) == 3 and read(store, file) == content
    store.fsck()


def test_a_killed_drain_says_what_to_do_and_one_at_work_is_not_taken_back(make_store: Maker) -> None:
    store = make_store(dirs(2))
    write(store, "just-eight", 8)
    command = [STRIPEWISE, "store", "drain", store.root, "t1", "--bandwidth", "64KiB"]
    drain = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert wait_until(lambda: "moving" in stripewise("mover", "status", store.root, code=None).out)
        refused = stripewise("store", "drain", store.root, "t1", "--undo", code=1)
        assert "is moving files" in refused.err and state_of(store, "t1") == "draining", refused.report
    finally:
        drain.kill()
        drain.wait()
    said = stripewise("mover", "status", store.root).out
    assert "killed" in said and "run the same command again" in said
    again = ("store", "add", store.root, "t1", "--path", store.base / "x")
    named = stripewise(*again, code=1).err
    assert "--undo" in named, named
    stripewise("store", "drain", store.root, "t1", "--undo")
    assert state_of(store, "t1") == "active"
    assert "is in use" in stripewise(*again, code=1).err
    # What a removal at once has renamed when it is killed comes back, too.
    stripewise("store", "drain", store.root, "t1")
    place = store.base / "targets" / "t1"
    place.rename(place.with_name("t1.drained"))
    stripewise("store", "drain", store.root, "t1", "--undo")
    assert (place / "stripewise-target").is_file() and state_of(store, "t1") == "active"
    store.fsck()


def test_an_interrupted_drain_says_that_it_stopped_and_blames_no_object(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file, content = write(store, "just-eight", 8)
    command = [STRIPEWISE, "store", "drain", store.root, "t1", "--bandwidth", "64KiB"]
    drain = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        under_way = re.compile(r"moving, (?!0 B)[0-9.]+ KiB of 8.0 MiB lie where")
        assert wait_until(lambda: under_way.search(stripewise("mover", "status", store.root, code=None).out))
        drain.send_signal(signal.SIGINT)
        out, err = drain.communicate(timeout=60)
    finally:
        drain.kill()
        drain.wait()
    # What was copied of a region that did not move lies where it lay.
    assert "stopped, 0 B of 8.0 MiB lie where they should" in stripewise("mover", "status", store.root).out
    assert drain.returncode == 128 + signal.SIGINT and f"left: 1 file(s) not moved yet: {file}" in out, out + err
    assert "target t1: nothing moved off it yet, for regions move whole" in out, out
    told = "the target is still draining; run it again for the rest, or take it back with --undo"
    assert told in err and "no layout names" not in out + err, out + err
    # Nobody else takes data while both others leave: the way out is to take them back.
    stripewise("store", "drain", store.root, "t0", "--patience", "0s", code=None)
    refused = stripewise("store", "drain", store.root, "t2", code=1).err
    assert f"stripewise store drain {store.root} t0 --undo" in refused and "t1 --undo" in refused, refused
    stripewise("store", "drain", store.root, "t1")
    assert not objects(store, "t1") and read(store, file) == content
    store.fsck()


def test_a_drain_that_is_stopped_counts_what_it_moved_of_the_file_under_way(make_store: Maker) -> None:
    # More regions than one step of the mover takes, of two cycles in turn.
    cycles = [[["t1", 65536]], [["t1", 65536], ["t0", 65536]]]
    regions = [{"start": n << 17, "len": 1 << 17, "stripes": cycles[n % 2]} for n in range(200)]
    store = make_store(dirs(3), regions=regions)
    file, content = write(store, "m" * 24, 24)
    opened = Opened(store.root)
    opened = retarget.write_config(opened, retarget.with_state(opened, "t1", "draining"))
    # Slower than it is asked whether to go on.
    with MoverSession(opened, {"verb": "drain"}, Limits(40 << 20)) as session:

        def stop(done_bytes: int, _: int) -> None:
            session.signal = signal.SIGINT if done_bytes else None

        session.shown = stop
        swept = retarget.drain(session, "t1", print, 0.0)
    held = sum(path.stat().st_blocks * 512 for path in (store.base / "targets/t1").glob("*.data*"))
    assert swept.part == str(file) and swept.files == 0 and 0 < swept.cleared_bytes < 18 << 20
    assert abs((18 << 20) - swept.cleared_bytes - held) < 64 << 10 and swept.moved_bytes >= swept.cleared_bytes
    said = targets._cleared(swept)
    assert f"moved off it, all of 0 file(s) and a part of {file}" in said, said
    stripewise("store", "drain", store.root, "t1")
    assert not objects(store, "t1") and read(store, file) == content
    store.fsck()


def test_random_operations_see_nothing_of_a_drain(make_store: Maker) -> None:
    store = make_store(dirs(4))
    oracle = store.base / "oracle"
    oracle.mkdir()
    words = ["--dir", store.data, "--oracle-dir", oracle, "--seed", "3", "--ops", "4000"]
    job = subprocess.Popen([RANDOPS, *words], env=store.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert wait_until(lambda: bool(objects(store, "t2")))
        done = stripewise("store", "drain", store.root, "t2", "--max-slowdown", "0", "--json")
        said, _ = job.communicate(timeout=60)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 0, said.decode()
    assert json.loads(done.out)["left"] == [] and not objects(store, "t2")
    stripewise("store", "remove", store.root, "t2")
    (store.base / "targets" / "t2").rmdir()
    execute([RANDOPS, *words[:-1], "500"], store.environment())


def test_an_added_target_gets_its_share_but_nothing_of_a_program_that_does_not_know_it(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, content = write(store, "f")
    job, acks = start_writer(store, "w")
    try:
        add_target(store, "t9")
        refused = stripewise("store", "rebalance", store.root, "--json", code=1)
        assert f"process {job.pid} began before target t9 was added" in refused.out, refused.report
        assert not objects(store, "t9")
    finally:
        job.kill()
        job.wait()
    later, later_acks = start_writer(store, "later")
    try:
        stripewise("store", "rebalance", store.root)
    finally:
        later.kill()
        later.wait()
    opened = Opened(store.root)
    for row in opened.files():
        assert {name for name, _ in opened.layout(row.id).regions[0].stripes} == {"t0", "t1", "t9"}
    check(store, store.data / "w", acks)
    check(store, store.data / "later", later_acks)
    assert read(store, file) == content


def test_what_cannot_be_drained_or_removed_is_said_in_one_line(make_store: Maker) -> None:
    store = make_store(dirs(1))
    write(store, "f")
    for words in (("drain", "t0"), ("remove", "t0"), ("drain", "t7"), ("remove", "t7")):
        said = stripewise("store", words[0], store.root, words[1], code=1 if words[1] == "t0" else 2).err
        assert said.count("\n") == 1 and words[1] in said, said
    taken = ("store", "add", store.root, "t0", "--path", store.base / "x")
    assert "t0" in stripewise(*taken, code=1).err
    assert subprocess.run([STRIPEWISE, "store", "add", store.root, "n", "--path", "/x", "--class", "q"]).returncode == 2


def test_a_drain_that_another_mover_keeps_from_its_work_changes_nothing(make_store: Maker) -> None:
    store = make_store(dirs(2))
    opened = Opened(store.root)
    with MoverSession(opened, {"verb": "set-layout"}, Limits()):
        said = stripewise("store", "drain", store.root, "t1", code=1)
    assert f"process {os.getpid()} is moving files" in said.err and "draining" not in said.err, said.report
    assert [target.state for target in Opened(store.root).config.cluster.targets] == ["active", "active"]


def test_a_drain_that_was_refused_leaves_nothing_to_take_back_and_that_is_said(make_store: Maker) -> None:
    store = make_store([Target("t0"), Target("t1", capacity_bytes=1 << 20)])
    write(store, "just-eight", 8)
    assert "nothing was moved" in stripewise("store", "drain", store.root, "t0", code=1).err
    said = stripewise("store", "drain", store.root, "t0", "--undo").out
    assert said == "target t0: is not being drained, so there is nothing to take back; it is active\n"
    row = json.loads(stripewise("store", "drain", store.root, "t0", "--undo", "--json").out)
    assert row == {"target": "t0", "state": "active", "was_draining": False}


def test_who_has_only_looked_at_a_file_keeps_it_from_targets_that_he_does_not_know(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, content = write(store, "f")
    code = (
        "import os, sys\n"
        "os.stat(sys.argv[1])\n"
        "print('seen', flush=True)\n"
        "sys.stdin.read()\n"
        "sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    looker = subprocess.Popen([sys.executable, "-c", code, file], env=store.environment(), **pipes)
    try:
        assert looker.stdout is not None and looker.stdout.readline() == b"seen\n"
        add_target(store, "t9")
        refused = stripewise("store", "rebalance", store.root, "--json", code=1)
        assert f"process {looker.pid} began before target t9 was added" in refused.out, refused.report
        assert looker.communicate(timeout=60)[0] == content
    finally:
        looker.kill()
        looker.wait()
    stripewise("store", "rebalance", store.root)
    assert objects(store, "t9") and read(store, file) == content


def regions_of(path: Path) -> list[dict[str, Any]]:
    (row,) = json.loads(stripewise("store", "layout", path, "--json").out)["files"]
    return list(row["regions"])


def stripes_of(path: Path) -> dict[str, int]:
    return {name: width for region in regions_of(path) for name, width in region["stripes"]}


def test_what_somebody_laid_out_in_stripes_of_the_stores_own_width_stays(make_store: Maker) -> None:
    store = make_store(targets=dirs(3))
    names = ("own", "set", "adopted", "back", "kept")
    (set_, adopted, back, kept) = (store.data / name for name in names[1:])
    wanted = store.base / "wanted.json"
    stripes = [["t0", 65536], ["t1", 65536]]
    wanted.write_text(json.dumps({"regions": [{"start": 0, "len": 1 << 20, "stripes": stripes}]}))
    contents = {name: write(store, name)[1] for name in ("own", "set", "back")}
    adopted.write_bytes(contents["own"])
    contents["adopted"] = contents["own"]
    stripewise("store", "adopt", adopted, "--store", store.root, "--layout", wanted)
    stripewise("store", "set-layout", set_, back, "--layout", wanted)
    stripewise("store", "set-layout", back, "--layout", "def")
    stripewise("store", "template", "add", store.root, kept, "--layout", wanted)
    contents["kept"] = write(store, "kept")[1]
    laid_out = {name: stripes_of(store.data / name) for name in names}
    assert {name for name, had in laid_out.items() if len(had) == 2} == {"set", "adopted", "kept"}
    add_target(store, "t3")
    assert (
        "laid out by set-layout, a template, a plan or hints of MPI; 'store rebalance' leaves it"
        in stripewise("store", "layout", set_).out
    )
    assert "laid out by" not in stripewise("store", "layout", back).out
    said = stripewise("store", "rebalance", store.root).out
    assert "2 file(s) moved" in said and "3 file(s) that set-layout, a template or a plan laid out stay so" in said, (
        said
    )
    for name in names:
        now = stripes_of(store.data / name)
        assert now == laid_out[name] if name in ("set", "adopted", "kept") else "t3" in now, (name, now)
    # A drain that is taken back tells of those alone that it has moved, and of none that grow elsewhere anyway.
    stripewise("store", "drain", store.root, "t3")
    said = stripewise("store", "drain", store.root, "t3", "--undo").out
    assert "set-layout" not in said, said
    stripewise("store", "drain", store.root, "t1")
    said = stripewise("store", "drain", store.root, "t1", "--undo").out
    assert "3 file(s) that set-layout, a template or a plan laid out, and that a drain of this" in said, said
    assert json.loads(stripewise("store", "rebalance", store.root, "--json").out)["kept"] == 3
    assert json.loads(stripewise("store", "rebalance", store.root, "--json", "--all").out)["kept"] == 0
    for name in names:
        assert "t3" in stripes_of(store.data / name) and "t1" in stripes_of(store.data / name), name
        assert read(store, store.data / name) == contents[name]
    assert json.loads(stripewise("store", "rebalance", store.root, "--json").out)["kept"] == 0


def test_a_drain_that_was_cut_short_and_taken_back_leaves_nothing_that_rebalance_cannot_mend(make_store: Maker) -> None:
    store = make_store(targets=dirs(3))
    file, content = write(store, "f" * 192, 192)
    before = stripes_of(file)
    for stopped in (True, False):
        verb = subprocess.Popen(
            [STRIPEWISE, "store", "drain", store.root, "t1", *(("--bandwidth", "60MiB") if stopped else ())],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if stopped:
            assert wait_until(lambda: len(regions_of(file)) > 1)
            verb.send_signal(signal.SIGINT)
        verb.wait()
        parts = [{name for name, _ in region["stripes"]} for region in regions_of(file)]
        assert {"t0", "t2"} in parts and (not stopped or set(before) in parts), parts
        stripewise("store", "drain", store.root, "t1", "--undo")
        said = json.loads(stripewise("store", "rebalance", store.root, "--json").out)
        assert (said["files"], said["kept"]) == (1, 0), said
        assert all({name for name, _ in region["stripes"]} == set(before) for region in regions_of(file))
    assert read(store, file) == content


def test_a_file_that_tune_puts_back_is_the_stores_or_somebodys_as_it_was(make_store: Maker) -> None:
    store = make_store(targets=dirs(3))
    file, content = write(store, "f")
    opened, show = Opened(store.root), Shown(print, print, lambda _: contextlib.nullcontext(lambda done, total: None))
    identity = opened.resolve(str(file))
    assert identity is not None
    own = opened.layout(identity)
    given = Layout((Region(0, 1 << 20, (("t0", 65536), ("t1", 65536))),), DRAINED)
    assert own.origin == OWN
    for layout, origin in ((own, OWN), (given, DRAINED), (Layout(own.regions), OWN)):
        stripewise("store", "set-layout", file, "--targets", "t2", "--stripe-size", "1MiB")
        assert opened.layout(identity).origin == GIVEN
        assert put_back(opened, {str(file): layout}, show) is None
        now = opened.layout(identity)
        assert now.origin == origin and {each.stripes for each in now.regions} == {layout.regions[0].stripes}
    assert read(store, file) == content
