"""The command line without the native module or with one made of paper: verbs, exit codes, one line per error."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stripewise import _stripewise
from stripewise.cli.main import app
from stripewise.cluster import read_cluster
from stripewise.plan import read_plan
from stripewise.run import runner
from stripewise.workload.trace import FLAG_MANAGED
from support import MIB, zipf_workload
from test_cluster import TARGET
from test_trace_reader import row, trace

SSD = TARGET.replace("hdd0", "ssd0").replace('"hdd"', '"ssd"').replace("0.003", "0.0001").replace("0.004", "0.0001")


def stripewise(*words, code=0):
    """Runs a verb and holds it to the contract: its exit code, and one line on stderr when it fails."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert code is None or result.exit_code == code, f"{result.exit_code}: {result.output}\n{result.stderr}"
    assert "Traceback" not in result.output + result.stderr
    if code == 1:
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result


@pytest.fixture
def cluster_toml(tmp_path) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(TARGET.replace("1048576", "0") + SSD)
    return path


@pytest.fixture
def a_trace(tmp_path) -> Path:
    requests = zipf_workload(8, 80).files[0].requests
    place = tmp_path / "trace"
    place.mkdir()
    return trace(
        place,
        [
            row(offset=int(r["offset"]), done=int(r["size"]), op="write" if r["write"] else "read", rank=0, world=4,
                start_ns=int(r["start_ns"]), end_ns=int(r["end_ns"]))
            for r in requests
        ],
    )  # fmt: skip


class PaperMover:
    """A mover that only notes what it is told to do."""

    def __init__(self, paper, look):
        self.paper = paper
        self.look = look

    def expect(self, total_bytes):
        pass

    def apply(self, path, identity, layout, start, size):
        self.paper.applied.append(json.loads(layout))
        assert self.look(0, size)
        return json.dumps({"moved_bytes": self.paper.moved_bytes, "seconds": 0.5})

    def end(self, state):
        assert state == "ended"


class Paper(types.ModuleType):
    """A native module that remembers: one file of 8 MiB, devices whose HDD works twice as long under DEF."""

    MAX_REGIONS, MAX_RULES, MAX_TARGETS = 1 << 20, 1024, 256

    class StripewiseError(Exception):
        pass

    def __init__(self, base: Path) -> None:
        super().__init__("stripewise._stripewise")
        self.base = base
        self.specs: list[dict] = []
        self.applied: list[dict] = []
        self.moved_bytes = 4096
        self.devices = 0
        self.file = str(base / "data" / "f")

    def store_create(self, store, spec, shared=False):
        self.specs.append(json.loads(spec))
        (Path(store) / "store.bin").write_bytes(b"")
        [(Path(store) / part).mkdir() for part in ("run", "files")]

    def store_configure(self, store, spec):
        self.specs.append(json.loads(spec))

    def store_info(self, store):
        return json.dumps({"store": store, "toml_sha256": self.specs[-1]["toml_sha256"] if self.specs else ""})

    store_without_room = staticmethod(lambda store, files: "null")
    store_nameless = staticmethod(lambda store, most: '{"files": [], "looked_at": 0, "of": 0}')

    def store_files(self, store):
        return json.dumps(
            {"files": [{"id": "a" * 16, "path": self.file, "size": 8 * MIB, "generation": 1, "regions": 1}]}
        )

    def store_layout(self, store, identity):
        return json.dumps(self.applied[-1] if self.applied else self.specs[-1]["default_layout"])

    def MoveSession(self, store, options, head, look):  # noqa: N802
        return PaperMover(self, look)

    def store_resolve(self, path):
        return json.dumps({"store": str(self.base / "store"), "id": "a" * 16} if path == self.file else None)

    def store_devices(self, store):
        # The first look is that of who makes the store, at its room.
        turn, self.devices = self.devices, self.devices + 1
        busy = {"hdd0": turn * 10**9 if turn > 2 else 0, "ssd0": 0}
        row = {"busy_write_ns": 0, "free_bytes": 1 << 40}
        return json.dumps({"targets": [{"name": name, "busy_read_ns": ns, **row} for name, ns in busy.items()]})

    def store_fsck(self, store, options):
        repaired = json.loads(options)["repair"]
        finding = {"severity": "error", "code": "orphan", "message": "an object is orphaned", "cure": "look at it"}
        return json.dumps({"findings": [{**finding, "repaired": repaired}], "errors": 0 if repaired else 1})

    def trace_collect(self, raw, out, lenient):
        Path(out).mkdir(exist_ok=True)
        requests = zipf_workload(8, 80).files[0].requests
        trace(
            Path(out),
            [
                row(file=self.file, flags=FLAG_MANAGED, offset=int(r["offset"]), done=int(r["size"]), pid=n % 3)
                for n, r in enumerate(requests)
            ],
        )
        return json.dumps({"records": len(requests), "dropped": 0})


