"""Progress of what takes long: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys

CODE = """
import time
from stripewise.cli.output import progress
with progress("planning") as step:
    time.sleep(1.3)
    step(1, 4)
    time.sleep(0.3)
"""


def on_terminal() -> str:
    """What a terminal on stderr gets."""
    ours, its = os.openpty()
    with subprocess.Popen([sys.executable, "-c", CODE], stderr=its, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(its)
        found = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            if not more:
                break
            found += more
    os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())


def test_a_terminal_sees_the_seconds_until_a_total_is_known() -> None:
    said = on_terminal()
    assert re.search(r"planning \S+ 1 s", said) and re.search(r"planning \S+  25%", said)
    assert "0%" not in said


def elsewhere(before: str = "") -> subprocess.CompletedProcess[str]:
    """The same without a terminal."""
    return subprocess.run([sys.executable, "-c", before + CODE], capture_output=True, check=True, text=True)


def test_elsewhere_nothing_is_written_of_what_is_done_soon() -> None:
    ended = elsewhere()
    assert ended.stdout == ended.stderr == ""


def test_elsewhere_a_line_now_and_then_has_the_seconds_or_the_share() -> None:
    before = "from stripewise.cli import output\noutput.PROGRESS_FIRST_S, output.PROGRESS_EVERY_S = 1.1, 0.4\n"
    said = elsewhere(before).stderr.splitlines()
    assert said == ["planning: 1 s so far", "planning: 25 %", "planning: ended after 2 s"]
