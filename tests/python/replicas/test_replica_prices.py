"""What the fine model says of patterns on servers: beside a slow walk, beside RADAR's formula, and of columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica_cases import columns, emulated, fusion
from stripewise.cluster import Network
from stripewise.layout import Region
from stripewise.model.radar import Blocks, RadarFigures, fine
from stripewise.replicas.blocks import Standing
from stripewise.replicas.prices import REPLICA_BASE, Pieces, Placed, Servers, seconds
from stripewise.replicas.schemes import one_dv
from stripewise.replicas.setting import Setting
from support import KIB, MIB, cluster, walk

#: RADAR, Table II.
TABLE_II = RadarFigures(8, 32.9e-6, 0.00112e-6, 6.20e-3, 0.0212e-6)


def pieces(rows):
    """Rows of client, write, server, offset, size, each a request."""
    kinds = (np.int64, bool, np.int64, np.int64, np.int64)
    columns_ = (np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True))
    return Pieces(np.arange(len(rows)), *columns_)


rows_of_pieces = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.booleans(),
        st.integers(0, 5),
        st.integers(0, 300).map(lambda at: at * 1000),
        st.integers(1, 70_000),
    ),
    min_size=1,
    max_size=25,
)


def slowly(servers, rows):
    """The model's words in loops."""
    load, last, incoming, outgoing = defaultdict(float), {}, defaultdict(set), defaultdict(set)
    received, waited = defaultdict(int), defaultdict(float)
    crowd = {server: len({row[0] for row in rows if row[2] == server}) for server in range(6)}
    for client, write, server, offset, size in rows:
        node = client // servers.processes_per_node
        before = last.get((client, server))
        skipped, startup = 0, servers.startup_s[server, int(write)]
        if before is not None and before[0] == write and offset >= before[1]:
            pages = offset // 4096 - -(-before[2] // 4096)
            reads_on = not write and pages * 4096 < 128 * KIB and not servers.emulated[server]
            if offset <= before[2] or ((pages <= 0 or reads_on) and not servers.emulated[server]):
                skipped, startup = max(0, offset - before[2]), 0.0
        if servers.emulated[server] and crowd[server] > 1:
            startup = max(startup, servers.startup_s[server, int(write)] * (1 - 1 / crowd[server]))
        cost = startup + (size + skipped) * servers.per_byte_s[server, int(write)]
        load[server] += cost
        waited[client] += cost if servers.emulated[server] else 0.0
        last[client, server] = (write, offset, offset + size)
        incoming[server].add(client)
        outgoing[node].add((client, server))
        received[node] += size
    for server, clients in incoming.items():
        nodes = {client // servers.processes_per_node for client in clients}
        most = max(len(outgoing[node]) for node in nodes)
        load[server] += servers.net_startup_s * (len(clients) + most - 1)
    return max(
        max(*(load[server] for _, server in outgoing[node]), *(waited[client] for client, _ in outgoing[node]))
        + count * servers.net_per_byte_s
        for node, count in received.items()
    )


@given(rows_of_pieces, st.integers(1, 3), st.booleans())
def test_a_slow_walk_says_the_same(rows, on_node, is_emulated):
    on = cluster(4, 2, network=Network(1e-5, 1e-9, on_node))
    servers = Servers.of(emulated(on) if is_emulated else on)
    rows.sort(key=lambda row: row[0])
    assert seconds(servers, pieces(rows)) == pytest.approx(slowly(servers, rows), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 60), st.integers(1, 200)), min_size=1, max_size=20))
def test_one_client_in_the_order_of_the_server_is_radar_s_formula(steps):
    rows, end = [], defaultdict(int)
    for server, gap, size in steps:
        offset = end[server] + gap * 4 * KIB
        rows.append((0, False, server, offset, size * KIB))
        end[server] = offset + size * KIB
    blocks = Blocks(*(np.array(each, np.int64) for each in zip(*((0, 0, *row[2:]) for row in rows), strict=True)))
    found = seconds(Servers.of(fusion()), pieces(rows))
    assert found == pytest.approx(fine(TABLE_II, blocks).total_s, rel=1e-12)


