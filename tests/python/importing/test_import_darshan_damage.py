"""Darshan logs that were damaged by chance, in their bytes and in their records: read, or one error."""

from __future__ import annotations

import faulthandler
import os
import random
import traceback
from pathlib import Path

import numpy as np
import pytest
from darshan_log import Writer

from imports import SOAK, mutated
from stripewise.errors import WorkloadError
from stripewise.importing.darshan import parent
from stripewise.importing.darshan.child import serve
from stripewise.importing.darshan.library import Library
from stripewise.importing.darshan.reader import read_darshan
from stripewise.importing.formats import import_trace
from stripewise.importing.records import NUMBER_MAX, Names, Notes
from test_import_darshan import EXAMPLES, segments, whole

COUNT = 10_000 if SOAK else 100
#: Examples that are small enough to read thousands of times.
SMALL = [path for path in EXAMPLES if path.stat().st_size < 12_000 and not path.stem.startswith("noposix")]
#: Of a log, the part that is not compressed: where its modules lie.
HEADER_BYTES = 1200
#: Address space of a fork of this process, which has pyarrow's.
FORK_BYTES = 16 << 30


class Forked:
    """A child without the start of an interpreter: this process forked, with the library loaded. Else as `Child`."""

    def __init__(self, library: Library, path: Path, said) -> None:
        self.output, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            # The library's crashes are what is looked for: nobody needs their tracebacks.
            faulthandler.disable()
            try:
                os.dup2(said.fileno(), 2)
                with os.fdopen(writing, "wb") as stream:
                    serve(lambda: library, str(path), stream, FORK_BYTES, 20)
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            os._exit(0)
        os.close(writing)
        self._status: int | None = None

    def kill(self) -> None:
        if self._status is None:
            os.kill(self._pid, 9)

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            os.close(self.output)
        return self._status


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer()


@pytest.fixture
def forked(writer, monkeypatch):
    monkeypatch.setattr(parent, "start", lambda path, said: Forked(writer.library, path, said))


def read_or_refused(path: Path, is_lenient: bool) -> bool:
    """Whether the log was read; where it was not, the error is one line with its name."""
    try:
        for batch in read_darshan([path], Names(path.parent), Notes(is_lenient)):
            rows = batch.rows
            assert (rows["end_ns"] >= rows["start_ns"]).all() and (rows["done"] >= 0).all()
            assert (rows["offset"] >= 0).all() and (rows["offset"] < NUMBER_MAX).all()
    except WorkloadError as error:
        said = str(error)
        assert said.startswith(f"{path}: ") and "\n" not in said and "; " in said, said
        return False
    return True


def test_a_log_whose_bytes_changed_is_read_or_refused(tmp_path, forked):
    chance = random.Random(1)
    read = 0
    for number in range(COUNT):
        data = chance.choice(SMALL).read_bytes()
        until = HEADER_BYTES if number % 2 else len(data)
        data = mutated(data[:until], chance) + data[until:]
        (tmp_path / "a.darshan").write_bytes(data)
        read += read_or_refused(tmp_path / "a.darshan", bool(number % 3))
    assert 0 < read < COUNT


def changed(record: bytes, chance: random.Random) -> bytes:
    """A record with one to three of its words as nobody expects them."""
    words = np.frombuffer(record[: len(record) // 8 * 8], dtype=np.int64).copy()
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(min(len(words), chance.choice((16, len(words)))))
        value = chance.choice((-1, 0, 1, 7, 1 << 20, 1 << 31, 1 << 40, 1 << 62, -(1 << 63), chance.getrandbits(63)))
        words[at] = value
    return words.tobytes()


def test_a_log_whose_records_changed_is_read_or_refused(tmp_path, forked, writer):
    chance = random.Random(2)
    path = tmp_path / "a.darshan"
    read = 0
    for number in range(COUNT):
        posix = writer.counters("POSIX", 5, 0, whole(3, POSIX_READS=4, POSIX_BYTES_READ=99, POSIX_MAX_BYTE_READ=98))
        mpi = writer.counters("MPI-IO", 6, -1, {"MPIIO_COLL_WRITES": 2, "MPIIO_BYTES_WRITTEN": 10})
        stdio = writer.counters("STDIO", 7, 1, {"STDIO_READS": 2, "STDIO_BYTES_READ": 10})
        records = [("POSIX", posix), ("MPI-IO", mpi), ("STDIO", stdio)]
        records += [("DXT_POSIX", writer.segments(5, rank, segments(3), segments(2))) for rank in range(2)]
        records += [("DXT_MPIIO", writer.segments(6, 0, segments(2), segments(0)))]
        at = chance.randrange(len(records))
        records[at] = (records[at][0], changed(records[at][1], chance))
        writer.write(path, {5: "/f", 6: "/g", 7: "<STDOUT>"}, records, processes=2)
        read += read_or_refused(path, bool(number % 2))
    assert 0 < read < COUNT


def test_some_damaged_logs_go_the_whole_way(tmp_path):
    """With a real child and trace.parquet at the end."""
    chance = random.Random(3)
    path = tmp_path / "a.darshan"
    for number in range(100 if SOAK else 6):
        path.write_bytes(mutated(chance.choice(SMALL).read_bytes(), chance))
        try:
            import_trace("darshan", [path], tmp_path / "out", lenient=bool(number % 2))
        except WorkloadError as error:
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
