"""Compares results with expectations, in the way of DuckDB's own runner."""

import hashlib
import math
import re
from decimal import Decimal, InvalidOperation

NUMERIC = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*)$")


def render(value):
    """A value's text, as it stands in a .test file."""
    if value is None:
        return "NULL"
    if value == "":
        return "(empty)"
    return value.replace("\0", "\\0")


def sort_rows(rows, mode):
    """The rows' values as one flat list, after the sort mode."""
    if mode == "rowsort":
        rows = sorted(rows)
    values = [value for row in rows for value in row]
    if mode == "valuesort":
        values.sort()
    return values


def digest(values):
    md5 = hashlib.md5()
    for value in values:
        md5.update(value.encode("utf-8", "surrogatepass") + b"\n")
    return md5.hexdigest()


def message_matches(message, expected):
    """Whether an error message is the expected one: a substring, or a whole match after <REGEX>:."""
    expected = expected.strip()
    if expected.startswith("<REGEX>:"):
        return re.fullmatch(expected[8:].strip(), message, re.DOTALL) is not None
    if expected.startswith("<!REGEX>:"):
        return re.fullmatch(expected[9:].strip(), message, re.DOTALL) is None
    return expected in message


def check(types, rows, sort, expected):
    """None when rows (of raw values, None for NULL) are as expected (lines), else what is wrong."""
    columns = len(types)
    rendered = [[render(v) for v in row] for row in rows]
    if len(expected) == 1:
        hashed = re.fullmatch(r"(\d+) values hashing to ([0-9a-f]{32})", expected[0])
        if hashed:
            return _check_hash(sort_rows(rendered, sort), int(hashed.group(1)), hashed.group(2))
    by_row = columns > 1 and expected and (len(expected) == len(rows) or all("\t" in line for line in expected))
    if by_row:
        wanted = [line.split("\t") for line in expected]
        for line in wanted:
            if len(line) != columns:
                return f"an expected row has {len(line)} values, not {columns}: {line}"
    else:
        if columns and len(expected) % columns:
            return f"{len(expected)} expected values do not make rows of {columns} columns\n" + show(rendered)
        wanted = [expected[i:i + columns] for i in range(0, len(expected), columns)]
    if len(wanted) != len(rendered):
        return f"{len(rendered)} rows, expected {len(wanted)}\n" + show(rendered)
    got, want = sort_rows(rendered, sort), sort_rows(wanted, sort)
    for i, (g, w) in enumerate(zip(got, want)):
        if not value_matches(types[i % columns], g, w):
            return f"row {i // columns + 1}, column {i % columns + 1}: got {g!r}, expected {w!r}\n" + show(rendered)
    return None


def _check_hash(values, count, wanted):
    found = digest(values)
    if len(values) != count or found != wanted:
        return f"{len(values)} values hashing to {found}, expected {count} values hashing to {wanted}"
    return None


def value_matches(type_name, got, want):
    if got == want:
        return True
    if want.startswith(("<REGEX>:", "<!REGEX>:")):
        return message_matches(got, want)
    if "NULL" in (got, want):
        return False
    if type_name == "BOOLEAN":
        return _boolean(got) is not None and _boolean(got) == _boolean(want)
    if NUMERIC.match(type_name):
        return _numbers_equal(type_name, got, want)
    return False


def _boolean(text):
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())


def _numbers_equal(type_name, got, want):
    if type_name in ("FLOAT", "DOUBLE"):
        try:
            g, w = float(got), float(want)
        except ValueError:
            return False
        if math.isnan(g) or math.isnan(w):
            return math.isnan(g) and math.isnan(w)
        # Parallel sums differ in their last bits; anything more is an error.
        return g == w or math.isclose(g, w, rel_tol=1e-6 if type_name == "FLOAT" else 1e-9)
    try:
        return Decimal(got) == Decimal(want)
    except InvalidOperation:
        return False


def show(rows, most=20):
    text = "\n".join("    " + "\t".join(row) for row in rows[:most])
    if len(rows) > most:
        text += f"\n    ... {len(rows) - most} more"
    return "  result:\n" + text
