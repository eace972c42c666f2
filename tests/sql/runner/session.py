"""A DuckDB session that can be put into another placement and goes on as if nothing had happened.

It runs statements in a worker process and keeps a journal of what belongs to the session and not to a merutable
database: ATTACH, SET, USE, PREPARE, views, macros, temporary and in-memory tables. After a kill -9 the journal is
replayed in a new process.
"""

import re
import threading

from . import sqltext
from .process import Worker

# What must never be seen, wherever it appears.
POISON = re.compile(r"INTERNAL Error|FATAL Error|database has been invalidated|not a DuckDB error")


class SessionError(Exception):
    """A statement that the runner itself issued failed: the placement could not be reached."""


class Result:
    """names, types and rows, or error (text as DuckDB gives it)."""

    def __init__(self, reply):
        self.names = reply.get("names", [])
        self.types = reply.get("types", [])
        self.rows = reply.get("rows", [])
        self.error = reply.get("error")

    @property
    def poisoned(self):
        return self.error is not None and POISON.search(self.error) is not None


class Session:
    def __init__(self, zygote, scratch, test_dir, extension, timeout, oracle=False):
        self.zygote = zygote
        self.scratch = scratch
        self.test_dir = test_dir
        self.extension = extension
        self.timeout = timeout
        self.oracle = oracle
        self.database = ":memory:"
        self.lock = threading.RLock()
        self.worker = None
        self._forget_session()
        self._start()

    # -- process ---------------------------------------------------------------------------------------------------

    def _start(self):
        self.worker = Worker(self.zygote, self.scratch, self.test_dir, self.timeout)
        self._open()

    def _open(self):
        load = [] if self.oracle else ["LOAD '" + self.extension.replace("'", "''") + "'"]
        reply = self.worker.ask(op="open", database=self.database, load=load,
                                setup=["SET enable_progress_bar = false"],
                                config={"allow_unsigned_extensions": "true", "threads": 2,
                                        "autoinstall_known_extensions": "false",
                                        "autoload_known_extensions": "false",
                                        "secret_directory": self.scratch + "/secrets",
                                        "arrow_lossless_conversion": "true"})
        if "error" in reply:
            raise SessionError(reply["error"])

    def _forget_session(self):
        self.journal = []  # (connection, statement, tag, key): replayed in order
        self.aliases = {}  # merutable databases: alias -> (path, read only)
        self.default = {}  # connection -> alias of USE
        self.prepared = {}  # (connection, name) -> classified statement
        self.in_transaction = set()
        self.paths = []  # written by COPY
        self.dirty = False

    def close(self):
        if self.worker is not None:
            self.worker.close()

    def restart(self, database=None):
        """Closes the instance in good order and opens it again; the test attaches anew."""
        if database is not None:
            self.database = database
        self._forget_session()
        self._open()

    def reconnect(self):
        self.worker.ask(op="reconnect")
        self.default, self.prepared = {}, {}
        self.in_transaction = set()
        self.journal = [entry for entry in self.journal if entry[2] not in ("prepare", "use")]

    # -- statements ------------------------------------------------------------------------------------------------

    def raw(self, connection, sql):
        return Result(self.worker.ask(op="execute", connection=connection, sql=sql))

    def must(self, connection, sql):
        result = self.raw(connection, sql)
        if result.error is not None:
            raise SessionError(f"{sql}: {result.error}")
        return result

    def run(self, connection, sql):
        """Runs a record's text, which may be several statements, and remembers what it did to the session."""
        result = self.raw(connection, sql)
        with self.lock:
            self._note(connection, sql, result)
        return result

    def _note(self, connection, sql, result):
        statements = sqltext.split(sql)
        if result.error is not None and len(statements) == 1:
            if sqltext.classify(statements[0]).verb in ("commit", "rollback"):
                self.in_transaction.discard(connection)
            # A failed write may have done something: that is what the next query is to find out.
            self.dirty = True
            return
        for text in statements:
            self._note_one(connection, text, sqltext.classify(text))

    def _note_one(self, connection, text, statement):
        verb = statement.verb
        if verb == "execute":
            prepared = self.prepared.get((connection, statement.name.lower()))
            if prepared is not None and prepared.verb == "write":
                self._note_write(connection, text, prepared.target)
        elif verb == "begin":
            self.in_transaction.add(connection)
        elif verb in ("commit", "rollback"):
            self.in_transaction.discard(connection)
        elif verb == "attach":
            self._note_attach(connection, text, statement)
        elif verb == "detach":
            self.aliases.pop(self._alias(statement.name), None)
            self._drop_entry("attach", statement.name)
        elif verb == "use":
            self.default[connection] = statement.name
            self._drop_entry("use", connection)
            self.journal.append((connection, text, "use", connection))
        elif verb == "prepare":
            self.prepared[(connection, statement.name.lower())] = sqltext.classify(statement.prepared)
            self._drop_entry("prepare", (connection, statement.name.lower()))
            self.journal.append((connection, text, "prepare", (connection, statement.name.lower())))
        elif verb == "deallocate":
            self._drop_entry("prepare", (connection, statement.name.lower()))
        elif verb in ("set", "reset", "pragma", "load"):
            self.journal.append((connection, text, "set", None))
        elif verb == "copy_to":
            if statement.merutable:
                self.paths = [p for p in self.paths if p != statement.path] + [statement.path]
                self.dirty = True
        elif verb in ("write", "create", "drop", "alter", "comment"):
            self._note_write(connection, text, statement.target)

    def _note_write(self, connection, text, target):
        """A write to a merutable database makes the session dirty; any other belongs to the session."""
        elsewhere = len(target) > 1 and target[0].lower() in {"memory", "temp", *self._attached()}
        alias = target[0] if elsewhere else self.default.get(connection, "")
        if self._alias(alias) and target[:1] != ["temp"]:
            self.dirty = True
        else:
            self.journal.append((connection, text, "local", None))

    def _note_attach(self, connection, text, statement):
        before = set(self.aliases)
        self._refresh_aliases()
        new = [a for a in self.aliases if a not in before]
        if statement.merutable:
            if not new:
                return  # IF NOT EXISTS, and it did
            name = new[0]
        else:
            found = re.search(r"\bAS\s+(\w+)", text, re.IGNORECASE)
            name = found.group(1) if found else statement.path
        self.journal.append((connection, text, "attach", name.lower()))
        self.dirty = True

    def _refresh_aliases(self):
        rows = self.must("", "SELECT database_name, coalesce(path, ''), readonly FROM duckdb_databases() "
                             "WHERE type = 'merutable' ORDER BY database_oid").rows
        self.aliases = {name: (path, read_only == "true") for name, path, read_only in rows}

    def _alias(self, name):
        return next((a for a in self.aliases if a.lower() == name.lower()), None) if name else None

    def _attached(self):
        return {key for _, _, tag, key in self.journal if tag == "attach"}

    def _drop_entry(self, tag, key):
        key = key.lower() if isinstance(key, str) and tag == "attach" else key
        self.journal = [e for e in self.journal if not (e[2] == tag and e[3] == key)]

    # -- placements ------------------------------------------------------------------------------------------------

    def place(self, placement):
        """Moves what was written into the placement, if anything was written since the last time."""
        if not self.dirty or self.in_transaction or placement == "memtable":
            return
        self.dirty = False
        if placement == "flushed":
            self.maintain("flush")
        elif placement == "compacted":
            self.maintain("compact")
        elif placement == "reattached":
            self.maintain("flush")
            self.reattach()
        elif placement == "killed":
            self.kill()
        else:
            raise ValueError(placement)

    def maintain(self, what):
        """merutable_flush or merutable_compact for everything that the session can write to."""
        self._refresh_aliases()
        attached = set()
        for alias, (path, read_only) in self.aliases.items():
            attached.add(path)
            if not read_only:
                self.must("", f"CALL merutable_{what}({_literal(alias)})")
        for path in self.paths:
            if path not in attached:
                self.must("", f"CALL merutable_{what}({_literal(path)})")

    def reattach(self):
        for connection, name in self.default.items():
            if self._alias(name):
                self.must(connection, "USE memory")
        for alias in self.aliases:
            self.must("", 'DETACH "' + alias.replace('"', '""') + '"')
        merutables = {a.lower() for a in self.aliases}
        for connection, text, tag, key in self.journal:
            if tag == "attach" and key in merutables:
                self.must(connection, text)
        for connection, name in self.default.items():
            if self._alias(name):
                self.must(connection, 'USE "' + name.replace('"', '""') + '"')

    def kill(self):
        self.worker.kill()
        self._start()
        for connection, text, tag, _ in self.journal:
            result = self.raw(connection, text)
            # In a database file that survived the kill, what was created is still there.
            if result.error is not None and not (tag == "local" and self.database != ":memory:"):
                raise SessionError(f"replay after kill -9: {text}: {result.error}")


def _literal(text):
    return "'" + text.replace("'", "''") + "'"
