"""What the tests of docs/security.md share: users, a treasure that nobody but its owner may touch, stores of root and
of an attacker, and programs that touch a name in every way that there is.

The tests are root and make their users; an attacker's steps are taken with his rights (`acting_as`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rig import LIBRARY, Command, Result, Store, create_store, dirs, execute

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: making users needs root")

#: The attacker, and somebody who uses the machine as he does. Neither has a name or owns anything.
MALLORY, ALICE = 1002, 1003
#: Owners that the kernel cannot name.
OVERFLOW = 65534
#: A group of both; one of Alice and a colleague.
GROUP = 3000
#: Nothing that an attacker has prepared may hold a program up for longer.
LIMIT_S = 10.0
TREASURE = b"TREASURE" * 40_000
PYTHON = "/usr/bin/python3"


def become(user: int, groups: tuple[int, ...]) -> None:
    """Take a user's rights, of root's that are kept."""
    os.seteuid(0)
    os.setgroups(groups)
    os.setegid(user)
    os.seteuid(user)


@contextlib.contextmanager
def acting_as(user: int, groups: tuple[int, ...] = ()) -> Iterator[None]:
    """This process's file accesses with a user's rights."""
    before = os.geteuid(), tuple(os.getgroups())
    become(user, groups)
    try:
        yield
    finally:
        become(*before)


@dataclass
class Treasure:
    """A file of one user's that nobody else may read, write or change in any other way."""

    path: Path
    before: os.stat_result = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.path.lstat()

    def check(self) -> None:
        """It is as it was."""
        now = self.path.lstat()
        for what in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns"):
            was, is_now = getattr(self.before, what), getattr(now, what)
            assert was == is_now, f"{what} of another's file was {was} and is {is_now}"
        assert self.path.read_bytes() == TREASURE, "another's file was overwritten"


@dataclass
class Managed:
    """A managed file of the attacker's."""

    link: Path
    store: Path
    targets: list[Path]

    @property
    def id(self) -> str:
        return os.readlink(self.link)[-16:]

    @property
    def dir(self) -> Path:
        """Its parts."""
        return self.store / "files" / self.id

    @property
    def objects(self) -> list[Path]:
        """Its objects, one per target."""
        return [path for target in self.targets for path in target.glob(f"{self.id}.*")]

    @property
    def object(self) -> Path:
        """The one with the first bytes."""
        return max(self.objects, key=lambda path: path.lstat().st_size)

    def part(self, name: str) -> Path:
        return self.object if name == "object" else self.dir / name


def run_dir(store: Path) -> Path:
    """Where the processes that use a store meet."""
    return store / "run"


@dataclass
class Realm:
    """A shared store of root's with a directory where everybody may make files, and a store of the attacker's."""

    base: Path
    roots: Store
    mallorys: Store
    log: Path
    _preload: str
    _spare: dict[str, list[Managed]] = field(default_factory=dict)
    _made: int = 0

    def environment(self, **more: str | Path) -> dict[str, str]:
        """A program's under the library, started with no store."""
        return {
            "PATH": os.environ["PATH"],
            "LD_PRELOAD": self._preload,
            "STRIPEWISE_LOG": str(self.log),
            **{name: str(value) for name, value in more.items()},
        }

    def run(
        self,
        user: int,
        *command: str | Path | bytes,
        groups: str = "",
        code: int | None = 0,
        timeout_s: float = LIMIT_S,
        stdin: str | None = None,
        **more: str | Path,
    ) -> Result:
        """A program under the library as a user."""
        return execute(
            as_user(user, command, groups),
            self.environment(**more),
            code,
            cwd=Path("/"),
            timeout_s=timeout_s,
            stdin=stdin,
        )

    def python(self, user: int, program: str, *words: str | Path, **more: str | Path) -> Result:
        """A Python program as a user."""
        return self.run(user, PYTHON, "-S", "-c", f"import os, sys\n{program}", *words, **more)

    def touch(self, user: int, link: Path, **more: str | Path) -> dict[str, object]:
        """What a user gets who touches a name in every way, and then removes it; see `TOUCH`."""
        return dict(json.loads(self.python(user, TOUCH, link, **more).out))

    def log_lines(self, word: str) -> list[str]:
        """What the library has said."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if word in line]

    def fresh(self, name: str) -> Path:
        """A name that nothing has."""
        self._made += 1
        return self.base / f"{name}{self._made}"

    def place(self, owner: int, name: str = "place") -> Path:
        """A directory of a user's that everybody may enter."""
        path = self.fresh(name)
        path.mkdir()
        os.chown(path, owner, owner)
        return path

    def treasure(self, owner: int = 0) -> Treasure:
        """A new one."""
        path = self.place(owner, "vault") / "treasure"
        path.write_bytes(TREASURE)
        path.chmod(0o600)
        os.chown(path, owner, owner)
        return Treasure(path)

    def files(self, store: Store, owner: int, count: int, mode: int = 0o666) -> list[Managed]:
        """Managed files of a user's, striped over all targets."""
        first = self.fresh("file").name
        program = (
            "os.umask(0)\n"
            "for i in range(int(sys.argv[2])):\n"
            "    fd = os.open(f'{sys.argv[1]}-{i}', os.O_CREAT | os.O_EXCL | os.O_WRONLY, int(sys.argv[3]))\n"
            "    os.write(fd, b'attacker' * 40000); os.close(fd)\n"
        )
        self.python(owner, program, store.data / first, str(count), str(mode), STRIPEWISE_STORE=store.root)
        return [Managed(store.data / f"{first}-{i}", store.root, target_paths(store)) for i in range(count)]

    def file(self, store: Store, owner: int = MALLORY) -> Managed:
        """A new one; twenty are made at a time."""
        spare = self._spare.setdefault(f"{store.root} {owner}", [])
        if not spare:
            spare += self.files(store, owner, 20)
        return spare.pop()

    def link_to(self, place: Path, store: str | Path, name: str = "", owner: int = MALLORY) -> Path:
        """A link of the attacker's to a file of a store."""
        link = place / f"link{len(list(place.iterdir()))}"
        link.symlink_to(f"/stripewise:{store}/{name or '00000000000000aa'}")
        os.chown(link, owner, owner, follow_symlinks=False)
        return link

    def copied(self, file: Managed) -> Managed:
        """A store of the attacker's that shares configuration and targets with the file's, and a link to its copy."""
        made = self.base / "nursery" / self.fresh("store").name
        made.mkdir()
        for name in ("store.bin", "store.toml"):
            shutil.copy(file.store / name, made / name)
        for name in ("files", "trash", "run"):
            (made / name).mkdir()
            (made / name).chmod(0o1777)
        shutil.copytree(file.dir, made / "files" / file.id)
        for path in (file.store / "run").iterdir():
            if path.is_file() and path.suffix != ".slot":
                shutil.copy(path, made / "run" / path.name)
        link = self.link_to(self.place(MALLORY), made, file.id)
        record_link(link, made / "files" / file.id)
        chown_all(made, MALLORY)
        return Managed(link, made, file.targets)


