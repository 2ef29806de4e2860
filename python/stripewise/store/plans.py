"""Keeping plans in a store and forgetting them: `[[plan]]` tables of store.toml, and their files."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from .. import native
from ..errors import PlanError, StoreError, UsageError
from ..files.parts import held_place, remove_part, replace_part
from ..files.spelling import path_meant
from ..plan import Plan, dump_plan
from ..plan.application import application_of, directory_of, working_directory
from ..plan.check import check_plan
from ..units import command_line
from .config import PLANS_DIR, KeptPlan, StoreConfig, manages, read_store
from .globs import matches
from .kept import check_followed, prepare, read_followed, read_kept, ruled, targets_named, without_ids
from .placed import is_plain
from .rewrite import changing, write_changed
from .store import Store


def keep(
    root: Path,
    plan: Plan,
    source: Path | str,
    application: str | None = None,
    processes: int | None = None,
    *,
    ran_in: str = "",
) -> tuple[KeptPlan, list[str]]:
    """Keeps `plan` for runs of its application with its number of processes, or of those that are given, in place of
    the one kept before; for runs in one directory alone, that which it `ran_in` (unknown: this one), where that says
    which files they are of. Returns it with remarks. Raises StoreError, PlanError, UsageError.
    """
    kept = kept_for(plan, source, application, processes, ran_in=ran_in)
    for number, file in enumerate(plan.files):
        if not file.path.startswith("/"):
            raise PlanError(f"{source}: files[{number}].path '{file.path}' is not absolute; begin it with /")
    with changing(root) as config:
        remarks = check_plan(plan, config.cluster, source)
        others = [each for each in config.plans if each != kept]
        # The plan first: a kill in between leaves one that no table names, and the next change removes it.
        replace_part(config.root, kept.plan, dump_plan(without_ids(plan)), make=True)
        write_changed(config, replace(config, plans=(*others, kept)))
        _sweep(config, [*others, kept])
        _, why = prepare(read_store(root), kept)
    if why:
        raise StoreError(f"{config.root / kept.compiled}: cannot be made ({why}); make the store writable")
    if (rest := len(plan.files) - len(ruled(plan))) > 0:
        remarks.append(f"{source}: {rest} of its files are moved once they are there, not laid out when they are made")
    return kept, remarks


def kept_for(
    plan: Plan,
    source: Path | str,
    application: str | None = None,
    processes: int | None = None,
    *,
    ran_in: str = "",
) -> KeptPlan:
    """Which runs `keep` keeps a plan for. Raises UsageError where nothing says of which application they are."""
    words = _words(source, application or application_of(plan.command))
    directory = directory_of(words, [file.path for file in plan.files], ran_in or working_directory(), bool(ran_in))
    return KeptPlan(words, processes or plan.processes, directory)


def _words(source: Path | str, application: str) -> str:
    try:
        words = shlex.split(application)
    except ValueError as error:
        raise UsageError(f"--application: {str(error).lower()}; quote its words as in a shell") from error
    if not words:
        raise UsageError(f"{source}: does not say which application it is for; give --application 'CMD...'")
    return application_of(words)


def _split(application: str) -> list[str]:
    """Its words, however they are quoted."""
    try:
        return shlex.split(application)
    except ValueError:
        return [application]


def forget(root: Path, application: str, processes: int | None = None, directory: str | None = None) -> list[KeptPlan]:
    """Forgets the plans of an application, with `processes` and of `directory` if given. Raises UsageError when there
    is none.
    """
    with changing(root) as config:
        gone = [each for each in config.plans if _split(each.application) == _split(application)]
        gone = [each for each in gone if processes in (None, each.processes) and directory in (None, each.directory)]
        if not gone:
            count = "" if processes is None else f" with {processes} process(es)"
            count += f" in {directory}" if directory else ""
            raise UsageError(
                f"plan rm: {config.path} keeps no plan for '{application}'{count}; see 'stripewise store plan ls'"
            )
        left = [each for each in config.plans if each not in gone]
        write_changed(config, replace(config, plans=tuple(left)))
        _sweep(config, left)
    return gone


def check_files(store: Store, plan: Plan, source: Path | str, is_kept: bool = False) -> list[str]:
    """Remarks on planned files that are not the store's now; where it keeps the plan, not on those that are yet to be
    made. PlanError where they are another store's.
    """
    others: dict[str, list[str]] = {}
    plain: list[str] = []
    missing: list[str] = []
    for file in plan.files:
        found = native.call("store_resolve", path_meant(file.path)) if file.path.startswith("/") else None
        if found and Path(found["store"]).resolve() != store.root.resolve():
            others.setdefault(str(found["store"]), []).append(file.path)
        elif not found:
            (plain if is_plain(path_meant(file.path)) else missing).append(file.path)
    for root, paths in others.items():
        keep = command_line(["stripewise", "store", "plan", "add", root, str(source)])
        apply = command_line(["stripewise", "apply", str(source), "--store", root])
        raise PlanError(
            f"{source}: is a plan for another store: {paths[0]}{_more(paths)} lies in {root}, not in {store.root}; "
            f"there, {apply}, or to keep it, {keep}"
        )
    remarks = []
    if plain:
        adopt = command_line(["stripewise", "store", "adopt", "--store", str(store.root), path_meant(plain[0])])
        remarks.append(f"{source}: {plain[0]}{_more(plain)} is a plain file, which the plan does not move; {adopt}")
    outside = [path for path in missing if not manages(store.config.rules, path)]
    if outside:
        remarks.append(
            f"{source}: {outside[0]}{_more(outside)} is not there, nor where {store.root} takes new files; is it a "
            "plan for this store?"
        )
    elif missing and not is_kept:
        remarks.append(
            f"{source}: {missing[0]}{_more(missing)} is not there now; it can be laid out when it is made, by a run "
            "that follows the plan once the store keeps it"
        )
    return remarks


def is_for(store: Store, plan: Plan, manage: Sequence[str] = ()) -> bool:
    """Whether any planned file is the store's, or would be when it is made, by its rules or the globs `manage` of a
    run: not so of a plan for its former place.
    """
    paths = [file.path for file in plan.files if file.path.startswith("/")]
    return not paths or any(
        manages(store.config.rules, path)
        or any(matches(glob, path) for glob in manage)
        or store.resolve(path) is not None
        for path in paths
    )


def _more(paths: list[str]) -> str:
    return f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""


def that_lay_out(config: StoreConfig, globs: Iterable[str]) -> list[KeptPlan]:
    """The kept plans of files whose names match one of the globs; those that cannot be read are nobody's to follow."""
    wanted, found = tuple(globs), []
    for kept in config.plans:
        with contextlib.suppress(PlanError):
            paths = [file.path for file in read_kept(config.root, kept).files]
            if any(matches(glob, path) for glob in wanted for path in paths):
                found.append(kept)
    return found


