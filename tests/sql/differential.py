#!/usr/bin/env python3
"""Random SQL on a merutable and on a native DuckDB table side by side: the same script, the same results.

    differential.py --ext PATH [--seed N] [--seconds 60] [--histories N] [--steps 60]

Each history makes up a schema, writes and deletes rows, moves them between placements (memory, files, compacted files, attached again,
killed and recovered) and compares queries of every filter kind. A failure prints its seed and the statements so far:
`--seed N --histories 1` runs that history again.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from runner import compare  # noqa: E402
from runner.process import WorkerDied, Zygote  # noqa: E402
from runner.session import Session, SessionError  # noqa: E402


class Difference(Exception):
    """The two tables do not agree."""


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def integers(bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def make(rng):
        value = rng.choice([low, high, 0, 1, low + 1, high - 1, rng.randint(low, high), rng.randint(max(low, -20), 20)])
        return quote(str(max(low, min(high, value))))

    return make


def text(rng):
    kinds = [lambda: "", lambda: rng.choice("abc"), lambda: rng.choice(["ab", "a", "b"]) * rng.randint(1, 8),
             lambda: "naïve ✓ " + str(rng.randint(0, 30)), lambda: "x" * rng.choice([11, 12, 13, 40]) + rng.choice("yz"),
             lambda: "🦆" * rng.randint(1, 5), lambda: "long" * rng.randint(100, 300) + str(rng.randint(0, 9))]
    made = quote(rng.choice(kinds)())
    return f"({made} || chr(0) || {quote(rng.choice('ab'))})" if rng.random() < 0.05 else made


def blob(rng):
    return quote("".join(f"\\x{rng.choice([0, 1, 97, 254, 255]):02X}" for _ in range(rng.choice([0, 1, 2, 3, 14])))) \
        + "::BLOB"


def floating(name):
    def make(rng):
        return quote(rng.choice(["0", "-0", "1.5", "-1.5", "nan", "inf", "-inf", "3.0e38", "-3.0e38", "1e-30",
                                 str(rng.randint(-50, 50) / 4)])) + f"::{name}"

    return make


def decimals(width, scale):
    def make(rng):
        digits = rng.choice([0, 1, 10**width - 1, rng.randrange(10**width), rng.randrange(100)])
        sign = rng.choice(["", "-"])
        digits = str(digits).rjust(scale + 1, "0")
        return quote(sign + digits[:len(digits) - scale] + ("." + digits[len(digits) - scale:] if scale else ""))

    return make


def moments(name, infinities=True, fraction=""):
    def make(rng):
        if infinities and rng.random() < 0.1:
            return quote(rng.choice(["infinity", "-infinity"])) + f"::{name}"
        year = rng.choice([1969, 1970, 2000, 1700, 2200, rng.randint(1700, 2250)])
        day = f"{year:04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        clock = f" {rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
        sub = "." + str(rng.randrange(10**len(fraction))).rjust(len(fraction), "0") if fraction else ""
        return quote(day + ("" if name == "DATE" else clock + sub)) + f"::{name}"

    return make


TYPES = {
    "BOOLEAN": lambda rng: rng.choice(["true", "false"]),
    "TINYINT": integers(8, True), "SMALLINT": integers(16, True), "INTEGER": integers(32, True),
    "BIGINT": integers(64, True), "HUGEINT": integers(128, True),
    "UTINYINT": integers(8, False), "USMALLINT": integers(16, False), "UINTEGER": integers(32, False),
    "UBIGINT": integers(64, False), "UHUGEINT": integers(128, False),
    "FLOAT": floating("FLOAT"), "DOUBLE": floating("DOUBLE"),
    "DECIMAL(4,1)": decimals(4, 1), "DECIMAL(9,0)": decimals(9, 0), "DECIMAL(18,6)": decimals(18, 6),
    "DECIMAL(38,10)": decimals(38, 10),
    "VARCHAR": text, "BLOB": blob,
    "DATE": moments("DATE"), "TIMESTAMP": moments("TIMESTAMP", fraction="000000"),
    "TIMESTAMP_S": moments("TIMESTAMP_S"), "TIMESTAMP_MS": moments("TIMESTAMP_MS", fraction="000"),
    "TIMESTAMP_NS": moments("TIMESTAMP_NS", fraction="000000000"),
    "TIMESTAMPTZ": moments("TIMESTAMPTZ", fraction="000000"),
    "TIME": lambda rng: quote(f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:00.{rng.randrange(10**6):06d}"),
    "UUID": lambda rng: f"md5('{rng.randint(0, 40)}')::UUID",
    "ENUM('z', 'a', 'm')": lambda rng: quote(rng.choice("zam")),
    "BIT": lambda rng: quote("".join(rng.choice("01") for _ in range(rng.randint(1, 17)))) + "::BIT",
    "INTERVAL": lambda rng: f"INTERVAL '{rng.randint(-3, 3)} months {rng.randint(-40, 40)} days "
                            f"{rng.randint(-9, 9)} microseconds'",
}
# Native tables have no index on these.
NO_KEY = {"INTERVAL"}


class History:
    def __init__(self, seed, session, steps):
        self.rng = random.Random(seed)
        self.session = session
        self.steps = steps
        self.log = []

    def run(self):
        rng = self.rng
        self.keys = [(f"k{i}", rng.choice([t for t in TYPES if t not in NO_KEY])) for i in range(rng.randint(1, 3))]
        self.values = [(f"v{i}", rng.choice(list(TYPES))) for i in range(rng.randint(0, 6))]
        self.columns = self.keys + self.values
        rng.shuffle(self.columns)
        order = [name for name, _ in self.keys]
        rng.shuffle(order)
        columns = ", ".join(f"{n} {t}" for n, t in self.columns) + f", PRIMARY KEY ({', '.join(order)})"
        self.order = order
        self.must("ATTACH 'db' AS m (TYPE merutable)")
        self.must(f"CREATE TABLE m.t({columns})")
        self.must(f"CREATE TABLE memory.t({columns})")
        for _ in range(self.steps):
            rng.choices([self.insert, self.bulk, self.delete, self.place, self.query, self.bad],
                        [5, 1, 2, 2, 8, 0.5])[0]()
        self.compare("SELECT * FROM {t}")

    # -- statements ------------------------------------------------------------------------------------------------

    def must(self, sql):
        self.log.append(sql)
        result = self.session.run("", sql)
        if result.error is not None:
            raise Difference(f"{sql}\n  failed: {result.error}")
        return result

    def literal(self, kind, null=0.15):
        return "NULL" if self.rng.random() < null else TYPES[kind](self.rng)

    def row(self):
        names = {name for name, _ in self.keys}
        return "(" + ", ".join(self.literal(t, 0 if n in names else 0.15) for n, t in self.columns) + ")"

    def both(self, sql):
        """The same write to both; their outcome must be the same."""
        outcome = []
        for table in ("m.t", "memory.t"):
            statement = sql.replace("{t}", table)
            if table == "memory.t" and statement.startswith("INSERT"):
                statement = statement.replace("INSERT", "INSERT OR REPLACE", 1)
            self.log.append(statement)
            outcome.append(self.session.run("", statement))
        mine, native = outcome
        if (mine.error is None) != (native.error is None):
            raise Difference(f"{sql}\n  ours:   {mine.error or 'works'}\n  native: {native.error or 'works'}")
        if mine.error is None and mine.rows != native.rows:
            raise Difference(f"{sql}\n  count {mine.rows}, native {native.rows}")

    def insert(self):
        """Rows of VALUES; one per key, because a native INSERT OR REPLACE takes the first of equal keys."""
        rows = ", ".join(self.row() for _ in range(self.rng.choice([1, 1, 2, 5, 20])))
        names = ", ".join(name for name, _ in self.columns)
        keys = ", ".join(self.order)
        source = f"SELECT {names} FROM (VALUES {rows}) s({names})"
        casts = ", ".join(f"{n}::{t} AS {n}" for n, t in self.columns)
        self.must(f"CREATE OR REPLACE TEMP TABLE batch AS SELECT {names} FROM (SELECT {casts}, row_number() OVER () AS n "
                  f"FROM ({source})) QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY n DESC) = 1")
        self.both("INSERT INTO {t} FROM batch")

    def bulk(self):
        """Many rows: the ones of the table with other values, or a range where the key is one integer."""
        if len(self.keys) == 1 and self.keys[0][1] in ("INTEGER", "BIGINT", "UINTEGER", "UBIGINT", "HUGEINT"):
            first, count = self.rng.randint(0, 5000), self.rng.choice([100, 3000, 20000])
            fixed = {n: self.literal(t) for n, t in self.values}
            columns = ", ".join(f"i::{t}" if n == "k0" else f"{fixed[n]}::{t}" for n, t in self.columns)
            self.both(f"INSERT INTO {{t}} SELECT {columns} FROM range({first}, {first + count}) r(i)")
        elif self.values:
            name, kind = self.rng.choice(self.values)
            columns = ", ".join(f"{self.literal(kind)}::{kind}" if n == name else n for n, _ in self.columns)
            self.both(f"INSERT INTO {{t}} SELECT {columns} FROM {{t}} WHERE {self.predicate()}")

    def delete(self):
        self.both(f"DELETE FROM {{t}} WHERE {self.predicate()}" if self.rng.random() < 0.97 else "DELETE FROM {t}")

    def bad(self):
        """A NULL in the key fails, and leaves nothing."""
        bad = ", ".join("NULL" if n == "k0" else self.literal(t, 0) for n, t in self.columns)
        self.both(f"INSERT INTO {{t}} VALUES {self.row()}, ({bad})")

    def place(self):
        placement = self.rng.choice(["flushed", "flushed", "compacted", "reattached", "killed"])
        self.log.append(f"-- {placement}")
        self.session.place(placement)

    # -- queries ---------------------------------------------------------------------------------------------------

    def predicate(self, depth=0):
        rng = self.rng
        name, kind = rng.choice(self.columns)
        roll = rng.random()
        if depth < 2 and roll < 0.3:
            return f"({self.predicate(depth + 1)} {rng.choice(['AND', 'OR'])} {self.predicate(depth + 1)})"
        if roll < 0.36:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.46:
            return f"{name} {rng.choice(['', 'NOT '])}IN ({', '.join(self.literal(kind, 0.05) for _ in range(rng.randint(1, 4)))})"
        if roll < 0.52:
            return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {self.literal(kind)}::{kind}"
        if roll < 0.6 and kind == "VARCHAR":
            return rng.choice([f"{name} LIKE 'a%'", f"{name} LIKE '%1'", f"length({name}) > 5", f"prefix({name}, 'ab')"])
        if roll < 0.66:
            return f"{name} IN (SELECT {name} FROM {{t}} WHERE {self.predicate(2)})"
        operator = rng.choice(["=", "=", "<", "<=", ">", ">=", "<>"])
        return f"{name} {operator} {self.literal(kind, 0.02)}::{kind}"

    def query(self):
        rng = self.rng
        name, kind = rng.choice(self.columns)
        where = f" WHERE {self.predicate()}" if rng.random() < 0.8 else ""
        keys = ", ".join(self.order)
        backwards = ", ".join(f"{k} DESC" for k in self.order)
        comparable = kind not in ("INTERVAL", "BIT", "BLOB")
        shapes = [f"SELECT * FROM {{t}}{where}", f"SELECT {name} FROM {{t}}{where}",
                  f"SELECT count(*) FROM {{t}}{where}", f"SELECT count(*), count({name}), count(DISTINCT {name}) FROM {{t}}{where}",
                  f"SELECT * FROM {{t}}{where} ORDER BY {keys} LIMIT {rng.randint(0, 6)}",
                  f"SELECT {keys} FROM {{t}}{where} ORDER BY {backwards} LIMIT 3 OFFSET {rng.randint(0, 3)}",
                  f"SELECT {name}, count(*) FROM {{t}}{where} GROUP BY {name}",
                  f"SELECT count(*) FROM {{t}} a JOIN {{t}} b USING ({keys})",
                  f"SELECT count(*) FROM {{t}} JOIN (SELECT {keys} FROM {{t}}{where} ORDER BY {keys} LIMIT 5) s USING ({keys})",
                  f"SELECT {name}, {keys} FROM {{t}}{where} ORDER BY {name} DESC NULLS LAST, {keys} LIMIT 4"]
        if comparable:
            shapes.append(f"SELECT min({name}), max({name}) FROM {{t}}{where}")
        self.compare(rng.choice(shapes))
        if rng.random() < 0.2:
            self.get()

    def compare(self, sql):
        results = []
        for table in ("m.t", "memory.t"):
            self.log.append(sql.replace("{t}", table))
            results.append(self.session.run("", self.log[-1]))
        mine, native = results
        if native.error is not None and mine.error is not None and not mine.poisoned:
            return
        if mine.error is not None or native.error is not None:
            raise Difference(f"{sql}\n  ours:   {mine.error or 'works'}\n  native: {native.error or 'works'}")
        wrong = difference(mine, native, "ORDER BY" in sql)
        if wrong:
            raise Difference(f"{sql}\n  {wrong}")

    def get(self):
        """merutable_get of a key that is there or not."""
        types = dict(self.columns)
        values = [f"{self.literal(types[k], 0)}::{types[k]}" for k in self.order]
        found = self.session.run("", f"SELECT {', '.join(f'{k}::VARCHAR' for k in self.order)} FROM memory.t LIMIT 1").rows
        if found and self.rng.random() < 0.7:
            values = [f"{quote(v)}::{types[k]}" for k, v in zip(self.order, found[0])]
        path = quote(os.path.join(self.session.test_dir, "db"))
        mine = f"SELECT * FROM merutable_get({path}, {', '.join(values)})"
        native = "SELECT * FROM memory.t WHERE " + " AND ".join(f"{k} = {v}" for k, v in zip(self.order, values))
        self.log += [mine, native]
        left, right = self.session.run("", mine), self.session.run("", native)
        wrong = left.error or right.error or difference(left, right, False)
        if wrong:
            raise Difference(f"{mine}\n  {wrong}")


def difference(mine, native, ordered):
    if mine.types != native.types:
        return f"types {mine.types}, native {native.types}"
    left = [[compare.render(v) for v in row] for row in mine.rows]
    right = [[compare.render(v) for v in row] for row in native.rows]
    # -0.0 and 0.0 are equal, and either may have been written last.
    left, right = ([["0.0" if v == "-0.0" else v for v in row] for row in rows] for rows in (left, right))
    if not ordered:
        left.sort()
        right.sort()
    if left == right:
        return None
    extra = [row for row in left if row not in right][:3]
    missing = [row for row in right if row not in left][:3]
    return f"{len(left)} rows, native {len(right)}; only ours: {extra}; only native: {missing}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", required=True)
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--histories", type=int, default=1_000_000)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--go-on", action="store_true", help="do not stop at the first difference")
    options = arguments.parse_args()
    zygote = Zygote()
    passed, failed, until = 0, 0, time.monotonic() + options.seconds
    for seed in range(options.seed, options.seed + options.histories):
        if time.monotonic() > until:
            break
        scratch = tempfile.mkdtemp(prefix="meru-")
        os.mkdir(os.path.join(scratch, "t"))
        session = Session(zygote, scratch, os.path.join(scratch, "t"), os.path.abspath(options.ext), 60)
        history = History(seed, session, options.steps)
        try:
            history.run()
            passed += 1
        except (Difference, SessionError, WorkerDied) as error:
            failed += 1
            print(f"seed {seed}: " + "\n".join(history.log[:3]) + f"\n  ... {len(history.log)} statements ...\n{error}\n",
                  flush=True)
            with open(os.path.join(tempfile.gettempdir(), f"differential-{seed}.sql"), "w") as file:
                file.write(";\n".join(history.log) + ";\n")
        finally:
            session.worker.kill()
            shutil.rmtree(scratch, ignore_errors=True)
        if failed and not options.go_on:
            break
    zygote.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
