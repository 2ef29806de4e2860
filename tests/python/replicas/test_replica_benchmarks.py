"""Every manager on the patterns of the benchmarks that both papers run: sound layouts, few sets, every byte once."""

from __future__ import annotations

import numpy as np
import pytest

from generators import REGULAR
from pattern_traces import write_trace
from replica_cases import setting
from stripewise.layout import layout_json, parse_layout, target_bytes
from stripewise.pattern import report_of
from stripewise.replicas import MANAGERS, Options, accesses_of, decide
from stripewise.replicas.blocks import is_divisible
from stripewise.replicas.pdla import PARTS_MAX


@pytest.fixture(scope="module", params=REGULAR)
def found(request, tmp_path_factory):
    """The patterns of a benchmark with four processes."""
    place = tmp_path_factory.mktemp("trace")
    return accesses_of(report_of(write_trace(place / "t", REGULAR[request.param](4))))


@pytest.mark.parametrize("manager", MANAGERS)
def test_replicas_of_benchmarks_are_sound(found, manager):
    on = setting()
    decision = decide(manager, found, on, Options())
    assert len(decision.chosen) + len(decision.refused) <= 2 * len(found.patterns) + len(found.without)
    for each in decision.chosen:
        assert parse_layout(layout_json(each.layout), "made", on.servers.names) == each.layout
        total = sum(part.bytes for part in each.blocks)
        assert each.space_bytes == target_bytes(each.layout.regions, total) and each.total_bytes >= total
        assert len(each.blocks) <= PARTS_MAX and all(is_divisible(part.block, part.dims) for part in each.blocks)
        start = np.concatenate([part.offsets() for part in each.blocks])
        end = start + np.concatenate([np.full(part.count, part.block) for part in each.blocks])
        order = np.argsort(start)
        assert (start[order][1:] >= end[order][:-1]).all()
        assert each.build_s > 0 and each.original_s > 0 and each.replica_s > 0


def test_a_benchmark_has_a_replica_for_each_of_its_patterns(found):
    """PDLA, section 3.3.1, but where their bytes have a home already."""
    decision = decide("h-pdla", found, setting(), Options())
    assert decision.chosen
    assert {each.reason for each in decision.refused} <= {
        "all its bytes have their home in a replica already", "random requests follow no pattern",
    }  # fmt: skip
