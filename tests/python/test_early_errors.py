"""Errors that are said before a long read: each command below names a trace that is not there, and is told of the
result that cannot be written, or of the option that is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stripewise.files import parts
from test_cli import cluster_toml, stripewise

__all__ = ["cluster_toml"]

#: What is written, by the words of the command; OUT stands for a place below the directory that is given.
WRITERS = {
    "plan -o": ("plan", "NONE", "--cluster", "CLUSTER", "-o", "OUT.json"),
    "simulate --plot": ("simulate", "--trace", "NONE", "--cluster", "CLUSTER", "--plot", "OUT.svg"),
    "show --html": ("show", "NONE", "--html", "OUT.html"),
    "show --html of a log": ("show", "NONE.darshan", "--html", "OUT.html"),
    "show --perfetto": ("show", "NONE", "--perfetto", "OUT.pb"),
    "patterns --db": ("patterns", "NONE", "--db", "OUT.db"),
    "patterns --as fio": ("patterns", "NONE", "--as", "fio", "-o", "OUT"),
    "patterns predict": ("patterns", "predict", "NONE", "NONE", "-n", "4", "-o", "OUT"),
    "import": ("import", "strace", "NONE", "-o", "OUT"),
    "collect": ("collect", "NONE", "-o", "OUT"),
    "calibrate -o": ("calibrate", "--cluster", "CLUSTER", "-o", "OUT.toml"),
    "calibrate --plot": ("calibrate", "--cluster", "CLUSTER", "-o", "cluster.out", "--plot", "OUT"),
    "swd simulate": ("swd", "simulate", "--trace", "NONE", "--plot", "OUT.svg"),
    "swd trace --export": ("swd", "trace", "NONE", "--export", "OUT"),
    "swd trace --plot": ("swd", "trace", "NONE", "--plot", "OUT.svg"),
    "model": ("model", "--cluster", "CLUSTER", "--request", "64KiB", "--plot", "OUT.svg"),
}  # fmt: skip


def words(command, cluster, out):
    return [word.replace("CLUSTER", str(cluster)).replace("OUT", str(out)) for word in command]


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_result_that_cannot_be_written_is_named_before_anything_is_read(command, cluster_toml, tmp_path, monkeypatch):
    shut = tmp_path / "shut"
    shut.mkdir()
    real = os.access
    monkeypatch.setattr(parts.os, "access", lambda path, mode: str(path) != str(shut) and real(path, mode))
    said = stripewise(*words(command, cluster_toml, shut / "out"), code=2).stderr
    assert f"{shut} cannot be written to (permission denied)" in said and len(said.splitlines()) == 1
    assert not any(shut.iterdir())


@pytest.mark.parametrize("name", [name for name, command in WRITERS.items() if command[-1].endswith("svg")])
def test_a_picture_of_an_unknown_kind_is_named_before_anything_is_read(name, cluster_toml, tmp_path):
    command = [word.replace(".svg", ".xyz") for word in WRITERS[name]]
    assert (
        "ends neither in .svg nor in .html" in stripewise(*words(command, cluster_toml, tmp_path / "a"), code=2).stderr
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("simulate", "--trace", "NONE", "--cluster", "CLUSTER", "--policy", "nope"), "no policy 'nope'"),
        (("simulate", "--trace", "NONE", "--cluster", "CLUSTER", "--plan", "none.json"), "none.json: cannot be read"),
        (("plan", "NONE", "--cluster", "CLUSTER", "--policy", "nope"), "no policy 'nope'"),
        (("plan", "NONE", "--cluster", "none.toml"), "none.toml: cannot be read"),
        (("patterns", "predict", "NONE", "NONE"), "--processes"),
        (("swd", "simulate", "--trace", "NONE", "--scheme", "nope"), "nope"),
        (("swd", "simulate", "--trace", "NONE", "--disk", "none.toml"), "none.toml"),
        (("import", "nope", "NONE", "-o", "OUT"), "'nope' is unknown"),
        (("import", "strace", "NONE", "-o", "CLUSTER/x"), "cannot be a directory"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_before_the_trace_is_read(command, told, cluster_toml, tmp_path):
    assert told in stripewise(*words(command, cluster_toml, tmp_path / "out"), code=None).stderr


def test_a_sweep_that_no_trace_has_is_named_before_a_library_is_asked_for(cluster_toml, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = ("simulate", "--trace", "NONE", "--cluster", "CLUSTER", "--sweep", "processes=1,2", "--plot", "OUT.svg")
    assert "of a trace sweep hservers" in stripewise(*words(command, cluster_toml, tmp_path / "out"), code=2).stderr


@pytest.mark.parametrize("words", [("store", "ls", "store"), ("run", "--store", "store", "--", "true"), ("init", "d")])
def test_a_working_directory_that_is_gone_is_named(words, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    own = [sys.executable, "-m", "stripewise", *words]
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.execv({own[0]!r}, {own!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = ended.stderr.splitlines()
    assert ended.returncode == 1 and len(said) == 1 and said[0].startswith("stripewise: the working directory: "), said


def test_a_trace_makes_its_directory_and_none_above_it(tmp_path: Path) -> None:
    from stripewise.errors import UsageError
    from stripewise.run.collect import trace_directory

    assert trace_directory(tmp_path / "t").is_dir()
    (tmp_path / "file").touch()
    for name, why in (("none/x/y", "none/x is not a directory; create it"), ("file", "file is not a directory")):
        with pytest.raises(UsageError, match=why):
            trace_directory(tmp_path / name)
    assert not (tmp_path / "none").exists()
