"""Hints of MPI-IO: what a program gave for a file, and what was in force by its MPI's own word (MPI_File_get_info).

Advice depends on whose MPI-IO that was. ROMIO (of MPICH and its kin, and Open MPI's --mca io romio341) tells all hints
that it knows. OMPIO, Open MPI's own, tells none but what it was given, and of ROMIO's hints obeys cb_buffer_size and
cb_nodes; the rest of its behaviour is set by parameters of mpiexec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Of hints in force those that a page tells: what decides how requests are joined, sieved and striped.
TOLD = (
    "cb_nodes", "cb_buffer_size", "romio_cb_read", "romio_cb_write", "romio_ds_read", "romio_ds_write",
    "romio_no_indep_rw", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_factor", "striping_unit",
)  # fmt: skip
#: By hint of ROMIO the parameter of mpiexec that has OMPIO do what the advised value has ROMIO do.
_OMPIO = {
    "romio_cb_read": "--mca fcoll vulcan",
    "romio_cb_write": "--mca fcoll vulcan",
    "romio_ds_read": "--mca fbtl_posix_read_datasieving 0",
    "romio_ds_write": "--mca fbtl_posix_write_datasieving 0",
}
#: Values by which ROMIO says that a hint is not set.
_UNSET = {"0", "false"}
#: Hints that the program gave, and characters of a value, that are told.
_GIVEN_TOLD, _VALUE_TOLD = 12, 40


@dataclass(frozen=True)
class FileHints:
    """Hints of one file by key; the values that a key had in turn, each once."""

    #: By the program, when it opened the file, set a view or set hints.
    given: dict[str, tuple[str, ...]]
    #: By the program, the user's or the site's file of hints (ROMIO_HINTS), or the MPI's default.
    in_force: dict[str, tuple[str, ...]]

    @property
    def sentence(self) -> str:
        """What was given, and what was in force of that which matters."""
        given = [f"{key} = {_in_turn(values)}" for key, values in list(self.given.items())[:_GIVEN_TOLD]]
        if (more := len(self.given) - len(given)) > 0:
            given.append(f"and {more:,} more")
        told = [(key, self.in_force[key]) for key in TOLD if not _UNSET.issuperset(self.in_force.get(key, ()))]
        in_force = ", ".join(f"{key} = {_in_turn(values)}" for key, values in told)
        gave = f"The program gives the hints {', '.join(given)}" if given else "The program gives no hints"
        return f"{gave}; in force: {in_force}." if in_force else f"{gave}; the MPI library tells of none in force."

    @property
    def is_ompio(self) -> bool:
        """Whether the file was OMPIO's: nothing was in force but what the program gave."""
        return not any(key in TOLD and key not in self.given for key in self.in_force)

    def remark(self, key: str) -> str:
        """What was there in place of an advised value, in brackets after a blank; nothing where that is not known."""
        if key in self.given:
            return f" (the program gave {_in_turn(self.given[key])})"
        if key in self.in_force:
            return f" ({_in_turn(self.in_force[key])} was in force, not by the program)"
        return ""


def already(hints: FileHints | None, key: str, value: str) -> str | None:
    """The words for a hint that needs no advice: it was in force all the time, or given; None where it was neither, or
    OMPIO does not know it.
    """
    if hints is not None and hints.is_ompio and key in _OMPIO:
        return None
    if hints is not None and hints.in_force.get(key) == (value,):
        return f"the hint {key} is {value} already"
    if hints is not None and hints.given.get(key) == (value,):
        return f"the program gives the hint {key} = {value} already, which the MPI library does not tell in force"
    return None


def set_hint(hints: FileHints | None, key: str, value: str) -> str:
    """The advice to set a hint, beside what the program gave; of OMPIO the parameter in its place."""
    if hints is None:
        return f"set the hint {key} to {value}{' (of ROMIO; Open MPI: --mca io romio341)' * (key in _OMPIO)}"
    if hints.is_ompio and key in _OMPIO:
        vain = f" (Open MPI's own MPI-IO does not know the hint {key}, which the program gives)" * (key in hints.given)
        return f"give Open MPI's mpiexec {_OMPIO[key]}{vain}"
    return f"set the hint {key} to {value}{hints.remark(key)}"


def hints_in(meta: Mapping[str, Any]) -> dict[str, FileHints]:
    """By path, of a trace's meta.json; files of which nobody noted hints are not there."""
    found: dict[str, FileHints] = {}
    sets = meta.get("hints", [])
    for each in sets if isinstance(sets, list) else []:
        if not isinstance(each, dict) or not isinstance(path := each.get("path"), str):
            continue
        of_file = found.setdefault(path, FileHints({}, {}))
        for kept, told in ((of_file.given, each.get("given")), (of_file.in_force, each.get("in_force"))):
            for key, value in told.items() if isinstance(told, dict) else ():
                said, before = _clean(str(value)), kept.get(_clean(key), ())
                kept[_clean(key)] = before if said in before else (*before, said)
    return found


def _clean(text: str) -> str:
    """As a terminal may have it: values come from programs."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _in_turn(values: tuple[str, ...]) -> str:
    short = [value if len(value) <= _VALUE_TOLD else f"{value[: _VALUE_TOLD - 3]}..." for value in values]
    return " then ".join(short)
