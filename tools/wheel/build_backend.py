"""How wheels are built (PEP 517): by maturin, with what it does not know of.

The wheel also holds the preloaded library, which `tools/library.sh` links, and the manual pages and completion scripts
that `tools/wheel/manpages.py` makes. An editable installation has the library in the source tree.

    pip wheel . --config-settings glibc=2.28      for that glibc and newer ones: zig links, from PyPI
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin
from maturin import build_sdist, get_requires_for_build_sdist

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "stripewise/lib/libstripewise.so"
Settings = Mapping[str, Any] | None

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip


def _glibc(settings: Settings) -> str:
    """The glibc that is built for; empty: this machine's."""
    wanted = str((settings or {}).get("glibc", ""))
    parts = wanted.split(".")
    if wanted and (len(parts) != 2 or not all(part.isdecimal() for part in parts)):
        raise SystemExit(f"--config-settings glibc={wanted}: is not a version of glibc; give one such as glibc=2.28")
    return wanted


def _for_maturin(settings: Settings) -> dict[str, Any]:
    """The settings, with those of ours in maturin's words."""
    given = {key: value for key, value in (settings or {}).items() if key != "glibc"}
    if glibc := _glibc(settings):
        words = maturin.get_maturin_pep517_args(given)
        given["build-args"] = [*words, "--zig", "--compatibility", f"manylinux_{glibc.replace('.', '_')}"]
    return given


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Beside maturin's: what the command line is loaded with, for its manual pages, and zig where it is to link."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    linker = ["ziglang>=0.14"] if _glibc(config_settings) else []
    return [*maturin.get_requires_for_build_wheel(_for_maturin(config_settings)), *project["dependencies"], *linker]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """maturin's."""
    return list(maturin.get_requires_for_build_editable(config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """maturin's."""
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, _for_maturin(config_settings)))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _build_library(out: Path, glibc: str) -> None:
    environment = dict(os.environ)
    if glibc:
        words = [sys.executable, str(ROOT / "tools/wheel/zig_cc.py"), f"{platform.machine()}-linux-gnu.{glibc}"]
        environment["CC"] = shlex.join(words)
    subprocess.run(["sh", ROOT / "tools/library.sh", out, "preload"], check=True, env=environment)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """maturin's wheel, and our own parts in it."""
    with tempfile.TemporaryDirectory() as scratch:
        made, library, data = Path(scratch, "wheel"), Path(scratch, "libstripewise.so"), Path(scratch, "data")
        _build_library(library, _glibc(config_settings))
        path = [str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        subprocess.run([sys.executable, ROOT / "tools/wheel/manpages.py", data], check=True, env=environment)
        made.mkdir()
        name = str(maturin.build_wheel(str(made), _for_maturin(config_settings), metadata_directory))
        project = "-".join(name.split("-")[:2])
        pages = {f"{project}.data/data/{path.relative_to(data)}": path for path in data.rglob("*") if path.is_file()}
        _with_files(made / name, Path(wheel_directory, name), {LIBRARY: library, **pages})
    return name


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """maturin's, with the library beside the sources that it points to."""
    _build_library(ROOT / "python" / LIBRARY, "")
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def _with_files(wheel: Path, out: Path, files: Mapping[str, Path]) -> None:
    """Writes `wheel` to `out` with `files` in it, each under its name there, and with a record of all."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(item for item in old.infolist() if item.filename.endswith(".dist-info/RECORD"))
        lines = io.StringIO(newline="")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows(
            row for row in csv.reader(old.read(record).decode().splitlines()) if row[0] not in (record.filename, *files)
        )
        for item in old.infolist():
            if item is not record and item.filename not in files:
                new.writestr(item, old.read(item), zipfile.ZIP_DEFLATED)
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            item = zipfile.ZipInfo(name, record.date_time)
            item.external_attr = (0o100755 if name == LIBRARY else 0o100644) << 16
            new.writestr(item, content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            writer.writerow([name, f"sha256={digest}", len(content)])
        writer.writerow([record.filename, "", ""])
        new.writestr(record, lines.getvalue(), zipfile.ZIP_DEFLATED)
