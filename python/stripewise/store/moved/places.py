"""Where the targets of a moved store are now, and what store.toml says of places that moved with it.

A directory is a target by what it says itself: the store's uuid and the target's number. It is looked for where it lay,
seen from the directories above the store: `lab/t0` beside `lab/store` is found as `new/t0` beside `new/store`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import StoreError
from ...files.parts import held_place, read_at
from ..config import Rule, StoreConfig
from ..globs import escape
from ..owned import IDENTITY
from ..rewrite import changing, write_changed

_IDENTITY_BYTES_MAX = 16 << 10


@dataclass(frozen=True)
class Followed:
    """What store.toml says otherwise now: paths of targets by name, and globs of rules, by the former one; and how many
    kept plans there are, which may name files and directories of the former place.
    """

    targets: dict[str, Path]
    globs: dict[str, str]
    plans: int


def follow(root: Path) -> Followed:
    """Makes store.toml name the places that its targets and files have now. Raises StoreError where it cannot be
    written, or where several directories say that they are the same target.
    """
    with changing(root) as config:
        targets = dict(_found(config))
        moved = [target if target.name not in targets else replace(target, path=targets[target.name])
                 for target in config.cluster.targets]  # fmt: skip
        after = config.with_targets(moved)
        pairs = [pair for target in config.cluster.targets if (pair := _pair(target.path, targets.get(target.name)))]
        pairs += _of_store(after)
        globs = {rule.glob: glob for rule in config.rules if (glob := _moved_glob(rule, pairs)) != rule.glob}
        after = after.with_rules([replace(rule, glob=globs.get(rule.glob, rule.glob)) for rule in config.rules])
        if after != config:
            write_changed(config, after)
    # What is left of a removed one lies in the store, and went with it.
    told = {each.name: targets[each.name] for each in moved if each.name in targets and each.state != "removed"}
    return Followed(told, globs, len(config.plans) if after != config else 0)


def _found(config: StoreConfig) -> Iterator[tuple[str, Path]]:
    """The targets that are not where store.toml says, and where they are."""
    for index, target in enumerate(config.cluster.targets):
        if _is_target(target.path, config, index) or (
            os.path.lexists(target.path / IDENTITY) and not _is_ours(target.path, config)
        ):
            continue
        # Where two targets' paths are swapped, each is in the other's place.
        others = (each.path for each in config.cluster.targets)
        places = {
            os.path.realpath(place): place
            for place in (*_places(config.root, target.path), *others)
            if _is_target(place, config, index)
        }
        if len(places) > 1:
            raise StoreError(
                f"target {target.name}: {' and '.join(map(str, places.values()))} both say that they are it; remove "
                f"the file {IDENTITY} of the one that is a copy"
            )
        for place in places.values():
            yield target.name, place


def _places(root: Path, path: Path) -> Iterator[Path]:
    """Where a target that lay at `path` may be: each end of its path, below each directory above the store."""
    for above in (root, *root.parents):
        for number in range(1, len(path.parts)):
            yield above.joinpath(*path.parts[number:])


def _store_in(place: Path, root: Path) -> tuple[list[bytes], str]:
    """The lines of a target's identity, and the store that it names; nothing where there is none, or where directory
    or identity are another user's than the store at `root`: anybody can write what a target says.
    """
    with contextlib.suppress(OSError), held_place(place, IDENTITY) as (at, last, owner):
        owners = frozenset((os.stat(root).st_uid, 0))
        if owner in owners:
            head, _, store = read_at(at, last, _IDENTITY_BYTES_MAX, owners).partition(b"\nstore ")
            return head.splitlines(), os.fsdecode(store.removesuffix(b"\n"))
    return [], ""


def _is_ours(place: Path, config: StoreConfig) -> bool:
    return f"uuid {config.uuid.replace('-', '').lower()}".encode() in _store_in(place, config.root)[0]


def _is_target(place: Path, config: StoreConfig, index: int) -> bool:
    return _is_ours(place, config) and f"index {index}".encode() in _store_in(place, config.root)[0]


def _of_store(config: StoreConfig) -> list[tuple[str, str]]:
    """Where the store and what lay beside it were, by what its targets say, and where they are now."""
    for index, target in enumerate(config.cluster.targets):
        was = _store_in(target.path, config.root)[1] if _is_target(target.path, config, index) else ""
        if was and was != str(config.root) and not os.path.lexists(os.path.join(was, "store.bin")):
            pair = _pair(Path(was), config.root)
            return [(was, str(config.root)), *([pair] if pair else [])]
    return []


def _pair(was: Path, now: Path | None) -> tuple[str, str] | None:
    """The directories above both, the topmost, of which the former one is gone: `p/lab` and `q/lab` where `p` is still
    there. None where nothing is.
    """
    found = None
    old, new = (was.parts, now.parts) if now is not None else ((), ())
    while len(old) > 1 and len(new) > 1 and not os.path.lexists(Path(*old)):
        found = str(Path(*old)), str(Path(*new))
        if old[-1] != new[-1]:
            break
        old, new = old[:-1], new[:-1]
    return found


def _moved_glob(rule: Rule, pairs: list[tuple[str, str]]) -> str:
    for was, now in sorted(pairs, key=lambda pair: -len(pair[0])):
        before = escape(was)
        if rule.glob == before or rule.glob.startswith(before + "/"):
            return escape(now) + rule.glob.removeprefix(before)
    return rule.glob
