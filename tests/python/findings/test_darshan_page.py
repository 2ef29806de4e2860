"""`show` of Darshan logs, without an import."""

from __future__ import annotations

import json
from pathlib import Path

import darshan
import pytest

from runs import runs_of
from test_cli import stripewise

LOGS = Path(darshan.__file__).parent / "examples" / "example_logs"


def test_a_log_is_shown_as_its_import_is(tmp_path):
    log = LOGS / "ior_hdf5_example.darshan"
    stripewise("import", "darshan", log, "-o", tmp_path / "t")
    imported, shown = (json.loads(stripewise("show", place, "--json").stdout) for place in (tmp_path / "t", log))
    assert shown["files"] == imported["files"] and shown["run"] == imported["run"]
    assert "test123.h5" in stripewise("show", log).stdout


@pytest.mark.parametrize("name", ["shane_macsio_id29959_5-22-32552-7035573431850780836_1590156158.darshan"])
def test_findings_of_counters_say_that_requests_are_estimated(name):
    said = json.loads(stripewise("show", LOGS / name, "--json").stdout)
    assert any("no DXT" in reason for reason in said["partial"]) and said["findings"]
    assert {found["cause"] for found in said["findings"]} == {"small_requests", "sieving"}
    assert all(("estimated" in found["evidence"][-1]) == (found["cause"] != "sieving") for found in said["findings"])


def test_what_is_no_log_is_one_error(tmp_path):
    (tmp_path / "x.darshan").write_bytes(b"no log")
    said = stripewise("show", tmp_path / "x.darshan", code=1).stderr
    assert "x.darshan" in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(("first", "second"), [("log", "trace"), ("trace", "log"), ("log", "log")])
def test_either_run_of_a_page_may_be_a_log(tmp_path, first, second):
    log, trace = LOGS / "ior_hdf5_example.darshan", tmp_path / "t"
    stripewise("import", "darshan", log, "-o", trace)
    named = {"log": log, "trace": trace}
    stripewise("show", named[first], "--html", tmp_path / "out.html", "--beside", named[second])
    runs = runs_of((tmp_path / "out.html").read_text())
    assert [str(named[each]) in run["source"] for each, run in zip((first, second), runs, strict=True)] == [True, True]
    assert runs[0]["total"] == runs[1]["total"] and runs[0]["files"] == runs[1]["files"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_damaged_log_on_either_side_is_one_error(tmp_path, order):
    (tmp_path / "x.darshan").write_bytes(b"no log")
    first, second = [LOGS / "ior_hdf5_example.darshan", tmp_path / "x.darshan"][::order]
    assert "x.darshan" in stripewise("show", first, "--html", tmp_path / "o", "--beside", second, code=1).stderr
    assert not (tmp_path / "o").exists()


def test_a_page_replaces_neither_log(tmp_path):
    log, other = tmp_path / "a.darshan", tmp_path / "b.darshan"
    for place in (log, other):
        place.write_bytes((LOGS / "ior_hdf5_example.darshan").read_bytes())
    for out in (log, other):
        said = stripewise("show", log, "--html", out, "--beside", other, code=2)
        assert f"{out} is" in said.stderr and "give another name" in said.stderr
