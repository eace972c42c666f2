"""Types, and random values of them as SQL expressions."""

from dataclasses import dataclass
from typing import Callable


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def name_of(text):
    """An identifier as SQL text."""
    return '"' + text.replace('"', '""') + '"'


@dataclass
class Type:
    sql: str
    make: Callable  # rng -> expression; cast to the type by the caller
    key: bool = True  # a native table can have an index on it
    kind: str = "scalar"  # scalar, list, array, struct, map
    of: tuple = ()  # of nested types: the types in it; of structs (name, type)
    group: str = ""  # integer, float, decimal, text, moment: what a query can do with it
    wider: tuple = ()  # types that ALTER can widen it to

    @property
    def has_inner_enum(self):
        return self.kind != "scalar" and "ENUM" in self.sql

    def literal(self, rng, null=0.0):
        if rng.random() < null:
            return "NULL"
        return f"{self.make(rng)}::{self.sql}"


def integers(bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def make(rng):
        value = rng.choice([low, high, 0, 1, low + 1, high - 1, rng.randint(low, high),
                            *[rng.randint(max(low, -20), 20) for _ in range(4)]])
        return quote(str(max(low, min(high, value))))

    return make


def text(rng):
    kinds = [lambda: "", lambda: rng.choice("abc"), lambda: rng.choice(["ab", "a", "b"]) * rng.randint(1, 8),
             lambda: "naïve ✓ " + str(rng.randint(0, 30)), lambda: "x" * rng.choice([11, 12, 13, 40]) + rng.choice("yz"),
             lambda: "🦆" * rng.randint(1, 5), lambda: "long" * rng.randint(100, 300) + str(rng.randint(0, 9)),
             lambda: rng.choice(["%", "a_b", "it''s"[:5], "NULL", "\U0010ffff", "A", "é", "e\u0301", " ", "ab "])]
    made = quote(rng.choice(kinds)())
    return f"({made} || chr(0) || {quote(rng.choice('ab'))})" if rng.random() < 0.05 else made


def blob(rng):
    return quote("".join(f"\\x{rng.choice([0, 1, 97, 254, 255]):02X}" for _ in range(rng.choice([0, 1, 2, 3, 14]))))


def floating(rng):
    return quote(rng.choice(["0", "-0", "1.5", "-1.5", "nan", "inf", "-inf", "3.0e38", "-3.0e38", "1e-30",
                             *[str(rng.randint(-50, 50) / 4) for _ in range(6)]]))


def decimals(width, scale):
    def make(rng):
        digits = str(rng.choice([0, 1, 10**width - 1, rng.randrange(10**width), rng.randrange(100)])).rjust(scale + 1, "0")
        return quote(rng.choice(["", "-"]) + digits[:len(digits) - scale]
                     + ("." + digits[len(digits) - scale:] if scale else ""))

    return make


def moments(date=False, infinities=True, digits=0, low=1700, high=2250):
    def make(rng):
        if infinities and rng.random() < 0.1:
            return quote(rng.choice(["infinity", "-infinity"]))
        year = rng.choice([1969, 1970, 2000, low, high, rng.randint(low, high)])
        day = f"{year:04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        clock = f" {rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
        sub = "." + str(rng.randrange(10**digits)).rjust(digits, "0") if digits else ""
        return quote(day + ("" if date else clock + sub))

    return make


def clock(rng):
    return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:00.{rng.randrange(10**6):06d}"


def json(rng):
    return quote(rng.choice(['{}', '[]', '1', '"a"', 'null', '{"a": 1, "b": [1, 2]}', '{"a": "x"}', '[1, {"a": null}]']))


SCALARS = [
    Type("BOOLEAN", lambda rng: rng.choice(["true", "false"])),
    *[Type(n, integers(b, s), group="integer") for n, b, s in (
        ("TINYINT", 8, True), ("SMALLINT", 16, True), ("INTEGER", 32, True), ("BIGINT", 64, True), ("HUGEINT", 128, True),
        ("UTINYINT", 8, False), ("USMALLINT", 16, False), ("UINTEGER", 32, False), ("UBIGINT", 64, False),
        ("UHUGEINT", 128, False))],
    Type("FLOAT", floating, group="float"), Type("DOUBLE", floating, group="float"),
    *[Type(f"DECIMAL({w},{s})", decimals(w, s), group="decimal") for w, s in ((4, 1), (9, 0), (18, 6), (38, 10))],
    Type("VARCHAR", text, group="text"), Type("BLOB", blob),
    Type("DATE", moments(date=True), group="moment"), Type("TIMESTAMP", moments(digits=6), group="moment"),
    Type("TIMESTAMP_S", moments(infinities=False), group="moment"),
    Type("TIMESTAMP_MS", moments(digits=3, infinities=False), group="moment"),
    Type("TIMESTAMP_NS", moments(digits=9, infinities=False), group="moment"),
    Type("TIMESTAMP WITH TIME ZONE", moments(digits=6), group="moment"),
    Type("TIME", lambda rng: quote(clock(rng))),
    Type("UUID", lambda rng: f"md5('{rng.randint(0, 40)}')"),
    Type("ENUM('z', 'a', 'm')", lambda rng: quote(rng.choice("zam"))),
    Type("BIT", lambda rng: quote("".join(rng.choice("01") for _ in range(rng.randint(1, 17))))),
    Type("INTERVAL", lambda rng: quote(f"{rng.randint(-3, 3)} months {rng.randint(-40, 40)} days "
                                       f"{rng.randint(-9, 9)} microseconds"), key=False),
]
RARE = [
    Type("TIME WITH TIME ZONE", lambda rng: quote(clock(rng) + rng.choice(["+00", "+02", "-11:30"]))),
    Type("JSON", json, key=False),
]
WIDER = {
    "TINYINT": ("SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "SMALLINT": ("INTEGER", "BIGINT", "HUGEINT"),
    "INTEGER": ("BIGINT", "HUGEINT"), "BIGINT": ("HUGEINT",), "UTINYINT": ("USMALLINT", "UINTEGER", "UBIGINT", "INTEGER"),
    "USMALLINT": ("UINTEGER", "UBIGINT", "INTEGER"), "UINTEGER": ("UBIGINT", "BIGINT"), "FLOAT": ("DOUBLE",),
    "DECIMAL(4,1)": ("DECIMAL(8,1)", "DECIMAL(18,1)"), "DECIMAL(9,0)": ("DECIMAL(18,0)",), "DATE": ("TIMESTAMP",),
}
BY_NAME = {t.sql: t for t in [*SCALARS, *RARE]}
BY_NAME["DECIMAL(8,1)"] = Type("DECIMAL(8,1)", decimals(8, 1), group="decimal")
BY_NAME["DECIMAL(18,1)"] = Type("DECIMAL(18,1)", decimals(18, 1), group="decimal")
BY_NAME["DECIMAL(18,0)"] = Type("DECIMAL(18,0)", decimals(18, 0), group="decimal")


def nested(rng, depth=0):
    """A random nested type."""
    def inner():
        if depth < 2 and rng.random() < 0.3:
            return nested(rng, depth + 1)
        return rng.choice(SCALARS)

    kind = rng.choice(["list", "list", "struct", "struct", "array", "map"])
    if kind == "list":
        of = inner()
        return Type(f"{of.sql}[]", lambda rng: "[" + ", ".join(
            of.literal(rng, 0.15) for _ in range(rng.choice([0, 1, 2, 5]))) + "]", False, kind, (of,))
    if kind == "array":
        of, size = inner(), rng.randint(1, 3)
        return Type(f"{of.sql}[{size}]", lambda rng: "[" + ", ".join(
            of.literal(rng, 0.15) for _ in range(size)) + "]", False, kind, (of,))
    if kind == "map":
        key, of = rng.choice([BY_NAME["INTEGER"], BY_NAME["VARCHAR"], BY_NAME["DATE"]]), inner()

        def make(rng):
            keys = {key.literal(rng) for _ in range(rng.choice([0, 1, 2, 3]))}
            return "MAP {" + ", ".join(f"{k}: {of.literal(rng, 0.15)}" for k in sorted(keys)) + "}"

        return Type(f"MAP({key.sql}, {of.sql})", make, False, kind, (key, of))
    fields = [(n, inner()) for n in ["a", "b", "select", "C c"][:rng.randint(1, 4)]]
    return Type("STRUCT(" + ", ".join(f"{name_of(n)} {t.sql}" for n, t in fields) + ")", lambda rng: "{" + ", ".join(
        f"{quote(n)}: {t.literal(rng, 0.15)}" for n, t in fields) + "}", False, kind, tuple(fields))
