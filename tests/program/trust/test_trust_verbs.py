"""Verbs on stores in which somebody has laid traps: each is refused or walked past, and nobody loses a byte."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile import MALLORY, PYTHON, Realm, as_user, needs_root
from rig import SOAK, execute, stripewise
from trap import CONTENT_BYTES, EVEN, PRECIOUS, SKEWED, Trap

pytestmark = needs_root

ROUNDS = 10_000 if SOAK else 200
#: Longest time that a verb may take to refuse something, with what the machine's other work adds.
REFUSAL_S = 20
RENAME_EXCHANGE = 2
AT_FDCWD = -100


# What is written under a name that somebody could have taken before.


def test_links_under_the_names_of_new_files_lead_no_verb_to_their_victim(trap: Trap) -> None:
    # The old fixed names, and those of the layouts that the next moves publish.
    for name in ("layout.tmp", "sums.tmp", "link.tmp", *(f"layout.{number:016x}" for number in (2, 3, 4, 5))):
        trap.lay(trap.directory / name)
    for name in ("store.bin.tmp", ".store.toml.1.tmp"):
        trap.lay(trap.store.root / name)
    trap.layout(SKEWED)
    stripewise("store", "scrub", trap.link)
    stripewise("store", "rebalance", trap.store.root, code=None)
    with (trap.store.root / "store.toml").open("a") as file:
        file.write("\n# changed\n")
    stripewise("store", "info", trap.store.root)
    trap.untouched()
    trap.is_whole()


def test_what_killed_verbs_were_writing_goes_with_gc_and_strangers_files_do_not(trap: Trap) -> None:
    left = [trap.directory / f".layout.{7:016x}.tmp", trap.store.root / f".store.bin.{8:016x}.tmp"]
    kept = trap.store.base / "targets" / "t0" / "notes.tmp"
    for path in (*left, kept):
        path.write_bytes(b"x")
    stripewise("store", "gc", trap.store.root)
    assert not any(path.exists() for path in left) and kept.exists()
    trap.store.fsck()


# Names in place of parts.


def test_a_link_in_the_trash_is_not_followed_by_gc(trap: Trap) -> None:
    trap.lay(trap.store.root / "trash" / f"{0xFF:016x}", trap.decoys)
    trap.lay(trap.store.root / "trash" / f"{0xFE:016x}", trap.victim)
    said = stripewise("store", "gc", trap.store.root, code=None)
    assert "Traceback" not in said.err, said.report
    trap.untouched()


def test_a_directory_among_what_is_unlinked_keeps_nobody_else_s_trash(trap: Trap) -> None:
    for number in (0x10, 0x20):
        (trap.store.root / "trash" / f"{number:016x}").mkdir()
    (trap.store.root / "trash" / f"{0x10:016x}" / "sub").mkdir()
    stripewise("store", "gc", trap.store.root, code=None)
    assert not (trap.store.root / "trash" / f"{0x20:016x}").exists()


PARTS = ("layout", "ctl", "head", "link", "sums", "object")


@pytest.mark.parametrize("kind", ["link", "hard", "fifo"])
def test_what_stands_in_the_place_of_a_part_is_named_and_never_touched(trap: Trap, kind: str) -> None:
    laid = []
    for part in PARTS:
        file = trap.another(part)
        at = trap.objects(file.name)[0] if part == "object" else trap.store.root / "files" / file.name / part
        victim = trap.store.base / f"victim-{part}"
        victim.write_bytes(PRECIOUS)
        victim.chmod(0o600)
        laid.append((trap.lay(at, victim, kind), victim))
        run_verbs(trap, file.name, trap.store.data / part)
    check = trap.store.fsck("--repair", code=1)
    for at, victim in laid:
        # An export by name needs neither record nor sums, and takes all of the file with it.
        assert not os.path.lexists(at) or str(at) in check.out, check.report
        st = victim.stat()
        assert victim.read_bytes() == PRECIOUS and (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o600), victim
    trap.is_whole()


def run_verbs(trap: Trap, identity: str, link: Path) -> None:
    """Verbs that read and change a file, in one process; each ends at once, well or in one clear error."""
    program = (
        "import json, sys, time\n"
        "from stripewise import errors, native\n"
        "root, identity, link = sys.argv[1:]\n"
        "layout = json.dumps({'regions': [{'start': 0, 'len': 65536, 'stripes': [[1, 4096]]}]})\n"
        "for name, *rest in (['store_files', root], ['store_layout', root, identity],\n"
        "        ['store_scrub', root, [identity]], ['store_apply', root, identity, layout], ['store_gc', root],\n"
        "        ['store_export', root, link], ['store_upgrade', root], ['store_devices', root]):\n"
        "    try: native.call(name, *rest)\n"
        "    except errors.StoreError: pass\n"
    )
    execute([sys.executable, "-c", program, trap.store.root, identity, link], timeout_s=REFUSAL_S)


VERBS = (
    "import json, sys\n"
    "from pathlib import Path\n"
    "from stripewise.errors import StripewiseError\n"
    "from stripewise.store import Store\n"
    "said = []\n"
    "for verb in (Store.files, Store.devices, lambda s: s.fsck(False), Store.programs):\n"
    "    try: verb(Store(Path(sys.argv[1])))\n"
    "    except StripewiseError as error: said.append(str(error))\n"
    "print(json.dumps(said))\n"
)


def refusals(trap: Trap) -> list[str]:
    """The errors of verbs that open the store, in one process that may not hang."""
    return list(json.loads(execute([sys.executable, "-c", VERBS, trap.store.root], timeout_s=REFUSAL_S).out))


def test_what_stands_in_the_place_of_a_common_part_ends_a_verb_at_once(trap: Trap) -> None:
    for name in ("store.toml", "store.bin", "run/session.lock", "run/devices", "run/mover.lock", "run", "files"):
        at, aside = trap.store.root / name, trap.store.base / "aside"
        for kind in ("link", "fifo"):
            at.rename(aside)
            trap.lay(at, trap.decoys if aside.is_dir() else trap.victim, kind)
            said = refusals(trap)
            assert len(said) == (4 if name.startswith("store.") else len(said)), said
            assert all(name.split("/")[0] in error for error in said), said
            at.unlink(missing_ok=True)
            aside.rename(at)
    assert refusals(trap) == []
    trap.untouched()


def test_a_part_of_many_sparse_gigabytes_is_an_error_at_once(trap: Trap) -> None:
    for name in ("store.toml", "store.bin"):
        at = trap.store.root / name
        size = at.stat().st_size
        os.truncate(at, 64 << 30)
        said = refusals(trap)
        assert len(said) == 4 and all(name in error for error in said), said
        os.truncate(at, size)
    for part in PARTS:
        file = trap.another(part)
        at = trap.objects(file.name)[0] if part == "object" else trap.store.root / "files" / file.name / part
        at.touch()
        os.truncate(at, 64 << 30)
        run_verbs(trap, file.name, trap.store.data / part)
    assert refusals(trap) == []


def test_a_mount_over_a_target_is_noticed(trap: Trap) -> None:
    target = trap.store.base / "targets" / "t2"
    mounted = execute(["mount", "--bind", trap.decoys, target], code=None)
    if mounted.code != 0:
        pytest.skip(f"not run: this system mounts nothing here ({mounted.err.strip()})")
    try:
        said = trap.store.fsck("--repair", code=1)
        assert "stripewise-target" in said.out, said.report
        stripewise("store", "gc", trap.store.root, code=1)
    finally:
        execute(["umount", target])
    trap.untouched()
    trap.store.fsck("--repair", code=None)
    trap.is_whole()


# Races.


def exchange(one: Path, other: Path) -> None:
    """Makes two names change places."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[Callable[[], int]]:
    """Two names change places again and again; afterwards they are where they were. Yields how often so far."""
    done = threading.Event()
    count = [0]

    def swap() -> None:
        while not done.is_set() or count[0] % 2:
            exchange(one, other)
            count[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("what", ["directory", "target"])
def test_a_directory_that_changes_places_with_a_link_leads_no_verb_out_of_the_store(trap: Trap, what: str) -> None:
    if what == "directory":
        at, aside = trap.directory, trap.store.root / "aside"
    else:
        at, aside = trap.store.base / "targets" / "t0", trap.store.base / "targets" / "aside"
        for name in ("stripewise-target", f"{trap.identity}.data"):
            (trap.decoys / name).write_bytes(PRECIOUS)
        trap.before = trap.seen()
    aside.symlink_to(trap.decoys)
    with swapping(at, aside) as count:
        while count() < ROUNDS * 10:
            run_verbs_once(trap)
    aside.unlink()
    trap.untouched()
    trap.store.fsck("--repair", code=None)
    trap.is_whole()


def run_verbs_once(trap: Trap) -> None:
    program = (
        "import json, sys\n"
        "from stripewise import native\n"
        "root, identity = sys.argv[1:]\n"
        "for turn in range(10):\n"
        "  stripes = [[turn % 4, 4096], [(turn + 1) % 4, 8192]]\n"
        "  layout = json.dumps({'regions': [{'start': 0, 'len': 65536, 'stripes': stripes}]})\n"
        "  for name, *rest in (['store_fsck', root], ['store_scrub', root, [identity]],\n"
        "        ['store_apply', root, identity, layout], ['store_gc', root]):\n"
        "    try: native.call(name, *rest)\n"
        "    except Exception as error: assert 'Error' in type(error).__name__\n"
    )
    execute([sys.executable, "-c", program, trap.store.root, trap.identity])


#: Makes the objects of a file before anybody else does, and says which of them came into use.
MAKE_FIRST = (
    "import os, sys, time\n"
    "held, names = {}, [f'{t}/{sys.argv[1]}.data{s}' for t in sys.argv[2:] for s in ('', '1')]\n"
    "end = time.monotonic() + 100\n"
    "print('ready', flush=True)\n"
    "while time.monotonic() < end and not os.path.exists('/proc/self/fd/0/none'):\n"
    "  for name in names:\n"
    "    try: held[os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)] = name\n"
    "    except OSError: pass\n"
    "    if len(held) > 500:\n"
    "      for fd in list(held):\n"
    "        if os.pread(fd, 1, 0) or os.fstat(fd).st_uid != os.getuid(): print('SEEN', held[fd], flush=True)\n"
    "        os.close(fd); del held[fd]\n"
    "  if os.getppid() == 1: break\n"
)


def test_whoever_makes_an_object_first_sees_nothing_of_what_is_written(trap: Trap) -> None:
    # Mallory's own race is for a file of root's: his descriptor must never be that of an object in use.
    private = trap.store.data / "private"
    execute(["dd", f"if={trap.store.base / 'source'}", f"of={private}", "bs=1M"], trap.store.environment())
    identity = os.readlink(private).rsplit("/", 1)[1]
    targets = sorted((trap.store.base / "targets").iterdir())
    racer = subprocess.Popen(
        as_user(MALLORY, [PYTHON, "-c", MAKE_FIRST, identity, *targets]), stdout=subprocess.PIPE, text=True
    )
    try:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        plan = trap.store.base / "plan.json"
        for turn in range(100 if SOAK else 4):
            trap.store.plan(plan, private, SKEWED if turn % 2 == 0 else EVEN, CONTENT_BYTES)
            stripewise("apply", plan, "--store", trap.store.root, code=None)
    finally:
        racer.kill()
        seen = racer.stdout.read() if racer.stdout else ""
        racer.wait()
    assert "SEEN" not in seen, seen
    for path in (trap.store.base / "targets").glob(f"*/{identity}.data*"):
        if path.stat().st_uid == MALLORY:
            assert path.stat().st_size == 0
            path.unlink()
    trap.store.fsck("--repair", code=None)
    assert execute(["cat", private], trap.store.environment()).code == 0
    said = execute(["cmp", private, trap.store.base / "source"], trap.store.environment())
    assert said.code == 0


@pytest.mark.parametrize("parent", ["swapped", "steady"])
def test_adopting_in_a_stranger_s_directory_changes_nothing_elsewhere(trap: Trap, parent: str) -> None:
    # What root adopts for Mallory: the directory, or the file in it, turns into something of root's meanwhile.
    place = trap.store.base / "place"
    place.mkdir()
    (place / "a").write_bytes(b"mine")
    (place / "trick").symlink_to(trap.victim)
    for path in (place, place / "a"):
        os.chown(path, MALLORY, MALLORY)
    if parent == "swapped":
        one, other = place, trap.store.base / "swap"
        other.symlink_to(trap.decoys)
        os.lchown(other, MALLORY, MALLORY)
    else:
        one, other = place / "a", place / "trick"
    program = (
        "import sys\n"
        "from stripewise import native\n"
        "for turn in range(40):\n"
        "  root, path = sys.argv[1:]\n"
        "  for name, *rest in (['store_adopt', root, path, None, True], ['store_export', root, path]):\n"
        "    try: native.call(name, *rest)\n"
        "    except Exception as error: assert 'Error' in type(error).__name__\n"
    )
    with swapping(one, other) as count:
        while count() < ROUNDS:
            execute([sys.executable, "-c", program, trap.store.root, place / "a"])
    if parent == "swapped":
        (trap.store.base / "swap").unlink()
    trap.untouched()
    assert {path.name for path in trap.decoys.iterdir()} == {row[0] for row in trap.before[2:]}


def test_a_store_bin_that_root_compiles_anew_is_its_owner_s(realm: Realm) -> None:
    root = realm.mallorys.root
    compiled = root / "store.bin"
    before, content = compiled.lstat(), compiled.read_bytes()
    compiled.unlink()
    assert "compiled anew from store.toml" in realm.mallorys.fsck("--repair").out
    now = compiled.lstat()
    assert (now.st_uid, now.st_gid, now.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert compiled.read_bytes() == content
    # A link in its place is not followed.
    treasure = realm.base / "treasure"
    treasure.write_bytes(content)
    compiled.unlink()
    compiled.symlink_to(treasure)
    stamp = treasure.stat()
    realm.mallorys.fsck("--repair", code=None)
    assert treasure.stat() == stamp and treasure.read_bytes() == content
