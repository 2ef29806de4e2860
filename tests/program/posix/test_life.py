"""However a program is started, split, replaced or turned into a daemon: its managed files go on working."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rig import LIBRARY, MPIEXEC, NATIVE, SOURCE_BYTES, Store, execute, is_managed, parse_mpiio, stripewise

LIFE = NATIVE / "life"
SLURP = NATIVE / "slurp.so"
COUNTER = NATIVE / "counter.so"
FORMS = [
    "execve", "execv", "execvp", "execvpe", "execl", "execle", "execlp", "fexecve", "execveat", "posix_spawn",
    "posix_spawnp", "system", "popen", "vfork",
]  # fmt: skip


def content(store: Store, path: Path) -> bytes:
    """What a managed file holds."""
    sink = store.base / "sink"
    store.program("dd", f"if={path}", f"of={sink}", "bs=1M", "status=none")
    return sink.read_bytes()


def python(store: Store, code: str, *words: str | Path) -> str:
    """What a Python program under the library prints."""
    return store.program(sys.executable, "-c", code, *words).out


def copying(store: Store) -> list[str | Path]:
    """A command that copies the managed file to a plain one, of four arguments."""
    return [shutil.which("dd") or "dd", f"if={store.data / 'f'}", f"of={store.plain / 'g'}", "bs=1M", "status=none"]


def test_the_tables_of_the_library_take_no_room_in_its_file() -> None:
    # One word that is not zero in what a table is made of puts the whole table into the file: 38 MB, once.
    assert LIBRARY.stat().st_size < 4 << 20


@pytest.mark.parametrize("form", FORMS)
def test_a_program_started_with_an_empty_environment_keeps_the_library(store: Store, form: str) -> None:
    store.program(LIFE, "fresh", form, "empty", *copying(store))
    assert (store.plain / "g").read_bytes() == (store.base / "source").read_bytes()


@pytest.mark.parametrize("form", ["execve", "posix_spawn", "system"])
def test_what_others_preload_stays_behind_the_library(store: Store, form: str) -> None:
    store.program(LIFE, "fresh", form, "others", *copying(store))
    assert (store.plain / "g").read_bytes() == (store.base / "source").read_bytes()


def test_preloads_are_ordered_and_the_stores_name_is_handed_on(store: Store) -> None:
    program = shutil.which("env") or "env"
    said = store.program(LIFE, "fresh", "execve", "others", program).out.splitlines()
    preload = next(line for line in said if line.startswith("LD_PRELOAD="))
    assert preload.endswith("/libstripewise.so:libm.so.6") and preload.count("libstripewise") == 1
    assert f"STRIPEWISE_STORE={store.root}" in said and "A=b" in said, said
    assert [line for line in said if not line.startswith(("LD_PRELOAD=", "STRIPEWISE_"))] == ["A=b"]


def test_a_complete_environment_is_not_touched(store: Store) -> None:
    environment = {**store.environment(), "X": "y"}
    said = execute(["env", "-0"], environment).out.split("\0")
    assert sorted(filter(None, said)) == sorted(f"{key}={value}" for key, value in environment.items())


def test_the_library_stays_away_where_it_is_told_to(store: Store) -> None:
    result = store.program(LIFE, "fresh", "execve", "off", *copying(store), code=None)
    assert result.code != 0 and "No such file" in result.err, result.report


def test_a_launcher_that_scrubs_the_environment_loses_nothing(store: Store) -> None:
    launcher = store.base / "launcher"
    launcher.write_text('#!/bin/sh\nexec env -i PATH=/usr/bin:/bin "$@"\n')
    launcher.chmod(0o755)
    store.run(launcher, *copying(store))
    assert (store.plain / "g").read_bytes() == (store.base / "source").read_bytes()
    store.run(launcher, "dd", f"if={store.base / 'source'}", f"of={store.data / 'new'}", "bs=64k")
    assert content(store, store.data / "new") == (store.base / "source").read_bytes()


def test_children_append_to_a_managed_standard_output(store: Store) -> None:
    code = """
import subprocess, sys
with open(sys.argv[1], "ab") as out:
    line = "import os\\nfor i in range(300): os.write(1, b'%d %%05d\\\\n' %% i)"
    children = [subprocess.Popen([sys.executable, "-c", line % n], stdout=out) for n in (1, 2, 3)]
    assert all(child.wait() == 0 for child in children)
