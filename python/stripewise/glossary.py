"""The words of Stripewise, each in a sentence: headings of tables, terms of layouts and models, names of policies.

One table, of which `stripewise glossary` and the columns in the help of each verb are made. Sources are papers by the
names of docs/models.md; a word without one is our own, or the field's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """What a word means, and where it comes from."""

    text: str
    source: str = ""


_H2DP, _SLAL, _THESIS, _PDLA, _RADAR = "H2DP", "SLAL", "the thesis", "PDLA", "RADAR"

WORDS: dict[str, Entry] = {
    # Where bytes lie.
    "adopt": Entry("To take a plain file into a store, in place; export makes it plain again."),
    "1-DH": Entry("A layout: every request is spread over all servers.", f"{_PDLA}, Tables 2, 4 and 5"),
    "1-DV": Entry("A layout: each process has its data on one server.", f"{_PDLA}, Tables 2, 4 and 5"),
    "2-D": Entry("A layout: processes in groups, each group on servers of its own.", f"{_PDLA}, Tables 2, 4 and 5"),
    "away": Entry(
        "Of a target: its directory is missing or is not this store's, as where its file system is not mounted. What "
        "lies there gives EIO until it is back."
    ),
    "capacity": Entry("The most bytes that may lie on a target; -: all that its file system has."),
    "class": Entry("What a target's device is: hdd, ssd, swd (a shingled disk) or any."),
    "cycle": Entry("Targets with a stripe width each, in order; a region repeats it from its first byte to its last."),
    "drain": Entry("To move all that lies on a target off it, so that it can be removed; --undo takes it back."),
    "device": Entry("What lies under a target's directory."),
    "generation": Entry("Number of a file's layout; each move that is published raises it by one."),
    "growth": Entry(
        "Bytes that a file does not have yet; the last region's stripes repeat for them. A planned "
        "region that goes on behind the end takes them up to its own; plans put those behind the last planned region "
        "on targets with room, not on SSDs; def on all targets."
    ),
    "h": Entry("Stripe width on HServers.", f"{_H2DP}, Algorithm 1"),
    "head": Entry("File of the store with a managed file's owner, mode and times; also the first bytes of a file."),
    "home": Entry("Where a byte lies: one target, one object, one offset."),
    "HServer": Entry("A server on a disk: each target whose class is not ssd.", _H2DP),
    "hybrid region": Entry("A region that has stripes on SServers, alone or beside HServers.", _H2DP),
    "kind": Entry("How a target is reached: dir (a directory) or emulated (one slowed down to its figures)."),
    "layout": Entry("Which regions a file has, and the stripes of each."),
    "managed": Entry("Of a file: its bytes lie in a store, its name is a symbolic link."),
    "object": Entry("What a target holds of one file, in one plane."),
    "plane": Entry("One of two objects of a file on a target; a move writes the one that is not in use."),
    "region": Entry(
        "A part of a file with stripes of its own. New files get regions of one length, which plans may lay out each "
        "for itself; 'store layout' shows equal neighbours in one row."
    ),
    "replica": Entry(
        "Bytes of an access pattern in their order of access: a copy of what is read, the home of what is written.",
        f"{_PDLA}, section 3.3; {_RADAR}, section II",
    ),
    "s": Entry("Stripe width on SServers; in other headings: seconds.", f"{_H2DP}, Algorithm 1"),
    "container": Entry("The managed file that holds the copies of one file."),
    "state": Entry(
        "Of copies: in use; with so much stale, where that much of a managed file was written without its copies "
        "(it is read from the file's home); changed or gone, as the file is; dropped by who opened a plain one for "
        "writing; unfinished, being made or interrupted; damaged."
    ),
    "rotated": Entry("Of stripes: the regions of a row have one cycle, each begun at another of its targets."),
    "rule": Entry(
        "Of a store: what happens to new files that match a glob, and their layout ([[rule]] in store.toml). Of "
        "traces: whether files that match a glob count ('stripewise files')."
    ),
    "span": Entry("The unit of a move: whole old regions that are whole new ones, too."),
    "SServer": Entry("A server on an SSD: each target of class ssd.", _H2DP),
    "store": Entry("A directory, with its targets, that holds the bytes of managed files."),
    "stripe": Entry("Neighbouring bytes of a file that lie on one target."),
    "stripe width": Entry("Bytes of one stripe; targets of one region may have different ones."),
    "from": Entry("The first byte."),
    "to": Entry("The byte behind the last; 'growth' where bytes are meant that the file does not have yet."),
    "stripes": Entry("Widths with the targets that have them, in order, over and over to the region's end."),
    "target": Entry("A place for bytes, on one disk or SSD; what the papers call a server."),
    "template": Entry("A layout for new files whose names match a glob."),
    "widths": Entry("The numbers of a layout: stripe, h and s, or servers in a group."),
    "glob": Entry("A pattern of names: * within a directory, ** through all below."),
    # Policies and plans.
    "application": Entry(
        "A program with all its arguments, without its launcher: with another argument it is another one.",
        f"{_H2DP}, section 4.2",
    ),
    "best": Entry("Our policy: least bound over all layouts it can think of, with a proof of how near it came."),
    "DDM": Entry("Dynamic data migration: regions move between windows.", f"{_H2DP}, section 3.7 and Algorithm 2"),
    "drawn": Entry(
        "Of a region, by padp and psa: chosen at random, from --seed, for hybrid servers; not drawn: left on HServers."
    ),
    "def": Entry("The equal layout: one stripe width on all targets; what others are compared with."),
    "h2dp": Entry("Policy: hot regions on hybrid servers, the others on HServers.", f"{_H2DP}, section 3.6 and eq. 1"),
    "in": Entry("Of a move: onto hybrid servers.", f"{_H2DP}, Algorithm 2"),
    "kept plan": Entry("A plan that a store keeps for an application and a number of processes; its runs follow it."),
    "out": Entry("Of a move: onto HServers alone.", f"{_H2DP}, Algorithm 2"),
    "padp": Entry("Policy: varied-size striping, hybrid regions chosen at random.", f"{_H2DP}, section 4"),
    "pdla": Entry("Pattern-directed, layout-aware: one pair of stripe widths over two classes.", _PDLA),
    "plan": Entry("A layout for each file of a trace, and what moves between windows (plan.json)."),
    "policy": Entry("A way to make a plan: best, def, h2dp, padp, psa, slal, or a Python file of your own."),
    "psa": Entry("Policy: one pair of widths a file, chosen for time and SServer space.", f"{_H2DP}, section 4"),
    "restripe": Entry("Of a move: other stripe widths on servers of the same kind."),
    "RMT": Entry("Region mapping table: where each region lies in each window.", f"{_H2DP}, sections 3.6 to 4.2"),
    "slal": Entry("Policy: a stripe for each segment of a file, by its requests.", f"{_SLAL}, section III"),
    "VSS": Entry("Varied-size striping: wider stripes on faster servers.", f"{_H2DP}, Algorithm 1"),
    "window": Entry("A part of the run's time that is planned by itself."),
    # Replicas.
    "build s": Entry("Seconds to make a replica: to read its bytes and write them, by the fine model."),
    "critical pattern": Entry("One that gains on SServers, or on both, over HServers.", f"{_PDLA}, section 4.3"),
    "fine model": Entry("Price of patterns at once, by server and client node.", f"{_RADAR}, section II.A.2"),
    "gain s": Entry("Seconds of I/O that a replica saves, by the fine model; below 0 it costs some."),
    "h-pdla": Entry("Manager: a replica for every pattern, on HServers.", f"{_PDLA}, section 3"),
    "manager": Entry("A way to choose replicas: h-pdla, s-pdla, radar; s-orig and ns-pdla for comparison."),
    "n_p": Entry("Servers that each process reads from.", f"{_RADAR}, Table I"),
    "ns-pdla": Entry("Manager: all patterns on SServers; a comparison.", f"{_PDLA}, section 5.2"),
    "pattern": Entry("What processes do to a file in loops: blocks, strides, counts (docs/traces/patterns.md)."),
    "radar": Entry("Manager: copies of what is read, the most gain first, within a space.", f"{_RADAR}, section II.A"),
    "s-orig": Entry("Manager: whole files on SServers; a comparison.", f"{_PDLA}, section 5.2"),
    "s-pdla": Entry("Manager: critical patterns on SServers or both classes.", f"{_PDLA}, section 4"),
    "space": Entry("Room that a replica takes on all targets."),
    # Plans in numbers.
    "entries": Entry("Of the region mapping table: one for every region, and one for each of its moves."),
    "expected": Entry(
        "Of a plan: how many times as fast as under def its I/O is expected to be, in simulated runs of the traced "
        "requests; by the bound where there are none. 1 is no gain. 'stripewise show plan.json' tells the rest."
    ),
    "measured": Entry("Times as fast as def the I/O was in the runs of tune."),
    "% on hybrid": Entry("Share of the requests that hybrid regions serve."),
    "% of data": Entry("Share of all bytes that moves."),
    "moved": Entry("Bytes that are copied from one home to another."),
    "copies s": Entry("Seconds that moves take, by the request model."),
    "cost s": Entry("Seconds of all requests by the request model, one after another.", f"{_H2DP}, Algorithm 1"),
    "reason": Entry(
        "Why a region lies where it does: what is asked of it, and for how long that keeps its place busy and would "
        "keep others, or what its policy says. Of a move: why it is made. Of a decision: IO-Engine's rule."
    ),
    "busy for": Entry(
        "Of a reason by best: for how long the requests named keep the region's server busy, or the busiest of "
        "its servers, every access paying its startup, which one that goes on where the last ended is spared; in "
        "brackets, for how long one server of another kind would be, or so many as are named. Of a region "
        "with moves: in all windows, as if it stayed."
    ),
    "goes to what gains more": Entry(
        "Of a reason by best: why a place that would be busy for less was not taken. Its servers have room or time for "
        "some of the regions only, and others save more seconds there for each byte or second."
    ),
    "all regions together are quicker so": Entry(
        "Of a reason by best: why a place that would be busy for less was not taken, though by the prices of room and "
        "time it could be: prices are those at which regions could be split between places, and the layout of whole "
        "ones was chosen by simulated runs."
    ),
    "from window": Entry("The first window in which the region lies so."),
    # MPI-IO.
    "aggregators": Entry("Processes that do the I/O of a collective call for all.", f"{_THESIS}, section 3.5.2"),
    "chasm": Entry(
        "A stripe count on Lustre that few numbers of aggregators divide or are a multiple of, so that few are left.",
        f"{_THESIS}, section 3.5.2",
    ),
    "co_ratio": Entry("Hint: processes that one server of Lustre should have at once.", f"{_THESIS}, section 3.5.2"),
    "contention": Entry(
        "How processes meet on the stripes of a file: least, aligned, moderate, at ends, most.",
        f"{_THESIS}, section 3.5.2",
    ),
    "cb_buffer_size": Entry("Hint: bytes that an aggregator moves in one round.", f"{_THESIS}, section 3.5.2"),
    "decision": Entry("What IO-Engine decides of the calls on a file.", f"{_THESIS}, figure 3.4"),
    "exchange": Entry(
        "Of collective calls: from when the last process has come until all have left, less the I/O of the one that is "
        "in it longest.",
        f"{_THESIS}, figure 3.6",
    ),
    # Models.
    "bound": Entry(
        "What no schedule beats: the time of the busiest server or link, or of all requests alone over the processes, "
        "whichever is more.",
        "SLAL, eq. 5",
    ),
    "bound MB/s": Entry("Rate that such requests reach at best, back to back, on all servers."),
    "bound ratio": Entry(
        "The time of the busiest target over the measured I/O time, of one layout: at 1 that target never rests, and "
        "only another layout can be faster."
    ),
    "busiest": Entry("Milliseconds that the request adds to its busiest server."),
    "connect": Entry("T_E: the time to open connections to servers.", f"{_H2DP}, Table 2"),
    "emulated": Entry("Of a target: a directory whose accesses are slowed down to a device's figures."),
    "imbalance": Entry(
        "Busy time of the busiest target over the mean, less 1: 0 is even. On unlike targets uneven can be faster.",
        f"{_SLAL}, eq. 6",
    ),
    "network": Entry("T_X: the time of bytes on links.", f"{_H2DP}, Table 2"),
    "of bound": Entry(
        "The bound of the row's own layout over the simulated time: at 1 this layout can be no faster. Another layout "
        "has a bound of its own, and may be."
    ),
    "per byte": Entry("Seconds that a device takes for each byte, beside its startup."),
    "pieces": Entry("Accesses that one request makes, on H and S servers."),
    "process models": Entry("Prices of p processes spread over equal servers.", f"{_PDLA}, Tables 2, 4 and 5; RADAR"),
    "request": Entry("One read or write of a program; also its size."),
    "request models": Entry("Prices where requests of all processes meet on one server.", f"{_H2DP}, Tables 2 and 3"),
    "segment model": Entry("Price of one request alone, its startups random.", f"{_SLAL}, eqs. 1 to 6"),
    "slowest": Entry("The class of servers that decides startup and storage."),
    "startup": Entry("Seconds that an access takes before its first byte: seek and rotation of a disk."),
    "storage": Entry("The time of bytes on devices.", f"{_H2DP}, Table 2"),
    "T": Entry("The request's time by the model: connect, network, startup and storage.", f"{_H2DP}, Table 2"),
    "times def": Entry("How many times as fast as def, by the model that the row or the heading names."),
    "I/O times def": Entry(
        "How many times as fast as def the I/O is simulated to be: seconds with any read under way, and those with any "
        "write, added, as plan expects and tune measures them."
    ),
    "run times def": Entry(
        "How many times as fast as def the whole run is simulated to be, with the program's own time between requests."
    ),
    "MB/s": Entry(
        "Megabytes, 10^6 bytes, in a second; sizes are in KiB and MiB. Each verb says over which time: simulate over "
        "the run, tune over the time with such requests under way; init and calibrate: of bytes alone, beside startup."
    ),
    "proven": Entry("Of a plan by best: a time below which the bound of no layout lies (docs/best.md)."),
    "median": Entry("The middle one in order of size: one in two is no larger."),
    "p50": Entry("The median: one in two takes no longer."),
    "p99": Entry("99 in 100 take no longer."),
    "at work by the model": Entry("Seconds that the target was at work, by startup and per byte."),
    "I/O seconds": Entry("Seconds with any read under way, and those with any write, added; by tune measured."),
    "whole run": Entry(
        "Seconds from the start of the command to its end, the median of its runs: with its launcher, what the program "
        "computes and whatever else it waits for."
    ),
    "simulated I/O": Entry(
        "The same seconds in a simulated run of the traced requests: devices and network alone, without the time of "
        "the library, of the program's own processes and of a busy machine."
    ),
    "simulated seconds": Entry("Of the whole run, with the program's own time between requests; nothing was measured."),
    "times original": Entry(
        "With replicas: the simulated seconds from the files as they lie over those of the row; building is not "
        "counted."
    ),
    "times as fast as": Entry("I/O seconds of the layout that is named over those of this one."),
    "verified bytes": Entry("Bytes that the program said it compared with what it had written, where it says so."),
    "busy": Entry("Time that a device was at work (-: not known); with %: its share of the run."),
    "accesses": Entry("Reads and writes that reached the target, after requests were cut at stripes."),
    "95 % interval": Entry(
        "Where the true mean lies, with 95 % confidence: Student's t of the logarithms of the times, whose spread is "
        "taken to be the same under all layouts; the interval of a gain is that of its two times."
    ),
    # Measuring.
    "access": Entry("What was measured: random, sequential or saturated reads or writes."),
    "5-95 %": Entry("Startups of 9 accesses in 10 lie between these, in ms."),
    "misfit": Entry("How far the worst size's median lies from the fitted line."),
    "residual": Entry("Median distance of measured times from the fitted line; ! marks unreliable ones."),
    "samples": Entry("Accesses that were timed."),
    # Shingled disks.
    "ampl.": Entry("Of a write's time: reading and rewriting of tracks that it would have destroyed."),
    "coll.": Entry("Of a write's time: garbage collection before it."),
    "free": Entry(
        "Room that is left; targets on one file system split its. Of a shingled disk: tracks that hold nothing and may "
        "be written."
    ),
    "gap": Entry(
        "Of a plan by best: by how much the best bound that was found lies above what is proven of all layouts. Of a "
        "shingled disk: tracks that are free but would destroy what lies behind them."
    ),
    "GC": Entry("Garbage collections: how often the scheme made room by moving tracks together."),
    "hot": Entry("Data that is updated most often."),
    "mean ms": Entry("Mean time of a request, from its arrival to its end, in ms; read ms and write ms: of each kind."),
    "read ms": Entry("Mean time of a read, from its arrival to its end, in ms."),
    "write ms": Entry("Mean time of a write, from its arrival to its end, in ms; own to wait are its parts."),
    "mapping": Entry("The order in which tracks of bands are filled, as 1234.", f"{_THESIS}, section 4.4.1"),
    "own": Entry("Of a write's time: seek, rotation and transfer of the write itself."),
    "scheme": Entry("How a shingled disk places tracks and updates (docs/shingled.md)."),
    "space in use": Entry("Share of the disk's space that requests go to."),
    "files on it": Entry("Files that have an object on the target, be it empty."),
    "used": Entry("Room that holds data; of a shingled disk: share of the space that requests go to."),
    "wait": Entry("Of a write's time: in the queue behind other requests."),
    "WAR": Entry("Write amplification ratio: operations on the disk for each write.", f"{_THESIS}, eq. 4.2"),
    "write amplification": Entry("Writes on the medium that no program asked for; WAR counts them."),
    # Inside a store.
    "ctl": Entry("File of the store with the words that processes share about an open file: size, moves, locks."),
    "dirty": Entry("Of a chunk that is being moved: written since it was copied, and copied again."),
    "epoch": Entry("What each I/O enters and leaves, so that a mover knows when nobody uses the old layout."),
    "freeze": Entry("The moment of a move in which writers of its span wait; it has a deadline."),
    "mover": Entry("The process that moves regions while programs use them."),
    "orphan": Entry("A managed file whose name is gone."),
    "slot": Entry("What one process shows movers of the files it uses."),
    "session": Entry("From one open of a file to its close; also one run of a mover."),
    # Traces.
    "calls by name": Entry("Calls that name a file and move none of its bytes: open, stat, unlink and the like."),
    "first to last request": Entry("Time from the start of the first request to the end of the last one."),
    "furthest byte": Entry("Of a traced file: end of the last byte that a request reached. The file may be longer."),
    "finding": Entry("What is wrong with a run: cause, evidence, price and cure (docs/traces/showing.md)."),
    "hot region": Entry("A small part of a file, read again and again in no order."),
    "price": Entry("Seconds that a finding or a layout costs, by a model; of syncs and calls by name, as measured."),
    "weight": Entry("Of a region in a plan of best: what it costs on a server, busy ones and scarce space being dear."),
    "record": Entry(
        "What a trace holds of one call; those of reads and writes that moved bytes are its requests. Of copies: what "
        "says which bytes of a plain file stand where in their container."
    ),
    "count": Entry("Of a pattern: rounds of a loop."),
    "sieving": Entry(
        "Data sieving of MPI-IO (ROMIO, OMPIO): for small pieces with gaps one read of the whole range into a buffer; "
        "writes also put it back. Few large requests, for more bytes than were asked for."
    ),
    "side(P)": Entry(
        "In formulas of patterns predict: the shorter side of the squarest grid of P processes, 3 of 12; P/side(P) is "
        "the longer one (docs/traces/patterns.md)."
    ),
    "stride": Entry("Of a pattern: bytes from the beginning of one round of a loop to that of the next."),
    "ordinal": Entry("Which collective call of its session a call is, from 0."),
    "parent": Entry("Of a traced call: the MPI-IO call that caused it."),
    "rank": Entry("Number of an MPI process, from 0."),
    "small": Entry("Of a request: up to 64 KiB."),
    "medium": Entry("Of a request: above 64 KiB, up to 1 MiB."),
    "large": Entry("Of a request: above 1 MiB."),
    "trace": Entry("What a run did to its files: every call, its time, place and size."),
}  # fmt: skip

#: Headings of each verb's tables that say little by themselves.
COLUMNS: dict[str, tuple[str, ...]] = {
    "calibrate": ("access", "startup", "5-95 %", "MB/s", "residual", "misfit", "samples"),
    "init": ("target", "class", "device", "startup", "MB/s", "free"),
    "model": (
        "T", "connect", "network", "startup", "storage", "slowest", "pieces", "busiest", "bound MB/s", "widths",
    ),
    "engine": ("decision", "contention", "aggregators", "chasm", "cb_buffer_size", "co_ratio", "exchange"),
    "model engine": ("decision", "contention", "aggregators", "chasm", "cb_buffer_size", "co_ratio"),
    "plan": (
        "stripes", "rotated", "growth", "window", "hybrid region", "% on hybrid", "cost s", "out", "in", "restripe",
        "copies s", "entries",
    ),
    "show": (
        "furthest byte", "median", "first to last request", "accesses", "at work by the model", "class", "times def",
        "entries", "stripes", "from window", "reason",
    ),
    "files": ("rule",),
    "replicate": ("pattern", "layout", "gain s", "space", "build s"),
    "store replica ls": ("replica", "state"),
    "simulate": (
        "MB/s", "of bound", "imbalance", "p50", "p99", "I/O seconds", "I/O times def", "run times def",
        "manager", "replica", "simulated seconds", "times original",
    ),
    "tune": (
        "MB/s", "I/O seconds", "whole run", "simulated I/O", "95 % interval", "times as fast as", "busy", "imbalance",
        "bound ratio", "verified bytes",
    ),
    "store df": ("class", "used", "free", "files on it", "away"),
    "store info": ("class", "kind", "capacity", "busy", "rule"),
    "store layout": ("from", "to", "region", "stripes", "rotated", "growth"),
    "store plan ls": ("policy", "window", "expected", "measured"),
    "store template ls": ("glob", "layout"),
    "swd map": ("scheme", "space in use", "used", "hot", "gap", "free"),
    "swd simulate": (
        "used", "mean ms", "p99", "read ms", "write ms", "own", "ampl.", "coll.", "wait", "WAR", "GC", "busy",
    ),
    "swd war": ("mapping", "used"),
}  # fmt: skip


def found(word: str) -> dict[str, Entry]:
    """The entries of a word: its own, else those that have it among their words; upper and lower case are one."""
    wanted = word.strip().casefold()
    for name in (wanted, wanted.removesuffix("s")):
        for each, entry in WORDS.items():
            if each.casefold() == name:
                return {each: entry}
    return {each: entry for each, entry in WORDS.items() if wanted and wanted in each.casefold().split()}


def near(word: str) -> list[str]:
    """Words that are written almost so."""
    import difflib

    known = {each.casefold(): each for each in WORDS}
    return [known[each] for each in difflib.get_close_matches(word.casefold(), list(known), 3)]
