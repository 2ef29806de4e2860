"""The wheel: built of the sources alone, installed into an environment of its own, and used as on a user's first day.

What it needs of Python packages comes from the repository's environment, so nothing is downloaded; cargo's output is
the repository's, so that only what changed is compiled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import needs_root
from rig import ROOT, SOAK, execute

from stripewise.run.elf import read_program

CLUSTER = "version = 1\n" + "".join(
    f'[[target]]\nname = "{name}"\nclass = "{klass}"\npath = "{name}%JOB%"\ncapacity_bytes = 0\n'
    "startup_read_s = 0.0\nstartup_write_s = 0.0\nper_byte_read_s = 1e-9\nper_byte_write_s = 1e-9\n"
    for name, klass in (("disk", "hdd"), ("flash", "ssd"))
)
BACKEND = "import sys; sys.path.insert(0, 'tools/wheel'); import build_backend; "
#: What no build may need, and no caller may lend.
LENT = ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MFLAGS", "CC", "CFLAGS")
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in LENT}
# With this environment's maturin.
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
ENVIRONMENT["CARGO_TARGET_DIR"] = str(ROOT / "target")


def sources() -> list[str]:
    """What is, or would be, under version control: nothing that was built."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True)
    return [name for name in said.stdout.split("\0") if name and (ROOT / name).is_file()]


def installed(wheel: Path, place: Path) -> Path:
    """A fresh environment with the wheel in it; the packages that it needs are the repository's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", "install", "--no-deps", "--no-index"]
    execute([*pip, "--quiet", "--disable-pip-version-check", wheel], ENVIRONMENT)
    (packages,) = place.glob("lib/python*/site-packages")
    lent = [path for path in sys.path if path.endswith("/site-packages")]
    (packages / "lent.pth").write_text("\n".join(lent) + "\n")
    # mpi4py looks for the MPI of its own environment first, as the mpich wheel puts it there: libmpi* and, in mpich,
    # what these load from beside themselves. With one part missing it falls back to the machine's Open MPI, and four
    # processes become four jobs of one.
    for library in (Path(sys.executable).parent.parent / "lib").glob("*mpi*"):
        (place / "lib" / library.name).symlink_to(library)
    return place


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `pip wheel .` makes in a copy of the sources."""
    copy = tmp_path_factory.mktemp("wheel") / "copy"
    for name in sources():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        # With its time, by which cargo knows what it has compiled.
        shutil.copy2(ROOT / name, copy / name)
        # As from a source distribution, which has no programs.
        (copy / name).chmod(0o644)
    out = copy.parent / "out"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    execute([*pip, "--disable-pip-version-check", "-w", out, "."], ENVIRONMENT, cwd=copy, timeout_s=550)
    (made,) = out.iterdir()
    shutil.rmtree(copy)
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Iterator[Path]:
    yield installed(wheel, wheel.parent / "environment")


def use(prefix: Path, scratch: Path) -> None:
    """A store is made, a file copied into it and read back, by programs that know nothing of it."""
    command = prefix / "bin/stripewise"
    (scratch / "cluster.toml").write_text(CLUSTER.replace("%JOB%", ""))
    for name in ("disk", "flash", "data"):
        (scratch / name).mkdir()
    (scratch / "source").write_bytes(os.urandom(1_000_000))
    create = [command, "store", "create", "store", "--cluster", "cluster.toml", "--manage", scratch / "data"]
    execute(create, ENVIRONMENT, cwd=scratch)
    run = [command, "run", "--store", "store", "--"]
    execute([*run, "cp", "source", "data/f"], ENVIRONMENT, cwd=scratch)
    assert os.readlink(scratch / "data/f").startswith("/stripewise:")
    with (scratch / "read").open("wb") as out:
        subprocess.run([*run, "cat", "data/f"], cwd=scratch, env=ENVIRONMENT, stdout=out, check=True)
    assert (scratch / "read").read_bytes() == (scratch / "source").read_bytes()
    assert execute([command, "store", "fsck", "store"], ENVIRONMENT, cwd=scratch).out.startswith("store: sound")


def test_the_wheel_serves_programs_that_know_nothing_of_it(environment: Path, scratch: Path) -> None:
    said = execute([environment / "bin/python", "-c", "import stripewise; print(stripewise.__file__)"], ENVIRONMENT)
    assert Path(said.out.strip()).is_relative_to(environment)
    use(environment, scratch)