@pytest.fixture
def paper(tmp_path, monkeypatch):
    module = Paper(tmp_path)
    # Sums over requests and simulated runs are no store: they stay the real ones.
    for name in ("group_requests", "cycle_costs", "cheapest_pairs", "service_demand", "Trials"):
        setattr(module, name, getattr(_stripewise, name))
    monkeypatch.setitem(sys.modules, "stripewise._stripewise", module)
    monkeypatch.setattr(runner, "library_path", lambda: Path("/none/libstripewise.so"))
    return module


@pytest.fixture
def store(tmp_path, cluster_toml, paper) -> Path:
    stripewise("store", "create", tmp_path / "store", "--cluster", cluster_toml, "--region-size", "1MiB")
    return tmp_path / "store"


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"], ["plan", "--frobnicate"], ["run"], ["run", "true"], ["plan"],
        ["plan", "t", "--cluster", "c", "--policy", "h2pd"], ["plan", "t", "--cluster", "c", "--region-size", "64Mib!"],
        ["plan", "t", "--cluster", "c", "--region-size", "1000"], ["plan", "t", "--check", "p"], ["store", "create"],
        ["apply", "p"], ["tune", "--", "true"], ["migrate", "p"], ["mover", "status"],
        ["run", "--store", "s", "--bandwidth", "fast", "--", "true"],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_exit_code_2(words):
    stripewise(*words, code=2)


def test_version_and_help_are_exit_code_0():
    assert stripewise("--version").stdout.startswith("stripewise ")
    for verb in ("run", "collect", "show", "plan", "apply", "tune", "store"):
        assert verb in stripewise("--help").stdout
        stripewise(verb, "--help")


def test_a_trace_becomes_a_plan_that_passes_its_check(tmp_path, cluster_toml, a_trace):
    plan = tmp_path / "plan.json"
    for policy in ("def", "h2dp"):
        stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", policy, "--region-size", "1MiB", "-o", plan)
        said = json.loads(stripewise("plan", "--check", plan, "--cluster", cluster_toml, "--json").stdout)
        assert said["ok"] and said["policy"] == policy and said["remarks"] == []
    assert read_plan(plan).processes == 4
    assert read_plan(plan).cluster_digest == read_cluster(cluster_toml).digest()


