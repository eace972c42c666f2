"""Several processes on one directory: one writer, locked out seconds, readers beside it, kill -9."""

import os
import re
import shutil
import subprocess
import time

import pytest

from support import attach, failing, literal, one, tree

WRITER = """
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE IF NOT EXISTS m.t(id INT PRIMARY KEY, v VARCHAR)")
say("ready")
for line in sys.stdin:
    try:
        rows = con.execute(line.strip()).fetchall()
        say("done", rows[0][0] if rows else "")
    except duckdb.Error as error:
        say("error", str(error).replace("\\n", " "))
"""


def writer(child, path):
    process = child(WRITER, path)
    process.expect("ready")
    return process


def tell(process, sql):
    process.tell(sql)
    answer = process.line()
    assert answer.startswith("done"), answer
    return answer[5:]


def test_second_writer_is_locked_out_at_once(connect, child, database):
    process = writer(child, database)
    tell(process, "INSERT INTO m.t VALUES (1, 'a')")
    con = connect()
    started = time.monotonic()
    message = failing(con, f"ATTACH {literal(database)} AS m (TYPE merutable)", "IO Error")
    assert time.monotonic() - started < 1
    assert re.search(rf"\b{process.pid}\b", message), f"the holder's pid {process.pid} is not in: {message}"
    assert database in message
    message = failing(con, f"COPY (SELECT 1 AS id, 'x' AS v) TO {literal(database)} (FORMAT merutable)", "IO Error")
    assert re.search(rf"\b{process.pid}\b", message), message
    assert one(con, "SELECT 42") == 42
    assert tell(process, "SELECT count(*) FROM m.t") == "1"


def test_killed_writer_leaves_no_lock(connect, child, database):
    process = writer(child, database)
    tell(process, "INSERT INTO m.t VALUES (1, 'a'), (2, 'b')")
    process.kill()
    con = connect()
    started = time.monotonic()
    attach(con, database)
    assert time.monotonic() - started < 1
    assert con.execute("SELECT * FROM m.t ORDER BY id").fetchall() == [(1, "a"), (2, "b")]
    con.execute("INSERT INTO m.t VALUES (3, 'c')")
    assert one(con, "SELECT count(*) FROM m.t") == 3


def test_reader_beside_a_writer(connect, child, database):
    process = writer(child, database)
    tell(process, "INSERT INTO m.t SELECT i, 'a' FROM range(1000) r(i)")
    tell(process, "CALL merutable_flush('m')")
    con = connect()
    attach(con, database, options=", READ_ONLY")
    assert one(con, "SELECT count(*) FROM m.t") == 1000
    assert one(con, f"SELECT v FROM merutable_get({literal(database)}, 77)") == "a"
    # new commits are seen by the next statement
    tell(process, "INSERT INTO m.t SELECT i, 'b' FROM range(500, 1500) r(i)")
    tell(process, "CALL merutable_flush('m')")
    assert con.execute("SELECT count(*), count(*) FILTER (v = 'b') FROM m.t").fetchone() == (1500, 1000)
    assert one(con, f"SELECT count(*) FROM merutable_scan({literal(database)})") == 1500
    tell(process, "DELETE FROM m.t WHERE id < 100")
    tell(process, "CALL merutable_flush('m')")
    assert one(con, "SELECT count(*) FROM m.t") == 1400
    # rows of the writer's log: seen or not, but never a part of a statement
    tell(process, "INSERT INTO m.t SELECT i, 'c' FROM range(2000, 2100) r(i)")
    assert one(con, "SELECT count(*) FROM m.t WHERE v = 'c'") in (0, 100)
    failing(con, "INSERT INTO m.t VALUES (1, 'x')")
    assert tell(process, "SELECT count(*) FROM m.t") == "1500"


def test_reading_functions_take_no_lock(connect, child, database):
    con = connect()
    con.execute(f"COPY (SELECT i AS id, 'a' AS v FROM range(100) r(i)) TO {literal(database)} (FORMAT merutable)")
    con.close()
    reader = connect()
    assert one(reader, f"SELECT count(*) FROM merutable_scan({literal(database)})") == 100
    process = child("""
con = connect()
con.execute(f"COPY (SELECT i AS id, 'b' AS v FROM range(50, 150) r(i)) TO '{sys.argv[2]}' (FORMAT merutable)")
say("copied")
""", database)
    process.expect("copied")
    process.wait()
    assert one(reader, f"SELECT count(*) FROM merutable_scan({literal(database)})") == 150
    assert one(reader, f"SELECT v FROM merutable_get({literal(database)}, 60)") == "b"


