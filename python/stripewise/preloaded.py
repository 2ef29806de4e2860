"""The preloaded library from outside: its name, LD_PRELOAD without it, and this very program without it."""

from __future__ import annotations

import os
import sys

LIBRARY = "libstripewise.so"
#: Set to 1 it keeps the library from programs that a process starts.
OFF = "STRIPEWISE_OFF"


def without_library(value: str) -> str:
    """LD_PRELOAD's value without our library."""
    return ":".join(part for part in value.replace(" ", ":").split(":") if part and not part.endswith("/" + LIBRARY))


def unload() -> None:
    """Starts this program anew without the library when it was preloaded into it (a `run` inside a `run`)."""
    value = os.environ.get("LD_PRELOAD", "")
    rest = without_library(value)
    if LIBRARY in value and rest != value:
        environment = dict(os.environ, LD_PRELOAD=rest)
        # Or the library would see to it that it stays.
        environment[OFF] = "1"
        if not rest:
            del environment["LD_PRELOAD"]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
