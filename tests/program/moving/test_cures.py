"""What would take a managed file's name, or a store's part, is refused; what is told of a damaged part can be done."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from rig import Maker, Store, dirs, execute, is_managed, stripewise

MIB = 1 << 20


@pytest.fixture
def store(make_store: Maker) -> Store:
    made = make_store(dirs(2))
    made.program("sh", "-c", f"head -c 300000 /dev/urandom >'{made.data / 'f'}'")
    return made


def test_no_output_takes_a_managed_file_s_name_or_a_place_in_a_store(store: Store) -> None:
    trace, file = store.base / "trace", store.data / "f"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", file)
    stripewise("collect", trace)
    toml = (store.root / "store.toml").read_bytes()
    inside = [store.root / "store.toml", store.root / "new.json", store.base / "targets/t0/new", store.root / "run/x"]
    for out in (file, *inside):
        for words in (
            ("plan", trace, "--store", store.root, "-o", out),
            ("calibrate", "--store", store.root, "--seconds", "1", "-o", out),
            ("patterns", trace, "--db", out),
        ):
            said = stripewise(*words, code=2).err
            wanted = "is a managed file" if out == file else "which is a store's own"
            assert wanted in said and said.count("\n") == 1, said
    assert "which is a store's own" in stripewise("collect", trace, "-o", store.root / "new", code=2).err
    said = stripewise("run", "--store", store.root, "--trace", store.root / "traces", "--", "true", code=2).err
    assert "which is a store's own" in said and not (store.root / "traces").exists()
    assert is_managed(file) and (store.root / "store.toml").read_bytes() == toml
    store.fsck()


def test_a_file_whose_name_is_gone_is_saved_by_what_fsck_tells(store: Store) -> None:
    file, saved = store.data / "f", store.base / "saved"
    kept = store.program("md5sum", file).out
    os.unlink(file)
    file.write_text("something else")
    said = store.fsck().out
    command = said[said.index("stripewise store cat") :].partition(" >FILE")[0]
    command = command.replace(" ID", f" {said.split()[1]}")
    subprocess.run(f"{command} >{shlex.quote(str(saved))}", shell=True, check=True)
    assert execute(["md5sum", saved]).out.split()[0] == kept.split()[0]


def test_a_lost_or_damaged_layout_of_a_template_names_the_template(store: Store) -> None:
    stripewise("store", "template", "add", store.root, store.data / "x y*", "--targets", "t1")
    (layout,) = (store.root / "layouts").glob("*.json")
    kept, toml = layout.read_text(), (store.root / "store.toml").read_text()
    for how in ("lost", "no JSON", "of another store"):
        if how == "lost":
            layout.unlink()
        else:
            layout.write_text("{" if how == "no JSON" else kept.replace("t1", "t7"))
        for words in (["store", "ls", store.root], ["store", "fsck", store.root, "--repair"]):
            said = stripewise(*words, code=1).err
            assert said.count("\n") == 1 and str(layout.name) in said, said
        if how == "of another store":
            assert "store.toml: has no [[target]] table for t7 any more" in said, said
        command = said.rstrip().partition("or go on without its template: ")[2]
        execute(shlex.split(command))
        assert store.fsck().out == f"{store.root}: sound\n"
        layout.write_text(kept)
        (store.root / "store.toml").write_text(toml)
        store.fsck()
    # A target that has another name all at once.
    (store.root / "store.toml").write_text(toml.replace('"t1"', '"t9"'))
    said = stripewise("store", "ls", store.root, code=1).err
    assert f"{store.root}/store.toml: has no [[target]] table for t1 any more" in said, said
    assert "store.toml.compiled is the one that verbs used last" in said, said
    (store.root / "store.toml").write_text(toml)


def test_a_damaged_record_of_copies_names_what_removing_it_means(store: Store) -> None:
    trace = store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", store.data / "f")
    stripewise("collect", trace)
    (store.root / "replicas.json").write_text("")
    said = stripewise("replicate", trace, "--store", store.root, code=1).err
    assert "or remove it: the copies stay" in said and said.count("\n") == 1, said


def test_words_that_are_wrong_are_blamed_and_not_a_file(store: Store) -> None:
    new = store.base / "new"
    new.mkdir()
    said = stripewise("store", "add", store.root, "bad name", "--path", new, code=2).err
    assert said.startswith("stripewise: TARGET: 'bad name' holds a space") and "store.toml" not in said, said
    plan = store.base / "plan.json"
    plan.write_text(json.dumps({"version": 5, "files": 3}))
    assert "[[" not in stripewise("plan", "--check", plan, code=1).err
    assert "'': cannot be started" in stripewise("run", "--store", store.root, "--", "", code=None).err


def test_set_layout_names_a_kept_plan_that_moves_the_file_back(store: Store) -> None:
    file = store.data / "f"
    trace, out = store.base / "trace", store.base / "plan.json"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", file)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", out, "--keep")
    said = stripewise("store", "set-layout", file, "--targets", "t1").out
    assert "note: the next run of 'cat " in said, said
    command = said[said.index("without that: ") :].partition(": ")[2]
    execute(shlex.split(command.replace("\n", " ")))
    assert "note:" not in stripewise("store", "set-layout", file, "--targets", "t0").out


def test_undo_reads_no_holes(store: Store) -> None:
    store.check_at_end = False
    hole = store.data / "hole"
    store.program("sh", "-c", f"printf begin >'{hole}'; truncate -s 100G '{hole}'; printf end >>'{hole}'")
    begun = time.monotonic()
    stripewise("undo", store.root)
    # Of 100 GiB a minute would be 1.7 GiB/s.
    assert time.monotonic() - begun < 60
    assert hole.stat().st_size == (100 << 30) + 3 and hole.stat().st_blocks * 512 < MIB
    with hole.open("rb") as file:
        assert file.read(8) == b"begin\0\0\0"
        file.seek(-5, os.SEEK_END)
        assert file.read() == b"\0\0end"


def test_sums_tell_zeros_from_data_and_holes_are_zeros(tmp_path: Path) -> None:
    from stripewise.store.undo.sums import sum_of_plain

    told: list[int] = []
    sums = {}
    for name, pieces, size in (
        ("zeros", [(0, bytes(200_000))], 200_000),
        ("hole", [], 200_000),
        ("shorter", [], 199_999),
        ("data", [(65_530, b"0123456789")], 200_000),
        ("beside", [(65_531, b"0123456789")], 200_000),
        ("same", [(65_530, b"01234"), (65_535, b"56789"), (150_000, bytes(9))], 200_000),
    ):
        path = tmp_path / name
        with path.open("wb") as file:
            for at, piece in pieces:
                file.seek(at)
                file.write(piece)
            file.truncate(size)
        told.clear()
        sums[name] = sum_of_plain(str(path), told.append)[0]
        assert sum(told) == size
    assert sums["zeros"] == sums["hole"] and sums["data"] == sums["same"]
    assert len({sums[name] for name in ("hole", "shorter", "data", "beside")}) == 4


def test_a_file_whose_name_is_not_utf8_has_no_copies_and_is_told_why(store: Store) -> None:
    trace, file = store.base / "trace", os.fsencode(store.data) + b"/b \xfe"
    script = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
    script += "for at in range(0, 1 << 21, 1 << 16): os.pread(fd, 4096, at)\n"
    store.program("sh", "-c", 'head -c 2097152 /dev/urandom >"$0"', file)
    stripewise("run", "--store", store.root, "--trace", trace, "--", "python3", "-c", script, file)
    stripewise("collect", trace)
    said = stripewise("replicate", trace, "--store", store.root, "--manager", "h-pdla", code=None)
    assert "its name is not UTF-8" in said.out + said.err and "exist" not in said.out + said.err, said.report


def test_a_drain_of_objects_without_a_file_names_what_removes_them(store: Store) -> None:
    away, place = store.base / "away", store.base / "targets/t1"
    place.rename(away)
    store.program("rm", store.data / "f")
    away.rename(place)
    begun = time.monotonic()
    said = stripewise("store", "drain", store.root, "t1", "--remove", "--patience", "60s", code=1)
    assert time.monotonic() - begun < 30 and "waits up to" not in said.err, said.report
    (line,) = (line for line in said.out.splitlines() if line.startswith("left: "))
    assert "have objects there, of no use" in line, line
    execute(shlex.split(line.partition("remove them: ")[2]))
    stripewise("store", "drain", store.root, "t1", "--remove")


def test_targets_that_are_swapped_are_put_right_by_what_is_told(store: Store) -> None:
    kept = store.program("md5sum", store.data / "f").out
    one, other, aside = store.base / "targets/t0", store.base / "targets/t1", store.base / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    said = store.fsck(code=1)
    assert f"'stripewise store relink --moved {store.root}' puts them right" in said.out + said.err, said.report
    told = stripewise("store", "relink", "--moved", store.root).out
    assert f"target t0: is in {other} now" in told and f"target t1: is in {one} now" in told, told
    assert store.program("md5sum", store.data / "f").out == kept
    store.fsck()


def test_another_uuid_in_store_toml_is_put_right_by_what_is_told(store: Store) -> None:
    toml = store.root / "store.toml"
    kept = toml.read_text()
    uuid = kept.split('uuid = "')[1].split('"')[0]
    toml.write_text(kept.replace(uuid, "00000000-0000-4000-8000-000000000000"))
    said = store.fsck(code=1).err
    assert uuid.replace("-", "") in said and f"stripewise store fsck {store.root} --repair" in said, said
    assert "store.toml was damaged, and is store.toml.refused now" in store.fsck("--repair").out
    assert toml.read_text() == kept


def test_copies_on_a_target_that_is_away_are_not_to_be_removed_as_files(store: Store) -> None:
    trace = store.base / "trace"
    script = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
    script += "for at in range(0, 1 << 22, 1 << 16): os.pread(fd, 4096, at)\n"
    store.program("sh", "-c", f"head -c {1 << 22} /dev/urandom >'{store.data / 'g'}'")
    stripewise("run", "--store", store.root, "--trace", trace, "--", "python3", "-c", script, store.data / "g")
    stripewise("collect", trace)
    stripewise("replicate", trace, "--store", store.root, "--manager", "h-pdla", code=None)
    assert "no copies" not in stripewise("store", "replica", "ls", store.root).out
    away, place = store.base / "away", store.base / "targets/t1"
    place.rename(away)
    said = stripewise("store", "drain", store.root, "t1", code=1).out
    assert ".copy" not in said and "the copies of" in said, said
    (line,) = (line for line in said.splitlines() if "drop them: " in line)
    execute(shlex.split(line.partition("drop them: ")[2]))
    again = stripewise("store", "drain", store.root, "t1", code=1).out
    assert "drop them" not in again and str(store.data / "g") in again, again
    away.rename(place)
    stripewise("store", "drain", store.root, "t1", "--undo")


def test_a_kept_plan_that_cannot_be_read_is_a_remark_of_fsck_with_what_forgets_it(store: Store) -> None:
    trace, plan, file = store.base / "trace", store.base / "plan.json", store.data / "f"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", file)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", plan, "--keep")
    (kept,) = (store.root / "plans").glob("*.json")
    kept.write_text("{junk")
    said = store.fsck().out
    assert said.startswith("remark: ") and said.endswith(f"{store.root}: sound\n"), said
    execute(shlex.split(said.splitlines()[0].partition("forget it: ")[2]))
    assert store.fsck().out == f"{store.root}: sound\n"


def test_undo_makes_no_file_plain_of_which_a_scrub_knows_that_bytes_are_gone(make_store: Maker) -> None:
    """Objects cut and removed by somebody: what is left reads as zeros, and the file's checksums say so."""
    store = make_store(dirs(2))
    files = [store.data / name for name in ("cut", "gone", "whole")]
    for file in files:
        store.program("sh", "-c", f"head -c 500000 /dev/urandom >'{file}'")
    sums = {file: store.program("md5sum", file).out.split()[0] for file in files}
    for _ in range(2):
        stripewise("store", "scrub", store.root)

    def part(file: Path) -> Path:
        identity = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["id"]
        return next((store.base / "targets/t1").glob(f"{identity}*"))

    os.truncate(part(files[0]), 100)
    lost = part(files[1])
    lost.rename(store.base / "kept")
    # Nothing moves that would make zeros of what is gone.
    refused = stripewise("store", "set-layout", files[0], "--stripe-size", "1MiB", code=1).err
    assert "are gone though nobody wrote the file" in refused and refused.count("\n") == 1, refused
    drained = stripewise("store", "drain", store.root, "t1", "--patience", "0s", code=1)
    assert f"left: {files[0]}: " in drained.out and f"left: {files[1]}: " in drained.out, drained.report
    stripewise("store", "drain", store.root, "t1", "--undo")
    assert "are gone though nobody wrote the file" in stripewise("store", "scrub", store.root, code=1).out
    assert "written as it is" in stripewise("store", "cat", files[0]).err
    for words in (["--dry-run"], []):
        said = stripewise("undo", store.root, *words, code=1).err
        assert f"({files[0]}) on target t1: bytes " in said and f"store export {files[0]}" in said, said
        assert f"({files[1]}): its object " in said, said
        assert all(is_managed(file) for file in files)
    (store.base / "kept").rename(lost)
    said = stripewise("store", "export", files[0])
    assert "are gone though nobody wrote the file" in said.err and "taken out as it is" in said.err, said.report
    stripewise("undo", store.root)
    store.check_at_end = False
    for file in files[1:]:
        assert not is_managed(file) and execute(["md5sum", file]).out.split()[0] == sums[file]


