"""The name of the preloaded library, and LD_PRELOAD without it."""

from __future__ import annotations

LIBRARY = "libstripewise.so"


def without_library(value: str) -> str:
    """LD_PRELOAD's value without our library."""
    return ":".join(part for part in value.replace(" ", ":").split(":") if part and not part.endswith("/" + LIBRARY))
