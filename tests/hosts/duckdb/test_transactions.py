"""Transactions of several statements: many connections at once, kill -9 in the middle, and what an open one holds."""

import random
import time

import duckdb
import pytest

from support import attach, one
from test_python import in_threads

TRANSFERS = """
import random
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
say("ready")
i = 0
while True:
    i += 1
    a, b = random.sample(range(100), 2)
    con.execute("BEGIN")
    con.execute(f"UPDATE m.account SET balance = balance - 1 WHERE id = {a}")
    if i % 10 == 0:
        con.execute(f"INSERT INTO m.move SELECT -j, 0 FROM range(1, 2000) r(j)")
    con.execute(f"UPDATE m.account SET balance = balance + 1 WHERE id = {b}")
    con.execute(f"INSERT INTO m.move SELECT coalesce(max(id), 0) + 1, 1 FROM m.move")
    con.execute("COMMIT" if i % 7 else "ROLLBACK")
    if i % 7:
        say(i)
    if i % 50 == 0:
        con.execute("CALL merutable_flush('m')")
"""


def test_killed_transactions_are_whole_or_absent(connect, child, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.account(id INT PRIMARY KEY, balance INT)")
    con.execute("CREATE TABLE m.move(id BIGINT PRIMARY KEY, amount INT)")
    con.execute("INSERT INTO m.account SELECT i, 100 FROM range(100) r(i)")
    con.close()
    random.seed(5)
    acknowledged = 0
    for _ in range(5):
        process = child(TRANSFERS, database)
        assert process.line() == "ready"
        time.sleep(random.uniform(0.1, 0.7))
        acknowledged += len(process.lines_until_killed())
        con = connect()
        attach(con, database)
        assert one(con, "SELECT sum(balance) FROM m.account") == 10_000
        moves = one(con, "SELECT count(*) FROM m.move WHERE id > 0")
        # The one whose COMMIT was under way may be there.
        assert acknowledged <= moves <= acknowledged + 1, (acknowledged, moves)
        acknowledged = moves
        con.close()
    assert acknowledged > 0


def test_no_update_is_lost(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    con.execute("INSERT INTO m.t SELECT i, 0 FROM range(10) r(i)")
    done = [0] * 4

    def work(i):
        cursor = con.cursor()
        rng = random.Random(i)
        for _ in range(60):
            a, b = rng.sample(range(10), 2)
            cursor.execute("BEGIN")
            try:
                cursor.execute(f"UPDATE m.t SET v = v + 1 WHERE k = {a}")
                cursor.execute(f"UPDATE m.t SET v = v + 1 WHERE k = {b}")
                assert cursor.execute(f"SELECT count(*) FROM m.t WHERE k IN ({a}, {b}) AND v > 0").fetchone()[0] == 2
                cursor.execute("COMMIT")
                done[i] += 2
            except duckdb.Error as error:
                assert "was changed by another transaction meanwhile" in str(error), error

    in_threads(4, work)
    assert sum(done) > 0
    assert one(con, "SELECT sum(v) FROM m.t") == sum(done)


def test_a_closed_connection_leaves_nothing(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY)")
    for rows in (10, 500_000):
        other = con.cursor()
        other.execute("BEGIN")
        other.execute(f"INSERT INTO m.t SELECT i FROM range({rows}) r(i)")
        held = dict(con.execute("SELECT name, value FROM merutable_stats('m') WHERE name LIKE 'transactions_%'").fetchall())
        assert held["transactions_open"] == 1
        assert held["transactions_memory_bytes"] + held["transactions_file_bytes"] > 0
        other.close()
        held = dict(con.execute("SELECT name, value FROM merutable_stats('m') WHERE name LIKE 'transactions_%'").fetchall())
        assert held["transactions_open"] == held["transactions_memory_bytes"] == held["transactions_file_bytes"] == 0
    assert one(con, "SELECT count(*) FROM m.t") == 0


def test_detach_lets_an_open_transaction_end(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY)")
    for end, rows in (("ROLLBACK", 0), ("COMMIT", 5)):
        other = con.cursor()
        other.execute("BEGIN")
        other.execute("INSERT INTO m.t SELECT i FROM range(5) r(i)")
        con.execute("DETACH m")
        assert one(other, "SELECT count(*) FROM m.t") == 5
        other.execute(end)
        attach(con, database)
        assert one(con, "SELECT count(*) FROM m.t") == rows


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096


@pytest.mark.parametrize("kind", ["small", "large"])
def test_memory_stays_flat(connect, database, kind):
    con = connect()
    attach(con, database, options=", memtable_bytes '8MiB', durability 'os'")
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v VARCHAR)")

    def run(i):
        con.execute("BEGIN")
        if kind == "small":
            con.execute(f"INSERT INTO m.t VALUES ({i % 100}, 'x')")
        else:
            con.execute(f"INSERT INTO m.t SELECT j, repeat('{i}', 50) FROM range(100000) r(j)")
        con.execute("ROLLBACK" if i % 3 == 0 else "COMMIT")

    rounds = 1500 if kind == "small" else 12
    for i in range(rounds // 3):
        run(i)
    before = resident()
    for i in range(rounds):
        run(i)
    assert resident() - before < 96 << 20, (before, resident())
