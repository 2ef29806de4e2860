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
