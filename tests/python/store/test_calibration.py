"""Calibration without a device: lines through known times, their record, what a probe is asked for, bad options."""

from __future__ import annotations

import itertools
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stripewise.calibration.calibrate import Subject, calibrated, differences, refigured
from stripewise.calibration.fit import fit_line, theil_sen
from stripewise.calibration.measure import SIZES, Measured, Measurement
from stripewise.calibration.network import PingError, ping
from stripewise.cluster import cluster_text, read_cluster
from stripewise.cluster.calibration import KINDS, Calibration, Fit, calibration_from
from stripewise.devices import find
from stripewise.errors import ClusterError, StoreError
from stripewise.files.fields import Fields
from support import KIB, MIB, cluster, target
from test_cli import a_trace as a_trace
from test_cli import stripewise
from test_cluster import TARGET

RECORD = Calibration(
    "2026-01-31T12:00:00+00:00", 'a "disk"', "direct", 8, 1200, 256 * MIB, 59.5, SIZES,
    tuple((kind, Fit(0.003, 1e-8, 0.002, 0.005, 0.05, 0.1, 400)) for kind in KINDS),
)  # fmt: skip


def tailed(startup_s: float, per_byte_s: float, seed: int, tail: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    """300 times per size with 2 % noise, of which a share waited for something else: up to a hundred times as long."""
    rng = np.random.default_rng(seed)
    sizes = np.repeat(np.array(SIZES), 300)
    times = (startup_s + per_byte_s * sizes) * (1 + rng.uniform(-0.02, 0.02, sizes.size))
    late = rng.random(sizes.size) < tail
    return sizes, np.where(late, times + np.minimum(startup_s * (1 + rng.pareto(1.0, sizes.size)), 100 * times), times)


@pytest.mark.parametrize(("startup_s", "per_byte_s"), [(0.003, 1e-8), (0.0001, 2.5e-9), (0.008, 5e-9)])
def test_a_heavy_tail_moves_neither_startup_nor_transfer_by_a_hundredth(startup_s, per_byte_s):
    sizes, times = tailed(startup_s, per_byte_s, 1, tail=0.02)
    startup, slope = theil_sen(sizes, times)
    assert (startup, slope) == (pytest.approx(startup_s, rel=0.01), pytest.approx(per_byte_s, rel=0.01))
    least_squares = np.polyfit(sizes, times, 1)
    assert abs(least_squares[1] / startup_s - 1) > 0.02, "the tail must be one that a mean would follow"


def test_spikes_on_one_side_in_one_of_seven_samples_are_borne():
    sizes, times = tailed(0.003, 1e-8, 2)
    startup, slope = theil_sen(sizes, times)
    assert (startup, slope) == (pytest.approx(0.003, rel=0.05), pytest.approx(1e-8, rel=0.05))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.integers(1, 64))
def test_the_line_is_equivariant_under_scales(seed, factor, stretch):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([4096, 65536, 1048576], 60)
    times = 0.001 + 1e-8 * sizes + rng.exponential(0.001, 60)
    assume(np.unique(sizes).size > 1)
    startup, slope = theil_sen(sizes, times)
    assert theil_sen(sizes, factor * times) == pytest.approx((factor * startup, factor * slope), rel=1e-9, abs=1e-12)
    assert theil_sen(stretch * sizes, times) == pytest.approx((startup, slope / stretch), rel=1e-9, abs=1e-12)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(SIZES), st.floats(0, 10)), min_size=2, max_size=40))
def test_no_figure_is_ever_negative(samples):
    sizes, times = zip(*samples, strict=True)
    assume(len(set(sizes)) > 1)
    fit = fit_line(sizes, times)
    assert min(fit.startup_s, fit.per_byte_s, fit.startup_min_s, fit.residual, fit.misfit) >= 0
    assert fit.startup_min_s <= fit.startup_max_s


def test_times_of_one_size_make_no_line():
    with pytest.raises(ValueError, match="two sizes"):
        theil_sen([4096, 4096], [1, 2])


