"""The doctor names what keeps files from working, each with a cure, and finds nothing where nothing is wrong."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stripewise import doctor
from stripewise.cli.main import app
from stripewise.doctor import Examined, Level, machine, program, store
from stripewise.errors import StoreError
from stripewise.run.elf import Kind, Program
from stripewise.store import create_store

TARGET = '[[target]]\nname = "t{n}"\nclass = "hdd"\nkind = "dir"\npath = "t{n}"\n' + "".join(
    f"{figure} = 0.0\n"
    for figure in ("startup_read_s", "startup_write_s", "per_byte_read_s", "per_byte_write_s")
)  # fmt: skip


@pytest.fixture
def made(tmp_path) -> Path:
    for n in range(2):
        (tmp_path / f"t{n}").mkdir()
    (tmp_path / "cluster.toml").write_text("".join(TARGET.format(n=n) for n in range(2)))
    return create_store(tmp_path / "store", tmp_path / "cluster.toml", [], 1 << 20, "def").root


def levels(found) -> set[Level]:
    return {finding.level for finding in found}


def worst(found):
    """The one bad finding."""
    wrong = [finding for finding in found if finding.level is Level.BAD]
    assert len(wrong) == 1 and wrong[0].cure, found
    return wrong[0]


def test_a_sound_setup_has_no_bad_finding(made):
    found = doctor.examine(Examined(made, ("true",)))
    assert not [(name, f) for name, f in found if f.level is Level.BAD]
    assert {"library", "C library", "program", "seccomp", "limits", "store", "targets", "file system"} <= {
        name for name, _ in found
    }


def test_targets_that_share_a_device_are_noted(made):
    (found,) = store.targets_have_devices_of_their_own(Examined(made))
    assert found.level is Level.NOTE and found.what.startswith("t0 and t1 share ") and "one directory" in found.cure
    shutil.rmtree(made.parent / "t0")
    assert not list(store.targets_have_devices_of_their_own(Examined(made)))


def test_every_finding_that_is_not_ok_has_a_cure(made):
    shutil.rmtree(made.parent / "t0")
    examined = Examined(made, ("/none",), {"LD_PRELOAD": "/x/libdarshan.so", "STRIPEWISE_OFF": "1", "PATH": "/bin"})
    for name, finding in doctor.examine(examined):
        assert (finding.level is Level.OK) == (not finding.cure), (name, finding)


def test_a_library_that_was_not_built_is_named(monkeypatch):
    def missing() -> Path:
        raise StoreError("/x/lib.so: the preloaded library is missing; build it with 'make build'")

    monkeypatch.setattr(program.runner, "library_path", missing)
    assert worst(program.library_is_built(Examined())).cure == "build it with 'make build'"
    assert levels(program.programs_take_the_library(Examined())) == {Level.NOTE}


def test_a_c_library_older_than_the_librarys_is_named(monkeypatch):
    monkeypatch.setattr(program, "read_program", lambda _: Program(Kind.DYNAMIC, 62, (), ("GLIBC_2.5", "GLIBC_2.999")))
    assert "needs" in worst(program.c_library_is_new_enough(Examined())).what


@pytest.mark.parametrize("loader", ["static", "setuid", "script", "foreign", "musl", "go", "absent"])
def test_a_program_that_sheds_the_library_is_named(tmp_path, monkeypatch, loader):
    path = tmp_path / "program"
    if loader in ("static", "script"):
        compiler = shutil.which("cc") or shutil.which("gcc")
        assert compiler, "not run: no C compiler"
        (tmp_path / "m.c").write_text("int main(void) { return 0; }\n")
        subprocess.run([compiler, "-static", "-o", path, tmp_path / "m.c"], check=True)
    if loader == "script":
        # What counts is what runs the script.
        script = tmp_path / "script"
        script.write_text(f"#!{path} -x\n")
        script.chmod(0o755)
        path = script
    if loader == "setuid":
        shutil.copy(shutil.which("true") or "/bin/true", path)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        path.chmod(0o4755)
    if loader == "foreign":
        path.write_bytes(b"\x7fELF\x01\x01" + bytes(58))
        path.chmod(0o755)
    if loader == "musl":
        shutil.copy(shutil.which("true") or "/bin/true", path)
        other = Program(Kind.DYNAMIC, program.own_machine(), (), (), "/lib/ld-musl-x86_64.so.1")
        monkeypatch.setattr(program, "read_program", lambda _: other)
    if loader == "go":
        shutil.copy(shutil.which("true") or "/bin/true", path)
        other = Program(Kind.DYNAMIC, program.own_machine(), ("libc.so.6",), (), "/lib64/ld-linux-x86-64.so.2", go=True)
        monkeypatch.setattr(program, "read_program", lambda _: other)
    command = (str(path),) if loader in ("absent", "musl", "go") else ("env", str(path))
    said = worst(program.programs_take_the_library(Examined(command=command)))
    assert str(path if loader != "script" else tmp_path / "program") in said.what


@pytest.mark.parametrize(
    "command",
    ["./job x", "nice ./job", "env A=1 ./job", "mpiexec -n 4 ./job x", "mpiexec -n 4 job x", "mpiexec -n 2 nice job"],
)
def test_programs_are_named_as_the_kernel_finds_them(command, tmp_path, monkeypatch):
    shutil.copy(shutil.which("true") or "/bin/true", tmp_path / "job")
    shutil.copy(shutil.which("true") or "/bin/true", tmp_path / "mpiexec")
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = list(program.programs_take_the_library(Examined(None, tuple(command.split()), {"PATH": path})))
    assert levels(found) == {Level.OK}
    assert found[-1].what == f"{tmp_path / 'job'} loads the library"


def test_arguments_are_no_programs():
    words = ("env", "cat", "sort", "true")
    found = list(program.programs_take_the_library(Examined(None, words, {"PATH": os.environ["PATH"]})))
    assert len(found) == 2 and "/cat loads" in found[1].what


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("mpiexec -n 4 ./nosuch", "./nosuch is not there"),
        ("mpiexec -f ./plain -n 4 ./nosuch", "./nosuch is not there"),
        ("mpiexec -n 4 ./plain", "./plain cannot be executed"),
        ("./plain", "./plain cannot be executed"),
        ("mpiexec -n 4 nosuch", "mpiexec starts nosuch, which is not found"),
        ("sh x.sh", "x.sh, which sh is to run, is not there"),
        ("mpiexec -n 4 sh x.sh", "x.sh, which sh is to run, is not there"),
        ("mpiexec -n 4 sh plain", ""),
        ("mpiexec -n 4 true ./output", ""),
        ("sh -c nosuch", ""),
        ("true sh nosuch", ""),
    ],
)
def test_what_a_launcher_or_an_interpreter_is_to_start_must_be_there(tmp_path, monkeypatch, command, missing):
    (tmp_path / "plain").touch()
    shutil.copy("/bin/true", tmp_path / "mpiexec")
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = list(program.programs_take_the_library(Examined(None, tuple(command.split()), {"PATH": path})))
    assert [each.what for each in found if each.level is not Level.OK] == [missing] * bool(missing)


def test_what_cannot_be_started_is_said_as_the_system_says_it(tmp_path, monkeypatch):
    def gone(*_words: object, **_more: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", Path("job"))

    monkeypatch.setattr(program.subprocess, "run", gone)
    said = worst(program.programs_take_the_library(Examined(command=("true",)))).what
    assert said.endswith("true cannot be started (No such file or directory)")


def test_a_loader_that_cannot_load_the_library_is_believed(tmp_path, monkeypatch):
    broken = tmp_path / "libstripewise.so"
    broken.write_bytes(b"\x7fELF\x02\x01" + bytes(100))
    monkeypatch.setattr(program.runner, "library_path", lambda: broken)
    assert "loader says" in worst(program.programs_take_the_library(Examined())).what


def test_the_program_itself_does_not_run(tmp_path):
    trace = tmp_path / "ran"
    found = list(program.programs_take_the_library(Examined(command=(shutil.which("touch") or "touch", str(trace)))))
    assert levels(found) == {Level.OK} and not trace.exists()


def test_a_program_linked_with_a_library_for_rings_is_noted(tmp_path):
    (tmp_path / "libaio.c").write_text("int io_setup(int n, void *c) { return c ? n : -22; }\n")
    (tmp_path / "m.c").write_text("int io_setup(int, void *);\nint main(void) { return io_setup(1, 0); }\n")
    library = tmp_path / "libaio.so.1"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libaio.so.1", "-o", library, tmp_path / "libaio.c"], check=True
    )
    subprocess.run(["cc", "-o", tmp_path / "m", tmp_path / "m.c", library, f"-Wl,-rpath,{tmp_path}"], check=True)
    takes, rings = program.programs_take_the_library(Examined(command=(str(tmp_path / "m"),)))
    assert takes.level is Level.OK and rings.level is Level.NOTE
    assert "linked with libaio" in rings.what and "ENOSYS" in rings.what


def test_darshan_in_the_preload_is_noted():
    (finding,) = program.preload_is_free(Examined(environment={"LD_PRELOAD": "/x/libdarshan.so:/p/libstripewise.so"}))
    assert finding.level is Level.NOTE and "in front" in finding.what


def test_refused_system_calls_are_named(monkeypatch):
    monkeypatch.setattr(machine, "refused", lambda call: errno.EPERM if call[0] in ("statx", "kcmp") else 0)
    found = list(machine.system_calls_are_allowed(Examined()))
    assert "statx" in worst(found).what and any("kcmp" in f.what for f in found if f.level is Level.NOTE)


def test_a_real_filter_of_system_calls_is_seen():
    # What a strict filter leaves of a call is EPERM; a number that no kernel has gives ENOSYS.
    assert machine.refused(("none", 9999, 9999, (0,))) == errno.ENOSYS
    assert all(machine.refused(call) == 0 for call in machine.CALLS)


@pytest.mark.parametrize(("soft", "level"), [(16, Level.BAD), (256, Level.NOTE), (4096, Level.OK)])
def test_few_descriptors_are_named(monkeypatch, soft, level):
    def limit(which: int) -> tuple[int, int]:
        return (soft, soft) if which == resource.RLIMIT_NOFILE else (resource.RLIM_INFINITY,) * 2

    monkeypatch.setattr(machine.resource, "getrlimit", limit)
    assert levels(machine.limits_suffice(Examined())) == {level}


def test_a_limit_of_file_size_is_noted(monkeypatch):
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert any("1048576 bytes" in finding.what for finding in machine.limits_suffice(Examined()))


def test_the_machines_own_figures_are_read(tmp_path, monkeypatch):
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "sys/vm/max_map_count").write_text("1000\n")
    (tmp_path / "sys/vm/unprivileged_userfaultfd").write_text("0\n")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert len(list(machine.maps_suffice(Examined(proc=tmp_path)))) == 2
    assert levels(machine.shared_memory_has_room(Examined(shm=tmp_path / "none"))) == {Level.NOTE}


def test_ucx_that_patches_mmap_is_noted():
    (finding,) = machine.ucx_leaves_mmap_alone(Examined(environment={"UCX_MEM_MMAP_HOOK_MODE": "bistro"}))
    assert finding.level is Level.NOTE and "bistro" in finding.what


def test_launchers_are_found_with_their_versions():
    (finding,) = machine.mpi_is_found(Examined())
    assert "Hydra" in finding.what, finding


def test_a_store_that_is_none_is_named(tmp_path):
    assert "store.toml" in worst(store.store_is_readable(Examined(tmp_path))).what


def test_a_target_that_is_not_mounted_is_named(made):
    shutil.rmtree(made.parent / "t1")
    assert "target t1" in worst(store.targets_are_usable(Examined(made))).what


def test_a_store_without_room_is_told_and_a_target_with_little_named(made, monkeypatch):
    monkeypatch.setattr(store, "room_bytes", lambda _: {"t0": 1 << 20, "t1": 1 << 20})
    assert "2.0 MiB free" in worst(store.targets_are_usable(Examined(made))).what
    monkeypatch.setattr(store, "room_bytes", lambda _: {"t0": 1 << 20, "t1": 1 << 30})
    monkeypatch.setattr(store, "small_targets", lambda _: {"t0": 1 << 20})
    told = [f for f in store.targets_are_usable(Examined(made)) if f.level is Level.NOTE]
    assert len(told) == 1 and "t0 (1.0 MiB)" in told[0].what


def test_another_machines_slots_are_named(made):
    if not Path("/etc/machine-id").read_text().strip():
        pytest.skip("not run: this machine has no id")
    (made / "run").mkdir(exist_ok=True)
    slot = made / "run" / f"00000000-0000-0000-0000-000000000000.1-{1:016x}.slot"
    slot.write_bytes(b"SWSLOT01" + bytes(48))
    assert levels(store.no_other_machine_has_it(Examined(made))) == set()
    slot.write_bytes(b"SWSLOT01" + bytes(16) + b"f" * 32)
    assert f"fsck {made} --repair" in worst(store.no_other_machine_has_it(Examined(made))).cure


def test_a_file_system_without_locks_is_named(made, monkeypatch):
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "none")

    monkeypatch.setattr(store.fcntl, "flock", none)
    monkeypatch.setattr(store.fcntl, "fcntl", none)
    said = worst(store.file_systems_can_lock(Examined(made)))
    assert "byte-range locks of open files, flock" in said.what
    assert not list(made.parent.rglob(".doctor-*"))


def test_a_check_that_fails_is_a_finding(monkeypatch):
    def broken(_: Examined):
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(doctor, "CHECKS", (("x", broken),))
    assert levels(f for _, f in doctor.examine(Examined())) == {Level.NOTE}


def test_the_verb_exits_1_when_something_is_wrong(made):
    sound = CliRunner().invoke(app, ["doctor", "--store", str(made), "--json", "--", sys.executable, "-c", "pass"])
    assert sound.exit_code == 0, sound.output
    assert {row["level"] for row in json.loads(sound.output)["findings"]} <= {"ok", "note"}
    shutil.rmtree(made.parent / "t0")
    wrong = CliRunner().invoke(app, ["doctor", "--store", str(made)])
    assert wrong.exit_code == 1 and "bad  targets: target t0" in wrong.output
    assert "cure: mount or restore it, or where it was moved" in wrong.output
