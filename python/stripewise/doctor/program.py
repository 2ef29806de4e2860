"""Checks of the library, and of the programs that it is to be loaded into."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ..errors import StoreError
from ..plan.application import is_interpreter, is_launcher, starts_another
from ..preloaded import LIBRARY, OFF, without_library
from ..run import runner
from ..run.elf import Kind, Program, own_machine, read_program
from .finding import Examined, Finding, bad, note, ok

#: A loader that only lists what it would load does so at once.
LOAD_TIMEOUT_S = 20
#: What is looked at when no command is given.
PROBE = "true"
EXPORT = "or take its files out of the store"


def library_is_built(_: Examined) -> Iterator[Finding]:
    """The library is there, and is one for this machine."""
    try:
        path = runner.library_path()
    except StoreError as error:
        what, cure = str(error).partition("; ")[::2]
        yield bad(what, cure)
        return
    library = read_program(path)
    if library.machine != own_machine():
        yield bad(f"{path} is for another architecture", "build it on this machine with 'make build'")
    else:
        yield ok(f"{path} ({path.stat().st_size:,} bytes)")


def c_library_is_new_enough(_: Examined) -> Iterator[Finding]:
    """The C library here has every symbol that the library was linked with."""
    try:
        needs = read_program(runner.library_path()).glibc()
    except StoreError:
        return
    name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")[::2]
    if name != "glibc":
        yield bad("the C library here is not glibc", "run programs on a system with glibc")
        return
    here = tuple(int(number) for number in version.split(".")[:2])
    if here < needs:
        yield bad(
            f"glibc {version} is older than {_dotted(needs)}, which the library needs",
            "build the library on this machine: what it needs is what it was built with",
        )
    else:
        yield ok(f"glibc {version}; the library needs {_dotted(needs)} or newer")


def programs_take_the_library(examined: Examined) -> Iterator[Finding]:
    """The command's program, and the programs among its words, as after `mpiexec -n 4`."""
    command = examined.command or (PROBE,)
    path = examined.environment.get("PATH")
    first = shutil.which(command[0], path=path)
    if first is None and os.path.isfile(command[0]):
        yield bad(f"{command[0]} cannot be executed", "chmod +x it, or put its interpreter in front")
        return
    if first is None:
        yield bad(f"{command[0]} is not found", "check the command after --")
        return
    yield from _missing(command, path)
    for each in dict.fromkeys([Path(first).absolute(), *_started(command, path)]):
        yield from _takes(each, examined)


def _started(command: Sequence[str], path: str | None) -> Iterator[Path]:
    """The programs among a command's words but the first: those with a slash, and what launchers and the like start,
    which may be looked for in PATH.
    """
    is_next = starts_another(command[0])
    for word in command[1:]:
        named = is_next and not word.startswith("-") and "=" not in word
        found = shutil.which(word, path=path) if "/" in word or named else None
        if found and Path(found).is_file():
            # Absolute, for a bare name would be looked for in PATH when it is started.
            yield Path(found).absolute()
            is_next = is_next and starts_another(word)
        elif word == ":":
            is_next = starts_another(command[0])


def _missing(command: Sequence[str], path: str | None) -> Iterator[Finding]:
    """What a launcher or an interpreter is to start and is not there, where the words tell."""
    if is_launcher(command[0]) and len(command) > 1 and not any(_started(command, path)):
        # What stands right behind an option is its value, more often than not.
        pairs = [pair for pair in pairwise(command) if "/" in pair[1] and pair[1][0] != "-" and "=" not in pair[1]]
        slashed = [word for _, word in sorted(pairs, key=lambda pair: pair[0].startswith("-"))]
        if slashed:
            what = f"{slashed[0]} {'cannot be executed' if os.path.exists(slashed[0]) else 'is not there'}"
        else:
            what = f"{command[0]} starts {command[-1]}, which is not found"
        yield bad(what, "check the words behind the launcher")
    for word, script in pairwise(command):
        if (
            not is_interpreter(word)
            or script.startswith("-")
            or (word != command[0] and not starts_another(command[0]))
        ):
            continue
        if not os.path.exists(script) and shutil.which(script, path=path) is None:
            yield bad(f"{script}, which {word} is to run, is not there", "check the command after --")
        return


def out_of_reach(command: tuple[str, ...]) -> Finding | None:
    """Why the library does not get into the program that `run` itself starts, or is of no use there; None: it does.

    What that program starts in its turn, the library sees and tells.
    """
    found = shutil.which(command[0])
    if found is None:
        return None
    try:
        path, program = Path(found), read_program(Path(found))
        if program.kind is Kind.SCRIPT:
            path = _interpreter(program, Examined()) or path
            program = read_program(path)
        return _more_rights(path) or _unreachable(path, program)
    except OSError:
        return None


def preload_is_free(examined: Examined) -> Iterator[Finding]:
    """What else is preloaded comes after the library."""
    others = without_library(examined.environment.get("LD_PRELOAD", ""))
    if "darshan" in others.lower():
        yield note(
            f"LD_PRELOAD holds {others}: the library goes in front, so calls on managed files are not counted there",
            "record them with stripewise run --trace",
        )
    elif others:
        yield note(
            f"LD_PRELOAD holds {others}", "nothing, unless it replaces open, read or write: the library goes first"
        )
    else:
        yield ok("nothing else is preloaded")


