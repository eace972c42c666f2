"""Whether two results are the same, and what differs."""

import re

from runner import compare, sqltext


class NativeBroke(Exception):
    """The native database failed with an internal error of its own: the history ends, and proves nothing more."""


class Difference(Exception):
    """The two do not agree. kind says how, without the values: what a smaller script must also show."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def error_class(text):
    """`Constraint Error: …` -> `Constraint`."""
    found = re.match(r"([A-Za-z ]+?) ?Error:", text)
    return found.group(1) if found else text[:30]


def ordered_at_the_end(sql):
    """Whether the statement as a whole has an ORDER BY."""
    depth, last = 0, ""
    for token in sqltext.tokenize(sql):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.kind == "word" and token.text.lower() == "by" and last == "order":
            return True
        last = token.text.lower()
    return False


def difference(mine, native, ordered):
    """None, or (kind, text)."""
    if [n.lower() for n in mine.names] != [n.lower() for n in native.names]:
        return "names", f"columns {mine.names}, native {native.names}"
    if mine.types != native.types:
        return "types", f"types {mine.types}, native {native.types}"
    left, right = normal(mine.rows, mine.types), normal(native.rows, native.types)
    if left == right:
        return None
    if not ordered:
        left.sort()
        right.sort()
        if left == right or close(left, right, mine.types):
            return None
    elif close(left, right, mine.types):
        return None
    elif sorted(left) == sorted(right):
        return "order", f"ours {left[:6]}, native {right[:6]}"
    extra = [row for row in left if row not in right][:3]
    missing = [row for row in right if row not in left][:3]
    return "rows", f"{len(left)} rows, native {len(right)}; only ours: {extra}; only native: {missing}"


NEGATIVE_ZERO = re.compile(r"(?<![\w.])-0\.0(?![\d])")


def normal(rows, types):
    """-0.0 and 0.0 are equal, and either may have been written last."""
    floats = [any(word in t for word in ("FLOAT", "DOUBLE")) for t in types]
    return [[NEGATIVE_ZERO.sub("0.0", compare.render(v)) if floating else compare.render(v)
             for v, floating in zip(row, floats)] for row in rows]


def close(left, right, types):
    """Sums of floating-point numbers differ in their last digits with the order of the rows."""
    if len(left) != len(right) or not any(t in ("FLOAT", "DOUBLE") for t in types):
        return False
    return all(compare.value_matches(t, a, b) for x, y in zip(left, right) for t, a, b in zip(types, x, y))