@pytest.mark.parametrize(("gap", "write", "runs"), [(124, False, 1), (128, False, 2), (4, True, 2), (0, True, 1)])
def test_reads_go_on_over_gaps_below_the_read_ahead_and_writes_over_none(gap, write, runs):
    """RADAR, section II.A.2.d: r_s = 128 KiB; bytes between are paid for."""
    on = Servers.of(fusion())
    found = seconds(on, pieces([(0, write, 0, 0, 4 * KIB), (0, write, 0, (4 + gap) * KIB, 4 * KIB)]))
    read = (8 + (gap if runs == 1 else 0)) * KIB
    assert found == pytest.approx(32.9e-6 + runs * 6.20e-3 + read * 0.0212e-6 + 8 * KIB * 0.00112e-6)


def test_reads_of_emulated_targets_wait_for_every_access_that_is_no_continuation():
    on = fusion()
    rows = [(0, False, 0, at * KIB, 4 * KIB) for at in (0, 4, 68, 72)]
    alone = 32.9e-6 + 16 * KIB * (0.0212e-6 + 0.00112e-6)
    assert seconds(Servers.of(emulated(on)), pieces(rows)) == pytest.approx(alone + 2 * 6.20e-3)
    assert seconds(Servers.of(on), pieces(rows)) == pytest.approx(alone + 6.20e-3 + 60 * KIB * 0.0212e-6)


def test_a_process_waits_for_each_of_its_requests_on_emulated_targets_and_several_wait_at_one_time():
    """Four reads of 4 KiB on four servers: of one process one after another, of four beside each other; of one request
    of 16 KiB over all four the servers work together.
    """
    on = Servers.of(emulated(fusion()))
    each = 6.20e-3 + 4 * KIB * 0.0212e-6
    one, four = (
        [(client, False, server, 0, 4 * KIB) for server, client in enumerate(of)] for of in ([0] * 4, range(4))
    )
    ready = 4 * 32.9e-6 + 16 * KIB * 0.00112e-6
    assert seconds(on, pieces(one)) == pytest.approx(4 * each + 16 * KIB * 0.00112e-6)
    assert seconds(on, pieces(four)) == pytest.approx(32.9e-6 + each + 4 * KIB * 0.00112e-6)
    whole = replace(pieces(one), request=np.zeros(4, np.int64))
    assert seconds(on, whole) == pytest.approx(each + ready)
    # Those of several sets are apart.
    assert seconds(on, Pieces.joined([whole, whole])) == pytest.approx(2 * (each - 6.20e-3) + 6.20e-3, rel=0.1)


def test_reads_of_an_emulated_target_go_on_the_more_seldom_the_more_processes_read_there():
    """Two processes, each four reads of 4 KiB one behind the other: alone on a server a startup each; together two for
    the first ones and half a one for each of the six others. Two pieces of a request on one server are one access.
    """
    on = emulated(fusion())

    def took(servers):
        rows = [
            (client, False, server, (client << 20) + at * 4 * KIB, 4 * KIB)
            for client, server in enumerate(servers)
            for at in range(4)
        ]
        return seconds(Servers.of(on), pieces(rows))

    rest = 32.9e-6 + 16 * KIB * (0.0212e-6 + 0.00112e-6)
    assert took([0, 1]) == pytest.approx(6.20e-3 + rest)
    assert took([0, 0]) == pytest.approx((2 + 6 / 2) * 6.20e-3 + rest + 32.9e-6 + 16 * KIB * 0.0212e-6, rel=1e-3)
    rows = [(0, False, 0, 0, KIB), (0, False, 0, KIB, KIB), (1, False, 0, MIB, KIB)]
    split = replace(pieces(rows), request=np.array([0, 0, 1]))
    assert seconds(Servers.of(on), split) == pytest.approx(2 * 6.20e-3 + 3 * KIB * 0.0212e-6, rel=0.02)


def test_nothing_takes_no_time():
    assert seconds(Servers.of(fusion()), Pieces.joined([])) == 0.0


