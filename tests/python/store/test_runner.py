"""Running a program: environment, exit status, signals; and what its figures become."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from stripewise.errors import StoreError, UsageError
from stripewise.run import runner
from stripewise.run.elf import Kind, Program
from stripewise.run.measure import LastObject, in_flight_seconds, measured
from stripewise.store import globs
from stripewise.units import format_size, parse_size, parse_span
from stripewise.workload import Workload
from support import file_of


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setattr(runner, "library_path", lambda: Path("/pkg/lib/libstripewise.so"))


def python(code: str, line=None) -> runner.Ended:
    return runner.run([sys.executable, "-c", code], os.environ, line)


def test_the_library_goes_before_what_is_preloaded_already_and_only_once():
    base = {"LD_PRELOAD": "/a/liba.so /old/lib/libstripewise.so:/b/libb.so", "STRIPEWISE_TRACE": "/outer", "HOME": "/h"}
    made = runner.environment(base, Path("/s"), None, ["/data/*.h5"])
    assert made["LD_PRELOAD"] == "/pkg/lib/libstripewise.so:/a/liba.so:/b/libb.so"
    assert made["STRIPEWISE_STORE"] == "/s" and made["STRIPEWISE_MANAGE"] == "/data/*.h5" and made["HOME"] == "/h"
    assert "STRIPEWISE_TRACE" not in made


def test_a_glob_with_a_colon_is_refused():
    with pytest.raises(StoreError, match="colon"):
        runner.environment({}, Path("/s"), None, ["/a:b/*"])


def test_ucx_is_told_to_leave_mmap_alone_unless_the_user_says_otherwise():
    assert runner.environment({}, Path("/s"), None, [])["UCX_MEM_MMAP_HOOK_MODE"] == "none"
    own = {"UCX_MEM_MMAP_HOOK_MODE": "reloc"}
    assert runner.environment(own, Path("/s"), None, [])["UCX_MEM_MMAP_HOOK_MODE"] == "reloc"


def test_the_sanitizers_own_options_are_kept():
    made = runner.environment({"ASAN_OPTIONS": "detect_leaks=0"}, Path("/s"), None, [])
    assert made["ASAN_OPTIONS"] == "detect_leaks=0:verify_asan_link_order=0"
    strict = {"ASAN_OPTIONS": "verify_asan_link_order=1"}
    assert runner.environment(strict, Path("/s"), None, [])["ASAN_OPTIONS"] == "verify_asan_link_order=1"


def test_the_thread_sanitizer_is_told_to_believe_the_library_unless_the_user_says_otherwise():
    made = runner.environment({"TSAN_OPTIONS": "halt_on_error=1"}, Path("/s"), None, [])
    assert made["TSAN_OPTIONS"] == f'halt_on_error=1:suppressions="{runner.THREAD_SUPPRESSIONS}"'
    assert runner.THREAD_SUPPRESSIONS.is_file()
    own = {"TSAN_OPTIONS": "suppressions=/mine"}
    assert runner.environment(own, Path("/s"), None, [])["TSAN_OPTIONS"] == "suppressions=/mine"


def test_a_program_linked_with_the_sanitizer_gets_it_before_the_library(monkeypatch):
    monkeypatch.setattr(runner, "read_program", lambda _: Program(Kind.DYNAMIC, 62, ("libasan.so.8", "libc.so.6")))
    made = runner.environment({"LD_PRELOAD": "/b/libb.so"}, Path("/s"), None, [], [sys.executable])
    assert made["LD_PRELOAD"] == "libasan.so.8:/pkg/lib/libstripewise.so:/b/libb.so"


def test_the_switch_that_keeps_the_library_away_is_not_handed_on():
    assert "STRIPEWISE_OFF" not in runner.environment({"STRIPEWISE_OFF": "1"}, Path("/s"), None, [])


def test_the_exit_status_is_the_programs():
    assert python("raise SystemExit(37)").status == 37
    assert python("pass").status == 0


def test_death_by_a_signal_is_128_and_its_number():
    assert python("import os; os.kill(os.getpid(), 9)").status == 128 + 9


def test_a_program_that_does_not_exist_is_named():
    with pytest.raises(StoreError, match="/none/at/all: cannot be started"):
        runner.run(["/none/at/all"], {})


def test_signals_are_forwarded_to_the_program():
    lines: list[bytes] = []
    sender = threading.Timer(0, lambda: None)

    def line(text: bytes) -> None:
        lines.append(text)
        if text == b"ready\n":
            os.kill(os.getpid(), signal.SIGTERM)

    code = (
        "import os, signal, sys, time\n"
        # Not print: the signal may come while the one below is still flushing.
        "def end(*_):\n    os.write(1, b'got it\\n')\n    os._exit(5)\n"
        "signal.signal(signal.SIGTERM, end)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    before = signal.getsignal(signal.SIGTERM)
    ended = python(code, line)
    sender.cancel()
    assert ended.status == 5 and lines == [b"ready\n", b"got it\n"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_output_is_seen_line_by_line_while_the_program_runs():
    seen: list[float] = []
    python("import time; print('a', flush=True); time.sleep(0.2); print('b')", lambda _: seen.append(time.monotonic()))
    assert len(seen) == 2


def test_the_last_json_object_is_the_result():
    last = LastObject()
    for line in (b'{"read_mb_s": 1}\n', b"text\n", b'{"read_mb_s": 2}\n', b"[1]\n", b"{broken}\n", b"\xff{}\n"):
        last.see(line)
    assert last.value == {"read_mb_s": 2}


def rows(**busy):
    return [{"name": name, "busy_read_ns": b, "busy_write_ns": b} for name, b in busy.items()]


def test_busy_times_are_differences_and_the_bound_is_the_busiest():
    said = {"read_mb_s": 80.0, "write_mb_s": None, "read_seconds": 4.0, "write_seconds": 0.0, "verified_bytes": 5}
    run = measured("def", rows(a=10**9, b=0), rows(a=3 * 10**9, b=10**9), 9.0, said, None)
    assert run.busy_s == {"a": 4.0, "b": 2.0}
    assert run.bound_ratio == 1.0 and run.imbalance == pytest.approx(4 / 3 - 1)
    assert (run.read_mb_s, run.write_mb_s, run.verified_bytes) == (80.0, None, 5)


def test_a_program_that_says_nothing_is_measured_by_its_trace():
    workload = Workload((file_of([0, 1000, 2000], [1000] * 3, [False, False, True]),), 1)
    run = measured("def", rows(a=0), rows(a=0), 9.0, {}, workload)
    # Two reads of 500 ns each that do not overlap: 2,000 bytes in 1 us.
    assert run.read_mb_s == pytest.approx(2000.0) and run.write_mb_s == pytest.approx(2000.0)
    assert run.io_seconds == pytest.approx(1.5e-6) and run.bound_ratio is None and run.imbalance is None


def test_overlapping_requests_are_in_flight_once():
    file = file_of([0, 1], [10, 10])
    file.requests["start_ns"], file.requests["end_ns"] = [0, 50], [100, 70]
    assert in_flight_seconds(Workload((file,), 1), False) == (20, pytest.approx(100e-9))


def test_sizes_in_words():
    assert [parse_size(t) for t in ("4096", "64K", "64KiB", "1.5MiB", "2 GiB", "1kB", "1TB")] == [
        4096, 65536, 65536, 1572864, 2 << 30, 1000, 10**12,
    ]  # fmt: skip
    for bad in ("", "x", "-1", "1QiB", "1e9", "9" * 30, "\u0665K"):
        with pytest.raises(UsageError, match="--region-size"):
            parse_size(bad, "--region-size")
    with pytest.raises(UsageError, match=r"TiB .*, or kB, MB, GB or TB"):
        parse_size("1QiB")
    with pytest.raises(UsageError, match="'64Mb' has a unit of bits; write 64MB for bytes"):
        parse_size("64Mb")
    assert format_size(1536) == "1.5 KiB"


def test_spans_of_time_in_words():
    spans = [parse_span(text, "--window") for text in ("500ms", "1.5s", "10min", "2 h", "1d")]
    assert spans == [500 * 10**6, 1500 * 10**6, 600 * 10**9, 7200 * 10**9, 86_400 * 10**9]
    for bad in ("", "x", "10", "-1s", "0s", "0.0s", "1w", "1e9s", "9" * 30 + "s", "999999999d", "\u0665s"):
        with pytest.raises(UsageError, match="--window"):
            parse_span(bad, "--window")


def test_globs_of_directories_patterns_and_names_to_come(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d[1]").mkdir()
    assert globs.manage_globs(["d[1]"]) == [f"{tmp_path}/d[[]1]/**"]
    assert globs.manage_globs(["*.h5"]) == [f"{tmp_path}/*.h5"]
    assert globs.manage_globs(["later"]) == [f"{tmp_path}/later", f"{tmp_path}/later/**"]
