"""Ctrl-C ends a `tune` whatever its program makes of it, and marks the trace of a `run`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, dirs, stripewise, wait_until

#: Makes a file, waits, and ends with a status of its own where it is asked to stop, as codes that checkpoint do.
CATCHER = """
import os, signal, sys, time
def end(*_):
    os._exit(int(sys.argv[2]))
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGHUP, end)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
os.pwrite(fd, bytes(1 << 16), 0)
try:
    open(sys.argv[3], "a").write("x")
    time.sleep(60)
except KeyboardInterrupt:
    os._exit(int(sys.argv[2]))
"""


def begun(store: Store, words: list[str], file: Path, status: int, **how: object) -> subprocess.Popen[str]:
    """A stripewise verb whose program waits."""
    runs = store.base / "runs"
    command = [STRIPEWISE, *words, "--store", str(store.root), "--"]
    command += ["python3", "-c", CATCHER, str(file), str(status), str(runs)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)  # type: ignore[call-overload]
    until = time.monotonic() + 60
    while not (runs.exists() and runs.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    assert isinstance(child, subprocess.Popen)
    return child


@pytest.mark.parametrize("status", [0, 11])
@pytest.mark.parametrize(
    ("number", "word"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "ended by SIGHUP")],
)
def test_a_tune_ends_where_its_program_catches_the_signal(
    make_store: Maker, status: int, number: int, word: str
) -> None:
    store = make_store(dirs(2))
    traces = store.base / "traces"
    child = begun(store, ["tune", "--trace", str(traces)], store.data / "f", status)
    assert os.listdir(traces)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number and err.splitlines()[-1] == f"stripewise: {word}", out + err
    assert (
        "run 2" not in err and f"run 1 made, and left, {store.data / 'f'}" in err and "stripewise run first" not in err
    )
    assert json.loads(stripewise("store", "plan", "ls", store.root, "--json").out) == []
    # No run came to its end, so the same command finds no traces in its way.
    assert os.listdir(traces) == []


def test_ctrl_c_at_the_terminal_ends_a_tune_though_its_program_ends_well(make_store: Maker) -> None:
    store = make_store(dirs(2))
    leader, follower = pty.openpty()
    child = begun(
        store, ["tune"], store.data / "f", 0, stdin=follower, start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )  # fmt: skip
    os.write(leader, b"\x03")
    out, err = child.communicate(timeout=60)
    os.close(leader)
    os.close(follower)
    assert child.returncode == 130 and "stripewise: interrupted" in err and "run 2" not in err, out + err


def test_the_trace_of_an_interrupted_run_that_ended_well_says_so(make_store: Maker) -> None:
    store = make_store(dirs(2))
    trace, collected = store.base / "trace", store.base / "collected"
    child = begun(store, ["run", "--trace", str(trace)], store.data / "f", 0)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0 and "the run was interrupted by SIGINT (exit status 0)" in err, err
    stripewise("collect", trace, "-o", collected)
    assert json.loads((collected / "meta.json").read_text())["interrupted_by"] == signal.SIGINT
    shown = stripewise("show", collected)
    assert "the run was interrupted by SIGINT: it ended with exit status 0" in shown.out + shown.err, shown.report


#: Reads its file; from the second run on it waits then.
WAITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
for n in range(64):
    os.pread(fd, 4096, n * 39 % 64 * 4096)
open(sys.argv[2], "a").write("x")
while os.path.getsize(sys.argv[2]) > 1 and os.path.exists(sys.argv[3]):
    time.sleep(0.05)
"""


def waiting(store: Store, file: Path) -> list[str]:
    """A tune of a program that reads a file, which is made, and waits from its second run on."""
    stripewise("run", "--store", store.root, "--", "dd", "if=/dev/zero", f"of={file}", "bs=256K", "count=1")
    program = ["python3", "-c", WAITER, str(file), str(store.base / "runs"), str(store.base / "waits")]
    return [str(STRIPEWISE), "tune", "--store", str(store.root), "--repeat", "1", "--", *program]


def killed_in_second_run(store: Store, words: list[str]) -> None:
    runs, waits = store.base / "runs", store.base / "waits"
    runs.unlink(missing_ok=True)
    waits.touch()
    with subprocess.Popen(words, start_new_session=True) as tune:
        wait_until(lambda: runs.exists() and runs.stat().st_size == 2)
        said = stripewise("doctor", "--store", store.root, code=None).out
        assert "was killed" not in said, "it is at work"
        os.killpg(tune.pid, signal.SIGKILL)
    waits.unlink()


