"""Compaction and garbage collection under running statements, interrupts, kill -9, and readers in other processes."""

import os
import threading
import time

from support import attach, failing, literal, one
from test_runtime import interrupted


def fill(con, rows, rounds):
    """A table of so many rows, written by so many statements with one file each."""
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, round INT, s VARCHAR)")
    for r in range(rounds):
        con.execute("INSERT INTO m.t SELECT i, ?, md5((i * 7 + ?)::VARCHAR) FROM range(?) r(i) WHERE i % ? <= ?",
                    [r, r, rows, rounds, r])
        con.execute("CALL merutable_flush('m')")


def contents(con, table="m.t"):
    return con.execute(f"SELECT count(*), sum(id), sum(round), bit_xor(hash(id, round, s)) FROM {table}").fetchone()


def files(con):
    return one(con, "SELECT count(*) FROM merutable_files('m')")


def test_interrupting_a_compaction(connect, database):
    con = connect(threads=2)
    attach(con, database, options=", auto_compaction false, target_file_bytes '4MiB', compaction_rate_bytes '1MB'")
    fill(con, 300_000, 4)
    before = contents(con)
    took = interrupted(con, "CALL merutable_compact('m')", 1)
    assert took < 1, f"{took:.2f} s"
    assert contents(con) == before
    con.execute("INSERT INTO m.t VALUES (-1, 0, 'after')")
    assert one(con, "SELECT s FROM m.t WHERE id = -1") == "after"
    # and so does DETACH, while one runs in the background
    con.execute("DETACH m")
    attach(con, database, options=", auto_compaction true, l0_files 1, compaction_rate_bytes '1MB'")
    started = time.monotonic()
    con.execute("DETACH m")
    assert time.monotonic() - started < 3
    attach(con, database)
    assert one(con, "SELECT count(*) FROM m.t WHERE id >= 0") == before[0]


def test_statements_run_beside_a_compaction(connect, database):
    con = connect(threads=2)
    attach(con, database, options=", auto_compaction false, target_file_bytes '1MiB', gc_grace_secs 0, retain_versions 1")
    fill(con, 60_000, 5)
    before = contents(con)
    reader, writer = con.cursor(), con.cursor()
    reader.execute("BEGIN")
    assert contents(reader) == before
    done, wrong = threading.Event(), []

    def write():
        try:
            written = 0
            while not done.is_set() or written < 10:
                writer.execute("INSERT INTO m.t VALUES (?, 99, 'beside')", [1_000_000 + written])
                written += 1
                if written % 5 == 0:
                    writer.execute("CALL merutable_flush('m')")
                count = one(writer, "SELECT count(*) FROM m.t WHERE round = 99")
                assert count == written, (count, written)
            wrong.append(written)
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(3):
            con.execute("CALL merutable_compact('m')")
            con.execute("CALL merutable_gc('m')")
            assert contents(reader) == before
    finally:
        done.set()
        thread.join()
    assert isinstance(wrong[0], int), wrong[0]
    reader.execute("COMMIT")
    con.execute("CALL merutable_compact('m')")
    assert one(con, "SELECT count(*) FROM m.t") == before[0] + wrong[0]
    con.execute("CALL merutable_gc('m')")
    on_disk = sum(name.endswith(".parquet") for _, _, names in os.walk(database) for name in names)
    assert on_disk <= files(con) * 2 + 2, f"{on_disk} files on disk, {files(con)} in use"


READER = """
con = connect(threads=2)
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable, READ_ONLY)")
say("ready")
for line in sys.stdin:
    try:
        rows = con.execute(line.strip()).fetchall()
        say("done", *(rows[0] if rows else ()))
    except duckdb.Error as error:
        say("error", str(error).replace("\\n", " "))
"""


def ask(process, sql):
    process.tell(sql)
    answer = process.line()
    assert answer.startswith("done"), answer
    return answer[5:]


