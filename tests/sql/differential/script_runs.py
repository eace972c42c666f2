"""Runs the scripts of scripts/ in every placement."""

import os
import random
import shutil
import tempfile
import time
from dataclasses import replace

from runner import sqltext
from runner.process import WorkerDied
from runner.session import Session, SessionError

from .compare import Difference
from .pair import OWN, Pair, quoted
from .steps import Step, read

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
PLACEMENTS = ("memory", "flush", "compact", "reattach", "kill", "mixed", "transaction")
ALONE = ("attach", "detach", "use", "begin", "commit", "rollback", "checkpoint", "pragma", "call", "set", "reset", "load",
         "vacuum", "force", "create", "drop", "alter", "comment", "prepare", "execute", "deallocate", "copy_to")
DEFAULTS = {"on_duplicate": "error", "memtable_bytes": "1MiB", "l0_files": "3", "target_file_bytes": "1MiB",
            "gc_grace_secs": "0", "durability": "os"}


def find(filters):
    names = sorted(n for n in os.listdir(HERE) if n.endswith(".sql") and (not filters or any(f in n for f in filters)))
    return [os.path.join(HERE, n) for n in names]


class Scripts:
    def __init__(self, zygote, options):
        self.zygote, self.options = zygote, options
        self.statements, self.passed, self.failed = 0, 0, 0

    def run(self):
        wanted = self.options.placement
        for path in find(self.options.filter):
            with open(path, encoding="utf-8") as file:
                steps, settings = read(file.read())
            for placement in PLACEMENTS if wanted == "all" else (wanted,):
                self.one(path, placement, steps, {**DEFAULTS, **settings})
        print(f"{self.statements} statements of scripts")

    def one(self, path, placement, steps, settings):
        name = f"{os.path.basename(path)} [{placement}]"
        started = time.monotonic()
        failed, pair = [], None
        try:
            pair = Pair(self.zygote, self.options.ext, {n: v for n, v in settings.items() if v})
            if placement == "transaction":
                steps = in_transactions(self.zygote, self.options.ext, steps, random.Random(self.options.seed))
            failed = Run(pair, placement, random.Random(self.options.seed), self.options.go_on).run(steps)
        except (Difference, WorkerDied, SessionError) as wrong:
            failed.append(str(wrong))
        finally:
            if pair is not None:
                self.statements += pair.statements
                pair.close()
        if failed:
            self.failed += 1
            print(f"FAIL {name}\n" + "\n".join(failed) + "\n", flush=True)
        else:
            self.passed += 1
            print(f"ok   {name} ({time.monotonic() - started:.1f} s)", flush=True)


class Run:
    """One script in one placement."""

    def __init__(self, pair, placement, rng, go_on):
        self.pair, self.placement, self.rng, self.go_on = pair, placement, rng, go_on
        self.held = False

    def run(self, steps):
        failed = []
        for step in [*steps, Step("check")]:
            if step.kind in ("hold", "release"):
                self.held = step.kind == "hold"
            try:
                self.pair.run(step)
                self.after(step)
            except Difference as wrong:
                failed.append(f"line {step.line}: {wrong.kind}\n  {wrong}")
                if not self.go_on:
                    break
        return failed

    def after(self, step):
        """What a write left, where the placement wants it, and whether it is the same."""
        if step.kind != "sql" or sqltext.classify(step.sql).verb in ("read", "prepare", "set", "use", "deallocate"):
            return
        place = self.placement
        if place == "mixed":
            place = self.rng.choice(["memory", "memory", "memory", "flush", "compact", "gc", "reattach", "kill"])
        if place == "kill" and self.held:
            place = "reattach"
        if place not in ("memory", "transaction") and not self.pair.native.in_transaction:
            self.pair.place(place)
        target = sqltext.classify(step.sql).target
        if target and target[0] not in ("temp", "memory") and not self.pair.native.in_transaction:
            name = quoted(target[-1])
            found = f"SELECT 1 FROM duckdb_tables() WHERE database_name = 'm' AND table_name = '{target[-1]}'"
            if self.pair.native.raw(OWN, found).rows:
                self.pair.use(OWN)
                self.pair.check_table(f"m.{name}")


def in_transactions(zygote, extension, steps, rng):
    """The script with BEGIN … COMMIT around runs of its statements; what fails on native stays outside."""
    scratch = tempfile.mkdtemp(prefix="meru-")
    session = Session(zygote, scratch, scratch, None, 60, oracle=True)
    made, opened, own = [], 0, False

    def close():
        nonlocal opened
        if opened:
            made.append(Step("sql", "COMMIT"))
            opened = 0

    try:
        session.run("", "ATTACH ':memory:' AS m; USE m")
        for step in steps:
            verb = sqltext.classify(step.sql).verb if step.kind == "sql" else ""
            outside = step.kind != "sql" or bool(step.connection) or step.differs or verb in ALONE or step.native
            fails = step.kind == "sql" and session.run(step.connection, step.native or step.sql).error is not None
            if verb == "begin":
                close()
                own = True
            elif verb in ("commit", "rollback"):
                own = False
            elif not own and (outside or fails or "memory." in step.sql or "temp" in step.sql.lower()):
                if step.kind == "sql":
                    close()
            elif not own:
                if not opened:
                    made.append(Step("sql", "BEGIN"))
                opened += 1
            if step.kind == "sql" or not opened:
                made.append(replace(step))
            if opened and rng.random() < 0.1:
                close()
        close()
    finally:
        session.worker.kill()
        shutil.rmtree(scratch, ignore_errors=True)
    return made
