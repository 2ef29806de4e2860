"""Layout templates (placement.md, end): a plan saved and given to new files, a directory's, and the store's default."""

from __future__ import annotations

import json
import random
import shlex
import sys
from pathlib import Path

from rig import Maker, Store, Target, dirs, region, stripes, stripewise

from stripewise.plan import read_plan
from stripewise.store import Store as Opened
from stripewise.store.config import Rule
from stripewise.store.globs import matches
from stripewise.store.layouts import cycle_layout, save_layout
from stripewise.store.rewrite import changing, write_changed

#: Small requests in the first MiB, large ones in the second: SLAL gives them different stripes.
WRITES = """
import os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for at in range(0, 1 << 20, 4096):
    os.pwrite(f, os.urandom(4096), at)
for at in range(1 << 20, 2 << 20, 1 << 18):
    os.pwrite(f, os.urandom(1 << 18), at)
"""


def held(store: Store) -> dict[str, int]:
    """Bytes of blocks on every target: objects have holes."""
    base = store.base / "targets"
    return {
        target.name: sum(path.stat().st_blocks * 512 for path in (base / target.name).rglob("*") if path.is_file())
        for target in store.targets
    }


def grown(store: Store, path: Path, source: Path) -> dict[str, int]:
    """What a real program's copy of `source` to the new file `path` adds to every target."""
    before = held(store)
    path.parent.mkdir(exist_ok=True, parents=True)
    store.run("cp", source, path)
    assert store.run("cmp", source, path).code == 0
    after = held(store)
    return {name: after[name] - before[name] for name in after if after[name] > before[name]}


def template(store: Store, glob: str, target: str) -> None:
    """New files that match lie on one target."""
    layout = store.base / f"{target}.json"
    layout.write_text(json.dumps({"regions": [region(0, 64, stripes((target, 64)))]}))
    stripewise("store", "template", "add", store.root, glob, "--layout", layout)


def test_a_file_takes_its_own_template_else_its_directorys_else_the_default(make_store: Maker) -> None:
    store = make_store(dirs(4), regions=[region(0, 64, stripes(("t0", 64)))])
    source = store.plain / "source"
    source.write_bytes(b"x" * 65536)
    template(store, f"{store.data}/*.h5", "t1")
    template(store, f"{store.data}/run/deep/", "t2")
    # Added last, it says least.
    template(store, f"{store.data}/run/", "t3")
    for name, target in [
        ("plain", "t0"),
        ("a.h5", "t1"),
        ("run/plain", "t3"),
        ("run/below/plain", "t3"),
        ("run/deep/plain", "t2"),
    ]:
        assert grown(store, store.data / name, source) == {target: 65536}, name


def test_a_slal_plan_is_the_layout_of_a_directorys_new_files(make_store: Maker) -> None:
    store = make_store(dirs(3))
    first, trace = store.data / "first", store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", sys.executable, "-c", WRITES, first)
    stripewise("collect", trace)
    saved = store.base / "plan.json"
    options = ("--store", store.root, "--policy", "slal", "--region-size", "512KiB", "-o", saved)
    stripewise("plan", trace, *options)
    plan = read_plan(saved)
    widths = [region.stripes[0][1] for region in plan.files[0].regions]
    assert len(plan.files[0].regions) >= 3 and widths[0] != widths[1]
    stripewise("store", "template", "add", store.root, f"{store.data}/next/", "--layout", saved)
    source = store.plain / "source"
    source.write_bytes(bytes(range(256)) * (2 << 12))
    assert grown(store, store.data / "next" / "second", source) == plan.bytes_per_target()
    store.fsck()


def test_a_template_takes_the_same_words_for_a_layout_as_set_layout(make_store: Maker) -> None:
    store = make_store(dirs(3))
    source = store.plain / "source"
    source.write_bytes(b"x" * (256 << 10))
    add = ("store", "template", "add", store.root)
    stripewise(*add, f"{store.data}/wide/", "--stripe-size", "128KiB", "--targets", "t2,t0")
    assert grown(store, store.data / "wide" / "f", source) == {"t2": 128 << 10, "t0": 128 << 10}
    stripewise(*add, f"{store.data}/uneven/", "--stripe", "t1=192KiB", "--stripe", "t0=64KiB")
    assert grown(store, store.data / "uneven" / "f", source) == {"t1": 192 << 10, "t0": 64 << 10}
    stripewise(*add, f"{store.data}/alike/", "--like", store.data / "uneven" / "f")
    assert grown(store, store.data / "alike" / "f", source) == {"t1": 192 << 10, "t0": 64 << 10}
    for words in ((), ("--layout", "def", "--stripe-size", "1MiB"), ("--stripe-size", "1MiB", "--targets", "t9")):
        refused = stripewise(*add, f"{store.data}/x/", *words, code=None)
        assert refused.code in (1, 2) and refused.err.count("\n") == 1, refused.report
    rules = json.loads(stripewise("store", "template", "ls", store.root, "--json").out)
    assert not any("/x/" in rule["glob"] for rule in rules)


