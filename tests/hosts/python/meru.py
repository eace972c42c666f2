"""The C interface for Python, with ctypes: declarations, and a few helpers of the tests."""

import ctypes as c
import os

STATUS = {
    "Ok": 0, "ErrIo": 1, "ErrCorruption": 2, "ErrSchemaMismatch": 3, "ErrNotFound": 4, "ErrInvalidArg": 5,
    "ErrReadOnly": 6, "ErrClosed": 7, "ErrObjectStore": 8, "ErrParquet": 9, "ErrAlreadyExists": 10, "ErrLocked": 11,
    "ErrConflict": 12, "ErrNoSpace": 13, "ErrCancelled": 14, "ErrTimeout": 15, "ErrUnsupported": 16, "ErrUnknown": 99,
}
NAMES = {number: name for name, number in STATUS.items()}
BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTES, FIXED = range(7)


class BytesView(c.Structure):
    _fields_ = [("data", c.c_void_p), ("len", c.c_size_t)]


class Inner(c.Union):
    _fields_ = [("v_bool", c.c_uint8), ("v_int32", c.c_int32), ("v_int64", c.c_int64), ("v_float", c.c_float),
                ("v_double", c.c_double), ("v_bytes", BytesView)]


class Value(c.Structure):
    _fields_ = [("tag", c.c_int), ("is_null", c.c_uint8), ("inner", Inner)]


class ColumnDef(c.Structure):
    _fields_ = [("name", c.c_char_p), ("col_type", c.c_int), ("fixed_byte_len", c.c_int32), ("nullable", c.c_uint8),
                ("initial_default", c.POINTER(Value)), ("write_default", c.POINTER(Value))]


class Schema(c.Structure):
    _fields_ = [("table_name", c.c_char_p), ("columns", c.POINTER(ColumnDef)), ("column_count", c.c_size_t),
                ("primary_key", c.POINTER(c.c_size_t)), ("primary_key_len", c.c_size_t)]


class OpenOptions(c.Structure):
    _fields_ = [("schema", Schema), ("catalog_uri", c.c_char_p), ("wal_dir", c.c_char_p),
                ("memtable_size_mb", c.c_size_t), ("read_only", c.c_uint8)]


class Row(c.Structure):
    _fields_ = [("fields", c.POINTER(Value)), ("field_count", c.c_size_t)]


class ScanResult(c.Structure):
    _fields_ = [("entries", c.POINTER(Row)), ("count", c.c_size_t)]


class MemtableStats(c.Structure):
    _fields_ = [("active_size_bytes", c.c_size_t), ("active_entry_count", c.c_uint64), ("flush_threshold", c.c_size_t),
                ("immutable_count", c.c_size_t)]


class CacheStats(c.Structure):
    _fields_ = [("capacity", c.c_size_t), ("size", c.c_size_t), ("hit_count", c.c_uint64), ("miss_count", c.c_uint64)]


class Stats(c.Structure):
    _fields_ = [("snapshot_id", c.c_int64), ("current_seq", c.c_uint64), ("memtable", MemtableStats),
                ("cache", CacheStats)]


class ManifestInfo(c.Structure):
    _fields_ = [("table_name", c.c_char_p), ("columns", c.POINTER(ColumnDef)), ("column_count", c.c_size_t),
                ("primary_key", c.POINTER(c.c_size_t)), ("pk_count", c.c_size_t),
                ("parquet_paths", c.POINTER(c.c_char_p)), ("parquet_count", c.c_size_t)]


class ScanRange(c.Structure):
    _fields_ = [("lower", c.POINTER(Value)), ("lower_count", c.c_size_t), ("lower_exclusive", c.c_uint8),
                ("upper", c.POINTER(Value)), ("upper_count", c.c_size_t), ("upper_exclusive", c.c_uint8),
                ("reverse", c.c_uint8),
                ("limit", c.c_uint64)]


# The published sizes of the first generation.
SIZES = {BytesView: 16, Inner: 16, Value: 24, ColumnDef: 40, Schema: 40, OpenOptions: 72, Row: 16, ScanResult: 16,
         MemtableStats: 32, CacheStats: 32, Stats: 80, ManifestInfo: 56}


class ArrowSchema(c.Structure):
    _fields_ = [("raw", c.c_int64 * 9)]