def record_link(link: Path, parts: Path) -> None:
    """What the library writes down of the link that is a file's name."""
    st = link.lstat()
    (parts / "link").write_text(f"{st.st_dev} {st.st_ino} {link}\n")


def as_user(user: int, command: Command, groups: str = "") -> list[str | Path | bytes]:
    """A command as a user."""
    who = [f"--reuid={user}", f"--regid={user}", f"--groups={groups}" if groups else "--clear-groups"]
    return ["setpriv", *who, *command]


def target_paths(store: Store) -> list[Path]:
    return [store.base / "targets" / target.name for target in store.targets]


def chown_all(path: Path, owner: int) -> None:
    """A whole tree becomes a user's."""
    for directory, names, files in os.walk(path):
        for name in (*names, *files, "."):
            os.chown(os.path.join(directory, name), owner, owner, follow_symlinks=False)


def create_for(base: Path, owner: int, shared: bool = True, targets: int = 2, kind: str = "dir") -> Store:
    """A store of a user's, as he would make it himself."""
    made = [
        replace(target, kind=kind, per_byte_s=2e-7 if kind == "emulated" else target.per_byte_s)
        for target in dirs(targets)
    ]
    store = create_store(base, made, shared=shared)
    chown_all(store.root, owner)
    for place in (store.data, store.plain, *target_paths(store)):
        chown_all(place, owner)
    store.data.chmod(0o1777)
    return store


@contextlib.contextmanager
def make_realm() -> Iterator[Realm]:
    """A realm in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="stripewise-test-", ignore_cleanup_errors=True) as name:
        base = Path(name).resolve()
        base.chmod(0o755)
        (base / "nursery").mkdir()
        (base / "nursery").chmod(0o1777)
        log = base / "log"
        log.touch()
        log.chmod(0o666)
        roots = create_for(base / "roots", 0)
        mallorys = create_for(base / "mallorys", MALLORY)
        yield Realm(base, roots, mallorys, log, str(LIBRARY))


def namespaces(*options: str) -> bool:
    """Whether `unshare` can make these."""
    return execute(["unshare", *options, "true"], code=None).code == 0


def only(said: Mapping[str, object], outcome: object, steps: Iterator[str] | list[str]) -> None:
    """These steps all came out so."""
    others = {step: said[step] for step in steps if said[step] != outcome}
    assert not others, f"not {outcome}: {others}"


#: Steps of `TOUCH` that act on the file behind the name, and those that act on the name.
THROUGH = [
    *("stat", "access", "open", "open for writing", "append", "open as a place", "read attributes", "statvfs"),
    *("chmod", "chown", "utime", "set attribute", "truncate", "open and truncate", "create"),
]
OF_THE_NAME = ["lstat", "readlink", "rename", "unlink"]

#: Touches a name in every way and says how each came out: `done`, the name of an error, or `treasure` if that was read.
TOUCH = """
import errno, json, stat
link, said = sys.argv[1], {}

