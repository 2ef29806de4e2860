"""Verbs on stores in which somebody has laid traps: each is refused or walked past, and nobody loses a byte."""

from __future__ import annotations

import ctypes
import hashlib
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
from rig import SOAK, Maker, Result, Store, execute, region, stripes, stripewise

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="not run: laying another user's traps needs root; make soak runs it"
)

#: Users without a name, who own nothing.
MALLORY, ALICE, GROUP = 1003, 1004, 3000
PRECIOUS = b"precious\n" * 100
ROUNDS = 10_000 if SOAK else 200
#: Longest time that a verb may take to refuse something, with what the machine's other work adds.
REFUSAL_S = 20
CONTENT_BYTES = 300_000
RENAME_EXCHANGE = 2
AT_FDCWD = -100
SKEWED = [region(0, 64, stripes(("t3", 64))), region(64, 1024, stripes(("t1", 8), ("t2", 24)))]
EVEN = [region(0, 1024, stripes(("t0", 64), ("t1", 64), ("t2", 64), ("t3", 64)))]


class Trap:
    """A shared store of root's with a file of Mallory's in it, and things of root's that must stay as they are."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.content = os.urandom(CONTENT_BYTES)
        source = store.base / "source"
        source.write_bytes(self.content)
        store.data.chmod(0o777)
        self.link = store.data / "f"
        self.as_mallory("dd", f"if={source}", f"of={self.link}", "bs=1M")
        self.identity = os.readlink(self.link).rsplit("/", 1)[1]
        self.directory = store.root / "files" / self.identity
        self.victim = store.base / "victim"
        self.victim.write_bytes(PRECIOUS)
        self.victim.chmod(0o600)
        self.decoys = store.base / "decoys"
        self.decoys.mkdir(mode=0o700)
        for name in ("layout", "head", "ctl", "link", "sums", "a", "b"):
            (self.decoys / name).write_bytes(PRECIOUS)
        self.before = self.seen()

    def as_mallory(self, *command: str | Path) -> Result:
        who = ["setpriv", f"--reuid={MALLORY}", f"--regid={MALLORY}", f"--groups={GROUP}"]
        return execute([*who, *command], self.store.environment(), cwd=Path("/"))

    def seen(self) -> list[tuple[object, ...]]:
        """What root has there: names, bytes, owners, modes."""
        rows: list[tuple[object, ...]] = []
        for path in (self.victim, self.decoys, *sorted(self.decoys.iterdir())):
            st = path.lstat()
            rows.append((path.name, st.st_mode, st.st_uid, st.st_gid, path.read_bytes() if path.is_file() else b""))
        return rows

    def untouched(self) -> None:
        assert self.seen() == self.before

    def lay(self, at: Path, to: Path | None = None, kind: str = "link") -> Path:
        """A trap of Mallory's under a name, in place of what is there."""
        at.unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(at, 0o666)
        elif kind == "hard":
            os.link(to or self.victim, at)
            return at
        else:
            at.symlink_to(to or self.victim)
        os.lchown(at, MALLORY, MALLORY)
        return at

    def another(self, name: str) -> Path:
        """One more file of Mallory's; its directory in the store."""
        link = self.store.data / name
        self.as_mallory("dd", f"if={self.store.base / 'source'}", f"of={link}", "bs=1M")
        return self.store.root / "files" / os.readlink(link).rsplit("/", 1)[1]

    def objects(self, identity: str = "") -> list[Path]:
        return sorted((self.store.base / "targets").glob(f"*/{identity or self.identity}.data*"))

    def layout(self, regions: list[dict[str, object]], code: int | None = 0) -> Result:
        plan = self.store.plan(self.store.base / "plan.json", self.link, regions, CONTENT_BYTES)
        return stripewise("apply", plan, "--store", self.store.root, code=code)

    def is_whole(self) -> None:
        assert self.as_mallory("sha1sum", self.link).out.split()[0] == hashlib.sha1(self.content).hexdigest()


@pytest.fixture
def trap(make_store: Maker) -> Trap:
    store = make_store(layout="striped", shared=True)
    store.check_at_end = False
    return Trap(store)


