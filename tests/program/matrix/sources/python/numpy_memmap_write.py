"""memmap with modes r+ and w+, seen by fromfile."""

import numpy as np

np.zeros(99_999).tofile("raw")
m = np.memmap("raw", dtype="f8", mode="r+")
m[7] = 1
m[50_000:60_000] = np.arange(10_000.0)
m.flush()
print(np.fromfile("raw").sum(), m[50_001])
n = np.memmap("new", dtype="i4", mode="w+", shape=(300, 257))
n[:] = np.arange(300 * 257).reshape(300, 257)
del n
print(np.fromfile("new", dtype="i4").sum(), np.lib.format.open_memmap("o.npy", mode="w+", shape=(9, 9)).shape)
print(np.load("o.npy").sum())
