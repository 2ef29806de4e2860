"""What calls.c does, by mpi4py: carries out a script of MPI-IO calls.

Usage: calls.py DATA SCRIPT, with SCRIPT.<rank>.
"""

import sys
from pathlib import Path

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
ORDERS = {"C": MPI.ORDER_C, "F": MPI.ORDER_FORTRAN}
HOW = {"b": MPI.DISTRIBUTE_BLOCK, "c": MPI.DISTRIBUTE_CYCLIC, "n": MPI.DISTRIBUTE_NONE}
WHENCE = {"set": MPI.SEEK_SET, "cur": MPI.SEEK_CUR, "end": MPI.SEEK_END}

types = {"byte": MPI.BYTE, "int": MPI.INT, "double": MPI.DOUBLE, "short_int": MPI.SHORT_INT}
slots: dict = {}
taken: list[bytes] = []


def define(name, kind, *words):
    n = [int(word) for word in words if word.lstrip("-").isdigit()]
    last = words[-1]
    of = types.get(last)
    if kind == "contiguous":
        made = of.Create_contiguous(n[0])
    elif kind == "vector":
        made = of.Create_vector(*n)
    elif kind == "hvector":
        made = of.Create_hvector(*n)
    elif kind in ("indexed", "hindexed"):
        count = n[0]
        make = of.Create_indexed if kind == "indexed" else of.Create_hindexed
        made = make(n[1 : 1 + count], n[1 + count :])
    elif kind in ("indexed_block", "hindexed_block"):
        make = of.Create_indexed_block if kind == "indexed_block" else of.Create_hindexed_block
        made = make(n[1], n[2:])
    elif kind == "struct":
        count = n[0]
        made = MPI.Datatype.Create_struct(n[1 : 1 + count], n[1 + count :], [types[w] for w in words[1 + 2 * count :]])
    elif kind == "subarray":
        d = n[0]
        made = of.Create_subarray(n[1 : 1 + d], n[1 + d : 1 + 2 * d], n[1 + 2 * d :], ORDERS[words[-2]])
    elif kind == "darray":
        d = n[2]
        how = [HOW[word] for word in words[3 + d : 3 + 2 * d]]
        given = [MPI.DISTRIBUTE_DFLT_DARG if g < 0 else g for g in n[3 + d : 3 + 2 * d]]
        made = of.Create_darray(n[0], n[1], n[3 : 3 + d], how, given, n[3 + 2 * d :], ORDERS[words[-2]])
    elif kind == "resized":
        made = of.Create_resized(*n)
    else:
        made = of.Dup()
    types[name] = made.Commit()


def complete(how, n):
    requests = [slots[k][0] for k in range(n)]
    if how in ("wait", "waitall", "waitsome", "waitany"):
        MPI.Request.Waitall(requests)
    elif how == "testall":
        while not MPI.Request.Testall(requests):
            pass
    else:
        for request in requests:
            while not request.Test():
                pass
    for k in range(n):
        _, buffer, reads = slots.pop(k)
        if reads:
            taken.append(bytes(buffer))


def main():
    data, script = sys.argv[1:]
    file, split = None, None
    for step, line in enumerate(Path(f"{script}.{RANK}").read_text().splitlines()):
        op, *words = line.split()
        if op == "type":
            define(*words)
        elif op == "open":
            mode, comm, key, value = words
            info = MPI.INFO_NULL
            if key != "-":
                info = MPI.Info.Create()
                info.Set(key, value)
            group = {"self": MPI.COMM_SELF, "half": None}.get(comm, WORLD) or WORLD.Split(RANK % 2, -RANK)
            ending = {"self": [".a", ".b", ".c"][min(RANK, 2)], "half": f".{RANK % 2}"}.get(comm, "")
            flags = MPI.MODE_RDONLY if mode == "r" else MPI.MODE_RDWR | MPI.MODE_CREATE
            file = MPI.File.Open(group, data + ending, flags, info)
        elif op == "view":
            file.Set_view(int(words[0]), types[words[1]], types[words[2]])
        elif op in ("seek", "seek_shared"):
            getattr(file, op.capitalize())(int(words[0]), WHENCE[words[1]])
        elif op in ("set_size", "preallocate"):
            getattr(file, op.capitalize())(int(words[0]))
        elif op == "get_size":
            taken.append(str(file.Get_size()).encode())
        elif op == "atomicity":
            file.Set_atomicity(words[0] == "1")
        elif op == "sync":
            file.Sync()
        elif op == "close":
            file.Close()
        elif op == "barrier":
            WORLD.Barrier()
        elif op == "complete":
            complete(words[0], int(words[1]))
        elif op.endswith("_end"):
            getattr(file, op.capitalize())(split)
            if "read" in op:
                taken.append(bytes(split[0]))
        else:
            reads = "read" in op
            at = [int(words.pop(0))] if "_at" in op else []
            count, of = int(words[0]), types[words[1]]
            length = count * of.Get_extent()[1] + 64
            buffer = bytearray(
                b"\x5a" * length if reads else bytes((RANK * 37 + step * 11 + i) % 256 for i in range(length))
            )
            call = getattr(file, op.capitalize())
            if op.endswith("_begin"):
                split = [buffer, count, of]
                call(*at, split)
            elif op.startswith("i"):
                slots[int(words[2])] = (call(*at, [buffer, count, of]), buffer, reads)
            else:
                call(*at, [buffer, count, of])
                if reads:
                    taken.append(bytes(buffer))
    digest = 5381
    for byte in b"".join(taken):
        digest = (digest * 33 + byte) % (1 << 64)
    print(f"rank {RANK}: {digest:x}", flush=True)


main()