def one_clear_error(result: Result, *words: str) -> None:
    """A failure of one line, not a traceback."""
    assert result.code not in (0, None) and "Traceback" not in result.err, result.report
    lines = result.err.strip().splitlines()
    assert lines and all(word in result.err for word in words), result.report


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
        "from stripewise import native\n"
        "root, identity, link = sys.argv[1:]\n"
        "layout = json.dumps({'regions': [{'start': 0, 'len': 65536, 'stripes': [[1, 4096]]}]})\n"
        "for name, *rest in (['store_files', root], ['store_layout', root, identity],\n"
        "        ['store_scrub', root, [identity]], ['store_apply', root, identity, layout], ['store_gc', root],\n"
        "        ['store_export', root, link], ['store_upgrade', root], ['store_devices', root]):\n"
        "    try: native.call(name, *rest)\n"
        "    except Exception as error: assert type(error).__name__ in ('StoreError', 'InUseError'), error\n"
    )
    execute([sys.executable, "-c", program, trap.store.root, identity, link], timeout_s=REFUSAL_S)


VERBS = (
    "import json, sys\n"
    "from pathlib import Path\n"
    "from stripewise.errors import StripewiseError\n"
    "from stripewise.store import Store\n"
    "said = []\n"
    "for verb in (Store.files, Store.devices, lambda s: s.fsck(False, False), Store.programs):\n"
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


# Who owns what.


def test_an_object_that_holds_somebody_s_bytes_is_given_to_nobody(trap: Trap) -> None:
    # Root's bytes under the name of Mallory's object: repair must not make them his.
    at = trap.objects()[0]
    at.unlink()
    at.write_bytes(PRECIOUS * 100)
    at.chmod(0o600)
    said = trap.store.fsck("--repair", code=1)
    assert "belongs to uid 0" in said.out and at.stat().st_uid == 0, said.report
    assert at.read_bytes() == PRECIOUS * 100
    one_clear_error(trap.layout(SKEWED, code=None), str(at))


def test_an_empty_object_that_a_killed_mover_left_to_root_is_given_to_the_file_s_owner(trap: Trap) -> None:
    small = trap.store.data / "small"
    trap.as_mallory("sh", "-c", f"printf x > {small}")
    identity = os.readlink(small).rsplit("/", 1)[1]
    empty = [p for p in (trap.store.base / "targets").glob(f"*/{identity}.data") if p.stat().st_blocks == 0]
    assert empty
    os.chown(empty[0], 0, 0)
    trap.store.fsck(code=1)
    trap.store.fsck("--repair")
    assert empty[0].stat().st_uid == MALLORY
    trap.store.fsck()


def test_another_member_s_object_is_not_read_as_one_s_own(trap: Trap) -> None:
    # Under the name of an object of Mallory's file lies one of Alice's, and root exports that file.
    at = trap.objects()[0]
    at.unlink()
    at.write_bytes(PRECIOUS)
    os.chown(at, ALICE, ALICE)
    one_clear_error(stripewise("store", "export", trap.link, code=None), str(at))
    assert trap.link.is_symlink()


def test_a_directory_of_a_file_that_is_a_stranger_s_is_refused_and_mended(trap: Trap) -> None:
    os.chown(trap.directory, ALICE, ALICE)
    said = trap.store.fsck(code=1)
    assert str(trap.directory) in said.out, said.report
    trap.store.fsck("--repair")
    assert trap.directory.stat().st_uid == MALLORY
    trap.store.fsck()


def test_a_lock_that_a_member_made_his_own_is_replaced_by_the_check(trap: Trap) -> None:
    lock = trap.store.root / "run" / "session.lock"
    os.chown(lock, MALLORY, MALLORY)
    trap.store.fsck("--repair", code=None)
    assert lock.stat().st_uid == 0 and stat.S_IMODE(lock.stat().st_mode) == 0o666
    trap.store.fsck()


def test_another_user_s_target_is_not_taken_for_the_store_s(trap: Trap) -> None:
    # Mallory's store claims Alice's target: same uuid, but the identity file there is hers.
    identity = trap.store.base / "targets" / "t0" / "stripewise-target"
    os.chown(identity, ALICE, ALICE)
    said = trap.store.fsck(code=1)
    assert "stripewise-target" in said.out, said.report
    one_clear_error(stripewise("store", "gc", trap.store.root, code=None), "t0")


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


def test_whoever_makes_an_object_first_sees_nothing_of_what_is_written(trap: Trap) -> None:
    # Mallory's own race is for a file of root's: his descriptor must never be that of an object in use.
    private = trap.store.data / "private"
    execute(["dd", f"if={trap.store.base / 'source'}", f"of={private}", "bs=1M"], trap.store.environment())
    identity = os.readlink(private).rsplit("/", 1)[1]
    racer = subprocess.Popen(
        [
            *("setpriv", f"--reuid={MALLORY}", f"--regid={MALLORY}", "--clear-groups", "/usr/bin/python3", "-c"),
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
            "  if os.getppid() == 1: break\n",
            identity,
            *(str(path) for path in (trap.store.base / "targets").iterdir()),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        plan = trap.store.base / "plan.json"
        moved = 0
        for turn in range(100 if SOAK else 4):
            trap.store.plan(plan, private, SKEWED if turn % 2 == 0 else EVEN, CONTENT_BYTES)
            moved += stripewise("apply", plan, "--store", trap.store.root, code=None).code == 0
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


# Whose stores a verb follows.


@pytest.fixture
def hostile(trap: Trap) -> Iterator[Trap]:
    """The store is Mallory's, and root finds a link into it."""
    for path in (trap.store.root, *trap.store.root.rglob("*"), *(trap.store.base / "targets").rglob("*")):
        os.lchown(path, MALLORY, MALLORY)
    yield trap


@pytest.fixture
def home(trap: Trap) -> dict[str, str]:
    place = trap.store.base / "home"
    place.mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STRIPEWISE_", "XDG_"))}
    return {**environment, "HOME": str(place)}


def test_a_link_into_another_user_s_store_is_followed_once_the_store_is_listed(
    hostile: Trap, home: dict[str, str]
) -> None:
    verbs = [["store", "cat", hostile.link], ["store", "export", hostile.link, "--to", hostile.store.base / "out"]]
    for verb in verbs:
        said = stripewise(*verb, env=home, code=None)
        one_clear_error(said, f"stripewise store trust {hostile.store.root}", f"uid {MALLORY}")
    assert hostile.store.run("true").code == 0, "a store that is named is used"
    said = stripewise("store", "trust", hostile.store.root, env=home)
    assert f"uid {MALLORY}" in said.out
    assert stripewise("store", "trust", "--list", env=home).out == f"{hostile.store.root}\n"
    assert (Path(home["HOME"]) / ".config/stripewise/trust").stat().st_mode & 0o022 == 0
    stripewise(*verbs[1], env=home)
    assert (hostile.store.base / "out").read_bytes() == hostile.content
    stripewise("store", "trust", "--remove", hostile.store.root, env=home)
    assert stripewise("store", "trust", "--list", env=home).out == ""
    assert stripewise(*verbs[0], env=home, code=None).code != 0


@pytest.mark.parametrize(
    ("name", "word"), [("relative/store", "absolute"), ("/no/such/store", "does not exist"), ("/usr", "no store")]
)
def test_only_stores_that_are_there_are_listed(home: dict[str, str], name: str, word: str) -> None:
    one_clear_error(stripewise("store", "trust", name, env=home, code=None), word)
    assert stripewise("store", "trust", "--list", env=home).out == ""


def test_all_stores_below_a_directory_are_listed_by_one_entry(hostile: Trap, home: dict[str, str]) -> None:
    stripewise("store", "trust", f"{hostile.store.base}/*", env=home)
    stripewise("store", "export", hostile.link, "--to", hostile.store.base / "out", env=home)
    assert (hostile.store.base / "out").read_bytes() == hostile.content


def test_the_list_of_another_user_counts_for_nothing(hostile: Trap, home: dict[str, str]) -> None:
    stripewise("store", "trust", hostile.store.root, env=home)
    os.chown(Path(home["HOME"]) / ".config/stripewise/trust", MALLORY, MALLORY)
    assert stripewise("store", "cat", hostile.link, env=home, code=None).code != 0


@pytest.mark.parametrize("log", [False, True])
def test_a_run_tells_at_its_end_which_stores_were_refused(
    hostile: Trap, home: dict[str, str], make_store: Maker, log: bool
) -> None:
    own = make_store(layout="one")
    environment = {**home, "STRIPEWISE_LOG": str(hostile.store.base / "log")} if log else home
    said = stripewise("run", "--store", own.root, "--", "cat", hostile.link, code=None, env=environment)
    assert said.code == 1 and "Permission denied" in said.err, said.report
    assert "was not used" in said.err and "stripewise store trust" in said.err, said.report
    stripewise("store", "trust", hostile.store.root, env=home)
    said = stripewise("run", "--store", own.root, "--", "sha1sum", hostile.link, env=environment)
    assert "was not used" not in said.err, said.report


def test_the_doctor_says_whether_links_into_a_store_are_followed(hostile: Trap, home: dict[str, str]) -> None:
    said = stripewise("doctor", "--store", hostile.store.root, env=home, code=None)
    assert "refused" in said.out and "stripewise store trust" in said.out, said.report
    stripewise("store", "trust", hostile.store.root, env=home)
    assert "are followed" in stripewise("doctor", "--store", hostile.store.root, env=home, code=None).out


# Modes and the run directory.


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("umask", ["000", "077"])
def test_what_a_new_store_lets_others_do_depends_on_sharing_and_not_on_the_umask(
    scratch: Path, shared: bool, umask: str
) -> None:
    targets = scratch / "targets"
    cluster = scratch / "cluster.toml"
    cluster.write_text(
        "".join(
            f'[[target]]\nname = "t{n}"\nclass = "hdd"\nkind = "dir"\npath = "{targets / f"t{n}"}"\n'
            "startup_read_s = 0.0\nstartup_write_s = 0.0\nper_byte_read_s = 1e-9\nper_byte_write_s = 1e-9\n"
            for n in range(2)
        )
    )
    targets.mkdir()
    words = f"umask {umask}; exec {sys.executable} -m stripewise store create {scratch}/store --cluster {cluster} "
    execute(["sh", "-c", words + ("--shared" if shared else "")])
    root = scratch / "store"
    everybody = {p for p in (root, *root.rglob("*"), *targets.glob("*")) if p.lstat().st_mode & 0o002}
    if not shared:
        assert not everybody
        return
    common = {root / "run" / name for name in ("session.lock", "mover.lock", "devices")}
    dirs = {root / name for name in ("files", "trash", "run")} | set(targets.glob("*"))
    assert everybody == common | dirs
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o1777 for path in dirs)
    assert all((target / "stripewise-target").stat().st_mode & 0o004 for target in targets.glob("*"))


def test_the_run_directory_is_there_before_anybody_can_own_it(trap: Trap) -> None:
    run = trap.store.root / "run"
    assert {path.name for path in run.iterdir()} >= {"session.lock", "mover.lock", "devices"}
    assert all((run / name).stat().st_uid == 0 for name in ("session.lock", "mover.lock", "devices"))
    assert run.stat().st_mode & 0o1777 == 0o1777


def test_a_target_in_which_everybody_may_replace_everybody_s_files_is_refused(trap: Trap) -> None:
    (trap.store.base / "targets" / "t1").chmod(0o777)
    said = trap.store.fsck(code=1)
    assert "everybody may replace" in said.out and "chmod" in said.out, said.report
    trap.store.root.chmod(0o777)
    one_clear_error(stripewise("store", "ls", trap.store.root, code=None), "everybody may replace")


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


def test_a_file_in_a_setgid_directory_moves_and_keeps_its_group(trap: Trap) -> None:
    place = trap.store.data / "project"
    place.mkdir()
    os.chown(place, MALLORY, GROUP)
    place.chmod(0o2775)
    trap.as_mallory("dd", f"if={trap.store.base / 'source'}", f"of={place / 'g'}", "bs=1M")
    identity = os.readlink(place / "g").rsplit("/", 1)[1]
    plan = trap.store.plan(trap.store.base / "plan.json", place / "g", SKEWED, CONTENT_BYTES)
    stripewise("apply", plan, "--store", trap.store.root)
    for path in (trap.store.base / "targets").glob(f"*/{identity}.data*"):
        assert (path.stat().st_uid, path.stat().st_gid) == (MALLORY, GROUP)
    trap.store.fsck()
