"""Ways in which the MPI-IO of a program may be carried out, for `tune` to measure and for runs to follow.

Which ways there are depends on its calls: how collective ones are joined, by how many aggregators and through which
buffers; whether independent ones are sieved. Hints reach ROMIO (MPICH and its kin) by the file that ROMIO_HINTS names;
what a user has in such a file of his own counts more, and so do hints that the program gives itself.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..engine.board import VARIABLE, Board
from ..engine.calls import calls_of
from ..errors import NoRequestsError, StoreError, UsageError
from ..findings.mpi_hints import hints_in
from ..pattern.records import read_records
from ..plan.mpi_way import MpiWay
from ..workload.trace import read_meta

#: What `tune` may look for: layouts of files, and ways of MPI-IO.
LEVERS = ("layout", "mpi")
#: The file of hints that a user gives, and the one that a site gives to those who give none (both ROMIO's).
ROMIO_HINTS, SITES_HINTS = "ROMIO_HINTS", Path("/etc/romio-hints")
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


@dataclass(frozen=True)
class Called:
    """The calls of MPI-IO on the files of a run: which files had any, and of writes (True) and of reads when calls were
    under way (rows of start and end, ns), and the bytes that they moved.
    """

    paths: frozenset[str] = frozenset()
    spans: Mapping[bool, Spans] = field(default_factory=dict)
    bytes: Mapping[bool, int] = field(default_factory=dict)
    #: Whether any were collective, and any not.
    kinds: frozenset[bool] = frozenset()

    @property
    def ways(self) -> tuple[MpiWay, ...]:
        """The ways that may matter to them."""
        return (*(COLLECTIVE if True in self.kinds else ()), *(INDEPENDENT if False in self.kinds else ()))


def levers_named(text: str) -> frozenset[str]:
    """Some of `LEVERS`, separated by commas. Raises UsageError."""
    found = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(found - set(LEVERS))
    if unknown or not found:
        what = f"'{unknown[0]}' is none" if unknown else "none given"
        raise UsageError(f"--levers: {what}; give {' or '.join(LEVERS)}, or both separated by a comma")
    return found


def called_in(collected: Path, paths: Collection[str]) -> Called:
    """The calls of a collected run on these files that hints change."""
    try:
        records = read_records(collected, layer="mpi", only=list(paths))
    except NoRequestsError:
        return Called()
    found = [calls for file in records.files for calls in calls_of(file)]
    spans = {
        write: np.concatenate(
            [NO_SPANS, *(np.stack([each.start_ns, each.end_ns], axis=1) for each in found if each.write == write)]
        )
        for write in (True, False)
    }
    moved = {write: sum(each.bytes for each in found if each.write == write) for write in (True, False)}
    return Called(frozenset(each.path for each in found), spans, moved, frozenset(each.is_collective for each in found))


def given_hints(env: Mapping[str, str]) -> str:
    """What a file of hints gives without ours: the user's, else the site's."""
    place = Path(env[ROMIO_HINTS]) if env.get(ROMIO_HINTS) else SITES_HINTS
    try:
        return place.read_text(encoding="ascii", errors="surrogateescape")
    except OSError:
        return ""


def beside_given(way: MpiWay, env: Mapping[str, str]) -> MpiWay | None:
    """What is left of a way beside hints that are given already, which count more; None: nothing."""
    if way.engine:
        return way
    keys = {line.split(" ", 1)[0] for line in given_hints(env).splitlines()}
    hints = {key: value for key, value in way.hints.items() if key not in keys}
    return replace(way, hints=hints) if hints else None


def is_in_force(way: MpiWay, collected: Path, paths: Collection[str]) -> bool:
    """Whether a run in this way had any of its hints, by the MPI library's own word: the program's count more, and MPIs
    that are not ROMIO's kin know none of them. Of the engine `run --engine --explain` tells.
    """
    if way.engine:
        return True
    told = hints_in(read_meta(collected))
    files = [told[path].in_force for path in paths if path in told]
    return not files or any(value in file.get(key, ()) for file in files for key, value in way.hints.items())


@contextlib.contextmanager
def carried_out(
    way: MpiWay | None, env: MutableMapping[str, str], otherwise: Callable[[str], None] | None = None
) -> Iterator[None]:
    """While a program runs with `env`, its MPI-IO is in this way. Where it cannot be, that goes to `otherwise`, and the
    program runs as without; raises StoreError where there is none.
    """
    with contextlib.ExitStack() as held:
        try:
            if way is not None and way.engine:
                env[VARIABLE] = str(held.enter_context(Board(policy="price")).path)
            elif way is not None:
                file = held.enter_context(
                    tempfile.NamedTemporaryFile("w", prefix="stripewise-hints-", errors="surrogateescape")
                )
                given = given_hints(env)
                file.write(f"{given}{'' if given.endswith(chr(10)) or not given else chr(10)}{way.hints_text}")
                file.flush()
                env[ROMIO_HINTS] = file.name
        except OSError as error:
            told = f"MPI-IO by '{way.told if way else ''}' cannot be: {error}"
            if otherwise is None:
                raise StoreError(f"{told}; leave mpi out of --levers") from error
            otherwise(told)
        yield
