"""A merutable and a native database in a process each, which get the same statements and must answer alike."""

import os
import shutil
import tempfile

from runner import sqltext
from runner.process import WorkerDied
from runner.session import Session

from . import known
from .behind import Behind
from .compare import Difference, NativeBroke, difference, error_class, ordered_at_the_end
from .steps import PLACES

# Tables with more rows are compared by a hash of their rows, and fetched when that differs.
WHOLE = 400
# The connection on which the harness flushes, compacts and compares, so that no transaction of the script is in its way.
OWN = "harness"
# How a transaction fails that met another one, or rows that another one has changed.
CONFLICTS = ("TransactionContext", "Constraint", "Conversion", "Out of Range", "Invalid Input", "Invalid type")


class Side(Session):
    """A session that says whose process it was that died."""

    def __init__(self, name, *args, **more):
        self.name = name
        super().__init__(*args, **more)

    def raw(self, connection, sql):
        try:
            return super().raw(connection, sql)
        except WorkerDied as died:
            if self.name == "native":
                raise NativeBroke(str(died)) from died
            raise Difference(f"{self.name} died", f"{self.name}: {died}") from died


class Pair:
    """settings: options of ATTACH as text. Without an extension both are native: what the self-test needs."""

    def __init__(self, zygote, extension, settings, timeout=60):
        self.scratch = tempfile.mkdtemp(prefix="meru-")
        self.settings = settings
        self.statements = 0
        self.behind, self.caught_up = Behind(), 0
        folders = []
        for name in ("ours", "native"):
            folders.append(os.path.join(self.scratch, name))
            os.mkdir(folders[-1])
            os.mkdir(os.path.join(folders[-1], "t"))
        self.ours = Side("ours", zygote, folders[0], os.path.join(folders[0], "t"), extension, timeout,
                            oracle=extension is None)
        self.native = Side("native", zygote, folders[1], os.path.join(folders[1], "t"), None, timeout, oracle=True)
        options = "".join(f", {name} '{value}'" for name, value in settings.items())
        self.using = set()
        try:
            native = "ATTACH ':memory:' AS m"
            self.both_must(f"ATTACH 'db' AS m (TYPE merutable{options})" if extension else native, native)
        except Exception:
            self.close()
            raise

    def close(self):
        for session in (self.ours, self.native):
            if session.worker is not None:
                session.worker.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def both_must(self, ours, native):
        for session, sql in ((self.ours, ours), (self.native, native)):
            result = session.run("", sql)
            if result.error is not None:
                raise Difference("harness", f"{sql}\n  failed: {result.error}")

    def use(self, connection):
        """m is the default database of every connection, so that names need no prefix."""
        if connection in self.using:
            return
        self.using.add(connection)
        for session in (self.ours, self.native):
            session.run(connection, "USE m")
            session.run(connection, "SET TimeZone = 'UTC'")

    # -- steps -----------------------------------------------------------------------------------------------------

    def run(self, step):
        """Runs a step; the two results where it is a statement."""
        self.statements += 1
        if step.kind == "sql":
            return self.statement(step)
        if step.kind == "check":
            self.check()
        elif step.kind == "race":
            self.race(step)
        elif step.kind in PLACES:
            self.place(step.kind)
        return None

    def place(self, kind):
        if kind == "kill":
            for connection in list(self.native.in_transaction):
                self.native.run(connection, "ROLLBACK")
            self.ours.in_transaction.clear()
            self.behind.forget()
            self.ours.kill()
        elif self.ours.in_transaction and kind == "reattach":
            return
        elif kind == "reattach":
            self.ours.reattach()
        elif kind == "gc":
            self.ours.must(OWN, "CALL merutable_gc('m')")
        else:
            self.ours.must(OWN, f"CALL merutable_{kind}('m')")

    def statement(self, step):
        self.use(step.connection)
        mine = self.ours.run(step.connection, step.sql)
        native = self.run_native(step)
        if not step.differs and self.behind.note(self, step, mine, native):
            return mine, mine
        if mine.poisoned:
            raise Difference("internal error", f"{step.sql}\n  {mine.error}")
        if native.poisoned:
            raise NativeBroke(f"{step.sql}\n  {native.error}")
        if step.differs:
            known.check(step, mine, native)
            made = sqltext.classify(step.sql)
            if made.verb == "create" and mine.error is not None and native.error is None:
                self.native.run(step.connection, "DROP TABLE " + ".".join(quoted(n) for n in made.target))
        else:
            self.same(step, mine, native)
        return mine, native

    def run_native(self, step):
        text = step.native or step.sql
        if not step.native or len(sqltext.split(text)) == 1:
            return self.native.run(step.connection, text)
        # Several statements in the place of one are atomic as well.
        alone = step.connection not in self.native.in_transaction
        if alone:
            self.native.run(step.connection, "BEGIN")
        result = self.native.run(step.connection, text)
        if alone:
            self.native.run(step.connection, "COMMIT" if result.error is None else "ROLLBACK")
        return result

    def same(self, step, mine, native):
        if (mine.error is None) != (native.error is None):
            who = "ours fails" if mine.error else "only native fails"
            wrong = mine.error or native.error
            raise Difference(f"{who}: {error_class(wrong)}",
                             f"{step.sql}\n  ours:   {mine.error or 'works'}\n  native: {native.error or 'works'}")
        if mine.error is not None:
            ours, theirs = error_class(mine.error), error_class(native.error)
            if ours != theirs and not known.classes_agree(ours, theirs):
                raise Difference(f"class {ours} for {theirs}",
                                 f"{step.sql}\n  ours:   {mine.error}\n  native: {native.error}")
            return
        ordered = not step.unordered and ordered_at_the_end(step.sql)
        wrong = known.explain(step.sql, mine, native) or difference(mine, native, ordered)
        if wrong:
            raise Difference(wrong[0], f"{step.sql}\n  {wrong[1]}")

    # -- whole tables ----------------------------------------------------------------------------------------------

    def check(self):
        """All tables have the same rows and descriptions, as a connection outside of all transactions sees them."""
        self.use(OWN)
        listing = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'm' ORDER BY ALL"
        mine, native = self.ours.must(OWN, listing).rows, self.native.must(OWN, listing).rows
        if mine != native:
            raise Difference("tables", f"tables: ours {mine}, native {native}")
        for schema, table in native:
            self.check_table(f"m.{quoted(schema)}.{quoted(table)}")

    def check_table(self, name):
        self.compare(f"DESCRIBE {name}", f"DESCRIBE {name}")
        summary = self.compare(f"summary of {name}", f"SELECT count(*), sum(hash(s)::HUGEINT) FROM {name} s", raising=False)
        if summary is None and int(self.native.must(OWN, f"SELECT count(*) FROM {name}").rows[0][0]) > WHOLE:
            return
        self.compare(f"content of {name}", f"FROM {name}")
        if summary:
            raise Difference(f"summary of {name}", summary)

    def compare(self, what, sql, raising=True):
        mine, native = self.ours.raw(OWN, sql), self.native.raw(OWN, sql)
        if mine.error or native.error:
            raise Difference("check fails", f"{what}\n  ours:   {mine.error or 'works'}\n  native: {native.error or 'works'}")
        wrong = difference(mine, native, False)
        if wrong and raising:
            raise Difference(f"check {wrong[0]}", f"{what}\n  {wrong[1]}")
        return wrong[1] if wrong else None

    # -- two transactions at a time --------------------------------------------------------------------------------

    def race(self, step):
        """Two connections, each one transaction, interleaved as written.

        Which of two that touch the same row fails, and where, is not the same in both systems. So ours goes first, and
        native then runs those transactions that ours committed: all of them interleaved as they were, or one alone.
        Each statement of a committed transaction must have had the result that it has there, which is what snapshot
        isolation says, and native must commit it too, else ours missed a conflict. A transaction that ours aborted
        must meet another one that was committed, or fail alone as well.
        """
        names = sorted({s.connection for s in step.race})
        for name in names:
            self.use(name)
        mine, lost = self.play(self.ours, step.race)
        kept = [s for s in step.race if s.connection not in lost]
        native, theirs = self.play(self.native, kept)
        text = "\n".join(s.text() for s in step.race)
        if theirs:
            raise Difference("race: only ours commits", f"{text}\n  native: {theirs}")
        for s in kept:
            if not is_commit(s.sql):
                self.same(s, mine[id(s)], native[id(s)])
        for name, error in lost.items():
            if len(lost) < len(names) and error_class(error) in CONFLICTS:
                continue
            alone = [s for s in step.race if s.connection == name and not is_commit(s.sql)]
            _, theirs = self.play(self.native, alone)
            self.native.run(name, "ROLLBACK")
            if name not in theirs:
                raise Difference(f"race: ours fails: {error_class(error)}", f"{text}\n  ours: {error}")

    def play(self, session, steps):
        """(results by step, connection -> first error). A transaction that failed is rolled back."""
        results, lost = {}, {}
        for s in steps:
            if s.connection in lost:
                continue
            result = session.run(s.connection, s.native or s.sql if session is self.native else s.sql)
            if result.poisoned:
                raise Difference("internal error", f"{s.sql}\n  {result.error}")
            results[id(s)] = result
            if result.error is not None:
                lost[s.connection] = result.error
                session.run(s.connection, "ROLLBACK")
        return results, lost


def is_commit(sql):
    return sql.strip().lower() == "commit"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'
