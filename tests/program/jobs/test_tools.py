"""Programs as they are: dd, cat, head, and HDF5 through h5py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rig import BIN, Maker, Store, is_managed

H5 = """
import sys, h5py, numpy
path = sys.argv[1]
rng = numpy.random.default_rng(7)
whole = rng.integers(0, 2**40, (300, 257))
with h5py.File(path, "w") as f:
    f["plain"] = whole
    f.create_dataset("chunked", data=whole, chunks=(17, 32), compression="gzip", shuffle=True)
    grown = f.create_dataset("grown", (0, 257), maxshape=(None, 257), chunks=(8, 257), dtype="f8")
    for k in range(20):
        grown.resize((k + 1) * 11, axis=0)
        grown[k * 11:] = whole[:11] * k
    f.attrs["title"] = "attributes"
with h5py.File(path, "r+") as f:
    f["plain"][10:20, 5:7] = -1
    del f["chunked"]
    f["again"] = whole[::3]
whole[10:20, 5:7] = -1
with h5py.File(path, "r") as f:
    assert (f["plain"][...] == whole).all()
    rng = numpy.random.default_rng(7)
    first = rng.integers(0, 2**40, (300, 257))
    assert (f["again"][...] == first[::3]).all()
    for k in range(20):
        assert (f["grown"][k * 11:(k + 1) * 11] == first[:11] * k).all()
    assert f.attrs["title"] == "attributes"
print("h5py ok")
"""


@pytest.fixture(params=["data", "plain"])
def place(request: pytest.FixtureRequest) -> str:
    """Managed and unmanaged: the same must come out."""
    return str(request.param)


def test_hdf5_files_read_back(make_store: Maker, place: str) -> None:
    store = make_store(layout="uneven")
    file = getattr(store, place) / "f.h5"
    assert "h5py ok" in store.run(BIN / "python", "-c", H5, file).out
    assert is_managed(file) == (place == "data")


def fill(store: Store, file: Path, size: int) -> bytes:
    """Write random bytes through dd."""
    content = os.urandom(size)
    source = store.base / "source"
    source.write_bytes(content)
    store.program("dd", f"if={source}", f"of={file}", "bs=100001")
    return content


def read(store: Store, *command: str | Path) -> bytes:
    """Standard output of a program, by way of a plain file."""
    sink = store.base / "sink"
    words = " ".join(f"'{word}'" for word in command)
    store.program("sh", "-c", f"{words} > '{sink}'")
    return sink.read_bytes()


def test_dd_cat_and_head_see_the_bytes(make_store: Maker, place: str) -> None:
    store = make_store(layout="uneven")
    file = getattr(store, place) / "f"
    content = fill(store, file, 1_500_007)
    assert read(store, "cat", file) == content
    assert read(store, "head", "-c", "70001", file) == content[:70001]
    assert read(store, "tail", "-c", "5001", file) == content[-5001:]
    assert read(store, "dd", f"if={file}", "bs=65537", "skip=3", "count=2") == content[3 * 65537 : 5 * 65537]
    store.program("dd", f"if={file}", f"of={file}.copy", "bs=33000")
    assert read(store, "cat", Path(f"{file}.copy")) == content
    store.program("dd", "if=/dev/zero", f"of={file}", "bs=1000", "seek=77", "count=3", "conv=notrunc")
    changed = content[:77000] + bytes(3000) + content[80000:]
    assert read(store, "cat", file) == changed


def test_the_shell_redirects_into_and_out_of_managed_files(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    # dd and the shell's own echo write; what goes through streams is in test_stdio.py.
    store.program("sh", "-c", f"dd if=/dev/zero bs=1000 count=200 > '{file}'; echo last >> '{file}'")
    assert read(store, "sh", "-c", f"dd bs=4096 < {file}") == bytes(200_000) + b"last\n"


def test_python_reads_seeks_and_truncates(make_store: Maker, place: str) -> None:
    store = make_store(layout="striped")
    file = getattr(store, place) / "f"
    program = (
        "import sys, os\n"
        "with open(sys.argv[1], 'w+b') as f:\n"
        "    f.write(bytes(range(256)) * 4096); f.flush(); f.seek(300000)\n"
        "    assert f.read(4) == bytes(range(224, 228))\n"
        "    f.truncate(70000); assert os.fstat(f.fileno()).st_size == 70000 and f.seek(0, 2) == 70000\n"
        "assert os.path.getsize(sys.argv[1]) == 70000 and os.path.isfile(sys.argv[1])\n"
        "os.rename(sys.argv[1], sys.argv[1] + 'x')\n"
        "assert open(sys.argv[1] + 'x', 'rb').read() == (bytes(range(256)) * 300)[:70000]\n"
        "os.unlink(sys.argv[1] + 'x'); assert not os.path.exists(sys.argv[1] + 'x')\n"
    )
    store.run(BIN / "python", "-c", program, file)


def test_a_directory_listing_shows_files_and_sizes(make_store: Maker) -> None:
    store = make_store(layout="striped")
    fill(store, store.data / "f", 123_457)
    assert "123457" in store.program("stat", "-c", "%s %F", store.data / "f").out
    assert store.files()[0]["size"] == 123_457


def test_exit_status_and_signals_are_the_program_s(make_store: Maker) -> None:
    store = make_store(layout="one")
    store.run("sh", "-c", "exit 7", code=7)
    store.run("sh", "-c", "kill -TERM $$", code=143)
    store.run(sys.executable, "-c", "raise SystemExit(3)", code=3)


def test_without_the_library_a_managed_file_is_no_file(make_store: Maker) -> None:
    store = make_store(layout="striped")
    fill(store, store.data / "f", 5000)
    with pytest.raises(FileNotFoundError):
        (store.data / "f").read_bytes()
    with pytest.raises(FileExistsError):
        os.close(os.open(store.data / "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
