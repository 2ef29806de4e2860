"""Targets that leave and targets that come: files move off the one and onto the other while programs use them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..cluster import Target
from ..errors import LayoutError, StoreError
from ..files.parts import read_part, write_durably
from ..layout import DRAINED, OWN, Layout, Region, target_bytes
from ..plan.check import undo_drain
from ..store import Store, StoredFile
from ..store.config import StoreConfig, check_apart
from ..store.copies.build import is_container
from ..store.copies.listed import copies_of
from ..store.nameless import cure, nameless
from ..store.rewrite import changing, write_changed
from ..store.room import FILLS, fills, is_given, room_bytes, spread
from ..store.substitute import on_active
from ..store.upkeep import collect
from ..units import command_line, format_size, quoted
from .mover_session import MoverSession
from .plan_applier import missing_room
from .swept import Swept

#: Between two passes over the files of a store, seconds.
PASS_S = 0.5
#: Where a removed target's number goes on existing, in the store (crates/store, create.rs).
REMOVED_DIR = "removed"
#: What marks a target's directory as the store's (docs/formats.md).
IDENTITY = "stripewise-target"

Say = Callable[[str], None]


def is_removed(store: Store, name: str) -> bool:
    """Whether a target of this name was taken out of the store."""
    return any(target.name == name and target.state == "removed" for target in store.config.cluster.targets)


def write_config(store: Store, config: StoreConfig) -> Store:
    """Makes `config` the store's; the old one stays when it does not do."""
    with changing(store.root) as now:
        if now != store.config:
            raise StoreError(f"{config.path}: was changed by another verb meanwhile; run the same again")
        before = read_part(store.root, store.config.path.name).decode("utf-8")
        try:
            write_changed(store.config, config)
            return Store(store.root)
        except BaseException:
            write_durably(config.path, before)
            raise


def with_state(store: Store, name: str, state: str) -> StoreConfig:
    """The store's configuration with a target in another state."""
    wanted = [replace(t, state=state) if t.name == name else t for t in store.config.cluster.targets]
    if not any(t.is_active for t in wanted):
        back = _others_back(store.config, name)
        way_out = f"{back}or add another first" if back else "add another first"
        raise StoreError(f"{store.config.path}: '{name}' is the only target that takes data; {way_out}")
    return store.config.with_targets(wanted)


def check_room(store: Store, name: str) -> None:
    """StoreError where the other targets cannot take what lies on `name`; nothing of one that is away moves."""
    if _away(store, name):
        return
    held = sum(target_bytes(layout.regions, file.size).get(name, 0) for file, layout in _layouts(store))
    room = room_bytes(store, idle=(name,))
    free = sum(room.get(target.name, 0) for target in store.config.cluster.active if target.name != name)
    if held > free:
        raise StoreError(
            f"target {name}: holds {format_size(held)}, the others have room for {format_size(free)}, so nothing was "
            f"moved; {_others_back(store.config, name)}add a target with 'stripewise store add', or remove files first"
            f"{_in_vain(store)}"
        )


def _others_back(config: StoreConfig, name: str) -> str:
    """How another target that is draining comes back, before advice to add one; empty where there is none."""
    draining = (t.name for t in config.cluster.targets if t.state == "draining" and t.name != name)
    commands = [f"'{undo_drain(config.root, other)}'" for other in draining]
    return f"take back what is being drained ({', '.join(commands)}), " if commands else ""


def _in_vain(store: Store) -> str:
    """What files whose name is gone hold, behind advice to remove some."""
    gone = nameless(store)
    return f": {gone.what}; {cure(store)}" if gone.ids else ""


def take_back(session: MoverSession, name: str) -> Store | None:
    """Makes a draining target active again; what has moved off it stays where it is. None where it is active already.

    The session is the store's, so that no drain goes on meanwhile.
    """
    target = session.store.config.target(name)
    if target.is_active:
        return None
    put_back(session.store, name)
    return write_config(session.store, with_state(session.store, name, "active"))


