"""Devices behind directories, on machines as /sys and /proc would describe them, and the class that follows."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stripewise.cluster import Target
from stripewise.cluster.calibration import Calibration, Fit
from stripewise.devices import System, find, shared
from stripewise.devices.mounts import holding, mounts_in
from stripewise.moving import retarget
from stripewise.setup.classes import Decided, decide
from stripewise.setup.document import FoundTarget, comments
from stripewise.setup.remarks import on_one_device


@dataclass
class Machine:
    """A tree like /sys and a table of mounts; directories are real ones, with the numbers that they are given."""

    root: Path
    numbers: dict[Path, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    mounts: list[str] = field(default_factory=list)

    def disk(self, name: str, number: str, rotational: int | None, model: str = "") -> Path:
        """A disk in /sys."""
        entry = self._entry(f"devices/pci0/{name}", number)
        (entry / "queue").mkdir()
        if rotational is not None:
            (entry / "queue/rotational").write_text(f"{rotational}\n")
        (entry / "device").mkdir()
        (entry / "device/model").write_text(f"{model}   \n")
        return entry

    def partition(self, disk: Path, name: str, number: str) -> Path:
        entry = self._entry(str((disk / name).relative_to(self.root / "sys")), number)
        (entry / "partition").write_text("1\n")
        return entry

    def over(self, name: str, number: str, *below: Path, dm: str = "") -> Path:
        """A device that is made of others; its flag says that it turns, as device mapper's does where it must guess."""
        entry = self._entry(f"devices/virtual/block/{name}", number)
        (entry / "slaves").mkdir()
        for member in below:
            (entry / "slaves" / member.name).symlink_to(os.path.relpath(member, entry / "slaves"))
        (entry / "queue").mkdir()
        (entry / "queue/rotational").write_text("1\n")
        if dm:
            (entry / "dm").mkdir()
            (entry / "dm/name").write_text(f"{dm}\n")
        return entry

    def mount(self, name: str, number: str, kind: str, source: str, files: str | None = None) -> Path:
        """A directory with a file system of this number, whose files say `files` where that is another."""
        point = self.root / name
        point.mkdir()
        line = len(self.mounts) + 100
        self.mounts.append(f"{line} 1 {number} / {point} rw,relatime shared:1 - {kind} {source} rw")
        self.numbers[point] = files or number
        (self.root / "proc/self").mkdir(parents=True, exist_ok=True)
        (self.root / "proc/self/mountinfo").write_text("\n".join(self.mounts) + "\n")
        return point

    def _entry(self, path: str, number: str) -> Path:
        entry = self.root / "sys" / path
        entry.mkdir(parents=True)
        (entry / "size").write_text("2097152\n")
        link = self.root / "sys/dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(entry, link.parent))
        return entry

    def system(self) -> System:
        machine = self

        class Described(System):
            def device_of(self, directory: Path) -> str | None:
                return machine.numbers.get(directory)

            def node(self, source: str) -> str | None:
                return machine.nodes.get(source)

            def mount_number(self, directory: Path) -> int | None:
                return None

        return Described(self.root / "sys", self.root / "proc")

    def find(self, directory: Path):
        return find(directory, self.system())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path.resolve())


def names(place) -> list[str]:
    return [disk.name for disk in place.disks]


def test_a_partition_is_followed_to_its_disk(machine):
    machine.partition(machine.disk("sda", "8:0", 1, "ST4000NM"), "sda1", "8:1")
    place = machine.find(machine.mount("m", "8:1", "xfs", "/dev/sda1"))
    assert names(place) == ["sda"] and place.rotational is True and place.short == "sda"
    assert place.words == "sda1, ST4000NM, 1.0 GiB, rotational, xfs"


def test_an_nvme_partition_is_one_of_a_disk_that_does_not_turn(machine):
    machine.partition(machine.disk("nvme0n1", "259:0", 0, "SSD 980 PRO"), "nvme0n1p2", "259:2")
    place = machine.find(machine.mount("m", "259:2", "ext4", "/dev/nvme0n1p2"))
    assert names(place) == ["nvme0n1"] and place.rotational is False
    assert place.words == "nvme0n1p2, SSD 980 PRO, 1.0 GiB, not rotational, ext4"


def test_crypt_over_lvm_over_raid_ends_at_the_disks_whose_flags_count(machine):
    first, second = machine.disk("sda", "8:0", 0), machine.disk("sdb", "8:16", 0)
    raid = machine.over("md0", "9:0", machine.partition(first, "sda1", "8:1"), second)
    volume = machine.over("dm-0", "253:0", raid, dm="vg-data")
    machine.over("dm-1", "253:1", volume, dm="crypt")
    place = machine.find(machine.mount("m", "253:1", "ext4", "/dev/mapper/crypt"))
    assert names(place) == ["sda", "sdb"] and place.short == "sda+sdb"
    assert place.rotational is False, "the flag of device mapper itself is not looked at"
    assert place.words.startswith("dm-1 (crypt), over dm-0")


