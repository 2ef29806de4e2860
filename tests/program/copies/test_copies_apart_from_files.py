"""Files that hold copies are the store's own: no verb takes them for a user's, and they go with their original."""

from __future__ import annotations

import json

import pytest
from rig import Maker, Store, dirs, execute, stripewise
from test_invalidated import BLOCK, BLOCKS, replicas

from stripewise import native

SIZE = BLOCK * BLOCKS


@pytest.fixture
def store(make_store: Maker) -> Store:
    """Two files in the store, of which one has copies, and a plain one that has some, too."""
    store = make_store(dirs(3))
    for name in ("f", "g"):
        store.program("sh", "-c", f"head -c {SIZE} /dev/urandom > {store.data / name}")
    (store.plain / "p").write_bytes(bytes(SIZE))
    copies = replicas("update")
    # In other stripes than those of new files.
    copies["replicas"][0]["regions"][0]["stripes"] = [[0, 32768], [1, 32768]]
    for file in (store.data / "f", store.plain / "p"):
        native.call("store_copies_make", str(store.root), str(file), json.dumps(copies))
    return store


def copied(store: Store) -> dict[str, str]:
    """Of which files there are copies, and whether they count."""
    rows = json.loads(stripewise("store", "replica", "ls", store.root, "--json").out)
    return {row["path"]: row["state"] for row in rows}


def test_all_files_leave_a_store_and_their_copies_with_them(store: Store) -> None:
    f, g, p = store.data / "f", store.data / "g", store.plain / "p"
    before = execute(["md5sum", f, g], store.environment()).out
    said = stripewise("store", "export", "--all", store.root)
    assert sorted(said.out.splitlines()) == [
        f"{f}: exported, 96.0 KiB; its copies are dropped",
        f"{g}: exported, 96.0 KiB",
    ]
    assert "the copies of 1 file(s) that no store manages stay" in said.err
    assert copied(store) == {str(p): "in use"} and not f.is_symlink() and execute(["md5sum", f, g]).out == before
    again = stripewise("store", "export", "--all", store.root)
    assert "holds no files" in again.err and not again.out


def test_what_holds_copies_is_not_exported_by_name(store: Store) -> None:
    for link in (store.root / "copies").glob("*.copy"):
        said = stripewise("store", "export", link, code=1).err
        assert "holds copies and is none of your files" in said and f"replica rm {store.root} FILE" in said
        assert said.count("\n") == 1 and link.is_symlink()
    assert set(copied(store).values()) == {"in use"}


def test_a_listing_counts_files_that_hold_copies_apart(store: Store) -> None:
    rows = json.loads(stripewise("store", "ls", store.root, "--json").out)
    assert sorted(row["path"] for row in rows if not row["copies"]) == [str(store.data / name) for name in "fg"]
    lines = stripewise("store", "ls", store.root).out.splitlines()
    assert lines[2:] == [f"copies of 2 file(s) are no files here: 'stripewise store replica ls {store.root}'"], lines
    assert [line.split()[-1] for line in lines[:2]] == [str(store.data / name) for name in "fg"], lines


def test_a_target_taken_back_names_no_file_that_holds_copies(store: Store) -> None:
    # None of the copies lie on t2.
    stripewise("store", "drain", store.root, "t2")
    said = stripewise("store", "drain", store.root, "t2", "--undo").out
    assert "set-layout" not in said and "active again" in said
    stripewise("store", "set-layout", store.data / "g", "--targets", "t0,t2", "--stripe-size", "128KiB")
    stripewise("store", "drain", store.root, "t2")
    said = stripewise("store", "drain", store.root, "t2", "--undo").out
    assert (
        "1 file(s) that set-layout, a template or a plan" in said
        and f"set-layout {store.data / 'g'} --layout def" in said
    )
