"""More than one user: who may not do something with a plain file may not do it with a managed one, and who may, may."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile import needs_root
from rig import Maker, Result, Store, execute, is_managed

pytestmark = needs_root

#: Users without a name, who own nothing; 3000 is a group.
ALICE, BOB, GROUP = 65534, 1002, 3000


@dataclass
class Rig:
    """A shared store made by root, and a directory where everybody may make files."""

    store: Store
    place: Path

    def run(
        self, user: int, *command: str | Path, groups: str = "", code: int | None = 0, stdin: str | None = None
    ) -> Result:
        """A program under the library as a user."""
        who = [f"--reuid={user}", f"--regid={user}", f"--groups={groups}" if groups else "--clear-groups"]
        return execute(["setpriv", *who, *command], self.store.environment(), code, stdin=stdin, cwd=Path("/"))

    def python(self, user: int, program: str, *arguments: str | Path, groups: str = "", code: int | None = 0) -> Result:
        """A Python program as a user."""
        return self.run(
            user, "/usr/bin/python3", "-c", f"import os, sys\n{program}", *arguments, groups=groups, code=code
        )

    def make(self, user: int, name: str, mode: str, content: str = "content", groups: str = "") -> Path:
        """A file with a mode, made by a user."""
        path = self.place / name
        self.run(user, "dd", f"of={path}", groups=groups, stdin=content)
        self.run(user, "chmod", mode, path)
        return path

    def rights(self, user: int, path: Path, groups: str = "") -> str:
        """What opening as a user allows: r, w, and b for both at once; what reading and writing then do must fit."""
        return self.python(
            user,
            "said = ''\n"
            "for letter, how in ('r', os.O_RDONLY), ('w', os.O_WRONLY), ('b', os.O_RDWR):\n"
            "    try: fd = os.open(sys.argv[1], how)\n"
            "    except PermissionError: continue\n"
            "    said += letter\n"
            "    if how != os.O_WRONLY: assert os.pread(fd, 7, 0) == b'content'\n"
            "    if how != os.O_RDONLY: assert os.pwrite(fd, b'content', 0) == 7 and os.fstat(fd).st_size >= 7\n"
            "    os.close(fd)\n"
            "print(said)",
            path,
            groups=groups,
        ).out.strip()


@pytest.fixture(params=["data", "plain"])
def rig(request: pytest.FixtureRequest, make_store: Maker) -> Rig:
    """Managed and unmanaged: the same must come out."""
    store = make_store(layout="uneven", shared=True)
    place = Path(getattr(store, str(request.param)))
    place.chmod(0o777)
    return Rig(store, place)


def managed(rig: Rig, path: Path) -> bool:
    """Whether it is managed exactly where it should be."""
    return is_managed(path) == (rig.place == rig.store.data)


def test_a_user_makes_writes_and_removes_files_in_a_store_of_root(rig: Rig) -> None:
    path = rig.make(ALICE, "f", "640", "x" * 300_000)
    assert managed(rig, path)
    assert rig.run(ALICE, "stat", "-c", "%u %g %a %s", path).out == f"{ALICE} {ALICE} 640 300000\n"
    assert rig.run(0, "stat", "-c", "%u", path).out == f"{ALICE}\n"
    rig.run(ALICE, "rm", path)
    assert not list(rig.store.root.glob("files/*")) and not list(rig.store.base.glob("targets/*/*.data*"))


@pytest.mark.parametrize(
    ("mode", "others"),
    [("600", ""), ("604", "r"), ("602", "w"), ("606", "rwb"), ("640", ""), ("444", "r"), ("000", "")],
)
def test_others_have_the_rights_that_the_mode_gives_them(rig: Rig, mode: str, others: str) -> None:
    path = rig.make(ALICE, "f", mode)
    assert rig.rights(BOB, path) == others
    assert rig.run(BOB, "stat", "-c", "%s %a", path).out.split()[0] == "7", "stat needs no right to the file"
    assert rig.rights(0, path) == "rwb"


@pytest.mark.parametrize(("mode", "members"), [("640", "r"), ("620", "w"), ("660", "rwb"), ("606", ""), ("664", "rwb")])
def test_members_of_the_group_have_the_group_s_rights(rig: Rig, mode: str, members: str) -> None:
    path = rig.make(ALICE, "f", mode, groups=str(GROUP))
    rig.run(ALICE, "chgrp", str(GROUP), path, groups=str(GROUP))
    assert rig.rights(BOB, path, groups=str(GROUP)) == members


@pytest.mark.parametrize(("mode", "owner"), [("400", "r"), ("200", "w"), ("600", "rwb"), ("066", "")])
def test_the_owner_has_the_owner_s_rights(rig: Rig, mode: str, owner: str) -> None:
    assert rig.rights(ALICE, rig.make(ALICE, "f", mode)) == owner


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An ACL as the kernel takes it: tag (1 owner, 2 user, 4 group, 8 a group, 16 mask, 32 others), permissions, id."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("bob", "mask", "rights"),
    [(4, 7, "r"), (2, 7, "w"), (6, 7, "rwb"), (6, 4, "r"), (6, 2, "w"), (0, 7, ""), (0, 0, "rwb")],
)
def test_a_user_named_in_the_acl_has_its_rights_within_the_mask(rig: Rig, bob: int, mask: int, rights: str) -> None:
    # With an empty mask Linux asks the mode bits alone: then this user is one of the others.
    path = rig.make(ALICE, "f", "606")
    value = acl((1, 6, NOBODY), (2, bob, BOB), (4, 0, NOBODY), (16, mask, NOBODY), (32, 6, NOBODY)).hex()
    rig.python(ALICE, "os.setxattr(sys.argv[1], 'system.posix_acl_access', bytes.fromhex(sys.argv[2]))", path, value)
    assert rig.rights(BOB, path) == rights
    rig.python(ALICE, "os.removexattr(sys.argv[1], 'system.posix_acl_access')", path)
    assert rig.run(ALICE, "stat", "-c", "%A", path).out[7:10] == "rw-"
    assert rig.rights(BOB, path) == "rwb"


def test_only_the_owner_changes_attributes(rig: Rig) -> None:
    path = rig.make(ALICE, "f", "666")
    before = rig.run(ALICE, "stat", "-c", "%u %g %a", path).out
    for command in (["chmod", "777"], ["chgrp", str(BOB)], ["chown", str(BOB)], ["touch", "-d", "2001-01-01"]):
        said = rig.run(BOB, *command, path, code=None)
        assert said.code != 0 and "not permitted" in said.err, said.report
    value = acl((1, 6, NOBODY), (4, 6, NOBODY), (32, 6, NOBODY))
    said = rig.python(BOB, f"os.setxattr(sys.argv[1], 'system.posix_acl_access', {value!r})", path, code=None)
    assert said.code != 0 and "not permitted" in said.err, said.report
    rig.run(BOB, "touch", path)
    assert rig.run(ALICE, "stat", "-c", "%u %g %a", path).out == before


def test_who_owns_the_directory_decides_over_its_names(rig: Rig) -> None:
    inner = rig.place / "inner"
    rig.run(BOB, "mkdir", inner)
    inner.chmod(0o777)
    for name in ("inner/a", "inner/b"):
        rig.make(ALICE, name, "600")
    rig.run(BOB, "rm", "-f", inner / "a")
    inner.chmod(0o1777)
    os.chown(inner, 0, 0)
    said = rig.run(BOB, "rm", "-f", inner / "b", code=None)
    assert said.code != 0 and "not permitted" in said.err, said.report
    assert rig.rights(ALICE, inner / "b") == "rwb"
    inner.chmod(0o755)
    assert rig.run(ALICE, "rm", "-f", inner / "b", code=None).code != 0


@pytest.mark.parametrize("mask", ["000", "022", "027", "077", "0777"])
def test_the_umask_counts_at_creation_and_for_nothing_else(rig: Rig, mask: str) -> None:
    path = rig.place / "f"
    rig.python(
        ALICE,
        "os.umask(int(sys.argv[2], 8)); fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o666)\n"
        "os.write(fd, b'content')\n",
        path,
        mask,
    )
    assert int(rig.run(ALICE, "stat", "-c", "%a", path).out, 8) == 0o666 & ~int(mask, 8)
    rig.run(ALICE, "chmod", "604", path)
    assert rig.rights(ALICE, path) == "rwb"
    assert rig.rights(BOB, path) == "r"


@pytest.mark.parametrize("mode", ["0o444", "0o222", "0"])
def test_the_creator_writes_a_file_whatever_mode_it_gets(rig: Rig, mode: str) -> None:
    program = (
        f"fd = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_RDWR, {mode}); os.write(fd, b'x' * 300000)\n"
        f"os.ftruncate(fd, 200000); os.fsync(fd); assert os.pread(fd, 300000, 0) == b'x' * 200000\n"
        f"st = os.fstat(fd); assert st.st_size == 200000 and st.st_mode & 0o777 == {mode} & ~0o022\n"
    )
    rig.python(ALICE, program, rig.place / "f")
    assert rig.run(ALICE, "stat", "-c", "%s", rig.place / "f").out == "200000\n"


def test_a_new_file_takes_group_and_acl_from_its_directory(rig: Rig) -> None:
    inner = rig.place / "inner"
    inner.mkdir()
    os.chown(inner, ALICE, GROUP)
    inner.chmod(0o2755)
    path = rig.make(ALICE, "inner/f", "660", groups=str(GROUP))
    assert rig.run(ALICE, "stat", "-c", "%g", path).out == f"{GROUP}\n"
    assert rig.rights(BOB, path, groups=str(GROUP)) == "rwb"
    value = acl((1, 7, NOBODY), (2, 4, BOB), (4, 0, NOBODY), (16, 7, NOBODY), (32, 0, NOBODY))
    os.setxattr(inner, "system.posix_acl_default", value)
    path = inner / "g"
    rig.run(ALICE, "sh", "-c", f"umask 077; printf content | dd of={path}")
    assert rig.run(ALICE, "stat", "-c", "%a", path).out == "660\n"
    assert rig.rights(BOB, path) == "r"


GIVE_UP = """
fd = os.open(sys.argv[1], os.O_RDWR)
low = os.open(sys.argv[2], os.O_RDONLY)
os.setgroups([]); os.setresgid(1002, 1002, 1002); os.setresuid(1002, 1002, 1002)
assert os.pread(fd, 300000, 0) == b'x' * 300000 == os.pread(low, 300000, 0)
assert os.pwrite(fd, b'y' * 400000, 0) == 400000
os.ftruncate(fd, 350000)
os.fsync(fd)
st = os.fstat(fd)
assert st.st_size == 350000 and st.st_mtime > 1000000000
for name in sys.argv[1:3]:
    try: os.open(name, os.O_RDONLY)
    except PermissionError: pass
    else: raise SystemExit('opened without a right')
