"""Darshan logs: all that its package ships, beside PyDarshan's own totals, and logs that are written here."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from darshan_log import Writer
from hypothesis import example, given
from hypothesis import strategies as st

from imports import brief, rows_of
from stripewise.errors import WorkloadError
from stripewise.importing.darshan import counters, parent
from stripewise.importing.darshan.counters import Counted, expanded, is_sane
from stripewise.importing.darshan.reader import SEGMENT
from stripewise.importing.formats import import_trace
from stripewise.workload.trace import read_trace

PACKAGE = Path(importlib.util.find_spec("darshan").submodule_search_locations[0])
EXAMPLES = sorted({path.name: path for path in PACKAGE.rglob("*.darshan")}.values())
START_S = 1_700_000_000


def imported(tmp_path, *logs, **options):
    meta = import_trace("darshan", logs, tmp_path / "out", base=Path("/"), **options)
    return rows_of(meta, tmp_path / "out")


def pydarshan(log):
    from darshan import DarshanReport

    return DarshanReport(str(log), read_all=True)


def totals(report):
    """(reads, writes, bytes read, bytes written) per path: of POSIX and STDIO where they touched it, else of MPI-IO."""
    found = {
        "posix": defaultdict(lambda: np.zeros(4, dtype=np.int64)),
        "mpi": defaultdict(lambda: np.zeros(4, np.int64)),
    }
    kinds = ("INDEP", "COLL", "SPLIT", "NB")
    for module, prefix, layer in (("POSIX", "POSIX", "posix"), ("STDIO", "STDIO", "posix"), ("MPI-IO", "MPIIO", "mpi")):
        if module not in report.records:
            continue
        for record in report.records[module].to_dict():
            values = record["counters"]
            name = report.name_records[record["id"]]
            name = name if name.startswith(("/", "<")) else f"/{name}"
            if layer == "mpi":
                counts = [sum(values[f"MPIIO_{kind}_{verb}"] for kind in kinds) for verb in ("READS", "WRITES")]
            else:
                counts = [values[f"{prefix}_READS"], values[f"{prefix}_WRITES"]]
            found[layer][name] += [*counts, values[f"{prefix}_BYTES_READ"], values[f"{prefix}_BYTES_WRITTEN"]]
    known = {name for name, sums in found["posix"].items() if sums[:2].any()}
    merged = {**found["mpi"], **{name: found["posix"][name] for name in known}}
    return {name: tuple(sums.tolist()) for name, sums in merged.items() if sums[:2].any()}


@pytest.mark.parametrize("log", EXAMPLES, ids=lambda log: log.stem[:30])
def test_counts_and_bytes_of_every_example_are_those_of_pydarshan(tmp_path, log):
    meta = import_trace("darshan", [log], tmp_path / "out", base=Path("/"))
    ours = {
        file["path"]: (file["reads"], file["writes"], file["bytes_read"], file["bytes_written"])
        for file in meta["files"]
        if file["reads"] or file["writes"]
    }
    report = pydarshan(log)
    assert ours == totals(report)
    assert meta["processes"][0]["world"] == report.metadata["job"]["nprocs"]
    has_dxt = any(module.startswith("DXT") for module in report.modules)
    assert any("it has no DXT" in reason for reason in meta["partial"]) != has_dxt
    for module, known in report.modules.items():
        assert any(f"room for all records of {module}" in reason for reason in meta["partial"]) == known["partial_flag"]


def test_there_are_examples_with_dxt_and_lustre():
    assert len(EXAMPLES) >= 10 and {"dxt.darshan", "sample-dxt-simple.darshan"} <= {log.name for log in EXAMPLES}


@pytest.mark.parametrize("name", ["dxt.darshan", "sample-dxt-simple.darshan", "ior_hdf5_example.darshan"])
def test_segments_are_those_of_pydarshan(tmp_path, name):
    log = next(path for path in EXAMPLES if path.name == name)
    report = pydarshan(log)
    expected = Counter()
    for module, layer in (("DXT_POSIX", ""), ("DXT_MPIIO", "mpi_")):
        for record in report.records.get(module, []):
            for kind in ("read", "write"):
                for each in record[f"{kind}_segments"]:
                    place = (report.name_records[record["id"]], each["offset"], each["length"])
                    times = (round(each["start_time"] * 1e9), round(each["end_time"] * 1e9))
                    expected[f"{layer}{kind}", record["rank"], *place, *times] += 1
    meta, rows = imported(tmp_path, log)
    since = meta["zero_unix_ns"] - report.metadata["job"]["start_time_sec"] * 10**9
    found = Counter(
        (
            row["op"],
            row["rank"],
            row["file"],
            row["offset"],
            row["done"],
            row["start_ns"] + since,
            row["end_ns"] + since,
        )
        for row in rows
    )
    assert expected and not expected - found


def test_what_lay_on_lustre_is_kept(tmp_path):
    log = next(path for path in EXAMPLES if path.name == "sample-goodost.darshan")
    meta, _ = imported(tmp_path, log)
    report = pydarshan(log)
    expected = {}
    for record in report.records["LUSTRE"].to_df()["components"].to_dict("records"):
        path = report.name_records[record["id"]]
        expected[path] = (record["LUSTRE_COMP_STRIPE_SIZE"], [int(ost) for ost in record["LUSTRE_OST_IDS"]])
    found = {
        each["path"]: (each["components"][0]["stripe_size"], each["components"][0]["osts"]) for each in meta["layouts"]
    }
    assert found == expected and len(found) == 48


@pytest.fixture(scope="module")
def writer():
    return Writer()


def segments(count, size=4096, first=0, begin_s=1.0):
    made = np.zeros(count, SEGMENT)
    made["offset"] = first + np.arange(count) * size
    made["length"] = size
    made["start_s"] = begin_s + np.arange(count) * 1e-3
    made["end_s"] = made["start_s"] + 5e-4
    return made


def whole(count, **more):
    size = 4096
    return {
        "POSIX_WRITES": count,
        "POSIX_BYTES_WRITTEN": count * size,
        "POSIX_MAX_BYTE_WRITTEN": count * size - 1,
        **more,
    }


def test_segments_become_rows_of_their_rank(tmp_path, writer):
    log = tmp_path / "a.darshan"
    records = [("POSIX", writer.counters("POSIX", 5, rank, whole(3))) for rank in range(2)]
    records += [
        ("DXT_POSIX", writer.segments(5, rank, segments(3, first=rank << 20), segments(0))) for rank in range(2)
    ]
    writer.write(log, {5: "/scratch/f"}, records, processes=2, command="./app -n 3")
    meta, rows = imported(tmp_path, log)
    assert meta["partial"] == [] and meta["command"] == ["./app", "-n", "3"]
    assert brief(rows, "rank", "world", "host", "op", "file", "offset", "done", "start_ns") == [
        (rank, 2, "node0", "write", "/scratch/f", (rank << 20) + n * 4096, 4096, n * 1_000_000)
        for rank in range(2)
        for n in range(3)
    ]
    assert meta["zero_unix_ns"] == (START_S + 1) * 10**9
    assert read_trace(tmp_path / "out").processes == 2


def test_a_cap_of_dxt_that_was_hit_is_told(tmp_path, writer):
    log = tmp_path / "a.darshan"
    records = [("POSIX", writer.counters("POSIX", 5, 0, whole(10)))]
    records += [("DXT_POSIX", writer.segments(5, 0, segments(4), segments(0)))]
    writer.write(log, {5: "/f"}, records)
    meta, rows = imported(tmp_path, log)
    assert len(rows) == 4
    assert meta["partial"][0].startswith("a.darshan: DXT_POSIX has 4 of 10 requests on its files")


def test_a_module_that_darshan_had_no_room_for_is_told(tmp_path, writer):
    log = tmp_path / "a.darshan"
    writer.write(log, {5: "/f"}, [("POSIX", writer.counters("POSIX", 5, 0, whole(10)))], partial=1 << 1)
    assert "no room for all records of POSIX" in imported(tmp_path, log)[0]["partial"][0]


def test_files_that_dxt_has_nothing_of_come_from_their_counters(tmp_path, writer):
    log = tmp_path / "a.darshan"
    records = [("POSIX", writer.counters("POSIX", number, 0, whole(3))) for number in (5, 6)]
    records += [("DXT_POSIX", writer.segments(5, 0, segments(3), segments(0)))]
    writer.write(log, {5: "/f", 6: "/g"}, records)
    meta, rows = imported(tmp_path, log)
    assert Counter(row["file"] for row in rows) == {"/f": 3, "/g": 3}
    assert "DXT has nothing of some files: sizes, offsets and times of 3 requests are estimated" in meta["partial"][0]


def test_an_mpi_file_without_posix_calls_can_be_planned(tmp_path, writer):
    log = tmp_path / "a.darshan"
    counted = {"MPIIO_COLL_WRITES": 3, "MPIIO_BYTES_WRITTEN": 3 * 4096}
    records = [("MPI-IO", writer.counters("MPI-IO", 5, 0, counted))]
    records += [("DXT_MPIIO", writer.segments(5, 0, segments(3), segments(0)))]
    writer.write(log, {5: "/f"}, records)
    meta, rows = imported(tmp_path, log)
    assert {row["op"] for row in rows} == {"write"} and "only MPI-IO calls are known" in meta["partial"][-1]
    assert read_trace(tmp_path / "out").requests == 3


def test_counted_requests_beyond_all_bounds_are_left_out(tmp_path, writer, monkeypatch):
    monkeypatch.setattr("stripewise.importing.darshan.reader.EXPANDED_MAX", 100)
    log = tmp_path / "a.darshan"
    records = [("POSIX", writer.counters("POSIX", number, 0, whole(count))) for number, count in ((5, 60), (6, 10**15))]
    writer.write(log, {5: "/f", 6: "/g"}, records)
    meta, rows = imported(tmp_path, log)
    assert len(rows) == 60 and "1,000,000,000,000,000 counted requests are left out" in meta["partial"][-1]


@pytest.mark.parametrize("key", ["start_s", "end_s", "length", "offset"])
def test_a_segment_that_cannot_be_is_refused_or_skipped(tmp_path, writer, key):
    log = tmp_path / "a.darshan"
    bad = segments(3)
    bad[key][1] = {"start_s": np.nan, "end_s": -1, "length": -5, "offset": (1 << 63) - 1}[key]
    records = [("DXT_POSIX", writer.segments(5, 0, bad, segments(0)))]
    records += [("DXT_POSIX", writer.segments(6, 1, segments(2), segments(0)))]
    writer.write(log, {5: "/f", 6: "/g"}, records, processes=2)
    with pytest.raises(
        WorkloadError, match=r"a\.darshan: a record of its module DXT_POSIX has times, sizes or offsets"
    ):
        imported(tmp_path, log)
    meta, rows = imported(tmp_path, log, lenient=True)
    assert {row["file"] for row in rows} == {"/g"} and meta["skipped"]


NUMBERS = st.integers(0, 200)


@example(0, 1, 0, 0, -1, (0, 0), 0, 0, "POSIX")
@example(0, 0, 0, 0, 0, (0, 0), -2, 0, "POSIX")
@given(
    reads=NUMBERS, writes=NUMBERS, read_bytes=st.integers(0, 1 << 40), written_bytes=st.integers(0, 1 << 40),
    top=st.integers(-1, 1 << 41), common=st.tuples(st.integers(0, 1 << 20), NUMBERS), stride=st.integers(-9, 1 << 22),
    rank=st.integers(-1, 3), module=st.sampled_from(["POSIX", "STDIO", "MPI-IO"]),
)  # fmt: skip
def test_requests_from_counters_have_their_numbers_and_bytes(
    reads, writes, read_bytes, written_bytes, top, common, stride, rank, module
):
    prefix = {"MPI-IO": "MPIIO"}.get(module, module)
    read, write = (
        ("MPIIO_INDEP_READS", "MPIIO_COLL_WRITES") if module == "MPI-IO" else (f"{prefix}_READS", f"{prefix}_WRITES")
    )
    counts = {
        read: reads, write: writes, f"{prefix}_BYTES_READ": read_bytes if reads else 0,
        f"{prefix}_BYTES_WRITTEN": written_bytes if writes else 0, f"{prefix}_MAX_BYTE_READ": top,
        f"{prefix}_MAX_BYTE_WRITTEN": top, f"{prefix}_ACCESS1_ACCESS": common[0], f"{prefix}_ACCESS1_COUNT": common[1],
        f"{prefix}_STRIDE1_STRIDE": stride, f"{prefix}_STRIDE1_COUNT": reads,
    }  # fmt: skip
    times = {
        f"{prefix}_F_READ_START_TIMESTAMP": 1.0,
        f"{prefix}_F_READ_END_TIMESTAMP": 3.0,
        f"{prefix}_F_READ_TIME": 9.0,
    }
    counted = Counted(module, 0, rank, counts, times)
    assert is_sane(counted)
    rows = expanded(counted, 10**18)
    is_read = np.isin(rows["op"], [counters.OP["read"], counters.OP["mpi_read"]])
    assert (int(is_read.sum()), int((~is_read).sum())) == (reads, writes)
    assert int(rows["done"][is_read].sum()) == (read_bytes if reads else 0)
    assert int(rows["done"][~is_read].sum()) == (written_bytes if writes else 0)
    known = (rows["flags"] & counters.UNKNOWN_OFFSET) == 0
    assert (rows["offset"] >= 0).all() and ((rows["offset"] + rows["done"])[known] <= top + 1).all()
    assert (rows["end_ns"] >= rows["start_ns"]).all() and (rows["start_ns"] >= 10**18).all()
    assert (rows["end_ns"] <= 10**18 + 3 * 10**9).all()


def test_a_common_stride_is_followed():
    counts = {
        "POSIX_READS": 10, "POSIX_BYTES_READ": 1000, "POSIX_MAX_BYTE_READ": 9999, "POSIX_STRIDE1_STRIDE": 900,
        "POSIX_STRIDE1_COUNT": 9, "POSIX_ACCESS1_ACCESS": 100, "POSIX_ACCESS1_COUNT": 10,
    }  # fmt: skip
    rows = expanded(Counted("POSIX", 0, 0, counts, {}), 0)
    assert rows["offset"].tolist() == [900 + n * 1000 for n in range(10)]


def instead(monkeypatch, program):
    """Another program in the place of the child."""
    monkeypatch.setattr(parent, "start", lambda path, said: parent.Child([sys.executable, "-c", program], {}, said))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os.abort()", "crashed on it (SIGABRT)"),
        ("import ctypes; ctypes.string_at(8)", "crashed on it (SIGSEGV)"),
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 3))\nwhile True: pass", "takes longer over it"),
        ("raise MemoryError", "needs more than 4 GiB of memory"),
        ("import sys; sys.stderr.write('odd')", "odd"),
        ("print('x' * 100)", "made no sense of it"),
        ("import sys; sys.stdout.buffer.write(b'\\5\\0\\0\\0{}')", "it ends in the middle"),
        ("import os, time; os.close(1); time.sleep(60)", "it ends in the middle"),
    ],
    ids=["abort", "segv", "spin", "memory", "exit", "noise", "cut", "closed"],
)
def test_whatever_becomes_of_the_library_is_one_error(tmp_path, monkeypatch, program, said):
    instead(monkeypatch, program)
    with pytest.raises(WorkloadError) as caught:
        imported(tmp_path, EXAMPLES[0])
    assert str(caught.value).startswith(f"{EXAMPLES[0]}: ") and said in str(caught.value)


def test_a_silent_child_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(parent, "SILENCE_S", 0.2)
    instead(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(WorkloadError, match=r"has said nothing for 0.2 s"):
        imported(tmp_path, EXAMPLES[0])


def test_a_log_that_needs_too_much_memory_is_refused(tmp_path, writer, monkeypatch):
    log = tmp_path / "a.darshan"
    writer.write(log, {5: "/f"}, [("DXT_POSIX", writer.segments(5, 0, segments(1_000_000), segments(0)))])
    monkeypatch.setattr(parent, "MEMORY_BYTES", 48 << 20)
    with pytest.raises(WorkloadError) as caught:
        imported(tmp_path, log)
    assert "\n" not in str(caught.value) and str(log) in str(caught.value)


def test_without_the_package_its_installation_is_the_cure(tmp_path, monkeypatch):
    monkeypatch.setattr(parent, "package_directory", lambda: None)
    with pytest.raises(WorkloadError, match=r"pip install 'stripewise\[darshan\]'"):
        imported(tmp_path, EXAMPLES[0])


@pytest.mark.parametrize("content", [b"", b"text\n" * 100, b"\0" * 5000, b"\x1f\x8b\x08" + b"x" * 500])
def test_what_is_no_log_is_refused(tmp_path, content):
    (tmp_path / "a.darshan").write_bytes(content)
    with pytest.raises(WorkloadError, match=r"a.darshan: .*; give"):
        imported(tmp_path, tmp_path / "a.darshan")


def test_a_heat_map_tells_when_counted_requests_were(tmp_path, writer):
    """Two bursts with a pause: evenly spread requests would fill it."""
    log, size = tmp_path / "a.darshan", 4096
    names = {5: "/d/f", 7: "heatmap:POSIX"}
    times = {"POSIX_F_WRITE_START_TIMESTAMP": 1.0, "POSIX_F_WRITE_END_TIMESTAMP": 9.0, "POSIX_F_WRITE_TIME": 0.5}
    times |= {"POSIX_ACCESS1_ACCESS": size, "POSIX_ACCESS1_COUNT": 100}
    bins = [0, 60 * size, 0, 0, 0, 0, 0, 0, 40 * size, 0]
    for rank, map_rank in ((0, 0), (-1, 0)):
        records = [("POSIX", writer.counters("POSIX", 5, rank, whole(100, **times)))]
        records.append(("HEATMAP", writer.heat(7, map_rank, 1.0, bins, [0] * 10)))
        writer.write(log, names, records, processes=1)
        rows = [row for row in imported(tmp_path, log)[1] if row["op"] == "write"]
        starts = Counter(int(row["start_ns"] // 10**9) for row in rows)
        first = min(starts)
        assert {second - first: count for second, count in starts.items()} == {0: 60, 7: 40}
        assert sum(row["done"] for row in rows) == 100 * size


def test_bins_that_cannot_be_are_one_error(tmp_path, writer):
    log = tmp_path / "a.darshan"
    names = {5: "/d/f", 7: "heatmap:POSIX"}
    for bin_s, bins in ((0.0, [1]), (float("nan"), [1]), (1.0, [-1])):
        records = [("POSIX", writer.counters("POSIX", 5, 0, whole(1)))]
        writer.write(log, names, [*records, ("HEATMAP", writer.heat(7, 0, bin_s, bins, [0]))])
        with pytest.raises(WorkloadError, match=r"a\.darshan: a record of its module HEATMAP has bins that cannot be"):
            imported(tmp_path, log)
