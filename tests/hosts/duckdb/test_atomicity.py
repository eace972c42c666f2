"""Transactions of several statements under kill -9 and interrupts: all of one is there, or nothing."""

import threading
import time

import duckdb
import pytest

from support import attach, failing, one


def test_killed_before_commit(connect, child, database):
    process = child("""
con = connect(threads=2)
con.execute("ATTACH '" + sys.argv[2] + "' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v INT)")
con.execute("INSERT INTO m.t VALUES (1, 1)")
con.execute("BEGIN")
con.execute("INSERT INTO m.t SELECT i, 0 FROM range(2, 300000) r(i)")
con.execute("UPDATE m.t SET v = 9 WHERE id = 1")
con.execute("DELETE FROM m.t WHERE id = 2")
say(con.execute("SELECT count(*) FROM m.t").fetchone()[0])
time.sleep(60)
""", database)
    process.expect("299998")
    process.kill()
    con = connect()
    attach(con, database, options=", gc_grace_secs 0")
    assert con.execute("FROM m.t").fetchall() == [(1, 1)]
    con.execute("CALL merutable_flush('m')")
    con.execute("CALL merutable_gc('m')")
    assert one(con, "SELECT coalesce(sum(rows), 0) FROM merutable_files('m')") <= 1
    assert con.execute("FROM m.t").fetchall() == [(1, 1)]


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5])
def test_killed_between_commits_of_two_tables(connect, child, database, delay):
    """Every transaction writes the same rows to both tables: after a kill they hold the same, and what was acknowledged."""
    process = child("""
con = connect(threads=2)
con.execute("ATTACH '" + sys.argv[2] + "' AS m (TYPE merutable, memtable_bytes '1MiB')")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR)")
con.execute("CREATE TABLE m.u(id INT PRIMARY KEY, v VARCHAR)")
say("begin")
for n in range(100000):
    con.execute("BEGIN")
    for name in ("t", "u"):
        con.execute(f"INSERT INTO m.{name} SELECT {n} * 500 + i, repeat('x', 40) || i FROM range(500) r(i)")
        con.execute(f"DELETE FROM m.{name} WHERE id = {n} * 500 + 7")
    con.execute("COMMIT")
    say(n)
""", database)
    process.expect("begin")
    time.sleep(delay)
    acknowledged = len(process.lines_until_killed())
    con = connect()
    attach(con, database)
    counts = con.execute("SELECT (SELECT count(*) FROM m.t), (SELECT count(*) FROM m.u)").fetchone()
    assert counts[0] == counts[1] and counts[0] % 499 == 0, counts
    assert counts[0] >= 499 * acknowledged, (counts, acknowledged)
    assert one(con, "SELECT count(*) FROM (FROM m.t EXCEPT FROM m.u)") == 0


def test_interrupt_in_a_transaction(connect, database):
    con = connect(threads=2)
    attach(con, database)
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, 'value ' || i FROM range(100000) r(i)")
    for what in ("INSERT INTO m.t SELECT i, 'new' FROM range(100000, 1000000000) r(i)",
                 "UPDATE m.t SET s = 'new' WHERE id IN (SELECT a.id FROM m.t a, m.t b WHERE a.id + b.id < -5)",
                 "DELETE FROM m.t WHERE id IN (SELECT a.id FROM m.t a, m.t b WHERE a.id + b.id < -5)"):
        con.execute("BEGIN")
        con.execute("UPDATE m.t SET s = 'before' WHERE id < 10")
        fired = []
        timer = threading.Timer(1, lambda: (fired.append(time.monotonic()), con.interrupt()))
        timer.start()
        with pytest.raises((duckdb.InterruptException, RuntimeError), match="nterrupt"):
            con.execute(what)
        took = time.monotonic() - fired[0]
        assert took < 5, f"{what}: {took:.2f} s"
        failing(con, "SELECT count(*) FROM m.t", "TransactionContext Error")
        con.execute("ROLLBACK")
        assert con.execute("SELECT count(*), count(*) FILTER (s LIKE 'value%') FROM m.t").fetchone() == (100000, 100000)
    con.execute("INSERT INTO m.t VALUES (-1, 'after')")
    assert one(con, "SELECT s FROM m.t WHERE id = -1") == "after"


def test_many_connections_move_what_is_conserved(connect, database):
    """Transfers between accounts on several connections: what fails is run again, and the sum never changes."""
    con = connect(threads=2)
    attach(con, database)
    con.execute("CREATE TABLE m.acc(id INT PRIMARY KEY, balance BIGINT)")
    con.execute("INSERT INTO m.acc SELECT i, 100 FROM range(20) r(i)")
    wrong, conflicts, done = [], [], []

    def work(seed):
        mine = con.cursor()
        try:
            for n in range(40):
                a, b = (seed * 7 + n) % 20, (seed * 3 + n * 5 + 1) % 20
                while True:
                    try:
                        mine.execute("BEGIN")
                        if one(mine, "SELECT sum(balance) FROM m.acc") != 2000:
                            wrong.append((seed, n))
                        mine.execute(f"UPDATE m.acc SET balance = balance - 1 WHERE id = {a}")
                        mine.execute(f"UPDATE m.acc SET balance = balance + 1 WHERE id = {b}")
                        mine.execute("COMMIT")
                        done.append((a, b))
                        break
                    except duckdb.Error as error:
                        assert "INTERNAL" not in str(error), error
                        conflicts.append(str(error))
                        try:
                            mine.execute("ROLLBACK")
                        except duckdb.Error:
                            pass  # a commit that failed has ended the transaction
        except BaseException as error:  # noqa: BLE001  handed to the main thread
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert all(error.startswith("TransactionContext Error") for error in conflicts), conflicts[:3]
    expected = {i: 100 for i in range(20)}
    for a, b in done:
        expected[a] -= 1
        expected[b] += 1
    assert dict(con.execute("FROM m.acc").fetchall()) == expected
    assert len(done) == 160