def test_a_trace_is_planned_window_by_window(tmp_path, cluster_toml, a_trace):
    plan, words = tmp_path / "plan.json", ("--cluster", cluster_toml, "--region-size", "1MiB")
    # 80 requests, one each microsecond.
    said = json.loads(stripewise("plan", a_trace, *words, "--window", "0.03ms", "-o", plan, "--json").stdout)
    assert len(said["windows"]) == 3 and said["rmt"]["bytes"] == 128 * said["rmt"]["entries"]
    assert sum(row["requests"] for row in said["windows"]) == 80
    assert all({"hybrid_share_static", "cost_static_s", "moves_out"} <= set(row) for row in said["windows"])
    printed = stripewise("plan", "--check", plan, "--cluster", cluster_toml).stdout
    assert "cost in s; with / without migration" in printed and "times with the copies counted" in printed
    table = json.loads(stripewise("show", plan, "--json").stdout)
    assert table["windows"] == 3 and len(table["entries"]) == said["rmt"]["entries"]
    shown = " ".join(stripewise("show", plan).stdout.split())
    regions = [region for file in json.loads(plan.read_text())["files"] for region in file["regions"]]
    assert "from window" in shown and all(f"{region['start']:,}" in shown for region in regions)
    assert regions[0]["reason"].split()[0] in shown, shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "10"], "--window: '10' is not a span of time"),
        (["--window", "0s"], "--window: '0s' is too short or too long"),
        (["--policy", "def", "--window", "10s"], "--window: the policy def does not take it"),
        (["--policy", "h2dp", "--min-gain", "1"], "--min-gain: applies to moves between windows"),
        (["--window", "1s", "--min-gain", "-1"], "--min-gain: -1 is not a factor"),
    ],
)
def test_windows_that_make_no_sense_are_exit_code_2(cluster_toml, a_trace, words, said):
    assert said in stripewise("plan", a_trace, "--cluster", cluster_toml, *words, code=2).stderr


def test_show_counts_requests_per_file(a_trace):
    said = json.loads(stripewise("show", a_trace, "--json").stdout)
    assert said["processes"] == 4
    assert said["files"][0]["reads"] + said["files"][0]["writes"] == 80
    assert "/data/f" in stripewise("show", a_trace).stdout


def test_bad_files_are_exit_code_1_and_named(tmp_path, cluster_toml, a_trace):
    for words, name in [
        (["plan", tmp_path / "none", "--cluster", cluster_toml], "none"),
        (["plan", a_trace, "--cluster", tmp_path / "none.toml"], "none.toml"),
        (["plan", a_trace, "--cluster", cluster_toml, "--file", "/elsewhere/*"], "/elsewhere/*"),
        (["plan", "--check", cluster_toml], "cluster.toml"),
        (["show", cluster_toml], "cluster.toml"),
        (["collect", tmp_path / "none"], "none"),
        (["store", "ls", tmp_path], "not a store"),
        (["run", "--store", tmp_path, "--", "true"], "not a store"),
    ]:
        assert name in stripewise(*words, code=1).stderr


def test_a_result_that_could_not_be_written_is_refused_before_the_work(tmp_path, cluster_toml, a_trace):
    for path in (tmp_path / "no" / "plan.json", tmp_path):
        assert str(path) in stripewise("plan", a_trace, "--cluster", cluster_toml, "-o", path, code=2).stderr
    model = ["model", "--hservers", "2", "--sservers", "1", "--request", "64KiB", "--plot"]
    (tmp_path / "dir.svg").mkdir()
    for path in (tmp_path / "no" / "x.svg", tmp_path / "dir.svg"):
        assert f"--plot: {path} cannot be a file there" in stripewise(*model, path, code=2).stderr


def test_a_store_gets_its_targets_rules_and_default_layout_as_numbers(tmp_path, store, paper):
    spec = paper.specs[0]
    assert [t["name"] for t in spec["targets"]] == ["hdd0", "ssd0"]
    assert spec["targets"][0]["startup_read_ns"] == 3_000_000 and spec["targets"][0]["read_ps_per_byte"] == 10_000
    assert spec["default_layout"]["regions"][0]["stripes"] == [[0, 65536], [1, 65536]]
    manage = [rule["glob"] for rule in spec["rules"] if rule["action"] == "manage"]
    assert manage == [f"{tmp_path}/**"]
    assert spec["rules"][0] == {"glob": str(store), "action": "ignore", "layout": None}
    assert spec["toml_sha256"] == hashlib.sha256((store / "store.toml").read_bytes()).hexdigest()


def test_a_store_is_not_made_twice_nor_left_half_made(tmp_path, cluster_toml, store, paper):
    assert "is a store already" in stripewise("store", "create", store, "--cluster", cluster_toml, code=1).stderr

    def refuse(*_):
        raise paper.StripewiseError("a target\nis missing")

    paper.store_create = refuse
    said = stripewise("store", "create", tmp_path / "second", "--cluster", cluster_toml, code=1)
    assert "a target is missing" in said.stderr
    assert not (tmp_path / "second").exists()