def test_the_wheel_holds_the_library_once_and_all_that_it_records(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        recorded = [line.rsplit(",", 2)[0].strip('"') for line in archive.read(record).decode().splitlines()]
        mode = archive.getinfo("stripewise/lib/libstripewise.so").external_attr >> 16
    assert sorted(recorded) == sorted(names) == sorted(set(names))
    assert mode == 0o100755
    assert not [name for name in names if name.split("/")[0] in ("tests", "tools", "crates")]


# `tune` keeps what it has measured to be faster, and beside other work a factor of six may be chance.
@pytest.mark.alone
def test_the_first_hour(environment: Path) -> None:
    """README.md and docs/tutorial.md as they stand, with this environment's command."""
    said = execute(["bash", ROOT / "tests/first_hour.sh", environment, Path(sys.executable).parent], ENVIRONMENT)
    assert said.out.endswith("first_hour: all blocks ran\n"), said.report


def test_nothing_in_the_wheel_carries_debugging_information(environment: Path) -> None:
    objects = list(environment.glob("lib/python*/site-packages/stripewise/**/*.so"))
    assert len(objects) == 2
    for path in objects:
        assert ".debug_" not in execute(["readelf", "-SW", path]).out, path


def test_manual_pages_and_completion_are_where_man_and_shells_look(environment: Path) -> None:
    pages = {path.name for path in (environment / "share/man/man1").iterdir()}
    assert {"stripewise.1", "stripewise-plan.1", "stripewise-store-create.1"} <= pages
    man = {**ENVIRONMENT, "MANPATH": str(environment / "share/man"), "MANWIDTH": "200"}
    if shutil.which("man"):
        assert "--cluster CLUSTER" in execute(["man", "-P", "cat", "stripewise-store-create"], man).out
    script = environment / "share/bash-completion/completions/stripewise"
    asked = f'. {script}; COMP_WORDS=(stripewise store cr) COMP_CWORD=2; _stripewise_completion "$1"; echo "$COMPREPLY"'
    said = execute(["bash", "-c", asked, "bash", environment / "bin/stripewise"], ENVIRONMENT)
    assert said.out.strip() == "create"


def test_the_source_distribution_holds_what_the_wheel_is_built_of(scratch: Path) -> None:
    said = execute(
        [sys.executable, "-c", f"{BACKEND}build_backend.build_sdist({str(scratch)!r})"], ENVIRONMENT, cwd=ROOT
    )
    (made,) = scratch.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    needed = ("Cargo", "pyproject.toml", "README.md", "LICENSE", "crates/", "shim/", "python/", "tools/")
    missing = [name for name in listed.stdout.split("\0") if name.startswith(needed) and (ROOT / name).is_file()]
    assert len(missing) > 300 and not set(missing) - names, said.report
    assert "PKG-INFO" in names


def test_an_unknown_glibc_is_one_sentence() -> None:
    asked = f"{BACKEND}build_backend.get_requires_for_build_wheel({{'glibc': 'old'}})"
    said = execute([sys.executable, "-c", asked], ENVIRONMENT, 1, cwd=ROOT)
    assert said.err == "--config-settings glibc=old: is not a version of glibc; give one such as glibc=2.28\n"


@needs_root
def test_prolog_task_prolog_and_epilog_give_a_job_its_store(environment: Path, scratch: Path) -> None:
    (scratch / "site.toml").write_text(CLUSTER.replace('path = "', f'path = "{scratch}/'))
    slurm = {"SLURM_JOB_ID": "77", "SLURM_JOB_UID": "0", "SLURM_JOB_GID": "0"}
    site = {"SITE_CLUSTER": "site.toml", "SITE_JOBS": "jobs", "SITE_COMMAND": "bin/stripewise"}
    places = {"SITE_COMMAND": environment, "SITE_JOBS": scratch, "SITE_CLUSTER": scratch}
    job = {**ENVIRONMENT, **slurm, **{key: str(places[key] / value) for key, value in site.items()}}
    scripts = ROOT / "packaging/slurm"
    execute(["sh", scripts / "prolog.sh"], job)
    exported = execute(["sh", scripts / "task-prolog.sh"], job).out.splitlines()
    given = dict(line.removeprefix("export ").split("=", 1) for line in exported)
    assert all(line.startswith("export ") for line in exported) and "LD_PRELOAD" in given
    file = scratch / "jobs/77/own/data/f"
    execute(["cp", scratch / "site.toml", file], {**job, **given})
    assert file.is_symlink()
    assert execute(["cat", file], {**job, **given}).out == (scratch / "site.toml").read_text()
    assert (scratch / "disk77").is_dir()
    execute(["sh", scripts / "epilog.sh"], job)
    assert sorted(path.name for path in scratch.iterdir()) == ["jobs", "site.toml"]
    assert not any((scratch / "jobs").iterdir())


@pytest.mark.skipif(not SOAK, reason="make wheel downloads a linker and compiles everything: make soak")
def test_make_wheel_serves_older_machines(scratch: Path) -> None:
    subprocess.run(["make", "-s", "wheel"], cwd=ROOT, check=True, env=ENVIRONMENT)
    (made,) = (ROOT / "target/wheel").iterdir()
    assert "manylinux_2_28" in made.name
    prefix = installed(made, scratch / "environment")
    for path in prefix.glob("lib/python*/site-packages/stripewise/**/*.so"):
        assert read_program(path).glibc() <= (2, 28), path
    dynamic = execute(["readelf", "-dW", next(prefix.glob("lib/python*/site-packages/stripewise/lib/*.so"))]).out
    assert "INITFIRST" in dynamic and "STATIC_TLS" in dynamic
    (scratch / "place").mkdir()
    use(prefix, scratch / "place")
