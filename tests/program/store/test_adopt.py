"""Files into a store and out of it: adopt, export, cat, relink, with programs that have the files open, and kills."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig import (
    BIN,
    SOAK,
    STRIPEWISE,
    Maker,
    Store,
    create_store,
    dirs,
    execute,
    is_managed,
    region,
    stripes,
    stripewise,
    talking,
    wait_until,
)

KILLS = {"adopt": 60, "export": 40} if SOAK else {"adopt": 8, "export": 5}


def plain(path: Path, size: int = 700_003, seed: int = 1) -> bytes:
    """A plain file with data, a hole and a hole at its end."""
    content = random.Random(seed).randbytes(size // 3) + bytes(size // 3) + random.Random(seed + 1).randbytes(1000)
    content += bytes(size - len(content))
    with path.open("wb") as file:
        file.write(content[: size // 3])
        file.seek(2 * (size // 3))
        file.write(content[2 * (size // 3) : 2 * (size // 3) + 1000])
        file.truncate(size)
    return content


def adopt(store: Store, *words: str | Path, code: int | None = 0):
    return stripewise("store", "adopt", "--store", store.root, *words, code=code)


def cat(path: Path, *words: str) -> bytes:
    return subprocess.run(
        [STRIPEWISE, "store", "cat", path, *words], stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout


def seen(store: Store, path: Path) -> bytes:
    """What a program under the library reads."""
    store.program("dd", f"if={path}", f"of={store.base / 'sink'}", "bs=64K")
    return (store.base / "sink").read_bytes()


def alone_in(directory: Path, *names: str) -> None:
    assert sorted(path.name for path in directory.iterdir()) == sorted(names)


def test_an_adopted_file_keeps_its_bytes_and_attributes_and_comes_back_the_same(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    file = store.plain / "f"
    content = plain(file)
    file.chmod(0o640)
    os.utime(file, ns=(10**18, 10**18 + 7))
    with_xattr = True
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP
        with_xattr = False
    blocks = file.stat().st_blocks
    adopt(store, file)
    assert is_managed(file)
    alone_in(store.plain, "f")
    assert seen(store, file) == content == cat(file)
    assert cat(file, "--offset", "100", "--length", "300000") == content[100:300_100]
    assert store.program("stat", "-c", "%a %s %.9Y", file).out.split() == ["640", "700003", "1000000000.000000007"]
    held = sum(path.stat().st_blocks for path in (store.base / "targets").glob("*/*.data"))
    assert held <= blocks + 8 * 3, "holes were filled"
    store.fsck()
    stripewise("store", "export", file)
    assert not is_managed(file) and file.read_bytes() == content
    after = file.stat()
    assert (after.st_mode & 0o7777, after.st_mtime_ns) == (0o640, 10**18 + 7)
    if with_xattr:
        assert os.getxattr(file, "user.note") == b"kept"
    alone_in(store.plain, "f")
    assert not list((store.root / "files").iterdir()) and not list((store.root / "trash").iterdir())
    assert not list((store.base / "targets").glob("*/*.data*"))


def test_an_adopted_file_that_is_unlinked_leaves_nothing(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.plain / "f"
    plain(file, 100_000)
    adopt(store, file)
    store.program("rm", file)
    assert not list((store.root / "files").iterdir()) and not list((store.root / "trash").iterdir())
    assert not list((store.base / "targets").glob("*/*.data"))


def test_whole_directories_go_in_and_out(make_store: Maker) -> None:
    store = make_store(layout="striped")
    (store.plain / "deep").mkdir()
    contents = {store.plain / name: plain(store.plain / name, 50_000, n) for n, name in enumerate(["a", "deep/b"])}
    said = json.loads(adopt(store, "-r", store.plain, "--layout", "hservers", "--json").out)
    assert [row["size"] for row in said] == [50_000, 50_000]
    assert {path: seen(store, path) for path in contents} == contents
    out = store.base / "copy"
    stripewise("store", "export", store.plain / "a", "--to", out)
    assert out.read_bytes() == contents[store.plain / "a"] and is_managed(store.plain / "a")
    # One file fails: the others are done all the same.
    os.rename(store.plain / "a", store.plain / "moved")
    result = stripewise("store", "export", "--all", store.root, code=1)
    assert "1 of 2" in result.err and (store.plain / "deep/b").read_bytes() == contents[store.plain / "deep/b"]
    stripewise("store", "relink", store.plain / "moved")
    stripewise("store", "export", "--all", store.root)
    assert (store.plain / "moved").read_bytes() == contents[store.plain / "a"]


INTERRUPTED = """
import signal, sys
from stripewise.cli import main
from stripewise.store import transfer