def test_an_edited_store_toml_is_compiled_anew_by_the_next_verb(store, paper):
    stripewise("store", "ls", store)
    assert len(paper.specs) == 1
    toml = store / "store.toml"
    toml.write_text(toml.read_text().replace("1048576", "2097152", 1))
    stripewise("store", "info", store)
    assert len(paper.specs) == 2 and paper.specs[-1]["region_bytes"] == 2097152


def test_info_tells_the_first_rules_and_how_many_there_are(tmp_path, store, paper):
    layout = tmp_path / "layout.json"
    layout.write_text('{"regions": [{"start": 0, "len": 4096, "stripes": [["hdd0", 4096]]}]}')
    for number in range(9):
        stripewise("store", "template", "add", store, f"{tmp_path}/f{number}", "--layout", layout)
    told = stripewise("store", "info", store).output
    rules = json.loads(stripewise("store", "info", store, "--json").output)["rules"]
    managed = [rule["glob"] for rule in rules if rule["action"] == "manage"]
    assert f"new files in the store, by {len(managed)} rule(s):" in told and f"and {len(managed) - 3} more" in told
    assert [glob in told for glob in managed] == [True] * 3 + [False] * (len(managed) - 3)


def test_the_template_that_says_most_about_a_path_is_tried_first(tmp_path, store, paper):
    layout = tmp_path / "layout.json"
    layout.write_text(json.dumps({"regions": [{"start": 0, "len": 65536, "stripes": [["ssd0", 8192]]}]}))
    (tmp_path / "here").mkdir()
    for glob in ("/d/a/b/", "/d/*.h5", "/d/", "/d/*", "/d/a/**", "/d/a/x[*].h5", "/d/**/*.nc", f"{tmp_path}/here"):
        stripewise("store", "template", "add", store, glob, "--layout", layout)
    listed = [rule["glob"] for rule in json.loads(stripewise("store", "template", "ls", store, "--json").stdout)]
    assert listed[0] == "/d/a/x[*].h5" and set(listed[1:3]) == {"/d/**/*.nc", "/d/*.h5"}
    assert listed[3:] == [f"{tmp_path}/here/**", "/d/a/b/**", "/d/a/**", "/d/*", "/d/**"]
    stripewise("store", "template", "rm", store, "/d/a/b/")
    assert len(json.loads(stripewise("store", "template", "ls", store, "--json").stdout)) == len(listed) - 1


def test_templates_come_before_the_rules_without_a_layout_and_go_again(tmp_path, store, paper):
    layout = tmp_path / "layout.json"
    layout.write_text(json.dumps({"regions": [{"start": 0, "len": 65536, "stripes": [["ssd0", 8192]]}]}))
    stripewise("store", "template", "add", store, "/data/*.h5", "--layout", layout)
    rules = paper.specs[-1]["rules"]
    first = next(number for number, rule in enumerate(rules) if rule["action"] == "manage")
    # The store's own files stay nobody's, whatever a template says.
    assert rules[first]["layout"]["regions"][0]["stripes"] == [[1, 8192]]
    assert first > 0 and all(rule["action"] == "ignore" for rule in rules[:first])
    assert json.loads(stripewise("store", "template", "ls", store, "--json").stdout)[0]["glob"] == "/data/*.h5"
    stripewise("store", "template", "rm", store, "/data/*.h5")
    assert all(rule["layout"] is None for rule in paper.specs[-1]["rules"])
    stripewise("store", "template", "rm", store, "/data/*.h5", code=2)
    layout.write_text("{}")
    assert "layout.json" in stripewise("store", "template", "add", store, "/x/*", "--layout", layout, code=1).stderr


