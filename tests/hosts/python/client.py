"""A Python host of the library: ctypes for the rows, pyarrow's C data interface for the batches.

    client.py LIBRARY DIR
"""

import ctypes as c
import gc
import math
import os
import random
import sys
import threading
import traceback

import pyarrow as pa
import pyarrow.compute as pc

import meru
from meru import BOOLEAN, BYTES, DOUBLE, FIXED, FLOAT, INT32, INT64, MeruError, array, python, value

LIB = meru.Library(sys.argv[1])
DIR = sys.argv[2]

COLUMNS = [("id", INT64, 0, 0), ("b", BOOLEAN, 0, 1), ("i", INT32, 0, 1), ("f", FLOAT, 0, 1), ("d", DOUBLE, 0, 1),
           ("s", BYTES, 0, 1), ("x", FIXED, 4, 1)]
KINDS = [kind for _, kind, _, _ in COLUMNS]


class Database:
    """An open database with the table of COLUMNS."""

    def __init__(self, name, read_only=False, columns=COLUMNS):
        self.path = os.path.join(DIR, name).encode()
        defs = array(meru.ColumnDef, [meru.ColumnDef(n.encode(), k, w, nullable) for n, k, w, nullable in columns])
        key = array(c.c_size_t, [0])
        options = meru.OpenOptions(meru.Schema(b"python", defs, len(columns), key, 1), self.path, None, 0, read_only)
        self.h = meru.handle()
        LIB.meru_open(c.byref(options), None, c.byref(self.h))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.h:
            LIB.meru_close_free(self.h)

    def row(self, values):
        fields = array(meru.Value, [value(k, x) for k, x in zip(KINDS, values)])
        row = meru.Row(fields, len(fields))
        row.kept = fields
        return row

    def put(self, *values):
        seq = c.c_uint64()
        LIB.meru_put(self.h, c.byref(self.row(values)), c.byref(seq))
        return seq.value

    def put_batch(self, rows):
        rows = array(meru.Row, [self.row(r) for r in rows])
        seq = c.c_uint64()
        LIB.meru_put_batch(self.h, rows, len(rows), c.byref(seq))
        return seq.value

    def get(self, key):
        found, row = c.c_int(-1), c.POINTER(meru.Row)()
        LIB.meru_get(self.h, array(meru.Value, [value(INT64, key)]), 1, c.byref(found), c.byref(row))
        if not found.value:
            assert not row
            return None
        out = tuple(python(row.contents.fields[i]) for i in range(row.contents.field_count))
        LIB.meru_row_free(row)
        return out

    def scan(self, start=None, end=None):
        def bound(x):
            return (None, 0) if x is None else (array(meru.Value, [value(INT64, x)]), 1)
        result = c.POINTER(meru.ScanResult)()
        LIB.meru_scan(self.h, *bound(start), *bound(end), c.byref(result))
        rows = [tuple(python(e.fields[i]) for i in range(e.field_count))
                for e in (result.contents.entries[k] for k in range(result.contents.count))]
        LIB.meru_scan_result_free(result)
        return rows

    def arrow(self, columns=None, overlay=False):
        """A pyarrow reader over a snapshot that is released at once."""
        snapshot, stream = meru.handle(), meru.ArrowArrayStream()
        LIB.meru_snapshot_acquire(self.h, c.byref(snapshot))
        indices = (None, 0) if columns is None else (array(c.c_uint32, columns), len(columns))
        if overlay:
            LIB.meru_snapshot_overlay(snapshot, *indices, c.byref(stream))
        else:
            LIB.meru_scan_arrow(snapshot, None, *indices, c.byref(stream))
        LIB.meru_snapshot_release(snapshot)
        return pa.RecordBatchReader._import_from_c(c.addressof(stream))

    def put_arrow(self, batch):
        rows, schema = exported(batch)
        seq = c.c_uint64()
        try:
            LIB.meru_put_arrow(self.h, c.byref(rows), c.byref(schema), c.byref(seq))
        finally:
            assert rows.release is None, "the array is not marked released"
            pa.Schema._import_from_c(c.addressof(schema))  # still alive: this takes it
        return seq.value


