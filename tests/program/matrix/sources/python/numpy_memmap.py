"""Memmap and load with mmap_mode r and c."""

import os

import numpy as np

S = os.environ["S"]
T = os.environ["T"]
LARGE = os.path.getsize(S + "/random") // 1_500_000
rng = np.random.default_rng(7)

a = rng.random((200 * LARGE, 257))
a.tofile("raw")
np.save("n.npy", a)
m = np.memmap("raw", mode="r", shape=a.shape)
print((m == a).all(), m[57, 3] == a[57, 3], m[::7, ::5].sum() == a[::7, ::5].sum())
m = np.memmap("raw", mode="c", shape=a.shape, offset=0)
m[3] = 0
print(m[3].sum(), np.fromfile("raw", count=257, offset=3 * 257 * 8).sum() == a[3].sum())
m = np.load("n.npy", mmap_mode="r")
print((m == a).all(), m[-1, -1] == a[-1, -1])
m = np.memmap("raw", mode="r", offset=8 * 257 * 11)
print(m.size, m[0] == a[11, 0])