def test_many_samples_are_fitted_from_pairs_at_chance_to_the_same_line():
    sizes = np.repeat(np.array(SIZES), 2000)
    times = 0.003 + 1e-8 * sizes
    assert theil_sen(sizes, times) == pytest.approx((0.003, 1e-8), rel=1e-9)


def measured_with(noise: float) -> Measured:
    rng = np.random.default_rng(3)
    sizes = np.repeat(np.array(SIZES[:3]), 200)
    times = (0.003 + 1e-8 * sizes) * np.exp(rng.normal(0, noise, sizes.size))
    samples = {kind: (list(map(int, sizes)), list(map(float, times))) for kind in KINDS}
    return Measured("direct", 8, 3600, 64 * MIB, 1.0, SIZES[:3], samples)


def test_a_fit_that_is_three_tenths_off_is_marked_unreliable_in_the_file():
    steady = calibrated(target("d", "hdd"), measured_with(0.1)).calibration
    wild = calibrated(target("d", "hdd"), measured_with(1.5)).calibration
    assert steady is not None and not steady.unreliable and "unreliable" not in "\n".join(steady.toml_lines())
    assert wild is not None and wild.fit("random_read").residual > 0.3
    assert wild.unreliable == list(KINDS) and "unreliable = true" in wild.toml_lines()


def test_the_record_is_read_as_it_was_written():
    data = tomllib.loads("[[target]]\n" + "\n".join(RECORD.toml_lines()))
    table = Fields(data["target"][0]["calibration"], "cluster.toml", "target[0].calibration.", ClusterError)
    assert calibration_from(table) == RECORD


def test_a_measured_cluster_is_read_as_it_was_written_and_digests_like_a_typed_one(tmp_path):
    typed = cluster(2, 1)
    made = replace(typed, targets=tuple(replace(t, calibration=RECORD) for t in typed.targets))
    path = tmp_path / "cluster.toml"
    path.write_text(cluster_text(made))
    assert read_cluster(path).targets == made.targets
    assert read_cluster(path).digest() == typed.digest()


BAD = {
    'date = "2026-01-31T12:00:00+00:00"': ('date = "yesterday"', "calibration.date = 'yesterday' is not a date"),
    'method = "direct"': ('method = "guess"', "calibration.method = 'guess' is unknown"),
    "in_flight = 8": ("in_flight = 0", "calibration.in_flight = 0 is out of range"),
    "sizes = [4096": ("sizes = [-1", "calibration.sizes has a value that is not a number of bytes"),
    "seconds = 59.5": ("second = 59.5", "calibration.second is not a known key; did you mean seconds?"),
    "random_read = { startup_s = 0.003": ("random_read = { startup_s = -1", "calibration.random_read.startup_s = -1"),
    "random_write = { startup_s": ("random_write = { startup", "calibration.random_write.startup is not a known key"),
}


@pytest.mark.parametrize("right", BAD)
def test_a_bad_record_is_refused_by_file_and_key(tmp_path, right):
    wrong, sentence = BAD[right]
    text = TARGET + "\n".join(RECORD.toml_lines())
    path = tmp_path / "cluster.toml"
    path.write_text(text.replace(right, wrong))
    with pytest.raises(ClusterError) as error:
        read_cluster(path)
    assert sentence in str(error.value) and str(path) in str(error.value)


class Paper:
    """A probe whose device takes 1 ms and 10 ns per byte one at a time, an eighth of it with eight in flight."""

    def __init__(self, filled: int = 64 * MIB, method: str = "direct") -> None:
        self.filled, self.method, self.now_ns = filled, method, 0
        self.asked: list[tuple[list[tuple[int, int]], bool, int]] = []

    def begin(self, directory: str, target: int, scratch_bytes: int) -> None:
        pass

    def fill(self, limit_ns: int) -> str:
        return json.dumps({"method": self.method, "bytes": self.filled, "filled_bytes": self.filled})

    def run(self, requests, write, in_flight, limit_ns):
        self.asked.append((requests, write, in_flight))
        done = []
        for _, size in requests:
            start, self.now_ns = self.now_ns, self.now_ns + (1_000_000 + 10 * size) // in_flight
            done.append((start, self.now_ns))
        return done

    def close(self) -> None:
        pass


