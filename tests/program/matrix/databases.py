"""Databases that keep their own files: SQLite in both journal modes, PostgreSQL, Python's small key-value stores."""

from __future__ import annotations

from .case import Case

FILL = """
CREATE TABLE t (id INTEGER PRIMARY KEY, w TEXT, x REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO t SELECT i, 'word ' || (i * 7919 % 1000), i / 7.0 FROM n;
CREATE INDEX tw ON t(w);
BEGIN; UPDATE t SET w = 'changed' WHERE id % 3 = 0; ROLLBACK;
BEGIN; DELETE FROM t WHERE id % 5 = 0; COMMIT;
"""
ASK = "SELECT count(*), sum(id), round(sum(x), 3) FROM t; SELECT count(DISTINCT w) FROM t; PRAGMA integrity_check;"

POSTGRES = """
start() {{ postgres -D "$PWD/db" -k "$T/s" -c listen_addresses= > "$T/log" 2>&1 & server=$!; }}
ready() {{ n=0; until pg_isready -q -h "$T/s" -U me; do n=$((n + 1)); test $n -lt 150 || {{ tail -5 "$T/log"; exit 1; }}
sleep 0.2; done; }}
initdb -D "$PWD/db" -U me -A trust --no-instructions {options} > "$T/initdb.log" 2>&1 ||
    {{ tail -5 "$T/initdb.log"; exit 1; }}
mkdir -p "$T/s"; start
trap 'kill -INT $server 2>/dev/null; wait $server 2>/dev/null' EXIT
ready
ask() {{ psql -h "$T/s" -U me -d postgres -At -v ON_ERROR_STOP=1 "$@"; }}
ask <<X
CREATE TABLE t (id int PRIMARY KEY, w text);
INSERT INTO t SELECT i, 'word ' || i FROM generate_series(1, 20000) i;
CREATE INDEX ON t (w);
BEGIN; DELETE FROM t WHERE id % 2 = 0; ROLLBACK;
BEGIN; UPDATE t SET w = w || '!' WHERE id % 3 = 0; COMMIT;
CHECKPOINT;
COPY t TO '$PWD/t.copy';
SELECT count(*), count(*) FILTER (WHERE w LIKE '%!') FROM t;
X
kill -INT $server; wait $server || :
start; ready
ask -c 'SELECT count(*), count(*) FILTER (WHERE w LIKE $$%!$$) FROM t' -c 'VACUUM FULL t' -c 'DROP TABLE t'
kill -INT $server; wait $server || :; trap - EXIT
wc -l t.copy; pg_checksums -c -D "$PWD/db" > /dev/null && echo sound; rm -rf db
"""

MARIADB = """
ulimit -n 4096
mariadb-install-db --no-defaults --user=$(id -un) --datadir="$D/db" --auth-root-authentication-method=normal \\
    --skip-test-db >"$T/install" 2>&1 || { tail -5 "$T/install"; exit 1; }
for turn in 1 2
do
    mariadbd --no-defaults --user=$(id -un) --datadir="$D/db" --socket="$T/s" --pid-file="$T/pid" --skip-networking \\
        >"$T/log" 2>&1 &
    server=$!
    for wait in $(seq 300)
    do mariadb --no-defaults -uroot -S"$T/s" -e 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done
    mariadb --no-defaults -uroot -S"$T/s" -e "
        CREATE DATABASE IF NOT EXISTS d; USE d;
        CREATE TABLE IF NOT EXISTS t (i INT PRIMARY KEY, s VARCHAR(80)) ENGINE=InnoDB;
        START TRANSACTION; INSERT INTO t VALUES ($turn, md5($turn)), ($turn + 10, md5($turn + 10)); COMMIT;
        START TRANSACTION; DELETE FROM t; ROLLBACK; CHECK TABLE t; SELECT * FROM t"
    kill $server; wait $server || :
done
"""

CASES = [
    Case(
        name="sqlite-rollback",
        job="rollback journal: delete, truncate, persist; vacuum, integrity_check, .backup",
        needs=("sqlite3",),
        script=f"""
for mode in delete truncate persist; do sqlite3 $mode.db "PRAGMA journal_mode=$mode; {FILL} {ASK}"; done
sqlite3 delete.db "VACUUM; {ASK}"; sqlite3 delete.db '.backup copy.db'; sqlite3 copy.db "{ASK}"
sqlite3 delete.db .dump | md5sum
sqlite3 delete.db "ATTACH 'copy.db' AS c; BEGIN; UPDATE t SET x = 0; UPDATE c.t SET x = 1; COMMIT;
SELECT sum(x) FROM t; SELECT sum(x) FROM c.t"
""",
        volatile=("*.db", "*-journal"),
    ),
    Case(
        name="sqlite-writers",
        job="several processes write one database, under its own locks",
        needs=("sqlite3",),
        script="""
sqlite3 a.db 'CREATE TABLE t (w, i)'
for w in 1 2 3
do (for i in 1 2 3 4 5 6 7 8; do sqlite3 -cmd '.timeout 60000' a.db "INSERT INTO t VALUES ($w, $i)"; done) & done
wait
sqlite3 a.db 'SELECT w, count(*), sum(i) FROM t GROUP BY w; PRAGMA integrity_check'
""",
        volatile=("*.db",),
    ),
    Case(
        name="sqlite-mmap",
        job="PRAGMA mmap_size",
        needs=("sqlite3",),
        script=f'sqlite3 a.db "{FILL}"; sqlite3 a.db "PRAGMA mmap_size=268435456; {ASK}" | tail -3',
        volatile=("*.db",),
    ),
    Case(
        name="sqlite-wal",
        job="write-ahead log with its shared memory file",
        needs=("sqlite3",),
        script=f"""
sqlite3 -bail a.db "PRAGMA journal_mode=wal; {FILL} {ASK}"
sqlite3 -bail a.db "PRAGMA wal_checkpoint(TRUNCATE); {ASK}"
""",
        volatile=("*.db", "*-wal", "*-shm"),
    ),
    Case(
        name="sqlite-wal-exclusive",
        job="write-ahead log with locking_mode=exclusive, which needs no shared memory",
        needs=("sqlite3",),
        script=f"""
sqlite3 -bail a.db "PRAGMA locking_mode=exclusive; PRAGMA journal_mode=wal; {FILL} {ASK}"
sqlite3 -bail a.db "PRAGMA locking_mode=exclusive; {ASK} PRAGMA journal_mode=delete; {ASK}"
""",
        volatile=("*.db", "*-wal"),
    ),
    Case(
        name="python-dbm",
        job="dbm.dumb, shelve, sqlite3 module",
        needs=("python:sqlite3",),
        version='"$PYTHON" -c "import sqlite3; print(sqlite3.sqlite_version)"',
        python="python_dbm.py",
        volatile=("*.db",),
    ),
    Case(
        name="postgres",
        job="initdb, start, transactions, COPY, restart, VACUUM FULL",
        needs=("postgres", "initdb", "psql", "pg_isready"),
        script=POSTGRES.format(options="-k --no-sync"),
        unprivileged=True,
        timeout_s=240,
    ),
    Case(
        name="mariadb",
        job="mariadb-install-db with its default io_uring, which it goes on without; transactions; restart",
        needs=("mariadb-install-db", "mariadbd", "mariadb"),
        version="mariadbd --version",
        script=MARIADB,
        volatile=("db/*",),
        timeout_s=240,
    ),
]
