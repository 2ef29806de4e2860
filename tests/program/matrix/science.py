"""numpy, HDF5 and Parquet through Python."""

from __future__ import annotations

from .case import Case, Refusal


def script(name: str, module: str, job: str, text: str, more: tuple[str, ...] = (), **options: object) -> Case:
    """A Python script around one module; LARGE grows with the inputs."""
    header = "import os, sys, hashlib\nimport numpy as np\nS = os.environ['S']; T = os.environ['T']\n"
    header += "LARGE = os.path.getsize(S + '/random') // 1_500_000\nrng = np.random.default_rng(7)\n"
    needs = (f"python:{module}", *more)
    return Case(name=name, job=job, needs=needs, python=True, script=header + text, **options)  # type: ignore[arg-type]


CASES = [
    script(
        "numpy",
        "numpy",
        "tofile, fromfile with offset, save, load, savez, savetxt, loadtxt, into open files",
        """
a = rng.random((300 * LARGE, 257)); a.tofile("raw"); print((np.fromfile("raw").reshape(a.shape) == a).all(), np.fromfile("raw", count=5, offset=80000).sum() == a.ravel()[10000:10005].sum())
with open("mixed", "w+b") as f:
    f.write(b"head"); a[:50].tofile(f); f.write(b"tail"); print(f.tell()); f.seek(4); print((np.fromfile(f, count=50 * 257) == a[:50].ravel()).all(), f.tell(), f.read())
np.save("n.npy", a); print((np.load("n.npy") == a).all()); np.savez("z.npz", a=a[:9], b=np.arange(9)); z = np.load("z.npz"); print(sorted(z.files), z["b"].sum()); np.savez_compressed("c.npz", a=a[:9])
np.savetxt("t", a[:20]); print(np.allclose(np.loadtxt("t"), a[:20]), np.genfromtxt("t").shape); a[:5].tofile("text", sep=" "); print(np.fromfile("text", sep=" ").size)
with open("two", "wb") as f: np.save(f, a[:3]); np.save(f, a[3:7])
with open("two", "rb") as f: print(np.load(f).shape, np.load(f).shape)
""",
        volatile=("*.npz",),
    ),
    script(
        "numpy-memmap",
        "numpy",
        "memmap and load with mmap_mode r and c",
        """
a = rng.random((200 * LARGE, 257)); a.tofile("raw"); np.save("n.npy", a)
m = np.memmap("raw", mode="r", shape=a.shape); print((m == a).all(), m[57, 3] == a[57, 3], m[::7, ::5].sum() == a[::7, ::5].sum())
m = np.memmap("raw", mode="c", shape=a.shape, offset=0); m[3] = 0; print(m[3].sum(), np.fromfile("raw", count=257, offset=3 * 257 * 8).sum() == a[3].sum())
m = np.load("n.npy", mmap_mode="r"); print((m == a).all(), m[-1, -1] == a[-1, -1]); m = np.memmap("raw", mode="r", offset=8 * 257 * 11); print(m.size, m[0] == a[11, 0])
""",
    ),
    script(
        "numpy-memmap-write",
        "numpy",
        "memmap with modes r+ and w+",
        'np.zeros(9999).tofile("raw"); m = np.memmap("raw", dtype="f8", mode="r+"); m[7] = 1; m.flush()',
        refused=Refusal("No such device|Permission denied", "shared writable maps"),
    ),
    script(
        "h5py",
        "h5py",
        "contiguous, chunked, compressed, resizable, deleted datasets; drivers sec2, stdio, core, split; SWMR off",
        """
import h5py
a = rng.integers(0, 2**40, (300 * LARGE, 257))
for driver in ("sec2", "stdio", "core"):
    with h5py.File(f"{driver}.h5", "w", driver=driver, track_order=True) as f:
        f["plain"] = a; f.create_dataset("chunked", data=a, chunks=(17, 32), compression="gzip", shuffle=True); grown = f.create_dataset("grown", (0, 257), maxshape=(None, 257), chunks=(8, 257)); f.attrs["title"] = "attributes"
        for k in range(9): grown.resize((k + 1) * 11, axis=0); grown[k * 11:] = a[:11] * k
    with h5py.File(f"{driver}.h5", "r+", driver=driver) as f: f["plain"][10:20, 5:7] = -1; del f["chunked"]; f["again"] = a[::3]; f.flush()
    with h5py.File(f"{driver}.h5", "r", driver=driver) as f: print(driver, sorted(f), hashlib.md5(f["plain"][...]).hexdigest(), (f["again"][...] == a[::3]).all(), f["grown"][...].sum(), f.attrs["title"], f["plain"][::31, 200:].sum())
with open("sec2.h5", "rb") as raw, h5py.File(raw, "r") as f: print(f["plain"].shape)
with h5py.File("ext.h5", "w") as f: f.create_dataset("e", (1000,), dtype="f8", external=[("ext.raw", 0, 8000)])[...] = np.arange(1000.0); f["link"] = h5py.ExternalLink("sec2.h5", "plain"); print(f["link"].shape)
print(np.fromfile("ext.raw").sum(), h5py.is_hdf5("ext.h5"))
try: h5py.File("none.h5", "r")
except FileNotFoundError: print("not found")
with h5py.File("lock.h5", "w") as f:
    try: h5py.File("lock.h5", "w")
    except OSError as error: print("already open")
""",
        volatile=("*.h5",),
    ),
    script(
        "h5py-swmr",
        "h5py",
        "one writer and a reader at once (SWMR)",
        """
import h5py, subprocess
f = h5py.File("s.h5", "w", libver="latest"); d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(1000,)); f.swmr_mode = True
reader = "import h5py; f = h5py.File('s.h5', 'r', swmr=True, libver='latest'); d = f['d']; d.refresh(); print(d.shape, d[...].sum())"
for k in range(3):
    d.resize(((k + 1) * 5000,)); d[k * 5000:] = k; d.flush()
    done = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True); print(done.stdout, done.returncode)
""",
        volatile=("*.h5",),
    ),
    script(
        "pyarrow",
        "pyarrow",
        "Parquet, Feather, IPC stream, CSV, dataset; memory_map read",
        """
import pyarrow as pa, pyarrow.csv, pyarrow.dataset, pyarrow.feather, pyarrow.parquet
t = pa.table({"i": np.arange(50_000 * LARGE), "x": rng.random(50_000 * LARGE), "s": [f"word {k % 77}" for k in range(50_000 * LARGE)]})
pa.parquet.write_table(t, "t.parquet", row_group_size=7000); print(pa.parquet.read_table("t.parquet").equals(t), pa.parquet.ParquetFile("t.parquet").num_row_groups, pa.parquet.read_table("t.parquet", columns=["s"], filters=[("i", "<", 99)]).num_rows)
print(pa.parquet.read_table("t.parquet", memory_map=True).equals(t)); pa.feather.write_feather(t, "t.feather", compression="uncompressed"); print(pa.feather.read_table("t.feather", memory_map=True).equals(t), pa.feather.read_table("t.feather", memory_map=False).equals(t))
with pa.OSFile("s.arrow", "wb") as f, pa.ipc.new_stream(f, t.schema) as w: w.write_table(t)
with pa.memory_map("s.arrow") as f: print(pa.ipc.open_stream(f).read_all().equals(t))
pa.csv.write_csv(t, "t.csv"); print(pa.csv.read_csv("t.csv").num_rows); pa.dataset.write_dataset(t.slice(0, 5000), "d", format="parquet", partitioning=["s"], partitioning_flavor="hive"); d = pa.dataset.dataset("d", partitioning="hive"); print(d.count_rows(), len(d.files))
""",
    ),
    script(
        "pandas",
        "pandas",
        "Parquet, CSV, pickle, HDF-free: write, read, append, compressed",
        """
import pandas as pd
d = pd.DataFrame({"i": np.arange(9000 * LARGE), "x": rng.random(9000 * LARGE), "s": [f"w{k % 13}" for k in range(9000 * LARGE)]})
d.to_parquet("d.parquet"); print(pd.read_parquet("d.parquet").equals(d)); d.to_csv("d.csv", index=False); d[:5].to_csv("d.csv", mode="a", header=False, index=False); print(len(pd.read_csv("d.csv")), len(pd.read_csv("d.csv", memory_map=True)), sum(len(c) for c in pd.read_csv("d.csv", chunksize=1000)))
d.to_pickle("d.pkl"); print(pd.read_pickle("d.pkl").equals(d)); d.to_csv("d.csv.gz"); print(pd.read_csv("d.csv.gz").shape); d.to_json("d.json", orient="records", lines=True); print(len(pd.read_json("d.json", lines=True))); d.to_feather("d.feather"); print(pd.read_feather("d.feather").shape)
""",
        more=("python:pyarrow",),
        volatile=("*.gz", "*.parquet", "*.feather", "*.pkl"),
    ),
]
