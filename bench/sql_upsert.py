#!/usr/bin/env python3
"""Upserts in SQL, into a merutable and into a native table with the same key, one after the other in one process.

    sql_upsert.py [--ext PATH] [--rows 1000000] [--batch 2048] [--batches 40] [--bulk 1000000] [--dir DIR]

Only ratios count. The table is that of docs: a BIGINT key, a name of 16 bytes, a DOUBLE and a payload of 100 bytes, with
--rows rows. Then, half of the keys new and all in random order: batches of --batch rows by INSERT (natively INSERT OR
REPLACE) and by ON CONFLICT DO UPDATE; --bulk rows in one statement by ON CONFLICT DO UPDATE and DO NOTHING; and --bulk new
rows where a key that is there is an error (ATTACH … (ON_DUPLICATE 'error'), natively INSERT).
"""

import argparse
import os
import resource
import shutil
import tempfile
import time

import duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR, x DOUBLE, payload VARCHAR"
SET = "name = excluded.name, x = excluded.x + t.x, payload = excluded.payload"


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def rows(count, seed, where="TRUE"):
    """A query of rows in random order, the keys of which are even below twice --rows where they are old."""
    return ("SELECT id, substr(md5(id::VARCHAR), 1, 16) AS name, (id % 1000) / 8 AS x, repeat('payload ', 12) || "
            f"(id % 10000) AS payload FROM (SELECT (hash(i + {seed}) % {2 * count['rows']})::BIGINT AS id FROM "
            f"range({count['n']}) r(i)) WHERE {where}")


class Side:
    def __init__(self, con, name, plain):
        self.con, self.name, self.plain = con, name, plain

    def timed(self, sql):
        started = time.perf_counter()
        self.con.execute(sql.format(t=f"{self.name}.t", insert=self.plain)).fetchall()
        return time.perf_counter() - started


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ext", default=os.path.join(
        ROOT, "build/release/extension/merutable/merutable.duckdb_extension"))
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--batch", type=int, default=2048)
    arguments.add_argument("--batches", type=int, default=40)
    arguments.add_argument("--bulk", type=int, default=1_000_000)
    arguments.add_argument("--dir")
    options = arguments.parse_args()
    work = tempfile.mkdtemp(dir=options.dir)
    try:
        run(options, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(options, work):
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.execute(f"LOAD {literal(os.path.abspath(options.ext))}")
    con.execute("SET enable_progress_bar = false")
    con.execute(f"ATTACH {literal(os.path.join(work, 'ours'))} AS m (TYPE merutable)")
    con.execute(f"ATTACH {literal(os.path.join(work, 'native.duckdb'))} AS n")
    sides = [Side(con, "m", "INSERT"), Side(con, "n", "INSERT OR REPLACE")]
    for side in sides:
        side.timed("CREATE TABLE {t}(" + COLUMNS + ")")
        side.timed("INSERT INTO {t} SELECT i * 2, substr(md5(i::VARCHAR), 1, 16), (i % 1000) / 8, repeat('payload ', 12) || "
                   f"(i % 10000) FROM range({options.rows}) r(i)")
    con.execute("CALL merutable_flush('m')").fetchall()
    con.execute("CHECKPOINT n")

    def batches(prefix, suffix, seed):
        took = [0.0, 0.0]
        for i in range(options.batches):
            con.execute("CREATE OR REPLACE TEMP TABLE batch AS " +
                        rows({"rows": options.rows, "n": options.batch}, seed + i * options.batch))
            for at, side in enumerate(sides):
                took[at] += side.timed(f"{prefix} INTO {{t}} AS t SELECT * FROM batch{suffix}")
        report(f"{suffix.strip()[:21] or 'INSERT'} of {options.batch}", options.batches * options.batch, took)

    def report(what, count, took):
        print(f"{what:44} ours {count / took[0]:11,.0f} rows/s  native {count / took[1]:11,.0f} rows/s  "
              f"ratio {took[1] / took[0]:6.2f}", flush=True)

    batches("{insert}", "", 10_000_000)
    batches("INSERT", f" ON CONFLICT DO UPDATE SET {SET}", 20_000_000)
    con.execute("CREATE OR REPLACE TEMP TABLE bulk AS " + rows({"rows": options.rows, "n": options.bulk}, 30_000_000))
    for suffix in [f" ON CONFLICT DO UPDATE SET {SET}", " ON CONFLICT DO NOTHING"]:
        took = [side.timed("INSERT INTO {t} AS t SELECT * FROM bulk" + suffix) for side in sides]
        report(f"one{suffix[:24]}", options.bulk, took)
    con.execute("CREATE OR REPLACE TEMP TABLE fresh AS SELECT (hash(i) % 1000000000)::BIGINT * 1000000 + i + "
                f"{4 * options.rows} AS id, 'n' AS name, 1.0 AS x, 'p' AS payload FROM range({options.bulk}) r(i)")
    con.execute("DETACH m")
    con.execute(f"ATTACH {literal(os.path.join(work, 'ours'))} AS m (TYPE merutable, ON_DUPLICATE 'error')")
    took = [side.timed("INSERT INTO {t} SELECT * FROM fresh") for side in sides]
    report("one INSERT of new keys, duplicates an error", options.bulk, took)
    counts = [con.execute(f"SELECT count(*), sum(id), sum(x) FROM {side.name}.t").fetchone() for side in sides]
    print("the tables agree" if counts[0] == counts[1] else f"THE TABLES DIFFER: {counts}")
    print(f"peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
