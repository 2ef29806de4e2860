"""Runs a case in three places and compares: a managed and a plain directory under the library, a plain one without.

The last is the oracle. Exit code, stdout and a digest of every file left behind must be the same; a case that is
refused on purpose must end in the error it names on managed files, and still be the same on plain ones.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rig import BIN, ROOT, Result, Store, execute, is_managed, stripewise

from .case import Case

HERE = Path(__file__).parent
PYTHON = BIN / "python"
PLACES = ("managed", "plain", "bare")
#: Programs that Debian keeps off PATH.
MORE_PATH = sorted(str(path) for path in Path("/usr/lib/postgresql").glob("*/bin"))
#: The user of programs that refuse to run as root.
NOBODY = 65534
VERSION_S = 60
#: Exit code in the table of a script that had to be killed.
HANGS = -9


@dataclass
class Outcome:
    """What came out of one case: a word per place, and what differs."""

    case: str
    family: str
    job: str
    program: str
    version: str
    layout: str
    managed: str = ""
    plain: str = ""
    bare: str = ""
    remark: str = ""
    details: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Nothing is different."""
        return "different" not in (self.managed, self.plain)


@dataclass(frozen=True)
class Observation:
    """What a script did in one place."""

    result: Result
    files: dict[str, list[object]]


def common_environment() -> dict[str, str]:
    """The caller's environment without what would change what programs print."""
    kept = {
        key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "JAVA_HOME", "GOROOT")
    }
    kept["PATH"] = os.pathsep.join([str(BIN), kept.get("PATH", os.defpath), *MORE_PATH])
    return kept | {
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHON": str(PYTHON),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GOCACHE": str(ROOT / "target" / "matrix" / "go-cache"),
        "GOFLAGS": "-mod=mod",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "1600000000 +0000",
        "GIT_COMMITTER_DATE": "1600000000 +0000",
    }


def missing(case: Case) -> list[str]:
    """What the case needs and the machine does not have."""
    path = common_environment()["PATH"]
    lacking = []
    for need in case.needs:
        if need.startswith("python:"):
            asked = execute([PYTHON, "-c", f"import {need[7:]}"], code=None)
            if asked.code != 0:
                lacking.append(need[7:])
        elif need.startswith("pkg-config:"):
            if execute(["pkg-config", "--exists", need[11:]], code=None).code != 0:
                lacking.append(need[11:])
        elif not shutil.which(need, path=path):
            lacking.append(need)
    return lacking


def version_of(case: Case) -> str:
    """The first line with a figure of what the program says about itself."""
    first = case.needs[0]
    if first.startswith("python:"):
        command = case.version or f'"$PYTHON" -c "import {first[7:]} as m; print(m.__version__)"'
    elif first.startswith("pkg-config:"):
        command = f"pkg-config --modversion {first[11:]}"
    else:
        command = case.version or f"{first} --version"
    said = execute(["sh", "-c", f"({command}) 2>&1"], common_environment(), None, timeout_s=VERSION_S).out
    found = re.search(r"\d+(\.\d+)+[\w.+-]*", said)
    return found.group() if found else "?"


def manage_hidden_directories(store: Store) -> None:
    """Drop the rule by which a new store leaves directories with a leading dot alone: git is judged."""
    config = store.root / "store.toml"
    blocks = config.read_text().split("[[rule]]")
    config.write_text("[[rule]]".join(block for block in blocks if "/**/.*" not in block))
    stripewise("store", "ls", store.root)


