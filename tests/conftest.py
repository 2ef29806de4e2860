"""What holds for every test: no deadline per example, for one that a busy machine slows down is no fault."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("stripewise", deadline=None)
settings.load_profile("stripewise")