def test_reader_never_breaks_while_the_writer_works(connect, child, database):
    process = child("""
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, r INT)")
con.execute("INSERT INTO m.t SELECT i, 0 FROM range(2000) r(i)")
con.execute("CALL merutable_flush('m')")
say("ready")
for r in range(1, 60):
    con.execute("INSERT INTO m.t SELECT i, ? FROM range(2000) r(i)", [r])
    if r % 2:
        con.execute("CALL merutable_flush('m')")
say("finished")
""", database)
    process.expect("ready")
    con = connect()
    attach(con, database, options=", READ_ONLY")
    last, seen = 0, set()
    deadline = time.monotonic() + 60
    while last < 59 and time.monotonic() < deadline:
        count, distinct, low, high = con.execute(
            "SELECT count(*), count(DISTINCT id), min(r), max(r) FROM m.t").fetchone()
        assert (count, distinct) == (2000, 2000) and low == high and low >= last, (count, distinct, low, high, last)
        last = low
        seen.add(low)
    process.expect("finished")
    assert last >= 58 and len(seen) > 1


def fill(connect, database):
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, 'v' || i FROM range(1000) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("DELETE FROM m.t WHERE id < 10")
    con.execute("INSERT INTO m.t VALUES (5000, 'in the log')")
    con.close()


READ = """
con = connect()
path = sys.argv[2]
con.execute(f"ATTACH '{path}' AS m (TYPE merutable, READ_ONLY)")
say(con.execute("SELECT count(*), max(id) FROM m.t").fetchone())
say(con.execute(f"SELECT count(*) FROM merutable_scan('{path}')").fetchone())
say(con.execute(f"SELECT v FROM merutable_get('{path}', 5000)").fetchone())
for sql in ("INSERT INTO m.t VALUES (1, 'x')", "DELETE FROM m.t", "DROP TABLE m.t", "CREATE TABLE m.u(a INT PRIMARY KEY)"):
    try:
        con.execute(sql)
        say("worked", sql)
    except duckdb.Error as error:
        say("read-only" if "read-only" in str(error) else str(error).replace("\\n", " "))
con.execute("DETACH m")
"""


def check_reader(process):
    process.expect("(991, 5000)")
    process.expect("(991,)")
    process.expect("('in the log',)")
    for _ in range(4):
        process.expect("read-only")
    process.wait()


def test_read_only_open_changes_nothing(connect, child, database):
    fill(connect, database)
    before = tree(database)
    check_reader(child(READ, database))
    assert tree(database) == before


def test_read_only_open_of_a_tree_without_write_permission(connect, child, database):
    fill(connect, database)
    subprocess.run(["chmod", "-R", "a-w", database], check=True)
    before = tree(database)
    try:
        check_reader(child(READ, database))
        assert tree(database) == before
    finally:
        subprocess.run(["chmod", "-R", "u+w", database], check=True)


def test_read_only_open_of_a_crashed_writers_tree(child, database):
    process = writer(child, database)
    tell(process, "INSERT INTO m.t SELECT i, 'v' || i FROM range(10, 1000) r(i)")
    tell(process, "INSERT INTO m.t VALUES (5000, 'in the log')")
    process.kill()
    before = tree(database)
    check_reader(child(READ, database))
    assert tree(database) == before


def test_read_only_mount(connect, child, database, tmp_path):
    fill(connect, database)
    mount = tmp_path / "mount"
    mount.mkdir()
    bound = shutil.which("mount") and subprocess.run(["mount", "--bind", database, str(mount)],
                                                     capture_output=True).returncode == 0
    if not bound:
        pytest.skip("this machine cannot mount")
    try:
        if subprocess.run(["mount", "-o", "remount,ro,bind", str(mount)], capture_output=True).returncode != 0:
            pytest.skip("this machine cannot mount read-only")
        before = tree(database)
        check_reader(child(READ, str(mount)))
        assert tree(database) == before
        con = connect()
        failing(con, f"ATTACH {literal(mount)} AS m (TYPE merutable)")
        assert one(con, "SELECT 42") == 42
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_symlinks_and_relative_paths_are_the_same_database(connect, tmp_path, monkeypatch):
    real = tmp_path / "real"
    real.mkdir()
    os.symlink(real, tmp_path / "link")
    con = connect()
    attach(con, tmp_path / "link" / "db")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
    con.execute("INSERT INTO m.t VALUES (1)")
    monkeypatch.chdir(tmp_path)
    for path in (real / "db", "real/db", "./link/db/", tmp_path / "link" / ".." / "real" / "db"):
        assert one(con, f"SELECT count(*) FROM merutable_scan({literal(path)})") == 1, path
        con.execute(f"COPY (SELECT 1::INT AS id) TO {literal(path)} (FORMAT merutable)")
    other = connect()
    attach(other, real / "db")
    other.execute("INSERT INTO m.t VALUES (2)")
    assert one(con, "SELECT count(*) FROM m.t") == 2


def test_a_moved_directory_is_the_same_database(connect, tmp_path):
    con = connect()
    attach(con, tmp_path / "old")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
    con.execute("INSERT INTO m.t SELECT i FROM range(100) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("INSERT INTO m.t VALUES (1000)")
    con.execute("DETACH m")
    os.rename(tmp_path / "old", tmp_path / "new")
    attach(con, tmp_path / "new")
    assert one(con, "SELECT count(*) FROM m.t") == 101
    assert not (tmp_path / "old").exists()
