"""store.toml: the cluster's form plus [store] and [[rule]], written here and compiled for the library.

    [store]  uuid, region_bytes, default_layout ("def", "hservers" or a JSON file in the store)
    [[rule]] glob, action ("manage" or "ignore"), layout (a JSON file in the store; absent: the default)
    [[plan]] application, processes, directory: a plan is kept for such runs (`kept.py`)

Rust never reads it: `spec_json` is what it gets.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import uuid as uuid_module
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import native
from ..cluster import Cluster, Target, cluster_from_mapping
from ..cluster.cluster import VERSION, cluster_lines, toml_string
from ..errors import ClusterError, InUseError, LayoutError, StoreError, UsageError
from ..files.fields import Fields, read_json, read_toml
from ..files.parts import is_locked, read_part
from ..layout import Layout, parse_layout, to_indexes, whole_file
from ..units import GRANULE_BYTES, KIB, MIB, OFFSET_BYTES_MAX, command_line, nearest_granules, quoted
from .globs import matches
from .substitute import on_active

DEFAULT_STRIPE_BYTES = 64 * KIB
DEFAULT_REGION_BYTES = 64 * MIB
BUILT_IN_LAYOUTS = ("def", "hservers")
#: Of a store, what lives as long as programs and movers of this boot: their slots, locks and words.
RUN_DIR = "run"
#: A store's configuration, and what it was when it was compiled last (`rewrite.py`).
STORE_TOML, EARLIER = "store.toml", "store.toml.compiled"
_EARLIER_BACK = "the one that verbs used last put back: stripewise store fsck {} --repair"
#: One that says no store, put aside by a repair.
REFUSED = "store.toml.refused"
#: Held by whoever changes store.toml, and by whoever tunes; the owner's alone.
CONFIG_LOCK, TUNE_LOCK = "config.lock", "tune.lock"
#: Longest path of a store or a target, as in crates/store.
STORE_PATH_BYTES_MAX = 1024
#: Kept plans lie here, inside the store.
PLANS_DIR = "plans"
PROCESSES_MAX = 2**31
#: So much of an application's words is shown.
TITLE_MAX = 200
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def check_untuned(root: Path, waits: bool = False) -> None:
    """InUseError where a tune is at work on the store: what others move, take out or copy meanwhile would be measured.
    `waits`: the verb has --wait.
    """
    if is_locked(root, TUNE_LOCK):
        cure = "wait until it ends" + (", or give --wait SECONDS" if waits else "")
        raise InUseError(f"{root}: a tune is at work on this store, under which nothing moves; {cure}")


@dataclass(frozen=True)
class Rule:
    """Files that are new and match `glob` are managed (with this layout) or left alone; the first match counts."""

    glob: str
    action: str = "manage"
    layout: str | None = None


def manages(rules: Sequence[Rule], path: str) -> bool:
    """Whether a new file there would go into the store: the first rule that matches says so."""
    return next((rule.action == "manage" for rule in rules if matches(rule.glob, path)), False)


@dataclass(frozen=True)
class KeptPlan:
    """A plan is kept for runs of `application` (its words as a shell reads them) with `processes` processes, in
    `directory` alone where that says which files they are of (empty: anywhere).
    """

    application: str
    processes: int
    directory: str = ""

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that name its files, and a run that follows it."""
        where = f"\n{self.directory}" if self.directory else ""
        key = f"{self.processes} {self.application}{where}".encode("utf-8", "surrogateescape")
        return hashlib.sha256(key).hexdigest()[:16]

    @property
    def plan(self) -> str:
        """Its plan.json, relative to the store."""
        return f"{PLANS_DIR}/{self.digest}.json"

    @property
    def compiled(self) -> str:
        """Its rules for new files, as the library reads them; relative to the store."""
        return f"{PLANS_DIR}/{self.digest}.bin"

    @property
    def title(self) -> str:
        """For people."""
        where = f" in {self.directory}" if self.directory else ""
        return f"{self.name} with {self.processes} process{'' if self.processes == 1 else 'es'}{where}"

    @property
    def words(self) -> str:
        """The application's words as commands are told."""
        try:
            return command_line(shlex.split(self.application))
        except ValueError:
            # Edited by hand.
            return self.application

    @property
    def name(self) -> str:
        """The application for people, in quotes."""
        shown = self.words
        return f"'{shown}'" if len(shown) <= TITLE_MAX else f"'{shown[:TITLE_MAX]}...'"


