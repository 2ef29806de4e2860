"""`stripewise replicate --watch`: traces as they come, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ...errors import StripewiseError, UsageError
from ...replicas.standing import digest_of, read_standing
from ...store import Store
from ...workload.trace import trace_file
from ..output import printable, say

#: How often the directory is looked at.
WATCH_S = 2.0


def take_up_all(directory: Path, store: Store, take_up: Callable[[Path], None]) -> None:
    """Takes up each collected trace in `directory` that the store has not counted, the oldest first; waits for more.

    Ends by an interrupt alone. Says what is wrong with a trace, and goes on. Raises UsageError for no directory.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: is no directory; with --watch, name the one in which traces appear")
    seen = set(read_standing(store).taken)
    say(f"stripewise: waiting for collected traces in {printable(str(directory))}; end it with Ctrl-C")
    while True:
        for trace in _collected(directory):
            try:
                digest = digest_of(trace_file(trace))
                if digest in seen:
                    continue
                seen.add(digest)
                say(f"stripewise: {printable(str(trace))}: is taken up")
                take_up(trace)
            except (StripewiseError, OSError) as error:
                say(f"stripewise: {printable(str(error))}")
        time.sleep(WATCH_S)


def _collected(directory: Path) -> list[Path]:
    """The traces in it that are collected, the oldest first."""
    found = []
    for path in directory.glob("*/trace.parquet"):
        try:
            found.append((path.stat().st_mtime_ns, path.parent))
        except OSError:
            continue
    return [trace for _, trace in sorted(found)]
