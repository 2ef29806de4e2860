"""`init` where a directory is too small to be measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from stripewise.cli import measuring


def test_a_directory_too_small_to_measure_is_told_with_what_helps(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring.os, "statvfs", lambda _: SimpleNamespace(f_bavail=6144, f_frsize=4096))
    said = str(measuring.too_little(tmp_path, 256 << 20))
    assert "has 24.0 MiB free" in said and "at least 4.0 MiB" in said and "--no-calibrate" in said, said
    assert str(measuring.too_little(tmp_path, 1 << 20)).startswith("--scratch: ")
