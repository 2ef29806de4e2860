"""Checksums of what a file holds: of the managed one, and of its plain copy, whose holes need not be the same."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import threading
from collections.abc import Callable

from ... import native
from ..store import Store

_READ_BYTES = 4 << 20
_BLOCK_BYTES = 64 << 10
_ZEROS = bytes(_BLOCK_BYTES)
#: Before each piece of data: where it is in the file, and how long.
_HEAD = struct.Struct("<QQ")


class _Sum:
    """SHA-256 of a file's blocks that hold anything but zeros, each behind its number, and of its size: a hole and
    zeros are the same. Pieces come by ascending offset; `read` hears how far they have come.
    """

    def __init__(self, read: Callable[[int], None]) -> None:
        self._digest = hashlib.sha256()
        self._read = read
        self._told = 0
        self._number = 0
        self._block = bytearray(_BLOCK_BYTES)

    def add(self, at: int, piece: bytes) -> None:
        """The bytes at an offset."""
        done = 0
        while done < len(piece):
            number, within = divmod(at + done, _BLOCK_BYTES)
            if number != self._number:
                self._flush()
                self._number = number
            part = piece[done : done + _BLOCK_BYTES - within]
            self._block[within : within + len(part)] = part
            done += len(part)
        self._tell(at + done)

    def end(self, size: int) -> str:
        """The sum of a file of so many bytes."""
        self._flush()
        self._tell(size)
        self._digest.update(struct.pack("<Q", size))
        return self._digest.hexdigest()

    def _flush(self) -> None:
        if self._block != _ZEROS:
            self._digest.update(struct.pack("<Q", self._number))
            self._digest.update(self._block)
            self._block[:] = _ZEROS

    def _tell(self, at: int) -> None:
        self._read(at - self._told)
        self._told = at


def sum_of_managed(store: Store, identity: str, read: Callable[[int], None]) -> str:
    """The sum of a managed file; `read` hears of how many bytes more, holes among them."""
    reader, writer = os.pipe()
    failed: list[BaseException] = []
    size = 0

    def pour() -> None:
        nonlocal size
        try:
            size = int(native.call("store_cat", str(store.root), identity, writer, 0, None, False)["size"])
        except BaseException as error:
            failed.append(error)
        finally:
            os.close(writer)

    found = _Sum(read)
    pouring = threading.Thread(target=pour, daemon=True)
    pouring.start()
    try:
        with open(reader, "rb", closefd=False) as pieces:
            while len(head := pieces.read(_HEAD.size)) == _HEAD.size:
                at, length = _HEAD.unpack(head)
                while length and (piece := pieces.read(min(length, _READ_BYTES))):
                    found.add(at, piece)
                    at, length = at + len(piece), length - len(piece)
    finally:
        os.close(reader)
        pouring.join()
    if failed:
        raise failed[0]
    return found.end(size)


def sum_of_plain(path: str, read: Callable[[int], None]) -> tuple[str, os.stat_result]:
    """The sum of a plain file, read from its disk as far as the system lets go of its pages; and its status."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        found, at = _Sum(read), 0
        while (at := _data_from(handle, at)) >= 0:
            end = os.lseek(handle, at, os.SEEK_HOLE)
            while at < end and (piece := os.pread(handle, min(_READ_BYTES, end - at), at)):
                found.add(at, piece)
                at += len(piece)
            at = max(at, end)
        status = os.fstat(handle)
        return found.end(status.st_size), status
    finally:
        os.close(handle)


def _data_from(handle: int, at: int) -> int:
    """Where data begins at or behind an offset; -1 where there is none."""
    try:
        return os.lseek(handle, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return -1
        raise
