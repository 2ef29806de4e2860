"""fio does the very requests for which its job was printed: its own log of them is compared."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from generators import KIB
from pattern_traces import write_trace
from stripewise.pattern import fio_job, fio_replay, report_of

TABLES = {
    "contiguous": {0: [("write", i * 16 * KIB, 16 * KIB) for i in range(32)]},
    "contiguous by ranks": {
        r: [("write", r * 256 * KIB + i * 16 * KIB, 16 * KIB) for i in range(16)] for r in range(3)
    },
    "strided by ranks": {r: [("write", r * 16 * KIB + i * 64 * KIB, 16 * KIB) for i in range(32)] for r in range(2)},
    "strided reads": {0: [("read", 64 * KIB + i * 64 * KIB, 16 * KIB) for i in range(32)]},
    "segmented": {
        r: [("write", r * 64 * KIB + s * 256 * KIB + i * 16 * KIB, 16 * KIB) for s in range(8) for i in range(4)]
        for r in range(2)
    },
    "one place": {0: [("write", 8 * KIB, 4 * KIB)] * 64},
    "repeated": {0: [("write", i * 16 * KIB, 16 * KIB) for _ in range(3) for i in range(16)]},
}


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", TABLES)
def test_fio_does_what_is_printed_for_it(name, tmp_path):
    table, data, job, log = TABLES[name], tmp_path / "out.dat", tmp_path / "job.fio", tmp_path / "log"
    data.write_bytes(bytes(4 << 20))
    [file] = report_of(write_trace(tmp_path / "t", table, path=str(data))).files
    job.write_text(f"{fio_job(file.patterns[0], str(data), 'j')}\nwrite_iolog={log}\n")
    subprocess.run(["fio", "--fallocate=none", job], check=True, capture_output=True, cwd=tmp_path)
    words = [line.split() for line in log.read_text().splitlines()]
    done = [(row[-3], int(row[-2]), int(row[-1])) for row in words if len(row) >= 4 and row[-3] in ("read", "write")]
    # The clones of a job share its log.
    assert sorted(done) == sorted(request for requests in table.values() for request in requests)


def test_backward_requests_are_none_that_fio_has_options_for(tmp_path):
    table = {0: [("write", (31 - i) * 16 * KIB, 16 * KIB) for i in range(32)]}
    [file] = report_of(write_trace(tmp_path / "t", table)).files
    assert fio_job(file.patterns[0], file.path, "j").startswith("# fio, j: requests that go backward")


@pytest.mark.parametrize("name", ["a#b", "a;b", "a${HOME}", "a ", "a\nb", "a\\xffb"])
def test_a_name_that_fio_would_read_as_another_gets_no_job(name, tmp_path):
    table = {0: [("write", i * 16 * KIB, 16 * KIB) for i in range(32)]}
    [file] = report_of(write_trace(tmp_path / "t", table, path=f"/d/{name}")).files
    said = fio_replay(file.patterns[0], file.path, "j", tmp_path / "logs", lambda rank: table[rank])
    assert said.startswith("# fio, j: its path has a character") and not (tmp_path / "logs").exists()


def test_logs_replace_links_and_do_not_follow_them(tmp_path):
    table = {0: [("write", (31 - i) * 16 * KIB, 16 * KIB) for i in range(32)]}
    [file] = report_of(write_trace(tmp_path / "t", table)).files
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/j.0.iolog").symlink_to(precious)
    fio_replay(file.patterns[0], file.path, "j", tmp_path / "logs", lambda rank: table[rank])
    assert precious.read_text() == "mine" and "iolog" in (tmp_path / "logs/j.0.iolog").read_text()
