"""Memmap with modes r+ and w+."""

import os

import numpy as np

S = os.environ["S"]
T = os.environ["T"]
np.zeros(9999).tofile("raw")
m = np.memmap("raw", dtype="f8", mode="r+")
m[7] = 1
m.flush()
