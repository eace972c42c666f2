"""Just enough understanding of SQL text to know what a statement does to the session and to whom.

Not a parser: it splits statements, finds the verb and the written object. Placements need no more.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>[eE]?'(?:[^']|'')*')
  | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d[\w.]*)
  | (?P<other>.)
""", re.VERBOSE | re.DOTALL)


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words):
        return self.kind == "word" and self.text.lower() in words

    def name(self):
        """The identifier, unquoted."""
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        return self.text

    def string(self):
        body = self.text[self.text.index("'") + 1:-1]
        return body.replace("''", "'")


def tokenize(sql):
    tokens = []
    for found in TOKEN.finditer(sql):
        kind = found.lastgroup if found.lastgroup != "tag" else "dollar"
        if kind != "space":
            tokens.append(Token(kind, found.group(), found.start(), found.end()))
    return tokens


def split(sql):
    """The statements of a text, each without its semicolon."""
    statements, start, depth = [], 0, 0
    for token in tokenize(sql):
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
        elif token.text == ";" and depth <= 0:
            statements.append(sql[start:token.start])
            start = token.end
    statements.append(sql[start:])
    return [s.strip() for s in statements if tokenize(s)]


@dataclass
class Statement:
    """What a statement is. verb is lower case; target is the written object's name, split at dots."""
    verb: str
    target: list
    path: str = ""  # ATTACH and COPY TO: the path
    merutable: bool = False  # ATTACH (TYPE merutable), COPY (FORMAT merutable)
    name: str = ""  # PREPARE, EXECUTE, DEALLOCATE, USE, DETACH
    prepared: str = ""  # PREPARE: the statement


def classify(sql):
    tokens = tokenize(sql)
    verb = tokens[0].text.lower()
    rest = tokens[1:]
    if verb == "with":
        return _with(tokens)
    if verb in ("insert", "merge"):
        return Statement("write", _name_after(rest, "into"))
    if verb == "delete":
        return Statement("write", _name_after(rest, "from"))
    if verb == "update":
        return Statement("write", _dotted(rest))
    if verb == "truncate":
        return Statement("write", _dotted([t for t in rest if not t.is_word("table")]))
    if verb in ("create", "drop", "alter"):
        return Statement(verb, _object(rest))
    if verb == "comment":  # ON TABLE, ON COLUMN
        return Statement(verb, _dotted(rest[2:]))
    if verb == "copy":
        return _copy(rest)
    if verb == "attach":
        return _attach(rest)
    if verb == "detach":
        names = [t for t in rest if not t.is_word("database", "if", "exists")]
        return Statement(verb, [], name=names[0].name() if names else "")
    if verb == "use":
        return Statement(verb, [], name=rest[0].name() if rest else "")
    if verb == "prepare":
        at = next((i for i, t in enumerate(rest) if t.is_word("as")), 0)
        return Statement(verb, [], name=rest[0].name(), prepared=sql[rest[at].end:])
    if verb in ("execute", "deallocate"):
        names = [t for t in rest if not t.is_word("prepare", "all")]
        return Statement(verb, [], name=names[0].name() if names else "")
    if verb in ("begin", "start", "commit", "end", "rollback", "abort", "set", "reset", "pragma", "load", "install",
                "checkpoint", "call", "vacuum", "analyze", "force"):
        return Statement({"start": "begin", "end": "commit", "abort": "rollback"}.get(verb, verb), [])
    return Statement("read", [])


def _with(tokens):
    depth = 0
    for i, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.is_word("insert", "delete", "update", "merge"):
            if token.is_word("update"):
                return Statement("write", _dotted(tokens[i + 1:]))
            return Statement("write", _name_after(tokens[i + 1:], "from" if token.is_word("delete") else "into"))
    return Statement("read", [])


def _dotted(tokens):
    names = []
    for i in range(0, len(tokens), 2):
        if tokens[i].kind not in ("word", "quoted"):
            break
        names.append(tokens[i].name())
        if i + 1 >= len(tokens) or tokens[i + 1].text != ".":
            break
    return names


def _name_after(tokens, word):
    for i, token in enumerate(tokens):
        if token.is_word(word):
            return _dotted(tokens[i + 1:])
    return []


def _object(tokens):
    skip = ("or", "replace", "temp", "temporary", "persistent", "unique", "if", "not", "exists", "recursive",
            "on", "column")
    kinds = ("table", "view", "macro", "function", "type", "sequence", "index", "schema", "secret")
    rest = [t for t in tokens if not t.is_word(*skip)]
    temporary = any(t.is_word("temp", "temporary") for t in tokens[:4])
    if rest and rest[0].is_word(*kinds):
        if rest[0].is_word("index"):
            return _dotted(rest[2:])
        return ["temp"] if temporary else _dotted(rest[1:])
    return []


def _copy(tokens):
    if [t.text.lower() for t in tokens[:2]] == ["from", "database"]:
        to = next((i for i, t in enumerate(tokens) if t.is_word("to")), 0)
        return Statement("write", [*_dotted(tokens[to + 1:]), "*"])
    strings = [i for i, t in enumerate(tokens) if t.kind == "string"]
    to = [i for i, t in enumerate(tokens) if t.is_word("to")]
    merutable = any(t.is_word("format") and i + 1 < len(tokens) and tokens[i + 1].text.strip("'").lower() == "merutable"
                    for i, t in enumerate(tokens))
    if to and strings:
        after = [i for i in strings if i == to[-1] + 1]
        if after:
            return Statement("copy_to", [], path=tokens[after[0]].string(), merutable=merutable)
    return Statement("write", _dotted(tokens))


def _attach(tokens):
    path = next((t.string() for t in tokens if t.kind == "string"), "")
    merutable = any(t.is_word("type") and i + 1 < len(tokens) and tokens[i + 1].text.strip("'\"").lower() == "merutable"
                    for i, t in enumerate(tokens))
    return Statement("attach", [], path=path, merutable=merutable)