def measured_on(probe: Paper, seconds: float = 30.0) -> Measured:
    return Measurement(probe, "d", seconds, lambda done, total: None).run()


def test_each_kind_is_asked_for_in_every_size_inside_the_scratch_file():
    probe = Paper()
    found = measured_on(probe)
    assert set(found.samples) == set(KINDS) and found.sizes == SIZES
    assert all(offset + size <= probe.filled for requests, _, _ in probe.asked for offset, size in requests)
    assert {write for _, write, _ in probe.asked} == {False, True}
    assert all(len(set(sizes)) == len(SIZES) for sizes, _ in found.samples.values())


def test_a_saturated_time_is_a_share_of_the_device_and_a_single_one_a_latency():
    made = calibrated(target("d", "ssd"), measured_on(Paper()))
    assert made.calibration is not None
    alone, saturated = made.calibration.fit("random_read"), made.calibration.fit("saturated_read")
    assert alone is not None and saturated is not None
    assert (alone.startup_s, alone.per_byte_s) == (pytest.approx(1e-3, rel=1e-3), pytest.approx(1e-8, rel=1e-3))
    assert saturated.startup_s == pytest.approx(1e-3 / 8, rel=1e-3)
    assert (made.startup_read_s, made.per_byte_write_s) == (alone.startup_s, pytest.approx(1e-8, rel=1e-3))


def test_requests_in_order_continue_one_another_and_those_at_chance_never_do():
    probe = Paper(filled=512 * KIB)
    measurement = Measurement(probe, "d", 5.0, lambda done, total: None)
    measurement.run()
    for requests, _, in_flight in probe.asked:
        continued = [a[0] + a[1] == b[0] for a, b in itertools.pairwise(requests)]
        assert all(continued) or (not any(continued)), requests
        assert in_flight in (1, 8)


def test_a_target_that_cannot_be_filled_in_time_is_named_with_the_cure():
    with pytest.raises(StoreError, match=r"target d: only 8192 bytes .* give --seconds more than 30"):
        measured_on(Paper(filled=8192))


def test_a_store_gets_a_spread_with_its_startup_and_never_one_without_the_other(tmp_path):
    # A slow target with a wide spread turns out to be fast: with the old spread no cluster could be read.
    typed = replace(target("d", "hdd", startup_s=7.0), startup_read_spread_s=14.0, startup_write_spread_s=14.0)
    made = refigured(typed, calibrated(typed, measured_with(0.1)))
    assert 0 < made.startup_read_spread_s <= 2 * made.startup_read_s < 0.01
    path = tmp_path / "store.toml"
    path.write_text(cluster_text(replace(cluster(1, 0), targets=(made,))))
    assert read_cluster(path).targets[0].startup_write_spread_s == made.startup_write_spread_s
    emulated = replace(typed, kind="emulated")
    assert replace(refigured(emulated, made), calibration=None) == emulated


def test_what_an_emulated_target_is_off_by_is_a_share_of_what_was_configured():
    configured = target("d", "hdd", startup_s=0.002, per_byte_s=0.0)
    off = differences(configured, replace(configured, startup_read_s=0.0021, startup_write_s=0.002))
    assert off == {"startup_read_s": pytest.approx(0.05), "startup_write_s": 0}


