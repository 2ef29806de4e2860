"""What fsck says of many findings: a few of each kind and how many more, never just "sound" where something stands."""

from __future__ import annotations

import json
import shutil

from rig import Maker, stripewise

FILES = 40


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