def test_fsck_names_files_whose_part_of_the_store_is_gone_and_purges_nothing_of_them(store: Store) -> None:
    file, other = store.data / "f", store.data / "g"
    store.program("cp", file, other)
    identity = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["id"]
    (store.root / "files" / identity).rename(store.base / "kept")
    said = store.fsck(code=1)
    assert f"file {identity} ({file}): " in said.out and "belongs to no file" not in said.out, said.report
    for words in (["--repair"], ["--repair", "--purge"]):
        stripewise("store", "fsck", store.root, *words, code=1)
    (store.base / "kept").rename(store.root / "files" / identity)
    store.fsck()
    assert store.program("md5sum", file).out.split()[0] == store.program("md5sum", other).out.split()[0]
    (store.root / "files" / identity).rename(store.base / "kept")
    said = store.fsck(code=1).out
    execute(shlex.split(said[said.index("give the file up: ") :].partition(": ")[2].splitlines()[0]))
    assert "belongs to no file" in store.fsck().out
    store.fsck("--repair", "--purge")
    assert store.fsck().out == f"{store.root}: sound\n"


def test_a_file_without_a_record_of_its_name_is_told_with_its_links_and_what_records_one(store: Store) -> None:
    file, copy = store.data / "f", store.data / "copy"
    identity = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["id"]
    record = store.root / "files" / identity / "link"
    kept = record.read_bytes()
    record.write_bytes(bytes(len(kept)))
    said = store.fsck("--repair").out
    assert f"has no record of its name, but {file} leads to it; relink that, if it is the file's name" in said, said
    copy.symlink_to(os.readlink(file))
    # A copy that is taken for the name would take the file with it once it is removed.
    said = store.fsck("--repair").out
    assert "has no record of its name, but 2 links lead to it, " in said and record.read_bytes() != kept, said
    store.program("rm", copy)
    said = store.fsck().out
    execute(shlex.split(said[said.index("the file's name: ") :].partition(": ")[2].splitlines()[0]))
    assert record.read_bytes() == kept and store.fsck().out == f"{store.root}: sound\n"


