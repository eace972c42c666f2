"""What a process holds over time: memory, descriptors, threads and goroutines.

MERUTABLE_FULL=1 runs the full counts and sizes; without it, less of the same.
"""

import os

import pytest

FULL = os.environ.get("MERUTABLE_FULL", "") == "1"

# In the children: what the process holds.
HELPERS = """
def status(word):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(word))
def held(con, name):
    goroutines, = con.execute(f"SELECT value FROM merutable_stats('{name}') WHERE name = 'runtime.goroutines'").fetchone()
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": status("Threads:"), "goroutines": goroutines,
            "MiB": status("VmRSS:") // 1024}
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc/self/status")
def test_a_table_larger_than_memory(child, database):
    """Loaded, and read whole, under memory_limit 512 MB: the process stays below 1 GiB. In full, 4 GB of values."""
    rows = 16_000_000 if FULL else 2_000_000
    process = child(HELPERS + """
rows = int(sys.argv[3])
con = connect(threads=2, memory_limit="512MB")
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id BIGINT PRIMARY KEY, a VARCHAR, b VARCHAR, c DOUBLE)")
con.execute(f"INSERT INTO m.t SELECT i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) || md5((i + 2)::VARCHAR), "
            f"sha256(i::VARCHAR), random() FROM range({rows}) r(i)")
con.execute("INSERT INTO m.t SELECT i * 1000, 'new', 'new', 1 FROM range(1000) r(i)")
say("loaded", status("VmHWM:") // 1024)
count, total = con.execute("SELECT count(*), sum(hash(t)) FROM m.t t").fetchone()
say("rows", count, total is not None)
say("bytes", con.execute("SELECT sum(bytes) FROM merutable_files('m')").fetchone()[0])
say("MiB", status("VmHWM:") // 1024)
""", database, rows)
    loaded = int(process.line(3000).split()[1])
    process.expect(f"rows {rows} True", 600)
    stored = int(process.line().split()[1])
    peak = int(process.line().split()[1])
    process.wait()
    assert stored > rows * 50, stored
    print(f"{rows} rows, {stored >> 20} MiB stored: {loaded} MiB after the load, {peak} MiB at most")
    assert loaded < 1024 and peak < 1024, f"{loaded} MiB after the load, {peak} MiB at most"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc/self/status")
def test_small_statements_stay_flat(child, database):
    """10,000 times an INSERT of one row and a SELECT."""
    rounds = 10_000 if FULL else 1_000
    process = child(HELPERS + """
rounds = int(sys.argv[3])
con = connect(threads=2)
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable, durability 'os')")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v VARCHAR)")
for i in range(rounds):
    if i == rounds // 4:
        before = held(con, "m")
    con.execute("INSERT INTO m.t VALUES (?, ?)", [i % 1000, f"value {i}"])
    assert con.execute("SELECT v FROM m.t WHERE id = ?", [i % 1000]).fetchone() == (f"value {i}",)
say(before)
say(held(con, "m"))
""", database, rounds)
    check_flat(process.line(1800), process.line())
    process.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc/self/status")
def test_attach_and_detach_stay_flat(child, database):
    """1,000 times ATTACH, write, read, DETACH, and a read by path."""
    rounds = 1_000 if FULL else 150
    process = child(HELPERS + """
rounds = int(sys.argv[3])
con = connect(threads=2)
def attach():
    con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable, gc_grace_secs 0, retain_versions 1)")
attach()
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v INT)")
con.execute("INSERT INTO m.t SELECT i, i FROM range(1000) r(i)")
con.execute("DETACH m")
for i in range(rounds):
    if i == rounds // 4:
        before = held(con, sys.argv[2])
    attach()
    con.execute("INSERT INTO m.t VALUES (?, ?)", [i, i + 1])
    assert con.execute("SELECT count(*) FROM m.t").fetchone() == (1000,)
    con.execute("DETACH m")
    assert con.execute(f"SELECT count(*) FROM merutable_scan('{sys.argv[2]}')").fetchone() == (1000,)
say(before)
say(held(con, sys.argv[2]))
""", database, rounds)
    check_flat(process.line(1800), process.line())
    process.wait()


def check_flat(before, after):
    before, after = eval(before), eval(after)  # noqa: S307  our own child's words
    bounds = {"descriptors": 4, "threads": 4, "goroutines": 4, "MiB": 64}
    for what, slack in bounds.items():
        assert after[what] <= before[what] + slack, f"{what}: before {before}, after {after}"


def test_the_budget_follows_duckdb(child, tmp_path):
    """A quarter of DuckDB's limit, for ATTACH, COPY and merutable_scan; the Go heap's limit follows."""
    process = child("""
def limits(target):
    value = "SELECT value::BIGINT FROM {}('" + target + "') WHERE name = '{}'"
    say(con.execute(value.format("merutable_options", "memory_limit")).fetchone()[0] >> 20,
        con.execute(value.format("merutable_stats", "runtime.heap_limit_bytes")).fetchone()[0] >> 20)
con = connect(threads=1, memory_limit="512MiB")
x, y, z = (sys.argv[2] + name for name in ("/x", "/y", "/z"))
con.execute(f"COPY (SELECT 1 AS id) TO '{x}' (FORMAT merutable)")
con.execute(f"SELECT count(*) FROM merutable_scan('{x}')")
limits(x)
con.execute("SET memory_limit = '64MiB'")
con.execute(f"ATTACH '{y}' AS y (TYPE merutable)")
limits("y")
con.execute("SET memory_limit = '512GiB'")
con.execute(f"ATTACH '{z}' AS z (TYPE merutable)")
limits("z")
""", tmp_path)
    budgets = [tuple(map(int, process.line().split())) for _ in range(3)]
    process.wait()
    assert [budget for budget, _ in budgets] == [128, 64, 1024], budgets
    heaps = [heap for _, heap in budgets]
    assert 0 < heaps[0] < 160 and heaps[0] < heaps[1] < heaps[2] < 1300, budgets
