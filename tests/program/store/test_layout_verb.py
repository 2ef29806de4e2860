"""`store layout`: regions and bytes by target as they lie, in a form that a template takes."""

from __future__ import annotations

import json
from pathlib import Path

from rig import Maker, dirs, stripewise

MIB = 1 << 20
REGIONS = [
    {"start": 0, "len": MIB, "stripes": [["t0", 65536], ["t1", 131072]]},
    {"start": MIB, "len": MIB, "stripes": [["t1", MIB]]},
]


def held(store_target: Path) -> int:
    return sum(each.stat().st_blocks * 512 for each in store_target.rglob("*.data*"))


def test_regions_are_told_and_what_targets_hold_is_what_lies_there(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=REGIONS)
    file = store.data / "a file\nof two lines"
    store.program("sh", "-c", 'head -c 2000000 /dev/urandom >"$0"', file)
    (told,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
    assert told["path"] == str(file) and told["size"] == 2_000_000 and told["store"] == str(store.root)
    assert told["regions"] == REGIONS
    for name, count in told["target_bytes"].items():
        # Slices are rounded up to 4 KiB.
        assert abs(count - held(store.base / "targets" / name)) < 3 * 4096, told
    shown = stripewise("store", "layout", file).out
    assert "1,048,576" in shown and "64KiB on t0, 128KiB on t1" in shown and "\nof two" not in shown, shown
    layout = store.base / "l.json"
    layout.write_text(stripewise("store", "layout", file, "--json").out)
    stripewise("store", "template", "add", store.root, store.data / "new", "--layout", layout)
    store.program("sh", "-c", "printf x >$0", store.data / "new")
    (again,) = json.loads(stripewise("store", "layout", store.data / "new", "--json").out)["files"]
    assert again["regions"] == REGIONS


def test_files_of_no_store_are_one_clear_error(make_store: Maker) -> None:
    store = make_store(dirs(1))
    (store.plain / "p").write_text("x")
    store.program("sh", "-c", "printf x >$0", store.data / "m")
    said = stripewise("store", "layout", store.data, code=1).err
    listing = f"stripewise store find {store.root} '{store.data}/**'"
    assert f"is a directory; name files in it: {listing}\n" in said, said
    assert str(store.data / "m") in stripewise("store", "find", store.root, f"{store.data}/**").out
    for path, words in ((store.plain / "p", "is in no store"), (store.plain / "none", "does not exist")):
        said = stripewise("store", "layout", path, code=1)
        assert str(path) in said.err and words in said.err and "Traceback" not in said.err
    assert stripewise("store", "layout", code=None).code == 2


def test_a_managed_file_in_the_place_of_a_trace_is_told_from_one_that_is_not_there(make_store: Maker) -> None:
    store = make_store(dirs(2))
    store.program("sh", "-c", "printf x >$0", store.data / "m.dat")
    for verb in ("show", "patterns"):
        said = stripewise(verb, store.data / "m.dat", code=1).err
        assert f"is a managed file and no trace; 'stripewise store layout {store.data / 'm.dat'}'" in said, said
        assert "does not exist" in stripewise(verb, store.data / "none", code=1).err


def test_a_file_is_shown_in_80_columns_of_ascii_and_what_replicas_take_is_told(make_store: Maker) -> None:
    cycle = [[f"t{number}", 65536 + 4096 * (number % 3)] for number in range(16)]
    store = make_store(dirs(16), regions=[{"start": 0, "len": MIB, "stripes": cycle}])
    file = store.data / "f"
    store.program("sh", "-c", 'head -c 3000000 /dev/urandom >"$0"', file)
    shown = stripewise("store", "layout", file).out
    body = shown.split("\n", 2)[2]
    assert body.isascii() and max(map(len, body.splitlines())) <= 80, shown
    assert "72KiB on" in body and "replica" not in body
    (identity,) = [str(each["id"]) for each in store.files()]
    replica = store.base / "targets/t3" / f"{identity}.repl"
    replica.write_bytes(b"x" * 10_000)
    assert "replicas on t3 12.0 KiB" in stripewise("store", "layout", file).out
    (told,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
    assert told["replica_bytes"] == {"t3": 12_288} and told["stripe_count"] == 16
    replica.unlink()


def test_managed_files_are_shown_beside_those_that_are_in_no_store(make_store: Maker) -> None:
    store = make_store(dirs(1))
    (store.plain / "p").write_text("x")
    for name in ("m", "n"):
        store.program("sh", "-c", "printf x >$0", store.data / name)
    files = (store.plain / "p", store.data / "m", store.data / "none", store.data / "n")
    said = stripewise("store", "layout", *files, code=1)
    alone = stripewise("store", "layout", store.data / "m", store.data / "n").out
    assert said.out == alone and alone.startswith(f"{store.data / 'm'}: 1 B"), said.out
    assert [line.split(" ")[3:5] for line in said.err.splitlines()] == [["in", "no"], ["not", "exist;"]], said.err
    # What a program reads is whole or an error.
    assert stripewise("store", "layout", *files, "--json", code=1).out == ""
