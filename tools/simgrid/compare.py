"""Holds the simulator against SimGrid, a public one: `make simgrid`.

The same requests, from the one generator, cut into accesses here in Python, run in both engines: 16 closed-loop clients
on four nodes before twelve hard disks and four SSDs, under two layouts and several networks. Both bandwidths and every
server's busy time are printed side by side, with what each engine needed for it. Everything is simulated.

Without a network, and for a single client, both models mean the same thing, and a difference of more than --tolerance
fails the tool. Clients that compete for links do not mean the same: SimGrid lets flows share links, `crates/sim` serves
them in order; and SimGrid's default (LV08) takes off what TCP and traffic the other way cost. Those rows are told
beside both of SimGrid's models; docs/simulator.md says why they differ.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stripewise.cluster import Cluster, Network, Target, read_cluster
from stripewise.cluster.device import Device
from stripewise.errors import StripewiseError, UsageError
from stripewise.plan import Plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import load_description, simulate_plan
from stripewise.units import KIB, MIB
from stripewise.workload.describe import Description
from stripewise.workload.generated import requests_of

ROOT = Path(__file__).resolve().parents[2]
REPLAY = ROOT / "target/simgrid/replay"
PROCESSES = 16
PROCESSES_PER_NODE = 4
REGION_BYTES = MIB
FILE_BYTES = 1024 * MIB
RUN_S_MAX = 600.0
#: Name, seconds to establish a connection, seconds per byte.
NETWORKS = [("none", 0.0, 0.0), ("10 Gb/s", 5e-5, 8e-10), ("1 Gb/s", 1e-4, 8e-9), ("200 Mb/s", 1e-4, 4e-8)]
#: The policy, and what each SSD holds: a quarter of the file together, or all of it.
LAYOUTS = {"def": ("def", FILE_BYTES // 16), "h2dp": ("h2dp", FILE_BYTES // 16), "ssds": ("h2dp", 0)}
ALONE = ("1 Gb/s", 0.0, 8e-9)
#: Layout, network, clients. A single client has the links for itself: both models mean the same again. With all data on
#: the SSDs the links of four nodes and of four servers are the bottleneck together: nowhere do both differ more.
SCENARIOS = [
    *(("def", network, PROCESSES) for network in NETWORKS), ("def", ALONE, 1),
    *(("h2dp", network, PROCESSES) for network in NETWORKS), ("h2dp", ALONE, 1),
    ("ssds", NETWORKS[0], PROCESSES), ("ssds", NETWORKS[2], PROCESSES),
]  # fmt: skip
#: SimGrid's links as plain fluid ones; without these options it uses its default, LV08.
FLUID = ("--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0")


def cluster(network: Network, ssd_bytes: int) -> Cluster:
    """Twelve hard disks and four SSDs of two channels that hold so many bytes each; 0: all.

    No two devices are quite alike: else many accesses end at the same instant, and each engine has an order of its own
    for these.
    """
    toml = []
    for number in range(16):
        name, startup_s, per_byte_s = ("ssd", 1e-4, 2.5e-9) if number >= 12 else ("hdd", 3e-3, 1e-8)
        startup_s += round(2e4 * abs(math.sin(number + 1))) * 1e-9
        toml.append(
            f'[[target]]\nname = "{name}{number}"\nclass = "{name}"\nkind = "dir"\npath = "/{name}{number}"\n'
            f"capacity_bytes = {ssd_bytes if number >= 12 else 0}\n"
            f"startup_read_s = {startup_s}\nstartup_write_s = {startup_s * 1.25}\n"
            f"per_byte_read_s = {per_byte_s}\nper_byte_write_s = {per_byte_s * 1.5}\n"
        )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("version = 1\n" + "\n".join(toml))
        file.flush()
        made = read_cluster(Path(file.name))
    targets = tuple(replace(each, device=Device(channels=2)) if each.is_ssd else each for each in made.targets)
    return replace(made, network=network, targets=targets)


def accesses(plan: Plan, index: Mapping[str, int], offset: int, size: int) -> Iterator[list[int]]:
    """Server, address and bytes of each access of a request: a server's stripes within a region are one access."""
    regions = plan.files[0].regions
    position = 0
    while size:
        while position + 1 < len(regions) and regions[position + 1].start <= offset:
            position += 1
        region = regions[position]
        start = region.start + (offset - region.start) // region.len * region.len
        inside = min(size, start + region.len - offset)
        joined: dict[str, list[int]] = {}
        at = offset - start
        end = at + inside
        cycle = sum(width for _, width in region.stripes)
        while at < end:
            rounds, within = divmod(at, cycle)
            entry = 0
            while within >= region.stripes[entry][1]:
                within -= region.stripes[entry][1]
                entry += 1
            name, width = region.stripes[entry]
            taken = min(width - within, end - at)
            joined.setdefault(name, [index[name], start + rounds * width + within, 0])[2] += taken
            at += taken
        yield from joined.values()
        offset += inside
        size -= inside


def written(path: Path, described: Description, of: Cluster, plan: Plan) -> int:
    """Writes what replay.cpp reads; the number of accesses."""
    index = {target.name: number for number, target in enumerate(of.targets)}
    net = of.network
    lines = [f"{net.establish_s} {net.per_byte_s} {net.processes_per_node} {len(of.targets)}"]
    lines += [_server(target) for target in of.targets]
    lines.append(str(described.processes))
    count = 0
    for process in range(described.processes):
        rows = requests_of(described, process)
        lines.append(str(len(rows)))
        for row in rows:
            parts = list(accesses(plan, index, int(row["offset"]), int(row["size"])))
            count += len(parts)
            lines.append(f"{int(row['write'])} {len(parts)} " + " ".join(f"{s} {a} {b}" for s, a, b in parts))
    path.write_text("\n".join(lines) + "\n")
    return count


