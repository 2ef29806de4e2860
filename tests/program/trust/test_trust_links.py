"""Links that lead a victim to an attacker's store, or nowhere: whatever they say, they are refused or an error."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    LIMIT_S,
    MALLORY,
    PYTHON,
    TREASURE,
    Managed,
    Realm,
    acting_as,
    as_user,
    create_for,
    namespaces,
    needs_root,
    record_link,
    run_dir,
)
from rig import execute

pytestmark = needs_root


def traps(realm: Realm, file: Managed, treasure: Path) -> None:
    """A store in which every part leads to a treasure, as far as one store can."""
    run = run_dir(file.store)
    run.mkdir(exist_ok=True)
    os.chown(run, MALLORY, MALLORY)
    run.chmod(0o1777)
    with acting_as(MALLORY):
        for path in (file.dir / "ctl", file.object, run / "devices"):
            path.unlink(missing_ok=True)
            path.symlink_to(treasure)


#: Real programs; each gets a second directory that holds nothing but a link to the file.
TOOLS = {
    "ls": "ls -l tree; ls -lL tree",
    "cat": "cat tree/*",
    "stat": "stat tree/*; stat -L tree/*",
    "tar": "tar -cf out.tar tree; cat out.tar; tar -chf out.tar tree; cat out.tar",
    "cp": "cp -a tree copy; cat copy/*; cp -r tree copy2; cp -L tree/* copy3; cat copy3",
    "chmod": "chmod -R 777 tree; chmod 777 tree/*",
    "chown": "chown -R 1002:1002 tree; chown 1002 tree/*; chgrp -R 1002 tree",
    "touch": "touch tree/*; touch -d 2001-01-01 tree/*",
    "truncate": "truncate -s 5 tree/*; dd if=/dev/zero of=tree/link0 bs=4096 count=3 conv=notrunc; "
    "echo x >> tree/link0",
    "mv": "echo new > new; mv new tree/link0; ls tree",
    "find": "find tree -type f -size +1k -exec head -c 100 {} +; find -L tree -type f -delete",
    "rm": "rm -f tree/*; rm -rf tree",
}


@pytest.mark.parametrize("user", [0, ALICE])
@pytest.mark.parametrize("tool", TOOLS)
def test_no_program_is_led_to_another_s_bytes_by_a_link_to_an_attacker_s_store(
    realm: Realm, tool: str, user: int
) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure(user)
    kept = realm.fresh("kept")
    kept.write_bytes(file.object.read_bytes())
    traps(realm, file, treasure.path)
    place = realm.place(user)
    (place / "tree").mkdir()
    os.chown(place / "tree", user, user)
    link = realm.link_to(place / "tree", file.store, file.id)
    record_link(link, file.dir)
    script = f"cd {place}; {TOOLS[tool]}"
    said = realm.run(user, "sh", "-c", script, code=None)
    treasure.check()
    assert "TREASURE" not in said.out, f"{tool} read another's bytes"


def test_a_target_directory_that_leads_to_alice_s_loses_her_no_bytes_by_root_s_rm(realm: Realm) -> None:
    alices = create_for(realm.fresh("alices"), ALICE)
    hers = realm.files(alices, ALICE, 1, 0o600)[0]
    lure = create_for(realm.fresh("lure"), MALLORY)
    (lure.root / "files" / hers.id).mkdir()
    for name in ("layout", "head", "ctl"):
        (lure.root / "files" / hers.id / name).write_bytes((hers.dir / name).read_bytes())
    for target, other in zip(("t0", "t1"), hers.targets, strict=True):
        (lure.base / "targets" / target).rename(lure.base / f"aside-{target}")
        (lure.base / "targets" / target).symlink_to(other)
    link = realm.link_to(realm.place(MALLORY), lure.root, hers.id)
    record_link(link, lure.root / "files" / hers.id)
    execute(["chown", "-R", f"{MALLORY}:{MALLORY}", lure.root])
    before = {path: path.read_bytes() for path in hers.objects}
    shown = realm.run(0, "cat", link, code=None)
    assert "attacker" not in shown.out, "root's cat shows another user's bytes"
    realm.run(0, "rm", "-f", link, code=None)
    assert {path: path.read_bytes() for path in before if path.exists()} == before, (
        "root's rm deleted another user's bytes"
    )


def test_twenty_refused_stores_leave_room_for_the_user_s_own(realm: Realm) -> None:
    place = realm.place(ALICE)
    file = realm.file(realm.mallorys)
    for _ in range(20):
        copy = realm.copied(file)
        realm.link_to(place, copy.store, copy.id)
    own = realm.file(realm.roots, ALICE)
    realm.link_to(place, own.store, own.id, owner=ALICE)
    program = (
        "import errno\n"
        "for name in sorted(os.listdir(sys.argv[1])):\n"
        "    try: os.stat(f'{sys.argv[1]}/{name}')\n"
        "    except OSError as error: assert error.errno == errno.EACCES, error\n"
        "print(len(open(sys.argv[2], 'rb').read()))\n"
    )
    assert realm.python(ALICE, program, place, own.link).out == "320000\n"


def texts(realm: Realm, file: Managed) -> dict[str, str]:
    """Texts of links, by what is odd about them; the store that they name, in whatever way, is the attacker's."""
    store, name, base = str(file.store), file.id, realm.base
    return {
        "two dots": f"/stripewise:{base}/roots/../nursery/{file.store.name}/{name}",
        "two dots from the victim's own": f"/stripewise:{realm.roots.root}/../../nursery/{file.store.name}/{name}",
        "doubled slashes": f"/stripewise:{store}//{name}",
        "doubled slashes before": f"/stripewise:/{store}/{name}",
        "one dot": f"/stripewise:{store}/./{name}",
        "something behind": f"/stripewise:{store}/{name}/ctl",
        "a slash behind": f"/stripewise:{store}/{name}/",
        "two dots behind": f"/stripewise:{store}/{name}/../{name}",
        "upper case": f"/stripewise:{store}/{name.upper()}",
        "a short id": f"/stripewise:{store}/{name[1:]}",
        "a long id": f"/stripewise:{store}/0{name}",
        "no id": f"/stripewise:{store}",
        "the root": f"/stripewise:/{name}",
        "a relative path": f"/stripewise:nursery/{file.store.name}/{name}",
        "a newline": f"/stripewise:{store}\n{realm.roots.root}/{name}",
        "a colon": f"/stripewise:{store}:{realm.roots.root}/{name}",
        "twice": f"/stripewise:{store}/stripewise:{realm.roots.root}/{name}",
        "4,000 bytes": f"/stripewise:{'/x' * 1990}/{name}",
        "1,100 bytes": f"/stripewise:{store}{'/.' * 500}/{name}",
        "1,024 bytes": f"/stripewise:/{'x/' * 511}/{name}",
        "a process's root": f"/stripewise:/proc/self/root{store}/{name}",
        "another process's root": f"/stripewise:/proc/1/root{store}/{name}",
        "a process's directory": f"/stripewise:/proc/self/cwd/{store}/{name}",
        "a descriptor": f"/stripewise:/proc/self/fd/5/{name}",
        "a descriptor by /dev": f"/stripewise:/dev/fd/5/{name}",
        "a file": f"/stripewise:/etc/passwd/{name}",
        "a fifo": f"/stripewise:{base}/things/fifo/{name}",
        "a socket": f"/stripewise:{base}/things/socket/{name}",
        "a device": f"/stripewise:{base}/things/device/{name}",
        "a terminal": f"/stripewise:/dev/tty/{name}",
        "a loop": f"/stripewise:{base}/things/loop/{name}",
        "nothing": f"/stripewise:{base}/things/nothing/{name}",
        "an empty directory": f"/stripewise:{base}/things/empty/{name}",
        "a directory that is closed": f"/stripewise:{base}/things/closed/{name}",
        "a link to the store": f"/stripewise:{base}/things/link/{name}",
        "odd bytes": f"/stripewise:{store}\x01\x7f\udcff/{name}",
    }


