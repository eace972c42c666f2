#!/usr/bin/env python3
"""Reads our data files with DuckDB's own Parquet reader and compares with what was written.

usage: check.py [DIRECTORY]

Without a directory the files are made first (go run ./engine/internal/sst/parquetgen). For every file:

  schema      each column has the type that DuckDB is to see
  values      every value of every row, hidden columns included
  statistics  the bounds of every chunk are the least and greatest of its rows, or absent; NULL counts are right
  filters     equality and ranges on present and absent values give the rows that they must: DuckDB prunes by
              statistics and bloom filters
  pyarrow     reads nested columns as DuckDB does, and finds a field id at every field
  blooms      no present key is excluded, and of absent ones most are

Needs the Python packages duckdb (1.5.5) and pyarrow. Exits with 1 and names what is wrong.
"""
import decimal
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import uuid

import duckdb
import pyarrow
import pyarrow.parquet

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
decimal.getcontext().prec = 60
INT_MAX = {"DATE": 2**31 - 1, "TIMESTAMP": 2**63 - 1}

# The type that DuckDB's reader gives each of ours, where it is another one.
SEEN_AS = {
    "HUGEINT": "BLOB", "UHUGEINT": "BLOB", "INTERVAL": "BLOB", "BIT": "BLOB", "BIGNUM": "BLOB",
    "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "TIME WITH TIME ZONE": "BIGINT", "TIME_NS": "BIGINT",
}
# Types whose bytes or numbers DuckDB's reader compares as we do; the extension casts the others.
COMPARABLE = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
    "DOUBLE", "DECIMAL", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS",
    "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "UUID", "FIXED_BINARY", "HUGEINT", "UHUGEINT",
}
HAS_BLOOM = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "VARCHAR",
}


class Failed(Exception):
    pass


def is_nested(typ):
    return typ.startswith(("STRUCT(", "MAP(")) or typ.endswith("]")


def kind(typ):
    if typ.startswith("TIME WITH"):
        return typ
    return re.sub(r"\(.*", "", typ, flags=re.S) if not typ.startswith("TIMESTAMP WITH") else typ


def seen_as(typ):
    if is_nested(typ):
        # Arrays are lists to Parquet, field names stand in quotes only where they must.
        typ = re.sub(r"\[\d+\]", "[]", typ).replace("HUGEINT", "BLOB")
        return re.sub(r'"(\w+)"', r"\1", typ)
    k = kind(typ)
    if k == "ENUM":
        return "VARCHAR"
    if k == "FIXED_BINARY":
        return "BLOB"
    return SEEN_AS.get(k, typ)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def fetch_expression(name, typ):
    """An expression that yields a column in a form which canonical() understands."""
    c, k = quoted(name), kind(typ)
    if is_nested(typ):
        return c
    if k in ("FLOAT", "DOUBLE", "VARCHAR", "ENUM"):
        return c
    if k in ("HUGEINT", "UHUGEINT", "INTERVAL", "BIT", "BLOB", "FIXED_BINARY", "BIGNUM"):
        return f"lower(hex({c}))"
    if k == "BOOLEAN":
        return f"{c}::INT::VARCHAR"
    if k == "DATE":
        return (f"CASE WHEN isinf({c}) THEN {c}::VARCHAR ELSE datediff('day', DATE '1970-01-01', {c})::VARCHAR END")
    if k == "TIMESTAMP_NS":
        return f"CASE WHEN NOT isfinite({c}) THEN {c}::VARCHAR ELSE epoch_ns({c})::VARCHAR END"
    if k.startswith("TIMESTAMP"):
        return f"CASE WHEN NOT isfinite({c}) THEN {c}::VARCHAR ELSE epoch_us({c})::VARCHAR END"
    return f"{c}::VARCHAR"


