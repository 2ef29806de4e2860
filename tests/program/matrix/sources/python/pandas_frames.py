"""Parquet, CSV, pickle, JSON: write, read, append, compressed."""

import os

import numpy as np
import pandas as pd

S = os.environ["S"]
T = os.environ["T"]
LARGE = os.path.getsize(S + "/random") // 1_500_000
rng = np.random.default_rng(7)


d = pd.DataFrame(
    {"i": np.arange(9000 * LARGE), "x": rng.random(9000 * LARGE), "s": [f"w{k % 13}" for k in range(9000 * LARGE)]}
)
d.to_parquet("d.parquet")
print(pd.read_parquet("d.parquet").equals(d))
d.to_csv("d.csv", index=False)
d[:5].to_csv("d.csv", mode="a", header=False, index=False)
print(
    len(pd.read_csv("d.csv")),
    len(pd.read_csv("d.csv", memory_map=True)),
    sum(len(c) for c in pd.read_csv("d.csv", chunksize=1000)),
)
d.to_pickle("d.pkl")
print(pd.read_pickle("d.pkl").equals(d))
d.to_csv("d.csv.gz")
print(pd.read_csv("d.csv.gz").shape)
d.to_json("d.json", orient="records", lines=True)
print(len(pd.read_json("d.json", lines=True)))
d.to_feather("d.feather")
print(pd.read_feather("d.feather").shape)
