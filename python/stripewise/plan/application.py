"""Which application a command line runs, with how many processes: the key of a plan (H2DP section 4.2).

The application is the program's words without its launcher, as its own process had them.
"""

from __future__ import annotations

import operator
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePath

#: What starts the processes of a parallel program.
LAUNCHERS = re.compile(r"(mpiexec|mpirun)([.-]\w+)*|orterun|prterun|prun|srun|aprun|jsrun|ibrun")
#: What else may stand before a program without being one.
WRAPPERS = re.compile(r"env|nice|ionice|nohup|numactl|setsid|stdbuf|taskset|time|timeout")
#: An interpreter, which a script's first line brings in: it stands before the script in the words of its process.
INTERPRETERS = re.compile(r"(ba|da|k|z|c|tc)?sh|python[\d.]*|perl[\d.]*|ruby[\d.]*|Rscript|julia|lua[\d.]*")
#: How launchers are told the number of processes; `short` is mpirun's alone, the others have Slurm's nodes.
OPTIONS = {
    "processes": re.compile(r"(?:-n|-np|--n|--np|--ntasks)(?:=(\d+))?|-n(\d+)"),
    "short": re.compile(r"-c"),
    "nodes": re.compile(r"(?:-N|--nodes)(?:=(\d+))?|-N(\d+)"),
    "each": re.compile(r"--ntasks-per-node(?:=(\d+))?"),
}
#: What is longer is not a number of processes.
DIGITS_MAX = 9
#: Where batch systems tell it, if the command does not.
VARIABLES = ("SLURM_NTASKS", "PBS_NP", "LSB_DJOB_NUMPROC", "NSLOTS")


def application_of(command: Iterable[str]) -> str:
    """The application in one line, as a shell reads it."""
    return shlex.join(command)


def starts_another(word: str) -> bool:
    """Whether a word of a command line only starts another program: a launcher, `env`, `nice` and the like."""
    name = PurePath(word).name
    return bool(LAUNCHERS.fullmatch(name) or WRAPPERS.fullmatch(name))


def is_launcher(word: str) -> bool:
    """Whether it starts the processes of a parallel program."""
    return bool(LAUNCHERS.fullmatch(PurePath(word).name))


def is_interpreter(word: str) -> bool:
    """Whether it runs a script, the next word that is no option."""
    return bool(INTERPRETERS.fullmatch(PurePath(word).name))


def is_run_by(application: str, command: Sequence[str]) -> bool:
    """Whether `command`, with a launcher or without, runs the application: the same program by its file's name, and
    the same arguments.
    """
    return _place(application, command) is not None


def is_respelled(application: str, its_directory: str, command: Sequence[str], directory: str) -> bool:
    """Whether `command`, run in `directory`, is the application, run in its own, but for how words spell paths: from
    the root or from the directory.
    """

    def same(its: str, ours: str) -> bool:
        return its == ours or _absolute(its, its_directory) == _absolute(ours, directory)

    return _place(application, command, same) is not None


def _absolute(word: str, directory: str) -> str:
    """The word with its path, or the one behind the = of an option, from the root."""
    option, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
    return f"{option}{equals}{os.path.normpath(os.path.join(directory, path))}" if path else word


def processes_of(application: str, command: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """With how many processes `command` runs the application, by its launcher's words or the batch system's variables;
    None where neither tells, or it runs something else.
    """
    place = _place(application, command)
    if place is None:
        return None
    first, *others = _segments(command)
    if (launcher := _launcher(first[:place])) is not None:
        counts = [_count(launcher, words) for words in (first[:place], *others)]
        if None not in counts:
            return sum(count for count in counts if count is not None)
    return next((count for name in VARIABLES if (count := _number(environment.get(name, "")))), None)


def working_directory() -> str:
    """Where a run's relative words begin; empty where the directory is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def directory_of(application: str, paths: Collection[str], directory: str, ran_here: bool = False) -> str:
    """The working directory that says which files the application's words name: `directory`, where a relative word
    leads from there to one of `paths`, or, where the application `ran_here`, one of them lies below it though no word
    names it by an absolute path. Empty: whatever the directory, the files are the same.
    """
    if not directory.isprintable() or not directory.startswith("/"):
        return ""
    words = [word.partition("=")[2] if word.startswith("-") else word for word in shlex.split(application)]
    relative = {os.path.normpath(os.path.join(directory, word)) for word in words if word and word[0] != "/"}
    absolute = {os.path.normpath(word) for word in words if word.startswith("/")}
    named = [path for path in paths if not any(_is_in(path, word) for word in absolute)]
    if any(_is_in(path, word) for path in named for word in relative - {directory}):
        return directory
    return directory if ran_here and any(_is_in(path, directory) for path in named) else ""


def _is_in(path: str, directory: str) -> bool:
    """Whether it is that, or lies below it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _number(text: str) -> int | None:
    """A number of processes in a few decimal digits."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else None


def _segments(command: Sequence[str]) -> list[list[str]]:
    """The programs of `mpiexec -n 4 a : -n 2 b`, each with the words before it."""
    segments: list[list[str]] = [[]]
    for word in command:
        if word == ":" and _launcher(segments[0]) is not None:
            segments.append([])
        else:
            segments[-1].append(word)
    return segments


def _place(application: str, command: Sequence[str], same: Callable[[str, str], bool] = operator.eq) -> int | None:
    """Where in the first program's segment its own words begin; an argument is the `same` as it is, or otherwise."""
    try:
        words = shlex.split(application)
    except ValueError:
        return None
    if len(words) > 1 and INTERPRETERS.fullmatch(PurePath(words[0]).name) and not words[1].startswith("-"):
        words = words[1:]
    segment = _segments(command)[0]
    place = len(segment) - len(words)
    if not words or place < 0 or not all(map(same, words[1:], segment[place + 1 :])):
        return None
    if PurePath(segment[place]).name != PurePath(words[0]).name:
        return None
    before = PurePath(segment[0]).name
    is_first = place == 0 or (place == 1 and INTERPRETERS.fullmatch(before))
    return place if is_first or WRAPPERS.fullmatch(before) or LAUNCHERS.fullmatch(before) else None


def _launcher(words: Sequence[str]) -> str | None:
    """The launcher among the words before a program."""
    names = [PurePath(word).name for word in words]
    return next((name for name in names if LAUNCHERS.fullmatch(name)), None)


def _count(launcher: str, words: Sequence[str]) -> int | None:
    """The number of processes by the launcher's options, in its own words or those after a colon."""
    names = [PurePath(word).name for word in words]
    after = words[names.index(launcher) + 1 :] if launcher in names else words
    found: dict[str, int] = {}
    for word, following in zip(after, [*after[1:], ""], strict=False):
        for what, option in OPTIONS.items():
            if what == "short" and not launcher.startswith("mpi"):
                continue
            if match := option.fullmatch(word):
                text = next((part for part in match.groups() if part), following)
                if (number := _number(text)) is not None:
                    found.setdefault("processes" if what == "short" else what, number)
    if "processes" in found:
        return found["processes"]
    return found["nodes"] * found["each"] if "nodes" in found and "each" in found else None
