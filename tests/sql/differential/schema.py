"""Random tables, and the model of them that the generator keeps."""

import copy
from dataclasses import dataclass, field
from decimal import Decimal

from . import values
from .values import name_of, quote

NAMES = ["a", "b", "c", "v", "select", "Mixed Case", 'q"uote', "naïve ✓", "x;--", "order", "rowid2", "it's", "_x", "group",
         "seq", "op", "file_row_number", "value"]
TABLES = ["t", "u", "table", "Mixed T", 'w"x']


@dataclass
class Column:
    name: str
    type: values.Type
    not_null: bool = False
    default: str = ""
    pool: list = field(default_factory=list)  # literals that were used before: values meet again

    @property
    def sql(self):
        return name_of(self.name)

    def literal(self, rng, null=0.15):
        if rng.random() < null and not self.not_null:
            return "NULL"
        if self.pool and rng.random() < 0.6:
            return rng.choice(self.pool)
        made = self.type.literal(rng)
        if len(self.pool) < 14:
            self.pool.append(made)
        return made


def same_value(kind, literal):
    """A text that is the same for literals of the same value."""
    if kind.group not in ("float", "decimal") or literal == "NULL":
        return literal
    text = literal[1:literal.index("'", 1)]
    number = float(text) if kind.group == "float" else Decimal(text)
    return str(number + 0) if number == 0 else str(number)


@dataclass
class Table:
    name: str
    columns: list
    key: list  # names in the order of the key
    checks: list = field(default_factory=list)
    many: bool = False  # it may have had more rows than a vector of DuckDB has

    @property
    def sql(self):
        return name_of(self.name)

    @property
    def keys(self):
        return [next(c for c in self.columns if c.name == name) for name in self.key]

    @property
    def values(self):
        return [c for c in self.columns if c.name not in self.key]

    def column(self, name):
        return next(c for c in self.columns if c.name == name)

    def definition(self):
        parts = []
        for c in self.columns:
            null = " NOT NULL" if c.not_null and c.name not in self.key else ""
            parts.append(f"{c.sql} {c.type.sql}{null}" + (f" DEFAULT {c.default}" if c.default else ""))
        parts += [f"CHECK ({check})" for check in self.checks]
        return ", ".join(parts) + f", PRIMARY KEY ({', '.join(k.sql for k in self.keys)})"

    def copy(self):
        return Table(self.name, [copy.copy(c) for c in self.columns], list(self.key), list(self.checks), self.many)


def random_type(rng, key=False):
    if not key and rng.random() < 0.2:
        return values.nested(rng)
    if not key and rng.random() < 0.06:
        return rng.choice(values.RARE)
    if rng.random() < 0.3:
        return values.BY_NAME[rng.choice(["INTEGER", "VARCHAR", "BIGINT"])]
    return rng.choice([t for t in values.SCALARS if t.key or not key])


def random_table(rng, name):
    names = rng.sample(NAMES, rng.randint(1, 8))
    count = min(len(names), rng.choice([1, 1, 1, 2, 2, 3]))
    columns = []
    for i, column in enumerate(names):
        made = Column(column, random_type(rng, key=i < count), not_null=i < count or rng.random() < 0.1)
        if i >= count and rng.random() < 0.25:
            made.default = made.literal(rng, 0.1)
        columns.append(made)
    key = names[:count]
    rng.shuffle(key)
    rng.shuffle(columns)
    table = Table(name, columns, key)
    numbers = [c for c in table.values if c.type.group == "integer"]
    if numbers and rng.random() < 0.2:
        table.checks.append(f"{numbers[0].sql} <> {quote('7')}")
    return table