if os.fork() == 0:
    assert os.pread(fd, 3, 349999) == b'y'
    os._exit(0)
assert os.wait()[1] == 0
os.close(fd)
"""


def test_what_was_opened_before_rights_were_given_up_stays_usable(rig: Rig) -> None:
    paths = [rig.make(0, name, "600", "x" * 300_000) for name in ("f", "g")]
    rig.run(0, "touch", "-d", "1980-01-01", paths[0])
    rig.python(0, GIVE_UP, *paths)
    assert rig.run(0, "stat", "-c", "%s", paths[0]).out == "350000\n"


def test_rights_regained_give_more_than_those_before(rig: Rig) -> None:
    path = rig.make(0, "f", "644", "x" * 300_000)
    rig.python(
        0,
        "os.seteuid(1002); low = os.open(sys.argv[1], os.O_RDONLY); assert os.pread(low, 9, 0) == b'x' * 9\n"
        "os.seteuid(0); fd = os.open(sys.argv[1], os.O_RDWR); assert os.pwrite(fd, b'y' * 300000, 0) == 300000\n"
        "assert os.pread(low, 300000, 0) == b'y' * 300000\n",
        path,
    )


def test_an_open_file_outlives_the_loss_of_rights_to_it(rig: Rig) -> None:
    path = rig.make(ALICE, "f", "606", "x" * 300_000)
    reader = (
        "fd = os.open(sys.argv[1], os.O_RDWR); print('open', flush=True); sys.stdin.read()\n"
        "assert os.pread(fd, 300000, 0) == b'x' * 300000 and os.pwrite(fd, b'y', 299999) == 1\n"
    )
    script = f"import subprocess\n{WITHDRAW}"
    rig.python(0, script, path, reader)


WITHDRAW = """
drop = lambda: (os.setgroups([]), os.setresgid(1002, 1002, 1002), os.setresuid(1002, 1002, 1002))
other = subprocess.Popen([sys.executable, "-c", "import os, sys\\n" + sys.argv[2], sys.argv[1]],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=drop)
assert other.stdout.readline() == b"open\\n"
os.chmod(sys.argv[1], 0o600)
other.stdin.close()
assert other.wait(60) == 0
"""


def test_a_reader_shares_its_offset_with_its_children(rig: Rig) -> None:
    path = rig.make(ALICE, "f", "604", "content")
    said = rig.run(BOB, "sh", "-c", f"(dd bs=3 count=1; dd bs=9 count=1) < {path} 2>/dev/null")
    assert said.out == "content"


def test_a_private_store_serves_nobody_else(make_store: Maker) -> None:
    store = make_store(layout="striped")
    store.program("dd", f"of={store.data / 'f'}", stdin="content")
    rig = Rig(store, store.data)
    said = rig.run(BOB, "cat", store.data / "f", code=None)
    assert said.code != 0 and "content" not in said.out, said.report


def test_the_command_says_that_a_store_is_shared(make_store: Maker) -> None:
    store = make_store(layout="striped", shared=True)
    for directory in (store.root / "files", store.root / "trash", store.root / "run", store.base / "targets" / "t0"):
        assert directory.stat().st_mode & 0o7777 == 0o1777


#: Whoever makes the files; then, as whom the ways are tried; both with the directory.
MAKE = """
for mode in (0o644, 0o600, 0o4755, 0o2755):
    for number in range(6):
        path = f"{sys.argv[1]}/{mode:o}-{number}"
        with open(path, "wb") as file: file.write(b"content")
        os.chmod(path, mode)
