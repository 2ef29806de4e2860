"""A planned file that the program makes anew in every run keeps its planned layout: `apply` leaves a template."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rig import Maker, Result, Store, Target, dirs, stripewise

#: Makes its file anew as IOR (unlink, O_CREAT), as a checkpoint (O_TRUNC), and by a rename into place.
WRITER = """
import os, sys
where, number = sys.argv[1], sys.argv[2]
for name, flags in ((f"ckpt-{number}.bin", os.O_TRUNC), ("shared.bin", 0), ("part.tmp", os.O_EXCL)):
    path = f"{where}/{name}"
    if name == "shared.bin" and os.path.exists(path):
        os.unlink(path)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    for at in range(0, 4 << 20, 65536):
        os.pwrite(fd, bytes(65536), at)
    os.close(fd)
os.rename(f"{where}/part.tmp", f"{where}/done.bin")
"""
DISK, SSD = {"startup_s": 5e-4, "per_byte_s": 1e-8}, {"startup_s": 5e-5, "per_byte_s": 1e-9}


def write(store: Store, number: str, *options: str | Path) -> None:
    command = [sys.executable, "-c", WRITER, store.data, number]
    stripewise("run", "--store", store.root, "--manage", f"{store.data}/**", *options, "--", *command)


def layouts(*files: Path) -> dict[str, object]:
    told = json.loads(stripewise("store", "layout", *files, "--json").out)["files"]
    return {Path(each["path"]).name: [region["stripes"] for region in each["regions"]] for each in told}


def test_new_files_are_laid_out_as_planned(make_store: Maker) -> None:
    store = make_store([Target("h0", "hdd", "emulated", **DISK), Target("s0", "ssd", "emulated", **SSD)])
    trace, plan = store.base / "trace", store.base / "plan.json"
    for number in ("1", "2"):
        write(store, number, *(("--trace", trace) if number == "2" else ()))
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "-o", plan)
    planned = {Path(file["path"]).name: file for file in json.loads(plan.read_text())["files"]}
    made = {name: Path(file["made_as"]).name for name, file in planned.items()}
    assert made == {"ckpt-2.bin": "ckpt-[0-9]*.bin", "shared.bin": "shared.bin", "done.bin": "part.tmp"}
    said = stripewise("apply", plan, "--store", store.root).out
    assert f"new files matching {store.data}/part.tmp" in said and "template rm" in said
    write(store, "2")
    files = [store.data / name for name in planned]
    assert layouts(*files) == {
        name: [region["stripes"] for region in file["regions"]] for name, file in planned.items()
    }
    assert len(stripewise("store", "template", "ls", store.root).out.splitlines()) >= 3


#: Opens as MPI-IO and `>>` do, neither truncating nor exclusively.
OPENER = """
import os, sys
for path in sys.argv[1:]:
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    for at in range(0, 2 << 20, 65536):
        os.pwrite(fd, bytes(65536), at)
    os.close(fd)