@dataclass(frozen=True)
class StoreConfig:
    """A store.toml in parsed form; layouts are names of JSON files relative to the store."""

    root: Path
    cluster: Cluster
    uuid: str
    region_bytes: int
    default_layout: str
    rules: tuple[Rule, ...]
    plans: tuple[KeptPlan, ...] = ()

    @property
    def path(self) -> Path:
        return self.root / STORE_TOML

    @property
    def managed(self) -> list[str]:
        """The globs of new files that go into the store."""
        return [rule.glob for rule in self.rules if rule.action == "manage"]

    def target(self, name: str) -> Target:
        """The target of this name. UsageError, with those there are, for one that the store does not have now."""
        there = self.cluster.holding
        if found := next((target for target in there if target.name == name), None):
            return found
        raise UsageError(f"{self.path}: has no target '{name}'; it has {', '.join(each.name for each in there)}")

    def layout(self, name: str) -> Layout:
        """The layout that `name` means."""
        targets = self.cluster.active
        if name == "hservers":
            targets = self.cluster.hservers or self.cluster.active
        if name in BUILT_IN_LAYOUTS:
            return whole_file(targets, DEFAULT_STRIPE_BYTES, self.region_bytes)
        path = self.root / name
        try:
            data = read_json(path, LayoutError, "a layout as in docs/formats.md", self.root)
            found = parse_layout(data, path)
        except LayoutError as error:
            raise LayoutError(f"{error}; {self._without(name)}") from error
        known = {target.name for target in self.cluster.targets}
        if lost := sorted({each for region in found.regions for each, _ in region.stripes} - known):
            raise LayoutError(
                f"{self.path}: has no [[target]] table for {lost[0]} any more, which the layout {name} names; put it "
                f"back ({EARLIER} is the one that verbs used last); {self._without(name)}"
            )
        return on_active(found, self.cluster)

    def _without(self, name: str) -> str:
        """How a store goes on without a layout that it names."""
        for rule in self.rules:
            if rule.layout == name:
                words = ["stripewise", "store", "template", "rm", str(self.root), rule.glob]
                return f"or go on without its template: {command_line(words)}"
        return f'or have default_layout = "def" in {self.path}, which names it'

    def spec(
        self,
        digest: str,
        default_layout: str | None = None,
        first: Sequence[dict[str, Any]] = (),
        only: Sequence[dict[str, Any]] | None = None,
    ) -> str:
        """What the native module compiles into store.bin.

        `first` are rules in its own form that go before those of the file, `only` such that stand in their place.
        """
        check_store_size(self.cluster)
        for what, path in [("the store", self.root), *((f"target {t.name}", t.path) for t in self.cluster.targets)]:
            if len(os.fsencode(path)) > STORE_PATH_BYTES_MAX:
                raise ClusterError(
                    f"{self.path}: the path of {what} has {len(os.fsencode(path))} bytes; "
                    f"move it to one of at most {STORE_PATH_BYTES_MAX}"
                )
        rules = []
        for rule in self.rules if only is None else ():
            layout = None if rule.layout is None else to_indexes(self.layout(rule.layout).regions, self.cluster)
            rules.append({"glob": rule.glob, "action": rule.action, "layout": layout})
        return json.dumps(
            {
                "toml_sha256": digest,
                "uuid": self.uuid,
                "region_bytes": self.region_bytes,
                "default_layout": to_indexes(self.layout(default_layout or self.default_layout).regions, self.cluster),
                "targets": [
                    {
                        "name": t.name,
                        "class": t.klass,
                        "kind": t.kind,
                        "path": str(t.path),
                        "capacity_bytes": t.capacity_bytes,
                        "startup_read_ns": round(t.startup_read_s * 1e9),
                        "startup_write_ns": round(t.startup_write_s * 1e9),
                        "read_ps_per_byte": round(t.per_byte_read_s * 1e12),
                        "write_ps_per_byte": round(t.per_byte_write_s * 1e12),
                    }
                    for t in self.cluster.targets
                ],
                "rules": [*first, *(rules if only is None else only)],
            }
        )

    def digest(self) -> str:
        """SHA-256 of store.toml, followed by the layout files it names if any, so that a change in any is noticed."""
        digest = hashlib.sha256(_bytes(self.root, self.path.name))
        named = {self.default_layout, *(rule.layout for rule in self.rules if rule.layout)} - set(BUILT_IN_LAYOUTS)
        for name in sorted(named):
            try:
                digest.update(_bytes(self.root, name))
            except ClusterError as error:
                raise ClusterError(f"{error}; {self._without(name)}") from error
        return digest.hexdigest()

    def text(self) -> str:
        """The store.toml that says this."""
        lines = [
            "# Written by stripewise; edit it and run any 'stripewise store' verb to make it count.",
            "# Verbs that change it keep your comments.",
            f"version = {VERSION}",
            "",
            "[store]",
            f"uuid = {toml_string(self.uuid)}",
            f"region_bytes = {self.region_bytes}",
            f"default_layout = {toml_string(self.default_layout)}",
            *cluster_lines(self.cluster),
        ]
        for rule in self.rules:
            lines += ["", "[[rule]]", f"glob = {toml_string(rule.glob)}", f"action = {toml_string(rule.action)}"]
            if rule.layout is not None:
                lines.append(f"layout = {toml_string(rule.layout)}")
        for kept in self.plans:
            lines += ["", "[[plan]]", f"application = {toml_string(kept.application)}"]
            lines.append(f"processes = {kept.processes}")
            lines += [f"directory = {toml_string(kept.directory)}"] if kept.directory else []
        return "\n".join(lines) + "\n"

    def with_targets(self, targets: Sequence[Target]) -> StoreConfig:
        """The same with other targets."""
        return replace(self, cluster=replace(self.cluster, targets=tuple(targets)))

    def with_rules(self, rules: Sequence[Rule]) -> StoreConfig:
        """The same with other rules."""
        if len(rules) > (most := native.limit("MAX_RULES")):
            raise ClusterError(f"{self.path}: {len(rules)} [[rule]] tables are more than {most}; use wider globs")
        return replace(self, rules=tuple(rules))