def laid_out_off(store: Store, name: str) -> list[str]:
    """The files of a layout that somebody gave them and a drain has changed, and whose further growth goes to other
    targets than this one: what was moved of them comes back neither with the target nor with a rebalance.
    """
    found = []
    for file in store.files():
        with contextlib.suppress(StoreError, LayoutError):
            layout = store.layout(file.id)
            if layout.origin == DRAINED and name not in dict(layout.regions[-1].stripes):
                found.append(file.path or file.id)
    return found


def drain(session: MoverSession, name: str, say: Say, patience_s: float, wait_for_programs: bool = True) -> Swept:
    """Moves everything off a draining target. Sweeps until a pass finds nothing and no program could add to it.

    Without `wait_for_programs`, those that began before may: `remove` then takes the directory out of their way.
    """
    store, since, said = session.store, time.monotonic(), ""
    swept = Swept(is_away=bool(_away(store, name)), drained=name)
    if swept.is_away:
        # How long a file is that a killed program had open only its objects may tell, those there among them.
        there = list(_files_on(store, name))
        containers = [file for file in there if is_container(store.root, file.path)]
        swept.left = [f"{file.path or file.id}: may have a part there" for file in there if file not in containers]
        swept.left += _copies_there(store, containers)
        return _ended(session, swept)
    while not session.stopped:
        before = swept.moved_bytes
        # Looked at before the pass, which does not see what a program makes meanwhile, and may be the last one.
        stale = sorted(p["pid"] for p in store.programs() if p["is_stale"])
        swept.left = _pass(session, _off(store, name), swept, name)
        if session.stopped:
            # Objects of the file that was under way lie there still, and its layout names them.
            break
        held = _held(store, name)
        if held and not swept.left:
            _end_moves(session, name)
            # Unlinked files hold theirs until nobody has them open.
            collect(store, False, 0, None)
            held = _held(store, name)
        strays = bool(held and not swept.left)
        if strays:
            purge = command_line(["stripewise", "store", "fsck", str(store.root), "--repair", "--purge"])
            swept.left.append(f"{held} file(s) that are gone have objects there, of no use; remove them: {purge}")
        if stale and wait_for_programs:
            swept.left.append(f"process(es) {', '.join(map(str, stale))} began before and may still make files there")
        if not swept.left:
            break
        if strays and len(swept.left) == 1 and not _in_trash(store):
            # Nobody is there who could let go of them.
            break
        since = time.monotonic() if swept.moved_bytes > before else since
        if time.monotonic() - since >= patience_s:
            swept.waited_s = patience_s
            break
        if swept.left[0] != said:
            said = swept.left[0]
            say(f"target {name}: waits up to {patience_s:g} s for this to change (--patience): {said}")
        session.wait(PASS_S)
    return _ended(session, swept)


def rebalance(session: MoverSession, everything: bool) -> Swept:
    """Lays files out as new ones would be if none were there. Those somebody laid out stay, without `everything`."""
    store, swept = session.store, Swept()
    cluster, template = store.config.cluster, store.config.layout(store.config.default_layout)
    room = {target.name: room_bytes(store).get(target.name, 0) for target in cluster.active}
    for file, layout in _layouts(store):
        if not everything and is_given(layout, template):
            swept.kept += not is_container(store.root, file.path)
            continue
        for name, count in target_bytes(layout.regions, file.size).items():
            room[name] = room.get(name, 0) + count

    def anew(file: StoredFile, layout: Layout) -> Layout:
        is_somebodys = is_given(layout, template)
        if is_somebodys and not everything:
            return layout
        wanted, last = spread(template, cluster, room, file.id).regions, layout.regions[-1].stripes
        # Widths follow the room to the byte: what is nearly right stays where it lies.
        places = [{name for name, _ in region.stripes} for region in wanted]
        same = all({name for name, _ in region.stripes} in places for region in layout.regions)
        same = same and {name for name, _ in last} == places[-1]
        return layout if same and not is_somebodys and fills(last, room) >= FILLS else Layout(wanted, OWN)

    swept.left = _pass(session, anew, swept)
    return _ended(session, swept)


