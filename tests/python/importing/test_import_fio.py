"""fio's iologs of versions 2 and 3, and one that fio itself writes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from imports import brief, imported, rows_of
from stripewise.errors import WorkloadError
from stripewise.importing.formats import import_trace

V2 = """fio version 2 iolog
/data/a b add
/data/a b open
/data/a b write 0 4096
/data/a b wait 250 0
/data/a b read 4096 8192
/data/a b datasync 0 0
/data/a b trim 0 512
/data/a b close
"""
V3 = """fio version 3 iolog
0 /data/a add
10 /data/a open
20 /data/a write 0 4096
1500 /data/a read 512 100
1600 /data/a close
"""


def test_version_2_has_the_times_of_its_waits(tmp_path):
    meta, rows = imported(tmp_path, "fio", V2)
    assert brief(rows, "op", "file", "offset", "requested", "done", "aux") == [
        ("open", "/data/a b", 0, 0, 0, 0), ("write", "/data/a b", 0, 4096, 4096, 0),
        ("read", "/data/a b", 4096, 8192, 8192, 0), ("sync", "/data/a b", 0, 0, 0, 1),
        ("fallocate", "/data/a b", 0, 512, 0, 3), ("close", "/data/a b", 0, 0, 0, 0),
    ]  # fmt: skip
    assert rows[2]["start_ns"] - rows[1]["start_ns"] == 250_001
    assert not any("1 ns apart" in reason for reason in meta["partial"])


def test_version_3_has_times_in_microseconds(tmp_path):
    meta, rows = imported(tmp_path, "fio", V3, V3)
    assert [row["start_ns"] for row in rows if row["pid"] == 1] == [0, 10_000, 1_490_000, 1_590_000]
    assert len(meta["processes"]) == 2 and meta["partial"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("line", ["/f fly 0 1", "/f read 0", "/f read x 1", "/f read 0 -1", "read 0 1"])
def test_a_bad_line_is_named_or_skipped(tmp_path, version, line):
    text = (V2 if version == 2 else V3) + ("" if version == 2 else "1700 ") + line + "\n"
    with pytest.raises(WorkloadError, match=rf"trace0.txt: line {text.count(chr(10))}: .*--lenient"):
        imported(tmp_path, "fio", text)
    assert imported(tmp_path, "fio", text, lenient=True)[0]["skipped"]


@pytest.mark.parametrize("first", ["fio version 1 iolog", "0, 0, 512", ""])
def test_another_version_is_refused(tmp_path, first):
    with pytest.raises(WorkloadError, match=r"line 1: .* is not 'fio version 2 iolog'"):
        imported(tmp_path, "fio", f"{first}\n/f add\n")


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_what_fio_writes_is_read(tmp_path):
    job = ["fio", "--name=j", "--filename=f", "--size=256k", "--bs=16k", "--rw=randwrite", "--write_iolog=log"]
    subprocess.run([*job, "--thinktime=5000", "--ioengine=psync"], cwd=tmp_path, check=True, capture_output=True)
    meta, rows = rows_of(import_trace("fio", [tmp_path / "log"], tmp_path / "out", base=tmp_path), tmp_path / "out")
    [file] = meta["files"]
    assert file["path"] == str(tmp_path / "f") and file["writes"] == 16 and file["bytes_written"] == 256 << 10
    assert sorted(row["offset"] for row in rows if row["op"] == "write") == [n << 14 for n in range(16)]
    # Sixteen pauses of 5 ms: the unit of its times is the microsecond.
    assert 60e6 < meta["duration_ns"] < 60e9
