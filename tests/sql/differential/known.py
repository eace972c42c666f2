"""The differences that are meant, in one place: why, and what ours does instead. Each is checked, none skipped.

A script marks a statement with `-- @differs KEY`; then native must do what it does and ours what stands here.
docs/SEMANTICS.md says the same for people.
"""

import re
from dataclasses import dataclass

from .compare import Difference


@dataclass
class Known:
    reason: str
    ours: str  # a regular expression that the error matches; "" when the statement works
    native_fails: bool = False


KNOWN = {
    "unique": Known("the table has one index, its primary key", r"UNIQUE"),
    "foreign_key": Known("a table knows nothing of others", r"FOREIGN KEY|foreign key"),
    "generated": Known("generated columns are not kept", r"[Gg]enerated"),
    "no_key": Known("rows are found by their key", r"PRIMARY KEY|primary key"),
    "union": Known("Parquet has no such type", r"UNION"),
    "reserved": Known("names that begin with _merutable_ are the engine's own", r"_merutable_"),
}


def check(step, mine, native):
    entry = KNOWN[step.differs]
    if (native.error is not None) != entry.native_fails:
        raise Difference(f"known {step.differs}: native", f"{step.sql}\n  native: {native.error or 'works'}")
    if not entry.ours:
        if mine.error is not None:
            raise Difference(f"known {step.differs}", f"{step.sql}\n  ours: {mine.error}\n  expected: works")
    elif mine.error is None or not re.search(entry.ours, mine.error):
        raise Difference(f"known {step.differs}",
                               f"{step.sql}\n  ours: {mine.error or 'works'}\n  expected: {entry.ours}")


# Where several rows of a statement are wrong in several ways, either error may come first.
FAULTS_OF_ROWS = {"Out of Range", "Conversion", "Constraint"}


def classes_agree(mine, native):
    return mine in FAULTS_OF_ROWS and native in FAULTS_OF_ROWS


def explain(sql, mine, native):
    """A difference of results that a rule here settles by itself: None when there is nothing special."""
    return None
