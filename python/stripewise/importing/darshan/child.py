"""The process that reads one Darshan log with libdarshan-util, within limits, and writes what is in it to stdout.

Run as `python -m stripewise.importing.darshan.child LOG MEMORY_BYTES CPU_SECONDS`. Messages: length of a JSON object as
four bytes (little endian), the object, then as many bytes as its key `bytes` says.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from .library import COUNTER_MODULES, DXT_MODULES, Library, LibraryError, Log

#: Records with counters, and names, that one message holds.
_TOGETHER = 4096


class _Sender:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, kind: str, about: dict[str, Any], data: Any = b"") -> None:
        text = json.dumps({"kind": kind, **about, "bytes": len(data)}).encode()
        self._stream.write(struct.pack("<I", len(text)))
        self._stream.write(text)
        self._stream.write(data)


def _send_names(log: Log, out: _Sender) -> None:
    held: list[tuple[int, str]] = []
    for name in log.names():
        held.append(name)
        if len(held) == _TOGETHER:
            out.send("names", {"names": held})
            held = []
    out.send("names", {"names": held})


def _send_counters(log: Log, module: str, out: _Sender) -> None:
    whole, floating = log.library.counter_names(COUNTER_MODULES[module][1])
    about = {"module": module, "counters": whole, "fcounters": floating}
    held: list[bytes] = []
    for record in log.counters(module):
        held.append(record)
        if len(held) == _TOGETHER:
            out.send("counters", about, b"".join(held))
            held = []
    out.send("counters", about, b"".join(held))


def _send(library: Library, path: str, out: _Sender) -> None:
    log = Log(library, path)
    out.send("job", log.job())
    _send_names(log, out)
    for module in log.modules:
        try:
            if module in COUNTER_MODULES:
                _send_counters(log, module, out)
            elif module in DXT_MODULES:
                for about, data in log.segments(module):
                    out.send("segments", {"module": module, **about}, data)
            elif module == "HEATMAP":
                for about, data in log.heat():
                    out.send("heat", about, data)
            elif module == "LUSTRE":
                for about in log.lustre():
                    out.send("lustre", about)
        except LibraryError as error:
            out.send("damaged", {"why": str(error)})
    out.send("end", {})


def serve(load: Callable[[], Library], path: str, stream: BinaryIO, memory_bytes: int, cpu_s: int) -> None:
    """Reads the log within the limits and writes its messages; `load` gives the library."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = _Sender(stream)
    try:
        _send(load(), path, out)
    except LibraryError as error:
        out.send("refused", {"why": str(error)})
    stream.flush()


def main() -> None:
    path, memory_bytes, cpu_s = sys.argv[1:]
    serve(Library, path, sys.stdout.buffer, int(memory_bytes), int(cpu_s))


if __name__ == "__main__":
    main()
