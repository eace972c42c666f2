#!/usr/bin/env python3
"""Endurance: a COPY, then random upserts while scans and gets run, against a model, with bounds on what it may take.

    endurance.py [--rows 20000000] [--upserts 5000000] [--ext PATH] [--dir DIR] [--memory-limit 512MB]
                 [--option 'name value']

Everything happens in this process, so that its memory is one figure. A row follows from its key and from the upsert
statement that wrote it last, so that the model is a query. It prints what each phase took, and ends with exit code 1
where a bound is broken: a row that is not the model's, 1 GiB of resident memory, 1 s for an upsert statement, files of
a level that overlap, after compaction 1.3 times the disk of a fresh load.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

import duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BATCH = 2048  # rows of an upsert statement
CHUNK = 500_000  # keys that are verified at a time
MEMORY_BOUND, STALL_BOUND, DISK_BOUND = 1 << 30, 1.0, 1.3
ROW_BYTES = 8 + 4 + 16 + 8 + 64  # of a row's values
MIB = 1 << 20


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def row(key, statement):
    """The columns of the row that a statement (-1: the COPY) gave a key; both are SQL expressions."""
    word = f"({key})::VARCHAR || '/' || ({statement})::VARCHAR"
    return (f"{key} AS id, ({statement})::INTEGER AS b, substr(md5({word}), 1, 16) AS name, "
            f"({key} % 1000) / 8 + ({statement}) AS x, md5({word} || 'a') || md5({word} || 'b') AS payload")


def upserted_key(k, rows):
    """The key of the k-th upsert: what repeats and where is as good as random, and needs no memory."""
    return f"(({k} * {k} * 7919 + {k} * 15485863) % 2147483647 * 31 + {k}) % {rows}"


class Resident:
    """Samples the memory of the process."""

    def __init__(self):
        self.peaks, self.phase, self.done = {}, "start", threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self):
        page = os.sysconf("SC_PAGESIZE")
        while not self.done.wait(0.05):
            with open("/proc/self/statm") as file:
                now = int(file.read().split()[1]) * page
            self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), now)

    def high_water(self):
        """The kernel's own figure, which misses nothing."""
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def written():
    """Bytes that this process has written to files."""
    with open("/proc/self/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("wchar"))


def disk(path):
    total = 0
    for where, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except FileNotFoundError:  # removed meanwhile
                pass
    return total


class Endurance:
    def __init__(self, options, work):
        self.o, self.rows = options, options.rows
        self.statements = (options.upserts + BATCH - 1) // BATCH
        self.db = os.path.join(work, "t")
        self.fresh = os.path.join(work, "fresh")
        self.con = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 2})
        self.con.execute(f"LOAD {literal(os.path.abspath(options.ext))}")
        self.con.execute(f"SET memory_limit = {literal(options.memory_limit)}")
        self.con.execute(f"SET temp_directory = {literal(os.path.join(work, 'spill'))}")
        self.con.execute("SET enable_progress_bar = false")
        self.resident = Resident()
        self.broken = []
        self.committed = -1  # the last upsert statement that has returned
        self.upserting = threading.Event()

    # -- helpers ---------------------------------------------------------------------------------------------------

    def say(self, what, value):
        print(f"{what:<44} {value}", flush=True)

    def bound(self, what, ok, value):
        self.say(what, f"{value}{'' if ok else '   BROKEN'}")
        if not ok:
            self.broken.append(what)

    def phase(self, name, run):
        self.resident.phase = name
        started, before, cpu = time.monotonic(), written(), time.process_time()
        run()
        seconds = time.monotonic() - started
        self.say(name, f"{seconds:8.1f} s, {time.process_time() - cpu:.1f} s of CPU, "
                       f"{(written() - before) / MIB:,.0f} MiB written, "
                       f"peak {self.resident.peaks.get(name, 0) / MIB:,.0f} MiB resident")
        return seconds

    def attach(self):
        self.con.execute(f"ATTACH {literal(self.db)} AS m (TYPE merutable, gc_grace_secs 0"
                         + "".join(f", {o}" for o in self.o.option) + ")")

    def stats(self):
        return dict(self.con.execute("SELECT name, value FROM merutable_stats('m')").fetchall())

    def files(self, con):
        return con.execute("SELECT level, key_min::BIGINT, key_max::BIGINT, rows, deleted, bytes "
                           "FROM merutable_files('m') ORDER BY level, 2").fetchall()

    def check_levels(self, files):
        for a, b in zip(files, files[1:]):
            if a[0] == b[0] > 0 and a[2] >= b[1]:
                self.broken.append(f"level {a[0]}: keys {a[1]} to {a[2]} and {b[1]} to {b[2]}")

    # -- phases ----------------------------------------------------------------------------------------------------

    def copy(self):
        """The keys come in a random order: a step that has no factor in common with their number visits all."""
        step = next(p for p in (7368787, 15485863, 32452843) if self.rows % p)
        self.con.execute(f"COPY (SELECT {row(f'(i * {step}) % {self.rows}', '-1')} FROM range({self.rows}) r(i)) "
                         f"TO {literal(self.db)} (FORMAT merutable, TABLE_NAME 't', PRIMARY_KEY 'id')")

    def upserts(self):
        """Upsert statements, each timed, beside threads that scan and get and look at the levels."""
        self.times = []
        self.upserting.set()
        threads = [threading.Thread(target=self.guarded, args=(run,))
                   for run in (self.scan_thread, self.get_thread, self.level_thread)]
        for t in threads:
            t.start()
        try:
            for b in range(self.statements):
                last = min(self.o.upserts, (b + 1) * BATCH)
                key = upserted_key("k", self.rows)
                started = time.monotonic()
                self.con.execute(f"INSERT INTO m.t SELECT {row('id', b)} FROM "
                                 f"(SELECT {key} AS id FROM range({b * BATCH}, {last}) r(k))")
                self.times.append(time.monotonic() - started)
                self.committed = b
                if self.broken:
                    break
        finally:
            self.upserting.clear()
            for t in threads:
                t.join()

    def guarded(self, run):
        """An error in a thread ends the run."""
        con = self.con.cursor()
        try:
            while self.upserting.is_set() and not self.broken:
                run(con)
        except Exception as e:  # pylint: disable=broad-except
            self.broken.append(f"{run.__name__}: {e}")

    scans = gets = 0
    get_times = ()

    def scan_thread(self, con):
        """A scan of everything, whose sums do not change, and one of a range."""
        count, keys = con.execute("SELECT count(*), sum(id) FROM m.t").fetchone()
        if (count, keys) != (self.rows, self.rows * (self.rows - 1) // 2):
            self.broken.append(f"a scan found {count} rows, the sum of the keys is {keys}")
        low = random.randrange(self.rows)
        wrong = con.execute(f"SELECT count(*) FROM m.t WHERE id BETWEEN {low} AND {low + 20000} AND "
                            f"name <> substr(md5(id::VARCHAR || '/' || b::VARCHAR), 1, 16)").fetchone()[0]
        if wrong:
            self.broken.append(f"a scan found {wrong} torn rows")
        self.scans += 1

    def get_thread(self, con):
        """A row of a statement that has returned must be that statement's, or a later one's."""
        at_least = self.committed
        if at_least < 0:
            key = random.randrange(self.rows)
        else:
            k = min(self.o.upserts - 1, at_least * BATCH + random.randrange(BATCH))
            key = con.execute(f"SELECT {upserted_key(str(k) + '::BIGINT', self.rows)}").fetchone()[0]
        started = time.monotonic()
        found = con.execute(f"SELECT id, b, name FROM merutable_get({literal(self.db)}, {key})").fetchall()
        self.get_times += (time.monotonic() - started,)
        if len(found) != 1 or found[0][1] < at_least:
            self.broken.append(f"key {key}: {found} after statement {at_least}")
        self.gets += 1
        time.sleep(0.01)

    def level_thread(self, con):
        self.check_levels(self.files(con))
        time.sleep(0.2)

    def compact(self):
        self.con.execute("FROM merutable_compact('m')").fetchall()

    def verify(self):
        """Compares every row with the model, some keys at a time."""
        self.wrong, self.count, self.sums = 0, 0, [0, 0]
        key = upserted_key("k", self.rows)
        for low in range(0, self.rows, CHUNK):
            high = min(self.rows, low + CHUNK)
            last = (f"SELECT id, max(k // {BATCH}) AS b FROM (SELECT {key} AS id, k FROM range({self.o.upserts}) r(k)) "
                    f"WHERE id >= {low} AND id < {high} GROUP BY id")
            model = (f"SELECT {row('id', 'b')} FROM (SELECT r.id, coalesce(u.b, -1) AS b "
                     f"FROM range({low}, {high}) r(id) LEFT JOIN ({last}) u USING (id))")
            wrong, count, ours, theirs = self.con.execute(
                f"SELECT count(*) FILTER (t.id IS NULL OR m.id IS NULL OR t.b <> m.b OR t.name <> m.name "
                f"OR t.x <> m.x OR t.payload <> m.payload), count(t.id), "
                f"sum(hash(t.id, t.b, t.name, t.x, t.payload)::HUGEINT), "
                f"sum(hash(m.id, m.b, m.name, m.x, m.payload)::HUGEINT) "
                f"FROM (FROM m.t WHERE id >= {low} AND id < {high}) t FULL JOIN ({model}) m ON t.id = m.id").fetchone()
            self.wrong += wrong
            self.count += count
            self.sums = [self.sums[0] + (ours or 0), self.sums[1] + (theirs or 0)]

    def load_fresh(self):
        self.con.execute(f"COPY (SELECT * FROM m.t) TO {literal(self.fresh)} (FORMAT merutable, TABLE_NAME 't', "
                         f"PRIMARY_KEY 'id')")

    # -- results ---------------------------------------------------------------------------------------------------

    def report_upserts(self, seconds, bytes_written):
        times, gets = sorted(self.times), sorted(self.get_times)
        pick = lambda list, share: list[min(len(list) - 1, int(len(list) * share))] * 1e3 if list else 0
        self.say("upserts", f"{self.o.upserts / seconds:,.0f} rows/s; a statement of {BATCH:,} rows: median "
                            f"{pick(times, .5):.1f} ms, 99 % {pick(times, .99):.1f} ms, "
                            f"99.9 % {pick(times, .999):.1f} ms")
        self.bound("longest upsert statement", times[-1] < STALL_BOUND, f"{times[-1] * 1e3:,.0f} ms")
        self.say("load of the machine", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        self.say("beside them", f"{self.scans} full scans, {self.gets} gets: median {pick(gets, .5):.1f} ms, 99 % "
                                f"{pick(gets, .99):.1f} ms")
        self.say("write amplification of the upserts", f"{bytes_written / (self.o.upserts * ROW_BYTES):.1f} "
                                                       f"(bytes written / bytes of the rows' values)")

    def report_levels(self, what):
        files = self.files(self.con)
        self.check_levels(files)
        for level in sorted({f[0] for f in files}):
            mine = [f for f in files if f[0] == level]
            self.say(f"{what}: level {level}", f"{len(mine)} files, {sum(f[5] for f in mine) / MIB:,.0f} MiB, "
                                               f"{sum(f[3] for f in mine):,} rows, {sum(f[4] for f in mine):,} deleted")

    def report_verify(self, what):
        ok = self.wrong == 0 and self.count == self.rows and self.sums[0] == self.sums[1]
        self.bound(what, ok, f"{self.count:,} rows, {self.wrong:,} wrong, checksum {self.sums[0]:x}, the model's "
                             f"{self.sums[1]:x}")

    def run(self):
        self.phase("COPY", self.copy)
        self.attach()
        self.report_levels("after COPY")
        before = written()
        seconds = self.phase("upserts beside scans and gets", self.upserts)
        self.report_upserts(seconds, written() - before)
        self.say("disk", f"{disk(self.db) / MIB:,.0f} MiB")
        self.report_levels("after upserts")
        self.phase("verification", self.verify)
        self.report_verify("rows after upserts")
        self.phase("compaction of everything", self.compact)
        self.report_levels("after compaction")
        self.con.execute("FROM merutable_gc('m')").fetchall()
        self.phase("verification after compaction", self.verify)
        self.report_verify("rows after compaction")
        self.phase("fresh load", self.load_fresh)
        ours, fresh = disk(self.db), disk(self.fresh)
        self.bound("disk", ours <= DISK_BOUND * fresh, f"{ours / MIB:,.0f} MiB, {ours / fresh:.2f} times "
                                                       f"the {fresh / MIB:,.0f} MiB of a fresh load")
        for name, value in sorted(self.stats().items()):
            if "stall" in name or "compact" in name or "slow" in name:
                self.say(f"  {name}", f"{value:,}")
        self.con.execute("DETACH m")
        self.attach()
        self.phase("verification after re-attach", self.verify)
        self.report_verify("rows after re-attach")
        peak = self.resident.high_water()
        self.bound("peak memory", peak < MEMORY_BOUND, f"{peak / MIB:,.0f} MiB resident")
        self.bound("levels, rows and threads", not self.broken, "; ".join(self.broken) or "good")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", default=os.path.join(ROOT, "build/release/extension/merutable/"
                                                               "merutable.duckdb_extension"))
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--upserts", type=int, default=5_000_000)
    arguments.add_argument("--dir", help="where the databases are made (default: the system's temporary directory)")
    arguments.add_argument("--memory-limit", default="512MB", help="DuckDB's; the engine's own follows from it")
    arguments.add_argument("--option", action="append", default=[], help="of ATTACH, as in 'l0_files 8'")
    options = arguments.parse_args()
    if not os.path.exists(options.ext):
        arguments.error(f"{options.ext} is missing: build it first")
    work = tempfile.mkdtemp(prefix="merutable-endurance-", dir=options.dir)
    try:
        endurance = Endurance(options, work)
        endurance.run()
        endurance.con.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if endurance.broken else 0)


if __name__ == "__main__":
    main()
