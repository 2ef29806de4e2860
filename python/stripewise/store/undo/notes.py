"""Notes of files that are becoming plain, `<store>/undo/<id>.json`: what a run that was killed had in hand."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ...errors import DamagedError
from ...files.parts import read_part, remove_part, replace_part
from ..store import Store

NOTES_DIR = "undo"


@dataclass(frozen=True)
class Note:
    """A file, the name at which it becomes plain, and its further names.

    `ino` is that of the plain file once it was compared; 0 before. Until then only its copy may be there.
    """

    id: str
    path: str
    others: tuple[str, ...]
    ino: int = 0

    @property
    def copy(self) -> str:
        """Where the plain file is made."""
        return os.path.join(os.path.dirname(self.path), f".stripewise-{self.id}")


def write(store: Store, note: Note) -> None:
    """Makes the note durable, in place of one before."""
    replace_part(store.root, f"{NOTES_DIR}/{note.id}.json", json.dumps(asdict(note)), make=True)


def forget(store: Store, note: Note) -> None:
    remove_part(store.root, f"{NOTES_DIR}/{note.id}.json")


def notes(store: Store) -> Iterator[Note]:
    """All of them. Raises DamagedError for one that cannot be read."""
    place = store.root / NOTES_DIR
    for name in sorted(os.listdir(place)) if place.is_dir() else []:
        if name.startswith("."):
            continue
        try:
            said = json.loads(read_part(store.root, f"{NOTES_DIR}/{name}"))
            note = Note(str(said["id"]), str(said["path"]), tuple(map(str, said["others"])), int(said["ino"]))
            if name != f"{note.id}.json" or not re.fullmatch("[0-9a-f]{16}", note.id):
                raise ValueError("it names another file")
            yield note
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{place / name}: cannot be read ({error}); remove it, its file is whole") from error