def _layouts(store: Store) -> Iterable[tuple[StoredFile, Layout]]:
    """Every file whose layout can be read, with it: one that is just being made, or goes, holds little."""
    for file in store.files():
        with contextlib.suppress(StoreError, LayoutError):
            yield file, store.layout(file.id)


def _off(store: Store, name: str) -> Callable[[StoredFile, Layout], Layout]:
    cluster, template = store.config.cluster, store.config.layout(store.config.default_layout)
    free = room_bytes(store)
    held: dict[str, int] = {}
    for file, layout in _layouts(store):
        for holder, count in target_bytes(layout.regions, file.size).items():
            held[holder] = held.get(holder, 0) + count
    for target in cluster.targets:
        if target.capacity_bytes:
            room = target.usable_bytes - held.get(target.name, 0)
            free[target.name] = min(free[target.name], max(0, room))

    def moved(file: StoredFile, layout: Layout) -> Layout:
        if not any(name == stripe[0] for region in layout.regions for stripe in region.stripes):
            return layout
        rest = on_active(layout, cluster, file.size, dict(free)).regions
        before = target_bytes(layout.regions, file.size)
        more = {t: count - before.get(t, 0) for t, count in target_bytes(rest, file.size).items()}
        if any(count > free.get(t, 0) for t, count in more.items()):
            # Where one place more in each cycle does not do, the file goes where there is room.
            room = {t.name: free.get(t.name, 0) + before.get(t.name, 0) for t in cluster.active}
            rest = spread(template, cluster, room, file.id).regions
            more = {t: count - before.get(t, 0) for t, count in target_bytes(rest, file.size).items()}
        for t, count in more.items():
            free[t] = max(0, free.get(t, 0) - count)
        return Layout(rest, DRAINED if is_given(layout, template) else None)

    return moved


def _pass(
    session: MoverSession,
    wanted: Callable[[StoredFile, Layout], Layout],
    swept: Swept,
    drained: str = "",
) -> list[str]:
    """Moves every file that should lie otherwise, off the target `drained` if any; returns what kept some from it."""
    store, left, work = session.store, [], []
    for file in store.files():
        try:
            layout = store.layout(file.id)
        except StoreError as error:
            # One that its program has removed meanwhile lies nowhere.
            if _is_there(store, file):
                left.append(f"{file.path or file.id}: {error}")
            continue
        new = wanted(file, layout)
        if new != layout or new.origin not in (None, layout.origin):
            work.append((file, new, layout, target_bytes(layout.regions, file.size).get(drained, 0)))
    session.expect(sum(file.size for file, *_ in work))
    for number, (file, new, layout, held) in enumerate(work):
        moved = session.move(file.path, file.id, new, 0, file.size)
        if moved.was_stopped:
            is_whole = _count_part(store, file, layout.regions, new.regions, swept)
            rest = sorted(_shown(store, each) for each, *_ in work[number + is_whole :])
            left += [f"{len(rest)} file(s) not moved yet: {rest[0]}{' and others' if rest[1:] else ''}"] * bool(rest)
            break
        if moved.error and not _is_there(store, file):
            continue
        if moved.error:
            short = missing_room(store, moved.message, new.regions, file.size)
            left.append(f"{file.path or file.id}: {moved.message}{f'. {short}' if short else ''}")
        else:
            if new != layout:
                swept.count(is_container(store.root, file.path))
            swept.moved_bytes += moved.moved_bytes
            # A file with holes moves less than its size.
            swept.cleared_bytes += min(held, moved.moved_bytes)
    return left


def _is_there(store: Store, file: StoredFile) -> bool:
    return os.path.lexists(store.root / "files" / file.id)


def _shown(store: Store, file: StoredFile) -> str:
    """A file's name for people; of one that holds copies its own tells nothing."""
    return "the copies of a file" if is_container(store.root, file.path) else file.path or file.id


