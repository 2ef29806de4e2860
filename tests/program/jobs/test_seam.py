"""The seam between what knows layouts and what holds bytes: MPI programs on objects that are no files.

Each target's objects are in the memory of a process of their own, reached over shared memory, done in another order
than asked for, without a descriptor and without a map. The library is one that knows this kind, built for this test.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import LIBRARY, ROOT, Maker, Store, crc32c, execute, is_managed, mpiio_command, parse_mpiio

SEAM = ROOT / "target" / "served"
#: Of store.bin: docs/formats.md.
HEADER_BYTES, TARGET_BYTES, KIND_AT, CHECKSUM_AT = 128, 128, 20, 12
IDENTITY = "stripewise-target"
SERVED = 1000
#: ROMIO reads and writes them in pieces, in holes, and together.
PATTERNS = ("sequential", "interleaved", "strided", "random", "zipf", "nested", "tiles")
SIZES = ("--file-size", "4MiB", "--request-size", "48KiB", "--region-size", "480KiB", "--pieces", "4")


def make_served(store: Store) -> None:
    """Says in store.bin that another process serves each target."""
    path = store.root / "store.bin"
    words = bytearray(path.read_bytes())
    for number in range(len(store.targets)):
        struct.pack_into("<I", words, HEADER_BYTES + number * TARGET_BYTES + KIND_AT, SERVED)
    struct.pack_into("<I", words, CHECKSUM_AT, 0)
    struct.pack_into("<I", words, CHECKSUM_AT, crc32c(bytes(words)))
    path.write_bytes(words)


@contextmanager
def served(store: Store) -> Iterator[dict[str, str]]:
    """The environment of programs while every target of a store is served."""
    # The verbs do not know the kind.
    store.check_at_end = False
    environment = store.environment()
    environment["LD_PRELOAD"] = environment["LD_PRELOAD"].replace(str(LIBRARY), str(SEAM / LIBRARY.name))
    assert str(SEAM) in environment["LD_PRELOAD"]
    make_served(store)
    servers: list[subprocess.Popen[str]] = []
    try:
        for target in store.targets:
            place = store.base / "targets" / target.name
            words = [SEAM / "examples" / "serve", place / "segment", place / IDENTITY]
            servers.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        for server in servers:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
        yield environment
        assert all(server.poll() is None for server in servers)
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def objects(store: Store) -> list[Path]:
    """Files that look like objects."""
    return [path for target in store.targets for path in (store.base / "targets" / target.name).glob("*.data*")]


def test_mpi_programs_run_on_objects_of_other_processes(make_store: Maker) -> None:
    store = make_store(layout="striped")
    with served(store) as environment:
        for pattern in PATTERNS:
            for extra in ((), ("--collective",)):
                file = store.data / f"{pattern}{len(extra)}"
                words = ("--pattern", pattern, *SIZES, "--requests", "4", *extra, "--phases", "fill,write,read,check")
                said = parse_mpiio(execute(mpiio_command(4, file, *words), environment))
                assert is_managed(file)
                assert int(str(said["verified_bytes"])) > int(str(said["file_bytes"]))
        assert objects(store) == []


def test_what_programs_do_to_files_is_done_to_objects_of_other_processes(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    source = store.base / "source"
    source.write_bytes(bytes(range(256)) * 1500)
    script = """
import os, sys
source, managed = sys.argv[1:]
data = open(source, "rb").read()
fd = os.open(managed, os.O_RDWR | os.O_CREAT | os.O_EXCL)
assert os.pwrite(fd, data, 0) == len(data)
assert os.pread(fd, len(data) + 1, 0) == data
os.fsync(fd)
assert os.fstat(fd).st_size == len(data) and os.fstat(fd).st_blocks * 512 >= len(data)
# A hole, a cut, and growing shows zeros.
os.ftruncate(fd, 100_001)
os.ftruncate(fd, 200_000)
assert os.pread(fd, 300_000, 0) == data[:100_001] + bytes(99_999)
os.pwrite(fd, b"end", 1_000_000)
assert os.lseek(fd, 300_000, os.SEEK_DATA) > 300_000 and os.pread(fd, 10, 999_998) == b"\\0\\0end"
vectors = [bytearray(33) for _ in range(300)]
assert os.preadv(fd, vectors, 5) == 9900 and b"".join(vectors) == data[5:9905]
os.close(fd)
os.chmod(managed, 0o600)
os.rename(managed, managed + "2")
assert os.stat(managed + "2").st_size == 1_000_003
os.unlink(managed + "2")
"""
    with served(store) as environment:
        execute(["python3", "-c", script, source, store.data / "f"], environment)
        execute(["cp", source, store.data / "copy"], environment)
        execute(["cmp", source, store.data / "copy"], environment)
        # A map that only reads is a copy; one that is shared for writing there cannot be.
        maps = (
            "import mmap, sys; f = open(sys.argv[1], 'r+b'); n = len(f.read())\n"
            "assert mmap.mmap(f.fileno(), n, flags=mmap.MAP_PRIVATE)[:] == open(sys.argv[2], 'rb').read()\n"
            "try: mmap.mmap(f.fileno(), n)\n"
            "except OSError as e: assert e.errno == 19\n"
            "else: raise SystemExit('mapped')"
        )
        execute(["python3", "-c", maps, store.data / "copy", source], environment)
        assert objects(store) == []


def test_a_target_whose_server_is_gone_is_an_error_and_no_hole(make_store: Maker) -> None:
    store = make_store(layout="striped")
    with served(store) as environment:
        execute(["sh", "-c", f"echo precious > {store.data}/f"], environment)
    for target in store.targets:
        (store.base / "targets" / target.name / "segment").unlink()
    result = execute(["cat", store.data / "f"], environment, code=None)
    assert result.code != 0 and result.out == ""
