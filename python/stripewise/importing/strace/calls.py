"""What each call does to descriptors, positions and sizes, and the row that it is.

A call is one entry of `CALLS`; what is not there does nothing to files and is no row. `Calls` holds the machine's
files; the task that calls is given.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..comma import SIZE_MAX
from ..records import APPEND, DIRECT, IMPLICIT_OFFSET, NUMBER_MAX, OP, UNKNOWN_OFFSET, VECTOR, Names, Notes
from ..text import BadLineError
from .descriptors import Files, Opened, Table, Task
from .syntax import Call, descriptor, number_of, text_of

_SIZE = re.compile(r"st_size=([0-9]{1,19})\b")
_IOV_LEN = re.compile(r"iov_len=([0-9]{1,19})\b")
_AT_CWD = -100
_WHENCE = {"SEEK_SET": 0, "SEEK_CUR": 1, "SEEK_END": 2, "SEEK_DATA": 3, "SEEK_HOLE": 4}
_OPEN_FLAGS = {name: getattr(os, name) for name in dir(os) if name.startswith("O_")}


#: As preadv2 and pwritev2 are given it.
_AT_POSITION = ("-1", "18446744073709551615")


@dataclass(slots=True)
class Made:
    """The fields of a row that a call decides; the rest is its time and its thread."""

    op: str
    path: str = ""
    path2: str = ""
    fd: int = -1
    offset: int | None = None
    requested: int = 0
    aux: int = 0
    flags: int = 0

    def numbers(self, names: Names) -> dict[str, int]:
        """As columns of a row."""
        known = self.offset is not None and 0 <= self.offset < NUMBER_MAX
        return {
            "op": OP[self.op],
            "file": names.code(self.path),
            "file2": names.code(self.path2),
            "fd": self.fd if -1 <= self.fd < 1 << 31 else -1,
            "offset": self.offset if known and self.offset is not None else 0,
            "requested": max(0, min(self.requested, SIZE_MAX)),
            "aux": self.aux,
            "flags": self.flags | (0 if known else UNKNOWN_OFFSET),
        }


class Calls:
    """The files of the machine that was traced, and what calls on them do."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes
        self.files = Files()
        #: Reads and writes whose offset is unknown.
        self.unplaced = 0
        #: Bytes that went from file to file without a read or a write.
        self.copied_bytes = 0

    def made(self, task: Task, call: Call) -> Made | None:
        """The row of a call after its effects; None for one that is none. Raises BadLineError."""
        handler = CALLS.get(call.name)
        if handler is None:
            return None
        try:
            return handler(self, task, call)
        except IndexError as error:
            raise BadLineError(f"{call.name} has too few arguments") from error

    def path(self, task: Task, directory: int | str | None, argument: str) -> str:
        """The path of a name argument, relative to a directory; '' where strace did not print it."""
        name = text_of(argument)
        if not name:
            return ""
        if name.startswith("/"):
            return posixpath.normpath(name)
        base = directory if isinstance(directory, str) else task.cwd[0]
        if isinstance(directory, int) and directory != _AT_CWD:
            opened = task.table.opened.get(directory)
            base = "" if opened is None else opened.file.path
        return posixpath.normpath(posixpath.join(base, name))

    def at(self, task: Task, call: Call, first: int = 0) -> str:
        """The path of an `...at` call: a directory's descriptor and a name."""
        fd, known = descriptor(call.arguments[first])
        if known is not None and fd == _AT_CWD:
            task.cwd[0] = known
        return self.path(task, known if known else fd, call.arguments[first + 1])

    def opened(self, task: Task, argument: str) -> tuple[int, Opened | None]:
        """A descriptor and what is behind it; None where that is no file. What -y says corrects what was followed."""
        fd, path = descriptor(argument)
        found = task.table.opened.get(fd)
        if path is None:
            return fd, found
        if not path.startswith("/"):
            return fd, None
        if found is None or found.file.path != path:
            found = Opened(self.files.at(path), None)
            task.table.opened[fd] = found
        return fd, found


def _flag_number(argument: str) -> int:
    number = 0
    for word in argument.split("|"):
        number |= _OPEN_FLAGS.get(word, 0)
    return number & 0x7FFF_FFFF


def _open(calls: Calls, task: Task, call: Call, path: str, flags: str) -> Made:
    words = set(flags.split("|"))
    made = Made("open", path, aux=_flag_number(flags), offset=0)
    fd = call.result
    if fd is None or fd < 0:
        return made
    if call.fd_name is not None and call.fd_name.startswith("/"):
        path = made.path = call.fd_name
    made.fd = fd
    file = calls.files.at(path)
    if "O_TRUNC" in words or {"O_CREAT", "O_EXCL"} <= words:
        file.size = 0
    opened = Opened(file, 0, "O_APPEND" in words, "O_DIRECT" in words)
    task.table.put(fd, opened, "O_CLOEXEC" in words)
    return made


