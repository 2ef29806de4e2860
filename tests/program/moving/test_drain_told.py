"""What a drain says that cannot go on, and one that is taken back."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from rig import STRIPEWISE, Maker, Store, Target, dirs, stripewise

from stripewise.cli.store.targets import TEMPLATES_SHOWN
from stripewise.layout import Region
from stripewise.moving import plan_applier
from stripewise.store import Store as Opened

MIB = 1 << 20
UNDO = ("store", "drain", "--undo")
IN_THE_WAY = "the region at byte 4194304 fits its targets, but no target has room to keep it while it moves; free some"


def test_files_with_a_layout_of_their_own_stay_where_a_drain_put_them_and_are_told(make_store: Maker) -> None:
    store = make_store(dirs(3))
    own, other = store.data / "own", store.data / "other"
    for path in (own, other):
        store.program("dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=2")
    stripewise("store", "set-layout", own, "--stripe-size", "1MiB", "--targets", "t0,t1")
    stripewise("store", "drain", store.root, "t0")
    said = stripewise("store", "drain", store.root, "t0", "--undo").out
    assert "1 file(s) that set-layout, a template or a plan laid out, and that a drain of this" in said, said
    assert f"set-layout {own} --layout def;" in said, said
    stripewise("store", "set-layout", own, "--stripe-size", "1MiB", "--targets", "t0,t1")
    stripewise("store", "drain", store.root, "t2")
    assert "set-layout or a plan" not in stripewise("store", "drain", store.root, "t1", "--undo").out


def template(store: Store, glob: str, targets: str) -> None:
    stripewise("store", "template", "add", store.root, store.data / glob, "--stripe-size", "1MiB", "--targets", targets)


def test_templates_that_a_drain_lays_out_otherwise_are_told_and_so_is_that_they_come_back(make_store: Maker) -> None:
    store = make_store(dirs(3))
    template(store, "*.h5", "t0,t1")
    template(store, "*.x", "t1,t2")
    drained = stripewise("store", "drain", store.root, "t0")
    said = f"new files matching {store.data}/*.h5 are laid out without t0 from now on: 1MiB on t2 t1; --undo gives them"
    assert said in drained.err and "*.x" not in drained.err, drained.report
    # A target that stands in for it is drained as well, and comes back.
    further = stripewise("store", "drain", store.root, "t2").err
    assert "*.h5 are laid out without t2 from now on: 1MiB on t1; " in further and "*.x are laid" in further, further
    assert "*.h5 are laid out with t2 again: 1MiB on t2 t1\n" in stripewise(*UNDO, store.root, "t2").out
    back = stripewise(*UNDO, store.root, "t0").out
    assert f"new files matching {store.data}/*.h5 are laid out with t0 again: 1MiB on t0 t1\n" in back, back
    assert "*.x" not in back, back
    gone = stripewise("store", "drain", store.root, "t0", "--remove").err
    assert "*.h5 are laid out without t0 from now on: 1MiB on t2 t1\n" in gone and "--undo" not in gone, gone


def test_of_many_templates_that_a_drain_lays_out_otherwise_the_others_are_counted(make_store: Maker) -> None:
    store = make_store(dirs(2))
    for number in range(TEMPLATES_SHOWN + 2):
        template(store, f"*.{number}", "t0")
    said = stripewise("store", "drain", store.root, "t0").err
    assert said.count("are laid out without t0") == TEMPLATES_SHOWN, said
    assert f"and those of 2 more templates; see 'stripewise store template ls {store.root}'" in said, said


def test_a_region_in_its_own_way_tells_how_much_room_is_missing_and_where(
    make_store: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Opened(make_store(dirs(2)).root)
    monkeypatch.setattr(plan_applier, "room_bytes", lambda _: {"t0": MIB, "t1": 3 * MIB})
    regions = (Region(0, 4 * MIB, (("t0", 65536),)), Region(4 * MIB, 64 * MIB, (("t1", 65536),)))
    said = plan_applier.missing_room(store, IN_THE_WAY, regions, 12 * MIB)
    assert said == "It needs 8.0 MiB on one target; t1 has most, 3.0 MiB: 5.0 MiB are missing", said
    assert plan_applier.missing_room(store, "is gone", regions, 12 * MIB) == ""


def test_a_plan_that_names_a_removed_target_is_simulated_and_told_and_the_target_counts_no_more(
    make_store: Maker,
) -> None:
    store = make_store([Target(f"t{number}", kind="emulated") for number in range(3)])
    file, trace, plan = store.data / "f", store.base / "trace", store.base / "p.json"
    store.program("dd", "if=/dev/zero", f"of={file}", "bs=64k", "count=20", "status=none")
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", file)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", plan)
    words = ("simulate", "--plan", plan, "--trace", trace, "--cluster", store.root)
    assert "names t1" not in stripewise(*words).err
    assert "3 target(s)" in stripewise("doctor", "--store", store.root, code=None).out
    stripewise("store", "drain", store.root, "t1", "--remove")
    said = stripewise(*words).err
    assert f"{plan}: names t1, where {store.root}/store.toml takes no new data, so it cannot be applied" in said, said
    assert "2 target(s)" in stripewise("doctor", "--store", store.root, code=None).out


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("when", [3, 4])
def test_a_drain_goes_on_with_the_same_command_wherever_it_was_killed(make_store: Maker, when: int) -> None:
    store = make_store([Target(f"t{number}", kind="emulated") for number in range(6)])
    files = [store.data / name for name in "fgh"]
    for file in files:
        store.program("sh", "-c", 'head -c 4000001 /dev/urandom >"$0"', file)
    new = store.base / "new"
    new.mkdir()
    stripewise("store", "add", store.root, "y1", "--path", new, "--like", "t5")
    stripewise("store", "rebalance", store.root)
    before = store.program("md5sum", *files).out
    kill = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlinkat"]
    kill += [f"--inject=unlinkat:signal=KILL:when={when}"]
    words = ("store", "drain", store.root, "y1", "--remove")
    assert subprocess.run([*kill, STRIPEWISE, *words], capture_output=True).returncode
    said = stripewise(*words)
    assert "without y1 now" in said.out and "gone" not in said.out, said.report
    assert store.program("md5sum", *files).out == before and store.fsck().out == f"{store.root}: sound\n"