def _count_part(
    store: Store, file: StoredFile, before: tuple[Region, ...], wanted: tuple[Region, ...], swept: Swept
) -> bool:
    """Counts what moved of a file whose move was stopped between two steps: its layout says where it lies now. Returns
    whether all of it moved.
    """
    then = target_bytes(before, file.size)
    with contextlib.suppress(StoreError, LayoutError):
        now = target_bytes(store.layout(file.id).regions, file.size)
        if now == then:
            return False
        swept.moved_bytes += sum(max(0, count - then.get(name, 0)) for name, count in now.items())
        swept.cleared_bytes += max(0, then.get(swept.drained, 0) - now.get(swept.drained, 0))
        if now == target_bytes(wanted, file.size):
            swept.count(is_container(store.root, file.path))
            return True
        swept.part = _shown(store, file)
    return False


def _held(store: Store, name: str) -> int:
    """Files that have an object on the target; none of one that is away, for what lies there is not the store's now."""
    return int(_device(store, name)["files"] or 0)


def _end_moves(session: MoverSession, name: str) -> None:
    """Ends what a killed mover left half done of files that lie off the target but for objects that it would have
    removed.
    """
    store = session.store
    there = {each.partition(".")[0] for each in os.listdir(store.config.target(name).path)}
    for file in store.files():
        if file.id in there:
            with contextlib.suppress(StoreError, LayoutError):
                session.move(file.path, file.id, store.layout(file.id), 0, file.size)


def _away(store: Store, name: str) -> str:
    """Why a target's directory is not the store's; empty where it is."""
    return str(_device(store, name).get("away") or "")


def _device(store: Store, name: str) -> dict[str, Any]:
    return next(row for row in store.devices() if row["name"] == name)


def _ended(session: MoverSession, swept: Swept) -> Swept:
    swept.stopped, swept.signal = session.stopped, session.signal
    return swept


def remove(store: Store, name: str, wait_for_programs: bool = True) -> tuple[Store, Path]:
    """Takes an empty target out: its number stays taken, its directory, which is returned, is the user's again.

    Raises StoreError while something lies there, or a program could put something there. Of a target that is away
    nothing may lie there by the layouts, and what does lie in its directory is not touched. Without `wait_for_programs`
    the directory gets another name first, so that a program that began before can put nothing there any more: its
    new files on this target fail with an error.
    """
    target = store.config.target(name)
    away = _away(store, name)
    if not wait_for_programs and not away:
        return _remove_renamed(store, name, target.path)
    # Programs that began before may make files there when it comes back, whoever does not wait for them.
    stale = sorted(p["pid"] for p in store.programs() if p["is_stale"])
    if target.state != "draining" or stale or _held(store, name) or any(_files_on(store, name)):
        why = f"process(es) {', '.join(map(str, stale))} may use it" if stale else "data may lie there"
        raise StoreError(f"target {name}: {why}; empty it with 'stripewise store drain {quoted(store.root)} {name}'")
    return _taken_out(store, name, target.path, is_ours=not away), target.path


def _drained_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.drained")


def put_back(store: Store, name: str) -> None:
    """Undoes what a removal that was killed has done to a target's directory; that of another store stays."""
    path = Path(store.config.target(name).path)
    if path.exists():
        return
    try:
        mark = read_part(_drained_path(path), IDENTITY)
    except OSError:
        return
    uuid = store.config.uuid.replace("-", "").lower()
    if {f"uuid {uuid}", f"index {store.config.cluster.index(name)}"} <= set(mark.decode(errors="replace").splitlines()):
        _drained_path(path).rename(path)


def _remove_renamed(store: Store, name: str, path: Path) -> tuple[Store, Path]:
    renamed = _drained_path(path)
    if renamed.exists():
        raise StoreError(f"{renamed}: is there already; move it away and try again")
    try:
        path.rename(renamed)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be renamed ({error.strerror}); leave out --now, and wait for the programs"
        ) from error
    # Whoever makes a file there from here on gets an error; what was made until then has to move first.
    if any(entry.name != IDENTITY for entry in renamed.iterdir()):
        renamed.rename(path)
        raise StoreError(f"target {name}: a program has just made a file there; run the same again")
    return _taken_out(store, name, renamed, is_ours=True), renamed