"""
    for _ in range(2):
        python(store, code, store.data / "log")
    lines = content(store, store.data / "log").split(b"\n")[:-1]
    assert len(lines) == 2 * 3 * 300 and len(set(lines)) == 3 * 300


@pytest.mark.parametrize(
    ("mode", "said"),
    [("os.O_RDONLY", "r"), ("os.O_WRONLY|os.O_APPEND", "w append"), ("os.O_RDWR|os.O_SYNC", "rw sync"),
     ("os.O_RDWR|os.O_DSYNC|os.O_APPEND", "rw append dsync")],
)  # fmt: skip
@pytest.mark.parametrize(
    "way",
    [
        # A vfork child that rewires, posix_spawn's actions, and one that hands down nothing but the descriptor itself.
        "subprocess.run(child, stdin=fd, check=True)",
        "os.waitpid(os.posix_spawn(child[0], child, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, fd, 0)]), 0)",
        "c = ctypes.CDLL(None); p = os.fork() or (c.syscall(33, fd, 0), c.syscall(436, 3, 4096, 0), "
        "os.execv(child[0], child)); os.waitpid(p, 0)",
    ],
)
def test_a_descriptor_that_is_handed_down_keeps_its_mode(store: Store, mode: str, said: str, way: str) -> None:
    code = f"import ctypes, os, subprocess, sys\nfd = os.open(sys.argv[1], {mode})\nchild = sys.argv[2:]\n{way}"
    result = store.program(sys.executable, "-c", code, store.data / "f", LIFE, "flags", "0")
    assert result.err.strip() == said, result.report


def test_a_read_only_descriptor_stays_read_only_in_the_child(store: Store) -> None:
    code = """
import os, subprocess, sys
child = "import os\\ntry: os.write(0, b'scribble')\\nexcept OSError as e: print(e.errno)\\n"
child += "print(len(os.read(0, 1 << 20)))"
with open(sys.argv[1], "rb", buffering=0) as file:
    subprocess.run([sys.executable, "-c", child], stdin=file, check=True)
"""
    assert python(store, code, store.data / "f").split() == ["9", str(SOURCE_BYTES)]
    assert content(store, store.data / "f") == (store.base / "source").read_bytes()


def test_posix_spawn_hands_a_descriptor_down_by_its_actions(store: Store) -> None:
    for _ in range(2):
        store.program(LIFE, "wired", store.data / "log", shutil.which("dd"), f"if={store.base / 'source'}", "bs=4k")
    assert content(store, store.data / "log") == 2 * (store.base / "source").read_bytes()


def test_an_exec_that_fails_leaves_everything_as_it_was(store: Store) -> None:
    store.program(LIFE, "failing", store.data / "new")


def test_flock_on_a_managed_file_excludes_and_ends_with_its_command(store: Store) -> None:
    flock = shutil.which("flock")
    assert flock, "not run: flock (util-linux) is missing"
    lock = store.data / "f"
    busy = f"{flock} -n {lock} true; test $? = 1"
    store.program(flock, lock, "sh", "-c", busy)
    store.program("sh", "-c", f"exec 9>>{lock}; {flock} 9; sh -c '{busy}'; {flock} -u 9; {flock} -n {lock} true")
    store.program(flock, "-n", lock, "true")


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone", "raw-fork"])
def test_a_child_that_the_c_library_does_not_know_of_has_a_slot_of_its_own(store: Store, how: str) -> None:
    child = subprocess.Popen(
        [LIFE, "split", how, store.data / "log"], env=store.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin and child.stdout
    try:
        pid = int(child.stdout.readline())
        slots = {name.name.split(".")[1].split("-")[0] for name in store.root.glob("run/*.slot")}
        assert {str(pid), str(child.pid)} <= slots, f"{pid} and {child.pid} are not both among {slots}"
        child.stdin.write(b"g")
        child.stdin.flush()
        assert child.wait(timeout=120) == 0
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("how", ["loop", "closefrom", "close_range", "proc", "over"])
def test_a_daemon_that_closes_every_descriptor_opens_its_files_anew(store: Store, how: str) -> None:
    store.program(LIFE, "daemon", how, store.data / "d")
    assert content(store, store.data / "d") == b"before after"


def test_a_small_limit_of_descriptors_is_an_error_and_not_the_end(store: Store) -> None:
    for limit in ("16", "24", "64"):
        store.program(LIFE, "few", limit, store.data / "f")


def test_a_thread_with_a_small_stack_opens_managed_files(store: Store) -> None:
    store.program(LIFE, "stack", str(48 << 10), store.data / "f")
    store.program(LIFE, "stack", str(48 << 10), store.data / "new")


def test_a_module_loaded_later_reads_managed_files(store: Store) -> None:
    assert store.program(LIFE, "module", "dlopen", SLURP, store.data / "f").out.strip() == str(SOURCE_BYTES)


def test_a_module_in_a_name_space_of_its_own_finds_no_file(store: Store) -> None:
    assert store.program(LIFE, "module", "dlmopen", SLURP, store.data / "f").out.strip() == "-2"


LOOKALIKE = """
import os, sys
head = sys.argv[1]
if len(sys.argv) == 2:
    for fd, flags in ((15, os.O_RDONLY), (16, os.O_WRONLY | os.O_APPEND), (17, os.O_PATH)):
        os.dup2(os.open(head, flags), fd)
    os.execv(sys.executable, [sys.executable, "-c", os.environ["CODE"], head, "again"])
