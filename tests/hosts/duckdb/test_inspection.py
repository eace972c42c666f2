"""Verification of damaged copies, the change feed and verification under interrupts, and events in several instances."""

import glob
import os
import shutil
import threading
import time

from support import attach, failing, literal, one
from test_runtime import interrupted


def fill(con, rows=1_500_000):
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    con.execute(f"INSERT INTO m.t SELECT i, md5(i::VARCHAR) FROM range({rows}) r(i)")
    con.execute("CALL merutable_flush('m')")


def test_interrupting_changes_and_verify(connect, database):
    con = connect(threads=2)
    attach(con, database)
    fill(con)
    for statement in ("FROM merutable_changes('m', 0)", "SELECT count(*) FROM merutable_changes('m', 0)", "FROM merutable_verify('m')"):
        took = interrupted(con, statement, 0.2)
        assert took < 1, f"{statement}: {took:.2f} s"
        assert one(con, "SELECT 42") == 42
        assert [f for _, _, files in os.walk(os.path.join(database, "tmp")) for f in files] == []
    assert one(con, "SELECT count(*) FROM m.t") == 1_500_000
    assert one(con, "SELECT count(*) FROM merutable_verify('m') WHERE status <> 'ok'") == 0


def test_a_feed_that_does_not_fit_into_memory(connect, database):
    """It goes to temporary files, which are gone afterwards."""
    con = connect(threads=2)
    attach(con, database, options=", memory_limit '100MiB'")
    fill(con, 1_000_000)
    con.execute("UPDATE m.t SET s = 'x' WHERE id % 2 = 0")
    got = con.execute("SELECT op, count(*), count(DISTINCT id), bool_and(after.id = id) FROM merutable_changes('m', 0) GROUP BY op ORDER BY op").fetchall()
    assert got == [("insert", 1_000_000, 1_000_000, True), ("update", 500_000, 500_000, True)], got
    assert [f for _, _, files in os.walk(os.path.join(database, "tmp")) for f in files] == []


def test_verify_names_what_is_damaged(connect, database, tmp_path):
    con = connect()
    attach(con, database, options=", auto_compaction false")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, s VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, md5(i::VARCHAR) FROM range(5000) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("DELETE FROM m.t WHERE id % 7 = 0")
    con.execute("CALL merutable_flush('m')")
    con.execute("DETACH m")
    for pattern in ("data/*/*.parquet", "data/*/*.puffin", "metadata/*.bin"):
        for number, name in enumerate(sorted(glob.glob(os.path.join(database, pattern)))):
            size = os.path.getsize(name)
            for at in range(0, size, max(1, size // 13)):
                copy = str(tmp_path / f"copy{number}{at}{os.path.basename(name)}")
                shutil.copytree(database, copy)
                damaged = os.path.join(copy, os.path.relpath(name, database))
                with open(damaged, "r+b") as file:
                    file.seek(at)
                    byte = file.read(1)
                    file.seek(at)
                    file.write(bytes([byte[0] ^ 0x10]))
                found = con.execute(f"SELECT path || detail FROM merutable_verify({literal(copy)}) WHERE status <> 'ok'").fetchall()
                assert any(os.path.basename(name) in text for (text,) in found), f"{name} at {at}: {found}"
                shutil.rmtree(copy)
    # what is gone, and what stands beside it
    for name in glob.glob(os.path.join(database, "data/*/*.parquet")):
        os.remove(name)
    found = con.execute(f"SELECT kind, status FROM merutable_verify({literal(database)}) WHERE status <> 'ok' AND kind = 'data'").fetchall()
    assert found and all(status == "missing" for _, status in found), found
    assert one(con, "SELECT 42") == 42


def events(con):
    return one(con, "SELECT count(*) FROM duckdb_logs WHERE type = 'merutable' AND message LIKE '%flush%'")


def test_events_reach_every_instance_that_is_open(connect, database):
    one_instance, other = connect(), connect()
    attach(one_instance, database)
    one_instance.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
    for con in (one_instance, other):
        con.execute("CALL enable_logging('merutable', level := 'info')")
    attach(other, database)
    one_instance.execute("INSERT INTO m.t VALUES (1)")
    one_instance.execute("CALL merutable_flush('m')")
    assert events(one_instance) == 1 and events(other) == 1
    # an instance that is closed is told nothing, and the others go on
    for n in range(20):
        gone = connect()
        gone.execute("CALL enable_logging('merutable', level := 'info')")
        attach(gone, database)
        one_instance.execute("INSERT INTO m.t VALUES (?)", [100 + n])
        gone.close()
        one_instance.execute("CALL merutable_flush('m')")
    assert events(other) == 21
    one_instance.close()
    other.execute("INSERT INTO m.t VALUES (3)")
    other.execute("CALL merutable_flush('m')")
    assert events(other) == 22


def test_warnings_as_errors_do_not_reach_the_engine(connect, database):
    con = connect()
    con.execute("CALL enable_logging('merutable', level := 'info')")
    con.execute("SET warnings_as_errors = true")
    attach(con, database, options=", memtable_bytes '1MiB', max_immutables 1")
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    for n in range(30):
        con.execute("INSERT INTO m.t SELECT i, repeat('x', 200) FROM range(?, ?) r(i)", [n * 1000, n * 1000 + 1000])
    assert one(con, "SELECT count(*) FROM m.t") == 30_000
    failing(con, "CALL enable_logging('nonsense')", "Invalid Input", "Binder", "Catalog", "Not implemented")


def test_progress_of_calls(connect, database):
    """merutable_compact and merutable_verify tell how far they are."""
    con = connect(threads=2)
    attach(con, database, options=", auto_compaction false, target_file_bytes '4MiB'")
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    for n in range(3):
        con.execute(f"INSERT INTO m.t SELECT i, md5((i + {n})::VARCHAR) FROM range(600000) r(i)")
    con.execute("SET enable_progress_bar = true")
    con.execute("SET progress_bar_time = 0")
    con.execute("SET enable_progress_bar_print = false")
    for statement in ("CALL merutable_compact('m')", "FROM merutable_verify('m')", "SELECT count(*) FROM merutable_changes('m', 0)"):
        seen, done = [], threading.Event()

        def watch():
            while not done.is_set():
                seen.append(con.query_progress())
                time.sleep(0.005)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            con.execute(statement).fetchall()
        finally:
            done.set()
            watcher.join()
        told = [p for p in seen if p >= 0]
        assert all(0 <= p <= 100 for p in told), f"{statement}: {told}"
        assert told == sorted(told) or told == sorted(told[:-1]) + told[-1:], f"{statement}: {told}"