@pytest.fixture(scope="module")
def things(realm: Realm) -> Managed:
    """A store of the attacker's, and what else a link may name."""
    file = realm.copied(realm.file(realm.mallorys))
    place = realm.base / "things"
    place.mkdir()
    os.chown(place, MALLORY, MALLORY)
    os.mknod(place / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with acting_as(MALLORY):
        os.mkfifo(place / "fifo", 0o666)
        (place / "loop").symlink_to("loop")
        (place / "empty").mkdir()
        (place / "closed").mkdir(mode=0)
        (place / "link").symlink_to(file.store)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(place / "socket"))
    return file


#: Refused as anybody's is, or no good name.
OUTCOMES = {"EACCES", "EIO", "ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EINVAL"}
LOOK = """
import errno, json
said = {}
for name, link in json.loads(sys.argv[1]).items():
    said[name] = []
    for step in (
        lambda: os.stat(link), lambda: os.close(os.open(link, os.O_RDONLY)),
        lambda: os.close(os.open(link, os.O_RDWR | os.O_CREAT)),
        lambda: os.chmod(link, 0o600), lambda: os.truncate(link, 0), lambda: os.listdir(link),
        lambda: os.stat(link + "/x"),
    ):
        try: step(); said[name].append("done")
        except OSError as error: said[name].append(errno.errorcode[error.errno])
    said[name + ", the name"] = []
    for step in (
        lambda: os.lstat(link), lambda: os.readlink(link),
        lambda: os.rename(link, link + ".1"), lambda: os.unlink(link + ".1"),
    ):
        try: step()
        except OSError as error: said[name + ", the name"].append(errno.errorcode[error.errno])
print(json.dumps(said))
"""


