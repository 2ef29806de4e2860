"""The MPI workload, traced, issues the very requests that the simulator generates; its trace can be simulated."""

from __future__ import annotations

import json

import pytest
from rig import Maker, mpiio_command, parse_mpiio, stripewise

from stripewise.workload.describe import Description
from stripewise.workload.generated import requests_of
from stripewise.workload.trace import read_trace

KIB, MIB = 1 << 10, 1 << 20
#: Else MPI-IO reads and writes the holes between pieces too.
NO_SIEVING = ("--hint", "romio_ds_read=disable", "--hint", "romio_ds_write=disable")


@pytest.mark.parametrize("kind", ["random", "strided", "nested", "tiles"])
def test_a_run_issues_what_its_description_generates(make_store: Maker, kind: str) -> None:
    store = make_store(layout="striped")
    file, trace = store.data / "f", store.base / "trace"
    described = Description(
        kind, 4, ((48 * KIB, 1.0),), 4 * MIB, path=str(file), pieces=4, reads=7, writes=9, seed=11
    )  # fmt: skip
    words = [
        *("--pattern", kind, "--file-size", "4MiB", "--request-size", "48KiB", "--pieces", "4"),
        *("--reads", "7", "--writes", "9", "--seed", "11", *NO_SIEVING),
    ]
    parse_mpiio(store.run(*mpiio_command(4, file, *words, "--phases", "fill")))
    job = mpiio_command(4, file, *words, "--phases", "write,read")
    parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *job))
    stripewise("collect", trace)
    issued = read_trace(trace).files[0].requests
    for rank in range(4):
        mine, made = issued[issued["rank"] == rank], requests_of(described, rank)
        for key in ("write", "offset", "size"):
            assert mine[key].tolist() == made[key].tolist(), (kind, rank, key)

    said = stripewise("simulate", "--trace", trace, "--cluster", store.cluster, "--policy", "def", "--json")
    row = json.loads(said.out)["rows"][0]
    on_store = stripewise("simulate", "--trace", trace, "--store", store.root, "--policy", "def", "--json")
    assert json.loads(on_store.out)["rows"][0] == row
    assert "is not a store" in stripewise("simulate", "--trace", trace, "--store", store.cluster, code=1).err
    assert row["requests"] == len(issued) and row["processes"] == 4
    assert row["bytes_read"] + row["bytes_written"] == 4 * 16 * 48 * KIB