def test_columns_gain_by_a_replica_though_together_they_are_the_whole_file():
    """RADAR, figures 9 and 11: reads of columns gain most, which a server that joins all clients' blocks cannot say."""
    on = Setting(fusion())
    pattern = columns(16, 8 * KIB, 512)
    standing, layout = Standing(on.shape(pattern).blocks), one_dv(on.cluster.active, on.shape(pattern).held)
    before, after = on.original_pieces(pattern), on.replica_pieces(pattern, standing, layout)
    node = np.zeros_like(before.client)

    def joined(made):
        return fine(TABLE_II, Blocks(made.client, node, made.server, made.offset, made.size)).total_s

    # Whole: 16 clients, each of them over all 8 servers; with replicas two whole columns on a server.
    assert joined(before) == pytest.approx(joined(after), rel=0.05)
    assert seconds(on.servers, before) > 3 * seconds(on.servers, after)


def test_a_copy_serves_no_part_of_a_request_and_a_home_does():
    on = Setting(cluster(2, 0))
    held = columns(1, 64 * KIB, 1, "read")
    shape = on.shape(held)
    standing, layout = Standing(shape.blocks), one_dv(on.cluster.active, shape.held)
    for op, at_home in (("read", 128 * KIB), ("write", 64 * KIB)):
        asked = columns(1, 128 * KIB, 1, op)
        made = on.replica_pieces(asked, standing, layout)
        assert int(made.size[made.offset < REPLICA_BASE].sum()) == at_home
        assert int(made.size.sum()) == 128 * KIB


@st.composite
def regions(draw):
    """Regions of any cycles over three targets."""
    found, start = [], 0
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.permutations(["hdd0", "hdd1", "ssd0"]))[: draw(st.integers(1, 3))]
        length = draw(st.integers(1, 12)) * 4 * KIB
        found.append(Region(start, length, tuple((name, draw(st.integers(1, 4)) * 4 * KIB) for name in names)))
        start += length
    return found


@given(regions(), st.lists(st.tuples(st.integers(0, 200_000), st.integers(1, 100_000)), min_size=1, max_size=8))
def test_pieces_of_requests_are_those_of_a_walk_over_stripes(made, asked):
    names = ["hdd0", "hdd1", "ssd0"]
    row, server, _, size = Placed(made, names).cut(*(np.array(each, np.int64) for each in zip(*asked, strict=True)))
    found = defaultdict(int)
    for number, place, count in zip(row.tolist(), server.tolist(), size.tolist(), strict=True):
        found[number, names[place]] += count
    expected = defaultdict(int)
    for number, (offset, count) in enumerate(asked):
        for place, region in enumerate(made):
            end = made[place + 1].start if place + 1 < len(made) else 1 << 40
            low, high = max(offset, region.start), min(offset + count, end)
            if high > low:
                for name, part in walk(list(region.stripes), low - region.start, high - low).items():
                    expected[number, name] += part
    assert found == {key: count for key, count in expected.items() if count}


@given(regions(), st.integers(500, 60_000))
def test_no_two_bytes_of_a_file_stand_in_one_place_of_a_server(made, step):
    names = ["hdd0", "hdd1", "ssd0"]
    offset = np.arange(0, 150_000, step, dtype=np.int64)
    _, server, at, size = Placed(made, names).cut(offset, np.full(len(offset), step))
    for place in range(3):
        mine = server == place
        order = np.argsort(at[mine])
        start, end = at[mine][order], (at + size)[mine][order]
        assert (start[1:] >= end[:-1]).all()


def test_neighbours_on_a_target_go_on_where_the_slice_before_ends():
    made = [Region(k * MIB, MIB, ((f"hdd{k % 2}", MIB),)) for k in range(3)]
    _, server, at, size = Placed(made, ["hdd0", "hdd1"]).cut(np.array([0]), np.array([3 * MIB]))
    assert sorted(zip(server.tolist(), at.tolist(), size.tolist(), strict=True)) == [
        (0, 0, MIB), (0, MIB, MIB), (1, 0, MIB),
    ]  # fmt: skip
