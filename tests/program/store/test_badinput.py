"""Bad and odd input: one clear error where it is an error, right behaviour where it is not.

Every error is one line on standard error that names what is wrong, and exit status 1 or 2; never a traceback.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import MPIIO, NATIVE, UNEVEN, Maker, Result, Store, Target, create_store, dirs, execute, is_managed, stripewise

GOOD = Target("t0").toml(Path("targets"))


def one_clear_error(result: Result, *words: str) -> None:
    """One line that holds all the words."""
    lines = [line for line in result.err.splitlines() if line.strip()]
    assert result.code in (1, 2), result.report
    assert len(lines) == 1 and "Traceback" not in result.err and "internal error" not in result.err, result.report
    for word in words:
        assert word in lines[0], f"'{word}' is not in: {lines[0]}"


BROKEN_CLUSTERS = {
    "not toml": ("[[target\n", ["not TOML"]),
    "empty": ("", ["no [[target]]"]),
    "unknown key": (GOOD + "colour = 3\n", ["colour"]),
    "no name": (GOOD.replace('name = "t0"\n', ""), ["name"]),
    "unknown class": (GOOD.replace('"hdd"', '"tape"'), ["class", "tape"]),
    "text for a number": (GOOD.replace("capacity_bytes = 0", 'capacity_bytes = "much"'), ["capacity_bytes"]),
    "negative time": (GOOD.replace("startup_read_s = 0.0", "startup_read_s = -1.0"), ["startup_read_s"]),
    "not a number": (GOOD.replace("startup_read_s = 0.0", "startup_read_s = nan"), ["startup_read_s"]),
    "two of a name": (GOOD + GOOD, ["t0"]),
    "newer version": ("version = 99\n" + GOOD, ["99", "newer"]),
}


@pytest.mark.parametrize("kind", BROKEN_CLUSTERS)
def test_a_broken_cluster_is_named(scratch: Path, kind: str) -> None:
    text, words = BROKEN_CLUSTERS[kind]
    (scratch / "targets" / "t0").mkdir(parents=True)
    cluster = scratch / "cluster.toml"
    cluster.write_text(text)
    one_clear_error(
        stripewise("store", "create", scratch / "store", "--cluster", cluster, code=None), str(cluster), *words
    )
    assert not (scratch / "store").exists(), "half a store is left"


def test_a_store_at_a_path_that_is_too_long_is_refused(scratch: Path) -> None:
    (scratch / "t0").mkdir()
    (scratch / "cluster.toml").write_text(Target("t0").toml(scratch))
    deep = scratch.joinpath(*["d" * 200] * 5)
    result = stripewise("store", "create", deep, "--cluster", scratch / "cluster.toml", code=1)
    one_clear_error(result, "the store", "at most 1024")
    assert not deep.exists()


def test_a_cluster_that_is_not_utf8_is_named(scratch: Path) -> None:
    (scratch / "c.toml").write_bytes(b'name = "\xff"\n')
    one_clear_error(
        stripewise("store", "create", scratch / "s", "--cluster", scratch / "c.toml", code=None), "c.toml", "UTF-8"
    )
    one_clear_error(
        stripewise("store", "create", scratch / "s", "--cluster", scratch / "none.toml", code=None), "none.toml"
    )


def write(store: Store, name: str | bytes, size: int = 100_000) -> bytes:
    """A managed file of random bytes."""
    content = os.urandom(size)
    (store.base / "source").write_bytes(content)
    path = os.fsencode(store.data) + b"/" + os.fsencode(name)
    store.program("dd", f"if={store.base / 'source'}", b"of=" + path, "bs=64K")
    return content


def read(store: Store, name: str | bytes) -> bytes:
    path = os.fsencode(store.data) + b"/" + os.fsencode(name)
    store.program("dd", b"if=" + path, f"of={store.base / 'sink'}", "bs=64K")
    return (store.base / "sink").read_bytes()


def test_a_plan_for_another_file_is_refused(make_store: Maker) -> None:
    store = make_store(dirs(3), regions=UNEVEN)
    content = write(store, "f")
    (store.plain / "g").write_bytes(b"plain")
    for other in (store.data / "missing", store.plain / "g"):
        plan = store.plan(store.base / "plan.json", other, UNEVEN, 5)
        one_clear_error(stripewise("apply", plan, "--store", store.root, code=None), "plan.json", str(other))
    assert read(store, "f") == content


BROKEN_PLANS = {
    "not json": ("{", ["JSON"]),
    "a list": ("[]", []),
    "no files": ('{"version": 1, "policy": "x", "files": []}', ["files"]),
    "newer version": ('{"version": 7, "policy": "x", "files": []}', ["7", "newer"]),
    "deep": ("[" * 100_000, []),
}


@pytest.mark.parametrize("kind", BROKEN_PLANS)
def test_a_broken_plan_is_named(make_store: Maker, kind: str) -> None:
    store = make_store()
    text, words = BROKEN_PLANS[kind]
    plan = store.base / "plan.json"
    plan.write_text(text)
    one_clear_error(stripewise("apply", plan, "--store", store.root, code=None), "plan.json", *words)
    one_clear_error(stripewise("plan", "--check", plan, code=None), "plan.json", *words)


def test_a_plan_with_an_unknown_target_a_gap_or_too_many_bytes_is_refused(make_store: Maker) -> None:
    store = make_store(
        [Target("t0"), Target("t1", capacity_bytes=65536)],
        regions=[{"start": 0, "len": 65536, "stripes": [["t0", 4096]]}],
    )
    content = write(store, "f", 500_000)
    cases = {
        "nowhere": [{"start": 0, "len": 65536, "stripes": [["nowhere", 4096]]}],
        "start": [{"start": 4096, "len": 65536, "stripes": [["t0", 4096]]}],
        "4096": [{"start": 0, "len": 65536, "stripes": [["t0", 1000]]}],
        "capacity": [{"start": 0, "len": 65536, "stripes": [["t1", 4096]]}],
    }
    for word, regions in cases.items():
        plan = store.plan(store.base / "plan.json", store.data / "f", regions, 500_000)
        one_clear_error(stripewise("apply", plan, "--store", store.root, code=None), "plan.json", word)
    assert read(store, "f") == content


def test_a_store_of_a_newer_version_is_refused(make_store: Maker) -> None:
    store = make_store()
    write(store, "f")
    toml = store.root / "store.toml"
    kept = toml.read_text()
    toml.write_text(kept.replace("version = 1", "version = 9", 1))
    one_clear_error(stripewise("store", "ls", store.root, code=None), "store.toml", "9", "newer")
    toml.write_text(kept)
    compiled = store.root / "store.bin"
    kept_bytes = compiled.read_bytes()
    compiled.write_bytes(kept_bytes[:8] + (9).to_bytes(4, "little") + kept_bytes[12:])
    one_clear_error(stripewise("store", "ls", store.root, code=None), "newer")
    result = store.program("dd", f"if={store.data / 'f'}", "of=/dev/null", code=None)
    assert result.code != 0, "a program read a store of a newer version"
    compiled.write_bytes(kept_bytes)


def test_a_layout_of_a_newer_version_or_with_a_flipped_bit_fails_the_open(make_store: Maker) -> None:
    store = make_store()
    content = write(store, "f")
    layout = next((store.root / "files").glob("*/layout"))
    kept = layout.read_bytes()
    for broken in (kept[:8] + b"\x09" + kept[9:], kept[:-5] + bytes([kept[-5] ^ 16]) + kept[-4:], kept[:40], b""):
        layout.write_bytes(broken)
        result = store.program("dd", f"if={store.data / 'f'}", "of=/dev/null", code=None)
        assert result.code != 0 and "Input/output error" in result.err, result.report
        assert store.fsck(code=None).code == 1
    layout.write_bytes(kept)
    assert read(store, "f") == content


def test_what_is_no_store_is_named(scratch: Path) -> None:
    (scratch / "empty").mkdir()
    for verb in (("store", "ls"), ("store", "info"), ("store", "fsck")):
        one_clear_error(stripewise(*verb, scratch / "empty", code=None), "empty", "not a store")
    one_clear_error(stripewise("run", "--store", scratch / "none", "--", "true", code=None), "none", "not a store")
    one_clear_error(stripewise("run", "true", code=None), "--store")


def test_a_missing_target_directory_is_named(make_store: Maker) -> None:
    store = make_store(dirs(2))
    write(store, "f")
    target = store.base / "targets" / "t1"
    target.rename(store.base / "gone")
    assert store.program("dd", f"if={store.data / 'f'}", "of=/dev/null", code=None).code != 0
    found = store.fsck(code=None)
    assert found.code == 1 and str(target) in found.out + found.err and "Traceback" not in found.err, found.report
    (store.base / "gone").rename(target)


def test_a_target_directory_that_is_no_directory_is_named(scratch: Path) -> None:
    (scratch / "targets").mkdir()
    (scratch / "targets" / "t0").write_text("a file")
    cluster = scratch / "cluster.toml"
    cluster.write_text(GOOD)
    one_clear_error(
        stripewise("store", "create", scratch / "store", "--cluster", cluster, code=None),
        str(scratch / "targets" / "t0"),
    )
    (scratch / "targets" / "t0").unlink()
    (scratch / "targets" / "t0").symlink_to("t0")
    one_clear_error(
        stripewise("store", "create", scratch / "store", "--cluster", cluster, code=None),
        str(scratch / "targets" / "t0"),
    )


@pytest.fixture
def read_only(scratch: Path) -> Iterator[Path]:
    """A directory that cannot be written: by its mode, or as root by the mount."""
    place = scratch / "s0" / "targets" / "t1"
    yield place
    if os.geteuid() == 0:
        execute(["umount", "-l", place], code=None)
    else:
        place.chmod(0o755)


def test_writes_to_a_read_only_target_fail(make_store: Maker, read_only: Path) -> None:
    store = make_store(dirs(2))
    content = write(store, "f", 300_000)
    if os.geteuid() == 0:
        execute(["mount", "--bind", read_only, read_only])
        execute(["mount", "-o", "remount,bind,ro", read_only])
    else:
        read_only.chmod(0o555)
        for entry in read_only.iterdir():
            entry.chmod(0o444)
    assert read(store, "f") == content
    for name in ("f", "new"):
        result = store.program(
            "dd", "if=/dev/zero", f"of={store.data / name}", "bs=64K", "count=4", "conv=notrunc", code=None
        )
        assert result.code != 0 and "dd:" in result.err, result.report
    if os.geteuid() == 0:
        execute(["umount", read_only])
    else:
        read_only.chmod(0o755)
        for entry in read_only.iterdir():
            entry.chmod(0o644)


def test_a_symlink_loop_is_what_it_is_on_a_plain_file(make_store: Maker) -> None:
    store = make_store()
    (store.data / "a").symlink_to("b")
    (store.data / "b").symlink_to("a")
    result = store.program("dd", f"if={store.data / 'a'}", "of=/dev/null", code=None)
    assert result.code != 0 and "Too many levels of symbolic links" in result.err, result.report
    (store.base / "loop").symlink_to("loop")
    one_clear_error(stripewise("store", "ls", store.base / "loop", code=None), "loop")


def test_a_link_to_a_managed_file_leads_to_it(make_store: Maker) -> None:
    store = make_store()
    content = write(store, "f")
    (store.data / "link").symlink_to(store.data / "f")
    assert read(store, "link") == content


def test_a_link_into_a_store_that_is_gone_is_an_error(make_store: Maker) -> None:
    store = make_store()
    (store.data / "f").symlink_to(f"/stripewise:{store.base / 'nowhere'}/00000000000000aa")
    (store.data / "g").symlink_to(f"/stripewise:{store.root}/00000000000000aa")
    (store.data / "h").symlink_to("/stripewise:nonsense")
    for name in "fgh":
        result = store.program("dd", f"if={store.data / name}", "of=/dev/null", code=None)
        assert result.code != 0 and result.out == "", result.report
        (store.data / name).unlink()


def test_names_that_are_not_utf8_work(make_store: Maker) -> None:
    store = make_store()
    name = b"f\xff\xfe name\nwith a line"
    content = write(store, name)
    assert is_managed(Path(os.fsdecode(os.fsencode(store.data) + b"/" + name)))
    assert read(store, name) == content
    assert len(store.files()) == 1
    stripewise("store", "ls", store.root)


def test_empty_files_work(make_store: Maker) -> None:
    store = make_store(dirs(3), regions=UNEVEN)
    write(store, "f", 0)
    assert read(store, "f") == b""
    assert store.files()[0]["size"] == 0
    plan = store.plan(store.base / "plan.json", store.data / "f", UNEVEN[:1], 0)
    stripewise("apply", plan, "--store", store.root)
    assert read(store, "f") == b""


SPARSE = """
import errno, os, sys
path, plain = sys.argv[1:]
fd, other = os.open(path, os.O_RDWR | os.O_CREAT), os.open(plain, os.O_RDWR | os.O_CREAT)
size = 1 << 62
while True:  # as large as the backend allows
    try:
        os.ftruncate(other, size)
        break
    except OSError as error:
        assert error.errno in (errno.EFBIG, errno.EINVAL), error
        size >>= 1
