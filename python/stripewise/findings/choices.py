"""Every number by which a finding is made, with its reason; docs/traces/showing.md lists them."""

from .. import units
from ..units import MIB

#: Small requests, as patterns call them, too.
SMALL_BYTES = units.SMALL_BYTES
#: What requests are advised to be joined to: a stripe of Lustre by default.
JOINED_BYTES = MIB
#: Size of ROMIO's collective buffer where nobody asks for another (`cb_buffer_size`).
COLLECTIVE_BUFFER_BYTES = 16 * MIB
#: Fewer requests of a file tell of no habit.
REQUESTS_MIN = 64
#: Of requests: what "most" means.
MOST = 0.5
#: Of requests in no order: so many that follow each other beside them are no chance.
BESIDE = 0.1
#: Of requests of one size, or that follow each other: what "nearly all" means.
NEARLY_ALL = 0.8
#: Reads that are counted as hot, and the part of the file's bytes that they may lie in at most.
HOT_READS, HOT_BYTES = 0.8, 0.25
#: Of the bytes that requests move: where so many come from SSDs, what they ask for lies there.
THERE = 0.9
#: Of the steps from one request to the next: where so many have one length, places follow a stride, not chance.
STRIDED = 0.8
#: A file is looked at in so many blocks for that, of a page at least.
BLOCKS = 4096
#: Of requests with one before them: how many go backward where there is no order; half would by chance.
BACKWARD = 0.25
#: Calls by name that make a storm, and how many of them a request that moves bytes.
STORM_CALLS, STORM_CALLS_PER_REQUEST = 500, 2.0
#: Syncs of a file that make a habit, what one process spends in them at least, and the bytes between two of them from
#: which the device takes its time for the bytes: a disk of 100 MB/s has them in 0.17 s, and a sync in 10 ms.
SYNCS_MIN, SYNC_S, SYNCED_BYTES = 16, 0.1, 16 * MIB
#: What system calls move over what MPI-IO calls asked for, and the bytes above it that matter.
SIEVED, SIEVED_BYTES = 2.0, 1 * MIB
#: How often a process reads each byte, on average, from which that is a habit, and the bytes above once that matter.
REREAD, REREAD_BYTES = 4.0, 16 * MIB
#: One rank's bytes over the mean of all ranks from which they are uneven, and the bytes below which it does not matter.
UNEVEN, UNEVEN_BYTES = 2.0, 16 * MIB
#: Seconds of reads that copies have served over those that the model has them take at most from the home, from which
#: the copies are slower, and the seconds above it that matter: queues and other programs make less of a difference.
SLOWER, SLOWER_S = 1.2, 0.01
