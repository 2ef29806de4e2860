"""Mmap shared and writable."""

import mmap
import os
import shutil

S = os.environ["S"]
T = os.environ["T"]


shutil.copyfile(S + "/text", "a")
with open("a", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[5:9] = b"0000"
    m.flush()
