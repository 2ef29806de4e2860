"""`stripewise replicate TRACE --what-if`: tables, sums and reasons, JSON, what stands, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runs import write_rows
from stripewise.replicas import MANAGERS
from support import KIB, MIB
from test_cli import cluster_toml, stripewise

__all__ = ["cluster_toml"]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def columns(tmp_path):
    """A file that 4 ranks write in parts of their own and then read by columns."""
    rows = [(r, "write", "/scratch/out.dat", (r * 64 + k) * 256 * KIB, 256 * KIB) for k in range(64) for r in range(4)]
    rows += [(r, "read", "/scratch/out.dat", k * MIB + r * 16 * KIB, 16 * KIB) for k in range(64) for r in range(4)]
    return write_rows(tmp_path / "t", rows)


def what_if(*words, **expected):
    return stripewise("replicate", *words, "--what-if", **expected)


def test_a_table_for_each_file_with_its_sum_and_what_is_not_made(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    said = what_if(columns).stdout
    lines = said.splitlines()
    assert lines[0] == "radar: /scratch/out.dat"
    assert lines[1].split() == ["pattern", "layout", "gain", "s", "times", "as", "fast", "space", "build", "s"]
    assert "Each of 4 ranks reads 64 small" in lines[3] and "344KiB on hdd0 hdd1 hdd2 for the first" in lines[3]
    assert "radar: 1 replica, I/O by the model 0.278 s from the file, 0.126 s less from\n" in said
    assert "\nreplicas (1.83 times as fast), 4.0 MiB" in said
    assert "not made of /scratch/out.dat:\n  radar makes copies of what is only read:\n    Each of 4 ranks" in said
    assert lines[-2:] == [
        "priced on 4 HDDs of 3 ms and 100 MB/s, 2 SSDs of 0.1 ms and 400 MB/s; files",
        "taken to lie in stripes of 64 KiB over all targets",
    ]


def timed(trace, request_ns):
    """The same trace, each of whose requests takes so long and begins when the one before ends."""
    table = pq.read_table(trace / "trace.parquet")
    starts = np.arange(len(table)) * request_ns
    for name, values in (("start_ns", starts), ("end_ns", starts + request_ns)):
        column = pa.array(values, table[name].type)
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, trace / "trace.parquet")
    return trace


@pytest.mark.parametrize(
    ("request_ns", "told"),
    [
        # 256 reads; by the model they take 0.278 s from the file, and 0.126 s less from the replica.
        (400_000, "took 0.102 s for these reads, the model says 0.278 s: memory or faster devices serve these, so"),
        (1_000_000, None),
        (
            9_000_000,
            "the model says 0.278 s: it has servers read on over gaps below 128 KiB, which some disks do not: the "
            "model is off. Time the program with copies",
        ),
    ],
)
def test_a_run_whose_reads_contradict_the_model_is_told(columns, request_ns, told):
    said = what_if(timed(columns, request_ns))
    assert "\nthe model's seconds, building's among them, rank replicas; " in said.stdout
    assert (told in said.stderr) if told else "the model" not in said.stderr


def test_what_is_not_made_begins_with_what_moves_most(tmp_path):
    rows = [(0, "write", f"/d/{k}", at * 4 * KIB, 4 * KIB) for k in (1, 3, 2) for at in range(k * 10)]
    said = what_if(write_rows(tmp_path / "t", rows)).stdout
    assert re.findall(r"not made of (\S+):", said) == ["/d/3", "/d/2", "/d/1"]


def test_the_page_shows_what_is_printed(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = (ROOT / "docs/replicas/reference.md").read_text()
    shown = page[page.index("    $ stripewise replicate trace --what-if\n") : page.index("\n- **gain s")]
    assert [line[4:] for line in shown.splitlines()[1:]] == what_if(columns).stdout.splitlines()


def test_the_page_names_every_field_of_json(columns):
    page = (ROOT / "docs/replicas/reference.md").read_text()
    said = set(re.findall(r"`(\w+)`", page[page.index("## JSON") :]))
    told = json.loads(what_if(columns, "--json").stdout)
    (found,) = told["managers"]
    (made,) = found["replicas"]
    assert {*told, *found, *found["sets"][0], *found["refused"][0], *made, *made["blocks"][0]} <= said


def test_json_has_every_number_of_every_manager(columns):
    found = json.loads(what_if(columns, "--manager", ",".join(MANAGERS), "--json").stdout)
    assert found["version"] == 1 and found["cluster"].startswith("4 HDDs of 3 ms")
    assert [each["manager"] for each in found["managers"]] == list(MANAGERS)
    for each in found["managers"]:
        assert each["bytes"] == sum(each["space_bytes"].values())
        assert each["gain_s"] == pytest.approx(sum(one["gain_s"] for one in each["replicas"]))
    (made,) = found["managers"][-1]["replicas"]
    assert made["blocks"] == [{"base": 0, "block": 16 * KIB, "dims": [[16 * KIB, 4], [MIB, 64]]}]
    assert (made["operation"], made["home"], made["processes"], made["requests"]) == ("read", False, 4, 256)
    assert made["bytes"] == 4 * MIB == sum(made["space_bytes"].values())


def test_the_same_trace_is_told_in_the_same_words(columns):
    words = (columns, "--manager", ",".join(MANAGERS), "--json")
    assert what_if(*words).stdout == what_if(*words).stdout


def test_what_stands_ages_and_is_not_built_again(columns, tmp_path):
    before = tmp_path / "before.json"
    before.write_text(what_if(columns, "--json").stdout)
    found = json.loads(what_if(columns, "--stored", before, "--json").stdout)["managers"][0]
    assert found["build_s"] == 0.0 and found["replicas"][0]["reasons"][1:] == ["stands already"]
    other = write_rows(tmp_path / "other", [(0, "read", "/scratch/out.dat", k * MIB, MIB) for k in range(64)])
    (own,) = json.loads(what_if(other, "--stored", before, "--json").stdout)["managers"][0]["sets"]
    assert own["age"] == 1.0
    mine = tmp_path / "mine.py"
    mine.write_text("def gone(benefit, age):\n    return -age\n")
    told = what_if(other, "--stored", before, "--decay", f"{mine}:gone").stdout
    assert "of other runs, not in the sum: 1 replica stands, 4.0 MiB" in told


def test_space_bounds_replicas(columns):
    assert "0 B are left" not in what_if(columns, "--space", "4MiB").stdout
    said = what_if(columns, "--space", "1MiB").stdout
    assert "radar: no replica is worth making" in said
    assert "  its set takes 4.0 MiB, of which 1.0 MiB are left:" in said
    said = what_if(columns, "--manager", "s-pdla", "--space", "40MiB").stdout
    assert "(at most 40.0 MiB on each SServer)" in " ".join(said.split())


def test_no_target_gets_more_than_it_holds(columns, cluster_toml):
    """Its SSD has a capacity of 1 MiB."""
    for space in ((), ("--space", "1GiB")):
        said = what_if(columns, "--cluster", cluster_toml, "--manager", "ns-pdla", *space).stdout
        assert "  takes 64.0 MiB on ssd0, of which" in said and "  takes 4.0 MiB on ssd0" in said


def test_a_pattern_by_hand_is_decided_about_with_those_of_the_trace(columns):
    said = what_if(columns, "--pattern", "/d/g,read:0:16KiB:2MiBx64@4", "--manager", "h-pdla").stdout
    assert "h-pdla: /d/g" in said and "h-pdla: 3 replicas" in said


def test_a_store_says_the_devices(columns, tmp_path, cluster_toml):
    store = tmp_path / "S"
    for name in ("hdd0", "ssd0"):
        (tmp_path / "targets" / name).mkdir(parents=True)
    stripewise("store", "create", store, "--cluster", cluster_toml)
    found = json.loads(what_if(columns, "--store", store, "--json").stdout)
    assert found["cluster"].startswith(str(store))


def test_without_what_if_it_wants_a_store_and_one_manager(columns, tmp_path):
    said = stripewise("replicate", columns, code=2).stderr
    assert said == (
        "stripewise: replicate: give --store STORE, in which the copies are to stand, or --what-if for an estimate "
        "alone\n"
    )
    said = stripewise("replicate", columns, "--store", tmp_path, "--manager", "radar,h-pdla", code=2).stderr
    assert said.startswith("stripewise: --manager: radar, h-pdla decide each for himself; give the one whose choice")


@pytest.fixture
def store(tmp_path, cluster_toml):
    for name in ("hdd0", "ssd0"):
        (tmp_path / "targets" / name).mkdir(parents=True)
    stripewise("store", "create", tmp_path / "S", "--cluster", cluster_toml)
    return tmp_path / "S"


def listed(store):
    return [
        (each["path"], each["state"])
        for each in json.loads(stripewise("store", "replica", "ls", store, "--json").stdout)
    ]


def test_copies_are_built_of_each_file_and_the_rest_is_told(columns, tmp_path, store):
    """Of the file that the run wrote first there is none any more; another one is there."""
    path = tmp_path / "g"
    path.write_bytes(bytes(range(256)) * (16 * KIB))
    pattern = f"{path},read:0:16KiB:64KiBx64@4"
    said = stripewise("replicate", columns, "--store", store, "--manager", "h-pdla", "--pattern", pattern).stdout
    assert re.search(rf"{path}: 1 replica, 1\.0 MiB, [\d.]+ s", " ".join(said.split()))
    told = " ".join(said.split())
    assert "not made of /scratch/out.dat:" in told
    assert "the file does not exist any more: Each of 4 ranks reads" in told
    assert "would be the home of what the run writes" in " ".join(said.split())
    assert listed(store) == [(str(path), "in use")]
    found = json.loads(
        stripewise("replicate", columns, "--store", store, "--manager", "h-pdla", "--pattern", pattern, "--json").stdout
    )
    assert not found["made"] and found["up_to_date"][0].keys() == {"file", "name", "container", "replicas", "bytes"}
    assert found["skipped"][0].keys() == {"file", "pattern", "reason"} and found["managers"][0]["manager"] == "h-pdla"
    stripewise("store", "replica", "rm", store, found["up_to_date"][0]["name"])
    assert listed(store) == []


def test_nothing_is_made_where_nothing_is_worth_it(columns, store):
    said = stripewise("replicate", columns, "--store", store, "--space", "4KiB").stdout
    assert "no copies were made" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--manager", "h-pdla,pdla"), "--manager: 'pdla' is not known; give one or more of h-pdla, s-pdla"),
        (("--layer", "nfs"), "--layer: 'nfs' is not known; give one of auto, posix, mpi"),
        (("--cluster", "c", "--store", "s"), "--store: names the devices, and so does --cluster; give one of them"),
        (("--space", "much"), "--space: 'much' is not a size"),
        (("--decay", "never"), "--decay: 'never' is not known"),
        (("--bucket", "0s"), "--bucket: '0s' is too short"),
        (("--pattern", "x"), "--pattern: 'x' is none; write FILE,read:BASE:BLOCK"),
    ],
)
def test_wrong_options_are_told_in_a_line(columns, words, said):
    assert said in what_if(columns, *words, code=2).stderr


def test_files_that_are_wrong_are_named(columns, tmp_path):
    assert f"{tmp_path}/no.json" in what_if(columns, "--stored", tmp_path / "no.json", code=1).stderr
    assert "does not exist" in what_if(tmp_path / "no", code=1).stderr
    alone = tmp_path / "alone.toml"
    alone.write_text(
        '[[target]]\nname = "a"\nclass = "hdd"\npath = "a"\nstartup_read_s = 1e-3\nstartup_write_s = 1e-3\n'
        "per_byte_read_s = 1e-8\nper_byte_write_s = 1e-8\n"
    )
    said = what_if(columns, "--cluster", alone, "--manager", "s-pdla", code=1).stderr
    assert said == (
        f"stripewise: {alone}: has no active target of class ssd, which s-pdla puts replicas on; add one, or take "
        "--manager h-pdla or radar\n"
    )


def test_patterns_that_are_not_made_stand_below_their_file_and_are_five_at_most(tmp_path):
    rows = [(r, "write", "/d/f", (r * r * 100 + k) * MIB, (1 + r**3) * KIB) for r in range(9) for k in range(8 + r * r)]
    trace = write_rows(tmp_path / "t", [*rows, *((0, "write", "/d/g", k * MIB, MIB) for k in range(8))])
    said = what_if(trace).stdout
    told = said[said.index("not made of /d/f:") : said.index("not made of /d/g:")]
    assert said.count("/d/f") == 1 and told.count("Rank ") == 5 and "\n  and 4 more (--json has all)\n" in told
