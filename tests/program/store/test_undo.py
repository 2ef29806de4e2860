"""`undo`: every file plain with the bytes that it had, the store gone, nothing else touched, through any kill."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile import MALLORY, Realm, as_user, chown_all, create_for, needs_root
from rig import STRIPEWISE, Maker, Store, dirs, execute, is_managed, stripewise, talking

from stripewise import limits, native
from stripewise.files.parts import locked_part
from stripewise.moving.mover_session import MoverSession
from stripewise.store import Store as Opened
from stripewise.store.undo import run as whole


def undo(store: Store, *words: str | Path, code: int = 0):
    return stripewise("undo", store.root, *words, code=code)


def bytes_of(path: Path) -> bytes:
    """Without the library, whatever the file is now."""
    if not is_managed(path):
        return path.read_bytes()
    root, _, identity = os.readlink(path).removeprefix("/stripewise:").rpartition("/")
    with tempfile.TemporaryFile() as copy:
        native.call("store_cat", root, identity, copy.fileno(), 0, None)
        copy.seek(0)
        return copy.read()


def contents_of(*directories: Path) -> dict[Path, bytes]:
    return {path: bytes_of(path) for directory in directories for path in directory.rglob("*") if not path.is_dir()}


@pytest.fixture
def full(make_store: Maker) -> Store:
    """A store with files of several kinds; it is to be undone."""
    store = make_store(layout="uneven")
    store.check_at_end = False
    (store.data / "deep").mkdir()
    for name, size in (("a", 700_001), ("deep/two\nlines", 3000), ("deep/\udcff", 5), ("empty", 0)):
        store.program("sh", "-c", 'head -c "$1" /dev/urandom >"$0"', os.fsencode(store.data / name), str(size))
    store.program("sh", "-c", 'truncate -s 50M "$0"; printf end >>"$0"; chmod 640 "$0"', store.data / "sparse")
    store.program("touch", "-d", "2001-09-09 01:46:40.000000007 UTC", store.data / "a")
    return store


def is_over(store: Store) -> bool:
    """Whether all was done, but for the removal of the store's own directory, which has nothing left to say so."""
    if store.root.exists() and not os.listdir(store.root):
        said = undo(store, code=1).err
        assert f"rmdir {store.root}" in said and said.count("\n") == 1, said
        store.root.rmdir()
    return not store.root.exists()


def gone(store: Store, *foreign: str) -> None:
    """Nothing of the store is left anywhere."""
    assert not store.root.exists()
    assert sorted(path.name for path in (store.base / "targets").rglob("*") if not path.is_dir()) == sorted(foreign)
    assert all((store.base / "targets" / target.name).is_dir() for target in store.targets)
    assert not [path for path in store.base.rglob("*") if ".stripewise" in path.name]


def hidden(store: Store) -> list[Path]:
    """Plain copies under their temporary names."""
    return [path for path in store.data.rglob("*") if ".stripewise" in path.name]


def test_every_file_is_plain_again_and_nothing_of_the_store_is_left(full: Store) -> None:
    (full.base / "targets/t1/foreign").write_text("mine")
    before = contents_of(full.data)
    layout = full.base / "layout.json"
    stripewise("store", "template", "add", full.root, full.data / "x", "--layout", layout)
    dry = undo(full, "--dry-run").out
    assert "5 file(s)" in dry and "2 template(s) go with the store" in dry and contents_of(full.data) == before
    assert all(is_managed(path) for path in before)
    said = undo(full).out
    assert "5 file(s)" in said and "read back" in said and "/targets/t1/foreign" in said, said
    assert "empty now, and may be removed" in said and str(full.base / "targets/t0") in said
    gone(full, "foreign")
    assert contents_of(full.data) == before and not any(path.is_symlink() for path in before)
    kept = full.data / "a", full.data / "sparse"
    assert kept[0].stat().st_mtime_ns == 10**18 + 7 and kept[1].stat().st_mode & 0o777 == 0o640
    assert kept[1].stat().st_blocks < 100, "holes were filled"
    assert "is not a store" in undo(full, code=1).err


def test_what_is_no_store_is_refused_untouched(full: Store) -> None:
    for place, told in ((full.plain, "is not a store"), (full.base / "none", "is not a store")):
        said = stripewise("undo", place, code=1).err
        assert told in said and said.count("\n") == 1, said
    (full.plain / "undo.json").write_text("{}")
    assert "is not a store" in stripewise("undo", full.plain, code=1).err
    assert [path.name for path in full.plain.iterdir()] == ["undo.json"]


