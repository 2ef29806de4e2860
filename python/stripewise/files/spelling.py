"""Paths whose bytes are not UTF-8, as text: in Python as surrogates, which lead to the file; in traces and plans, which
are UTF-8, each such byte as `\\xNN` (docs/formats.md, Trace Parquet and plan.json).
"""

from __future__ import annotations

import os
import re

_SPELLED = re.compile(rb"\\x([89a-f][0-9a-f])")


def is_byte(char: str) -> bool:
    """Whether it stands for a byte that is not UTF-8."""
    return "\udc80" <= char <= "\udcff"


def spelled(path: str) -> str:
    """A path of this machine as traces and plans have it."""
    return "".join(f"\\x{ord(char) - 0xDC00:02x}" if is_byte(char) else char for char in path)


def unspelled(text: str) -> str:
    """The path that traces spell as `text`, with surrogates; `text` itself where no byte needed spelling."""
    if "\\x" not in text:
        return text
    # Half a surrogate pair, which no path has, stays as it is.
    data = text.encode("utf-8", "surrogatepass")
    path = _SPELLED.sub(lambda found: bytes.fromhex(found[1].decode()), data).decode("utf-8", "surrogateescape")
    # Bytes that together are UTF-8 are never spelled: such a text is a name with backslashes.
    return path if spelled(path) == text else text


def path_meant(text: str) -> str:
    """The path on this machine that a trace or plan means: a file whose name has the backslashes themselves comes
    first.
    """
    return text if os.path.lexists(text) else unspelled(text)
