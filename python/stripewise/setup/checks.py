"""What init is given, checked before anything is written or measured: the store's place, the directories, the names."""

from __future__ import annotations

import os
import stat
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import native
from ..cluster.cluster import toml_string
from ..errors import StoreError, UsageError
from ..files.parts import is_read_only
from ..store.config import STORE_PATH_BYTES_MAX, store_root
from ..store.owned import IDENTITY, UNFINISHED
from ..units import command_line, quoted


@dataclass(frozen=True)
class Spot:
    """A directory that was given, and the target that it is to hold: its name, and a directory of its own in it."""

    name: str
    directory: Path
    path: Path


def absolute(path: Path) -> Path:
    """`path` from the working directory, symbolic links followed: what is measured is what is written down."""
    return Path(os.path.realpath(path))


def target_path(directory: Path, store: Path) -> Path:
    """The target's own directory in one that was given: what else lies there stays apart, and so do other stores."""
    return directory / f"stripewise-{store.name}"


def check_store(store: Path, new: Path | None = None) -> None:
    """Raises StoreError where no store can be made, or where there is one; the directory `new` may be missing yet."""
    _check_text(store, "--store")
    if (store / "store.bin").exists():
        store_root(store)
        raise StoreError(
            f"{store}: is a store already; use it with 'stripewise tune --store {quoted(store)} -- CMD', or "
            f"give --store another name"
        )
    parent = store.parent
    if parent == new and not os.path.lexists(new):
        return
    if not parent.is_dir():
        raise StoreError(f"--store: {parent} is not a directory; create it, or give a store in an existing one")
    outer = _enclosing(parent)
    if outer is not None:
        raise StoreError(f"--store: {store} would lie in {outer}; give it a place of its own")
    _check_writable(parent, "--store: ")
    if not os.path.lexists(store):
        return
    if not store.is_dir():
        raise StoreError(f"--store: {store} is a file; give the store a name of its own")
    _check_writable(store, "--store: ")
    others = _others(store, UNFINISHED)
    if others:
        raise StoreError(f"--store: {store} is not empty (it holds {others[0]}); give the store a new name")


def check_cluster_file(path: Path, store: Path, new: Path | None = None, why: str = "") -> None:
    """Raises UsageError where the file is there already, which does not do because of `why`, or cannot be made; the
    directory `new` may be missing yet.
    """
    if os.path.lexists(path):
        other = quoted(path.with_name("other.toml"))
        raise UsageError(
            f"{path} {why or 'exists'} and is not overwritten; leave it and add -o {other}, remove it (rm "
            f"{quoted(path)}), or make the store that it describes: {create_command(store, path)}"
        )
    _check_text(path, "-o")
    if path.parent == new and not os.path.lexists(new):
        return
    if not path.parent.is_dir():
        raise UsageError(f"-o: {path.parent} is not a directory; give a file in an existing one")
    _check_writable(path.parent, "-o: ")


def spots(given: Sequence[Path], store: Path) -> tuple[Spot, ...]:
    """The target that each directory is to hold, named after it. StoreError for what cannot be one."""
    most = native.limit("MAX_TARGETS")
    if len(given) > most:
        raise StoreError(f"{len(given)} directories are more than the {most} targets that a store holds; give fewer")
    seen: dict[Path, Path] = {}
    for each in given:
        check_directory(each)
        real = absolute(each)
        if real in seen:
            twice = f"as {seen[real]} and {each}" if str(seen[real]) != str(each) else "twice"
            raise StoreError(f"{real}: is given {twice}; give each directory once")
        seen[real] = each
    made = [
        Spot(name, directory, target_path(directory, store))
        for name, directory in zip(_names(list(seen)), seen, strict=True)
    ]
    for spot in made:
        check_target(spot.path, store)
    for each in seen.values():
        _check_takes_files(each)
    for one in made:
        for other in (store, *(spot.path for spot in made if spot is not one)):
            for inner, outer in ((one.path, other), (other, one.path)):
                if inner.is_relative_to(outer):
                    raise StoreError(f"{one.directory}: {inner} would lie in {outer}; give directories apart")
    return tuple(made)


