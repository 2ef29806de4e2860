"""The cluster.toml that an undo leaves: another init takes the targets from it; one that differs is not overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stripewise.cli.main import app
from stripewise.store import Store

ADOPT = "stripewise store adopt --store"


def stripewise(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def test_an_init_after_an_undo_takes_the_cluster_that_it_left_and_the_files_stay(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    stripewise("init", "--emulate", lab, "--capacity", "ssd1=1GiB")
    (lab / "f").write_text("plain")
    stripewise("undo", lab / "store")
    before = (lab / "cluster.toml").read_text().replace("startup_read_s = 0.003", "startup_read_s = 0.004", 1)
    (lab / "cluster.toml").write_text(before)
    said = stripewise("init", "--emulate", lab).stderr
    assert f"{lab}/cluster.toml: describes these targets already" in said and "rm " in said, said
    assert f"1 file(s) where it manages new ones are plain and stay so; to take one in: {ADOPT} {lab}/store" in said, (
        said
    )
    assert f"{lab}/store {lab}/f" in said, said
    first = Store(lab / "store").config.cluster.targets[0]
    assert (lab / "cluster.toml").read_text() == before and first.startup_read_s == 0.004
    assert (lab / "f").read_text() == "plain"
    stripewise("undo", lab / "store")
    refused = stripewise("init", "--emulate", lab, "--capacity", "ssd1=2GiB", code=1).stderr
    assert "has another capacity_bytes for ssd1" in refused and f"--cluster {lab}/cluster.toml" in refused, refused


def test_measured_figures_are_taken_again_and_other_directories_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("d0", "d1"):
        (tmp_path / name).mkdir()
    stripewise("init", "--store", "st", "d0", "--no-calibrate")
    stripewise("undo", "st")
    refused = stripewise("init", "--store", "st", "d0", "--seconds", "5", code=2).stderr
    assert "--seconds: the figures are those of" in refused and f"rm {tmp_path}/cluster.toml" in refused, refused
    refused = stripewise("init", "--store", "st", "d1", "--no-calibrate", code=2).stderr
    assert "describes another target" in refused and f"add -o {tmp_path}/other.toml" in refused, refused
    assert "describes these targets already" in stripewise("init", "--store", "st", "d0").stderr