print(os.read(15, 5), os.write(16, b"more"), os.read(os.open("/proc/self/fd/15", 0), 5), os.fstat(17).st_size)
print(os.stat("/dev/fd/15").st_size, os.readlink("/proc/self/fd/15") == head)
"""


@pytest.mark.parametrize("near", ["nothing", "a store"])
def test_a_plain_descriptor_whose_path_looks_like_a_head_s_stays_open(store: Store, near: str) -> None:
    directory = (store.base / "x" if near == "nothing" else store.root) / "files" / "0123456789abcdef"
    directory.mkdir(parents=True)
    (directory / "head").write_bytes(b"plain content\n")
    if near == "nothing":
        (directory.parents[1] / "store.bin").write_bytes(b"another program's")
        said = execute(
            [sys.executable, "-c", LOOKALIKE, directory / "head"], {**store.environment(), "CODE": LOOKALIKE}
        )
        assert said.out.splitlines() == ["b'plain' 4 b'plain' 18", "18 True"], said.report
    else:
        # No file of the store, for it has no layout: what the program was given is still its own.
        said = store.program("sh", "-c", f"exec 5<{directory}/head; head -c 5 <&5")
        assert said.out == "plain", said.report
        shutil.rmtree(directory)


def test_a_plain_descriptor_of_a_real_head_stays_open_too(store: Store) -> None:
    head = next(store.root.glob("files/*/head"))
    said = store.program("sh", "-c", f"exec 5<{head}; exec {sys.executable} -c 'import os; print(os.fstat(5).st_size)'")
    assert said.out.strip().isdecimal(), said.report


def test_a_child_that_sheds_the_library_is_named_with_its_cure_when_the_run_ends(store: Store) -> None:
    static = NATIVE / "failclosed-static"
    said = store.run("sh", "-c", f"{static} {store.data / 'f'}; {static} {store.data / 'f'}; true")
    hints = [line for line in said.err.splitlines() if line.startswith(f"stripewise: {static}: ")]
    assert len(hints) == 1 and "statically linked" in hints[0], said.report
    assert "1 line of this run in the library's log" in said.err, said.report


def test_a_program_out_of_reach_is_named_though_the_run_itself_starts_it(store: Store) -> None:
    static = NATIVE / "failclosed-static"
    said = store.run(static, store.data / "f")
    assert f"stripewise: {static} is statically linked" in said.err, said.report


def test_a_go_program_is_named_by_its_note_when_the_run_ends(store: Store) -> None:
    source, program = store.base / "m.c", store.base / "m"
    note = '.section .note.go.buildid, \\"a\\", @note; .align 4; .long 4, 5, 4; .ascii \\"Go\\\\0\\\\0abcde\\"; '
    note += ".align 4; .text"
    source.write_text(f'asm("{note}");\nint main(void) {{ return 0; }}\n')
    subprocess.run(["cc", "-o", program, source], check=True)
    for command in ([program], ["sh", "-c", f"{program}; true"]):
        said = store.run(*command)
        assert str(program) in said.err and "written in Go" in said.err, said.report


def test_a_setuid_child_is_named(store: Store) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: making a setuid program needs root")
    program = store.base / "dd"
    shutil.copy(shutil.which("dd") or "dd", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    said = store.run("sh", "-c", f"{program} if={store.data / 'f'} of=/dev/null; true")
    assert f"{program}: this program is setuid" in said.err and "No such file" in said.err, said.report


def test_a_program_among_the_managed_files_cannot_be_started_and_is_named(store: Store) -> None:
    store.program("dd", f"if={shutil.which('true')}", f"of={store.data / 'tool'}", "bs=64k")
    store.program("chmod", "755", store.data / "tool", code=None)
    said = store.run("sh", "-c", f"{store.data / 'tool'}", code=None)
    assert said.code in (126, 127) and "itself a managed file" in said.err, said.report


def test_a_program_with_the_address_sanitizer_runs(store: Store) -> None:
    compiler = shutil.which("gcc")
    assert compiler, "not run: gcc is missing"
    program = store.base / "instrumented"
    source = NATIVE.parents[1] / "tests" / "native" / "sanitizer" / "instrumented.c"
    execute([compiler, "-g", "-fsanitize=address", "-o", program, source])
    for launcher in ([], ["sh", "-c", 'exec "$@"', "sh"], [MPIEXEC, "-n", "2"]):
        said = store.run(*launcher, program, store.data / "f")
        assert said.out.split() == ["5"] * (2 if MPIEXEC in launcher else 1), said.report
    said = store.run(program, store.data / "f", "past the end", code=None)
    assert said.code != 0 and "heap-buffer-overflow" in said.err, said.report


def test_open_mpi_runs_the_workload(store: Store) -> None:
    compiler, launcher = shutil.which("mpicc.openmpi"), shutil.which("mpirun.openmpi")
    if not compiler or not launcher:
        pytest.skip("not run: Open MPI (mpicc.openmpi, mpirun.openmpi) is missing")
    program = store.base / "mpiio"
    sources = sorted((NATIVE.parents[1] / "workloads").glob("*.c"))
    execute([compiler, "-O2", "-std=c11", "-o", program, *sources, "-lm"])
    launch = [launcher, "--allow-run-as-root", "--oversubscribe", "-n", "3"]
    words = ["--file-size", "4MiB", "--request-size", "48KiB", "--region-size", "480KiB", "--pieces", "4"]
    for pattern in ("interleaved", "strided"):
        file = store.data / pattern
        said = store.run(*launch, program, "--file", file, "--pattern", pattern, *words, "--requests", "4")
        parse_mpiio(said)
        assert is_managed(file)


def test_a_counting_library_beside_ours_sees_the_calls_on_plain_files_only(store: Store) -> None:
    (store.plain / "f").write_bytes(b"x" * 10)
    before = {"LD_PRELOAD": f"{COUNTER}", "COUNTER_FILE": str(store.base / "count")}
    for file, reads in ((store.plain / "f", True), (store.data / "f", False)):
        words = ["run", "--store", store.root, "--", "dd", f"if={file}", "of=/dev/null", "bs=1M"]
        stripewise(*words, env={**os.environ, **before})
        # The command line itself counts nothing of that size.
        lines = (store.base / "count").read_text().splitlines()
        assert any(line != "read 0" for line in lines) == reads, lines
        (store.base / "count").unlink()


def test_many_descriptors_of_one_file_are_told_apart_by_a_new_program(store: Store) -> None:
    code = """
