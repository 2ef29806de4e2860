"""The pattern database (PDLA section 3.2.3): one SQLite table that any SQL tool reads (docs/formats.md, Patterns)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import WorkloadError
from .report import PatternReport

#: Of the table; a newer one is refused.
VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS patterns (
    application TEXT NOT NULL,
    file TEXT NOT NULL,
    processes INTEGER NOT NULL,
    number INTEGER NOT NULL,
    ranks TEXT NOT NULL,
    operation TEXT NOT NULL,
    spatial TEXT NOT NULL,
    size_class TEXT NOT NULL,
    request_bytes_min INTEGER NOT NULL,
    request_bytes_max INTEGER NOT NULL,
    repetitions INTEGER NOT NULL,
    interval_ns INTEGER,
    records INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    sentence TEXT NOT NULL,
    pattern TEXT NOT NULL,
    PRIMARY KEY (application, file, processes, number)
)
"""


def store_report(report: PatternReport, path: Path) -> int:
    """Keeps a run's patterns under (application, file, processes), in place of those kept before; returns how many.

    Raises WorkloadError naming the file where it is no such database, or of a newer version.
    """
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if version > VERSION and (not tables or "patterns" in tables):
                raise WorkloadError(
                    f"{path}: version {version} is newer than this program knows ({VERSION}); upgrade stripewise"
                )
            if (tables or version) and (version != VERSION or "patterns" not in tables):
                raise WorkloadError(f"{path}: is another program's database; give another --db file")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SCHEMA)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            rows = _rows(report)
            for key in {row[:3] for row in rows}:
                connection.execute("DELETE FROM patterns WHERE application = ? AND file = ? AND processes = ?", key)
            marks = ", ".join("?" * 18)
            connection.executemany(f"INSERT INTO patterns VALUES ({marks})", rows)
    except sqlite3.Error as error:
        raise WorkloadError(f"{path}: cannot hold patterns ({error}); give another --db file") from error
    return len(rows)


def _rows(report: PatternReport) -> list[tuple[object, ...]]:
    return [
        (
            *(report.application, file.path, report.processes, number),
            json.dumps(list(each.pattern.ranks)),
            *(each.operation, each.spatial, each.size_class, *each.request_bytes, each.repetitions, each.interval_ns),
            *(each.records, each.bytes, *each.span, each.sentence, json.dumps(each.as_json())),
        )
        for file in report.files
        for number, each in enumerate(file.patterns)
    ]
