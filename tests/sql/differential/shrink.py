"""Makes a failing script small: fewer steps, fewer rows, with the same kind of failure."""

import re
import time
from dataclasses import replace

from runner import sqltext
from runner.process import WorkerDied
from runner.session import SessionError

from .compare import Difference, NativeBroke
from .pair import Pair


def replay(zygote, extension, steps, settings, timeout=60, on_step=None):
    """Runs a script; None, or the Difference that it ends with. The index of the last step is in its `at`."""
    pair = None
    index = -1
    try:
        pair = Pair(zygote, extension, settings, timeout)
        for index, step in enumerate(steps):
            pair.run(step)
            if on_step:
                on_step(pair, step)
        return None
    except Difference as wrong:
        wrong.at = index
        return wrong
    except NativeBroke:
        return None
    except (WorkerDied, SessionError) as wrong:
        kind = "ours died" if isinstance(wrong, WorkerDied) else "placement: " + re.sub(r"\W*\d+\W*", "#", str(wrong))[:40]
        found = Difference(kind, str(wrong))
        found.at = index
        return found
    finally:
        if pair is not None:
            pair.close()


class Shrinker:
    def __init__(self, zygote, extension, settings, kind, seconds):
        self.zygote, self.extension, self.settings, self.kind = zygote, extension, settings, kind
        self.until = time.monotonic() + seconds
        self.last = None

    def fails(self, steps):
        if time.monotonic() > self.until:
            return False
        wrong = replay(self.zygote, self.extension, steps, self.settings)
        if wrong is None or wrong.kind != self.kind:
            return False
        self.last = wrong
        return True

    def shrink(self, steps):
        steps = self.fewer(steps)
        steps = self.smaller(steps)
        steps = self.fewer(steps)
        for name in list(self.settings):
            kept = self.settings
            self.settings = {n: v for n, v in kept.items() if n != name}
            if not self.fails(steps):
                self.settings = kept
        return steps

    def fewer(self, steps):
        """Leaves out runs of steps, long ones first."""
        size = max(1, len(steps) // 2)
        while size >= 1:
            at = len(steps) - size
            while at >= 0:
                candidate = steps[:at] + steps[at + size:]
                if candidate and self.fails(candidate):
                    steps = candidate[:self.last.at + 1]
                    at = min(at, len(steps)) - size
                else:
                    at -= size
            size //= 2
        return steps

    def smaller(self, steps):
        """Fewer rows of VALUES, fewer statements in a race."""
        for index in range(len(steps)):
            changed = True
            while changed and time.monotonic() < self.until:
                changed = False
                for candidate in variants(steps[index]):
                    trial = steps[:index] + [candidate] + steps[index + 1:]
                    if self.fails(trial):
                        steps, changed = trial, True
                        break
        return steps


def variants(step):
    if step.kind == "race":
        for i in range(len(step.race)):
            yield replace(step, race=step.race[:i] + step.race[i + 1:])
        return
    if step.kind != "sql":
        return
    found = re.search(r"\bVALUES\s*(?=\()", step.sql)
    if found:
        rows, end = value_rows(step.sql, found.end())
        native = None
        if step.native:
            other = re.search(r"\bVALUES\s*(?=\()", step.native)
            if not other:
                return
            native = value_rows(step.native, other.end())
            if len(native[0]) != len(rows):
                return
        for cut in cuts(len(rows)):
            def keep(some):
                return ", ".join(r for i, r in enumerate(some) if i not in cut)
            text = step.sql[:found.end()] + keep(rows) + step.sql[end:]
            other_text = step.native and step.native[:other.end()] + keep(native[0]) + step.native[native[1]:]
            yield replace(step, sql=text, native=other_text or "")
    if re.match(r"\s*(SELECT|FROM|UPDATE|DELETE)", step.sql) and not step.native:
        where = re.search(r" WHERE \((.*) (AND|OR) (.*)\)$", step.sql)
        if where:
            for part in (where.group(1), where.group(3)):
                if part.count("(") == part.count(")"):
                    yield replace(step, sql=step.sql[:where.start()] + " WHERE " + part)


def cuts(count):
    size = count // 2
    while size >= 1:
        for first in range(0, count, size):
            if min(size, count - first) < count:
                yield set(range(first, min(count, first + size)))
        size //= 2


def value_rows(sql, at):
    """The parenthesised rows from a position on, and where they end."""
    rows, depth, start, end = [], 0, None, at
    for token in sqltext.tokenize(sql[at:]):
        if token.text == "(":
            if depth == 0:
                start = token.start
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth < 0:
                break
            if depth == 0:
                rows.append(sql[at + start:at + token.end])
                end = at + token.end
        elif depth == 0 and token.text != ",":
            break
    return rows, end
