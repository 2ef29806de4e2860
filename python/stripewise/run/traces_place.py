"""Where the traces of a tune's runs go: a directory that is kept, or one for this while."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: What a collected trace's directory has behind the name of its run's.
COLLECTED = "-collected"


@contextlib.contextmanager
def place_of_traces(uuid: str, keep: Path | None) -> Iterator[Path]:
    """The directory `keep`, empty again where a tune ends before any of its runs; else one that is removed afterwards,
    with those of killed tunes of the store with this `uuid`.
    """
    if keep is not None:
        try:
            yield keep
        except BaseException:
            with contextlib.suppress(OSError):
                if not any(each.name.endswith(COLLECTED) for each in keep.iterdir()):
                    for each in keep.iterdir():
                        shutil.rmtree(each)
            raise
        return
    prefix = f"stripewise-tune-{uuid.replace('-', '')[:16]}-"
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            found = left.lstat()
            if found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode):
                shutil.rmtree(left)
    place = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
