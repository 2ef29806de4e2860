"""What another user may cut while a program uses it: ctl of a file that he may write, `devices` of a shared store. The
program lives; its file fails or goes on; and a handler of the program's for SIGBUS gets the faults that are its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hostile import (
    ALICE,
    LIMIT_S,
    MALLORY,
    PYTHON,
    Managed,
    Realm,
    acting_as,
    as_user,
    create_for,
    needs_root,
    run_dir,
)
from rig import NATIVE, execute, holds, talking

pytestmark = needs_root

HANDLERS = ["sigaction", "siginfo", "signal", "reset", "stack", "later", "fork", "thread", "exec", "mapped", "told"]
NO_HANDLERS = ["none", "default", "ignored"]


def cut_devices(realm: Realm, file: Managed, length: int) -> None:
    with acting_as(MALLORY):
        os.truncate(run_dir(file.store) / "devices", length)


def cut_ctl(realm: Realm, file: Managed, length: int) -> None:
    with acting_as(MALLORY):
        os.truncate(file.dir / "ctl", length)


CUTS = {"devices": cut_devices, "ctl": cut_ctl}


@pytest.fixture
def devices_kept(realm: Realm) -> Iterator[None]:
    """The shared store's devices are whole again afterwards."""
    path = run_dir(realm.roots.root) / "devices"
    before = path.read_bytes() if path.exists() else None
    yield
    if before is not None:
        path.write_bytes(before)


USE = """
import mmap
link, mapped = sys.argv[1], len(sys.argv) > 2
fd = os.open(link, os.O_RDWR)
assert os.pread(fd, 8, 0) == b"attacker"
print("ready", flush=True)
sys.stdin.readline()
said = set()
for _ in range(3):
    for step in (
        lambda: os.pread(fd, 300000, 0), lambda: os.pwrite(fd, b"attacker" * 1000, 0), lambda: os.fstat(fd),
        lambda: os.lseek(fd, 0, 2),
        lambda: os.fsync(fd), lambda: os.ftruncate(fd, 200000), lambda: os.ftruncate(fd, 320000), lambda: os.stat(link),
        lambda: os.close(os.open(link, os.O_RDWR)), lambda: os.posix_fallocate(fd, 0, 400000),
        lambda: mmap.mmap(fd, 4096).close(),
    ):
        try: step(); said.add(0)
        except OSError as error: said.add(error.errno)
if os.fork() == 0:
    try: os.pread(fd, 100, 0)
    except OSError: pass
    os._exit(0)
assert os.wait()[1] == 0, "a child was killed"
print("alive", *sorted(said))
"""


@pytest.mark.parametrize("length", [0, 1, 100, 4096])
@pytest.mark.parametrize("what", CUTS)
@pytest.mark.parametrize("user", [0, ALICE])
def test_a_program_lives_when_another_user_cuts_what_it_maps(
    realm: Realm, devices_kept: None, user: int, what: str, length: int
) -> None:
    file = realm.files(realm.roots, user, 1)[0]
    lives(realm, user, file, lambda: CUTS[what](realm, file, length))


def lives(realm: Realm, user: int, file: Managed, cut: Callable[[], None]) -> None:
    """A program uses a file, somebody cuts what it maps, and it goes on using it."""
    command = as_user(user, [PYTHON, "-S", "-c", f"import os, sys\n{USE}", file.link])
    with talking(command, realm.environment()) as child:
        assert child.line() == "ready\n", child.end().report
        cut()
        said = child.end(LIMIT_S)
    assert said.code == 0, said.report
    errors = {int(word) for word in said.out.split()[1:]}
    # EIO, what a size of nothing gives, or no error: never another.
    assert errors <= {0, 5, 22, 13}, errors


@pytest.mark.parametrize("length", [0, 4096])
def test_a_program_lives_when_a_file_of_its_private_store_that_others_may_write_is_cut(
    realm: Realm, length: int
) -> None:
    store = create_for(realm.fresh("private"), ALICE, shared=False)
    file = realm.files(store, ALICE, 1, 0o666)[0]

    def cut() -> None:
        with contextlib.suppress(PermissionError):  # In a private store they need not reach it.
            cut_ctl(realm, file, length)

    lives(realm, ALICE, file, cut)


