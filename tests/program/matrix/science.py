"""numpy, HDF5 and Parquet through Python."""

from __future__ import annotations

from .case import Case


def script(
    name: str,
    source: str,
    needs: tuple[str, ...],
    job: str,
    volatile: tuple[str, ...] = (),
) -> Case:
    """A script of `sources/python/` around the module that `needs` names first."""
    return Case(name=name, job=job, needs=needs, python=source, volatile=volatile)


NUMPY = ("python:numpy",)
H5PY = ("python:h5py", "python:numpy")

CASES = [
    script(
        "numpy", "numpy_arrays.py", NUMPY, "tofile, fromfile, save, load, savez, savetxt, into open files", ("*.npz",)
    ),
    script("numpy-memmap", "numpy_memmap.py", NUMPY, "memmap with modes r and c, load with mmap_mode"),
    script("numpy-memmap-write", "numpy_memmap_write.py", NUMPY, "memmap with modes r+ and w+, seen by fromfile"),
    script(
        "h5py", "h5py_files.py", H5PY, "contiguous, chunked, resizable, external; drivers sec2, stdio, core", ("*.h5",)
    ),
    script("h5py-swmr", "h5py_swmr.py", H5PY, "one writer and a reader at once (SWMR)", ("*.h5",)),
    script("pyarrow", "pyarrow_tables.py", ("python:pyarrow",), "Parquet, Feather, IPC, CSV, dataset, memory_map"),
    script(
        "pandas",
        "pandas_frames.py",
        ("python:pandas", "python:pyarrow"),
        "Parquet, CSV, pickle, JSON, Feather: write, read, append",
        ("*.gz", "*.parquet", "*.feather", "*.pkl"),
    ),
]
