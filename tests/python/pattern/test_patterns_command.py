"""`stripewise patterns`: sentences, commands, what changed, the database, predictions, and what it refuses."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generators import ALL
from pattern_traces import read_table, write_trace
from test_cli import stripewise


@pytest.fixture
def ior(tmp_path):
    return write_trace(tmp_path / "ior", ALL["ior_segments"](4), command=("ior", "-s", "12"))


def test_a_sentence_is_printed_for_each_pattern(ior):
    lines = stripewise("patterns", ior).stdout.splitlines()
    assert lines[0] == "/scratch/out.dat: 384 requests in 2 pattern(s)"
    assert [line.split()[4] for line in lines[1:]] == ["writes", "reads"]


def test_segments_are_printed_as_the_ior_command_that_makes_them(ior):
    first, *lines = stripewise("patterns", ior, "--as", "ior").stdout.splitlines()
    assert first == "# writes to the files named here: change the names first"
    assert lines == [
        f"mpiexec -n 4 ior -a POSIX {mode} -E -k -t 256k -b 1m -s 12 -o /scratch/out.dat" for mode in ("-w", "-r")
    ]


def test_calls_of_mpi_io_are_made_by_ior_as_calls_of_mpi_io(ior):
    place = ior / "trace.parquet"
    rows = pq.read_table(place)
    mpi = {"layer": pa.array(["mpi"] * len(rows)), "op": pa.array([f"mpi_{op}" for op in rows["op"].to_pylist()])}
    for name, column in mpi.items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    pq.write_table(rows, place)
    for layer in ([], ["--layer", "mpi"]):
        said = stripewise("patterns", ior, "--as", "ior", *layer).stdout.splitlines()[1:]
        assert [line.split(" -E")[0] for line in said] == [f"mpiexec -n 4 ior -a MPIIO {mode}" for mode in ("-w", "-r")]


def test_what_ior_cannot_say_is_a_comment(tmp_path):
    trace = write_trace(tmp_path / "t", ALL["mpi_tile_io"](4))
    assert stripewise("patterns", trace, "--as", "ior").stdout == (
        "# IOR: /scratch/out.dat: no command for its one pattern: not laid out as blocks of equal ranks from offset 0 "
        "on; use --as fio\n"
    )
    many = write_trace(tmp_path / "many", ALL["lanl_app2"](4))
    (*_, line) = stripewise("patterns", many, "--as", "ior").stdout.splitlines()
    assert line.startswith("# IOR: /scratch/out.dat: no command for 2 of 3: 1 x ")


@pytest.mark.parametrize("name", ["new\nline", "bad\\xff"])
def test_a_name_that_fio_cannot_have_is_a_comment_of_one_line(name, tmp_path):
    trace = write_trace(tmp_path / "t", ALL["ior_segments"](4), path=f"/d/{name}")
    lines = stripewise("patterns", trace, "--as", "fio").stdout.splitlines()
    assert len(lines) == 2 and all(line.startswith("#") for line in lines)
    ior = stripewise("patterns", trace, "--as", "ior").stdout.splitlines()[1:]
    assert [line.split(" -o ")[1] for line in ior] == ["$'/d/{}'".format(name.replace("\n", "\\n"))] * 2


def test_what_fio_cannot_say_is_a_log_to_replay(tmp_path):
    table = ALL["lanl_app2"](2)
    trace = write_trace(tmp_path / "t", table)
    assert stripewise("patterns", trace, "--as", "fio").stdout.count("[out.dat-") == 2
    said = stripewise("patterns", trace, "--as", "fio", "-o", tmp_path / "logs").stdout
    assert f"[out.dat-2.1]\nioengine=psync\ndirect=0\nread_iolog={tmp_path}/logs/out.dat-2.1.iolog" in said
    lines = (tmp_path / "logs/out.dat-2.1.iolog").read_text().splitlines()
    requests = [line.split(" ") for line in lines[3:-1]]
    assert [(op, int(at), int(size)) for _, op, at, size in requests] == table[1][70:]


def test_runs_that_do_the_same_do_not_differ(tmp_path, ior):
    other = write_trace(tmp_path / "other", ALL["ior_segments"](4), interval_ns=7, path="/else/out.dat")
    assert stripewise("patterns", "diff", ior, other).stdout == "no difference\n"


def test_processes_that_are_numbered_otherwise_do_the_same(tmp_path):
    """Those without ranks are numbered as they come, among others that do other things."""
    table = ALL["ior_segments"](4)
    others = {rank: [("read", 1 << 30, 4096)] for rank in range(3)}
    pair = [
        write_trace(tmp_path / name, {**others, **{rank + by: requests for rank, requests in table.items()}})
        for name, by in (("a", 3), ("b", 4))
    ]
    assert stripewise("patterns", "diff", *pair).stdout == "no difference\n"
    apart = write_trace(tmp_path / "c", {**others, **{2 * rank + 4: requests for rank, requests in table.items()}})
    assert stripewise("patterns", "diff", pair[0], apart).stdout == "no difference\n"
    later = {rank + 3: [(op, at + (1 << 20), size) for op, at, size in each] for rank, each in table.items()}
    said = stripewise("patterns", "diff", pair[0], write_trace(tmp_path / "d", {**others, **later})).stdout
    assert "start r x 1 MiB - 2 MiB, was r x 1 MiB - 3 MiB" in said, said


def test_files_of_other_names_are_named_both_and_unlike_programs_predict_nothing(tmp_path, ior):
    other = write_trace(tmp_path / "other", ALL["lanl_app2"](2), path="/else/mix")
    assert "/else/mix (was /scratch/out.dat)" in stripewise("patterns", "diff", ior, other).stdout.splitlines()
    (first, *_) = json.loads(stripewise("patterns", "diff", ior, other, "--json").stdout)[1:]
    assert (first["file"], first["was"]) == ("/else/mix", "/scratch/out.dat")
    refused = stripewise("patterns", "predict", ior, other, "-n", "8", code=1).stderr
    assert "nothing can be predicted; give runs of one program" in refused, refused


def test_what_changed_is_told(tmp_path):
    table = ALL["ior_segments"](4)
    larger = {rank: [(op, 2 * at, 2 * size) for op, at, size in requests[:48]] for rank, requests in table.items()}
    pair = write_trace(tmp_path / "a", table), write_trace(tmp_path / "b", larger)
    lines = stripewise("patterns", "diff", *pair).stdout.splitlines()
    assert lines[0] == "/scratch/out.dat"
    assert lines[1].startswith("~ request size 512 KiB, was 256 KiB; bytes 96 MiB, was 48 MiB; start r x 2 MiB, was")
    assert lines[2].startswith("- Each of 4 ranks reads") and len(lines) == 3


def test_the_database_keeps_runs_by_application_file_and_processes(tmp_path, ior):
    db = tmp_path / "patterns.db"
    bigger = write_trace(tmp_path / "bigger", ALL["ior_segments"](8), command=("ior", "-s", "12"))
    for trace in (ior, bigger, ior):
        stripewise("patterns", trace, "--db", db)
    rows = sqlite3.connect(db).execute(
        "SELECT processes, number, operation, spatial, size_class, records, bytes FROM patterns"
        " WHERE application = 'ior -s 12' AND file = '/scratch/out.dat' ORDER BY processes, number"
    )
    expected = [(p, n, op, "segmented", "medium", p * 48, p * 12 << 20)
                for p in (4, 8) for n, op in enumerate(("write", "read"))]  # fmt: skip
    assert rows.fetchall() == expected
    pattern = json.loads(sqlite3.connect(db).execute("SELECT pattern FROM patterns").fetchone()[0])
    assert pattern["spatial"] == "segmented"


def test_what_is_no_database_is_refused(tmp_path, ior):
    (tmp_path / "no.db").write_text("this is no database, and long enough to be seen as none" * 9)
    assert "cannot hold patterns" in stripewise("patterns", ior, "--db", tmp_path / "no.db", code=1).stderr
    newer = tmp_path / "newer.db"
    sqlite3.connect(newer).execute("PRAGMA user_version = 2")
    assert "newer" in stripewise("patterns", ior, "--db", newer, code=1).stderr


def test_another_programs_database_is_refused_and_stays_as_it_was(tmp_path, ior):
    for number, words in enumerate(["CREATE TABLE theirs (a)", "CREATE TABLE patterns (a)", "PRAGMA user_version = 1"]):
        db = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(db)) as connection, connection:
            connection.execute(words)
        before = db.read_bytes()
        assert "another program's" in stripewise("patterns", ior, "--db", db, code=1).stderr
        assert db.read_bytes() == before


def test_a_prediction_replaces_no_trace_that_it_is_made_from_and_follows_no_link(tmp_path):
    traces = [write_trace(tmp_path / f"p{p}", ALL["btio"](p)) for p in (4, 8)]
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.write_text("mine")
    said = stripewise("patterns", "predict", *traces, "-n", 12, "-o", tmp_path / "p8", code=2).stderr
    assert "predicted from" in said
    out.mkdir()
    for name in ("trace.parquet", "meta.json"):
        (out / name).symlink_to(precious)
    stripewise("patterns", "predict", *traces, "-n", 16, "-o", out)
    assert precious.read_text() == "mine" and json.loads((out / "meta.json").read_text())["predicted"]


def test_a_prediction_is_a_trace_that_other_verbs_read(tmp_path):
    traces = [write_trace(tmp_path / f"p{p}", ALL["btio"](p)) for p in (4, 8, 12)]
    said = stripewise("patterns", "predict", *traces, "--processes", 16, "-o", tmp_path / "out").stdout
    assert "16 processes: 46,080 requests" in said
    assert "on: 5 rounds, one every 35389440 bytes, of " in said and "one every 3840 bytes, of 3840 bytes\n" in said
    assert "not sure: /scratch/out.dat: rounds, of rank 0: 5 or 0 (by 5 x (3 div side(P)))" in said
    assert read_table(tmp_path / "out") == ALL["btio"](16)
    assert json.loads(stripewise("show", tmp_path / "out", "--json").stdout)["processes"] == 16
    shown = stripewise("show", tmp_path / "out")
    assert "requests; nothing ran: times are the prediction's order" in " ".join(shown.stdout.split())
    assert "nothing ran: the trace is a prediction" in " ".join(shown.stderr.split())
    assert "first to last request:" not in shown.stdout and "memory" not in shown.stdout and " ns" not in shown.stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (("diff", "a"), "diff and two traces"),
        (("predict", "a"), "two traces or more"),
        (("a", "b"), "give one trace"),
        (("a", "--as", "bonnie"), "not known"),
        (("a", "--layer", "stdio"), "not known"),
        (("a", "--processes", "4"), "patterns predict"),
        (("a", "-o", "x"), "belongs to"),
        (("diff", "a", "b", "--db", "x"), "takes neither"),
    ],
)
def test_what_makes_no_sense_is_refused(words, said):
    assert said in stripewise("patterns", *words, code=2).stderr


def test_a_trace_that_is_none_is_one_line(tmp_path):
    assert "does not exist" in stripewise("patterns", tmp_path / "no", code=1).stderr
    (tmp_path / "trace.parquet").write_bytes(b"PAR1 not at all PAR1")
    assert "cannot be read as Parquet" in stripewise("patterns", tmp_path, code=1).stderr


def test_a_directory_without_data_requests_is_told(tmp_path):
    trace = write_trace(tmp_path / "t", {0: [("open", 0, 3)]})
    assert "holds no posix read or write" in stripewise("patterns", trace, code=1).stderr


def test_a_trace_with_the_needed_columns_only_will_do(tmp_path):
    trace = write_trace(tmp_path / "t", ALL["hpio"](1))
    table = pq.read_table(trace / "trace.parquet")
    pq.write_table(table.select(["op", "file", "offset", "done", "start_ns", "end_ns"]), trace / "trace.parquet")
    assert "The process writes 128 small requests" in stripewise("patterns", trace).stdout


def test_a_column_of_a_wrong_type_is_refused(tmp_path):
    trace = write_trace(tmp_path / "t", ALL["hpio"](1))
    table = pq.read_table(trace / "trace.parquet")
    texts = table.column("offset").cast(pa.string())
    pq.write_table(table.set_column(table.column_names.index("offset"), "offset", texts), trace / "trace.parquet")
    assert "column 'offset' is of type string" in stripewise("patterns", trace, code=1).stderr
