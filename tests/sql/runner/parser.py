"""Reads a .test file in DuckDB's sqllogictest dialect into a tree of records.

Nothing is executed here. Loops keep their body unexpanded, because `${var}` is replaced at run time.
"""

import re
from dataclasses import dataclass, field

PLACEMENTS = ("memtable", "flushed", "compacted", "reattached", "killed")

# What `foreach` expands: the sets that DuckDB's runner knows and that mean something here.
COLLECTIONS = {
    "<signed>": ["tinyint", "smallint", "integer", "bigint", "hugeint"],
    "<unsigned>": ["utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"],
    "<integral>": ["tinyint", "smallint", "integer", "bigint", "hugeint",
                   "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"],
    "<numeric>": ["tinyint", "smallint", "integer", "bigint", "hugeint",
                  "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "float", "double"],
}


class ParseError(Exception):
    """The file is not valid; the message names the line."""


@dataclass
class Record:
    """What all records have: where it stands and under which conditions it runs."""
    line: int
    conditions: list = field(default_factory=list)  # ("skipif" | "onlyif", word)


@dataclass
class Statement(Record):
    expect: str = "ok"  # ok, error, maybe
    sql: str = ""
    message: str = ""  # expected error: a substring, or <REGEX>:
    connection: str = ""


@dataclass
class Query(Record):
    types: str = ""
    sort: str = "nosort"
    label: str = ""
    sql: str = ""
    expected: list = None  # lines after ----; None: only that it works
    connection: str = ""


@dataclass
class Loop(Record):
    variable: str = ""
    values: list = field(default_factory=list)
    is_range: bool = False  # values are the two bounds, as words: they may hold ${var}
    body: list = field(default_factory=list)
    concurrent: bool = False


@dataclass
class Directive(Record):
    word: str = ""
    args: list = field(default_factory=list)


@dataclass
class TestFile:
    path: str
    text: str = ""
    name: str = ""
    description: str = ""
    group: str = ""
    placements: tuple = PLACEMENTS
    placement_reason: str = ""  # why not in all of them
    oracle: bool = False  # may run against a native DuckDB table
    records: list = field(default_factory=list)


DIRECTIVES = {"require", "require-env", "load", "restart", "reconnect", "mode", "sleep", "halt", "hash-threshold",
              "reset", "set", "test-env", "tags"}


class _Lines:
    def __init__(self, path, text):
        self.path = path
        self.lines = text.split("\n")
        self.at = 0

    def fail(self, message):
        raise ParseError(f"{self.path}:{self.at}: {message}")

    def next_record_line(self):
        """The next line that is neither blank nor a comment, or None."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.strip() and not line.startswith("#"):
                return line.strip()
        return None

    def block(self):
        """The lines up to a blank line, split at ---- into SQL and expectation (None without ----)."""
        sql, expected = [], None
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.strip() == "" if expected is None else line == "":
                break
            if expected is None and line.strip() == "----":
                expected = []
            elif expected is None:
                sql.append(line)
            else:
                expected.append(line)
        return "\n".join(sql), expected


def parse(path, text):
    """Parses one file's text; raises ParseError."""
    test = TestFile(path, text)
    _header(test, text)
    lines = _Lines(path, text)
    test.records = _records(lines, top=True)
    return test


def _header(test, text):
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            break
        found = re.match(r"#\s*(name|description|group|placements|oracle):\s*(.*?)\s*$", line)
        if not found:
            continue
        word, value = found.groups()
        if word == "placements":
            parts = re.fullmatch(r"([a-z, ]+?)\s+only because\s+(.+)", value)
            if not parts:
                raise ParseError(f"{test.path}: '# placements: {value}' is not '<list> only because <reason>'")
            wanted = tuple(p for p in re.split(r"[,\s]+", parts.group(1)) if p)
            unknown = [p for p in wanted if p not in PLACEMENTS]
            if unknown:
                raise ParseError(f"{test.path}: unknown placement {unknown[0]}")
            test.placements, test.placement_reason = wanted, parts.group(2)
        elif word == "oracle":
            if value != "native":
                raise ParseError(f"{test.path}: '# oracle: {value}': only 'native' is known")
            test.oracle = True
        else:
            setattr(test, word, value)
    for word in ("name", "description", "group"):
        if not getattr(test, word):
            raise ParseError(f"{test.path}: the header lacks '# {word}:'")


def _records(lines, top):
    records, conditions = [], []
    while True:
        line = lines.next_record_line()
        if line is None:
            if not top:
                lines.fail("a loop is not closed by endloop")
            return records
        words = line.split()
        word, at = words[0], lines.at
        if word == "endloop":
            if top:
                lines.fail("endloop without a loop")
            return records
        if word in ("skipif", "onlyif"):
            conditions += [(word, w) for w in words[1:]]
            continue
        records.append(_record(lines, at, word, words, conditions))
        conditions = []


def _record(lines, at, word, words, conditions):
    if word == "statement":
        return _statement(lines, at, words, conditions)
    if word == "query":
        return _query(lines, at, words, conditions)
    if word in ("loop", "concurrentloop"):
        if len(words) != 4:
            lines.fail(f"{word} wants: variable start end")
        body = _records(lines, top=False)
        return Loop(at, conditions, words[1], words[2:], True, body, word.startswith("concurrent"))
    if word in ("foreach", "concurrentforeach"):
        values = []
        for value in words[2:]:
            if value.startswith("!"):
                values = [v for v in values if v != value[1:]]
            else:
                values += COLLECTIONS.get(value, [value])
        body = _records(lines, top=False)
        return Loop(at, conditions, words[1], values, False, body, word.startswith("concurrent"))
    if word in DIRECTIVES:
        return Directive(at, conditions, word, words[1:])
    lines.fail(f"unknown record '{word}'")


def _statement(lines, at, words, conditions):
    if len(words) < 2 or words[1] not in ("ok", "error", "maybe"):
        lines.fail("statement wants ok, error or maybe")
    sql, expected = lines.block()
    if not sql.strip():
        lines.fail("statement without SQL")
    if words[1] == "error" and not expected:
        lines.fail("statement error without the expected message")
    if words[1] == "ok" and expected:
        lines.fail("statement ok with an expectation: use query")
    return Statement(at, conditions, words[1], sql, "\n".join(expected or []), words[2] if len(words) > 2 else "")


def _query(lines, at, words, conditions):
    if len(words) < 2 or not re.fullmatch(r"[A-Z]+", words[1]):
        lines.fail("query wants its column types, such as IIT")
    record = Query(at, conditions, words[1])
    for extra in words[2:]:
        if extra in ("nosort", "rowsort", "valuesort"):
            record.sort = extra
        elif re.fullmatch(r"con\w*", extra):
            record.connection = extra
        else:
            record.label = extra
    record.sql, record.expected = lines.block()
    if not record.sql.strip():
        lines.fail("query without SQL")
    return record
