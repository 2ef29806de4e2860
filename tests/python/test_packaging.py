"""What packages bring beside the program agrees with the sources: variables, requirements, pages, completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import manpages
import pytest
import typer
import zig_cc

from stripewise.cli.completion import Shell, script
from stripewise.cli.main import app
from stripewise.cli.verbs import PROGRAM, TABLE, Group, Verb
from stripewise.errors import UsageError
from stripewise.report.figure import check_plot_path

ROOT = Path(__file__).resolve().parents[2]
#: Where variables are read: what is loaded into programs, and what is started as a command.
READERS = ("shim", "crates", "python/stripewise")
#: A test of the crate starts itself with it.
OF_TESTS = {"STRIPEWISE_TEST_SEGMENT"}
VARIABLE = re.compile(r"\b_?STRIPEWISE_[A-Z_]+\b")


def read_variables() -> set[str]:
    """Names in the sources that are no guards of headers."""
    files = [
        path
        for reader in READERS
        for path in (ROOT / reader).rglob("*")
        if path.suffix in (".c", ".h", ".rs", ".py") and "tests" not in path.parts
    ]
    found = {name for path in files for name in VARIABLE.findall(path.read_text())}
    return {name for name in found if not name.endswith("_H")}


def test_the_page_names_every_variable_that_is_read_and_no_other() -> None:
    page = (ROOT / "docs/slurm.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == read_variables() - OF_TESTS
    assert set(VARIABLE.findall(page)) <= set(listed)
    assert read_variables() >= OF_TESTS, "named as a test's and not there any more"


def test_the_page_names_the_launchers_variables_that_tell_ranks() -> None:
    life = (ROOT / "crates/runtime/src/life.rs").read_text()
    ranks = {name for line in re.findall(r"number\(&\[(.*?)\]\)", life) for name in re.findall(r'b"(\w+)"', line)}
    assert "SLURM_PROCID" in ranks
    assert ranks <= set(re.findall(r"`(\w+)`", (ROOT / "docs/slurm.md").read_text()))


def requirements(lines: list[str]) -> dict[str, str]:
    """The oldest version of each package."""
    return dict(line.split(">=") for line in lines)


def test_the_spack_recipe_asks_for_what_the_project_asks_for() -> None:
    text = (ROOT / "packaging/spack/packages/stripewise/package.py").read_text()
    asked = dict(re.findall(r'depends_on\("([\w-]+)@([\d.]+):', text))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    build = project["build-system"]["requires"]
    needed = requirements(project["project"]["dependencies"])
    needed |= requirements(project["project"]["optional-dependencies"]["plot"])
    needed |= {line.split(">=")[0]: line.split(">=")[1].split(",")[0] for line in build}
    # What has an upper bound as well has one there.
    expected = {f"py-{name}": version.split(",")[0] for name, version in needed.items()}
    expected |= {"rust": workspace["rust-version"], "python": project["project"]["requires-python"].removeprefix(">=")}
    assert asked == expected


def test_every_recipe_says_at_its_top_whether_it_was_run() -> None:
    recipes = [path for path in (ROOT / "packaging").rglob("*") if path.is_file() and path.name != "repo.yaml"]
    assert len(recipes) == 6
    for path in recipes:
        head = "\n".join(path.read_text().split("\n")[:2])
        assert re.search(r"# Not (run|built)|Run by tests/", head), path


def named(name: str, entry: Verb | Group) -> Iterator[tuple[str, Verb | Group]]:
    """All verbs and groups of the table, with the names of their pages."""
    yield name, entry
    for word, below in (entry.verbs if isinstance(entry, Group) else entry.within).items():
        yield from named(f"{name}-{word}", below)


def test_every_module_of_verbs_is_in_the_table() -> None:
    """And a verb brings in its own: what all of them load is what every start of the command takes."""
    own = {entry.module for _, entry in named("", Group("", TABLE)) if isinstance(entry, Verb)}
    helpers = {"main", "entry", "signals", "verbs", "arguments", "measuring", "options", "output", "tables",
               "plan.caveats", "plan.expected", "plan.options", "plan.pictures", "plan.show_trace", "plan.with_copies",
               "model.show", "copies.building", "copies.watching", "run.kept_layout", "run.engine_options",
               "simulate_replicas", "store.options", "swd.options"}  # fmt: skip
    place = ROOT / "python/stripewise/cli"
    found = {".".join(path.relative_to(place).with_suffix("").parts) for path in place.rglob("*.py")}
    assert {name for name in found if not name.endswith("__init__")} == own | helpers
    code = "import sys, stripewise.cli.main; print(*(name for name in sys.modules if name.startswith('stripewise')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert not {f"stripewise.cli.{name}" for name in own} & set(loaded)
    assert not {"stripewise.store", "stripewise.model", "stripewise.policy", "stripewise.moving"} & set(loaded)


def test_every_verb_has_a_page_with_each_of_its_options() -> None:
    root = typer.main.get_command(app).make_context(PROGRAM, [], resilient_parsing=True)
    pages = dict(manpages.pages(root))
    assert {f"{name}.1" for name, _ in named(PROGRAM, Group("", TABLE))} == pages.keys()
    assert len(pages) > 40
    plan = root.command.get_command(root, "plan")
    for parameter in plan.params:
        if parameter.param_type_name == "option":
            assert manpages.escaped(parameter.opts[-1]) in pages["stripewise-plan.1"], parameter.name
    for name, text in pages.items():
        assert text.startswith(".TH ") and ".SH NAME" in text, name
        # A line of text that begins so would be a request.
        assert all(line.split()[0] in (".TH", ".SH", ".TP", ".PP") for line in text.splitlines() if line[0] in ".'")


@pytest.mark.parametrize(
    ("text", "set_as"), [(".x", "\\&.x"), ("a-b", "a\\-b"), ("it's", "it\\(aqs"), ("\\", "\\e"), ("a\nb", "a b")]
)
def test_text_stands_on_a_page_as_it_is(text: str, set_as: str) -> None:
    assert manpages.escaped(text) == set_as


def completed(words: str, at: int) -> tuple[list[str], str]:
    """What bash is told could come at a place, and the modules that were loaded for it."""
    environment = {
        **os.environ, "COMP_WORDS": words, "COMP_CWORD": str(at), "_STRIPEWISE_COMPLETE": "complete_bash",
    }  # fmt: skip
    program = [sys.executable, "-X", "importtime", Path(sys.executable).parent / PROGRAM]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return said.stdout.splitlines(), said.stderr


def test_verbs_are_completed_without_loading_the_heavy_ones() -> None:
    proposed, loaded = completed("stripewise s", 1)
    assert {"store", "swd", "show", "simulate"} <= set(proposed)
    assert all(name.startswith("s") for name in proposed)
    assert "typer" in loaded and not re.search(r"\b(numpy|pyarrow)$", loaded, re.M)


def test_options_of_a_heavy_verb_are_completed() -> None:
    assert completed("stripewise plan --po", 2)[0] == ["--policy"]
    assert completed("stripewise store template a", 3)[0] == ["add"]


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("stripewise plan t --policy p", ["padp", "psa"]),
        ("stripewise simulate --policy best,de", ["best,def"]),
        ("stripewise store find s --class ss", ["ssd"]),
        ("stripewise replicate t --manager radar,s-", ["radar,s-pdla", "radar,s-orig"]),
        ("stripewise store add s t --class s", ["ssd", "swd"]),
    ],
)
def test_names_that_an_option_takes_are_completed(words: str, proposed: list[str]) -> None:
    assert completed(words, len(words.split()) - 1)[0] == proposed


@pytest.mark.parametrize("shell", Shell)
def test_a_script_asks_by_the_variable_that_the_program_answers_to(shell: Shell) -> None:
    assert f"_STRIPEWISE_COMPLETE=complete_{shell}" in script(shell)


def test_a_plot_without_matplotlib_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'stripewise\[plot\]'"):
        check_plot_path(tmp_path / "out.svg")


def test_the_flag_of_a_library_that_comes_first_is_set_alone() -> None:
    library = bytearray((ROOT / "python/stripewise/lib/libstripewise.so").read_bytes())
    entry = zig_cc.ENTRY.pack(zig_cc.DT_FLAGS_1, zig_cc.DF_1_INITFIRST)
    assert library.count(entry) == 1
    other = library.replace(entry, zig_cc.ENTRY.pack(zig_cc.DT_FLAGS_1, 0x9))
    zig_cc.initialise_first(other)
    assert other == library


def test_a_file_without_that_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="ELF"):
        zig_cc.initialise_first(bytearray(b"!<arch>\n" * 20))
