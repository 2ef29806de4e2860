"""Which application a command runs, with how many processes."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.plan.application import application_of, directory_of, is_respelled, is_run_by, processes_of
from stripewise.store.config import KeptPlan
from stripewise.store.kept import pick

APP = "app out.dat -v"


@pytest.mark.parametrize(
    ("command", "environment", "processes"),
    [
        ("mpiexec -n 8 ./app out.dat -v", {}, 8),
        ("mpirun -np 8 --bind-to core --map-by socket /opt/bin/app out.dat -v", {}, 8),
        ("/opt/mpich/bin/mpiexec.hydra -genv A 1 -ppn 2 -n 16 app out.dat -v", {}, 16),
        ("mpirun.openmpi --np=4 numactl --localalloc app out.dat -v", {}, 4),
        ("srun -N 2 --ntasks=32 app out.dat -v", {}, 32),
        ("srun -n12 app out.dat -v", {}, 12),
        ("srun app out.dat -v", {"SLURM_NTASKS": "64"}, 64),
        ("mpiexec app out.dat -v", {}, None),
        ("mpiexec -n many app out.dat -v", {}, None),
        ("mpiexec -n 4 app out.dat -v : -n 2 other -n 9", {}, 6),
        ("time mpiexec -n 3 app out.dat -v", {}, 3),
        ("ionice -c 2 -n 2 mpiexec -n 4 app out.dat -v", {}, 4),
        ("nice -n 5 mpiexec app out.dat -v", {}, None),
        ("mpirun -c 5 app out.dat -v", {}, 5),
        ("srun -c 5 app out.dat -v", {}, None),
        ("srun -N2 --ntasks-per-node=3 app out.dat -v", {}, 6),
        ("env OMP_NUM_THREADS=2 app out.dat -v", {}, None),
        ("app out.dat -v", {}, None),
        ("app out.dat -v", {"SLURM_NTASKS": "0"}, None),
        ("app out.dat -v", {"SLURM_NTASKS": "\u00b2", "NSLOTS": "7"}, 7),
        ("mpiexec -n \u00b2 app out.dat -v", {}, None),
        (f"mpiexec -n {'9' * 5000} app out.dat -v", {"PBS_NP": "9" * 5000}, None),
    ],
)
def test_launchers_say_how_many_processes_there_are(
    command: str, environment: dict[str, str], processes: int | None
) -> None:
    words = shlex.split(command)
    assert is_run_by(APP, words)
    assert processes_of(APP, words, environment) == processes


@pytest.mark.parametrize(
    "command",
    [
        "mpiexec -n 8 ./app out.dat",
        "mpiexec -n 8 ./app out.dat -v -x",
        "mpiexec -n 8 ./other out.dat -v",
        "gdb --args app out.dat -v",
        "mpiexec -n 4 other : -n 2 app out.dat -v",
        "out.dat -v",
        "app",
        "",
    ],
)
def test_another_program_or_other_arguments_are_another_application(command: str) -> None:
    assert not is_run_by(APP, shlex.split(command))
    assert processes_of(APP, shlex.split(command), {"SLURM_NTASKS": "8"}) is None


def test_a_script_is_the_same_by_its_own_name_and_behind_its_interpreter() -> None:
    traced = application_of(["/usr/bin/python3", "./app.py", "-x"])
    assert is_run_by(traced, ["./app.py", "-x"]) and is_run_by(traced, ["python3", "app.py", "-x"])
    assert processes_of(traced, ["mpiexec", "-n", "2", "python3", "app.py", "-x"], {}) == 2
    assert not is_run_by("python3 -c x", ["-c", "x"])


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6), st.integers(1, 1 << 20))
def test_whatever_the_words_are_a_program_runs_itself(words: list[str], processes: int) -> None:
    application = application_of(words)
    assert is_run_by(application, words) or ":" in words
    if ":" not in words:
        assert processes_of(application, ["mpiexec", "-n", str(processes), *words], {}) == processes


@given(st.text(), st.lists(st.text()))
def test_no_text_is_too_odd(application: str, command: list[str]) -> None:
    is_run_by(application, command)
    processes_of(application, command, {})


@pytest.mark.parametrize(
    ("application", "path", "after_run", "directory"),
    [
        ("./col x.dat", "/pol/a/x.dat", False, "/pol/a"),
        ("./col --out=out/x.dat", "/pol/a/out/x.dat", False, "/pol/a"),
        ("./col ../x.dat", "/pol/x.dat", False, "/pol/a"),
        ("./col out", "/pol/a/out/deep/x.dat", False, "/pol/a"),
        ("./col", "/pol/a/x.dat", True, "/pol/a"),
        ("./col", "/pol/a/x.dat", False, ""),
        ("./col .", "/pol/a/x.dat", False, ""),
        ("./col /pol/a/x.dat", "/pol/a/x.dat", True, ""),
        ("./col --out=/pol/a", "/pol/a/x.dat", True, ""),
        ("./col x.dat", "/scratch/x.dat", True, ""),
        ("./col x", "/pol/a/x.dat", False, ""),
    ],
)
def test_a_plan_is_of_a_directory_where_its_words_lead_to_its_files_from_there_alone(
    application: str, path: str, after_run: bool, directory: str
) -> None:
    assert directory_of(application, [path], "/pol/a", after_run) == directory


@pytest.mark.parametrize(
    ("command", "directory", "told"),
    [
        ("mpiexec -n 2 ./app in.dat --to=/d/out.dat", "/d", True),
        ("mpiexec -n 2 ./app ./in.dat --to=out.dat", "/d", True),
        ("mpiexec -n 2 ./app ../d/in.dat --to=../d/out.dat", "/e", True),
        ("mpiexec -n 2 ./app /d/other.dat --to=out.dat", "/d", False),
        ("mpiexec -n 2 ./app in.dat --to=out.dat", "/e", False),
        ("mpiexec -n 2 ./another in.dat --to=out.dat", "/d", False),
    ],
)
def test_a_run_that_spells_the_paths_of_a_kept_plan_otherwise_says_so(command: str, directory: str, told: bool) -> None:
    for kept in (KeptPlan("./app /d/in.dat --to=/d/out.dat", 2), KeptPlan("./app in.dat --to=/d/out.dat", 2, "/d")):
        words = shlex.split(command)
        if is_run_by(kept.application, words):
            continue
        assert is_respelled(kept.application, kept.directory, words, directory) == told
        why = pick([kept], words, {}, directory=directory).why
        assert (f"the plan kept for {kept.title} is not followed: this run spells its paths otherwise" in why) == told


def test_a_run_elsewhere_says_so() -> None:
    kept = KeptPlan("./app in.dat", 2, "/d")
    why = pick([kept], shlex.split("mpiexec -n 2 ./app in.dat"), {}, directory="/e").why
    assert "in /d is not followed: this run is in /e" in why
