"""The globs that a plan takes from its trace."""

import json

from stripewise.plan.document import Expected, FilePlan, Plan, RegionPlan, dump_plan, plan_from_json
from stripewise.run.recreated import as_made
from stripewise.workload.made import Made


def planned(*paths: str) -> Plan:
    region = RegionPlan(0, 1 << 20, (("t0", 65536),))
    files = tuple(FilePlan(path, None, 10, (region,)) for path in paths)
    return Plan("def", {}, "", (), 1, (), files, {}, Expected(1.0, 1.0))


def test_numbers_that_differ_are_anything_and_read_files_have_none() -> None:
    names = frozenset({"/w/ckpt-1.h5", "/w/ckpt-2.h5", "/w/in"})
    made = as_made(planned("/w/ckpt-2.h5", "/w/in"), Made(frozenset({"/w/ckpt-2.h5"}), names, {}))
    assert [file.made_as for file in made.files] == ["/w/ckpt-[0-9]*.h5", ""]
    again = plan_from_json(json.loads(dump_plan(made)), "p")
    assert [file.made_as for file in again.files] == ["/w/ckpt-[0-9]*.h5", ""]


def test_a_name_that_no_plan_may_hold_has_no_glob() -> None:
    names = frozenset({"/w/a\nb", "/w/c"})
    made = as_made(planned(*sorted(names)), Made(names, names, {}))
    assert [file.made_as for file in made.files] == ["", "/w/c"]


def test_a_renamed_file_is_made_under_its_first_name() -> None:
    made = Made(frozenset({"/w/out"}), frozenset({"/w/out.tmp"}), {"/w/out": "/w/out.tmp"})
    assert [file.made_as for file in as_made(planned("/w/out"), made).files] == ["/w/out.tmp"]
