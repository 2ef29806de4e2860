"""The network's figures, measured by messages between two MPI processes that the user's own launcher starts."""

from __future__ import annotations

import collections
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from ..cluster import PER_BYTE_S_MAX, STARTUP_S_MAX, Network
from ..cluster.calibration import Fit
from ..errors import StripewiseError, UsageError
from .fit import fit_line
from .ping import MARK

#: A launcher that is still at it then hangs: two machines that do not reach one another.
TIMEOUT_S = 120.0
#: Time that a launcher has to stop its processes.
_STOP_S = 5.0


class PingError(StripewiseError, RuntimeError):
    """The ping did not run, or said nothing of use."""


@dataclass(frozen=True)
class Ping:
    """The line through one-way times, and where its ends were."""

    fit: Fit
    hosts: tuple[str, ...]

    @property
    def is_local(self) -> bool:
        """Whether all processes were on one machine: memory, not a network."""
        return len(set(self.hosts)) == 1

    @property
    def network(self) -> Network:
        """e, t and c of the models: c is the most processes that the launcher put on one machine."""
        fit = self.fit.rounded()
        return Network(fit.startup_s, fit.per_byte_s, max(collections.Counter(self.hosts).values()))


def ping(launcher: str, timeout_s: float = TIMEOUT_S) -> Ping:
    """Runs the ping under `launcher`, a command such as "mpiexec -n 2 --hosts a,b". PingError with reason and cure."""
    try:
        words = shlex.split(launcher)
    except ValueError as error:
        raise UsageError(f"--ping: {launcher!r} cannot be split into words ({error}); close its quotes") from error
    if not words:
        raise UsageError('--ping: is empty; give the launcher, e.g. --ping "mpiexec -n 2 --hosts a,b"')
    code, out, err = _run([*words, sys.executable, "-m", "stripewise.calibration.ping"], words[0], timeout_s)
    line = next((line for line in out.splitlines() if line.startswith(MARK)), None)
    if line is None:
        said = next((text.strip() for text in reversed((err + "\n" + out).splitlines()) if text.strip()), "nothing")
        own = next((text for text in err.splitlines() if text.startswith("stripewise-ping: ")), said)
        raise PingError(
            f"--ping: '{launcher}' failed (exit {code}): {own.removeprefix('stripewise-ping: ')}; run it by hand"
        )
    return _measured(launcher, line.removeprefix(MARK))


def _run(command: list[str], launcher: str, timeout_s: float) -> tuple[int, str, str]:
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise PingError(
            f"--ping: {launcher} cannot be run ({error.strerror}); install an MPI or give the launcher's path"
        ) from error
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise PingError(
            f"--ping: {launcher} did not end within {timeout_s:g} s; see whether the machines reach one another"
        ) from error
    finally:
        if child.poll() is None:
            # The launcher ends its processes on SIGTERM; killed, it could not.
            child.terminate()
            try:
                child.communicate(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
    return child.returncode, out, err


def _measured(launcher: str, text: str) -> Ping:
    try:
        found: Any = json.loads(text)
        hosts = tuple(str(host) for host in found["hosts"])
        fit = fit_line([float(size) for size, _ in found["samples"]], [float(value) for _, value in found["samples"]])
    except (ValueError, KeyError, TypeError) as error:
        raise PingError(f"--ping: '{launcher}' mixed other text into the result ({error}); run it by hand") from error
    if fit.startup_s > STARTUP_S_MAX or fit.per_byte_s > PER_BYTE_S_MAX:
        raise PingError(f"--ping: '{launcher}' gave figures beyond anything ({fit.startup_s:g} s); look at the network")
    return Ping(fit, hosts)
