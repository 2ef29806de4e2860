"""Hot regions: a part of the whole file, priced where the SSDs have room for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runs import RUNS, rng, write_rows
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of
from stripewise.layout import Layout, Region
from stripewise.workload.layouts import TracedStore, TracedTarget, write_layouts
from support import KIB, MIB

#: Reads all over 4 MiB, each of whose blocks they read four times.
READS = [(int(k) % 4, "read", "/d/f", int(place) * 16 * KIB, 16 * KIB) for k, place in
         enumerate(rng(5).permutation(1024) % 256)]  # fmt: skip
#: Writes of the same file, large and in order, 64 MiB in all.
WRITES = [(k % 4, "write", "/d/f", k * 4 * MIB, 4 * MIB) for k in range(16)]


def found_in(place, cluster=DEFAULT_CLUSTER):
    return findings_of(facts_of(place), cluster)


def test_reads_of_a_sixteenth_of_what_was_written_are_hot(tmp_path):
    (found,) = found_in(write_rows(tmp_path / "t", WRITES + READS))
    assert found.cause == "hot_region" and "of the file (3.2 MiB)" in found.evidence[1]


def test_reads_all_over_the_file_are_not_hot(tmp_path):
    (found,) = found_in(write_rows(tmp_path / "t", READS))
    assert found.cause == "scattered"


@pytest.mark.parametrize("told", ["truncate", "meta.json"])
def test_a_length_that_no_request_tells_counts(tmp_path, told):
    grown = [(0, "truncate", "/d/f", 64 * MIB, 0)] if told == "truncate" else []
    place = write_rows(tmp_path / "t", grown + READS)
    if told == "meta.json":
        files = [{"path": "/d/f", "extent_bytes": 64 * MIB}, {"path": "/d/f", "extent_bytes": 1}, {"path": 3}, None]
        (place / "meta.json").write_text(json.dumps({"files": files}))
    assert facts_of(place).files[0].extent == 64 * MIB
    assert [each.cause for each in found_in(place)] == ["hot_region"]


def test_a_truncate_that_failed_tells_no_length(tmp_path):
    place = write_rows(tmp_path / "t", [(0, "truncate", "/d/f", 64 * MIB, -1), *READS])
    assert facts_of(place).files[0].extent == 4 * MIB


@pytest.mark.parametrize(("room", "is_priced"), [(4 * MIB, False), (6 * MIB, True), (0, True)])
def test_what_the_ssds_have_no_room_for_has_no_price(tmp_path, room, is_priced):
    # 80 % of the reads begin in 9.5 MiB, half of it on each of two SSDs; 0 is what the file system has.
    targets = tuple(
        replace(each, capacity_bytes=room) if each.name == "ssd1" else each for each in DEFAULT_CLUSTER.targets
    )
    cluster = replace(DEFAULT_CLUSTER, targets=targets)
    place = write_rows(tmp_path / "t", RUNS["a hot region"][0])
    (found,) = found_in(place, cluster)
    assert (found.price is not None) == is_priced and ("no room" in found.basis) != is_priced


def laid(place, path, layout):
    """Says in the trace how a file lay in a store."""
    targets = tuple(
        TracedTarget(each.name, each.klass, each.channels, each.startup_read_s, each.startup_write_s,
                     each.per_byte_read_s, each.per_byte_write_s)
        for each in DEFAULT_CLUSTER.targets
    )  # fmt: skip
    write_layouts(place, (TracedStore("/store", targets, {path: layout}),))


@pytest.mark.parametrize("name", ["no order, no preferred place", "records with gaps"])
@pytest.mark.parametrize("names", [["ssd0", "ssd1"], ["hdd0", "ssd0"], []])
def test_what_lies_on_the_ssds_already_is_not_planned_for_them(tmp_path, name, names):
    place = write_rows(tmp_path / "t", RUNS[name][0])
    if names:
        laid(place, "/d/f", Layout((Region(0, 256 * MIB, tuple((name, 64 * KIB) for name in names)),)))
    (found,) = found_in(place)
    is_there = names == ["ssd0", "ssd1"]
    is_planned = "stripewise plan" in found.command
    assert is_planned == ("SSD" in found.advice) == (not is_there and found.cause != "gaps")
    is_copied = "stripewise replicate" in found.command
    assert is_copied == ("a copy in the order" in found.advice) == (found.cause == "gaps")


@pytest.mark.parametrize(("names", "expected"), [(["ssd0", "ssd1"], ["scattered"]), (["hdd0", "ssd0"], ["hot_region"])])
def test_a_hot_region_that_lies_on_the_ssds_already_is_not_advised_to_go_there(tmp_path, names, expected):
    place = write_rows(tmp_path / "t", RUNS["a hot region"][0])
    laid(place, "/d/f", Layout((Region(0, 256 * MIB, tuple((name, 64 * KIB) for name in names)),)))
    assert [each.cause for each in found_in(place)] == expected


def test_a_stride_that_is_repeated_is_neither_random_nor_a_region(tmp_path):
    reads = [(0, "read", "/d/f", k % 500 * 64 * KIB, 8 * KIB) for k in range(1500)]
    (found,) = found_in(write_rows(tmp_path / "t", [(0, "truncate", "/d/f", 512 * MIB, 0), *reads]))
    assert found.cause == "gaps" and "8.0 KiB (median)" in found.evidence[0]
