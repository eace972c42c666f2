"""DuckDB's own shell as a child process: send a statement, get its rows and how long it took."""

import csv
import os
import queue
import signal
import subprocess
import threading
import time


class ShellError(Exception):
    """A statement failed; the message is the shell's."""


def shell_binary():
    """The program of the package duckdb-cli (its entry point is only a wrapper)."""
    import duckdb_cli

    return os.path.join(os.path.dirname(duckdb_cli.__file__), "duckdb")


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


class Shell:
    """One shell with the extension loaded. Statements must be whole; results are lists of lists of strings."""

    def __init__(self, extension):
        self.process = subprocess.Popen([shell_binary(), "-unsigned", "-no-init", "-csv"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.lines = queue.SimpleQueue()
        self.marks = 0
        self.changed = 0  # rows that the last statement wrote
        threading.Thread(target=self._read, daemon=True).start()
        self.process.stdin.write(".changes on\n")
        self.ask(f"LOAD {literal(extension)}")
        self.ask("SET enable_progress_bar = false")

    @property
    def pid(self):
        return self.process.pid

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\r\n"))
        self.lines.put(None)

    def send(self, sql):
        """Sends a statement without waiting."""
        try:
            self.process.stdin.write(sql.rstrip().rstrip(";") + ";\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ShellError("the shell has ended") from None

    def ask(self, sql, timeout=600):
        """Runs a statement; its rows without the header."""
        return self.timed(sql, timeout)[0]

    def value(self, sql):
        return self.ask(sql)[0][0]

    def timed(self, sql, timeout=600):
        """Runs a statement; (rows, seconds). How many rows it wrote is in changed afterwards."""
        self.marks += 1
        mark = f"<<{self.marks}>>"
        started = time.perf_counter()
        self.send(sql)
        self.process.stdin.write(f".print {mark}\n")
        self.process.stdin.flush()
        said = []
        while True:
            try:
                line = self.lines.get(timeout=timeout)
            except queue.Empty:
                raise ShellError(f"no answer within {timeout} s: {sql}") from None
            if line is None:
                raise ShellError(f"the shell ended in: {sql}\n" + "\n".join(said))
            if line == mark:
                break
            said.append(line)
        seconds = time.perf_counter() - started
        if any(" Error:" in line for line in said):
            raise ShellError(f"{sql}\n" + "\n".join(said))
        changes = said.pop().split()  # changes: N total_changes: M
        self.changed = int(changes[1])
        return list(csv.reader(said[1:])), seconds

    def write(self, sql, timeout=600):
        """Runs a statement that writes; (rows written, seconds)."""
        _, seconds = self.timed(sql, timeout)
        return self.changed, seconds

    def kill(self):
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.process.stdin.close()
        if self.process.wait(timeout=120) != 0:
            raise ShellError(f"the shell ended with exit code {self.process.returncode}")
