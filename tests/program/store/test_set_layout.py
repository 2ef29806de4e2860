"""`store set-layout`: files get another layout by the one mover, whole at every moment, or a clear refusal."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, Target, dirs, stripewise, talking, wait_until

KIB, MIB = 1 << 10, 1 << 20
TARGETS = [*dirs(2), Target("ssd0", "ssd"), Target("ssd1", "ssd", capacity_bytes=MIB)]


def placed(*files: Path) -> list[dict]:
    return list(json.loads(stripewise("store", "layout", *files, "--json").out)["files"])


def cycles(file: Path) -> list[list[list[object]]]:
    """The cycles of a file, those that follow one of their own kind left out."""
    found = [region["stripes"] for region in placed(file)[0]["regions"]]
    return [cycle for number, cycle in enumerate(found) if number == 0 or cycle != found[number - 1]]


@pytest.fixture
def files(make_store: Maker) -> tuple[Store, dict[Path, bytes]]:
    """A store with two files."""
    store = make_store(TARGETS)
    contents = {}
    for name, size in (("a", 900_001), ("b b", 300_000)):
        path = store.data / name
        store.program("sh", "-c", 'head -c "$1" /dev/urandom >"$0"', path, str(size))
        contents[path] = read(store, path)
        assert len(contents[path]) == size
    return store, contents


def read(store: Store, path: Path) -> bytes:
    store.program("dd", f"if={path}", f"of={store.base / 'sink'}", "bs=64K")
    return (store.base / "sink").read_bytes()


def test_every_way_to_say_a_layout_moves_the_files_and_no_byte_changes(files) -> None:
    store, contents = files
    one, other = contents
    json_file = store.base / "l.json"
    json_file.write_text(json.dumps({"regions": [{"start": 0, "len": MIB, "stripes": [["t1", MIB]]}]}))
    for words, wanted in (
        (["--stripe-size", "1MiB"], [[[name, MIB] for name in ("t0", "t1", "ssd0", "ssd1")]]),
        (["--targets", "ssd0"], [[["ssd0", 64 * KIB]]]),
        (["--stripe", "ssd0=256KiB", "--stripe", "t0=4KiB"], [[["ssd0", 256 * KIB], ["t0", 4 * KIB]]]),
        (["--layout", json_file], [[["t1", MIB]]]),
        (["--layout", "hservers"], [[["t0", 64 * KIB], ["t1", 64 * KIB]]]),
    ):
        said = stripewise("store", "set-layout", one, *words).out
        assert "1 file(s): " in said and str(one) in said, said
        assert cycles(one) == wanted
        assert read(store, one) == contents[one]
    said = json.loads(stripewise("store", "set-layout", other, one, "--like", one, "--json").out)
    assert [file["path"] for file in said["files"]] == [str(other), str(one)]
    assert said["files"][0]["before"] != said["files"][0]["target_bytes"] and said["stores"][0]["moved_bytes"] > 0
    assert cycles(other) == cycles(one)
    assert {path: read(store, path) for path in contents} == contents


def test_a_program_that_has_the_file_open_reads_and_writes_on(files) -> None:
    store, contents = files
    path = next(iter(contents))
    script = (
        "import os,sys; fd=os.open(sys.argv[1], os.O_RDWR); print('open', flush=True); sys.stdin.readline();"
        "os.pwrite(fd, b'new', 500000); print(os.pread(fd, 3, 899998) == bytes.fromhex(sys.argv[2]), flush=True)"
    )
    with talking(["python3", "-c", script, path, contents[path][-3:].hex()], store.environment()) as program:
        assert program.line() == "open\n"
        stripewise("store", "set-layout", path, "--targets", "ssd0,t1")
        program.say()
        assert program.line() == "True\n"
        assert program.end().code == 0
    content = contents[path]
    assert read(store, path) == content[:500_000] + b"new" + content[500_003:]


def test_an_interrupted_one_says_how_many_files_have_the_new_layout_and_goes_on(files) -> None:
    store, contents = files
    words = [STRIPEWISE, "store", "set-layout", *contents, "--targets", "t1", "--bandwidth", "256KiB"]
    moving = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(lambda: "moving" in stripewise("mover", "status", store.root, code=None).out)
        moving.send_signal(signal.SIGINT)
        out, err = moving.communicate(timeout=60)
    finally:
        moving.kill()
        moving.wait()
    said = (
        "0 of 2 file(s) have the new layout, each has the old one and all its bytes; the same command again moves the "
        "rest, what was under way from its first byte\n"
    )
    assert moving.returncode == 128 + signal.SIGINT and f"stripewise: interrupted; {said}" in err, out + err
    assert {path: read(store, path) for path in contents} == contents
    stripewise("store", "set-layout", *contents, "--targets", "t1")
    assert all(cycles(path) == [[["t1", 64 * KIB]]] for path in contents)


def test_one_interrupted_between_two_regions_of_a_file_says_how_many_have_moved(make_store: Maker) -> None:
    store = make_store(dirs(2))
    path = store.data / "f"
    store.program("sh", "-c", 'head -c 16M /dev/urandom >"$0"', path)
    content, layout = read(store, path), store.base / "l.json"
    regions = [{"start": at * MIB, "len": MIB, "stripes": [["t1", 64 * KIB]]} for at in range(16)]
    layout.write_text(json.dumps({"regions": regions}))
    stripewise("store", "set-layout", path, "--layout", layout)
    for region in regions:
        region["stripes"] = [["t0", 64 * KIB]]
    layout.write_text(json.dumps({"regions": regions}))
    words = [STRIPEWISE, "store", "set-layout", path, "--layout", layout, "--bandwidth", "4MiB"]
    moving = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def some_moved() -> bool:
        return any(cycle[0][0] == "t0" for cycle in cycles(path))

    try:
        assert wait_until(some_moved)
        moving.send_signal(signal.SIGINT)
        out, err = moving.communicate(timeout=60)
    finally:
        moving.kill()
        moving.wait()
    moved = sum(region["stripes"][0][0] == "t0" for region in placed(path)[0]["regions"])
    said = f"0 of 1 file(s) have the new layout, and of the next one {moved} of 16 region(s); what has moved stays"
    assert moving.returncode == 128 + signal.SIGINT and f"stripewise: interrupted; {said}" in err, out + err
    # What it grows by lies as before until all has moved.
    assert placed(path)[0]["regions"][-1]["stripes"] == [["t1", 64 * KIB]]
    assert read(store, path) == content


def test_a_layout_that_lacks_room_on_the_way_changes_nothing_and_files_before_it_are_told(make_store: Maker) -> None:
    store = make_store([Target("t0", "hdd", capacity_bytes=1_100_000), Target("t1", "hdd", capacity_bytes=1_100_000)])
    small, large = store.data / "small", store.data / "large"
    store.program("sh", "-c", 'head -c 100000 /dev/urandom >"$0"; head -c 1700000 /dev/urandom >"$1"', small, large)
    before, content = placed(large), read(store, large)
    names = [name for name, _ in reversed(cycles(large)[0])]
    turned = [word for name in names for word in ("--stripe", f"{name}=64KiB")]
    said = stripewise("store", "set-layout", large, *turned, code=1).err
    assert "no target has room to keep it while it moves" in said and said.count("\n") == 1, said
    assert placed(large) == before and read(store, large) == content
    said = stripewise("store", "set-layout", small, large, *turned, code=1).err
    assert "(1 of 2 file(s) have the new layout by now, and keep it)" in said, said
    assert cycles(small)[0][0][0] == names[0] and placed(large) == before
    store.fsck()


def test_files_that_do_not_fit_stay_all_where_they_are(files) -> None:
    store, contents = files
    before = placed(*contents)
    said = stripewise("store", "set-layout", *contents, "--targets", "ssd1", code=1).err
    assert "target ssd1 has no room" in said and said.count("\n") == 1, said
    assert placed(*contents) == before
    # One of them does.
    stripewise("store", "set-layout", store.data / "b b", "--targets", "ssd1")
    assert {path: read(store, path) for path in contents} == contents


def test_what_cannot_be_is_one_clear_error_and_moves_nothing(files) -> None:
    store, contents = files
    path = next(iter(contents))
    (store.plain / "p").write_text("x")
    before = placed(*contents)
    for words, code, told in (
        ([path], 2, "give one of --layout, --like"),
        (
            [path, "--layout", "def", "--targets", "t0"],
            2,
            "set-layout: --layout and --targets cannot be combined; give one of",
        ),
        ([path, "--stripe", "t0=4096", "--targets", "t0"], 2, "--targets and --stripe cannot be combined"),
        ([store.data, "--layout", "def"], 2, "store template add STORE"),
        ([store.plain / "p", "--layout", "def"], 1, "is in no store"),
        ([path, store.plain / "none", "--layout", "def"], 1, "does not exist"),
        ([path, "--targets", "t0,t9"], 2, "'t9' is not a target of the store; use some of"),
        ([path, "--targets", "t0,t0"], 2, "names 't0' twice"),
        ([path, "--targets", "t0,"], 2, "empty name"),
        ([path, "--stripe", "t0=5000"], 2, "the nearest one is 4096"),
        ([path, "--stripe", "t0=0"], 2, "the nearest one is 4096"),
        ([path, "--stripe", "t0"], 2, "write TARGET=SIZE"),
        ([path, "--stripe-size", "lots"], 2, "is not a size"),
        ([path, "--stripe-size", "0"], 2, "stripewise: --stripe-size: 0 bytes are not a positive multiple of 4096"),
        ([path, "--like", store.plain / "p"], 1, "is in no store"),
        ([path, "--layout", store.plain / "p"], 1, "not JSON"),
    ):
        said = stripewise("store", "set-layout", *words, code=code).err
        assert told in said and said.count("\n") == 1 and "Traceback" not in said, said
    stripewise("store", "drain", store.root, "t0")
    said = stripewise("store", "set-layout", path, "--targets", "t0", code=1).err
    assert "'t0' is draining" in said, said
    assert [file["size"] for file in placed(*contents)] == [file["size"] for file in before]


def test_targets_that_are_given_one_by_one_all_count_and_the_mover_has_the_verbs_name(
    files: tuple[Store, dict[Path, bytes]],
) -> None:
    store, contents = files
    file = next(iter(contents))
    stripewise("store", "set-layout", file, "--targets", "ssd0", "--targets", "t0,t1")
    assert [name for name, _ in cycles(file)[0]] == ["ssd0", "t0", "t1"]
    assert stripewise("mover", "status", store.root).out.startswith("set-layout (process ")
    said = stripewise("store", "set-layout", file, "--targets", "ssd0", "--targets", "ssd0", code=2)
    assert "names 'ssd0' twice" in said.err, said.report


def test_what_is_set_is_somebodys_also_where_it_is_what_new_files_get(make_store: Maker) -> None:
    """But for the store's own layout by its name, which gives a file back to the store."""
    store = make_store(dirs(2))
    file = store.data / "f"
    store.program("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=1")

    def origin() -> str:
        (row,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
        return str(row["origin"])

    assert origin() == "own"
    for words in (("--stripe-size", "64KiB"), ("--targets", "t0,t1"), ("--like", file)):
        stripewise("store", "set-layout", file, *words)
        assert origin() == "given", words
        stripewise("store", "set-layout", file, "--layout", "def")
        assert origin() == "own", words
    stripewise("store", "template", "add", store.root, store.data / "g", "--stripe-size", "64KiB")
    store.program("dd", "if=/dev/zero", f"of={store.data / 'g'}", "bs=1M", "count=1")
    file = store.data / "g"
    assert origin() == "given"
