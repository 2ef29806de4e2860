"""Policies from outside: what a file or a package may register, what is said when it fails, and what is checked."""

from __future__ import annotations

import importlib.metadata

import pytest
from typer.testing import CliRunner

from stripewise.cli.main import app
from stripewise.errors import PlanError, UsageError
from stripewise.policy import POLICIES, PlanOptions, policy_named
from support import MIB, cluster, page_example, zipf_workload

OPTIONS = PlanOptions(region_bytes=MIB)
#: The head of a policy that makes a sound plan, and then does something to it.
SPOIL = """
import dataclasses
from stripewise.policy import *

@register
def mine(workload, cluster, options):
    plan = POLICIES["def"].plan(workload, cluster, options)
    file = plan.files[0]

    def first(stripes):
        one = dataclasses.replace(file.regions[0], stripes=stripes)
        return dataclasses.replace(plan, files=(dataclasses.replace(file, regions=(one, *file.regions[1:])),))

"""


def write(tmp_path, text: str, name: str = "mine.py") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def plan_with(tmp_path, text: str, on=None):
    return policy_named(write(tmp_path, text)).plan(zipf_workload(8, 50), on or cluster(4, 2), OPTIONS)


def test_a_class_in_a_file_is_a_policy(tmp_path):
    text = (
        "from stripewise.policy import *\n@register\nclass Mine(Policy):\n    name = 'mine'\n"
        "    def plan(self, workload, cluster, options):\n"
        "        return POLICIES['def'].plan(workload, cluster, options)\n"
    )
    assert plan_with(tmp_path, text).files
    assert "mine" not in POLICIES


def test_the_example_of_the_page_beats_def_by_the_bound_on_small_requests(tmp_path):
    # Cost-models section 7: whole on one server each is what splitting small requests loses to.
    policy = policy_named(write(tmp_path, page_example(), "whole.py"))
    plan = policy.plan(zipf_workload(64, 4000, 65536), cluster(4, 2, 8 * MIB), OPTIONS)
    assert plan.policy == "whole" and plan.expected.bound_gain > 1.3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "registers no policy; put @register"),
        (
            SPOIL + "    return plan\n\n@register\ndef other(workload, cluster, options): ...\n",
            "2 policies, mine, other",
        ),
        ("\n\nboom = 1 / 0\n", r"mine\.py, line 3: ZeroDivisionError: division by zero"),
        ("def f(:\n", r"mine\.py, line 1: SyntaxError: "),
        ("import no_such_module\n", r"line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(3)\n", r"line 2: SystemExit: 3"),
        ("raise GeneratorExit('odd')\n", r"line 1: GeneratorExit: odd"),
        ("from stripewise.policy import *\n@register\ndef h2dp(w, c, o): ...\n", "'h2dp', which exists"),
        ("from stripewise.policy import *\nregister(7)\n", "line 2: TypeError: 7 is neither a subclass of Policy nor"),
        ("from stripewise.policy import *\n@register\nclass M(Policy):\n    plan = None\n", "TypeError: M has no name"),
    ],
)
def test_a_file_that_holds_no_policy_is_one_clear_line(tmp_path, text, said):
    with pytest.raises(UsageError, match=said) as error:
        policy_named(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        policy_named(str(tmp_path / "none.py"))


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ("return None", "returned NoneType, not a Plan"),
        ("raise KeyError('ssd9')", r"the policy mine failed: .*mine\.py, line 14: KeyError: 'ssd9'"),
        ("raise SystemExit(0)", r"the policy mine failed: .*mine\.py, line 14: SystemExit: 0"),
        ("return dataclasses.replace(plan, files=(dataclasses.replace(file, path='/x'),))", "leaves out /data/f"),
        ("return dataclasses.replace(plan, files=(dataclasses.replace(file, size=1),))", "plans 1 bytes of /data/f"),
        (
            "return dataclasses.replace(plan, files=(dataclasses.replace(file, regions=file.regions[1:]),))",
            "leaves a gap",
        ),
        ("return first((('nowhere', 4096),))", "names the target 'nowhere'"),
        ("return first((('hdd0', 4097),))", "bad width for 'hdd0'"),
    ],
)
def test_a_plan_that_breaks_a_rule_names_the_policy(tmp_path, spoiled, said):
    with pytest.raises(PlanError, match=said) as error:
        plan_with(tmp_path, f"{SPOIL}    {spoiled}\n")
    assert "the policy mine" in str(error.value) and "\n" not in str(error.value)


def test_a_plan_that_overfills_a_target_is_refused(tmp_path):
    text = SPOIL + (
        "    one = tuple(dataclasses.replace(r, stripes=(('ssd0', 65536),)) for r in file.regions)\n"
        "    return dataclasses.replace(plan, files=(dataclasses.replace(file, regions=one),), target_bytes={})\n"
    )
    with pytest.raises(PlanError, match=r"the policy mine .* puts 8.0 MiB on 'ssd0', 6.0 MiB more than"):
        plan_with(tmp_path, text, cluster(4, 2, 2 * MIB))


def test_a_traceback_is_shown_on_demand(tmp_path, monkeypatch):
    monkeypatch.setenv("STRIPEWISE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        policy_named(write(tmp_path, "1 / 0\n"))


def test_an_installed_package_offers_policies_by_name(tmp_path, monkeypatch):
    write(tmp_path, SPOIL + "    return plan\n", "offered_policy.py")
    info = tmp_path / "offered-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[stripewise.policies]\nmine = offered_policy:mine\nbad = offered_policy:no\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [p.name for p in importlib.metadata.entry_points(group="stripewise.policies")] == ["mine", "bad"]
    assert policy_named("mine").plan(zipf_workload(4, 9), cluster(2, 1), OPTIONS).files
    with pytest.raises(UsageError, match="'bad': offered_policy:no: AttributeError"):
        policy_named("bad")
    with pytest.raises(UsageError, match=r"there is no policy 'xx'; use one of bad, best, def, .*mine"):
        policy_named("xx")


def test_options_of_one_policy_are_refused_for_another(tmp_path):
    given = ["plan", "none.parquet", "--cluster", "none.toml", "--policy", "psa", "--sigma", "0.3"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert "--sigma: the policy psa does not take it; drop it or use slal" in result.output
