"""Zig as the compiler of `tools/library.sh`: it links for a glibc that is older than this machine's.

    CC='python tools/wheel/zig_cc.py x86_64-linux-gnu.2.28' tools/library.sh OUT preload

Zig's linker refuses two options of that rule, so this does what they ask for: a version script keeps the symbols of
the static library inside (`--exclude-libs`), and the flag of `-z initfirst` is set in the file that was linked.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HIDDEN, FIRST = "-Wl,--exclude-libs,ALL", "-Wl,-z,initfirst"
#: An entry of the dynamic section of a 64-bit ELF file: its tag and its value.
ENTRY = struct.Struct("<QQ")
PT_DYNAMIC, DT_NULL, DT_FLAGS_1, DF_1_INITFIRST = 2, 0, 0x6FFFFFFB, 0x20
#: Where the header names the program headers, and of one of these its type, offset and size.
HEADERS, HEADER_SIZE_AND_COUNT = struct.Struct("<Q"), struct.Struct("<HH")
HEADER = struct.Struct("<I4xQ16xQ")


def initialise_first(image: bytearray) -> None:
    """Sets DF_1_INITFIRST, and that flag alone, in a 64-bit little-endian ELF file; ValueError without DT_FLAGS_1."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    (begin,) = HEADERS.unpack_from(image, 32)
    size, count = HEADER_SIZE_AND_COUNT.unpack_from(image, 54)
    headers = [HEADER.unpack_from(image, begin + number * size) for number in range(count)]
    for at, length in ((offset, length) for kind, offset, length in headers if kind == PT_DYNAMIC):
        for entry in range(at, at + length, ENTRY.size):
            tag, _ = ENTRY.unpack_from(image, entry)
            if tag == DT_NULL:
                break
            if tag == DT_FLAGS_1:
                ENTRY.pack_into(image, entry, DT_FLAGS_1, DF_1_INITFIRST)
                return
    raise ValueError("its dynamic section has no DT_FLAGS_1")


def link(target: str, words: Sequence[str]) -> None:
    """Compiles the sources among `words` and links them as `cc` would with all of these words."""
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    sources = [str(Path(word).resolve()) for word in words if word.endswith(".c")]
    compiling = [word for word in words if word.startswith(("-O", "-g", "-f", "-std=", "-D"))]
    warnings = [word for word in words if word.startswith("-W") and not word.startswith("-Wl,")]
    out = words[words.index("-o") + 1]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*zig, *compiling, *warnings, "-c", *sources], cwd=scratch, check=True)
        objects = sorted(str(path) for path in Path(scratch).glob("*.o"))
        listed = subprocess.run(
            ["nm", "-g", "--defined-only", "--format=posix", *objects], capture_output=True, check=True, text=True
        )
        symbols = {line.split()[0] for line in listed.stdout.splitlines() if len(line.split()) > 1}
        script = Path(scratch) / "exported"
        script.write_text("{ global: " + " ".join(f"{name};" for name in sorted(symbols)) + " local: *; };\n")
        # Bound as late as what cc links; nodelete makes the entry of flags that is filled in afterwards.
        asked = {HIDDEN: f"-Wl,--version-script={script}", FIRST: "-Wl,-z,nodelete"}
        rest = [asked.get(word, word) for word in words if not word.endswith(".c")]
        subprocess.run(
            [*zig, *rest[: rest.index(out) + 1], *objects, *rest[rest.index(out) + 1 :], "-Wl,-z,lazy"], check=True
        )
    if FIRST in words:
        image = bytearray(Path(out).read_bytes())
        initialise_first(image)
        Path(out).write_bytes(image)


if __name__ == "__main__":
    try:
        link(sys.argv[1], sys.argv[2:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
