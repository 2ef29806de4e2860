"""Dbm.dumb, shelve, sqlite3 module."""

import dbm.dumb
import sqlite3

with dbm.dumb.open("dumb", "c") as d:
    for k in range(200):
        d[str(k)] = bytes(k)
with dbm.dumb.open("dumb") as d:
    print(len(d), len(d["77"]))
with sqlite3.connect("a.db") as c:
    c.execute("create table t (a, b)")
    c.executemany("insert into t values (?, ?)", [(k, k * k) for k in range(999)])
print(c.execute("select sum(b) from t").fetchone(), c.execute("pragma integrity_check").fetchone())
c.close()
