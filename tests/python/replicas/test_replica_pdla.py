"""PDLA's managers: costs and Algorithm 1 by hand, the paper's placements, and what holds of any patterns."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica_cases import accesses, any_rows, bytes_of, columns, setting, several_patterns, strided
from stripewise.cluster import Network
from stripewise.errors import ClusterError
from stripewise.replicas import Found, Options, Room, Setting, decide
from stripewise.replicas.accesses import Extent
from stripewise.replicas.pdla import BOTH, HSERVERS, SSERVERS, cheapest_on, critical_of, h_pdla, ns_pdla, s_orig, s_pdla
from support import KIB, MIB, cluster, target


def device_cluster(hdd, ssd, M=8, N=4):
    """(startup, per byte) of each class; 8 HServers and 4 SServers as in PDLA, section 5.2."""
    made = cluster(M, N)
    disks = [target(f"h{number}", "hdd", 0, *hdd) for number in range(M)]
    return replace(made, targets=(*disks, *(target(f"s{number}", "ssd", 0, *ssd) for number in range(N))))


#: Table 1's symbols with e = 10 us, v = 1 ns/B, a = 3 ms, b = 10 ns/B.
FOUR = cluster(4, 0, network=Network(1e-5, 1e-9, 1))


def test_the_cheapest_layout_by_hand():
    # Table 2, p = 4, m = 1, n = 4, s = 64 KiB: 1-DV e + sv + a + sb, 1-DH 4e + sv + 4a + sb, 2-D of 2 groups
    # 2e + sv + 2a + sb.
    found = cheapest_on(strided(4, 64 * KIB, MIB, 10), FOUR, ssd=False)
    assert (found.groups, found.space) == (4, HSERVERS)
    assert found.seconds == pytest.approx(10 * (1e-5 + 65536e-9 + 3e-3 + 65536e-8))
    # p = 1, s = 4 MiB: 1-DV e + sv + a + sb, 1-DH 4e + sv + a + sb/4.
    found = cheapest_on(strided(1, 4 * MIB, 8 * MIB, 10), FOUR, ssd=False)
    assert found.groups == 1
    assert found.seconds == pytest.approx(10 * (4e-5 + 4 * MIB * 1e-9 + 3e-3 + MIB * 1e-8))


def test_two_d_wins_where_half_the_processes_share_a_server():
    # p = 2, n = 4, s = 4 MiB: 1-DV e + sv + a + sb; 2-D of 2 groups 2e + sv + a + sb/2; 1-DH 4e + sv + 2a + sb/2.
    found = cheapest_on(strided(2, 4 * MIB, 8 * MIB, 3), FOUR, ssd=False)
    assert found.groups == 2
    assert found.seconds == pytest.approx(3 * (2e-5 + 4 * MIB * 1e-9 + 3e-3 + 2 * MIB * 1e-8))


def test_requests_of_two_sizes_are_priced_each():
    rows = [(r, "read", (r * 8 + k) * MIB, size) for r in range(4) for k, size in enumerate([64 * KIB, 256 * KIB] * 4)]
    found = cheapest_on(accesses(rows), FOUR, ssd=False)
    assert found.seconds == pytest.approx(sum(4 * (1e-5 + s * 1e-9 + 3e-3 + s * 1e-8) for s in (65536, 262144)))


@pytest.mark.parametrize(
    ("processes", "size", "space"),
    [
        # Section 5.2.1, IOR; 5.2.2, PIO-Bench; 5.2.3, MPI-Tile-IO.
        *((p, size, space) for p in (128, 256, 512) for size, space in
          ((16 * KIB, SSERVERS), (256 * KIB, SSERVERS), (4 * MIB, BOTH))),
        *((128, size, SSERVERS) for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)),
        (128, MIB, BOTH),
        *((256, size, SSERVERS) for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)),
    ],
)  # fmt: skip
def test_requests_go_where_the_paper_found_them(processes, size, space):
    """8 HServers, 4 SServers. The paper prints no device figures: 1.5 ms and 83 MB/s, 0.1 ms and 167 MB/s are ours."""
    on = device_cluster((1.5e-3, 1.2e-8), (1e-4, 6e-9))
    row = critical_of(strided(processes, size, 2 * size, 1), on)
    assert row.benefit_s > 0 and row.best.space == space


def test_slow_ssds_make_no_pattern_critical():
    """Section 4.3: with many HServers and few SServers, HServers may be faster."""
    on = Setting(device_cluster((1e-4, 1e-9), (1e-4, 1e-8), 8, 1))
    decision = s_pdla([strided(8, 64 * KIB, MIB, 4)], on, Room())
    assert not decision.chosen and decision.refused[0].reason.startswith("not critical: HServers are as fast (T_H ")


@pytest.mark.parametrize(("size", "is_on_both"), [(64 * KIB, False), (4 * MIB, True)])
def test_the_benefit_is_the_larger_of_two(size, is_on_both):
    row = critical_of(strided(128, size, 2 * size, 1), device_cluster((1.5e-3, 1.2e-8), (1e-4, 6e-9)))
    assert (row.on_both.seconds < row.on_s.seconds) == is_on_both
    t_h, t_s, t_hs = (each.seconds for each in (row.on_h, row.on_s, row.on_both))
    assert row.benefit_s == pytest.approx(max(t_h - t_s, t_h - t_hs))


def shares(*megabytes):
    """Patterns of one process each, whose benefit falls as they are listed, with so many MiB."""
    return [
        accesses([(0, "read", k * MIB, 4 * KIB) for k in range(mb * 256)], f"/d/{number}")
        for number, mb in enumerate(megabytes)
    ]


def test_algorithm_1_takes_space_only_for_what_is_made():
    """With 60, 50 and 40 MiB for 100 the published line 19 ends at -10 and refuses the last; B falls with bytes."""
    on = setting(4, 1)
    decision = s_pdla(shares(60, 50, 40), on, Room(None, {"ssd0": 100 * MIB}))
    assert [each.file for each in decision.chosen] == ["/d/0", "/d/2"]
    assert decision.space_bytes == {"ssd0": 100 * MIB}
    assert [each.reason for each in decision.refused] == ["takes 50.0 MiB on ssd0, of which 40.0 MiB are left"]


def test_a_pattern_fits_where_its_share_of_each_sserver_does():
    # 1-DH over two SServers: half of 60 MiB on each.
    pattern = accesses([(0, "read", k * MIB, 128 * KIB) for k in range(480)])
    decision = s_pdla([pattern], setting(4, 2), Room(None, {"ssd0": 30 * MIB, "ssd1": 30 * MIB}))
    assert [dict(each.space_bytes) for each in decision.chosen] == [{"ssd0": 30 * MIB, "ssd1": 30 * MIB}]
    assert not s_pdla([pattern], setting(4, 2), Room(None, {"ssd0": 29 * MIB, "ssd1": 99 * MIB})).chosen


def test_a_threshold_leaves_out_what_gains_little():
    on = setting()
    patterns = shares(8, 1)
    benefits = [critical_of(each, on.cluster).benefit_s for each in patterns]
    assert benefits[0] > benefits[1] > 0
    decision = s_pdla(patterns, on, Room(), threshold_s=sum(benefits) / 2)
    assert [each.file for each in decision.chosen] == ["/d/0"]
    assert "the benefit is not above" in decision.refused[0].reason


def test_global_patterns_come_before_local_ones():
    local, shared = strided(1, 4 * KIB, MIB, 4, start_ns=0), columns(4, 4 * KIB, 8, file="/d/g", start_ns=9)
    decision = h_pdla([local, shared], setting(), Room())
    assert [each.file for each in decision.chosen] == ["/d/g", "/d/f"]
    assert {each.space for each in decision.chosen} == {HSERVERS}


def test_one_replica_serves_patterns_of_the_same_blocks():
    wrote, read = columns(4, 4 * KIB, 8, "write"), columns(4, 4 * KIB, 8, "read", start_ns=10**9)
    (made,) = h_pdla([wrote, read], setting(), Room()).chosen
    assert made.operation == "both" and made.is_home and made.also == (read.words,) and made.requests == 64


def test_a_written_byte_has_its_home_in_one_replica():
    first, second = strided(2, 64 * KIB, 128 * KIB, 4, "write"), accesses([(0, "write", 0, MIB)], start_ns=1)
    made = h_pdla([first, second], setting(), Room()).chosen
    held = [{byte // KIB for byte in bytes_of(each)[::KIB]} for each in made]
    assert len(made) == 2 and not held[0] & held[1] and len(held[0] | held[1]) == 1024
    assert "bytes of earlier replicas are left out" in made[1].reasons
    again = accesses([(0, "write", 64 * KIB * (1 + 2 * k), 4 * KIB) for k in range(3)], start_ns=2)
    assert "have their home in a replica already" in h_pdla([first, second, again], setting(), Room()).refused[0].reason


def test_what_reads_blocks_that_have_their_home_elsewhere_has_a_copy():
    """A file is filled, then written and read by columns: the columns' home is the fill's replica."""
    filled = strided(2, MIB, MIB, 2, "write")
    wrote, read = columns(4, 64 * KIB, 16, "write", start_ns=1), columns(4, 64 * KIB, 16, start_ns=2)
    decision = h_pdla([filled, wrote, read], setting(), Room())
    assert [(each.words, each.operation, each.also) for each in decision.chosen] == [
        (filled.words, "write", ()), (read.words, "read", ()),
    ]  # fmt: skip
    assert [each.reason for each in decision.refused] == ["all its bytes have their home in a replica already"]


def test_bytes_that_are_only_read_may_have_several_copies():
    made = h_pdla([columns(4, 4 * KIB, 64), accesses([(0, "read", 0, MIB)], start_ns=1)], setting(), Room()).chosen
    assert [each.space_bytes and sum(part.bytes for part in each.blocks) for each in made] == [MIB, MIB]


def test_a_replica_without_gain_is_made_as_published_and_says_so():
    whole = accesses([(0, "read", k * MIB, MIB) for k in range(64)])
    (made,) = h_pdla([whole], Setting(cluster(4, 0)), Room()).chosen
    assert made.gain_s <= 0 and "no gain" in made.reasons[-1]


def test_scattered_blocks_are_no_pattern():
    chance = random.Random(3)
    rows = [(0, "read", at * 4 * KIB, 4 * KIB) for at in chance.sample(range(10**6), 2000)]
    decision = h_pdla([accesses(rows)], setting(), Room())
    assert not decision.chosen and "its blocks follow no few strides" in decision.refused[0].reason


def test_s_orig_moves_whole_files_and_ns_pdla_all_patterns():
    patterns = [columns(4, 4 * KIB, 64), strided(2, MIB, 2 * MIB, 4, "write", file="/d/g")]
    extents = {"/d/f": Extent(2 * MIB, MIB), "/d/g": Extent(16 * MIB, 0)}
    moved = s_orig(patterns, setting(), Room(), extents)
    assert {each.file: sum(each.space_bytes.values()) for each in moved.chosen} == {"/d/f": 2 * MIB, "/d/g": 16 * MIB}
    copied = ns_pdla(patterns, setting(), Room())
    assert {each.space for each in (*moved.chosen, *copied.chosen)} == {SSERVERS}
    assert sorted(each.file for each in copied.chosen) == ["/d/f", "/d/g"]


@pytest.mark.parametrize(
    ("decides", "sizes", "lacks"),
    [(h_pdla, (0, 2), "another class than ssd"), (s_pdla, (0, 2), "another class"), (s_pdla, (2, 0), "class ssd"),
     (ns_pdla, (2, 0), "class ssd")],
)  # fmt: skip
def test_a_manager_without_its_servers_says_what_to_do(decides, sizes, lacks):
    with pytest.raises(ClusterError, match=rf"^cluster\.toml: has no active target of .*{lacks}.*; add one"):
        decides([columns(2, 4 * KIB, 4)], Setting(cluster(*sizes)), Room())


def found_of(patterns):
    ends = {each.file: 0 for each in patterns}
    for each in patterns:
        ends[each.file] = max(ends[each.file], int((each.offset + each.size).max()))
    return Found(tuple(patterns), (), {path: Extent(end, end) for path, end in ends.items()})


MANAGERS = ("h-pdla", "s-pdla", "s-orig", "ns-pdla", "radar")


@settings(max_examples=40)
@given(several_patterns(), st.integers(0, 4 * MIB), st.sampled_from(MANAGERS))
def test_the_bound_of_space_is_never_exceeded(patterns, bound, manager):
    on = setting()
    made = decide(manager, found_of(patterns), on, Options(space_bytes=bound))
    space = made.space_bytes
    if manager in ("h-pdla", "radar"):
        assert sum(space.values()) <= bound
    else:
        assert all(space.get(each.name, 0) <= bound for each in on.cluster.sservers)
    names = [(each.file, each.words) for each in (*made.chosen, *made.refused)]
    assert len(names) <= len(patterns)


@settings(max_examples=40)
@given(several_patterns(), st.integers(0, 4 * MIB))
def test_s_pdla_takes_the_largest_benefits_first(patterns, bound):
    made = decide("s-pdla", found_of(patterns), setting(), Options(space_bytes=bound))
    benefits = [each.benefit_s for each in made.chosen]
    assert benefits == sorted(benefits, reverse=True) and all(each > 0 for each in benefits)


@settings(max_examples=40)
@given(several_patterns(), st.randoms(), st.sampled_from(MANAGERS))
def test_the_order_of_patterns_does_not_matter(patterns, chance, manager):
    mixed = list(patterns)
    chance.shuffle(mixed)
    one, other = (
        decide(manager, found_of(each), setting(), Options(space_bytes=2 * MIB)).as_json() for each in (patterns, mixed)
    )
    assert {**one, "refused": None} == {**other, "refused": None}
    assert sorted(map(repr, one["refused"])) == sorted(map(repr, other["refused"]))


@settings(max_examples=40)
@given(st.lists(any_rows(), min_size=1, max_size=3), st.sampled_from(("h-pdla", "s-pdla", "ns-pdla")))
def test_no_byte_stands_twice_in_a_replica_and_none_has_two_homes(several, manager):
    patterns = [accesses(rows, start_ns=number) for number, rows in enumerate(several)]
    homes = set()
    for made in decide(manager, found_of(patterns), setting(), Options()).chosen:
        held = bytes_of(made)
        assert len(held) == len(set(held))
        if made.is_home:
            assert not homes & set(held)
            homes |= set(held)
    written = {
        byte
        for each in patterns
        for at, size in zip(each.offset.tolist(), each.size.tolist(), strict=True)
        for byte in range(at, at + size)
        if each.write.any()
    }
    assert homes <= written
