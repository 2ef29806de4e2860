"""`stripewise init`: a store from directories, or nothing at all; what a kill leaves stops no second init."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import MALLORY, acting_as, needs_root
from rig import MPIEXEC, MPIIO, STRIPEWISE, Result, dirs, execute, is_managed, stripewise, wait_until
from typer.testing import CliRunner

from stripewise import native
from stripewise.cli.main import app
from stripewise.cluster import read_cluster
from stripewise.errors import StoreError

#: Kills init at every n-th line of what it does after its checks, each time in new directories, and runs it again.
KILLED = """
import os, signal, sys
from pathlib import Path
from stripewise.cli.main import app
import stripewise.cli.init as verb

lines = number = 0

def traced(frame, event, argument):
    global lines
    name = frame.f_code.co_filename
    if not name.endswith(("setup/make.py", "store/create.py", "files/parts.py")):
        return None
    if event == "line":
        lines += 1
        if lines == number:
            os.kill(os.getpid(), signal.SIGKILL)
    return traced

def made(function):
    def inner(*given):
        sys.settrace(traced)
        try:
            return function(*given)
        finally:
            sys.settrace(None)
    return inner

verb.make_store, verb.write_cluster = made(verb.make_store), made(verb.write_cluster)
for number in range(1, 10_000, int(sys.argv[1])):
    base = Path(sys.argv[2]) / str(number)
    for name in ("d0", "d1", "me"):
        (base / name).mkdir(parents=True)
    words = ["init", "--no-calibrate", "--json", "--store", str(base / "me/store"), str(base / "d0"), str(base / "d1")]
    if int(sys.argv[3]):
        words = ["init", "--json", "--emulate", str(base / "emulated")]
    ends = []
    for limit in (number, 0):
        child = os.fork()
        if not child:
            lines, number = 0, limit
            quiet = os.open(base / f"said{limit}", os.O_WRONLY | os.O_CREAT)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                app(words)
            except SystemExit as end:
                os._exit(end.code or 0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        ends.append(len([*base.glob("*/store/store.bin"), *base.glob("*/cluster.toml")]))
    print(number, *ends)
    if ends[0] == 0:
        break
"""
FIGURES = ("startup_read_s", "startup_write_s", "per_byte_read_s", "per_byte_write_s")


def places(scratch: Path, count: int = 2) -> list[Path]:
    """Directories, and the one that the store is to lie in."""
    (scratch / "me").mkdir()
    made = [scratch / f"d{number}" for number in range(count)]
    for directory in made:
        directory.mkdir()
    return made


def init(scratch: Path, *words: str | Path | bytes, code: int | None = 0) -> Result:
    return stripewise("init", "--store", scratch / "me/store", *words, code=code)


def tree(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def one_clear_error(result: Result, *words: str) -> None:
    lines = [line for line in result.err.splitlines() if line.strip()]
    assert result.code in (1, 2) and len(lines) == 1 and "internal error" not in lines[0], result.report
    for word in words:
        assert word in lines[0], f"'{word}' is not in: {lines[0]}"


def test_directories_become_a_measured_store_whose_cluster_is_told_in_comments(scratch: Path) -> None:
    directories = places(scratch)
    result = init(scratch, *directories, "--seconds", "1", "--scratch", "8MiB", "--capacity", "d1=1GiB", "--json")
    said = json.loads(result.out)
    cluster = read_cluster(scratch / "me/cluster.toml")
    assert [target.path for target in cluster.targets] == [home / "stripewise-store" for home in directories]
    assert [target.capacity_bytes for target in cluster.targets] == [0, 1 << 30]
    for target, row in zip(cluster.targets, said["targets"], strict=True):
        assert target.calibration is not None and row["measured"] and target.klass == row["class"]
        assert all(row[figure] == getattr(target, figure) for figure in FIGURES) and target.startup_read_s > 0
    text = (scratch / "me/cluster.toml").read_text()
    assert f"# {directories[0]}: " in text and "# Class " in text and "were free" in text
    assert read_cluster(scratch / "me/store").targets == cluster.targets
    (warning,) = [text for text in said["warnings"] if "share" in text]
    assert warning.startswith("d0 and d1 share") and "one free space" in warning and "--emulate" in warning
    assert "8.0 MiB" in result.err and "up to 1 s" in result.err and said["next"].startswith("stripewise store add ")
    stripewise("doctor", "--store", scratch / "me/store")
    assert "sound" in stripewise("store", "fsck", scratch / "me/store").out
    assert tree(directories[0]) == ["stripewise-store", "stripewise-store/stripewise-target"]


def test_emulated_disks_and_ssds_are_called_so_and_a_job_runs_and_is_tuned_on_them(scratch: Path) -> None:
    home = scratch / "emulated"
    shown = stripewise("init", "--emulate", home).out
    assert "EMULATED" in shown and max(map(len, shown.splitlines()[:9])) <= 80
    cluster = read_cluster(home / "cluster.toml")
    assert [target.name for target in cluster.targets] == ["hdd0", "hdd1", "hdd2", "hdd3", "ssd0", "ssd1"]
    assert {target.kind for target in cluster.targets} == {"emulated"}
    assert {(t.klass, t.startup_read_s, t.per_byte_write_s) for t in cluster.targets} == {
        ("hdd", 0.003, 1e-8),
        ("ssd", 0.0001, 2.5e-9),
    }
    assert (home / "cluster.toml").read_text().count("# EMULATED") == 6
    assert shown.splitlines()[-1] == f"next: stripewise tune --store {home}/store -- CMD"
    stripewise("run", "--store", home / "store", "--", "dd", "if=/dev/zero", f"of={home}/f", "bs=64K", "count=8")
    assert is_managed(home / "f")
    job = [MPIEXEC, "-n", "2", MPIIO, "--file", home / "g", "--file-size", "4MiB", "--region-size", "1MiB"]
    job += ["--request-size", "64KiB", "--requests", "16", "--if-missing-fill", "--phases", "fill,write,read"]
    tuned = stripewise("tune", "--store", home / "store", "--repeat", "1", "--json", "--", *job).out
    layouts = json.loads(tuned.splitlines()[-1])
    assert layouts, tuned
    stripewise("doctor", "--store", home / "store")


def test_figures_of_each_class_are_assumed_without_a_measurement(scratch: Path) -> None:
    directories = places(scratch)
    shown = init(scratch, *directories, "--no-calibrate", "--class", "d0=hdd", "--class", "d1=ssd").out
    slow, fast = read_cluster(scratch / "me/cluster.toml").targets
    assert (slow.klass, slow.startup_read_s, fast.klass, fast.startup_read_s) == ("hdd", 0.003, "ssd", 0.0001)
    assert f"calibrate --store {scratch}/me/store --apply" in shown
    assert (scratch / "me/cluster.toml").read_text().count("ASSUMED") == 2


def test_a_table_fits_80_columns_whatever_the_names(scratch: Path) -> None:
    odd = [scratch / name for name in ("a" * 90, "with space,:=é", "new\nline")]
    (scratch / "me").mkdir()
    for directory in odd:
        directory.mkdir()
    table = init(scratch, *odd, "--no-calibrate").out.partition("a" * 90 + ",")[0].splitlines()
    # A name that is longer has a line of its own.
    assert len(table) == 3 + 2 * 3 and all(len(line) <= 80 for line in table if line.strip() != "a" * 90), table
    names = [target.name for target in read_cluster(scratch / "me/cluster.toml").targets]
    assert names == ["a" * 90, "with-space---é", "new-line"]


def test_directories_of_one_name_get_names_that_tell_them_apart(scratch: Path) -> None:
    (scratch / "me").mkdir()
    homes = [scratch / part / "scratch" for part in ("one", "two")]
    for home in homes:
        home.mkdir(parents=True)
    init(scratch, *homes, "--no-calibrate")
    names = [target.name for target in read_cluster(scratch / "me/cluster.toml").targets]
    assert names == ["one-scratch", "two-scratch"]


def test_a_store_and_its_cluster_go_where_one_stands_and_need_no_terminal(scratch: Path) -> None:
    (directory,) = places(scratch, 1)
    result = execute([STRIPEWISE, "init", "../d0", "--no-calibrate"], cwd=scratch / "me")
    assert tree(scratch / "me")[:2] == ["cluster.toml", "store"]
    assert f"new files that go into it: {scratch}/me/**" in result.out
    assert "one target" in result.err
    again = execute([STRIPEWISE, "init", directory, "--no-calibrate", "--store", "two"], cwd=scratch / "me", code=None)
    one_clear_error(again, "cluster.toml describes another target", "is not overwritten", "-o")
    execute([STRIPEWISE, "init", directory, "--no-calibrate", "--store", "two", "-o", "two.toml"], cwd=scratch / "me")
    assert tree(directory)[::2] == ["stripewise-store", "stripewise-two"]


def made_ready(scratch: Path) -> None:
    """What the refusals of the next test are about."""
    places(scratch)
    (scratch / "link").symlink_to("d0")
    (scratch / "broken").symlink_to("nowhere")
    (scratch / "file").touch()
    (scratch / "full/stripewise-store/x").mkdir(parents=True)
    (scratch / "theirs/stripewise-store").mkdir(parents=True)
    (scratch / "theirs/stripewise-store/stripewise-target").write_text(
        f"stripewise-target 1\nuuid {'0' * 32}\nindex 0\nstore /some/other\n"
    )
    (scratch / "odd/stripewise-store").mkdir(parents=True)
    (scratch / "odd/stripewise-store/stripewise-target").symlink_to("nowhere")
    (scratch / "inside/stripewise-store").mkdir(parents=True)
    (scratch / "other").mkdir()
    (scratch / "other/keep").touch()
    (scratch / "me/taken.toml").touch()


REFUSED = {
    "twice": (["d0", "d0/"], ["d0", "twice"]),
    "through a link": (["d0", "link"], ["is given as", "link"]),
    "a link to nowhere": (["broken"], ["broken", "a link to nowhere"]),
    "missing": (["none"], ["none", "mount its disk, or create the directory"]),
    "missing, and a cluster that is there": (["none", "-o", "me/taken.toml"], ["none", "mount its disk"]),
    "a file": (["file"], ["file", "not a directory"]),
    "not empty": (["full"], ["full/stripewise-store", "not empty", "x"]),
    "another store's": (["theirs"], ["theirs/stripewise-store", "/some/other"]),
    "nobody knows whose": (["odd"], ["odd/stripewise-store", "stripewise-target that cannot be read"]),
    "inside a target": (["theirs/stripewise-store"], ["lies in", "/some/other"]),
    "inside one another": (["inside", "inside/stripewise-store"], ["would lie in"]),
    "no place for files": (["d0", "/proc"], ["/proc", "takes no files"]),
    "empty": (["d0", ""], ["empty"]),
    "no UTF-8": (["d0", b"\xff"], ["\\udcff"]),
    "a store in a missing directory": (["d0", "--store", "no/store"], ["no", "--store"]),
    "a store that is a file": (["d0", "--store", "file"], ["file", "--store"]),
    "a store in what is not empty": (["d0", "--store", "other"], ["other", "keep"]),
    "a store in a target": (["d0", "--store", "theirs/stripewise-store/s"], ["would lie in", "/some/other"]),
    "nothing to manage": (["d0", "--manage", "/proc"], ["/proc", "never managed"]),
    "a cluster that is there": (["d0", "-o", "me/taken.toml"], ["taken.toml describes no targets", "rm "]),
    "a cluster nowhere": (["d0", "-o", "no/c.toml"], ["-o", "no"]),
    "an unknown target": (["d0", "--class", "d7=ssd"], ["d7", "targets are called d0"]),
    "an unknown class": (["d0", "--class", "d0=tape"], ["tape", "hdd, ssd"]),
    "a class for nobody": (["d0", "--class", "ssd"], ["TARGET=VALUE"]),
    "no size": (["d0", "--capacity", "d0=much"], ["--capacity d0", "much"]),
    "no room": (["d0", "--capacity", "d0=0"], ["no room"]),
    "nothing to time": (["d0", "--seconds", "5"], ["--seconds", "leave it out"]),
    "two to emulate in": (["--emulate", "d0", "d1"], ["one DIR"]),
    "one to emulate in that is not empty": (["--emulate", "other"], ["other", "not empty"]),
    "one to emulate in that is a file": (["--emulate", "file"], ["file", "not a directory"]),
    "a class of an emulated target": (["--emulate", "new", "--class", "hdd0=ssd"], ["--class"]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_written(
    scratch: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, words = REFUSED[kind]
    made_ready(scratch)
    os.mkdir(os.fsencode(scratch) + b"/\xff")
    before = tree(scratch)
    store = [] if "--store" in given or "--emulate" in given else ["--store", "me/store"]
    measured = [] if "--emulate" in given else ["--no-calibrate"]
    monkeypatch.chdir(scratch)
    # Here and not in a process of its own: there are many of these.
    said = CliRunner().invoke(app, ["init", *store, *measured, *map(os.fsdecode, given)])
    one_clear_error(Result(said.exit_code, said.stdout, said.stderr), *words)
    assert tree(scratch) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_directory_that_is_mounted_read_only_is_refused(scratch: Path) -> None:
    directories = places(scratch)
    unshared = ["unshare", "-m", "sh", "-c"]
    if execute([*unshared, "mount --bind $0 $0", directories[1]], code=None).code:
        pytest.skip("no mounts here")
    mounts = "mount --bind $3 $3 && mount -o remount,bind,ro $3 && exec $0 init --store $1 $2 $3"
    words = [STRIPEWISE, scratch / "me/store", *directories]
    one_clear_error(execute([*unshared, mounts, *words], code=None), "d1 is mounted read-only")
    assert tree(scratch) == ["d0", "d1", "me"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_directory_of_somebody_else_is_refused(scratch: Path) -> None:
    directories = places(scratch)
    os.chown(directories[1], 65_534, 65_534)
    # Root without its right to write everywhere.
    words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", STRIPEWISE, "init"]
    result = execute([*words, "--store", scratch / "me/store", *directories], code=None)
    one_clear_error(result, "d1 may not be written by you")
    assert tree(scratch) == ["d0", "d1", "me"]


def planted(path: Path, kind: str) -> None:
    """What another user makes under a name that a store or a target is to have; of a link and `open`, the user's own.

    A directory holds all that an init leaves that was killed, so that nothing but its owner is amiss.
    """
    if kind == "link":
        (path.parent / "elsewhere").mkdir()
        path.symlink_to("elsewhere")
    elif kind == "open":
        path.mkdir()
        path.chmod(0o757)
    elif kind == "part":
        path.mkdir()
        part = path / ("stripewise-target" if path.name.startswith("stripewise-") else "store.toml")
        part.touch()
        os.chown(part, MALLORY, MALLORY)
    else:
        with acting_as(MALLORY):
            path.mkdir(mode=0o755)


PLANTED = {
    "directory": [f"belongs to uid {MALLORY}", "remove it"],
    "part": [f"belongs to uid {MALLORY}", "remove it"],
    "open": ["uid 0", "may be written by others (mode 0757)", "remove it"],
    "link": ["uid 0", "is a symbolic link", "elsewhere", "remove the link"],
}


@needs_root
@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize(
    ("name", "verb"),
    [("me/st", "init"), ("d1/stripewise-st", "init"), ("me/e/targets", "emulate"), ("me/e/store", "emulate"),
     ("me/st", "create")],
)  # fmt: skip
def test_a_directory_that_others_made_or_may_write_is_taken_for_no_store_and_no_target(
    scratch: Path, kind: str, name: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = places(scratch)
    (scratch / "me/e").mkdir()
    for directory in (scratch / "me", scratch / "me/e", *directories):
        directory.chmod(0o1777)
    (scratch / "cluster.toml").write_text(dirs(1)[0].toml(scratch))
    (scratch / "t0").mkdir()
    planted(scratch / name, kind)
    before = tree(scratch)
    words = {
        "init": ["init", "--store", scratch / "me/st", *directories],
        "emulate": ["init", "--emulate", scratch / "me/e"],
        "create": ["store", "create", scratch / "me/st", "--cluster", scratch / "cluster.toml"],
    }[verb]
    said = CliRunner().invoke(app, list(map(str, words)))
    one_clear_error(Result(said.exit_code, said.stdout, said.stderr), str(scratch / name), *PLANTED[kind])
    assert tree(scratch) == before


@needs_root
def test_an_emulated_home_of_somebody_else_is_refused(scratch: Path) -> None:
    (scratch / "e").mkdir()
    os.chown(scratch / "e", MALLORY, MALLORY)
    one_clear_error(stripewise("init", "--emulate", scratch / "e", code=None), f"belongs to uid {MALLORY}")
    assert tree(scratch) == ["e"]


def test_a_directory_that_somebody_makes_while_init_measures_is_not_taken(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = places(scratch)
    make = Path.mkdir

    def overtaken(path: Path, *given: object, **named: object) -> None:
        if path == directories[1] / "stripewise-store":
            make(path)
            (path / "stripewise-target").touch()
        make(path, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", overtaken)
    words = ["init", "--no-calibrate", "--store", scratch / "me/store", *directories]
    said = CliRunner().invoke(app, list(map(str, words)))
    one_clear_error(Result(said.exit_code, said.stdout, said.stderr), "d1/stripewise-store: was made by somebody else")
    # What is not init's stays.
    assert tree(scratch) == ["d0", "d1", "d1/stripewise-store", "d1/stripewise-store/stripewise-target", "me"]


def test_whatever_the_umask_nobody_else_may_write_what_init_makes(scratch: Path) -> None:
    directories = places(scratch)
    shell = 'umask 0; exec "$0" init --no-calibrate --store "$@"'
    execute(["sh", "-c", shell, STRIPEWISE, scratch / "me/store", *directories])
    for path in (scratch / "me/store", *(home / "stripewise-store" for home in directories)):
        assert not path.stat().st_mode & 0o022, path


def test_a_store_that_is_there_is_told_with_what_to_do(scratch: Path) -> None:
    directories = places(scratch)
    init(scratch, *directories, "--no-calibrate")
    before = tree(scratch)
    one_clear_error(init(scratch, *directories, code=None), "is a store already", "tune --store")
    assert tree(scratch) == before


def test_a_store_that_lacks_only_its_cluster_gets_it_as_it_was_and_only_over_the_same_directories(
    scratch: Path,
) -> None:
    directories = places(scratch)
    init(scratch, *directories, "--seconds", "1", "--scratch", "8MiB", "--class", "d0=swd")
    before = read_cluster(scratch / "me/cluster.toml").targets
    (scratch / "me/cluster.toml").unlink()
    one_clear_error(init(scratch, directories[1], directories[0], code=None), "is a store already")
    one_clear_error(init(scratch, *directories, "--manage", scratch / "in", code=None), "is a store already")
    assert "only its cluster.toml is written" in init(scratch, *directories).err
    assert read_cluster(scratch / "me/cluster.toml").targets == before


@pytest.mark.parametrize("emulate", [False, True])
def test_a_failure_while_the_store_is_made_leaves_nothing(
    scratch: Path, emulate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = places(scratch)
    call = native.call

    def failing(name: str, *given: object) -> object:
        found = call(name, *given)
        if name == "store_create":
            taken.extend(path.parent for path in scratch.rglob("stripewise-target"))
            raise StoreError("the device is gone; put it back")
        return found

    taken: list[Path] = []
    monkeypatch.setattr(native, "call", failing)
    words = ["--emulate", scratch / "new"] if emulate else ["--store", scratch / "me/store", *directories]
    words += [] if emulate else ["--no-calibrate"]
    said = CliRunner().invoke(app, ["init", *map(str, words)])
    one_clear_error(Result(said.exit_code, said.stdout, said.stderr), "the device is gone")
    assert len(taken) == (6 if emulate else 2)
    assert tree(scratch) == ["d0", "d1", "me"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_while_it_measures_leaves_nothing(scratch: Path, number: signal.Signals) -> None:
    directories = places(scratch)
    words = ["init", "--store", scratch / "me/store", *directories, "--seconds", "60", "--scratch", "8MiB"]
    child = subprocess.Popen([STRIPEWISE, *map(os.fspath, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def has_scratch() -> bool:
        try:
            links = [os.readlink(link) for link in Path(f"/proc/{child.pid}/fd").iterdir() if link.is_symlink()]
        except FileNotFoundError:
            return False
        return any(link.startswith(f"{directories[0]}/") for link in links)

    try:
        assert wait_until(has_scratch), "no scratch file was made"
        time.sleep(0.1)
        child.send_signal(number)
        _, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode != 0 and b"Traceback" not in err
    assert tree(scratch) == ["d0", "d1", "me"]


@pytest.mark.parametrize("emulate", [False, True])
def test_a_kill_at_any_line_of_making_stops_no_second_init(scratch: Path, emulate: bool) -> None:
    words = [sys.executable, "-c", KILLED]
    result = execute([*words, "23", scratch, str(int(emulate))])
    ends = [tuple(map(int, line.split())) for line in result.out.splitlines()]
    assert len(ends) > 10 and ends[-1][1] == 0, result.report
    assert {first for _, first, *_ in ends[:-1]} == {-signal.SIGKILL}, ends
    for number, _, made, second, both in ends[:-1]:
        base = scratch / str(number)
        home = base / "emulated" if emulate else base / "me"
        # Killed when all was made, the second one says that it is there.
        assert (second == 0) == (made < 2) and both == 2, f"{number}: {(base / 'said0').read_text()}"
        assert read_cluster(home / "store").targets == read_cluster(home / "cluster.toml").targets


def test_nobody_is_asked_anything_on_a_terminal(scratch: Path) -> None:
    directories = places(scratch)
    master, slave = pty.openpty()
    try:
        words = [STRIPEWISE, "init", "--store", scratch / "me/store", *directories, "--seconds", "1"]
        child = subprocess.Popen([*words, "--scratch", "8MiB"], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        said = b""
        while True:
            try:
                part = os.read(master, 65_536)
            except OSError:
                break
            if not part:
                break
            said += part
        assert child.wait(30) == 0 and b"next: a target on another disk" in said, said
    finally:
        os.close(master)


def test_a_store_within_what_another_one_manages_is_warned_of(scratch: Path) -> None:
    outer, *directories = places(scratch, 3)
    first = init(
        scratch, outer, "--no-calibrate", "--json", "--manage", scratch / "me/data", "--manage", scratch / "me/*.h5"
    )
    assert not any("manages" in text for text in json.loads(first.out)["warnings"])
    for place, is_within in (("me/data/deep", True), ("me/other", False)):
        (scratch / place).mkdir(parents=True)
        words = ("--store", scratch / place / "store", "--no-calibrate", "--json", directories.pop())
        warnings = json.loads(stripewise("init", *words).out)["warnings"]
        assert (
            any(f"{scratch / place} lies in what the store {scratch / 'me/store'} manages" in w for w in warnings)
            == is_within
        )