def test_btrfs_is_found_by_its_source_and_has_all_its_devices(machine):
    members = [machine.disk(name, number, 0) for name, number in (("sdc", "8:32"), ("sdd", "8:48"))]
    machine.nodes["/dev/sdd"] = "8:48"
    devices = machine.root / "sys/fs/btrfs/0b5c/devices"
    devices.mkdir(parents=True)
    for member in members:
        (devices / member.name).symlink_to(member)
    # Files of a subvolume have a number that no line of mountinfo has.
    one = machine.mount("one", "0:40", "btrfs", "/dev/sdd", files="0:41")
    two = machine.mount("two", "0:40", "btrfs", "/dev/sdd", files="0:42")
    assert names(machine.find(one)) == ["sdc", "sdd"]
    (group,) = shared([machine.find(one), machine.find(two)])
    assert group.positions == (0, 1) and group.disks == ("sdc", "sdd") and group.one_file_system


def test_a_loop_device_is_followed_to_the_disk_of_its_file(machine):
    machine.disk("sda", "8:0", 1)
    below = machine.mount("below", "8:0", "ext4", "/dev/sda")
    loop = machine._entry("devices/virtual/block/loop3", "7:3")
    (loop / "loop").mkdir()
    (loop / "loop/backing_file").write_text(f"{below}/image\n")
    place = machine.find(machine.mount("m", "7:3", "ext4", "/dev/loop3"))
    assert names(place) == ["sda"] and f"over {below}/image" in place.words
    (loop / "loop/backing_file").write_text("/gone/image (deleted)\n")
    assert names(machine.find(machine.root / "m")) == ["loop3"]


@pytest.mark.parametrize(
    ("kind", "source", "short"),
    [
        ("overlay", "overlay", "overlay"), ("tmpfs", "tmpfs", "memory"), ("nfs4", "server:/export", "nfs4"),
        ("zfs", "tank/data", "zfs"), ("lustre", "10.0.0.1@tcp:/scratch", "lustre"),
    ],
)  # fmt: skip
def test_what_has_no_disk_says_so(machine, kind, source, short):
    place = machine.find(machine.mount("m", "0:50", kind, source))
    assert place.disks == () and place.rotational is None and place.short == short
    assert place.words == f"{kind} ({source})"


def test_a_directory_that_is_not_there_is_unknown_and_shares_nothing(machine):
    gone = machine.find(machine.root / "gone")
    assert gone.words == gone.short == "unknown"
    assert shared([gone, machine.find(machine.root / "gone too")]) == []


def test_two_file_systems_on_one_disk_share_its_queue_and_not_their_space(machine):
    disk = machine.disk("sda", "8:0", 1)
    machine.disk("sdb", "8:16", 1)
    for name, number in (("sda1", "8:1"), ("sda2", "8:2")):
        machine.partition(disk, name, number)
    places = [
        machine.find(machine.mount(name, number, "ext4", f"/dev/{name}"))
        for name, number in (("sda1", "8:1"), ("sdb", "8:16"), ("sda2", "8:2"))
    ]
    (group,) = shared(places)
    assert group.positions == (0, 2) and group.disks == ("sda",) and not group.one_file_system


def test_a_raid_joins_directories_that_have_no_disk_in_common_themselves(machine):
    disks = [machine.disk(f"sd{letter}", f"8:{16 * at}", 1) for at, letter in enumerate("ab")]
    machine.over("md0", "9:0", *disks)
    places = [
        machine.find(machine.mount(name, number, "ext4", f"/dev/{name}"))
        for name, number in (("sda", "8:0"), ("sdb", "8:16"), ("md0", "9:0"))
    ]
    assert shared(places[:2]) == []
    (group,) = shared(places)
    assert group.positions == (0, 1, 2) and group.disks == ("sda", "sdb")


def test_devices_in_a_circle_end(machine):
    first = machine.over("dm-0", "253:0")
    second = machine.over("dm-1", "253:1", first)
    (first / "slaves/dm-1").symlink_to(second)
    assert len(machine.find(machine.mount("m", "253:0", "ext4", "/dev/dm-0")).disks) == 1


def test_mounts_have_their_escapes_undone_and_the_kernel_is_asked_where_mounts_cover_others():
    text = "\n".join(
        [
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw", r"21 20 8:2 / /a\040b rw - ext4 /dev/disk\134x rw", "nonsense",
            "22 20 8:3 / /a rw shared:2 master:1 - xfs /dev/sdc rw", "23 20 8:4 / /a rw - xfs /dev/sdd rw",
        ]
    )  # fmt: skip
    mounts = mounts_in(text)
    assert [mount.number for mount in mounts] == [20, 21, 22, 23]
    assert (mounts[1].point, mounts[1].source) == ("/a b", "/dev/disk\\x")
    assert holding(mounts, "/a/x", None) == mounts[3], "the later one covers the earlier"
    assert holding(mounts, "/a/x", 22) == mounts[2]
    assert holding(mounts, "/ab", None) == mounts[0], "a name that begins alike is another directory"


