"""What holds for every test: no deadline per example, for one that a busy machine slows down is no fault; and a state
directory of the tests' own, so that the logs of their runs do not mix with the user's.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("stripewise", deadline=None)
settings.load_profile("stripewise")


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory):
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
