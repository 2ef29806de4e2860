"""What a trace lacks is told, of a full directory and of a run that did nothing. What a shell redirects it has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Maker, dirs, execute, mpiio_command, parse_mpiio, stripewise

JOB = ("--file-size", "8MiB", "--request-size", "2KiB", "--region-size", "64KiB", "--pattern", "interleaved")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 KiB: of some logs, the beginning."""
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("not run: mounting a file system needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("layers", ["posix", "mpi", "both"])
def test_a_full_disk_loses_records_and_nothing_else(small: Path, tmp_path: Path, layers: str) -> None:
    logs, trace, file = small / "t", tmp_path / "trace", tmp_path / "f"
    logs.mkdir()
    parse_mpiio(stripewise("run", "--trace", logs, "--layers", layers, "--", *mpiio_command(3, file, *JOB)))
    told = "the trace is partial: "
    assert told in (said := stripewise("collect", logs, "-o", trace)).err, said.report
    assert "records were dropped for want of space" in said.err
    layer = ("--layer", "mpi") if layers == "mpi" else ()
    assert told in stripewise("patterns", trace, "--file", file, *layer).err
    if layers != "mpi":
        assert told in stripewise("show", trace, "--file", file).err


def test_a_run_without_traced_requests_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    logs = tmp_path / "t"
    said = stripewise("run", "--trace", logs, "--", "true").err
    assert f"{logs}: nothing was recorded" in said and "stripewise collect" not in said, said
    assert f"{logs}: nothing was recorded" in stripewise("collect", logs, code=1).err
    # A run that has not ended may record something yet. After its end the next one may use the directory.
    note = (logs / ".run.json").read_text()
    (logs / ".run.json").write_text(json.dumps(json.loads(note) | {"exit_status": None}))
    assert stripewise("run", "--trace", logs, "--", "true", code=2).err.count("is not empty") == 1
    (logs / ".run.json").write_text(note)
    (tmp_path / "f").write_bytes(bytes(100_000))
    assert "stripewise collect" in stripewise("run", "--trace", logs, "--", "cat", tmp_path / "f").err
    assert stripewise("run", "--trace", logs, "--", "true", code=2).err.count("is not empty") == 1
    (tmp_path / "empty").mkdir()
    assert "no trace logs" in stripewise("collect", tmp_path / "empty", code=1).err


@pytest.mark.parametrize("managed", [False, True])
def test_what_a_shell_redirects_is_recorded(make_store: Maker, managed: bool) -> None:
    """Who writes through a descriptor that came across exec has not opened the file, which is known by it."""
    store = make_store(dirs(2))
    place = store.data if managed else store.plain
    script = f"""
        cd {place}
        head -c 300000 /dev/zero > made; dd if=/dev/zero bs=64k count=3 >> made 2> dd.log
        wc < made > counted; cat < made >> copied
        exec 7> kept; echo kept >&7
    """
    logs = store.base / "t"
    stripewise("run", "--store", store.root, "--trace", logs, "--", "sh", "-c", script)
    said = stripewise("collect", logs)
    assert "the trace is partial" not in said.report
    files = {Path(each["path"]).name: each for each in json.loads((logs / "meta.json").read_text())["files"]}
    moved = {name: (each["bytes_read"], each["bytes_written"]) for name, each in files.items()}
    size = 300_000 + 3 * 65536
    assert moved["made"][1] == size and moved["copied"] == (0, size), moved
    assert moved["kept"] == (0, 5) and moved["counted"][1] > 0 and moved["dd.log"][1] > 0, moved
    assert moved["made"][0] == 2 * size and files["made"]["managed"] == managed, moved
    assert all(
        each["path"].startswith(f"{place}/") for name, each in files.items() if name in ("made", "copied", "kept")
    )


#: Programs that share offsets, put back what they have read too much, or mix streams with calls by number.
REDIRECTED = r"""
(sed 1q; cat) < f > o1
(read a; echo "$a"; cat) < f > o2
while read l; do echo "$l"; done < f > o3
sort < f | tee o4 > o5
(echo a; echo b >&2) > o6 2>&1
exec 5<> f; head -c 10 <&5 > o7; cat <&5 >> o7
python3 -c "import sys; sys.stdout.write('a' * 100000); sys.stdout.flush(); sys.stdout.buffer.seek(3); print('Z')" > o8
python3 -c "import os; os.write(1, b'abc'); os.lseek(1, 1, 0); os.write(1, b'X')" > o9
tar cf - f > o10; tar tf - < o10 > o11
dd bs=7 count=100 < f > o12 2> /dev/null
awk 'NR % 2' < f > o13; paste f f > o14
"""


def test_redirected_programs_do_the_same_where_they_are_traced(tmp_path: Path) -> None:
    found = []
    for words in ([], ["run", "--trace", tmp_path / "t", "--"]):
        place = tmp_path / f"of{len(words)}"
        place.mkdir()
        (place / "f").write_text("".join(f"{number}\n" for number in range(3000)))
        os.utime(place / "f", (0, 0))
        command = ["sh", "-ec", f"cd {place}\n{REDIRECTED}"]
        ended = stripewise(*words, *command) if words else execute(command)
        assert ended.code == 0
        found.append({each.name: each.read_bytes() for each in sorted(place.iterdir())})
    assert found[0] == found[1] and len(found[0]) == 15


def test_records_whose_names_are_lost_are_no_run_without_io(tmp_path: Path) -> None:
    logs = tmp_path / "t"
    stripewise("run", "--trace", logs, "--", "dd", "if=/dev/zero", f"of={tmp_path / 'f'}", "bs=64k", "count=4")
    for names in logs.glob("*.names"):
        os.truncate(names, 60)
    said = stripewise("collect", logs)
    assert "records have no name of a file" in said.err and "nobody knows the files of these records" in said.out
    for verb in ("show", "patterns", "files"):
        told = stripewise(verb, logs, code=None)
        assert "records have no name of a file" in told.err and "does I/O" not in told.err, told.report
