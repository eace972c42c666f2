"""The Go runtime in the host: fork, signals, interrupts, what stays flat."""

import os
import signal
import threading
import time

import duckdb
import pytest

from support import attach, failing, literal, one


def test_fork(child, database):
    """The child of a fork gets a clear error or can exec; the parent goes on."""
    process = child("""
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t VALUES (1)")
pid = os.fork()
if pid == 0:
    # DuckDB's own threads did not survive either: only calls that come straight to us are answered here
    os.execv(sys.executable, [sys.executable, "-c", "print('exec works', flush=True)"])
say("status", os.waitpid(pid, 0)[1])
pid = os.fork()
if pid == 0:
    os._exit(0)
say("status", os.waitpid(pid, 0)[1])
con.execute("INSERT INTO m.t VALUES (2)")
say("count", con.execute("SELECT count(*) FROM m.t").fetchone()[0])
""", database)
    process.expect("exec works")
    process.expect("status 0")
    process.expect("status 0")
    process.expect("count 2")
    process.wait()


def test_use_in_a_forked_child_is_an_error_not_a_hang(child, database):
    process = child("""
con = connect(threads=1)
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t VALUES (1)")
pid = os.fork()
if pid == 0:
    for sql in (f"SELECT count(*) FROM merutable_scan('{sys.argv[2]}')", "INSERT INTO m.t VALUES (5)",
                f"SELECT * FROM merutable_get('{sys.argv[2]}', 1)"):
        try:
            con.execute(sql).fetchall()
            say("worked", sql)
        except duckdb.Error as error:
            say("error" if "fork" in str(error) else str(error).replace("\\n", " "))
    os._exit(0)
say("status", os.waitpid(pid, 0)[1])
con.execute("INSERT INTO m.t VALUES (2)")
say("count", con.execute("SELECT count(*) FROM m.t").fetchone()[0])
""", database)
    for _ in range(3):
        process.expect("error", timeout=20)
    process.expect("status 0")
    process.expect("count 2")
    process.wait()


SIGACTION = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
class SigAction(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]
def actions():
    found = {}
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPROF, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGURG):
        action = SigAction()
        libc.sigaction(int(number), None, ctypes.byref(action))
        found[number.name] = (action.handler, bool(action.flags & 0x08000000))
    return found
"""


def test_handlers_of_the_host_stay(child, database):
    """Python's handlers are still Python's after LOAD; SA_ONSTACK is on what Go took or kept."""
    process = child(SIGACTION + """
got = []
for number in (signal.SIGCHLD, signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGURG):
    signal.signal(number, lambda n, f: got.append(signal.Signals(n).name))
import subprocess
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t SELECT i FROM range(1000) r(i)")
after = actions()
for name, (handler, on_stack) in sorted(after.items()):
    if handler and not on_stack:
        say("not on the signal stack:", name)
for number in (signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGURG):
    os.kill(os.getpid(), number)
subprocess.run(["true"])
deadline = time.monotonic() + 5
while time.monotonic() < deadline and len(set(got)) < 6:
    time.sleep(0.01)
say(sorted(set(got)))
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
    say("no KeyboardInterrupt")
except KeyboardInterrupt:
    say("KeyboardInterrupt")
say(con.execute("SELECT count(*) FROM m.t").fetchone()[0])
""", database)
    process.expect("['SIGCHLD', 'SIGHUP', 'SIGPROF', 'SIGURG', 'SIGUSR1', 'SIGUSR2']")
    process.expect("KeyboardInterrupt")
    process.expect("1000")
    process.wait()


def test_profiling_timer(child, database):
    """A profiler's SIGPROF storm during scans and inserts."""
    process = child("""
fired = [0]
def tick(n, f):
    fired[0] += 1
signal.signal(signal.SIGPROF, tick)
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR)")
signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
for r in range(5):
    con.execute("INSERT INTO m.t SELECT i, 'x' || i FROM range(50000) r(i)")
    assert con.execute("SELECT count(*), count(DISTINCT v) FROM m.t").fetchone() == (50000, 50000)
signal.setitimer(signal.ITIMER_PROF, 0)
say("fired" if fired[0] > 0 else "never")
""", database)
    process.expect("fired")
    process.wait()


def interrupt_after(con, seconds):
    timer = threading.Timer(seconds, con.interrupt)
    timer.start()
    return timer


def interrupted(con, sql, after=0.3):
    """Interrupts a long statement; the seconds from the interrupt to the answer."""
    fired = []

    def fire():
        fired.append(time.monotonic())
        con.interrupt()

    timer = threading.Timer(after, fire)
    timer.start()
    try:
        con.execute(sql).fetchall()
    except (duckdb.InterruptException, RuntimeError, KeyboardInterrupt) as error:
        assert "nterrupt" in str(error), error
        assert fired, f"ended before the interrupt: {error}"
        return time.monotonic() - fired[0]
    finally:
        timer.cancel()
        timer.join()
    pytest.fail(f"finished before the interrupt came: {sql}")


