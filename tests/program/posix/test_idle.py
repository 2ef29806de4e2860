"""Files that a process has closed and keeps ready: nobody notices them, and whoever opens one again sees what others
have made of it meanwhile."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import BIN, LAYOUTS, Maker, Store, Talk, execute, region, stripes, stripewise, talking

#: Does what it is told of one file, a line each, and answers: `read`, `stat`, `write TEXT`, `parts` (how many of the
#: store's files it has open), `limit N`, `fork`, `touch N` (so many other files opened and closed).
KEEPER = """
import os, resource, sys
path, root = sys.argv[1:3]
files = os.path.join(root, "files")
def parts():
    links = (os.path.join("/proc/self/fd", n) for n in os.listdir("/proc/self/fd"))
    return [os.readlink(l) for l in links if os.path.islink(l) and os.readlink(l).startswith(files + "/")]
for line in sys.stdin:
    words = line.split()
    try:
        if not words:
            break
        if words[0] == "read":
            with open(path, "rb", buffering=0) as f:
                print(f.read(1 << 26).hex()[:64], flush=True)
        elif words[0] == "stat":
            s = os.stat(path)
            print(s.st_size, s.st_nlink, flush=True)
        elif words[0] == "write":
            with open(path, "r+b", buffering=0) as f:
                print(f.write(words[1].encode()), flush=True)
        elif words[0] == "parts":
            print(len(parts()), flush=True)
        elif words[0] == "limit":
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(words[1]), int(words[1])))
            print("done", flush=True)
        elif words[0] == "fork":
            child = os.fork()
            if child == 0:
                os._exit(min(len(parts()), 255))
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        elif words[0] == "touch":
            for n in range(int(words[1])):
                open(f"{path}.{n}", "ab").close()
            print("done", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


@pytest.fixture
def keeper(store: Store) -> Iterator[Talk]:
    """A process that has read `data/f` and closed it."""
    with talking([sys.executable, "-c", KEEPER, store.data / "f", store.root], store.environment()) as job:
        assert asked(job, "read") == first_bytes(store)
        assert asked(job, "parts") == "2", "directory and control words are kept"
        yield job


def asked(job: Talk, line: str) -> str:
    job.say(line)
    return job.line().strip()


def first_bytes(store: Store) -> str:
    return (store.base / "source").read_bytes()[:32].hex()


def objects(store: Store) -> list[Path]:
    return [path for target in store.targets for path in (store.base / "targets" / target.name).glob("*.data*")]


def test_a_file_that_another_process_removes_is_gone_and_so_are_its_bytes(store: Store, keeper: Talk) -> None:
    store.program("rm", store.data / "f")
    assert not objects(store) and not list(store.root.glob("files/*"))
    assert asked(keeper, "read") == asked(keeper, "stat") == os.strerror(2)


def test_another_file_of_that_name_is_another_file(store: Store, keeper: Talk) -> None:
    store.program("sh", "-c", f"rm {store.data}/f && printf another > {store.data}/f")
    assert asked(keeper, "stat") == "7 1"
    assert asked(keeper, "read") == b"another".hex()


def test_what_others_write_and_cut_is_seen(store: Store, keeper: Talk) -> None:
    size = (store.base / "source").stat().st_size
    assert asked(keeper, "stat") == f"{size} 1"
    store.program("sh", "-c", f"printf more >> {store.data}/f")
    assert asked(keeper, "stat") == f"{size + 4} 1"
    store.program("truncate", "-s", "3", store.data / "f")
    assert asked(keeper, "stat") == "3 1"
    assert asked(keeper, "read") == first_bytes(store)[:6]
    store.program("ln", store.data / "f", store.data / "g")
    assert asked(keeper, "stat") == "3 2"


def test_a_file_is_exported_under_one_that_keeps_it_ready_and_adopted_again(store: Store, keeper: Talk) -> None:
    stripewise("store", "export", store.data / "f")
    assert not (store.data / "f").is_symlink()
    assert asked(keeper, "read") == first_bytes(store)
    stripewise("store", "adopt", "--store", store.root, store.data / "f")
    assert asked(keeper, "read") == first_bytes(store)
    assert asked(keeper, "write changed") == "7"
    assert store.program("head", "-c", "7", store.data / "f").out == "changed"


def test_a_move_is_seen_by_one_that_kept_the_file_ready(store: Store, keeper: Talk) -> None:
    (target, *_), size = store.targets, (store.base / "source").stat().st_size
    only = [region(0, -(-size // 4096) * 4, stripes((target.name, 64)))]
    stripewise("apply", store.plan(store.base / "plan.json", store.data / "f", only, size), "--store", store.root)
    assert asked(keeper, "read") == first_bytes(store)
    assert asked(keeper, "write moved") == "5"
    assert store.program("head", "-c", "5", store.data / "f").out == "moved"


def test_control_words_that_are_lost_and_made_anew_are_the_ones_that_count(store: Store, keeper: Talk) -> None:
    (ctl,) = store.root.glob("files/*/ctl")
    ctl.unlink()
    store.program("truncate", "-s", "5", store.data / "f")
    assert asked(keeper, "stat") == "5 1"
    assert asked(keeper, "write changed") == "7"
    assert store.program("stat", "-c", "%s", store.data / "f").out.strip() == "7"


def test_a_copy_of_the_name_stays_a_copy_after_the_name_was_written_through(store: Store, keeper: Talk) -> None:
    assert asked(keeper, "write once") == asked(keeper, "write more") == "4"
    shutil.copy(store.data / "f", store.base / "link", follow_symlinks=False)
    (store.data / "f").unlink()
    (store.base / "link").rename(store.data / "f")
    # The library's own name for it is gone; what lies there now is a copy that somebody made without the library.
    assert asked(keeper, "write again") in {os.strerror(30), "5"}
    store.check_at_end = False


def test_a_fork_leaves_nothing_of_them_to_the_child(store: Store, keeper: Talk) -> None:
    assert asked(keeper, "fork") == "0"
    assert asked(keeper, "parts") == "0"
    assert asked(keeper, "read") == first_bytes(store)


@pytest.mark.parametrize("limit", [64, 256, 1024])
def test_few_descriptors_keep_few_files_ready(make_store: Maker, limit: int) -> None:
    store = make_store(layout="striped")
    store.program("sh", "-c", f"printf abc > {store.data}/f")
    with talking([sys.executable, "-c", KEEPER, store.data / "f", store.root], store.environment()) as job:
        assert asked(job, f"limit {limit}") == "done"
        assert asked(job, "touch 100") == "done"
        assert int(asked(job, "parts")) <= 2 * (limit // 32)
        assert asked(job, "read") == b"abc".hex()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here")
def test_a_known_file_is_opened_and_closed_in_14_calls_and_looked_at_in_6_and_one_per_object(make_store: Maker) -> None:
    """The link, the user, head, control words; for an open a lock, two descriptors; for stat the call itself."""
    targets, regions = LAYOUTS["one"]
    store = make_store(targets, regions=regions)
    store.program("sh", "-c", f"printf abc > {store.data}/f")
    script = (
        "import os, sys\n"
        "path = sys.argv[1]\n"
        "for _ in range(3):\n"
        "    os.close(os.open(path, os.O_RDONLY))\n"
        "    os.stat(path)\n"
        "for what in ('open', 'stat', 'end'):\n"
        "    try:\n"
        "        os.write(99, what.encode())\n"
        "    except OSError:\n"
        "        pass\n"
        "    if what == 'open':\n"
        "        os.close(os.open(path, os.O_RDONLY))\n"
        "    elif what == 'stat':\n"
        "        os.stat(path)\n"
    )
    log, python = store.base / "calls", BIN / "python"
    environment = store.environment()
    told = [word for name in ("LD_PRELOAD", "STRIPEWISE_STORE") for word in ("-E", f"{name}={environment[name]}")]
    plain = {name: value for name, value in environment.items() if name not in {"LD_PRELOAD", "STRIPEWISE_STORE"}}
    execute(["strace", "-o", log, *told, python, "-c", script, store.data / "f"], plain)
    lines = log.read_text().splitlines()
    marks = [n for n, line in enumerate(lines) if line.startswith("write(99,")]
    opened, looked = (marks[n + 1] - marks[n] - 1 for n in (0, 1))
    assert opened <= 14 and looked <= 7, "\n".join(lines[marks[0] :])
