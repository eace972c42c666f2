"""The process in which DuckDB runs, so that kill -9 is real.

Started as a script it is a zygote: it has imported duckdb but opened nothing (so no threads and no Go runtime exist
yet), and forks one serving child per request. A child listens on a Unix socket; each client socket has a thread.
Requests and replies are JSON lines.

Zygote commands on stdin: {"spawn": socket, "cwd": dir} -> {"pid": n}; {"kill": pid} -> {"status": n};
{"wait": pid} -> {"status": n}.
"""

import json
import os
import signal
import socket
import sys
import threading
import warnings

import duckdb
import pyarrow  # imported before the fork: children start in milliseconds

warnings.simplefilter("ignore")

# Types whose Python value has exactly the text that DuckDB would give it.
PLAIN = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
         "UHUGEINT", "VARCHAR", "BOOLEAN"}


class Server:
    """DuckDB in this process: an instance, and connections by name."""

    def __init__(self):
        self.lock = threading.Lock()
        self.root = None
        self.connections = {}
        self.setup = []

    def open(self, request):
        """Opens the instance: database, config, and statements that every connection starts with."""
        with self.lock:
            self.close_all()
            self.root = duckdb.connect(request["database"], config=request["config"])
            for sql in request["load"]:
                self.root.execute(sql)
            self.setup = request["setup"]
            self.connections = {}
        return {}

    def close_all(self):
        for connection in self.connections.values():
            connection.close()
        self.connections = {}
        if self.root is not None:
            self.root.close()
            self.root = None

    def connection(self, name):
        with self.lock:
            if name not in self.connections:
                connection = self.root.cursor()
                for sql in self.setup:
                    connection.execute(sql)
                self.connections[name] = connection
            return self.connections[name]

    def reconnect(self, request):
        with self.lock:
            for connection in self.connections.values():
                connection.close()
            self.connections = {}
        return {}

    def execute(self, request):
        connection = self.connection(request["connection"])
        try:
            connection.execute(request["sql"])
            names, types = [d[0] for d in connection.description or []], [str(d[1]) for d in connection.description or []]
            return {"names": names, "types": types, "rows": fetch(connection, types)}
        except duckdb.Error as error:
            return {"error": str(error), "class": type(error).__name__}
        except (RuntimeError, SystemError, MemoryError) as error:
            return {"error": f"not a DuckDB error: {error!r}", "class": type(error).__name__}

    def handle(self, request):
        operation = request["op"]
        if operation == "execute":
            return self.execute(request)
        if operation == "open":
            return self.open(request)
        if operation == "reconnect":
            return self.reconnect(request)
        if operation == "close":
            with self.lock:
                self.close_all()
            return {}
        raise ValueError(operation)


def fetch(connection, types):
    """All rows as text as DuckDB writes it; None for NULL."""
    if all(t in PLAIN for t in types):
        return [[None if v is None else ("true" if v else "false") if isinstance(v, bool) else str(v) for v in row]
                for row in connection.fetchall()]
    table = connection.to_arrow_table()
    table = pyarrow.table([without_enums(column) for column in table.columns], [f"c{i}" for i in range(table.num_columns)])
    zone = connection.execute("SELECT current_setting('TimeZone')").fetchall()[0][0]  # fetchone would leave it open
    plain = plain_instance()
    plain.execute("SET TimeZone = '" + zone.replace("'", "''") + "'")
    plain.register("result", table)
    try:
        rows = plain.execute("SELECT COLUMNS(*)::VARCHAR FROM result").fetchall()
    finally:
        plain.unregister("result")
    return [list(row) for row in rows]


def without_enums(column):
    """ENUMs inside of other values as strings: DuckDB reads them wrongly from Arrow."""
    wanted = nested_strings(column.type)
    return column if wanted == column.type else column.cast(wanted)


def nested_strings(kind):
    """The type with strings for the dictionaries in it."""
    types = pyarrow.types
    if types.is_dictionary(kind):
        return kind.value_type
    if types.is_list(kind):
        return pyarrow.list_(nested_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(nested_field(kind.value_field), kind.list_size)
    if types.is_map(kind):
        return pyarrow.map_(nested_strings(kind.key_type), nested_field(kind.item_field))
    if types.is_struct(kind):
        return pyarrow.struct([nested_field(field) for field in kind])
    return kind


def nested_field(field):
    return field.with_type(nested_strings(field.type))


LOCAL = threading.local()


def plain_instance():
    """A DuckDB of this thread's own that only turns values into text; opening one takes longer than most statements."""
    if not hasattr(LOCAL, "plain"):
        LOCAL.plain = duckdb.connect(":memory:", config={"threads": 1})
    return LOCAL.plain


def serve(path, cwd):
    os.chdir(cwd)
    server = Server()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve_client, args=(server, client), daemon=True).start()


def serve_client(server, client):
    with client, client.makefile("rwb") as stream:
        for line in stream:
            request = json.loads(line)
            try:
                reply = server.handle(request)
            except duckdb.Error as error:
                reply = {"error": str(error), "class": type(error).__name__}
            stream.write(json.dumps(reply).encode() + b"\n")
            stream.flush()
            if request["op"] == "close":
                os._exit(0)


def zygote():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        command = json.loads(line)
        if "spawn" in command:
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                os.dup2(2, 1)
                serve(command["spawn"], command["cwd"])
                os._exit(0)
            reply = {"pid": pid}
        else:
            pid = command.get("kill") or command["wait"]
            if "kill" in command:
                os.kill(pid, signal.SIGKILL)
            reply = {"status": os.waitpid(pid, 0)[1]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    zygote()
