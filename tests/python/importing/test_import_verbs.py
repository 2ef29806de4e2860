"""`stripewise import`, and the verbs that read what it wrote: they run unchanged, and say that the trace is partial."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stripewise.importing import records
from stripewise.importing.formats import FORMATS
from stripewise.workload import trace
from test_cli import cluster_toml as cluster_toml
from test_cli import stripewise
from test_import_lanl import OPEN, REST

ROOT = Path(__file__).resolve().parents[3]
PARTIAL = "the trace is partial: its times are of the day, without a date"


@pytest.fixture
def partial(tmp_path):
    """An imported trace that is partial."""
    (tmp_path / "trace.txt").write_text(OPEN + REST)
    said = stripewise("import", "lanl", tmp_path / "trace.txt", "-o", tmp_path / "t")
    assert "5 records of 1 process(es)" in said.stdout and PARTIAL in said.stderr
    return tmp_path / "t"


def test_every_verb_that_reads_the_trace_says_that_it_is_partial(tmp_path, partial, cluster_toml):
    for words in (
        ["show", partial],
        ["plan", partial, "--cluster", cluster_toml, "-o", tmp_path / "plan.json"],
        ["simulate", "--trace", partial, "--cluster", cluster_toml, "--policy", "def"],
        ["simulate", "--trace", partial, "--cluster", cluster_toml, "--plan", tmp_path / "plan.json"],
    ):
        for more in ([], ["--json"]):
            said = stripewise(*words, *more).stderr
            # A busy machine has lines of progress beside it.
            assert said.count(PARTIAL) == said.count("stripewise: ") == 1, said
    assert json.loads((tmp_path / "plan.json").read_text())["files"][0]["size"] == 458752


def test_a_whole_trace_is_not_said_to_be_partial(tmp_path, cluster_toml):
    (tmp_path / "trace.csv").write_text("op,file,offset,size,start_s,end_s\nwrite,/data/f,0,65536,0,1\n")
    said = stripewise("import", "csv", tmp_path / "trace.csv", "-o", tmp_path / "t", "--json")
    assert json.loads(said.stdout)["partial"] == [] and not said.stderr
    planned = stripewise("plan", tmp_path / "t", "--cluster", cluster_toml, "--policy", "def")
    assert not planned.stderr


def test_what_was_skipped_is_said(tmp_path):
    (tmp_path / "trace.txt").write_text(OPEN + "nonsense\n" + REST)
    assert "line 7" in stripewise("import", "lanl", tmp_path / "trace.txt", "-o", tmp_path / "t", code=1).stderr
    said = stripewise("import", "lanl", tmp_path / "trace.txt", "-o", tmp_path / "t", "--lenient").stderr
    assert "trace.txt: 1 bad lines or records skipped" in said and "1 bad lines or records were skipped" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nothing", "trace.txt"], 2, "FORMAT: 'nothing' is unknown; use one of"),
        (["csv", "missing"], 1, "missing: does not exist"),
        (["csv", "."], 1, ": is a directory; give the files of a trace"),
    ],
)
def test_what_cannot_be_imported_is_one_line(tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    result = stripewise("import", *words, "-o", tmp_path / "t", code=code)
    assert said in result.stderr and len(result.stderr.splitlines()) == 1


def test_the_page_tells_of_every_format():
    page = (ROOT / "docs/traces/importing.md").read_text()
    for name in FORMATS:
        assert f"| `{name}` |" in page
    assert all(name in stripewise("import", "--help").stdout for name in FORMATS)


def test_names_and_bits_are_those_of_the_tracer():
    source = (ROOT / "crates/trace/src/record.rs").read_text()
    known = dict(re.findall(r"(\w+) = \d+, \"(\w+)\";", source))
    assert set(records.OPS) == set(known.values())
    bits = dict(re.findall(r"pub const (\w+): u32 = (?:1 << )?(\d+);", source))
    for name in ("MANAGED", "COLLECTIVE", "NONBLOCKING", "IMPLICIT_OFFSET", "UNKNOWN_OFFSET", "VECTOR", "DIRECT"):
        assert getattr(records, name) == 1 << int(bits[name]), name
    assert records.UNKNOWN_OFFSET == trace.FLAG_UNKNOWN_OFFSET and records.MANAGED == trace.FLAG_MANAGED


def test_the_columns_are_those_that_collect_writes(tmp_path):
    import pyarrow.parquet as pq

    from stripewise.importing.writer import _SCHEMA

    source = (ROOT / "crates/trace/src/reader/columns.rs").read_text()
    declared = re.findall(r"(REQUIRED|OPTIONAL) (\w+) (\w+)(?: \(STRING\))?;", source)
    assert [(name, need == "OPTIONAL") for need, _, name in declared] == [(f.name, f.nullable) for f in _SCHEMA]
    (tmp_path / "trace.csv").write_text("op,file,offset,size,start_s,end_s\nwrite,/data/f,0,65536,0,1\n")
    stripewise("import", "csv", tmp_path / "trace.csv", "-o", tmp_path)
    schema = pq.ParquetFile(tmp_path / "trace.parquet").schema
    found = [(schema.column(n).physical_type, schema.column(n).name) for n in range(len(schema))]
    assert found == [(kind, name) for _, kind, name in declared]


def test_a_file_that_is_given_twice_does_not_count_twice(tmp_path):
    (tmp_path / "trace.csv").write_text("op,file,offset,size,start_s,end_s\nwrite,/data/f,0,65536,0,1\n")
    (tmp_path / "again.csv").symlink_to("trace.csv")
    words = ["import", "csv", tmp_path / "trace.csv", tmp_path / "again.csv", "-o", tmp_path / "t"]
    assert "is given twice" in stripewise(*words, code=1).stderr
    assert not (tmp_path / "t" / "trace.parquet").exists()
