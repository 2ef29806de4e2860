"""What the whole-program tests share: stores made by the command line, and programs run under the preloaded library.

Everything goes through `.venv/bin/stripewise` as a user would call it. `Store.environment` asks it once what it gives
its programs, so that many short programs need not start it each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zygote import Zygote

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
STRIPEWISE = BIN / "stripewise"
MPIEXEC = BIN / "mpiexec"
NATIVE = ROOT / "target" / "native"
MPIIO = ROOT / "target" / "workloads" / "mpiio"
LIBRARY = ROOT / "python" / "stripewise" / "lib" / "libstripewise.so"
SOAK = bool(os.environ.get("STRIPEWISE_SOAK"))
TIMEOUT_S = 240
#: Of the file in the fixture `store`.
SOURCE_BYTES = 300_000

Command = Sequence[str | Path | bytes]


@dataclass(frozen=True)
class Target:
    """One target of a test's cluster; an emulated one is as fast as its figures say."""

    name: str
    klass: str = "hdd"
    kind: str = "dir"
    capacity_bytes: int = 0
    startup_s: float = 0.0
    per_byte_s: float = 1e-9

    def toml(self, root: Path) -> str:
        return (
            f'[[target]]\nname = "{self.name}"\nclass = "{self.klass}"\nkind = "{self.kind}"\n'
            f'path = "{root / self.name}"\ncapacity_bytes = {self.capacity_bytes}\n'
            f"startup_read_s = {self.startup_s}\nstartup_write_s = {self.startup_s}\n"
            f"per_byte_read_s = {self.per_byte_s}\nper_byte_write_s = {self.per_byte_s}\n"
        )


def dirs(count: int) -> list[Target]:
    """So many plain directories."""
    return [Target(f"t{number}") for number in range(count)]


def stripes(*pairs: tuple[str, int]) -> list[list[object]]:
    """A cycle in a layout's JSON form; widths in KiB."""
    return [[name, width * 1024] for name, width in pairs]


def region(start: int, length: int, cycle: list[list[object]]) -> dict[str, object]:
    """A region in a layout's JSON form; start and length in KiB."""
    return {"start": start * 1024, "len": length * 1024, "stripes": cycle}


UNEVEN = [
    region(0, 20, stripes(("t2", 4))),
    region(20, 100, stripes(("t0", 4), ("t1", 12), ("t2", 36))),
    region(120, 8, stripes(("t1", 8), ("t0", 4))),
    region(128, 256, stripes(("t1", 64), ("t2", 4))),
]

#: Layouts that cut requests in different ways: targets, and the regions (None: the store's default).
LAYOUTS: dict[str, tuple[list[Target], list[dict[str, object]] | None]] = {
    "one": (dirs(1), None),
    "striped": (dirs(4), None),
    "uneven": (dirs(3), UNEVEN),
    "emulated": (
        [
            Target("h0", "hdd", "emulated", 0, 0.0, 1e-10),
            Target("h1", "hdd", "emulated", 0, 1e-6, 1e-10),
            Target("s0", "ssd"),
        ],
        None,
    ),
}


@dataclass
class Result:
    """How a program ended."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


def execute(
    command: Command,
    env: Mapping[str, str] | None = None,
    code: int | None = 0,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Result:
    """Run a program to its end; with `code`, require that it ends so. One that hangs is killed with its children."""
    child = subprocess.Popen(
        [os.fspath(word) for word in command],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(None if stdin is None else stdin.encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        raise AssertionError(f"{command} hangs\n--- stdout\n{out[-2000:]!r}\n--- stderr\n{err[-2000:]!r}") from None
    result = Result(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
    if code is not None:
        assert result.code == code, f"{[os.fsdecode(word) for word in command]}: {result.report}"
    return result


def holds(result: Result) -> None:
    """A program of `tests/native` that says `ok` or `not ok` of each fact found no `not ok`."""
    wrong = [line for line in result.out.splitlines() if line.startswith("not ok")]
    assert result.code == 0 and not wrong, "\n".join([*wrong, result.report])


_zygote = Zygote()


def stripewise(
    *words: str | Path | bytes, code: int | None = 0, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> Result:
    """A verb of the command line: a process of its own, of which other people's packages were loaded before."""
    command = [os.fsdecode(word) for word in (STRIPEWISE, *words)]
    env = os.environ if env is None else env
    if not _zygote.serves(env):
        return execute(command, code=code, env=env, timeout_s=timeout_s)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "rb") as none:
        started = _zygote.begin(command, env, os.getcwd(), [none.fileno(), out.fileno(), err.fileno()])
        too_long = threading.Timer(timeout_s, os.killpg, (started.pid, signal.SIGKILL))
        too_long.start()
        ended = started.wait()
        assert too_long.is_alive(), f"{command} hangs"
        too_long.cancel()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    result = Result(ended, *texts)
    if code is not None:
        assert result.code == code, f"{command}: {result.report}"
    return result


