"""Random conditions and queries over the generator's tables."""

from .values import quote

OPERATORS = ["=", "=", "<", "<=", ">", ">=", "<>"]


def has_interval(kind):
    return "INTERVAL" in kind.sql


def predicate(rng, table, depth=0, prefix=""):
    column = rng.choice(table.columns if rng.random() < 0.6 else table.keys)
    kind, name = column.type, prefix + column.sql
    roll = rng.random()
    if depth < 2 and roll < 0.28:
        return f"({predicate(rng, table, depth + 1, prefix)} {rng.choice(['AND', 'OR'])} " \
               f"{predicate(rng, table, depth + 1, prefix)})"
    if roll < 0.33:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if roll < 0.43:
        some = ", ".join(column.literal(rng, 0.05) for _ in range(rng.choice([1, 2, 4, 9])))
        return f"{name} {rng.choice(['', '', 'NOT '])}IN ({some})"
    # DuckDB's Parquet reader fails on that with MAPs now and then ("Out of buffer"), in files of its own too.
    if roll < 0.48 and "MAP" not in kind.sql:
        return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {column.literal(rng)}"
    if roll < 0.52 and not prefix:
        return f"{name} IN (SELECT {name} FROM {table.sql} WHERE {predicate(rng, table, 2)})"
    if roll < 0.55:
        return f"NOT ({predicate(rng, table, depth + 1, prefix)})" if depth < 2 else f"{name} IS NULL"
    if roll < 0.6 and "MAP" not in kind.sql:  # which DuckDB refuses, when it comes to rows
        return f"{name} BETWEEN {column.literal(rng, 0)} AND {column.literal(rng, 0)}"
    if roll < 0.75:
        special = special_predicate(rng, column, name)
        if special:
            return special
    return f"{name} {rng.choice(OPERATORS)} {column.literal(rng, 0.02)}"


def special_predicate(rng, column, name):
    kind = column.type
    if kind.group == "text":
        return rng.choice([f"{name} LIKE 'a%'", f"{name} LIKE '%1'", f"{name} LIKE 'na_ve%'", f"length({name}) > 5",
                           f"prefix({name}, 'ab')", f"{name} ILIKE 'A%'", f"{name} NOT LIKE 'x%'", f"{name} LIKE 'ab'",
                           f"{name} SIMILAR TO 'a.*'", f"upper({name}) = 'A'", f"starts_with({name}, 'x')",
                           f"{name} || 'x' = 'ax'", f"contains({name}, 'b')"])
    if kind.group == "integer":
        small = [f"{name} = 1.5", f"{name} < 100.5"] if kind.sql in ("SMALLINT", "INTEGER", "UINTEGER") else []
        return rng.choice([f"{name} % 2 = 0", f"{name} IN (1, 2, 3)", f"{name} > 0 AND {name} < 100",
                           f"{name}::DOUBLE > 3", *small])
    if kind.group == "float":
        return rng.choice([f"isnan({name})", f"isinf({name})", f"{name} > 0", f"{name} <> 1.5"])
    if kind.group == "decimal":
        return rng.choice([f"{name} > 0", f"{name} < 0.5", f"{name} = 0"])
    if kind.group == "moment":
        return rng.choice([f"year({name}) < 1970", f"{name} > '1970-01-01'", f"isfinite({name})"]) \
            if kind.sql not in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS") else f"{name} > '1970-01-01'"
    if kind.kind == "list":
        return rng.choice([f"len({name}) > 1", f"{name}[1] IS NULL", f"{name}[1] = {kind.of[0].literal(rng)}",
                           f"list_contains({name}, {kind.of[0].literal(rng)})", f"len({name}) = 0"])
    if kind.kind == "array":
        return f"{name}[1] {rng.choice(OPERATORS)} {kind.of[0].literal(rng)}"
    if kind.kind == "map":
        return rng.choice([f"cardinality({name}) > 1", f"map_contains({name}, {kind.of[0].literal(rng)})"])
    if kind.kind == "struct":
        field, of = rng.choice(kind.of)
        return f"struct_extract({name}, {quote(field)}) {rng.choice([*OPERATORS, 'IS NOT DISTINCT FROM'])} {of.literal(rng)}"
    if kind.sql == "BOOLEAN":
        return rng.choice([name, f"NOT {name}"])
    return ""


def projection(rng, table):
    """Some expressions over the columns."""
    made = []
    for _ in range(rng.randint(1, 3)):
        column = rng.choice(table.columns)
        kind, name = column.type, column.sql
        if kind.kind == "struct" and rng.random() < 0.7:
            made.append(f"struct_extract({name}, {quote(rng.choice(kind.of)[0])})")
        elif kind.kind in ("list", "array") and rng.random() < 0.5:
            made.append(rng.choice([f"{name}[1]", f"{name}[-1]"] + ([f"len({name})", f"{name}[1:2]"] if kind.kind == "list"
                                                                      else [])))
        elif kind.kind == "map" and rng.random() < 0.5:
            made.append(rng.choice([f"map_keys({name})", f"map_values({name})", f"cardinality({name})"]))
        elif kind.group == "text" and rng.random() < 0.5:
            made.append(rng.choice([f"length({name})", f"upper({name})", f"{name} || '!'", f"md5({name})"]))
        else:
            made.append(rng.choice([name, name, f"{name}::VARCHAR", f"{name} IS NULL", f"coalesce({name}, {name})"]))
    return ", ".join(f"{e} AS e{i}" for i, e in enumerate(made))