import fcntl, os, sys
modes = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_SYNC]
seen = os.O_ACCMODE | os.O_APPEND | os.O_SYNC
if sys.argv[2] == "parent":
    fds = [os.open(sys.argv[1], modes[i % 5]) for i in range(70)]
    for i, fd in enumerate(fds):
        os.lseek(fd, i, os.SEEK_SET)
        os.set_inheritable(fd, True)
    twins = [os.dup(fd) for fd in fds[:3]]
    for fd in twins:
        os.set_inheritable(fd, True)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[3], sys.argv[1], "child", repr((fds, twins))])
fds, twins = eval(sys.argv[3])
wrong = [i for i, fd in enumerate(fds) if fcntl.fcntl(fd, fcntl.F_GETFL) & seen != modes[i % 5]]
assert not wrong, wrong
for i, fd in enumerate(fds):
    if modes[i % 5] == os.O_RDONLY:
        assert len(os.read(fd, 1000)) == 1000
assert [os.lseek(fd, 0, os.SEEK_CUR) for fd in fds] == [i + (1000 if i % 5 == 0 else 0) for i in range(70)]
assert [os.lseek(fd, 0, os.SEEK_CUR) for fd in twins] == [1000, 1, 2]
os.close(fds[0])
assert len(os.read(twins[0], 7)) == 7
"""
    store.program(sys.executable, "-c", code, store.data / "f", "parent", code)
