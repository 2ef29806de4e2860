"""What slabs.c does, by h5py."""

import sys

import h5py
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 12, 5
rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    table = file.create_dataset("table", (ROWS, COLUMNS * size), dtype="i4")
    mine = slice(COLUMNS * rank, COLUMNS * (rank + 1))
    data = (rank * 1000 + np.arange(ROWS * COLUMNS, dtype="i4")).reshape(ROWS, COLUMNS)
    with table.collective:
        table[:, mine] = data
        back = table[:, mine]
    print(f"rank {rank}: offset {table.id.get_offset()} errors {int((back != data).sum())}", flush=True)
