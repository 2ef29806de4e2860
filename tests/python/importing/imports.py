"""What the tests of foreign traces share: an import from texts, its rows, and texts that were damaged by chance."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from stripewise.importing.formats import import_trace

SOAK = bool(os.environ.get("STRIPEWISE_SOAK"))


def imported(place: Path, name: str, *texts: str, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """meta.json and the rows of the trace that these texts are, each a file of its own."""
    files = []
    for number, text in enumerate(texts):
        files.append(place / f"trace{number}.txt")
        files[-1].write_bytes(text.encode("utf-8", "surrogateescape"))
    return rows_of(import_trace(name, files, place / "out", base=place, **options), place / "out")


def rows_of(meta: dict[str, Any], out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """meta.json, which is what the import returned, and the rows."""
    assert json.loads((out / "meta.json").read_text()) == meta
    assert sorted(path.name for path in out.iterdir()) == ["meta.json", "trace.parquet"]
    rows = pq.read_table(out / "trace.parquet").to_pylist()
    assert len(rows) == meta["records"] == sum(process["records"] for process in meta["processes"])
    return meta, rows


def brief(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the rows."""
    return [tuple(row[column] for column in columns) for row in rows]


#: What somebody may find in a line who looks for trouble.
_PIECES = (
    b"", b"\0", b"\xff", b"\n", b"\r", b'"', b"'", b"(", b")", b"<", b">", b"{", b"[", b"\\", b",", b" ", b"-", b"-1",
    b"99999999999999999999999", b"9223372036854775807", b"1e999", b"nan", b"0x", b"<unfinished ...>", b" resumed>",
    b"<... read resumed>", b") = ", b"= -1 ENOENT", b"+++ exited with 0 +++", b"--- SIGINT ---", b"AT_FDCWD", b"NULL",
    b"clone(", b"CLONE_FILES", b"/*", "ä".encode(), b"\xed\xa0\x80", b"x" * 5000,
)  # fmt: skip


def mutated(text: bytes, chance: random.Random) -> bytes:
    """The text with a few changes: bytes and pieces in and out, lines doubled, gone, and exchanged, the end cut off."""
    data = bytearray(text)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(7)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at:at] = chance.choice(_PIECES)
        elif kind == 2:
            del data[at : at + chance.choice((1, 1, 5, 100))]
        elif kind == 3:
            data[at : at + chance.choice((1, 4, 20))] = chance.choice(_PIECES)
        elif kind == 4:
            del data[at:]
        else:
            lines = data.split(b"\n")
            one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            if kind == 5:
                lines[one], lines[other] = lines[other], lines[one]
            else:
                lines[one : one + 1] = [lines[one]] * chance.choice((0, 2, 2))
            data = bytearray(b"\n".join(lines))
    return bytes(data)
