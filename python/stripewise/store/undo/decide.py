"""What undoing a store would do, and what keeps it from being done: looked at before anything is changed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import StoreError
from ...files.parts import held_place
from ...layout import target_bytes
from ...units import command_line, format_size, quoted
from ..copies.build import is_container
from ..copies.listed import copies_of
from ..placed import allocated_bytes
from ..room import read_only_targets
from ..store import Store, StoredFile, recorded_name
from ..templates import templates_in
from ..trust import user_name
from ..upkeep import lost as lost_of
from .names import Links, find_links, link_id, others_change

#: So many obstacles are shown; `undo --dry-run --json` has all.
OBSTACLES_SHOWN = 10


@dataclass(frozen=True)
class Outgoing:
    """A file that becomes plain at `path`; `others` are further names that become names of the plain file.

    `is_orphan`: no link leads to it, and `path` is a new name. `held` are the bytes of its objects by target.
    """

    id: str
    path: str
    others: tuple[str, ...]
    size: int
    held: dict[str, int]
    is_orphan: bool = False

    @property
    def data_bytes(self) -> int:
        """What the plain file takes of its disk, about: holes stay holes."""
        return sum(self.held.values())


@dataclass
class Decision:
    """What is to be done, and the sentences that say why it cannot be."""

    files: list[Outgoing] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: What helps against several of them.
    advice: list[str] = field(default_factory=list)
    templates: int = 0
    plans: int = 0
    #: Plain files that have copies in the store; these go first.
    copies: int = 0
    unread: list[str] = field(default_factory=list)
    #: Targets that are away, which no file needs, each as a sentence: what lies there is left.
    away: list[str] = field(default_factory=list)
    #: Links to the store that lead nowhere from then on: their file was removed before, or they are another user's.
    dangling: list[str] = field(default_factory=list)
    #: Where links were looked for, with all below.
    searched: list[str] = field(default_factory=list)

    @property
    def orphans(self) -> list[Outgoing]:
        return [file for file in self.files if file.is_orphan]

    @property
    def data_bytes(self) -> int:
        return sum(file.data_bytes for file in self.files)

    def obstacles(self) -> list[str]:
        """What a person is told of what keeps it from being done."""
        more = len(self.problems) - OBSTACLES_SHOWN
        rest = [f"and {more:,} more; 'stripewise undo --dry-run --json' has all"] if more > 0 else []
        return [*self.problems[:OBSTACLES_SHOWN], *rest, *self.advice]

    def as_json(self) -> dict[str, Any]:
        """The decision as `undo --dry-run --json` prints it."""
        return {
            "files": [
                {
                    "path": file.path,
                    "id": file.id,
                    "size": file.size,
                    "other_names": list(file.others),
                    "orphan": file.is_orphan,
                }
                for file in self.files
            ],
            "data_bytes": self.data_bytes,
            "templates": self.templates,
            "plans": self.plans,
            "copies": self.copies,
            "unread": self.unread,
            "away": self.away,
            "dangling": self.dangling,
            "searched": self.searched,
            "problems": self.problems,
            "advice": self.advice,
        }


def decide(store: Store, orphans: Path | None, search: Iterable[Path]) -> Decision:
    """Looks at everything, changes nothing."""
    made = Decision(templates=len(templates_in(store.config)), plans=len(store.config.plans))
    made.problems += in_use(store)
    made.problems += _unwritable(store)
    made.copies = len(copies_of(store))
    files = [file for file in store.files() if not is_container(store.root, file.path)]
    copies = [allocated_bytes(store, file.id) for file in store.files() if is_container(store.root, file.path)]
    made.problems += _away(store, files, made)
    recorded = {file.id: recorded_name(store.root, file.id) for file in files}
    links = find_links(
        store.config, recorded, [*search, *([orphans] if orphans is not None and orphans.is_dir() else [])]
    )
    made.unread, made.searched = links.unread, links.searched
    gone = [path for identity, paths in links.by_id.items() if identity not in recorded for path in paths]
    made.dangling = sorted([*gone, *links.foreign])
    damaged = lost_of(store, [file.id for file in files])
    lost = []
    others: Counter[int] = Counter()
    for file in files:
        if file.details.get("error"):
            made.problems.append(
                f"file {file.id}: {file.details['error']}; see 'stripewise store fsck {quoted(store.root)}'"
            )
            continue
        try:
            owner = owner_of(store, file.id)
        except OSError as error:
            made.problems.append(
                f"{error.filename}: {error.strerror}; see 'stripewise store fsck {quoted(store.root)}'"
            )
            continue
        if owner != os.geteuid():
            others[owner] += 1
            continue
        made.problems += ["; ".join(filter(None, each)) for each in damaged.get(file.id, ())]
        name = recorded[file.id]
        names = _names(store, file.id, name, links)
        held = allocated_bytes(store, file.id)
        if names:
            made.problems += _unseen_names(names)
            made.files.append(Outgoing(file.id, names[0], tuple(names[1:]), file.size, held))
        elif orphans is not None:
            new = _orphan_name(orphans, name, file.id, {each.path for each in made.files})
            made.files.append(Outgoing(file.id, new, (), file.size, held, is_orphan=True))
        else:
            lost.append(f"file {file.id} ({format_size(file.size)}), once {name or 'without a name'}")
    made.problems += [
        f"{count} file(s) belong to {user_name(owner)}: let {user_name(owner)} make them plain with "
        "'stripewise store export', then run undo again"
        for owner, count in sorted(others.items())
    ]
    if lost:
        made.problems += [f"{each}: no link leads to it" for each in lost]
        made.advice.append(
            f"{len(lost)} file(s) have lost their name: give --orphans DIR, which gets them, or --search DIR, where "
            f"their links may be; 'stripewise store gc {quoted(store.root)} --purge --older-than 0s' removes those "
            "that nobody wants; without --older-than, only those older than 7 days"
        )
    made.problems += _places(store, made.files, orphans)
    made.problems += _room(store, made.files, copies)
    return made


def owner_of(store: Store, identity: str) -> int:
    """Whose file it is: of its head, or whoever could exchange that. Raises OSError."""
    with held_place(store.root, f"files/{identity}/head") as (at, last, _):
        for found in (os.fstat(at), os.stat(last, dir_fd=at, follow_symlinks=False)):
            if found.st_uid not in (0, os.geteuid()):
                return found.st_uid
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return found.st_uid


def away_targets(store: Store) -> dict[str, str]:
    """Why a target is away, by name."""
    return {str(row["name"]): str(row["away"]) for row in store.devices() if row.get("away")}


def _away(store: Store, files: list[StoredFile], made: Decision) -> list[str]:
    """Targets that are away and that a file needs; the others are noted in `made`."""
    away = away_targets(store)
    needing: dict[str, list[str]] = {name: [] for name in away}
    for file in files if away else ():
        # Of one whose layout cannot be read is told anyway.
        with contextlib.suppress(StoreError):
            for name, count in target_bytes(store.layout(file.id).regions, file.size).items():
                if count and name in needing:
                    needing[name].append(file.path or file.id)
    made.away = [f"target {name}: {why}" for name, why in away.items() if not needing[name]]
    return [
        f"target {name}: {away[name]}; {len(paths)} file(s) have bytes there, such as {paths[0]}; where it is lost for "
        f"good, give each of them up, then run undo again: {_run_rm(store, paths[0])}"
        for name, paths in needing.items()
        if paths
    ]


def _run_rm(store: Store, path: str) -> str:
    return command_line(["stripewise", "run", "--store", str(store.root), "--", "rm", path])


def in_use(store: Store) -> list[str]:
    pids = sorted(int(program["pid"]) for program in store.programs())
    if not pids:
        return []
    return [
        f"{store.root}: process(es) {', '.join(map(str, pids))} use the store; wait until they have ended, or "
        "let undo wait: --wait SECONDS"
    ]


def _names(store: Store, identity: str, recorded: str, links: Links) -> list[str]:
    """All names of a file that lead to it now, the recorded one first."""
    names = list(links.by_id.get(identity, []))
    # As the links found are: through no symbolic link.
    real = os.path.join(os.path.realpath(os.path.dirname(recorded)), os.path.basename(recorded))
    if recorded and link_id(real, store.root) == identity:
        names = [real, *(name for name in names if name != real)]
    return names


def _unseen_names(names: list[str]) -> list[str]:
    """A hard link to the file's link that was not found would lead nowhere."""
    first = os.lstat(names[0])
    seen = sum(os.path.samestat(os.lstat(name), first) for name in names)
    if first.st_nlink <= seen:
        return []
    return [f"{names[0]}: has {first.st_nlink - seen} further name(s), which were not found; give --search DIR"]


