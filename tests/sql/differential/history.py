"""Makes up a history of statements, one at a time, and runs each on both databases."""

import random

from . import values
from .queries import predicate, projection, query
from .schema import NAMES, TABLES, Column, random_table, random_type, same_value
from .steps import Step
from .values import name_of

OPTIONS = {
    "memtable_bytes": ["1MiB", "2MiB", ""], "target_file_bytes": ["1MiB", ""], "l0_files": ["2", "3", ""],
    "max_deleted_percent": ["1", "20", ""], "gc_grace_secs": ["0", ""], "auto_compaction": ["true", "true", "false"],
    "cache_bytes": ["0", ""], "row_cache_bytes": ["0", ""], "durability": ["os", "sync"],
}


def settings(rng):
    made = {name: choice for name, choices in OPTIONS.items() if (choice := rng.choice(choices))}
    if rng.random() < 0.7:
        made["on_duplicate"] = rng.choice(["error", "error", "error", "ignore"])
    return made


class History:
    def __init__(self, seed, pair, places):
        self.rng = random.Random(seed)
        self.pair = pair
        self.places = places
        self.duplicates = pair.settings.get("on_duplicate", "update")
        self.steps = []
        self.tables = {}
        self.saved = None  # the tables at BEGIN, while a transaction is open
        self.written = False
        self.favourite = ""  # the table that statements are about; "" for any

    # -- one step --------------------------------------------------------------------------------------------------

    def add(self, step):
        self.steps.append(step)
        return self.pair.run(step)

    def do(self, sql, native="", unordered=False):
        """Runs a statement; whether it worked. A failed one ends an open transaction."""
        mine, _ = self.add(Step("sql", sql, native=native, unordered=unordered))
        if mine.error is not None and self.saved is not None:
            self.end("ROLLBACK")
        return mine.error is None

    def end(self, how):
        mine, _ = self.add(Step("sql", how))
        if how == "ROLLBACK" or mine.error is not None:
            self.tables = self.saved
        self.saved = None

    def run(self, count):
        rng = self.rng
        for name in rng.sample(TABLES, rng.choice([1, 1, 2, 3, 4])):
            self.create(name)
        actions = [(self.insert, 6), (self.insert_select, 2), (self.bulk, 0.6), (self.update, 3), (self.update_key, 1),
                   (self.delete, 2), (self.bad, 0.7), (self.place, 2.5), (self.ask, 7), (self.get, 0.7)]
        actions += [(self.merge, 2), (self.truncate, 0.15), (self.begin, 1.2), (self.race, 0.8), (self.add_column, 0.5),
                    (self.drop_column, 0.4), (self.rename, 0.3), (self.rename_table, 0.15), (self.set_default, 0.3),
                    (self.set_not_null, 0.4), (self.widen, 0.4), (self.recreate, 0.3), (self.table_as, 0.3),
                    (self.create_in_transaction, 0.2), (self.alter_in_transaction, 0.5)]
        weights = [weight for _, weight in actions]
        while len(self.steps) < count:
            if self.saved is not None and rng.random() < 0.15:
                self.end(rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
                self.check(1)
            rng.choices([action for action, _ in actions], weights)[0]()
            self.check(0.3)
        if self.saved is not None:
            self.end("COMMIT")
        self.add(Step("check"))

    def check(self, chance):
        if self.written and self.rng.random() < chance:
            self.add(Step("check"))
            self.written = self.saved is not None

    def table(self):
        return self.tables.get(self.favourite) or self.rng.choice(list(self.tables.values()))

    # -- tables ----------------------------------------------------------------------------------------------------

    def create(self, name):
        table = random_table(self.rng, name)
        if self.do(f"CREATE TABLE {table.sql}({table.definition()})"):
            self.tables[name] = table

    def recreate(self):
        rng = self.rng
        free = [name for name in TABLES if name not in self.tables]
        if len(self.tables) > 1 and rng.random() < 0.4:
            table = self.table()
            if self.do(f"DROP TABLE {rng.choice(['', 'IF EXISTS '])}{table.sql}"):
                del self.tables[table.name]
        elif rng.random() < 0.3:
            table = random_table(rng, self.table().name)
            if self.do(f"CREATE OR REPLACE TABLE {table.sql}({table.definition()})"):
                self.tables[table.name] = table
        elif free and len(self.tables) < 5:
            self.create(rng.choice(free))
        else:
            table = self.table()
            self.do(f"CREATE TABLE IF NOT EXISTS {table.sql}({table.definition()})")

    def create_in_transaction(self):
        """A table that is made and filled in one transaction, or never was."""
        free = [name for name in TABLES if name not in self.tables]
        if not free or self.saved is not None:
            return
        self.begin()
        table = random_table(self.rng, self.rng.choice(free))
        if self.do(f"CREATE TABLE {table.sql}({table.definition()})"):
            self.tables[table.name] = table
            for _ in range(self.rng.randint(0, 2)):
                sql = f"INSERT INTO {table.sql} VALUES {self.rows(table, table.columns, 3, True)}"
                if not self.do(sql, self.plain(sql)):
                    return
            self.do(f"SELECT * FROM {table.sql}")
            if self.saved is not None:
                self.end(self.rng.choice(["COMMIT", "ROLLBACK"]))
        self.written = True

    def alter_in_transaction(self):
        """A table that is written to, altered and written to in one transaction."""
        self.begin()
        self.favourite = self.table().name
        writes = [self.insert, self.insert_select, self.update, self.update_key, self.delete, self.merge]
        alters = [self.add_column, self.drop_column, self.rename, self.set_not_null, self.set_default, self.widen,
                  self.rename_table]
        for action in (writes, alters, writes, alters, [self.ask]):
            if self.saved is not None:
                self.rng.choice(action)()
        self.favourite = ""
        if self.saved is not None:
            self.end(self.rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        self.written = True

    def table_as(self):
        """CREATE TABLE … AS: the key is named in an option, which a native table does not have."""
        free = [name for name in TABLES if name not in self.tables]
        if not free:
            return
        rng, source = self.rng, self.table()
        made = source.copy()
        made.name, made.checks = rng.choice(free), []
        for column in made.columns:
            column.default, column.not_null = "", column.name in made.key
        key = ", ".join(k.sql for k in made.keys)
        names = ", ".join(c.sql for c in made.columns)
        select = f"SELECT {names} FROM {source.sql} WHERE {predicate(rng, source)}"
        native = f"CREATE TABLE {made.sql}({made.definition()}); INSERT INTO {made.sql} {select}"
        if self.do(f"CREATE TABLE {made.sql} WITH (primary_key = {values.quote(key)}) AS {select}", native):
            self.tables[made.name] = made
        self.written = True

    def add_column(self):
        table = self.table()
        free = [n for n in NAMES if n.lower() not in {c.name.lower() for c in table.columns}]
        if not free or len(table.columns) > 12:
            return
        column = Column(self.rng.choice(free), random_type(self.rng))
        # A native table cannot be given a DEFAULT of nested ENUMs ("Cannot serialize non-constant type parameter"), nor of
        # MAPs where it has many rows (an INTERNAL error).
        given = not column.type.has_inner_enum and not (table.many and "MAP" in column.type.sql)
        if given and self.rng.random() < 0.6:
            column.default = column.literal(self.rng, 0.1)
        default = f" DEFAULT {column.default}" if column.default else ""
        if self.do(f"ALTER TABLE {table.sql} ADD COLUMN {column.sql} {column.type.sql}{default}"):
            self.replace(table).columns.append(column)
        self.written = True

    def replace(self, table):
        """A copy of the table's model in its place, so that a rollback finds the old one."""
        self.tables[table.name] = table.copy()
        return self.tables[table.name]

    def drop_column(self):
        table = self.table()
        # A native table can drop no column that stands before one of its key.
        last = max(i for i, c in enumerate(table.columns) if c.name in table.key)
        if last + 1 == len(table.columns):
            return
        column = self.rng.choice([*table.columns[last + 1:], *table.keys])
        if self.do(f"ALTER TABLE {table.sql} DROP COLUMN {column.sql}"):
            changed = self.replace(table)
            changed.columns = [c for c in changed.columns if c.name != column.name]
        self.written = True

    def rename(self):
        table, rng = self.table(), self.rng
        free = [n for n in NAMES if n.lower() not in {c.name.lower() for c in table.columns}]
        if table.checks:
            return
        column, to = rng.choice(table.columns), rng.choice([*free, *[c.name for c in table.columns]])
        if self.do(f"ALTER TABLE {table.sql} RENAME {column.sql} TO {name_of(to)}"):
            changed = self.replace(table)
            changed.column(column.name).name = to
            changed.key = [to if k == column.name else k for k in changed.key]
        self.written = True

    def rename_table(self):
        table = self.table()
        to = self.rng.choice(TABLES)
        if self.do(f"ALTER TABLE {table.sql} RENAME TO {name_of(to)}"):
            changed = self.replace(table)
            del self.tables[table.name]
            changed.name = to
            self.tables[to] = changed

    def set_default(self):
        table = self.table()
        column = self.rng.choice(table.columns)
        made = column.literal(self.rng, 0.1) if self.rng.random() < 0.7 and not column.type.has_inner_enum else ""
        what = f"SET DEFAULT {made}" if made else "DROP DEFAULT"
        if self.do(f"ALTER TABLE {table.sql} ALTER {column.sql} {what}"):
            self.replace(table).column(column.name).default = made

    def set_not_null(self):
        table = self.table()
        if not table.values:
            return
        column = self.rng.choice(table.values)
        what = self.rng.choice(["SET", "DROP"])
        if self.do(f"ALTER TABLE {table.sql} ALTER {column.sql} {what} NOT NULL"):
            self.replace(table).column(column.name).not_null = what == "SET"

    def widen(self):
        table = self.table()
        some = [c for c in table.values if c.type.sql in values.WIDER]
        if not some:
            return
        column = self.rng.choice(some)
        to = self.rng.choice(values.WIDER[column.type.sql])
        if self.do(f"ALTER TABLE {table.sql} ALTER {column.sql} TYPE {to}"):
            changed = self.replace(table).column(column.name)
            changed.type, changed.pool, changed.default = values.BY_NAME[to], [], ""
        self.written = True

    # -- rows ------------------------------------------------------------------------------------------------------

    def rows(self, table, columns, count, unique):
        """Rows of VALUES; with unique, one per key."""
        made, seen = [], set()
        for _ in range(count):
            row = {c.name: c.literal(self.rng, 0 if c.not_null else 0.15) for c in columns}
            key = tuple(same_value(table.column(n).type, row.get(n, "")) for n in table.key)
            if unique and key in seen:
                continue
            seen.add(key)
            made.append("(" + ", ".join(row.values()) + ")")
        return ", ".join(made)

    def plain(self, sql):
        """What a plain INSERT is on a native table."""
        if self.duplicates == "error":
            return ""
        return sql.replace("INSERT INTO", f"INSERT OR {'REPLACE' if self.duplicates == 'update' else 'IGNORE'} INTO", 1)

    def returning(self, table, verb=""):
        # INSERT OR REPLACE … RETURNING of a native table that has nothing but its key returns other rows.
        replaces = verb.endswith("REPLACE INTO") or (verb == "INSERT INTO" and self.duplicates == "update")
        if self.rng.random() < 0.75 or (replaces and not table.values):
            return ""
        return " RETURNING " + (self.rng.choice(["*", projection(self.rng, table)]))

    def insert(self):
        rng, table = self.rng, self.table()
        columns, conflict, verb = list(table.columns), "", "INSERT INTO"
        exact = rng.random() < 0.45
        if exact:
            verb, conflict = self.conflict(table)
        subset = not verb.endswith("REPLACE INTO") and (exact or self.duplicates != "update")
        if rng.random() < 0.3:
            rng.shuffle(columns)
            if subset and rng.random() < 0.7:
                columns = [c for c in columns if c.name in table.key or c.default or rng.random() < 0.6]
        unique = exact or self.duplicates != "error" or rng.random() < 0.9
        made = self.rows(table, columns, rng.choice([1, 1, 2, 5, 20]), unique)
        names = ", ".join(c.sql for c in columns)
        form = rng.random()
        if form < 0.6:
            sql = f"{verb} {table.sql}({names}) VALUES {made}"
        elif form < 0.8:
            sql = f"{verb} {table.sql} BY NAME SELECT * FROM (VALUES {made}) s({names})"
        else:
            sql = f"{verb} {table.sql}({names}) SELECT {names} FROM (VALUES {made}) s({names})"
        sql += conflict + self.returning(table, verb)
        self.do(sql, "" if exact else self.plain(sql))
        self.written = True

    def conflict(self, table):
        """(verb, clause) of an INSERT that says itself what happens to a key that is there."""
        rng = self.rng
        keys = ", ".join(k.sql for k in table.keys)
        roll = rng.random()
        if roll < 0.2:
            return "INSERT OR REPLACE INTO", ""
        if roll < 0.35:
            return "INSERT OR IGNORE INTO", ""
        if roll < 0.5 or not table.values:
            return "INSERT INTO", f" ON CONFLICT {rng.choice(['', f'({keys}) '])}DO NOTHING"
        some = rng.sample(table.values, rng.randint(1, len(table.values)))
        sets = ", ".join(f"{c.sql} = {self.assigned(c, rng.choice(['excluded', 'excluded', 'literal', 'own']), table)}"
                         for c in some)
        where = ""
        if rng.random() < 0.4:
            where = f" WHERE {predicate(rng, table, 1, prefix=rng.choice(['excluded.', table.sql + '.']))}"
        return "INSERT INTO", f" ON CONFLICT ({keys}) DO UPDATE SET {sets}{where}"

    def assigned(self, column, how, table):
        if how == "excluded":
            return f"excluded.{column.sql}"
        if how == "own":
            same = [c for c in table.columns if c.type.sql == column.type.sql]
            other = self.rng.choice(same)
            return f"{table.sql}.{other.sql}"
        return column.literal(self.rng)

    def insert_select(self):
        """Rows of a table again, with other values, into the same table."""
        rng, table = self.rng, self.table()
        changed = rng.choice(table.columns)
        made = ", ".join(f"{c.literal(rng)} AS {c.sql}" if c is changed and c.name not in table.key else c.sql
                         for c in table.columns)
        sql = f"INSERT INTO {table.sql} SELECT {made} FROM {table.sql} WHERE {predicate(rng, table)}"
        if rng.random() < 0.5:
            self.do(sql + " ON CONFLICT DO NOTHING")
        else:
            self.do(sql, self.plain(sql))
        self.written = True

    def bulk(self):
        """Many rows at once, with keys of a range."""
        rng, table = self.rng, self.table()
        if len(table.key) != 1 or table.keys[0].type.sql not in ("INTEGER", "BIGINT", "UINTEGER", "UBIGINT", "HUGEINT"):
            return
        first, count = rng.randint(0, 5000), rng.choice([100, 1000, 3000, 12000])
        fixed = ", ".join(f"i::{c.type.sql}" if c.name in table.key else "md5(i::VARCHAR)" if c.type.sql == "VARCHAR"
                          else c.literal(rng) for c in table.columns)
        sql = f"INSERT INTO {table.sql} SELECT {fixed} FROM range({first}, {first + count}) r(i)"
        self.do(sql, self.plain(sql))
        table.many = True
        self.written = True

    def update(self):
        rng, table = self.rng, self.table()
        if not table.values:
            return
        some = rng.sample(table.values, rng.randint(1, min(3, len(table.values))))
        form = rng.random()
        if form < 0.75:
            sets = ", ".join(f"{c.sql} = {self.expression(c, table)}" for c in some)
            where = f" WHERE {predicate(rng, table)}" if rng.random() < 0.95 else ""
            self.do(f"UPDATE {table.sql} SET {sets}{where}{self.returning(table)}")
        else:
            source = f"(SELECT * FROM {table.sql} WHERE {predicate(rng, table)}) s"
            sets = ", ".join(f"{c.sql} = {rng.choice([c.literal(rng), 's.' + c.sql])}" for c in some)
            on = " AND ".join(f"{table.sql}.{k.sql} = s.{k.sql}" for k in table.keys)
            self.do(f"UPDATE {table.sql} SET {sets} FROM {source} WHERE {on}")
        self.written = True

    def expression(self, column, table):
        rng, roll = self.rng, self.rng.random()
        if roll < 0.5:
            return column.literal(rng)
        if roll < 0.6 and not column.not_null:
            return "NULL"
        if roll < 0.65:
            return "DEFAULT"
        same = [c for c in table.columns if c.type.sql == column.type.sql]
        if roll < 0.8:
            return rng.choice(same).sql
        if column.type.group == "integer":
            return f"{column.sql} {rng.choice(['+', '-', '//'])} 1"
        if column.type.group == "text":
            return rng.choice([f"upper({column.sql})", f"{column.sql} || 'x'", f"substr({column.sql}, 2)"])
        return f"CASE WHEN {predicate(rng, table, 1)} THEN {column.sql} ELSE {column.literal(rng)} END"

    def update_key(self):
        rng, table = self.rng, self.table()
        key = rng.choice(table.keys)
        # A native table finds keys taken that rows leave in the same statement, where these are in another vector.
        if key.type.group == "integer" and not table.many and rng.random() < 0.4:
            made = f"{key.sql} {rng.choice(['+ 1', '- 1', '+ 100'])}"
        else:
            made = key.literal(rng, 0)
        where = predicate(rng, table) if rng.random() < 0.5 else " AND ".join(
            f"{k.sql} = {k.literal(rng, 0)}" for k in table.keys)
        self.do(f"UPDATE {table.sql} SET {key.sql} = {made} WHERE {where}{self.returning(table)}")
        self.written = True

    def delete(self):
        rng, table = self.rng, self.table()
        roll = rng.random()
        if roll < 0.04:
            sql = f"DELETE FROM {table.sql}"
        elif roll < 0.2:
            on = " AND ".join(f"{table.sql}.{k.sql} = s.{k.sql}" for k in table.keys)
            sql = f"DELETE FROM {table.sql} USING (SELECT * FROM {table.sql} WHERE {predicate(rng, table)}) s WHERE {on}"
        elif roll < 0.3:
            keys = ", ".join(k.sql for k in table.keys)
            sql = f"DELETE FROM {table.sql} WHERE ({keys}) IN (SELECT ({keys}) FROM {table.sql} ORDER BY {keys} LIMIT 2)"
        else:
            sql = f"DELETE FROM {table.sql} WHERE {predicate(rng, table)}"
        self.do(sql + (self.returning(table) if "USING" not in sql else ""))
        self.written = True

    def merge(self):
        rng, table = self.rng, self.table()
        names = ", ".join(c.sql for c in table.columns)
        source = f"(SELECT {names} FROM (VALUES {self.rows(table, table.columns, rng.choice([1, 3, 8]), True)}) v({names})) s"
        on = " AND ".join(f"{table.sql}.{k.sql} = s.{k.sql}" for k in table.keys)
        clauses = []
        for kind in ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"):
            for _ in range(rng.choice([0, 1, 1, 2]) if kind != "NOT MATCHED BY SOURCE" else rng.choice([0, 0, 1])):
                clauses.append(self.when(kind, table))
        if not clauses:
            clauses = [self.when("NOT MATCHED", table)]
        # A native table returns anything in the columns that an UPDATE of MERGE does not set, and it dies now and then where
        # there are nested ones and the source has no row for it.
        breaks = any(c.type.kind != "scalar" for c in table.columns) and any("BY SOURCE" in c and "UPDATE" in c for c in clauses)
        returning = "" if breaks else rng.choice(["", "", " RETURNING merge_action"])
        self.do(f"MERGE INTO {table.sql} USING {source} ON {on} {' '.join(clauses)}{returning}")
        self.written = True

    def when(self, kind, table):
        rng = self.rng
        condition = ""
        if rng.random() < 0.4:
            prefix = "s." if kind == "NOT MATCHED" else f"{table.sql}."
            condition = f" AND {predicate(rng, table, 1, prefix=prefix)}"
        if kind == "NOT MATCHED":
            then = rng.choice(["INSERT", "INSERT VALUES (" + ", ".join(f"s.{c.sql}" for c in table.columns) + ")",
                               "INSERT BY NAME", "DO NOTHING"])
        elif kind == "MATCHED":
            some = rng.sample(table.values, rng.randint(1, len(table.values))) if table.values else []
            sets = ", ".join(f"{c.sql} = {rng.choice([f's.{c.sql}', c.literal(rng)])}" for c in some)
            then = rng.choice(["DELETE", "DO NOTHING", f"UPDATE SET {sets}", f"UPDATE SET {sets}"] if some else ["DELETE"])
        else:
            some = rng.sample(table.values, 1) if table.values else []
            then = rng.choice(["DELETE", *[f"UPDATE SET {c.sql} = {c.literal(rng)}" for c in some]])
        return f"WHEN {kind}{condition} THEN {then}"

    def truncate(self):
        self.do(f"TRUNCATE {self.table().sql}")
        self.written = True

    def bad(self):
        """Statements that fail, and leave nothing."""
        rng, table = self.rng, self.table()
        good = self.rows(table, table.columns, 2, True)
        key = rng.choice(table.keys)
        bad = "(" + ", ".join("NULL" if c is key else c.literal(rng, 0) for c in table.columns) + ")"
        forms = [f"INSERT INTO {table.sql} VALUES {good}, {bad}", f"UPDATE {table.sql} SET {key.sql} = NULL",
                 f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE 1 = (SELECT 1 // 0 + error('no'))",
                 f"DELETE FROM {table.sql} WHERE error('no') IS NULL", f"SELECT nothing FROM {table.sql}",
                 "SELECT * FROM no_such_table", f"INSERT INTO {table.sql}(nothing) VALUES (1)",
                 f"INSERT INTO {table.sql} VALUES ({', '.join('1' for _ in range(len(table.columns) + 1))})"]
        integer = [c for c in table.values if c.type.sql == "TINYINT"]
        if integer:
            forms.append(f"UPDATE {table.sql} SET {integer[0].sql} = 1000")
        if table.checks:
            forms.append(f"UPDATE {table.sql} SET {table.checks[0].replace('<>', '=')}")
        self.do(rng.choice(forms))
        self.written = True

    # -- transactions ----------------------------------------------------------------------------------------------

    def begin(self):
        if self.saved is None:
            self.saved = dict(self.tables)
            self.add(Step("sql", "BEGIN"))

    def race(self):
        """Two transactions at a time."""
        if self.saved is not None:
            return
        rng, plans = self.rng, []
        for name in ("a", "b"):
            plan = ["BEGIN"]
            for _ in range(rng.randint(1, 4)):
                plan.append(self.racing(self.table()))
            plans.append([(name, sql) for sql in [*plan, "COMMIT"]])
        if rng.random() < 0.15:
            plans[1] = plans[1][1:-1]  # single statements beside a transaction
            plans[1] = plans[1][:1]
        steps = []
        while any(plans):
            name, sql = rng.choice([p for p in plans if p]).pop(0)
            steps.append(Step("sql", sql, connection=name))
        self.add(Step("race", race=steps))
        self.add(Step("check"))

    def racing(self, table):
        rng = self.rng
        forms = [f"DELETE FROM {table.sql} WHERE {predicate(rng, table)}", f"SELECT * FROM {table.sql}",
                 f"SELECT count(*) FROM {table.sql} WHERE {predicate(rng, table)}"]
        if self.duplicates == "error":
            forms.append(f"INSERT INTO {table.sql} VALUES {self.rows(table, table.columns, rng.choice([1, 2]), True)}")
        if table.values:
            column = rng.choice(table.values)
            forms += 2 * [f"UPDATE {table.sql} SET {column.sql} = {column.literal(rng)} WHERE {predicate(rng, table)}"]
        return rng.choice(forms)

    # -- the rest --------------------------------------------------------------------------------------------------

    def place(self):
        self.add(Step(self.rng.choice(self.places)))
        if "kill" == self.steps[-1].kind and self.saved is not None:
            self.tables, self.saved = self.saved, None
        self.written = True

    def ask(self):
        sql = query(self.rng, self.table(), list(self.tables.values()))
        self.do(sql)

    def get(self):
        """merutable_get, outside of transactions."""
        if self.saved is not None:
            return
        table = self.table()
        keys = [k.literal(self.rng, 0) for k in table.keys]
        native = f"SELECT * FROM {table.sql} WHERE " + " AND ".join(f"{k.sql} = {v}" for k, v in zip(table.keys, keys))
        self.do(f"SELECT * FROM merutable_get('db', {', '.join(keys)}, table_name := {values.quote(table.name)})", native)
