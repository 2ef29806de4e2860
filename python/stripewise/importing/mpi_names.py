"""What MPI-IO calls are in a trace, by their names: `MPI_File_iread_at_all` is a read, collective and nonblocking."""

from __future__ import annotations

from .records import COLLECTIVE, IMPLICIT_OFFSET, NONBLOCKING, OP

_OTHERS = {
    "open": "mpi_open", "close": "mpi_close", "delete": "mpi_delete", "set_view": "view", "set_size": "mpi_set_size",
    "get_size": "mpi_get_size", "preallocate": "mpi_preallocate", "sync": "mpi_sync", "seek": "mpi_seek",
    "seek_shared": "mpi_seek", "set_atomicity": "mpi_atomicity",
}  # fmt: skip
_COLLECTIVES = {"open", "close", "set_view", "set_size", "preallocate", "sync", "seek_shared", "set_atomicity"}


def mpi_operation(name: str) -> tuple[int, int] | None:
    """(place in OPS, flags) of the call `MPI_File_...`; None when it is not one of those that are recorded.

    The end of a split collective call (`..._end`) is none: its beginning is the request.
    """
    if not name.startswith("MPI_File_"):
        return None
    call = name.removeprefix("MPI_File_").removesuffix("_c")
    if call in _OTHERS:
        return OP[_OTHERS[call]], COLLECTIVE if call in _COLLECTIVES else 0
    words = call.split("_")
    verb = words[0].removeprefix("i") if words[0] in ("iread", "iwrite") else words[0]
    if verb not in ("read", "write") or words[-1] == "end":
        return None
    flags = 0
    if words[0] != verb or words[-1] == "begin":
        flags |= NONBLOCKING
    if "all" in words or "ordered" in words:
        flags |= COLLECTIVE
    if "at" not in words:
        flags |= IMPLICIT_OFFSET
    return OP[f"mpi_{verb}"], flags
