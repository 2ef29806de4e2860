"""Verbs ask whose a part or a store is: a stranger's is refused, mended or left; a new one is its owner's."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from hostile import ALICE, GROUP, MALLORY, needs_root
from rig import Maker, execute, stripewise
from trap import CONTENT_BYTES, PRECIOUS, SKEWED, Trap, one_clear_error

pytestmark = needs_root


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
    assert lock.stat().st_uid == 0 and stat.S_IMODE(lock.stat().st_mode) == 0o644
    trap.store.fsck()


def test_another_user_s_target_is_not_taken_for_the_store_s(trap: Trap) -> None:
    # Mallory's store claims Alice's target: same uuid, but the identity file there is hers.
    identity = trap.store.base / "targets" / "t0" / "stripewise-target"
    os.chown(identity, ALICE, ALICE)
    said = trap.store.fsck(code=1)
    assert "stripewise-target" in said.out, said.report
    one_clear_error(stripewise("store", "gc", trap.store.root, code=None), "t0")


# Whose stores a verb follows.


@pytest.fixture
def hostile(trap: Trap) -> Trap:
    """The store is Mallory's, and root finds a link into it."""
    for path in (trap.store.root, *trap.store.root.rglob("*"), *(trap.store.base / "targets").rglob("*")):
        os.lchown(path, MALLORY, MALLORY)
    return trap


@pytest.fixture
def home(scratch: Path) -> dict[str, str]:
    place = scratch / "home"
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
    ("name", "word"), [("relative/store", "absolute"), ("/no/such/store", "does not exist"), ("/usr", "not a store")]
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
    common = {root / "run" / name for name in ("mover.lock", "devices")}
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
