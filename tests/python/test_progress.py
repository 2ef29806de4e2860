"""Progress of what takes long: a line on a terminal, nothing elsewhere."""

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


def test_elsewhere_nothing_is_written() -> None:
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True)
    assert ended.stdout == ended.stderr == b""