def check_target(path: Path, store: Path) -> None:
    """Raises StoreError where `path` cannot become a target's directory of this store."""
    _check_text(path, "a target")
    outer = _enclosing(path.parent)
    if outer is not None:
        raise StoreError(f"{path.parent}: lies in {outer}; give a directory outside of it")
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        raise StoreError(f"{path}: exists and is not a directory; remove it, or give --store another name")
    _check_writable(path, "")
    others = _others(path, {IDENTITY})
    if others:
        raise StoreError(
            f"{path}: is not empty (it holds {others[0]}); remove it if its store is gone, or give --store another name"
        )
    owner = _owner(path)
    if owner is not None and owner != os.fsencode(store):
        whose = f"belongs to the store {os.fsdecode(owner)}" if owner else f"has a {IDENTITY} that cannot be read"
        raise StoreError(
            f"{path}: {whose}; if that store is gone, remove {path / IDENTITY}, else give --store another name"
        )


def create_command(store: Path, cluster: Path) -> str:
    """What makes the store that a cluster.toml describes, for the shell."""
    return command_line(["stripewise", "store", "create", str(store), "--cluster", str(cluster)])


def check_empty(directory: Path, more: str = "") -> None:
    """Raises StoreError where `directory` cannot be made or holds what a killed init does not leave; it says `more`."""
    if os.path.lexists(directory):
        check_directory(directory)
        others = _others(directory, {"store", "targets", "cluster.toml"})
        if others:
            raise StoreError(
                f"{directory}: is not empty (it holds {others[0]}); name a new directory for --emulate{more}"
            )
        return
    if not directory.parent.is_dir():
        raise StoreError(f"{directory.parent}: is not a directory; create it, or name another one for --emulate")
    _check_writable(directory.parent, "")


def check_directory(path: Path) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        link = f" (a link to {os.readlink(path)})" if path.is_symlink() else ""
        raise StoreError(f"{path}{link}: does not exist; mount its disk, or create the directory") from error
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be looked at ({error.strerror}); give a directory that you may use"
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{path}: is not a directory; give directories on disks and SSDs")
    _check_writable(path, "")


def _check_writable(path: Path, where: str) -> None:
    if is_read_only(path):
        raise StoreError(f"{where}{path} is mounted read-only; mount it for writing, or give another directory")
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreError(
            f"{where}{path} may not be written by you; have a directory of your own made in it, and give that one"
        )


def _check_takes_files(path: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise StoreError(f"{path}: takes no files ({error.strerror}); give a directory on a disk or SSD") from error


def _check_text(path: Path, what: str) -> None:
    if len(os.fsencode(path)) > STORE_PATH_BYTES_MAX:
        raise StoreError(f"{what}: {path} is longer than {STORE_PATH_BYTES_MAX} bytes; use a shorter path")
    toml_string(str(path))


def _others(directory: Path, known: set[str]) -> list[str]:
    """Names in a directory, but for those known and temporary ones of files that were being written."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise StoreError(f"{directory}: cannot be listed ({error.strerror}); give a directory that you own") from error
    return [name for name in names if name not in known and not (name[0] == "." and name.endswith(".tmp"))]


def _enclosing(directory: Path) -> str | None:
    """The store or target that `directory` lies in, in words; None if in none."""
    for place in (directory, *directory.parents):
        owner = _owner(place)
        if owner is not None:
            text = f"{place}, a target of {f'the store {os.fsdecode(owner)}' if owner else 'a store'}"
            if owner and not os.path.lexists(os.path.join(os.fsdecode(owner), "store.bin")):
                text += f", which is not there (if it is gone for good, remove {place / IDENTITY})"
            return text
        if (place / "store.bin").is_file() and (place / "store.toml").is_file():
            return f"the store {place}"
    return None


def _owner(directory: Path) -> bytes | None:
    """The store that a target's directory names; empty where it names none that can be read, None where it is none."""
    path = directory / IDENTITY
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            text = file.read(4096)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""
    marker = text.find(b"\nstore ")
    return text[marker + 7 :].rstrip(b"\n") if marker >= 0 else b""


def _names(directories: Sequence[Path]) -> list[str]:
    """A name for each: the last part of its path, of as many parts as tell it from the others."""
    deepest = max(len(path.parts) for path in directories)
    for count in range(1, deepest + 1):
        names = ["-".join(_plain(part) for part in path.parts[1:][-count:]) or "root" for path in directories]
        if len(set(names)) == len(names):
            return names
    # Parts that differ only in what no name may hold.
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return numbered if len(set(numbered)) == len(names) else [f"t{number}" for number in range(len(names))]


def _plain(part: str) -> str:
    return "".join(char if char.isprintable() and char not in " /:,=" else "-" for char in part)