def test_without_a_store_emulated_targets_have_no_clock_to_measure(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(TARGET)
    for names in ([], ["hdd0"]):
        with pytest.raises(ClusterError, match="make the store and give --store"):
            Subject(read_cluster(path), None).chosen(names)
    with pytest.raises(ClusterError, match=r"has no target 'x'; it has hdd0"):
        Subject(read_cluster(path), None).chosen(["x"])


BARE = '[[target]]\nname = "{0}"\nclass = "hdd"\npath = "{0}"\n'


def test_what_is_to_be_measured_need_not_be_typed(tmp_path):
    path, out = tmp_path / "typed.toml", tmp_path / "out.toml"
    path.write_text(BARE.format("t0") + BARE.format("t1"))
    for name in ("t0", "t1"):
        (tmp_path / name).mkdir()
    words = ["calibrate", "--cluster", path, "--seconds", "1", "--scratch", "8MiB", "-o", out]
    stripewise(*words)
    assert all(target.startup_read_s > 0 for target in read_cluster(out).targets)
    # Of these nobody would know the figures afterwards.
    out.unlink()
    said = stripewise(*words, "--target", "t0", code=1).stderr
    assert "target[1].startup_read_s is missing" in said and not out.exists()
    path.write_text(BARE.format("t0") + 'kind = "emulated"\n')
    assert "target[0].startup_read_s is missing; add it" in stripewise(*words, code=1).stderr


def test_whoever_needs_figures_is_told_how_to_get_them(tmp_path):
    path = tmp_path / "typed.toml"
    path.write_text(BARE.format("t0"))
    with pytest.raises(ClusterError, match=r"have it measured: stripewise calibrate --cluster .*typed.toml"):
        read_cluster(path)


def test_a_directory_is_described_in_one_printable_line():
    for directory in (Path("/"), Path("/proc"), Path("/no/such")):
        text = find(directory).words
        assert text and text.isprintable()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "needs either --store or --cluster"),
        (["--store", "s", "--cluster", "c"], "needs either --store or --cluster"),
        (["--cluster", "{c}", "--apply"], "--apply: changes a store"),
        (["--cluster", "{c}", "-o", "{c}"], "exists; give --force"),
        (["--cluster", "{c}", "-o", "{d}/no/out.toml"], "in an existing directory"),
        (["--cluster", "{c}", "-o", "{d}/out.toml", "--scratch", "much"], "--scratch: 'much' is not a size"),
        (["--cluster", "{c}", "-o", "{d}/out.toml", "--ping", "true", "--establish-s", "1"], "one or the other"),
        (["--cluster", "{c}", "-o", "{d}/out.toml", "--ping", "'"], "cannot be split"),
    ],
)
def test_bad_options_are_one_line_and_measure_nothing(tmp_path, words, sentence):
    path = tmp_path / "cluster.toml"
    path.write_text(TARGET.replace("emulated", "dir"))
    result = stripewise("calibrate", *(word.format(c=path, d=tmp_path) for word in words), code=2)
    assert sentence in result.stderr and len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out.toml").exists()


@pytest.mark.parametrize(
    ("launcher", "sentence"),
    [
        ("/no/such/mpiexec -n 2", "/no/such/mpiexec cannot be run (No such file or directory)"),
        ("false", "failed (exit 1): nothing"),
        ("echo", "failed (exit 0)"),
        ("sh -c 'echo stripewise-ping {; true'", "mixed other text into the result"),
        (
            "sh -c 'echo stripewise-ping: mpi4py cannot be loaded >&2; exit 3'",
            "failed (exit 3): mpi4py cannot be loaded",
        ),
    ],
)
def test_a_launcher_that_fails_is_told_with_its_reason(launcher, sentence):
    with pytest.raises(PingError) as error:
        ping(launcher)
    assert sentence in str(error.value)


def test_a_launcher_that_hangs_is_stopped():
    with pytest.raises(PingError, match="did not end within"):
        ping("sh -c 'exec sleep 60'", timeout_s=0.2)


def test_a_measured_cluster_is_planned_with(tmp_path, a_trace):
    typed = cluster(2, 1)
    path = tmp_path / "measured.toml"
    path.write_text(cluster_text(replace(typed, targets=tuple(replace(t, calibration=RECORD) for t in typed.targets))))
    words = [a_trace, "--cluster", path, "--policy", "h2dp", "--region-size", "1MiB", "-o", tmp_path / "plan.json"]
    stripewise("plan", *words)
    assert (tmp_path / "plan.json").exists()
