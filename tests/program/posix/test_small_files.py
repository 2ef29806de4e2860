"""What a file of a few bytes costs on disk, and that the bitmap of a move gets its blocks before it is needed."""

from __future__ import annotations

from pathlib import Path

from rig import LAYOUTS, Maker, Store, dirs, region, stripes, stripewise

KIB = 1024
#: Blocks of the directory, layout, link, ctl's header and the object that has the bytes; head has none.
SMALL_BYTES_MAX = 24 * KIB
#: These, head, and the link.
SMALL_INODES_MAX = 7


def parts(store: Store) -> list[Path]:
    """All that belongs to the store's files."""
    objects = [path for target in store.targets for path in (store.base / "targets" / target.name).glob("*.data*")]
    return [*store.root.glob("files/*"), *store.root.glob("files/*/*"), *objects]


def test_a_file_of_a_few_bytes_takes_at_most_24_kib_and_seven_inodes(make_store: Maker) -> None:
    store = make_store(dirs(4))
    store.program("sh", "-c", f"printf 'twenty bytes of text' > {store.data}/f")
    found = [*parts(store), store.data / "f"]
    assert sum(path.lstat().st_blocks * 512 for path in found) <= SMALL_BYTES_MAX, {
        str(p): p.lstat().st_blocks * 512 for p in found
    }
    assert len(found) <= SMALL_INODES_MAX, found


def test_the_bitmap_has_its_blocks_after_a_file_s_first_move(make_store: Maker) -> None:
    targets, regions = LAYOUTS["striped"]
    store = make_store(targets, regions=regions)
    store.program("dd", "if=/dev/urandom", f"of={store.data / 'f'}", "bs=1M", "count=2", "status=none")
    (ctl,) = store.root.glob("files/*/ctl")
    assert ctl.stat().st_size == 64 * KIB and ctl.stat().st_blocks * 512 <= 4 * KIB
    only = [region(0, 2048, stripes((targets[0].name, 64)))]
    plan = store.plan(store.base / "plan.json", store.data / "f", only, 2 << 20)
    stripewise("apply", plan, "--store", store.root)
    assert ctl.stat().st_blocks * 512 >= 64 * KIB