def test_a_plan_is_applied_to_the_files_it_names_and_no_others(tmp_path, cluster_toml, store, paper, a_trace):
    plan = tmp_path / "plan.json"
    stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "--region-size", "1MiB", "-o", plan)
    refused = stripewise("apply", plan, "--store", store, code=1).stderr
    assert "'/data/f' is not a file of the store" in refused
    plan.write_text(plan.read_text().replace('"/data/f"', json.dumps(paper.file)))
    said = json.loads(stripewise("apply", plan, "--store", store, "--json").stdout)
    assert said["moved_bytes"] == 4096 and paper.applied[-1]["regions"][0]["stripes"]
    assert "1 file(s) laid out anew: 4.0 KiB moved" in stripewise("apply", plan, "--store", store).stdout
    paper.moved_bytes = 0
    assert "1 file(s) lie as planned already" in stripewise("apply", plan, "--store", store).stdout


def test_a_plan_that_is_expected_to_lose_is_applied_only_anyway(tmp_path, cluster_toml, store, paper, a_trace):
    plan = tmp_path / "plan.json"
    stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", "h2dp", "--region-size", "1MiB", "-o", plan)
    told = json.loads(plan.read_text().replace('"/data/f"', json.dumps(paper.file)))
    told["expected"] = {"bound_s": 2.0, "bound_def_s": 1.0}
    plan.write_text(json.dumps(told))
    said = stripewise("apply", plan, "--store", store, code=1).stderr
    assert f"{plan}: is expected to be 0.50 times as fast as def" in said and "--anyway" in said and not paper.applied
    # A simulated run says more than the bound.
    told["expected"] |= {"simulated_s": 1.0, "simulated_def_s": 3.0}
    plan.write_text(json.dumps(told))
    stripewise("apply", plan, "--store", store)
    told["expected"] |= {"simulated_s": 4.0}
    plan.write_text(json.dumps(told))
    stripewise("apply", plan, "--store", store, code=1)
    stripewise("apply", plan, "--store", store, "--anyway")
    assert len(paper.applied) == 2


def test_a_plan_that_leaves_files_as_they_are_is_applied_only_anyway(tmp_path, cluster_toml, store, paper, a_trace):
    plan = tmp_path / "plan.json"
    stripewise("plan", a_trace, "--cluster", cluster_toml, "--policy", "def", "-o", plan)
    told = json.loads(plan.read_text().replace('"/data/f"', json.dumps(paper.file)))
    told["leave"], told["files"][0]["made_as"], told["expected"] = True, f"{paper.file}*", {}
    plan.write_text(json.dumps(told))
    assert "1 file(s) left where they lie" in stripewise("apply", plan, "--store", store).stdout and not paper.applied
    left = json.loads(stripewise("apply", plan, "--store", store, "--json").stdout)
    assert (left["left"], left["files"], left["templates"]) == (1, 0, []) and not paper.applied
    said = stripewise("apply", plan, "--store", store, "--anyway").stdout
    assert "laid out anew" in said and len(paper.applied) == 1
    # The same layout that somebody asked for is brought about.
    told["leave"] = False
    plan.write_text(json.dumps(told))
    stripewise("apply", plan, "--store", store)
    assert len(paper.applied) == 2
    told["leave"] = "no"
    plan.write_text(json.dumps(told))
    assert "leave is neither true nor false" in stripewise("apply", plan, "--store", store, code=1).stderr


def test_fsck_fails_until_repaired(store):
    failed = stripewise("store", "fsck", store, code=1)
    assert "an object is orphaned" in failed.stdout and "1 error(s)" in failed.stderr
    stripewise("store", "fsck", store, "--repair")


def test_a_missing_native_module_says_how_to_build_it(tmp_path, cluster_toml, monkeypatch):
    monkeypatch.setitem(sys.modules, "stripewise._stripewise", None)
    said = stripewise("store", "create", tmp_path / "s", "--cluster", cluster_toml, code=1).stderr
    assert "make build" in said and not (tmp_path / "s").exists()


SAYS = {"read_mb_s": 80, "write_mb_s": 50.0, "read_seconds": 2.0, "write_seconds": 2.0, "verified_bytes": 7}
PRINTS = f"import json; print('hello'); print(json.dumps({SAYS}))"


