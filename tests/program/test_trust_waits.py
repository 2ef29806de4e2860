"""Who waits for whom: a member of a shared store may hold others up for a while, a stranger not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    HOLDING,
    LIES,
    MALLORY,
    Realm,
    acting_as,
    create_for,
    ctl_words,
    make_realm,
    needs_root,
    run_dir,
    write_words,
)

pytestmark = needs_root

#: Kinds of service that a member may keep others from for as long as docs/security.md says, and so not for ever.
HOLDS_UP_S = 45.0


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    with make_realm() as made:
        yield made


def test_writers_of_a_file_that_its_owner_holds_up_get_an_error_in_the_end(realm: Realm) -> None:
    """All at once, since they wait."""
    files = {}
    for lie in HOLDING:
        files[lie] = realm.file(realm.roots)
        write_words(files[lie].dir / "ctl", ctl_words(**LIES[lie]))
    program = (
        "import signal, time\n"
        "children = {}\n"
        "for link in sys.argv[1:]:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        try: fd = os.open(link, os.O_RDWR); os.pwrite(fd, b'x', 0)\n"
        "        except OSError: pass\n"
        "        os._exit(0)\n"
        "    children[pid] = link\n"
        f"end = time.monotonic() + {HOLDS_UP_S}\n"
        "while children and time.monotonic() < end:\n"
        "    pid, status = os.waitpid(-1, os.WNOHANG)\n"
        "    if pid: assert children.pop(pid) and status == 0\n"
        "    else: time.sleep(0.05)\n"
        "for pid in children: os.kill(pid, signal.SIGKILL)\n"
        "print(*children.values())\n"
    )
    hung = realm.python(ALICE, program, *(file.link for file in files.values()), timeout_s=HOLDS_UP_S + 10).out.split()
    assert not hung, f"writers hang for ever: {[lie for lie, file in files.items() if str(file.link) in hung]}"


@pytest.mark.parametrize("part", ["ctl", "layout", "head", "link", "object", "session.lock", "devices", "mover.lock"])
def test_a_lock_that_a_stranger_takes_keeps_nobody_from_a_private_file(realm: Realm, part: str) -> None:
    """A lock on a plain file keeps nobody from reading or writing it."""
    store = create_for(realm.fresh("locked"), ALICE, shared=False)
    file = realm.files(store, ALICE, 1, 0o600)[0]
    path = run_dir(store.root) / part if part in ("session.lock", "devices", "mover.lock") else file.part(part)
    with acting_as(MALLORY):
        try:
            fd = os.open(path, os.O_RDONLY)
        except (PermissionError, FileNotFoundError):
            return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        program = (
            "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0); os.pwrite(fd, b'x', 0); "
            "os.ftruncate(fd, 100); os.unlink(sys.argv[1])"
        )
        realm.python(ALICE, program, file.link)
    finally:
        os.close(fd)


#: Programs wait for these two without a limit: docs/security.md, "What is left".
WITHOUT_LIMIT = pytest.mark.xfail(strict=True, reason="a member's exclusive lock stops opens: see docs/security.md")


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("ctl", marks=WITHOUT_LIMIT),
        "layout",
        pytest.param("session.lock", marks=WITHOUT_LIMIT),
        "mover.lock",
        "slot",
    ],
)
def test_a_lock_that_a_member_holds_delays_and_does_not_stop(realm: Realm, part: str) -> None:
    """What he may delay is moves, truncates and appends: so opens, reads and writes go on."""
    file = realm.files(realm.roots, ALICE, 1, 0o600)[0]
    if part == "slot":
        path = (
            run_dir(realm.roots.root) / f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}.1-{1:016x}.slot"
        )
        with acting_as(MALLORY):
            path.write_bytes(b"SWSLOT01" + bytes(65528))
    else:
        path = run_dir(realm.roots.root) / part if part.endswith(".lock") else file.part(part)
    with acting_as(MALLORY):
        fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        program = (
            "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0); os.pwrite(fd, b'x', 0); os.stat(sys.argv[1])"
        )
        realm.python(ALICE, program, file.link)
    finally:
        os.close(fd)
