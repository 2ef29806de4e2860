"""The user's list of stores, the library's path, and reading what lies in a store."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stripewise.errors import StoreError
from stripewise.files.parts import ANYBODY, read_part, write_durably
from stripewise.run import runner
from stripewise.store import trust


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv(trust.VARIABLE, raising=False)
    return tmp_path


def store_at(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "store.bin").write_bytes(b"x")
    return path


def test_a_store_is_listed_once_under_its_resolved_path_and_removed_again(home):
    store = store_at(home / "real" / "store")
    (home / "link").symlink_to(home / "real")
    for _ in range(2):
        assert trust.add(str(home / "link" / "store")) == str(store)
    assert trust.entries() == [str(store)]
    assert trust.list_path() == home / "home/.config/stripewise/trust"
    assert trust.list_path().stat().st_mode & 0o022 == 0
    trust.remove(str(store))
    assert trust.entries() == []
    with pytest.raises(StoreError, match="is not in"):
        trust.remove(str(store))


def test_the_list_lies_where_xdg_says(home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    trust.add(str(store_at(home / "s")))
    assert (home / "config/stripewise/trust").is_file()
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert trust.list_path() == home / "home/.config/stripewise/trust"


@pytest.mark.parametrize(
    ("name", "word"),
    [("a/b", "not absolute"), ("/no/such", "does not exist"), ("/", "not a store"), ("/no/such/*", "does not exist")],
)
def test_what_is_no_store_is_not_listed(name, word):
    with pytest.raises(StoreError, match=word):
        trust.add(name)


@pytest.mark.parametrize("name", ["co:lon", "line\nbreak", "blank "])
def test_a_path_that_a_list_cannot_name_is_refused(home, name):
    with pytest.raises(StoreError, match="cannot name"):
        trust.add(str(store_at(home / name)))


def test_a_program_gets_what_is_in_the_environment_and_in_the_list_each_once(home, monkeypatch):
    monkeypatch.setattr(runner, "library_path", lambda: Path("/pkg/lib/libstripewise.so"))
    store = str(store_at(home / "s"))
    trust.add(store)
    trust.add(f"{home}/*")
    base = {trust.VARIABLE: f"/site/a: {store} :relative"}
    made = runner.environment(base, None, Path("/trace"), [])
    assert made[trust.VARIABLE] == f"/site/a:{store}:{home}/*"
    trust.remove(store)
    trust.remove(f"{home}/*")
    assert trust.VARIABLE not in runner.environment({}, None, Path("/trace"), [])


@pytest.mark.parametrize("part", ["a:b", "a b", "a\tb", "a\nb", "a\vb", "a\xa0b", "a$ORIGIN"])
def test_the_library_is_not_preloaded_from_a_path_that_the_linker_would_split(tmp_path, monkeypatch, part):
    package = tmp_path / part
    (package / "lib").mkdir(parents=True)
    (package / "lib" / runner.LIBRARY).write_bytes(b"")
    monkeypatch.setattr(runner, "__file__", str(package / "run" / "runner.py"))
    with pytest.raises(StoreError, match="LD_PRELOAD cannot name"):
        runner.library_path()


def refusal(*arguments: object) -> OSError:
    with pytest.raises(OSError) as caught:
        read_part(*arguments)  # type: ignore[arg-type]
    return caught.value


def test_a_part_of_a_store_is_a_regular_file_reached_without_links(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"abc")
    assert read_part(tmp_path, "d/f") == b"abc"
    (tmp_path / "l").symlink_to(tmp_path / "d")
    (tmp_path / "d" / "g").symlink_to("f")
    os.mkfifo(tmp_path / "fifo")
    assert "symbolic link" in str(refusal(tmp_path, "d/g"))
    assert refusal(tmp_path, "l/f").errno in (errno.ELOOP, errno.ENOTDIR)
    assert "regular" in str(refusal(tmp_path, "fifo")) and "regular" in str(refusal(tmp_path, "d"))
    assert "longer" in str(refusal(tmp_path, "d/f", 2))
    assert refusal(tmp_path, "d/f", 9, {os.geteuid() + 1}).errno == errno.EPERM
    assert read_part(tmp_path, "d/f", 9, ANYBODY) == b"abc"
    assert refusal(tmp_path / "d", "../d/f").errno == errno.EINVAL
    assert refusal(tmp_path, "/etc/passwd").errno == errno.EINVAL


def test_a_file_is_replaced_under_no_name_that_anybody_knows(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".f.{os.getpid()}.tmp", "f.tmp"):
        (tmp_path / name).symlink_to(victim)
    write_durably(tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "new" and victim.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 4
