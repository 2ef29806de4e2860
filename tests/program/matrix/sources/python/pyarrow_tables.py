"""Parquet, Feather, IPC stream, CSV, dataset; memory_map read."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

S = os.environ["S"]
T = os.environ["T"]
LARGE = os.path.getsize(S + "/random") // 1_500_000
rng = np.random.default_rng(7)


t = pa.table(
    {
        "i": np.arange(50_000 * LARGE),
        "x": rng.random(50_000 * LARGE),
        "s": [f"word {k % 77}" for k in range(50_000 * LARGE)],
    }
)
pa.parquet.write_table(t, "t.parquet", row_group_size=7000)
print(
    pa.parquet.read_table("t.parquet").equals(t),
    pa.parquet.ParquetFile("t.parquet").num_row_groups,
    pa.parquet.read_table("t.parquet", columns=["s"], filters=[("i", "<", 99)]).num_rows,
)
print(pa.parquet.read_table("t.parquet", memory_map=True).equals(t))
pa.feather.write_feather(t, "t.feather", compression="uncompressed")
print(
    pa.feather.read_table("t.feather", memory_map=True).equals(t),
    pa.feather.read_table("t.feather", memory_map=False).equals(t),
)
with pa.OSFile("s.arrow", "wb") as f, pa.ipc.new_stream(f, t.schema) as w:
    w.write_table(t)
with pa.memory_map("s.arrow") as f:
    print(pa.ipc.open_stream(f).read_all().equals(t))
pa.csv.write_csv(t, "t.csv")
print(pa.csv.read_csv("t.csv").num_rows)
pa.dataset.write_dataset(t.slice(0, 5000), "d", format="parquet", partitioning=["s"], partitioning_flavor="hive")
d = pa.dataset.dataset("d", partitioning="hive")
print(d.count_rows(), len(d.files))
