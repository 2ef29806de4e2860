"""Programs that are watched or emulated as they run: under valgrind, gdb, QEMU and the sanitizers all is as without."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from rig import BIN, ROOT, SOURCE_BYTES, Store, execute, is_managed

SUPPRESSIONS = ROOT / "tools" / "valgrind.supp"
VALGRIND = ["valgrind", "-q", "--error-exitcode=9"]
WATCHERS = {
    "valgrind": VALGRIND,
    "helgrind": [*VALGRIND, "--tool=helgrind", f"--suppressions={SUPPRESSIONS}"],
    "drd": [*VALGRIND, "--tool=drd", f"--suppressions={SUPPRESSIONS}"],
    "gdb": ["gdb", "-batch", "-ex", "run", "-ex", "quit $_exitcode", "--args"],
    "qemu": [f"qemu-{os.uname().machine}"],
    "static qemu": [f"qemu-{os.uname().machine}-static"],
}
SANITIZERS = "address", "undefined", "thread", "leak"
#: What a sanitizer has found, whoever did it.
REPORTS = "Sanitizer", "runtime error:", "WARNING:"

needs_watcher = pytest.mark.parametrize("watcher", WATCHERS)


def watching(watcher: str) -> list[str]:
    """The command that the program's follows."""
    command = WATCHERS[watcher]
    if shutil.which(command[0]) is None:
        pytest.skip(f"not run: needs {command[0]}")
    return command


def compiled(store: Store, source: str, sanitizer: str | None = None) -> Path:
    """A program of tests/native/sanitizer."""
    compiler = shutil.which("gcc")
    assert compiler, "not run: gcc is missing"
    program = store.base / f"{source}-{sanitizer}"
    options = [] if sanitizer is None else [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    file = ROOT / "tests" / "native" / "sanitizer" / f"{source}.c"
    said = execute([compiler, "-g", "-O1", *options, "-o", program, file, "-lpthread"], code=None)
    if "cannot find" in said.err:
        pytest.skip(f"not run: gcc has no -fsanitize={sanitizer} here")
    assert said.code == 0, said.report
    return program


@needs_watcher
def test_a_copy_onto_a_managed_file_is_the_same_under(store: Store, watcher: str) -> None:
    copy = shutil.which("cp") or "cp"
    store.program(*watching(watcher), copy, store.base / "source", store.data / "copy")
    assert is_managed(store.data / "copy")
    store.program("cmp", store.base / "source", store.data / "copy")
    assert (store.base / "source").stat().st_size == SOURCE_BYTES
    store.program(*watching(watcher), copy, store.data / "copy", store.plain / "back")
    execute(["cmp", store.base / "source", store.plain / "back"])


@needs_watcher
def test_threads_find_what_they_wrote_under(store: Store, watcher: str) -> None:
    command = watching(watcher)
    program = compiled(store, "threads")
    said = store.program(*command, program, store.data / "t")
    assert is_managed(store.data / "t") and (watcher == "gdb" or not said.err), said.report


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_program_with_a_sanitizer_runs_without_a_report(store: Store, sanitizer: str) -> None:
    program = compiled(store, "threads", sanitizer)
    for place in (store.data, store.plain):
        said = store.run(program, place / "t")
        assert not any(report in said.err for report in REPORTS), said.report
        # Not put in front: the program of a launcher.
        said = store.run("sh", "-c", 'exec "$@"', "sh", program, place / "t")
        assert not any(report in said.err for report in REPORTS), said.report
    assert is_managed(store.data / "t")


READS_AND_WRITES_A_MAP = """
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as area:
    assert area[:] == open(sys.argv[2], "rb").read()
    area[:5] = b"other"
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as area:
    assert area[:5] == b"other" == file.read(5)
"""


@pytest.mark.parametrize("watcher", ["qemu", "static qemu"])
def test_a_map_under_emulation_shows_the_file(store: Store, watcher: str) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("not run: needs a python3 outside the environment")
    store.program(*watching(watcher), python, "-c", READS_AND_WRITES_A_MAP, store.data / "f", store.base / "source")


@pytest.mark.parametrize("watcher", ["qemu", "static qemu"])
def test_a_managed_file_that_an_emulated_program_inherits_is_refused(store: Store, watcher: str) -> None:
    # The emulator drops the access mode by which the next program would know it.
    command = " ".join(watching(watcher))
    script = f"exec {command} {shutil.which('cat')} < {store.data / 'f'}"
    said = store.program(*watching(watcher), shutil.which("sh") or "sh", "-c", script, code=None)
    assert said.code != 0 and "Bad file descriptor" in said.err and said.out == "", said.report


@pytest.mark.parametrize("watcher", ["qemu", "static qemu"])
def test_doctor_knows_that_an_emulator_s_program_loads_the_library(store: Store, watcher: str) -> None:
    said = store.run(*watching(watcher), shutil.which("true") or "true")
    assert "statically linked" not in said.err, said.report


def test_the_walk_of_a_read_is_the_page_s() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("not run: needs valgrind")
    said = execute([BIN / "python", ROOT / "tools" / "walks" / "read.py"]).out
    # What runs one line or two stands in brackets.
    doing = re.findall(r"^ *\d+  (?:crates|shim)/(?:\w+/src/)?(.+\.rs|.+\.c)$", said, re.M)
    assert "table.rs" in doing, said
    page = (ROOT / "ARCHITECTURE.md").read_text()
    walk = page[page.index("**The walk of a read**") : page.index("**The walk of a region's move**")]
    assert not [file for file in doing if Path(file).name not in walk], said
