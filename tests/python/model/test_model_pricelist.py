"""The price list: every layout by its own model, and the bound beside it; `stripewise model` on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.model import (
    CostParameters,
    Cycle,
    DeviceFigures,
    OpFigures,
    hservers_cost,
    hybrid_cost,
    parameters,
    request_cost,
)
from stripewise.model.pricelist import LAYOUTS, VIEWS, Question, price_list
from stripewise.model.segment import segment_cost
from stripewise.policy.toolkit.vss import grid
from support import KIB, MIB, cluster
from test_cli import stripewise
from test_cluster import TARGET

HDD, SSD = OpFigures(0.003, 1e-8), OpFigures(1e-4, 2.5e-9)
GOLDEN = ("--hservers", 12, "--sservers", 4)


def ask(r, p=32, M=12, N=4, network=None, **more) -> Question:
    """The documented devices."""
    params = parameters(cluster(max(M, 1), max(N, 1), network=network), p)
    return Question(params, M, N, r, pairs=grid(r, M, N, 4096), **more)


def rows(question, on="all"):
    return {(row.label, *row.parameters.values()): row for row in price_list(question, on).rows}


def test_aligned_requests_cost_what_the_tables_say():
    question = ask(768 * KIB, network=Network(1e-4, 1e-9, 4))
    found = rows(question)
    assert found["r/M", 64 * KIB].total_s == pytest.approx(hservers_cost(question.params, 12, 768 * KIB, False))
    assert found["r/N", 192 * KIB].total_s == pytest.approx(hybrid_cost(question.params, 0, 4, 0, 192 * KIB, False))


def test_published_h2dp_starts_eight_disks_for_a_request_of_64_kib_and_loses_under_concurrency():
    # Cost-models section 7: r/M = 8 KiB, so 8 startups; kept whole it is one.
    found = rows(ask(64 * KIB))
    split, whole = found["r/M", 8 * KIB], found["whole/H",]
    assert split.pieces == (8, 0)
    assert whole.pieces == (1, 0)
    assert split.total_s < whole.total_s  # the request model prefers the split one
    work = 8 * (0.003 + 8 * KIB * 1e-8)  # ... whose work on the 12 disks is
    assert split.bound_s == pytest.approx(work / 12)
    assert whole.bound_s == pytest.approx((0.003 + 64 * KIB * 1e-8) / 12)
    assert split.limit == whole.limit == "servers"


def test_without_network_costs_the_request_models_do_not_see_how_many_processes_there_are():
    # p is a factor of every term of section 1 then, so it ranks layouts alike for 1 and for 512 processes.
    for r in (64 * KIB, MIB, 16 * MIB):
        orders = []
        for p in (1, 512):
            shared = [row for row in price_list(ask(r, p)).rows if row.model.view == "shared"]
            orders.append([row.label for row in sorted(shared, key=lambda row: round(row.total_s / p, 12))])
        assert orders[0] == orders[1]


def test_one_process_is_fastest_on_all_servers_and_many_are_on_one_each():
    assert price_list(ask(MIB, 1), "hservers").cheapest("spread").label == "1-dh/H"
    assert price_list(ask(MIB, 120), "hservers").cheapest("spread").label == "1-dv/H"
    # Between, groups win only while p/n has to be rounded up: 16 processes on 12 servers, not 24.
    assert price_list(ask(MIB, 16), "hservers").cheapest("spread").label == "2-d(6)/H"
    assert price_list(ask(MIB, 24), "hservers").cheapest("spread").label == "1-dv/H"


def test_the_best_pair_of_algorithm_1_comes_first_among_its_runners_up():
    question = ask(4 * MIB)
    pairs = [row for row in price_list(question).rows if row.model.name == "pair"]
    assert [row.total_s for row in pairs] == sorted(row.total_s for row in pairs)
    every = [
        float(request_cost(
            question.params, Cycle.pair(12, 4, h, s), np.array([0]), np.array([4 * MIB]), np.array([False])
        )[0])
        for h, s in question.pairs[:: max(1, len(question.pairs) // 300)]
    ]  # fmt: skip
    assert pairs[0].total_s <= min(every) * (1 + 1e-12)


def test_slal_is_priced_by_its_own_equation():
    for row in price_list(ask(MIB, startup_spread=0.5)).rows:
        if row.model.name == "slal":
            device, n = (HDD, 12) if row.on == "hservers" else (SSD, 4)
            t = device.startup_s
            assert row.total_s == pytest.approx(
                float(segment_cost(MIB, row.parameters["stripe_bytes"], n, t / 2, 3 * t / 2, device.per_byte_s))
            )


figures = st.builds(OpFigures, st.floats(0, 0.1), st.floats(0, 1e-6))
devices = st.builds(DeviceFigures, figures, figures)
params_any = st.builds(
    CostParameters, st.integers(1, 64), st.integers(1, 16), st.floats(0, 1e-3), st.floats(0, 1e-7), devices, devices
)


@settings(max_examples=40)
@given(
    params_any, st.integers(0, 6), st.integers(0, 6), st.integers(1, MIB), st.integers(0, MIB), st.booleans(),
    st.sampled_from(["all", "hservers", "sservers"]),
)  # fmt: skip
def test_every_layout_has_a_price_or_a_reason(params, M, N, r, offset, write, on):
    if M + N == 0:
        return
    question = Question(params, M, N, r, offset, write, grid(r, M, N, 4096))
    prices = price_list(question, on)
    for row in prices.rows:
        assert np.isfinite(row.total_s)
        assert 0 <= row.bound_s < np.inf
        assert 1 <= sum(row.pieces) <= M + N
        assert on in ("all", row.on)
    if on == "all":
        priced = {row.model.name for row in prices.rows}
        groups = {"2-d"} if {M, N} <= {0, 1, 2, 3, 5} else set()  # no groups but of one and of all
        assert priced | set(prices.skipped) | groups == {model.name for model in LAYOUTS}
        # Alone, on one class, nothing beats the bound.
        for row in prices.rows:
            if row.model.view == "shared" and params.e == params.t == 0 and params.p == 1:
                assert row.busiest_s <= row.total_s * (1 + 1e-9)


def test_a_request_without_bytes_has_no_price():
    with pytest.raises(ValueError, match="at least one byte"):
        price_list(Question(ask(MIB).params, 12, 4, 0))


def test_the_command_prints_terms_and_winners():
    said = stripewise("model", *GOLDEN, "--request", "64KiB").output
    for word in ("read of 64.0 KiB", "startup", "cheapest by the process models: 1-dv/S", "6.74 times as fast"):
        assert word in said
    assert "there are no SServers" in stripewise("model", "--hservers", 3, "--request", "64KiB", "--write").output


def test_the_command_prints_json_for_a_cluster_file(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(TARGET)
    said = json.loads(stripewise("model", "--cluster", path, "--request", "1MiB", "--json").output)
    assert said["hservers"] == 1
    assert {row["view"] for row in said["rows"]} == set(VIEWS)
    whole = next(row for row in said["rows"] if row["layout"] == "whole")
    parts = sum(whole[key] for key in ("establish_s", "transfer_s", "startup_s", "storage_s"))
    assert whole["total_s"] == pytest.approx(parts)
    assert said["winners"]["bound"] is not None


def test_a_sweep_says_who_wins_in_each_row_and_two_make_a_map(tmp_path):
    one = json.loads(stripewise("model", *GOLDEN, "--sweep", "request=4KiB..64KiB", "--json").output)
    assert [cell["request_bytes"] for cell in one["cells"]] == [n * KIB for n in (4, 8, 16, 32, 64)]
    assert "who wins" in stripewise("model", *GOLDEN, "--sweep", "processes=1,8", "--request", "1MiB").output
    page = tmp_path / "map.svg"
    said = stripewise(
        "model", *GOLDEN, "--sweep", "processes=1..4", "--sweep", "request=4KiB,1MiB", "--plot", page
    ).output  # fmt: skip
    assert said.count("who wins by the") == 3
    assert page.read_text().count("<svg") == 1


def test_a_plot_as_a_page_holds_the_numbers(tmp_path):
    page = tmp_path / "list.html"
    stripewise("model", *GOLDEN, "--request", "64KiB", "--plot", page)
    assert "<td>whole/H</td>" in page.read_text()
    stripewise("model", *GOLDEN, "--request", "64KiB", "--sweep", "processes=1,2", "--plot", page)
    assert "prices by processes" in page.read_text()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--request", "64KiB"], "--cluster"),
        ([*GOLDEN], "--request"),
        ([*GOLDEN, "--request", "64KiB", "--sweep", "request=4KiB..8KiB"], "--request"),
        ([*GOLDEN, "--request", "0"], "--request"),
        ([*GOLDEN, "--request", "2TiB"], "--request"),
        ([*GOLDEN, "--request", "many"], "--request"),
        ([*GOLDEN, "--request", "64KiB", "--processes", "0"], "--processes"),
        ([*GOLDEN, "--request", "64KiB", "--on", "tape"], "--on"),
        (["--hservers", 3, "--request", "64KiB", "--on", "sservers"], "--on"),
        ([*GOLDEN, "--request", "64KiB", "--startup-spread", "2"], "--startup-spread"),
        ([*GOLDEN, "--request", "64KiB", "--stripe-size", "100"], "--stripe-size"),
        ([*GOLDEN, "--request", "64KiB", "--plot", "x.png"], "--plot"),
        ([*GOLDEN, "--request", "64KiB", "--offset", "3000000TiB"], "--offset"),
        (["--hservers", 0, "--request", "64KiB"], "--hservers"),
        (["--hservers", -1, "--request", "64KiB"], "--hservers"),
        (["--cluster", "x", *GOLDEN, "--request", "64KiB"], "--cluster"),
        ([*GOLDEN, "--sweep", "size=1..2"], "--sweep"),
        ([*GOLDEN, "--sweep", "request=8KiB..4KiB"], "--sweep"),
        ([*GOLDEN, "--request", "64KiB", "--sweep", "processes=1..x"], "--sweep"),
        ([*GOLDEN, "--request", "64KiB", "--sweep", "processes=1..2", "--sweep", "processes=4"], "--sweep"),
        ([*GOLDEN, "--request", "64KiB", "--sweep", "processes=" + ",".join(map(str, range(1, 80)))], "--sweep"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_gets_one_line_with_its_key(words, key):
    result = stripewise("model", *words, code=2)
    assert len(result.stderr.strip().splitlines()) == 1
    assert key in result.stderr