def _orphan_name(directory: Path, recorded: str, identity: str, taken: set[str]) -> str:
    base = os.path.basename(recorded) or identity
    path = os.path.join(os.path.realpath(directory), base)
    if path in taken or os.path.lexists(path):
        path = f"{path}.{identity}"
    return path


def is_new(orphans: Path) -> bool:
    """Whether the directory for orphans is not there, and can be made."""
    return not os.path.lexists(orphans) and orphans.absolute().parent.is_dir()


def _places(store: Store, files: list[Outgoing], orphans: Path | None) -> list[str]:
    """Directories in which nothing can be written, and one for orphans that is none or the store's."""
    problems = []
    directories = {os.path.dirname(name) for file in files for name in (file.path, *file.others)}
    if orphans is not None:
        full = Path(os.path.realpath(orphans))
        apart = [Path(os.path.realpath(path)) for path in (store.root, *(t.path for t in store.config.cluster.targets))]
        if any(full == each or each in full.parents for each in apart):
            problems.append(f"--orphans: {orphans} lies in the store or a target; choose a directory of your own")
        elif is_new(orphans):
            # The undo makes it; who may change its parent could exchange it.
            directories.discard(str(full))
            if others_change(str(full.parent)) or not os.access(full.parent, os.W_OK | os.X_OK):
                problems.append(
                    f"--orphans: {full.parent}: is not yours alone to write; choose a directory of your own"
                )
        elif not full.is_dir():
            problems.append(f"--orphans: {orphans} is not a directory; give one, or a new name in one")
            directories.discard(str(full))
    for directory in sorted(directories):
        here = [file for file in files if file.is_orphan and os.path.dirname(file.path) == directory]
        if here and others_change(directory, is_sticky_fine=False):
            problems.append(f"--orphans: {directory}: can be changed by others; choose a directory of your own")
        elif others_change(directory):
            names = [n for file in files for n in (file.path, *file.others) if os.path.dirname(n) == directory]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            problems.append(f"{directory}: can be changed by others; export {names[0]}{more} by hand first")
    return problems + [
        f"{directory}: cannot be written; files become plain there, so give yourself permission"
        for directory in sorted(directories)
        if not os.access(directory, os.W_OK | os.X_OK)
    ]