@dataclass
class Store:
    """A store, the managed directory `data`, and an unmanaged directory `plain` beside it."""

    base: Path
    targets: list[Target]
    check_at_end: bool = True
    _environment: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.base / "store"

    @property
    def data(self) -> Path:
        return self.base / "data"

    @property
    def plain(self) -> Path:
        return self.base / "plain"

    @property
    def cluster(self) -> Path:
        return self.base / "cluster.toml"

    def environment(self) -> dict[str, str]:
        """What `stripewise run` gives its programs."""
        if not self._environment:
            said = self.run("env", "-0").out
            self._environment = dict(entry.split("=", 1) for entry in said.split("\0") if "=" in entry)
            assert LIBRARY.name in self._environment.get("LD_PRELOAD", ""), "stripewise run preloads nothing"
        return self._environment

    def run(self, *command: str | Path | bytes, code: int | None = 0) -> Result:
        """A program by way of `stripewise run`."""
        return stripewise("run", "--store", self.root, "--", *command, code=code)

    def program(
        self, *command: str | Path | bytes, code: int | None = 0, stdin: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> Result:
        """A program in the environment of `stripewise run`."""
        return execute(command, self.environment(), code, stdin=stdin, timeout_s=timeout_s)

    def fsck(self, *options: str, code: int | None = 0) -> Result:
        """`stripewise store fsck`."""
        return stripewise("store", "fsck", self.root, *options, code=code)

    def repair(self) -> None:
        """`stripewise store fsck --repair`, once nobody uses the store: whoever was killed may still be ending."""
        said = ""

        def was_let() -> bool:
            nonlocal said
            said = self.fsck("--repair", code=None).err
            return "using the store" not in said

        assert wait_until(was_let), said

    def files(self) -> list[dict[str, object]]:
        """`stripewise store ls`."""
        return list(json.loads(stripewise("store", "ls", self.root, "--json").out))

    def plan(self, path: Path, file: Path, regions: list[dict[str, object]], size: int) -> Path:
        """A plan written by hand for one file."""
        body = {"version": 1, "policy": "by hand", "files": [{"path": str(file), "size": size, "regions": regions}]}
        path.write_text(json.dumps(body))
        return path


#: The fixture `make_store`: `create_store` in a directory of the test's, and fsck at its end.
Maker = Callable[..., Store]


def create_store(
    base: Path,
    targets: list[Target],
    regions: list[dict[str, object]] | None = None,
    region_size: str = "1MiB",
    shared: bool = False,
) -> Store:
    """Make directories, cluster.toml and the store."""
    store = Store(base, targets)
    for directory in (store.data, store.plain, *(base / "targets" / target.name for target in targets)):
        directory.mkdir(parents=True, exist_ok=True)
    store.cluster.write_text("".join(target.toml(base / "targets") for target in targets))
    options: list[str | Path] = ["--manage", store.data, "--region-size", region_size]
    options += ["--shared"] if shared else []
    if regions is not None:
        layout = base / "layout.json"
        layout.write_text(json.dumps({"regions": regions}))
        options += ["--layout", layout]
    stripewise("store", "create", store.root, "--cluster", store.cluster, *options)
    return store


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mpiio_command(processes: int, file: Path, *options: str) -> list[str | Path]:
    """The MPI workload under mpiexec."""
    return [MPIEXEC, "-n", str(processes), MPIIO, "--file", file, *options]


def parse_mpiio(result: Result) -> dict[str, object]:
    """The JSON line of the workload; it must have found no error."""
    said = json.loads(result.out.strip().splitlines()[-1])
    assert said["errors"] == 0, result.report
    return dict(said)


def is_managed(path: Path) -> bool:
    """Whether the name is a link into a store."""
    return path.is_symlink() and os.readlink(path).startswith("/stripewise:")


def children(pid: int) -> list[int]:
    """All descendants of a process that we started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == pid:
            child = int(stat.parent.name)
            found += [child, *children(child)]
    return found


def is_running(pid: int) -> bool:
    """Whether there is such a process that may still have files open."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def launch(store: Store, command: Command, out: Path | int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A program on the store in a session of its own; what it prints goes to a new file, or to a descriptor."""
    with contextlib.ExitStack() as stack:
        return subprocess.Popen(
            [os.fspath(word) for word in command],
            env=store.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out if isinstance(out, int) else stack.enter_context(out.open("wb")),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


class Talk:
    """A program that is spoken with line by line."""

    def __init__(self, command: Command, env: Mapping[str, str]) -> None:
        self._child = subprocess.Popen(
            [os.fspath(word) for word in command],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next one that it prints, empty at the end."""
        assert self._child.stdout is not None
        return self._child.stdout.readline()

    def say(self, line: str = "") -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()

    def is_there(self) -> bool:
        return self._child.poll() is None

    def end(self, timeout_s: float = 60.0) -> Result:
        """Tells it a last line and waits for its end; what it printed since the last line that was read."""
        out, err = self._child.communicate("\n", timeout=timeout_s)
        return Result(self._child.returncode, out, err)

    def kill(self) -> None:
        self._child.kill()
        with self._child:  # Closes its pipes, which children of its may still hold, and waits.
            pass


@contextlib.contextmanager
def talking(command: Command, env: Mapping[str, str]) -> Iterator[Talk]:
    """A program that is spoken with, killed at the end where it is still there."""
    talk = Talk(command, env)
    try:
        yield talk
    finally:
        talk.kill()


def hit(pids: list[int], number: int) -> None:
    """A signal for those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_job(job: subprocess.Popen[bytes]) -> None:
    """Kill a whole job, whatever session mpiexec put its ranks in, and wait until the last rank is gone."""
    ranks = children(job.pid)
    hit([*ranks, job.pid], signal.SIGKILL)
    job.communicate()
    # They are not ours to wait for, and one that is killed inside a system call ends when the call does.
    assert wait_until(lambda: not any(is_running(pid) for pid in ranks)), f"killed, and still there: {ranks}"


def ranks_of(job: subprocess.Popen[bytes]) -> list[int]:
    """The ranks of an MPI job that runs the workload."""
    found = []
    for pid in children(job.pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == MPIIO.name:
                found.append(pid)
    return found


def wait_until(condition, timeout_s: float = 30.0) -> bool:
    """Poll until a condition holds; False when it does not in time."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False
