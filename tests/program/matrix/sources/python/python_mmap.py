"""Mmap read-only: private and shared, sliced, searched, longer than the file's first stripe."""

import hashlib
import mmap
import os
import shutil

S = os.environ["S"]
T = os.environ["T"]


shutil.copyfile(S + "/random", "a")
with open("a", "rb") as f:
    for how in (
        {"access": mmap.ACCESS_READ},
        {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ},
        {"access": mmap.ACCESS_COPY},
    ):
        with mmap.mmap(f.fileno(), 0, **how) as m:
            print(len(m), hashlib.md5(m).hexdigest(), m[70000:70010], m.find(b"\x00\x01"), m.size())
    with mmap.mmap(f.fileno(), 5000, access=mmap.ACCESS_READ, offset=mmap.ALLOCATIONGRANULARITY * 16) as m:
        print(hashlib.md5(m).hexdigest())
    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m:
        m[3:6] = b"abc"
        print(m[:8])
        print(os.pread(f.fileno(), 8, 0))