def test_interrupt(connect, database, tmp_path):
    con = connect(threads=2)
    attach(con, database)
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, 'value ' || i FROM range(300000) r(i)")

    took = interrupted(con, "INSERT INTO m.t SELECT i, 'new ' || i FROM range(100000000) r(i)", 1)
    assert took < 1, f"INSERT: {took:.2f} s"
    assert con.execute("SELECT count(*), count(*) FILTER (s LIKE 'new%') FROM m.t").fetchone() == (300000, 0)

    took = interrupted(con, "MERGE INTO m.t USING (SELECT range AS id FROM range(100000000)) s USING (id) WHEN MATCHED THEN "
                            "UPDATE SET s = 'new' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new')", 2)
    assert took < 1, f"MERGE: {took:.2f} s"
    assert con.execute("SELECT count(*), count(*) FILTER (s LIKE 'new%') FROM m.t").fetchone() == (300000, 0)

    for what in ("INSERT INTO m.t", "CREATE OR REPLACE TABLE m.t WITH (primary_key = 'id') AS"):  # in no order: it spills
        took = interrupted(con, f"{what} SELECT (hash(i) >> 1)::BIGINT AS id, 'new ' || i AS s FROM range(100000000) r(i)", 2)
        assert took < 1, f"{what}: {took:.2f} s"
        assert con.execute("SELECT count(*), count(*) FILTER (s LIKE 'new%') FROM m.t").fetchone() == (300000, 0)
        assert [f for _, _, files in os.walk(os.path.join(database, "tmp")) for f in files] == []

    took = interrupted(con, "SELECT count(*), sum(length(a.s)) FROM m.t a, m.t b WHERE a.id + b.id = -1")
    assert took < 1, f"join: {took:.2f} s"

    con.execute("CALL merutable_flush('m')")
    took = interrupted(con, "SELECT sum(length(a.s || b.s)) FROM m.t a, m.t b")
    assert took < 1, f"scan of files: {took:.2f} s"

    copy = tmp_path / "copy"
    took = interrupted(con, f"COPY (SELECT i AS id, 'x' || i AS s FROM range(100000000) r(i)) TO {literal(copy)} "
                            "(FORMAT merutable)", 1)
    assert took < 1, f"COPY: {took:.2f} s"
    failing(con, f"SELECT * FROM merutable_scan({literal(copy)})")

    took = interrupted(con, "DELETE FROM m.t WHERE id IN (SELECT a.id FROM m.t a, m.t b WHERE a.id + b.id < -5)")
    assert took < 1, f"DELETE: {took:.2f} s"
    assert one(con, "SELECT count(*) FROM m.t") == 300000
    con.execute("INSERT INTO m.t VALUES (-1, 'after')")
    assert one(con, "SELECT s FROM m.t WHERE id = -1") == "after"


def test_progress_is_between_0_and_100_and_monotonic(connect, database):
    con = connect(threads=1)
    attach(con, database)
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, repeat('x', 30) || i FROM range(1500000) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("INSERT INTO m.t SELECT i, 'memory' FROM range(1000) r(i)")
    con.execute("SET enable_progress_bar = true")
    con.execute("SET enable_progress_bar_print = false")
    con.execute("SET progress_bar_time = 1")
    seen = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            seen.append(con.query_progress())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        con.execute("SELECT count(*) FROM m.t WHERE regexp_matches(s, '^x+77*$')").fetchall()
    finally:
        done.set()
        watcher.join()
    values = [p for p in seen if p >= 0]
    assert all(p == p and 0 <= p <= 100 for p in values), values
    assert values == sorted(values) or values == sorted(values[:-1]) + values[-1:], values


def test_many_databases_read_idle_handles_are_closed(connect, tmp_path):
    """merutable_scan on forty directories: the handles kept open are few."""
    con = connect(threads=2)
    for i in range(40):
        con.execute(f"COPY (SELECT j AS id FROM range(10) r(j)) TO {literal(tmp_path / str(i))} (FORMAT merutable)")
    descriptors = []
    for _ in range(2):
        for i in range(40):
            assert one(con, f"SELECT count(*) FROM merutable_scan({literal(tmp_path / str(i))})") == 10
        descriptors.append(len(os.listdir("/proc/self/fd")))
    assert descriptors[1] <= descriptors[0] + 2
    open_names = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{n}")]
    databases = {name[len(str(tmp_path)) + 1:].split("/")[0] for name in open_names if name.startswith(str(tmp_path))}
    assert len(databases) <= 8, databases


def test_term_ends_the_process(child, database):
    process = child("""
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
con.execute("INSERT INTO m.t VALUES (1)")
say("ready")
time.sleep(60)
""", database)
    process.expect("ready")
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(timeout=10) == -signal.SIGTERM
