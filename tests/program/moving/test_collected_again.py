"""A trace that is collected once more: how its files lay stays what it was."""

from __future__ import annotations

import json
import time
from typing import Any

from rig import Maker, dirs, stripewise


def read_on(layouts: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d at %H:%M", time.gmtime(layouts["stores"][0]["read_unix_s"]))


def test_layouts_of_a_run_stay_when_its_files_are_laid_out_anew_and_it_is_collected_again(make_store: Maker) -> None:
    made = make_store(dirs(2))
    trace, other = made.base / "trace", made.base / "other"
    for name in ("f", "g"):
        (made.plain / name).write_bytes(bytes(300_000))
        made.run("cp", made.plain / name, made.data / name)
    stripewise("run", "--store", made.root, "--trace", trace, "--", "cat", made.data / "f", made.data / "g")
    stripewise("collect", trace)
    first = json.loads((trace / "layouts.json").read_text())
    stripewise("store", "set-layout", made.data / "f", "--targets", "t1")
    stripewise("collect", trace)
    assert json.loads((trace / "layouts.json").read_text()) == first
    stripewise("collect", trace, "-o", other)
    assert json.loads((other / "layouts.json").read_text()) == first
    # A file that is not recorded lies where it lies now.
    first["stores"][0]["files"] = [each for each in first["stores"][0]["files"] if each["path"].endswith("g")]
    (trace / "layouts.json").write_text(json.dumps(first))
    stripewise("collect", trace)
    files = {
        each["path"]: each["regions"] for each in json.loads((trace / "layouts.json").read_text())["stores"][0]["files"]
    }
    assert {name for name, _ in files[str(made.data / "f")][0]["stripes"]} == {"t1"}
    assert files[str(made.data / "g")] == first["stores"][0]["files"][0]["regions"]
    assert f"as 'collect' found its files on {read_on(first)} UTC:" in stripewise("show", trace).out


def test_a_trace_of_another_run_in_its_place_has_layouts_of_its_own(make_store: Maker) -> None:
    made = make_store(dirs(2))
    (made.plain / "f").write_bytes(bytes(300_000))
    made.run("cp", made.plain / "f", made.data / "f")
    for number in range(2):
        logs = made.base / f"logs{number}"
        stripewise("run", "--store", made.root, "--trace", logs, "--", "cat", made.data / "f")
        stripewise("collect", logs, "-o", made.base / "out")
        stripewise("store", "set-layout", made.data / "f", "--targets", "t1")
    (file,) = json.loads((made.base / "out" / "layouts.json").read_text())["stores"][0]["files"]
    assert {name for name, _ in file["regions"][0]["stripes"]} == {"t1"}


def test_layouts_that_were_lost_are_those_of_the_day_that_is_told(make_store: Maker) -> None:
    made = make_store(dirs(2))
    trace = made.base / "trace"
    (made.plain / "f").write_bytes(bytes(300_000))
    made.run("cp", made.plain / "f", made.data / "f")
    stripewise("run", "--store", made.root, "--trace", trace, "--", "cat", made.data / "f")
    stripewise("collect", trace)
    place = trace / "layouts.json"
    for content, key in (("{}", "version is missing"), ('{"version": 1, "stores": [{}]}', "is missing")):
        place.write_text(content)
        said = stripewise("show", trace, code=None).err
        assert key in said and said.rstrip().endswith("; collect the run anew, or remove this file"), said
    place.unlink()
    stripewise("collect", trace)
    layouts = json.loads(place.read_text())
    assert abs(layouts["stores"][0]["read_unix_s"] - time.time()) < 600
    # One of an earlier version, which does not tell the day.
    layouts["stores"][0].pop("read_unix_s")
    place.write_text(json.dumps(layouts))
    assert "as its files lay when the trace was first collected:" in stripewise("show", trace).out
    stripewise("collect", trace)
    assert json.loads(place.read_text()) == layouts


def test_a_target_that_was_removed_before_the_run_is_none_of_its_targets(make_store: Maker) -> None:
    made = make_store(dirs(3))
    (made.plain / "f").write_bytes(bytes(300_000))
    made.run("cp", made.plain / "f", made.data / "f")
    stripewise("store", "drain", made.root, "t1", "--remove")
    trace = made.base / "trace"
    stripewise("run", "--store", made.root, "--trace", trace, "--", "cat", made.data / "f")
    stripewise("collect", trace)
    (store,) = json.loads((trace / "layouts.json").read_text())["stores"]
    assert [target["name"] for target in store["targets"]] == ["t0", "t2"]
    assert [row["name"] for row in json.loads(stripewise("show", trace, "--json").out)["targets"]] == ["t0", "t2"]
