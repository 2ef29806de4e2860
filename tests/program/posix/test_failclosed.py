"""What the library does not carry ends in an error on a managed file: never in zeros or a scribble."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rig import NATIVE, SOURCE_BYTES, Store, execute, holds

FAILCLOSED = NATIVE / "failclosed"
STATIC = NATIVE / "failclosed-static"


def unchanged(store: Store, written: bytes = b"") -> None:
    """The file is what it was but for what was written at its begin, and nobody scribbled on its head."""
    sink = store.base / "sink"
    store.program("dd", f"if={store.data / 'f'}", f"of={sink}", "bs=1M")
    assert sink.read_bytes() == written + (store.base / "source").read_bytes()[len(written) :]
    for head in store.root.glob("files/*/head"):
        assert head.stat().st_size in (0, SOURCE_BYTES) and head.stat().st_blocks == 0, f"{head} holds data"


def test_every_way_works_on_a_plain_file(store: Store) -> None:
    shutil.copy(store.base / "source", store.plain / "f")
    store.program(FAILCLOSED, "--carried", store.plain / "f")
    execute([STATIC, "--carried", store.plain / "f"])


def test_ways_that_the_library_carries_work_and_the_others_fail(store: Store) -> None:
    holds(store.program(FAILCLOSED, "--library", store.data / "f", code=None))
    unchanged(store, written=b"Z" * 16)


def test_a_static_program_finds_no_file(store: Store) -> None:
    said = store.program(STATIC, store.data / "f")
    assert "open: No such file" in said.out, said.report
    unchanged(store)


@pytest.mark.parametrize("redirection", ["<", "<>", ">>"])
def test_a_static_program_gets_errors_on_an_inherited_descriptor(store: Store, redirection: str) -> None:
    result = store.program("sh", "-c", f"{STATIC} --fd 8 8{redirection} {store.data / 'f'}", code=None)
    holds(result)
    assert "ok mmap" in result.out, result.report
    unchanged(store)


def test_programs_without_the_library_find_no_file(store: Store) -> None:
    for command in (
        ["cat", store.data / "f"],
        ["cp", store.data / "f", store.plain / "g"],
        ["md5sum", store.data / "f"],
    ):
        result = execute(command, code=None)
        assert result.code != 0 and "No such file" in result.err, result.report
    unchanged(store)


def test_a_setuid_program_finds_no_file(store: Store) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: making a setuid program needs root")
    program = store.base / "cat"
    shutil.copy("/bin/cat", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    result = execute(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, store.data / "f"],
        store.environment(),
        None,
    )
    assert result.code != 0 and "No such file" in result.err and result.out == "", result.report
    unchanged(store)


def test_copies_of_the_link_are_no_second_writable_file(store: Store) -> None:
    copy = Path(f"{store.data / 'f'}.copy")
    execute(["cp", "-a", store.data / "f", copy])
    result = store.program("sh", "-c", f"echo scribble > {copy}", code=None)
    assert result.code != 0, result.report
    unchanged(store)
    copy.unlink()


def test_removing_a_copy_of_the_link_keeps_the_file(store: Store) -> None:
    copy = Path(f"{store.data / 'f'}.copy")
    execute(["cp", "-a", store.data / "f", copy])
    store.program("rm", copy)
    unchanged(store)


def test_a_descriptor_reopened_by_name_reads_the_file_and_not_its_head(store: Store) -> None:
    source, managed = store.base / "source", store.data / "f"
    store.program("sh", "-c", f"cat /dev/stdin < {managed} | cmp - {source}")