class ArrowArray(c.Structure):
    _fields_ = [("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64), ("n_buffers", c.c_int64),
                ("n_children", c.c_int64), ("buffers", c.c_void_p), ("children", c.c_void_p),
                ("dictionary", c.c_void_p), ("release", c.c_void_p), ("private_data", c.c_void_p)]


class ArrowArrayStream(c.Structure):
    _fields_ = [("raw", c.c_int64 * 5)]


class MeruError(Exception):
    def __init__(self, status, message):
        super().__init__(f"{NAMES.get(status, status)}: {message}")
        self.status = NAMES.get(status, status)
        self.message = message


handle = c.c_void_p
ERR = c.POINTER(c.c_void_p)


class Library:
    """Calls of the library; those with a status raise MeruError."""

    # name: argument types, without the last one, char **err
    CALLS = {
        "meru_open": [c.POINTER(OpenOptions), handle, c.POINTER(handle)],
        "meru_open_existing": [c.c_char_p, c.c_uint8, handle, c.POINTER(handle)],
        "meru_open_with": [c.c_char_p, handle, c.POINTER(handle)],
        "meru_close": [handle],
        "meru_close_free": [handle],
        "meru_put": [handle, c.POINTER(Row), c.POINTER(c.c_uint64)],
        "meru_put_batch": [handle, c.POINTER(Row), c.c_size_t, c.POINTER(c.c_uint64)],
        "meru_delete": [handle, c.POINTER(Value), c.c_size_t, c.POINTER(c.c_uint64)],
        "meru_get": [handle, c.POINTER(Value), c.c_size_t, c.POINTER(c.c_int), c.POINTER(c.POINTER(Row))],
        "meru_scan": [handle, c.POINTER(Value), c.c_size_t, c.POINTER(Value), c.c_size_t,
                      c.POINTER(c.POINTER(ScanResult))],
        "meru_flush": [handle],
        "meru_refresh": [handle],
        "meru_compact": [handle],
        "meru_collect_garbage": [handle, c.c_uint8, c.POINTER(ArrowArrayStream)],
        "meru_inspect": [handle, c.c_char_p, c.POINTER(ArrowArrayStream)],
        "meru_stats": [handle, c.POINTER(Stats)],
        "meru_manifest_info": [handle, c.c_char_p, c.POINTER(c.POINTER(ManifestInfo))],
        "meru_put_arrow": [handle, c.POINTER(ArrowArray), c.POINTER(ArrowSchema), c.POINTER(c.c_uint64)],
        "meru_write_begin": [handle, c.POINTER(handle)],
        "meru_write_delete_arrow": [handle, c.POINTER(ArrowArray), c.POINTER(ArrowSchema)],
        "meru_write_commit": [handle, c.POINTER(c.c_uint64)],
        "meru_snapshot_acquire": [handle, c.POINTER(handle)],
        "meru_snapshot_overlay": [handle, c.POINTER(c.c_uint32), c.c_size_t, c.POINTER(ArrowArrayStream)],
        "meru_snapshot_get": [handle, c.POINTER(ArrowArray), c.POINTER(ArrowSchema), c.POINTER(c.c_int),
                              c.POINTER(ArrowArray)],
        "meru_scan_arrow": [handle, c.POINTER(ScanRange), c.POINTER(c.c_uint32), c.c_size_t,
                            c.POINTER(ArrowArrayStream)],
        "meru_table_schema_get": [handle, c.POINTER(handle)],
        "meru_arrow_schema": [handle, c.POINTER(ArrowSchema)],
    }
    # name: result type, argument types
    PLAIN = {
        "meru_free": (None, [handle]),
        "meru_is_closed": (c.c_int, [handle]),
        "meru_catalog_path": (c.c_void_p, [handle]),
        "meru_row_free": (None, [c.POINTER(Row)]),
        "meru_scan_result_free": (None, [c.POINTER(ScanResult)]),
        "meru_manifest_info_free": (None, [c.POINTER(ManifestInfo)]),
        "meru_free_string": (None, [c.c_void_p]),
        "meru_runtime_new": (handle, [c.c_size_t, ERR]),
        "meru_runtime_free": (None, [handle]),
        "meru_write_free": (None, [handle]),
        "meru_snapshot_release": (None, [handle]),
        "meru_table_schema_free": (None, [handle]),
        "meru_version": (c.c_char_p, []),
    }

    def __init__(self, path):
        self.dll = c.CDLL(os.fspath(path))
        for name, arguments in self.CALLS.items():
            function = getattr(self.dll, name)
            function.restype, function.argtypes = c.c_int, [*arguments, ERR]
            setattr(self, name, self._checked(function))
        for name, (result, arguments) in self.PLAIN.items():
            function = getattr(self.dll, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def _checked(self, function):
        def call(*arguments):
            message = c.c_void_p(1)
            status = function(*arguments, c.byref(message))
            if status == 0:
                assert message.value is None, "a message without an error"
                return
            text = c.string_at(message.value).decode()
            self.meru_free_string(message)
            raise MeruError(status, text)
        return call


def value(kind, x):
    """A Value of a Python object; keeps the bytes alive in its attribute `kept`."""
    v = Value(tag=kind, is_null=x is None)
    if x is None:
        return v
    if kind in (BYTES, FIXED):
        data = x.encode() if isinstance(x, str) else x
        v.kept = c.create_string_buffer(data, len(data)) if data else None
        v.inner.v_bytes = BytesView(c.addressof(v.kept) if data else None, len(data))
        return v
    field = {BOOLEAN: "v_bool", INT32: "v_int32", INT64: "v_int64", FLOAT: "v_float", DOUBLE: "v_double"}[kind]
    setattr(v.inner, field, x)
    return v


def python(v):
    """The Python object of a Value."""
    if v.is_null:
        return None
    if v.tag in (BYTES, FIXED):
        return c.string_at(v.inner.v_bytes.data, v.inner.v_bytes.len) if v.inner.v_bytes.len else b""
    return {BOOLEAN: lambda: bool(v.inner.v_bool), INT32: lambda: v.inner.v_int32, INT64: lambda: v.inner.v_int64,
            FLOAT: lambda: v.inner.v_float, DOUBLE: lambda: v.inner.v_double}[v.tag]()


def array(kind, items):
    """A C array; keeps what its items keep alive."""
    out = (kind * len(items))(*items)
    out.kept = items
    return out
