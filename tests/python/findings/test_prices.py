"""What findings cost: by hand, and what must hold of any requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.findings.price import DEFAULT_CLUSTER, Asked, load_of, saved
from support import KIB, MIB


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