"""


def test_the_first_run_that_creates_its_files_is_enough(make_store: Maker) -> None:
    store = make_store([Target("h0", "hdd", "emulated", **DISK), Target("s0", "ssd", "emulated", **SSD)])
    files = [store.data / name for name in ("ckpt-1", "ckpt-2", "there", "new")]
    manage = ("--store", store.root, "--manage", f"{store.data}/**")
    stripewise("run", *manage, "--", sys.executable, "-c", OPENER, files[2])
    trace, plan = store.base / "trace", store.base / "plan.json"
    stripewise("run", *manage, "--trace", trace, "--", sys.executable, "-c", OPENER, *files, *files[:1])
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "-o", plan)
    made = {Path(file["path"]).name: file.get("made_as") for file in json.loads(plan.read_text())["files"]}
    series = f"{store.data}/ckpt-[0-9]*"
    assert series in (made["ckpt-1"], made["ckpt-2"]), made
    assert (made["there"], made["new"]) == (None, f"{store.data}/new")
    said = stripewise("apply", plan, "--store", store.root, "--anyway").out
    assert f"new files matching {series} are laid out" in said and f"no template for {files[2]}: by its trace" in said
    later = store.data / "ckpt-3"
    stripewise("run", "--store", store.root, "--", sys.executable, "-c", OPENER, later)
    assert layouts(later)["ckpt-3"] == layouts(files[0])["ckpt-1"]


@pytest.mark.parametrize("managed", [True, False])
def test_a_trace_tells_which_opens_created_their_file(make_store: Maker, managed: bool) -> None:
    store = make_store(dirs(1))
    manage = ("--store", store.root, "--manage", f"{store.data}/**") if managed else ()
    there = store.data / "there"
    if managed:
        stripewise("run", *manage, "--", "touch", there)
    else:
        there.touch()
    trace, quoted = store.base / "trace", shlex.quote(str(store.data))
    script = (
        f"cd {quoted}; echo a >> append; echo b >> append; echo c > trunc; echo d > trunc; echo e >> there; "
        "set -C; echo f > excl; (echo g > excl) 2> /dev/null; ln -s behind link; echo h >> link"
    )
    stripewise("run", *manage, "--trace", trace, "--", "sh", "-c", f"({script}) 2> /dev/null || true")
    stripewise("collect", trace)
    rows = pq.read_table(trace / "trace.parquet", columns=["op", "file", "flags"]).to_pylist()
    told: dict[str, list[bool]] = {}
    for row in rows:
        if row["op"] == "open" and (row["file"] or "").startswith(f"{store.data}/"):
            told.setdefault(Path(row["file"]).name, []).append(bool(row["flags"] & 16384))
    assert told["append"] == told["trunc"] == [True, False] and told["there"] == [False]
    assert told["excl"][0] and not any(told["excl"][1:]) and told["link"] == [True]


def test_no_templates_where_they_are_not_wanted_or_nothing_was_made(make_store: Maker) -> None:
    store = make_store([Target("h0", "hdd", "emulated", **DISK), Target("s0", "ssd", "emulated", **SSD)])
    write(store, "1")
    trace, plan = store.base / "trace", store.base / "plan.json"
    read = "import sys; print(len(open(sys.argv[1], 'rb').read()))"
    store.program(sys.executable, "-c", read, store.data / "shared.bin")
    stripewise(
        "run", "--store", store.root, "--trace", trace, "--", sys.executable, "-c", read, store.data / "shared.bin"
    )
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "-o", plan)
    assert "made_as" not in plan.read_text()
    said = stripewise("apply", plan, "--store", store.root, "--anyway").out
    command = f"stripewise store template add {store.root} {store.data}/shared.bin --like {store.data}/shared.bin"
    assert f"no template for {store.data}/shared.bin" in " ".join(said.split()) and f"  {command}\n" in said, said
    stripewise("apply", plan, "--store", store.root, "--anyway", "--no-templates")
    decided = json.loads(plan.read_text())
    decided["files"][0]["made_as"] = f"{store.data}/sha*"
    plan.write_text(json.dumps(decided))
    assert (
        json.loads(stripewise("apply", plan, "--store", store.root, "--no-templates", "--json").out)["templates"] == []
    )
    decided["files"][0]["made_as"] = "sha*"
    plan.write_text(json.dumps(decided))
    said = stripewise("apply", plan, "--store", store.root, code=1)
    assert "files[0].made_as" in said.err and "begin it with /" in said.err


@pytest.mark.parametrize("why", ["not UTF-8", "rule]] tables are more than 1024"])
def test_no_file_is_moved_where_no_template_can_be_added(make_store: Maker, why: str) -> None:
    store = make_store(dirs(2))
    file, plan = store.data / "f", store.base / "plan.json"
    store.run("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=1")
    region = {"start": 0, "len": 1 << 20, "stripes": [["t1", 65536]]}
    made_as = f"{store.data}/" + ("\udcff" if why == "not UTF-8" else "f")
    planned = {"path": str(file), "size": 1 << 20, "made_as": made_as, "regions": [region]}
    keys = {"options": {}, "application": {}, "windows": [], "target_bytes": {}, "expected": {}}
    plan.write_text(json.dumps({"version": 1, "policy": "hand", "files": [planned], **keys}))
    if why != "not UTF-8":
        with (store.root / "store.toml").open("a+") as config:
            config.seek(0)
            free = 1024 - config.read().count("[[rule]]")
            config.write("".join(f'\n[[rule]]\nglob = "/nowhere/{number}"\n' for number in range(free)))
    before = layouts(file)
    said = stripewise("apply", plan, "--store", store.root, code=1)
    assert said.err.startswith(f"stripewise: {plan}: no templates can be added") and why in said.err, said.report
    assert "--no-templates" in said.err and said.err.count("\n") == 1
    assert layouts(file) == before
    stripewise("apply", plan, "--store", store.root, "--no-templates")
    assert layouts(file)["f"][0] == [["t1", 65536]]  # type: ignore[index]


def test_a_template_of_an_odd_glob_is_listed_on_its_line(make_store: Maker) -> None:
    store = make_store(dirs(1))
    layout = store.base / "one.json"
    layout.write_text(json.dumps({"regions": [{"start": 0, "len": 1 << 20, "stripes": [["t0", 65536]]}]}))
    said = stripewise("store", "template", "add", store.root, f"{store.data}/a\n\x1b*", "--layout", layout).out
    listed = stripewise("store", "template", "ls", store.root).out
    for text in (said, listed):
        assert r"a\n\x1b*" in text and "\x1b" not in text, text


@pytest.mark.parametrize("how", ["unlink", "rename"])
def test_names_that_calls_give_are_of_the_run_s_directory(
    make_store: Maker, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What removes or renames a file opens nothing: its trace has the path that the program gave."""
    store = make_store([Target("h0", "hdd", "emulated", **DISK), Target("s0", "ssd", "emulated", **SSD)])
    made = "a.dat" if how == "unlink" else "part"
    monkeypatch.chdir(store.data)
    program = (
        "import os, sys\n"
        "if sys.argv[1] == 'unlink' and os.path.lexists('a.dat'): os.unlink('a.dat')\n"
        "f = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)\n"
        "os.pwrite(f, bytes(1 << 20), 0)\n"
        "if sys.argv[1] == 'rename': os.rename('part', 'a.dat')\n"
        "for k in range(16): os.pread(f, 65536, k * 7 % 16 * 65536)\n"
    )
    command = [sys.executable, "-c", program, how, made]
    trace, plan = store.base / "trace", store.base / "plan.json"
    for options in ((), ("--trace", trace)):
        words = ["run", "--store", store.root, "--manage", f"{store.data}/**", *options, "--", *command]
        stripewise(*words)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", plan)
    assert (
        f"new files matching {store.data}/{made} are laid out"
        in stripewise("apply", plan, "--store", store.root, "--anyway").out
    )


