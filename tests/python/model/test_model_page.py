"""docs/models.md: its commands run, its numbers are those of the models, its pictures are what the code draws."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.model import OpFigures
from stripewise.model.one_class import ClassParameters, one_dh, two_d
from test_cli import stripewise

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "models.md").read_text()


def test_a_picture_is_what_the_models_draw(tmp_path):
    spec = importlib.util.spec_from_file_location("model_plots", ROOT / "tools" / "model_plots.py")
    plots = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plots)
    plots.draw(tmp_path, ["segment"])
    assert (tmp_path / "segment.svg").read_bytes() == (ROOT / "docs" / "models" / "segment.svg").read_bytes()
    for name in plots.PLOTS:
        assert f"(models/{name}.svg)" in PAGE
        assert (ROOT / "docs" / "models" / f"{name}.svg").is_file()


@pytest.mark.parametrize("line", [line.strip() for line in PAGE.splitlines() if line.startswith("    stripewise ")])
def test_its_commands_run(line):
    said = stripewise(*shlex.split(line)[1:]).output
    if "--sweep" not in line:
        for fact in ("98.62", "117.0", "6.74 times as fast"):
            assert fact in said
    assert "6.74 times" in PAGE


@given(
    st.integers(1, 8), st.integers(1, 8), st.integers(1, 16), st.floats(0, 1e-3), st.floats(0, 1e-7),
    st.builds(OpFigures, st.floats(0, 0.1), st.floats(0, 1e-6)), st.integers(1, 1 << 26),
)  # fmt: skip
def test_where_the_processes_divide_the_servers_a_group_each_is_never_dearer_than_1_dh(p, times, c, e, t, device, r):
    params = ClassParameters(p, c, e, t, p * times, device)
    assert float(two_d(params, r, p).total_s) <= float(one_dh(params, r).total_s) * (1 + 1e-12)
