#!/usr/bin/env python3
"""The same SQL on a merutable and on a native DuckDB database: the same results, statement by statement.

    differential.py --ext PATH [--seconds 60] [--seed N] [--placement P]     random histories
    differential.py --ext PATH --scripts [--placement P] [FILTER ...]        the scripts in differential/scripts
    differential.py --ext PATH --replay FILE                                 a script that failed

Each random history makes up tables, writes and changes them in every way, moves what was written between placements
(memory, files, compacted files, attached again, killed and recovered) and compares results, counts, errors and whole
tables. A failure is shrunk to the few statements that it takes and left in a file, which --replay runs again.
--placement is one of memory, flush, compact, gc, reattach, kill, mixed, and for scripts also transaction.
"""

import argparse
import os
import random
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from differential import script_runs, steps  # noqa: E402
from differential.compare import Difference, NativeBroke  # noqa: E402
from differential.history import History, settings  # noqa: E402
from differential.pair import Pair  # noqa: E402
from differential.selftest import selftest  # noqa: E402
from differential.shrink import Shrinker, replay  # noqa: E402
from runner.process import WorkerDied, Zygote  # noqa: E402
from runner.session import SessionError  # noqa: E402

MIXED = ["flush", "flush", "compact", "gc", "reattach", "kill"]


class Random:
    def __init__(self, zygote, options):
        self.zygote, self.options = zygote, options
        self.statements, self.passed, self.failed, self.broken, self.caught_up = 0, 0, 0, 0, 0
        self.kinds = {}

    def run(self):
        until = time.monotonic() + self.options.seconds
        for seed in range(self.options.seed, self.options.seed + self.options.histories):
            if time.monotonic() > until or (self.failed and not self.options.go_on):
                break
            self.one(seed)
        print(f"{self.statements} statements, seeds {self.options.seed} to {seed}; {self.caught_up} transactions that native "
              f"cannot do as one, {self.broken} histories that a fault of native DuckDB ended")

    def one(self, seed):
        rng = random.Random(f"settings {seed}")
        placement = self.options.placement
        places = MIXED if placement == "mixed" else ["check"] if placement == "memory" else [placement]
        chosen = settings(rng)
        pair, history = None, None
        try:
            pair = Pair(self.zygote, self.options.ext, chosen)
            history = History(seed, pair, places)
            history.run(self.options.steps)
            self.passed += 1
        except NativeBroke as broke:
            self.broken += 1
            path = os.path.join(self.options.out, f"native-{seed}.sql")
            with open(path, "w", encoding="utf-8") as file:
                file.write(steps.write(history.steps if history else [], chosen))
            print(f"seed {seed}: native broke off, after {path}: {str(broke)[:300]}", flush=True)
        except (Difference, WorkerDied, SessionError) as wrong:
            self.failed += 1
            self.report(seed, chosen, history.steps if history else [], wrong)
        finally:
            if pair is not None:
                self.statements += pair.statements
                self.caught_up += pair.caught_up
                pair.close()

    def report(self, seed, chosen, made, wrong):
        print(f"seed {seed}: {getattr(wrong, 'kind', type(wrong).__name__)} after {len(made)} steps", flush=True)
        path = os.path.join(self.options.out, f"differential-{seed}.sql")
        again = replay(self.zygote, self.options.ext, made, chosen)
        if again is None:
            print("  the same statements again show nothing: left whole", flush=True)
        else:
            self.kinds[again.kind] = self.kinds.get(again.kind, 0) + 1
            if self.options.shrink and self.kinds[again.kind] <= self.options.each:
                shrinker = Shrinker(self.zygote, self.options.ext, chosen, again.kind, self.options.shrink)
                made, chosen = shrinker.shrink(made[:again.at + 1]), shrinker.settings
                wrong = shrinker.last or again
        with open(path, "w", encoding="utf-8") as file:
            file.write(steps.write(made, chosen))
        text = steps.write(made, chosen) if len(made) <= 12 else f"{len(made)} steps, the last: {made[-1].text()}"
        print(f"--- {path}\n{text}\n{wrong}\n---", flush=True)


def run_replay(zygote, options):
    with open(options.replay, encoding="utf-8") as file:
        made, chosen = steps.read(file.read())
    wrong = None
    for _ in range(options.tries):
        wrong = replay(zygote, options.ext, made, chosen)
        if wrong is not None:
            break
    if wrong is not None and options.shrink_replay:
        shrinker = Shrinker(zygote, options.ext, chosen, wrong.kind, options.shrink)
        made = shrinker.shrink(made[:wrong.at + 1])
        with open(options.replay, "w", encoding="utf-8") as file:
            file.write(steps.write(made, shrinker.settings))
        print(steps.write(made, shrinker.settings))
    print(f"{wrong.kind}\n{wrong}" if wrong else "no difference")
    return 1 if wrong else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ext", required=True)
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--histories", type=int, default=1_000_000)
    arguments.add_argument("--steps", type=int, default=80, help="statements of a history")
    arguments.add_argument("--placement", default="mixed", choices=["memory", "all", "transaction", *sorted(set(MIXED)), "mixed"])
    arguments.add_argument("--go-on", action="store_true", help="do not stop at the first difference")
    arguments.add_argument("--shrink", type=float, default=60, help="seconds for making a failure smaller; 0: as it is")
    arguments.add_argument("--each", type=int, default=1, help="failures of one kind that are shrunk")
    arguments.add_argument("--out", default=tempfile.gettempdir(), help="where failing scripts go")
    arguments.add_argument("--scripts", action="store_true")
    arguments.add_argument("--replay", metavar="FILE")
    arguments.add_argument("--shrink-replay", action="store_true", help="make the script of --replay smaller, in its place")
    arguments.add_argument("--tries", type=int, default=1, help="how often --replay runs a script that shows nothing")
    arguments.add_argument("filter", nargs="*")
    options = arguments.parse_args()
    options.ext = os.path.abspath(options.ext)
    zygote = Zygote()
    try:
        selftest(zygote)
        if options.replay:
            sys.exit(run_replay(zygote, options))
        runs = script_runs.Scripts(zygote, options) if options.scripts else Random(zygote, options)
        runs.run()
    finally:
        zygote.close()
    print(f"{runs.passed} passed, {runs.failed} failed")
    sys.exit(1 if runs.failed or not runs.passed else 0)


if __name__ == "__main__":
    main()
