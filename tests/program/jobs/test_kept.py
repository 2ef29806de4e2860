"""Plans kept by application and number of processes: `run` follows the one that fits (H2DP, sections 4.2 and 4.4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rig import (
    STRIPEWISE,
    Maker,
    Store,
    Target,
    dirs,
    is_managed,
    mpiio_command,
    parse_mpiio,
    region,
    stripes,
    stripewise,
)

from stripewise.plan import Plan, read_plan
from stripewise.store import Store as Opened

JOB = ("--file-size", "2MiB", "--request-size", "64KiB", "--region-size", "256KiB", "--pattern", "interleaved")
#: The program makes its file anew in each run.
ANEW = "import os, sys; os.path.lexists(sys.argv[1]) and os.unlink(sys.argv[1]); open(sys.argv[1], 'wb').write(b'x')"
MIB = 1 << 20
ON = {name: [region(0, 1024, stripes((name, 64)))] for name in ("t0", "t1", "t2", "t3")}


def targets_of(store: Store, file: Path) -> set[str]:
    """The targets that the layout of a file names."""
    opened = Opened(store.root)
    identity = opened.resolve(str(file))
    assert identity is not None
    return {name for each in opened.layout(identity).regions for name, _ in each.stripes}


def keep(store: Store, file: Path, target: str, application: Sequence[str | Path], processes: int) -> Plan:
    """Keeps a plan that puts the file on one target."""
    plan = store.plan(store.base / f"{target}.json", file, ON[target], MIB)
    words = " ".join(map(str, application))
    stripewise("store", "plan", "add", store.root, plan, "--application", words, "--processes", str(processes))
    return read_plan(plan)


def kept(store: Store) -> list[tuple[str, int]]:
    """What `store plan ls` has."""
    rows = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    return [(row["application"], row["processes"]) for row in rows]


def test_runs_with_different_processes_follow_their_own_plans(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    program = mpiio_command(1, file, *JOB)[3:]
    keep(store, file, "t1", program, 2)
    keep(store, file, "t2", program, 3)
    assert kept(store) == [(" ".join(map(str, program)), 2), (" ".join(map(str, program)), 3)]
    for processes, target in [(2, "t1"), (3, "t2"), (2, "t1")]:
        said = store.run(*mpiio_command(processes, file, *JOB))
        parse_mpiio(said)
        assert f"follows the plan kept for '{program[0]}" in said.err, said.report
        assert targets_of(store, file) == {target}, "moved while the program ran, or made there"
    said = store.run(*mpiio_command(4, file, *JOB))
    assert "no plan is kept for" in said.err and "with 4 process(es), only with 2, 3" in said.err, said.report
    parse_mpiio(said)
    assert targets_of(store, file) == {"t1"}
    said = stripewise("run", "--store", store.root, "--no-follow", "--", *mpiio_command(3, file, *JOB))
    assert "plan" not in said.err and targets_of(store, file) == {"t1"}


def test_a_file_made_anew_lies_as_planned_from_its_first_byte(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file, program = store.data / "f", ("python3", "-c", ANEW)
    store.run(*program, file)
    assert targets_of(store, file) == {"t0"}
    stripewise(
        *("store", "plan", "add", store.root, store.plan(store.base / "p.json", file, ON["t3"], MIB)),
        *("--application", f'python3 -c "{ANEW}" {file}'),
    )
    assert targets_of(store, file) == {"t0"}, "kept for a program, not for all"
    store.run("rm", file)
    said = store.run(*program, file)
    assert targets_of(store, file) == {"t3"}, said.report
    assert "follows the plan" in said.err and "mover:" not in said.err, "nothing was there to be moved"
    # What follows no plan makes files as ever.
    store.run("python3", "-c", ANEW + "#", file)
    assert targets_of(store, file) == {"t0"}


def test_a_plan_is_forgotten_and_its_runs_are_as_before(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    keep(store, file, "t1", ["cp", "/etc/passwd", file], 1)
    keep(store, file, "t2", ["cp", "/etc/passwd", file], 4)
    copy = ("cp", "/etc/passwd", file)
    said = store.run(*copy)
    assert "give --processes" in said.err and targets_of(store, file) == {"t0"}, said.report
    stripewise("run", "--store", store.root, "--processes", "4", "--", *copy)
    assert targets_of(store, file) == {"t2"}
    words = " ".join(map(str, copy))
    stripewise("store", "plan", "rm", store.root, words, "--processes", "4")
    assert kept(store) == [(words, 1)]
    store.run(*copy)
    assert targets_of(store, file) == {"t1"}, "the only one that is left, and the command says nothing else"
    stripewise("store", "plan", "rm", store.root, words)
    assert not kept(store) and not list((store.root / "plans").iterdir())
    failed = stripewise("store", "plan", "rm", store.root, words, code=None)
    assert failed.code != 0 and "keeps no plan for" in failed.err and "Traceback" not in failed.err


def test_tune_keeps_the_fastest_plan_and_the_next_run_follows_it(make_store: Maker) -> None:
    targets = [Target("h0", "hdd", "emulated", 0, 2e-3, 1e-8), Target("s0", "ssd", "emulated", 0, 1e-5, 1e-9)]
    store = make_store(targets)
    file = store.data / "f"
    job = mpiio_command(2, file, *JOB)
    said = stripewise("tune", "--store", store.root, "--policy", "h2dp", "--region-size", "256KiB", "--", *job)
    program = " ".join(map(str, job[3:]))
    assert f"kept the plan of h2dp for '{program}' with 2 processes" in said.out, said.report
    assert kept(store) == [(program, 2)]
    said = store.run(*job)
    parse_mpiio(said)
    assert "follows the plan kept for" in said.err and "mover:" not in said.err, said.report
    planned = targets_of(store, file)
    store.run("rm", file)
    parse_mpiio(store.run(*job))
    assert targets_of(store, file) == planned
    store.run("rm", file)
    parse_mpiio(store.run(*mpiio_command(3, file, *JOB)))
    assert targets_of(store, file) == {"h0", "s0"}


def test_plan_keep_goes_by_the_traced_programs_own_words(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, trace = store.data / "f", store.base / "trace"
    job = mpiio_command(2, file, *JOB)
    parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *job))
    stripewise("collect", trace)
    said = stripewise("plan", trace, "--store", store.root, "--policy", "def", "--keep")
    assert f"kept for '{' '.join(map(str, job[3:]))}' with 2 processes" in said.out, said.report
    assert "follows the plan kept for" in store.run(*job).err


def test_what_is_wrong_with_a_kept_plan_is_one_sentence(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    keep(store, file, "t1", ["true"], 1)
    (name,) = (store.root / "plans").iterdir()
    whole = name.read_text()
    for damage in ("", "{", whole[: len(whole) // 2], whole.replace('"t1"', '"t9"')):
        name.write_text(damage)
        said = store.run("true", code=None)
        assert said.code != 0 and "Traceback" not in said.err, said.report
        assert len(said.err.strip().splitlines()) == 1 and "stripewise" in said.err
    stripewise("store", "plan", "rm", store.root, "true")
    assert store.run("true").err == ""
    refused = [
        (["--application", "true"], ON["t1"] + [region(2048, 64, stripes(("t0", 64)))], "start"),
        (["--application", "true"], [region(0, 64, stripes(("t9", 64)))], "t9"),
        ([], ON["t1"], "give --application"),
    ]
    for words, regions, what in refused:
        plan = store.plan(store.base / "bad.json", file, regions, MIB)
        said = stripewise("store", "plan", "add", store.root, plan, *words, code=None)
        assert said.code != 0 and what in said.err and "Traceback" not in said.err, said.report
    assert not kept(store)


def test_another_mover_at_work_keeps_no_run_from_its_work(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    store.run("cp", "/etc/passwd", file)
    keep(store, file, "t1", ["cat", file], 1)
    waits = store.plan(store.base / "waits.json", store.data / "never", ON["t2"], MIB)
    inner = [str(word) for word in ("cat", file)]
    said = stripewise(
        *("run", "--store", store.root, "--migrate", waits, "--", "sh", "-c"),
        f"LD_PRELOAD= {STRIPEWISE} run --store {store.root} -- {' '.join(inner)}",
    )
    assert said.out == Path("/etc/passwd").read_text() and "files stay where they are" in said.err, said.report
    assert is_managed(file) and targets_of(store, file) == {"t0"}
