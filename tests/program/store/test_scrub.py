"""scrub: bit rot is told from writes; and fsck tells parts whose owner or mode is not the file's."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import time
from pathlib import Path

from disks import ext4, mount, needs_loop_devices
from rig import STRIPEWISE, Maker, Store, create_store, dirs, execute, stripewise

MIB = 1 << 20


def adopted(store: Store, size: int, mode: int = 0o644) -> tuple[Path, bytes]:
    """A managed file and what is in it."""
    file, content = store.plain / "f", random.Random(3).randbytes(size)
    file.write_bytes(content)
    file.chmod(mode)
    stripewise("store", "adopt", "--store", store.root, "--layout", "def", file)
    return file, content


def test_what_is_written_is_summed_anew_and_is_no_rot(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    file, _ = adopted(store, 3_000_000)
    said = json.loads(stripewise("store", "scrub", store.root, "--json").out)
    assert (said["files"], said["verified"], said["summed"], said["rot"]) == (1, 3, 0, []), "sums are kept from adopt"
    store.program("dd", "if=/dev/urandom", f"of={file}", "bs=1K", "count=1", "seek=30", "conv=notrunc")
    said = json.loads(stripewise("store", "scrub", file, "--rate", "100MiB", "--json").out)
    assert (said["verified"], said["summed"], said["rot"]) == (2, 1, [])
    said = json.loads(stripewise("store", "scrub", file, "--json").out)
    assert (said["verified"], said["summed"]) == (3, 0)
    sums = next((store.root / "files").glob("*/sums"))
    sums.write_bytes(sums.read_bytes()[:-3])
    assert json.loads(stripewise("store", "scrub", file, "--json").out)["summed"] == 3, "damaged sums are taken anew"
    assert "compared" in store.fsck("--scrub").out


def test_a_bit_that_flips_on_the_disk_is_reported_with_the_bytes_it_is_in(scratch: Path) -> None:
    needs_loop_devices("flipping a bit below the file system", "mkfs.ext4")
    image, disk = scratch / "disk.img", scratch / "s" / "targets"
    with ext4(image, 64 << 20, disk):
        made = create_store(scratch / "s", dirs(2))
        # A stretch that is nowhere else on the disk: the plain file lay elsewhere.
        file, content = adopted(made, 2_000_000)
        mark = 131_072
        execute(["umount", disk])
        raw = bytearray(image.read_bytes())
        at = raw.find(content[mark : mark + 512])
        assert at >= 0 and raw.find(content[mark : mark + 512], at + 1) < 0
        raw[at] ^= 0x40
        image.write_bytes(raw)
        mount(image, disk)
        result = stripewise("store", "scrub", made.root, "--json", code=1)
        rot = json.loads(result.out.splitlines()[0])["rot"]
        assert len(rot) == 1, result.report
        assert rot[0]["path"] == str(file) and rot[0]["target"] in ("t0", "t1")
        assert any(start <= mark < end for start, end in rot[0]["ranges"])
        assert "restore" in result.err


def test_an_object_that_cannot_be_read_names_its_target(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file, _ = adopted(store, 1_000_000)
    victim = next((store.base / "targets" / "t2").glob("*.data"))
    victim.rename(store.base / "kept")
    result = stripewise("store", "scrub", file, code=1)
    assert "target t2" in result.out and "cannot be read" in result.out
    (store.base / "kept").rename(victim)


def test_fsck_tells_and_mends_a_part_with_another_mode(make_store: Maker) -> None:
    store = create_store(make_store(layout="one").base / "more", dirs(2))
    adopted(store, 200_000, 0o640)
    victim = next((store.base / "targets" / "t1").glob("*.data"))
    victim.chmod(0o666)
    assert "another owner, mode or ACL" in store.fsck().out
    store.fsck("--repair")
    assert victim.stat().st_mode & 0o777 == 0o640 and "another owner" not in store.fsck().out


def test_sums_of_a_newer_version_are_refused(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file, _ = adopted(store, 100_000)
    sums = next((store.root / "files").glob("*/sums"))
    body = bytearray(sums.read_bytes())
    body[8] = 9
    sums.write_bytes(body)
    for words in (["scrub", file], ["upgrade", store.root]):
        result = stripewise("store", *words, code=1)
        assert "version 9" in result.err and len(result.err.strip().splitlines()) == 1


def test_a_target_that_fails_is_named_by_info_and_in_the_log(scratch: Path) -> None:
    needs_loop_devices("a disk that fails", "mkfs.ext4")
    image = scratch / "disk.img"
    disk = scratch / "s" / "targets" / "t1"
    with ext4(image, 64 << 20, disk):
        store = create_store(scratch / "s", dirs(2))
        file, _ = adopted(store, 60_000_000)
        # The end of the disk goes while it is mounted, and with it blocks of the object that nobody has in memory.
        held = os.open(next(disk.glob("*.data")), os.O_RDONLY)
        os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(held)
        os.truncate(image, 24 << 20)
        log = scratch / "log"
        env = {**store.environment(), "STRIPEWISE_LOG": str(log)}
        failed = execute(["dd", f"if={file}", "of=/dev/null", "bs=1M"], env, code=1)
        assert "Input/output error" in failed.err
        assert "target t1 failed with errno 5" in log.read_text()
        said = stripewise("store", "info", store.root).out
        assert "target t1:" in said and "Input/output error" in said
        rot = stripewise("store", "scrub", file, code=1)
        assert "target t1" in rot.out and "cannot be read" in rot.out


def test_an_object_that_was_cut_is_damage_where_nobody_wrote_its_file(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file, content = adopted(store, 1_000_000)
    victim = max(store.base.glob("targets/*/*.data"), key=lambda each: each.stat().st_size)
    whole, target = victim.read_bytes(), victim.parent.name
    # Right after the adoption, and with the times of before.
    times = victim.stat()
    os.truncate(victim, 100)
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    for _ in range(2):
        said = stripewise("store", "scrub", store.root, code=1)
        assert f"on target {target}: bytes " in said.out and "are gone though nobody wrote the file" in said.out, (
            said.out
        )
        assert "1 object(s) are damaged; restore" in said.err
    rot = json.loads(stripewise("store", "scrub", file, "--json", code=1).out.splitlines()[0])["rot"]
    assert all(0 <= start < end <= len(content) for row in rot for start, end in row["ranges"]) and len(rot) == 1
    # Its bytes come back: they are those that were summed.
    victim.write_bytes(whole)
    said = json.loads(stripewise("store", "scrub", file, "--json").out)
    assert said["rot"] == [] and store.program("md5sum", file).out.split()[0] == hashlib.md5(content).hexdigest()
    # A program that cuts the file, and one that makes it as long again, lose nothing that somebody wants back.
    for size in (300_000, 1_000_000):
        store.program("truncate", f"--size={size}", file)
        assert json.loads(stripewise("store", "scrub", file, "--json").out)["rot"] == [], size
    # So after a scrub, too.
    os.truncate(victim, 100)
    assert "are gone though nobody wrote" in stripewise("store", "scrub", store.root, code=1).out
    store.check_at_end = False


def test_files_that_are_removed_meanwhile_are_no_damage(make_store: Maker) -> None:
    store = make_store(dirs(2))
    files = [store.data / name for name in ("a", "b", "c")]
    for file in files:
        store.program("sh", "-c", f"head -c 4000000 /dev/urandom >{file}")
    words = [STRIPEWISE, "store", "scrub", store.root, "--rate", "4MiB", "--json"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as scrub:
        time.sleep(1.5)
        store.program("rm", *files)
        out, err = scrub.communicate(timeout=60)
    said = json.loads(out)
    assert scrub.returncode == 0 and said["rot"] == said["suspect"] == [] and said["files"] <= 2, out + err


def test_an_object_that_somebody_else_wrote_is_remarked_and_moves_and_writes_are_not(make_store: Maker) -> None:
    store = make_store(dirs(2))
    store.program("sh", "-c", f"head -c 600000 /dev/urandom >{store.data}/f")
    file = store.data / "f"

    def scrub() -> list[str]:
        said = json.loads(stripewise("store", "scrub", store.root, "--json").out)
        assert said["rot"] == [], said
        found = said["suspect"]
        assert isinstance(found, list)
        return found

    assert scrub() == []
    for targets in ("t0", "t1", "t0,t1"):
        stripewise("store", "set-layout", file, "--targets", targets, "--stripe-size", "64KiB")
        assert scrub() == []
    store.program("dd", "if=/dev/urandom", f"of={file}", "bs=1K", "count=1", "conv=notrunc", "status=none")
    assert scrub() == []
    # What kills and maps leave looks the same as this, so it is summed anew.
    victim = next(each for each in store.base.glob("targets/*/*.data*") if each.stat().st_size > 4096)
    times = victim.stat()
    with victim.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"somebody else")
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    (line,) = scrub()
    assert line.startswith(f"{file} (file ") and "though the file's times tell of no write: a killed writer's" in line
    assert scrub() == []


def in_two_parts(store: Store) -> tuple[Path, Path]:
    """A file whose first MiB lies on t0 and the rest on t1, and its object on t1."""
    layout, file = store.base / "layout.json", store.data / "f"
    rows = [(0, MIB, "t0"), (MIB, 64 * MIB, "t1")]
    regions = [{"start": start, "len": length, "stripes": [[target, 65536]]} for start, length, target in rows]
    layout.write_text(json.dumps({"regions": regions}))
    store.program("sh", "-c", 'head -c 3000000 /dev/urandom >"$0"', file)
    stripewise("store", "set-layout", file, "--layout", layout)
    return file, next((store.base / "targets/t1").glob("*.data*"))


def test_what_a_scrub_knows_of_objects_that_do_not_move_stays_known(make_store: Maker) -> None:
    store = make_store(dirs(3))
    _, part = in_two_parts(store)
    stripewise("store", "scrub", store.root)
    time.sleep(0.1)
    stripewise("store", "drain", store.root, "t0")
    kept = part.read_bytes()
    os.truncate(part, 4096)
    for words in (("scrub", store.root), ("scrub", store.root), ("drain", store.root, "t1", "--patience", "0s")):
        said = stripewise("store", *words, code=1)
        assert "its object was cut to 4096 bytes" in said.out + said.err, said.report
    assert "its object was cut to 4096 bytes" in stripewise("undo", store.root, code=1).err
    part.write_bytes(kept)
    stripewise("store", "scrub", store.root)
    part.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))


def test_an_object_that_is_shorter_than_it_was_is_remarked_where_the_file_s_times_were_set(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file, part = in_two_parts(store)
    stripewise("store", "scrub", store.root)
    time.sleep(0.1)
    os.truncate(part, MIB + 4096)
    store.program("touch", file)
    said = stripewise("store", "scrub", store.root).out
    assert f"remark: {file} " in said and "its object is shorter than at the last scrub" in said, said
    assert "shorter" not in stripewise("store", "scrub", store.root).out
    # Who writes a file anew, and as long, is not remarked.
    store.program("sh", "-c", 'head -c 3000000 /dev/urandom >"$0"', file)
    stripewise("store", "scrub", store.root)
    store.program("sh", "-c", 'head -c 3000000 /dev/urandom >"$0"', file)
    assert "remark" not in stripewise("store", "scrub", store.root).out
