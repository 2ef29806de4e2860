"""One writer and a reader at once (SWMR)."""

import os
import subprocess
import sys

import h5py

S = os.environ["S"]
T = os.environ["T"]


f = h5py.File("s.h5", "w", libver="latest")
d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(1000,))
f.swmr_mode = True
reader = """
import h5py
d = h5py.File("s.h5", "r", swmr=True, libver="latest")["d"]
d.refresh()
print(d.shape, d[...].sum())
"""
for k in range(3):
    d.resize(((k + 1) * 5000,))
    d[k * 5000 :] = k
    d.flush()
    done = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True)
    print(done.stdout, done.returncode)
