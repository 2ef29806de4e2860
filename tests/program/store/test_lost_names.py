"""Files that tools without the library took the name or a part from: told by the name that users know, with a cure; and
what fsck says of many findings: a few of each kind and how many more, never just "sound" where something stands.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from rig import Maker, Store, Target, dirs, launch, stripewise, wait_until

MIB = 1 << 20
FILES = 40


def write(store: Store, name: str, count_bytes: int) -> Path:
    path = store.data / name
    store.program("sh", "-c", f"head -c {count_bytes} /dev/urandom >'{path}'")
    return path


def small(store_bytes: int = 8 * MIB) -> list[Target]:
    return [Target(f"t{number}", capacity_bytes=store_bytes) for number in range(2)]


def test_room_of_files_removed_without_the_library_is_told_of_where_room_is_short(make_store: Maker) -> None:
    store = make_store(small())
    big, kept = write(store, "big", 12 * MIB), write(store, "kept", 4096)
    assert "name gone" not in stripewise("store", "ls", store.root).out
    assert "names are gone" not in stripewise("store", "df", store.root).out
    big.unlink()
    listed = stripewise("store", "ls", store.root).out.splitlines()
    assert [line.endswith("(name gone)") for line in sorted(listed, key=lambda each: str(kept) in each)] == [
        True,
        False,
    ]
    rows = json.loads(stripewise("store", "ls", store.root, "--json").out)
    assert {row["path"]: row["name_gone"] for row in rows} == {str(big): True, str(kept): False}
    told = stripewise("store", "df", store.root).out
    assert "12.0 MiB belong to a file whose name is gone" in told, told
    assert json.loads(stripewise("store", "df", store.root, "--json").out)["nameless"] == {
        "files": 1,
        "bytes": 12 * MIB,
    }
    refused = stripewise("store", "drain", store.root, "t0", code=1)
    assert "12.0 MiB belong to a file" in refused.err and "nothing was moved" in refused.err, refused.report
    examined = stripewise("doctor", "--store", store.root, code=None)
    assert "12.0 MiB belong to a file" in examined.out, examined.report
    # The cure is a command that works.
    cure = re.search(
        r"'stripewise (store gc \S+)' tells which were only moved, with (--purge --older-than 0s) it", told
    )
    assert cure, told
    stripewise(*cure[1].split(), *cure[2].split())
    assert "name is gone" not in stripewise("store", "df", store.root).out
    stripewise("store", "drain", store.root, "t0")


def test_a_file_that_goes_with_its_last_user_has_not_lost_its_name(make_store: Maker) -> None:
    store = make_store(dirs(2))
    path = write(store, "f", 4096)
    holder = launch(store, ["sh", "-c", f"exec 3<{path}; rm {path}; exec sleep 1000"])
    try:
        assert wait_until(lambda: not path.is_symlink())
        assert json.loads(stripewise("store", "df", store.root, "--json").out)["nameless"]["files"] == 0
        assert "name gone" not in stripewise("store", "ls", store.root).out
    finally:
        holder.kill()
        holder.wait()


def test_fsck_knows_where_a_renamed_file_is_and_gives_the_store_in_its_cure(make_store: Maker) -> None:
    store = make_store(dirs(2))
    moved, gone = write(store, "before", 5000), write(store, "gone", 5000)
    moved.rename(store.data / "after")
    gone.rename(store.plain / "gone")
    said = store.fsck().out
    assert f"{moved} is gone, but {store.data / 'after'} leads to it; relink that" in said, said
    assert f"stripewise store gc {store.root} --purge" in said and "STORE" not in said, said
    stripewise("store", "relink", store.data / "after", store.plain / "gone")
    assert "gone" not in store.fsck().out


def test_a_lost_object_is_told_by_the_name_of_its_file_and_the_cure_works(make_store: Maker) -> None:
    store = make_store(dirs(2))
    lost = write(store, "lost", 1 * MIB)
    next((store.base / "targets/t0").glob("*.data")).unlink()
    checked = store.fsck(code=1)
    assert f"({lost}): its object" in checked.out and f"run --store {store.root} -- rm {lost};" in checked.out, (
        checked.report
    )
    read = store.run("cat", lost, code=None)
    assert read.code != 0 and "an object is missing" in read.err and "store fsck" in read.err, read.report
    undone = stripewise("undo", store.root, code=1)
    assert f"({lost}): its object" in undone.err and f"-- rm {lost}" in undone.err, undone.report
    store.run("rm", lost)
    assert "sound" in store.fsck().out


def test_run_names_the_full_target_where_all_have_a_capacity(make_store: Maker) -> None:
    store = make_store(small(2 * MIB))
    said = store.run("sh", "-c", f"head -c 8M /dev/zero >{store.data / 'f'}", code=None).err
    assert "No space left on device" in said, said
    # Both are full: what would move files between them is no cure.
    cure = "'store rebalance' helps where another target has room, else remove files or 'store add' a target: see "
    cure = re.escape(f"{cure}'stripewise store df {store.root}'")
    assert re.search(rf"targets/t[01]: target t[01] has no room for what was to be written; {cure}", said), said
    assert "of this run in the library's log: " in said, said
    stripewise("store", "template", "add", store.root, store.data / "g", "--stripe", "t1=64KiB")
    store.run("rm", store.data / "f")
    said = store.run("sh", "-c", f"head -c 8M /dev/zero >{store.data / 'g'}", code=None).err
    assert "template ls') or a plan laid the file out: 'store set-layout' and 'store rebalance --all' help" in said, (
        said
    )


def test_names_removed_without_the_library_are_summed_up_and_the_store_is_not_called_sound(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    store.program("sh", "-c", f"for n in $(seq {FILES}); do head -c 20 /dev/zero > {store.data}/f$n; done")
    assert store.fsck().out.splitlines()[-1] == f"{store.root}: sound"
    shutil.rmtree(store.data)
    said = store.fsck().out.splitlines()
    assert len(said) < 15 and any(f"and {FILES - 5} more like these" in line for line in said), said
    assert said[-1].startswith(f"{store.root}: no byte is lost or ambiguous, but {FILES} warning(s) stand")
    found = json.loads(store.fsck("--json").out)
    assert len([finding for finding in found["findings"] if finding["severity"] == "warning"]) == FILES


def test_every_file_of_a_store_has_a_line_with_its_size_and_name(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    store.program("sh", "-c", f"for n in $(seq {FILES}); do head -c 2000 /dev/zero > '{store.data}/f '$n; done")
    lines = stripewise("store", "ls", store.root).out.splitlines()
    assert sorted(line.split("  ")[-1] for line in lines) == sorted(f"{store.data}/f {n}" for n in range(1, FILES + 1))
    assert all(line.split()[0] == file["id"] for line, file in zip(lines, store.files(), strict=True))


def test_the_last_line_agrees_with_what_was_mended(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    store.program("sh", "-c", f"head -c 20000 /dev/zero > {store.data}/f")
    half = store.root / "files" / "00000000000000aa"
    half.mkdir()
    cure = f"'stripewise store fsck {store.root} --repair' removes it when no program runs"
    assert cure in store.fsck().out and "`" not in store.fsck().out
    assert store.fsck().out.splitlines()[-1].endswith("lost or ambiguous, but 1 warning(s) stand; see them above")
    said = store.fsck("--repair").out.splitlines()
    assert said[0].endswith("(mended)") and said[1:] == [f"{store.root}: sound now, 1 finding(s) mended"]
    assert store.fsck().out == f"{store.root}: sound\n"
    half.mkdir()
    (store.data / "f").unlink()
    said = store.fsck("--repair").out.splitlines()
    assert said[-1].endswith("ambiguous, 1 finding(s) mended, but 1 warning(s) stand; see them above")
    half.mkdir()
    lost = next((store.base / "targets").rglob("*.data"))
    kept = lost.rename(store.base / "kept")
    assert "stand; see them above, --repair mends what it can" in stripewise("store", "fsck", store.root, code=1).err
    told = stripewise("store", "fsck", store.root, "--repair", code=1).err
    assert "stand, 1 finding(s) mended; see them above, --repair cannot mend them" in told
    kept.rename(lost)
