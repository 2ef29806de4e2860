"""What strace's processes have open: descriptors, the file positions behind them, and how long files are.

Positions belong to open file descriptions, which dup and fork share; CLONE_FILES shares the table itself. What was
opened before the trace began is at an unknown position until a seek tells it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..records import Process


@dataclass(slots=True)
class File:
    """A file by its present path; `size` is None where the trace has not told it."""

    path: str
    size: int | None = None


@dataclass(slots=True)
class Opened:
    """An open file description. `position` is None where the trace has not told it."""

    file: File
    position: int | None
    is_append: bool = False
    is_direct: bool = False

    def moved(self, begin: int | None, count: int, is_write: bool) -> None:
        """After `count` bytes from `begin` on at the position."""
        self.position = None if begin is None else begin + count
        if is_write:
            self.reached(begin, count)

    def reached(self, begin: int | None, count: int) -> None:
        """After a write of `count` bytes at `begin`."""
        if begin is None or count <= 0:
            return
        if self.file.size is not None:
            self.file.size = max(self.file.size, begin + count)


@dataclass
class Table:
    """The descriptors of a process; `closing` are those that an exec closes."""

    opened: dict[int, Opened] = field(default_factory=dict)
    closing: set[int] = field(default_factory=set)

    def copy(self) -> Table:
        """What fork gives a child: the same open file descriptions under the same numbers."""
        return Table(dict(self.opened), set(self.closing))

    def put(self, fd: int, opened: Opened, closes_on_exec: bool) -> None:
        self.opened[fd] = opened
        self.closing.discard(fd)
        if closes_on_exec:
            self.closing.add(fd)

    def drop(self, fd: int) -> Opened | None:
        self.closing.discard(fd)
        return self.opened.pop(fd, None)

    def exec(self) -> None:
        for fd in self.closing:
            self.opened.pop(fd, None)
        self.closing = set()


@dataclass
class Task:
    """A thread: its process, its descriptors, its directory (a list of one, shared by CLONE_FS)."""

    tid: int
    process: Process
    table: Table
    cwd: list[str]


class Files:
    """All files by path, over the whole machine."""

    def __init__(self) -> None:
        self._by_path: dict[str, File] = {}
        self._parents: set[str] = set()

    def at(self, path: str) -> File:
        """The file of this path, now."""
        file = self._by_path.get(path)
        if file is None:
            file = self._by_path[path] = File(path)
            parent = path.rpartition("/")[0]
            while parent and parent not in self._parents:
                self._parents.add(parent)
                parent = parent.rpartition("/")[0]
        return file

    def known(self, path: str) -> File | None:
        return self._by_path.get(path)

    def rename(self, old: str, new: str) -> None:
        """Descriptors of the file, or of files below the directory, go on under its new name."""
        moved = self._by_path.pop(old, None)
        self._by_path.pop(new, None)
        if moved is not None:
            moved.path = new
            self._by_path[new] = moved
            return
        if old not in self._parents:
            return
        below = [path for path in self._by_path if path.startswith(f"{old}/")]
        for path in below:
            file = self._by_path.pop(path)
            file.path = new + path[len(old) :]
            self._by_path[file.path] = file
        if below:
            self._parents.discard(old)
            self._parents.add(new)

    def remove(self, path: str) -> None:
        """Its descriptors keep the old file; a new one of that name has nothing to do with it."""
        self._by_path.pop(path, None)
