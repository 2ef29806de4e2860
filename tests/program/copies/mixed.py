"""Reads and changes its own part of a file and of a plain twin, which must be the same to it, for some seconds.

usage: mixed.py FILE TWIN RANK PROCESSES SECONDS SEED

The parts are chunks of 10,007 bytes, dealt out in turn, so that processes share each block of 4 KiB. The first process
also has all behind SIZE, which it cuts and lets grow.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import sys
import time

CHUNK, SIZE, TAIL = 10_007, 2_000_000, 300_000
PUNCH, KEEP_SIZE, ZERO_RANGE = 2, 1, 16
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


class Pair:
    """The file, and its twin."""

    def __init__(self, paths: list[str], chance: random.Random) -> None:
        self.fds, self.chance = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths], chance

    def write(self, at: int, count: int) -> None:
        data = self.chance.randbytes(count)
        for fd in self.fds:
            assert os.pwrite(fd, data, at) == count

    def write_by_map(self, at: int, count: int) -> None:
        data, start = self.chance.randbytes(count), at // mmap.PAGESIZE * mmap.PAGESIZE
        for fd in self.fds:
            with mmap.mmap(fd, at + count - start, offset=start) as view:
                view[at - start : at - start + count] = data

    def clear(self, at: int, count: int) -> None:
        mode = self.chance.choice([PUNCH | KEEP_SIZE, ZERO_RANGE | KEEP_SIZE])
        for fd in self.fds:
            if libc.fallocate(fd, mode, at, count):
                raise OSError(ctypes.get_errno(), "fallocate")

    def cut(self, size: int) -> None:
        for fd in self.fds:
            os.ftruncate(fd, size)

    def compare(self, at: int, count: int) -> None:
        found, wanted = (os.pread(fd, count, at) for fd in self.fds)
        if found != wanted:
            first = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), -1)
            sys.exit(f"{len(found)} and {len(wanted)} bytes from {at} on; they differ from byte {at + first} on")


def main(file: str, twin: str, rank: int, processes: int, seconds: float, seed: int) -> None:
    chance = random.Random(seed * 1000 + rank)
    pair, end, count = Pair([file, twin], chance), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number = chance.randrange(rank, SIZE // CHUNK, processes)
        at, room = number * CHUNK, CHUNK
        if rank == 0 and chance.random() < 0.1:
            at, room = SIZE, TAIL
        at += chance.randrange(room)
        length = min(chance.choice([1, 100, 5000, room]), room - (at - SIZE if at >= SIZE else at % CHUNK))
        what = chance.random()
        if what < 0.7:
            pair.compare(at, length)
        elif what < 0.98 or at >= SIZE:
            if at >= SIZE and what > 0.9:
                pair.cut(at)
            else:
                pair.write(at, length)
        elif what < 0.99:
            pair.clear(at, length)
        elif what > 0.9999:
            pair.write_by_map(at, length)
        count += 1
    for number in range(rank, SIZE // CHUNK, processes):
        pair.compare(number * CHUNK, CHUNK)
    print(count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
