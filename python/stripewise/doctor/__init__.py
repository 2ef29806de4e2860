"""What would keep a program's files from working, each finding with its cure.

Every check is a small function from what is examined to findings; `CHECKS` lists them in the order that a reader wants:
the program, the machine, the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import machine, program, store
from .finding import Examined, Finding, Level

__all__ = ["CHECKS", "Examined", "Finding", "Level", "examine"]

Check = Callable[[Examined], Iterable[Finding]]

#: Name of a finding, and what makes it.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("library", program.library_is_built),
    ("C library", program.c_library_is_new_enough),
    ("program", program.programs_take_the_library),
    ("preload", program.preload_is_free),
    ("environment", program.environment_is_plain),
    ("seccomp", machine.system_calls_are_allowed),
    ("MPI", machine.mpi_is_found),
    ("UCX", machine.ucx_leaves_mmap_alone),
    ("limits", machine.limits_suffice),
    ("shared memory", machine.shared_memory_has_room),
    ("maps", machine.maps_suffice),
    ("store", store.store_is_readable),
    ("trust", store.links_are_followed),
    ("machine", store.no_other_machine_has_it),
    ("tune", store.no_tune_was_killed),
    ("targets", store.targets_are_usable),
    ("devices", store.targets_have_devices_of_their_own),
    ("file system", store.file_systems_can_lock),
)


def examine(examined: Examined) -> list[tuple[str, Finding]]:
    """All findings, named. A check that itself fails is a finding, too."""
    found: list[tuple[str, Finding]] = []
    for name, check in CHECKS:
        try:
            found += [(name, finding) for finding in check(examined)]
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            said = f"could not be checked: {place}{error.strerror or error}"
            found.append((name, Finding(Level.NOTE, said, "run doctor as the program's user")))
    return found