def test_a_damaged_layout_keeps_no_verb_from_the_other_files_and_its_cure_works(store: Store) -> None:
    file, other = store.data / "f", store.data / "g"
    store.program("cp", file, other)
    identity = json.loads(stripewise("store", "layout", file, "--json").out)["files"][0]["id"]
    os.truncate(store.root / "files" / identity / "layout", 100)
    said = stripewise("store", "scrub", store.root, code=1).out
    assert f"{file} (file {identity}): it cannot be compared: " in said, said
    assert f"left: {file}: " in stripewise("store", "drain", store.root, "t1", "--patience", "0s", code=1).out
    stripewise("store", "drain", store.root, "t1", "--undo")
    found = stripewise("store", "find", store.root, "--size", "+1", code=None)
    assert str(other) in found.out and str(file) in found.err, found.report
    cure = store.fsck(code=1).out
    execute(shlex.split(cure[cure.index("give the file up: ") :].partition(": ")[2].partition(", then '")[0]))
    execute(shlex.split(cure.partition(", then '")[2].partition("'")[0]))
    assert store.fsck().out == f"{store.root}: sound\n"


def test_a_store_whose_files_are_gone_takes_no_run_and_a_place_without_a_store_is_none(store: Store) -> None:
    kept = store.base / "kept"
    (store.root / "files").rename(kept)
    for words in (("run", "--store", store.root, "--", "sh", "-c", f"echo x > {store.data}/new"),
                  ("tune", "--store", store.root, "--", "true"), ("store", "info", store.root),
                  ("store", "df", store.root), ("store", "fsck", store.root), ("undo", store.root)):  # fmt: skip
        said = stripewise(*words, code=1)
        assert f"{store.root}/files: is missing" in said.err and said.err.count("\n") == 1, said.report
        assert not said.out, said.report
    said = stripewise("doctor", "--store", store.root, code=1).out
    assert f"{store.root}/files: is missing" in said and "cure: put it back from a copy of the store" in said, said
    assert not (store.data / "new").exists()
    kept.rename(store.root / "files")
    for words in (["--repair"], []):
        said = stripewise("store", "fsck", store.base / "none/x", *words, code=1).err
        assert "is not a store" in said and "writable" not in said, said


