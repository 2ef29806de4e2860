"""gc: what nobody can reach goes, nothing else does, whatever tools without the library did to the links."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rig import BIN, SOAK, STRIPEWISE, Maker, Store, execute, stripewise, wait_until

ROUNDS = 150 if SOAK else 25
HOLD = "import sys, time\nf = open(sys.argv[1], 'rb')\nprint('open', flush=True)\ntime.sleep(1000)\n"


def gc(store: Store, *options: str | Path) -> dict[str, object]:
    return dict(json.loads(stripewise("store", "gc", store.root, "--json", *options).out))


def fill(store: Store, path: Path, seed: int) -> bytes:
    content = random.Random(seed).randbytes(20_000 + seed)
    (store.base / "source").write_bytes(content)
    store.program("dd", f"if={store.base / 'source'}", f"of={path}", "bs=64K")
    return content


def cat(path: Path) -> bytes:
    said = execute_bytes(["store", "cat", path])
    assert said is not None, f"{path} cannot be read"
    return said


def execute_bytes(words: list[str | Path]) -> bytes | None:
    done = subprocess.run([STRIPEWISE, *words], capture_output=True, timeout=120)
    return done.stdout if done.returncode == 0 else None


def test_a_file_that_was_moved_below_what_the_store_manages_is_found_and_not_purged(make_store: Maker) -> None:
    store = make_store(layout="striped")
    for name in ("deep/er", "side"):
        (store.data / name).mkdir(parents=True)
    kept = {}
    for number, place in enumerate(("deep/er/new", "side/f1", "gone")):
        path = store.data / f"f{number}"
        content = fill(store, path, number)
        if place == "gone":
            path.unlink()
        else:
            subprocess.run(["mv", path, store.data / place], check=True)
            kept[store.data / place] = content
    said = stripewise("store", "df", store.root).out
    assert f"'stripewise store gc {store.root}' tells which were only moved" in said, said
    listed = stripewise("store", "gc", store.root).out
    assert all(f"but {path} leads to it; relink that" in listed for path in kept), listed
    stripewise("store", "gc", store.root, "--purge", "--older-than", "0s")
    assert {path: cat(path) for path in kept} == kept and len(store.files()) == 2
    stripewise("store", "relink", *kept)
    store.fsck()


def test_nothing_live_goes_after_any_sequence_of_plain_tools(make_store: Maker) -> None:
    missing = [tool for tool in ("mv", "cp", "tar", "rm") if shutil.which(tool) is None]
    assert not missing, f"{missing} must be installed"
    tools = ["mv", "cp", "tar", "rm", "unlink", "new", "hold", "gc"]
    if shutil.which("rsync"):
        tools.append("rsync")
    store = make_store(layout="striped")
    rng = random.Random(11)
    links: dict[Path, bytes] = {}
    holders: list[subprocess.Popen[bytes]] = []
    unlinked: set[bytes] = set()
    try:
        for number in range(ROUNDS):
            tool = rng.choice(tools if links else ["new"])
            fresh = store.data / f"n{number}"
            path = rng.choice(sorted(links)) if links else fresh
            if tool == "new":
                links[fresh] = fill(store, fresh, number)
            elif tool == "mv":
                execute(["mv", path, fresh])
                links[fresh] = links.pop(path)
            elif tool == "cp":
                execute(["cp", "-a", path, fresh])
                links[fresh] = links[path]
            elif tool == "rsync":
                execute(["rsync", "-a", path, fresh])
                links[fresh] = links[path]
            elif tool == "tar":
                fresh.mkdir()
                execute(["sh", "-c", f"cd '{store.data}' && tar cf - '{path.name}' | tar xf - -C '{fresh}'"])
                links[fresh / path.name] = links[path]
            elif tool == "rm":
                # Without the library: the name is gone, the file is not.
                execute(["rm", path])
                links.pop(path)
            elif tool == "unlink":
                # With it: the file goes with the link it was made with, a copy of that goes alone.
                content = links.pop(path)
                store.program("rm", path)
                left = [other for other in links if links[other] == content]
                if left and execute_bytes(["store", "cat", left[0]]) is None:
                    unlinked.add(content)
                    links = {other: held for other, held in links.items() if held != content}
            elif tool == "hold" and len(holders) < 3:
                job = subprocess.Popen(
                    [BIN / "python", "-c", HOLD, path], env=store.environment(), stdout=subprocess.PIPE
                )
                holders.append(job)
                assert job.stdout is not None and job.stdout.readline() == b"open\n"
            elif tool == "gc":
                gc(store)
        gc(store)
        for path, content in links.items():
            assert cat(path) == content, f"{path} lost its bytes"
    finally:
        for job in holders:
            job.kill()
            job.wait()
    store.check_at_end = False
    gc(store)
    for path, content in links.items():
        assert cat(path) == content, f"{path} lost its bytes"


def test_a_file_unlinked_by_a_program_that_died_with_it_open_is_freed_when_nobody_has_it(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    fill(store, file, 1)
    job = subprocess.Popen([BIN / "python", "-c", HOLD, file], env=store.environment(), stdout=subprocess.PIPE)
    try:
        assert job.stdout is not None and job.stdout.readline() == b"open\n"
        store.program("rm", file)
        assert gc(store)["unlinked"] == 0 and list((store.root / "files").iterdir())
    finally:
        job.kill()
        job.wait()
    done = gc(store)
    assert (done["unlinked"], done["trash"]) == (1, 1) and done["slots"]
    assert not list((store.root / "files").iterdir()) and not list((store.base / "targets").glob("*/*.data"))


def test_a_file_without_a_name_is_listed_and_goes_only_when_asked_and_old_and_not_found(make_store: Maker) -> None:
    store = make_store(layout="striped")
    store.check_at_end = False
    here, gone = store.data / "here", store.data / "gone"
    content = fill(store, here, 1)
    fill(store, gone, 2)
    away = store.plain / "deep"
    away.mkdir()
    execute(["mv", here, away / "here"])
    execute(["rm", gone])
    listed = gc(store)["orphans"]
    assert [row["path"] for row in listed] == [str(gone), str(here)] or len(listed) == 2
    assert not any(row["purged"] for row in listed)
    assert not any(row["purged"] for row in gc(store, "--purge")["orphans"]), "younger than seven days"
    told = [stripewise("store", "gc", store.root, *words).out for words in ((), ("--purge",))]
    assert told[0].count("free it with --purge (it is younger than 7d: --purge --older-than 0s frees it now)") == 2
    assert told[1].count("is gone; younger than 7d: --older-than 0s frees it now") == 2, told[1]
    after = gc(store, "--purge", "--older-than", "0s", "--search", store.plain)["orphans"]
    assert {row["path"]: row["purged"] for row in after} == {str(gone): True, str(here): False}
    assert cat(away / "here") == content
    refused = stripewise("store", "gc", store.root, "--older-than", "soon", code=2).err
    assert "span of time; write a whole number" in refused


def test_what_ended_programs_left_is_told_in_words_of_the_user(make_store: Maker) -> None:
    store = make_store(layout="striped")
    fill(store, store.data / "f", 3)
    assert stripewise("store", "gc", store.root).out == (
        f"{store.root}: 1 file(s) in the store's run directory that programs left there when they ended\n"
    )


def test_half_made_files_go_when_their_maker_is_gone(make_store: Maker) -> None:
    store = make_store(layout="striped")
    half = store.root / "files" / "00000000000000aa"
    half.mkdir()
    (half / "layout").write_bytes(b"")
    holder = store.data / "f"
    fill(store, holder, 3)
    job = subprocess.Popen([BIN / "python", "-c", HOLD, holder], env=store.environment(), stdout=subprocess.PIPE)
    try:
        assert job.stdout is not None and job.stdout.readline() == b"open\n"
        assert gc(store)["unfinished"] == 0 and half.exists(), "its maker may be alive"
        old = time.time() - 7200
        os.utime(half, (old, old))
        assert gc(store)["unfinished"] == 1 and not half.exists()
    finally:
        job.kill()
        job.wait()
    half.mkdir()
    assert gc(store)["unfinished"] == 1
    assert wait_until(lambda: not half.exists(), 1)


def test_gc_leaves_everything_when_a_target_is_away(make_store: Maker) -> None:
    store = make_store(layout="striped")
    fill(store, store.data / "f", 1)
    target = store.base / "targets" / "t1"
    target.rename(store.base / "away")
    try:
        result = stripewise("store", "gc", store.root, code=1)
        assert "t1" in result.err and "nothing was changed" in result.err
        assert "t1" in stripewise("store", "info", store.root).out
    finally:
        (store.base / "away").rename(target)


CLOSERS = """
import os, sys
data = sys.argv[1]
for turn in range(int(sys.argv[2])):
    path = f"{data}/u{turn}"
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    (ready, say), (wait, go) = os.pipe(), os.pipe()
    children = []
    for child in range(6):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            own = os.open(path, os.O_RDWR)
            os.close(fd)
            os.write(say, b"x")
            os.read(wait, 1)
            os.close(own)
            os._exit(0)
        children.append(pid)
    for _ in children: os.read(ready, 1)
    os.unlink(path)
    os.close(go)
    os.close(fd)
    for pid in children: assert os.waitpid(pid, 0)[1] == 0
    for end in ready, say, wait: os.close(end)
"""


def test_of_several_who_close_an_unlinked_file_at_once_one_removes_it(make_store: Maker) -> None:
    store = make_store(layout="striped")
    store.program(sys.executable, "-S", "-c", CLOSERS, store.data, str(ROUNDS))
    left = [path for name in ("files", "trash") for path in (store.root / name).iterdir()]
    assert not left, f"{len(left)} of {ROUNDS} are left"