def _unwritable(store: Store) -> list[str]:
    """Targets that are there and of which nothing can be removed."""
    read_only = read_only_targets(store)
    return [
        *read_only.values(),
        *(
            f"target {target.name}: {target.path} may not be written by this user; give yourself permission"
            for target in store.config.cluster.targets
            if target.state != "removed"
            and target.name not in read_only
            and target.path.is_dir()
            and not os.access(target.path, os.W_OK | os.X_OK)
        ),
    ]


def _room(store: Store, files: list[Outgoing], copies: list[dict[str, int]]) -> list[str]:
    """File systems that would be full on the way: each file is copied before what the store has of it goes. What
    copies take goes before the first; they are given by target.
    """
    where = {target.name: _device(target.path) for target in store.config.cluster.targets}
    freed: Counter[int | None] = Counter()
    for held in copies:
        for name, count in held.items():
            freed[where.get(name)] += count
    free: dict[int, int] = {}
    short: dict[int, tuple[int, str]] = {}
    for file in files:
        place = os.path.dirname(file.path)
        device = _device(Path(place))
        if device is None:
            continue
        free.setdefault(device, free_bytes(place) + freed[device])
        free[device] -= file.data_bytes
        if free[device] < 0:
            short[device] = max(short.get(device, (0, place)), (-free[device], place))
        for name, count in file.held.items():
            if (of := where.get(name)) in free and of is not None:
                free[of] += count
    return [
        f"{place}: its file system has no room: {format_size(missing)} short; free some space there"
        for missing, place in short.values()
    ]


def _device(path: Path) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def free_bytes(place: str) -> int:
    """What the file system of a directory can still take."""
    found = os.statvfs(place)
    return (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * found.f_frsize
