"""Transactions that a native table cannot do as one.

DuckDB gives up a transaction that has changed rows of a table and altered it ("another transaction has altered this
table", which is the transaction itself), and finds the key of a row taken by an older version of that same row, where an
UPDATE deletes and inserts it, as with columns of lists; SET NOT NULL looks at rows that the transaction has deleted. Ours
does these. The native database then runs the statements of the transaction one by one: they must work, and the whole tables
must be the same again.
"""

import re

from runner import sqltext

from .compare import Difference

GIVES_UP = re.compile(r"another transaction has altered this table|has been altered by a different transaction"
                      r"|underlying table state was|violates primary key constraint|PRIMARY KEY or UNIQUE constraint violation"
                      r"|Cannot create index with outstanding updates|NOT NULL constraint failed")


class Behind:
    """What is known of the one transaction that a connection has open."""

    def __init__(self):
        self.transactions = {}  # connection -> Open

    def forget(self):
        self.transactions.clear()

    def note(self, pair, step, mine, native):
        """Whether the native database is behind with this step, so that there is nothing to compare."""
        verb = sqltext.classify(step.sql).verb
        if verb == "begin":
            self.transactions[step.connection] = Open()
            return False
        now = self.transactions.get(step.connection)
        if now is None:
            return False
        ends = verb in ("commit", "rollback")
        if ends:
            del self.transactions[step.connection]
        elif mine.error is None and verb != "read":
            now.steps.append(step)
        if native.error is not None and GIVES_UP.search(native.error):
            if mine.error is None:
                now.lost = True
            elif not native.error.startswith("Constraint Error"):
                return True  # ours fails for what is wrong with the statement: both roll back
        if now.lost and ends:
            self.catch_up(pair, step.connection, now if verb == "commit" and mine.error is None else None)
        return now.lost

    @staticmethod
    def catch_up(pair, connection, committed):
        pair.native.run(connection, "ROLLBACK")  # fails where the COMMIT has done it
        if committed is None:
            return
        pair.caught_up += 1
        for step in committed.steps:
            result = pair.run_native(step)
            if result.error is not None:
                raise Difference("alone: only native fails", f"{step.text()}\n  native: {result.error}")


class Open:
    """A transaction: its statements that have changed something, and whether native has given it up."""

    def __init__(self):
        self.steps = []
        self.lost = False
