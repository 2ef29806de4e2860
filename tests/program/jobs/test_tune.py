"""`tune`: layouts measured in turns, the fastest stays, files go back where none won, inputs that a run changes."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from rig import STRIPEWISE, Maker, Result, Store, Target, dirs, execute, region, stripes, stripewise, wait_until

from stripewise.errors import InUseError
from stripewise.files.parts import locked_part
from stripewise.layout import Stripes
from stripewise.limits import Limits
from stripewise.moving.mover_session import MoverSession
from stripewise.store import Store as Opened
from stripewise.store.config import TUNE_LOCK
from stripewise.units import quoted

SLOW = Target("h0", "hdd", "emulated", 0, 4e-3, 1e-8)
SWIFT = Target("s0", "ssd", "emulated", 0, 1e-4, 1e-9)
#: Reads the file in 4 KiB pieces, and makes it first where it is not there.
READER = """
import os, sys
path = sys.argv[1]
if not os.path.exists(path):
    open(path, "wb").write(os.urandom(1 << 20))
fd = os.open(path, os.O_RDONLY)
for n in range(200):
    os.pread(fd, 4096, n * 7 % 256 * 4096)
"""
#: Takes the first byte, writes the next one.
COUNTER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
old = os.pread(fd, 1, 0) or b"0"
os.pwrite(fd, bytes([old[0] + 1]) * 65536, 0)
open(sys.argv[2], "a").write(old.decode() + "\\n")
"""
#: Writes a file in 4 KiB pieces under the name that is given; of two names the first is renamed to the second.
WRITER = """
import os, sys
names = sys.argv[1:]
if "%" in names[0]:
    names = [name % len(os.listdir(os.path.dirname(name))) for name in names]
for name in names[:1]:
    if os.path.lexists(name):
        os.unlink(name)
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    for n in range(256):
        os.pwrite(fd, b"x" * 4096, n * 39 % 256 * 4096)
    for n in range(256):
        os.pread(fd, 4096, n * 39 % 256 * 4096)
    os.close(fd)
if len(names) > 1:
    os.rename(*names)
    open(names[1], "rb", buffering=0).read(1 << 21)
"""
#: Truncates numbered files and writes them in 4 KiB pieces, as HDF5 does in mode "w"; reads a file that it makes once.
STEPS = """
import os, sys
once = f"{sys.argv[1]}/once-0"
if not os.path.exists(once):
    open(once, "wb").write(bytes(1 << 20))
fd = os.open(once, os.O_RDONLY)
for n in range(64):
    os.pread(fd, 4096, n * 39 % 256 * 4096)
for step in range(3):
    fd = os.open(f"{sys.argv[1]}/step-{step:05}.h5", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    for n in range(64):
        os.pwrite(fd, b"x" * 16384, n * 39 % 64 * 16384)
    os.close(fd)
"""


def tune(store: Store, *words: str | Path, code: int | None = 0) -> Result:
    """A circle; what is found in two seconds does for files of a MiB."""
    limit = ("--time-limit", "2s") if "best" in words else ()
    return stripewise("tune", "--store", store.root, "--json", *limit, *words, code=code)


def result(said: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said.out)
    return found


def cycles_of(store: Store, path: Path) -> set[Stripes]:
    """The cycles of the regions of a file of 1 MiB."""
    opened = Opened(store.root)
    identity = opened.resolve(str(path))
    assert identity is not None
    return {region.stripes for region in opened.layout(identity).regions if region.start < 1 << 20}


