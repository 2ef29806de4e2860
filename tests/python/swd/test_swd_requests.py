"""Block traces, generated workloads and closed forms through Python and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import StripewiseError, UsageError, WorkloadError
from stripewise.swd.amplification import amplification
from stripewise.swd.statistics import statistics
from stripewise.swd.workload import LOOK_ALIKES, made_workload, trace_workload
from test_cli import stripewise

MSR = "128166372003061629,hm,1,Read,383496192,32768,413\n128166372003071629,hm,0,Write,0,4096,0\n"
COLLECTED = Path(__file__).parents[4] / "shared" / "data" / "block"


def as_json(*words, code=0):
    return json.loads(stripewise("swd", *words, "--json", code=code).stdout)


@pytest.fixture
def msr(tmp_path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(MSR)
    return path


def test_a_trace_is_described_and_its_format_told(msr):
    told = as_json("trace", msr)
    assert (told["format"], told["requests"], told["writes"], told["generated"]) == ("msr", 2, 1, False)
    assert (told["interarrival_ms"], told["lba_max"], told["request_blocks"]) == (1.0, 749_079, 36.0)
    assert as_json("trace", msr, "--device", "0")["requests"] == 1
    assert as_json("trace", msr, "--stretch", "200")["interarrival_ms"] == 200.0
    assert as_json("trace", msr, "--space", "1MiB")["lba_max"] < 2048
    assert "t.csv (msr)" in stripewise("swd", "trace", msr).stdout


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_every_look_alike_calls_itself_one(name):
    told = as_json("trace", "--workload", f"look-alike:{name}", "--requests", 2000)
    assert told["workload"] == f"look-alike:{name}" and told["generated"] and told["requests"] == 2000


@pytest.mark.parametrize("format", ["msr", "disksim"])
def test_what_is_exported_reads_back_with_the_same_statistics(tmp_path, format):
    made = ("--workload", "zipf,write_share=0.5,arrivals=fixed:2", "--space", "1GB", "--requests", "500", "--seed", "3")
    path = tmp_path / "out"
    said = stripewise("swd", "trace", *made, "--export", path, "--export-format", format)
    assert "500 requests written" in said.stdout
    back, there = as_json("trace", path), as_json("trace", *made)
    for told in (back, there):
        for key in ("workload", "generated", "format"):
            del told[key]
    assert back == there


def test_the_locality_of_writes_is_drawn(tmp_path):
    picture = tmp_path / "out.html"
    stripewise("swd", "trace", "--workload", "look-alike:web_1", "--requests", "3000", "--plot", picture)
    assert "<svg" in picture.read_text() and "stack distances" in picture.read_text()


@pytest.mark.parametrize(
    "words, code, told",
    [
        ((), 2, "give either a trace, or --workload"),
        (("nowhere.csv",), 1, "nowhere.csv: cannot be opened"),
        (("nowhere.csv", "--format", "pcap"), 2, "--format: 'pcap' is not known; give one of msr"),
        (("nowhere.csv", "--action", "QD"), 2, "--action: 'QD' is not an action"),
        (("nowhere.csv", "--beyond", "wrap"), 2, "--beyond: 'wrap' is not known"),
        (("--workload", "zip"), 2, "--workload: 'zip' is not known"),
        (("--workload", "uniform"), 2, "--space: uniform needs a space"),
        (("--workload", "uniform,apha=1"), 2, "uniform has no key 'apha'; it has request_blocks"),
        (("--workload", "zipf,alpa=1"), 2, "did you mean alpha?"),
        (("--workload", "syn,again=yes"), 2, "again = 'yes' does not fit; write true or false"),
        (("--workload", "look-alike:hm_0"), 2, "no look-alike of 'hm_0' is known"),
        (("--workload", "zipf,arrivals=normal:5", "--space", "1GB"), 2, "write fixed:MS"),
        (("--workload", "zipf,alpha=-1", "--space", "1GB"), 1, "alpha = -1 is not from 0 to 20"),
        (("--workload", "syn", "--format", "msr"), 2, "--format: applies to traces"),
        (("--workload", "syn", "--space", "1MB", "--export", "/nowhere/x"), 2, "--export: /nowhere/x"),
        (("--workload", "syn", "--space", "1MB", "--export", "x", "--export-format", "spc"), 2, "'spc' is not known"),
        (("--workload", "syn", "--space", "1MB", "--plot", "x.png"), 2, "neither in .svg nor in .html"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_with_its_cure(words, code, told):
    said = stripewise("swd", "trace", *words, code=code)
    assert told in " ".join(said.stderr.split()), said.stderr


@settings(max_examples=30, deadline=None)
@given(st.text("uniformzpsylk-:,=.0159", max_size=30) | st.sampled_from(["zipf", "syn", "look-alike:mds_0"]))
def test_any_text_is_a_workload_or_one_error(text):
    try:
        made = made_workload(text, 10)
        statistics(made, 1 << 20)
    except StripewiseError as error:
        assert str(error) and "\n" not in str(error)


def test_a_bad_line_is_told_with_its_file_and_number(tmp_path):
    path = tmp_path / "t"
    path.write_text(MSR + "1,h,0,Read,x,512,0\n")
    with pytest.raises(WorkloadError, match=r"t: line 3: offset = \"x\"; msr has timestamp"):
        statistics(trace_workload(path))


def test_a_trace_that_may_be_of_several_simulators_is_read_only_as_what_it_is_said_to_be(tmp_path):
    path = tmp_path / "tpcc"
    path.write_text("938944000 13 93230992 32 0\n939855000 13 213913104 16 1\n")
    said = " ".join(stripewise("swd", "trace", path, code=1).stderr.split())
    assert "tpcc: line 1: fits several formats" in said and "(--format disksim, dtrs, ssdsim or mqsim)" in said
    for name, duration_s in [("disksim", 911), ("dtrs", 911e-6), ("ssdsim", 911e-6), ("mqsim", 911e-6)]:
        told = as_json("trace", path, "--format", name)
        assert (told["format"], told["writes"], told["duration_s"]) == (name, 1, pytest.approx(duration_s))


def test_an_interrupt_ends_the_reading():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        statistics(made_workload("look-alike:hp_c2247", 1 << 40), progress=stop)


def test_the_golden_table_is_that_of_the_seed():
    told = as_json("war")
    assert told["space_gain"] == 1.6 and told["full_band"] == 4
    third = 5 / 3
    assert told["orders"] == {
        "1234": [4, 4, 4, 4],
        "R(4123)": pytest.approx([1, 1, third, 4]),
        "14R(23)": pytest.approx([1, 1, third, 4]),
        "124R(3)": pytest.approx([third, third, third, 4], abs=1e-2),
    }
    assert "1.67" in stripewise("swd", "war").stdout


@pytest.mark.parametrize("band_tracks, head_tracks", [(1, 1), (5, 3), (9, 2)])
def test_full_bands_cost_equation_4_2(band_tracks, head_tracks):
    found = amplification(band_tracks, head_tracks, [1.0])
    if head_tracks > 1:
        assert found.orders["1234"][0] == pytest.approx(band_tracks) == found.full_band
    assert found.space_gain == pytest.approx(head_tracks * band_tracks / (band_tracks + head_tracks - 1))


def test_bands_and_fills_that_cannot_be_are_refused(tmp_path):
    assert "is not from 0% to 100%" in stripewise("swd", "war", "--used", "120", code=2).stderr
    assert "is not a number of percent" in stripewise("swd", "war", "--used", "half", code=2).stderr
    with pytest.raises(UsageError, match="give fewer"):
        amplification(10_000, 2, [0.5])
    stripewise("swd", "war", "--plot", tmp_path / "war.svg")
    assert "<svg" in (tmp_path / "war.svg").read_text()


@pytest.mark.skipif(not COLLECTED.is_dir(), reason="the collected block traces are not beside the checkout")
def test_collected_traces_are_read(monkeypatch):
    assert as_json("trace", COLLECTED / "DTRS100M.trace", "--format", "dtrs")["requests"] == 127_043
    assert as_json("trace", COLLECTED / "postmark-aligned.trace")["format"] == "disksim"