def that_name(config: StoreConfig, target: str) -> list[KeptPlan]:
    """The kept plans that lay something out on a target; those that cannot be read are nobody's to follow."""
    found = []
    for kept in config.plans:
        with contextlib.suppress(PlanError):
            if target in targets_named(read_kept(config.root, kept)):
                found.append(kept)
    return found


def unreadable(config: StoreConfig) -> Iterator[str]:
    """Why kept plans that cannot be read cannot, each with the ways out."""
    for kept in config.plans:
        try:
            read_kept(config.root, kept)
        except PlanError as error:
            yield str(error)


def suspended(config: StoreConfig, kept: KeptPlan) -> str:
    """Why runs do not follow a kept plan now, with the way back; empty where they do."""
    try:
        check_followed(config, read_followed(config, kept), config.root / kept.plan)
    except PlanError as error:
        return str(error)
    return ""


def _sweep(config: StoreConfig, kept: list[KeptPlan]) -> None:
    """Removes the files of plans that are kept no more, and what a kill has left."""
    wanted = {PurePosixPath(name).name for each in kept for name in (each.plan, each.compiled)}
    with contextlib.suppress(FileNotFoundError), held_place(config.root, f"{PLANS_DIR}/x") as (at, _, _):
        place = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
        try:
            names = os.listdir(place)
        finally:
            os.close(place)
        for name in set(names) - wanted:
            with contextlib.suppress(IsADirectoryError):
                remove_part(config.root, f"{PLANS_DIR}/{name}")
