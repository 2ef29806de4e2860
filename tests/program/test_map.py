"""Maps of managed files behave as maps of plain ones: contents, ends, growth, several processes."""

from __future__ import annotations

import pytest
from conftest import Maker
from rig import LAYOUTS, NATIVE

MAPS = NATIVE / "maps"


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_maps_of_managed_files_behave_as_maps_of_plain_ones(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    plain = store.program(MAPS, store.plain)
    managed = store.program(MAPS, store.data)
    assert managed.out.splitlines() == plain.out.splitlines(), managed.report
