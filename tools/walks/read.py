"""The walk of a read, as ARCHITECTURE.md lists it: the files whose code runs when 4 KiB are read of a managed file that
is open on a plain target, by how many of their lines run. Needs `make build` and valgrind.

A program reads often, and once (benches/walk.c), under callgrind: the lines of which it runs more then are the read's.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from bench_common import ROOT, make_store, run

#: Reads of the one run beyond those of the other.
READS = 1000
#: A file of which no more lines run does nothing of its own: it hands on.
FEW = 2
#: As the Makefile links it, but with the lines that instructions come from.
LINK = ("-O2", "-g", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-shared", "-w")
LIBRARIES = (
    "-Wl,--exclude-libs,ALL",
    "-Wl,--gc-sections",
    "-Wl,-z,initfirst",
    "-static-libgcc",
    "-lgcc_eh",
    "-lpthread",
    "-lm",
    "-ldl",
)
#: The project's own files; line 0 is what the compiler has of no line.
OURS = re.compile(r"(?:crates/\w+/src|shim)/.*")
Line = tuple[str, int]


def counted(profile: str) -> Counter[Line]:
    """Instructions by file and line of a profile of callgrind's, whatever called whom."""
    found: Counter[Line] = Counter()
    file, is_call = "", False
    for text in profile.splitlines():
        if named := re.match(r"f[lie]=(.*)", text):
            file = named[1]
        elif text.startswith("calls="):
            # What follows is what the called function took.
            is_call = True
        elif cost := re.match(r"(\d+) (\d+)$", text):
            if not is_call:
                found[file, int(cost[1])] += int(cost[2])
            is_call = False
    return found


def read_lines() -> dict[Line, float]:
    """Instructions of one read, by file and line."""
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        library, program, profile = base / "libstripewise.so", base / "walk", base / "profile"
        shim = sorted((ROOT / "shim").rglob("*.c"))
        run("cc", *LINK, "-o", library, *shim, ROOT / "target/preload/libstripewise_runtime.a", *LIBRARIES)
        run("cc", "-O2", "-o", program, ROOT / "benches/walk.c")
        store, data = make_store(base / "store", [("t", "ssd", "dir", 0.0, 0.0, 0.0)])
        environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(library), "STRIPEWISE_STORE": str(store)}
        run("dd", "if=/dev/zero", f"of={data / 'f'}", "bs=64k", "count=1", "status=none", environment=environment)
        runs = []
        for reads in (1, 1 + READS):
            watched = (
                "valgrind",
                "--tool=callgrind",
                "--compress-strings=no",
                "--compress-pos=no",
                f"--callgrind-out-file={profile}",
            )
            run(*watched, program, data / "f", reads, environment=environment)
            runs.append(counted(profile.read_text()))
        once, often = runs
        more = {line: (often[line] - once[line]) / READS for line in often}
        return {line: instructions for line, instructions in more.items() if instructions >= 1}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--lines", action="store_true", help="show the lines, too")
    shows_lines = options.parse_args().lines
    files: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    total = 0.0
    for (file, line), taken in read_lines().items():
        total += taken
        if (own := OURS.search(file)) and line:
            files[own[0]].append((line, taken))
    for file, lines in sorted(files.items(), key=lambda named: -len(named[1])):
        print(f"{len(lines):4}  {file if len(lines) > FEW else f'({file})'}")
        if shows_lines:
            source = (ROOT / file).read_text().splitlines()
            for line, taken in sorted(lines):
                print(f"      {line:5} {taken:5.1f}  {source[line - 1].strip()[:110]}")
    doing = sum(len(lines) > FEW for lines in files.values())
    print(f"{len(files)} files; of {doing} of them more than {FEW} lines run")
    print(f"{total:.0f} instructions, those of the program that reads included")


if __name__ == "__main__":
    main()