@pytest.mark.parametrize("user", [0, ALICE])
def test_whatever_a_link_s_text_says_it_is_refused_or_no_name_and_can_be_removed(
    realm: Realm, things: Managed, user: int
) -> None:
    place = realm.place(user)
    links = {}
    for number, (name, text) in enumerate(texts(realm, things).items()):
        links[name] = str(place / f"l{number}")
        os.symlink(text, links[name])
        os.chown(links[name], MALLORY, MALLORY, follow_symlinks=False)
    directory = os.open(things.store, os.O_RDONLY | os.O_DIRECTORY)
    try:
        child = subprocess.run(
            as_user(user, [PYTHON, "-S", "-c", f"import os, sys\nos.dup2({directory}, 5)\n{LOOK}", json.dumps(links)]),
            env=realm.environment(),
            pass_fds=[directory],
            cwd="/",
            timeout=LIMIT_S,
            capture_output=True,
            text=True,
        )
    finally:
        os.close(directory)
    assert child.returncode == 0, child.stderr
    said = json.loads(child.stdout)
    wrong = {name: said[name] for name in links if not set(said[name]) <= OUTCOMES}
    wrong |= {f"{name}, the name": said[f"{name}, the name"] for name in links if said[f"{name}, the name"]}
    assert not wrong, wrong
    assert things.object.read_bytes()[:8] == b"attacker"


FOLLOW = """
import errno, json
said = {}
for name, link in json.loads(sys.argv[1]).items():
    try: os.stat(link); os.close(os.open(link, os.O_RDWR)); said[name] = "done"
    except OSError as error: said[name] = errno.errorcode[error.errno]
print(json.dumps(said))
"""


def test_chains_of_links_end_where_the_kernel_s_do(realm: Realm) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    good = realm.file(realm.roots, 0)
    for last, fine in ((file.link, "EACCES"), (good.link, "done")):
        place = realm.place(0)
        before = last
        for number in range(60):
            link = place / f"c{number}"
            link.symlink_to(before)
            before = link
        links = {str(length): str(place / f"c{length - 1}") for length in (1, 20, 38, 45, 60)}
        said = json.loads(realm.python(0, FOLLOW, json.dumps(links)).out)
        assert {said[length] for length in ("1", "20", "38")} == {fine}, said
        assert {said[length] for length in ("45", "60")} <= {"ELOOP", "EACCES"}, said