signal.signal(signal.SIGINT, signal.default_int_handler)
name, number, calls = sys.argv.pop(1), int(sys.argv.pop(1)), 0
real = getattr(transfer, name)

def work(*given):
    global calls
    calls += 1
    done = real(*given)
    if calls == number:
        signal.raise_signal(signal.SIGINT)
    return done

setattr(transfer, name, work)
main.main()
"""


def test_interrupted_ways_in_and_out_say_how_many_files_are_done_and_how_to_go_on(make_store: Maker) -> None:
    store = make_store(dirs(2))
    files = [store.plain / name for name in "abc"]
    contents = {path: plain(path, 5000, number) for number, path in enumerate(files)}

    def interrupted(function: str, number: int, *words: str | Path) -> str:
        ended = execute([sys.executable, "-c", INTERRUPTED, function, str(number), "store", *words], code=130)
        assert ended.err.count("\n") == 1 and ended.err.startswith("stripewise: interrupted; "), ended.report
        return ended.err

    said = interrupted("adopt", 2, "adopt", "--store", store.root, "-r", store.plain)
    assert "2 of 3 file(s) are adopted, each is whole; the same command does the rest" in said, said
    adopt(store, "-r", store.plain)
    assert all(map(is_managed, files))
    said = interrupted("export", 1, "export", *files)
    assert f"1 of 3 file(s) are exported, each is whole; the same command from {files[1]} on does the rest" in said, (
        said
    )
    said = interrupted("export", 1, "export", "--all", store.root)
    assert "1 of 2 file(s) are exported, each is whole; the same command does the rest" in said, said
    stripewise("store", "export", "--all", store.root)
    assert {path: path.read_bytes() for path in files} == contents
    assert "nothing to export" in stripewise("store", "export", "--all", store.root).err


def test_a_file_that_a_program_has_open_is_not_adopted(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.plain / "f"
    content = plain(file)
    with file.open("r+b"):
        assert "open in a program" in adopt(store, file, code=1).err
    assert file.read_bytes() == content
    adopt(store, file)


def test_a_writer_that_comes_meanwhile_is_never_stranded(make_store: Maker) -> None:
    store = make_store(layout="striped")
    rng = random.Random(4)
    kept = 0
    for number in range(20 if SOAK else 6):
        file = store.plain / f"f{number}"
        plain(file, 40_000_000)
        job = subprocess.Popen(
            [STRIPEWISE, "store", "adopt", "--store", store.root, file],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda job=job: job.poll() is not None or any((store.root / "files").glob("*/adopting")), 30)
        time.sleep(rng.choice([0.0, 0.02, 0.05, 0.1]))
        try:
            with file.open("r+b") as late:
                late.write(b"late")
            wrote = True
        except FileNotFoundError:
            wrote = False
        assert job.wait(timeout=60) == (1 if not is_managed(file) else 0)
        if wrote:
            kept += 1
            assert file.read_bytes()[:4] == b"late", "a write went to a file that nobody sees any more"
        else:
            assert is_managed(file)
    assert kept, "nobody came in time"


def test_a_killed_adoption_or_export_leaves_a_whole_file(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(9)
    file = store.plain / "f"
    content = plain(file, 9_000_001)
    interrupted = 0
    for number in range(KILLS["adopt"] + KILLS["export"]):
        words = ["export", file] if is_managed(file) else ["adopt", "--store", store.root, file]
        journals = "exporting" if is_managed(file) else "adopting"
        job = subprocess.Popen(
            [STRIPEWISE, "store", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_until(
            lambda job=job, name=journals: job.poll() is not None or any((store.root / "files").glob(f"*/{name}")), 30
        )
        time.sleep(rng.choice([0.0, 0.001, 0.005, 0.02, 0.05, 0.1]))
        interrupted += job.poll() is None
        job.send_signal(signal.SIGKILL)
        job.wait()
        assert (cat(file) if is_managed(file) else file.read_bytes()) == content, f"kill {number}"
        if number % 3 == 0:
            store.fsck("--repair", code=None)
            store.fsck()
            alone_in(store.plain, "f")
        assert seen(store, file) == content
    assert interrupted, "no kill hit"
    store.fsck("--repair", code=None)
    stripewise("store", "gc", store.root)
    assert seen(store, file) == content
    if not is_managed(file):
        adopt(store, file)
    alone_in(store.plain, "f")
    assert len(list((store.root / "files").iterdir())) == 1


OPENER = """
import hashlib, random, select, sys, time
path, wanted = sys.argv[1:]
print("begun", flush=True)
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    with open(path, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == wanted, number
    number += 1
    time.sleep(random.choice([0.001, 0.05, 0.3]))
"""


def test_a_program_that_opens_the_file_again_and_again_sees_the_same_bytes_throughout(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.plain / "f"
    content = plain(file, 300_000)
    wanted = hashlib.sha256(content).hexdigest()
    changes = 0
    end = time.monotonic() + 120
    with talking([BIN / "python", "-c", OPENER, file, wanted], store.environment()) as job:
        assert job.line() == "begun\n"
        # Whoever has the file open makes adopt and export give way: some tries are needed.
        while changes < 4 and job.is_there() and time.monotonic() < end:
            words = ["export", file] if is_managed(file) else ["adopt", "--store", store.root, file]
            changes += stripewise("store", *words, code=None).code == 0
        said = job.end()
    assert said.code == 0, said.report
    assert changes == 4, f"the file changed its kind {changes} times"


def test_an_export_names_who_has_the_file_open(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.plain / "f"
    content = plain(file)
    adopt(store, file)
    program = "import sys, time\nf = open(sys.argv[1], 'rb')\nprint('open', flush=True)\ntime.sleep(100)\n"
    job = subprocess.Popen(
        [BIN / "python", "-c", program, file], env=store.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert job.stdout is not None and job.stdout.readline() == "open\n"
        result = stripewise("store", "export", file, code=1)
        assert f"process {job.pid} has it open" in result.err
    finally:
        job.kill()
        job.wait()
    stripewise("store", "export", file)
    assert file.read_bytes() == content


def test_cat_stops_quietly_when_its_reader_goes(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.plain / "f"
    content = plain(file, 5_000_000)
    adopt(store, file)
    both = execute(["sh", "-c", f"'{STRIPEWISE}' store cat '{file}' | head -c 10 | wc -c"])
    assert both.out.strip() == "10" and both.err == ""
    (store.plain / "copy").symlink_to(os.readlink(file))
    assert cat(store.plain / "copy") == content
    identity = os.readlink(file).rsplit("/", 1)[1]
    said = execute([STRIPEWISE, "store", "cat", identity, "--store", store.root, "--length", "7"])
    assert said.out == content[:7].decode(errors="replace")


def test_a_moved_link_is_the_file_s_name_once_relinked_and_a_copy_is_not(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file, moved, copy = store.plain / "f", store.plain / "moved", store.plain / "copy"
    content = plain(file)
    adopt(store, file)
    execute(["mv", file, moved])
    execute(["cp", "-a", moved, copy])
    assert seen(store, moved) == seen(store, copy) == content
    stripewise("store", "relink", moved)
    assert store.files()[0]["path"] == str(moved)
    assert "--force" in stripewise("store", "relink", copy, code=1).err
    assert "copy of the link" in stripewise("store", "export", copy, code=1).err
    store.program("sh", "-c", f"printf x >> '{copy}'", code=2)
    stripewise("store", "relink", copy, "--force")
    store.program("dd", "if=/dev/zero", f"of={copy}", "bs=1", "count=1", "conv=notrunc")
    assert seen(store, copy) == b"\0" + content[1:]
    execute(["rm", moved])
    store.fsck()


def test_a_store_that_was_moved_serves_its_files_again(make_store: Maker) -> None:
    store = make_store(layout="striped")
    first, second = store.plain / "a", store.plain / "b"
    contents = [plain(first, 60_000, 1), plain(second, 60_000, 2)]
    adopt(store, first, second)
    elsewhere = store.plain / "sub"
    elsewhere.mkdir()
    os.rename(second, elsewhere / "b")
    old, new = store.root, store.base / "new"
    env = {**store.environment(), "STRIPEWISE_STORE": str(new)}
    execute(["cp", "-a", old, new])
    refused = stripewise("store", "relink", "--moved", new, code=1)
    assert "copy" in refused.err
    shutil.rmtree(new)
    os.rename(old, new)
    store.check_at_end = False
    said = json.loads(stripewise("store", "relink", "--moved", new, elsewhere, "--json").out)
    assert (said["rewritten"], said["missing"]) == (2, [])
    for path, content in zip((first, elsewhere / "b"), contents, strict=True):
        execute(["dd", f"if={path}", f"of={store.base / 'sink'}", "bs=64K"], env)
        assert (store.base / "sink").read_bytes() == content == cat(path)
    stripewise("store", "fsck", new)
    # The names are the links', not copies: a write goes through.
    execute(["dd", "if=/dev/zero", f"of={elsewhere / 'b'}", "bs=1", "count=1", "conv=notrunc"], env)


def test_one_program_uses_files_of_two_stores(make_store: Maker) -> None:
    one, two = make_store(layout="striped"), make_store(layout="uneven")
    contents = [plain(one.plain / "f", 300_000, 1), plain(two.plain / "f", 300_000, 2)]
    adopt(one, one.plain / "f")
    adopt(two, two.plain / "f")
    program = "import sys\na, b, o = sys.argv[1:]\nopen(o, 'wb').write(open(a, 'rb').read() + open(b, 'rb').read())\n"
    one.program(BIN / "python", "-c", program, one.plain / "f", two.plain / "f", one.base / "both")
    assert (one.base / "both").read_bytes() == b"".join(contents)


HELD = ["of another store", "in another layout"]
REFUSED = ["missing", "directory", "link", *HELD, "hard links", "in the store", "no room", "a part of the store"]


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_go_in_or_out_is_named_in_one_line(scratch: Path, kind: str) -> None:
    targets = dirs(2)
    if kind == "no room":
        targets = [type(target)(target.name, capacity_bytes=8192) for target in targets]
    store = create_store(scratch / "s", targets)
    file = store.plain / "f"
    content = plain(file, 200_000)
    words: list[str | Path] = ["adopt", "--store", store.root, file]
    expected = {
        "missing": "does not exist",
        "directory": "is a directory; -r",
        "link": "symbolic link",
        "of another store": "already, of the store",
        "in another layout": "already, in another layout; `stripewise store set-layout",
        "hard links": "2 hard links",
        "in the store": "belongs to the store",
        "no room": "KiB in the store, beside itself",
        "a part of the store": "itself and is none of its files",
    }[kind]
    if kind == "missing":
        words[-1] = store.plain / "none"
    elif kind == "directory":
        words[-1] = store.plain
    elif kind == "link":
        (store.plain / "l").symlink_to(file)
        words[-1] = store.plain / "l"
    elif kind == "of another store":
        stripewise("store", *words)
        words[2] = create_store(scratch / "other", targets).root
    elif kind == "in another layout":
        stripewise("store", *words)
        layout = {"regions": [{"start": 0, "len": 1 << 20, "stripes": [["t1", 1 << 20]]}]}
        (store.base / "layout.json").write_text(json.dumps(layout))
        words += ["--layout", store.base / "layout.json"]
    elif kind == "hard links":
        os.link(file, store.plain / "g")
    elif kind == "in the store":
        words[-1] = store.root / "store.bin"
    elif kind == "a part of the store":
        words = ["export", store.root / "store.bin"]
    result = stripewise("store", *words, code=1)
    lines = result.err.strip().splitlines()
    assert len(lines) == 1 and expected in lines[0] and "Traceback" not in result.err, result.report
    assert (cat(file) if kind in HELD else file.read_bytes()) == content
    store.fsck()
    assert len(list((store.root / "files").iterdir())) == (1 if kind in HELD else 0)


def test_a_file_in_use_comes_in_and_goes_out_when_it_is_closed(make_store: Maker) -> None:
    store = make_store()
    path = store.data / "f"
    path.write_bytes(b"x" * 5000)
    for verb in (("adopt", "--store", store.root), ("export",)):
        holder = subprocess.Popen(
            ["sh", "-c", f"exec 7<{path}; echo; read _"],
            env=store.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert holder.stdout is not None and holder.stdout.readline()
            said = stripewise("store", *verb, path, "--wait", "0.2", code=1).err
            assert "open" in said and said.count("\n") == 1, said
            waiting = subprocess.Popen([STRIPEWISE, "store", *verb, path, "--wait", "60"])
            time.sleep(0.5)
            assert waiting.poll() is None
        finally:
            holder.communicate(b"\n", timeout=30)
        assert waiting.wait(60) == 0
    assert path.read_bytes() == b"x" * 5000 and not path.is_symlink()


def test_cat_writes_nothing_unless_all_is_there_and_says_when_the_output_is_incomplete(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=[region(0, 16384, stripes(("t0", 64))), region(16384, 64, stripes(("t1", 64)))])
    path, away = store.data / "f", store.base / "away"
    content = random.Random(3).randbytes(17 << 20)
    (store.base / "source").write_bytes(content)
    store.program("cp", store.base / "source", path)
    place = store.base / "targets" / "t1"
    place.rename(away)
    said = subprocess.run([STRIPEWISE, "store", "cat", path], capture_output=True, timeout=60)
    assert said.returncode == 1 and said.stdout == b"", said
    assert b"target t1 is away" in said.stderr and said.stderr.count(b"\n") == 1, said
    # Of what is not asked for nothing need be there.
    assert cat(path, "--length", "16MiB") == content[: 16 << 20]
    away.rename(place)
    assert cat(path) == content
    with open("/dev/full", "wb") as full:
        said = subprocess.run([STRIPEWISE, "store", "cat", path], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert said.returncode == 1 and said.stderr.count(b"\n") == 1 and b"the output is incomplete" in said.stderr


def test_a_directory_is_adopted_with_the_option_that_the_refusal_names(make_store: Maker) -> None:
    store = make_store(dirs(2))
    place = store.data / "deep"
    place.mkdir()
    (place / "f").write_bytes(b"x")
    said = stripewise("store", "adopt", "--store", store.root, place, code=1).err
    assert f"{place}: is a directory; -r {place} takes all plain files below it" in said, said
    stripewise("store", "adopt", "--store", store.root, "-r", place)
    assert (place / "f").is_symlink()
    # What is the store's own there is nobody's file.
    (store.data / "g").write_bytes(b"y")
    said = stripewise("store", "adopt", "--store", store.root, "-r", store.base)
    assert (store.data / "g").is_symlink() and "belongs to the store" not in said.err + said.out, said.report
    store.fsck()