#: Removes earlier files of its series, and makes one under the name that it is told.
SERIES = """
import glob, os, sys
where = sys.argv[1]
for old in glob.glob(f"{where}/ckpt-*"):
    os.unlink(old)
for made in (f"{where}/{open(sys.argv[2]).read()}", *sys.argv[3:]):
    fd = os.open(made, os.O_CREAT | os.O_RDWR, 0o644)
    os.pwrite(fd, bytes(1 << 20), 0)
    for at in range(0, 1 << 20, 65536):
        os.pread(fd, 65536, at)
    os.close(fd)
"""


def keep_of_run(store: Store, name: str, *others: Path) -> Result:
    """Traces a run that makes a file of that name, and others, and keeps its plan."""
    trace, plan, told = (store.base / each for each in (f"trace-{name}", f"{name}.json", "name"))
    told.write_text(name)
    command = [sys.executable, "-c", SERIES, store.data, told, *others]
    stripewise("run", "--store", store.root, "--manage", f"{store.data}/**", "--trace", trace, "--", *command)
    stripewise("collect", trace)
    return stripewise("plan", trace, "--store", store.root, "--policy", "def", "--keep", "-o", plan)


def test_no_plan_is_kept_of_files_whose_names_change_from_run_to_run(make_store: Maker) -> None:
    store = make_store(dirs(2))
    # Of one name nobody knows whether it changes.
    assert "kept for" in keep_of_run(store, "ckpt-7").out
    said = keep_of_run(store, "ckpt-8")
    assert "no plan is kept: later runs have other files than those traced; 'stripewise apply " in said.err, said.report
    assert "leaves templates, which lay new ones out" in said.err and "kept for" not in said.out, said.report
    assert "forgot the plan kept for" in said.err
    assert "no plans; " in stripewise("store", "plan", "ls", store.root).out
    # The others of a run are in its plan as ever.
    said = keep_of_run(store, "ckpt-9", store.data / "same")
    assert f"kept without {store.data}/ckpt-9: later runs have others in their place; 'stripewise apply" in said.err
    (row,) = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    assert [file["path"] for file in json.loads(Path(row["plan"]).read_text())["files"]] == [f"{store.data}/same"]


def test_tomorrow_s_names_match_the_template_of_a_name_with_the_day_of_its_run(make_store: Maker) -> None:
    store = make_store(dirs(2))
    name = time.strftime("run_%Y%m%d-%H%M%S.h5")
    assert "no plan is kept: later runs have other files than those traced; " in keep_of_run(store, name).err
    said = stripewise("apply", store.base / f"{name}.json", "--store", store.root, "--anyway").out
    assert f"new files matching {store.data}/run_[0-9]*-[0-9]*.h5 are laid out" in said, said
