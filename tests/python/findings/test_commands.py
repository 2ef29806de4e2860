"""The command that a finding ends with does in a shell what it says."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import darshan

from runs import RUNS, opens, runs_of, write_rows
from stripewise.cli.plan.show_trace import Page, _print_file
from stripewise.findings import DEFAULT_CLUSTER, FileLine, facts_of, findings_of
from stripewise.layout import Layout, Region
from stripewise.workload.layouts import TracedStore, TracedTarget, store_of_trace, write_layouts
from stripewise.workload.maps import maps_in
from stripewise.workload.trace import META_VERSION
from support import MIB
from test_cli import cluster_toml as cluster_toml
from test_cli import stripewise

LOG = Path(darshan.__file__).parent / "examples" / "example_logs" / "ior_hdf5_example.darshan"


def in_a_shell(command, place):
    """Runs it as a user would, in a directory."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(command, shell=True, cwd=place, env=os.environ | {"PATH": path}, check=True, capture_output=True)
    return json.loads((place / "plan.json").read_text())


def commands(*words):
    return [each["command"] for each in json.loads(stripewise("show", *words, "--json").stdout)["findings"]]


def test_a_trace_with_any_name_is_planned(tmp_path, cluster_toml):
    rows = [*RUNS["no order, no preferred place"][0], (0, "write", "/d/other", 0, 10)]
    trace = write_rows(tmp_path / "it's $HOME;touch own", rows)
    (command,) = commands(trace, "--file", "/d/[f]", "--cluster", cluster_toml)
    plan = in_a_shell(command, tmp_path)
    assert [each["path"] for each in plan["files"]] == ["/d/f"] and not (tmp_path / "own").exists()


def test_a_path_that_begins_as_an_option_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "-o", RUNS["no order, no preferred place"][0])
    (command,) = commands("./-o", "--file", "/d/f")
    assert shlex.split(command)[:3] == ["stripewise", "plan", "./-o/trace.parquet"]


def test_without_a_cluster_the_command_names_one_to_write(tmp_path):
    (command,) = commands(write_rows(tmp_path / "t", RUNS["no order, no preferred place"][0]))
    assert shlex.split(command)[3:5] == ["--cluster", "CLUSTER"]


def test_of_files_that_lie_in_one_store_the_command_names_it_while_it_is_there(tmp_path, cluster_toml):
    trace, store = write_rows(tmp_path / "t", RUNS["no order, no preferred place"][0]), tmp_path / "a store"
    place = tmp_path / "t"
    assert store_of_trace(place) is None
    targets = (TracedTarget("t0", "ssd", 1, 1e-4, 1e-4, 1e-9, 1e-9),)
    layouts = {"/d/f": Layout((Region(0, 1 << 20, (("t0", 1 << 16),)),))}
    write_layouts(place, [TracedStore(str(store), targets, layouts)])
    assert store_of_trace(place) is None, "it is gone"
    store.mkdir()
    (store / "store.toml").touch()
    (command,) = commands(trace)
    assert shlex.split(command)[3:5] == ["--store", str(store)]
    (command,) = commands(trace, "--cluster", cluster_toml)
    assert shlex.split(command)[3] == "--cluster"
    write_layouts(place, [TracedStore(str(root), targets, layouts) for root in (store, tmp_path)])
    assert store_of_trace(place) is None, "which of two?"


def test_a_plain_file_goes_into_a_store_before_it_is_planned_for_its_ssds(tmp_path, cluster_toml):
    names = [tmp_path / f"it's {number}.dat" for number in (1, 2)]
    for name in names:
        name.write_bytes(bytes(16))
    rows = [(0, op, str(name), *more) for name in names for _, op, _, *more in RUNS["no order, no preferred place"][0]]
    trace = write_rows(tmp_path / "t", rows)
    (found,) = findings_of(facts_of(trace), DEFAULT_CLUSTER)
    assert "take the file into a store and put it on SSDs" in found.advice and found.files == 2
    adopt, plan = found.command.split(" && ")
    assert shlex.split(plan)[3:5] == ["--store", "STORE"]
    said = subprocess.run(f"printf '%s\\n' {adopt}", shell=True, check=True, capture_output=True, text=True).stdout
    assert said.split("\n")[:-1] == ["stripewise", "store", "adopt", "--store", "STORE", *map(str, names)]
    # The store that the run had is known.
    (tmp_path / "S").mkdir()
    (tmp_path / "S" / "store.toml").touch()
    meta = {"version": META_VERSION, "store": str(tmp_path / "S")}
    (trace / "meta.json").write_text(json.dumps(meta))
    (command,) = commands(trace)
    assert command.count(f"--store {tmp_path / 'S'}") == 2
    # On a cluster that is named a plan is all that can be made.
    (command,) = commands(trace, "--cluster", cluster_toml)
    assert shlex.split(command)[:2] == ["stripewise", "plan"] and "&&" not in command