def test_a_template_that_takes_anothers_place_says_which_layout_that_was(make_store: Maker) -> None:
    store = make_store(dirs(3))
    add = ("store", "template", "add", store.root)
    assert "replaced" not in stripewise(*add, f"{store.data}/*.h5", "--stripe-size", "128KiB", "--targets", "t2,t0").out
    said = stripewise(*add, f"{store.data}/*.h5", "--stripe-size", "1MiB", "--targets", "t1").out
    assert f"replaced the template of {store.data}/*.h5, which was: 128KiB on t2 t0\n" in said
    said = stripewise(*add, f"{store.data}/*.h5", "--stripe-size", "1MiB", "--targets", "t1").out
    assert "which was: the same layout\n" in said
    several = store.base / "several.json"
    rows = [region(0, 64, stripes(("t0", 64))), region(64, 64, stripes(("t1", 64)))]
    several.write_text(json.dumps({"regions": rows}))
    stripewise(*add, f"{store.data}/*.h5", "--layout", several)
    said = stripewise(*add, f"{store.data}/*.h5", "--layout", "def").out
    assert "which was: whole on t0 in the first 64.0 KiB, and 1 further region(s)\n" in said


def test_a_template_is_answered_by_its_layout_and_how_it_is_shown_and_removed(make_store: Maker) -> None:
    store = make_store(dirs(3))
    assert "no templates" in stripewise("store", "template", "ls", store.root).out
    glob = f"{store.data}/*.h5"
    said = stripewise("store", "template", "add", store.root, glob, "--stripe-size", "1MiB", "--targets", "t1,t2").out
    first, show, remove = said.splitlines()
    assert first == f"new files matching {glob} are laid out as: 1MiB on t1 t2"
    assert show == f"show all templates: stripewise store template ls {store.root}"
    assert remove == f"remove this one: stripewise store template rm {store.root} '{glob}'"
    stripewise(*shlex.split(remove.partition(": stripewise ")[2]))
    assert "no templates" in stripewise("store", "template", "ls", store.root).out


def test_files_that_are_there_keep_their_layout_and_a_template_says_so(make_store: Maker) -> None:
    store = make_store(dirs(3))
    glob, words = f"{store.data}/*.h5", ("--stripe-size", "1MiB", "--targets", "t1,t2")
    for name in ("a.h5", "b.h5", "gone.h5", "other"):
        store.run("cp", "/etc/passwd", store.data / name)
    # What has lost its name is no file that a program opens.
    (store.data / "gone.h5").unlink()
    before = stripewise("store", "layout", store.data / "a.h5").out
    said = stripewise("store", "template", "add", store.root, glob, *words).out
    assert "2 file(s) that are there and match keep their layout, also where a program opens them anew" in said, said
    store.run("cp", "/etc/group", store.data / "a.h5")
    after = stripewise("store", "layout", store.data / "a.h5").out
    assert "1MiB on" not in before + after, after
    assert "'set-layout' with the same options changes it\n" in said
    stripewise("store", "set-layout", store.data / "a.h5", *words)
    assert "1MiB on t1 t2" in stripewise("store", "layout", store.data / "a.h5").out
    assert "file(s)" not in stripewise("store", "template", "add", store.root, f"{store.data}/*.x", *words).out


def test_templates_are_listed_with_their_stripes_and_targets(make_store: Maker) -> None:
    store = make_store(dirs(3))
    words = ("--stripe-size", "1MiB", "--targets", "t0,t2")
    stripewise("store", "template", "add", store.root, store.data / "x*", *words)
    listed = stripewise("store", "template", "ls", store.root).out
    assert "1MiB on t0 t2" in listed and "layouts/" not in listed, listed


