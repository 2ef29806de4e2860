"""Tofile, fromfile with offset, save, load, savez, savetxt, loadtxt, into open files."""

import os

import numpy as np

S = os.environ["S"]
T = os.environ["T"]
LARGE = os.path.getsize(S + "/random") // 1_500_000
rng = np.random.default_rng(7)

a = rng.random((300 * LARGE, 257))
a.tofile("raw")
print(
    (np.fromfile("raw").reshape(a.shape) == a).all(),
    np.fromfile("raw", count=5, offset=80000).sum() == a.ravel()[10000:10005].sum(),
)
with open("mixed", "w+b") as f:
    f.write(b"head")
    a[:50].tofile(f)
    f.write(b"tail")
    print(f.tell())
    f.seek(4)
    print((np.fromfile(f, count=50 * 257) == a[:50].ravel()).all(), f.tell(), f.read())
np.save("n.npy", a)
print((np.load("n.npy") == a).all())
np.savez("z.npz", a=a[:9], b=np.arange(9))
z = np.load("z.npz")
print(sorted(z.files), z["b"].sum())
np.savez_compressed("c.npz", a=a[:9])
np.savetxt("t", a[:20])
print(np.allclose(np.loadtxt("t"), a[:20]), np.genfromtxt("t").shape)
a[:5].tofile("text", sep=" ")
print(np.fromfile("text", sep=" ").size)
with open("two", "wb") as f:
    np.save(f, a[:3])
    np.save(f, a[3:7])
with open("two", "rb") as f:
    print(np.load(f).shape, np.load(f).shape)