def environment_is_plain(examined: Examined) -> Iterator[Finding]:
    """No switch is set that keeps the library away."""
    if examined.environment.get(OFF) == "1":
        yield note(f"{OFF}=1 keeps the library from programs with a new environment", f"unset {OFF}")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(str(number) for number in version)


def _takes(path: Path, examined: Examined) -> Iterator[Finding]:
    if path.is_symlink() and os.readlink(path).startswith("/stripewise:"):
        yield bad(
            f"{path} is itself a managed file, which the kernel cannot start", "keep programs in other directories"
        )
        return
    try:
        program = read_program(path)
        if program.kind is Kind.SCRIPT:
            path = _interpreter(program, examined) or path
            program = read_program(path)
    except OSError as error:
        yield note(f"{path} cannot be looked at ({error.strerror})", "run doctor as a user who may read it")
        return
    wrong = _more_rights(path) or _unreachable(path, program)
    if wrong:
        yield wrong
    elif _is_emulator(path):
        yield ok(f"{path} is an emulator; the program that it runs loads the library")
    else:
        yield from _loads(path)


def _interpreter(program: Program, examined: Examined) -> Path | None:
    """A script is what runs it; after `#!/usr/bin/env` that is told by PATH at run time only, and env itself serves."""
    found = shutil.which(program.loader, path=examined.environment.get("PATH")) if program.loader else None
    return Path(found) if found else None


def _more_rights(path: Path) -> Finding | None:
    mode = path.stat()
    if (mode.st_mode & stat.S_ISUID and mode.st_uid != os.geteuid()) or (
        mode.st_mode & stat.S_ISGID and mode.st_gid != os.getegid()
    ):
        return bad(f"{path} is setuid or setgid, so the loader ignores the library", f"run it as its owner, {EXPORT}")
    if os.geteuid() != 0 and "security.capability" in os.listxattr(path):
        return bad(
            f"{path} has file capabilities, so the loader ignores the library", f"use a copy without them, {EXPORT}"
        )
    return None


def _is_emulator(path: Path) -> bool:
    """QEMU's user-mode emulator of this machine: where it is linked statically, its program loads the library still."""
    return path.resolve().name.removesuffix("-static") == f"qemu-{platform.machine()}"


def _unreachable(path: Path, program: Program) -> Finding | None:
    if _is_emulator(path):
        return None
    if program.kind is Kind.STATIC:
        return bad(f"{path} is statically linked, so nothing can be loaded into it", f"link it dynamically, {EXPORT}")
    if program.kind is Kind.FOREIGN or (program.kind is Kind.DYNAMIC and program.machine != own_machine()):
        return bad(f"{path} is for another architecture than the library", f"use a build for this machine, {EXPORT}")
    if program.kind is Kind.OTHER:
        return note(f"{path} is not a program that the loader starts", "check the command after --")
    if "ld-linux" not in Path(program.loader).name:
        return bad(f"{path} is started by {program.loader}, which is not glibc's", f"use a build for glibc, {EXPORT}")
    if program.go:
        return bad(
            f"{path} is written in Go, whose os package calls the kernel itself: its opens of managed files "
            "fail (ENOENT), and so do reads of descriptors that it inherits (EBADF), which it may pass over in silence",
            f"use another program, {EXPORT}",
        )
    return None


def _loads(path: Path) -> Iterator[Finding]:
    """Has the loader list what it would load; the program itself does not run."""
    try:
        env = dict(runner.environment(os.environ, None, None, [], [str(path)]), LD_TRACE_LOADED_OBJECTS="1")
        listed = subprocess.run([path], env=env, capture_output=True, timeout=LOAD_TIMEOUT_S, check=False)
    except StoreError:
        yield note(f"{path} was not tried, for there is no library", "build the library first")
        return
    except OSError as error:
        yield bad(f"{path} cannot be started ({error.strerror})", "check the command after --")
        return
    except subprocess.TimeoutExpired:
        yield bad(
            f"{path}: the loader did not list what it loads within {LOAD_TIMEOUT_S} s", "check the command after --"
        )
        return
    said = (listed.stdout + listed.stderr).decode(errors="replace")
    complaint = next((line.strip() for line in said.splitlines() if "ERROR" in line or "not found" in line), "")
    if complaint:
        yield bad(f"{path}: the loader says: {complaint}", "install what is missing, or build the library here anew")
        return
    if LIBRARY not in said:
        yield bad(f"{path}: the loader does not load the library", "check LD_PRELOAD and the loader that starts it")
        return
    yield ok(f"{path} loads the library")
    rings = [name for name in ("liburing", "libaio") if f"{name}.so" in said]
    if rings:
        yield note(
            f"{path} is linked with {' and '.join(rings)}, whose set-up functions answer ENOSYS on a store",
            "nothing where it goes on by itself (most do, with threads); else give it its option for plain I/O",
        )