def _taken_out(store: Store, name: str, path: Path, is_ours: bool) -> Store:
    config = with_state(store, name, "removed")
    number = config.cluster.index(name)
    place = store.root / REMOVED_DIR / str(number)
    targets = [replace(t, path=place) if t.name == name else t for t in config.cluster.targets]
    opened = write_config(store, config.with_targets(targets))
    # Last: until then the directory is the store's, whatever happens. That of a target that is away is not.
    if is_ours:
        (path / IDENTITY).unlink(missing_ok=True)
    return opened


def _copies_there(store: Store, containers: Sequence[StoredFile]) -> Iterator[str]:
    """That copies may have a part on a target that is away, with the commands that drop them, a file each."""
    held = {os.path.basename(file.path).removesuffix(".copy") for file in containers}
    for each in copies_of(store):
        if each.name in held or each.container in held:
            words = ["stripewise", "store", "replica", "rm", str(store.root), each.path or each.name]
            yield f"the copies of {each.path or each.name} may have a part there; drop them: {command_line(words)}"


def _in_trash(store: Store) -> bool:
    """Whether unlinked files wait there until nobody has them open; where it cannot be looked at, too."""
    try:
        return bool(os.listdir(store.root / "trash"))
    except OSError:
        return True


def _files_on(store: Store, name: str) -> Iterable[StoredFile]:
    """Files whose layout names the target."""
    for file in store.files():
        if any(name == stripe[0] for region in store.layout(file.id).regions for stripe in region.stripes):
            yield file


def add(store: Store, target: Target) -> Store:
    """Adds a target at the end, validated as store.toml is."""
    check_new(store, target)
    return write_config(store, store.config.with_targets([*store.config.cluster.targets, target]))


def check_new(store: Store, target: Target) -> None:
    """Raises StoreError where a store cannot have this target besides its own."""
    for there in store.config.cluster.targets:
        if there.name == target.name:
            raise StoreError(f"{store.config.path}: the target name '{there.name}' {_taken(store, there)}")
    path = Path(os.path.realpath(target.path))
    if path == store.root or store.root in path.parents:
        raise StoreError(f"{path}: lies in the store itself; choose another directory")
    if not path.is_dir():
        raise StoreError(f"{path}: is not a directory; mount its file system or make the directory")
    check_apart(store.root, [*store.config.cluster.targets, target])


def _taken(store: Store, target: Target) -> str:
    """Why no new target can have the name of one that the store has, and the cure."""
    if target.state == "draining":
        return f"is that of a draining one; take it back with '{undo_drain(store.root, target.name)}'"
    used = "was that of a removed one, and names are not used again" if target.state == "removed" else "is in use"
    return f"{used}; choose another one"


def model_for(store: Store, klass: str | None, like: str | None) -> Target | None:
    """The target whose kind and figures a new one takes: the named one; in a store of emulated targets alone the first
    of its class, the first of all without a class or for one that it has none of. None for a device whose figures are
    its own.
    """
    if like is not None:
        return store.config.target(like)
    active = store.config.cluster.active
    if any(target.kind != "emulated" for target in active):
        return None
    return next((target for target in active if target.klass == klass), active[0])


def target_like(model: Target, name: str, klass: str, path: Path, capacity_bytes: int) -> Target:
    """A new target with the kind and figures of `model`; no record of their measurement, for they are not its own."""
    return Target(
        name=name,
        klass=klass,
        kind=model.kind,
        path=path,
        capacity_bytes=capacity_bytes,
        startup_read_s=model.startup_read_s,
        startup_write_s=model.startup_write_s,
        per_byte_read_s=model.per_byte_read_s,
        per_byte_write_s=model.per_byte_write_s,
        startup_read_spread_s=model.startup_read_spread_s,
        startup_write_spread_s=model.startup_write_spread_s,
    )
