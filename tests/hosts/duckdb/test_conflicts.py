"""Statements that change the same rows at the same time: the later one fails, and no change is lost."""

import duckdb
import pytest

from support import attach, one
from test_python import in_threads


def attempt(cursor, statement):
    """Whether the statement succeeded; the only error it may end with is a conflict."""
    try:
        cursor.execute(statement)
        return 1
    except duckdb.Error as error:
        assert "was changed by another transaction meanwhile" in str(error), error
        assert "INTERNAL" not in str(error)
        return 0


@pytest.mark.parametrize("rows", [100, 200_000])
def test_no_update_is_lost(connect, database, rows):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    con.execute(f"INSERT INTO m.t SELECT i, 0 FROM range({rows}) r(i)")
    done = [0] * 4
    rounds = 40 if rows == 100 else 3

    def work(i):
        cursor = con.cursor()
        for n in range(rounds):
            done[i] += attempt(cursor, "UPDATE m.t SET v = v + 1")
            if i == 0 and n % 10 == 0:
                cursor.execute("CALL merutable_flush('m')").fetchall()

    in_threads(4, work)
    assert sum(done) >= 1
    assert con.execute("SELECT count(*), min(v), max(v) FROM m.t").fetchone() == (rows, sum(done), sum(done))


def test_deleted_rows_stay_deleted(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    for _ in range(5):
        con.execute("INSERT INTO m.t SELECT i, 0 FROM range(50000) r(i)")
        done = [0, 0]

        def work(i):
            done[i] = attempt(con.cursor(), ["UPDATE m.t SET v = v + 1", "DELETE FROM m.t"][i])

        in_threads(2, work)
        left = one(con, "SELECT count(*) FROM m.t")
        assert left == (0 if done[1] else 50000), done
        con.execute("DELETE FROM m.t")


def test_other_rows_are_no_conflict(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    con.execute("INSERT INTO m.t SELECT i, 0 FROM range(400) r(i)")

    def work(i):
        cursor = con.cursor()
        for _ in range(30):
            cursor.execute(f"UPDATE m.t SET v = v + 1 WHERE k BETWEEN {100 * i} AND {100 * i + 99}")

    in_threads(4, work)
    assert con.execute("SELECT min(v), max(v) FROM m.t").fetchone() == (30, 30)


def test_no_upsert_is_lost(connect, database):
    """ON CONFLICT DO UPDATE and MERGE count in one row, from several threads, also where the first ones insert it."""
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    done = [0] * 4

    def work(i):
        cursor = con.cursor()
        for _ in range(40):
            done[i] += attempt(cursor, "INSERT INTO m.t VALUES (1, 1) ON CONFLICT DO UPDATE SET v = t.v + 1" if i % 2 else
                               "MERGE INTO m.t USING (VALUES (1)) s(k) USING (k) WHEN MATCHED THEN UPDATE SET v = t.v + 1 "
                               "WHEN NOT MATCHED THEN INSERT VALUES (1, 1)")

    in_threads(4, work)
    assert sum(done) >= 1
    assert con.execute("SELECT * FROM m.t").fetchall() == [(1, sum(done))]


@pytest.mark.parametrize("rows", [1, 100_000])
def test_of_two_inserts_of_a_key_one_fails(connect, database, rows):
    con = connect()
    attach(con, database, options=", ON_DUPLICATE 'error'")
    con.execute("CREATE TABLE m.t(k INT PRIMARY KEY, v INT)")
    done = [0] * 4
    rounds = 30 if rows == 1 else 3

    def work(i):
        cursor = con.cursor()
        for n in range(rounds):
            try:
                cursor.execute(f"INSERT INTO m.t SELECT i * {rounds} + {n}, {i} FROM range({rows}) r(i)")
                done[i] += 1
            except duckdb.Error as error:
                assert "meanwhile" in str(error) or "Duplicate key" in str(error), error

    in_threads(4, work)
    assert sum(done) == rounds
    assert con.execute("SELECT count(*), sum(v) FROM m.t").fetchone() == \
        (rounds * rows, sum(i * n for i, n in enumerate(done)) * rows)
