"""One move of one file, for the stepper: `move_once.py STORE FILE-ID LAYOUT`, with SIGUSR1 before it and after it.

LAYOUT is JSON with target numbers, or a seed for any layout.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from churn import Churn

from stripewise import _stripewise as native

#: A writer that is faster than the copy may make a move give up; that is for the caller to try again.
TRIES = 5


def main() -> None:
    """The command line."""
    store, identity, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    churn = Churn(store, given if isinstance(given, int) else 0, [])
    size = max((int(file["size"]) for file in json.loads(native.store_files(str(store)))["files"]), default=0)
    layout = churn.layout(size) if isinstance(given, int) else given
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(TRIES):
        if churn.apply(identity, layout):
            break
    os.kill(os.getpid(), signal.SIGUSR1)


if __name__ == "__main__":
    main()
