"""What init was asked for, and its checks in one order: nothing is written or measured before all of them passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..cluster import CLASSES, Target
from ..errors import UsageError
from ..store.globs import default_manage, manage_globs
from ..store.owned import check_owned, check_owner, real_parent
from ..units import GRANULE_BYTES, parse_size
from . import checks
from .checks import Spot
from .emulated import emulated_targets

DEFAULT_STORE = "store"


@dataclass(frozen=True)
class Request:
    """A store over directories or, with `emulate`, over emulated targets in one. Store and file are absolute."""

    directories: tuple[Path, ...]
    emulate: bool
    store: Path
    cluster_file: Path
    manage: tuple[str, ...]
    classes: Mapping[str, str]
    capacities: Mapping[str, int]

    def homes(self) -> list[tuple[Path, Path]]:
        """Each target's directory that was given, and its own, unchecked."""
        if self.emulate:
            return [(self.directories[0], target.path) for target in self._emulated()]
        return [(home, checks.target_path(home, self.store)) for home in map(checks.absolute, self.directories)]

    def check_owned(self) -> None:
        """Raises StoreError where another user has made, or may write, what is to become the store or a target."""
        cure = "name a new directory for --emulate" if self.emulate else "give --store another name"
        paths = [path for _, path in self.homes()]
        if self.emulate:
            check_owner(self.directories[0], "--emulate: ", cure)
            paths = [*dict.fromkeys(path.parent for path in paths), *paths]
        check_owned(self.store, "--store: ", cure)
        for path in paths:
            check_owned(path, "target: ", cure)

    def globs(self) -> list[str]:
        """The globs of new files that go into the store. Raises StoreError for files that are never managed."""
        return manage_globs(self.manage) if self.manage else default_manage(self.store)

    def check(self, is_known: bool = False, why: str = "") -> None:
        """Raises StripewiseError for a store or a cluster.toml that cannot be made.

        With `is_known` the cluster.toml that is there describes the targets, and files of the user may lie beside
        emulated ones; `why` says in what another one differs.
        """
        new = self.directories[0] if self.emulate else None
        if new is not None and not is_known:
            create = checks.create_command(self.store, self.cluster_file)
            checks.check_empty(
                new, f"; {self.cluster_file} {why}; the store that it describes: {create}" if why else ""
            )
        else:
            # First: with a directory's name misspelt, nothing else is worth telling.
            for each in self.directories:
                checks.check_directory(each)
        checks.check_store(self.store, new)
        if not is_known:
            checks.check_cluster_file(self.cluster_file, self.store, new, why)
        self.globs()

    def spots(self) -> tuple[Spot, ...]:
        """The targets' names and directories. Raises StripewiseError for directories that cannot be used."""
        made = checks.spots(self.directories, self.store)
        self._check_names([spot.name for spot in made])
        return made

    def emulated(self) -> tuple[Target, ...]:
        """Emulated targets. Raises StripewiseError where they cannot be made."""
        made = self._emulated()
        for target in made:
            checks.check_target(target.path, self.store)
        self._check_names([target.name for target in made])
        return made

    def _emulated(self) -> tuple[Target, ...]:
        return emulated_targets(self.directories[0])

    def _check_names(self, names: Sequence[str]) -> None:
        for flag, given in (("--class", self.classes), ("--capacity", self.capacities)):
            for name in given:
                if name not in names:
                    raise UsageError(f"{flag}: there is no target '{name}'; targets are called {', '.join(names)}")


@dataclass(frozen=True)
class Words:
    """What the command line says of targets: TARGET=CLASS and TARGET=SIZE."""

    classes: Sequence[str] = ()
    capacities: Sequence[str] = ()


def request(
    directories: Sequence[str],
    emulate: bool,
    store: Path | None,
    output: Path | None,
    manage: Sequence[str],
    words: Words,
) -> Request:
    """A request with its defaults filled in. Raises UsageError for what makes no sense together."""
    if emulate and words.classes:
        raise UsageError("--class: emulated targets have theirs; leave it out")
    if not all(directories):
        raise UsageError("DIR: one is empty; is the variable set that it comes from?")
    if emulate and len(directories) > 1:
        raise UsageError("--emulate: makes all its targets in one directory; give one DIR")
    given = tuple(checks.absolute(Path(each)) if emulate else Path(each) for each in directories)
    root = real_parent(store if store is not None else (given[0] if emulate else Path()) / DEFAULT_STORE)
    written = root.parent / "cluster.toml" if output is None else Path(output).absolute()
    return Request(given, emulate, root, written, tuple(manage), _classes(words.classes), _capacities(words.capacities))


def _classes(words: Sequence[str]) -> dict[str, str]:
    """The classes by target that --class gives."""
    found = _pairs("--class", words)
    for name, klass in found.items():
        if klass not in CLASSES:
            raise UsageError(f"--class: {name}={klass}: there is no such class; use one of {', '.join(CLASSES)}")
    return found


def _capacities(words: Sequence[str]) -> dict[str, int]:
    """The bytes by target that --capacity gives."""
    found = {name: parse_size(size, f"--capacity {name}") for name, size in _pairs("--capacity", words).items()}
    for name, size in found.items():
        if size == 0:
            raise UsageError(f"--capacity: {name}=0 is no room; leave it out for all that its file system has")
        if size < GRANULE_BYTES:
            raise UsageError(
                f"--capacity: {name}={size} is less than {GRANULE_BYTES} bytes, which any file takes; give more"
            )
    return found


def _pairs(flag: str, words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not (name and separator and value):
            raise UsageError(f"{flag}: '{word}' is not TARGET=VALUE; write it like {flag} ssd0=VALUE")
        if name in found:
            raise UsageError(f"{flag}: {name} is given twice; give it once")
        found[name] = value
    return found