def test_a_link_is_judged_the_same_by_every_way_to_name_it(realm: Realm) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    place = realm.place(ALICE)
    link = realm.link_to(place, file.store, file.id)
    (place / "to").symlink_to(link)
    (place / "self").symlink_to(f"/proc/self/cwd/{link.name}")
    (place / "dir").symlink_to(place)
    program = (
        "import errno\n"
        "os.chdir(sys.argv[1])\n"
        "at = os.open('.', os.O_RDONLY)\n"
        "it = os.open(sys.argv[2], os.O_PATH | os.O_NOFOLLOW)\n"
        "for name in sys.argv[2], './' + sys.argv[2], 'to', 'self', 'dir/' + sys.argv[2], "
        "f'/proc/self/fd/{at}/{sys.argv[2]}', "
        "f'/proc/self/cwd/{sys.argv[2]}', f'/proc/self/root{sys.argv[1]}/{sys.argv[2]}', "
        "f'/dev/fd/{at}/{sys.argv[2]}', "
        "f'/proc/{os.getpid()}/fd/{at}/to':\n"
        "    for flags in os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT:\n"
        "        try: os.open(name, flags)\n"
        "        except OSError as error: assert error.errno == errno.EACCES, (name, error)\n"
        "        else: raise SystemExit(f'{name} was opened')\n"
        "for name in f'/proc/self/fd/{it}', f'/dev/fd/{it}':\n"
        "    try: os.open(name, os.O_RDONLY)\n"
        "    except OSError as error: assert error.errno in (errno.EACCES, errno.ELOOP, errno.ENOENT), (name, error)\n"
        "    else: raise SystemExit(f'{name} was opened')\n"
    )
    realm.python(ALICE, program, place, link.name)


