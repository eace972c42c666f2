"""The other hosts: DuckDB's shell, Node, and a Go program that brings a Go runtime of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from support import literal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def shell():
    """DuckDB's command line program, from the package duckdb-cli (whose script is only a wrapper)."""
    import duckdb_cli

    return os.path.join(os.path.dirname(duckdb_cli.__file__), "duckdb")


def run(command, **options):
    options.setdefault("timeout", 300)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def test_shell(extension, database):
    script = f"""
.mode csv
.headers off
LOAD {literal(extension)};
SET enable_progress_bar = false;
ATTACH {literal(database)} AS m (TYPE merutable);
CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR DEFAULT 'none');
INSERT INTO m.t VALUES (1, 'a'), (2, 'b');
INSERT INTO m.t(id) VALUES (3);
INSERT INTO m.t VALUES (1, 'again');
SELECT * FROM m.t ORDER BY id;
DELETE FROM m.t WHERE id = 2;
SELECT 'count', count(*) FROM m.t;
CALL merutable_flush('m');
SELECT 'scan', count(*) FROM merutable_scan({literal(database)});
SELECT 'get', v FROM merutable_get({literal(database)}, 3);
COPY (SELECT i::INT AS id, 'copy' AS v FROM range(100, 200) r(i)) TO {literal(database)} (FORMAT merutable);
SELECT 'copied', count(*) FROM m.t;
SELECT * FROM m.nosuch;
SELECT 'alive', 42;
"""
    done = subprocess.run([shell(), "-unsigned", "-no-init"], input=script, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    lines = done.stdout.replace("\r", "").split("\n")
    for wanted in ("1,again", "2,b", "3,none", "count,2", "scan,2", "get,none", "copied,102", "alive,42"):
        assert wanted in lines, (wanted, done.stdout, done.stderr)
    assert "Catalog Error" in done.stderr and "INTERNAL" not in done.stderr, done.stderr


def test_shell_is_interrupted_by_ctrl_c(extension, database):
    # Without -interactive the shell itself ends at Ctrl-C.
    process = subprocess.Popen([shell(), "-unsigned", "-no-init", "-interactive", "-list", "-noheader"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def read_until(wanted):
        said = []
        while not said or wanted not in said[-1]:
            line = process.stdout.readline()
            assert line, f"the shell ended: {said}"
            said.append(line)
        return said

    try:
        process.stdin.write(f"""LOAD {literal(extension)};
SET enable_progress_bar = false;
ATTACH {literal(database)} AS m (TYPE merutable);
CREATE TABLE m.t(id INT PRIMARY KEY);
INSERT INTO m.t SELECT i FROM range(1000) r(i);
SELECT 'star' || 'ted';
INSERT INTO m.t SELECT i FROM range(200000000) r(i);
SELECT 'rows', count(*) FROM m.t;
""")
        process.stdin.flush()
        read_until("started")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        said = read_until("rows|")
        assert time.monotonic() - interrupted < 3, said
        assert "rows|1000\n" in said[-1], said
        process.stdin.close()
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()


def test_shell_kill_9(extension, database):
    process = subprocess.Popen([shell(), "-unsigned", "-no-init"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    process.stdin.write(f"""LOAD {literal(extension)};
.headers off
ATTACH {literal(database)} AS m (TYPE merutable);
CREATE TABLE m.t(id INT PRIMARY KEY);
INSERT INTO m.t SELECT i FROM range(1000) r(i);
SELECT 'written';
""")
    process.stdin.flush()
    while "written" not in process.stdout.readline():
        assert process.poll() is None
    process.kill()
    process.wait()
    out = run([shell(), "-unsigned", "-no-init", "-csv", "-noheader", "-c",
               f"LOAD {literal(extension)}; ATTACH {literal(database)} AS m (TYPE merutable); "
               "SELECT count(*) FROM m.t"])
    assert out.split() == ["1000"]


def node_modules():
    """The folder with the Node packages of the committed lock file, scripts/node/package-lock.json."""
    target = os.path.join(ROOT, "build", "node")
    if not os.path.isdir(os.path.join(target, "node_modules", "@duckdb", "node-api")):
        run(["sh", os.path.join(ROOT, "scripts", "fetch_node.sh")], timeout=600)
    return target


def test_node(extension, tmp_path):
    target = node_modules()
    script = shutil.copy(os.path.join(HERE, "host.mjs"), os.path.join(target, "duckdb_host.mjs"))
    out = run(["node", script, extension, str(tmp_path / "db")])
    assert out.strip().split("\n")[-1] == "node: all checks passed", out


@pytest.fixture(scope="session")
def go_host(tmp_path_factory):
    """The Go program, built once; DuckDB inside it comes from the prebuilt static libraries."""
    binary = os.path.join(ROOT, "build", "gohost", "gohost")
    os.makedirs(os.path.dirname(binary), exist_ok=True)
    flags = os.environ.get("GOFLAGS") or "-trimpath -buildvcs=false -buildmode=pie"  # those of the build: one cache
    environment = dict(os.environ, GOFLAGS=flags, GOWORK="off")
    run(["go", "build", "-o", binary, "."], cwd=os.path.join(HERE, "gohost"), env=environment, timeout=1200)
    return binary


def test_go_with_two_runtimes(extension, go_host, tmp_path):
    out = run([go_host, "surface", extension, str(tmp_path / "db")])
    assert out.strip().split("\n")[-1] == "go: all checks passed", out


def test_go_collector_can_preempt_tight_loops(extension, go_host, tmp_path):
    """The host's garbage collector stops a loop without calls by a signal, which our runtime must not take away."""
    out = run([go_host, "preempt", extension, str(tmp_path / "db")], timeout=120)
    assert out.strip().split("\n")[-1] == "go: all checks passed", out


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
