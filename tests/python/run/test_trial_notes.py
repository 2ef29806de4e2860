"""What a tune notes of the files under trial, and what is left of it for a repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripewise.layout import Layout, Region
from stripewise.moving.trial import cut_short, end_trial, former_layouts, made_by_trial, note_trial, noted_text
from stripewise.store.config import TUNE_LOCK

TARGETS = ["t0", "t1"]
OLD, NEW = (Layout((Region(0, 1 << 20, ((name, 4096),)),)) for name in TARGETS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A place for notes, as the lock of a tune has made it."""
    (tmp_path / TUNE_LOCK).touch(0o600)
    return tmp_path


def test_only_what_was_not_there_before_the_runs_was_made_by_them(root: Path) -> None:
    """A file that is first touched in a later run has a layout of its own, though nobody has looked at it."""
    note_trial(root, ["app"], ["/kept", "/later", "/made"], {"/kept": OLD}, {"/kept", "/later"})
    assert made_by_trial(root) == ["/made"] and former_layouts(root, TARGETS) == {"/kept": OLD}


def test_a_former_layout_outlives_a_tune_that_does_not_know_it(root: Path) -> None:
    note_trial(root, ["app"], ["/f", "/g"], {"/f": OLD, "/g": OLD}, {"/f", "/g"})
    note_trial(root, ["other"], ["/f", "/h"], {"/h": NEW}, {"/f", "/g", "/h"}, noted_text(root))
    assert former_layouts(root, TARGETS) == {"/f": OLD, "/g": OLD, "/h": NEW}
    assert "'other'" in cut_short(root) and "(and 2 more)" in cut_short(root)
    end_trial(root, noted_text(root), {"/f", "/h"})
    assert former_layouts(root, TARGETS) == {"/g": OLD} and "/g may lie" in cut_short(root)
    end_trial(root, noted_text(root), {"/g"})
    assert not cut_short(root)