def test_a_ctl_or_devices_file_that_is_cut_before_the_open_is_an_error_or_made_anew(
    realm: Realm, devices_kept: None
) -> None:
    for what, cut in CUTS.items():
        file = realm.file(realm.roots)
        cut(realm, file, 100)
        said = realm.python(
            ALICE,
            "try:\n    fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 100, 0); os.pwrite(fd, b'x', 0); "
            "print('used')\n"
            "except OSError as error: print(error.errno)\n",
            file.link,
        )
        assert said.out.strip() in ("used", "5"), f"{what}: {said.report}"


@pytest.mark.parametrize("how", HANDLERS)
def test_a_handler_of_the_program_s_gets_its_own_faults(realm: Realm, how: str) -> None:
    file = realm.file(realm.roots)
    holds(realm.run(0, NATIVE / "faulty", how, realm.place(0) / "own", file.link))


@pytest.mark.parametrize("how", [how for how in HANDLERS if how not in ("mapped", "exec")])
@pytest.mark.parametrize("what", CUTS)
def test_a_handler_of_the_program_s_gets_its_own_faults_and_no_others(
    realm: Realm, devices_kept: None, what: str, how: str
) -> None:
    file = realm.file(realm.roots)
    command = [NATIVE / "faulty", how, realm.place(0) / "own", file.link, "cut"]
    with talking(command, realm.environment()) as child:
        lines: list[str] = []
        while not lines or lines[-1] not in ("ready\n", ""):
            lines.append(child.line())
        CUTS[what](realm, file, 0)
        said = child.end(LIMIT_S)
    holds(replace(said, out="".join(lines) + said.out))


@pytest.mark.parametrize("how", NO_HANDLERS)
def test_a_program_without_a_handler_ends_by_its_own_fault_as_it_does_without_the_library(
    realm: Realm, how: str
) -> None:
    file = realm.file(realm.roots)
    own = realm.place(0) / "own"
    assert execute([NATIVE / "faulty", how, own, realm.place(0) / "missing"], code=None).code in (1, -signal.SIGBUS)
    said = realm.run(0, NATIVE / "faulty", how, own, file.link, code=None)
    assert said.code == -signal.SIGBUS, said.report


@pytest.mark.parametrize("how", ["exec", "spawn", "system", "fork and exec"])
def test_a_signal_that_a_program_ignores_stays_ignored_in_those_that_it_starts(realm: Realm, how: str) -> None:
    file = realm.file(realm.roots)
    show = "grep SigIgn /proc/self/status"
    start = {
        "exec": f"os.execvp('sh', ['sh', '-c', '{show}'])",
        "spawn": f"os.waitpid(os.posix_spawnp('sh', ['sh', '-c', '{show}'], os.environ), 0)",
        "system": f"os.system('{show}')",
        "fork and exec": f"import subprocess; subprocess.run(['sh', '-c', '{show}'], restore_signals=False)",
    }
    program = (
        "import signal\nsignal.signal(signal.SIGBUS, {})\n"
        "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0)\n{}\n"
    )
    for action, ignored in (("signal.SIG_IGN", 1), ("signal.SIG_DFL", 0), ("lambda *_: None", 0)):
        said = realm.python(ALICE, program.format(action, start[how]), file.link).out
        assert int(said.split()[1], 16) >> 6 & 1 == ignored, f"{action}: {said}"


def test_a_store_of_one_user_installs_no_handler(realm: Realm) -> None:
    """As the kernel tells: bit 7 of the caught signals is SIGBUS."""
    store = create_for(realm.fresh("single"), ALICE, shared=False)
    file = realm.files(store, ALICE, 1, 0o600)[0]
    program = (
        "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0)\n"
        "caught = [line for line in open('/proc/self/status') if line.startswith('SigCgt')][0]\n"
        "print(int(caught.split()[1], 16) >> 6 & 1)\n"
    )
    assert realm.python(ALICE, program, file.link).out == "0\n"