"""
OWNERS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
EMPTY, NOFOLLOW, CWD = 0x1000, 0x100, -100
def said(result): return 0 if result == 0 else ctypes.get_errno()
def opened(path, flags, work):
    try: fd = os.open(path, flags)
    except OSError as error: return f"cannot open: {error.errno}"
    try: return said(work(fd))
    finally: os.close(fd)
ways = {
    "chown": lambda path, *to: said(libc.chown(path, *to)),
    "lchown": lambda path, *to: said(libc.lchown(path, *to)),
    "fchownat": lambda path, *to: said(libc.fchownat(CWD, path, *to, 0)),
    "fchownat nofollow": lambda path, *to: said(libc.fchownat(CWD, path, *to, NOFOLLOW)),
    "fchown": lambda path, *to: opened(path, os.O_RDONLY, lambda fd: libc.fchown(fd, *to)),
    "empty": lambda path, *to: opened(path, os.O_RDONLY, lambda fd: libc.fchownat(fd, b"", *to, EMPTY)),
    "empty O_PATH": lambda path, *to: opened(path, os.O_PATH, lambda fd: libc.fchownat(fd, b"", *to, EMPTY)),
    "fchown O_PATH": lambda path, *to: opened(path, os.O_PATH, lambda fd: libc.fchown(fd, *to)),
}
owner, group, other = 65534, 3000, 1002
pairs = ((-1, -1), (owner, -1), (-1, owner), (owner, owner), (-1, group), (other, -1))
for mode in ("644", "600", "4755", "2755"):
    for number, pair in enumerate(pairs):
        path = f"{sys.argv[1]}/{mode}-{number}".encode()
        for name, way in ways.items():
            result, st = way(path, *pair), os.stat(path)
            print(mode, pair, name, result, st.st_uid, st.st_gid, oct(st.st_mode))
"""


@pytest.mark.parametrize("who", ["owner", "member", "other", "root"])
def test_who_may_set_which_owner_or_none_may_on_managed_files_too(make_store: Maker, who: str) -> None:
    store = make_store(layout="uneven", shared=True)
    user = {"owner": ALICE, "member": ALICE, "other": BOB, "root": 0}[who]
    said = []
    for place in (store.plain, store.data):
        place.chmod(0o777)
        rig = Rig(store, place)
        rig.python(ALICE, MAKE, place)
        said.append(rig.python(user, OWNERS, place, groups=str(GROUP) if who == "member" else "").out.splitlines())
    assert len(said[0]) == 4 * 6 * 8 and said[0] == said[1]
