"""What `run`, `tune` and `store info` say of the store that they use: where it is, what it takes, that it was moved."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from stripewise.cli.main import app


def stripewise(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def test_a_program_that_leaves_no_file_names_the_store_s_file_and_its_globs(tmp_path: Path) -> None:
    stripewise("init", "--emulate", tmp_path / "lab")
    program = ["sh", "-c", f"head -c 100000 /dev/zero >{tmp_path}/lab/x; rm {tmp_path}/lab/x"]
    said = stripewise("tune", "--store", tmp_path / "lab/store", "--", *program, code=1).stderr
    assert f"a [[rule]] in {tmp_path}/lab/store/store.toml has a glob of their path ({tmp_path}/lab/**)" in said, said
    assert "--manage" in said
    # Templates are of names; four of them would leave no place for the rule of the directory.
    for name in ("a.dat", "b.dat", "c.dat", "ck-[0-9]*.h5"):
        layout = ("--stripe-size", "1MiB", "--targets", "ssd0")
        stripewise("store", "template", "add", tmp_path / "lab/store", tmp_path / "lab" / name, *layout)
    said = stripewise("tune", "--store", tmp_path / "lab/store", "--", *program, code=1).stderr
    assert f"has a glob of their path ({tmp_path}/lab/**): add one" in said, said
    said = stripewise("store", "info", tmp_path / "lab/store").stdout
    assert "new files get regions of 64.0 MiB, laid out as def; plans may lay out each region for itself" in said, said


def test_a_store_that_takes_no_new_file_says_so(tmp_path: Path) -> None:
    stripewise("init", "--emulate", tmp_path / "lab")
    toml = tmp_path / "lab/store/store.toml"
    text = toml.read_text()
    toml.write_text(text[: text.index("[[rule]]")])
    said = stripewise("store", "info", tmp_path / "lab/store").stdout
    assert "no new file goes into the store: no [[rule]] of store.toml manages any" in said and "0 rule(s):" not in said


def test_a_run_on_a_store_whose_targets_are_all_away_says_so(tmp_path: Path) -> None:
    stripewise("init", "--emulate", tmp_path / "lab")
    assert "are away" not in stripewise("run", "--store", tmp_path / "lab/store", "--", "true").stderr
    (tmp_path / "lab").rename(tmp_path / "lab2")
    said = stripewise("run", "--store", tmp_path / "lab2/store", "--", "true").stderr
    assert f"all targets of {tmp_path}/lab2/store are away, so none of its files can be read: " in said, said
