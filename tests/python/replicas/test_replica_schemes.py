"""Layouts of replicas by hand, and what they hold on each target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.layout import Layout, Region, layout_json, parse_layout, target_bytes
from stripewise.replicas.schemes import hybrid, one_dh, one_dv, rotating, two_d
from support import KIB, MIB, cluster

DISKS, SSDS = cluster(4, 0).hservers, cluster(0, 2).sservers
held_bytes = st.lists(st.integers(1, 300_000), min_size=1, max_size=9)


def test_one_dh_cuts_each_request_over_all_servers():
    assert one_dh(DISKS, 64 * KIB, MIB) == Layout(
        (Region(0, MIB, tuple((f"hdd{number}", 16 * KIB) for number in range(4))),)
    )
    # Widths are whole granules: a request of 10,000 bytes has three of 4 KiB.
    assert one_dh(DISKS, 10_000, 40_000).regions[0].stripes[0] == ("hdd0", 4 * KIB)
    assert one_dh(DISKS, 10_000, 40_000).regions[0].len == 40 * KIB


def test_one_dv_puts_each_process_on_one_server_in_turn():
    made = one_dv(DISKS, [MIB] * 6)
    assert [region.stripes for region in made.regions] == [
        ((f"hdd{number % 4}", MIB),) for number in range(6)
    ]  # fmt: skip
    assert [region.start for region in made.regions] == [number * MIB for number in range(6)]
    assert one_dv(DISKS[:1], [MIB] * 6) == Layout((Region(0, 6 * MIB, (("hdd0", 6 * MIB),)),))


def test_two_d_puts_each_process_on_a_group():
    made = two_d(DISKS, 2, 64 * KIB, [MIB] * 3)
    low, high = ((("hdd0", 32 * KIB), ("hdd1", 32 * KIB)), (("hdd2", 32 * KIB), ("hdd3", 32 * KIB)))
    assert made == Layout((Region(0, MIB, low), Region(MIB, MIB, high), Region(2 * MIB, MIB, low)))


def test_hybrid_stripes_give_the_sservers_what_hservers_leave():
    # M*h + N*s = r: 4 * 16 KiB + 2 * 96 KiB = 256 KiB.
    stripes = hybrid(DISKS, SSDS, 16_500.0, 256 * KIB, MIB).regions[0].stripes
    assert stripes == (*((f"hdd{number}", 16 * KIB) for number in range(4)), ("ssd0", 96 * KIB), ("ssd1", 96 * KIB))
    assert hybrid(DISKS, SSDS, 100.0, 256 * KIB, MIB).regions[0].stripes == (("ssd0", 128 * KIB), ("ssd1", 128 * KIB))


def test_a_process_with_more_than_its_share_takes_more_servers():
    """RADAR, figure 2: over and under-provisioning, round robin from where the last process ended."""
    made, first = rotating(DISKS, MIB, [3 * MIB, MIB, 2 * MIB, 6 * MIB], 0)
    assert [[name for name, _ in region.stripes] for region in made.regions] == [
        ["hdd0", "hdd1", "hdd2"], ["hdd3"], ["hdd0", "hdd1"], ["hdd2", "hdd3", "hdd0", "hdd1"],
    ]  # fmt: skip
    assert first == 0 and {width for region in made.regions for _, width in region.stripes} == {MIB}


@pytest.mark.parametrize("targets", [DISKS, DISKS[:3], SSDS])
@given(held=held_bytes, request=st.integers(1, 200_000), first=st.integers(0, 5))
def test_each_layout_holds_all_bytes_in_whole_granules(targets, held, request, first):
    total = sum(held)
    for made in (
        one_dh(targets, request, total),
        one_dv(targets, held),
        rotating(targets, request, held, first % len(targets))[0],
        *(two_d(targets, groups, request, held) for groups in range(1, len(targets) + 1) if not len(targets) % groups),
    ):
        # The rules of every layout: no gaps, granules, no target twice in a cycle.
        assert parse_layout(layout_json(made), "made") == made
        last = made.regions[-1]
        assert last.start < total <= last.start + last.len < total + 4 * KIB
        space = target_bytes(made.regions, total)
        assert sum(space.values()) >= total
        assert sum(space.values()) <= total + 4 * KIB * len(made.regions) * len(targets)