def test_a_reader_process_beside_the_compacting_writer(connect, child, database):
    """Its statements see new commits, its running transaction does not, and its files stay."""
    con = connect(threads=2)
    attach(con, database, options=", gc_grace_secs 2, retain_versions 1")
    fill(con, 20_000, 3)
    process = child(READER, database)
    process.expect("ready")
    sql = "SELECT count(*), sum(id), sum(round) FROM m.t"
    state = "{} {} {}".format(*contents(con))
    assert ask(process, sql) == state
    ask(process, "BEGIN")
    assert ask(process, sql) == state
    con.execute("INSERT INTO m.t SELECT 100000 + i, 1, 'new' FROM range(10) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("CALL merutable_compact('m')")
    con.execute("CALL merutable_gc('m')")
    assert ask(process, sql) == state
    ask(process, "COMMIT")
    assert ask(process, sql) == "{} {} {}".format(*contents(con))
    assert ask(process, "SELECT count(*) FROM m.t WHERE s = 'new'") == "10"
    seq = one(con, "SELECT value FROM merutable_stats('m') WHERE name = 'seq'")
    assert ask(process, "SELECT value FROM merutable_stats('m') WHERE name = 'seq'") == str(seq)
    # rounds of writing and compacting never break it
    for r in range(10):
        con.execute("INSERT INTO m.t SELECT i, ?, 'again' FROM range(500) r(i)", [r])
        con.execute("CALL merutable_compact('m')")
        assert ask(process, "SELECT count(*), count(DISTINCT id) FROM m.t") == "{0} {0}".format(contents(con)[0])


def test_killed_while_it_compacts(child, connect, database):
    """kill -9 in the middle of a compaction: no row is lost, doubled or back, and the leftovers go."""
    for after in (0.05, 0.3, 0.8):
        process = child("""
con = connect(threads=2)
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable, auto_compaction false, target_file_bytes '256KiB')")
con.execute("CREATE TABLE IF NOT EXISTS m.t(id BIGINT PRIMARY KEY, round INT, s VARCHAR)")
for r in range(4):
    con.execute("INSERT INTO m.t SELECT i, ?, md5((i * 7 + ?)::VARCHAR) FROM range(50000) r(i) WHERE i % 4 <= ?", [r, r, r])
    con.execute("CALL merutable_flush('m')")
con.execute("DELETE FROM m.t WHERE id % 10 = 3")
say("state", *con.execute("SELECT count(*), sum(id), sum(round), bit_xor(hash(id, round, s)) FROM m.t").fetchone())
while True:
    con.execute("CALL merutable_compact('m')")
    con.execute("INSERT INTO m.t SELECT id, round, s FROM m.t WHERE id % 5 = 0")
    con.execute("CALL merutable_flush('m')")
""", database)
        state = process.line()
        time.sleep(after)
        process.kill()
        con = connect(threads=2)
        attach(con, database, options=", gc_grace_secs 0, retain_versions 1")
        assert "state " + " ".join(map(str, contents(con))) == state, f"after {after} s"
        con.execute("CALL merutable_compact('m')")
        con.execute("CALL merutable_gc('m')")
        assert "state " + " ".join(map(str, contents(con))) == state, f"after {after} s"
        rows = con.execute("SELECT path, reason, error FROM merutable_gc('m', dry_run := true) "
                           "WHERE path LIKE '%.parquet'").fetchall()
        assert rows == [], rows
        con.execute("DETACH m")


def test_compaction_of_a_database_that_another_process_writes_to(connect, child, database):
    process = child("""
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t VALUES (1)")
say("ready")
sys.stdin.readline()
""", database)
    process.expect("ready")
    con = connect()
    for call in (f"merutable_compact({literal(database)})", f"merutable_gc({literal(database)})"):
        message = failing(con, f"CALL {call}", "IO Error")
        assert str(process.pid) in message, message
    assert one(con, f"SELECT value FROM merutable_stats({literal(database)}) WHERE name = 'version'") >= 1
