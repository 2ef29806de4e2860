"""Blocks of replicas: every byte once, in the order of access, in few strided sets, and found again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica_cases import accesses, any_rows, bytes_of, columns, nests, setting, strided
from stripewise.replicas.blocks import DIMS_MAX, Standing, StridedBlocks, first_touches, folded, is_divisible
from support import KIB, MIB


def arrays(rows):
    return np.array([row[2] for row in rows], np.int64), np.array([row[3] for row in rows], np.int64)


def flat(pieces):
    """Bytes of pieces, one after another."""
    return [at + byte for at, size in pieces for byte in range(size)]


@given(nests())
def test_offsets_are_those_of_nested_loops(nest):
    base, block, dims = nest
    counts = itertools.product(*(range(count) for _, count in dims))
    expected = [base + sum(k * stride for k, (stride, _) in zip(digits, dims, strict=True)) for digits in counts]
    part = StridedBlocks(base, block, dims)
    assert part.offsets().tolist() == expected
    assert part.count == len(expected) and part.bytes == block * len(expected)


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), max_size=3))
def test_divisible_blocks_share_no_byte(block, dims):
    if is_divisible(block, dims):
        held = flat((at, block) for at in StridedBlocks(0, block, tuple(dims)).offsets().tolist())
        assert len(held) == len(set(held))


def test_strides_that_step_over_smaller_ones_are_divisible_in_any_order():
    assert is_divisible(4, [(8, 4), (32, 3)]) and is_divisible(4, [(32, 3), (8, 4)])
    assert not is_divisible(4, [(8, 4), (27, 3)]) and not is_divisible(9, [(8, 2)])
    assert is_divisible(9, [(1, 1)])


@given(any_rows(), st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=3))
def test_each_byte_stands_where_it_is_first_touched(rows, held):
    offset, size = arrays(rows)
    taken = sorted({byte for at, length in held for byte in range(at * 16, (at + length) * 16)})
    starts = [byte for byte in taken if byte - 1 not in taken]
    ends = [byte + 1 for byte in taken if byte + 1 not in taken]
    row, at, length = first_touches(offset, size, (np.array(starts, np.int64), np.array(ends, np.int64)))
    seen = set(taken)
    expected = []
    for number, (begin, count) in enumerate(zip(offset.tolist(), size.tolist(), strict=True)):
        expected += [(number, byte) for byte in range(begin, begin + count) if byte not in seen]
        seen |= set(range(begin, begin + count))
    found = [
        (number, byte)
        for number, begin, count in zip(row.tolist(), at.tolist(), length.tolist(), strict=True)
        for byte in range(begin, begin + count)
    ]
    assert found == expected


@given(any_rows())
def test_a_replica_holds_the_bytes_of_its_pattern_once(rows):
    pattern = accesses(rows)
    shape = setting().shape(pattern)
    held = bytes_of(shape)
    assert sorted(held) == sorted(set(flat(zip(*(each.tolist() for each in arrays(rows)), strict=True))))
    assert sum(shape.held) == len(held) == shape.bytes
    assert all(len(part.dims) <= DIMS_MAX and is_divisible(part.block, part.dims) for part in shape.blocks)


@given(nests(gap=1))
def test_a_nest_keeps_its_order_when_it_is_folded(nest):
    base, block, dims = nest
    part = StridedBlocks(base, block, dims)
    offset = part.offsets()
    parts, held = folded(np.zeros(len(offset), np.int64), offset, np.full(len(offset), block))
    assert flat((at, each.block) for each in parts for at in each.offsets().tolist()) == flat(
        (at, block) for at in offset.tolist()
    )
    assert held == (part.bytes,)


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(2, 4), st.integers(1, 50)), max_size=5))
def test_strided_rows_of_strided_rows_are_one_set(block, loops):
    """Where no step of an outer loop looks like one of an inner loop: it goes further than all that these cover."""
    reach, dims = block, []
    for count, gap in loops:
        dims.insert(0, (2 * reach + gap, count))
        reach += dims[0][0] * (count - 1)
    part = StridedBlocks(7, block, tuple(dims))
    offset = part.offsets()
    parts, _ = folded(np.zeros(len(offset), np.int64), offset, np.full(len(offset), block))
    assert parts == (part,)


def test_columns_of_a_matrix_are_one_set_whose_outer_loop_is_the_ranks():
    shape = setting().shape(columns(4, 64, 1000))
    assert shape.blocks == (StridedBlocks(0, 64, ((64, 4), (256, 1000))),)
    assert shape.held == (64_000,) * 4


def test_sets_that_interleave_without_a_common_division_stay_apart():
    # 0 10 20, 16 26 36 of 4 bytes share no byte, but a stride of 16 does not step over what strides of 10 cover.
    rows = [(0, "read", at, 4) for at in (0, 10, 20, 16, 26, 36)]
    assert setting().shape(accesses(rows)).blocks == (StridedBlocks(0, 4, ((10, 3),)), StridedBlocks(16, 4, ((10, 3),)))


def test_a_rank_s_contiguous_requests_are_one_block_and_ranks_stay_apart():
    rows = [(r, "read", r * MIB + k * 64 * KIB, 64 * KIB) for r in range(3) for k in range(16)]
    assert setting().shape(accesses(rows)).blocks == (StridedBlocks(0, MIB, ((MIB, 3),)),)


def test_a_file_that_is_read_backward_stands_forward():
    rows = [(0, "read", k * 8 * KIB, 4 * KIB) for k in reversed(range(10))]
    assert setting().shape(accesses(rows)).blocks == (StridedBlocks(0, 4 * KIB, ((8 * KIB, 10),)),)


def test_a_header_before_each_record_is_a_set_of_its_own():
    rows = [(0, "read", k * MIB + at, size) for k in range(50) for at, size in ((0, 512), (4096, 8192))]
    assert setting().shape(accesses(rows)).blocks == (
        StridedBlocks(0, 512, ((MIB, 50),)),
        StridedBlocks(4096, 8192, ((MIB, 50),)),
    )


def test_bytes_that_all_ranks_read_stand_once():
    rows = [(r, "read", k * MIB, 64 * KIB) for r in range(8) for k in range(4)]
    shape = setting().shape(accesses(rows))
    assert shape.blocks == (StridedBlocks(0, 64 * KIB, ((MIB, 4),)),) and shape.held == (256 * KIB,)


@given(any_rows(), any_rows())
def test_bytes_are_found_where_the_replica_has_them(rows, asked):
    shape = setting().shape(accesses(rows))
    standing = Standing(shape.blocks)
    there = {byte: place for place, byte in enumerate(bytes_of(shape))}
    offset, size = arrays(asked)
    found = {}
    last = (-1, -1)
    for row, logical, at, length in zip(*(each.tolist() for each in standing.find(offset, size)), strict=True):
        assert (row, logical) > last
        last = (row, logical)
        for byte in range(length):
            found[row, logical + byte] = at + byte if at >= 0 else None
    assert found == {
        (row, begin + byte): there.get(begin + byte)
        for row, (begin, count) in enumerate(zip(offset.tolist(), size.tolist(), strict=True))
        for byte in range(count)
    }


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(2, 30))
def test_a_request_of_the_pattern_lies_in_one_block(ranks, count):
    pattern = strided(ranks, 8 * KIB, 64 * KIB, count)
    row, _, at, size = Standing(setting().shape(pattern).blocks).find(pattern.offset, pattern.size)
    assert row.tolist() == list(range(ranks * count)) and (size == 8 * KIB).all()
    assert at.tolist() == [number * 8 * KIB for number in range(ranks * count)]


@pytest.mark.parametrize("op", ["read", "write"])
def test_what_overlaps_an_earlier_home_is_cut(op):
    made = setting()
    first, second = strided(1, 64 * KIB, 128 * KIB, 4, op), accesses([(0, op, 32 * KIB, 512 * KIB)])
    taken = Standing(made.shape(first).blocks).intervals()
    shape = made.shape(second, taken)
    assert shape.is_cut
    # Its blocks stand in four holes of 64 KiB, and beyond the last.
    assert sum(shape.held) == 512 * KIB - (32 + 3 * 64) * KIB
    assert not set(bytes_of(shape)) & set(flat([(k * 128 * KIB, 64 * KIB) for k in range(4)]))
