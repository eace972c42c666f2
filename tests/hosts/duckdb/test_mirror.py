"""Mirrors through DuckDB: requests that reading costs, other processes, interrupts, events, and secrets in logs."""

import json
import os
import socket
import sys
import threading
import time

import pytest

from support import attach, failing, literal, one
from test_runtime import interrupted

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sql"))

from runner.s3 import KEY, SECRET, S3Server, Unavailable, environment  # noqa: E402


@pytest.fixture(scope="module")
def server():
    """An S3 server; processes see nothing of the machine's own credentials."""
    for name in set(os.environ) - set(environment()):
        os.environ.pop(name)
    os.environ.update(environment())
    s3 = S3Server()
    try:
        s3.variables()
    except Unavailable as reason:
        if os.environ.get("MERUTABLE_TEST_SERVERS") == "required":
            raise
        pytest.skip(str(reason))
    yield s3
    s3.close()


@pytest.fixture
def url(server):
    return server.variables()["__S3_URL__"]


def secret(con, server, name="s"):
    con.execute(f"CREATE OR REPLACE SECRET {name} (TYPE merutable_s3, KEY_ID '{KEY}', SECRET '{SECRET}', "
                f"ENDPOINT '{server.endpoint}')")


def settled(con):
    """Waits until the mirror has everything."""
    con.execute("CALL merutable_flush('m')")
    state = con.execute("SELECT state, mirror_seq = visible_seq, last_error FROM "
                        "merutable_mirror_status('m', wait_secs := 60)").fetchone()
    assert state[0] in ("idle", "uploading") and state[1], state


def fill(con, rows):
    con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR, n DOUBLE)")
    con.execute(f"INSERT INTO m.t SELECT i, md5(i::VARCHAR), i / 3 FROM range({rows}) r(i)")


def test_what_reading_costs_in_requests(connect, child, server, database, url):
    """A cold get takes a handful, a warm one none; nothing is written; a scan asks for each block once."""
    con = connect()
    secret(con, server)
    attach(con, database, options=f", MIRROR '{url}'")
    fill(con, 200_000)
    settled(con)

    code = """
con = connect()
con.execute(f"CREATE SECRET s (TYPE merutable_s3, KEY_ID '{sys.argv[2]}', SECRET '{sys.argv[3]}', ENDPOINT '{sys.argv[4]}')")
con.execute(f"ATTACH '{sys.argv[5]}' AS r (TYPE merutable, READ_ONLY)")
say("attached")
for line in sys.stdin:
    say(*con.execute(line).fetchone())
"""
    reader = child(code, KEY, SECRET, server.endpoint, url)
    before = len(server.requests(url))

    def ask(sql):
        reader.process.stdin.write(sql.encode() + b"\n")
        reader.process.stdin.flush()
        return reader.line()

    def since():
        nonlocal before
        lines = server.requests(url)[before:]
        before += len(lines)
        return lines

    assert reader.line() == "attached"
    opened = since()
    assert ask(f"SELECT s FROM merutable_get('{url}', 4242)") == one(con, "SELECT s FROM m.t WHERE id = 4242")
    cold = since()
    assert ask(f"SELECT s FROM merutable_get('{url}', 4242)") == one(con, "SELECT s FROM m.t WHERE id = 4242")
    warm = since()
    assert ask("SELECT count(*), sum(id), count(DISTINCT s) FROM r.t") == "200000 19999900000 200000"
    scan = since()
    assert ask("SELECT count(*), sum(id), count(DISTINCT s) FROM r.t") == "200000 19999900000 200000"
    again = since()
    print(f"requests: open {len(opened)}, cold get {len(cold)}, warm get {len(warm)}, scan {len(scan)}, again {len(again)}")
    for line in opened + cold + warm + scan + again:
        assert not any(word in line for word in ("PutObject", "Delete", "Upload", "CopyObject")), line
    data = [line for line in cold if "/data/" in line]
    assert len(opened) <= 8 and len(data) <= 5 and len(cold) <= 8, (opened, cold)
    assert not [line for line in warm if "/data/" in line], warm
    assert len(scan) <= 40 and not [line for line in again if "/data/" in line], (scan, again)