def _server(target: Target) -> str:
    figures = (target.startup_read_s, target.per_byte_read_s, target.startup_write_s, target.per_byte_write_s)
    return f"{target.name} {target.device.channels or 1} {' '.join(map(repr, figures))}"


def replayed(path: Path, options: tuple[str, ...]) -> dict[str, Any]:
    """SimGrid's run of the accesses in `path`."""
    command = [str(REPLAY), str(path), "--log=root.thres:error", "--cfg=surf/precision:1e-12", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=RUN_S_MAX)
    if done.returncode:
        raise StripewiseError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip():.300}")
    return dict(json.loads(done.stdout))


def compare(
    layout: str, network: tuple[str, float, float], processes: int, requests: int, scratch: Path
) -> dict[str, Any]:
    """One scenario in both engines."""
    name, establish_s, per_byte_s = network
    policy, ssd_bytes = LAYOUTS[layout]
    of = cluster(Network(establish_s, per_byte_s, PROCESSES_PER_NODE), ssd_bytes)
    described = Description(
        "zipf", processes, ((256 * KIB, 1.0),), FILE_BYTES, region_bytes=REGION_BYTES, reads=requests, writes=requests
    )  # fmt: skip
    load = load_description(described)
    plan = policy_named(policy).plan(load.workload, of, PlanOptions(region_bytes=REGION_BYTES))
    begun = time.perf_counter()
    ours = simulate_plan(load, of, plan).report
    ours_host_s = time.perf_counter() - begun
    file = scratch / "accesses"
    count = written(file, described, of, plan)
    theirs = {"fluid": replayed(file, FLUID)}
    if per_byte_s:
        theirs["LV08"] = replayed(file, ())
    latency = ours["latency_s"]
    return {
        "layout": layout, "network": name, "processes": processes, "accesses": count,
        "bytes": ours["bytes_read"] + ours["bytes_written"],
        "seconds": ours["seconds"], "host_s": ours_host_s,
        "latency_mean_s": (latency["read"]["mean"] + latency["write"]["mean"]) / 2,
        "servers": ours["servers"], "simgrid": theirs,
    }  # fmt: skip


def told(row: Mapping[str, Any]) -> None:
    """Prints one scenario."""
    for model, other in row["simgrid"].items():
        busy = [
            (ours["busy_s"], theirs["busy_s"]) for ours, theirs in zip(row["servers"], other["servers"], strict=True)
        ]
        mb = row["bytes"] / 1e6
        off = max(abs(theirs / ours - 1) for ours, theirs in busy if ours)
        print(
            f"{row['layout']:<5} {row['processes']:>7} {row['network']:<9} {model:<6} "
            f"{mb / row['seconds']:>9.2f} {mb / other['seconds']:>9.2f} {other['seconds'] / row['seconds']:>7.4f} "
            f"{row['latency_mean_s'] / other['latency_mean_s']:>8.4f} {off:>9.2%} "
            f"{row['accesses'] / row['host_s']:>13,.0f} {row['accesses'] / other['host_s']:>10,.0f}"
        )
    print("      busy_s, here: " + " ".join(f"{ours['busy_s']:.2f}" for ours in row["servers"]))
    print("      and SimGrid:  " + " ".join(f"{theirs['busy_s']:.2f}" for theirs in row["simgrid"]["fluid"]["servers"]))


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The table of docs/simulator.md."""
    heads = ("layout", "clients", "network", "here", "fluid links", "ratio", "LV08", "ratio")
    lines = [f"| {' | '.join(heads)} |", "|---|---:|---|" + "---:|" * 5]
    for row in rows:
        mb = row["bytes"] / 1e6
        cells = [row["layout"], str(row["processes"]), row["network"], f"{mb / row['seconds']:.1f}"]
        for model in ("fluid", "LV08"):
            other = row["simgrid"].get(model)
            cells += [f"{mb / other['seconds']:.1f}", f"{other['seconds'] / row['seconds']:.4f}"] if other else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300, help="reads, and writes, of every process")
    parser.add_argument("--tolerance", type=float, default=0.01, help="how far bandwidths may differ there")
    parser.add_argument("--json", type=Path, default=ROOT / "target/simgrid.json")
    parser.add_argument("--markdown", action="store_true", help="only print what --json has as the table of the page")
    given = parser.parse_args()
    if given.markdown:
        try:
            print("\n".join(table(json.loads(given.json.read_text())["rows"])))
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"{given.json}: {error}; give the report of a run") from error
        return 0
    if given.requests < 1:
        raise UsageError(f"--requests {given.requests} is below 1; give at least one")
    rows = []
    print("bandwidths in MB/s, ratio here to SimGrid; mean latencies, the same ratio; the busy time that is most off")
    print(
        f"{'':<5} {'clients':>7} {'network':<9} {'links':<6} {'here':>9} {'SimGrid':>9} {'ratio':>7} {'latency':>8} "
        f"{'busy off':>9} {'accesses/s':>13} {'SimGrid':>10}"
    )
    with tempfile.TemporaryDirectory(prefix="stripewise-simgrid-") as scratch:
        for layout, network, processes in SCENARIOS:
            rows.append(compare(layout, network, processes, given.requests, Path(scratch)))
            told(rows[-1])
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({"simulated": True, "rows": rows}, indent=1) + "\n")
    alike = [row for row in rows if row["network"] == "none" or row["processes"] == 1]
    worst = max(abs(row["simgrid"]["fluid"]["seconds"] / row["seconds"] - 1) for row in alike)
    print(f"simgrid: at most {worst:.2%} apart where both mean the same; {given.json}")
    return 1 if worst > given.tolerance else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StripewiseError as error:
        sys.exit(f"compare: {error}")
