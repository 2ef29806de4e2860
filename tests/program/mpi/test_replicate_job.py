"""What replicas of a real MPI job would hold: by its calls behind views, and on the store where its file lay."""

from __future__ import annotations

import json

from rig import dirs, mpiio_command, stripewise

#: Each of 3 ranks writes and reads 32 pieces of 64 KiB, one every 192 KiB.
PIECES = ("--pattern", "strided", "--pieces", "4", "--request-size", "256KiB", "--file-size", "6MiB")


def test_a_replica_of_a_job_holds_its_pieces_rank_by_rank(scratch):
    data, trace = scratch / "out", scratch / "trace"
    stripewise("run", "--trace", trace, "--", *mpiio_command(3, data, *PIECES, "--phases", "write,read"))
    stripewise("collect", trace)
    words = ("replicate", trace, "--what-if", "--file", data, "--manager", "s-pdla", "--json")
    (decision,) = json.loads(stripewise(*words).out)["managers"]
    # What the program asked MPI-IO for counts, not the blocks that it became.
    assert json.loads(stripewise(*words, "--layer", "mpi").out)["managers"] == [decision]
    assert json.loads(stripewise(*words, "--layer", "posix").out)["managers"] != [decision]
    (made,) = decision["replicas"]
    assert made["blocks"] == [{"base": 0, "block": 64 << 10, "dims": [[64 << 10, 3], [192 << 10, 32]]}]
    # Reads have the blocks of the writes, and so their home.
    assert (made["operation"], made["home"], made["processes"], made["requests"]) == ("both", True, 3, 192)
    assert made["space"] == "SServers" and made["times_as_fast"] > 1 and sum(made["space_bytes"].values()) == 6 << 20


def test_a_file_of_a_store_is_priced_where_it_lay(make_store):
    store = make_store(dirs(3))
    trace = store.plain / "trace"
    job = mpiio_command(2, store.data / "out", "--file-size", "8MiB", "--phases", "write,read")
    stripewise("run", "--store", store.root, "--trace", trace, "--", *job)
    stripewise("collect", trace)
    found = json.loads(stripewise("replicate", trace, "--what-if", "--manager", "h-pdla", "--json").out)
    assert found["cluster"].startswith(str(store.root))
    (decision,) = found["managers"]
    assert decision["replicas"] and set(decision["space_bytes"]) <= {each.name for each in store.targets}
    said = stripewise("replicate", trace, "--what-if", "--manager", "h-pdla").out
    assert "files as they lie now" in " ".join(said.split())
