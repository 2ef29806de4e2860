"""Like iPic3D's output: every process appends its particles and fields to an HDF5 file of its own, cycle after cycle.

Serial HDF5 by h5py, as there is no parallel one in the Python packages: `PROGRAM DIRECTORY [--steps N] [--count N]
[--compute S] [--spin]`; a step writes six columns of `count` particles, every second one three fields as well. In the
end each process reads its last particles back and compares them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

COLUMNS = ("x", "y", "z", "u", "v", "w")
FIELDS = ("Ex", "Ey", "Ez")
FIELD_SHAPE = (16, 16, 16)


def compute(given: argparse.Namespace, generator: np.random.Generator) -> None:
    """The time between two cycles, within a tenth of what was asked for."""
    until = time.monotonic() + given.compute * generator.uniform(0.9, 1.1)
    while (left := until - time.monotonic()) > 0:
        if not given.spin:
            time.sleep(left)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--compute", type=float, default=0.5)
    parser.add_argument("--spin", action="store_true")
    given = parser.parse_args()
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    generator = np.random.default_rng(rank)
    path = given.directory / f"restart{rank}.hdf"
    wrong = 0
    world.Barrier()
    for step in range(given.steps):
        compute(given, generator)
        # Closed after each cycle, as a dump that must survive the next one is.
        with h5py.File(path, "a" if step else "w") as file:
            for number, name in enumerate(COLUMNS):
                file[f"particles/species_0/{name}/cycle_{step}"] = np.arange(given.count) + float(number + step)
            if step % 2 == 0:
                for name in FIELDS:
                    file[f"fields/{name}/cycle_{step}"] = np.full(FIELD_SHAPE, float(step))
    with h5py.File(path, "r") as file:
        for number, name in enumerate(COLUMNS):
            found = file[f"particles/species_0/{name}/cycle_{given.steps - 1}"][:]
            wrong += 8 * int((found != np.arange(given.count) + float(number + given.steps - 1)).sum())
    errors = world.allreduce(wrong)
    checked = world.allreduce(8 * given.count * len(COLUMNS))
    if rank == 0:
        said = {"program": "particles", "processes": world.Get_size(), "verified_bytes": checked, "errors": errors}
        print(json.dumps(said))
    return errors != 0


if __name__ == "__main__":
    sys.exit(main())
