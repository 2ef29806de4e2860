"""RADAR's coarse and fine models: the figures of its Table II, and the fine one against a slow walk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.model.radar import Blocks, RadarFigures, best_servers_per_client, coarse, fine
from support import KIB, MIB

#: Seed 004, Table II, as printed.
TABLE_II = RadarFigures(8, 32.9e-6, 0.00112e-6, 6.20e-3, 0.0212e-6)


def blocks(*rows) -> Blocks:
    """Rows of client, node, server, offset, size."""
    return Blocks(*(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)))


@pytest.mark.parametrize(("p", "best"), [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1)])
def test_the_best_number_of_servers_per_client_is_golden(p, best):
    for bytes_per_client in (MIB, 64 * MIB, 1024 * MIB):
        assert best_servers_per_client(TABLE_II, p, 1, p * bytes_per_client) == best


def test_a_small_request_is_not_worth_the_connections():
    # From 7 to 8 servers a lone client pays one connection more (32.9 us) and saves r/56 of storage: r = 87 KB, or
    # less for bigger steps. Below, the fewest connections count.
    assert best_servers_per_client(TABLE_II, 1, 1, 80_000) == 7
    assert best_servers_per_client(TABLE_II, 1, 1, 90_000) == 8
    assert best_servers_per_client(TABLE_II, 1, 1, 1000) == 1


def test_the_four_costs_by_hand():
    # Eqs. 1-4 with p = 6 clients, 2 on a node, B = 6 MiB, n_p = 4: ceil(24/8) = 3 requests of 256 KiB on a server.
    terms = coarse(TABLE_II, 6, 2, 6 * MIB, 4)
    assert float(terms.establish_s) == pytest.approx(8 * 32.9e-6)
    assert float(terms.transfer_s) == pytest.approx(8 * 256 * KIB * 0.00112e-6)
    assert float(terms.startup_s) == pytest.approx(3 * 6.2e-3)
    assert float(terms.storage_s) == pytest.approx(3 * 256 * KIB * 0.0212e-6)


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_there_is_no_layout_for_nobody(bad):
    with pytest.raises(ValueError, match="no layout"):
        best_servers_per_client(TABLE_II, *bad)


def test_blocks_nearer_than_the_readahead_are_one_and_the_gap_is_paid_for():
    # Gaps: 124 KiB < 128 KiB is read over; 128 KiB is not.
    near = fine(TABLE_II, blocks((0, 0, 0, 0, 4 * KIB), (0, 0, 0, 128 * KIB, 4 * KIB)))
    assert near.startup_s == pytest.approx([6.2e-3])
    assert near.storage_s == pytest.approx([132 * KIB * 0.0212e-6])
    far = fine(TABLE_II, blocks((0, 0, 0, 0, 4 * KIB), (0, 0, 0, 132 * KIB, 4 * KIB)))
    assert far.startup_s == pytest.approx([2 * 6.2e-3])
    assert far.storage_s == pytest.approx([8 * KIB * 0.0212e-6])


def test_blocks_on_one_page_are_contiguous_without_any_readahead():
    none = RadarFigures(8, 0.0, 0.0, 1.0, 0.0, readahead_bytes=0)
    assert fine(none, blocks((0, 0, 0, 0, 100), (0, 0, 0, 3000, 100))).startup_s.tolist() == [1.0]
    assert fine(none, blocks((0, 0, 0, 0, 100), (0, 0, 0, 5000, 100))).startup_s.tolist() == [1.0]
    assert fine(none, blocks((0, 0, 0, 0, 100), (0, 0, 0, 9000, 100))).startup_s.tolist() == [2.0]


def test_a_request_waits_for_the_others_of_the_node_that_sends_most():
    # Node 0 sends 3 requests (2 to server 0, 1 to server 1), node 1 one to server 1: 2 + 2 and 2 + 2 connections.
    only_net = RadarFigures(8, 1.0, 0.0, 0.0, 0.0)
    cost = fine(only_net, blocks((0, 0, 0, 0, 1), (1, 0, 0, 9, 1), (0, 0, 1, 0, 1), (2, 1, 1, 9, 1)))
    assert cost.establish_s.tolist() == [4.0, 4.0]
    # A client with two blocks on a server sends one request.
    assert fine(only_net, blocks((0, 0, 0, 0, 1), (0, 0, 0, 9**6, 1))).establish_s.tolist() == [1.0]


def test_a_node_receives_when_its_most_loaded_server_is_done():
    figures = RadarFigures(8, 0.0, 1.0, 0.0, 10.0)
    cost = fine(figures, blocks((0, 0, 0, 0, 3), (0, 0, 1, 0, 1), (1, 1, 1, 1, 1)))
    assert cost.load_s.tolist() == [30.0, 20.0]
    assert cost.receipt_s.tolist() == [34.0, 21.0]
    assert cost.total_s == 34.0


def test_nothing_to_read_costs_nothing():
    empty = np.zeros(0, dtype=np.int64)
    assert fine(TABLE_II, Blocks(empty, empty, empty, empty, empty)).total_s == 0.0


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 8), st.sampled_from([1, 2, 4, 8]))
def test_on_balanced_patterns_the_fine_model_adds_only_its_penalty(nodes, c, times, n_p):
    # p*n_p a multiple of n, every client on n_p servers, blocks too far apart to join: k requests a server.
    n, r = 8, 64 * KIB
    p = nodes * c * n * times // np.gcd(n_p, 8)
    client = np.repeat(np.arange(p), n_p)
    server = np.arange(p * n_p) % n
    each = Blocks(client, client // c, server, client * MIB, np.full(p * n_p, r))
    k = p * n_p // n
    quick = coarse(TABLE_II, p, c, p * n_p * r, n_p)
    cost = fine(TABLE_II, each)
    assert cost.startup_s == pytest.approx(np.full(n, float(quick.startup_s)))
    assert cost.storage_s == pytest.approx(np.full(n, float(quick.storage_s)))
    assert cost.establish_s == pytest.approx(np.full(n, (k + c * n_p - 1) * 32.9e-6))
    assert cost.establish_s.max() >= float(quick.establish_s) * (1 - 1e-12)
    assert cost.receipt_s == pytest.approx(np.full(p // c, cost.load_s[0] + c * n_p * r * 0.00112e-6))


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 600_000), st.integers(1, 50_000)),
    min_size=1, max_size=25,
)  # fmt: skip


@settings(max_examples=80)
@given(rows, st.integers(1, 3), st.sampled_from([0, 4096, 128 * KIB]))
def test_the_fine_model_prices_what_a_walk_over_the_graph_finds(found, c, readahead):
    figures = RadarFigures(4, 32.9e-6, 0.00112e-6, 6.2e-3, 0.0212e-6, readahead)
    cost = fine(figures, blocks(*((client, client // c, server, at, size) for client, server, at, size in found)))
    edges = {(client, server) for client, server, _, _ in found}
    load = {}
    for server in sorted({server for _, server in edges}):
        contacting = {client // c for client, other in edges if other == server}
        penalty = max(sum(client // c == node for client, _ in edges) for node in contacting) - 1
        incoming = sum(other == server for _, other in edges)
        runs, consumed, end = 0, 0, None
        for at, size in sorted((at, size) for _, other, at, size in found if other == server):
            pages = None if end is None else at // 4096 - -(-end // 4096)
            if end is None or (pages > 0 and pages * 4096 >= readahead):
                runs += 1
            else:
                consumed += max(0, at - end)
            consumed += size
            end = max(end or 0, at + size)
        load[server] = (incoming + penalty) * 32.9e-6 + runs * 6.2e-3 + consumed * 0.0212e-6
    assert cost.load_s == pytest.approx(list(load.values()))
    receipt = {}
    for node in sorted({client // c for client, _ in edges}):
        own = sum(size for client, _, _, size in found if client // c == node)
        receipt[node] = max(load[server] for client, server in edges if client // c == node) + own * 0.00112e-6
    assert cost.receipt_s == pytest.approx(list(receipt.values()))
    assert cost.total_s == pytest.approx(max(receipt.values()))