def targets_of(file: Path) -> list[str]:
    (region,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["regions"][:1]
    return [stripe[0] if isinstance(stripe, list) else stripe["target"] for stripe in region["stripes"]]


def test_a_tune_that_was_killed_is_told_with_its_files_until_somebody_lays_them_out(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, runs, waits = store.data / "f", store.base / "runs", store.base / "waits"
    words = waiting(store, file)

    def killed() -> None:
        stripewise("store", "set-layout", file, "--stripe-size", "4KiB", "--targets", "t1")
        killed_in_second_run(store, words)

    def examined() -> str:
        return stripewise("doctor", "--store", store.root, code=None).out

    killed()
    said = f"was killed: {file} may lie in a layout under trial, not in its former one"
    moved = stripewise("mover", "status", store.root)
    assert said in moved.out and f"set-layout {file} --layout def" in moved.out and "a tune of 'python3 -c" in moved.out
    assert said in json.loads(stripewise("mover", "status", store.root, "--json").out)["tune_killed"]
    assert said in examined()
    checked = stripewise("store", "fsck", store.root).out
    assert "remark: a tune of " in checked and said in checked and checked.endswith(f"{store.root}: sound\n"), checked
    assert said in json.loads(stripewise("store", "fsck", store.root, "--json").out)["tune_killed"]
    stripewise("store", "set-layout", file, "--layout", "def")
    assert "was killed" not in examined()
    killed()
    again = stripewise(*words[1:])
    assert said in again.err, again.report
    assert "was killed" not in examined() and "was killed" not in stripewise(*words[1:]).err
    assert "was killed" not in stripewise("store", "fsck", store.root).out
    # One that is interrupted before it lays anything out leaves the remark; later it puts back what lay before both.
    killed()
    for count in (1, 2):
        runs.unlink()
        waits.touch()
        with subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True) as tune:
            wait_until(lambda count=count: runs.exists() and runs.stat().st_size == count)
            tune.send_signal(signal.SIGINT)
            ended = tune.communicate(timeout=60)[1]
        waits.unlink()
        assert tune.returncode == 130, ended
        if count == 1 and "run 2" not in ended:
            assert said in stripewise("store", "fsck", store.root).out, ended
    assert "was killed" not in stripewise("store", "fsck", store.root).out
    assert targets_of(file) == ["t1"]
    store.fsck()


def test_a_repair_puts_back_what_killed_tunes_of_two_programs_left_but_for_what_was_laid_out_since(
    make_store: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(dirs(2))
    places = store.base / "tmp"
    places.mkdir()
    monkeypatch.setenv("TMPDIR", str(places))
    files = [store.data / name for name in "abc"]
    tunes = [waiting(store, file) for file in files]
    for file in files:
        stripewise("store", "set-layout", file, "--stripe-size", "4KiB", "--targets", "t1")
    for words in tunes:
        killed_in_second_run(store, words)
    assert all(len(targets_of(file)) == 2 for file in files), "def is tried first"
    assert list(places.iterdir())
    # What somebody has laid out since is left alone.
    stripewise("store", "set-layout", files[0], "--targets", "t0")
    checked = stripewise("store", "fsck", store.root).out
    assert "(and 1 more) may lie in a layout under trial" in checked, checked
    command = checked[checked.index("put the files back: ") :].partition(": ")[2].partition(",")[0]
    assert command == f"stripewise store fsck {store.root} --repair"
    # One of another program says so, and leaves what it does not lay out.
    stripewise(*tunes[0][1:])
    assert "may lie in a layout under trial" in stripewise("store", "fsck", store.root).out
    mended = stripewise(*command.split()[1:])
    assert "remark: a tune was killed; 2 file(s) have the layout again that they had before it" in mended.out
    assert [targets_of(file) for file in files[1:]] == [["t1"], ["t1"]]
    assert not list(places.iterdir()), "their traces go, too"
    again = stripewise("store", "fsck", store.root, "--repair").out
    assert again == f"{store.root}: sound\n", again


#: Makes its file; from the second run on it waits then.
MAKER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
for n in range(64):
    os.pwrite(fd, bytes(4096), n * 4096)
open(sys.argv[2], "a").write("x")
while os.path.getsize(sys.argv[2]) > 1 and os.path.exists(sys.argv[3]):
    time.sleep(0.05)
"""


def test_a_repair_lays_out_as_new_what_the_runs_of_a_killed_tune_made(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file = store.data / "made"
    program = ["python3", "-c", MAKER, str(file), str(store.base / "runs"), str(store.base / "waits")]
    killed_in_second_run(store, [str(STRIPEWISE), "tune", "--store", str(store.root), "--repeat", "1", "--", *program])
    assert f"{file} may lie in a layout under trial" in stripewise("store", "fsck", store.root).out
    mended = stripewise("store", "fsck", store.root, "--repair").out
    assert "1 file(s) have the layout again" in mended, mended
    assert len(targets_of(file)) == 2 and stripewise("store", "fsck", store.root).out == f"{store.root}: sound\n"
    origin = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["origin"]
    assert origin == "own", origin