# Requests so long that what else the machine does adds little: what is not told apart is not kept.
@pytest.mark.alone
def test_the_fastest_of_all_stays_whatever_the_order_and_all_are_shown(make_store: Maker) -> None:
    store = make_store(
        [Target("h0", "hdd", "emulated", 0, 12e-3, 1e-8), Target("s0", "ssd", "emulated", 0, 1e-3, 1e-9)]
    )
    file = store.data / "f"
    # PSA puts the file on both, half of it on the slow one.
    said = tune(store, "--policy", "best,psa", "--repeat", "2", "--", "python3", "-c", READER, file)
    found = result(said)
    assert [row["policy"] for row in found["runs"]] == ["def", "best", "psa"] and found["kept"] == "best", said.report
    assert all(row["repeats"] == 2 and len(row["io_seconds_each"]) == 2 for row in found["runs"])
    assert min(found["runs"], key=lambda row: row["io_seconds"])["policy"] == "best" and found["measured_gain"] > 2
    (planned,) = [line for line in said.err.splitlines() if "kept the plan of best" in line]
    assert "python3 -c" in planned
    assert all(name == "s0" for cycle in cycles_of(store, file) for name, _ in cycle)
    store.fsck()


# Two layouts that are as quick: beside other work one of them would seem to be quicker.
@pytest.mark.alone
def test_files_go_back_where_no_layout_beats_the_baseline(make_store: Maker) -> None:
    store = make_store([SWIFT, Target("s1", "ssd", "emulated", 0, 1e-4, 1e-9)])
    file, layout = store.data / "f", store.base / "l.json"
    layout.write_text(json.dumps({"regions": [{"start": 0, "len": 1 << 26, "stripes": [["s1", 1 << 20]]}]}))
    stripewise("store", "template", "add", store.root, file, "--layout", layout)
    store.run("python3", "-c", READER, file)
    before = cycles_of(store, file)
    assert before == {(("s1", 1 << 20),)}
    said = tune(store, "--policy", "def", "--baseline", "psa", "--repeat", "2", "--", "python3", "-c", READER, file)
    found = result(said)
    assert found["kept"] is None and any("the files go back" in remark for remark in found["remarks"]), said.report
    assert cycles_of(store, file) == before
    assert json.loads(stripewise("store", "plan", "ls", store.root, "--json").out) == []
    store.fsck()


#: Reads in 4 KiB pieces, waits in its second run, and says so.
WAITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
for n in range(64):
    os.pread(fd, 4096, n * 39 % 256 * 4096)
runs = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(runs, b"x")
if os.fstat(runs).st_size == 2:
    time.sleep(60)
"""


def test_ctrl_c_gives_the_files_the_layout_that_they_had(make_store: Maker) -> None:
    store = make_store([SLOW, SWIFT])
    file, layout, runs = store.data / "f", store.base / "l.json", store.base / "runs"
    layout.write_text(json.dumps({"regions": [{"start": 0, "len": 1 << 26, "stripes": [["s0", 1 << 20]]}]}))
    stripewise("store", "template", "add", store.root, file, "--layout", layout)
    store.run("python3", "-c", READER, file)
    before = cycles_of(store, file)
    words = ["tune", "--store", str(store.root), "--", "python3", "-c", WAITER, str(file), str(runs)]
    child = subprocess.Popen([STRIPEWISE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (runs.exists() and runs.stat().st_size == 2) and time.monotonic() < until:
        time.sleep(0.05)
    assert cycles_of(store, file) != before
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "interrupted" in err, out + err
    assert "moving the files back to their former layout" in err, out + err
    assert cycles_of(store, file) == before
    store.fsck()


def test_a_layout_that_two_policies_propose_is_measured_once(make_store: Maker) -> None:
    store = make_store([SLOW, SWIFT])
    copy = store.base / "again.py"
    copy.write_text(
        "from stripewise.policy import POLICIES, PlanOptions, register\n\n\n"
        "@register\ndef again(workload, cluster, options):\n"
        '    return POLICIES["def"].plan(workload, cluster, PlanOptions())\n'
    )
    said = tune(store, "--policy", copy, "--", "python3", "-c", READER, store.data / "f")
    found = result(said)
    assert [row["policy"] for row in found["runs"]] == ["def"] and found["same_layout"] == {"again": "def"}, said.report
    assert found["runs"][0]["repeats"] == 1 and found["kept"] is None
    assert "again proposes the same layout as def" in said.err and "run 3" not in said.err


#: Reads all of a file and appends to it.
GROWER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
for at in range(0, os.fstat(fd).st_size, 65536):
    os.pread(fd, 65536, at)
os.write(fd, bytes(1 << 20))
"""


