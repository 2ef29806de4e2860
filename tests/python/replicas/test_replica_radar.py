"""RADAR's manager: n_p, stripes and benefit by hand at the paper's figures, buckets, ageing, and the choice of sets."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica_cases import accesses, columns, decomposition, fusion, setting, several_patterns, strided
from stripewise.errors import UsageError, WorkloadError
from stripewise.layout import whole_file
from stripewise.replicas import RadarOptions, Room, Setting, decay_named
from stripewise.replicas.accesses import Extent, Writes
from stripewise.replicas.decay import half_life, identity
from stripewise.replicas.radar import buckets, figures_of, radar
from stripewise.replicas.stored import read_stored
from stripewise.units import GIB
from support import KIB, MIB

S = 10**9


def extents(patterns, read=0):
    ends = {}
    for each in patterns:
        ends[each.file] = max(ends.get(each.file, 0), int((each.offset + each.size).max()))
    return {path: Extent(end, read) for path, end in ends.items()}


def decided(patterns, on=None, room=None, **options):
    return radar(patterns, on or setting(), room or Room(), extents(patterns), RadarOptions(**options))


def test_the_figures_of_table_ii_are_those_of_the_cluster():
    found = figures_of(fusion())
    assert (found.n, found.readahead_bytes) == (8, 128 * KIB)
    assert found.net_startup_s == pytest.approx(32.9e-6) and found.net_per_byte_s == pytest.approx(0.00112e-6)
    assert found.storage_startup_s == pytest.approx(6.20e-3) and found.storage_per_byte_s == pytest.approx(0.0212e-6)


@pytest.mark.parametrize(("p", "best"), [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1)])
def test_each_process_s_data_lies_on_n_p_servers_in_turn(p, best):
    """Section II.A.2.c with Table II: stripes of B/(p*n_p), each process from where the last one ended."""
    (made,) = decided([strided(p, 64 * KIB, MIB, 64)], Setting(fusion())).chosen
    assert made.scheme == f"n_p {best}"
    assert len(made.layout.regions) == p
    for rank, region in enumerate(made.layout.regions):
        names = [f"d{(rank * best + number) % 8}" for number in range(best)]
        assert region.stripes == tuple((name, 4 * MIB // best) for name in names)


def test_the_benefit_by_hand():
    # Two clients read 16 blocks of 4 KiB, one every 2 MiB: 64 KiB over 8 servers put each client's on one server, one
    # every 256 KiB.
    pattern = accesses([(r, "read", 2 * k * MIB + r * 64 * KIB, 4 * KIB) for r in range(2) for k in range(16)])
    (made,) = decided([pattern], Setting(fusion())).chosen
    received = 64 * KIB * 0.00112e-6
    # T'_e = l_net * (1 + 1 - 1), T'_s = 16 runs, T'_rw = 64 KiB.
    assert made.original_s == pytest.approx(32.9e-6 + 16 * 6.20e-3 + 64 * KIB * 0.0212e-6 + received)
    # n_p = 4: 16 KiB and one run on a server, l_net * (1 + 4 - 1).
    assert made.scheme == "n_p 4"
    assert made.replica_s == pytest.approx(4 * 32.9e-6 + 6.20e-3 + 16 * KIB * 0.0212e-6 + received)
    assert made.benefit_s == pytest.approx(made.original_s - made.replica_s)


def test_what_the_run_writes_there_is_copied_and_that_time_is_no_gain():
    pattern = accesses([(r, "read", 2 * k * MIB + r * 64 * KIB, 4 * KIB) for r in range(2) for k in range(16)])
    alone = decided([pattern], Setting(fusion()))
    # Process 0 writes its first two blocks, with a page on either side, and process 1 what no block has.
    writes = Writes(np.array([0, 0, 1]), np.array([0, 2 * MIB - 4 * KIB, MIB]), np.array([8 * KIB, 12 * KIB, MIB]))
    extent = Extent(32 * MIB, 128 * KIB, MIB + 20 * KIB, writes)
    (made,) = radar([pattern], Setting(fusion()), Room(), {"/d/f": extent}, RadarOptions()).chosen
    # 4 KiB each, side by side in the first stripe of 16 KiB: one request of one client, one run.
    copied = 32.9e-6 + 6.20e-3 + 8 * KIB * (0.0212e-6 + 0.00112e-6)
    (before,) = alone.chosen
    assert made.replica_s == pytest.approx(before.replica_s + copied) and made.original_s == before.original_s
    assert made.benefit_s == pytest.approx(before.benefit_s - copied)
    assert made.reasons == ("6.42 ms of the replica's time go into copying what the run writes there",)
    # Four times as many writes as reads, in another order than the copy has: it is not worth making.
    back = Writes(*(np.tile(each[::-1], 4) for each in (pattern.client, pattern.offset, pattern.size)))
    extent = Extent(32 * MIB, 128 * KIB, 512 * KIB, back)
    refused = radar([pattern], Setting(fusion()), Room(), {"/d/f": extent}, RadarOptions())
    assert not refused.chosen and refused.refused[0].reason == (
        "gains less than 10% over the file itself, for what the run writes there is copied, too"
    )


def test_copies_that_writes_invalidate_cost_no_copying_and_gain_nothing_where_the_run_has_written_before():
    rows = [(r, "read", 2 * k * MIB + r * 64 * KIB, 4 * KIB) for r in range(2) for k in range(16)]
    pattern = replace(accesses(rows), start_ns=2 * S, end_ns=3 * S)
    (alone,) = decided([pattern], Setting(fusion())).chosen

    def invalidated(*writes):
        told = Writes(*(np.array(each, dtype=np.int64) for each in zip(*writes, strict=True)))
        extent = Extent(32 * MIB, 128 * KIB, MIB, told)
        return radar([pattern], Setting(fusion()), Room(), {"/d/f": extent}, RadarOptions(), "invalidate")

    # Process 1 writes when the reads have begun; nothing of that is charged, or lost.
    (late,) = invalidated((1, 0, 32 * MIB, 2 * S)).chosen
    assert late == replace(alone, on_write="invalidate")
    # Before them 100 bytes are written: 4 KiB of 128 KiB are stale, as marks have it; what no block has does not count.
    (made,) = invalidated((0, 2 * MIB + 100, 100, S), (0, MIB, 4 * KIB, S)).chosen
    assert made.on_write == "invalidate" and made.original_s == alone.original_s
    assert made.gain_s == pytest.approx(alone.gain_s * 31 / 32) and made.benefit_s == pytest.approx(made.gain_s)
    assert made.reasons == ("4.0 KiB of 128.0 KiB are written before they are read, so they gain nothing",)
    (refused,) = invalidated((0, 0, 32 * MIB, S)).refused
    assert refused.reason == "gains less than 10% over the file itself, for the run writes it before it reads it"


def test_what_stands_to_which_writes_do_something_else_is_made_anew():
    pattern = strided(4, 4 * KIB, MIB, 32)
    (stood,) = decided([pattern]).sets
    stored = RadarOptions(stored=(replace(stood, is_stored=True),))
    again = radar([pattern], setting(), Room(), extents([pattern]), stored)
    assert again.sets[0].is_stored and "stands already" in again.chosen[0].reasons
    other = radar([pattern], setting(), Room(), extents([pattern]), stored, "invalidate")
    assert [each.is_stored for each in other.sets] == [False] and other.chosen[0].on_write == "invalidate"
    assert other.chosen[0].build_s > 0 and "stands already" not in other.chosen[0].reasons


def test_what_is_read_in_order_already_gets_no_replica():
    """Section III.C, rows: large contiguous reads gain little or nothing."""
    for on in (Setting(fusion()), setting(4, 2)):
        decision = decided([accesses([(0, "read", k * MIB, MIB) for k in range(64)])], on)
        assert not decision.chosen
        assert decision.refused[0].reason == "gains less than 10% over the file itself"


@pytest.mark.parametrize(
    ("kind", "clients", "least", "most"),
    [("row", 1, 0, 0), ("row", 8, 0, 0), ("row", 16, 0, 0), ("column", 8, 7, 8), ("column", 16, 15, 16),
     ("cube", 8, 1.9, 2.0), ("cube", 16, 2, 3), ("time", 1, 5, 6), ("time", 16, 7, 8)],
)  # fmt: skip
def test_the_paper_s_decompositions_gain_what_its_figures_say(kind, clients, least, most):
    """Figures 7 to 11: little or nothing by rows, multi-fold by columns, cubes and time; stripes of 1 MiB on 8 servers.

    The factors are the model's (the paper prints its own as bars), with Table II at one client per node.
    """
    on = Setting(fusion(), {"/d/f": whole_file(fusion().active, MIB, GIB)})
    made = decided([decomposition(kind, clients)], on).chosen
    assert [least <= each.times_as_fast <= most for each in made] == ([True] if least else [])


def test_a_pattern_of_three_shares_takes_three_times_the_servers():
    rows = [(r, "read", (2 * k + r) * MIB, 64 * KIB) for r, count in ((0, 48), (1, 16)) for k in range(count)]
    (made,) = decided([accesses(rows)], Setting(fusion())).chosen
    assert made.scheme == "n_p 4"
    assert [len(region.stripes) for region in made.layout.regions] == [6, 2]
    assert {name for region in made.layout.regions for name, _ in region.stripes} == {f"d{k}" for k in range(8)}


def test_what_is_written_gets_no_copy():
    decision = decided([columns(4, 4 * KIB, 64, "write")])
    assert not decision.chosen and decision.refused[0].reason == "radar makes copies of what is only read"


def test_a_set_of_little_data_or_little_gain_is_refused_whatever_its_factor():
    little = "holds less than 64.0 KiB, too little for a copy of its own"
    short = "gains less than 1 ms in all, too little for a copy of its own"
    for count, block, ssds, reason in ((9, 512, 0, little), (7, 8 * KIB, 0, little), (8, 8 * KIB, 0, None),
                                       (4, 16 * KIB, 4, short), (16, 16 * KIB, 4, None)):  # fmt: skip
        decision = decided([strided(1, block, MIB, count)], setting(0, ssds) if ssds else setting())
        assert [each.reason for each in decision.refused] == ([] if reason is None else [reason])
        assert bool(decision.chosen) == (reason is None)
        assert all(each.candidate.times_as_fast > 1.2 for each in decision.refused)


def test_buckets_are_windows_of_the_start_and_of_a_file():
    patterns = [columns(2, 4 * KIB, 4, start_ns=at, file=file)
                for at, file in ((5 * S, "/a"), (14 * S, "/a"), (15 * S, "/a"), (6 * S, "/b"))]  # fmt: skip
    found = [[(each.start_ns // S, each.file) for each in bucket] for bucket in buckets(patterns, 10 * S)]
    assert found == [[(5, "/a"), (14, "/a")], [(6, "/b")], [(15, "/a")]]


def test_without_a_window_patterns_that_overlap_in_time_are_a_bucket():
    times = [("/a", 0, 5), ("/a", 4, 9), ("/a", 9, 10), ("/a", 11, 12), ("/b", 3, 4), ("/b", 1, 2)]
    patterns = [columns(2, 4 * KIB, 4, start_ns=start, file=file) for file, start, _ in times]
    patterns = [replace(each, end_ns=end) for each, (_, _, end) in zip(patterns, times, strict=True)]
    found = [[(each.file, each.start_ns) for each in bucket] for bucket in buckets(patterns, None)]
    assert found == [[("/a", 0), ("/a", 4), ("/a", 9)], [("/b", 1)], [("/b", 3)], [("/a", 11)]]


def test_patterns_of_a_bucket_are_one_set_and_share_its_benefit():
    patterns = [columns(4, 16 * KIB, 64), strided(4, 16 * KIB, MIB, 16, base=64 * MIB, start_ns=S)]
    together, apart = decided(patterns, bucket_ns=10 * S), decided(patterns, bucket_ns=S)
    assert [len(each.candidates) for each in together.sets] == [2]
    assert [len(each.candidates) for each in apart.sets] == [1, 1]
    (one,) = together.sets
    assert sum(each.benefit_s for each in one.candidates) == pytest.approx(one.benefit_s)
    assert sum(each.gain_s for each in one.candidates) == pytest.approx(one.benefit_s)


def test_blocks_that_are_read_again_later_have_one_set_with_the_benefit_of_both():
    first, again = columns(4, 16 * KIB, 64), columns(4, 16 * KIB, 64, start_ns=60 * S)
    alone, both = decided([first]).sets, decided([first, again]).sets
    assert len(alone) == len(both) == 1
    assert both[0].benefit_s == pytest.approx(2 * alone[0].benefit_s, rel=0.01)
    assert both[0].space_bytes == alone[0].space_bytes


def test_a_set_is_made_whole_or_not_at_all():
    patterns = [columns(4, 16 * KIB, 64), strided(4, 16 * KIB, MIB, 16, base=64 * MIB, start_ns=S)]
    space = sum(decided(patterns).space_bytes.values())
    decision = decided(patterns, room=Room(space - 1), bucket_ns=10 * S)
    assert not decision.chosen and len(decision.refused) == 2
    assert all(each.reason.startswith("its set takes 5.0 MiB, of which ") for each in decision.refused)


@given(st.floats(0, 1e6), st.floats(0, 100), st.floats(0, 100))
def test_benefits_never_grow_with_age(benefit, age, more):
    for decay in (identity, half_life):
        assert 0 <= decay(benefit, age + more) <= decay(benefit, age) <= benefit


def test_a_reading_of_the_whole_file_halves_the_benefit():
    assert half_life(8.0, 1.0) == 4.0 and half_life(8.0, 0.5) == pytest.approx(8 / 2**0.5) and identity(8.0, 9) == 8.0


def stands(decision, age=0.0):
    return tuple(replace(each, is_stored=True, age=age) for each in decision.sets)


def test_what_stands_is_evicted_once_its_benefit_has_faded():
    old, new = columns(4, 16 * KIB, 64), columns(4, 16 * KIB, 48, base=128 * MIB)
    before = decided([old])
    space = sum(before.space_bytes.values())
    for age, decay, is_kept in ((0.0, half_life, True), (1.0, half_life, False), (1.0, identity, True)):
        found = decided([new], room=Room(space), stored=stands(before, age), decay=decay)
        assert found.chosen[0].blocks == (before if is_kept else decided([new])).chosen[0].blocks
        assert found.refused[0].reason.startswith("its set" if is_kept else "evicted: its set"), age


def test_age_is_what_was_read_over_the_size_of_the_file():
    old, new = columns(4, 16 * KIB, 64), columns(4, 16 * KIB, 8, base=8 * MIB)
    found = radar(
        [new], setting(), Room(), {"/d/f": Extent(4 * MIB, 6 * MIB)}, RadarOptions(stored=stands(decided([old]), 0.5))
    )
    assert [each.age for each in found.sets if each.is_stored] == [2.0]


def test_what_stands_and_is_read_again_is_young_and_needs_no_building():
    pattern = columns(4, 16 * KIB, 64)
    before = decided([pattern])
    found = decided([pattern], stored=stands(before, 7.0))
    (one,) = found.sets
    assert one.is_stored and one.age == 0.0 and one.benefit_s == pytest.approx(before.sets[0].benefit_s)
    assert found.build_s == 0.0 and "stands already" in found.chosen[0].reasons
    # What writes have left stale is built as what is new.
    stale = tuple(replace(each, is_outdated=True) for each in stands(before, 7.0))
    anew = decided([pattern], stored=stale)
    assert anew.build_s == before.build_s > 0 and anew.sets[0].is_stored
    assert anew.chosen[0].reasons[-1] == "stands, but writes have left it stale in part: it is made anew"


@settings(max_examples=20)
@given(several_patterns("read"), several_patterns("read"), st.integers(0, 8 * MIB), st.floats(0, 4))
def test_the_most_benefit_comes_first_within_the_bound(before, now, bound, age):
    stored = stands(decided(before, bucket_ns=S), age)
    found = radar(now, setting(), Room(bound), {}, RadarOptions(S, half_life, stored))
    assert sum(found.space_bytes.values()) <= bound
    ranks = [half_life(each.benefit_s, each.age) if each.age else each.benefit_s for each in found.sets]
    assert ranks == sorted(ranks, reverse=True)
    assert all(each.is_stored or each.benefit_s > 0 for each in found.sets)
    assert len({each.key for each in found.sets}) == len(found.sets)
    kept, left = [], bound
    for each in radar(now, setting(), Room(), {}, RadarOptions(S, half_life, stored)).sets:
        size = sum(each.space_bytes.values())
        if size <= left:
            kept, left = [*kept, each.key], left - size
    assert [each.key for each in found.sets] == kept


def test_sets_are_read_back_from_json(tmp_path):
    place = tmp_path / "before.json"
    decision = decided([columns(4, 16 * KIB, 64)])
    place.write_text(json.dumps({"version": 1, "cluster": "c", "managers": [decision.as_json()]}))
    (found,) = read_stored(place)
    (made,) = decision.sets
    assert found.key == made.key and found.space_bytes == made.space_bytes and found.is_stored
    assert found.benefit_s == made.benefit_s and found.candidates[0].layout == made.candidates[0].layout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(version=2), "version = 2 is newer"),
        (lambda d: d["managers"][0]["sets"][0].update(benefit_s="much"), "managers[0].sets[0].benefit_s"),
        (lambda d: d["managers"][0]["sets"][0]["replicas"][0]["blocks"][0].update(dims=[[0, 4]]),
         "managers[0].sets[0].replicas[0].blocks[0].dims[0] is not a pair"),
        (lambda d: d["managers"][0]["sets"][0]["replicas"][0]["layout"]["regions"][0].update(len=5), "regions[0].len"),
    ],
)  # fmt: skip
def test_a_file_of_sets_that_is_wrong_is_named_with_its_key(tmp_path, change, said):
    place = tmp_path / "before.json"
    document = {"version": 1, "managers": [decided([columns(4, 16 * KIB, 64)]).as_json()]}
    change(document)
    place.write_text(json.dumps(document))
    with pytest.raises(WorkloadError) as error:
        read_stored(place)
    assert str(error.value).startswith(f"{place}: ") and said in str(error.value)


def test_a_user_s_own_decay_is_a_function_of_benefit_and_age(tmp_path):
    place = tmp_path / "mine.py"
    place.write_text("def slowly(benefit, age):\n    return benefit / (1 + age)\n")
    assert decay_named(f"{place}:slowly")(6.0, 2.0) == 2.0


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("never", "", "'never' is not known; give identity, half-life or FILE.py:NAME"),
        ("{}:f", "", "has no function f; define f(benefit, age)"),
        ("{}:f", "def f(benefit, age):\n    return 1 / 0\n", "line 2: ZeroDivisionError"),
        ("{}:f", "def f(benefit, age):\n    return 'old'\n", "f returned 'old'; return a number of seconds"),
        ("{}:f", "f = =\n", "line 1: SyntaxError"),
        ("/nowhere.py:f", "", "there is no file /nowhere.py"),
    ],
)
def test_a_decay_that_fails_is_told_in_a_line(tmp_path, text, source, said):
    place = tmp_path / "mine.py"
    place.write_text(source)
    with pytest.raises(UsageError) as error:
        decay_named(text.format(place))(1.0, 1.0)
    assert str(error.value).startswith("--decay: ") and said in str(error.value)
