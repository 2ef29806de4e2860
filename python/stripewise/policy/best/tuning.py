"""The numbers in `best` that are choices: what each is for, by the part of the search that uses it.

None is fitted: a value is the first round one with which the runs that it was chosen by came out. These were, for what
decides, the polish, the strategies and what is expected, instances 0 to 59 of `tests/portfolio` (`python -m
portfolio.compare 0 60`, from `tests`), and those up to 209 in which the portfolio was ahead (what takes cycles apart,
and how steps go on over slower ones: instance 111 alone; how much the trace counts: 141, 257, 279, 410, 458, 464);
for the search by regions, the experiments `throughput-view`, `mixed`, `tight`, `uneven` and `scale`; for whatever only
limits time and memory, `best.seconds_1000x10000` of `make bench`. What a proof rounds by is no choice and stands beside
the proof.
"""

from __future__ import annotations

from ...units import KIB, MIB

# The search as a whole (best.py)

#: Seconds for the whole search, unless the user gives them.
TIME_LIMIT_S = 60.0
#: Of it, what has passed when no more is proposed, and when no more candidates are run, if both have had as much as the
#: third: the rest is for the last steps.
PROPOSED_PART, JUDGED_PART, LEAST_PART = 0.55, 0.8, 0.2
#: Where queues are short, layouts for fewer processes in flight (by this factor: less latency) and with more work on
#: swift servers (by this power of how slow the others are) are tried too.
BIASES = ((1.0, 0.2), (2.5, 0.0), (2.5, 0.2), (4.0, 0.0), (4.0, 0.3))
#: With heads the very largest requests lie on few servers each, where less latency counts more.
HEADED_BIASES = ((8.0, 0.0), (4.0, 0.3), (2.5, 0.2), (4.0, 0.0), (1.0, 0.2))
#: Of the time limit: what must be left to try another cut or bias; the same with heads.
LEFT_PART, HEADED_LEFT_PART = 0.5, 0.25
#: DEF is tried with these stripes too: equal ones suit sequences that no bound knows of.
WIDER_STRIPES = (256 * KIB, MIB, 4 * MIB)
#: Runs like the traced one that candidates are judged by, at least and at most, and their requests together.
LIKELY_RUNS, LIKELY_REQUESTS = (2, 32), 100_000
#: Further ones, which what was searched for with those is held against, and how many of the quickest candidates are
#: compared by them at last.
FRESH_RUNS, FINALISTS = 8, 12
#: Requests of a trace beyond which its chance is small.
LIKELY_MAX = 2_000_000
#: Likely runs that all candidates are judged by, and how many of the quickest are judged by all runs.
FEW_RUNS, CLOSER = 4, 20
#: By this share a plan's seconds or its bound must be less than DEF's; else what lies there stays.
WORTHWHILE = 0.01
#: Simulated seconds that differ by less are a tie, which the bound decides.
TIED = 0.002
#: Seconds for the exact solution of small problems; nodes end it sooner.
EXACT_S = 20.0
#: Parts that a region's own work, and its room, may have of a server's: finer cuts are made where coarse ones leave
#: a gap of more than FINE_GAP, up to so many pieces.
FAIR_SHARES = (0.5, 0.1, 0.025)
FINE_GAP = 0.015
CUTS_MAX = 40_000
#: Fewer pieces per server than this are not worth a try, if there can be more.
PIECES_PER_SERVER = 3
#: Of the time that is left, what one problem may take: the objective itself, and a biased one.
ROUND_PART, BIASED_PART = 0.2, 0.1
#: Windows times pieces times teams beyond which there is time for one problem only, and the part that it takes.
ONE_ROUND, ONE_PART = 50_000_000, 0.6
#: What one region may keep one server busy for, in parts of the least makespan.
LONGEST_PART = 0.5
#: Regions times teams beyond which the solver comes to no end, and what was dealt out by classes stays.
SOLVED_MAX = 1_000_000
#: How many times as long as DEF's plan another policy's takes.
OTHERS_TAKE = 8.0
#: Of the quickest candidates, how many are polished, and requests that are simulated for it.
POLISHED, POLISH_REQUESTS = 3, 200_000_000
#: Of these and of the time that is left, what goes to plans by the trace alone, where the same run is worth one.
BY_TRACE_PART = 0.4
#: Steps of the other policies' searches for stripes, over the largest request: their own would be 10^6 pairs of widths.
OTHERS_STEPS = 128
#: What the solver stops at: for the objective itself, with heads among its many choices, and where it is biased.
SOLVER_GAP, HEADED_GAP, BIASED_GAP = 0.005, 0.01, 0.02

