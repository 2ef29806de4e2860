"""Workload descriptions: what they mean, that they name what is wrong, and that the C program's requests come out."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import WorkloadError
from stripewise.policy.toolkit.regions import build_regions
from stripewise.workload.describe import KINDS, Description, description_from, read_description
from stripewise.workload.generated import generated_workload, made_by, requests_of
from support import KIB, MIB

ROOT = Path(__file__).resolve().parents[3]
BASE = {"kind": "zipf", "processes": 3, "request_bytes": "4KiB", "file_bytes": "1MiB"}


@pytest.fixture(scope="module")
def c_pattern(tmp_path_factory) -> Path:
    """workloads/pattern.c as a program that prints the pieces of all requests."""
    program = tmp_path_factory.mktemp("pattern") / "pattern"
    main = program.with_suffix(".c")
    main.write_text(_MAIN)
    source = ROOT / "workloads" / "pattern.c"
    words = ["cc", "-O1", f"-I{source.parent}", "-o", program, main, source, "-lm"]
    subprocess.run(words, check=True, timeout=60)
    return program


_MAIN = """
#include "pattern.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **word)
{
    uint64_t number[12];
    char text[256];
    struct pattern pattern;
    for (int i = 1; i < argc && i < 12; i++)
        number[i] = strtoull(word[i], NULL, 10);
    struct options options = {.pattern = (enum pattern_kind)number[1], .file_bytes = number[3],
                              .request_bytes = number[4], .region_bytes = number[5], .pieces = number[6],
                              .seed = number[7], .shift = number[8], .alpha = strtod(word[11], NULL)};
    if (pattern_init(&pattern, &options, number[2], text, sizeof text) != 0)
        return puts(text), 1;
    uint64_t requests = number[10];
    pattern.window_requests[0] = pattern.window_requests[1] = (requests + number[9] - 1) / number[9];
    for (uint64_t rank = 0; rank < number[2]; rank++)
        for (unsigned phase = 0; phase < 2; phase++)
            for (uint64_t i = 0; i < requests; i++)
                for (uint64_t piece = 0; piece < pattern.pieces; piece++)
                    printf("%" PRIu64 "\\n", pattern_piece(&pattern, pattern_offset(&pattern, rank, phase, i), piece));
    pattern_free(&pattern);
    return 0;
}
"""


@settings(max_examples=40)
@given(
    kind=st.sampled_from(KINDS), processes=st.integers(1, 12), pieces=st.integers(1, 12), granule=st.integers(1, 5000),
    spare=st.integers(0, 100_000), rounds=st.integers(2, 9), per_region=st.integers(1, 7), alpha=st.floats(0, 4),
    seed=st.integers(0, 2**64 - 1), shift=st.integers(0, 50), windows=st.integers(1, 5), requests=st.integers(1, 30),
)  # fmt: skip
def test_every_request_is_the_one_that_the_c_program_issues(
    c_pattern, kind, processes, pieces, granule, spare, rounds, per_region, alpha, seed, shift, windows, requests
):
    size = granule * pieces
    file_bytes = max(size * processes * rounds, size * per_region) + spare
    described = Description(
        kind, processes, ((size, 1.0),), file_bytes, region_bytes=size * per_region, alpha=alpha, pieces=pieces,
        reads=requests, writes=requests, windows=windows, shift=shift, seed=seed,
    )  # fmt: skip
    words = [
        KINDS.index(kind), processes, file_bytes, size, size * per_region, pieces, seed, shift, windows, requests, alpha
    ]  # fmt: skip
    printed = subprocess.run([c_pattern, *map(str, words)], capture_output=True, check=True, timeout=60).stdout
    expected = np.array(printed.split(), dtype=np.int64)
    assert requests_of(described, 0, processes)["offset"].tolist() == expected.tolist()


@settings(max_examples=150)
@given(st.dictionaries(
    st.sampled_from(sorted({*BASE, "files", "path", "region_bytes", "alpha", "pieces", "gap_bytes", "reads", "writes",
                            "windows", "shift", "window_seconds", "think_s", "think", "rate_per_s", "arrivals",
                            "collective", "seed", "version", "surprise"})),
    st.one_of(st.integers(-5, 2**70), st.floats(), st.booleans(), st.text(max_size=8), st.none(), st.just([]),
              st.sampled_from(["8KiB", "zipf", "tiles", "shared", "/f", "poisson"]), st.just([["4KiB", 2], [8192, 1]])),
    max_size=4,
))  # fmt: skip
def test_a_description_is_taken_or_refused_with_file_and_key(changes):
    try:
        described = description_from(BASE, "w.toml", changes)
        made = made_by(described)
    except WorkloadError as error:
        text = str(error)
        assert text.startswith("w.toml: ") and "\n" not in text and any(key in text for key in (*BASE, *changes))
        return
    assert made.processes == described.processes
    few = requests_of(described, 0, 1, 3)
    assert (few["size"] > 0).all() and (few["offset"] >= 0).all()
    assert (few["offset"] + few["size"] <= described.file_bytes).all()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("kind", "zpif", "kind = 'zpif' is unknown; use one of"),
        ("request_bytes", "4 parsecs", "request_bytes = '4 parsecs' is not a size"),
        ("request_bytes", [["4KiB", -1]], "request_bytes[0].weight = -1 is out of range"),
        ("procesess", 4, "procesess is not a known key; did you mean processes?"),
        ("file_bytes", "512KiB", "region_bytes = 1048576 does not fit zipf"),
        ("path", "data/f", "path = 'data/f' is not absolute"),
        ("collective", 1, "collective = 1 is not true or false"),
        ("version", 2, "version = 2 is newer"),
    ],
)
def test_what_is_wrong_is_said_with_the_key(key, value, problem):
    with pytest.raises(WorkloadError) as caught:
        made_by(description_from(BASE, "w.toml", {key: value}))
    assert f"w.toml: {problem}" in str(caught.value)


def test_one_phase_named_means_no_other_and_none_means_the_file_once():
    assert made_by(description_from(BASE, "w", {"kind": "sequential", "reads": 5})).per_process == 5
    once = made_by(description_from(BASE, "w", {"kind": "sequential"}))
    assert once.per_process == 2 * ((1 << 20) // 4096 // 3)


def test_a_file_is_read_and_its_keys_are_named(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in BASE.items()))
    assert read_description(path, {"request_bytes": ["4KiB", 8192]}).request_bytes == ((4096, 1.0), (8192, 1.0))
    path.write_text("processes = 4")
    with pytest.raises(WorkloadError, match=r"w\.toml: kind is missing; add one of sequential, "):
        read_description(path)
    path.write_text("kind = ")
    with pytest.raises(WorkloadError, match=r"w\.toml: not TOML"):
        read_description(path)


def test_a_sample_is_scaled_back_and_spread_over_phases_and_processes():
    described = Description("random", 8, ((4 * KIB, 1.0),), 64 * MIB, reads=3000, writes=1000)
    whole, part = generated_workload(described), generated_workload(described, 3200)
    assert whole.weight == 1 and part.weight == 10 and part.requests == 3200
    requests = part.files[0].requests
    assert requests["write"].sum() == 800 and set(requests["rank"]) == set(range(8))
    counts = [int(build_regions(workload, MIB).count.sum()) for workload in (whole, part)]
    assert counts == [32_000, 32_000]


def test_a_file_per_process_is_planned_as_so_many_files():
    described = Description("sequential", 3, ((4 * KIB, 1.0),), 64 * KIB, files="per_process", path="/d/f", reads=5)
    files = generated_workload(replace(described, writes=0)).files
    assert [file.path for file in files] == ["/d/f.0", "/d/f.1", "/d/f.2"]
    assert all(file.requests["offset"].tolist() == [0, 4096, 8192, 12288, 16384] for file in files)
