"""Containers of copies are the store's own: verbs that list or count the user's files leave them out."""

from __future__ import annotations

import json
from pathlib import Path

from rig import Maker, dirs, stripewise

KIB = 1024
#: Reads every fourth block, then the next column.
READS = """
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
for column in range(4):
    for row in range(64):
        os.pread(f, 16384, (row * 4 + column) * 16384)
"""


def test_find_and_df_leave_containers_out_and_say_where_they_are_told(make_store: Maker) -> None:
    store = make_store(dirs(4))
    file, trace = store.plain / "array", store.base / "trace"
    file.write_bytes(bytes(range(256)) * (16 * KIB))
    managed = store.data / "managed"
    store.program("sh", "-c", f"head -c 8M /dev/urandom >'{managed}'")
    stripewise("run", "--trace", trace, "--store", store.root, "--", "python3", "-c", READS, file)
    stripewise("collect", trace)
    stripewise("replicate", trace, "--store", store.root, "--manager", "h-pdla", "--file", file)
    held = {row["name"] for row in rows(store.root) if row["copies"]}
    assert held and all(row["files"] == 1 for row in rows(store.root)), rows(store.root)
    (target, *_) = sorted(held)
    assert stripewise("store", "find", store.root, "--target", target).out.split() == [str(managed)]
    found = stripewise("store", "find", store.root, "--target", target, "--copies").out.split()
    assert len(found) == 2 and any(each.endswith(".copy") for each in found), found
    assert f"copies are no files here, but take room: 'stripewise store replica ls {store.root}'" in " ".join(
        stripewise("store", "df", store.root).out.split()
    )


def rows(root: Path) -> list[dict[str, object]]:
    told: list[dict[str, object]] = json.loads(stripewise("store", "df", root, "--json").out)["targets"]
    return told