def test_renamed_files_and_all_of_their_names_are_found_and_stay_one_file(full: Store) -> None:
    os.link(full.data / "a", full.data / "hard", follow_symlinks=False)
    subprocess.run(["cp", "-P", full.data / "a", full.data / "deep/copy"], check=True)
    os.rename(full.data / "empty", full.data / "deep/renamed")
    before = contents_of(full.data)
    assert "3 further name(s)" not in undo(full, "--dry-run").out
    assert "with 2 further name(s)" in undo(full).out
    gone(full)
    assert contents_of(full.data) == before
    assert (full.data / "a").stat().st_nlink == 3 and (full.data / "deep/copy").samefile(full.data / "hard")


def test_a_name_that_is_not_found_is_asked_for_and_then_found(full: Store) -> None:
    os.link(full.data / "a", full.plain / "hard", follow_symlinks=False)
    os.rename(full.data / "sparse", full.plain / "moved")
    before = contents_of(full.data, full.plain)
    said = undo(full, code=1).err
    assert "1 further name(s), which were not found; give --search" in said and "no link leads to it" in said, said
    assert contents_of(full.data, full.plain) == before and is_managed(full.data / "a")
    full.fsck()
    undo(full, "--search", full.plain)
    gone(full)
    assert contents_of(full.data, full.plain) == before and (full.plain / "hard").samefile(full.data / "a")


def test_a_file_without_a_name_goes_to_the_directory_that_is_given_and_never_silently(full: Store) -> None:
    content, other = bytes_of(full.data / "a"), bytes_of(full.data / "deep/two\nlines")
    (full.data / "a").unlink()
    (full.data / "deep/two\nlines").unlink()
    (full.plain / "a").write_text("somebody's")
    said = undo(full, code=1).err
    assert "2 file(s) have lost their name: give --orphans DIR" in said and str(full.data / "a") in said, said
    assert f"store gc {full.root} --purge --older-than 0s" in said and "2 thing(s) keep it" in said, said
    assert "2 obstacle(s)" in undo(full, "--dry-run", code=1).err
    assert "not a directory" in undo(full, "--orphans", full.plain / "a", code=1).err
    assert "not a directory" in undo(full, "--orphans", full.base / "none/deep", code=1).err
    rows = json.loads(undo(full, "--orphans", full.base / "new", "--dry-run", "--json").out)["files"]
    assert sum(row["orphan"] for row in rows) == 2 and not (full.base / "new").exists()
    assert "lies in the store or a target" in undo(full, "--orphans", full.root, code=1).err
    rows = json.loads(undo(full, "--orphans", full.plain, "--dry-run", "--json").out)["files"]
    assert sum(row["orphan"] for row in rows) == 2
    undo(full, "--orphans", full.plain)
    gone(full)
    assert (full.plain / "a").read_text() == "somebody's"
    assert sorted(path.read_bytes() for path in full.plain.iterdir()) == sorted([content, other, b"somebody's"])


def test_programs_that_use_the_store_are_waited_for_or_refused(full: Store) -> None:
    before = contents_of(full.data)
    script = "import sys; f=open(sys.argv[1],'rb'); print('open', flush=True); sys.stdin.readline()"
    with talking(["python3", "-c", script, full.data / "a"], full.environment()) as program:
        assert program.line() == "open\n"
        said = undo(full, code=1).err
        assert "use the store; wait until they have ended, or let undo wait: --wait SECONDS" in said, said
        assert said.count("\n") == 1, said
        assert "use the store" in undo(full, "--dry-run", code=1).err
        waiting = subprocess.Popen([STRIPEWISE, "undo", full.root, "--wait", "60"], stdout=subprocess.DEVNULL)
        time.sleep(0.7)
        assert waiting.poll() is None and is_managed(full.data / "a")
        program.end()
    assert waiting.wait(60) == 0
    gone(full)
    assert contents_of(full.data) == before


def test_a_target_that_is_away_or_an_object_of_no_file_keeps_the_store(full: Store) -> None:
    before = contents_of(full.data)
    away = full.base / "targets/t0"
    away.rename(full.base / "t0")
    assert "target t0" in undo(full, code=1).err
    (full.base / "t0").rename(away)
    assert contents_of(full.data) == before
    stray = away / "0123456789abcdef.data"
    stray.write_bytes(b"whose")
    said = undo(full, code=1).err
    assert str(stray) in said and stray.read_bytes() == b"whose" and full.root.exists(), said
    stray.unlink()
    undo(full)
    gone(full)
    assert contents_of(full.data) == before