def check_store_size(cluster: Cluster) -> None:
    """ClusterError for more targets than a store holds."""
    if len(cluster.targets) > (most := native.limit("MAX_TARGETS")):
        raise ClusterError(
            f"{cluster.source}: {len(cluster.targets)} [[target]] tables are more than the {most} that a "
            f"store holds; use fewer targets, or simulate only"
        )


def check_apart(root: Path, targets: Sequence[Target]) -> None:
    """StoreError where one target's directory, or the store, lies in that of another target."""
    places = [(f"target {target.name}", target.path) for target in targets if target.state != "removed"]
    real = [(what, Path(os.path.realpath(path))) for what, path in [*places, ("the store", root)]]
    for what, path in real[:-1]:
        for other, inner in real:
            if other != what and inner.is_relative_to(path):
                raise StoreError(
                    f"{other}: {inner} lies in {path}, the directory of {what}; give each a directory of its own, apart"
                )


def _bytes(root: Path, name: str) -> bytes:
    try:
        return read_part(root, name)
    except OSError as error:
        raise ClusterError(f"{root / name}: cannot be read ({error.strerror}); restore it") from error


def store_root(path: Path) -> Path:
    """The directory of the store at `path`, without links; ClusterError where there is none."""
    root = Path(os.path.realpath(path))
    if str(root).startswith("/stripewise:"):
        raise ClusterError(f"{path}: is a managed file and no store; 'stripewise store layout' of it names its store")
    try:
        os.lstat(root / STORE_TOML)
    except PermissionError as error:
        raise ClusterError(
            f"{root}: cannot be looked at ({error.strerror}); let its owner or root give access"
        ) from error
    except OSError:
        if (root / "store.bin").exists():
            back = "put it back from a copy (store.bin, which programs read, does not hold all of it)"
            if (root / EARLIER).exists():
                back = f"have {_EARLIER_BACK.format(quoted(root))}"
            raise ClusterError(f"{root}: is a store whose store.toml is missing; {back}") from None
        cure = "name one, or make one with 'stripewise init DIR...'"
        raise ClusterError(f"{root}: is not a store (it has no store.toml); {cure}") from None
    return root


