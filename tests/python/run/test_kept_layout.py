"""The layout that `tune` keeps, as it tells of it."""

from __future__ import annotations

from pathlib import Path

from stripewise.cli.run.kept_layout import FILES_SHOWN, kept_layout
from stripewise.plan import Expected, FilePlan, Plan, Window
from stripewise.plan.document import RegionPlan

MIB = 1 << 20


def file(path: str, *regions: RegionPlan) -> FilePlan:
    return FilePlan(path, None, regions[-1].start, regions)


def plan(*files: FilePlan) -> Plan:
    return Plan("best", {}, "", ("job",), 1, (Window(0, 1),), files, {}, Expected(1.0, 2.0, 1.0, 2.0))


def test_the_kept_layout_stands_in_rows_with_the_reasons_by_bytes() -> None:
    hot = RegionPlan(0, MIB, (("s0", 4096),), reason="hot: read often")
    cold = RegionPlan(MIB, 7 * MIB, (("h0", 65536), ("h1", 65536)), reason="cold: rarely used")
    growth = RegionPlan(8 * MIB, 7 * MIB, (("h0", 65536), ("h1", 65536)), reason="growth")
    lines = list(kept_layout(plan(file("/f", hot, cold, growth))))
    assert lines[0] == "the layout that stays, of best:" and lines[1] == "/f: 8.0 MiB, 2 region(s)"
    said = "\n".join(lines)
    assert "64KiB on h0 h1" in said and said.index("7.0 MiB: cold: rarely used") < said.index(
        "1.0 MiB: hot: read often"
    )
    assert "growth" not in said.replace("end, growth", "")


def test_the_reason_of_other_devices_is_told_and_files_that_are_made_anew_have_the_name_of_their_glob() -> None:
    regions = [RegionPlan(n * MIB, MIB, ((f"h{n}", 4096),), reason=f"why {n}") for n in range(5)]
    hot = RegionPlan(5 * MIB, 4096, (("s0", 4096),), reason="hot")
    kept = plan(file("/ckpt-7.h5", *regions, hot, RegionPlan(6 * MIB, MIB, (("h0", 4096),))))
    classes = {f"h{n}": "hdd" for n in range(5)} | {"s0": "ssd"}
    said = list(kept_layout(kept, {"/ckpt-*.h5": kept.files[0]}, classes))
    assert said[1].startswith("new files /ckpt-*.h5: ") and "  4.0 KiB: hot" in said and "  1.0 MiB: why 0" in said


def test_of_many_files_and_reasons_the_others_are_counted() -> None:
    regions = [RegionPlan(n * MIB, MIB, (("s0", 4096 * (n + 1)),), reason=f"why {n}") for n in range(9)]
    lines = list(kept_layout(plan(*(file(f"/f{n}", *regions) for n in range(5)))))
    assert f"and {5 - FILES_SHOWN} further file(s), none larger" in lines and "  and 6 more reason(s)" in lines
    assert len(lines) < 24


def test_a_file_that_is_gone_and_made_anew_under_other_names_is_told_by_its_glob_alone(
    tmp_path: Path,
) -> None:
    region = RegionPlan(0, MIB, (("s0", 4096),))
    for name in ("ckpt-1", "ckpt-3"):
        (tmp_path / name).touch()
    kept = plan(*(file(str(tmp_path / f"ckpt-{n}"), region) for n in (1, 2, 3)))
    said = "\n".join(kept_layout(kept, {f"{tmp_path}/ckpt-*": kept.files[0]}))
    assert f"new files {tmp_path}/ckpt-*" in said and "ckpt-3" in said and "ckpt-2" not in said
