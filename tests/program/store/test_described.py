"""The description of a store's targets stays the user's: no store takes it in, an undo names it, whatever became of them."""

from __future__ import annotations

import json
from pathlib import Path

from rig import Maker, Store, Target, dirs, execute, is_managed, stripewise


def another_store(store: Store, name: str, targets: list[Target]) -> Path:
    """A description beside the store, in a directory of its own for its targets."""
    path = store.root.parent / name
    place = store.base / f"of-{path.stem}"
    place.mkdir(exist_ok=True)
    path.write_text("".join(target.toml(place) for target in targets))
    return path


def test_the_description_of_a_store_is_not_adopted_and_can_be_read_afterwards(make_store: Maker) -> None:
    store = make_store(dirs(2))
    place = store.data / "mine.toml"
    place.write_bytes(store.cluster.read_bytes())
    foreign = store.data / "foreign.toml"
    foreign.write_text(dirs(1)[0].toml(store.plain))
    for path in (store.cluster, place):
        said = stripewise("store", "adopt", "--store", store.root, path, code=1).err
        assert f"{path}: describes the targets of the store {store.root}" in said and said.count("\n") == 1, said
    (store.data / "f").write_bytes(b"bytes")
    told = stripewise("store", "adopt", "--store", store.root, "-r", store.data)
    assert f"{place}: stays plain, for it describes the targets of the store" in told.err, told.report
    assert is_managed(store.data / "f") and is_managed(foreign) and not is_managed(place)
    assert store.cluster.read_bytes() == place.read_bytes()
    execute(["cat", place])


def test_an_undo_names_the_description_of_a_store_whose_targets_have_changed_since(make_store: Maker) -> None:
    store = make_store(dirs(3))
    store.check_at_end = False
    other = another_store(store, "other.toml", [Target("t1"), Target("t0")])
    new = store.base / "new"
    new.mkdir()
    stripewise("store", "add", store.root, "t3", "--path", new, "--class", "hdd")
    stripewise("store", "drain", store.root, "t1", "--remove")
    states = {row["name"] for row in json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]}
    assert states == {"t0", "t2", "t3"}
    said = stripewise("undo", store.root).out
    assert f"left: {store.cluster}, for it is yours" in said and other.name not in said, said
