"""POSIX AIO: requests on managed files end as on plain ones, and so does fio's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rig import LAYOUTS, NATIVE, Maker, Store, is_managed

AIO = NATIVE / "aio"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_requests_and_lists_end_as_on_plain_files(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)

    def transcript(first: Path, second: Path) -> list[str]:
        return store.program(AIO, first / "a", second / "b").out.splitlines()

    plain = transcript(store.plain, store.plain)
    assert len(plain) > 60 and not any("nobody said anything" in line for line in plain)
    for first, second in ((store.data, store.plain), (store.plain, store.data), (store.data, store.data)):
        assert transcript(first, second) == plain, f"{first} and {second}"
    assert is_managed(store.data / "a") and is_managed(store.data / "b")


@pytest.mark.parametrize("engine", ["psync", "pvsync", "pvsync2", "sync", "vsync", "posixaio"])
def test_fio_verifies_what_it_wrote(make_store: Maker, engine: str) -> None:
    if shutil.which("fio") is None:
        pytest.skip("not run: fio is not installed")
    store: Store = make_store(layout="uneven")
    said = store.program(
        "fio",
        "--name=job",
        f"--filename={store.data / 'f'}",
        f"--ioengine={engine}",
        "--rw=randwrite",
        "--bsrange=512-64k",
        "--size=4M",
        "--iodepth=8",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
        "--verify_state_save=0",
        "--fallocate=none",
        "--end_fsync=1",
        "--thread",
    )
    assert is_managed(store.data / "f"), said.report
