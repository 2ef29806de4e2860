"""Keeping plans in a store and forgetting them: `[[plan]]` tables of store.toml, and their files."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from ..errors import StoreError, UsageError
from ..files.parts import read_part, remove_part, replace_part
from ..plan import Plan, dump_plan
from ..plan.application import application_of
from ..plan.check import check_plan
from .config import StoreConfig
from .kept import KeptPlan, kept_name, ruled, without_ids
from .rewrite import write_changed
from .store import Store


def keep(
    config: StoreConfig, plan: Plan, source: Path | str, application: str | None = None, processes: int | None = None
) -> tuple[KeptPlan, list[str]]:
    """Keeps `plan` for runs of its application with its number of processes, or of those that are given, in place of
    the one kept before. Returns it with remarks. Raises StoreError, PlanError, UsageError.
    """
    remarks = check_plan(plan, config.cluster, source)
    name = application or application_of(plan.command)
    if not name:
        raise UsageError(f"{source}: does not say which application it is for; give --application 'CMD...'")
    count = processes or plan.processes
    kept = KeptPlan(name, count, kept_name(name, count))
    others = [each for each in config.plans if each.plan != kept.plan]
    if (rest := len(plan.files) - len(ruled(plan))) > 0:
        remarks.append(f"{source}: {rest} of its files are moved once they are there, not laid out when they are made")
    try:
        before = read_part(config.root, kept.plan) if kept in config.plans else None
        try:
            replace_part(config.root, kept.plan, dump_plan(without_ids(plan)), make=True)
            _write(config, replace(config, plans=(*others, kept)))
        except BaseException:
            if before is None:
                remove_part(config.root, kept.plan)
            else:
                replace_part(config.root, kept.plan, [before])
            raise
    except OSError as error:
        raise StoreError(f"{config.root}: cannot keep a plan ({error.strerror}); make the store writable") from error
    return kept, remarks


def forget(config: StoreConfig, application: str, processes: int | None = None) -> list[KeptPlan]:
    """Forgets the plans of an application, with `processes` if given. Raises UsageError when there is none."""
    gone = [each for each in config.plans if each.application == application and processes in (None, each.processes)]
    if not gone:
        count = "" if processes is None else f" with {processes} process(es)"
        raise UsageError(
            f"plan rm: {config.path} keeps no plan for '{application}'{count}; see 'stripewise store plan ls'"
        )
    left = replace(config, plans=tuple(each for each in config.plans if each not in gone))
    try:
        _write(config, left)
        for each in gone:
            remove_part(config.root, each.plan)
    except OSError as error:
        raise StoreError(f"{config.path}: cannot be written ({error.strerror}); make the store writable") from error
    return gone


def _write(before: StoreConfig, after: StoreConfig) -> None:
    """Writes store.toml and compiles it; what cannot be compiled is taken back."""
    write_changed(before, after)
    try:
        Store(before.root)
    except BaseException:
        with contextlib.suppress(OSError):
            write_changed(after, before)
        raise
