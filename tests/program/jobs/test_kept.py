"""Plans kept by application and number of processes: `run` follows the one that fits (H2DP, sections 4.2 and 4.4)."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rig import (
    SOAK,
    STRIPEWISE,
    Maker,
    Store,
    Target,
    dirs,
    execute,
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
        # Moved while the program runs, or made there; a run may be over before all has moved.
        for _ in range(30):
            said = store.run(*mpiio_command(processes, file, *JOB))
            parse_mpiio(said)
            assert f"following the plan kept for '{program[0]}" in said.err, said.report
            if targets_of(store, file) == {target}:
                break
            assert "not all has moved yet" in said.err, said.report
        assert targets_of(store, file) == {target}
    said = store.run(*mpiio_command(4, file, *JOB))
    assert "no plan is kept for" in said.err and "with 4 processes, only with 2, 3" in said.err, said.report
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
    assert "following the plan" in said.err and "mover:" not in said.err, "nothing was there to be moved"
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
    store.run("rm", file)
    stripewise("run", "--store", store.root, "--processes", "4", "--", *copy)
    assert targets_of(store, file) == {"t2"}
    words = " ".join(map(str, copy))
    stripewise("store", "plan", "rm", store.root, words, "--processes", "4")
    assert kept(store) == [(words, 1)]
    store.run("rm", file)
    store.run(*copy)
    assert targets_of(store, file) == {"t1"}, "the only one that is left, and the command says nothing else"
    stripewise("store", "plan", "rm", store.root, words)
    assert not kept(store) and not list((store.root / "plans").iterdir())
    failed = stripewise("store", "plan", "rm", store.root, words, code=None)
    assert failed.code != 0 and "keeps no plan for" in failed.err and "Traceback" not in failed.err


def way_back(text: str) -> list[list[str]]:
    """The commands that a verb shows, indented, for taking back what it did."""
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  stripewise ")]


def test_a_template_that_goes_names_the_plans_that_still_lay_out_its_files(make_store: Maker) -> None:
    store = make_store(dirs(4))
    keep(store, store.data / "f-12.h5", "t1", ["'x y'", "z"], 2)
    keep(store, store.data / "deep" / "f-12.h5", "t2", ["deeper"], 1)
    layout = store.base / "l.json"
    layout.write_text(json.dumps({"regions": ON["t3"]}))
    stripewise("store", "template", "add", store.root, store.data / "*.h5", "--layout", layout)
    said = stripewise("store", "template", "rm", store.root, store.data / "*.h5")
    (command,) = way_back(said.out)
    assert "still lays such files out" in said.out and "deeper" not in said.out, said.report
    stripewise(*command)
    assert kept(store) == [("deeper", 1)]


def test_tune_shows_how_all_that_it_leaves_is_taken_back(make_store: Maker) -> None:
    # Slow enough that no other work beside it makes up for that.
    store = make_store([Target("h0", "hdd", "emulated", 0, 5e-3, 1e-7), Target("s0", "ssd")])
    program = ("python3", "-c", ANEW.replace("write(b'x')", "write(bytes(1 << 22))"), store.data / "f")
    said = stripewise("tune", "--store", store.root, "--repeat", "1", "--", *program)
    assert "(stays)" in said.out and "new files matching" in said.out, said.report
    for command in way_back(said.out):
        stripewise(*command)
    assert not kept(store) and json.loads(stripewise("store", "template", "ls", store.root, "--json").out) == []
    assert "following" not in store.run(*program).err


def test_tune_keeps_the_plan_and_the_next_run_follows_it(make_store: Maker) -> None:
    targets = [Target("h0", "hdd", "emulated", 0, 2e-3, 1e-8), Target("s0", "ssd", "emulated", 0, 1e-5, 1e-9)]
    store = make_store(targets)
    file = store.data / "f"
    job = mpiio_command(2, file, *JOB)
    said = stripewise(
        "tune", "--store", store.root, "--policy", "h2dp", "--repeat", "1", "--region-size", "256KiB", "--", *job
    )
    program = " ".join(map(str, job[3:]))
    assert f"kept the plan of h2dp for '{program}' with 2 processes" in said.out, said.report
    assert kept(store) == [(program, 2)]
    said = store.run(*job)
    parse_mpiio(said)
    assert "following the plan kept for" in said.err and "mover:" not in said.err, said.report
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
    assert "following the plan kept for" in store.run(*job).err


def test_a_damaged_plan_is_nothing_to_other_runs_and_verbs_and_can_be_replaced(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    for words in (["true"], ["true", "2"]):
        keep(store, file, "t1", words, 1)
    names = sorted((store.root / "plans").glob("*.json"))
    whole = names[0].read_text()
    for damage in ("", "{", whole[: len(whole) // 2], whole.replace('"t1"', '"t9"'), None):
        for name in names:
            name.unlink(missing_ok=True)
            if damage is not None:
                name.write_text(damage)
        said = store.run("true")
        assert len(said.err.strip().splitlines()) == 1 and "Traceback" not in said.err, said.report
        assert ("is not followed: " in said.err and "store plan rm" in said.err) or "'t9'" in said.err, said.report
        assert store.run("echo", "x").err == ""
        assert len(kept(store)) == 2
        store.fsck()
    keep(store, file, "t2", ["true"], 1)
    assert "following the plan" in store.run("true").err
    stripewise("store", "plan", "rm", store.root, "true 2")
    assert kept(store) == [("true", 1)] and len(list((store.root / "plans").iterdir())) == 2
    stripewise("store", "plan", "rm", store.root, "true")
    assert not list((store.root / "plans").iterdir())
    relative = {"version": 1, "policy": "by hand", "files": [{"path": "f", "size": MIB, "regions": ON["t1"]}]}
    (store.base / "relative.json").write_text(json.dumps(relative))
    bad = store.base / "bad.json"
    refused = [
        (store.base / "relative.json", ["--application", "true"], "is not absolute"),
        (store.plan(bad, file, [region(8, 64, stripes(("t0", 64)))], MIB), ["--application", "true"], "start"),
    ]
    for plan, words, what in refused:
        failed = stripewise("store", "plan", "add", store.root, plan, *words, code=None)
        assert failed.code != 0 and what in failed.err and "Traceback" not in failed.err, failed.report
    for regions, words, what in [
        ([region(0, 64, stripes(("t9", 64)))], ["--application", "true"], "t9"),
        (ON["t1"], [], "give --application"),
        (ON["t1"], ["--application", " "], "give --application"),
        (ON["t1"], ["--application", "a 'b"], "quote"),
    ]:
        plan = store.plan(bad, file, regions, MIB)
        failed = stripewise("store", "plan", "add", store.root, plan, *words, code=None)
        assert failed.code != 0 and what in failed.err and "Traceback" not in failed.err, failed.report
    assert not kept(store)


def test_a_plan_for_a_target_that_is_gone_is_not_followed(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file, copy = store.data / "f", ("cp", "/etc/passwd")
    keep(store, file, "t1", [*copy, file], 1)
    store.run(*copy, file)
    assert targets_of(store, file) == {"t1"}
    stripewise("store", "drain", store.root, "t1", "--remove")
    said = store.run(*copy, file)
    assert "is not followed: the store has no target 't1' now; plan anew" in said.err, said.report
    assert "mover" not in said.err, said.report
    assert "suspended" in stripewise("store", "plan", "ls", store.root).out
    assert targets_of(store, file) != {"t1"}


def test_a_store_without_plans_says_what_makes_one(make_store: Maker) -> None:
    store = make_store(dirs(2))
    said = stripewise("store", "plan", "ls", store.root).out
    assert said == f"no plans; 'stripewise tune --store {store.root} -- CMD' keeps one for the runs of CMD\n"
    assert json.loads(stripewise("store", "plan", "ls", store.root, "--json").out) == []


def test_a_plan_for_a_draining_target_is_named_by_the_drain_and_followed_again_once_it_is_undone(
    make_store: Maker,
) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file, copy = store.data / "f", ("cp", "/etc/passwd")
    keep(store, file, "t1", [*copy, file], 1)
    store.run(*copy, file)
    told = stripewise("store", "drain", store.root, "t1").err
    assert f"the plan kept for 'cp /etc/passwd {file}' with 1 process names t1, so runs do not follow it" in told, told
    said = store.run(*copy, file).err
    back = f"stripewise store drain {store.root} t1 --undo"
    assert f"t1 is being drained; take it back with '{back}', or plan anew" in said and "STORE" not in said, said
    listed = stripewise("store", "plan", "ls", store.root).out
    assert "is suspended, runs do not follow it: t1 is being drained" in listed and back in listed, listed
    (row,) = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    assert "t1 is being drained" in row["suspended"]
    assert "plan kept" not in stripewise("store", "drain", store.root, "t2").err
    told = [stripewise("store", "drain", store.root, name, "--undo").out for name in ("t1", "t2")]
    assert ["is followed again" in each for each in told] == [True, False], told
    (row,) = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    assert row["suspended"] is None
    assert "is not followed" not in store.run(*copy, file).err and targets_of(store, file) == {"t1"}


def test_a_plan_whose_files_would_only_grow_on_a_draining_target_is_followed(make_store: Maker) -> None:
    store = make_store(dirs(3), regions=ON["t0"])
    file, copy = store.data / "f", ("cp", "/etc/passwd")
    growth = region(1024, 1024, stripes(("t2", 64), ("t0", 64)))
    plan = store.plan(store.base / "p.json", file, [region(0, 1024, stripes(("t1", 64))), growth], MIB)
    stripewise("store", "plan", "add", store.root, plan, "--application", shlex.join([*copy, str(file)]))
    for way in ([], ["--undo"], ["--remove"]):
        assert "plan kept" not in stripewise("store", "drain", store.root, "t2", *way).report, way
        assert "is suspended" not in stripewise("store", "plan", "ls", store.root).out
        store.program("rm", "-f", file)
        store.run(*copy, file)
        [told] = json.loads(stripewise("store", "layout", "--json", file).out)["files"]
        names = [[name for name, _ in each["stripes"]] for each in told["regions"]]
        assert names == [["t1"], ["t2" if way == ["--undo"] else "t1", "t0"]], (way, names)
    assert "names t1, so runs do not follow it" in stripewise("store", "drain", store.root, "t1").err


def test_what_others_change_while_a_plan_is_made_stays(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file = store.data / "f"
    program = (
        "import os, sys, time; open(sys.argv[1], 'wb').write(b'x' * 65536); time.sleep(1); open(sys.argv[1]).read()"
    )
    with subprocess.Popen(
        [
            STRIPEWISE,
            "tune",
            "--store",
            store.root,
            "--baseline",
            "def",
            "--policy",
            "psa",
            "--",
            "python3",
            "-c",
            program,
            file,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as tuning:
        (store.base / "more").mkdir()
        layout = store.base / "l.json"
        layout.write_text(json.dumps({"regions": ON["t1"]}))
        stripewise("store", "add", store.root, "more", "--path", store.base / "more", "--no-calibrate")
        stripewise("store", "template", "add", store.root, f"{store.data}/zz/", "--layout", layout)
        out, _ = tuning.communicate(timeout=120)
    assert tuning.returncode == 0 and "psa" in out
    text = (store.root / "store.toml").read_text()
    assert 'name = "more"' in text and "/zz/" in text
    # The compiled form says the same.
    store.run("dd", "if=/dev/zero", f"of={store.data / 'g'}", "bs=1M", "count=1", "status=none")
    assert "more" in targets_of(store, store.data / "g")


def test_plans_that_are_kept_at_once_are_all_kept(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=ON["t0"])
    plan = store.plan(store.base / "p.json", store.data / "f", ON["t1"], MIB)
    add = [STRIPEWISE, "store", "plan", "add", store.root, plan, "--application"]
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            verbs = [
                stack.enter_context(subprocess.Popen([*add, f"a{n}"], stdout=subprocess.DEVNULL)) for n in range(4)
            ]
        assert [verb.returncode for verb in verbs] == [0] * 4
        assert sorted(kept(store)) == [(f"a{n}", 1) for n in range(4)]
        for number in range(4):
            stripewise("store", "plan", "rm", store.root, f"a{number}")


def test_others_users_runs_are_not_kept_out_by_a_umask(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=ON["t0"], shared=True)
    plan = store.plan(store.base / "p.json", store.data / "f", ON["t1"], MIB)
    add = f"umask 077; {STRIPEWISE} store plan add {store.root} {plan} --application x"
    execute(["sh", "-c", add])
    place = store.root / "plans"
    assert place.stat().st_mode & 0o777 == 0o755
    assert {each.stat().st_mode & 0o777 for each in place.iterdir()} == {0o644}
    assert (store.root / "config.lock").stat().st_mode & 0o777 == 0o600


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


def test_a_run_elsewhere_follows_no_plan_of_other_files(make_store: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    for name in ("a", "b"):
        (store.data / name).mkdir()
        monkeypatch.chdir(store.data / name)
        store.run("cp", "/etc/passwd", "x.dat")
    first, second = (store.data / name / "x.dat" for name in ("a", "b"))
    monkeypatch.chdir(first.parent)
    keep(store, first, "t1", ["cat", "x.dat"], 1)
    monkeypatch.chdir(second.parent)
    said = store.run("cat", "x.dat")
    assert f"with 1 process in {first.parent} is not followed: this run is in {second.parent}" in said.err, said.report
    assert targets_of(store, first) == {"t0"}
    keep(store, second, "t2", ["cat", "x.dat"], 1)
    assert kept(store) == [("cat x.dat", 1)] * 2, "one for each directory"
    for file, target in ((first, "t1"), (second, "t2")):
        monkeypatch.chdir(file.parent)
        for _ in range(30):
            assert f"in {file.parent}" in store.run("cat", "x.dat").err
            if targets_of(store, file) == {target}:
                break
        assert targets_of(store, file) == {target}
    assert str(first.parent) in stripewise("store", "plan", "ls", store.root).out.replace("\n", "")
    stripewise("store", "plan", "rm", store.root, "cat x.dat", "--directory", first.parent)
    assert [row["directory"] for row in json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)] == [
        str(second.parent)
    ]


def test_a_plan_that_is_kept_anew_is_the_one_that_new_files_follow(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=ON["t0"])
    file = store.data / "f"
    copy = ("cp", "/etc/passwd", file)
    for target in ("t1", "t2"):
        keep(store, file, target, copy, 1)
        store.run(*copy)
        assert targets_of(store, file) == {target}
        store.run("rm", file)


def test_regions_move_in_the_windows_of_a_kept_plan(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=ON["t0"])
    file = store.data / "f"
    store.run("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=2", "status=none")
    move = {"file": str(file), "start": 0, "len": MIB, "stripes": stripes(("t1", 64)), "direction": "restripe"}
    plan = {
        "version": 1,
        "policy": "by hand",
        "windows": [{"start_ns": 0, "end_ns": 10**8}, {"start_ns": 10**8, "end_ns": 10**9}],
        "files": [
            {"path": str(file), "size": 2 * MIB, "regions": [*ON["t0"], region(1024, 1024, stripes(("t0", 64)))]}
        ],
        "migrations": [{"window": 1, "moves": [{**move, "gain_s": 2.0, "cost_s": 1.0}]}],
    }
    (store.base / "windows.json").write_text(json.dumps(plan))
    stripewise("store", "plan", "add", store.root, store.base / "windows.json", "--application", "sleep 3")
    stripewise("apply", store.base / "windows.json", "--store", store.root)
    assert targets_of(store, file) == {"t0"}
    said = store.run("sleep", "3")
    assert targets_of(store, file) == {"t0", "t1"}, said.report


def test_what_is_added_while_a_store_is_compiled_for_a_while_is_compiled_after(make_store: Maker) -> None:
    store = make_store(dirs(2), regions=ON["t0"])
    (store.base / "more").mkdir()
    with Opened(store.root).configured() as temporary:
        temporary.default_layout("hservers")
        stripewise("store", "add", store.root, "more", "--path", store.base / "more", "--no-calibrate")
        temporary.default_layout("def")
    assert [row["name"] for row in Opened(store.root).info()["targets"]] == ["t0", "t1", "more"]


#: Keeps a plan, or forgets it, and is killed before its n-th call that changes or opens anything.
KILLED = """
import os, signal, sys
from pathlib import Path
from stripewise.plan import read_plan
from stripewise.store import plans
verb, root, plan, last = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
count = 0
def counted(real):
    def call(*words, **keys):
        global count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words, **keys)
    return call