def test_runs_that_move_more_each_time_are_told_of(make_store: Maker) -> None:
    store = make_store([SWIFT])
    job = ("--repeat", "2", "--policy", "def", "--baseline", "psa", "--", "python3", "-c", GROWER, store.data / "f")
    remarks = result(tune(store, *job))["remarks"]
    assert any("the runs moved from 2.0 MiB to 5.0 MiB" in each and "--reset CMD" in each for each in remarks), remarks
    (store.data / "f").unlink()
    for words in (("--reset", f"{STRIPEWISE} run --store {store.root} -- rm -f {store.data / 'f'}"), ()):
        if not words:
            job = ("--repeat", "2", "--", "python3", "-c", READER, store.data / "g")
        assert not any("the runs moved" in each for each in result(tune(store, *words, *job))["remarks"])


def test_a_tune_that_was_killed_leaves_traces_that_the_next_one_removes(make_store: Maker) -> None:
    store = make_store([SWIFT])
    place = store.base / "tmp"
    place.mkdir()
    other = place / "stripewise-tune-0123456789abcdef-x"
    other.mkdir()
    own = place / "stripewise-tune-monday"
    own.mkdir()
    (own / "result").write_text("mine")
    (other / ".tune").touch()
    at_work = os.open(other, os.O_RDONLY)
    fcntl.flock(at_work, fcntl.LOCK_EX)
    env = {**os.environ, "TMPDIR": str(place)}
    words = [STRIPEWISE, "tune", "--store", store.root, "--repeat", "1", "--"]
    with subprocess.Popen([*words, "sleep", "60"], env=env, start_new_session=True) as killed:
        while len(list(place.glob("stripewise-tune-*/.tune"))) < 2:
            time.sleep(0.02)
        os.killpg(killed.pid, signal.SIGKILL)
    assert len(list(place.glob("stripewise-tune-*"))) == 3
    execute([*words, "python3", "-c", READER, store.data / "f"], env)
    # Of a tune that is at work, of whichever store.
    assert set(place.glob("stripewise-tune-*")) == {other, own}
    os.close(at_work)
    execute([*words, "python3", "-c", READER, store.data / "f"], env)
    assert list(place.glob("stripewise-tune-*/*")) == [own / "result"]


def templates(store: Store) -> list[str]:
    return [row["glob"] for row in json.loads(stripewise("store", "template", "ls", store.root, "--json").out)]


def test_the_layout_stays_with_files_that_are_made_anew(make_store: Maker) -> None:
    """A name that comes back, one with a number that grows, one that a file is renamed to, and one that every run makes
    beside those of earlier runs.
    """
    store = make_store([SLOW, SWIFT])
    store.program("touch", store.data / "ck100.h5")
    for names, more, glob in (
        (["same"], ["same"], "same"),
        (["ckpt-%04d.h5"], ["ckpt-0099.h5"], "ckpt-[0-9]*.h5"),
        (["out.tmp", "out"], ["out.tmp"], "out.tmp"),
        (["ck300.h5"], ["ck099.h5"], "ck[0-9]*.h5"),
        (["part-%04d.tmp", "part-%04d"], ["part-0099.tmp"], "part-[0-9]*.tmp"),
    ):
        job = ("python3", "-c", WRITER, *(store.data / name for name in names))
        said = tune(store, "--policy", "best", "--repeat", "3", "--", *job)
        found = result(said)
        assert found["kept"] == "best", said.report
        assert str(store.data / glob) in templates(store), said.report
        assert f"new files matching {store.data / glob} are laid out like" in said.err
        # A plan that names last week's checkpoints would only move them.
        assert ("no plan is kept: later runs have other files" in said.err) == ("%04d" in names[-1]), said.report
        assert ("kept the plan of best" in said.err) == ("%04d" not in names[-1]), said.report
        for name in more:
            store.program("sh", "-c", f"rm -f {store.data / name}; head -c 1048576 /dev/zero >{store.data / name}")
            assert all(target == "s0" for cycle in cycles_of(store, store.data / name) for target, _ in cycle)
    for glob in templates(store):
        stripewise("store", "template", "rm", store.root, glob)
    assert templates(store) == []
    store.fsck()


