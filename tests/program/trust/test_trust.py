"""Whose stores a process uses (docs/security.md): his own, root's, the one that he was started with, those that are
listed; asked again when he changes. What is refused is EACCES through the link; what acts on the link sees a link.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    LIMIT_S,
    MALLORY,
    OF_THE_NAME,
    OVERFLOW,
    PYTHON,
    THROUGH,
    Managed,
    Realm,
    as_user,
    create_for,
    namespaces,
    needs_root,
    only,
    record_link,
)
from rig import Result, execute, stripewise

pytestmark = needs_root

#: Also the store's owner.
WAYS = ["by nothing", "started with it", "listed by name", "listed by the directory above", "listed by the site"]
OWNERS = {"root": 0, "the attacker": MALLORY, "the user": ALICE, "nobody known": OVERFLOW}
USERS = {"root": 0, "the user": ALICE, "nobody known": OVERFLOW}

#: Reads, writes and stats each name, and says how that came out.
USE = """
import errno, json
said = []
for name in sys.argv[1:]:
    try:
        fd = os.open(name, os.O_RDWR); data = os.pread(fd, 8, 0); os.pwrite(fd, data, 0); os.close(fd)
        said.append("used" if data == b"attacker" and os.stat(name).st_size == 320000 else "other bytes")
    except OSError as error: said.append(errno.errorcode[error.errno])
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def owned(realm: Realm) -> dict[int, Managed]:
    """A file that everybody may write, in a shared store of each owner."""
    stores = {0: realm.roots, MALLORY: realm.mallorys}
    stores |= {owner: create_for(realm.base / f"of-{owner}" / "x", owner) for owner in (ALICE, OVERFLOW)}
    # A file of the store's owner; the overflow uid may be started with its own.
    return {owner: realm.files(store, owner, 1)[0] for owner, store in stores.items()}


def is_used(user: int, owner: int, way: str) -> bool:
    return way != "by nothing" or (owner in (user, 0) and owner != OVERFLOW)


def in_private_etc(
    realm: Realm, lines: str, user: int, command: list[str], owner: int = 0, mode: int = 0o644
) -> Result:
    """A program that sees an /etc with this /etc/stripewise/trust, in a mount namespace of its own."""
    etc = realm.base / "etc"
    if not etc.exists():
        execute(["cp", "-a", "/etc", etc])
        (etc / "stripewise").mkdir(exist_ok=True)
    site = etc / "stripewise" / "trust"
    site.write_text(lines)
    site.chmod(mode)
    os.chown(site, owner, owner)
    mounted = 'etc=$1; shift; mount --bind "$etc" /etc && exec "$@"'
    settings = [f"{name}={value}" for name, value in realm.environment().items()]
    inner = ["env", *settings, *as_user(user, command)]
    return execute(["unshare", "-m", "sh", "-c", mounted, "sh", etc, *inner], timeout_s=LIMIT_S)


