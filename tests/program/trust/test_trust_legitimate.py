"""What must go on working while nobody is trusted without a reason: colleagues in a project's folder, root's backup,
rootless containers, stores behind symbolic links and mounts, users who change, files that are given away.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    GROUP,
    LIMIT_S,
    MALLORY,
    PYTHON,
    Managed,
    Realm,
    acting_as,
    chown_all,
    create_for,
    namespaces,
    needs_root,
    target_paths,
)
from rig import Store, dirs, execute, is_managed, stripewise

pytestmark = needs_root

CONTENT = b"attacker" * 40_000
READ = "sys.stdout.write(str(open(sys.argv[1], 'rb').read() == b'attacker' * 40000))"


def reads(realm: Realm, user: int, link: Path, **settings: str | Path) -> bool:
    return realm.python(user, READ, link, **settings).out == "True"


def test_colleagues_share_files_in_a_project_s_folder(realm: Realm) -> None:
    folder = realm.roots.data / "project"
    folder.mkdir()
    os.chown(folder, ALICE, GROUP)
    folder.chmod(0o2770)
    settings: dict[str, str | Path] = {"STRIPEWISE_STORE": realm.roots.root, "groups": str(GROUP)}
    realm.run(ALICE, "sh", "-c", f"umask 007; cd {folder}; seq 1 1000 | dd of=a; echo mine > b", **settings)
    work = (
        "set -e; umask 007; cd $1; seq 1 1000 | cmp - a; echo more >> a; truncate -s 100 a; "
        "dd if=/dev/zero of=a bs=1 count=5 conv=notrunc\n"
        "test $(stat -c %s a) = 100; mv b c; echo yours >> c; cp a e; rm a; stat -c '%u %g %a' c e\n"
    )
    out = realm.run(MALLORY, "sh", "-c", work, "sh", folder, **settings).out
    assert out == f"{ALICE} {GROUP} 660\n{MALLORY} {GROUP} 660\n"
    assert realm.run(ALICE, "cat", folder / "c", **settings).out == "mine\nyours\n"
    assert (
        is_managed(folder / "c") and realm.run(ALICE, "stat", "-c", "%g", folder / "e", **settings).out == f"{GROUP}\n"
    )
    assert realm.run(1004, "ls", folder, STRIPEWISE_STORE=realm.roots.root, code=None).code != 0


def test_root_s_backup_holds_the_bytes_of_his_and_of_listed_users_files(realm: Realm) -> None:
    tree = realm.place(0, "tree")
    store = create_for(realm.fresh("listed"), ALICE, shared=False)
    for number, (owner, made) in enumerate([(0, realm.roots), (ALICE, store), (0, realm.roots), (ALICE, store)]):
        file = realm.files(made, owner, 1, 0o640)[0]
        realm.run(0, "mv", file.link, tree / f"f{number}", STRIPEWISE_TRUST=store.root)
    settings = {"STRIPEWISE_TRUST": store.root}
    out = realm.place(0, "backup")
    realm.run(0, "tar", "-C", tree, "-cf", out / "a.tar", ".", **settings)
    realm.run(0, "cp", "-a", tree, out / "copy", **settings)
    with tarfile.open(out / "a.tar") as archive:
        for number in range(4):
            member = archive.getmember(f"./f{number}")
            kept = archive.extractfile(member)
            assert member.isreg() and kept is not None and kept.read() == CONTENT
            assert (member.uid, member.mode) == ([0, ALICE][number % 2], 0o640)
            copy = out / "copy" / f"f{number}"
            assert copy.read_bytes() == CONTENT and copy.lstat().st_uid == [0, ALICE][number % 2]
    realm.run(0, "rm", "-rf", tree, **settings)
    assert not list((store.root / "files").iterdir()), "root's rm left a listed user's files"


def test_a_rootless_container_uses_its_user_s_own_store(realm: Realm) -> None:
    with acting_as(0):
        if execute(
            ["setpriv", f"--reuid={ALICE}", "--clear-groups", "unshare", "-U", "-r", "-m", "true"], code=None
        ).code:
            pytest.skip("not run: no user namespace can be made here")
    store = create_for(realm.fresh("container"), ALICE, shared=False)
    script = (
        f"set -e; cd {store.data}; seq 1 50000 > a; seq 1 50000 | cmp - a; cp a b; truncate -s 10 b; "
        f'chmod 600 b; stat -c "%u %s %a" a b; mv b c; rm c\n'
        f"mkdir d; mount -t tmpfs tmpfs d; cp a d/x; cmp a d/x; tar -cf d/t a; tar -tvf d/t | cut -c1; ls\n"
    )
    said = realm.run(ALICE, "unshare", "-U", "-r", "-m", "sh", "-c", script, STRIPEWISE_STORE=store.root)
    assert said.out.split() == ["0", "288894", "644", "0", "10", "600", "-", "a", "d"], said.report
    assert realm.run(ALICE, "sh", "-c", f"wc -l < {store.data / 'a'}").out == "50000\n"
    assert (store.data / "a").lstat().st_uid == ALICE and is_managed(store.data / "a")


def test_a_store_behind_a_symbolic_link_is_used_by_that_name(realm: Realm) -> None:
    file = realm.file(realm.mallorys)
    place = realm.place(0)
    (place / "way").symlink_to(realm.mallorys.base)
    (place / "store").symlink_to(place / "way" / "store")
    for path in (place / "store", place / "way" / "store"):
        link = realm.link_to(place, path, file.id)
        assert reads(realm, MALLORY, link), "its own user's"
        assert reads(realm, 0, link, STRIPEWISE_TRUST=path), "listed by the name that the link has"
        assert reads(realm, 0, link, STRIPEWISE_STORE=path), "started with it"
    made = place / "new"
    os.chown(place, MALLORY, MALLORY)
    created = realm.run(
        MALLORY, "dd", f"of={realm.mallorys.data / 'by-link'}", stdin="x" * 5000, STRIPEWISE_STORE=place / "store"
    )
    assert created.code == 0 and not made.exists()
    assert realm.run(MALLORY, "cat", realm.mallorys.data / "by-link").out == "x" * 5000


def test_a_target_may_be_a_link_to_a_directory_on_another_mount(realm: Realm) -> None:
    base = realm.fresh("mounted")
    (base / "targets").mkdir(parents=True)
    disk = realm.place(0, "disk")
    execute(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", disk])
    bound = realm.place(0, "bound")
    behind = realm.place(0, "behind")
    execute(["mount", "--bind", behind, bound])
    try:
        store = Store(base, dirs(2))
        (disk / "t0").mkdir()
        (base / "targets" / "t0").symlink_to(disk / "t0")
        (base / "targets" / "t1").symlink_to(bound)
        for path in (store.data, store.plain):
            path.mkdir()
        store.cluster.write_text("".join(target.toml(base / "targets") for target in store.targets))
        stripewise("store", "create", store.root, "--cluster", store.cluster, "--manage", store.data)
        file = realm.files(store, 0, 1)[0]
        assert reads(realm, 0, file.link) and len(list(disk.glob("t0/*.data"))) == 1
        # Unmounted, it is another place, where nothing is made and nothing is guessed.
        execute(["umount", disk])
        (disk / "t0").mkdir(exist_ok=True)
        assert realm.python(0, READ, file.link, code=None).code != 0
        said = realm.run(0, "dd", f"of={store.data / 'new'}", code=None, stdin="x" * 5000, STRIPEWISE_STORE=store.root)
        assert said.code != 0 and not list((disk / "t0").iterdir()), "a file was made on an unmounted target"
    finally:
        execute(["umount", disk], code=None)
        execute(["umount", bound], code=None)


@pytest.mark.parametrize("mask", ["000", "022", "077"])
def test_a_private_store_works_with_any_umask_and_is_open_to_nobody_else(realm: Realm, mask: str) -> None:
    store = create_for(realm.fresh("umask"), ALICE, shared=False)
    name = store.data / "f"
    script = (
        f"umask {mask}; cd {store.data}; seq 1 9999 > f; echo x >> f; truncate -s 48000 f; cp f g; rm g; "
        f"wc -c < f; stat -c %a f"
    )
    out = realm.run(ALICE, "sh", "-c", script, STRIPEWISE_STORE=store.root).out.split()
    assert out == ["48000", f"{0o666 & ~int(mask, 8):o}"]
    file = Managed(name, store.root, target_paths(store))
    for path in [*file.objects, file.dir, file.dir / "layout", *store.root.iterdir(), *(store.root / "run").iterdir()]:
        assert not path.stat().st_mode & 0o002 or (path in file.objects and mask == "000"), (
            f"everybody may write {path}"
        )


def test_two_stores_of_a_user_serve_one_process(realm: Realm) -> None:
    stores = [create_for(realm.fresh("two"), ALICE, shared=False) for _ in range(2)]
    files = [realm.files(store, ALICE, 1, 0o600)[0] for store in stores]
    program = (
        "a, b = (os.open(name, os.O_RDWR) for name in sys.argv[1:])\n"
        "for i in range(10): os.pwrite(a, os.pread(b, 4096, i * 4096), 400000 + i * 4096)\n"
        "assert os.copy_file_range(a, b, 100000, 0, 400000) == 100000\n"
        "os.rename(sys.argv[1], sys.argv[1] + '.x'); os.rename(sys.argv[1] + '.x', sys.argv[1])\n"
        "assert os.stat(sys.argv[1]).st_size == 440960 and os.stat(sys.argv[2]).st_size == 500000\n"
    )
    realm.python(ALICE, program, *(file.link for file in files))


def test_a_file_that_root_gives_away_is_its_new_owner_s_in_every_part(realm: Realm) -> None:
    file = realm.files(realm.roots, 0, 1, 0o600)[0]
    realm.run(0, "chown", f"{ALICE}:{ALICE}", file.link)
    program = (
        "fd = os.open(sys.argv[1], os.O_RDWR); assert len(os.read(fd, 400000)) == 320000\n"
        "os.ftruncate(fd, 1000); os.pwrite(fd, b'x' * 100000, 0); os.fsync(fd); os.fchmod(fd, 0o640); os.close(fd)\n"
        "os.utime(sys.argv[1], (1, 1)); assert os.stat(sys.argv[1]).st_mtime == 1; os.truncate(sys.argv[1], 5)\n"
    )
    realm.python(ALICE, program, file.link)
    realm.run(0, "sh", "-c", f"wc -c < {file.link}; touch {file.link}")
    assert realm.run(ALICE, "cat", file.link).out == "xxxxx"
    realm.run(ALICE, "chmod", "606", file.link)
    assert realm.run(MALLORY, "sh", "-c", f"echo more >> {file.link}; cat {file.link}").out == "xxxxxmore\n"


@pytest.mark.parametrize(("before", "after"), [(0, ALICE), (ALICE, MALLORY), (ALICE, 0)])
def test_root_s_chown_takes_a_file_from_one_user_to_another_and_back(realm: Realm, before: int, after: int) -> None:
    file = realm.files(realm.roots, before, 1, 0o600)[0]
    for owner in (after, before):
        realm.run(0, "chown", f"{owner}:{owner}", file.link)
        assert reads(realm, owner, file.link)
        realm.python(owner, "open(sys.argv[1], 'r+b').write(b'attacker')", file.link)
        owners = {path.name: path.lstat().st_uid for path in (*file.objects, file.dir / "head", file.dir / "ctl")}
        assert set(owners.values()) == {owner}, owners


def test_a_daemon_that_gives_up_root_goes_on_with_its_files_and_opens_its_user_s(realm: Realm) -> None:
    own = create_for(realm.fresh("daemon"), ALICE, shared=False)
    log, data = realm.files(realm.roots, 0, 1, 0o600)[0], realm.files(own, ALICE, 1, 0o600)[0]
    program = (
        "log = open(sys.argv[1], 'ab')\n"
        "os.setgroups([]); os.setresgid(1003, 1003, 1003); os.setresuid(1003, 1003, 1003)\n"
        "log.write(b'line\\n' * 1000); log.flush(); os.fsync(log.fileno())\n"
        "with open(sys.argv[2], 'r+b') as file: assert len(file.read()) == 320000; file.write(b'more')\n"
        "if os.fork() == 0:\n"
        "    log.write(b'child'); log.flush(); os._exit(0)\n"
        "assert os.wait()[1] == 0\n"
    )
    realm.python(0, program, log.link, data.link)
    assert realm.run(0, "sh", "-c", f"wc -c < {log.link}").out == f"{320000 + 5000 + 5}\n"


def test_a_descriptor_of_a_trusted_store_survives_exec_and_a_change_of_user(realm: Realm) -> None:
    file = realm.files(realm.roots, 0, 1, 0o666)[0]
    shell = (
        f"setpriv --reuid={ALICE} --regid={ALICE} --clear-groups sh -c 'head -c 8; "
        f"echo more >&3' < {file.link} 3>> {file.link}"
    )
    assert realm.run(0, "sh", "-c", shell).out == "attacker"
    assert realm.run(0, "sh", "-c", f"tail -c 5 {file.link}").out == "more\n"


def test_a_store_that_moved_is_used_after_relink(realm: Realm) -> None:
    store = create_for(realm.fresh("moving"), 0, shared=False)
    file = realm.files(store, 0, 1)[0]
    moved = store.root.with_name("moved")
    store.root.rename(moved)
    assert realm.python(0, READ, file.link, code=None).code != 0
    stripewise("store", "relink", "--moved", moved, store.data)
    assert reads(realm, 0, file.link)
    realm.run(0, "sh", "-c", f"echo more >> {file.link}; truncate -s 10 {file.link}; rm {file.link}")
    assert not list((moved / "files").iterdir())


def test_a_group_s_store_directory_that_the_group_may_write_is_used(realm: Realm) -> None:
    store = create_for(realm.fresh("group"), ALICE)
    os.chown(store.root, ALICE, GROUP)
    store.root.chmod(0o2775)
    file = realm.files(store, ALICE, 1)[0]
    assert reads(realm, ALICE, file.link) and reads(realm, 0, file.link, STRIPEWISE_TRUST=store.root)


def test_a_store_whose_copy_was_restored_from_a_backup_is_used(realm: Realm) -> None:
    """Names, owners and modes as before; inode numbers are others."""
    store = create_for(realm.fresh("restored"), ALICE, shared=False)
    file = realm.files(store, ALICE, 1, 0o640)[0]
    for top in (store.root, store.base / "targets"):
        aside = top.with_name("aside-" + top.name)
        top.rename(aside)
        execute(["cp", "-a", aside, top])
    assert reads(realm, ALICE, file.link)
    realm.run(ALICE, "sh", "-c", f"echo more >> {file.link}; truncate -s 10 {file.link}; chmod 600 {file.link}")


def test_a_chroot_without_proc_reads_and_writes_its_own_store(realm: Realm) -> None:
    jail = realm.place(0, "jail")
    store = create_for(jail / "srv", 0, shared=False)
    file = realm.files(store, 0, 1)[0]
    above = str(jail)
    # Inside, store and targets have the same names by way of a link to the jail's root.
    (jail / above.lstrip("/")).parent.mkdir(parents=True)
    (jail / above.lstrip("/")).symlink_to("/")
    program = (
        "os.stat(sys.argv[2]); os.chroot(sys.argv[1]); os.chdir('/')\n"
        "fd = os.open(sys.argv[2], os.O_RDWR); assert os.pread(fd, 400000, 0) == b'attacker' * 40000\n"
        "os.pwrite(fd, b'x' * 100000, 0); os.ftruncate(fd, 200000); os.fsync(fd); "
        "assert os.fstat(fd).st_size == 200000; os.close(fd)\n"
        "assert os.stat(sys.argv[2]).st_size == 200000\n"
    )
    realm.python(0, program, jail, file.link)
    assert len(realm.run(0, "cat", file.link).out) == 200_000


def test_everybody_s_stores_work_side_by_side_in_one_namespace_of_mounts(realm: Realm) -> None:
    """A bind mount of a store elsewhere is the same store by another name."""
    if not namespaces("-m"):
        pytest.skip("not run: no mount namespace can be made here")
    file = realm.file(realm.roots, 0)
    place = realm.place(0, "elsewhere")
    link = realm.link_to(realm.place(0), place, file.id, owner=0)
    settings = [f"{name}={value}" for name, value in realm.environment().items()]
    script = f'mount --bind {realm.roots.root} {place} && exec env "$@"'
    said = execute(
        ["unshare", "-m", "sh", "-c", script, "sh", *settings, PYTHON, "-c", f"import os, sys\n{READ}", link],
        timeout_s=LIMIT_S,
    )
    assert said.out == "True"


def test_root_s_chown_of_a_whole_store_keeps_it_sound(realm: Realm) -> None:
    """As when a user's number changes: every part goes to the new one."""
    store = create_for(realm.fresh("renumbered"), MALLORY, shared=False)
    file = realm.files(store, MALLORY, 1, 0o600)[0]
    for top in (store.root, store.data, *target_paths(store)):
        chown_all(top, ALICE)
    assert reads(realm, ALICE, file.link)
    realm.run(ALICE, "sh", "-c", f"echo more >> {file.link}; rm {file.link}")


def test_a_file_that_was_adopted_is_read_and_written_by_whom_its_mode_lets(realm: Realm) -> None:
    path, data = realm.place(ALICE) / "mine", b"of all" * 20_000
    path.write_bytes(data)
    os.chown(path, ALICE, ALICE)
    path.chmod(0o646)
    stripewise("store", "adopt", "--store", realm.roots.root, path)
    program = "f = open(sys.argv[1], 'r+b'); data = f.read(); f.seek(0); f.write(data[:9]); print(len(data))"
    for user in (ALICE, MALLORY):
        said = realm.python(user, program, path, STRIPEWISE_STORE=realm.roots.root)
        assert said.out.strip() == str(len(data)), said.report
