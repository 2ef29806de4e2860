"""The five programs on which PIONEER is measured (pioneer-likeness/programs): compiled and started alike everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from emulated_bench import ROOT, run

from stripewise.errors import StripewiseError

SOURCES = Path(__file__).resolve().parent / "pioneer-likeness" / "programs"
PROGRAMS = ("ior", "mpiiotest", "btio", "particles", "metadata")


def command_of(program: str, base: Path) -> list[object]:
    """The words that start a program, without the launcher; compiled into `base` before its first run."""
    source = SOURCES / f"{program}.c"
    if not source.exists():
        return [sys.executable, source.with_suffix(".py")]
    binary = base / program
    if not binary.exists():
        words = ["-O2", "-std=c11", "-Wall", "-Wextra", "-o", binary, source, source.with_name("common.c")]
        run(ROOT / ".venv/bin/mpicc", *words)
    return [binary]


def check_said(program: str, output: str) -> None:
    """Raises StripewiseError where the line of JSON that a program prints tells of wrong bytes, or of none verified."""
    said: dict[str, Any] = next(json.loads(line) for line in reversed(output.splitlines()) if line.startswith("{"))
    if said["errors"] or not said["verified_bytes"]:
        raise StripewiseError(f"{program}: {said['errors']} wrong bytes of {said['verified_bytes']}")