def test_tune_goes_round_the_circle_and_ends_with_one_json_object(store, paper):
    said = stripewise(
        *("tune", "--store", store, "--policy", "h2dp", "--repeat", "1", "--region-size", "1MiB", "--json"),
        *("--", sys.executable, "-c", PRINTS),
    )
    lines = said.stdout.strip().splitlines()
    result = json.loads(lines[-1])
    assert [run["policy"] for run in result["runs"]] == ["def", "h2dp"]
    assert all(run["read_mb_s"] == 80 and run["verified_bytes"] == 7 for run in result["runs"])
    # The paper HDD is busy for a second or more in each measured run, of 4 s that the program reports.
    assert all(run["bound_ratio"] >= 0.25 for run in result["runs"])
    assert paper.applied[0] != paper.applied[1]
    # Both took 4 s, so nothing beats the baseline, and its layout is put back.
    assert result["kept"] is None and paper.applied[2] == paper.applied[0]
    # New files keep the planned layout while it tunes; at the end store.toml's rules count again.
    assert any(spec["rules"][0]["layout"] for spec in paper.specs)
    assert paper.specs[-1]["rules"][0]["layout"] is None and paper.specs[-1]["toml_sha256"] != "0" * 64


def test_tune_says_when_the_program_touches_no_file_of_the_store(store, paper):
    paper.file = "/elsewhere/f"
    paper.store_resolve = lambda path: "null"
    said = stripewise("tune", "--store", store, "--json", "--", sys.executable, "-c", "pass", code=None)
    assert said.exit_code == 1 and "--manage" in said.stderr.strip().splitlines()[-1]


def test_tune_stops_when_the_program_fails(store):
    said = stripewise("tune", "--store", store, "--", sys.executable, "-c", "raise SystemExit(9)", code=None)
    assert said.exit_code == 1 and "ended with status 9" in said.stderr


SIGNALS = pytest.mark.parametrize(
    ("name", "status", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)


@SIGNALS
def test_a_signal_that_a_library_swallows_while_it_is_loaded_still_ends_the_verb(name, status, word):
    program = """
import importlib, os, signal
from stripewise.cli import main

real = importlib.import_module

def load(name, package=None):
    if name != ".plan.plan":
        return real(name, package)
    try:
        os.kill(os.getpid(), signal.NAME)
    except KeyboardInterrupt:
        pass
    raise SystemExit(0)

importlib.import_module = load
signal.signal(signal.SIGINT, signal.default_int_handler)
main.main()
"""
    words = [sys.executable, "-c", program.replace("NAME", name), "plan"]
    ended = subprocess.run(words, timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (status, f"stripewise: {word} before it began, so nothing has changed\n")


@SIGNALS
@pytest.mark.parametrize("words", [["collect", "t"], ["plan", "t", "--cluster", "c"], ["doctor"]])
def test_a_signal_ends_every_verb_with_a_word_and_its_status(words, name, status, word):
    program = """
import os, signal
from pathlib import Path
from stripewise.cli import main

def interrupt(*_, **__):
    signal.raise_signal(signal.NAME)
    raise AssertionError("the interrupt went by")

Path.open = Path.read_bytes = Path.read_text = Path.is_dir = Path.exists = Path.stat = os.open = interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
main.main()
"""
    words = [sys.executable, "-c", program.replace("NAME", name), *words]
    ended = subprocess.run(words, timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.split(" before ")[0].strip()) == (status, f"stripewise: {word}")


def test_nothing_that_swallows_an_interrupt_is_loaded_during_a_measurement():
    program = "import sys, stripewise.calibration.measure; raise SystemExit('numpy.random' not in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_verbs_that_run_programs_load_no_numpy():
    program = "import sys, stripewise.cli.main; raise SystemExit('numpy' in sys.modules or 'pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "near"),
    [("shwo", "mean show?"), ("store tempalte", "mean template?"), ("store rm", "--store STORE -- rm")],
)
def test_an_unknown_verb_is_told_the_nearest_one(words, near):
    ended = subprocess.run([sys.executable, "-m", "stripewise", *words.split()], capture_output=True, text=True)
    assert ended.returncode == 2 and near in ended.stderr, ended.stderr
