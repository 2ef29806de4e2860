"""The golden sentences: each generator is told as the papers describe it, and so is what a program does by the way."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generators import ALL, KIB, MIB
from pattern_traces import write_trace
from stripewise.pattern import changes, fio_job, ior_commands, report_of
from stripewise.pattern.local import Distribution
from stripewise.pattern.ranks import RankFormula
from stripewise.pattern.words import _start_text, places_text

#: Of 8 processes, whose grid of tiles is 2 rows of 4.
GOLDEN = {
    "mpiio_sequential": [
        "Each of 8 ranks writes 32 medium requests of 256 KiB contiguously, rank r from r x 8 MiB on; "
        "together they cover 0 B to 64 MiB exactly once.",
    ],
    "mpiio_interleaved": [
        "Each of 8 ranks writes 32 medium requests of 256 KiB strided, one every 2 MiB, rank r from r x "
        "256 KiB on; together they cover 0 B to 64 MiB exactly once.",
    ],
    "mpiio_strided": [
        "Each of 8 ranks writes 128 small requests of 64 KiB strided, one every 512 KiB, rank r from r "
        "x 64 KiB on; together they cover 0 B to 64 MiB exactly once.",
    ],
    "mpiio_nested": [
        "Each of 8 ranks reads 2,048 small requests of 16 KiB in a 3-dimensional nested stride: 4 every "
        "128 KiB, then 256 every 1 MiB, then 2 every 512 KiB, rank r from r x 16 KiB on; together they "
        "cover 0 B to 256 MiB exactly once.",
    ],
    "mpiio_tiles": [
        "Each of 8 ranks writes 128 small requests of 64 KiB strided, one every 256 KiB, rank r from (r "
        "div 4) x 32 MiB + (r mod 4) x 64 KiB on; together they cover 0 B to 64 MiB exactly once.",
    ],
    "piobench_sequential": [
        "Each of 8 ranks writes 256 small requests of 64 KiB contiguously, rank r from r x 16 MiB on; "
        "together they cover 0 B to 128 MiB exactly once.",
    ],
    "piobench_simple_strided": [
        "Each of 8 ranks reads 100 small requests of 16 KiB strided, one every 128 KiB, rank r from r x "
        "16 KiB on; together they cover 0 B to 12,800 KiB exactly once.",
    ],
    "piobench_nested_strided": [
        "Each of 8 ranks writes 160 small requests of 4 KiB in a 2-dimensional nested stride: 8 every 32 "
        "KiB, then 20 every 512 KiB, rank r from r x 4 KiB on.",
    ],
    "piobench_segmented": [
        "Each of 8 ranks writes 160 medium requests of 256 KiB in 10 segments: contiguous runs of 4 MiB, "
        "one every 32 MiB, rank r from r x 4 MiB on; together they cover 0 B to 320 MiB exactly once.",
    ],
    "piobench_tiled": [
        "Each of 8 ranks reads 64 small requests of 8 KiB in 32 segments: contiguous runs of 16 KiB, one "
        "every 64 KiB, rank r from (r div 4) x 2 MiB + (r mod 4) x 16 KiB on; together they cover 0 B to "
        "4 MiB exactly once.",
    ],
    "mpi_tile_io": [
        "Each of 8 ranks writes 48 small requests of 3,200 B strided, one every 12,800 B, rank r from (r "
        "div 4) x 600 KiB + (r mod 4) x 3,200 B on; together they cover 0 B to 1,200 KiB exactly once.",
    ],
    "btio": [
        "Each of 8 ranks writes 5,760 small requests of 3,840 B as contiguous runs of 90 KiB in a "
        "2-dimensional stride: 48 every 360 KiB, then 5 every 34,560 KiB, rank r from (r div 4) x 17,280 "
        "KiB + (r mod 4) x 90 KiB on; together they cover 0 B to 172,800 KiB exactly once.",
    ],
    "hpio": [
        "Each of 8 ranks writes 128 small requests of 1,000 B strided, one every 8 KiB, rank r from r x "
        "1 KiB on.",
    ],
    "ior_segments": [
        "Each of 8 ranks writes 48 medium requests of 256 KiB in 12 segments: contiguous runs of 1 MiB, "
        "one every 8 MiB, rank r from r x 1 MiB on; together they cover 0 B to 96 MiB exactly once.",
        "Each of 8 ranks reads 48 medium requests of 256 KiB in 12 segments: contiguous runs of 1 MiB, "
        "one every 8 MiB, rank r from r x 1 MiB on; together they cover 0 B to 96 MiB exactly once.",
    ],
    "lanl_app2": [
        "Each of 8 ranks writes 40 small requests of 4 KiB strided, one every 32 KiB, rank r from r x 4 "
        "KiB on; together they cover 0 B to 1,280 KiB exactly once.",
        "Each of 8 ranks writes 30 small requests of 48 KiB strided, one every 384 KiB, rank r from r x "
        "48 KiB + 64 MiB on; together they cover 64 MiB to 77,056 KiB exactly once.",
        "Each of 8 ranks in turn writes 192 KiB and writes 256 KiB, 25 rounds, moving on by 3,584 KiB, "
        "rank r from r x 448 KiB + 512 MiB on; together they cover 512 MiB to 613,888 KiB exactly once.",
    ],
    "radar_row": [
        "Each of 8 ranks reads 4,608 small requests of 512 B in 4 segments: contiguous runs of 576 KiB, "
        "one every 4,608 KiB, rank r from r x 576 KiB on; together they cover 0 B to 18 MiB exactly "
        "once.",
    ],
    "radar_column": [
        "Each of 8 ranks reads 4,608 small requests of 512 B in 384 segments: contiguous runs of 6 KiB, "
        "one every 48 KiB, rank r from r x 6 KiB on; together they cover 0 B to 18 MiB exactly once.",
    ],
    "radar_cube": [
        "Each of 8 ranks reads 4,608 small requests of 256 B in a 3-dimensional nested stride: 24 every "
        "512 B, then 48 every 48 KiB, then 4 every 4,608 KiB, rank r from (r div 4) x 2,304 KiB + (r mod "
        "4) x 12 KiB on.",
    ],
    "radar_time": [
        "Each of 8 ranks reads 192 small requests of 160 B in a 3-dimensional nested stride: 8 every 512 "
        "B, then 12 every 48 KiB, then 2 every 4,608 KiB, rank r from r x 9 MiB + 501,856 B on.",
    ],
    "mpiio_random": [
        "Each of 8 ranks reads 200 medium requests of 256 KiB at random offsets in 0 B to 64 MiB, "
        "aligned to 256 KiB.",
    ],
    "mpiio_zipf": [
        "Each of 8 ranks reads 300 small requests of 64 KiB at random offsets in 0 B to 64 MiB, aligned "
        "to 64 KiB.",
    ],
    "piobench_random_strided": [
        "Each of 8 ranks reads 150 small requests of 4 KiB forward in random strides in 0 B to 153,556 "
        "KiB, aligned to 4 KiB.",
    ],
}  # fmt: skip


def told(place, table, **options) -> list[str]:
    [file] = report_of(write_trace(place / "t", table, **options)).files
    return [each.sentence for each in file.patterns]


def one(place, requests, **options) -> str:
    """The sentence of one process that does one thing."""
    [said] = told(place, {0: requests}, **options)
    return said


@pytest.mark.parametrize("name", ALL)
def test_generators_are_told_as_what_they_are(name, tmp_path):
    assert told(tmp_path, ALL[name](8)) == GOLDEN[name]


PLAIN = {
    "The process reads 50 small requests of 4 KiB contiguously backward, from 196 KiB on.": [
        ("read", (49 - i) * 4 * KIB, 4 * KIB) for i in range(50)
    ],
    "The process reads 50 small requests of 4 KiB backward strided, one every 16 KiB, from 784 KiB on.": [
        ("read", (49 - i) * 16 * KIB, 4 * KIB) for i in range(50)
    ],
    "The process reads 50 large requests of 2 MiB overlapping, each 1 MiB after the one before, from 0 B on.": [
        ("read", i * MIB, 2 * MIB) for i in range(50)
    ],
    "The process writes the same 512 B 90 times, from 1 KiB on.": [("write", KIB, 512)] * 90,
    "The process writes 16 small requests of 64 KiB contiguously, the whole repeated 3 times, from 0 B on.": [
        ("write", i * 64 * KIB, 64 * KIB) for _ in range(3) for i in range(16)
    ],
    "The process in turn reads 4 KiB and writes 4 KiB, 40 rounds, moving on by 4 KiB, from 0 B on.": [
        (op, i * 4 * KIB, 4 * KIB) for i in range(40) for op in ("read", "write")
    ],
    "The process in turn writes 96 B and writes 1 MiB, 40 rounds, moving on by 0 B, 1 MiB, from 0 B on.": [
        request for i in range(40) for request in (("write", 0, 96), ("write", 4 * KIB + i * MIB, MIB))
    ],
    "The process repeats a round of 7 requests, 2.5 MiB in all, mostly writes of 648,000 B, 22 times, the largest part "
    "moving on by 2,592,000 B, from 0 B on.": [
        ("write", at, size)
        for i in range(22)
        for at, size in ((0, 96), *((MIB + (4 * i + k) * 648_000, 648_000) for k in range(4)), (200, 8), (300, 16))
    ],
    "The process repeats a round of 5 requests, 1.2 MiB in all, reads and writes of up to 512 KiB, 20 times, moving on "
    "by 2 MiB, from 3 KiB on.": [
        (op, 3 * KIB + i * 2 * MIB + at * KIB, size * KIB)
        for i in range(20)
        for op, at, size in (
            ("read", 0, 1),
            ("write", 8, 500),
            ("read", 900, 4),
            ("write", 1000, 512),
            ("read", 1900, 200),
        )
    ],
    "The process in turn writes 16 B, writes 131,056 B and writes 128 KiB, 40 rounds, contiguously, from 0 B on.": [
        ("write", i * 256 * KIB + at, size)
        for i in range(40)
        for at, size in ((0, 16), (16, 131056), (128 * KIB, 128 * KIB))
    ],
}


@pytest.mark.parametrize("sentence", PLAIN)
def test_templates_of_one_process(sentence, tmp_path):
    assert one(tmp_path, PLAIN[sentence]) == sentence


def test_a_fixed_interval_is_told(tmp_path):
    requests = [("write", i * MIB, MIB) for i in range(20)]
    assert one(tmp_path, requests, interval_ns=250_000_000) == (
        "The process writes 20 medium requests of 1 MiB contiguously, from 0 B on, one every 250 ms."
    )


def test_blocks_at_random_places_are_told(tmp_path):
    draw = random.Random(4)
    starts = [draw.randrange(1000) * MIB for _ in range(60)]
    assert one(tmp_path, [("read", at + i * 64 * KIB, 64 * KIB) for at in starts for i in range(16)]).endswith(
        "aligned to 1 MiB; in each block 16 small requests of 64 KiB contiguously."
    )


def test_random_reads_and_writes_are_told_with_their_share(tmp_path):
    draw = random.Random(5)
    requests = [("read" if i % 4 else "write", 8192 + draw.randrange(999) * 4096, 4096) for i in range(400)]
    assert one(tmp_path, requests).startswith(
        "The process reads and writes 400 small requests (75% reads) of 4 KiB at random offsets in "
    )


def test_what_rank_0_does_alone_is_told_apart(tmp_path):
    table = {rank: [("write", 4 * KIB + (i * 4 + rank) * MIB, MIB) for i in range(16)] for rank in range(4)}
    table[0].insert(0, ("write", 0, 512))
    assert told(tmp_path, table) == [
        "Rank 0 writes one small request of 512 B, from 0 B on.",
        "Each of 4 ranks writes 16 medium requests of 1 MiB strided, one every 4 MiB, rank r from r x 1 MiB + 4 KiB on"
        "; together they cover 4 KiB to 65,540 KiB exactly once.",
    ]


def test_the_last_rank_may_have_what_remains(tmp_path):
    table = {rank: [("write", rank * 10 * MIB + i * MIB, MIB) for i in range(10)] for rank in range(8)}
    table[7] = table[7][:4]
    assert told(tmp_path, table) == [
        "Each of the ranks 0-6 writes 10 medium requests of 1 MiB contiguously, rank r from r x 10 MiB on; "
        "together they cover 0 B to 70 MiB exactly once.",
        "Rank 7 writes 4 medium requests of 1 MiB contiguously, from 70 MiB on.",
    ]


def test_a_grid_of_three_dimensions_is_found(tmp_path):
    """A cube of 8^3 chunks of 4 KiB, 2 x 2 x 2 processes, each with its octant."""
    table = {
        rank: [
            ("write", (((rank // 4 * 4 + z) * 8 + rank // 2 % 2 * 4 + y) * 8 + rank % 2 * 4 + x) * 4 * KIB, 4 * KIB)
            for z in range(4)
            for y in range(4)
            for x in range(4)
        ]
        for rank in range(8)
    }
    assert told(tmp_path, table) == [
        "Each of 8 ranks writes 64 small requests of 4 KiB as contiguous runs of 16 KiB in a 2-dimensional stride: "
        "4 every 32 KiB, then 4 every 256 KiB, rank r from (r div 4) x 1 MiB + (r div 2 mod 2) x 128 KiB + "
        "(r mod 2) x 16 KiB on; together they cover 0 B to 2 MiB exactly once."
    ]


def test_processes_without_ranks_are_processes(tmp_path):
    place = write_trace(tmp_path / "t", ALL["hpio"](3))
    table = pq.read_table(place / "trace.parquet").drop_columns(["rank", "world"])
    pq.write_table(table, place / "trace.parquet")
    [file] = report_of(place).files
    assert file.patterns[0].sentence.startswith("Each of 3 processes writes 128 small requests")


def unranked(place, table):
    """The patterns of a file by processes of these numbers, whose ranks nobody knows."""
    trace = pq.read_table(write_trace(place, table) / "trace.parquet").drop_columns(["rank", "world"])
    pq.write_table(trace, place / "trace.parquet")
    [file] = report_of(place).files
    return file


def in_blocks(begin, op="write"):
    return [(op, begin * 96 * KIB + k * 384 * KIB, 96 * KIB) for k in range(256)]


def test_processes_without_ranks_are_a_family_only_where_they_do_the_same(tmp_path):
    """Writers that appeared in another order than their blocks lie; a reader of large requests before three."""
    table = {number: in_blocks(begin) for number, begin in zip((1, 2, 3, 4), (1, 0, 2, 3), strict=True)}
    table[5] = [("read", (48 + k) * MIB, MIB) for k in range(48)]
    for number in (6, 7, 8):
        table[number] = [("read", k * 256 * KIB + (number - 5) * 4 * KIB, 4 * KIB) for k in range(192)]
    file = unranked(tmp_path / "t", table)
    assert [each.sentence for each in file.patterns] == [
        "Each of the processes 1-4 writes 256 medium requests of 96 KiB strided, one every 384 KiB, the lowest from "
        "0 B on, each next 96 KiB after it, in another order than their numbers; together they cover 0 B to 96 MiB "
        "exactly once.",
        "Process 5 reads 48 medium requests of 1 MiB contiguously, from 48 MiB on.",
        "Each of the processes 6-8 reads 192 small requests of 4 KiB strided, one every 256 KiB, process r from "
        "(r - 5) x 4 KiB on.",
    ]
    assert [each.as_json()["row"] for each in file.patterns] == [[0, 96 * KIB], [48 * MIB, 0], [4 * KIB, 4 * KIB]]
    command, refused = ior_commands(file, 8)
    assert command == "mpiexec -n 4 ior -a POSIX -w -E -k -t 96k -b 96k -s 256 -o /scratch/out.dat"
    assert "no command for 2 of 3" in refused
    assert "offset=0\noffset_increment=98304\nnumjobs=4" in fio_job(file.patterns[0], file.path, "first")


def test_families_begin_where_they_do_and_at_no_formula_that_fits_any_few(tmp_path):
    begins = {1: 7, 2: 0, 3: 12, 4: 4}
    [apart] = unranked(tmp_path / "a", {number: in_blocks(begin) for number, begin in begins.items()}).patterns
    assert apart.sentence.endswith("one every 384 KiB, from offsets of their own between 0 B and 1,152 KiB on.")
    # The numbers of others come between.
    table = {number: in_blocks(begin) for begin, number in enumerate((1, 9, 20))}
    [ascending] = unranked(tmp_path / "b", table).patterns
    assert ascending.sentence.endswith("the lowest from 0 B on, each next 96 KiB after it.")
    # Enough of them to know a grid.
    [tiles] = unranked(tmp_path / "c", ALL["mpiio_tiles"](8)).patterns
    assert "process r from (r div 4) x 32 MiB + (r mod 4) x 64 KiB on" in tiles.sentence


def test_many_processes_that_each_do_something_else_are_one_pattern(tmp_path):
    table = {number: in_blocks(number)[: number * number + 2] for number in range(1, 10)}
    [many] = unranked(tmp_path / "many", table).patterns
    assert many.sentence.startswith("Each of the processes 1-9 writes 3 medium requests")
    assert many.sentence.endswith("(each in its own way; the first is told).")
    del table[1]
    assert len(unranked(tmp_path / "few", table).patterns) == 8


def test_families_that_appeared_in_another_order_do_the_same(tmp_path):
    orders = {"a": (1, 0, 2, 3), "b": (0, 1, 2, 3), "later": (1, 2, 3, 4)}
    for name, order in orders.items():
        unranked(tmp_path / name, {number: in_blocks(begin) for number, begin in enumerate(order, start=1)})
    first, same, later = (report_of(tmp_path / name) for name in orders)
    assert changes(first, same) == []
    [change] = changes(first, later)
    assert "start r x 96 KiB, was 0 B, each next 96 KiB after it" in change.text


def test_ranks_are_told_file_by_file(tmp_path):
    place = write_trace(tmp_path / "t", ALL["hpio"](3))
    # A second file by the same processes, of which one has lost its rank; a third by one that never had any.
    table = pq.read_table(place / "trace.parquet")
    others = [table.set_column(7, "file", pa.array([name] * len(table))) for name in ("/scratch/some", "/scratch/none")]
    process = table["process"].to_pylist()
    lost = [[None if each == 2 else each for each in process], [None] * len(table)]
    others = [each.set_column(2, "rank", pa.array(ranks, pa.int32())) for each, ranks in zip(others, lost, strict=True)]
    pq.write_table(pa.concat_tables([table, *others]), place / "trace.parquet")
    report = report_of(place)
    told = {file.path: file.patterns[0].sentence for file in report.files}
    assert told["/scratch/out.dat"].startswith("Each of 3 ranks writes 128 small requests")
    for name in ("/scratch/some", "/scratch/none"):
        assert told[name].startswith("Each of 3 processes writes 128 small requests")
    assert not report.is_ranked


def test_the_json_has_every_aspect(tmp_path):
    report = report_of(write_trace(tmp_path / "t", ALL["mpiio_tiles"](8)))
    value = json.loads(json.dumps(report.as_json()))
    [pattern] = value["files"][0]["patterns"]
    assert {key: pattern[key] for key in ("operation", "spatial", "size_class", "repetitions", "temporal")} == {
        "operation": "write", "spatial": "strided", "size_class": "small", "repetitions": 1, "temporal": "random",
    }  # fmt: skip
    assert pattern["formulas"]["grid"] == [4]
    assert pattern["formulas"]["numbers"][0] == {"what": "at", "constant": 0, "coefficients": [32 * MIB, 64 * KIB]}
    assert (pattern["records"], pattern["bytes"], pattern["span"]) == (1024, 64 * MIB, [0, 64 * MIB])


def test_what_is_written_in_pieces_and_then_read_is_not_at_random(tmp_path):
    pieces = [(op, at, MIB) for op in ("write", "read") for at in (0, MIB)]
    place = (Distribution(0, 2 * MIB, MIB, MIB, MIB, ((0, 2), (1, 2)), 4 * MIB, 0, 2, 1),)
    assert "of 1 MiB one behind the other, going back once, in 0 B to 2 MiB" in places_text(place)
    said = [
        each.sentence for file in report_of(write_trace(tmp_path / "t", {0: pieces})).files for each in file.patterns
    ]
    assert "random" not in " ".join(said)
    # By chance half of them go back, and none begins where another ended.
    chance = replace(place[0], forward=2, sequential=0)
    assert "at random offsets" in places_text((chance,))


@pytest.mark.parametrize(
    ("constant", "coefficient", "ranks", "said"),
    [
        (-16 * KIB, 16 * KIB, (1, 2, 3), "process r from (r - 1) x 16 KiB on"),
        (64 * KIB, -32 * KIB, (1, 2), "process 1 from 32 KiB on, each next 32 KiB before it"),
        (-15 * KIB, 16 * KIB, (1, 2), "process 1 from 1 KiB on, each next 16 KiB after it"),
        (0, 16 * KIB, (0, 1), "process r from r x 16 KiB on"),
    ],
)
def test_processes_begin_where_a_reader_can_find_it(constant, coefficient, ranks, said):
    assert _start_text(RankFormula((), constant, (coefficient,)), ranks, "process") == said
