"""Contiguous, chunked, compressed, resizable, deleted datasets; drivers sec2, stdio, core, split; SWMR off."""

import hashlib
import os

import h5py
import numpy as np

S = os.environ["S"]
T = os.environ["T"]
LARGE = os.path.getsize(S + "/random") // 1_500_000
rng = np.random.default_rng(7)


a = rng.integers(0, 2**40, (300 * LARGE, 257))
for driver in ("sec2", "stdio", "core"):
    with h5py.File(f"{driver}.h5", "w", driver=driver, track_order=True) as f:
        f["plain"] = a
        f.create_dataset("chunked", data=a, chunks=(17, 32), compression="gzip", shuffle=True)
        grown = f.create_dataset("grown", (0, 257), maxshape=(None, 257), chunks=(8, 257))
        f.attrs["title"] = "attributes"
        for k in range(9):
            grown.resize((k + 1) * 11, axis=0)
            grown[k * 11 :] = a[:11] * k
    with h5py.File(f"{driver}.h5", "r+", driver=driver) as f:
        f["plain"][10:20, 5:7] = -1
        del f["chunked"]
        f["again"] = a[::3]
        f.flush()
    with h5py.File(f"{driver}.h5", "r", driver=driver) as f:
        print(
            driver,
            sorted(f),
            hashlib.md5(f["plain"][...]).hexdigest(),
            (f["again"][...] == a[::3]).all(),
            f["grown"][...].sum(),
            f.attrs["title"],
            f["plain"][::31, 200:].sum(),
        )
with open("sec2.h5", "rb") as raw, h5py.File(raw, "r") as f:
    print(f["plain"].shape)
with h5py.File("ext.h5", "w") as f:
    f.create_dataset("e", (1000,), dtype="f8", external=[("ext.raw", 0, 8000)])[...] = np.arange(1000.0)
    f["link"] = h5py.ExternalLink("sec2.h5", "plain")
    print(f["link"].shape)
print(np.fromfile("ext.raw").sum(), h5py.is_hdf5("ext.h5"))
try:
    h5py.File("none.h5", "r")
except FileNotFoundError:
    print("not found")
with h5py.File("lock.h5", "w") as f:
    try:
        h5py.File("lock.h5", "w")
    except OSError:
        print("already open")
