"""Simulated runs: scenarios made from plans, their outcome, and the verb."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from stripewise.cli.main import app
from stripewise.cluster import read_cluster
from stripewise.cluster.device import Device
from stripewise.errors import PlanError, UsageError, WorkloadError
from stripewise.layout import STRIPES_MAX, Layout, Region
from stripewise.plan import read_plan, write_plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.default import EqualStripes
from stripewise.policy.toolkit.build import _growth
from stripewise.simulate import load_description, load_trace, scenario, simulate_plan
from stripewise.simulate.sweep import changed_cluster, parse_sweep
from stripewise.store.config import StoreConfig, check_store_size
from stripewise.workload.describe import Description
from stripewise.workload.layouts import TracedStore, TracedTarget, write_layouts
from stripewise.workload.zipf import ZipfRun
from support import KIB, MIB, cluster, page_example

CLUSTER = cluster(3, 1)
RUN = Description("random", 4, ((64 * KIB, 1.0),), 16 * MIB, reads=50, writes=50, source="w.toml")
OPTIONS = PlanOptions(region_bytes=MIB)


def planned(name: str, described: Description = RUN, servers=CLUSTER, options: PlanOptions = OPTIONS):
    return policy_named(name).plan(load_description(described).workload, servers, options)


def toml(tmp_path: Path, servers=CLUSTER, **changes: object) -> tuple[str, str]:
    """A workload and a cluster as files."""
    keys = {
        "kind": "random", "processes": 4, "request_bytes": "64KiB", "file_bytes": "16MiB", "reads": 50, **changes
    }  # fmt: skip
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    (tmp_path / "w.toml").write_text(text)
    config = StoreConfig(tmp_path, servers, "", 4096, "def", ())
    (tmp_path / "c.toml").write_text(config.text())
    return str(tmp_path / "w.toml"), str(tmp_path / "c.toml")


def said(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["simulate", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_regions_that_begin_at_different_servers_share_one_cycle():
    plan = planned("def")
    made = scenario(plan, CLUSTER, [plan.files[0].path])
    assert len(made["cycles"]) <= 2
    for region, (start, length, cycle, first) in zip(plan.files[0].regions, made["files"][0]["regions"], strict=True):
        entries = made["cycles"][cycle]
        turned = [[CLUSTER.targets[at].name, width] for at, width in (*entries[first:], *entries[:first])]
        assert (start, length, turned) == (region.start, region.len, [list(stripe) for stripe in region.stripes])


def test_every_byte_that_is_asked_for_is_moved_and_no_run_beats_its_bound():
    for name in ("def", "h2dp"):
        outcome = simulate_plan(load_description(RUN), CLUSTER, planned(name))
        report = outcome.report
        assert report["requests"] == 400 and report["bytes_read"] == report["bytes_written"] == 200 * 64 * KIB
        assert sum(server["bytes"] for server in report["servers"]) == 400 * 64 * KIB
        assert 0 < report["bound_s"] <= report["seconds"] and 0 < report["bound_ratio"] <= 1
        assert outcome.latency_s("read", "p50") <= outcome.latency_s("read", "p99")


def test_the_plan_s_moves_are_made_at_their_times():
    run = ZipfRun(
        processes=4, file_bytes=16 * MIB, region_bytes=MIB, request_bytes=64 * KIB, reads=400, alpha=1.2, windows=2,
        shift=6, window_s=4.0,
    )  # fmt: skip
    servers = cluster(3, 1, ssd_capacity=3 * MIB)
    options = PlanOptions(region_bytes=MIB, window_ns=4 * 10**9)
    plan = planned("h2dp", run.description, servers, options)
    moves = [move for migration in plan.migrations for move in migration.moves]
    report = simulate_plan(load_description(run.description), servers, plan).report
    assert moves and len(report["moves"]) == len(moves)
    assert all(4.0 <= move["at_s"] <= move["done_s"] for move in report["moves"])
    assert report["moved_bytes"] == sum(move.bytes for move in moves)
    assert report["seconds"] >= 4.0


def test_a_file_that_a_plan_lacks_and_a_target_that_the_cluster_lacks_are_named():
    plan = planned("def")
    with pytest.raises(PlanError, match="no file '/data/other'"):
        scenario(plan, CLUSTER, ["/data/other", plan.files[0].path])
    with pytest.raises(PlanError, match="no active target 'hdd2'"):
        scenario(plan, cluster(2, 1), [plan.files[0].path])


def test_more_servers_than_stripes_in_a_region_are_used_one_region_after_the_other():
    servers = cluster(10, 0)
    stripes = EqualStripes(servers.active, 64 * KIB, 256 * KIB)
    names = [[name for name, _ in stripes.of(number)] for number in range(6)]
    assert names[0] == ["hdd0", "hdd1", "hdd2", "hdd3"] and names[2] == ["hdd8", "hdd9", "hdd0", "hdd1"]
    assert stripes.of(5) is stripes.of(0)
    few = EqualStripes(servers.active, 64 * KIB, 640 * KIB)
    assert few.of(3)[0][0] == "hdd3" and len(few.of(3)) == 10


def test_ten_thousand_servers_are_planned_for_and_simulated_but_make_no_store():
    servers = cluster(10_000, 0)
    described = replace(RUN, processes=100, file_bytes=256 * MIB, reads=10, writes=0)
    plan = planned("def", described, servers, PlanOptions())
    longest = max(len(region.stripes) for region in plan.files[0].regions)
    assert longest <= STRIPES_MAX and len(plan.files[0].regions[0].stripes) == 1024
    assert len(_growth(plan.files[0].regions[0], servers, 64 * KIB, PlanOptions()).stripes) <= STRIPES_MAX
    report = simulate_plan(load_description(described), servers, plan).report
    assert report["requests"] == 1000 and len(report["servers"]) == 10_000
    with pytest.raises(ValueError, match="more than the 256 that a store holds"):
        check_store_size(servers)


def test_a_device_s_own_keys_reach_the_scenario():
    first, *others = CLUSTER.targets
    seeking = Device(startup="seek", factor_s=0.01, rotation_s=0.008, capacity_bytes=10**12, channels=2)
    changed = replace(CLUSTER, targets=(replace(first, device=seeking, startup_read_spread_s=0.5), *others))
    spread = replace(first, startup_read_spread_s=0.002, device=Device(sequential_discount=0.0))
    made = scenario(planned("def"), changed, ["/data/random.dat"])["servers"]
    assert made[0]["device"]["startup"] == {
        "kind": "seek", "factor_s": 0.01, "rotation_s": 0.008, "capacity_bytes": 10**12
    }  # fmt: skip
    assert made[0]["device"]["channels"] == 2 and "startup" not in made[1]["device"]
    made = scenario(planned("def"), replace(CLUSTER, targets=(spread, *others)), ["/data/random.dat"])["servers"]
    assert made[0]["device"]["startup"] == {"kind": "uniform"} and made[0]["device"]["sequential_discount"] == 0.0
    assert made[0]["device"]["read"]["startup_s"] == pytest.approx(0.002)
    assert made[0]["device"]["read"]["startup_max_s"] == pytest.approx(0.004)
    assert made[0]["device"]["write"]["startup_s"] == made[0]["device"]["write"]["startup_max_s"] == 0.003


def test_a_target_s_spread_is_the_width_of_its_simulated_startups():
    one = cluster(1, 0)
    spread = replace(one.targets[0], startup_read_spread_s=0.002, device=Device(sequential_discount=0.0))
    servers = replace(one, targets=(spread,))
    run = replace(RUN, processes=1, reads=2000, writes=0)
    report = simulate_plan(load_description(run), servers, planned("def", run, servers)).report
    # A request alone takes its startup and 64 KiB at 100 MB/s: 2 to 4 ms, evenly, and 0.66 ms.
    latency = {key: seconds * 1e3 - 0.65536 for key, seconds in report["latency_s"]["read"].items()}
    assert 3.99 < latency["max"] <= 4.0
    for quantile, wanted in (("mean", 3.0), ("p50", 3.0), ("p90", 3.8), ("p99", 3.98)):
        assert latency[quantile] == pytest.approx(wanted, abs=0.08)


def trace(path: Path, rows: int = 300) -> Path:
    """A trace of two processes that read a file side by side."""
    table = {
        "process": [n % 2 for n in range(rows)], "pid": [10 + n % 2 for n in range(rows)], "thread": [1] * rows,
        "layer": ["posix"] * rows, "op": ["read"] * rows, "file": ["/data/f"] * rows,
        "offset": [n * 65536 for n in range(rows)], "done": [65536] * rows,
        "start_ns": [n // 2 * 1_000_000 for n in range(rows)],
        "end_ns": [n // 2 * 1_000_000 + 400_000 for n in range(rows)], "flags": [0] * rows,
    }  # fmt: skip
    wide = {"offset", "done", "start_ns", "end_ns"}
    kinds = {key: pa.int64() if key in wide else pa.int32() for key in table if isinstance(table[key][0], int)}
    columns = {key: pa.array(values, kinds.get(key, pa.string())) for key, values in table.items()}
    pq.write_table(pa.table(columns), path)
    return path


def test_a_trace_is_run_with_its_think_times_or_its_times(tmp_path):
    path = trace(tmp_path / "trace.parquet")
    seconds = {}
    for loop in ("closed", "open"):
        load = load_trace(path, loop=loop)
        plan = policy_named("def").plan(load.workload, CLUSTER, OPTIONS)
        report = simulate_plan(load, CLUSTER, plan).report
        assert report["requests"] == 300 and report["processes"] == 2
        seconds[loop] = report["seconds"]
    # 150 requests of each: 0.6 ms of thought before every one, or one each ms however long they take.
    assert seconds["closed"] > 0.149 + 0.15 * 0.6 and seconds["open"] > 0.149


def test_a_plan_alone_runs_a_trace_on_its_files(tmp_path):
    path, servers = trace(tmp_path / "trace.parquet"), toml(tmp_path)[1]
    plan = tmp_path / "plan.json"
    write_plan(policy_named("def").plan(load_trace(path).workload, CLUSTER, OPTIONS), plan)
    words = ["--trace", str(path), "--cluster", servers, "--plan", str(plan), "--region-size", "1MiB", "--json"]
    default, row = json.loads(said(*words))["rows"]
    assert row["requests"] == 300 and row["times_def"] == default["times_def"] == row["io_times_def"] == 1.0
    assert default["policy"] == "def" and row["policy"] == str(plan) and row["io_s"] == default["io_s"] > 0
    # How its files lay in the run is a row, too, where that is known of all and the cluster has the targets.
    names = [each.name for each in CLUSTER.targets]
    targets = tuple(TracedTarget(name, "hdd", 1, 1e-3, 1e-3, 1e-8, 1e-8) for name in names)
    lay = {file.path: Layout((Region(0, MIB, ((names[0], MIB),)),)) for file in load_trace(path).workload.files}
    write_layouts(tmp_path, [TracedStore("/S", targets, lay)])
    rows = json.loads(said(*words))["rows"]
    assert [each["policy"] for each in rows] == ["def", "as traced", str(plan)] and rows[1]["io_times_def"] != 1
    write_layouts(tmp_path, [TracedStore("/S", targets, dict(list(lay.items())[1:]))])
    assert len(json.loads(said(*words))["rows"]) == 2
    assert "no file matching" in said(*words, "--file", "/data/other", code=1)


def test_a_trace_out_of_order_is_refused_by_name(tmp_path):
    path = trace(tmp_path / "trace.parquet")
    pq.write_table(pq.read_table(path).sort_by([("start_ns", "descending")]), path)
    load = load_trace(path)
    plan = policy_named("def").plan(load.workload, CLUSTER, OPTIONS)
    with pytest.raises(WorkloadError, match=r"trace\.parquet: the requests of process 0.*order"):
        simulate_plan(load, CLUSTER, plan)


def test_the_verb_compares_policies_and_plans(tmp_path):
    load, servers = toml(tmp_path)
    rows = json.loads(said("--workload", load, "--cluster", servers, "--policy", "def,h2dp", "--json"))["rows"]
    assert [row["policy"] for row in rows] == ["def", "h2dp"] and rows[0]["times_def"] == 1.0
    assert rows[1]["times_def"] == rows[1]["mb_s"] / rows[0]["mb_s"]
    shown = said("--workload", load, "--cluster", servers)
    # On a busy machine a line of progress may come first.
    assert "simulated:" in shown and "best" in shown
    plot = tmp_path / "out.html"
    said("--workload", load, "--cluster", servers, "--policy", "h2dp", "--plot", str(plot))
    assert "simulated" in plot.read_text() and "<svg" in plot.read_text()


def test_of_a_trace_the_io_alone_is_compared_as_plan_does_it_and_the_run_beside_it(tmp_path):
    path = trace(tmp_path / "trace.parquet")
    _, servers = toml(tmp_path)
    plan = tmp_path / "plan.json"
    done = CliRunner().invoke(app, ["plan", str(path), "--cluster", servers, "-o", str(plan)])
    assert done.exit_code == 0, done.output
    words = ["--trace", str(path), "--cluster", servers, "--policy", "def", "--plan", str(plan)]
    base, row = json.loads(said(*words, "--json"))["rows"]
    expected = read_plan(plan).expected
    assert (base["io_s"], row["io_s"]) == (expected.simulated_io_def_s, expected.simulated_io_s)
    assert base["io_times_def"] == 1 and row["io_times_def"] == expected.likely_gain
    # The whole run is of the same runs, too, and MB/s of another one.
    assert base["times_def"] == 1 and row["times_def"] == expected.simulated_gain != row["io_times_def"]
    shown = " ".join(said(*words).split())
    assert "I/O times def: by the time with reads under way and that with writes, added, as plan" in shown
    assert (
        "run times def: by the whole run, in which reads beside writes count once, and pauses count, processes" in shown
    )
    assert "of reads and of writes from first to last" in shown
    # The runs that plans are made by know no open loop, no read-ahead, and no description.
    load, _ = toml(tmp_path)
    for other in ([*words, "--loop", "open"], [*words, "--read-ahead", "1MiB"],
                  ["--workload", load, "--cluster", servers, "--policy", "def,h2dp"]):  # fmt: skip
        assert all(row["io_times_def"] is row["io_s"] is None for row in json.loads(said(*other, "--json"))["rows"])
        assert "I/O times def" not in said(*other) and "run times def: by the whole run" in said(*other)


def test_a_policy_in_a_file_is_read_once_and_goes_by_its_own_name(tmp_path):
    load, servers = toml(tmp_path)
    count = tmp_path / "count"
    own = tmp_path / "own.py"
    own.write_text(f"with open({str(count)!r}, 'a') as file:\n    file.write('read ')\n" + page_example())
    words = ["--workload", load, "--cluster", servers, "--json"]
    rows = json.loads(said(*words, "--policy", f"{own}, def,{own},def"))["rows"]
    assert [row["policy"] for row in rows] == ["whole", "def"] and count.read_text() == "read "
    again = tmp_path / "again.py"
    again.write_text(page_example())
    assert "two policies are called 'whole'" in said(*words, "--policy", f"{own},{again}", code=2)


def test_options_of_slal_change_what_is_simulated(tmp_path):
    load, servers = toml(tmp_path)
    words = ["--workload", load, "--cluster", servers, "--policy", "slal", "--json"]
    for given, busy in (("hdd", 3), ("ssd", 1)):
        (row,) = json.loads(said(*words, "--servers", given))["rows"]
        assert sum(server["bytes"] > 0 for server in row["servers"]) == busy


def test_sweeps_double_step_or_take_what_is_listed(tmp_path):
    assert parse_sweep("processes=8..100").values == (8, 16, 32, 64)
    assert parse_sweep("alpha=0.5..1.1:0.3").values == pytest.approx((0.5, 0.8, 1.1))
    assert parse_sweep("request_bytes=4KiB..16KiB").values == (4096, 8192, 16384)
    assert parse_sweep("kind=zipf,random").values == ("zipf", "random")
    for wrong in ("processes", "speed=1..2", "processes=8..4", "processes=0..4", "kind=a..b", "processes=1..1e9:1",
                  "processes=nan..4", "processes=1..nan", "alpha=1..inf", "alpha=1..2:nan", "alpha=1..2:inf",
                  "processes=1,,2", f"processes={'9' * 5000}"):  # fmt: skip
        with pytest.raises(UsageError, match="--sweep"):
            parse_sweep(wrong)
    load, servers = toml(tmp_path)
    words = ["--workload", load, "--cluster", servers, "--policy", "def", "--plot", str(tmp_path / "o.svg"), "--json"]
    rows = json.loads(said(*words, "--sweep", "processes=2..8"))["rows"]
    assert [row["processes"] for row in rows] == [2, 4, 8] and rows[2]["requests"] == 400
    assert rows[2]["mb_s"] > rows[0]["mb_s"] and (tmp_path / "o.svg").read_text().count("<svg") == 1


def test_a_sweep_over_servers_takes_the_first_or_makes_more_like_the_last():
    more = changed_cluster(CLUSTER, {"hservers": 5, "sservers": 0})
    assert [target.klass for target in more.active] == ["hdd"] * 5 and len({t.name for t in more.targets}) == 5
    assert changed_cluster(CLUSTER, {"hservers": 1}).hservers == CLUSTER.hservers[:1]
    with pytest.raises(UsageError, match="has none to make more of"):
        changed_cluster(cluster(2, 0), {"sservers": 1})


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "either --workload"),
        (["--workload", "W", "--store", "S"], "--store: names the devices, and so does --cluster; give one of them"),
        (["--workload", "W", "--loop", "open"], "--loop"),
        (["--workload", "W", "--policy", "dfe"], "did you mean def"),
        (
            ["--workload", "W", "--policy", "def", "--window", "1s"],
            "--window: the policy def does not take it; drop it",
        ),
        (["--workload", "W", "--policy", "h2dp,def", "--sigma", "0.3"], "--sigma: the policy def and h2dp does not"),
        (
            ["--workload", "W", "--policy", "slal", "--servers", "tape"],
            "--servers: 'tape' is unknown; use one of hdd, ssd, all",
        ),
        (["--workload", "W", "--policy", "h2dp", "--min-gain", "2"], "give --window too"),
        (["--workload", "W", "--plan", "x", "--window", "1s"], "--window: is for a policy, and none is named"),
        (["--workload", "W", "--plot", "x.png"], "--plot"),
        (["--workload", "W", "--sweep", "speed=1,2"], "--sweep"),
        (["--workload", "W", "--policy", ""], "--policy: no policy given"),
        (
            ["--workload", "W", "--sweep", "processes=0,1"],
            "w.toml: processes = 0 is out of range; give a whole number from 1 to 16777216 (with --sweep processes=0)",
        ),
        (["--workload", "W", "--sweep", "file_bytes=1"], "w.toml: file_bytes = 1 is too small"),
    ],
)
def test_bad_command_lines_get_one_line_with_the_cure(tmp_path, words, problem):
    load, servers = toml(tmp_path)
    code = 1 if "w.toml" in problem else 2
    text = said("--cluster", servers, *[load if word == "W" else word for word in words], code=code)
    assert problem in text and len(text.strip().splitlines()) == 1 and text.startswith("stripewise: ")


def test_without_devices_both_options_that_name_them_are_told(tmp_path):
    load, _ = toml(tmp_path)
    assert "--cluster CLUSTER (cluster.toml, store.toml), or --store STORE" in said("--workload", load, code=2)


def test_a_store_s_file_keeps_what_the_simulator_is_told(tmp_path):
    first, *others = CLUSTER.targets
    for device in (
        Device(startup="seek", factor_s=0.01, rotation_s=0.008, capacity_bytes=10**12),
        Device(startup="exponential", sequential_discount=0.25, channels=8),
        Device(),
    ):
        targets = (replace(first, device=device, startup_read_spread_s=0.001), *others)
        _, path = toml(tmp_path, replace(CLUSTER, targets=targets))
        assert [target.device for target in read_cluster(path).targets] == [device, *[Device()] * len(others)]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("channels = 0", r"target\[0\]\.device\.channels = 0 is out of range"),
        ('startup = "fast"', r"target\[0\]\.device\.startup = 'fast' is unknown"),
        ('startup = "seek"', r"target\[0\]\.device\.factor_s is missing"),
        ("rotation_s = 0.1", r"target\[0\]\.device\.rotation_s is given"),
        ("speed = 1", r"target\[0\]\.device\.speed is not a known key"),
    ],
)
def test_a_bad_device_is_refused_with_its_key(tmp_path, lines, problem):
    _, path = toml(tmp_path, cluster(1, 0))
    Path(path).write_text(Path(path).read_text() + f"\n[target.device]\n{lines}\n")
    with pytest.raises(ValueError, match=problem):
        read_cluster(path)


def on_disks(tmp_path: Path, device: str, **changes: object) -> tuple[str, str]:
    """As `toml`, with a mechanical disk in every server."""
    workload, servers = toml(tmp_path, cluster(2, 0), **changes)
    Path(servers).write_text(Path(servers).read_text().replace("[[target]]", f"{device}\n[[target]]", 2) + device)
    text = Path(servers).read_text()
    Path(servers).write_text(text.replace(f"{device}\n[[target]]", "[[target]]", 1))
    return workload, servers


def test_a_server_may_be_a_shingled_disk_that_pays_for_updates(tmp_path: Path):
    def seconds(scheme: str, **changes: object) -> float:
        device = f'\n[target.device]\ndisk = "generic"\nscheme = "{scheme}"\nused = "1GB"\n'
        workload, servers = on_disks(tmp_path, device, **changes)
        return float(
            json.loads(said("--workload", workload, "--cluster", servers, "--policy", "def", "--json"))["rows"][0][
                "seconds"
            ]
        )

    writes = {"reads": 0, "writes": 50, "request_bytes": "4KiB"}
    assert seconds("1234", **writes) > 2.5 * seconds("hdd", **writes)
    assert seconds("1234") < 1.5 * seconds("hdd")


def test_a_store_keeps_a_mechanical_disk_and_bad_ones_are_refused_by_key(tmp_path: Path):
    device = '\n[target.device]\ndisk = "generic"\nscheme = "tstl-smart,band_tracks=50"\nused = "75%"\n'
    _, servers = on_disks(tmp_path, device)
    read = read_cluster(Path(servers))
    kept = StoreConfig(tmp_path, read, "", 4096, "def", ())
    (tmp_path / "again.toml").write_text(kept.text())
    assert read_cluster(tmp_path / "again.toml").targets == read.targets
    for wrong, key in (
        ('disk = "none.toml"', "device.disk"),
        ('disk = "generic"\nscheme = "smart"', "scheme"),
        ('disk = "generic"\nscheme = "hdd,is"', "scheme"),
        ('disk = "generic"\nused = "0%"', "used"),
        ('disk = "generic"\nchannels = 2', "device.channels"),
        ('scheme = "hdd"', "device.disk"),
    ):
        workload, servers = on_disks(tmp_path, f"\n[target.device]\n{wrong}\n")
        told = said("--workload", workload, "--cluster", servers, code=1)
        assert key in told.replace("\n", " ") and "c.toml" in told, told


def test_rates_that_jump_in_a_sweep_over_processes_are_explained(tmp_path):
    """A disk that processes ask for its bytes in order pays no startup, with as many of them as it takes for that."""
    load, servers = tmp_path / "w.toml", tmp_path / "c.toml"
    load.write_text('kind = "strided"\nprocesses = 4\nrequest_bytes = "64KiB"\nfile_bytes = "64MiB"\n')

    def shown(discount: float) -> str:
        disk = 'class = "hdd"\nstartup_read_s = 8e-3\nstartup_write_s = 8e-3\nper_byte_read_s = 1e-8\n'
        disk += f"per_byte_write_s = 1e-8\n[target.device]\nsequential_discount = {discount}\n"
        each = [f'[[target]]\nname = "h{n}"\npath = "{tmp_path / str(n)}"\n{disk}' for n in range(4)]
        servers.write_text("version = 1\n" + "".join(each))
        words = ("--workload", str(load), "--cluster", str(servers), "--policy", "def", "--sweep", "processes=2..8")
        return " ".join(said(*words).split())

    assert "rates jump where processes that keep their order" in shown(1.0)
    assert "rates jump" not in shown(0.0)
