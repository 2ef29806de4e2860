"""Regions and tables as people see them: 80 columns, no word cut, neighbours that are alike in one row."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stripewise.cli.output import aligned, regions_counted, regions_drawn, repeated, stripes_text, wrapped
from stripewise.layout import Region
from stripewise.units import exact_size, parse_size

KIB, MIB = 1 << 10, 1 << 20


def equal(count: int, width: int = 64 * KIB, name: str = "hdd"):
    return tuple((f"{name}{number}", width) for number in range(count))


def test_a_cycle_is_told_in_its_order_with_exact_widths_and_names_that_count_up_folded() -> None:
    assert stripes_text(equal(3)) == "64KiB on hdd0 hdd1 hdd2"
    assert stripes_text(equal(256)) == "64KiB on hdd0..hdd255"
    assert stripes_text((*equal(4), ("ssd0", 1028 * KIB), ("hdd9", 4 * KIB))) == (
        "64KiB on hdd0..hdd3, 1028KiB on ssd0, 4KiB on hdd9"
    )
    assert stripes_text(tuple((name, 4096) for name in ("a9", "a10", "a11", "a12", "b13", "a08", "a09"))) == (
        "4KiB on a9..a12 b13 a08 a09"
    )


def test_neighbours_of_one_cycle_share_a_row_and_what_is_beyond_is_counted() -> None:
    turned = equal(3)[1:] + equal(3)[:1]
    other = equal(1, 4 * KIB, "ssd")
    regions = [Region(n * MIB, MIB, cycle) for n, cycle in enumerate([equal(3), equal(3), other, equal(3), turned])]
    drawn = list(regions_drawn(regions, 9))
    assert [" ".join(line.split()) for line in drawn] == [
        "from to regions stripes",
        "0 2,097,152 2 64KiB on hdd0 hdd1 hdd2",
        "2,097,152 3,145,728 1 4KiB on ssd0",
        "3,145,728 5,242,880 2 64KiB on hdd0 hdd1 hdd2, rotated",
    ]
    assert list(regions_drawn(regions, 1))[2:] == ["  and 3 more region(s)"]
    # A row that begins at the file's end or behind it holds nothing yet.
    grown = [line.split()[1] for line in regions_drawn(regions, 9, 2 * MIB)][1:]
    assert grown == ["2,097,152", "growth", "growth"]
    # Only regions with bytes of the file count, and where the last one holds some, its repetitions are for growth.
    drawn = list(regions_drawn(regions, 9, 4 * MIB + 5))
    assert [" ".join(line.split()) for line in drawn] == [
        "from to regions stripes",
        "0 2,097,152 2 64KiB on hdd0 hdd1 hdd2",
        "2,097,152 3,145,728 1 4KiB on ssd0",
        "3,145,728 end, growth 2 64KiB on hdd0 hdd1 hdd2, rotated",
    ]
    short = [line.split()[:3] for line in regions_drawn(regions, 9, 1)][1:]
    assert short == [["0", "end,", "growth"], ["2,097,152", "growth", "1"], ["3,145,728", "growth", "2"]]
    assert [line.split()[1] for line in regions_drawn(regions, 9, 2 * MIB + 1)][1:] == [
        *grown[:1],
        "end,",
        "growth",
    ]
    # Bytes up to the region's end are the same row's.
    assert list(regions_drawn(regions, 9, 2 * MIB + 1))[2].split()[1:5] == ["end,", "growth", "to", "3,145,728"]
    # A last row that goes on behind the file's end is of the file and of its growth, however many regions it has.
    merged = [Region(n * 32 * MIB, 32 * MIB, equal(3)) for n in range(4)]
    assert list(regions_drawn(merged, 9, 32 * MIB))[1].split()[:4] == ["0", "end,", "growth", "1"]
    assert list(regions_drawn(merged, 9, 33 * MIB))[1].split()[:4] == ["0", "end,", "growth", "2"]
    # The same targets in another order are another cycle.
    swapped = (equal(3)[1], equal(3)[0], equal(3)[2])
    assert len(list(regions_drawn([Region(0, MIB, equal(3)), Region(MIB, MIB, swapped)], 9))) == 3


@given(
    st.lists(
        st.tuples(
            st.integers(1, 1 << 30),
            st.lists(
                st.tuples(st.text("abcd0129_-", min_size=1, max_size=9), st.integers(1, 5000)), min_size=1, max_size=40
            ),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_lines_fit_80_columns_and_no_name_is_cut(drawn) -> None:
    regions, end = [], 0
    for granules, pairs in drawn:
        stripes = tuple({name: width * 4096 for name, width in pairs}.items())
        regions.append(Region(end, granules * 4096, stripes))
        end += granules * 4096
    lines = list(regions_drawn(regions, 1000))
    assert all(len(line) <= 80 and line.isascii() for line in lines), lines
    words = set(re.split(r"[ ,]+", " ".join(line for line in lines)))
    for region in regions[:1]:
        for name, _ in region.stripes[:1]:
            assert any(word == name or word.startswith(f"{name}..") for word in words), (name, lines)


@given(st.integers(1, 1 << 50))
def test_an_exact_size_reads_back(size: int) -> None:
    assert parse_size(exact_size(size)) == size


def test_sentences_are_cut_between_words_and_never_before_a_unit() -> None:
    text = "held by " + ", ".join(f"target-{n} {n}.5 MiB" for n in range(20))
    lines = wrapped(text).splitlines()
    assert all(len(line) <= 80 for line in lines) and " ".join(lines) == text
    assert not any(line.startswith(("MiB", "-")) for line in lines)


def test_a_table_without_rows_is_its_header() -> None:
    assert list(aligned(("a", "b"), [])) == ["a  b"]


def test_a_file_has_as_many_regions_as_its_table_counts() -> None:
    first, other = equal(1), equal(1, name="ssd")
    for cycles, size, counted in (
        ((first, first), MIB, (1, 0)),
        ((first, other), MIB, (1, 1)),
        ((first, other), MIB + 1, (2, 0)),
        ((first, first, other, other), MIB, (1, 2)),
        ((first, other), 0, (0, 2)),
    ):
        regions = [Region(n * MIB, MIB, cycle) for n, cycle in enumerate(cycles)]
        assert regions_counted(regions, size) == counted
        rows = [re.split(r"  +", line.strip()) for line in list(regions_drawn(regions, 9, size))[1:]]
        assert sum(int(row[-2]) for row in rows) == sum(counted), rows


def test_a_region_that_is_one_stripe_lies_whole_on_its_target() -> None:
    assert stripes_text((("ssd0", 62288 * 1024),), 62288 * 1024) == "whole on ssd0"
    assert stripes_text((("ssd0", 4096),), 1 << 20) == "4KiB on ssd0"
    assert stripes_text((("ssd0", 1 << 20), ("ssd1", 1 << 20)), 1 << 20) == "1MiB on ssd0 ssd1"


def test_rows_that_come_again_are_drawn_once_with_how_often_and_how_long() -> None:
    swift, slow = equal(2, 4 * KIB, "ssd"), equal(4, 4 * KIB)
    # A hot block of each 64 KiB on SSDs, the rest on disks, which begin on another one every time.
    cycles = [swift if n % 8 == 0 else slow[n % 4 :] + slow[: n % 4] for n in range(8 * 2049)]
    regions = [Region(n * 8 * KIB, 8 * KIB, cycle) for n, cycle in enumerate(cycles)]
    drawn = [" ".join(line.split()) for line in regions_drawn(regions, 12)]
    assert " ".join(drawn[1:4]) == (
        "0 134,217,728 16,384 2,048 times: 8KiB in stripes of 4KiB on ssd0 ssd1, then 56KiB in stripes of 4KiB on hdd1 "
        "hdd2 hdd3 hdd0, rotated"
    )
    assert drawn[-2] == "134,217,728 134,225,920 1 4KiB on ssd0 ssd1"
    whole = [Region(n * MIB, MIB, ((f"ssd{n % 2}", MIB),)) for n in range(4097)]
    assert " ".join(" ".join(regions_drawn(whole, 12, 4096 * MIB)).split()) == (
        "from to regions stripes 0 4,294,967,296 4,096 2,048 times: 1MiB whole on ssd0, then 1MiB whole on ssd1 "
        "4,294,967,296 growth 1 whole on ssd0"
    )
    # Twice is drawn as it is.
    assert len(list(regions_drawn(whole[:5], 12))) == 6


@given(st.lists(st.integers(0, 3), max_size=60))
def test_what_is_repeated_is_all_of_it_in_order(keys: list[int]) -> None:
    again = []
    for first, period, times in repeated(keys):
        assert first == len(again) and (times >= 3 or (period, times) == (1, 1))
        again += keys[first : first + period] * times
    assert again == keys
    assert list(repeated(keys[:5] * 7))[:1] != [(0, 1, 1)] or not keys


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(0, 41))
def test_a_file_has_as_many_regions_as_its_table_counts_where_rows_repeat(cycles: list[int], held: int) -> None:
    regions = [Region(n * MIB, MIB, equal(1, name="abc"[cycle])) for n, cycle in enumerate(cycles)]
    size = held * MIB - MIB // 2 if held else 0
    rows = [re.split(r"  +", line.strip()) for line in regions_drawn(regions, 99, size)][1:]
    rows = [row for row in rows if len(row) == 4 and row[2].isdecimal()]
    assert sum(int(row[2]) for row in rows) == sum(regions_counted(regions, size))