@pytest.mark.parametrize("mode", [os.O_RDONLY, os.O_RDWR, os.O_ACCMODE, os.O_PATH])
def test_an_inherited_descriptor_leads_into_no_store_that_is_not_trusted(realm: Realm, mode: int) -> None:
    """As a program of root's gets one from the user who started it by way of sudo."""
    file = realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure()
    traps(realm, file, treasure.path)
    fd = os.open(file.dir / "head", mode)
    try:
        program = (
            "for step in (lambda: os.fstat(0), lambda: os.pread(0, 100000, 0), lambda: os.pwrite(0, "
            "b'x' * 70000, 0), lambda: os.ftruncate(0, 5),\n"
            "             lambda: os.fchmod(0, 0o777), lambda: os.stat('/dev/stdin'), "
            "lambda: os.open('/proc/self/fd/0', os.O_RDWR)):\n"
            "    try: assert 'TREASURE' not in str(step())\n"
            "    except OSError: pass\n"
        )
        child = subprocess.run(
            [PYTHON, "-S", "-c", f"import os, sys\n{program}"],
            stdin=fd,
            env=realm.environment(),
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        os.close(fd)
    assert child.returncode == 0
    treasure.check()


def test_an_inherited_plain_descriptor_whose_path_looks_like_a_head_stays_open(realm: Realm) -> None:
    place = realm.place(ALICE) / "files" / "0123456789abcdef"
    place.mkdir(parents=True)
    (place / "head").write_text("plain")
    with (place / "head").open("r+") as file:
        child = subprocess.run(
            [PYTHON, "-S", "-c", "import os; print(os.pread(0, 10, 0), os.pwrite(0, b'PLAIN', 0))"],
            stdin=file,
            env=realm.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert child.stdout == "b'plain' 5\n", child.stderr


def forge_proc(jail: Path) -> None:
    """What a program that finds itself in a chroot asks /proc for, as the attacker wants it to be."""
    boot = jail / "proc" / "sys" / "kernel" / "random" / "boot_id"
    with acting_as(MALLORY):
        boot.parent.mkdir(parents=True)
        boot.write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
        (jail / "proc" / "sys" / "kernel" / "overflowuid").write_text("4\n")


def test_root_in_an_attacker_s_chroot_follows_none_of_his_links_or_lists(realm: Realm) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure()
    traps(realm, file, treasure.path)
    jail = realm.place(MALLORY, "jail")
    forge_proc(jail)
    with acting_as(MALLORY):
        (jail / "etc" / "stripewise").mkdir(parents=True)
        (jail / "etc" / "stripewise" / "trust").write_text("/store\n/*\n")
    file.store.rename(jail / "store")
    link = realm.link_to(jail, "/store", file.id)
    vault = jail / "vault"
    vault.mkdir()
    os.link(treasure.path, vault / "treasure")
    before = Path(treasure.path).stat().st_mode
    program = (
        "import errno\n"
        "os.chroot(sys.argv[1]); os.chdir('/')\n"
        "for step in (lambda: os.stat(sys.argv[2]), lambda: os.open(sys.argv[2], os.O_RDWR), "
        "lambda: os.chmod(sys.argv[2], 0o777)):\n"
        "    try: step()\n"
        "    except OSError as error: assert error.errno == errno.EACCES, error\n"
        "    else: raise SystemExit('followed')\n"
        "os.lstat(sys.argv[2]); os.unlink(sys.argv[2])\n"
    )
    realm.python(0, program, jail, f"/{link.name}")
    assert treasure.path.stat().st_mode == before and treasure.path.read_bytes() == TREASURE


@pytest.mark.parametrize("way", ["STRIPEWISE_STORE", "STRIPEWISE_TRUST"])
def test_what_root_was_started_with_does_not_vouch_for_the_same_path_in_an_attacker_s_chroot(
    realm: Realm, way: str
) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    jail = realm.place(MALLORY, "jail")
    forge_proc(jail)
    link = realm.link_to(jail, realm.roots.root, file.id)
    inside = jail / str(realm.roots.root).lstrip("/")
    with acting_as(MALLORY):
        inside.parent.mkdir(parents=True)
    file.store.rename(inside)
    program = (
        "import errno\n"
        "if sys.argv[3] != 'none': os.stat(sys.argv[3])\n"
        "os.chroot(sys.argv[1]); os.chdir('/')\n"
        "try: os.stat(sys.argv[2])\n"
        "except OSError as error: assert error.errno in (errno.EACCES, errno.ENOENT), error\n"
        "else: raise SystemExit('followed')\n"
        "try: os.close(os.open(sys.argv[2], os.O_RDONLY))\n"
        "except OSError as error: assert error.errno in (errno.EACCES, errno.ENOENT), error\n"
        "else: raise SystemExit('followed')\n"
    )
    # Whether the real one was attached before or not.
    for before in ("none", realm.file(realm.roots, 0).link):
        realm.python(0, program, jail, f"/{link.name}", before, **{way: realm.roots.root})


@pytest.mark.parametrize("map_root", [False, True])
def test_owners_that_a_user_namespace_does_not_know_vouch_for_nothing(realm: Realm, map_root: bool) -> None:
    """Root's and the attacker's stores both appear as the overflow uid's, which without a map is the user's, too."""
    with acting_as(0):
        ready = execute(as_user(ALICE, ["unshare", "-U", "true"]), code=None).code == 0
    if not ready or not namespaces("-U"):
        pytest.skip("not run: no user namespace can be made here")
    program = (
        "import errno\n"
        "for link in sys.argv[1:]:\n"
        "    try: os.close(os.open(link, os.O_RDONLY)); print('used')\n"
        "    except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    links = [realm.file(realm.roots).link, realm.file(realm.mallorys).link]
    command = ["unshare", "-U", *(["-r"] if map_root else []), PYTHON, "-S", "-c", f"import os, sys\n{program}", *links]
    assert realm.run(ALICE, *command).out.split() == ["EACCES", "EACCES"]
    lists = {"STRIPEWISE_TRUST": f"{realm.roots.root}:{realm.mallorys.root}"}
    assert realm.run(ALICE, *command, **lists).out.split() == ["used", "used"]


def test_a_store_in_a_directory_squatted_by_the_attacker_is_his(realm: Realm) -> None:
    """He takes the name that a link of root's leads to, in a directory like /tmp."""
    place = realm.place(0, "tmp")
    place.chmod(0o1777)
    file = realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure()
    traps(realm, file, treasure.path)
    link = realm.link_to(realm.place(0), place / "store", file.id, owner=0)
    file.store.rename(place / "store")
    said = realm.touch(0, link)
    assert said["open"] == said["stat"] == "EACCES", said
    treasure.check()
