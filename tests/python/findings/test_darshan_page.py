"""`show` of Darshan logs, without an import."""

from __future__ import annotations

import json
from pathlib import Path

import darshan
import pytest

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
