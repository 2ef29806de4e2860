"""Sieved writes: what is read to be put back belongs to them, and calls that move nothing are no requests."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runs import write_rows
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of
from support import KIB, MIB
from test_cli import stripewise

CALLS = 16


def sieved(place):
    """Each write of 256 KiB reads 1 MiB and writes it back, after a look behind the end; each read asks for all."""
    rows, parents = [], []
    for k in range(CALLS):
        seq = len(rows)
        rows += [(0, "mpi_write", "/d/f", k * MIB, 256 * KIB), (0, "read", "/d/f", 99 * MIB, 0)]
        rows += [(0, "read", "/d/f", k * MIB, MIB), (0, "write", "/d/f", k * MIB, MIB)]
        parents += [-1, seq, seq, seq]
    for k in range(4):
        seq = len(rows)
        rows += [(0, "mpi_read", "/d/f", k * MIB, 512 * KIB), (0, "read", "/d/f", k * MIB, 512 * KIB)]
        parents += [-1, seq]
    write_rows(place, rows)
    table, count = pq.read_table(place / "trace.parquet"), len(rows)
    zeros = pa.array(np.zeros(count, np.int64))
    for name, values in {
        "thread": zeros, "seq": pa.array(np.arange(count)), "requested": table["done"], "flags": zeros,
        "parent": pa.array(parents, pa.int64()), "parent_thread": zeros, "aux": zeros,
    }.items():  # fmt: skip
        table = table.append_column(name, values)
    pq.write_table(table, place / "trace.parquet")
    return place


def test_reads_made_for_writes_are_counted_with_the_writes(tmp_path):
    found = [each for each in findings_of(facts_of(sieved(tmp_path / "t")), DEFAULT_CLUSTER) if each.cause == "sieving"]
    assert [each.title for each in found] == ["data sieving multiplies writes"]
    assert found[0].evidence == (
        "MPI-IO writes 4.0 MiB, the system calls below move 32.0 MiB, 8.0 times as much: 16.0 MiB read first, 16.0 MiB "
        "written",
    )
    assert found[0].price.high > found[0].price.low > 0


@pytest.mark.parametrize("loss", ["unnamed", "dropped", "incomplete", "cut_logs"])
def test_a_trace_that_lacks_records_shows_no_sieving(tmp_path, loss):
    """What is missing may be what MPI-IO was asked for."""
    place = sieved(tmp_path / "t")
    for count in (0, 1):
        (place / "meta.json").write_text(json.dumps({"version": 1, loss: count}))
        facts = facts_of(place)
        assert facts.knows_mpi == (count == 0)
        causes = {each.cause for each in findings_of(facts, DEFAULT_CLUSTER)}
        assert ("sieving" in causes) == (count == 0), causes


def test_counts_in_sentences_are_those_of_the_table(tmp_path):
    said = stripewise("show", sieved(tmp_path / "t")).stdout
    assert "16 independent write(s) of 4.0 MiB in all; made of it: 16 read(s) of 16.0 MiB, 16 write(s) of 16.0" in said
    assert "4 independent read(s) of 2.0 MiB in all; made of it: 4 read(s) of 2.0 MiB" in said
    (row,) = [line.split() for line in said.splitlines() if line.startswith("/d/f ")]
    assert row[3:5] == ["20", "16"]
