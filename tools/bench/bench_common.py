"""What the parts of `make bench` share: where things are, how much is measured, running a verb, stores in a scratch
directory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STRIPEWISE = ROOT / ".venv/bin/stripewise"
#: Name, class, kind, startup of a read and of a write (s), seconds per byte.
Figures = tuple[str, str, str, float, float, float]


LIBRARY = ROOT / "python/stripewise/lib/libstripewise.so"


@dataclass(frozen=True)
class Effort:
    """How much is measured. `QUICK` goes through all that `FULL` does; its figures mean nothing."""

    #: Starts of /bin/true with and without the library, each.
    starts: int = 500
    #: Batches of calls on small files, and how often two libraries take turns.
    batches: int = 41
    turns: int = 9
    #: Whether small files are measured on a file system in memory, where we may mount one.
    in_memory: bool = True
    #: Of those of each process in runs of mdtest's kind, and how often its places take turns.
    metadata_files: int = 250
    metadata_turns: int = 21
    #: Length of a run on emulated devices, and the file on each.
    emulated_s: float = 3.0
    emulated_mib: int = 16
    #: Of the file whose regions move.
    file_mib: int = 512
    #: Foreground before and after the move, what the move may take, and how long freezes are counted.
    around_s: float = 12.0
    move_s: float = 30.0
    freezes_s: float = 25.0
    #: Planned for by all policies but `best`; targets, regions and requests of `best`.
    records: int = 10_000_000
    grouped: int = 100_000
    best_targets: int = 1_000
    best_regions: int = 10_000
    best_requests: int = 2_000_000
    #: How long it may search; None: as long as it does by itself.
    best_limit_s: float | None = None
    #: Of Darshan's, imported.
    segments: int = 4_000_000
    #: Crates and their benchmarks.
    crates: tuple[tuple[str, str], ...] = (
        ("trace", "record"),
        ("layout", "map"),
        ("layout", "replicas"),
        ("sim", "sim"),
        ("swd", "updates"),
        ("disk", "disk"),
        ("pattern", "recognise"),
    )


FULL = Effort()
QUICK = Effort(
    starts=10,
    batches=3,
    turns=1,
    metadata_files=20,
    metadata_turns=1,
    emulated_s=0.1,
    emulated_mib=1,
    file_mib=32,
    around_s=0.5,
    move_s=2.0,
    freezes_s=1.0,
    records=6_400,
    grouped=2_000,
    best_targets=16,
    best_regions=20,
    best_requests=1_200,
    best_limit_s=1.0,
    segments=20_000,
    crates=(("swd", "updates"),),
)


def run(*command: object, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run([str(c) for c in command], check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))} failed ({done.returncode})\n{done.stdout}{done.stderr}")
    return done.stdout


def make_store(base: Path, targets: list[Figures], stripewise: Path = STRIPEWISE) -> tuple[Path, Path]:
    """A store of its own below `base`, made by a `stripewise` command, and the directory that it manages."""
    data = base / "data"
    data.mkdir(parents=True)
    blocks = []
    for name, klass, kind, read_s, write_s, per_byte_s in targets:
        (base / name).mkdir()
        blocks.append(
            f'[[target]]\nname = "{name}"\nclass = "{klass}"\nkind = "{kind}"\npath = "{name}"\n'
            f"startup_read_s = {read_s}\nstartup_write_s = {write_s}\n"
            f"per_byte_read_s = {per_byte_s}\nper_byte_write_s = {per_byte_s}\n"
        )
    (base / "cluster.toml").write_text("\n".join(blocks))
    run(stripewise, "store", "create", base / "store", "--cluster", base / "cluster.toml", "--manage", data)
    return base / "store", data
