"""kill -9 at any time: what was acknowledged is there, and nothing is half there."""

import random
import time

import pytest

from support import attach, literal, one

INSERTS = """
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE IF NOT EXISTS m.t(id INT PRIMARY KEY, part INT, v VARCHAR)")
start = con.execute("SELECT coalesce(max(id), -1) + 1 FROM m.t").fetchone()[0]
say("ready", start)
i = start
while True:
    con.execute(f"INSERT INTO m.t SELECT {i} + j, j, repeat('x', 100) FROM range(5) r(j)")
    i += 5
    say(i)
    if i % 400 == 0:
        con.execute("CALL merutable_flush('m')")
"""


def test_acknowledged_rows_survive(connect, child, database):
    random.seed(20241130)
    acknowledged = 0
    for _ in range(6):
        process = child(INSERTS, database)
        ready = process.line().split()
        assert ready[0] == "ready" and int(ready[1]) >= acknowledged
        time.sleep(random.uniform(0.05, 0.6))
        lines = process.lines_until_killed()
        acknowledged = max([int(ready[1])] + [int(line) for line in lines])
    con = connect()
    attach(con, database)
    count, distinct, low, high = con.execute("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM m.t").fetchone()
    assert count == distinct == high + 1 and low == 0
    assert count >= acknowledged and count % 5 == 0, (count, acknowledged)
    assert one(con, "SELECT count(*) FROM m.t WHERE length(v) <> 100") == 0
    assert acknowledged > 0


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3, 0.6])
def test_a_killed_copy_is_whole_or_absent(connect, child, database, delay):
    con = connect()
    con.execute(f"COPY (SELECT i AS id, 'old' AS v FROM range(1000) r(i)) TO {literal(database)} (FORMAT merutable)")
    con.close()
    process = child("""
con = connect()
say("ready")
con.execute(f"COPY (SELECT i AS id, 'new' AS v FROM range(3000000) r(i)) TO '{sys.argv[2]}' (FORMAT merutable)")
say("copied")
""", database)
    process.expect("ready")
    time.sleep(delay)
    copied = "copied" in process.lines_until_killed()
    con = connect()
    attach(con, database)
    table = one(con, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'm'")
    found = con.execute(f"SELECT count(*), count(*) FILTER (v = 'new') FROM m.\"{table}\"").fetchone()
    assert found in (((1000, 0),) if not copied else ()) + ((3000000, 3000000),), found
    con.execute(f"INSERT INTO m.\"{table}\" VALUES (-1, 'after')")
    assert one(con, f"SELECT v FROM m.\"{table}\" WHERE id = -1") == "after"


def test_killed_while_creating(connect, child, tmp_path):
    """However early the process dies, the directory opens again."""
    for i, delay in enumerate([0.0, 0.005, 0.01, 0.02, 0.04]):
        path = tmp_path / f"db{i}"
        process = child("""
con = connect()
say("ready")
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t VALUES (1)")
say("inserted")
sys.stdin.read()
""", path)
        process.expect("ready")
        time.sleep(delay)
        inserted = "inserted" in process.lines_until_killed()
        con = connect()
        attach(con, path)
        con.execute("CREATE TABLE IF NOT EXISTS m.t(id INT PRIMARY KEY)")
        found = one(con, "SELECT count(*) FROM m.t")
        assert found == 1 or (found == 0 and not inserted)
        con.close()
