"""Rates of `swd simulate` where nobody gives one: the drive keeps up under the default schemes."""

from __future__ import annotations

import json

import pytest

from stripewise.cli.swd.simulate import KEEPS_UP, default_stretch
from test_cli import stripewise


@pytest.mark.parametrize("workload", ["uniform", "zipf", "syn", "look-alike:stg_0"])
def test_the_drive_keeps_up_at_the_defaults(workload):
    said = stripewise("swd", "simulate", "--workload", workload, "--requests", "3000", "--json")
    rows = json.loads(said.stdout)["rows"]
    assert len(rows) == 3 and all(row["utilisation"] < 0.7 for row in rows) and not said.stderr


def test_a_rate_that_was_given_is_kept():
    assert default_stretch("zipf,alpha=0.8") == KEEPS_UP
    assert default_stretch("uniform,arrivals=fixed:5") == default_stretch("syn") == default_stretch(None) == 1
    rate = ("swd", "simulate", "--workload", "uniform", "--requests", "500", "--scheme", "hdd", "--stretch", "1")
    assert "requests come faster than they are served: " in stripewise(*rate).stderr
    # A rate that only some schemes keep up with.
    said = stripewise(*rate[:5], "2000", "--scheme", "hdd,1234,tstl-greedy", "--stretch", "4").stderr
    assert "faster than they are served by 1234: response times grow" in said, said