for name in ("open", "rename", "fsync", "unlink", "fchmod", "mkdir", "chmod"):
    setattr(os, name, counted(getattr(os, name)))
if verb == "keep":
    plans.keep(root, read_plan(plan), plan, "cat /etc/hostname", 1)
else:
    plans.forget(root, "cat /etc/hostname")
"""


@pytest.mark.parametrize("verb", ["keep", "forget"])
def test_a_kill_while_a_plan_is_kept_or_forgotten_leaves_it_or_not(make_store: Maker, verb: str) -> None:
    store = make_store(dirs(2), regions=ON["t0"])
    file = store.data / "f"
    old = store.plan(store.base / "old.json", file, ON["t0"], MIB)
    new = store.plan(store.base / "new.json", file, ON["t1"], MIB)
    add = ("store", "plan", "add", store.root, old, "--application", "cat /etc/hostname")
    for last in range(1, 200, 1 if SOAK else 4):
        stripewise(*add)
        done = execute([sys.executable, "-c", KILLED, verb, store.root, new, str(last)], code=None)
        assert done.code in (0, -signal.SIGKILL), done.report
        said = store.run("cat", "/etc/hostname")
        assert "is not followed" not in said.err, said.report
        assert kept(store) in ([("cat /etc/hostname", 1)], [] if verb == "forget" else None)
        if kept(store):
            plan = read_plan(next((store.root / "plans").glob("*.json")))
            assert {name for each in plan.files[0].regions for name, _ in each.stripes} in ({"t0"}, {"t1"})
        if done.code == 0:
            break
    else:
        raise AssertionError("was killed every time")
