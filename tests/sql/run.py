#!/usr/bin/env python3
"""Runs merutable's SQL tests inside real DuckDB.

    run.py --ext build/debug/extension/merutable/merutable.duckdb_extension [--placement all] [filter ...]
    run.py --oracle [filter ...]

Each file runs once per placement of its rows: memtable (as written), flushed (to files, before each query that follows
a write), compacted (to one sorted run, likewise), reattached (flushed, detached, attached again), killed (kill -9 of the
process, then recovery in a new one).
--oracle runs the files marked '# oracle: native' against a native DuckDB table instead: it proves the expected values.
A filter is a part of a file's path.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from runner.executor import Executor, Failure, Skipped  # noqa: E402
from runner.parser import PLACEMENTS, ParseError, parse  # noqa: E402
from runner.process import WorkerDied, Zygote  # noqa: E402
from runner.s3 import S3Server, Unavailable  # noqa: E402
from runner.selftest import selftest  # noqa: E402
from runner.session import Session, SessionError  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


class Run:
    def __init__(self, options):
        self.options = options
        self.zygote = Zygote()
        self.s3 = S3Server()
        self.lock = threading.Lock()
        self.passed = 0
        self.failures = []
        self.skips = Counter()
        self.times = []

    def say(self, text):
        with self.lock:
            print(text, flush=True)

    def one(self, test, placement):
        """One file in one placement."""
        scratch = tempfile.mkdtemp(prefix="meru-")
        test_dir = os.path.join(scratch, "t")
        os.mkdir(test_dir)
        started = time.monotonic()
        session, wrong = None, None
        try:
            session = Session(self.zygote, scratch, test_dir, self.options.ext, self.options.timeout,
                              self.options.oracle)
            variables = {"__TEST_DIR__": test_dir, "__WORKING_DIRECTORY__": os.getcwd()}
            if any(word in test.text for word in S3Server.WORDS):
                variables.update(self.s3.variables())
            executor = Executor(test, session, placement, variables)
            executor.run()
            if executor.records_run == 0:
                wrong = "no record ran"
            session.close()
        except Skipped as reason:
            with self.lock:
                self.skips[str(reason)] += 1
            wrong = None
            session.close()
            return
        except (Failure, SessionError, WorkerDied, ParseError, Unavailable) as error:
            wrong = str(error)
        finally:
            if session is not None and session.worker is not None:
                session.worker.kill()
            if wrong is None or not self.options.keep:
                shutil.rmtree(scratch, ignore_errors=True)
        elapsed = time.monotonic() - started
        name = f"{os.path.relpath(test.path, HERE)} [{placement}]"
        with self.lock:
            self.times.append((elapsed, name))
            if wrong is None:
                self.passed += 1
            else:
                self.failures.append(name)
        if wrong is not None:
            kept = f"\n  kept: {scratch}" if self.options.keep else ""
            self.say(f"FAIL {name} ({elapsed:.1f} s)\n  {wrong}{kept}")
        elif self.options.verbose:
            self.say(f"ok   {name} ({elapsed:.1f} s)")

    def check_runner(self):
        """The runner must notice what is wrong before its word counts."""
        scratch = tempfile.mkdtemp(prefix="meru-")
        session = Session(self.zygote, scratch, scratch, None, self.options.timeout, oracle=True)
        try:
            selftest(session)
            self.passed += 1
        except AssertionError as error:
            self.failures.append("the runner's own test")
            self.say(f"FAIL the runner's own test: {error}")
        finally:
            session.worker.kill()
            shutil.rmtree(scratch, ignore_errors=True)

    def jobs(self, tests):
        wanted = PLACEMENTS if self.options.placement == "all" else (self.options.placement,)
        for test in tests:
            if self.options.oracle:
                if test.oracle:
                    yield test, "memtable"
                continue
            for placement in wanted:
                if placement in test.placements:
                    yield test, placement
                else:
                    self.skips[f"{placement}: {test.placement_reason}"] += 1

    def close(self):
        self.zygote.close()
        self.s3.close()


def find(filters):
    found = []
    for folder, _, names in os.walk(HERE):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".test") and (not filters or any(f in path for f in filters)):
                found.append(path)
    return sorted(found)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", help="path of merutable.duckdb_extension")
    arguments.add_argument("--placement", default="all", choices=[*PLACEMENTS, "all"])
    arguments.add_argument("--oracle", action="store_true", help="against native DuckDB tables")
    arguments.add_argument("-j", "--jobs", type=int, default=2)
    arguments.add_argument("--timeout", type=float, default=120, help="seconds per statement")
    arguments.add_argument("--keep", action="store_true", help="keep the directories of failed tests")
    arguments.add_argument("-v", "--verbose", action="store_true")
    arguments.add_argument("filter", nargs="*")
    options = arguments.parse_args()
    if not options.oracle:
        if not options.ext or not os.path.exists(options.ext):
            arguments.error("--ext must name the built extension")
        options.ext = os.path.abspath(options.ext)
    paths = find(options.filter)
    if not paths:
        arguments.error("no test file matches")
    run = Run(options)
    tests = []
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            try:
                tests.append(parse(path, file.read()))
            except ParseError as error:
                run.failures.append(path)
                run.say(f"FAIL {error}")
    run.check_runner()
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            for outcome in [pool.submit(run.one, test, placement) for test, placement in list(run.jobs(tests))]:
                outcome.result()
    finally:
        run.close()
    report(run, options)
    sys.exit(1 if run.failures or not run.passed else 0)


def report(run, options):
    if options.verbose:
        for elapsed, name in sorted(run.times, reverse=True)[:5]:
            print(f"slowest: {elapsed:5.1f} s {name}")
    for reason, count in sorted(run.skips.items()):
        print(f"skipped {count}: {reason}")
    for name in run.failures:
        print(f"failed: {name}")
    skipped = sum(run.skips.values())
    print(f"{run.passed} passed, {len(run.failures)} failed" + (f", {skipped} skipped" if skipped else ""))


if __name__ == "__main__":
    main()
