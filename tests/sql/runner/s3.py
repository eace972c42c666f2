"""An S3 server for the tests that ask for one, started once and shared by all of them."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SERVER = os.path.join(ROOT, "build", "bin", "versitygw")
KEY, SECRET, BUCKET = "test", "testsecret", "merutable"

# Nothing of the machine's own may decide a test: neither credentials nor where they would be looked for.
ENVIRONMENT = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull,
               "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def environment():
    """That of processes with merutable in them."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**rest, **ENVIRONMENT}


class Unavailable(Exception):
    """There is no server; the message says why."""


class S3Server:
    """versitygw over a temporary directory, with one bucket. Safe for many threads."""

    WORDS = ("__S3_ENDPOINT__", "__S3_URL__", "__S3_KEY__", "__S3_SECRET__")

    def __init__(self):
        self.lock = threading.Lock()
        self.process = None
        self.directory = None
        self.endpoint = None
        self.log = None

    def variables(self):
        """What the words stand for in one run of a test: __S3_URL__ is a prefix of its own."""
        with self.lock:
            for attempt in range(3):  # a port that was free may be taken by now
                if self.process is not None:
                    break
                try:
                    self._start()
                except Unavailable:
                    self.close()
                    if attempt == 2:
                        raise
        return {"__S3_ENDPOINT__": self.endpoint, "__S3_URL__": f"s3://{BUCKET}/{uuid.uuid4().hex}",
                "__S3_KEY__": KEY, "__S3_SECRET__": SECRET}

    def _start(self):
        if not os.path.exists(SERVER):
            raise Unavailable(f"{SERVER} is missing: ./dev lint fetches it")
        self.directory = tempfile.mkdtemp(prefix="meru-s3-")
        self.log = self.directory + ".log"
        os.mkdir(os.path.join(self.directory, BUCKET))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [SERVER, "--quiet", "--keep-alive", "--access-log", self.log, "--port", f"127.0.0.1:{port}", "posix",
             self.directory],
            env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                if self.process.poll() is None:
                    return
                raise OSError("somebody else listens")
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise Unavailable(f"{SERVER} does not answer") from None
                time.sleep(0.02)

    def requests(self, url):
        """The lines of the server's log about what is below a URL: what was asked since the start."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return [line for line in log if url.removeprefix(f"s3://{BUCKET}/") in line]

    def close(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
            shutil.rmtree(self.directory, ignore_errors=True)
            if os.path.exists(self.log):
                os.remove(self.log)
