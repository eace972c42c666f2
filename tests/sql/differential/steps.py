"""Scripts of the differential harness: SQL statements, and directives in comments that only the harness sees.

A directive stands on a line of its own before the statement that it is about:

    -- @on b                the next statement runs on connection b
    -- @unordered           the rows of the next query may come in any order, whatever its text says
    -- @native SQL          the native database gets this instead
    -- @differs KEY         the outcome differs as known.py says under KEY

or does something by itself:

    -- @flush, @compact, @gc, @reattach, @kill    on the merutable only
    -- @check               compares all tables and their descriptions
    -- @race … @end         two connections at a time: see pair.py
    -- @hold … @release     no kill -9 in between: other databases of the session hold what was read from the merutable

The first line may hold settings: `-- @with on_duplicate=error memtable_bytes=1MiB`.
"""

from dataclasses import dataclass, field

from runner import sqltext

PLACES = ("flush", "compact", "gc", "reattach", "kill")
MARKS = ("check", "hold", "release")


class ScriptError(Exception):
    """A script that is not one; the message names the line."""


@dataclass
class Step:
    kind: str  # "sql", "race", one of PLACES or of MARKS
    sql: str = ""
    connection: str = ""
    native: str = ""
    differs: str = ""
    unordered: bool = False
    race: list = field(default_factory=list)  # Steps of kind sql
    line: int = 0

    def text(self):
        if self.kind == "race":
            return "\n".join(["-- @race", *(step.text() for step in self.race), "-- @end"])
        if self.kind != "sql":
            return f"-- @{self.kind}"
        lines = []
        if self.connection:
            lines.append(f"-- @on {self.connection}")
        if self.unordered:
            lines.append("-- @unordered")
        if self.differs:
            lines.append(f"-- @differs {self.differs}")
        if self.native:
            lines.append(f"-- @native {self.native}")
        return "\n".join([*lines, self.sql + ";"])


def write(steps, settings):
    head = "-- @with " + " ".join(f"{name}={value}" for name, value in settings.items())
    return "\n".join([head, *(step.text() for step in steps)]) + "\n"


def _complete(text):
    """Whether the text ends at the semicolon of a statement, and not inside a string."""
    tokens = sqltext.tokenize(text)
    if not tokens or tokens[-1].text != ";" or any(t.text in ("'", '"') for t in tokens):
        return False
    depth = sum({"(": 1, ")": -1}.get(t.text, 0) for t in tokens)
    return depth <= 0


def read(text):
    """(steps, settings) of a script."""
    steps, settings, race, pending, buffer, begun = [], {}, None, {}, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if not buffer and bare.startswith("-- @"):
            word, _, rest = bare[4:].partition(" ")
            if word == "with":
                settings.update(pair.split("=", 1) for pair in rest.split())
            elif word == "race":
                race = Step("race", line=number)
            elif word == "end":
                steps.append(race)
                race = None
            elif word in PLACES or word in MARKS:
                steps.append(Step(word, line=number))
            elif word in ("on", "native", "differs"):
                pending["connection" if word == "on" else word] = rest.strip()
            elif word == "unordered":
                pending["unordered"] = True
            else:
                raise ScriptError(f"line {number}: no directive @{word}")
            continue
        if not buffer and (not bare or bare.startswith("--")):
            continue
        if not buffer:
            begun = number
        buffer.append(line)
        whole = "\n".join(buffer)
        if bare.endswith(";") and _complete(whole):
            sql = whole.strip().rstrip(";").rstrip()
            (race.race if race else steps).append(Step("sql", sql, line=begun, **pending))
            buffer, pending = [], {}
    if buffer:
        raise ScriptError(f"line {begun}: the statement does not end")
    return steps, settings
