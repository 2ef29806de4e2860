"""Tables on narrow screens, the words of their headings, and the glossary that explains them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.cli import output
from stripewise.cli.tables import Table
from stripewise.glossary import COLUMNS, WORDS, found
from stripewise.store.copies.listed import Copies
from test_cli import a_trace, cluster_toml, stripewise

__all__ = ["a_trace", "cluster_toml"]

words = st.text("abcdefgh%/.,-0123456789é世", min_size=1, max_size=14)
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)
#: Words of headings that everybody knows, units among them.
PLAIN = """a and application as bytes capacity fast file files from ib kib mb mean mib ms ns of on policy
processes read reads requests run runs size starts the time times to use value verified write writes written"""


@st.composite
def tables(draw):
    count = draw(st.integers(1, 8))
    made = Table(draw(texts), tuple(draw(texts) for _ in range(count)), draw(st.integers(1, min(2, count))))
    for _ in range(draw(st.integers(0, 5))):
        made.add_row(*(draw(texts) for _ in range(count)))
    return made


@given(tables(), st.integers(40, 120))
def test_no_word_of_a_table_is_broken_and_lines_fit(made, width):
    lines = list(made.lines(width))
    whole = {word for line in lines for word in line.split()}
    for text in (made.title, *made.columns, *(cell for row in made.rows for cell in row)):
        assert set(text.split()) <= whole
    names = {row[0] for row in made.rows} | set(made.columns[:1])
    # Keys of two sentences leave a narrow screen no room for a third column.
    assert all(len(line) <= width or line in names or made.keys == 2 for line in lines), lines


def test_a_table_goes_on_below_with_its_names_again():
    made = Table("", ("name", "first thing", "second thing"), 1)
    made.add_row("a", "1" * 15, "2" * 20)
    made.add_section()
    made.add_row("b", "3", "4")
    assert list(made.lines(30)) == [
        "name      first thing", "----  ---------------", "a     " + "1" * 15, "", "b                   3", "",
        "name          second thing", "----  --------------------", "a     " + "2" * 20, "",
        "b                        4",
    ]  # fmt: skip
    assert next(made.lines(80)) == "name      first thing          second thing"


def test_a_long_name_has_a_line_of_its_own():
    made = Table("", ("file", "size"), 1)
    made.add_row("/" + "d" * 90, "1.0 MiB")
    assert list(made.lines(80)) == ["file", "     size", "  -------", "/" + "d" * 90, "  1.0 MiB"]


@pytest.fixture
def every_table(a_trace, cluster_toml, tmp_path, monkeypatch):
    """The tables of all verbs that print one, by verb."""
    made: dict[str, list[Table]] = {}
    verb = ""
    place = a_trace / "trace.parquet"
    rows = pq.read_table(place)
    for column in ("process", "thread"):
        rows = rows if column in rows.column_names else rows.append_column(column, rows["rank"])
    pq.write_table(rows, place)
    monkeypatch.setattr(output.Results, "print", lambda _, each: made.setdefault(verb, []).append(each))
    monkeypatch.chdir(tmp_path)
    cluster = cluster_toml.read_text()
    shutil.copy(cluster_toml, "c.toml")
    for name in re.findall(r'path = "(.*)"', cluster):
        Path(name).mkdir(parents=True, exist_ok=True)
    load = ("--workload", "uniform", "--requests", "50")
    disk = ("--scheme", "R(4123)", "--used", "10%")
    for verb, line in {
        "init": ("init", "--emulate", "lab"),
        "store df": ("store", "df", "S"),
        "store info": ("store", "info", "S"),
        "store template ls": ("store", "template", "ls", "S"),
        "store plan ls": ("store", "plan", "ls", "S"),
        "store replica ls": ("store", "replica", "ls", "S"),
        "show": ("show", a_trace),
        "show p.json": ("show", "p.json"),
        "replicate": ("replicate", a_trace, "--what-if", "--pattern", "/d/f,read:0:16KiB:1MiBx64@4"),
        "simulate": ("simulate", "--trace", a_trace, "--cluster", "c.toml", "--policy", "def,h2dp"),
        "simulate --sweep": ("simulate", "--trace", a_trace, "--cluster", "c.toml", "--sweep", "hservers=1,2"),
        "simulate --replicas": ("simulate", "--trace", a_trace, "--cluster", "c.toml", "--replicas", "r.json"),
        "model": ("model", "--cluster", "c.toml", "--request", "64KiB"),
        "model --sweep": ("model", "--cluster", "c.toml", "--sweep", "request=4KiB..64KiB"),
        "model map": ("model", "--cluster", "c.toml", "--sweep", "request=4KiB,8KiB", "--sweep", "processes=1..512"),
        "model engine": ("model", "engine", "--request", "64KiB", "--processes", "8", "--write"),
        "swd simulate": ("swd", "simulate", *load, *disk),
        "swd trace": ("swd", "trace", *load, "--space", "60GB"),
        "swd map": ("swd", "map", *load, *disk),
        "swd war": ("swd", "war"),
    }.items():
        if verb == "store replica ls":
            told = "stripewise.cli.store.replica.copies_of"
            monkeypatch.setattr(told, lambda _: [Copies("n", "/d/f", "/d/c", 1, 1, "in use")])
        if verb == "simulate --replicas":
            told = stripewise("replicate", a_trace, "--what-if", "--cluster", "c.toml", "--json").stdout
            Path("r.json").write_text(told)
        if verb == "store df":
            stripewise("store", "create", "S", "--cluster", "c.toml")
            stripewise("plan", a_trace, "--cluster", "c.toml", "--policy", "h2dp", "-o", "p.json")
            stripewise("store", "template", "add", "S", tmp_path / "x*", "--layout", "p.json")
            stripewise("store", "plan", "add", "S", "p.json", "--application", "a b c", "--processes", "4", code=None)
        stripewise(*line)
    return made


def test_tables_of_all_verbs_fit_80_columns_and_their_headings_are_plain_or_in_the_glossary(every_table):
    assert len(every_table) == 20
    known = set(PLAIN.split()) | {name.casefold() for name in WORDS}
    for verb, made in every_table.items():
        for each in made:
            lines = list(replace(each, title="").lines(80))
            assert max(map(len, lines)) <= 80, (verb, lines)
            whole = {word for line in lines for word in line.split()}
            assert {word for heading in each.columns for word in heading.split()} <= whole
            # A map has processes over its columns.
            for heading in () if verb == "model map" else each.columns:
                parts = [part for part in re.split(r"[\s/,%]+", heading.casefold()) if part and not part.isdigit()]
                unknown = [part for part in parts if not {part, part.removesuffix("s")} & known]
                assert heading.casefold() in known or not unknown, (verb, heading, unknown)


def test_headings_that_puzzle_a_newcomer_are_explained_where_he_looks(every_table):
    for verb, words in {
        "init": "startup,MB/s", "show": "furthest byte,median,first to last request,entries,reason", "files": "rule",
        "plan": "rotated,entries", "store layout": "rotated", "simulate": "I/O times def,run times def,MB/s",
        "swd simulate": "mean ms,read ms,write ms",
    }.items():  # fmt: skip
        assert set(words.split(",")) <= set(COLUMNS[verb]) <= set(WORDS), verb
    (page, *_), (table,) = every_table["show"], every_table["show p.json"]
    assert page.columns[1] == "furthest byte" and page.columns[-1] == "first to last request"
    assert table.title.endswith("; 1 window(s)") and "entries (each region, and each of its moves)" in table.title


def test_rates_are_in_megabytes_a_second_everywhere(every_table):
    (made,) = every_table["init"]
    assert made.columns[3:5] == ("read startup ms", "read MB/s")
    assert [row[3:5] for row in made.rows] == [("3.000", "100")] * 4 + [("0.100", "400")] * 2
    root = Path(__file__).parents[2]
    told = [*(root / "python").rglob("*.py"), *(root / "python").rglob("*.js"), *(root / "docs").rglob("*.md")]
    assert [page.name for page in told if "MiB/s" in page.read_text()] == []


def test_the_help_of_a_verb_with_a_table_says_what_its_columns_mean():
    for verb, names in COLUMNS.items():
        assert set(names) <= set(WORDS), verb
        said = stripewise(*verb.split(), "--help").output
        assert "'stripewise glossary'" in said and all(f"    {name} " in said for name in names), said
        assert max(map(len, said[said.index("Columns (") :].splitlines())) <= 80


def test_words_are_found_whatever_their_case_and_number():
    assert "ROMIO" in found("sieving")["sieving"].text and "at random" in found("drawn")["drawn"].text
    assert list(found("HSERVERS")) == ["HServer"] and list(found("rmt")) == ["RMT"]
    assert {"segment model", "at work by the model"} <= set(found("model"))
    assert "H2DP" in stripewise("glossary", "ddm").output
    assert "did you mean plane" in stripewise("glossary", "palne", code=2).stderr
    assert all(entry.text.endswith(".") for entry in WORDS.values())


def test_the_glossary_is_light():
    code = "import sys; from stripewise.cli.main import app; print({'numpy', 'pyarrow', 'rich'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("group", [[], ["store"], ["mover"], ["swd"], ["store", "template"], ["store", "replica"]])
def test_lists_of_verbs_cut_no_sentence(group):
    rows = stripewise(*group, "--help").stdout.split("Commands:")[1].splitlines()
    assert not [row for row in rows if row.endswith("...") or len(row) > 80]
    # A sentence has one line, but for some that are still longer.
    if group in ([], ["mover"], ["swd"]):
        assert [row.strip() for row in rows if row.startswith("    ")] in ([], ["store."])