def _openat(calls: Calls, task: Task, call: Call) -> Made:
    flags = call.arguments[2]
    if call.name == "openat2":
        flags = flags.partition("flags=")[2].partition(",")[0]
    return _open(calls, task, call, calls.at(task, call), flags)


def _plain_open(calls: Calls, task: Task, call: Call) -> Made:
    flags = "O_WRONLY|O_CREAT|O_TRUNC" if call.name == "creat" else call.arguments[1]
    return _open(calls, task, call, calls.path(task, None, call.arguments[0]), flags)


def _close(calls: Calls, task: Task, call: Call) -> Made | None:
    fd, opened = calls.opened(task, call.arguments[0])
    path = "" if opened is None else opened.file.path
    if call.errno != 9:  # EBADF
        task.table.drop(fd)
    return Made("close", path, fd=fd, offset=0) if path else None


def _close_range(calls: Calls, task: Task, call: Call) -> None:
    first, last = number_of(call.arguments[0]), number_of(call.arguments[1])
    if call.result == 0 and first is not None and "CLOSE_RANGE_CLOEXEC" not in call.arguments[2]:
        for fd in [fd for fd in task.table.opened if fd >= first and (last is None or fd <= last)]:
            task.table.drop(fd)


def _transfer(op: str, is_placed: bool, is_vector: bool) -> Callable[[Calls, Task, Call], Made | None]:
    """The handler of a read or write: at an offset of its own or at the position, from one buffer or several."""

    def handler(calls: Calls, task: Task, call: Call) -> Made | None:
        fd, opened = calls.opened(task, call.arguments[0])
        if opened is None:
            return None
        count = call.result if call.result is not None and call.result > 0 else 0
        if count > SIZE_MAX:
            raise BadLineError(f"{call.name} returned more than it can")
        is_write = op == "write"
        made = Made(op, opened.file.path, fd=fd, flags=VECTOR if is_vector else 0)
        if is_vector:
            made.requested = sum(int(size) for size in _IOV_LEN.findall(call.arguments[1])) or count
        else:
            made.requested = number_of(call.arguments[2]) or 0
        offset = number_of(call.arguments[3]) if is_placed else None
        # preadv2's "at the position" is -1; a place that no file has is none, and moves nothing.
        at_position = not is_placed or call.arguments[3].strip() in _AT_POSITION
        if at_position:
            made.flags |= IMPLICIT_OFFSET
            offset = opened.position
        if not at_position and offset is None and count:
            raise BadLineError(f"{call.name} is at a place that no file has")
        if is_write and opened.is_append:
            offset = opened.file.size
            made.flags |= APPEND
        made.flags |= DIRECT if opened.is_direct else 0
        made.offset = offset
        if offset is None and count:
            calls.unplaced += 1
        if call.result is not None and call.result >= 0:
            if at_position:
                opened.moved(offset, count, is_write)
            elif is_write:
                opened.reached(offset, count)
        return made

    return handler


def _seek(calls: Calls, task: Task, call: Call) -> Made | None:
    fd, opened = calls.opened(task, call.arguments[0])
    if opened is None:
        return None
    # _llseek has the offset in two words or one, and gives the result through a pointer.
    given, whence, result = number_of(call.arguments[1]), call.arguments[-1], call.result
    if call.name == "_llseek" and result == 0:
        result = number_of(call.arguments[2].strip("[]"))
    if result is not None and 0 <= result < NUMBER_MAX and call.result is not None and call.result >= 0:
        opened.position = result
        if whence == "SEEK_END" and given is not None and result >= given:
            opened.file.size = result - given
    made = Made("seek", opened.file.path, fd=fd, offset=result, aux=_WHENCE.get(whence, 0))
    made.requested = max(0, given or 0)
    return made


def _dup(calls: Calls, task: Task, call: Call) -> Made | None:
    fd, opened = calls.opened(task, call.arguments[0])
    if call.result is None or call.result < 0:
        return None
    closes = call.name == "dup3" and "O_CLOEXEC" in call.arguments[2]
    if opened is None:
        task.table.drop(call.result)
        return None
    task.table.put(call.result, opened, closes)
    return Made("dup", opened.file.path, fd=fd, offset=0)


