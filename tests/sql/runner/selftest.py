"""Checks that the runner itself notices what is wrong: small scripts that must pass, and ones that must fail."""

from . import compare, sqltext
from .executor import Executor, Failure, Skipped
from .parser import ParseError, parse

HEADER = "# name: selftest\n# description: selftest\n# group: [selftest]\n\n"

GOOD = {
    "values": "query IT\nSELECT 1, 'a'\n----\n1\ta\n",
    "value-wise": "query IT\nSELECT 1, 'a'\n----\n1\na\n",
    "null and empty": "query TT\nSELECT NULL, ''\n----\nNULL\t(empty)\n",
    "no rows": "query I\nSELECT 1 WHERE false\n----\n",
    "rowsort": "query I rowsort\nVALUES (2), (1)\n----\n1\n2\n",
    "valuesort": "query II valuesort\nSELECT 2, 1\n----\n1\n2\n",
    "labels": "query I nosort a\nSELECT 1\n\nquery I nosort a\nSELECT 2 - 1\n",
    "hash": "query I\nSELECT * FROM range(3)\n----\n3 values hashing to 65c39c20e4d6c4e1d5a3a3a3a3a3a3a3\n",
    "booleans": "query I\nSELECT true\n----\n1\n",
    "numbers in another form": "query R\nSELECT 1.5::DOUBLE\n----\n1.50\n",
    "regex": "query T\nSELECT 'abc'\n----\n<REGEX>:a.c\n",
    "error": "statement error\nSELECT nosuch\n----\nBinder Error\n",
    "error regex": "statement error\nSELECT nosuch\n----\n<REGEX>:.*nosuch.*\n",
    "maybe": "statement maybe\nSELECT nosuch\n----\nBinder Error\n",
    "loop": "loop i 0 3\n\nquery I\nSELECT ${i}\n----\n${i}\n\nendloop\n",
    "foreach": "foreach t <signed>\n\nquery T\nSELECT lower(typeof(1::${t}))\n----\n${t}\n\nendloop\n",
    "conditions": "skipif oracle\nstatement ok\nSELECT nosuch\n\nonlyif oracle\nstatement ok\nSELECT 1\n",
    "mode skip": "statement ok\nSELECT 1\n\nmode skip\n\nstatement ok\nSELECT nosuch\n\nmode unskip\n",
    "connections": "statement ok con1\nCREATE TEMP TABLE t AS SELECT 1 AS a\n\nquery I con1\nFROM t\n----\n1\n\n"
                   "statement error con2\nFROM t\n----\nCatalog Error\n",
    "concurrent": "concurrentloop i 0 4\n\nquery I\nSELECT ${i} + 1 - 1\n----\n${i}\n\nendloop\n",
    "128 bits": "query I\nSELECT 170141183460469231731687303715884105727::HUGEINT\n----\n"
                "170141183460469231731687303715884105727\n",
}

BAD = {
    "a wrong value": "query I\nSELECT 1\n----\n2\n",
    "a row too many": "query I\nVALUES (1), (2)\n----\n1\n",
    "a row too few": "query I\nVALUES (1)\n----\n1\n2\n",
    "no rows expected": "query I\nSELECT 1\n----\n",
    "another number of columns": "query II\nSELECT 1\n----\n1\n",
    "another order": "query I\nVALUES (2), (1)\n----\n1\n2\n",
    "NULL for a value": "query I\nSELECT NULL::INT\n----\n0\n",
    "a neighbouring double": "query R\nSELECT 1.0001::DOUBLE\n----\n1.0\n",
    "128 bits, one off": "query I\nSELECT 170141183460469231731687303715884105726::HUGEINT\n----\n"
                         "170141183460469231731687303715884105727\n",
    "digits that a double loses": "query I\nSELECT 9007199254740993\n----\n9007199254740992\n",
    "an error": "statement ok\nSELECT nosuch\n",
    "no error": "statement error\nSELECT 1\n----\nBinder Error\n",
    "labels that differ": "query I nosort a\nSELECT 1\n\nquery I nosort a\nSELECT 2\n",
    "in a loop": "loop i 0 3\n\nquery I\nSELECT ${i}\n----\n0\n\nendloop\n",
    "in a thread": "concurrentloop i 0 3\n\nquery I\nSELECT ${i}\n----\n0\n\nendloop\n",
    "a hash": "query I\nSELECT 1\n----\n1 values hashing to 00000000000000000000000000000000\n",
}

UNPARSABLE = {
    "an open loop": "loop i 0 3\n\nstatement ok\nSELECT 1\n",
    "an error without its message": "statement error\nSELECT 1\n",
    "an unknown record": "statment ok\nSELECT 1\n",
}


def selftest(session):
    """Raises AssertionError when the runner is not to be trusted. session: an oracle's."""
    assert compare.message_matches("Binder Error: x", "Binder Error")
    assert not compare.message_matches("Binder Error: x", "<REGEX>:x")
    good = dict(GOOD)
    good["hash"] = good["hash"].replace("65c39c20e4d6c4e1d5a3a3a3a3a3a3a3", compare.digest(["0", "1", "2"]))
    for name, text in good.items():
        try:
            run(session, text)
        except Failure as error:
            raise AssertionError(f"'{name}' should pass: {error}") from error
    for name, text in BAD.items():
        try:
            run(session, text)
        except Failure:
            continue
        raise AssertionError(f"'{name}' should fail")
    for name, text in UNPARSABLE.items():
        try:
            parse(name, HEADER + text)
        except ParseError:
            continue
        raise AssertionError(f"'{name}' should not parse")
    try:
        run(session, "require nosuchextension\n\nstatement ok\nSELECT 1\n")
    except Skipped:
        pass
    else:
        raise AssertionError("a missing requirement should skip")
    classify()


def run(session, text):
    Executor(parse("selftest", HEADER + text), session, "memtable", {}).run()


def classify():
    """What the placements rest on: who writes to whom."""
    for sql, verb, target in (
            ("INSERT INTO m.t VALUES (1)", "write", ["m", "t"]),
            ('insert or replace into "m""x".main."t" select 1', "write", ['m"x', "main", "t"]),
            ("DELETE FROM m.t WHERE a IN (SELECT a FROM b)", "write", ["m", "t"]),
            ("WITH c AS (SELECT 1 FROM d) INSERT INTO m.t SELECT * FROM c", "write", ["m", "t"]),
            ("WITH c AS (DELETE FROM x) SELECT 1", "read", []),
            ("/* c */ SELECT 'INSERT INTO m.t' -- x", "read", []),
            ("CREATE OR REPLACE TEMP TABLE t AS SELECT 1", "create", ["temp"]),
            ("CREATE TABLE IF NOT EXISTS m.t(a INT)", "create", ["m", "t"]),
            ("DROP VIEW IF EXISTS v", "drop", ["v"]),
            ("COPY (SELECT 1) TO 'a''b' (FORMAT merutable)", "copy_to", []),
            ("COPY m.t FROM 'x.csv'", "write", ["m", "t"])):
        found = sqltext.classify(sql)
        assert (found.verb, found.target) == (verb, target), (sql, found)
    copied = sqltext.classify("COPY (SELECT 1) TO 'a''b' (FORMAT merutable)")
    assert copied.path == "a'b" and copied.merutable
    assert len(sqltext.split("SELECT ';'; SELECT $$;$$; -- ;\n SELECT 3;")) == 3
    assert sqltext.classify("ATTACH 'x' AS m (TYPE merutable, READ_ONLY)").merutable
