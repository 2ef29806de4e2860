"""What the parts of `make bench` share: where things are, running a verb, and stores in a scratch directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STRIPEWISE = ROOT / ".venv/bin/stripewise"
#: Name, class, kind, startup of a read and of a write (s), seconds per byte.
Figures = tuple[str, str, str, float, float, float]


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))} failed ({done.returncode})\n{done.stdout}{done.stderr}")
    return done.stdout


def make_store(base: Path, targets: list[Figures]) -> tuple[Path, Path]:
    """A store of its own below `base`, and the directory that it manages."""
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
    run(STRIPEWISE, "store", "create", base / "store", "--cluster", base / "cluster.toml", "--manage", data)
    return base / "store", data
