"""Stores of earlier and later versions.

tests/fixtures/store-version-1.tar.gz was made by the first release: two files on two targets, one moved by a plan.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from rig import ROOT, STRIPEWISE, Store, dirs, execute, stripewise

FIXTURE = ROOT / "tests" / "fixtures" / "store-version-1.tar.gz"
WHERE_IT_WAS = "/mnt/first-release"
CONTENTS = {
    "a": bytes((i * 7 + i // 251) % 256 for i in range(300_001)),
    "b": bytes((i * 11 + i // 253) % 256 for i in range(70_000)),
}


@pytest.fixture
def first_release(scratch: Path) -> Store:
    """The store of the first release, moved to where the test is, as its owner would move it."""
    with tarfile.open(FIXTURE) as archive:
        # Not every Python of this version asks for it.
        archive.extractall(scratch, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
    (scratch / "plain").mkdir()
    config = scratch / "store" / "store.toml"
    config.write_text(config.read_text().replace(WHERE_IT_WAS, str(scratch)))
    stripewise("store", "relink", "--moved", scratch / "store", scratch / "data")
    return Store(scratch, dirs(2))


def test_a_store_of_the_first_release_is_read_checked_and_upgraded(first_release: Store) -> None:
    store = first_release
    for _ in range(2):
        store.fsck()
        for name, content in CONTENTS.items():
            said = subprocess.run([STRIPEWISE, "store", "cat", store.data / name], stdout=subprocess.PIPE, check=True)
            assert said.stdout == content
            store.program("dd", f"if={store.data / name}", f"of={store.base / 'sink'}", "bs=64K")
            assert (store.base / "sink").read_bytes() == content
        assert "2 file(s)" in stripewise("store", "upgrade", store.root).out
    assert sorted(file["path"] for file in store.files()) == [str(store.data / name) for name in CONTENTS]


NEWER = {
    "store.toml": ("store/store.toml", b"version = 1", b"version = 7"),
    "store.bin": ("store/store.bin", b"SWSTORE1\x01", b"SWSTORE1\x07"),
    "layout": ("store/files/*/layout", b"SWLAYOUT\x01", b"SWLAYOUT\x07"),
    "ctl": ("store/files/*/ctl", b"SWCTL001", b"SWCTL007"),
    "target": ("targets/t1/stripewise-target", b"stripewise-target 1", b"stripewise-target 7"),
}


@pytest.mark.parametrize("part", NEWER)
def test_a_newer_part_is_refused_with_one_clear_message_and_left_alone(first_release: Store, part: str) -> None:
    pattern, old, new = NEWER[part]
    path = next(first_release.base.glob(pattern))
    body = path.read_bytes()
    assert old in body
    path.write_bytes(body.replace(old, new, 1))
    changed = path.read_bytes()
    result = execute([STRIPEWISE, "store", "upgrade", first_release.root], code=None)
    lines = result.err.strip().splitlines()
    assert result.code in (1, 2) and len(lines) == 1 and "Traceback" not in result.err, result.report
    assert path.name in lines[0] and ("newer" in lines[0] or "7" in lines[0]), lines[0]
    assert path.read_bytes() == changed