def test_a_reader_in_another_process_sees_committed_states(connect, child, server, database, url):
    """Each commit moves an amount between rows: every state that a reader may see has the same sum."""
    con = connect()
    secret(con, server)
    attach(con, database, options=f", MIRROR '{url}', auto_compaction false")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v BIGINT)")
    con.execute("INSERT INTO m.t SELECT i, 100 FROM range(100) r(i)")
    settled(con)
    reader = child("""
con = connect()
con.execute(f"CREATE SECRET s (TYPE merutable_s3, KEY_ID '{sys.argv[2]}', SECRET '{sys.argv[3]}', ENDPOINT '{sys.argv[4]}')")
con.execute(f"ATTACH '{sys.argv[5]}' AS r (TYPE merutable, READ_ONLY)")
seen = set()
end = time.time() + 60
while 2000 not in seen and time.time() < end:
    n, total, last = con.execute("SELECT count(*), sum(v), max(v) FROM r.t").fetchone()
    assert (n, total) == (100, 10000), (n, total)
    seen.add(con.execute("SELECT v FROM r.t WHERE id = 0").fetchone()[0])
say("done", len(seen), max(seen))
""", KEY, SECRET, server.endpoint, url)
    for round_ in range(20):
        con.execute("UPDATE m.t SET v = CASE WHEN id = 0 THEN v + 95 ELSE v - 95 END WHERE id IN (0, ?)", [round_ + 1])
        con.execute("CALL merutable_flush('m')")
    assert one(con, "SELECT v FROM m.t WHERE id = 0") == 2000
    settled(con)
    words = reader.line(90).split()
    assert words[0] == "done" and int(words[1]) >= 1 and words[2] == "2000", words


def test_killed_and_restarted_nothing_is_sent_twice(connect, child, server, database, url):
    writer = child("""
con = connect()
con.execute(f"CREATE SECRET s (TYPE merutable_s3, KEY_ID '{sys.argv[2]}', SECRET '{sys.argv[3]}', ENDPOINT '{sys.argv[4]}')")
con.execute(f"ATTACH '{sys.argv[6]}' AS m (TYPE merutable, MIRROR '{sys.argv[5]}')")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR)")
for i in range(1000):
    con.execute(f"INSERT INTO m.t SELECT i, 'x' FROM range({i * 100}, {i * 100 + 100}) r(i)")
    con.execute("CALL merutable_flush('m')")
    say(i)
""", KEY, SECRET, server.endpoint, url, database)
    for _ in range(12):
        writer.line()
    writer.kill()
    con = connect()
    secret(con, server)
    attach(con, database, options=f", MIRROR '{url}'")
    settled(con)
    there, again = set(), []
    for line in server.requests(url):
        if "PutObject " in line and "/data/" in line:
            key = line.split(" /merutable/")[1].split(" ")[0]
            if key in there:
                again.append(line)
            elif " 200 " in line:
                there.add(key)
    assert there and not again, again
    rows = one(con, "SELECT count(*) FROM m.t")
    con.execute(f"ATTACH '{url}' AS r (TYPE merutable, READ_ONLY)")
    assert one(con, "SELECT count(*) FROM r.t") == rows >= 1100


def test_interrupts(connect, server, database, url, tmp_path):
    """What waits for a store that does not come ends when asked to."""
    con = connect(threads=2)
    attach(con, database, options=f", MIRROR '{url}', S3_ENDPOINT 'http://127.0.0.1:1', S3_ACCESS_KEY_ID 'a', "
                                  "S3_SECRET_ACCESS_KEY 'b', mirror_flush_secs 0")
    fill(con, 1000)
    took = interrupted(con, "FROM merutable_mirror_status('m', wait_secs := 600)", 0.2)
    assert took < 1, f"{took:.2f} s"
    assert one(con, "SELECT count(*) FROM m.t") == 1000
    started = time.monotonic()
    assert one(con, "SELECT state FROM merutable_mirror_status('m', wait_secs := 0.3)") != "idle"
    assert time.monotonic() - started < 5
    con.execute("DETACH m")  # neither does closing wait for it


class Proxy:
    """In front of the server; frozen, it takes everything and passes nothing on."""

    def __init__(self, endpoint):
        host, port = endpoint.removeprefix("http://").split(":")
        self.behind = (host, int(port))
        self.running = threading.Event()
        self.running.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(self.behind)
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        try:
            while data := a.recv(1 << 16):
                self.running.wait()
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.running.set()
        self.listener.close()


def test_interrupting_what_waits_for_a_store(connect, server, database, url):
    """A store that does not answer any more: each statement that waits for it ends when asked to, and goes on later."""
    con = connect()
    secret(con, server)
    attach(con, database, options=f", MIRROR '{url}'")
    fill(con, 100_000)
    settled(con)
    proxy = Proxy(server.endpoint)
    reader = connect(threads=2)
    reader.execute(f"CREATE SECRET s (TYPE merutable_s3, KEY_ID '{KEY}', SECRET '{SECRET}', ENDPOINT '{proxy.endpoint}')")
    try:
        reader.execute(f"ATTACH '{url}' AS r (TYPE merutable, READ_ONLY, refresh_interval_ms 0)")
        assert one(reader, "SELECT count(*) FROM r.t") == 100_000
        proxy.running.clear()
        for statement in ("SELECT count(*) FROM r.t",  # looks for newer versions
                          f"SELECT count(*) FROM merutable_scan('{url}/other')",
                          f"ATTACH '{url}/another' AS o (TYPE merutable, READ_ONLY)"):
            took = interrupted(reader, statement, 0.3)
            assert took < 2, f"{statement}: {took:.2f} s"
        proxy.running.set()
        assert one(reader, "SELECT count(*) FROM r.t") == 100_000
    finally:
        proxy.close()