def _fcntl(calls: Calls, task: Task, call: Call) -> Made | None:
    fd, opened = calls.opened(task, call.arguments[0])
    command = call.arguments[1]
    fine = call.result is not None and call.result >= 0
    if opened is None:
        return None
    if command.startswith("F_DUPFD"):
        if fine and call.result is not None:
            task.table.put(call.result, opened, command == "F_DUPFD_CLOEXEC")
        return Made("dup", opened.file.path, fd=fd, offset=0)
    if fine and command == "F_SETFL":
        words = set(call.arguments[2].split("|"))
        opened.is_append, opened.is_direct = "O_APPEND" in words, "O_DIRECT" in words
    if fine and command == "F_SETFD":
        task.table.put(fd, opened, "FD_CLOEXEC" in call.arguments[2])
    is_lock = "LK" in command
    return Made("lock" if is_lock else "fcntl", opened.file.path, fd=fd, offset=0)


def _stat(calls: Calls, task: Task, call: Call) -> Made | None:
    """fstat and kin by descriptor; a size that they tell is the file's."""
    _, opened = calls.opened(task, call.arguments[0])
    if opened is None:
        return None
    return _sized(opened.file.path, calls, call)


def _sized(path: str, calls: Calls, call: Call) -> Made:
    found = _SIZE.search(",".join(call.arguments[1:])) if call.result == 0 else None
    if found is not None and path and "S_IFREG" in "".join(call.arguments):
        size = int(found[1])
        if size < NUMBER_MAX:
            calls.files.at(path).size = size
    return Made("stat", path, offset=0)


def _stat_at(calls: Calls, task: Task, call: Call) -> Made | None:
    if call.arguments[1] == '""':
        return _stat(calls, task, call)
    return _sized(calls.at(task, call), calls, call)


def _stat_path(calls: Calls, task: Task, call: Call) -> Made:
    return _sized(calls.path(task, None, call.arguments[0]), calls, call)


def _on_descriptor(
    op: str, offset: int = -1, count: int = -1, aux: int = 0
) -> Callable[[Calls, Task, Call], Made | None]:
    """A call on a descriptor, with the arguments in which its offset and length stand."""

    def handler(calls: Calls, task: Task, call: Call) -> Made | None:
        fd, opened = calls.opened(task, call.arguments[0])
        if opened is None:
            return None
        made = Made(op, opened.file.path, fd=fd, offset=0, aux=aux)
        if offset >= 0:
            made.offset = number_of(call.arguments[offset])
        if count >= 0:
            made.requested = number_of(call.arguments[count]) or 0
        if op == "truncate" and call.result == 0:
            opened.file.size = made.offset
        if op == "fallocate" and call.result == 0 and call.arguments[1] == "0":
            opened.reached(made.offset, made.requested)
        return made

    return handler


def _on_path(op: str) -> Callable[[Calls, Task, Call], Made | None]:
    def handler(calls: Calls, task: Task, call: Call) -> Made | None:
        at = call.name.endswith(("at", "at2"))
        path = calls.at(task, call) if at else calls.path(task, None, call.arguments[0])
        if op == "unlink" and call.result == 0:
            calls.files.remove(path)
        if op == "truncate" and call.result == 0:
            calls.files.at(path).size = number_of(call.arguments[1])
        return Made(op, path, offset=0)

    return handler


def _two_paths(op: str) -> Callable[[Calls, Task, Call], Made | None]:
    def handler(calls: Calls, task: Task, call: Call) -> Made | None:
        at = "at" in call.name
        old = calls.at(task, call) if at else calls.path(task, None, call.arguments[0])
        new = calls.at(task, call, 2) if at else calls.path(task, None, call.arguments[1])
        if op == "rename" and call.result == 0 and old and new:
            calls.files.rename(old, new)
        return Made(op, old, new, offset=0)

    return handler


def _mmap(calls: Calls, task: Task, call: Call) -> Made | None:
    if call.arguments[4].startswith("-1"):
        return None
    fd, opened = calls.opened(task, call.arguments[4])
    if opened is None:
        return None
    offset = call.arguments[5]
    made = Made("mmap", opened.file.path, fd=fd, requested=number_of(call.arguments[1]) or 0)
    made.offset = int(offset, 16) if re.fullmatch("0x[0-9a-f]{1,15}", offset) else number_of(offset)
    return made


