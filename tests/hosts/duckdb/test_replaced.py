"""A name that stands for one database, then for another, under statements that run."""

import random
import threading

import duckdb

from support import POISON, attach, literal

STATEMENTS = (
    "SELECT count(*) FROM m.t",
    "SELECT count(*) FROM m.t a JOIN m.t b USING (id)",
    "SHOW ALL TABLES",
    "SELECT count(*) FROM duckdb_tables() a, duckdb_columns() b, duckdb_tables() c",
    "SELECT count(*) FROM information_schema.tables, information_schema.columns",
    "SELECT * FROM m.nope",
    "INSERT INTO m.t VALUES (5, 'y')",
    "UPDATE m.t SET s = 'z' WHERE id < 5",
    "DELETE FROM m.t WHERE id = 7",
)
ROUNDS = 250


def test_statements_while_their_database_is_replaced(connect, tmp_path):
    """DuckDB takes two databases of one name in a statement for a fault of its own, and gives the instance up."""
    con = connect()
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        attach(con, path)
        con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, s VARCHAR)")
        con.execute("INSERT INTO m.t SELECT i, 'x' FROM range(1000) r(i)")
        con.execute("DETACH m")
    attach(con, paths[0])
    done = threading.Event()
    poison = []

    def execute(cursor, sql):
        try:
            cursor.execute(sql).fetchall()
        except duckdb.Error as error:
            if any(word in str(error) for word in POISON):
                poison.append(f"{sql}: {error}")

    def run(seed):
        rng, cursor = random.Random(seed), con.cursor()
        while not done.is_set():
            execute(cursor, rng.choice(STATEMENTS))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for n in range(ROUNDS):
        execute(con, "DETACH m")
        execute(con, f"ATTACH {literal(paths[n % 2])} AS m (TYPE merutable)")
    done.set()
    for thread in threads:
        thread.join()
    assert not poison, poison[0]
    assert con.execute("SELECT count(*) FROM m.t").fetchone()[0] >= 999
