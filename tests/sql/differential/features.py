"""What the extension can do: each feature is tried on a table of its own."""

import os
import shutil
import tempfile

from runner.process import WorkerDied
from runner.session import Session, SessionError

ATTACH = "ATTACH 'db' AS m (TYPE merutable)"
TABLE = "CREATE TABLE m.t(k INT PRIMARY KEY, v INT, w VARCHAR)"
PROBES = {
    "on_duplicate": ["ATTACH 'db' AS m (TYPE merutable, ON_DUPLICATE 'error')"],
    "tables": [ATTACH, TABLE, "CREATE TABLE m.u(k INT PRIMARY KEY)", "INSERT INTO m.u VALUES (1)"],
    "transactions": [ATTACH, TABLE, "BEGIN", "INSERT INTO m.t VALUES (1, 1, 'a')", "UPDATE m.t SET v = 2", "COMMIT"],
    "ddl_in_transactions": [ATTACH, "BEGIN", TABLE, "INSERT INTO m.t VALUES (1, 1, 'a')", "COMMIT"],
    "conflict": [ATTACH, TABLE, "INSERT INTO m.t VALUES (1, 1, 'a')",
                 "INSERT INTO m.t VALUES (1, 2, 'a') ON CONFLICT (k) DO UPDATE SET v = excluded.v",
                 "INSERT OR IGNORE INTO m.t VALUES (1, 2, 'a')", "INSERT OR REPLACE INTO m.t VALUES (1, 2, 'a')"],
    "merge": [ATTACH, TABLE, "MERGE INTO m.t USING (VALUES (1, 2)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DELETE "
              "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'x')"],
    "truncate": [ATTACH, TABLE, "TRUNCATE m.t"],
    "add_column": [ATTACH, TABLE, "ALTER TABLE m.t ADD COLUMN x INT DEFAULT 4"],
    "add_column_expression": [ATTACH, TABLE, "ALTER TABLE m.t ADD COLUMN x INT DEFAULT '4'::INT"],
    "drop_column": [ATTACH, TABLE, "ALTER TABLE m.t DROP COLUMN v"],
    "rename": [ATTACH, TABLE, "ALTER TABLE m.t RENAME v TO vv"],
    "rename_table": [ATTACH, TABLE, "ALTER TABLE m.t RENAME TO tt"],
    "set_default": [ATTACH, TABLE, "ALTER TABLE m.t ALTER v SET DEFAULT 5", "ALTER TABLE m.t ALTER v DROP DEFAULT"],
    "set_not_null": [ATTACH, TABLE, "ALTER TABLE m.t ALTER v SET NOT NULL", "ALTER TABLE m.t ALTER v DROP NOT NULL"],
    "widen": [ATTACH, TABLE, "ALTER TABLE m.t ALTER v TYPE BIGINT"],
    "widen_hugeint": [ATTACH, TABLE, "INSERT INTO m.t VALUES (1, 1, 'a')", "ALTER TABLE m.t ALTER v TYPE HUGEINT", "FROM m.t"],
    "nested": [ATTACH, "CREATE TABLE m.t(k INT PRIMARY KEY, s STRUCT(a INT, b VARCHAR[]), m MAP(INT, INT), a INT[2])",
               "INSERT INTO m.t VALUES (1, {'a': 1, 'b': ['x']}, MAP {1: 2}, [1, 2])"],
    "rare": [ATTACH, "CREATE TABLE m.t(k INT PRIMARY KEY, z TIMETZ, j JSON)"],
    "check": [ATTACH, "CREATE TABLE m.t(k INT PRIMARY KEY, v INT CHECK (v > 0))"],
}


def detect(zygote, extension):
    found = set()
    for name, statements in PROBES.items():
        scratch = tempfile.mkdtemp(prefix="meru-")
        session = Session(zygote, scratch, scratch, extension, 30)
        try:
            if all(session.run("", sql).error is None for sql in statements):
                found.add(name)
        except (WorkerDied, SessionError):
            pass
        finally:
            session.worker.kill()
            shutil.rmtree(scratch, ignore_errors=True)
    return found
