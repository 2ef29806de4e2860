"""What RADAR has made in a store, run after run: sets with their benefits and ages, and the traces that were counted.

It is the store's `replicas.json`, in the form of `replicate --what-if --json`. A set stands as long as the copies of
its file count and lie in the container that was made with it: what is gone, or was made by another since, does not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import StoreError, WorkloadError
from ..files.fields import Fields, read_json
from ..files.parts import locked_part, replace_part
from ..store import Store
from ..store.copies.build import REPLICAS, REPLICAS_LOCK, Built
from ..store.copies.listed import Copies, copies_of, drop
from ..store.copies.of_files import place_of
from .candidate import VERSION, Candidate, Decision, ReplicaSet
from .managers import Options
from .stored import sets_in

#: Traces that are remembered as counted.
TAKEN_MAX = 10_000
CURE = "remove it: the copies stay, and what they were worth is forgotten"


@dataclass(frozen=True)
class Standing:
    """Sets whose copies are in use, and SHA-256 of the traces that were counted, the newest last."""

    sets: tuple[ReplicaSet, ...] = ()
    taken: tuple[str, ...] = ()
    #: By path: the managed file that holds the copies.
    containers: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """Those that have sets."""
        return {each.file for each in self.sets}

    def is_whole(self, file: str, chosen: Sequence[ReplicaSet]) -> bool:
        """Whether the sets that are chosen of a file are all of it that stands: then there is nothing to make."""
        stands = {_as_laid(each) for each in self.sets if each.file == file}
        return bool(stands) and stands == {_as_laid(each) for each in chosen if each.file == file}

    def evicted(self, chosen: Sequence[ReplicaSet]) -> list[str]:
        """Files of which no set is chosen any more."""
        return sorted(self.files - {each.file for each in chosen})


class Turn:
    """A run or plan that is taken up in a store: what stood, what is decided with it, and what stands afterwards."""

    def __init__(self, store: Store, digest: str) -> None:
        self.store = store
        self.standing = read_standing(store)
        self._digest = digest

    def options(self, options: Options) -> Options:
        """The same with what stands, older by this run unless it was counted before."""
        is_again = self._digest in self.standing.taken
        return replace(options, radar=replace(options.radar, stored=self.standing.sets, is_again=is_again))

    def beside_others(self, decision: Decision) -> Decision:
        """The decision with the sets that stand of other files than it is about, which it leaves as they are."""
        mine = {each.file for each in decision.chosen}
        others = tuple(each for each in self.standing.sets if each.file not in mine)
        return replace(decision, sets=(*decision.sets, *others)) if decision.manager == "radar" else decision

    def make_way(self, decision: Decision) -> dict[str, str]:
        """Drops the copies of files of which RADAR has chosen no set any more: these, and why. Raises StoreError."""
        if decision.manager != "radar":
            return {}
        # What is made from now on is remembered even where this is cut short.
        self._keep(self.standing.sets, self.standing.containers, self.standing.taken, decision.sets)
        files = self.standing.evicted(decision.sets)
        why = {each.file: each.reason for each in decision.refused}
        wanted = {place_of(file): file for file in files}
        gone = {}
        for each in copies_of(self.store):
            if (place := place_of(each.path)) in wanted:
                drop(self.store, each)
                file = wanted[place]
                gone[file] = why.get(file, "its sets make way")
        return gone

    def to_make(self, decision: Decision) -> tuple[list[Candidate], list[Built]]:
        """What is to be built, and the copies of files of which all that is chosen stands."""
        chosen = decision.sets if decision.manager == "radar" else ()
        whole = {place_of(file): file for file in self.standing.files if self.standing.is_whole(file, chosen)}
        stands = [
            Built(whole[place], each.name, each.container, each.replicas, each.bytes, 0.0, is_up_to_date=True)
            for each in copies_of(self.store)
            # What a managed file's writers left stale is made anew.
            if (place := place_of(each.path)) in whole and not each.is_stale and not each.stale_bytes
        ]
        left = {each.path for each in stands}
        return [each for each in decision.chosen if each.file not in left], stands

    def done(self, decision: Decision, made: Collection[Built]) -> None:
        """Remembers what stands when these files have copies as decided. Raises StoreError."""
        built = {place_of(each.path): each.container for each in made}
        is_radar = decision.manager == "radar"
        gone = set(self.standing.evicted(decision.sets)) if is_radar else set()
        # Where the store refused new copies, the old ones stand; what another manager makes is its own.
        sets = [each for each in self.standing.sets if place_of(each.file) not in built and each.file not in gone]
        sets += [each for each in decision.sets if is_radar and place_of(each.file) in built]
        taken = (*self.standing.taken, self._digest) if is_radar else self.standing.taken
        if is_radar or self.standing.sets:
            self._keep(sets, {**self.standing.containers, **built}, taken)

    def _keep(
        self,
        sets: Sequence[ReplicaSet],
        containers: Mapping[str, str],
        taken: Sequence[str],
        making: Sequence[ReplicaSet] = (),
    ) -> None:
        files = {place_of(each.file) for each in sets}
        said = {
            "version": VERSION,
            "taken": list(dict.fromkeys(taken))[-TAKEN_MAX:],
            "containers": {path: name for path, name in containers.items() if path in files},
            "managers": [{"manager": "radar", "sets": [each.as_json() for each in some]} for some in (sets, making)],
        }
        try:
            replace_part(self.store.root, REPLICAS, json.dumps(said) + "\n")
        except OSError as error:
            raise StoreError(f"{error.filename or self.store.root / REPLICAS}: {error.strerror}") from error


@contextlib.contextmanager
def turn_of(store: Store, digest: str, is_estimate: bool) -> Iterator[Turn]:
    """The turn of a run or plan, by its SHA-256; unless it is for an estimate, nobody else takes one in this store
    meanwhile.

    Raises StoreError where somebody does, or the record of what stands is damaged.
    """
    with contextlib.ExitStack() as held:
        if not is_estimate:
            try:
                held.enter_context(locked_part(store.root, REPLICAS_LOCK, wait=False))
            except BlockingIOError:
                raise StoreError(f"{store.root}: another 'stripewise replicate' is at work here; wait for it") from None
            except OSError as error:
                raise StoreError(f"{error.filename or store.root}: {error.strerror}") from error
        yield Turn(store, digest)


def read_standing(store: Store) -> Standing:
    """What stands in a store. Raises StoreError for a record that is damaged."""
    path = store.root / REPLICAS
    if not os.path.lexists(path):
        return Standing()
    data = read_json(path, StoreError, f"what 'stripewise replicate' has written, or {CURE}", store.root)
    try:
        top = Fields(data, path, "", WorkloadError)
        stood, making = (
            sets_in({"version": top.integer("version", 1, 2**31), "managers": [each]}, path)
            for each in [*top.tables("managers"), {"sets": []}, {"sets": []}][:2]
        )
        taken, containers = top.items("taken"), top.table("containers")
    except WorkloadError as error:
        raise StoreError(f"{error}; or {CURE}") from error
    copies = {place_of(each.path): each for each in copies_of(store) if not each.is_stale}
    found = [each for each in stood if _holds(copies, containers, each)]
    # Whoever was cut short had made these already, if the container is another one than stood.
    done = {place_of(each.file) for each in found}
    replicas = Counter(place_of(each.file) for each in making for one in each.candidates for _ in one.blocks)
    for each in making:
        file = place_of(each.file)
        if file in copies and file not in done and copies[file].replicas == replicas[file]:
            found.append(each)
    found = [replace(each, is_outdated=copies[place_of(each.file)].stale_bytes > 0) for each in found]
    return Standing(tuple(found), tuple(str(each) for each in taken), {p: c.container for p, c in copies.items()})


def _as_laid(each: ReplicaSet) -> tuple[object, ...]:
    """What a set holds, where, and what writes do to it."""
    return each.key, tuple((one.layout, one.on_write) for one in each.candidates)


def _holds(copies: Mapping[str, Copies], containers: Mapping[str, object], each: ReplicaSet) -> bool:
    """Whether the copies of a set's file are those that were made with it."""
    file = place_of(each.file)
    return file in copies and copies[file].container == containers.get(file)


def digest_of(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