# What decides (judge.py)

#: What a run of the trace may be slower by where likely runs may make up for it.
SLOWER = 0.003
#: Where places were asked for n times, the trace counts (n - this) / (n + this) of what decides, and n / (n + this) of
#: what is held against fresh runs.
TIMES, FRESH_TIMES = 40.0, 40.0
#: Less as more requests of another run are expected elsewhere than the trace's, nothing where it is this part of them.
UNSEEN = 0.25
#: Where half of the places that are asked for were so often, no plan counts that is slower in the trace than one made
#: for it alone by more than a share, or else its seconds count more, by how much slower it is to this power.
OFTEN, SEEN_SLACK, SEEN_POWER = 30.0, 0.01, 8.0

# Simulated runs (trial.py)

#: Requests that a trial runs at most, all processes together.
TRIAL_REQUESTS_MAX = 400_000
#: A plan is not run where it would have to beat its bound by so much more than any before it did.
HOPELESS = 4.0

# Steps of the polish (polish.py)

#: Steps in vain after which to end, and draws of steps, some of which cannot be.
IN_VAIN, STEPS_MAX = 200, 8_000
#: Then steps may be slower, but not than what was so many steps before; how many in vain end that.
LATE, IN_VAIN_LATE = 20, 600
#: A step must be quicker by this share.
QUICKER = 2e-4
#: Of a server's mean work, and of the least room, what one part has at most; and parts of all files at most, about.
POLISH_PART, POLISH_ROOM, POLISH_PARTS_MAX = 0.04, 0.1, 4_000
#: Cycles of one piece with no more stripes than this are taken apart: each stripe is a part that can move.
APART_MAX = 64
#: Of twice what would even two servers, what a step moves: between these shares.
MOVED = (0.3, 1.2)
#: Chances: to take from the busiest server, to give to the least busy one.
BUSIEST, LEAST = 0.7, 0.5
#: Chances of how parts are chosen: neighbours, those with most work per byte; else any.
TOGETHER, DENSEST = 0.35, 0.3
#: Chance that more goes, up to a fifth of the server's work, and as much comes back: servers that are busy alike in all
#: may not be in every phase.
EXCHANGED = 0.35
#: Steps by the figures alone, before any is simulated; of those to be simulated, what part is the one of so many that
#: evens the load most.
EVENING, GUIDED, DRAWN = 3_000, 0.5, 12
#: How much the busiest server counts more than others (a norm).
NORM = 12.0
#: Parts that a step moves at most, as a power of two.
MOST_POWER = 9

# Strategy by heat (strategies/by_heat.py)

#: With fewer processes per channel than this, layouts for so many times fewer in flight are made as well.
SHORT_QUEUES = 8
LATENCIES = (1.0, 4.0)
#: How much slower than they are slow servers count, as powers (`Way`).
LEANS = (0.0, 0.3, 0.7, 1.5)
#: Stripes over all servers of a kind.
KIND_STRIPES = (64 * KIB, 256 * KIB, MIB, 16 * KIB)
#: Of a server's time, what the longest parts take.
LONG_PARTS = (0.3, 1.0)
#: Powers of two by which runs are told coarser, or finer, than requests are long.
HEAT_GRAINS = (-1, 1, 2)
#: Of all room, what is tried to be used, until the pieces fit.
FILLED = (1.0, 0.95, 0.8)

# Strategy by cells (strategies/by_cells.py)

#: Grains that are tried, the likeliest first; none: cells of the requests themselves.
CELL_GRAINS = (0, *(4 * KIB << power for power in (8, 6, 10, 4, 2, 9, 7, 11, 5, 3, 13, 1, 0)))
#: And as many cells of the longest file for each server.
CELL_PARTS = (1, 2, 4)
#: Cells at most, and fewer than so many per server are not worth a try.
CELLS_MAX, CELLS_PER_SERVER = 30_000, 2
#: Cells that are dealt out one by one, too, at most.
LISTED_MAX = 4_000
#: Pieces of requests at most.
CELL_PIECES_MAX = 3_000_000

# Strategy of whole files (strategies/spread.py)

