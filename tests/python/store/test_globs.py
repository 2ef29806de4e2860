"""Which paths a store may manage."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripewise.errors import StoreError
from stripewise.store.globs import default_manage, manage_globs, template_globs


@pytest.mark.parametrize("place", ["/dev/shm/data", "/dev/shm/*.h5", "/proc", "/sys/kernel"])
def test_a_place_where_nothing_is_managed_is_refused(place):
    for asked in (manage_globs, lambda patterns: template_globs(*patterns)):
        with pytest.raises(StoreError, match="never managed"):
            asked([place])


def test_so_is_a_store_beside_which_nothing_is_managed():
    with pytest.raises(StoreError, match="/dev/shm: files below /dev are never managed"):
        default_manage(Path("/dev/shm/store"))


def test_names_that_only_begin_alike_are_managed():
    assert manage_globs(["/devices/data"]) == ["/devices/data", "/devices/data/**"]