def test_this_machine_knows_the_mount_of_every_directory():
    for directory in ("/", "/proc", "/dev/shm"):
        place = find(Path(directory))
        assert place.mount is not None and place.words != "unknown"
    assert find(Path("/proc")).mount.kind == "proc"


def record(random_s: float, order_s: float, method: str = "direct") -> Calibration:
    fits = tuple(
        (kind, Fit(startup_s, 1e-8, startup_s, startup_s, 0.1, 0.1, 100))
        for kind, startup_s in (("random_read", random_s), ("sequential_read", order_s))
    )
    return Calibration("2026-01-31", "d", method, 1, 100, 1 << 20, 1.0, (4096,), fits)


@pytest.mark.parametrize(
    ("kind", "is_told"), [("random_write", True), ("sequential_read", True), ("saturated_write", False)]
)
def test_init_tells_of_unreliable_measurements_that_decide_something(machine, kind, is_told):
    fits = ((kind, Fit(0.001, 1e-8, 0.001, 0.001, 0.9, 0.1, 100)),)
    place = machine.find(machine.mount("m", "8:0", "ext4", "/dev/sda"))
    measured = replace(record(0.009, 0.0002), fits=fits)
    target = Target("t", "hdd", "dir", Path("/x"), 0, 0.0, 0.0, 0.0, 0.0, calibration=measured)
    found = FoundTarget(target, Path("/x"), place, Decided("hdd", "given", ""), 1, 1)
    assert (found.unreliable == [kind]) == is_told
    assert any("unreliably" in line for line in comments(found)) == is_told


@pytest.mark.parametrize(
    ("flag", "measured", "klass", "by"),
    [
        # A virtual disk says that it turns, a bridge to USB that its disk does not.
        (1, record(0.00009, 0.00009), "ssd", "measurement"),
        (0, record(0.009, 0.0002), "hdd", "measurement"),
        (1, record(0.009, 0.0002), "hdd", "measurement"),
        # As slow in order as at chance: a way to it, and no arm. The flag is all that there is.
        (1, record(0.004, 0.004), "hdd", "kernel"),
        (0, record(0.004, 0.004), "ssd", "kernel"),
        (None, record(0.004, 0.004), "any", "nothing"),
        # The file system reads ahead where O_DIRECT is refused: 2 ms at chance may be a network's.
        (None, record(0.002, 0.0001, "fadvise"), "any", "nothing"),
        (None, record(0.009, 0.0001, "fadvise"), "hdd", "measurement"),
        (1, None, "hdd", "kernel"), (0, None, "ssd", "kernel"), (None, None, "any", "nothing"),
    ],
)  # fmt: skip
def test_a_measurement_is_believed_before_the_flag(machine, flag, measured, klass, by):
    machine.disk("sda", "8:0", flag)
    decided = decide(machine.find(machine.mount("m", "8:0", "ext4", "/dev/sda")), measured)
    assert (decided.klass, decided.by) == (klass, by)
    contradicted = by == "measurement" and flag is not None and (klass == "hdd") != bool(flag)
    assert ("contradicts" in decided.why) == contradicted


def test_of_directories_on_one_device_those_that_are_no_emulated_targets_are_told(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"t{number}").mkdir()
    made = [Target(f"t{number}", "hdd", "dir", tmp_path / f"t{number}", 0, 0.0, 0.0, 0.0, 0.0) for number in range(10)]
    (said,) = on_one_device(made)
    assert said.startswith("t0, t1, t2, t3, t4, t5, t6 and 3 more share ") and "give one directory for each" in said
    assert on_one_device(made[:1]) == []
    assert on_one_device([replace(each, kind="emulated") for each in made]) == []


def test_a_new_target_is_like_others_where_these_are_emulated_and_else_itself() -> None:
    kinds = (("a", "hdd"), ("b", "ssd"), ("c", "ssd"))
    made = [Target(name, klass, "emulated", Path(f"/{name}"), 0, 0.0, 0.0, 0.0, 0.0) for name, klass in kinds]

    def taken(klass: str | None, *targets: Target) -> str | None:
        store: Any = SimpleNamespace(config=SimpleNamespace(cluster=SimpleNamespace(active=targets)))
        model = retarget.model_for(store, klass, None)
        return None if model is None else model.name

    assert taken("ssd", *made) == "b" and taken("swd", *made) == "a" and taken(None, *made) == "a"
    assert taken("ssd", *made[:2], replace(made[2], kind="dir")) is None
