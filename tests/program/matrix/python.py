"""Python's own library on files: open in all modes, shutil, mmap, temporary files, archives, pickles, os."""

from __future__ import annotations

from .case import Case


def script(name: str, job: str, volatile: tuple[str, ...] = ()) -> Case:
    """The script `sources/python/python_<name>.py`."""
    return Case(
        name=f"python-{name.replace('_', '-')}",
        job=job,
        needs=("python3",),
        version='"$PYTHON" --version',
        python=f"python_{name}.py",
        volatile=volatile,
    )


CASES = [
    script("open", "open in all modes, buffered and raw, text, seek, truncate, readinto; pathlib"),
    script("os", "os: pread, pwrite, readv, sendfile, copy_file_range, splice, dup, links, times, scandir, dir_fd"),
    script("xattr", "extended attributes"),
    script("shutil", "shutil, filecmp, glob, fileinput, linecache", volatile=("*.tar",)),
    script("mmap", "mmap read-only: private, shared, copy on write, with an offset"),
    script("mmap_write", "mmap shared and writable: written, flushed, moved, resized, seen by read"),
    script("tempfile", "tempfile: named, unnamed (O_TMPFILE), spooled, directories; atomic replacement"),
    script("archives", "zipfile, tarfile, gzip, bz2, lzma, pickle, json, csv", volatile=("a.zip", "a.tar.gz", "g")),
    script("processes", "subprocess with redirections, pass_fds, multiprocessing, fcntl locks, fork"),
    script("module", "import from the directory and from a zip, py_compile, runpy", volatile=("*.zip", "*.pyc")),
]
