#!/usr/bin/env python3
"""SQL benchmark: a merutable against read_parquet and native tables of the same live rows, in one process and run.

    sql_scan.py [--ext PATH] [--rows 1000000] [--runs 9] [--threads N] [--json FILE]

Only ratios count: both sides take turns, and the medians are compared. The table is that of docs: a BIGINT key, a name of
16 bytes, a DOUBLE and a payload of 100 bytes. Targets are those of the design; `over` marks a ratio above its target.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time

import duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BATCH = 2048  # rows of an upsert statement
OVERWRITTEN = 0.3  # share of the rows that the second phase writes again


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


class Bench:
    def __init__(self, options, work):
        self.rows, self.runs = options.rows, options.runs
        config = {"allow_unsigned_extensions": "true"}
        if options.threads:
            config["threads"] = options.threads
        self.con = duckdb.connect(os.path.join(work, "native.duckdb"), config=config)
        self.con.execute(f"LOAD {literal(os.path.abspath(options.ext))}")
        self.con.execute("SET enable_progress_bar = false")
        self.work = work
        self.db = os.path.join(work, "t")
        self.results = []

    # -- measuring -------------------------------------------------------------------------------------------------

    def time(self, run):
        started = time.perf_counter()
        value = run()
        return time.perf_counter() - started, value

    def versus(self, what, ours, theirs, target, runs=None, check=True):
        """Runs two callables in turn and records the medians. Their values must be equal."""
        times = ([], [])
        for i in range((runs or self.runs) + 1):
            seconds, mine = self.time(ours)
            other_seconds, other = self.time(theirs)
            if check and mine != other:
                sys.exit(f"sql_scan: {what}: {mine} instead of {other}")
            if i > 0 or runs == 1:  # the first turn warms up
                times[0].append(seconds)
                times[1].append(other_seconds)
        self.record(what, statistics.median(times[0]), statistics.median(times[1]), target)

    def record(self, what, ours, theirs, target):
        ratio = ours / theirs
        self.results.append({"what": what, "ours_ms": ours * 1e3, "other_ms": theirs * 1e3, "ratio": ratio,
                             "target": target})
        over = "  over" if target and ratio > target else ""
        wanted = f"{target:7.2f}" if target else f"{'':7}"
        print(f"{what:<58} {ours * 1e3:10.2f} {theirs * 1e3:10.2f} {ratio:8.2f} {wanted}{over}", flush=True)

    def query(self, sql, parameters=None):
        return lambda: self.con.execute(sql, parameters).fetchall()

    # -- phases ----------------------------------------------------------------------------------------------------

    def source(self, first=0, last=None, salt=""):
        return (f"SELECT i AS id, substr(md5(i::VARCHAR || '{salt}'), 1, 16) AS name, (i % 1000) / 8 AS x, "
                f"md5(i::VARCHAR || 'a{salt}') || md5(i::VARCHAR || 'b{salt}') || md5(i::VARCHAR || 'c{salt}') || 'pppp' "
                f"AS payload FROM range({first}, {self.rows if last is None else last}) r(i)")

    def load(self):
        self.con.execute(f"CREATE TEMP TABLE source AS {self.source()}")
        self.plain = os.path.join(self.work, "plain.parquet")

        def copy():
            shutil.rmtree(self.db, ignore_errors=True)
            self.con.execute(f"COPY source TO {literal(self.db)} (FORMAT merutable, TABLE_NAME 't', PRIMARY_KEY 'id')")

        def parquet():
            self.con.execute(f"COPY source TO {literal(self.plain)} (FORMAT parquet, COMPRESSION zstd)")

        self.versus(f"COPY of {self.rows:,} rows / COPY TO Parquet (zstd)", copy, parquet, 1.4, runs=1)
        self.con.execute("CREATE TABLE native(id BIGINT PRIMARY KEY, name VARCHAR, x DOUBLE, payload VARCHAR)")
        self.con.execute("INSERT INTO native SELECT * FROM source")
        self.con.execute("DROP TABLE source")
        self.con.execute(f"ATTACH {literal(self.db)} AS m (TYPE merutable)")

    def scans(self, state, target):
        low, high = self.rows // 2, self.rows // 2 + self.rows // 100
        for what, text in (
                ("count(*)", "SELECT count(*) FROM {}"),
                ("sum", "SELECT sum(x) FROM {}"),
                ("filter", "SELECT count(*), sum(id) FROM {} WHERE name LIKE 'a%' AND x > 50"),
                ("1 % key range", f"SELECT count(*), sum(x) FROM {{}} WHERE id BETWEEN {low} AND {high}"),
                ("SELECT *", "SELECT * FROM {}")):
            ours, theirs = text.format("m.t"), text.format(f"read_parquet({literal(self.plain)})")
            if what == "SELECT *":
                self.versus(f"{what} ({state})", lambda: self.con.execute(ours).to_arrow_table().num_rows,
                            lambda: self.con.execute(theirs).to_arrow_table().num_rows, target)
            else:
                self.versus(f"{what} ({state})", self.query(ours), self.query(theirs), target)

    def point_reads(self, state):
        random.seed(1)
        keys = [random.randrange(self.rows) for _ in range(300)]
        mine, native, get = [], [], []
        for key in keys:
            a, left = self.time(self.query("SELECT * FROM m.t WHERE id = ?", [key]))
            b, right = self.time(self.query("SELECT * FROM native WHERE id = ?", [key]))
            c, third = self.time(self.query(f"SELECT * FROM merutable_get({literal(self.db)}, ?)", [key]))
            if not left == right == third:
                sys.exit(f"sql_scan: key {key}: {left}, {third} instead of {right}")
            mine.append(a)
            native.append(b)
            get.append(c)
        base = statistics.median(native[50:])
        self.record(f"one key, SELECT … WHERE id = ? / native ({state})", statistics.median(mine[50:]), base, 1.5)
        self.record(f"one key, merutable_get / native ({state})", statistics.median(get[50:]), base, 1.5)

    def upserts(self):
        """Random overwrites in statements of BATCH rows; the native table gets a share of them, for the ratio."""
        random.seed(2)
        count = int(self.rows * OVERWRITTEN) // BATCH or 1
        ours, native, native_rounds = 0.0, 0.0, max(1, count // 10)
        for i in range(count):
            step = self.rows // BATCH or 1
            first = random.randrange(step)
            rows = (f"SELECT id, substr(md5(id::VARCHAR || {i}), 1, 16), id % 77 + 0.25, "
                    f"repeat(substr(md5((id + {i})::VARCHAR), 1, 25), 4) "
                    f"FROM (SELECT r.i * {step} + {first} AS id FROM range({BATCH}) r(i)) WHERE id < {self.rows}")
            seconds, _ = self.time(lambda: self.con.execute(f"INSERT INTO m.t {rows}"))
            ours += seconds
            seconds, _ = self.time(lambda: self.con.execute(f"INSERT OR REPLACE INTO native {rows}"))
            native += seconds if i < native_rounds else 0
        self.record(f"upsert statement of {BATCH:,} rows / native INSERT OR REPLACE", ours / count,
                    native / native_rounds, 0.02)

    def live_rows(self):
        """Writes the rows that are live now, from the native table, as the file that scans are compared with."""
        self.con.execute(f"COPY (SELECT * FROM native ORDER BY id) TO {literal(self.plain)} "
                         "(FORMAT parquet, COMPRESSION zstd)")

    def run(self):
        print(f"{'work, median ms':<58} {'ours':>10} {'other':>10} {'ratio':>8} {'target':>7}")
        self.load()
        self.scans("copied", 1.1)
        self.point_reads("copied")
        self.upserts()
        self.live_rows()
        self.scans("30 % overwritten, in memory", 1.3)
        self.point_reads("30 % overwritten, in memory")
        seconds, _ = self.time(lambda: self.con.execute("CALL merutable_flush('m')").fetchall())
        print(f"{'merutable_flush of the overwritten rows':<58} {seconds * 1e3:10.2f}")
        self.scans("30 % overwritten, flushed", 1.3)
        self.point_reads("30 % overwritten, flushed")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of the process (DuckDB, both tables, ours): {peak:,.0f} MiB")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", default=os.path.join(ROOT, "build/release/extension/merutable/"
                                                               "merutable.duckdb_extension"))
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=9)
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--json", help="write the results there as well")
    options = arguments.parse_args()
    if not os.path.exists(options.ext):
        arguments.error(f"{options.ext} is missing: build it first")
    work = tempfile.mkdtemp(prefix="merutable-bench-")
    try:
        bench = Bench(options, work)
        bench.run()
        bench.con.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rows": options.rows, "duckdb": duckdb.__version__, "results": bench.results}, file, indent=1)


if __name__ == "__main__":
    main()
