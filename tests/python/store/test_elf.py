"""Reading program files: what they need is found, and files that lie do no harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.run.elf import Kind, own_machine, read_program

TRUE = Path(shutil.which("true") or "/bin/true").resolve()


def test_a_dynamic_program_names_its_libraries_and_versions():
    program = read_program(TRUE)
    assert program.kind is Kind.DYNAMIC and program.machine == own_machine()
    assert "libc.so.6" in program.needed and program.glibc() >= (2, 2)


def test_python_itself_is_a_dynamic_program():
    assert read_program(Path(sys.executable)).kind is Kind.DYNAMIC


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"#!/bin/sh\n", Kind.SCRIPT),
        (b"", Kind.OTHER),
        (b"\x7fELF", Kind.OTHER),
        (b"\x7fELF\x01\x01" + bytes(58), Kind.FOREIGN),
        (b"\x7fELF\x02\x01" + bytes(58), Kind.OTHER),
    ],
)
def test_other_files_are_told_by_their_first_bytes(tmp_path, head, kind):
    (tmp_path / "f").write_bytes(head)
    assert read_program(tmp_path / "f").kind is kind


@pytest.mark.parametrize("options", [["-static"], ["-static-pie"]])
def test_a_static_program_is_static_wherever_it_is_placed(tmp_path, options):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "not run: no C compiler"
    (tmp_path / "m.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([compiler, *options, "-o", tmp_path / "m", tmp_path / "m.c"], check=True)
    assert read_program(tmp_path / "m").kind is Kind.STATIC


GO_NOTE = """
asm(".pushsection .note.go.buildid, \\"a\\", @note\\n .align 4\\n .long 4, 5, 4\\n .ascii \\"Go\\\\0\\\\0\\"\\n"
    ".ascii \\"abcde\\"\\n .align 4\\n .popsection");
int main(void) { return 0; }
"""


def compiled(directory: Path, source: str, *options: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "not run: no C compiler"
    (directory / "m.c").write_text(source)
    subprocess.run([compiler, "-o", directory / "m", directory / "m.c", *options], check=True)
    return directory / "m"


@pytest.mark.parametrize(("source", "go"), [(GO_NOTE, True), ("int main(void) { return 0; }", False)])
def test_a_program_of_go_s_linker_is_told_by_its_note(tmp_path, source, go):
    program = read_program(compiled(tmp_path, source))
    assert program.kind is Kind.DYNAMIC and program.go is go


def test_a_real_go_program_linked_dynamically_is_told(tmp_path):
    if shutil.which("go") is None:
        pytest.skip("not run: needs go")
    (tmp_path / "m.go").write_text('package main\n\nimport "C"\n\nfunc main() {}\n')
    environment = {**os.environ, "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod", "GOCACHE": str(tmp_path / "cache")}
    build = ["go", "build", "-ldflags=-linkmode=external", "-o", tmp_path / "m", tmp_path / "m.go"]
    subprocess.run(build, check=True, env=environment, cwd=tmp_path)
    program = read_program(tmp_path / "m")
    assert program.kind is Kind.DYNAMIC and program.go


@settings(max_examples=300)
@given(
    changes=st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=40),
    cut=st.integers(0, 1 << 16),
)
def test_a_damaged_file_is_never_more_than_another_kind(tmp_path_factory, changes, cut):
    data = bytearray(TRUE.read_bytes()[: cut or None])
    for at, value in changes:
        if at < len(data):
            data[at] = value
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data)
    assert isinstance(read_program(path).kind, Kind)