def attempt(name, step):
    try: said[name] = step() or "done"
    except OSError as error: said[name] = errno.errorcode[error.errno]

def read():
    fd = os.open(link, os.O_RDONLY)
    try: return "treasure" if b"TREASURE" in os.read(fd, 1 << 20) + os.pread(fd, 1 << 20, 1 << 16) else ""
    finally: os.close(fd)

def write(flags):
    fd = os.open(link, flags, 0o644)
    try: os.write(fd, b"x" * 100000); os.fsync(fd)
    finally: os.close(fd)

attempt("lstat", lambda: "link" if stat.S_ISLNK(os.lstat(link).st_mode) else "file")
attempt("readlink", lambda: os.readlink(link) and None)
attempt("stat", lambda: os.stat(link) and None)
attempt("access", lambda: None if os.access(link, os.F_OK) else os.stat(link) and None)
attempt("open", read)
attempt("read attributes", lambda: os.listxattr(link) and None)
attempt("statvfs", lambda: os.statvfs(link) and None)
attempt("open as a place", lambda: os.close(os.open(link, os.O_PATH)))
attempt("chmod", lambda: os.chmod(link, 0o646))
attempt("chown", lambda: os.chown(link, os.geteuid(), 12345 if os.geteuid() == 0 else os.getegid()))
attempt("utime", lambda: os.utime(link, (1, 1)))
attempt("set attribute", lambda: os.setxattr(link, "user.x", b"1"))
attempt("open for writing", lambda: write(os.O_RDWR))
attempt("append", lambda: write(os.O_WRONLY | os.O_APPEND))
attempt("create", lambda: write(os.O_WRONLY | os.O_CREAT))
attempt("truncate", lambda: os.truncate(link, 1000))
attempt("open and truncate", lambda: write(os.O_WRONLY | os.O_TRUNC))
attempt("exclusive create", lambda: write(os.O_WRONLY | os.O_CREAT | os.O_EXCL))
attempt("second name", lambda: os.link(link, link + ".2", follow_symlinks=False))
attempt("rename", lambda: os.rename(link, link + ".1") or os.rename(link + ".1", link))
attempt("unlink", lambda: os.unlink(link))
if said["second name"] == "done": attempt("unlink second name", lambda: os.unlink(link + ".2"))
print(json.dumps(said))
"""


def ctl_words(**words: int) -> dict[int, bytes]:
    """Words of ctl by their place (docs/formats.md)."""
    places = {"size": 64, "generation": 72, "flags": 80, "names": 88, "move": 128, "start": 136, "len": 144}
    places |= {"deadline": 160, "next": 168}
    return {places[name]: struct.pack("<Q", value & (1 << 64) - 1) for name, value in words.items()}


def write_words(path: Path, words: Mapping[int, bytes]) -> None:
    """Into a file, without a look at what it is."""
    fd = os.open(path, os.O_RDWR)
    for at, word in words.items():
        os.pwrite(fd, word, at)
    os.close(fd)


NEVER = (1 << 64) - 1
#: What a member may write into the control words of his file.
LIES: dict[str, dict[str, int]] = {
    "size 2^63": {"size": 1 << 63},
    "size 2^64-1": {"size": NEVER},
    "size 2^62": {"size": 1 << 62},
    "size -1 page": {"size": -4096},
    "generation 2^64-1": {"generation": NEVER},
    "generation 0": {"generation": 0},
    "truncating for ever": {"flags": 2},
    "unlinked": {"flags": 1},
    "every flag": {"flags": NEVER},
    "names": {"names": NEVER},
    "copying": {"move": 1, "start": 0, "len": NEVER},
    "copying nothing": {"move": 1, "start": NEVER, "len": NEVER},
    "frozen for ever": {"move": 2, "start": 0, "len": NEVER, "deadline": NEVER},
    "frozen till 1970": {"move": 2, "start": 0, "len": NEVER, "deadline": 1},
    "publishing for ever": {"move": 3, "start": 0, "len": NEVER, "deadline": NEVER, "next": 5},
    "publishing what is not there": {"move": 3, "start": 0, "len": NEVER, "deadline": 1, "next": 5},
    "publishing 2^64-1": {"move": 3, "start": 0, "len": NEVER, "deadline": 1, "next": NEVER},
    "aborted": {"move": 4, "start": 0, "len": NEVER},
    "a state of no name": {"move": 7, "start": 0, "len": NEVER},
}
#: Of these, those that keep writers waiting, which the owner of a file may do for a while.
HOLDING = ["truncating for ever", "every flag", "frozen for ever", "publishing for ever", "a state of no name"]