def plain(got):
    """A nested value of DuckDB or pyarrow as parquetgen writes it: lists all over, a pair for each entry of a map."""
    if isinstance(got, dict):
        # A struct, or a map: DuckDB gives a dict for both. In the test files structs are those with these names.
        if set(got) in ({"a", "B b"}, {"l", "u"}, {"m", "x"}):
            return [plain(v) for v in got.values()]
        return [[plain(k), plain(v)] for k, v in got.items()]
    if isinstance(got, (list, tuple)):
        return [plain(v) for v in got]
    if isinstance(got, bytes):
        return got.hex()
    if got is None or isinstance(got, str):
        return got
    if isinstance(got, uuid.UUID):
        return got.hex
    return str(int(got))


def distinct_keys(value):
    """A nested value with the last one of equal entries of each map, as a dict has them."""
    if not isinstance(value, list):
        return value
    if value and all(isinstance(v, list) and len(v) == 2 and isinstance(v[0], str) for v in value):
        return [[k, v] for k, v in {v[0]: distinct_keys(v[1]) for v in value}.items()]
    return [distinct_keys(v) for v in value]


def file_form(want, typ):
    """What stands in the file for a nested value of parquetgen's."""
    if want is None or "HUGEINT" not in typ:
        return want
    if isinstance(want, list):
        return [file_form(v, typ) for v in want]
    return (int(want) + 2**127).to_bytes(16, "big").hex()


