"""The bound of section 7 with a network: against brute force, request by request, and against schedules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.model import Bound, Cycle, OpFigures, service_bound
from support import walk

figures = st.builds(OpFigures, st.floats(0, 0.01), st.floats(0, 1e-7))
networks = st.builds(Network, st.floats(0, 1e-3), st.floats(0, 1e-8), st.integers(1, 4))
rows = st.lists(
    st.tuples(st.integers(0, 300_000), st.integers(0, 60_000), st.booleans(), st.integers(1, 5)),
    min_size=1,
    max_size=10,
)


@st.composite
def scenes(draw):
    """Servers with their own figures and widths, a network, and requests."""
    n = draw(st.integers(1, 5))
    servers = [(f"t{i}", draw(figures), draw(figures)) for i in range(n)]
    widths = [draw(st.integers(1, 12)) * 1024 for _ in range(n)]
    return servers, widths, draw(networks), draw(rows)


def bound_of(servers, widths, network, requests) -> Bound:
    offset, size, write, count = (np.array(column) for column in zip(*requests, strict=True))
    return service_bound(servers, Cycle.of([(False, w) for w in widths]), offset, size, write, count, network)


@settings(max_examples=60)
@given(scenes(), st.integers(1, 20))
def test_the_bound_is_that_of_a_walk_over_every_request(scene, p):
    servers, widths, network, requests = scene
    e, t = network.establish_s, network.per_byte_s
    names = [name for name, _, _ in servers]
    demand, link, connect = (dict.fromkeys(names, 0.0) for _ in range(3))
    alone = 0.0
    for offset, size, write, count in requests:
        took = walk(list(zip(names, widths, strict=True)), offset, size)
        seconds = {}
        for name, read, written in servers:
            if name in took:
                op = written if write else read
                seconds[name] = op.startup_s + took[name] * op.per_byte_s
                demand[name] += count * seconds[name]
                link[name] += count * took[name] * t
                connect[name] += count * e
        if took:
            slowest = max(e + seconds[name] + took[name] * t for name in took)
            quickest = min(seconds.values())
            alone += count * max(slowest, len(took) * e + quickest, e + quickest + size * t)
    nodes = -(-p // network.processes_per_node)
    total = sum(size * count for _, size, _, count in requests)
    found = bound_of(*scene)
    assert found.demand_s == pytest.approx(demand)
    assert found.makespan_s(p) == pytest.approx(
        max(
            max(demand.values()), max(link.values()), max(connect.values()), alone / p,
            total * t / nodes, sum(connect.values()) / nodes,
        )
    )  # fmt: skip


@settings(max_examples=60)
@given(scenes())
def test_without_a_network_it_is_the_bound_of_the_servers_alone(scene):
    servers, widths, _, requests = scene
    free, none = bound_of(servers, widths, Network(), requests), bound_of(servers, widths, None, requests)
    assert none.link_s == {}
    assert free.demand_s == none.demand_s
    assert free.alone_s == pytest.approx(none.alone_s)


def played(servers, widths, network, requests, p) -> float:
    """The makespan of one schedule: p processes in a closed loop; nodes and servers connect, serve and send in turn."""
    e, t = network.establish_s, network.per_byte_s
    free: dict[tuple[str, object], float] = {}

    def use(station: tuple[str, object], ready: float, seconds: float) -> float:
        free[station] = max(ready, free.get(station, 0.0)) + seconds
        return free[station]

    at = [0.0] * p
    for offset, size, write, count in requests:
        for _ in range(count):
            process = at.index(min(at))
            node = process // network.processes_per_node
            took = walk([(name, width) for (name, _, _), width in zip(servers, widths, strict=True)], offset, size)
            done = start = at[process]
            for name, read, written in servers:
                if name in took:
                    op = written if write else read
                    ready = use(("node connects", node), start, e)
                    ready = max(ready, use(("server connects", name), ready - e, e))
                    ready = use(("serves", name), ready, op.startup_s + took[name] * op.per_byte_s)
                    # Both links carry the piece at once.
                    begin = max(ready, free.get(("link", name), 0.0), free.get(("node link", node), 0.0))
                    free[("link", name)] = free[("node link", node)] = begin + took[name] * t
                    done = max(done, free[("link", name)])
            at[process] = done
    return max(at)


@settings(max_examples=60)
@given(scenes(), st.integers(1, 6))
def test_no_schedule_beats_the_bound(scene, p):
    assert played(*scene, p) >= bound_of(*scene).makespan_s(p) * (1 - 1e-9)


def test_the_network_can_be_what_limits():
    # 10 requests of 1000 bytes over 2 fast servers, 1 us a byte, 1 ms a connection, 4 processes on 2 nodes.
    servers = [(name, OpFigures(0.0, 0.0), OpFigures(0.0, 0.0)) for name in ("a", "b")]
    bound = bound_of(servers, [500, 500], Network(1e-3, 1e-6, 2), [(0, 1000, False, 10)])
    limits = bound.limits_s(4)
    assert limits["node links"] == pytest.approx(10 * 1000e-6 / 2)
    assert limits["server links"] == pytest.approx(10 * 500e-6)
    assert limits["server connections"] == pytest.approx(10 * 1e-3)
    assert limits["node connections"] == pytest.approx(20 * 1e-3 / 2)
    assert limits["servers"] == 0


def test_sets_of_requests_add_up():
    servers = [(name, OpFigures(1e-3, 1e-8), OpFigures(2e-3, 2e-8)) for name in ("a", "b")]
    scene = (servers, [512, 1024], Network(1e-4, 1e-9, 2))
    first, second = [(0, 700, False, 3)], [(600, 5000, True, 2), (9, 0, False, 1)]
    total = bound_of(*scene, first)
    total.add(bound_of(*scene, second))
    together = bound_of(*scene, first + second)
    for p in (1, 2, 7):
        assert total.limits_s(p) == pytest.approx(together.limits_s(p))
