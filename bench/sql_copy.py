#!/usr/bin/env python3
"""Bulk load benchmark: COPY and INSERT … SELECT into a merutable against DuckDB's own COPY TO Parquet of the same rows.

    sql_copy.py [--ext PATH] [--rows 1000000] [--narrow-rows 10000000] [--runs 3] [--threads N] [--dir DIR]

Only ratios count: both sides take turns. Each turn is a process of its own, so that its processor time and its peak
memory are its own; DuckDB's share of both, which is to make the rows, is in both. Processor time counts most, where others
use the machine too. The table is that of docs: a BIGINT key, a name of 16 bytes, a DOUBLE and a payload of 100 bytes; the
narrow one has a key, a BIGINT and a DOUBLE.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = 1.4

SOURCES = {
    "ascending": "SELECT i AS id, substr(md5(i::VARCHAR), 1, 16) AS name, (i % 1000) / 8 AS x, md5(i::VARCHAR || 'a') || "
                 "md5(i::VARCHAR || 'b') || md5(i::VARCHAR || 'c') || 'pppp' AS payload FROM range({rows}) r(i)",
    "random": "SELECT * FROM ({ascending}) ORDER BY hash(id)",
    "narrow": "SELECT (hash(i) >> 1)::BIGINT AS id, i AS n, (i % 1000) / 8 AS x FROM range({rows}) r(i)",
}


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def statement(what, work):
    target = os.path.join(work, "target")
    if what == "parquet":
        return [], f"COPY s.source TO {literal(target)} (FORMAT parquet, COMPRESSION zstd)"
    if what == "copy":
        return [], f"COPY s.source TO {literal(target)} (FORMAT merutable, TABLE_NAME 't', PRIMARY_KEY 'id')"
    columns = duckdb.connect(os.path.join(work, "source.duckdb"), read_only=True).execute("DESCRIBE source").fetchall()
    table = ", ".join(f"{c[0]} {c[1]}" for c in columns)
    return [f"ATTACH {literal(target)} AS m (TYPE merutable)", f"CREATE TABLE m.t({table}, PRIMARY KEY (id))"], \
        "INSERT INTO m.t SELECT * FROM s.source"


def turn(options):
    """One statement, in this process; prints what it took."""
    config = {"allow_unsigned_extensions": "true"}
    if options.threads:
        config["threads"] = options.threads
    con = duckdb.connect(config=config)
    con.execute(f"LOAD {literal(os.path.abspath(options.ext))}")
    con.execute("SET enable_progress_bar = false")
    con.execute(f"ATTACH {literal(os.path.join(options.dir, 'source.duckdb'))} AS s (READ_ONLY)")
    before, sql = statement(options.turn, options.dir)
    for prepare in before:
        con.execute(prepare)
    cpu = time.process_time()
    started = time.perf_counter()
    rows = con.execute(sql).fetchone()[0]
    print(json.dumps({"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu, "rows": rows,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(path) for f in files)


def measure(options, work, what):
    target = os.path.join(work, "target")
    shutil.rmtree(target, ignore_errors=True)
    if os.path.exists(target):
        os.remove(target)
    command = [sys.executable, __file__, "--ext", options.ext, "--dir", work, "--turn", what]
    if options.threads:
        command += ["--threads", str(options.threads)]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    result["bytes"] = size_of(target)
    return result


def compare(options, work, order, rows, runs):
    source = SOURCES[order].format(rows=rows, ascending=SOURCES["ascending"].format(rows=rows))
    path = os.path.join(work, "source.duckdb")
    if os.path.exists(path):
        os.remove(path)
    con = duckdb.connect(path)
    con.execute(f"CREATE TABLE source AS {source}")
    con.close()
    results = {"parquet": [], "copy": [], "insert": []}
    for _ in range(runs):
        for what, list_ in results.items():
            list_.append(measure(options, work, what))
            if list_[-1]["rows"] != rows:
                sys.exit(f"sql_copy: {what} wrote {list_[-1]['rows']} rows of {rows}")
    other = {k: min(r[k] for r in results["parquet"]) for k in ("wall", "cpu", "peak", "bytes")}
    for what, list_ in results.items():
        best = {k: min(r[k] for r in list_) for k in other}
        peak = max(r["peak"] for r in list_)
        over = "  over" if what != "parquet" and best["cpu"] > TARGET * other["cpu"] else ""
        print(f"{rows:>11,} {order:<10} {what:<8} {best['cpu']:7.2f} {best['cpu'] / other['cpu']:6.2f} {best['wall']:7.2f} "
              f"{best['wall'] / other['wall']:6.2f} {peak:9,.0f} {best['bytes'] / 1e6:8.1f}{over}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", default=os.path.join(ROOT, "build/release/extension/merutable/"
                                                               "merutable.duckdb_extension"))
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--narrow-rows", type=int, default=10_000_000)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--dir", help="where to work; the default is a temporary directory")
    arguments.add_argument("--turn", choices=["parquet", "copy", "insert"], help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.turn:
        turn(options)
        return
    if not os.path.exists(options.ext):
        arguments.error(f"{options.ext} is missing: build it first")
    work = tempfile.mkdtemp(prefix="merutable-bench-", dir=options.dir)
    print(f"{'rows':>11} {'keys':<10} {'work':<8} {'cpu s':>7} {'ratio':>6} {'wall s':>7} {'ratio':>6} {'peak MiB':>9} "
          f"{'MB':>8}   (ratios to parquet; the target is {TARGET})")
    try:
        for order in ("ascending", "random"):
            compare(options, work, order, options.rows, options.runs)
        if options.narrow_rows:
            compare(options, work, "narrow", options.narrow_rows, 1)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
