"""What building copies and writing them take on emulated targets: access by access, as builder and runtime do it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica_cases import columns, emulated
from stripewise.cluster import Network
from stripewise.layout import Layout, Region
from stripewise.replicas import Options, RadarOptions, Setting, decide
from stripewise.replicas.accesses import Extent, Found, Writes
from stripewise.replicas.blocks import StridedBlocks
from stripewise.replicas.candidate import Room
from stripewise.replicas.copying import BUILD_BYTES, FILE, WRITE_BYTES, building, writing
from stripewise.replicas.radar import radar
from support import KIB, MIB, cluster

#: Disks of 3 ms and 100 MB/s.
DISKS = emulated(cluster(4, 0, network=Network(0.0, 0.0, 1)))
STARTUP_S, PER_BYTE_S = 3e-3, 1e-8
#: Every second block of 4 KiB.
HALF = StridedBlocks(0, 4 * KIB, ((8 * KIB, 64),))


def on_one(number):
    return Layout((Region(0, MIB, ((DISKS.targets[number].name, MIB),)),))


def rows(steps):
    return list(zip(steps.copy.tolist(), steps.offset.tolist(), steps.size.tolist(), strict=True))


def writes(*told):
    return Writes(*(np.array(each, dtype=np.int64) for each in zip(*told, strict=True)))


def test_a_copy_is_built_chunk_by_chunk_and_blocks_side_by_side_are_one_read():
    pair = StridedBlocks(0, 6 * KIB, ((8 * KIB, 2),))
    tile = StridedBlocks(MIB, BUILD_BYTES // 2, ((BUILD_BYTES // 2, 3),))
    assert rows(building([pair, tile])) == [
        (FILE, 0, 6 * KIB),
        (FILE, 8 * KIB, 6 * KIB),
        (0, 0, 12 * KIB),
        (FILE, MIB, BUILD_BYTES),
        (0, 12 * KIB, BUILD_BYTES),
        (FILE, MIB + BUILD_BYTES, BUILD_BYTES // 2),
        (0, 12 * KIB + BUILD_BYTES, BUILD_BYTES // 2),
    ]


def test_the_builder_waits_for_each_block_of_an_emulated_target():
    """64 reads on one disk, one write on another."""
    where = Setting(DISKS, {"/d/f": on_one(0)})
    taken = 65 * STARTUP_S + 2 * HALF.bytes * PER_BYTE_S
    assert where.build_s("/d/f", [HALF], on_one(1)) == pytest.approx(taken)


def test_a_write_goes_part_by_part_to_the_file_and_then_to_each_block_of_each_copy():
    whole, block = [StridedBlocks(0, MIB)], [StridedBlocks(4 * KIB, 4 * KIB, ((WRITE_BYTES, 2),))]
    client, offset, size = (np.array([each]) for each in (3, 0, WRITE_BYTES + 8 * KIB))
    steps = writing(client, offset, size, [whole, block])
    assert steps.client.tolist() == [3] * 6 and steps.write.all()
    assert rows(steps) == [
        (FILE, 0, WRITE_BYTES),
        (0, 0, WRITE_BYTES),
        (1, 0, 4 * KIB),
        (FILE, WRITE_BYTES, 8 * KIB),
        (0, WRITE_BYTES, 8 * KIB),
        (1, 4 * KIB, 4 * KIB),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 600), st.integers(1, 400)), min_size=1, max_size=6),
    st.integers(1, 30),
)
def test_what_is_written_of_a_copy_are_the_bytes_that_it_has_of_the_writes(told, block):
    client, offset, size = np.array(told, np.int64).T * np.array([[1], [KIB], [KIB]])
    part = StridedBlocks(5 * KIB, block * KIB, ((40 * KIB, 10),))
    steps = writing(client, offset, size, [[part]])
    is_file = steps.copy == FILE
    assert steps.size[is_file].sum() == size.sum() and (steps.size <= WRITE_BYTES).all()
    held = np.zeros(2 * MIB // KIB, bool)
    for at in (part.offsets() // KIB).tolist():
        held[at : at + block] = True
    expected = sum(held[at // KIB : (at + n) // KIB].sum() for at, n in zip(offset, size, strict=True))
    assert steps.size[~is_file].sum() == expected * KIB
    built = building([part])
    assert [built.size[built.copy == where].sum() for where in (FILE, 0)] == [part.bytes] * 2


def test_one_large_write_waits_for_every_block_that_a_copy_has_of_it():
    """Of 512 KiB every second block, on the disk of the file: in each of four parts of 128 KiB the file's part begins
    anew after the copy, and the copy's blocks, which lie side by side there, after the file.
    """
    (copy,) = decide(
        "h-pdla", Found((columns(2, 4 * KIB, 64),), (), {}), Setting(DISKS, {"/d/f": on_one(0)}), Options()
    ).chosen
    half = replace(copy, blocks=(HALF,), layout=on_one(0))
    where = Setting(DISKS, {"/d/f": on_one(0)})
    told = writes((0, 0, 512 * KIB))
    (taken,) = where.copied_s([half], told)
    assert taken == pytest.approx((4 + 3) * STARTUP_S + HALF.bytes * PER_BYTE_S)
    # Two columns that take turns on one disk: no block goes on where the one before ended.
    other = replace(half, blocks=(StridedBlocks(4 * KIB, 4 * KIB, HALF.dims),))
    both = replace(half, blocks=(StridedBlocks(0, 4 * KIB, ((4 * KIB, 2), (8 * KIB, 64))),))
    assert sum(where.copied_s([half, other], told)) == pytest.approx((8 + 3) * STARTUP_S + 512 * KIB * PER_BYTE_S)
    assert where.copied_s([both], told)[0] == pytest.approx((128 + 3) * STARTUP_S + 512 * KIB * PER_BYTE_S)


def test_no_set_is_made_whose_gain_goes_into_copying_one_large_write():
    """A collective write is one process's. Of eight columns two lie on each disk, so every block is a seek: written by
    eight processes in the order of the copies they were a few.
    """
    pattern = columns(8, 4 * KIB, 64)
    extent = Extent(2 * MIB, 2 * MIB, 2 * MIB, writes((0, 0, 2 * MIB)))
    read = radar([pattern], Setting(DISKS), Room(), {}, RadarOptions())
    assert read.chosen and read.chosen[0].build_s > 512 * STARTUP_S
    refused = radar([pattern], Setting(DISKS), Room(), {"/d/f": extent}, RadarOptions())
    assert not refused.chosen and "for what the run writes there is copied, too" in refused.refused[0].reason
