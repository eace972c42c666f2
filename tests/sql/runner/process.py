"""The runner's side of worker.py: the zygote, a worker process, and clients of it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

from .s3 import environment

HERE = os.path.dirname(os.path.abspath(__file__))


class WorkerDied(Exception):
    """The process with DuckDB in it ended by itself: a crash, whatever the statement was."""


class Zygote:
    """Forks workers. One per run; safe for many threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment())

    def ask(self, **command):
        with self.lock:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the worker zygote ended")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Worker:
    """One DuckDB process."""

    def __init__(self, zygote, scratch, cwd, timeout):
        self.zygote = zygote
        self.timeout = timeout
        self.path = os.path.join(scratch, f"w{time.monotonic_ns()}.sock")
        self.pid = zygote.ask(spawn=self.path, cwd=cwd)["pid"]
        self.local = threading.local()
        self.alive = True
        self.hung = False

    def _stream(self):
        stream = getattr(self.local, "stream", None)
        if stream is None:
            deadline = time.monotonic() + 30
            while True:
                client = socket.socket(socket.AF_UNIX)
                try:
                    client.connect(self.path)
                    break
                except OSError:
                    client.close()
                    if time.monotonic() > deadline:
                        raise RuntimeError("the worker does not answer") from None
                    time.sleep(0.002)
            client.settimeout(self.timeout)
            stream = self.local.stream = client.makefile("rwb")
        return stream

    def ask(self, **request):
        """Sends one request and waits for its reply; WorkerDied when the process ends or hangs."""
        try:
            stream = self._stream()
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            line = stream.readline()
        except TimeoutError:
            self.hung = True
            self.kill()
            raise WorkerDied(f"no answer within {self.timeout} s: {request.get('sql', request['op'])}") from None
        except OSError:
            line = b""
        if not line:
            self.alive = False
            status = self.zygote.ask(wait=self.pid)["status"]
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
            raise WorkerDied(f"the process died ({how}) in: {request.get('sql', request['op'])}")
        return json.loads(line)

    def kill(self):
        """kill -9; returns when the process is gone and its locks with it."""
        if self.alive:
            self.alive = False
            self.zygote.ask(kill=self.pid)
        self._forget()

    def close(self):
        """Ends the process in good order."""
        if not self.alive:
            return
        stream = self._stream()
        stream.write(b'{"op": "close"}\n')
        stream.flush()
        stream.readline()
        self.alive = False
        self.zygote.ask(wait=self.pid)
        self._forget()

    def _forget(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