#: Bytes of a stripe on average.
SPREAD_WIDTHS = (16 * KIB, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Kinds of servers that take whole files alone, the swiftest ones.
SPREAD_KINDS = 3
#: Of all room, what is tried to be used.
SPREAD_FILLED = 0.98

# Strategy for few processes (strategies/abreast.py)

#: Teams give as many servers as if so many times the processes were in flight; 0: stripes of a granule over all.
CROWDS = (1.0, 2.0, 0.0, 0.5)
#: Parts of what is asked for, per server: so many regions take turns with the servers of a kind.
ABREAST_PARTS = 8
#: Stripes of all regions together at most.
ABREAST_STRIPES_MAX = 500_000

# Dealing (strategies/dealing.py)

#: Of a server's room, what one part of a run takes at most.
PART_ROOM = 0.1
#: Parts of all runs together at most, about.
DEALT_PARTS_MAX = 60_000
#: What kinds may take beyond the least makespan before work goes to the next best kind.
SLACK = 1.002

# Spans (expected/spans.py)

#: Edges inside a slot at most.
SPANS_MAX = 8
#: Requests of a run count beside so many of the file's mean.
MEAN_REQUESTS = 4.0

# Sequences (expected/sequence.py)

#: A file of which so many requests continue one before them, and so many times what chance does, is in sequence.
SEQUENCE, BEYOND_CHANCE = 0.5, 2.0
#: How many requests back the one that is continued may lie: streams that are under way side by side.
STREAMS_MAX = 512

#: Of a process's requests, those among which a likely run draws anew which file is next.
TURNS = 16

# Phases (expected/phases.py)

#: Segments of a run; phases of a half, third, quarter, sixth or eighth of it end with one.
SEGMENTS = 24
#: Places of a file that phases are told by, of as many requests each; fewer where there are few requests.
BINS_MAX, REQUESTS_PER_BIN = 64, 32
#: Groups of segments at most, where files are gone through in sequence.
SEQUENCE_GROUPS = 8

# Heat of files (expected/heats.py)

#: Runs of all files together at most, and of one at least.
RUNS_MAX, RUNS_LEAST = 40_000, 64
#: Periods are looked for up to so many places, where so many of them go by at least.
PERIOD_MAX, PERIODS_LEAST = 64, 4
#: Files whose heat is followed, those that are asked for most; the others' is even.
FILES_MAX = 2_000

# Heat at every scale (expected/heat.py)

#: A level's splits of one such size are uneven where that makes them so much likelier (log likelihood).
EVIDENCE = 3.0
#: Steps of expectation and maximisation, and how many even splits are taken to have been seen before.
HEAT_STEPS, EVEN_BEFORE = 40, 0.5
#: Where the file ends in a node: standard deviations that chance explains, and requests that stand for even heat.
LAST_SIGMAS, LAST_BEFORE = 3.0, 2.0
#: Densities of neighbours within this ratio are one run.
ALIKE = 1.02

# Search by regions: teams (regions/teams.py)

#: Clusters above this get teams of these sizes only: others would be more than the solver needs.
MANY = 64
SIZES_OF_MANY = (2, 4, 8, 16)
#: Teams are of use below this many processes per server.
BUSY = 8

# Search by regions: exact (regions/exact.py)

#: Binary variables that are solved quickly enough.
BINARIES_MAX = 1_000
#: Nodes of the search tree, whatever the time: the same problem has the same answer on every machine.
NODES_MAX = 200
#: Members of a subset at most.
MEMBERS_MAX = 4

# Search by regions: cuts (regions/cuts.py)

#: Bins per region: the finest cut is a sixteenth of it.
BINS = 16
#: Twice the log likelihood ratio that a cut needs, and as much again for every further series of counts.
SIGNIFICANT = 30.0
SIGNIFICANT_EACH = 4.0
#: Rates that differ less do not pay for another region.
RATE_RATIO = 1.5
#: Share of a region's requests that a cut may run through.
CROSSING_SHARE = 0.01
#: Requests in a part where they are not aligned: so few of them are cut.
PART_REQUESTS = 16
#: Windows beyond this many are counted together.
WINDOWS_MAX = 16

# Search by regions: heads (regions/heads.py)

#: Requests that begin at one place are of different sizes where the largest is so many times the smallest.
HEADS_SPREAD = 4
#: Share of all requests that must be so for heads to be looked at.
WORTH_SHARE = 0.1
#: Share of a region's requests that must keep to a period for the region to be one of it.
KEPT = 0.9
#: A longer period that covers nearly as many requests as a shorter one needs less room for its heads.
NEARLY = 0.99
#: Periods that are looked at, and those that are tried to find them.
PERIODS, TRIED = 2, 64
#: Widths of heads per period.
HEAD_WIDTHS = 6
#: More servers have more pairs than the solver goes through in its time, and more regions to even them out.
HEADED_SERVERS_MAX = 64
#: Pairs times widths per period: beyond, every tail has fewer heads to go with.
HEADED_CHOICES_MAX = 400