def exported(batch):
    rows, schema = meru.ArrowArray(), meru.ArrowSchema()
    batch._export_to_c(c.addressof(rows), c.addressof(schema))
    return rows, schema


def fails(status, call, *arguments, about=""):
    try:
        call(*arguments)
    except MeruError as e:
        assert e.status == status, e
        assert about in e.message, e
        return e
    raise AssertionError(f"no {status}")


ROW1 = (1, True, -5, 1.5, -2.25, b"a\0b", b"wxyz")
ROW2 = (2, None, None, None, None, None, None)


# ---- cases: every function below; its docstring is the name ----

def layouts():
    """layouts"""
    for struct, size in meru.SIZES.items():
        assert c.sizeof(struct) == size, struct
    assert LIB.meru_version()


def rows():
    """rows in memory, flushed, reopened"""
    with Database("rows") as db:
        assert db.put(*ROW1) == 1 and db.put(*ROW2) == 2
        for _ in range(2):
            assert db.get(1) == ROW1 and db.get(2) == ROW2 and db.get(3) is None
            assert db.scan() == [ROW1, ROW2] and db.scan(2) == [ROW2] and db.scan(1, 2) == [ROW1]
            LIB.meru_flush(db.h)
        assert db.put_batch([(3, *ROW1[1:]), (3, *ROW2[1:])]) == 4
        LIB.meru_delete(db.h, array(meru.Value, [value(INT64, 1)]), 1, None)
        assert db.scan() == [ROW2, (3, *ROW2[1:])]
    with Database("rows") as db:
        assert db.scan() == [ROW2, (3, *ROW2[1:])]
        path = LIB.meru_catalog_path(db.h)
        assert os.path.samefile(c.string_at(path), db.path)
        LIB.meru_free_string(path)
        stats = meru.Stats()
        LIB.meru_stats(db.h, c.byref(stats))
        assert stats.current_seq == 5 and stats.memtable.flush_threshold == 64 << 20
    info = c.POINTER(meru.ManifestInfo)()
    LIB.meru_manifest_info(None, os.path.join(DIR, "rows").encode(), c.byref(info))
    m = info.contents
    assert m.table_name == b"python" and m.column_count == len(COLUMNS) and m.pk_count == 1 and m.primary_key[0] == 0
    assert [m.columns[i].name.decode() for i in range(m.column_count)] == [n for n, _, _, _ in COLUMNS]
    assert all(os.path.isabs(m.parquet_paths[i]) and os.path.exists(m.parquet_paths[i]) for i in range(m.parquet_count))
    LIB.meru_manifest_info_free(info)


def errors():
    """errors"""
    with Database("errors") as db:
        fails("ErrSchemaMismatch", Database, "errors", False, COLUMNS[:-1])
        fails("ErrInvalidArg", db.put, None, *ROW1[1:], about='"id"')
        fails("ErrInvalidArg", db.put, 1, *ROW1[1:6], b"too long", about='"x"')
        fails("ErrInvalidArg", LIB.meru_flush, None, about="db")
        ro = Database("errors", read_only=True)
        fails("ErrReadOnly", ro.put, *ROW1)
        LIB.meru_free(ro.h)
        fails("ErrInvalidArg", LIB.meru_flush, ro.h, about="db")
        LIB.meru_close(db.h)
        assert LIB.meru_is_closed(db.h) == 1
        fails("ErrClosed", db.put, *ROW1)
        assert db.scan() == []
    fails("ErrNotFound", Database, "nowhere", True)
    runtime = LIB.meru_runtime_new(2, None)
    assert runtime
    LIB.meru_runtime_free(runtime)


SIMPLE = pa.schema([("id", pa.int64()), ("b", pa.bool_()), ("i", pa.int32()), ("f", pa.float32()), ("d", pa.float64()),
                    ("s", pa.binary()), ("x", pa.binary(4))])


