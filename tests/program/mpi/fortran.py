"""A script of MPI-IO calls as a Fortran program, by the module `mpi` or by `mpi_f08`.

Fortran reaches MPI by other symbols than C.
"""

from __future__ import annotations

from script import Script

NAMES = {"byte": "MPI_BYTE", "int": "MPI_INTEGER", "double": "MPI_DOUBLE_PRECISION"}
ORDERS = {"C": "MPI_ORDER_C", "F": "MPI_ORDER_FORTRAN"}
WHENCE = {"set": "MPI_SEEK_SET", "cur": "MPI_SEEK_CUR", "end": "MPI_SEEK_END"}
HOW = {"b": "MPI_DISTRIBUTE_BLOCK", "c": "MPI_DISTRIBUTE_CYCLIC", "n": "MPI_DISTRIBUTE_NONE"}


def _list(words: list[str], kind: str = "") -> str:
    return "(/ " + ", ".join(f"{word}{kind}" for word in words) + " /)"


def _define(name: str, kind: str, words: list[str]) -> str:
    of = NAMES.get(words[-1], words[-1])
    a = "_MPI_ADDRESS_KIND"
    if kind == "contiguous":
        call = f"MPI_Type_contiguous({words[0]}, {of}"
    elif kind == "vector":
        call = f"MPI_Type_vector({', '.join(words[:3])}, {of}"
    elif kind == "hvector":
        call = f"MPI_Type_create_hvector({words[0]}, {words[1]}, {words[2]}{a}, {of}"
    elif kind in ("indexed", "hindexed"):
        n = int(words[0])
        at = words[1 + n : 1 + 2 * n]
        made = (
            f"indexed({n}, {_list(words[1 : 1 + n])}, {_list(at)}"
            if kind == "indexed"
            else f"create_hindexed({n}, {_list(words[1 : 1 + n])}, {_list(at, a)}"
        )
        call = f"MPI_Type_{made}, {of}"
    elif kind in ("indexed_block", "hindexed_block"):
        at = _list(words[2:-1], a if kind[0] == "h" else "")
        call = f"MPI_Type_create_{kind}({words[0]}, {words[1]}, {at}, {of}"
    elif kind == "struct":
        n = int(words[0])
        inner = [NAMES.get(word, word) for word in words[1 + 2 * n :]]
        lists = [_list(words[1 : 1 + n]), _list(words[1 + n : 1 + 2 * n], a), _list(inner)]
        call = f"MPI_Type_create_struct({n}, {', '.join(lists)}"
    elif kind == "subarray":
        n = int(words[0])
        lists = [_list(words[1 + k * n : 1 + (k + 1) * n]) for k in range(3)]
        call = f"MPI_Type_create_subarray({n}, {', '.join(lists)}, {ORDERS[words[-2]]}, {of}"
    elif kind == "darray":
        size, rank, n = words[0], words[1], int(words[2])
        lists = [words[3 + k * n : 3 + (k + 1) * n] for k in range(4)]
        lists[1] = [HOW[word] for word in lists[1]]
        lists[2] = ["MPI_DISTRIBUTE_DFLT_DARG" if word == "-1" else word for word in lists[2]]
        call = f"MPI_Type_create_darray({size}, {rank}, {n}, {', '.join(map(_list, lists))}, {ORDERS[words[-2]]}, {of}"
    elif kind == "resized":
        call = f"MPI_Type_create_resized({of}, {words[0]}{a}, {words[1]}{a}"
    else:
        call = f"MPI_Type_dup({of}"
    return f"call {call}, {name}, ierr)\n  call MPI_Type_commit({name}, ierr)"


def _statement(line: str) -> str:
    op, *words = line.split()
    o = "_MPI_OFFSET_KIND"
    if op == "type":
        return _define(words[0], words[1], words[2:])
    if op == "open":
        mode = "MPI_MODE_RDONLY" if words[0] == "r" else "MPI_MODE_RDWR + MPI_MODE_CREATE"
        return f"call MPI_File_open(MPI_COMM_WORLD, trim(data), {mode}, MPI_INFO_NULL, fh, ierr)"
    if op == "view":
        types = [NAMES.get(word, word) for word in words[1:]]
        return f"call MPI_File_set_view(fh, {words[0]}{o}, {types[0]}, {types[1]}, 'native', MPI_INFO_NULL, ierr)"
    if op in ("seek", "seek_shared"):
        return f"call MPI_File_{op}(fh, {words[0]}{o}, {WHENCE[words[1]]}, ierr)"
    if op in ("set_size", "preallocate"):
        return f"call MPI_File_{op}(fh, {words[0]}{o}, ierr)"
    if op == "get_size":
        return "call MPI_File_get_size(fh, length, ierr)"
    if op == "sync":
        return "call MPI_File_sync(fh, ierr)"
    if op == "close":
        return "call MPI_File_close(fh, ierr)"
    if op == "barrier":
        return "call MPI_Barrier(MPI_COMM_WORLD, ierr)"
    if op == "complete":
        n = int(words[1])
        if words[0].startswith("wait"):
            return f"call MPI_Waitall({n}, requests(1:{n}), MPI_STATUSES_IGNORE, ierr)"
        tests = [
            f"flag = .false.\n  do while (.not. flag)\n  call MPI_Test(requests({k + 1}), flag, status, ierr)\n  end do"
            for k in range(n)
        ]
        return "\n  ".join(tests)
    if op.endswith("_end"):
        return f"call MPI_File_{op}(fh, buffer(:, 64), status, ierr)"
    at = f"{words.pop(0)}{o}, " if "_at" in op else ""
    memory = NAMES.get(words[1], words[1])
    slot = int(words[2]) if len(words) > 2 else -1
    column = 64 if op.endswith("_begin") else slot + 1 if slot >= 0 else 63
    end = "" if op.endswith("_begin") else f", requests({slot + 1})" if slot >= 0 else ", status"
    return f"call MPI_File_{op}(fh, {at}buffer(:, {column}), {words[0]}, {memory}{end}, ierr)"


def program(script: Script, module: str) -> str:
    """The source of the program that carries the script out; the data's name is its first argument."""
    new = module == "mpi_f08"
    names = sorted({line.split()[1] for lines in script.lines for line in lines if line.startswith("type ")})
    kind = {True: "type(MPI_{})", False: "integer"}[new]
    parts = [
        f"program calls\n  use {module}\n  implicit none",
        f"  {kind.format('File')} :: fh",
        *([f"  {kind.format('Datatype')} :: {', '.join(names)}"] if names else []),
        f"  {kind.format('Request')} :: requests(62)",
        "  type(MPI_Status) :: status" if new else "  integer :: status(MPI_STATUS_SIZE)",
        "  integer :: ierr, rank",
        "  logical :: flag",
        "  integer(kind=MPI_OFFSET_KIND) :: length",
        # Nonblocking and split calls go on with it: no copies of its columns.
        "  integer, asynchronous, target, save :: buffer(4096, 64)",
        "  character(len=4096) :: data",
        "  call MPI_Init(ierr)\n  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)\n  call get_command_argument(1, data)",
        "  buffer = rank",
        "  select case (rank)",
        *(f"  case ({rank})\n    call of_{rank}" for rank in range(script.processes)),
        "  end select\n  call MPI_Finalize(ierr)\n  print '(a,i0)', 'rank ', rank\ncontains",
    ]
    for rank, lines in enumerate(script.lines):
        parts += [f"subroutine of_{rank}", *(f"  {_statement(line)}" for line in lines), "end subroutine"]
    return "\n".join([*parts, "end program", ""])