def canonical(got, typ):
    """The text that parquetgen wrote for a value, from what DuckDB returned."""
    k = kind(typ)
    if got is None:
        return None
    if is_nested(typ):
        return plain(got)
    if k == "FLOAT":
        return "nan" if got != got else struct.pack(">f", got).hex()
    if k == "DOUBLE":
        return "nan" if got != got else struct.pack(">d", got).hex()
    if k == "HUGEINT":
        return str(int(got, 16) - 2**127)
    if k == "UHUGEINT":
        return str(int(got, 16))
    if k == "INTERVAL":
        b = bytes.fromhex(got)
        months, days, micros = struct.unpack(">IIQ", b)
        return f"{months - 2**31},{days - 2**31},{micros - 2**63}"
    if k == "UUID":
        return got.replace("-", "")
    if k == "DECIMAL":
        return str(int(decimal.Decimal(got).scaleb(int(re.search(r",(\d+)\)", typ)[1]))))
    if k == "TIME":
        h, m, s = got.split(":")
        return str((int(h) * 3600 + int(m) * 60) * 1_000_000 + int(decimal.Decimal(s) * 1_000_000))
    if got in ("infinity", "-infinity"):
        limit = INT_MAX["DATE" if k == "DATE" else "TIMESTAMP"]
        return str(limit if got[0] == "i" else -limit)
    if k in ("TIMESTAMP_S", "TIMESTAMP_MS"):
        return str(int(got) // (1_000_000 if k == "TIMESTAMP_S" else 1000))
    return got


def number(text, typ):
    """A value to order by, from parquetgen's text."""
    k = kind(typ)
    if k == "FLOAT":
        v = float("nan") if text == "nan" else struct.unpack(">f", bytes.fromhex(text))[0]
        return (1, 0.0) if v != v else (0, v)
    if k == "DOUBLE":
        v = float("nan") if text == "nan" else struct.unpack(">d", bytes.fromhex(text))[0]
        return (1, 0.0) if v != v else (0, v)
    if k == "VARCHAR":
        return text.encode()
    if k in ("BLOB", "FIXED_BINARY", "UUID"):
        return bytes.fromhex(text)
    return int(text)


def blob(b):
    return "'" + "".join(f"\\x{x:02X}" for x in b) + "'::BLOB"


def literal(text, typ):
    k = kind(typ)
    if k in ("FLOAT", "DOUBLE"):
        v = number(text, typ)
        value = "nan" if v[0] else repr(v[1])
        return f"'{value}'::{k}"
    if k == "VARCHAR":
        if "\0" in text:
            return "(" + " || ".join("chr(0)" if p == "\0" else "'" + p.replace("'", "''") + "'"
                                     for p in re.split("(\0)", text) if p) + ")"
        return "'" + text.replace("'", "''") + "'"
    if k in ("BLOB", "FIXED_BINARY"):
        return blob(bytes.fromhex(text))
    if k == "HUGEINT":
        return blob((int(text) + 2**127).to_bytes(16, "big"))
    if k == "UHUGEINT":
        return blob(int(text).to_bytes(16, "big"))
    if k == "UUID":
        return f"'{text}'::UUID"
    if k == "BOOLEAN":
        return "true" if text == "1" else "false"
    if k == "DECIMAL":
        return f"'{decimal.Decimal(text).scaleb(-int(re.search(r',([0-9]+)', typ)[1]))}'::{typ}"
    if k == "DATE":
        if abs(int(text)) == INT_MAX["DATE"]:
            return "'infinity'::DATE" if int(text) > 0 else "'-infinity'::DATE"
        return f"(DATE '1970-01-01' + INTERVAL ({text}) DAY)::DATE"
    if k == "TIME":
        if int(text) == 86_400_000_000:
            return "TIME '24:00:00'"
        return f"(TIME '00:00:00' + INTERVAL ({text}) MICROSECOND)"
    if k.startswith("TIMESTAMP"):
        cast = {"TIMESTAMP_NS": "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}.get(k, "TIMESTAMP")
        v = int(text)
        if abs(v) == INT_MAX["TIMESTAMP"]:
            return f"'{'-' if v < 0 else ''}infinity'::{cast}"
        if k == "TIMESTAMP_NS":
            return f"make_timestamp_ns({v})"
        v *= {"TIMESTAMP_S": 1_000_000, "TIMESTAMP_MS": 1000}.get(k, 1)
        return f"make_timestamp({v})" if cast == "TIMESTAMP" else f"make_timestamptz({v})"
    return f"({text})::{seen_as(typ)}"


def absent_value(rng, typ):
    k = kind(typ)
    sizes = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
    if k in sizes:
        return str(rng.randrange(-2 ** (sizes[k] - 1), 2 ** (sizes[k] - 1)))
    if k[:1] == "U" and k[1:] in sizes:
        return str(rng.randrange(2 ** sizes[k[1:]]))
    if k == "FLOAT":
        return struct.pack(">f", rng.uniform(-9, 9)).hex()
    if k == "DOUBLE":
        return struct.pack(">d", rng.uniform(-9, 9)).hex()
    if k == "VARCHAR":
        return f"absent{rng.random()}"
    if k == "UUID":
        return f"{rng.getrandbits(128):032x}"
    if k == "BLOB":
        return rng.randbytes(9).hex()
    if k == "FIXED_BINARY":
        return rng.randbytes(5).hex()
    return None


class File:
    def __init__(self, con, path):
        self.con, self.path = con, path
        with open(path.replace(".parquet", ".json"), encoding="utf-8") as f:
            e = json.load(f)
        self.columns = [(c["Name"], c["Type"], c["Key"]) for c in e["Columns"]]
        self.rows = e["Rows"]
        self.table = f"read_parquet('{path}')"

    def fail(self, message):
        raise Failed(f"{os.path.basename(self.path)}: {message}")

    def query(self, sql):
        try:
            return self.con.execute(sql).fetchall()
        except duckdb.Error as e:
            self.fail(f"{sql}\n    {e}")

    def check_schema(self):
        got = [(r[0], r[1]) for r in self.query(f"DESCRIBE SELECT * FROM {self.table}")]
        want = [(n, seen_as(t)) for n, t, _ in self.columns] + [("_merutable_seq", "BIGINT"), ("_merutable_op", "INTEGER")]
        if got != want:
            self.fail(f"schema is {got}, not {want}")

    def check_values(self):
        exprs = [fetch_expression(n, t) for n, t, _ in self.columns] + ["_merutable_seq::VARCHAR", "_merutable_op::VARCHAR"]
        types = [t for _, t, _ in self.columns] + ["VARCHAR", "VARCHAR"]
        got = self.query(f"SELECT {', '.join(exprs)} FROM {self.table}")
        if len(got) != len(self.rows):
            self.fail(f"{len(got)} rows, {len(self.rows)} were written")
        for i, (g, w) in enumerate(zip(got, self.rows)):
            for j, t in enumerate(types):
                if is_nested(t) and w[j] != "?":
                    if distinct_keys(canonical(g[j], t)) != distinct_keys(file_form(w[j], t)):
                        self.fail(f"row {i}, column {j} ({t}): read {canonical(g[j], t)!r}, wrote {w[j]!r}")
                elif w[j] != "?" and canonical(g[j], t) != w[j]:
                    self.fail(f"row {i}, column {j} ({t}): read {canonical(g[j], t)!r}, wrote {w[j]!r}")

    def check_pyarrow(self):
        got = pyarrow.parquet.read_table(self.path)
        for j, (name, typ, _) in enumerate(self.columns):
            if not is_nested(typ):
                continue
            for i, value in enumerate(got.column(name).to_pylist()):
                want = self.rows[i][j]
                if want != "?" and plain(value) != file_form(want, typ):
                    self.fail(f"row {i}, {name} ({typ}): pyarrow reads {plain(value)!r}, wrote {want!r}")
        ids = set()

        def see(field):
            i = (field.metadata or {}).get(b"PARQUET:field_id")
            if i is None or i in ids:
                self.fail(f"field {field.name} of {field.type} has field id {i}")
            ids.add(i)
            t = field.type
            if pyarrow.types.is_map(t):
                see(t.key_field)
                see(t.item_field)
            elif pyarrow.types.is_nested(t):
                for n in range(t.num_fields):
                    see(t.field(n))
        for field in got.schema:
            see(field)

    def check_statistics(self):
        chunks = self.query(
            "SELECT row_group_id, path_in_schema, row_group_num_rows, stats_null_count, stats_min_value IS NOT NULL, "
            f"stats_max_value IS NOT NULL, stats_min_value, stats_max_value FROM parquet_metadata('{self.path}') "
            "ORDER BY row_group_id, column_id")
        types = {n: t for n, t, _ in self.columns}
        first, last_group, rows = 0, 0, 0
        for group, name, n, nulls, has_min, has_max, low, high in chunks:
            if group != last_group:
                first, last_group = first + rows, group
            rows = n
            if name.split(", ")[0] not in types:
                continue
            if is_nested(types[name.split(", ")[0]]):
                if has_min or has_max:
                    self.fail(f"row group {group}, {name}: bounds of a part of a nested column")
                continue
            c = quoted(name)
            # Bounds computed over a materialised copy: the file's own statistics have no part in it.
            want = self.query(f"SELECT count(*) - count({c}), min({c})::VARCHAR, max({c})::VARCHAR FROM copy "
                              f"WHERE file_row_number >= {first} AND file_row_number < {first + n}")[0]
            if nulls is not None and nulls != want[0]:
                self.fail(f"row group {group}, {name}: {nulls} NULLs, there are {want[0]}")
            k = kind(types[name])
            # DuckDB prints no bound that is infinite. Of long values either bound may be absent.
            expect = k in COMPARABLE and want[1] is not None and want[2] != "nan"
            for has, value in ((has_min, want[1]), (has_max, want[2])):
                if not has and expect and len(value) <= 200 and value not in ("inf", "-inf"):
                    self.fail(f"row group {group}, {name} ({k}): the bound {value!r} is missing")
            if want[2] == "nan" and (has_min or has_max):
                self.fail(f"row group {group}, {name}: bounds beside a NaN")
            if k in ("INTERVAL", "BIT", "JSON") and (has_min or has_max):
                self.fail(f"row group {group}, {name}: bounds of a {k}")
            if k in ("FLOAT", "DOUBLE"):
                if has_min and float(low) != float(want[1]) or has_max and float(high) != float(want[2]):
                    self.fail(f"row group {group}, {name}: bounds {low} and {high}, not {want[1]} and {want[2]}")
                if has_min and low in ("0", "0.0") or has_max and high in ("-0", "-0.0"):
                    self.fail(f"row group {group}, {name}: a bound of zero has the sign that leaves the other zero out")
            elif k in ("TIMESTAMP WITH TIME ZONE", "BLOB", "FIXED_BINARY", "HUGEINT", "UHUGEINT"):
                pass  # printed in another form; the filters below cover them
            elif has_min and low != want[1] or has_max and high != want[2]:
                self.fail(f"row group {group}, {name}: bounds {low!r} and {high!r}, not {want[1]!r} and {want[2]!r}")

    def check_filters(self, rng):
        for j, (name, typ, _) in enumerate(self.columns):
            if kind(typ) not in COMPARABLE or len(self.rows) > 50_000:
                continue
            # Rows whose value is unknown to us (of tombstones) are left out on both sides.
            present = [r[j] for r in self.rows if r[j] is not None and r[j] != "?"]
            order = sorted(number(t, typ) for t in present)
            sample = rng.sample(present, min(12, len(present)))
            sample += [v for v in (absent_value(rng, typ) for _ in range(6)) if v]
            for text in sample:
                value, lit = number(text, typ), literal(text, typ)
                for op, want in (("=", sum(v == value for v in order)), (">", sum(v > value for v in order)),
                                 ("<=", sum(v <= value for v in order)), ("<>", sum(v != value for v in order))):
                    where = f"{quoted(name)} {op} {lit} AND _merutable_op = 1"
                    if any(r[j] != "?" and r[-1] == "0" for r in self.rows):
                        where = f"{quoted(name)} {op} {lit}"
                    got = self.query(f"SELECT count(*) FROM {self.table} WHERE {where}")[0][0]
                    if got != want:
                        self.fail(f"{got} rows where {where}, not {want}")

    def check_blooms(self, rng):
        for j, (name, typ, key) in enumerate(self.columns):
            has = self.query(f"SELECT count(bloom_filter_offset) FROM parquet_metadata('{self.path}') WHERE path_in_schema = '{name}'")[0][0]
            if has and not key:
                self.fail(f"{name} is no key and has a bloom filter")
            if not key or kind(typ) not in HAS_BLOOM:
                continue
            if not has:
                self.fail(f"key column {name} ({typ}) has no bloom filter")
            if any(is_nested(t) for _, t, _ in self.columns):
                continue  # parquet_bloom_probe looks at the wrong column then
            probe = "SELECT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe('{}', '{}', {})"
            present = [r[j] for r in self.rows]
            for text in rng.sample(present, min(200, len(present))):
                if self.query(probe.format(self.path, name, literal(text, typ)))[0][0]:
                    self.fail(f"the bloom filter of {name} excludes {text!r}, which is there")
            absent = [v for v in (absent_value(rng, typ) for _ in range(200)) if v and v not in set(present)]
            excluded = sum(bool(self.query(probe.format(self.path, name, literal(v, typ)))[0][0]) for v in absent)
            if len(absent) > 100 and excluded < 0.9 * len(absent):
                self.fail(f"the bloom filter of {name} excludes {excluded} of {len(absent)} absent values")

    def check(self):
        rng = random.Random(os.path.basename(self.path))
        self.check_schema()
        self.check_values()
        self.check_pyarrow()
        if len(self.rows) <= 50_000:
            self.con.execute(f"CREATE OR REPLACE TEMP TABLE copy AS SELECT * FROM read_parquet('{self.path}', file_row_number := true)")
            self.check_statistics()
        self.check_filters(rng)
        self.check_blooms(rng)


def main():
    if len(sys.argv) > 2 or sys.argv[1:] == ["--help"]:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        directory = sys.argv[1] if len(sys.argv) == 2 else scratch
        if len(sys.argv) < 2:
            subprocess.run(["go", "run", "./engine/internal/sst/parquetgen", directory], cwd=ROOT, check=True)
        con = duckdb.connect()
        con.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        files = sorted(f for f in os.listdir(directory) if f.endswith(".parquet"))
        failed = 0
        for f in files:
            try:
                File(con, os.path.join(directory, f)).check()
                print("ok  ", f)
            except Failed as e:
                failed += 1
                print("FAIL", e)
        print(f"{len(files) - failed} passed, {failed} failed")
        return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