class Bench:
    """A store with room for all cases, and their inputs."""

    def __init__(self, store: Store, inputs: Path, layout: str, unprivileged: bool = False):
        self.store, self.inputs, self.layout = store, inputs, layout
        self.user: list[str] = []
        manage_hidden_directories(store)
        if unprivileged and os.geteuid() == 0:
            execute(["chown", "-R", f"{NOBODY}:{NOBODY}", store.base])
            self.user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def environment(self, place: str, where: Path, case: Case) -> dict[str, str]:
        """The variables of a script; those of the library come from `stripewise run`."""
        env = common_environment()
        if place != "bare":
            env |= {
                key: value
                for key, value in self.store.environment().items()
                if key == "LD_PRELOAD" or key.startswith("STRIPEWISE")
            }
        own = self.own(place, case)
        return env | {
            "D": str(where),
            "S": str(self.inputs),
            "W": str(self.work(case)),
            "T": str(own),
            "TMPDIR": str(own),
            "HOME": str(own),
        }

    def where(self, place: str, case: Case) -> Path:
        """`$D`."""
        return {
            "managed": self.store.data / "m" / case.name,
            "plain": self.store.plain / "p" / case.name,
            "bare": self.store.plain / "b" / case.name,
        }[place]

    def own(self, place: str, case: Case) -> Path:
        """`$T`."""
        return self.store.base / "own" / place / case.name

    def work(self, case: Case) -> Path:
        """`$W`."""
        return self.store.base / "work" / case.name

    def prepare(self, case: Case) -> None:
        """Make the directories and build what the case runs."""
        work = self.work(case)
        for directory in (work, *(make(place, case) for make in (self.where, self.own) for place in PLACES)):
            directory.mkdir(parents=True)
        for source in case.sources:
            shutil.copy(HERE / "sources" / source, work)
        if case.build:
            env = self.environment("bare", work, case) | {"TMPDIR": str(work)}
            execute(["sh", "-eu", "-c", case.build], env, cwd=work, timeout_s=case.timeout_s)
        script = (HERE / "sources" / "python" / case.python).read_text() if case.python else case.script
        (work / "script").write_text(script)
        if self.user:
            execute(["chown", "-R", f"{NOBODY}:{NOBODY}", self.store.base])

    def observe(self, case: Case, place: str) -> Observation:
        """Run the script in one place and look at what it left."""
        where, script = self.where(place, case), self.work(case) / "script"
        env = self.environment(place, where, case)
        command = [PYTHON, "-B", script] if case.python else ["sh", "-eu", script]
        try:
            result = execute([*self.user, *command], env, None, cwd=where, timeout_s=case.timeout_s)
        except AssertionError as hang:
            result = Result(HANGS, "", str(hang))
        for value, name in ((str(where), "$D"), (env["T"], "$T")):
            result = Result(result.code, result.out.replace(value, name), result.err.replace(value, name))
        listing = execute([PYTHON, "-I", "-S", HERE / "digest.py", where], env, None)
        if listing.code != 0:
            return Observation(result, {"(listing)": [listing.report]})
        return Observation(result, json.loads(listing.out))


def visible(case: Case, files: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """What of the files is compared."""
    shown = {}
    for name, entry in files.items():
        volatile = any(fnmatch.fnmatch(name, pattern) for pattern in case.volatile)
        shown[name] = entry[:2] if volatile else list(entry)
    return shown


def differences(case: Case, seen: Observation, oracle: Observation) -> list[str]:
    """In what a place differs from the oracle; empty = the same."""
    found = []
    if seen.result.code != oracle.result.code:
        found.append(f"exit {seen.result.code} instead of {oracle.result.code}")
    if seen.result.out != oracle.result.out:
        found.append(f"stdout:\n{seen.result.out[-1500:]}\ninstead of:\n{oracle.result.out[-1500:]}")
    ours, theirs = visible(case, seen.files), visible(case, oracle.files)
    changed = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
    found += [f"file {name}: {ours.get(name)} instead of {theirs.get(name)}" for name in changed]
    if found:
        found.append(f"stderr:\n{seen.result.err[-1500:]}\nthe oracle's:\n{oracle.result.err[-500:]}")
    return found


def judge_managed(case: Case, seen: Observation, oracle: Observation, where: Path) -> tuple[str, list[str]]:
    """The word for the managed place, and what is wrong."""
    if case.refused is None:
        wrong = differences(case, seen, oracle)
        files = [name for name, entry in seen.files.items() if entry[0] == "file"]
        wrong += [f"file {name} is not managed" for name in files if not is_managed(where / name)]
        return ("different", wrong) if wrong else ("same", [])
    said = seen.result.out + seen.result.err
    if seen.result.code == 0:
        return "different", [f"exit 0, not refused\n{said[-1500:]}"]
    if not re.search(case.refused.says, said):
        return "different", [f"refused with other words than {case.refused.says!r}\n{seen.result.report}"]
    return "refused", []


def run_case(bench: Bench, case: Case, family: str) -> Outcome:
    """One case in all three places."""
    outcome = Outcome(case.name, family, case.job, case.program, "", bench.layout, remark=case.remark)
    if lacking := missing(case):
        outcome.managed = outcome.plain = outcome.bare = "not here"
        outcome.remark = f"needs {', '.join(lacking)}"
        return outcome
    outcome.version = version_of(case)
    bench.prepare(case)
    with ThreadPoolExecutor(len(PLACES)) as pool:
        managed, plain, oracle = pool.map(lambda place: bench.observe(case, place), PLACES)
    outcome.bare = f"exit {oracle.result.code}"
    outcome.managed, wrong = judge_managed(case, managed, oracle, bench.where("managed", case))
    outcome.details += [f"managed: {line}" for line in wrong]
    if case.refused is not None and case.refused.everywhere:
        outcome.plain, wrong = judge_managed(case, plain, oracle, bench.where("plain", case))
    else:
        wrong = differences(case, plain, oracle)
        outcome.plain = "different" if wrong else "same"
    outcome.details += [f"plain: {line}" for line in wrong]
    if case.refused is not None:
        outcome.remark = case.refused.reason
    if oracle.result.code != 0:
        outcome.details.append(f"without the library: {oracle.result.report}")
        outcome.plain = "different"
    return outcome