def use(realm: Realm, user: int, file: Managed, way: str) -> str:
    settings: dict[str, Path | str] = {}
    if way == "started with it":
        settings["STRIPEWISE_STORE"] = file.store
    elif way == "listed by name":
        settings["STRIPEWISE_TRUST"] = f"/elsewhere:{file.store}:"
    elif way == "listed by the directory above":
        settings["STRIPEWISE_TRUST"] = f"{file.store.parent}/*"
    elif way == "listed by the site":
        script = f"import os, sys\n{USE}"
        lines = f"# of this machine\n{file.store}\n"
        return str(json.loads(in_private_etc(realm, lines, user, [PYTHON, "-c", script, str(file.link)]).out)[0])
    return str(json.loads(realm.python(user, USE, file.link, **settings).out)[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("user", USERS)
def test_a_store_is_used_when_its_owner_or_a_list_vouches_for_it(
    realm: Realm, owned: dict[int, Managed], user: str, owner: str, way: str
) -> None:
    if way == "listed by the site" and not namespaces("-m"):
        pytest.skip("not run: no mount namespace can be made here")
    wanted = "used" if is_used(USERS[user], OWNERS[owner], way) else "EACCES"
    assert use(realm, USERS[user], owned[OWNERS[owner]], way) == wanted


@pytest.mark.parametrize("user", [0, ALICE])
def test_what_goes_through_the_link_is_refused_and_what_acts_on_it_is_not(realm: Realm, user: int) -> None:
    file = realm.file(realm.mallorys)
    place = realm.place(user)
    link = realm.link_to(place, file.store, file.id, owner=user)
    said = realm.touch(user, link)
    only(said, "EACCES", THROUGH)
    assert said["lstat"] == "link", said
    assert said["exclusive create"] == "EEXIST", said
    only(said, "done", OF_THE_NAME[1:])
    assert file.object.read_bytes()[:8] == b"attacker"


@pytest.mark.xfail(strict=True, reason="the kernel itself opens what is executed: docs/compatibility.md, ENOENT")
def test_a_refused_file_is_not_executed_for_want_of_a_right_and_not_of_the_file(realm: Realm) -> None:
    file = realm.file(realm.mallorys)
    for said in (
        realm.python(
            ALICE, "try: os.execv(sys.argv[1], ['x'])\nexcept OSError as error: print(error.errno)", file.link
        ),
        realm.run(ALICE, "sh", "-c", f"{file.link}; echo $?", code=None),
    ):
        assert said.out in ("13\n", "126\n"), said.report


@pytest.mark.parametrize("user", [0, ALICE])
def test_a_tree_with_refused_links_is_listed_archived_copied_moved_and_removed(realm: Realm, user: int) -> None:
    place = realm.place(user)
    for _ in range(3):
        realm.link_to(place, realm.mallorys.root, realm.file(realm.mallorys).id, owner=user)
    script = (
        'set -e; cd "$1"; ls -l . >list; grep -c -- "-> /stripewise:" list; tar -cf a.tar link*; rm link2; '
        "tar -xf a.tar; test -h link2\n"
        "cp -a link0 copy; test -h copy; mv copy moved; test -h moved; ln -s other new; mv new moved; "
        'test "$(readlink moved)" = other\n'
        "chmod -R go+r . ; find . -type l | wc -l; rm -r link0 link1 link2; ls\n"
    )
    out = realm.run(user, "sh", "-c", script, "sh", place).out
    assert out.split() == ["3", "4", "a.tar", "list", "moved"], out


def test_the_log_names_the_command_to_type_once(realm: Realm) -> None:
    file = realm.file(realm.mallorys)
    realm.log.write_text("")
    realm.python(
        ALICE,
        "for _ in range(100):\n    try: os.stat(sys.argv[1])\n    except PermissionError: pass\n",
        file.link,
    )
    (line,) = realm.log_lines("stripewise store trust")
    assert str(file.store) in line.split("stripewise store trust", 1)[1], line


@pytest.mark.parametrize(
    "name", ["with blank", "semi;touch pwned", "$(touch pwned)", "`id`", "quote'", "new\nline", "esc\x1b[2J"]
)
def test_the_command_to_type_names_the_store_whatever_its_name_is(realm: Realm, name: str) -> None:
    place = realm.place(MALLORY)
    (place / name).mkdir()
    os.chown(place / name, MALLORY, MALLORY)
    link = realm.link_to(place, place / name)
    realm.log.write_text("")
    realm.python(0, "try: os.stat(sys.argv[1])\nexcept OSError: pass\n", link)
    said = realm.log.read_bytes()
    assert said and all(line.startswith(b"stripewise[") for line in said.splitlines()), f"a forged line: {said!r}"
    assert b"\x1b" not in said, said
    for line in realm.log_lines("stripewise store trust"):
        command = line[line.index("stripewise store trust") :]
        assert name.isprintable() is False or shlex.split(command)[:4][3:] == [str(place / name)], command


def test_run_names_every_refused_store_at_its_end(realm: Realm) -> None:
    links = [realm.link_to(realm.place(0), realm.copied(realm.file(realm.mallorys)).store, owner=0) for _ in range(2)]
    script = 'for link; do cat "$link" 2>/dev/null; done; true'
    said = stripewise("run", "--store", realm.roots.root, "--", "sh", "-c", script, "sh", *links)
    for link in links:
        store = os.readlink(link).removeprefix("/stripewise:").rsplit("/", 1)[0]
        assert store in said.err and "store trust" in said.err, said.report


SWITCH = """
import ctypes, errno
link, own, how, user = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)

def come(out):
    for flags in os.O_RDONLY, os.O_RDWR:
        try:
            fd = os.open(link, flags); said = "used"; os.close(fd)
        except OSError as error: said = errno.errorcode[error.errno]
        assert said == out, (how, flags, said)

become = {
    "seteuid": lambda: os.seteuid(user), "setreuid": lambda: os.setreuid(0, user),
    "setresuid": lambda: os.setresuid(0, user, 0),
    "setuid": lambda: os.setuid(user), "system call": lambda: libc.syscall(117, 0, user, 0),
}
mine = os.open(own, os.O_RDWR)
come("EACCES")
become[how]()
come("used")
his = os.open(link, os.O_RDWR)
assert os.pread(mine, 8, 0) == b"attacker" and os.pread(his, 8, 0) == b"attacker"
if how != "setuid":
    os.seteuid(0)
    come("EACCES")
    assert os.pread(his, 300000, 0)[:8] == b"attacker" and os.pwrite(his, b"attacker", 0) == 8
    assert os.fstat(his).st_size == 320000
    os.fsync(his)
    assert os.pread(mine, 300000, 0)[:8] == b"attacker"
    if os.fork() == 0:
        come("EACCES"); os.setuid(user); come("used"); os._exit(0)
    assert os.wait()[1] == 0
os.close(his)
"""


NUMBERED = pytest.mark.skipif(os.uname().machine != "x86_64", reason="not run: the system call's number is of x86-64")


@pytest.mark.parametrize(
    "how", ["seteuid", "setreuid", "setresuid", "setuid", pytest.param("system call", marks=NUMBERED)]
)
def test_trust_is_judged_again_after_the_user_changes_and_what_is_open_stays_usable(realm: Realm, how: str) -> None:
    his, own = realm.file(realm.mallorys), realm.file(realm.roots, 0)
    realm.python(0, SWITCH, his.link, own.link, how, str(MALLORY))


@pytest.mark.parametrize(
    "entry",
    [
        "{above}/listed/../{name}",
        "{above}/listed/*",
        "{above}/{name}2",
        "{above}/{part}",
        "{name}",
        "{above}/{part}*",
        ":::",
        "*",
        "{above}/*/x",
        "# {store}",
        "\n{store}2\n",
    ],
)
def test_an_entry_names_nothing_but_what_it_says(realm: Realm, entry: str) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    store = file.store
    (store.parent / "listed").mkdir(exist_ok=True)
    text = entry.format(above=store.parent, name=store.name, part=store.name[:-1], store=store)
    place = realm.place(MALLORY)
    links = [file.link, realm.link_to(place, f"{store.parent}/listed/../{store.name}", file.id)]
    said = json.loads(realm.python(0, USE, links[0], STRIPEWISE_TRUST=text).out)
    assert said == ["EACCES"], f"{text} lists {store}"
    if "/*" in entry:
        said = json.loads(realm.python(0, USE, links[1], STRIPEWISE_TRUST=text).out)
        assert said == ["EACCES"], f"{text} lists a store beside the directory, by way of .."


def test_a_list_longer_than_any_name_is_read_or_ignored_and_never_cut_into_another_entry(realm: Realm) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    # Wherever the list is cut, a prefix of an entry stands there.
    text = ":".join(f"{file.store}/{number}" for number in range(2500))[
        : 100_000 // len(str(file.store)) * len(str(file.store))
    ]
    assert json.loads(realm.python(0, USE, file.link, STRIPEWISE_TRUST=text).out) == ["EACCES"]


@pytest.mark.parametrize(
    ("owner", "mode", "counts"), [(0, 0o644, True), (0, 0o666, False), (0, 0o664, False), (MALLORY, 0o644, False)]
)
def test_the_site_s_list_counts_when_it_is_root_s_and_nobody_else_may_write_it(
    realm: Realm, owner: int, mode: int, counts: bool
) -> None:
    if not namespaces("-m"):
        pytest.skip("not run: no mount namespace can be made here")
    file = realm.file(realm.mallorys)
    command = [PYTHON, "-c", f"import os, sys\n{USE}", str(file.link)]
    said = in_private_etc(realm, f"{file.store}\n", 0, command, owner, mode)
    assert json.loads(said.out) == ["used" if counts else "EACCES"]


@pytest.mark.parametrize(
    ("place", "mode", "used"), [("the directory above", 0o777, False), ("the directory above", 0o1777, True)]
)
def test_a_store_that_others_may_replace_is_refused_even_to_its_owner(
    realm: Realm, place: str, mode: int, used: bool
) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    above = realm.place(0, "above")
    file.store.rename(above / "store")
    link = realm.link_to(realm.place(MALLORY), above / "store", file.id)
    record_link(link, above / "store" / "files" / file.id)
    above.chmod(mode)
    assert json.loads(realm.python(MALLORY, USE, link).out) == ["used" if used else "EACCES"]


@pytest.mark.parametrize(("mode", "used"), [(0o755, True), (0o775, True), (0o757, False), (0o777, False)])
def test_a_store_directory_that_everybody_may_write_is_refused_even_to_its_owner(
    realm: Realm, mode: int, used: bool
) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    file.store.chmod(mode)
    assert json.loads(realm.python(MALLORY, USE, file.link).out) == ["used" if used else "EACCES"]