def test_the_layout_stays_with_numbered_files_that_every_run_truncates(make_store: Maker) -> None:
    """Their names and ids stay from run to run; what a first run made once gets no template."""
    store = make_store([SLOW, SWIFT])
    said = tune(store, "--policy", "best", "--repeat", "1", "--", "python3", "-c", STEPS, store.data)
    assert result(said)["kept"] == "best", said.report
    assert templates(store) == [str(store.data / "step-[0-9]*.h5")], said.report
    new = store.data / "step-00099.h5"
    store.program("sh", "-c", f"head -c 1048576 /dev/zero >{new}")
    assert all(target == "s0" for cycle in cycles_of(store, new) for target, _ in cycle)
    store.fsck()


def test_a_run_that_changes_its_own_input_ends_the_circle_unless_it_is_set_back(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, seen = store.data / "f", store.base / "seen"
    job = ("--policy", "psa", "--repeat", "2", "--", "python3", "-c", COUNTER, file, seen)
    store.run("sh", "-c", f"printf 0 > {file}")
    said = tune(store, *job, code=1)
    assert str(file) in said.err and "--reset" in said.err and "Traceback" not in said.err, said.report
    assert seen.read_text().split() == ["0"]
    said = tune(store, "--reset", f"printf 0 > {file}", *job)
    # Four measured runs, all from what the command set back, after the one that goes on from the run before.
    assert seen.read_text().split() == ["0", "1", "0", "0", "0", "0"], said.report
    said = tune(store, "--reset", "exit 3", *job, code=1)
    assert "--reset: 'exit 3' ended with status 3" in said.err


def test_reads_from_memory_and_runs_that_are_too_short_are_told(make_store: Maker) -> None:
    store = make_store(dirs(2))
    program = """
import os, sys
path = sys.argv[1]
if not os.path.exists(path):
    open(path, "wb").write(os.urandom(32 << 20))
open(path, "rb").read()
"""
    said = tune(store, "--policy", "psa", "--repeat", "1", "--", "python3", "-c", program, store.data / "f")
    remarks = " ".join(result(said)["remarks"])
    assert "all measured runs: of 64.0 MiB read," in remarks and remarks.count("from memory") == 1
    assert "--reset" in remarks and "longer ones tell more" in remarks
    assert f"note: {result(said)['remarks'][0]}" in said.err


def test_a_plain_file_that_stands_where_the_store_manages_is_to_be_adopted(make_store: Maker) -> None:
    store = make_store(dirs(2))
    store.data.mkdir(exist_ok=True)
    file, outside, trace = store.data / "input.bin", store.base / "out.bin", store.base / "trace"
    for each in (file, outside):
        each.write_bytes(bytes(2 << 20))
    advice = f"take it in with 'stripewise store adopt --store {store.root} "
    job = ("--repeat", "1", "--policy", "psa", "--", "md5sum")
    told = tune(store, *job, file, code=1).err
    assert "input.bin is a plain file in a managed directory" in told and f"{advice}{file}'" in told, told
    # Elsewhere too, and copies that can stand beside it.
    told = tune(store, *job, outside, code=1).err
    assert f"store adopt --store {store.root} {outside}" in told and f"replicate DIR --store {store.root}" in told, told
    assert f"{advice}{outside}'" in tune(store, "--manage", outside, *job, outside, code=1).err
    stripewise("run", "--store", store.root, "--trace", trace, "--", "md5sum", file)
    stripewise("collect", trace)
    told = stripewise("plan", trace, "--store", store.root, code=2).err
    assert f"{advice}{file}'" in told and "trace anew" not in told, told
    copies = f"stripewise replicate {trace}/trace.parquet --store {store.root}"
    assert copies in told, told
    # Of a file elsewhere the same two ways are named, and by `collect` beside the plan on some cluster.
    away = store.base / "away"
    stripewise("run", "--trace", away, "--", "md5sum", outside)
    said = stripewise("collect", away).out
    assert f"'stripewise store adopt --store STORE {outside}' takes one in" in said, said
    assert f"'stripewise replicate {away} --store STORE' makes copies" in said, said
    told = stripewise("plan", away, "--store", store.root, code=2).err
    assert (
        f"is a plain file elsewhere; take it in where it is: stripewise store adopt --store {store.root} {outside};"
        in told
    )
    assert f"stripewise replicate {away}/trace.parquet --store {store.root}" in told
    stripewise("store", "adopt", "--store", store.root, outside)
    told = stripewise("collect", trace).out
    assert "store adopt" in told and f"'stripewise replicate {trace} --store {store.root}' makes copies" in told, told
    stripewise("plan", away, "--store", store.root)
    stripewise("store", "adopt", "--store", store.root, file)
    stripewise("plan", trace, "--store", store.root, "-o", store.base / "plan.json")
    tune(store, *job, file)


def test_kept_traces_are_shown_by_the_command_that_is_printed(make_store: Maker) -> None:
    store = make_store(dirs(2))
    traces, file = store.base / "tr aces", store.data / "f"
    said = tune(store, "--policy", "psa", "--repeat", "1", "--trace", traces, "--", "python3", "-c", READER, file)
    (line,) = [line for line in said.err.splitlines() if line.startswith("see the runs: ")]
    words = shlex.split(line.partition(": ")[2])
    assert words[:3] == ["stripewise", "show", f"{traces}/psa-collected"] and "def-collected" in words[4], said.report
    page = store.base / words.pop()
    assert page.name == "tune.html"
    assert f"their traces stay in {traces}; once seen, they may be deleted: rm -r {quoted(traces)}\n" in said.err, (
        said.report
    )
    stripewise(*words[1:], page)
    assert page.exists()
    for verb in ("show", "collect"):
        told = stripewise(verb, traces, code=1).err
        assert "traces of several runs" in told and f"{traces}/psa-collected" in told, told
    assert not (traces / "meta.json").exists()


def test_files_go_back_and_the_run_is_named_where_the_program_fails(make_store: Maker) -> None:
    store = make_store([SLOW, SWIFT])
    file, count = store.data / "f", store.base / "count"
    store.run("python3", "-c", READER, file)
    before = cycles_of(store, file)
    fails = READER + "open(sys.argv[2], 'a').write('x')\nsys.exit(7 * (os.path.getsize(sys.argv[2]) == 4))\n"
    said = tune(store, "--policy", "best", "--repeat", "2", "--", "python3", "-c", fails, file, count, code=1)
    assert "ended with status 7 in run 4" in said.err and "--reset" in said.err, said.report
    assert "moving the files back" in said.err, said.report
    assert cycles_of(store, file) == before
    store.fsck()


def test_two_circles_on_one_store_do_not_measure_each_other(make_store: Maker) -> None:
    store = make_store(dirs(2))
    with locked_part(store.root, TUNE_LOCK):
        said = tune(store, "--", "true", code=1)
        undone = stripewise("undo", store.root, code=1).err
    assert f"{store.root}: another tune is at work on this store" in said.err
    refused = f"{store.root}: a tune is at work on this store, under which nothing moves; wait until it ends"
    assert f"{refused}, or give --wait SECONDS" in undone
    said = tune(store, "--", "true", code=1)
    assert "true: did no I/O that is traced in run 1" in said.err, said.report


def test_a_tune_names_the_mover_that_is_at_work_and_the_files_lie_where_they_lay(make_store: Maker) -> None:
    store = make_store([SLOW, SWIFT])
    file, flag = store.data / "f", store.base / "flag"
    store.run("python3", "-c", READER, file)
    with MoverSession(Opened(store.root), {"verb": "set-layout"}, Limits()):
        said = tune(store, "--", "python3", "-c", READER, file, code=1)
    assert f"process {os.getpid()} is moving files of the store (set-layout)" in said.err, said.report
    assert "another tune" not in said.err and "run 1" not in said.err, said.report
    # One that would begin under it is refused.
    waits = READER + "import time\nopen(sys.argv[2], 'w').close()\ntime.sleep(1)\n"
    words = (
        "tune",
        "--store",
        store.root,
        "--policy",
        "psa",
        "--repeat",
        "1",
        "--",
        "python3",
        "-c",
        waits,
        file,
        flag,
    )
    with subprocess.Popen([STRIPEWISE, *map(str, words)], stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(flag.exists)
        with (
            pytest.raises(InUseError, match="a tune is at work on this store, under which nothing moves"),
            MoverSession(Opened(store.root), {"verb": "set-layout"}, Limits()),
        ):
            pass
        assert process.stderr is not None
        said_last = process.stderr.read()
    assert process.returncode == 0, said_last


def test_a_reset_by_way_of_the_library_leaves_new_files_the_layouts_of_the_turn(make_store: Maker) -> None:
    store = make_store([SLOW, SWIFT])
    file = store.data / "f"
    reset = shlex.join([str(STRIPEWISE), "run", "--store", str(store.root), "--", "rm", "-f", str(file)])
    said = result(
        tune(store, "--policy", "psa", "--repeat", "1", "--reset", reset, "--", "python3", "-c", READER, file)
    )
    assert not any("not laid out as planned" in remark for remark in said["remarks"]), said
    rm = shlex.join(["stripewise", "run", "--store", str(store.root), "--", "rm", str(file)])
    assert f"the runs made, and left, {file}; what is not wanted goes with: {rm}" in said["remarks"], said
    info = Opened(store.root).info()
    assert info["toml_sha256"] == Opened(store.root).config.digest()


def test_nothing_is_taken_out_or_copied_under_a_tune(make_store: Maker) -> None:
    store = make_store(dirs(2))
    files = [store.data / name for name in "fgh"]
    for file in files:
        store.run("cp", "/etc/passwd", file)
    trace = store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", files[0])
    stripewise("collect", trace)
    refused = f"{store.root}: a tune is at work on this store, under which nothing moves; wait until it ends"
    with locked_part(store.root, TUNE_LOCK):
        for words, cure in (
            (("store", "export", files[0]), ", or give --wait SECONDS"),
            (("store", "export", *files), ", or give --wait SECONDS"),
            (("store", "export", "--all", store.root), ", or give --wait SECONDS"),
            (("store", "replica", "rm", store.root, files[0]), ""),
            (("replicate", trace, "--store", store.root), ""),
        ):
            assert stripewise(*words, code=1).err == f"stripewise: {refused}{cure}\n"
        # What only reads goes on, and so does a file that comes in: a --reset may bring its input so.
        stripewise("store", "export", files[0], "--to", store.base / "copy")
        stripewise("replicate", trace, "--store", store.root, "--what-if")
        (store.plain / "p").write_text("x")
        stripewise("store", "adopt", "--store", store.root, store.plain / "p")
        assert all(file.is_symlink() for file in files)
    stripewise("store", "export", *files)
    assert not any(file.is_symlink() for file in files)


def test_a_run_beside_a_tune_moves_nothing_under_it(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file = store.data / "f"
    store.run("cp", "/etc/passwd", file)
    plan = store.plan(store.base / "p.json", file, [region(0, 1024, stripes(("t1", 64)))], 1 << 20)
    stripewise("store", "plan", "add", store.root, plan, "--application", f"cat {file}")
    before = cycles_of(store, file)
    with locked_part(store.root, TUNE_LOCK):
        said = store.run("cat", file)
        assert "following the plan" in said.err and "a tune is at work on this store" in said.err, said.report
        refused = stripewise("run", "--store", store.root, "--migrate", plan, "--", "cat", file, code=1)
        assert "a tune is at work on this store" in refused.err, refused.report
        root = store.root
        for words in (
            ("apply", plan, "--store", root),
            ("migrate", plan, "--store", root),
            ("store", "drain", root, "t0"),
        ):
            refused = stripewise(*words, code=1)
            assert "a tune is at work on this store, under which nothing moves" in refused.err, refused.report
    assert cycles_of(store, file) == before
