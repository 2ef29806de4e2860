"""A user's own policy: a Python file named on the command line, or an entry point of an installed package.

What it registers is taken as a policy among others, with two differences: an exception in it becomes one line that
names the file, and the plan that it returns is held against the rules of every plan, before anything acts on it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..cluster import Cluster
from ..errors import PlanError, StripewiseError, UsageError
from ..plan import Plan, dump_plan, plan_from_json
from ..plan.check import check_plan
from ..units import format_size
from ..workload.requests import Workload
from .base import POLICIES, PlanOptions, Policy, as_policy, registering

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "stripewise.policies"


class UserPolicy(Policy):
    """A policy from outside, its errors in one line and its plans checked."""

    def __init__(self, policy: Policy, source: str) -> None:
        self.name = policy.name
        self.windowed = policy.windowed
        self.rotates = policy.rotates
        self.takes = policy.takes
        self._policy = policy
        self._source = source

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        try:
            plan = self._policy.plan(workload, cluster, options)
        except StripewiseError:
            # Said on purpose, by what the policy was given to build with or by itself.
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # SystemExit too: a policy that leaves has no plan, and status 0 would say that it had.
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            raise PlanError(f"the policy {self.name} failed: {where(error, self._source)}") from error
        return checked(plan, f"the policy {self.name} ({self._source})", workload, cluster, options)


def checked(plan: object, who: str, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
    """The plan, if it keeps the rules of every plan; else PlanError naming `who` and what is wrong.

    Every file that the workload moves bytes of is planned once and wholly, its regions place every byte once, and no
    target holds more than its capacity less what other files have there.
    """
    if not isinstance(plan, Plan):
        raise PlanError(
            f"{who}: returned {type(plan).__name__}, not a Plan; return what build_plan or static_plan makes"
        )
    for file in plan.files:
        for region in file.regions:
            if not all(isinstance(value, int) for value in (region.start, region.len, *dict(region.stripes).values())):
                raise PlanError(f"{who}: {file.path} has a region whose numbers are not int; convert them with int()")
    # The rules of the file: regions without gaps, whole granules, a target at most once in a cycle.
    plan_from_json(json.loads(dump_plan(plan)), who)
    planned = {file.path: file.size for file in plan.files}
    for wanted in workload.files:
        requests = wanted.requests[wanted.requests["size"] > 0]
        end = int((requests["offset"] + requests["size"]).max()) if len(requests) else 0
        size = max(end, wanted.size_bytes)
        if size and wanted.path not in planned:
            raise PlanError(f"{who}: leaves out {wanted.path}; plan every file of the workload")
        if size > planned.get(wanted.path, 0):
            raise PlanError(
                f"{who}: plans {planned[wanted.path]} bytes of {wanted.path}, which has {size}; cover all of them"
            )
    known = {file.path for file in workload.files}
    for path in planned:
        if path not in known:
            raise PlanError(f"{who}: plans {path}, which is not in the workload; leave it out")
    remarks = check_plan(plan, cluster, who)
    if remarks:
        raise PlanError(remarks[0])
    capacity = {target.name: target.usable_bytes for target in cluster.active}
    for name, count in plan.bytes_per_target().items():
        held = options.reserved_bytes.get(name, 0)
        if capacity[name] and count and count + held > capacity[name]:
            raise PlanError(
                f"{who}: puts {format_size(count)} on '{name}', where other files hold {format_size(held)} of "
                f"{format_size(capacity[name])}; "
                f"take the space with Space(cluster, options.reserved_bytes)"
            )
    return plan


def where(error: BaseException, source: str) -> str:
    """The exception in one line: the file and line in it where it happened, its kind and its text."""
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename == source:
        line = error.lineno
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
        line = lines[-1] if lines else None
    place = source if line is None else f"{source}, line {line}"
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}: {type(error).__name__}: {text}" if text else f"{place}: {type(error).__name__}"


def from_file(path: str) -> Policy:
    """The one policy that the Python file registers; UsageError in one line when there is none, or several."""
    source = os.path.abspath(path)
    if not os.path.isfile(source):
        raise UsageError(f"--policy: there is no file {path}; give a policy's name or a Python file")
    spec = importlib.util.spec_from_file_location(f"stripewise_policy_{Path(source).stem}", source)
    if spec is None or spec.loader is None:
        raise UsageError(f"--policy: {path} is not a Python file; call it {path}.py")
    module = importlib.util.module_from_spec(spec)
    with registering() as found:
        # Dataclasses look their module up while it is being read.
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            raise UsageError(f"--policy: {where(error, source)}") from error
    if not found:
        raise UsageError(f"--policy: {path} registers no policy; put @register before its class or function")
    if len(found) > 1:
        raise UsageError(f"--policy: {path} registers {len(found)} policies, {', '.join(found)}; leave one in the file")
    (policy,) = found.values()
    if policy.name in POLICIES:
        raise UsageError(f"--policy: {path} calls its policy '{policy.name}', which exists; give it another name")
    return UserPolicy(policy, source)


def entry_points() -> list[str]:
    """The names of policies that installed packages offer."""
    return sorted({point.name for point in _offered()})


def _offered() -> Iterable[EntryPoint]:
    # Here, because it takes longer to import than all the rest, and policies that are always there need none.
    from importlib.metadata import entry_points as offered

    return offered(group=ENTRY_POINTS)


def from_entry_point(name: str) -> Policy | None:
    """The policy that an installed package offers under `name`; None when none does.

    The entry point leads to a subclass of Policy, an instance of one, or a function. UsageError when it fails.
    """
    found = [point for point in _offered() if point.name == name]
    if not found:
        return None
    owners = sorted({point.value for point in found})
    if len(owners) > 1:
        raise UsageError(f"--policy: several packages offer '{name}' ({', '.join(owners)}); uninstall all but one")
    with registering() as table:
        try:
            made = found[0].load()
            policy = made if isinstance(made, Policy) else _registered(made, table)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            raise UsageError(f"--policy: '{name}': {where(error, owners[0])}") from error
    return UserPolicy(policy, owners[0])


def _registered(made: object, table: dict[str, Policy]) -> Policy:
    """The policy behind a class or function, registered now unless its module did so when it was read."""
    policy = as_policy(made)
    return table.get(policy.name, policy)