def test_a_template_on_a_small_target_is_warned_of_when_it_is_added_and_when_it_is_listed(make_store: Maker) -> None:
    store = make_store([*dirs(2), Target("s0", "ssd", capacity_bytes=4 << 20)])
    add = ("store", "template", "add", store.root)
    stripewise(*add, f"{store.data}/cold-*", "--stripe-size", "64KiB", "--targets", "t0,t1")
    room = "target s0 has room for 4.0 MiB; such a file that needs more of it ends with 'no space'"
    added = stripewise(*add, f"{store.data}/hot-*", "--stripe-size", "64KiB", "--targets", "s0").err
    assert added.startswith(f"warning: {room}")
    listed = stripewise("store", "template", "ls", store.root).err
    assert listed.count("\n") == 1 and listed.startswith(f"warning: {store.data}/hot-*: {room}"), listed
    # Beside targets of much more room it gets nothing, or little, of a file, and none ends with 'no space' for it.
    wide = stripewise(*add, f"{store.data}/wide-*", "--stripe-size", "64KiB", "--targets", "t0,s0").err
    assert "no space" not in wide and wide.rstrip().endswith("one that is made now: 64KiB on t0"), wide
    store.program("dd", "if=/dev/zero", f"of={store.data}/wide-1", "bs=1M", "count=8")
    assert "64KiB on t0" in stripewise("store", "layout", store.data / "wide-1").out


def test_a_plan_of_several_files_is_refused_as_a_template_with_the_two_ways_there_are(make_store: Maker) -> None:
    store = make_store(dirs(3))
    first, second, trace = store.data / "first", store.data / "second", store.base / "trace"
    words = ("sh", "-c", 'for f in "$@"; do python3 -c "$0" "$f"; done', WRITES, first, second)
    stripewise("run", "--store", store.root, "--trace", trace, "--", *words)
    stripewise("collect", trace)
    saved = store.base / "plan.json"
    stripewise("plan", trace, "--store", store.root, "--policy", "psa", "-o", saved)
    told = stripewise("store", "template", "add", store.root, f"{store.data}/new/", "--layout", saved, code=1).err
    assert "is a plan of 2 files, a layout comes from a plan of one" in told, told
    assert f"stripewise apply {saved} --store {store.root}; after that --like {store.data}/" in told, told
    stripewise("apply", saved, "--store", store.root, "--anyway")
    like = told.split("--like ")[1].split(",")[0]
    stripewise("store", "template", "add", store.root, f"{store.data}/new/", "--like", like)


def test_random_globs_mean_the_same_paths_in_a_program_and_to_the_verbs(make_store: Maker) -> None:
    """store/globs.py says in Python what crates/store, names.rs, says to programs."""
    store = make_store(dirs(2))
    chance, pairs = random.Random(11), []
    for number in range(300):
        name = "".join(chance.choices("ab-]!/", (6, 6, 1, 1, 1, 2), k=chance.randint(1, 3))).strip("/") or "a"
        glob = "".join(
            chance.choices(
                ("a", "b", "*", "**", "**/", "?", "[ab]", "[!a]", "[]-a]", "\\a", "/"), k=chance.randint(1, 3)
            )
        )
        if "//" not in glob and "//" not in name and "***" not in glob:
            pairs.append((f"{store.data}/{number}/{glob}", store.data / str(number) / name))
    with changing(store.root) as config:
        saved = save_layout(config, "x", cycle_layout((("t1", 65536),), config, "x"))
        rules = [Rule(glob, "manage", saved) for glob, _ in pairs]
        write_changed(config, config.with_rules([*rules, *config.rules]))
    Opened(store.root)
    paths = [path for _, path in pairs]
    make = "import os, sys\nfor path in sys.argv[1:]:\n    os.makedirs(os.path.dirname(path), exist_ok=True)\n"
    store.program("python3", "-c", make + "    open(path, 'w').write('x')\n", *paths)
    placed = json.loads(stripewise("store", "layout", *paths, "--json").out)["files"]
    seen = {row["path"]: row["regions"][0]["stripes"] == [["t1", 65536]] for row in placed}
    said = {str(path): matches(glob, str(path)) for glob, path in pairs}
    assert [(glob, path) for glob, path in pairs if seen[str(path)] != said[str(path)]] == []
    assert 20 < sum(said.values()) < len(pairs) - 20


def test_a_template_elsewhere_says_that_files_there_go_into_the_store(make_store: Maker) -> None:
    store = make_store(dirs(2))
    place = store.base / "else"
    place.mkdir()
    said = stripewise("store", "template", "add", store.root, f"{place}/", "--targets", "t1").out
    assert f"they stayed plain files until now: new ones matching {place}/** go into the store by it" in said, said
    for where in (f"{place}/", f"{store.data}/*.h5"):
        said = stripewise("store", "template", "add", store.root, where, "--targets", "t0").out
        assert "stayed plain" not in said, said