def simple(first, n):
    ids = range(first, first + n)
    return pa.record_batch([
        pa.array(ids, pa.int64()), pa.array([i % 3 == 0 if i % 5 else None for i in ids], pa.bool_()),
        pa.array([i % 1000 if i % 7 else None for i in ids], pa.int32()), pa.array([i / 4 for i in ids], pa.float32()),
        pa.array([-i / 8 for i in ids], pa.float64()), pa.array([b"%d" % i if i % 11 else None for i in ids], pa.binary()),
        pa.array([b"%04d" % (i % 10000) for i in ids], pa.binary(4))], schema=SIMPLE)


def batches():
    """batches in and out through pyarrow"""
    with Database("batches") as db:
        want = pa.Table.from_batches([simple(0, 5000)])
        db.put_arrow(simple(2500, 2500))
        db.put_arrow(simple(0, 2500))
        for _ in range(2):
            reader = db.arrow()
            assert reader.schema.field("id").metadata[b"merutable.type"] == b"BIGINT", reader.schema
            assert reader.schema.field("x").metadata[b"merutable.field_id"] == b"7"
            got = reader.read_all()
            got.validate(full=True)
            assert got.cast(SIMPLE).equals(want), "the rows differ"
            LIB.meru_flush(db.h)
        db.put_arrow(simple(10, 20).slice(5, 10))
        assert db.arrow(overlay=True).read_all().num_rows == 10
        assert db.arrow([4, 0]).read_all().column_names == ["d", "id"]
        empty = db.arrow([]).read_all()
        assert empty.num_columns == 0
        assert pc.sum(db.arrow([0]).read_all()["id"]).as_py() == sum(range(5000))


def encodings():
    """encodings that pyarrow has for one column"""
    utf8 = 16  # MeruColumnType_Utf8
    for kind, plain, others in (
            (BYTES, pa.binary(), [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]),
            (utf8, pa.string(), [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])):
        with Database(f"encodings-{kind}", columns=[("id", INT64, 0, 0), ("s", kind, 0, 1)]) as db:
            ids, texts = pa.array(range(30), pa.int64()), pa.array(["x" * i if i % 4 else None for i in range(30)], plain)
            for other in others:
                column = texts.dictionary_encode().cast(other) if pa.types.is_dictionary(other) else texts.cast(other)
                batch = pa.record_batch([ids, column], names=["id", "s"])
                db.put_arrow(batch.slice(0, 7))
                db.put_arrow(batch.slice(7, 0))
                db.put_arrow(batch.slice(7))
                got = db.arrow().read_all()
                assert got["s"].combine_chunks().equals(texts), other
                LIB.meru_delete(db.h, array(meru.Value, [value(INT64, 3)]), 1, None)
                assert db.arrow().read_all().num_rows == 29


def refusals():
    """batches that do not fit"""
    with Database("refusals") as db:
        good = simple(0, 10)
        fails("ErrSchemaMismatch", db.put_arrow, good.select([0, 1, 2]), about="columns")
        fails("ErrSchemaMismatch", db.put_arrow, good.set_column(2, "i", good.column(2).cast(pa.int64())), about='"i"')
        fails("ErrInvalidArg", db.put_arrow, good.set_column(0, "id", pa.array([None] * 10, pa.int64())), about='"id"')
        fails("ErrSchemaMismatch", db.put_arrow, good.set_column(5, "s", pa.array([[1]] * 10, pa.list_(pa.int64()))))
        assert db.arrow().read_all().num_rows == 0
        before = pa.total_allocated_bytes()
        for _ in range(20):
            fails("ErrSchemaMismatch", db.put_arrow, simple(0, 20000).select([0]))
        gc.collect()
        kept = pa.total_allocated_bytes() - before
        assert kept < 100_000, f"refused arrays were not released: {kept} bytes"