def test_a_copy_that_reads_back_as_other_bytes_is_not_taken(full: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from stripewise.errors import StoreError
    from stripewise.store.undo import files
    from stripewise.store.undo.run import undo as undone

    before = contents_of(full.data)
    real = files.sum_of_plain

    def spoiled(path: str, read: Callable[[int], None]) -> tuple[str, os.stat_result]:
        with open(path, "r+b") as file:
            file.write(b"?")
        return real(path, read)

    monkeypatch.setattr(files, "sum_of_plain", spoiled)
    with pytest.raises(StoreError, match="read back as other bytes"):
        undone(full.root, None, [], 0.0, print, lambda *_: None)
    assert contents_of(full.data) == before and all(is_managed(path) for path in before)
    full.fsck()
    assert not [path for path in full.data.rglob("*") if ".stripewise" in path.name]


def test_an_interrupted_one_says_how_many_files_are_plain_and_goes_on(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stripewise.store.undo import files

    undone, before, real, took = whole.undo, contents_of(full.data), files.sum_of_plain, files._take_place

    def interrupted(path: str, read: Callable[[int], None]) -> tuple[str, os.stat_result]:
        if sum(not is_managed(each) for each in before) == 2:
            raise KeyboardInterrupt
        return real(path, read)

    with monkeypatch.context() as context:
        context.setattr(files, "sum_of_plain", interrupted)
        with pytest.raises(KeyboardInterrupt) as ended:
            undone(full.root, None, [], 0.0, print, lambda *_: None)
    said = ["2 file(s) are plain by now, 3 are managed; the same command goes on from there"]
    assert ended.value.__notes__ == said
    assert not hidden(full) and full.fsck().out == f"{full.root}: sound\n"
    # Behind the rename, and before the further names and the store's part.

    def interrupted_behind(*words: Any) -> None:
        took(*words)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(files, "_take_place", interrupted_behind)
        with pytest.raises(KeyboardInterrupt) as ended:
            undone(full.root, None, [], 0.0, print, lambda *_: None)
    assert ended.value.__notes__ == ["1 file(s) are plain by now, 2 are managed; the same command goes on from there"]
    assert not hidden(full) and full.fsck().out == f"{full.root}: sound\n"

    def removing(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(whole.removal, "finish", removing)
        with pytest.raises(KeyboardInterrupt) as ended:
            undone(full.root, None, [], 0.0, print, lambda *_: None)
    assert ended.value.__notes__ == [whole.ALL_PLAIN]
    undo(full)
    gone(full)
    assert contents_of(full.data) == before


def test_it_tells_how_far_it_is_within_a_large_file_too(make_store: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    from stripewise.store.undo import work
    from stripewise.store.undo.run import undo as undone

    store = make_store(dirs(2))
    store.check_at_end = False
    size = 64 << 20
    store.program("dd", "if=/dev/urandom", f"of={store.data / 'large'}", "bs=1M", f"count={size >> 20}")
    monkeypatch.setattr(work, "_LOOK_S", 0.002)
    told: list[tuple[int, int]] = []
    undone(store.root, None, [], 0.0, print, lambda done, total: told.append((done, total)))
    shares = [done / total for done, total in told]
    assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares), shares
    # While it is copied, and while both are read.
    assert len({each for each in shares if 0 < each < 0.32}) > 2, shares
    assert len({each for each in shares if 0.34 < each < 1}) > 20, shares


def test_room_is_looked_at_before_anything_changes(full: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from stripewise.store import Store as Opened
    from stripewise.store.undo import decide

    monkeypatch.setattr(decide, "free_bytes", lambda _: 700_000)
    (problem,) = decide.decide(Opened(full.root), None, []).problems
    assert "has no room" in problem and str(full.data) in problem
    # What became plain frees its objects: the largest file is what has to fit beside them.
    monkeypatch.setattr(decide, "free_bytes", lambda _: 760_000)
    assert not decide.decide(Opened(full.root), None, []).problems


def seen(*places: Path) -> dict[Path, tuple[int, int, int, int]]:
    """Everything below, as far as a removal or an exchange would show."""
    found = {path: path.lstat() for place in places for path in (place, *place.rglob("*"))}
    return {path: (each.st_ino, each.st_mode, each.st_uid, each.st_size) for path, each in found.items()}


@needs_root
@pytest.mark.parametrize("is_listed", [False, True])
def test_what_a_hostile_directory_links_and_names_stays(full: Store, is_listed: bool) -> None:
    hostile = full.plain / "hostile"
    hostile.mkdir()
    targets = [str(full.base / "targets" / target.name) for target in full.targets]
    uuid = next(
        line[5:] for line in (Path(targets[0]) / "stripewise-target").read_text().splitlines() if "uuid " in line
    )
    for name in ("run", "layouts", "plans", "undo", "files", "trash"):
        (hostile / name).symlink_to(full.root / name)
    (hostile / "inside").symlink_to(full.base)
    (full.base / "nothing").mkdir()
    named = [*targets, f"{hostile}/inside/nothing", f"{hostile}/../../nothing"]
    (hostile / "undo.json").write_text(json.dumps({"version": 1, "uuid": uuid, "targets": named}))
    chown_all(hostile, MALLORY)
    before, here = seen(full.root, full.data, full.base / "targets", full.base / "nothing"), seen(hostile)
    if is_listed:
        said = stripewise("undo", hostile, env={**os.environ, "STRIPEWISE_TRUST": str(hostile)}).out
        assert f"left, for the store did not make it: {hostile}/run" in said, said
        assert not (hostile / "undo.json").exists() and (hostile / "run").is_symlink()
    else:
        for words in ([], ["--dry-run"]):
            said = stripewise("undo", hostile, *words, code=1).err
            assert "neither you nor root" in said and said.count("\n") == 1, said
        assert seen(hostile) == here
    assert seen(full.root, full.data, full.base / "targets", full.base / "nothing") == before


@needs_root
def test_files_of_another_user_are_his_to_make_plain_first(realm: Realm, scratch: Path) -> None:
    store = create_for(scratch / "shared", 0)
    (own,) = realm.files(store, 0, 1)
    theirs = realm.files(store, MALLORY, 2)
    before = seen(store.data, store.root / "files", store.base / "targets")
    for words, told in (([], "1 thing(s) keep it"), (["--dry-run"], "1 obstacle(s)")):
        said = undo(store, *words, code=1).err
        assert f"2 file(s) belong to uid {MALLORY}: let uid {MALLORY} make them plain" in said and told in said, said
    assert seen(store.data, store.root / "files", store.base / "targets") == before
    for file in theirs:
        command = as_user(MALLORY, [STRIPEWISE, "store", "export", file.link])
        execute(command, {**os.environ, "HOME": "/nowhere"}, cwd=Path("/"))
    assert "1 file(s)" in undo(store).out
    gone(store)
    assert own.link.lstat().st_uid == 0 and own.link.read_bytes() == theirs[0].link.read_bytes() == b"attacker" * 40000
    assert theirs[0].link.lstat().st_uid == MALLORY


@needs_root
def test_a_link_of_another_user_is_no_name_of_a_file(full: Store) -> None:
    theirs = [full.data / "theirs", full.plain / "theirs"]
    for link in theirs:
        link.symlink_to(os.readlink(full.data / "a"))
        os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
    before = contents_of(full.data / "deep"), bytes_of(full.data / "a")
    assert "further name" not in undo(full, "--search", full.plain).out
    assert all(link.is_symlink() and link.lstat().st_uid == MALLORY for link in theirs)
    assert (full.data / "a").stat().st_nlink == 1 and (
        contents_of(full.data / "deep"),
        bytes_of(full.data / "a"),
    ) == before


def test_a_directory_that_others_can_change_is_refused_and_a_sticky_one_is_not(full: Store) -> None:
    deep, before = full.data / "deep", contents_of(full.data)
    for place, mode in ((deep, 0o777), (full.data, 0o757)):
        place.chmod(mode)
        said = undo(full, code=1).err
        assert f"{deep}: can be changed by others; export {deep}/" in said and " and 1 more by hand first" in said, said
        assert all(is_managed(path) for path in before)
        place.chmod(0o755)
    (full.data / "empty").unlink()
    full.plain.chmod(0o1777)
    # Where others make names, a new one could be theirs by then.
    assert f"{full.plain}: can be changed" in undo(full, "--orphans", full.plain, code=1).err
    full.plain.chmod(0o755)
    deep.chmod(0o1777)
    undo(full, "--orphans", full.plain)
    gone(full)
    assert contents_of(full.data, full.plain).keys() == {*before, full.plain / "empty"} - {full.data / "empty"}


@needs_root
def test_only_the_plain_file_that_was_compared_gets_further_names(full: Store) -> None:
    from stripewise.errors import StoreError
    from stripewise.store import Store as Opened
    from stripewise.store.undo import files
    from stripewise.store.undo.names import held_directory
    from stripewise.store.undo.notes import Note

    os.link(full.data / "a", full.data / "hard", follow_symlinks=False)
    identity = os.readlink(full.data / "a")[-16:]
    (full.data / "plain").write_text("compared")
    compared = (full.data / "plain").stat()
    (full.data / "other").write_text("another's")
    (full.data / "other").rename(full.data / "plain")
    note = Note(identity, str(full.data / "plain"), (str(full.data / "hard"),), compared.st_ino)
    with held_directory(str(full.data)) as here, pytest.raises(StoreError, match="something else took this name"):
        files._let_go(Opened(full.root), note, here, compared)
    assert is_managed(full.data / "hard") and (full.root / "files" / identity).is_dir()


def test_a_missing_part_is_named_and_not_the_lock(full: Store) -> None:
    head = full.root / "files" / os.readlink(full.data / "a")[-16:] / "head"
    head.unlink()
    said = undo(full, code=1).err
    assert "config.lock" not in said and str(head.parent.name) in said and "1 thing(s) keep it" in said, said


def test_an_error_of_the_body_keeps_its_own_file(tmp_path: Path) -> None:

    with pytest.raises(FileNotFoundError) as caught, locked_part(tmp_path, "lock"):
        os.stat(tmp_path / "none")
    assert os.fspath(caught.value.filename) == str(tmp_path / "none")
    (tmp_path / "link").symlink_to("lock")
    with pytest.raises(OSError, match="symbolic link") as caught, locked_part(tmp_path, "link"):
        pass
    assert caught.value.filename == str(tmp_path / "link")


def test_ten_obstacles_are_shown_and_the_rest_is_counted() -> None:
    from stripewise.store.undo.decide import Decision

    made = Decision(problems=[str(number) for number in range(13)], advice=["help"])
    assert made.obstacles()[:10] == made.problems[:10] and made.obstacles()[11:] == ["help"]
    assert made.obstacles()[10].startswith("and 3 more;") and made.as_json()["problems"] == made.problems
    assert Decision(problems=made.problems[:10]).obstacles() == made.problems[:10]


def test_the_directory_for_orphans_is_made_and_what_stays_is_named(make_store: Maker) -> None:
    store = make_store(dirs(2))
    store.check_at_end = False
    store.run("cp", "/etc/passwd", store.data / "f")
    (store.data / "f").unlink()
    (store.root.parent / "another.toml").write_text(dirs(1)[0].toml(store.base))
    (store.root.parent / "mine.toml").write_text(store.cluster.read_text())
    with MoverSession(Opened(store.root), {"verb": "set-layout"}, limits.Limits()):
        said = undo(store, "--orphans", store.base / "new", code=1).err
        assert f"process {os.getpid()} is moving files of the store (set-layout)" in said, said
    said = undo(store, "--orphans", store.base / "new").out
    assert [path.read_bytes() for path in (store.base / "new").iterdir()] == [Path("/etc/passwd").read_bytes()]
    assert f"left: {store.root.parent / 'cluster.toml'}, for it is yours: figures of targets" in said, said
    assert f"(-o {store.root.parent / 'mine.toml'}) takes again" in said and "another.toml" not in said, said


def test_links_that_lead_nowhere_are_named_and_an_early_signal_says_what_stands(
    make_store: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(dirs(2))
    store.check_at_end = False
    store.run("cp", "/etc/passwd", store.data / "f")
    store.run("cp", "/etc/passwd", store.data / "g")
    (store.data / "lost").symlink_to(os.readlink(store.data / "g"))
    store.run("rm", store.data / "g")

    def interrupted(_: Opened) -> None:
        raise KeyboardInterrupt

    for step in ("settle", "in_use", "Store"):
        with monkeypatch.context() as patched:
            patched.setattr(whole, step, interrupted)
            with pytest.raises(KeyboardInterrupt) as ended:
                whole.undo(store.root, None, [], 0, print, lambda _, __: None)
        assert ended.value.__notes__ == [whole.NOTHING_DONE] and is_managed(store.data / "f")
    for words, when in ((["--dry-run"], "then"), ([], "now")):
        out = undo(store, *words).out
        lost = f"leads nowhere {when}, for its file was removed before, or it is another user's: {store.data}/lost\n"
        assert lost in out and f"-lname '/stripewise:{store.root}/*'" in out, out