size >>= 2  # a layout may put all of a file on one target, in objects of twice its length
os.ftruncate(fd, size)
assert os.fstat(fd).st_size == size and os.lseek(fd, 0, os.SEEK_END) == size
assert os.pread(fd, 100, size - 50) == bytes(50)
assert os.pread(fd, 100, size // 2 + 12345) == bytes(100)
assert os.pwrite(fd, b"end", size - 3) == 3 and os.pread(fd, 10, size - 5) == b"\\0\\0end"
assert os.pwrite(fd, b"middle", size // 3) == 6 and os.pread(fd, 8, size // 3 - 1) == b"\\0middle\\0"
for step in (lambda: os.pwrite(fd, b"x", (1 << 63) - 1), lambda: os.ftruncate(fd, (1 << 63) - 1)):
    try:
        step()
        raise SystemExit("past the largest offset something was written")
    except OSError as error:
        assert error.errno in (errno.EFBIG, errno.EINVAL), error
assert os.fstat(fd).st_size == size
os.ftruncate(fd, 10)
print("sparse ok", size)
"""


def test_sparse_files_as_large_as_the_backend_allows_work(make_store: Maker) -> None:
    store = make_store(dirs(3), regions=UNEVEN)
    said = store.run(sys.executable, "-c", SPARSE, store.data / "f", store.plain / "g")
    assert "sparse ok" in said.out


def test_a_second_machine_is_refused(make_store: Maker) -> None:
    store = make_store()
    content = write(store, "f")
    other = store.root / "run" / f"{uuid.uuid4()}.4711-{1:016x}.slot"
    other.write_bytes((b"SWSLOT01" + bytes(16) + b"0123456789abcdef0123456789abcdef").ljust(65536, b"\0"))
    result = store.program("dd", f"if={store.data / 'f'}", "of=/dev/null", code=None)
    assert result.code != 0 and "Input/output error" in result.err, result.report
    plan = store.plan(
        store.base / "plan.json",
        store.data / "f",
        [{"start": 0, "len": 65536, "stripes": [["t0", 4096]]}],
        len(content),
    )
    one_clear_error(stripewise("apply", plan, "--store", store.root, code=None), "machine")
    other.unlink()
    assert read(store, "f") == content


def test_a_file_moves_while_a_program_has_it_open_but_not_while_it_is_mapped(make_store: Maker) -> None:
    store = make_store(dirs(3), regions=UNEVEN)
    content = write(store, "f")
    plan = store.plan(store.base / "plan.json", store.data / "f", UNEVEN[:1], len(content))
    apply = [sys.executable, "-m", "stripewise", "apply", str(plan), "--store", str(store.root)]
    script = (
        "import mmap, os, subprocess, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "bare = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD'}\n"
        "area = mmap.mmap(fd, 0)\n"
        "mapped = subprocess.run(sys.argv[2:], env=bare, capture_output=True, text=True)\n"
        "assert mapped.returncode != 0 and 'mapped' in mapped.stderr, mapped.stderr\n"
        "before = bytes(area)\n"
        "area.close()\n"
        "subprocess.run(sys.argv[2:], env=bare, check=True, capture_output=True)\n"
        "assert os.pread(fd, 1 << 20, 0) == before\n"
    )
    store.program(sys.executable, "-c", script, store.data / "f", *apply)
    assert read(store, "f") == content


def test_a_full_store_gives_enospc_and_harms_nothing(make_store: Maker) -> None:
    store = make_store([Target("t0", capacity_bytes=256 * 1024), Target("t1", capacity_bytes=256 * 1024)])
    content = write(store, "f", 200_000)
    result = store.program("dd", "if=/dev/zero", f"of={store.data / 'g'}", "bs=1M", "count=4", code=None)
    assert result.code != 0 and "No space left on device" in result.err, result.report
    assert read(store, "f") == content
    assert json.loads(stripewise("store", "fsck", store.root, "--json").out) is not None


@pytest.mark.parametrize(
    "words", [("--file-size", "1QiB"), ("--pattern", "spiral"), ("--request-size", "0"), ("--bogus",), ()]
)
def test_the_workload_names_bad_options(words: tuple[str, ...]) -> None:
    file = () if not words else ("--file", "/nonexistent")
    result = execute([MPIIO, *file, *words], code=2)
    assert (len(result.err.splitlines()) == 1 and "see --help" in result.err) or "--" in result.err, result.report


def test_the_testers_name_bad_options() -> None:
    execute([NATIVE / "randops", "--ops", "many"], code=2)
    execute([NATIVE / "acked"], code=2)


def test_a_store_is_not_made_twice(scratch: Path) -> None:
    store = create_store(scratch / "s", dirs(1))
    one_clear_error(stripewise("store", "create", store.root, "--cluster", store.cluster, code=None), "store already")


@pytest.mark.parametrize("damage", ["missing", "empty", "short", "changed"])
def test_a_store_bin_that_is_lost_is_compiled_anew_and_nothing_else_is(make_store: Maker, damage: str) -> None:
    store = make_store(layout="uneven")
    store.program("sh", "-c", 'head -c 700001 /dev/urandom >"$0"', store.data / "f")
    content, compiled = store.program("md5sum", store.data / "f").out, store.root / "store.bin"
    toml = (store.root / "store.toml").read_text()
    whole = compiled.read_bytes()
    mode = compiled.stat().st_mode

    def lose() -> None:
        if damage == "missing":
            compiled.unlink()
        else:
            changed = whole[:300] + bytes(8 * [whole[300] ^ 255]) + whole[308:]
            compiled.write_bytes({"empty": b"", "short": whole[:100], "changed": changed}[damage])

    lose()
    cure = f"'stripewise store fsck {store.root} --repair' compiles it anew from store.toml"
    for words in (["fsck", store.root], ["df", store.root], ["info", store.root]):
        assert cure in stripewise("store", *words, code=1).err
    # Making a store there would give its files' targets another owner.
    words = ["store", "create", store.root, "--cluster", store.cluster, "--manage", store.data]
    assert "store" in stripewise(*words, code=1).err and (store.root / "store.toml").read_text() == toml
    # Another store's targets, or none, confirm nothing.
    identities = {path: path.read_bytes() for path in store.base.glob("targets/*/stripewise-target")}
    for path, text in identities.items():
        path.write_bytes(text.replace(b"uuid ", b"uuid 0")[:-1])
    assert store.fsck("--repair", code=1).err and (store.root / "store.toml").read_text() == toml
    for path in identities:
        path.unlink()
    assert "no target of store.toml says that it is this store's" in store.fsck("--repair", code=1).err
    for path, text in identities.items():
        path.write_bytes(text)
    swapped = list(identities)[:2]
    for path, other in zip(swapped, reversed(swapped), strict=True):
        path.write_bytes(identities[other])
    assert "are swapped" in store.fsck("--repair", code=1).err
    for path, text in identities.items():
        path.write_bytes(text)
    said = store.fsck("--repair").out
    assert "store.bin was missing or damaged (mended: compiled anew from store.toml)" in said and "sound" in said
    assert (
        compiled.read_bytes() == whole
        and compiled.stat().st_mode == mode
        and (store.root / "store.toml").read_text() == toml
    )
    assert store.program("md5sum", store.data / "f").out == content
    lose()
    assert json.loads(store.fsck("--repair", "--json").out)["store_bin_compiled"] is True
    assert "store_bin_compiled" not in json.loads(store.fsck("--repair", "--json").out)


def test_a_store_whose_making_was_interrupted_is_made_again_and_not_mended(make_store: Maker) -> None:
    store = make_store(dirs(2))
    (store.root / "store.bin").unlink()
    for path in store.base.glob("targets/*/stripewise-target"):
        path.unlink()
    said = store.fsck(code=1).err
    assert "where making the store was interrupted, run the same command again" in said, said
    assert "run the same command again" in store.fsck("--repair", code=1).err
    stripewise("store", "create", store.root, "--cluster", store.cluster, "--manage", store.data)


def test_a_store_without_its_store_toml_is_no_place_for_a_new_one_and_gets_the_last_one_back(
    make_store: Maker,
) -> None:
    store = make_store(dirs(1))
    toml, earlier = store.root / "store.toml", store.root / "store.toml.compiled"
    toml.write_text("# Mine.\n" + toml.read_text())
    stripewise("store", "template", "add", store.root, store.data / "x*", "--stripe-size", "64KiB")
    kept = toml.read_text()
    assert kept.startswith("# Mine.\n") and earlier.read_text() == kept
    verbs = (["store", "df", store.root], ["tune", "--store", store.root, "--", "true"])
    init = ["init", store.base / "targets", "--no-calibrate", "--store", store.root, "-o", store.base / "other.toml"]
    toml.unlink()
    for words in (*verbs, ["undo", store.root], ["store", "fsck", store.root], init):
        cure = f"is missing; have the one that verbs used last put back: stripewise store fsck {store.root} --repair"
        one_clear_error(stripewise(*words, code=None), cure)
    assert "store.toml was missing (mended: the one is back that verbs used last)" in store.fsck("--repair").out
    assert toml.read_text() == kept
    # The library's form may be lost with it, but not what was kept too.
    toml.unlink()
    (store.root / "store.bin").write_bytes(b"no store")
    assert json.loads(store.fsck("--repair", "--json").out)["store_toml_was"] == "missing"
    # One that says no store is put aside, each by a name of its own: no TOML, cut twice, empty, a slip in a key.
    texts = (kept[: kept.index("per_byte_write_s")], "[store\n", "", kept.replace("[store]", "[stores]"))
    for text, aside in zip(texts, ("", ".2", ".3", ".4"), strict=True):
        toml.write_text(text)
        one_clear_error(store.fsck(code=1), "or have the one that verbs used last put back: stripewise store fsck ")
        assert f"store.toml was damaged, and is store.toml.refused{aside} now (mended" in store.fsck("--repair").out
        assert toml.read_text() == kept and (store.root / f"store.toml.refused{aside}").read_text() == text
    toml.unlink()
    earlier.write_text(kept.replace("[store]", "[stores]"))
    assert "store.toml.compiled: " in store.fsck("--repair", code=1).err and not toml.exists()
    earlier.unlink()
    for words in (*verbs, ["undo", store.root], ["store", "fsck", store.root, "--repair"], init):
        one_clear_error(
            stripewise(*words, code=None), "is a store whose store.toml is missing; put it back from a copy"
        )
    toml.write_text(kept)
    store.fsck()


def test_a_store_is_no_trace_and_a_capacity_of_a_few_bytes_none(make_store: Maker) -> None:
    store = make_store(dirs(1))
    for words in (["show", store.root], ["plan", store.root, "--store", store.root]):
        one_clear_error(stripewise(*words, code=None), "is a store and no trace", f"store info {store.root}")
    words = ["init", "--emulate", store.base / "lab", "--capacity", "hdd0=4095"]
    one_clear_error(stripewise(*words, code=None), "--capacity: hdd0=4095 is less than 4096 bytes")
