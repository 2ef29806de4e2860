"""What findings cost: by hand, and what must hold of any requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import write_rows
from stripewise.findings import Finding, Seconds, facts_of, findings_of
from stripewise.findings.price import DEFAULT_CLUSTER, Asked, Places, load_of, saved, why_quicker
from stripewise.layout import Layout, Region
from support import KIB, MIB
from test_cli import stripewise


def asked(sizes, writes=False, ranks=1) -> Asked:
    count = len(sizes)
    return Asked.each(np.array(sizes, dtype=np.int64), np.full(count, writes), np.arange(count) % ranks, ranks)


def test_requests_of_a_stripe_by_hand():
    # 100 reads of 64 KiB: a sixth of them on each server; one process waits 3 ms + 0.65536 ms for each on a disk.
    found = load_of(asked([64 * KIB] * 100), DEFAULT_CLUSTER)
    busy = 100 / 6 * (0.003 + 64 * KIB * 1e-8)
    assert found.busy[0] == pytest.approx(busy) and found.busy[5] == pytest.approx(
        100 / 6 * (0.0001 + 64 * KIB * 2.5e-9)
    )
    alone = 100 * (0.003 + 64 * KIB * 1e-8)
    assert (found.seconds.low, found.seconds.high) == (pytest.approx(alone), pytest.approx(alone + busy))


def test_a_request_over_all_servers_starts_each_once():
    # 12 stripes on 6 servers: two on each, one piece.
    found = load_of(asked([768 * KIB]), DEFAULT_CLUSTER)
    assert found.busy[0] == pytest.approx(0.003 + 128 * KIB * 1e-8) == found.alone[0]


def test_the_hot_part_on_ssds_leaves_the_disks_alone():
    found = load_of(asked([16 * KIB] * 10), DEFAULT_CLUSTER, DEFAULT_CLUSTER.sservers)
    assert not found.busy[:4].any() and found.busy[4:].all()


def bytes_of(each, rank, write):
    chosen = (each.rank == rank) & (each.write == write)
    return int((each.size * each.count)[chosen].sum())


def test_petabytes_are_priced_without_a_row_for_each_mebibyte():
    joined = asked([1 << 50] * 4, ranks=2).joined(MIB)
    assert len(joined.size) == 2 and joined.count.sum() == 1 << 32


@given(
    st.lists(st.tuples(st.integers(1, 4 * MIB), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40),
    st.sampled_from([4 * KIB, MIB, 16 * MIB]),
)
def test_joined_requests_move_the_same_bytes_of_every_rank(requests, size):
    sizes, writes, ranks = (np.array(column) for column in zip(*requests, strict=True))
    made = Asked.each(sizes.astype(np.int64), writes.astype(bool), ranks.astype(np.int64), 4)
    joined = made.joined(size)
    for rank in range(4):
        for write in (False, True):
            mine = [bytes_of(each, rank, write) for each in (made, joined)]
            assert mine[0] == mine[1]
    assert joined.size.min() > 0 and joined.size.max() <= size
    price = saved(load_of(made, DEFAULT_CLUSTER), load_of(joined, DEFAULT_CLUSTER))
    assert 0 <= price.low <= price.high


#: A process reads small requests of each kind that is joined, another or the same large ones beside them.
SMALL_AMONG_LARGE = {
    "interleaved": (
        [(rank, k * 256 * KIB + rank * 4 * KIB) for rank in (1, 2, 3) for k in range(192)],
        "small reads of 3 ranks interleave",
    ),
    "gaps": ([(0, k * 100 * KIB) for k in range(300)], "small reads with gaps between them"),
    "small_requests": ([(0, k * 4 * KIB) for k in range(300)], "small requests one behind the other"),
}


@pytest.mark.parametrize("cause", SMALL_AMONG_LARGE)
def test_small_requests_are_told_and_priced_without_the_large_ones_beside_them(cause, tmp_path):
    places, title = SMALL_AMONG_LARGE[cause]
    small = [(rank, "read", "/d/f", at, 4 * KIB) for rank, at in places]
    large = [(0, "read", "/d/f", (64 + 4 * k) * MIB, 4 * MIB) for k in range(48)]
    run = facts_of(write_rows(tmp_path / "t", small + large))
    (found,) = findings_of(run, DEFAULT_CLUSTER)
    assert (found.cause, found.title) == (cause, title)
    assert found.evidence[0].startswith(f"{len(small)} small of {len(small) + 48} re")
    assert "4.0 KiB (median); 99% of the bytes are in larger ones" in found.evidence[0]
    assert found.basis.startswith("against the small ones' bytes in ")
    (alone,) = findings_of(facts_of(write_rows(tmp_path / "alone", small)), DEFAULT_CLUSTER)
    # A microsecond each.
    assert found.measured_s == alone.measured_s == pytest.approx(len(small) / len({rank for rank, _ in places}) * 1e-6)
    [file] = run.files
    takes = load_of(file.asked.of(file.size < MIB), DEFAULT_CLUSTER).seconds
    assert 0 < found.price.low <= takes.low and found.price.high <= takes.high
    if cause != "interleaved":
        # One process waits for them all, whatever it reads beside.
        assert found.price.low == pytest.approx(alone.price.low) and found.price.high == pytest.approx(alone.price.high)


NAMES = [each.name for each in DEFAULT_CLUSTER.targets]


def placed(offsets, sizes, layout, ranks=1) -> Asked:
    count = len(sizes)
    places = Places(np.array(offsets, dtype=np.int64), layout)
    return Asked.each(np.array(sizes), np.zeros(count, bool), np.arange(count) % ranks, ranks, places)


def test_requests_go_where_the_layout_says_by_hand():
    # 1 MiB on the first disk, then the SSDs in turn: a read over the border is a piece of each.
    layout = Layout((Region(0, MIB, (("hdd0", MIB),)), Region(MIB, MIB, (("ssd0", 64 * KIB), ("ssd1", 64 * KIB)))))
    found = load_of(placed([0, MIB - 4096, 5 * MIB], [4096, 8192, 128 * KIB], layout), DEFAULT_CLUSTER)
    disk, flash = 0.003 + 4096 * 1e-8, [0.0001 + size * 2.5e-9 for size in (4096, 64 * KIB)]
    assert found.busy.tolist() == pytest.approx([2 * disk, 0, 0, 0, flash[0] + flash[1], flash[1]])
    assert found.alone[0] == pytest.approx(disk + disk + flash[1])
    # Joined: 140 KiB in one request, 8 KiB of them on the disk, 68 and 64 on the SSDs.
    joined = load_of(placed([0, MIB - 4096, 5 * MIB], [4096, 8192, 128 * KIB], layout).joined(MIB), DEFAULT_CLUSTER)
    assert joined.busy[[0, 4, 5]].tolist() == pytest.approx(
        [0.003 + 8192 * 1e-8, 0.0001 + 68 * KIB * 2.5e-9, 0.0001 + 64 * KIB * 2.5e-9]
    )
    assert joined.alone[0] == pytest.approx(0.003 + 8192 * 1e-8)
    # A target that is gone: as DEF deals them out.
    gone = load_of(placed([0], [4096], Layout((Region(0, MIB, (("old", MIB),)),))), DEFAULT_CLUSTER)
    assert gone.busy.all()


def test_requests_on_a_target_that_is_being_drained_cost_what_they_do_there():
    """Its files lie on it until they have moved; new requests are dealt out to the others."""
    *others, last = DEFAULT_CLUSTER.targets
    draining = replace(DEFAULT_CLUSTER, targets=(*others, replace(last, state="draining")))
    on_it = placed([0], [4096], Layout((Region(0, MIB, ((last.name, MIB),)),)))
    assert load_of(on_it, draining).seconds == load_of(on_it, DEFAULT_CLUSTER).seconds
    assert not load_of(asked([MIB]), draining).busy[-1] and load_of(asked([MIB]), DEFAULT_CLUSTER).busy[-1]


@given(
    st.lists(st.tuples(st.integers(0, 64 * MIB), st.integers(1, 2 * MIB)), min_size=1, max_size=30),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 64)), min_size=1, max_size=6, unique_by=lambda x: x[0]),
)
def test_laid_requests_move_all_bytes_and_joining_makes_none_dearer(requests, stripes):
    widths = tuple((name, pages * 4 * KIB) for name, pages in stripes)
    layout = Layout((Region(0, 128 * MIB, widths),))
    made = placed(*zip(*requests, strict=True), layout, ranks=3)
    bare = [replace(each, startup_read_s=0.0, per_byte_read_s=1.0) for each in DEFAULT_CLUSTER.targets]
    of_bytes = replace(DEFAULT_CLUSTER, targets=tuple(bare))
    total = sum(size for _, size in requests)
    assert load_of(made, of_bytes).busy.sum() == pytest.approx(total)
    assert load_of(made.joined(MIB), of_bytes).busy.sum() == pytest.approx(total)
    now, then = load_of(made, DEFAULT_CLUSTER), load_of(made.joined(MIB), DEFAULT_CLUSTER)
    assert (then.busy <= now.busy + 1e-12).all()


def test_a_run_on_emulated_devices_was_not_served_from_memory():
    emulated = tuple(replace(each, kind="emulated") for each in DEFAULT_CLUSTER.targets)
    own = replace(DEFAULT_CLUSTER, source=Path("/s"), targets=emulated)
    assert why_quicker(own, "/s") == "accesses went on where others ended"
    assert why_quicker(replace(own, targets=DEFAULT_CLUSTER.targets), "/s") == "memory or read-ahead served it"
    # Of files elsewhere nobody has said that their devices are these.
    assert why_quicker(own, None) == "memory or read-ahead served it, or its devices are faster than these"


def test_no_finding_is_told_to_cost_more_than_its_requests_took():
    found = Finding("small", "small", None, (), Seconds(2.0, 3.0), "by the model", "do", measured_s=0.331)
    # Seconds of the model that the run contradicts are in JSON alone.
    assert found.price_text(0.394, "memory served it") == (
        "took 0.331 s of the run; no price, for by the model it would be more (memory served it)"
    )
    assert found.as_json()["price"] == {"low": 2.0, "high": 3.0} and found.rank_s == 0.331
    assert replace(found, measured_s=2.5).price_text(9.0, "") == "costs 2 to 2.5 s, by the model"
    assert replace(found, measured_s=9.0).price_text(9.0, "") == "costs 2 to 3 s, by the model"
    assert (
        replace(found, measured_s=None).price_text(1.0, "why").startswith("took no more than 1 s of the run; no price")
    )
    # Calls that were measured, of all processes together.
    assert replace(found, cause="sync", measured_s=None).price_text(1.0, "why") == "costs 2 to 3 s, by the model"


def test_findings_are_ranked_by_what_their_requests_took(tmp_path):
    rows = [(0, "write", "/d/one", k * 4 * KIB, 4 * KIB) for k in range(200)]
    rows += [(0, "write", "/d/two", k * 4 * KIB, 4 * KIB) for k in range(100)]
    trace = write_rows(tmp_path / "t", rows)
    table = pq.read_table(trace / "trace.parquet")
    slow = [start + (9_000_000 if k >= 200 else 1000) for k, start in enumerate(table["start_ns"].to_pylist())]
    at = table.column_names.index("end_ns")
    pq.write_table(table.set_column(at, "end_ns", pa.array(slow)), trace / "trace.parquet")
    found = findings_of(facts_of(trace), DEFAULT_CLUSTER)
    assert [each.file for each in found] == ["/d/two", "/d/one"]
    assert found[0].price.high < found[1].price.high and found[1].measured_s == pytest.approx(200e-6)


def test_the_page_says_how_files_were_taken_to_lie(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/one", k * 4 * KIB, 4 * KIB) for k in range(200)])
    said = stripewise("show", trace).stdout
    assert "SSDs of 0.1 ms and 400 MB/s; files taken to lie in stripes of 64 KiB over all targets; first to" in said
