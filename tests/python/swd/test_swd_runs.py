"""Simulated shingled disks through Python and the command line: small drives, the seed's figures, clear errors."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stripewise.errors import ClusterError, StripewiseError, UsageError
from stripewise.swd.disk import read_disk
from stripewise.swd.simulate import SCHEMES, Setup, map_disk, parse_fill, parse_schemes, simulate_disk
from stripewise.swd.words import count, finite, flag
from stripewise.swd.workload import made_workload
from test_cli import stripewise

#: 1,000 tracks of 80 sectors: 200 bands of four and a gap.
DRIVE = """
cylinders = 1000
surfaces = 1
rpm = 6000
zones = [[0, 80]]
seek = [[1, 1.0], [999, 10.0]]
"""
BARE = ("--random-access", "0", "--e-region", "0")


@pytest.fixture
def drive(tmp_path) -> Path:
    path = tmp_path / "drive.toml"
    path.write_text(DRIVE)
    return path


def rows(*words, code=0):
    told = json.loads(stripewise("swd", *words, "--json", code=code).stdout)
    assert told["simulated"] is True
    return told.get("rows", told.get("maps"))


def run(drive, scheme, used, workload="uniform", requests=4000, **setup):
    made = made_workload(workload, requests, stretch=10)
    return simulate_disk(Setup(read_disk(drive), **setup), parse_schemes(scheme)[0], parse_fill(used), made)


@pytest.mark.parametrize(
    "scheme, golden",
    [
        ("1234", (4, 4, 4, 4)),
        ("R(4123)", (1, 1, 5 / 3, 4)),
        ("14R(23)", (1, 1, 5 / 3, 4)),
        ("124R(3)", (5 / 3, 5 / 3, 5 / 3, 4)),
    ],
)
def test_simulated_uniform_updates_cost_what_the_golden_table_says(drive, scheme, golden):
    words = ("simulate", "--disk", drive, "--scheme", scheme, "--used", "25%,50%,75%,100%", *BARE)
    found = rows(*words, "--workload", "uniform", "--requests", "5000", "--stretch", "20")
    assert [row["amplification"] for row in found] == pytest.approx(golden, rel=0.05)
    for row in found:  # Gross write time is the sum of its parts (chapter 5.3.4).
        parts = row["write_time"]
        assert sum(value for key, value in parts.items() if key != "total_s") == pytest.approx(parts["total_s"])


def test_amplification_shows_in_response_times(drive):
    plain, amplified = run(drive, "hdd", "100%"), run(drive, "1234", "100%")
    assert amplified["write_response_s"]["mean"] > 2 * plain["write_response_s"]["mean"]
    assert plain["write_time"]["amplification_s"] == 0 < amplified["write_time"]["amplification_s"]


@pytest.mark.parametrize("used, expected", [("75%", 1.0), ("100%", 1.0)])
def test_syn_writes_an_empty_disk_without_amplification_under_1234(drive, used, expected):
    found = rows("simulate", "--disk", drive, "--scheme", "1234", "--used", used, *BARE, "--workload", "syn")
    assert found[0]["amplification"] == expected and found[0]["requests"] * 8 == found[0]["used_blocks"]


def test_an_equal_seed_makes_an_equal_report_and_parameters_are_taken(drive):
    words = ("simulate", "--disk", drive, *BARE, "--random-access", "2%", "--workload", "zipf", "--requests", "500")
    schemes = "tstl-greedy,band_tracks=50,1234,head_tracks=3,band_tracks=5,is,cache_tracks=40,s_block_sectors=200"
    first = rows(*words, "--scheme", schemes, "--used", "4MB", "--e-region", "5%")
    assert first == rows(*words, "--scheme", schemes, "--used", "4MB", "--e-region", "5%")
    assert [row["label"] for row in first] == [
        "tstl-greedy,band_tracks=50", "1234,head_tracks=3,band_tracks=5", "is,cache_tracks=40,s_block_sectors=200",
    ]  # fmt: skip
    assert all(row["used_blocks"] == 4_000_000 // 512 for row in first)
    assert rows(*words, "--scheme", "hdd", "--seed", "2") != rows(*words, "--scheme", "hdd", "--seed", "1")


VALUES = {count: "5", finite: "0.5", flag: "true"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_takes_the_parameters_that_it_is_said_to_take(drive, scheme):
    taken = ",".join([scheme, *(f"{key}={VALUES[kind]}" for key, kind in SCHEMES[scheme].items())])
    setup = Setup(read_disk(drive), random_access=1_000_000, e_region=400_000)
    made = made_workload("uniform", 20, stretch=10)
    try:
        simulate_disk(setup, parse_schemes(taken)[0], parse_fill("10%"), made)
    except UsageError as error:
        # Five of everything need not make a disk, but each key is known and taken.
        assert "unknown field" not in str(error) and "is not taken" not in str(error), error


def test_a_trace_folded_and_scattered_goes_over_all_of_the_used_space(drive, tmp_path):
    trace = tmp_path / "t"
    trace.write_text("".join(f"{100 * n}.0 0 {n % 100} 1 0\n" for n in range(2000)))
    words = ("map", "--disk", drive, "--scheme", "hdd", *BARE, "--used", "100%", "--trace", trace)
    near, far = rows(*words)[0], rows(*words, "--lba-factor", "512")[0]
    hot = [sum(count for state, count in row["runs"] if state == "hot") for row in (near, far)]
    assert hot[0] <= 2 and hot[1] > 30


def test_tables_and_pictures_are_for_people(drive, tmp_path):
    words = ("--disk", drive, *BARE, "--random-access", "1%", "--workload", "zipf", "--requests", "300")
    said = stripewise("swd", "simulate", *words, "--plot", tmp_path / "one.svg")
    assert "tstl-smart" in said.stdout and "<svg" in (tmp_path / "one.svg").read_text()
    stripewise("swd", "simulate", *words, "--used", "30%,60%", "--plot", tmp_path / "two.html")
    assert "<svg" in (tmp_path / "two.html").read_text()
    said = stripewise("swd", "map", *words, "--first", "100", "--tracks", "200", "--plot", tmp_path / "map.html")
    assert "R(4123)" in said.stdout and "hot" in (tmp_path / "map.html").read_text()


def test_a_saturated_disk_is_said_to_be_one(drive):
    words = ("--disk", drive, *BARE, "--scheme", "hdd", "--workload", "uniform,arrivals=fixed:0.1", "--requests", "300")
    assert "faster than they are served" in stripewise("swd", "simulate", *words).stderr
    assert "faster" not in stripewise("swd", "simulate", *words, "--closed").stderr


def states(scheme, used, drive, workload="zipf", random_access=0):
    setup = Setup(read_disk(drive), random_access=random_access)
    found = map_disk(setup, parse_schemes(scheme)[0], parse_fill(used), made_workload(workload, 200))
    listed = [state for state, count in found["runs"] for _ in range(count)]
    assert len(listed) == found["tracks"]
    return listed


def test_below_half_tstl_leaves_every_other_track_free(drive):
    held = [state in ("used", "hot") for state in states("tstl-smart", "30%", drive, random_access=400_000)]
    assert sum(held) > 200 and not any(a and b for a, b in pairwise(held))


def test_a_map_of_bands_shows_what_the_mapping_order_says(drive):
    first = [state.replace("hot", "used") for state in states("R(4123)", "25%", drive)[:10]]
    assert first == ["free", "free", "gap", "used", "free"] * 2
    assert [state.replace("hot", "used") for state in states("1234", "100%", drive)[:5]] == ["used"] * 4 + ["gap"]
    assert "hot" in states("1234", "100%", drive)


@pytest.mark.parametrize(
    "change, told",
    [
        ("cylindres = 5\n", "drive.toml: cylindres is not a known key; did you mean cylinders?"),
        ("rpm = 6000", "drive.toml: rpm is missing; add it"),
        ("rpm = 6000|rpm = 'fast'", "drive.toml: rpm is not what it should be"),
        ("rpm = 6000|rpm = nan", "drive.toml: rpm is not what it should be"),
        ("rpm = 6000|rpm = 3", "drive.toml: rpm: is 3; give between 100"),
        ("[[0, 80]]|[[5, 80]]", "drive.toml: zones: do not begin at cylinder 0"),
        ("rpm = 6000|rpm = 6000\nskew = 'some'", "drive.toml: skew is not what it should be"),
        ("[[0, 80]]|[[0, 80, 4]]", "drive.toml: zones is not what it should be"),
        ("[[0, 80]]|[[0]]", "drive.toml: zones is not what it should be"),
        ("rpm|rpm = ", "drive.toml: is not TOML"),
    ],
)
def test_a_wrong_disk_file_is_told_with_file_key_and_cure(drive, change, told):
    old, _, new = change.partition("|")
    drive.write_text(drive.read_text().replace(old, new, 1) if old in DRIVE else change + DRIVE)
    said = stripewise("swd", "simulate", "--disk", drive, "--workload", "uniform", "--requests", "5", code=1)
    assert told in " ".join(said.stderr.split()), said.stderr


@pytest.mark.parametrize(
    "words, code, told",
    [
        (("--disk", "nowhere.toml"), 1, "nowhere.toml: no such disk file; give a file as in"),
        (("--scheme", "smart"), 2, "--scheme: 'smart' is not known; give some of hdd"),
        (("--scheme", "band_tracks=4"), 2, "sets a parameter of no scheme"),
        (("--scheme", "hdd,band_tracks=4"), 2, "hdd has no key 'band_tracks'; it has none"),
        (("--scheme", "1234,band_track=4"), 2, "did you mean band_tracks?"),
        (("--scheme", "tstl-smart,gc_threshold=much"), 2, "gc_threshold = 'much' does not fit; write a number"),
        (("--scheme", "1234,band_tracks=0"), 2, "1234,band_tracks=0 on drive, 50% used: scheme.band_tracks"),
        (("--scheme", "1234,band_tracks=-1"), 2, "band_tracks = '-1' does not fit; write a whole"),
        (("--used", "60GB"), 2, "60GB used: used_blocks: is 117187500"),
        (("--used", "0%"), 2, "--used: 0% leaves no room"),
        (("--used", "half"), 2, "--used: 'half' is not a size"),
        (("--filled", "120%"), 2, "--filled: 120% is not from 0% to 100%"),
        (("--random-access", "1TB"), 2, "random_access_bytes: is more than the disk"),
        (("--queue", "lifo"), 2, "--queue: 'lifo' is not known"),
        (("--cache", "big"), 2, "--cache: 'big' is not known"),
        (("--background-budget", "5"), 2, "give --background-after too"),
        (("--plot", "x.png"), 2, "neither in .svg nor in .html"),
        (("--trace", "nowhere"), 2, "give either a trace"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_line_with_its_cure(drive, words, code, told):
    given_words = ("--disk", drive, "--random-access", "1%", "--workload", "uniform", "--requests", "5", *words)
    said = stripewise("swd", "simulate", *given_words, code=code)
    assert told in " ".join(said.stderr.split()), said.stderr


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.sampled_from(["cylinders", "surfaces", "rpm", "zones", "seek", "blocks", "skew", "cache_segments"]),
    value=st.sampled_from(
        [
            "0",
            "1",
            "-1",
            "0.5",
            "1e308",
            "4000000000",
            "''",
            "'none'",
            "[]",
            "[[0,1]]",
            "[[0,9],[5,3]]",
            "[[1,0]]",
            "{}",
        ]
    ),
)
def test_any_value_in_a_disk_file_makes_a_run_or_one_error(tmp_path, key, value):
    path = tmp_path / "drive.toml"
    lines = [line for line in DRIVE.splitlines() if not line.startswith(f"{key} ")]
    path.write_text("\n".join([*lines, f"{key} = {value}"]))
    try:
        run(path, "1234", "50%", requests=20)
    except (ClusterError, UsageError) as error:
        assert "\n" not in str(error)
    except StripewiseError as error:
        assert "request_blocks" in str(error), error


def test_the_shipped_disk_says_that_it_is_invented():
    disk = read_disk("generic")
    assert disk.name == "generic" and disk.size_bytes == 2 * 15_000 * (2000 + 1800 + 1600 + 1400) * 512
    text = (Path(read_disk.__code__.co_filename).parent / "disks" / "generic.toml").read_text()
    assert "invented" in text.splitlines()[0]


def test_an_interrupt_ends_a_run():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made = made_workload("uniform", 1 << 30, stretch=10)
        simulate_disk(Setup(read_disk("generic")), parse_schemes("hdd")[0], parse_fill("50%"), made, stop)


DISKS = Path(__file__).parents[4] / "shared" / "data" / "disks"


@pytest.mark.skipif(not DISKS.is_dir(), reason="the published drive figures are not beside the checkout")
@pytest.mark.parametrize("name", ["cheetah15k5", "hp_c3323a"])
def test_published_drives_are_read_and_run(name):
    found = rows("simulate", "--disk", DISKS / f"{name}.toml", "--workload", "look-alike:mds_0", "--requests", "200")
    assert [row["label"] for row in found] == ["hdd", "R(4123)", "tstl-smart"]
