"""io_uring and libaio ask the kernel past the library: on a store they are refused before anything can hang."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rig import NATIVE, ROOT, Result, Store, execute, stripewise

RINGS = NATIVE / "rings"
ENOSYS = 38
#: Ways that hooks see, and those that a program carries inside itself.
HOOKED = {
    "io_uring_queue_init", "io_uring_queue_init_params", "io_uring_get_probe", "io_setup", "io_queue_init",
    "syscall(io_uring_setup)", "syscall(io_setup)",
}  # fmt: skip
INLINED = {"inlined io_uring_setup", "inlined io_setup"}


def answers(out: str) -> dict[str, int]:
    """What each way answered: 0, or an error's number."""
    return {name: int(number) for name, number in (line.split(": ") for line in out.splitlines())}


def without_library(*command: str | Path) -> dict[str, int]:
    return answers(execute([RINGS, *command]).out)


def refusing(store: Store, *command: str | Path) -> Result:
    return stripewise("run", "--store", store.root, "--refuse-rings", "--", *command)


def test_every_way_that_hooks_see_is_refused_on_a_store(store: Store) -> None:
    said = answers(store.program(RINGS).out)
    assert {name for name, answer in said.items() if answer == ENOSYS} >= HOOKED
    assert {name: said[name] for name in INLINED} == {name: without_library()[name] for name in INLINED}


def test_libraries_that_a_program_is_linked_with_are_refused_by_their_versioned_names(store: Store) -> None:
    program = store.base / "linked"
    source = ROOT / "tests" / "native" / "rings.c"
    made = subprocess.run(
        ["cc", "-DLINKED", "-o", program, source, "-luring", "-laio"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip("not run: needs liburing and libaio (Debian: liburing-dev, libaio-dev)")
    plain = answers(execute([program]).out)
    assert plain.keys() >= HOOKED
    said = answers(store.program(program).out)
    assert {name: said[name] for name in HOOKED} == dict.fromkeys(HOOKED, ENOSYS)
    # A process that is only traced, or was given nothing, gets what it got before.
    for more in ({}, {"STRIPEWISE_TRACE": str(store.base / "trace")}):
        kept = {key: value for key, value in store.environment().items() if not key.startswith("STRIPEWISE")}
        (store.base / "trace").mkdir(exist_ok=True)
        assert answers(execute([program], kept | more).out) == plain


def test_a_process_that_a_link_led_into_a_store_is_refused_from_then_on(store: Store) -> None:
    kept = {key: value for key, value in store.environment().items() if key != "STRIPEWISE_STORE"}
    before, after = answers(execute([RINGS], kept).out), answers(execute([RINGS, store.data / "f"], kept).out)
    calls = ("syscall(io_uring_setup)", "syscall(io_setup)")
    assert [after[name] for name in calls] == [ENOSYS, ENOSYS]
    assert {name: before[name] for name in calls} == {name: without_library()[name] for name in calls}


def test_on_request_the_kernel_refuses_what_no_hook_sees_and_to_children_too(store: Store) -> None:
    said = refusing(store, RINGS)
    assert set(answers(said.out).values()) == {ENOSYS}, said.report
    said = refusing(store, "env", "-i", RINGS)
    assert set(answers(said.out).values()) == {ENOSYS}, said.report
    status = refusing(store, "grep", "-h", "^Seccomp_filters", "/proc/self/status").out
    nested = refusing(store, "sh", "-c", "sh -c 'grep -h ^Seccomp_filters /proc/self/status; :'; :")
    assert nested.out == status, "one filter is enough"


def test_without_root_the_request_costs_the_right_to_gain_rights(store: Store) -> None:
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    given = {key: value for key, value in store.environment().items() if key.startswith(("LD_PRELOAD", "STRIPEWISE_"))}
    for more, expected in (({}, "0"), ({"STRIPEWISE_SECCOMP": "1"}, "1")):
        words = [f"{key}={value}" for key, value in (given | more).items()]
        said = execute([*user, "env", *words, "grep", "^NoNewPrivs", "/proc/self/status"]).out
        assert said.split() == ["NoNewPrivs:", expected]


def test_the_run_says_that_a_library_for_rings_was_refused_and_what_to_do(store: Store) -> None:
    said = store.run(RINGS)
    assert "io_uring_queue_init: not available on a store" in said.err and "plain I/O" in said.err, said.report


def test_the_option_needs_a_store(store: Store) -> None:
    refused = stripewise("run", "--trace", store.base / "t", "--refuse-rings", "--", "true", code=2)
    assert "--refuse-rings: needs --store" in refused.err
