"""What the host tests share."""

import hashlib
import os
import select
import signal
import subprocess
import sys
import time

import duckdb

EXTENSION = ""

# What must never be seen.
POISON = ("INTERNAL Error", "FATAL Error", "database has been invalidated")

# The first lines of every child: a connection `con` with the extension loaded.
PRELUDE = """
import duckdb, os, signal, sys, threading, time
def connect(**config):
    con = duckdb.connect(config={"allow_unsigned_extensions": "true", **config})
    con.execute("LOAD '" + sys.argv[1].replace("'", "''") + "'")
    con.execute("SET enable_progress_bar = false")
    return con
def say(*words):
    print(*words, flush=True)
"""


def connect(**config):
    """A DuckDB instance of its own, with the extension."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", **config})
    connection.execute(f"LOAD {literal(EXTENSION)}")
    connection.execute("SET enable_progress_bar = false")
    return connection


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def attach(connection, path, name="m", options=""):
    connection.execute(f"ATTACH {literal(path)} AS {name} (TYPE merutable{options})")


def one(connection, sql, *parameters):
    """The one value of a query."""
    return connection.execute(sql, list(parameters)).fetchone()[0]


def failing(connection, sql, *kinds):
    """Runs what must fail; its message. kinds: the allowed first words of the message."""
    try:
        connection.execute(sql).fetchall()
    except duckdb.Error as error:
        message = str(error)
        assert not any(word in message for word in POISON), message
        assert not kinds or message.startswith(kinds), message
        return message
    raise AssertionError(f"worked: {sql}")


def tree(path):
    """Every name below path with its mode, size, time and content: equal trees are untouched trees."""
    found = {}
    for folder, folders, names in os.walk(path):
        for name in folders + names:
            full = os.path.join(folder, name)
            status = os.lstat(full)
            content = ""
            if os.path.isfile(full):
                with open(full, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(full, path)] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return found


class Child:
    """A Python process that runs PRELUDE + code; its lines can be read one by one, and it can be killed."""

    def __init__(self, code, *arguments):
        self.process = subprocess.Popen([sys.executable, "-c", PRELUDE + code, EXTENSION, *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pid = self.process.pid
        self.buffer = b""

    def line(self, timeout=60):
        """The next line of output; AssertionError when none comes in time."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no line within {timeout} s; so far: {self.buffer!r}"
            read = os.read(self.process.stdout.fileno(), 65536)
            assert read, f"the child ended ({self.process.wait()}): {self.buffer.decode(errors='replace')}"
            self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def expect(self, wanted, timeout=60):
        got = self.line(timeout)
        assert got == wanted, f"{got}\n{self.rest()}"

    def rest(self, timeout=1):
        """What else it has said, for messages."""
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        if ready:
            self.buffer += os.read(self.process.stdout.fileno(), 65536)
        return self.buffer.decode(errors="replace")

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self):
        """kill -9."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass

    def lines_until_killed(self):
        """Everything that it had said when it was killed, complete lines only."""
        self.process.send_signal(signal.SIGKILL)
        data = self.buffer + self.process.stdout.read()
        self.process.wait()
        return data.decode().split("\n")[:-1]

    def wait(self, timeout=60):
        """Waits for a good end."""
        output, _ = self.process.communicate(timeout=timeout)
        text = (self.buffer + output).decode(errors="replace")
        assert self.process.returncode == 0, f"exit code {self.process.returncode}: {text}"
        return text