def query(rng, table, tables):
    """(SQL, whether its order does not count)."""
    column = rng.choice(table.columns)
    kind, name, t = column.type, column.sql, table.sql
    where = f" WHERE {predicate(rng, table)}" if rng.random() < 0.8 else ""
    keys = ", ".join(k.sql for k in table.keys)
    backwards = ", ".join(f"{k.sql} DESC" for k in table.keys)
    shapes = [
        f"SELECT * FROM {t}{where}", f"SELECT {name} FROM {t}{where}", f"SELECT {projection(rng, table)} FROM {t}{where}",
        f"SELECT count(*) FROM {t}{where}", f"SELECT count(*), count({name}) FROM {t}{where}",
        f"SELECT * FROM {t}{where} ORDER BY {keys} LIMIT {rng.randint(0, 6)}",
        f"SELECT {keys} FROM {t}{where} ORDER BY {backwards} LIMIT 3 OFFSET {rng.randint(0, 3)}",
        f"SELECT {name}, {keys} FROM {t}{where} ORDER BY {name} DESC NULLS LAST, {keys} LIMIT {rng.randint(1, 8)}",
        f"SELECT {name}, {keys} FROM {t}{where} ORDER BY {name} NULLS FIRST, {keys} LIMIT {rng.randint(1, 8)}",
        f"SELECT count(*) FROM {t} x JOIN {t} y USING ({keys})",
        f"SELECT count(*) FROM {t} JOIN (SELECT {keys} FROM {t}{where} ORDER BY {keys} LIMIT 5) s USING ({keys})",
        f"SELECT * FROM {t} JOIN (SELECT {keys} FROM {t}{where} ORDER BY {backwards} LIMIT 4) s USING ({keys})",
        f"SELECT count(*) FROM {t} x WHERE EXISTS (SELECT 1 FROM {t} y WHERE x.{name} = y.{name}{where.replace(' WHERE', ' AND')})",
        f"SELECT {keys}, row_number() OVER (ORDER BY {keys}) AS n FROM {t}{where}",
        f"SELECT {keys}, lag({name}) OVER (ORDER BY {keys}) AS l FROM {t}{where}",
        f"SELECT {keys}, count(*) OVER (PARTITION BY {table.keys[0].sql}) AS c FROM {t}{where}",
        f"WITH q AS (SELECT * FROM {t}{where}) SELECT count(*) FROM q x, q y WHERE x.{table.keys[0].sql} < y.{table.keys[0].sql}",
        f"SELECT * FROM {t}{where} QUALIFY row_number() OVER (PARTITION BY {table.keys[-1].sql} ORDER BY {keys}) = 1",
        f"SELECT {keys} FROM {t}{where} UNION ALL SELECT {keys} FROM {t} WHERE {predicate(rng, table)}",
        f"SELECT {keys} FROM {t} EXCEPT SELECT {keys} FROM {t}{where}",
        f"SELECT {keys} FROM {t} INTERSECT SELECT {keys} FROM {t}{where}",
        f"FROM {t} SELECT {keys} WHERE ({keys}) = ({', '.join(k.literal(rng, 0) for k in table.keys)})",
        "SELECT * FROM " + t + " WHERE " + " AND ".join(f"{k.sql} = {k.literal(rng, 0)}" for k in table.keys),
    ]
    if not has_interval(kind):
        shapes += [f"SELECT DISTINCT {name} FROM {t}{where}", f"SELECT {name}, count(*) FROM {t}{where} GROUP BY {name}",
                   f"SELECT count(DISTINCT {name}) FROM {t}{where}", f"SELECT min({name}), max({name}) FROM {t}{where}",
                   f"SELECT min({name}), max({name}), count(*) FROM {t}",
                   f"SELECT {name}, count(*) AS n FROM {t}{where} GROUP BY ALL HAVING count(*) > 1"]
        for other in tables:
            match = [c for c in other.columns if c.type.sql == kind.sql]
            if match:
                o = rng.choice(match)
                how = rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
                shapes.append(f"SELECT count(*), count(x.{name}) FROM {t} x {how} {other.sql} y ON x.{name} = y.{o.sql}")
                shapes.append(f"SELECT x.* FROM {t} x WHERE x.{name} IN (SELECT {o.sql} FROM {other.sql} WHERE "
                              f"{predicate(rng, other)})")
    if kind.group == "integer" and "HUGE" not in kind.sql:
        shapes += [f"SELECT sum({name}), avg({name}) FROM {t}{where}", f"SELECT {name} + 1 AS e FROM {t}{where}",
                   f"SELECT sum({name}) FILTER ({name} > 0) FROM {t}{where}"]
    if kind.group == "decimal":
        shapes.append(f"SELECT avg({name}::DOUBLE) FROM {t}{where}")
    return rng.choice(shapes)
