"""Ways in which the MPI-IO of a program may be carried out, for `tune` to measure and for runs to follow.

Which ways there are depends on its calls: how collective ones are joined, by how many aggregators and through which
buffers; whether independent ones are sieved. Hints reach ROMIO (MPICH and its kin) by the file that ROMIO_HINTS names;
what a user has in such a file of his own counts more, and so do hints that the program gives itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..engine.board import VARIABLE, Board
from ..engine.calls import calls_of
from ..errors import NoRequestsError, StoreError, UsageError
from ..pattern.records import read_records
from ..plan.mpi_way import MpiWay

#: What `tune` may look for: layouts of files, and ways of MPI-IO.
LEVERS = ("layout", "mpi")
#: The file of hints that a user gives.
ROMIO_HINTS = "ROMIO_HINTS"
#: Of collective calls, beside the program's own way: decided on while it runs; each process by itself (not sieved: what
#: others write into gaps meanwhile would be written back as it was); joined by the aggregators that there are (one a
#: node, unless hints say otherwise); by all processes; and through larger buffers.
COLLECTIVE = (
    MpiWay("engine", engine=True),
    MpiWay("apart", hints={"romio_cb_write": "disable", "romio_cb_read": "disable", "romio_ds_write": "disable"}),
    MpiWay("joined", hints={"romio_cb_write": "enable", "romio_cb_read": "enable"}),
    MpiWay("joined-by-all", hints={"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_config_list": "*:*"}),
    MpiWay("joined-64MiB", hints={"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_buffer_size": "67108864"}),
)
#: Of independent calls: without reading what lies between, and writing it back.
INDEPENDENT = (MpiWay("unsieved", hints={"romio_ds_write": "disable", "romio_ds_read": "disable"}),)

Spans = npt.NDArray[np.int64]
NO_SPANS: Spans = np.zeros((0, 2), dtype=np.int64)


def levers_named(text: str) -> frozenset[str]:
    """Some of `LEVERS`, separated by commas. Raises UsageError."""
    found = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(found - set(LEVERS))
    if unknown or not found:
        what = f"'{unknown[0]}' is none" if unknown else "none given"
        raise UsageError(f"--levers: {what}; give {' or '.join(LEVERS)}, or both separated by a comma")
    return found


def ways_for(collected: Path, paths: Collection[str]) -> tuple[MpiWay, ...]:
    """The ways that may matter to a collected run's calls on these files; none where it made none by MPI-IO."""
    try:
        records = read_records(collected, layer="mpi", only=list(paths))
    except NoRequestsError:
        return ()
    kinds = {calls.is_collective for file in records.files for calls in calls_of(file)}
    return (*(COLLECTIVE if True in kinds else ()), *(INDEPENDENT if False in kinds else ()))


def spans_of_calls(collected: Path, paths: Collection[str]) -> dict[bool, Spans]:
    """When calls of MPI-IO on these files were under way, rows of start and end in ns: of writes (True) and reads."""
    try:
        records = read_records(collected, layer="mpi", only=list(paths))
    except NoRequestsError:
        return {}
    found: dict[bool, list[Spans]] = {True: [NO_SPANS], False: [NO_SPANS]}
    for file in records.files:
        for calls in calls_of(file):
            found[calls.write].append(np.stack([calls.start_ns, calls.end_ns], axis=1))
    return {write: np.concatenate(spans) for write, spans in found.items()}


@contextlib.contextmanager
def carried_out(way: MpiWay | None, env: MutableMapping[str, str], place: Path) -> Iterator[None]:
    """While a program runs with `env`, its MPI-IO is in this way; hints are written to `place`. Raises StoreError."""
    if way is None:
        yield
        return
    try:
        if not way.engine:
            place.write_text(_with_users(way, env.get(ROMIO_HINTS)), encoding="ascii", errors="surrogateescape")
            env[ROMIO_HINTS] = str(place)
            yield
            return
        with Board(policy="price") as board:
            env[VARIABLE] = str(board.path)
            yield
    except OSError as error:
        raise StoreError(f"MPI-IO by '{way.told}': {error}; leave mpi out of --levers") from error


def _with_users(way: MpiWay, users: str | None) -> str:
    """The way's hints behind those of the user's own file, which count more."""
    lines: Sequence[str] = ()
    if users:
        with contextlib.suppress(OSError):
            lines = Path(users).read_text(encoding="ascii", errors="surrogateescape").splitlines()
    keys = {line.split(" ", 1)[0] for line in lines}
    ours = "".join(f"{key} {value}\n" for key, value in way.hints.items() if key not in keys)
    return "".join(f"{line}\n" for line in lines) + ours
