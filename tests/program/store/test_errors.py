"""What goes wrong in a store has the class that fits, which is the standard exception that one expects, too."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Maker, Store, Target, region, stripes, stripewise, talking

from stripewise import errors, native
from stripewise.store import Store as OpenedStore

WHOLE = {"start": 0, "len": 1 << 20, "stripes": [[1, 4096]]}


def file_of(store: Store) -> tuple[str, Path]:
    """The id of its one file, and its layout."""
    identity = str(store.files()[0]["id"])
    return identity, store.root / "files" / identity / "layout"


def missing(store: Store) -> None:
    native.call("store_layout", str(store.root), "0123456789abcdef")


def no_id(store: Store) -> None:
    native.call("store_layout", str(store.root), "none")


def cut_short(store: Store) -> None:
    identity, layout = file_of(store)
    layout.write_bytes(layout.read_bytes()[:-1])
    native.call("store_layout", str(store.root), identity)


def from_the_future(store: Store) -> None:
    identity, layout = file_of(store)
    content = bytearray(layout.read_bytes())
    content[8] = 99
    layout.write_bytes(content)
    native.call("store_layout", str(store.root), identity)


def while_it_is_used(store: Store) -> None:
    script = "import sys\nwith open(sys.argv[1]): print('open', flush=True); sys.stdin.readline()"
    with talking([sys.executable, "-c", script, store.data / "f"], store.environment()) as user:
        assert user.line() == "open\n"
        native.call("store_fsck", str(store.root), json.dumps({"repair": True}))


def onto_a_full_target(store: Store) -> None:
    native.call("store_apply", str(store.root), file_of(store)[0], json.dumps({"regions": [WHOLE]}), None)


def made_twice(store: Store) -> None:
    config = OpenedStore(store.root).config
    native.call("store_create", str(store.root), config.spec(config.digest()), False)


def of_another_kind(store: Store) -> None:
    identity, layout = file_of(store)
    layout.rename(layout.with_name("aside"))
    layout.mkdir()
    native.call("store_layout", str(store.root), identity)


@pytest.mark.parametrize(
    ("attempt", "ours", "standard"),
    [
        (missing, errors.NotFoundError, FileNotFoundError),
        (no_id, errors.InvalidError, ValueError),
        (cut_short, errors.DamagedError, RuntimeError),
        (from_the_future, errors.NewerVersionError, RuntimeError),
        (while_it_is_used, errors.InUseError, BlockingIOError),
        (onto_a_full_target, errors.NoSpaceError, OSError),
        (made_twice, errors.ExistsError, FileExistsError),
        (of_another_kind, errors.InputOutputError, OSError),
    ],
)
def test_an_error_of_a_store_has_the_class_that_fits(
    make_store: Maker, attempt: Callable[[Store], None], ours: type[errors.StoreError], standard: type[Exception]
) -> None:
    store = make_store(
        [Target("t0"), Target("t1", capacity_bytes=65536)], regions=[region(0, 4096, stripes(("t0", 64)))]
    )
    store.check_at_end = False
    store.program("dd", "if=/dev/zero", f"of={store.data / 'f'}", "bs=64K", "count=16")
    with pytest.raises(errors.StoreError) as raised:
        attempt(store)
    assert type(raised.value) is ours
    assert isinstance(raised.value, standard)
    assert str(raised.value) == " ".join(str(raised.value).split())


def test_a_number_that_no_engine_takes_is_one_sentence() -> None:
    with pytest.raises(errors.InvalidError, match=r"^[^\n]+$"):
        native.call("workload_requests", "{}", 1 << 70, 1, 1)
    with pytest.raises(errors.WorkloadError, match=r"^mine: [^\n]+$"), errors.naming("mine"):
        native.call("workload_requests", "{}", 1 << 70, 1, 1)
    said = stripewise("swd", "war", "--band-tracks", str(1 << 40), code=2)
    assert said.err.startswith("stripewise: swd war: "), said.report
    assert said.err.count("\n") == 1, said.report


def test_a_name_with_a_new_line_is_shown_in_one_line() -> None:
    with pytest.raises(errors.NotFoundError) as raised:
        native.call("store_info", "/none/at\nall")
    assert "/none/at\\nall is not a store" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_wrong_in_a_workload_is_an_error_of_the_workload() -> None:
    with pytest.raises(errors.WorkloadError):
        native.call("workload_info", "{}")
    with pytest.raises(errors.WorkloadError, match=r"^/none/at/all"):
        native.call("trace_collect", "/none/at/all", "/none/at/all", False)


#: Verbs that take a file, which stands for {}; of the store {store}, with a file {file}.
TAKING_A_FILE = [
    "store layout {}",
    "store set-layout {} --targets t0",
    "store set-layout {file} --layout {}",
    "store set-layout {file} --like {}",
    "store adopt --store {store} {}",
    "store adopt --store {store} -r {}",
    "store export {}",
    "store export {file} --to {}",
    "store cat {}",
    "store relink {}",
    "store scrub {}",
    "store drain {} t0",
    "store template add {store} /none/ --like {}",
    "store template add {store} /none/ --layout {}",
    "store replica rm {store} {}",
    "replicate {} --store {store}",
    "apply {} --store {store}",
    "undo {} --dry-run",
]
#: Paths where no such file can be, and what any verb says of one.
ODD = [
    "/proc/self/status",
    "/dev/null",
    "directory",
    "socket",
    "fifo",
    "dangling",
    "loop",
    "a\nline",
    "",
    "part",
    "object",
]


@pytest.mark.parametrize("verb", TAKING_A_FILE)
def test_an_odd_path_is_one_clear_error_of_every_verb(verb: str, make_store: Maker, monkeypatch) -> None:
    store = make_store([Target("t0"), Target("t1")])
    store.check_at_end = False
    store.run("cp", "/etc/passwd", store.data / "f")
    place = store.base / "odd"
    place.mkdir()
    # An empty path must not be the working directory.
    monkeypatch.chdir(place)
    (place / "directory").mkdir()
    os.mkfifo(place / "fifo")
    (place / "dangling").symlink_to("/nowhere")
    (place / "loop").symlink_to(place / "loop")
    (place / "stays").write_text("plain")
    with socket.socket(socket.AF_UNIX) as listening:
        # A socket's path is short.
        listening.bind("socket")
    identity, layout = file_of(store)
    odd = {"part": layout.parent, "object": next((store.base / "targets").glob(f"*/{identity}.data"))}
    for name in ODD:
        path = str(odd.get(name) or (name if name.startswith("/") else name and place / name))
        words = [word.format(path, store=store.root, file=store.data / "f") for word in verb.split()]
        if (name, words[-2]) == ("a\nline", "--to") or (name, words[-2]) == ("directory", "-r"):
            continue
        said = stripewise(*words, code=None, timeout_s=20)
        assert said.code in (1, 2) and said.err.startswith("stripewise: "), (name, said.report)
        assert said.err.count("\n") == 1 and "Traceback" not in said.err, (name, said.report)
        assert "internal error" not in said.err and any(cure in said.err for cure in ("; ", ", ")), (name, said.report)
        if name == "":
            assert "is an empty path; give one" in said.err, said.report
    assert not (place / "stays").is_symlink() and (store.data / "f").is_symlink()
