"""The MPI workload: every pattern at 1, 4 and 16 processes, collective and not, data sieving as it is, on, off."""

from __future__ import annotations

import pytest
from rig import SOAK, Maker, Store, is_managed, mpiio_command, parse_mpiio

PATTERNS = ("sequential", "interleaved", "strided", "random", "zipf", "nested", "tiles")
#: Those whose requests are several pieces, so that sieving matters.
IN_PIECES = ("strided", "nested", "tiles")
SIEVING = {
    "as it is": (),
    "on": ("--hint", "romio_ds_read=enable", "--hint", "romio_ds_write=enable"),
    "off": ("--hint", "romio_ds_read=disable", "--hint", "romio_ds_write=disable"),
}
TWO_PHASE = ("--hint", "romio_cb_read=enable", "--hint", "romio_cb_write=enable")
#: 48 KiB requests cross stripes of 64 KiB, 1 MiB regions and each other's pages.
SIZES = ("--file-size", "4MiB", "--request-size", "48KiB", "--region-size", "480KiB", "--pieces", "4")
LARGE = ("--file-size", "64MiB", "--request-size", "192KiB", "--region-size", "1536KiB", "--pieces", "6")


def one(store: Store, processes: int, name: str, *options: str) -> None:
    file = store.data / name
    sizes = LARGE if SOAK else (*SIZES, "--requests", "4")
    said = parse_mpiio(
        store.program(*mpiio_command(processes, file, *sizes, *options, "--phases", "fill,write,read,check"))
    )
    assert is_managed(file)
    assert int(str(said["verified_bytes"])) > int(str(said["file_bytes"]))


@pytest.mark.parametrize("collective", [False, True], ids=["independent", "collective"])
@pytest.mark.parametrize("processes", [1, 4, 16])
def test_every_pattern_reads_back_what_it_wrote(make_store: Maker, processes: int, collective: bool) -> None:
    store = make_store(layout="uneven" if collective else "striped")
    for pattern in PATTERNS:
        for sieving, hints in SIEVING.items():
            two_phase = collective and sieving == "on"
            # How ROMIO sieves concerns requests in pieces, and not how many processes make them; two phases do.
            told = pattern in IN_PIECES and (processes <= 4 or two_phase)
            if sieving != "as it is" and not told and not SOAK:
                continue
            words = [
                *hints,
                *(TWO_PHASE if two_phase else ()),
                *(("--collective",) if collective else ()),
            ]
            one(store, processes, f"{pattern}-{sieving.replace(' ', '-')}.dat", "--pattern", pattern, *words)


@pytest.mark.parametrize("layout", ["one", "emulated"])
def test_patterns_hold_on_other_layouts(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    for pattern in ("zipf", "nested"):
        one(store, 4, f"{pattern}.dat", "--pattern", pattern)


def test_requests_of_odd_sizes_read_back(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    for pattern in ("interleaved", "strided", "random"):
        words = ["--pattern", pattern, "--file-size", "1000003", "--request-size", "30003", "--pieces", "3"]
        parse_mpiio(
            store.program(*mpiio_command(3, store.data / f"{pattern}.dat", *words, "--phases", "fill,write,read,check"))
        )


def test_a_second_run_verifies_what_the_first_left(make_store: Maker) -> None:
    store = make_store(layout="striped")
    words = ["--pattern", "zipf", *SIZES, "--requests", "8", "--if-missing-fill"]
    first = parse_mpiio(store.run(*mpiio_command(4, store.data / "f", *words)))
    second = parse_mpiio(
        store.run(*mpiio_command(2, store.data / "f", *words, "--seed", "2", "--phases", "fill,write,read,check"))
    )
    assert first["filled"] and not second["filled"]


def test_atomic_mode_and_deletion_work(make_store: Maker) -> None:
    store = make_store(layout="striped")
    words = ["--pattern", "strided", *SIZES, "--requests", "4", "--atomic", "--fsync", "--delete"]
    parse_mpiio(store.program(*mpiio_command(4, store.data / "f", *words)))
    assert not (store.data / "f").is_symlink()
    assert store.files() == []


def test_the_same_patterns_hold_on_unmanaged_files(make_store: Maker) -> None:
    store = make_store(layout="striped")
    for pattern in PATTERNS:
        for words in ((), ("--collective",)):
            file = store.plain / f"{pattern}.dat"
            parse_mpiio(
                store.program(
                    *mpiio_command(
                        4,
                        file,
                        *SIZES,
                        "--requests",
                        "4",
                        "--pattern",
                        pattern,
                        *words,
                        "--phases",
                        "fill,write,read,check",
                    )
                )
            )
            assert not file.is_symlink()
    assert store.files() == []


def test_a_wrong_byte_is_found(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    parse_mpiio(store.program(*mpiio_command(2, file, *SIZES)))
    store.program("dd", f"if={file}", f"of={file}", "bs=4096", "skip=3", "seek=200", "count=1", "conv=notrunc")
    found = store.program(*mpiio_command(2, file, *SIZES, "--phases", "check"), code=1)
    assert "at offset 819200 expected" in found.err and "the content of offset 12288" in found.err, found.report