def _copy(calls: Calls, task: Task, call: Call) -> Made | None:
    """copy_file_range and sendfile: both ends move, or their own offsets do, which strace shows before the call."""
    is_send = call.name.startswith("sendfile")
    source, target = (1, 0) if is_send else (0, 2)
    offsets = {source: 2 if is_send else 1, target: -1 if is_send else 3}
    count = call.result if call.result is not None and 0 < call.result <= SIZE_MAX else 0
    made = None
    for end in (target, source):
        fd, opened = calls.opened(task, call.arguments[end])
        if opened is None:
            continue
        place = offsets[end]
        given = None if place < 0 else number_of(call.arguments[place].partition("]")[0].strip("[ "))
        is_explicit = place >= 0 and call.arguments[place] != "NULL"
        offset = given if is_explicit else opened.position
        if is_explicit:
            if end == target:
                opened.reached(offset, count)
        else:
            opened.moved(offset, count, end == target)
        path2 = made.path if made else ""
        requested = number_of(call.arguments[-2]) or count
        made = Made("copy", opened.file.path, path2, fd=fd, offset=offset, requested=requested)
    calls.copied_bytes += count if made else 0
    return made


def _chdir(calls: Calls, task: Task, call: Call) -> None:
    if call.result == 0:
        if call.name == "fchdir":
            _, opened = calls.opened(task, call.arguments[0])
            task.cwd[0] = "" if opened is None else opened.file.path
        else:
            task.cwd[0] = calls.path(task, None, call.arguments[0])


def _getcwd(calls: Calls, task: Task, call: Call) -> None:
    name = text_of(call.arguments[0])
    if name and call.result is not None and call.result > 0:
        task.cwd[0] = name


def _exec(calls: Calls, task: Task, call: Call) -> Made:
    at = call.name == "execveat"
    path = calls.at(task, call) if at else calls.path(task, None, call.arguments[0])
    if call.result == 0:
        task.table = task.table.copy()
        task.table.exec()
        words = re.findall(r'"(?:[^"\\]|\\.)*"', call.arguments[2 if at else 1])
        task.process.command = [text_of(word) or "" for word in words]
    return Made("exec", path, offset=0)


def _unshare(calls: Calls, task: Task, call: Call) -> None:
    if call.result == 0 and "CLONE_FILES" in call.arguments[0]:
        task.table = Table(dict(task.table.opened), set(task.table.closing))


Handler = Callable[[Calls, Task, Call], Made | None]
_TRANSFERS: dict[str, Handler] = {
    name: _transfer(op, name.startswith("p"), "v" in name)
    for op in ("read", "write")
    for name in (op, f"{op}v", f"p{op}", f"p{op}64", f"p{op}v", f"p{op}v2")
}
CALLS: dict[str, Handler] = {
    **_TRANSFERS,
    "open": _plain_open, "creat": _plain_open, "openat": _openat, "openat2": _openat,
    "close": _close, "close_range": _close_range, "lseek": _seek, "_llseek": _seek,
    "dup": _dup, "dup2": _dup, "dup3": _dup, "fcntl": _fcntl, "fcntl64": _fcntl,
    "fstat": _stat, "fstat64": _stat, "newfstatat": _stat_at, "fstatat64": _stat_at,
    "stat": _stat_path, "lstat": _stat_path, "stat64": _stat_path, "lstat64": _stat_path,
    "ftruncate": _on_descriptor("truncate", 1), "ftruncate64": _on_descriptor("truncate", 1),
    "truncate": _on_path("truncate"), "fallocate": _on_descriptor("fallocate", 2, 3),
    "fsync": _on_descriptor("sync"), "fdatasync": _on_descriptor("sync", aux=1),
    "sync_file_range": _on_descriptor("sync", 1, 2, 1), "flock": _on_descriptor("lock"),
    "fadvise64": _on_descriptor("advise", 1, 2), "readahead": _on_descriptor("advise", 1, 2),
    "getdents64": _on_descriptor("readdir"), "getdents": _on_descriptor("readdir"),
    "access": _on_path("access"), "faccessat": _on_path("access"), "faccessat2": _on_path("access"),
    "unlink": _on_path("unlink"), "unlinkat": _on_path("unlink"), "mkdir": _on_path("mkdir"),
    "mkdirat": _on_path("mkdir"), "rmdir": _on_path("rmdir"), "readlink": _on_path("readlink"),
    "readlinkat": _on_path("readlink"), "mknod": _on_path("mknod"), "mknodat": _on_path("mknod"),
    "rename": _two_paths("rename"), "renameat": _two_paths("rename"), "renameat2": _two_paths("rename"),
    "link": _two_paths("link"), "linkat": _two_paths("link"),
    "mmap": _mmap, "copy_file_range": _copy, "sendfile": _copy, "sendfile64": _copy,
    "chdir": _chdir, "fchdir": _chdir, "getcwd": _getcwd, "execve": _exec, "execveat": _exec, "unshare": _unshare,
}  # fmt: skip