def writes():
    """deletions and lookups by Arrow"""
    with Database("writes") as db:
        db.put_arrow(simple(0, 100))
        write = meru.handle()
        LIB.meru_write_begin(db.h, c.byref(write))
        keys, schema = exported(pa.record_batch([pa.array(range(0, 100, 2), pa.int64())], names=["id"]))
        LIB.meru_write_delete_arrow(write, c.byref(keys), c.byref(schema))
        pa.Schema._import_from_c(c.addressof(schema))
        LIB.meru_write_commit(write, None)
        LIB.meru_write_free(write)
        assert db.arrow([0]).read_all()["id"].to_pylist() == list(range(1, 100, 2))
        snapshot = meru.handle()
        LIB.meru_snapshot_acquire(db.h, c.byref(snapshot))
        for key, there in ((51, True), (50, False)):
            one, schema = exported(pa.record_batch([pa.array([key], pa.int64())], names=["id"]))
            found, out = c.c_int(-1), meru.ArrowArray()
            LIB.meru_snapshot_get(snapshot, c.byref(one), c.byref(schema), c.byref(found), c.byref(out))
            pa.Schema._import_from_c(c.addressof(schema))
            assert bool(found.value) == there
            if there:
                types, table = meru.ArrowSchema(), meru.handle()
                LIB.meru_table_schema_get(db.h, c.byref(table))
                LIB.meru_arrow_schema(table, c.byref(types))
                LIB.meru_table_schema_free(table)
                row = pa.RecordBatch._import_from_c(c.addressof(out), c.addressof(types))
                assert row.to_pylist()[0]["id"] == 51
        LIB.meru_snapshot_release(snapshot)


def lifetimes():
    """batches outlive reader, snapshot and database"""
    with Database("lifetimes") as db:
        db.put_arrow(simple(0, 40000))
        reader = db.arrow()
    first = reader.read_next_batch()
    del reader  # not read to its end
    gc.collect()
    column = first.column(0)
    del first
    gc.collect()
    assert column[0].as_py() == 0 and column.slice(10)[0].as_py() == 10
    # many readers, most of them dropped early
    with Database("lifetimes") as db:
        for _ in range(50):
            db.arrow().read_next_batch()
        assert db.arrow().read_all().num_rows == 40000


def maintenance():
    """compaction, garbage, and what there is to know"""
    with Database("maintenance") as db:
        for first in range(0, 2000, 400):
            db.put_arrow(simple(first, 800))
            LIB.meru_flush(db.h)
        files = inspect(db, "files")  # a compaction in the background may have taken some of them together
        assert sum(files["rows"]) - sum(files["deleted"]) == 2400, files
        LIB.meru_compact(db.h)
        files = inspect(db, "files")
        assert files["rows"] == [2400] and files["deleted"] == [0] and files["key_min"] == ["0"], files
        assert db.arrow(columns=[0]).read_all().num_rows == 2400
        versions = inspect(db, "versions")
        assert versions["version"] == sorted(versions["version"]) and versions["rows"][-1] == 2400, versions
        stats = dict(zip(*[inspect(db, "stats")[name] for name in ("name", "value")]))
        assert stats["data_files"] == 1 and stats["rows_written"] == 4000, stats
        stream = meru.ArrowArrayStream()
        LIB.meru_collect_garbage(db.h, 1, c.byref(stream))
        found = pa.RecordBatchReader._import_from_c(c.addressof(stream)).read_all().to_pydict()
        assert not any(found["removed"]) and all(os.path.exists(path) for path in found["path"]), found
        fails("ErrInvalidArg", LIB.meru_inspect, db.h, b"nothing", c.byref(meru.ArrowArrayStream()), about="what")


def inspect(db, what):
    """The columns of meru_inspect() as lists."""
    stream = meru.ArrowArrayStream()
    LIB.meru_inspect(db.h, what.encode(), c.byref(stream))
    return pa.RecordBatchReader._import_from_c(c.addressof(stream)).read_all().to_pydict()


def forked():
    """a forked child"""
    with Database("forked") as db:
        db.put_arrow(simple(0, 1000))
        reader, table = db.arrow(), db.arrow().read_all()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                fails("ErrUnsupported", LIB.meru_flush, db.h, about="fork")
                fails("ErrUnsupported", db.put, *ROW1)
                assert table["id"][999].as_py() == 999
                try:
                    reader.read_next_batch()
                    raise AssertionError("a stream went on in the child")
                except (OSError, pa.ArrowException) as e:
                    assert "fork" in str(e), e
                del table, reader
                gc.collect()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, f"the child: {status}"
        assert reader.read_all().num_rows == 1000
        assert db.get(1) is not None


