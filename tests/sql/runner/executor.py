"""Runs the records of one test file in one placement."""

import re
import threading
import time

from . import compare, sqltext
from .parser import Directive, Loop, Query, Statement
from .process import WorkerDied
from .session import SessionError

# Extensions that Python's DuckDB has built in.
BUILT_IN = {"core_functions", "icu", "json", "parquet"}
# Requirements of DuckDB's own suite that are always met here.
MET = {"merutable", "skip_reload", "noalternativeverify", "no_alternative_verify", "no_extension_autoloading"}


class Failure(Exception):
    """A record did not do what it should."""


class Skipped(Exception):
    """The file asks for something that is not here; the message is the reason."""


class Halt(Exception):
    pass


class Executor:
    def __init__(self, test, session, placement, variables):
        self.test = test
        self.session = session
        self.placement = placement
        self.words = {placement, "oracle" if session.oracle else "merutable", "duckdb"}
        self.labels = {}
        self.skipping = 0
        self.concurrent = False
        self.variables = variables  # __TEST_DIR__ and the like
        self.records_run = 0

    def run(self):
        """Runs all; raises Failure, Skipped, or what the session raises, with the line in the message."""
        try:
            self.run_records(self.test.records, {}, "")
        except Halt:
            pass

    def run_records(self, records, loop, suffix):
        for record in records:
            if not self.applies(record, loop):
                continue
            if isinstance(record, Directive) and record.word == "mode":
                self.mode(record)
                continue
            if self.skipping:
                continue
            try:
                self.run_one(record, loop, suffix)
            except (WorkerDied, SessionError) as error:
                raise Failure(f"line {record.line}: {error}") from error

    def applies(self, record, loop):
        for kind, word in record.conditions:
            if "=" in word:
                variable, value = word.split("=", 1)
                holds = str(loop.get(variable)) == value
            else:
                holds = word in self.words
            if holds == (kind == "skipif"):
                return False
        return True

    def run_one(self, record, loop, suffix):
        if isinstance(record, Loop):
            self.run_loop(record, loop, suffix)
        elif isinstance(record, Statement):
            self.run_statement(record, loop, suffix)
        elif isinstance(record, Query):
            self.run_query(record, loop, suffix)
        else:
            self.run_directive(record, loop)

    # -- texts -----------------------------------------------------------------------------------------------------

    def expand(self, text, loop):
        for name, value in loop.items():
            text = text.replace("${" + name + "}", str(value))
        for name, value in self.variables.items():
            text = text.replace(name, value)
        return text

    def sql(self, record, loop):
        text = self.expand(record.sql, loop)
        return as_native(text) if self.session.oracle else text

    # -- records ---------------------------------------------------------------------------------------------------

    def run_statement(self, record, loop, suffix):
        sql = self.sql(record, loop)
        result = self.session.run(record.connection + suffix, sql)
        self.records_run += 1
        self.no_poison(record, sql, result)
        expected = self.expand(record.message, loop)
        if record.expect == "ok" and result.error is not None:
            raise Failure(f"line {record.line}: {sql}\n  failed: {result.error}")
        if record.expect == "error" and result.error is None:
            raise Failure(f"line {record.line}: {sql}\n  worked, expected the error: {expected}")
        if result.error is not None and expected and not self.session.oracle:
            if not compare.message_matches(result.error, expected):
                raise Failure(f"line {record.line}: {sql}\n  error: {result.error}\n  expected: {expected}")

    def run_query(self, record, loop, suffix):
        if not self.concurrent:
            self.session.place(self.placement)
        sql = self.sql(record, loop)
        result = self.session.run(record.connection + suffix, sql)
        self.records_run += 1
        self.no_poison(record, sql, result)
        if result.error is not None:
            raise Failure(f"line {record.line}: {sql}\n  failed: {result.error}")
        if len(result.types) != len(record.types):
            raise Failure(f"line {record.line}: {sql}\n  {len(result.types)} columns {result.types}, "
                          f"expected {len(record.types)}")
        if record.label:
            self.check_label(record, sql, result)
        if record.expected is not None:
            expected = [self.expand(line, loop) for line in record.expected]
            wrong = compare.check(result.types, result.rows, record.sort, expected)
            if wrong:
                raise Failure(f"line {record.line}: {sql}\n  {wrong}")

    def check_label(self, record, sql, result):
        rendered = [[compare.render(v) for v in row] for row in result.rows]
        digest = compare.digest(compare.sort_rows(rendered, record.sort))
        first = self.labels.setdefault(record.label, (digest, record.line))
        if first[0] != digest:
            raise Failure(f"line {record.line}: {sql}\n  differs from the result labelled {record.label} "
                          f"of line {first[1]}\n{compare.show(rendered)}")

    def no_poison(self, record, sql, result):
        if result.poisoned:
            raise Failure(f"line {record.line}: {sql}\n  an INTERNAL error: {result.error}")

    def run_loop(self, record, loop, suffix):
        values = [self.expand(v, loop) for v in record.values]
        if record.is_range:
            values = range(int(values[0]), int(values[1]))
        if not record.concurrent:
            for value in values:
                self.run_records(record.body, {**loop, record.variable: value}, suffix)
            return
        self.session.place(self.placement)
        self.concurrent = True
        errors = []

        def body(value):
            try:
                self.run_records(record.body, {**loop, record.variable: value}, f"{suffix}#{value}")
            except Exception as error:  # noqa: BLE001  handed to the main thread
                errors.append(error)

        threads = [threading.Thread(target=body, args=(value,)) for value in values]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.concurrent = False
        if errors:
            raise errors[0]

    def run_directive(self, record, loop):
        word, args = record.word, [self.expand(a, loop) for a in record.args]
        if word == "require":
            if args[0] not in BUILT_IN | MET:
                raise Skipped(f"requires {' '.join(args)}")
        elif word == "require-env":
            raise Skipped(f"requires the environment variable {args[0]}")
        elif word == "load":
            self.session.restart(database=args[0])
        elif word == "restart":
            self.session.restart()
        elif word == "reconnect":
            self.session.reconnect()
        elif word == "sleep":
            unit = {"second": 1, "millisecond": 1e-3, "microsecond": 1e-6}[args[1].rstrip("s")]
            time.sleep(float(args[0]) * unit)
        elif word == "halt":
            raise Halt
        elif word == "reset":
            self.labels.pop(args[-1], None)
        elif word == "test-env":
            self.variables["{" + args[0] + "}"] = args[1]

    def mode(self, record):
        if record.args[0] == "skip":
            self.skipping += 1
        elif record.args[0] == "unskip":
            self.skipping = max(0, self.skipping - 1)
        else:
            raise Failure(f"line {record.line}: mode {record.args[0]} is not known")


def as_native(sql):
    """The same statement for the oracle: a native DuckDB table, where an upsert must be asked for."""
    statements = []
    for text in sqltext.split(sql):
        statement = sqltext.classify(text)
        if statement.verb == "attach" and statement.merutable:
            name = re.search(r'\bAS\s+("(?:[^"]|"")*"|\w+)', text, re.IGNORECASE).group(1)
            text = f"ATTACH ':memory:' AS {name}"
        elif re.match(r"INSERT\s+INTO\s+m\.", text, re.IGNORECASE) and not re.search(r"\bON\s+CONFLICT\b", text, re.I):
            text = re.sub(r"^INSERT\s+INTO", "INSERT OR REPLACE INTO", text, flags=re.IGNORECASE)
        elif statement.verb == "prepare":
            text = re.sub(r"\bAS\s+INSERT\s+INTO\s+m\.", "AS INSERT OR REPLACE INTO m.", text, flags=re.IGNORECASE)
        statements.append(text)
    return ";\n".join(statements)
