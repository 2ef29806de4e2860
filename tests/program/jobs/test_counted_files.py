"""A first trace of a real script: its data are planned, its code is not; and a run that failed says so ever after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig import MPIEXEC, STRIPEWISE, stripewise
from typer.testing import CliRunner, Result

from stripewise.cli.main import app

CLUSTER = "version = 1\n" + "".join(
    f'[[target]]\nname = "t{number}"\nclass = "hdd"\npath = "t{number}"\n'
    "startup_read_s = 3e-3\nstartup_write_s = 3e-3\nper_byte_read_s = 1e-8\nper_byte_write_s = 1e-8\n"
    for number in range(2)
)
#: Imports dozens of modules, reads its settings, writes a large file and a small one, and reads one back.
SCRIPT = """
import email, http.client, json, sqlite3, xml.dom.minidom, unittest.mock, numpy as np
settings = json.load(open("settings.json"))
np.save("field.npy", np.arange(settings["size"]))
np.save("part.npy", np.load("field.npy")[:10_000])
open("notes.txt", "w").write("done\\n")
"""
#: Writes enough to count, then ends as it is told.
WRITES = "import os; open('out.dat', 'wb').write(bytes(1 << 20)); "


@pytest.fixture
def place(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a run, with a cluster; no list of the user's."""
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(scratch / "config"))
    (scratch / "cluster.toml").write_text(CLUSTER)
    return scratch


def verb(*words: str, code: int = 0) -> Result:
    """A verb in this process, where numpy and pyarrow are loaded already."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def traced(*command: object, code: int = 0) -> str:
    """What collecting the trace `t` of a program says, in all."""
    assert stripewise("run", "--trace", "t", "--", *command, code=code).code == code
    return verb("collect", "t").output


def planned(*options: str) -> tuple[list[str], dict[str, object]]:
    said = verb("plan", "t", "--cluster", "cluster.toml", "--policy", "def", "-o", "plan.json", "--json", *options)
    files = json.loads(Path("plan.json").read_text())["files"]
    return [file["path"] for file in files], json.loads(said.stdout)


def test_a_script_of_dozens_of_modules_is_planned_by_its_data(place: Path) -> None:
    (place / "script.py").write_text(SCRIPT)
    (place / "settings.json").write_text('{"size": 200000}')
    said = traced(sys.executable, "script.py")
    data = [f"{place}/field.npy", f"{place}/part.npy"]
    files, told = planned()
    assert files == data and told["exit_status"] == 0
    left_out = dict(told["left_out"])  # type: ignore[call-overload]
    assert left_out["code"] > 50 and left_out["small"] == 2, left_out
    lines = [line.split()[-1] for line in said.splitlines() if line.startswith(" ") and ".npy" in line]
    assert lines == data and "files left out (code " in said and "failed" not in said
    everything, _ = planned("--all-files")
    assert len(everything) == len(data) + sum(left_out.values())
    assert everything[:1] == data[:1], "most bytes first"
    trace_files = json.loads((place / "t/meta.json").read_text())["files"]
    assert {file["path"] for file in trace_files} >= set(everything), "a trace keeps every file"
    assert planned("--file", f"{place}/notes.txt")[0] == [f"{place}/notes.txt"]
    assert planned("--include", "notes.txt", "--exclude", "part.*")[0] == [data[0], f"{place}/notes.txt"]


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [
        ("raise SystemExit(3)", 3, "the run failed: it ended with exit status 3"),
        ("os.kill(os.getpid(), 9)", 137, "the run failed: it was ended by signal SIGKILL"),
        ("pass", 0, ""),
    ],
)
def test_every_verb_says_that_a_run_failed_and_no_verb_that_it_did_not(
    place: Path, ends: str, code: int, told: str
) -> None:
    said = traced(sys.executable, "-c", WRITES + ends, code=code)
    assert told in said and ("failed" in said) == bool(told)
    for words in (
        ("plan", "t", "--cluster", "cluster.toml", "--policy", "def"),
        ("simulate", "--trace", "t", "--cluster", "cluster.toml", "--policy", "def"),
        ("patterns", "t"),
        ("show", "t"),
        ("show", "t", "--html", "out.html"),
        ("files", "t"),
    ):
        error = verb(*words).stderr
        assert told in error and ("failed" in error) == bool(told), words
    for words in (("plan", "t", "--cluster", "cluster.toml", "--policy", "def"), ("patterns", "t"), ("show", "t")):
        assert json.loads(verb(*words, "--json").stdout)["exit_status"] == code
    assert ("The run failed" in Path("out.html").read_text()) == bool(told)


def test_of_an_mpi_job_the_launchers_status_is_kept(place: Path) -> None:
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", WRITES + "os._exit(5)"]
    status = subprocess.run(command, capture_output=True, check=False).returncode
    assert status
    assert f"exit status {status}" in traced(*command, code=status)


def test_of_a_run_whose_wrapper_was_killed_the_end_is_unknown(place: Path) -> None:
    program = "import time; open('out.dat', 'wb').write(bytes(1 << 20)); open('ready', 'w'); time.sleep(60)"
    wrapper = subprocess.Popen(
        [STRIPEWISE, "run", "--trace", "t", "--", sys.executable, "-c", program], start_new_session=True
    )
    try:
        until = time.monotonic() + 30
        while not Path("ready").exists():
            assert time.monotonic() < until and wrapper.poll() is None
            time.sleep(0.02)
        wrapper.kill()
        wrapper.wait()
        said = verb("collect", "t").stderr
        assert "how the run ended is unknown" in said and "failed" not in said
        assert planned()[1]["exit_status"] is None
    finally:
        os.killpg(wrapper.pid, signal.SIGKILL)


def test_a_trace_without_a_note_says_nothing_of_its_end(place: Path) -> None:
    traced(sys.executable, "-c", WRITES + "raise SystemExit(3)", code=3)
    (place / "t/.run.json").unlink()
    assert "run" not in verb("collect", "t").stderr
    assert planned()[1]["exit_status"] is None and "cwd" not in json.loads((place / "t/meta.json").read_text())


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("{", "not JSON"), ("[]", "not a table"), ('{"version": 2}', "newer"), ('{"version": 1}', "cwd is missing"),
        ('{"version": 1, "cwd": "/", "exit_status": 256}', "exit_status = 256 is out of range"),
    ],
)  # fmt: skip
def test_a_damaged_note_is_one_sentence_and_leaves_no_trace(place: Path, note: str, told: str) -> None:
    stripewise("run", "--trace", "t", "--", sys.executable, "-c", WRITES)
    (place / "t/.run.json").write_text(note)
    error = verb("collect", "t", code=1).stderr
    assert told in error and ".run.json" in error and error.count("\n") == 1
    assert not (place / "t/trace.parquet").exists()