def read_store(path: Path) -> StoreConfig:
    """Reads <path>/store.toml; ClusterError naming file, key and cure."""
    root = store_root(path)
    try:
        return config_from(read_toml(root / STORE_TOML, ClusterError, "a cluster.toml or store.toml", root), root)
    except ClusterError as error:
        if not is_unreadable(error) and (root / EARLIER).exists():
            raise ClusterError(f"{error}, or have {_EARLIER_BACK.format(quoted(root))}") from error
        raise


def is_unreadable(error: ClusterError) -> bool:
    """Whether a file could not be read, whatever stands in it."""
    return isinstance(error.__cause__, OSError)


def config_from(data: Mapping[str, Any], root: Path) -> StoreConfig:
    """The configuration in the parsed store.toml of the store at `root`; ClusterError naming file, key and cure."""
    path = root / STORE_TOML
    cluster = cluster_from_mapping(data, path)
    top = Fields(data, path, "", ClusterError)
    store = Fields(top.table("store"), path, "store.", ClusterError)
    store.only({"uuid", "region_bytes", "default_layout"})
    identity = store.text("uuid")
    if not _UUID.fullmatch(identity):
        raise store.error("uuid", f"= '{identity}' is not a UUID", "put back the one that 'store create' wrote")
    region_bytes = store.integer("region_bytes", GRANULE_BYTES, OFFSET_BYTES_MAX, DEFAULT_REGION_BYTES)
    if region_bytes % GRANULE_BYTES:
        raise store.error(
            "region_bytes",
            f"= {region_bytes} is not a multiple of 4096",
            f"the nearest one is {nearest_granules(region_bytes)}",
        )
    config = StoreConfig(root, cluster, identity, region_bytes, store.text("default_layout", "def"), ())
    rules = []
    for number, entry in enumerate(top.tables("rule")):
        fields = Fields(entry, path, f"rule[{number}].", ClusterError)
        fields.only({"glob", "action", "layout"})
        glob = fields.text("glob")
        if not glob.startswith("/"):
            raise fields.error("glob", f"= '{glob}' is not absolute", "begin it with /, for it matches whole paths")
        name = None if fields.data.get("layout") is None else fields.text("layout")
        rules.append(Rule(glob, fields.choice("action", ("manage", "ignore"), "manage"), name))
    return replace(config.with_rules(rules), plans=tuple(_plans(top, path)))


def _plans(top: Fields, path: Path) -> Iterator[KeptPlan]:
    seen = set()
    for number, entry in enumerate(top.tables("plan")):
        fields = Fields(entry, path, f"plan[{number}].", ClusterError)
        fields.only({"application", "processes", "directory"})
        directory = fields.text("directory") if "directory" in entry else ""
        kept = KeptPlan(fields.text("application"), fields.integer("processes", 1, PROCESSES_MAX), directory)
        if kept in seen:
            raise fields.error("application", f"= '{kept.application}' stands twice with as many processes", "keep one")
        seen.add(kept)
        yield kept


def new_uuid() -> str:
    return str(uuid_module.uuid4())
