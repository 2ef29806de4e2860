"""What is told of both layers of real MPI jobs: patterns behind views, and what came of the calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rig import mpiio_command, stripewise

from runs import runs_of
from stripewise.workload.made import made_in

#: What each of 3 ranks asks for; by independent calls the library sieves, by collective ones it joins.
PIECES = ("--pattern", "strided", "--pieces", "4", "--request-size", "256KiB", "--file-size", "6MiB")


def traced(scratch: Path, *words: str) -> Path:
    data, trace = scratch / "out", scratch / "trace"
    stripewise("run", "--trace", trace, "--", *mpiio_command(3, data, *words))
    stripewise("collect", trace)
    return trace


@pytest.mark.parametrize("collective", [False, True])
def test_patterns_of_the_mpi_layer_are_those_behind_the_view(scratch: Path, collective: bool) -> None:
    trace = traced(scratch, *PIECES, "--phases", "write,read", *(["--collective"] if collective else []))
    told = stripewise("patterns", trace, "--layer", "mpi", "--file", scratch / "out").out
    for verb in ("writes", "reads"):
        assert (
            f"Each of 3 ranks {verb} 32 small requests of 64 KiB strided, one every 192 KiB, "
            "rank r from r x 64 KiB on; together they cover 0 B to 6 MiB exactly once." in told
        ), told


@pytest.mark.parametrize("collective", [False, True])
def test_a_page_tells_what_came_of_mpi_io(scratch: Path, collective: bool) -> None:
    trace = traced(scratch, *PIECES, "--phases", "write,read", *(["--collective"] if collective else []))
    page = json.loads(stripewise("show", trace, "--file", scratch / "out", "--json").out)
    (line,) = page["run"]["files"]
    layers = {each["op"]: each for each in line["layers"]}
    wanted = {"calls": 24, "bytes": 6 << 20, "ranges": 96, "collective": 24 if collective else 0, "nonblocking": 0}
    for op in ("read", "write"):
        assert layers[op] | wanted == layers[op]
    read, written = layers["read"], layers["write"]
    assert (read["writes"], read["written_bytes"]) == (0, 0)
    if collective:
        # One aggregator on one machine: the same bytes in whole stretches.
        assert (read["reads"], read["read_bytes"]) == (8, 6 << 20)
        assert (written["writes"], written["written_bytes"]) == (8, 6 << 20)
    else:
        # Sieving reads 448 KiB or more for 256.
        assert read["read_bytes"] > 1.5 * read["bytes"]
        assert written["reads"] > 0
        assert [each["cause"] for each in page["findings"]] == ["sieving"]
    # The page of pictures says the same.
    html = scratch / "page.html"
    stripewise("show", trace, "--file", scratch / "out", "--html", html)
    (run,) = runs_of(html.read_text())
    assert [said.split(" MPI-IO for ")[0] for said in run["files"][0]["layers"][:2]] == ["The program asks"] * 2
    assert run["files"][0]["layers"][2].startswith("The program gives no hints; in force: cb_nodes = 1, ")
    # All that was done to the file by the job's calls is told.
    assert written["written_bytes"] + read["written_bytes"] == sum(each["written_bytes"] for each in page["files"])


def test_a_trace_of_mpi_io_calls_alone_says_where_to_look(scratch: Path) -> None:
    data, trace = scratch / "out", scratch / "trace"
    stripewise("run", "--layers", "mpi", "--trace", trace, "--", *mpiio_command(2, data, "--file-size", "1MiB"))
    said = stripewise("collect", trace).out
    assert f"next: trace the run with --layers both, to plan for it; now: stripewise patterns {trace} --layer" in said
    cluster = scratch / "cluster.toml"
    cluster.write_text(
        "".join(
            f'[[target]]\nname = "{name}"\nclass = "{name[:3]}"\npath = "{name}"\nstartup_read_s = 1e-3\n'
            f"startup_write_s = 1e-3\nper_byte_read_s = 1e-8\nper_byte_write_s = 1e-8\n"
            for name in ("hdd0", "ssd0")
        )
    )
    on = ("--cluster", cluster)
    for words in (("show", trace), ("plan", trace, *on), ("simulate", "--trace", trace, "--policy", "def", *on)):
        said = stripewise(*words, code=1).err
        assert "with --layers both; it has MPI-IO calls alone, of which 'patterns --layer mpi' tells" in said
    assert "Each of 2 ranks" in stripewise("patterns", trace, "--layer", "mpi").out


def test_the_trace_tells_that_a_job_created_its_file(tmp_path: Path) -> None:
    """MPI-IO opens with O_CREAT alone, in one process or several."""
    data, told = tmp_path / "data.bin", []
    for turn in ("first", "second"):
        trace = tmp_path / turn
        stripewise("run", "--trace", trace, "--", *mpiio_command(2, data, "--file-size", "1MiB"))
        stripewise("collect", trace)
        told.append(str(data) in made_in(trace).anew)
    assert told == [True, False]
