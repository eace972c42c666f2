"""The harness must notice what is wrong before its word counts: native against native, with differences put in."""

from .compare import ordered_at_the_end
from .shrink import Shrinker, replay, value_rows
from .steps import read, write

TABLE = "CREATE TABLE t(k INTEGER PRIMARY KEY, v INTEGER);\nINSERT INTO t VALUES (1, 1), (2, 2);\n"
# (script, the kind of difference that must be found; None: none)
SCRIPTS = [
    ("FROM t ORDER BY k;", None),
    ("-- @native FROM t ORDER BY k DESC\nFROM t;", None),
    ("-- @native FROM t ORDER BY k DESC\nFROM t ORDER BY k;", "order"),
    ("-- @unordered\n-- @native FROM t ORDER BY k DESC\nFROM t ORDER BY k;", None),
    ("-- @native SELECT 2 AS a\nSELECT 1 AS a;", "rows"),
    ("-- @native SELECT NULL::VARCHAR AS a\nSELECT '' AS a;", "rows"),
    ("-- @native SELECT 1 AS b\nSELECT 1 AS a;", "names"),
    ("-- @native SELECT 1::BIGINT AS a\nSELECT 1 AS a;", "types"),
    ("-- @native SELECT '-0'::DOUBLE AS a\nSELECT 0::DOUBLE AS a;", None),
    ("-- @native DELETE FROM t WHERE k = 1\nDELETE FROM t;", "rows"),
    ("-- @native SELECT 1\nSELECT nothing FROM t;", "ours fails: Binder"),
    ("-- @native SELECT nothing FROM t\nSELECT 1;", "only native fails: Binder"),
    ("-- @native SELECT * FROM nothing\nSELECT nothing FROM t;", "class Binder for Catalog"),
    ("-- @native UPDATE t SET v = 3 WHERE k = 1\nUPDATE t SET v = 4 WHERE k = 1;\n-- @check", "check rows"),
    ("-- @native CREATE TABLE u(k INTEGER)\nCREATE TABLE w(k INTEGER);\n-- @check", "tables"),
    ("-- @native ALTER TABLE t ADD COLUMN c BIGINT\nALTER TABLE t ADD COLUMN c INTEGER;\n-- @check", "check rows"),
    ("-- @native SELECT 1; SELECT 2 AS a\nSELECT 2 AS a;", None),
    # A conflict that ours does not see, and transactions that do not.
    ("-- @race\n-- @on a\nBEGIN;\n-- @on b\nBEGIN;\n-- @on a\n-- @native UPDATE t SET v = 5 WHERE k = 1\n"
     "UPDATE t SET v = 5 WHERE k = 1;\n-- @on b\n-- @native UPDATE t SET v = 6 WHERE k = 1\nUPDATE t SET v = 6 WHERE k = 2;\n"
     "-- @on a\nCOMMIT;\n-- @on b\nCOMMIT;\n-- @end", "race: only ours commits"),
    ("-- @race\n-- @on a\nBEGIN;\n-- @on b\nBEGIN;\n-- @on a\nUPDATE t SET v = 5 WHERE k = 1;\n-- @on b\n"
     "UPDATE t SET v = 6 WHERE k = 1;\n-- @on a\nCOMMIT;\n-- @on b\nCOMMIT;\n-- @end\n-- @check", None),
]


def selftest(zygote):
    for text, wanted in SCRIPTS:
        steps, settings = read(TABLE + text)
        again, _ = read(write(steps, {"x": "1"}))
        assert [s.text() for s in again] == [s.text() for s in steps], text
        wrong = replay(zygote, None, steps, settings)
        assert (wrong and wrong.kind) == wanted, f"{text}\n  found {wrong and wrong.kind}, not {wanted}: {wrong}"
    assert value_rows("VALUES (1, ')'), (f(2), 3) RETURNING (1)", 7)[0] == ["(1, ')')", "(f(2), 3)"]
    assert ordered_at_the_end("SELECT 1 ORDER BY 1") and not ordered_at_the_end("SELECT (SELECT 1 ORDER BY 1)")
    steps, _ = read(TABLE + "SELECT 1;\nINSERT INTO t VALUES (3, 3), (4, 4);\n-- @native SELECT 1 FROM t WHERE k = 4\n"
                    "SELECT 2 AS \"1\" FROM t WHERE k = 4;")
    small = Shrinker(zygote, None, {}, "rows", 30).shrink(steps)
    assert [s.sql[:6] for s in small] == ["CREATE", "INSERT", "SELECT"] and "(3, 3)" not in small[1].sql, write(small, {})