def test_an_empty_directory_of_files_is_told_as_a_whole(store: Store) -> None:
    store.program("cp", store.data / "f", store.data / "g")
    kept = store.base / "kept"
    (store.root / "files").rename(kept)
    (store.root / "files").mkdir(mode=kept.stat().st_mode & 0o7777)
    said = store.fsck(code=1)
    first = said.out.splitlines()[0]
    assert first.startswith(f"{store.root}/files is empty, though objects of 2 files with a name are there"), (
        said.report
    )
    assert "put the whole directory back" in first and "3 error(s) stand" in said.err, said.report
    (store.root / "files").rmdir()
    kept.rename(store.root / "files")
    assert store.fsck().out == f"{store.root}: sound\n"


def test_an_unknown_target_is_a_wrong_word_of_the_command(store: Store) -> None:
    file, glob = store.data / "f", store.data / "x*"
    for words in (
        ("drain", store.root, "t9"),
        ("drain", store.root, "t9", "--undo"),
        ("find", store.root, "--target", "t9"),
        ("fsck", store.root, "--repair", "--mark", "t9"),
        ("set-layout", file, "--targets", "t0,t9"),
        ("set-layout", file, "--stripe", "t9=64KiB"),
        ("template", "add", store.root, glob, "--targets", "t9"),
    ):
        said = stripewise("store", *words, code=2).err
        assert "t9'" in said and "t0, t1" in said and said.count("\n") == 1, said


def test_a_listing_with_a_damaged_file_ends_with_an_error(store: Store) -> None:
    identity = json.loads(stripewise("store", "layout", store.data / "f", "--json").out)["files"][0]["id"]
    layout = store.root / "files" / identity / "layout"
    kept = layout.read_bytes()
    layout.write_bytes(kept[:100])
    said = stripewise("store", "ls", store.root, code=1)
    assert str(store.data / "f") in said.out and "1 file(s) cannot be looked at" in said.err, said.report
    layout.write_bytes(kept)
    stripewise("store", "ls", store.root)