def test_interrupting_a_clone(connect, database, tmp_path):
    con = connect(threads=2)
    attach(con, database)
    fill(con, 1_500_000)
    con.execute("CALL merutable_flush('m')")
    for after in (0.01, 0.1, 0.3):
        target = str(tmp_path / "copy")
        took = interrupted(con, f"CALL merutable_clone('m', {literal(target)})", after)
        assert took < 2, f"{took:.2f} s"
        assert not os.path.exists(target) and not [n for n in os.listdir(tmp_path) if n.startswith("copy")], os.listdir(tmp_path)
    con.execute(f"CALL merutable_clone('m', {literal(target)})")
    con.execute(f"ATTACH {literal(target)} AS c (TYPE merutable)")
    assert one(con, "SELECT count(*) FROM c.t") == 1_500_000


def test_events_and_secrets(connect, server, database, url):
    """duckdb_logs has the mirror's troubles, once an episode, and no secret."""
    con = connect()
    con.execute("CALL enable_logging('merutable', level := 'info')")
    attach(con, database, options=f", MIRROR '{url}', S3_ENDPOINT '{server.endpoint}', S3_ACCESS_KEY_ID '{KEY}', "
                                  "S3_SECRET_ACCESS_KEY 'mistaken-secret', MAX_LAG_ALERT_SECS 1, mirror_flush_secs 1")
    fill(con, 1000)
    deadline = time.monotonic() + 60
    wanted = {"mirror_error", "mirror_lag"}
    while True:
        events = con.execute("SELECT event, message, fields, log_level FROM duckdb_logs_parsed('merutable')").fetchall()
        if wanted <= {event for event, *_ in events}:
            break
        assert time.monotonic() < deadline, events
        time.sleep(0.05)
    assert [e for e, *_ in events].count("mirror_lag") == 1, events
    assert all(level == "WARNING" for event, _, _, level in events if event in wanted), events
    text = json.dumps(events) + str(con.execute("SELECT l::VARCHAR FROM duckdb_logs l").fetchall())
    text += str(con.execute("SELECT s::VARCHAR FROM merutable_mirror_status('m') s").fetchall())
    text += str(con.execute("FROM duckdb_databases()").fetchall()) + str(con.execute("FROM duckdb_settings()").fetchall())
    assert "mistaken-secret" not in text
    assert one(con, "SELECT count(*) FROM merutable_mirror_status('m') WHERE alert AND last_error LIKE '%merutable%'") == 1


def test_a_foreign_writer_stops_the_mirror(connect, server, tmp_path, url):
    """Two databases with one destination: the second stops, says so, and changes nothing."""
    con = connect()
    secret(con, server)
    attach(con, str(tmp_path / "first"), options=f", MIRROR '{url}'")
    fill(con, 1000)
    settled(con)
    con.execute("DETACH m")
    attach(con, str(tmp_path / "second"), options=f", MIRROR '{url}'")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY)")
    con.execute("INSERT INTO m.t FROM range(5)")
    con.execute("CALL merutable_flush('m')")
    state, error = con.execute("SELECT state, last_error FROM merutable_mirror_status('m', wait_secs := 60)").fetchone()
    assert state == "stopped" and url.rsplit("/", 1)[1] in error, (state, error)
    assert one(con, "SELECT count(*) FROM m.t") == 5
    con.execute(f"ATTACH '{url}' AS r (TYPE merutable, READ_ONLY)")
    assert one(con, "SELECT count(*) FROM r.t") == 1000


def test_a_primary_in_s3_is_fenced(connect, child, server, url):
    """Of two processes that write to one URL, the one that commits first goes on; the other fails and may attach anew."""
    con = connect()
    secret(con, server)
    con.execute(f"ATTACH '{url}' AS m (TYPE merutable, READ_WRITE)")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v INT)")
    con.execute("INSERT INTO m.t VALUES (1, 1)")
    other = child("""
con = connect()
con.execute(f"CREATE SECRET s (TYPE merutable_s3, KEY_ID '{sys.argv[2]}', SECRET '{sys.argv[3]}', ENDPOINT '{sys.argv[4]}')")
con.execute(f"ATTACH '{sys.argv[5]}' AS m (TYPE merutable, READ_WRITE)")
con.execute("INSERT INTO m.t VALUES (2, 2)")
say(con.execute("SELECT count(*) FROM m.t").fetchone()[0])
""", KEY, SECRET, server.endpoint, url)
    assert other.line() == "2"
    message = failing(con, "INSERT INTO m.t VALUES (3, 3)", "TransactionContext Error")
    assert url.rsplit("/", 1)[1] in message, message
    failing(con, "INSERT INTO m.t VALUES (4, 4)")
    con.execute("DETACH m")
    con.execute(f"ATTACH '{url}' AS m (TYPE merutable, READ_WRITE)")
    assert one(con, "SELECT count(*) FROM m.t") == 2
    con.execute("INSERT INTO m.t VALUES (3, 3)")
    assert one(con, "SELECT sum(v) FROM m.t") == 6