def test_reads_in_strides_are_copied(tmp_path, cluster_toml):
    trace = write_rows(tmp_path / "t", RUNS["records with gaps"][0])
    words = ["stripewise", "replicate", str(trace / "trace.parquet")]
    assert [shlex.split(each) for each in commands(trace)] == [[*words, "--store", "STORE"]]
    (command,) = commands(trace, "--cluster", cluster_toml)
    assert shlex.split(command) == [*words, "--what-if", "--cluster", str(cluster_toml)]
    assert "replica" in stripewise(*shlex.split(command)[1:]).stdout


def test_a_log_is_imported_before_it_is_planned(tmp_path, cluster_toml):
    log = tmp_path / "a log's.darshan"
    log.write_bytes(LOG.read_bytes())
    stripewise("import", "darshan", log, "-o", tmp_path / "t")
    run = replace(facts_of(tmp_path / "t"), source=str(log), is_log=True)
    plan = in_a_shell(run.planned(DEFAULT_CLUSTER).replace("CLUSTER", str(cluster_toml)), tmp_path)
    assert plan["files"] and (tmp_path / "a log's-trace" / "trace.parquet").is_file()


def test_commands_for_a_log_that_is_shown_begin_with_its_import(tmp_path):
    stripewise("import", "darshan", LOG, "-o", tmp_path / "t")
    for source, first in ((LOG, "import"), (tmp_path / "t", "plan")):
        run = Page(tmp_path / "t", (), None, source).facts()
        assert shlex.split(run.planned(DEFAULT_CLUSTER))[1] == first


def test_patterns_that_are_not_shown_have_the_whole_command(tmp_path, capsys):
    run = facts_of(write_rows(tmp_path / "my trace", [(0, "read", "/d/f", 0, 4096)]))
    line = FileLine("/d/f", 1, 1, 1, None, (1, 1, 1), None, ("reads",), (), None, 3)
    _print_file(line, run.patterns)
    command = f"stripewise patterns {tmp_path}/my\\ trace/trace.parquet"
    assert f"and 3 pattern(s) more: {command}\n" in capsys.readouterr().out
    log = replace(run, source="/w/a.darshan", is_log=True).patterns
    assert log == "stripewise import darshan /w/a.darshan -o a-trace && stripewise patterns a-trace"


def test_maps_are_told_for_what_goes_through_them_is_in_no_trace(tmp_path, cluster_toml):
    rows = [*opens(1), (0, "mmap", "/d/f", 0, MIB), (0, "mmap", "/d/f", 4096, MIB), (0, "mmap", "/d/g", 0, 4096)]
    # What the system maps is left out as its reads are, and a map that failed is none.
    rows += [(0, "mmap", "/usr/lib/libm.so", 0, MIB), (0, "mmap", "/d/h", 0, -1)]
    trace = write_rows(tmp_path / "t", rows)
    (trace / "meta.json").write_text('{"version": 1}')
    said = "2 files were mapped (1.0 MiB): what a program reads and writes through maps is not in the trace"
    assert said in " ".join(stripewise("show", trace).stdout.split())
    shown = json.loads(stripewise("show", trace, "--json").stdout)
    assert shown["mapped"] == {"files": 2, "bytes": MIB + 8192}
    for words in (("plan", trace, "--cluster", cluster_toml), ("show", trace, "--html", tmp_path / "p.html")):
        assert said in " ".join(stripewise(*words, code=1).stderr.split()), words
    assert maps_in(trace, ("/d/g",)).text.startswith("1 file was mapped (4.0 KiB): ")
    assert maps_in(write_rows(tmp_path / "none", [(0, "read", "/d/f", 0, MIB)])).text == ""
    # Beside requests the page of pictures has it, too.
    both = write_rows(tmp_path / "both", [(0, "read", "/d/f", 0, MIB), (0, "mmap", "/d/f", 0, MIB)])
    stripewise("show", both, "--html", tmp_path / "both.html")
    assert runs_of((tmp_path / "both.html").read_text())[0]["maps"].startswith("1 file was mapped (1.0 MiB)")
