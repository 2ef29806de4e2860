"""Which files of a trace count: nobody's are left out that somebody tunes, and the largest come first."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from runs import write_rows
from stripewise.cli.main import app
from stripewise.errors import NoRequestsError
from stripewise.pattern.records import read_records
from stripewise.workload.counted import LARGE_BYTES, LEAST_BYTES, Choice, Rule, Touched
from stripewise.workload.trace import read_trace, run_end, wanted_files
from support import KIB, MIB

VERBS = Choice(least_bytes=LEAST_BYTES)
NAMES = [
    "/d/a",
    "/d/b.h5",
    "/usr/share/x",
    "/usr/lib/y.so",
    "/dev/shm/z",
    "/v/site-packages/m.py",
    "/w/c.pyc",
    "/w/out",
]


def counted(files, choice=VERBS, **options):
    """The files that count of some with so many bytes each, and why others do not."""
    touched = {name: each if isinstance(each, Touched) else Touched(each) for name, each in files.items()}
    found = wanted_files(touched, choice, **options)
    return list(found.files), found.left_out


@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.builds(Touched, st.integers(1, 2 * LARGE_BYTES), st.booleans(), st.booleans()),
        min_size=1,
    ),
    st.sets(st.sampled_from(NAMES)),
    st.sampled_from(["", "/w"]),
)
def test_managed_and_named_files_always_count_and_the_most_bytes_come_first(touched, named, place):
    found = wanted_files(touched, VERBS, place=place)
    assert {name for name, file in touched.items() if file.managed} <= set(found.files)
    order = [(-touched[name].bytes, name) for name in found.files]
    assert order == sorted(order)
    assert set(found.files) | set(found.left_out) == set(touched)
    assert not set(found.files) & set(found.left_out)
    assert sum(count for _, count in found.numbers) == len(found.left_out)
    if named:
        chosen = wanted_files(touched, Choice(tuple(named), least_bytes=LEAST_BYTES), place=place)
        assert set(chosen.files) == named & set(touched) and not chosen.left_out


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/usr/share/zoneinfo/UTC", "system"), ("/lib64/ld.so", "system"), ("/etc/hosts", "system"),
        ("/proc/1/net/route", "system"), ("/dev/shm/mpich_shm_1", "system"), ("<STDOUT>", "system"),
        ("socket:[77]", "system"), ("pipe:[3]", "system"), ("/run/user/0/bus", "system"),
        ("/home/u/m/__pycache__/m.cpython-311.pyc", "code"), ("/opt/conda/lib/python3.12/os.py", "code"),
        ("/v/lib/python3.11/site-packages/numpy/x.npz", "code"), ("/home/u/libm.so.6", "code"),
        ("/v/pyvenv.cfg", "code"), ("/tmp/hydra_hwloc_xmlfile_B9i9MT", "runtime"),
        ("/scratch/tmp/ompi.node.0/pid.1/1/x", "runtime"), ("/s/t/10-2.swt", "runtime"),
        ("/s/store/files/e79dbdd8b85dd3af/ctl", "runtime"),
    ],
)  # fmt: skip
def test_what_nobody_tunes_is_left_out_by_its_kind(name, kind):
    assert counted({name: MIB, "/d/f": MIB}) == (["/d/f"], {name: kind})


@pytest.mark.parametrize(
    "name",
    ["/opt/data/in.nc", "/data/usr/f", "/home/u/socket", "/var/lib/db/f", "/run/media/u/disk/f", "/d/soap.sob",
     "/d/m.pyx", "/s/files/experiment-000001/ctl", "/home/u/.cache/set/f", "/tmp/out.dat"],
)  # fmt: skip
def test_what_looks_alike_counts(name):
    assert counted({name: MIB}) == ([name], {})


def test_a_large_input_counts_wherever_it_lies_but_for_what_no_store_holds():
    files = {"/usr/share/era5.nc": LARGE_BYTES, "/usr/share/b": LARGE_BYTES - 1, "/dev/shm/s": 9 * LARGE_BYTES}
    assert counted(files) == (["/usr/share/era5.nc"], {"/usr/share/b": "system", "/dev/shm/s": "system"})


def test_what_the_run_wrote_below_its_directory_counts_and_what_it_read_there_goes_by_the_list():
    written = {name: Touched(MIB, written=True) for name in ("/usr/local/w/out", "/usr/local/w/m.so", "/usr/local/wx")}
    files = {**written, "/usr/local/w/in": MIB, "/usr/local/w/m.pyc": Touched(MIB, written=True)}
    left_out = {"/usr/local/w/in": "system", "/usr/local/w/m.pyc": "code", "/usr/local/wx": "system"}
    assert counted(files, place="/usr/local/w") == (["/usr/local/w/m.so", "/usr/local/w/out"], left_out)
    assert not counted(written | {"/d/f": MIB}, place="/")[1].keys() - written.keys()
    assert counted(written | {"/d/f": MIB}, place="/")[0] == ["/d/f"], "every file is below /"


def test_a_small_file_counts_only_among_small_ones_or_in_a_store():
    assert counted({"/d/a": LEAST_BYTES, "/d/b": LEAST_BYTES - 1}) == (["/d/a"], {"/d/b": "small"})
    assert counted({"/d/a": 10, "/d/b": 20, "/etc/x": 10}) == (["/d/b", "/d/a"], {"/etc/x": "system"})
    assert counted({"/d/a": MIB, "/d/b": 20}, held=lambda path: path == "/d/b") == (["/d/a", "/d/b"], {})
    assert counted({"/d/a": MIB, "/d/b": 1}, Choice())[0] == ["/d/a", "/d/b"], "who reads a trace by himself"


def test_where_there_are_managed_files_others_are_told_to_lie_outside():
    files = {"/d/a": Touched(10, managed=True), "/usr/x": Touched(MIB, managed=True), "/d/b": MIB}
    assert counted(files) == (["/usr/x", "/d/a"], {"/d/b": "outside stores"})
    assert counted(files, prefers_managed=False) == (["/d/b", "/usr/x", "/d/a"], {})
    # What no pattern covers either is told by the same kind.
    files = {"/d/a": Touched(10, managed=True), "/usr/y": MIB, "/d/m.pyc": MIB, "/d/b": MIB}
    told = {"/usr/y": "system", "/d/m.pyc": "code"}
    assert counted(files) == (["/d/a"], told | {"/d/b": "outside stores"})
    assert counted(files, prefers_managed=False) == (["/d/b", "/d/a"], told)


def test_rules_go_before_the_list_and_the_first_that_matches_decides():
    files = {"/usr/a": MIB, "/d/x.log": MIB, "/d/logs/1": MIB, "/d/f": MIB, "/d/s": 1}
    rules = (
        Rule("*/x.log", False),
        Rule("/d/logs", False),
        Rule("*.log", True),
        Rule("/usr/*", True),
        Rule("/d/s", True),
    )
    excluded = {"/d/x.log": "excluded", "/d/logs/1": "excluded"}
    assert counted(files, Choice(rules=rules, least_bytes=LEAST_BYTES)) == (["/d/f", "/usr/a", "/d/s"], excluded)
    own = Choice(own=(Rule("/d/f", False),), rules=(Rule("/d/f", True),))
    assert "/d/f" in counted(files, own)[0], "an option goes before the user's list"


def test_all_files_are_all_but_those_of_an_option():
    files = {"/usr/a": 1, "<STDIN>": 2, "/d/f": MIB, "/d/x": Touched(3, managed=True)}
    choice = Choice(all_files=True, rules=(Rule("/usr/a", False),), own=(Rule("/d/f", False),), least_bytes=LEAST_BYTES)
    assert counted(files, choice) == (["/d/f", "/d/x", "<STDIN>"], {"/usr/a": "excluded"})


def test_a_name_of_odd_bytes_is_no_trouble():
    names = ["/d/new\nline.pyc", "/d/\udcff", "/d/[a]*", "/d/ "]
    assert counted(dict.fromkeys(names, MIB)) == (sorted(names[1:]), {names[0]: "code"})


@pytest.fixture
def rows(tmp_path):
    return write_rows(
        tmp_path / "t",
        [(0, "write", "/d/b", 0, MIB), (0, "read", "/d/a", 0, 2 * MIB), (0, "read", "/usr/x", 0, 9 * KIB)],
    )


def test_readers_have_files_in_the_order_of_their_bytes(rows):
    assert [file.path for file in read_trace(rows).files] == ["/d/a", "/d/b"]
    assert [file.path for file in read_records(rows).files] == ["/d/a", "/d/b"]
    assert read_trace(rows).left_out == read_records(rows).left_out == (("system", 1),)


def test_a_trace_of_files_that_do_not_count_says_how_to_have_them(tmp_path):
    place = write_rows(tmp_path / "t", [(0, "read", "/usr/x", 0, MIB), (0, "read", "/w/c.pyc", 0, MIB)])
    with pytest.raises(NoRequestsError, match=r"2 files left out \(code 1, system 1\); --all-files includes them"):
        read_trace(place)


def said(*words, code=0):
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, result.output
    return result


CLUSTER = """
[[target]]
name = "a"
class = "hdd"
kind = "dir"
path = "a"
startup_read_s = 0.003
startup_write_s = 0.003
per_byte_read_s = 1e-8
per_byte_write_s = 1e-8
"""


def test_the_list_is_seen_and_changed(rows, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "*.pyc" in said("files").stdout and "none" in said("files").stdout
    kinds = {row["path"]: row["kind"] for row in json.loads(said("files", rows, "--json").stdout)}
    assert kinds == {"/d/a": "counts", "/d/b": "counts", "/usr/x": "system"}
    (tmp_path / "stripewise").mkdir()
    (tmp_path / "stripewise/files.toml").write_text('include = ["/usr/x"]\nexclude = ["a"]\nleast = "2MiB"\n')
    kinds = {row["path"]: row["kind"] for row in json.loads(said("files", rows, "--json").stdout)}
    assert kinds == {"/d/a": "excluded", "/d/b": "small", "/usr/x": "counts"}
    page = said("show", rows, "--json")
    assert [file["path"] for file in json.loads(page.stdout)["files"]] == ["/usr/x"]
    assert json.loads(page.stdout)["left_out"] == {"excluded": 1, "small": 1}
    # What is left out is told where it is planned for (and collected), not at each look at the trace.
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    planned = said("plan", rows, "--cluster", tmp_path / "cluster.toml", "--policy", "def", "--include", "/usr/x")
    assert (
        planned.stderr.splitlines()[-1]
        == "stripewise: 2 files left out (excluded 1, small 1); --all-files includes them"
    )
    words = ("show", rows, "--html", tmp_path / "o.html", "--perfetto", tmp_path / "o.pf", "--beside", rows)
    for each in (page, said(*words), said("patterns", rows), said("replicate", rows, "--what-if")):
        assert "left out" not in each.stderr
    everything = json.loads(said("patterns", rows, "--all-files", "--json").stdout)
    assert [file["path"] for file in everything["files"]] == ["/d/a", "/d/b", "/usr/x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("include = 3", "include = 3 is not a list"),
        ('include = ["data/x"]', "include has 'data/x'"),
        ('includes = ["/x"]', "did you mean include?"),
        ('least = "much"', "least: 'much' is not a size"),
        ("least = 16", "least = 16 is not a string"),
        ("include = [", "not TOML"),
    ],
)
def test_a_bad_list_is_one_sentence_with_its_file(rows, tmp_path, monkeypatch, text, told):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "stripewise").mkdir()
    (tmp_path / "stripewise/files.toml").write_text(text)
    error = said("show", rows, code=2).stderr
    assert told in error and "files.toml" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "is not a regular file"),
        (os.mkdir, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.symlink_to("gone"), "cannot be read"),
        (lambda path: path.write_text("#" * (MIB + 1)), "is longer than 1,048,576 bytes"),
    ],
)
def test_a_list_that_is_no_short_file_is_refused_and_never_waited_for(rows, tmp_path, monkeypatch, make, told):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "stripewise").mkdir()
    make(tmp_path / "stripewise/files.toml")
    error = said("show", rows, code=2).stderr
    assert told in error and "files.toml" in error and "remove it" in error and error.count("\n") == 1


def test_a_list_may_be_a_link_to_a_file_of_the_greatest_length(rows, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "stripewise").mkdir()
    (tmp_path / "stripewise/files.toml").symlink_to(tmp_path / "list")
    (tmp_path / "list").write_text('exclude = ["a"]\n'.ljust(MIB, "#"))
    kinds = {row["path"]: row["kind"] for row in json.loads(said("files", rows, "--json").stdout)}
    assert kinds["/d/a"] == "excluded"


def test_what_counts_is_listed_first_and_of_the_rest_the_largest(tmp_path):
    rows = [(0, "read", f"/usr/{n}", 0, (n + 1) * KIB) for n in range(17)]
    place = write_rows(tmp_path / "t", [*rows, (0, "read", "/d/f", 0, 16 * KIB)])
    lines = [line.split() for line in said("files", place).stdout.splitlines()]
    assert lines[0][-2:] == ["counts", "/d/f"] and lines[1][:3] == ["1", "file(s)", "count;"]
    assert [line[-1] for line in lines[2:-1]] == [f"/usr/{n}" for n in range(16, 1, -1)]
    assert lines[-1] == ["and", "2", "more;", "--all", "lists", "them"]
    lines = [line.split() for line in said("files", place, "--all").stdout.splitlines()]
    assert len(lines) == 19 and lines[-1][-1] == "/usr/0"


def test_file_and_all_files_do_not_go_together(rows):
    assert "--all-files" in said("show", rows, "--file", "/d/*", "--all-files", code=2).stderr


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({}, ""), ({"exit_status": 0}, ""), ({"exit_status": 3}, "exit status 3"),
        ({"exit_status": 137, "signal": 9}, "SIGKILL"), ({"exit_status": None}, "unknown"),
        ({"exit_status": "x", "signal": True}, "unknown"), ({"exit_status": 199, "signal": 63}, "signal 63"),
    ],
)  # fmt: skip
def test_how_a_run_ended_is_said_where_it_did_not_end_well(rows, meta, text):
    (rows / "meta.json").write_text(json.dumps(meta))
    assert text in run_end(rows).text and bool(run_end(rows).text) == bool(text)
