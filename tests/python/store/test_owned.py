"""Who may write a directory."""

import os
import stat

import pytest

from stripewise.store.owned import others_write


@pytest.mark.parametrize(
    ("mode", "user", "group", "others"),
    [
        (0o755, 7, 8, False),
        (0o775, 7, 8, True),
        # The group of a user's own number has nobody else in it.
        (0o775, 7, 7, False),
        (0o777, 7, 7, True),
        (0o1757, 7, 7, True),
    ],
)
def test_who_may_write_a_directory(mode: int, user: int, group: int, others: bool) -> None:
    found = os.stat_result((stat.S_IFDIR | mode, 1, 1, 1, user, group, 0, 0, 0, 0))
    assert others_write(found) is others
