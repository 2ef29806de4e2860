"""Files whose names are not UTF-8: they are planned, laid out, tuned and told as any other."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from rig import Maker, Store, Target, execute, stripewise

WRITES = """import os, sys
for name in sys.argv[1:]:
    file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    for number in range(16):
        os.pwrite(file, bytes(65536), number * 65536)
"""
#: What Python has for the byte 0xff, and traces.
BAD, SPELLED = "bad\udcff.dat", "bad\\xff.dat"


def store_of_devices(make_store: Maker) -> Store:
    return make_store([Target("h0", "hdd"), Target("h1", "hdd"), Target("s0", "ssd"), Target("s1", "ssd")])


def job(store: Store, *names: str) -> list[str | bytes]:
    return ["python3", "-c", WRITES, *(os.fsencode(store.data / name) for name in names)]


def traced(store: Store, *names: str) -> Path:
    trace = store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", *job(store, *names))
    stripewise("collect", trace)
    return trace


def stripes_of(store: Store, name: str) -> object:
    """The stripes of a file's first region."""
    said = json.loads(stripewise("store", "layout", os.fsencode(store.data / name), "--json").out)
    return said["files"][0]["regions"][0]["stripes"]


def test_such_a_file_is_planned_and_laid_out_as_any_other(make_store: Maker) -> None:
    store = store_of_devices(make_store)
    trace, plan = traced(store, BAD, "one"), store.base / "plan.json"
    stripewise("plan", trace, "--store", store.root, "--policy", "slal", "-o", plan)
    planned = {file["path"]: file for file in json.loads(plan.read_text(encoding="utf-8"))["files"]}
    assert set(planned) == {str(store.data / SPELLED), str(store.data / "one")}
    assert {file["path"]: file["id"] for file in planned.values()} == {
        str(store.data / SPELLED if BAD in str(file["path"]) else file["path"]): file["id"] for file in store.files()
    }
    wanted = planned[str(store.data / SPELLED)]["regions"][0]["stripes"]
    assert stripes_of(store, BAD) != wanted
    stripewise("apply", plan, "--store", store.root, "--anyway")
    assert stripes_of(store, BAD) == wanted
    # A file that is made anew has the layout from its template, in which the byte is any one.
    execute(["rm", os.fsencode(store.data / BAD)], store.environment())
    store.program(*job(store, BAD))
    assert stripes_of(store, BAD) == wanted


def test_a_name_with_the_backslashes_themselves_is_a_file_of_its_own(make_store: Maker) -> None:
    store = store_of_devices(make_store)
    trace = traced(store, SPELLED)
    said = json.loads(stripewise("plan", trace, "--store", store.root, "--policy", "def", "--json").out)
    assert [file["path"] for file in said["layouts"]] == [str(store.data / SPELLED)]
    assert [file["path"] for file in store.files()] == [str(store.data / SPELLED)]


def test_such_a_file_is_tuned_and_drained(make_store: Maker) -> None:
    store = store_of_devices(make_store)
    said = stripewise(
        "tune", "--store", store.root, "--policy", "slal", "--repeat", "1", "--", *job(store, BAD), timeout_s=120
    )
    assert SPELLED in said.out + said.err and "def" in said.out
    stripewise("store", "set-layout", os.fsencode(store.data / BAD), "--targets", "h0")
    stripewise("store", "drain", store.root, "h0")
    assert "h0" not in json.dumps(stripes_of(store, BAD))


def test_verbs_spell_it_alike_and_json_leads_to_it(make_store: Maker) -> None:
    store = store_of_devices(make_store)
    store.program(*job(store, BAD))
    for verb in ("ls", "find"):
        assert f"{store.data}/{SPELLED}" in stripewise("store", verb, store.root).out
        [row] = json.loads(stripewise("store", verb, store.root, "--json").out)
        assert os.path.islink(row["path"])
    assert SPELLED in stripewise("store", "layout", os.fsencode(store.data / BAD)).out


def test_a_command_that_is_told_of_a_name_with_a_newline_can_be_run(make_store: Maker) -> None:
    store = store_of_devices(make_store)
    store.program(*job(store, "new\nline"))
    trace, plan = traced(store, "new\nline"), store.base / "plan.json"
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", plan)
    said = stripewise("apply", plan, "--store", store.root, "--anyway").out
    [command] = [line for line in said.splitlines() if " store template add " in line]
    words = execute(["bash", "-c", f"printf '%s\\0' {command}"]).out.split("\0")[1:-1]
    assert words[-1] == str(store.data / "new\nline") and shlex.split(command)[0] == "stripewise"
    stripewise(*words)