def threads():
    """threads"""
    with Database("threads") as db:
        wrong = []

        def work(t):
            try:
                for i in range(100):
                    key = t * 1000 + i
                    db.put(key, *ROW1[1:])
                    if db.get(key) != (key, *ROW1[1:]):
                        wrong.append(key)
                    if i % 10 == 0:
                        db.arrow([0]).read_all()
            except Exception as e:  # shown by the assertion below
                wrong.append(e)
        workers = [threading.Thread(target=work, args=(t,)) for t in range(6)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert not wrong, wrong[:3]
        assert db.arrow([]) is not None and len(db.scan()) == 600


def floats():
    """NaN and infinities through both doors"""
    with Database("floats") as db:
        db.put(1, None, None, math.inf, math.nan, b"", None)
        row = db.arrow().read_all().to_pylist()[0]
        assert row["f"] == math.inf and math.isnan(row["d"]) and row["s"] == b""


def random_history(seed=1, steps=400):
    """a random history against a dictionary"""
    rng = random.Random(seed)
    model, old = {}, []
    db = Database(f"history-{seed}")

    def check(reader, want):
        got = {r["id"]: r["i"] for r in reader.read_all().select(["id", "i"]).to_pylist()}
        assert got == want, f"seed {seed}: {len(got)} rows, {len(want)} wanted"

    try:
        for step in range(steps):
            op = rng.choice(["put", "put", "batch", "arrow", "delete", "deletes", "flush", "reopen", "snapshot", "read"])
            if op == "put":
                key = rng.randrange(300)
                db.put(key, None, step, None, None, b"x", None)
                model[key] = step
            elif op == "batch":
                keys = [rng.randrange(300) for _ in range(rng.randrange(20))]
                db.put_batch([(k, None, step + n, None, None, None, None) for n, k in enumerate(keys)])
                model.update({k: step + n for n, k in enumerate(keys)})
            elif op == "arrow":
                ids = [rng.randrange(300) for _ in range(rng.randrange(60))]
                batch = simple(0, len(ids)).set_column(0, "id", pa.array(ids, pa.int64()))
                db.put_arrow(batch.set_column(2, "i", pa.array([step] * len(ids), pa.int32())))
                model.update(dict.fromkeys(ids, step))
            elif op == "delete":
                key = rng.randrange(300)
                LIB.meru_delete(db.h, array(meru.Value, [value(INT64, key)]), 1, None)
                model.pop(key, None)
            elif op == "deletes":
                ids = [rng.randrange(300) for _ in range(rng.randrange(40))]
                write = meru.handle()
                LIB.meru_write_begin(db.h, c.byref(write))
                keys, schema = exported(pa.record_batch([pa.array(ids, pa.int64())], names=["id"]))
                LIB.meru_write_delete_arrow(write, c.byref(keys), c.byref(schema))
                pa.Schema._import_from_c(c.addressof(schema))
                LIB.meru_write_commit(write, None)
                LIB.meru_write_free(write)
                for key in ids:
                    model.pop(key, None)
            elif op == "flush":
                LIB.meru_flush(db.h)
            elif op == "reopen":
                (LIB.meru_close_free if rng.random() < 0.5 else LIB.meru_free)(db.h)
                db = Database(f"history-{seed}")
            elif op == "snapshot":
                old.append((db.arrow(), dict(model)))
                if len(old) > 4:
                    check(*old.pop(rng.randrange(4)))
            else:
                check(db.arrow(), model)
                key = rng.randrange(300)
                row = db.get(key)
                assert (row[2] if row else None) == model.get(key), f"seed {seed}: key {key}"
        for reader, want in old:
            check(reader, want)
        check(db.arrow(), model)
    finally:
        LIB.meru_close_free(db.h)


CASES = [layouts, rows, errors, batches, encodings, refusals, writes, lifetimes, maintenance, forked, threads, floats,
         random_history]


def main():
    failed = 0
    for case in CASES:
        try:
            case()
            print(f"PASS python: {case.__doc__}")
        except Exception:
            failed += 1
            print(f"FAIL python: {case.__doc__}: {traceback.format_exc().strip()}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
