"""Damaged databases: a clear error that names the file, and neither the session nor other databases suffer."""

import glob
import os
import random

import pytest

from support import attach, failing, literal, one


@pytest.fixture
def damaged(connect, database, tmp_path):
    """A closed database with files, a deletion vector and a log; and a session with a healthy one."""
    con = connect()
    attach(con, database)
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, s VARCHAR)")
    con.execute("INSERT INTO m.t SELECT i, md5(i::VARCHAR) FROM range(20000) r(i)")
    con.execute("CALL merutable_flush('m')")
    con.execute("DELETE FROM m.t WHERE id % 100 = 7")
    con.execute("CALL merutable_flush('m')")
    con.execute("DETACH m")
    attach(con, tmp_path / "good", "g")
    con.execute("CREATE TABLE g.t(id INT PRIMARY KEY)")
    con.execute("INSERT INTO g.t VALUES (1)")
    return con


def still_well(con):
    assert one(con, "SELECT 42") == 42
    assert one(con, "SELECT count(*) FROM g.t") == 1
    con.execute("INSERT INTO g.t VALUES (1)")


def spoil(path, change):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data = change(data)
    with open(path, "wb") as file:
        file.write(data)


def noise(data):
    random.seed(7)
    return bytearray(random.randbytes(len(data)))


def newest_manifest(database):
    return max(glob.glob(os.path.join(database, "metadata", "v*.manifest.bin")),
               key=lambda p: int(os.path.basename(p)[1:].split(".")[0]))


def everything(con, database):
    """Every way in; the messages of those that fail."""
    messages = []
    for sql in (f"ATTACH {literal(database)} AS b (TYPE merutable)", "SELECT count(*), max(s) FROM b.t",
                "INSERT INTO b.t VALUES (1, 'x')", "DETACH b",
                f"ATTACH {literal(database)} AS b (TYPE merutable, READ_ONLY)", "SELECT count(*), max(s) FROM b.t",
                "DETACH b", f"SELECT count(*), max(s) FROM merutable_scan({literal(database)})",
                f"SELECT * FROM merutable_get({literal(database)}, 5)"):
        try:
            con.execute(sql).fetchall()
        except Exception as error:  # noqa: BLE001  the kind is what is tested
            message = str(error)
            assert "INTERNAL" not in message and "FATAL" not in message, message
            messages.append((sql, message))
        still_well(con)
    return messages


@pytest.mark.parametrize("change", [noise, lambda d: d[:20], lambda d: d[:0], lambda d: d[:9] + noise(d[9:]),
                                    lambda d: bytearray(b"MRUB\x01\xff\xff\xff\x7f") + d[9:]])
def test_damaged_manifests(damaged, database, change):
    """All manifests damaged: nothing opens, and the file is named."""
    for path in glob.glob(os.path.join(database, "metadata", "v*.manifest.bin")):
        spoil(path, change)
    messages = everything(damaged, database)
    assert any("manifest.bin" in message for _, message in messages), messages
    assert all(m.startswith(("IO Error", "Catalog Error", "Binder Error", "Invalid Input Error", "Invalid Error"))
               for _, m in messages), messages


def test_damaged_data_file(damaged, database):
    path = max(glob.glob(os.path.join(database, "data", "*", "*.parquet")), key=os.path.getsize)
    spoil(path, lambda d: d[:4] + noise(d[4:-4]) + d[-4:])
    messages = everything(damaged, database)
    assert any(os.path.basename(path) in message for _, message in messages), messages


def test_truncated_data_file(damaged, database):
    path = max(glob.glob(os.path.join(database, "data", "*", "*.parquet")), key=os.path.getsize)
    spoil(path, lambda d: d[:len(d) // 2])
    messages = everything(damaged, database)
    assert any(os.path.basename(path) in message for _, message in messages), messages


def test_missing_data_file(damaged, database):
    path = max(glob.glob(os.path.join(database, "data", "*", "*.parquet")), key=os.path.getsize)
    os.unlink(path)
    messages = everything(damaged, database)
    assert any(os.path.basename(path) in message for _, message in messages), messages


@pytest.mark.parametrize("change", [noise, lambda d: d[:len(d) // 2]])
def test_damaged_deletion_vector(damaged, database, change):
    paths = glob.glob(os.path.join(database, "data", "*", "*.puffin"))
    assert paths
    for path in paths:
        spoil(path, change)
    messages = everything(damaged, database)
    assert any(".puffin" in message for _, message in messages), messages


def test_missing_deletion_vector(damaged, database):
    for path in glob.glob(os.path.join(database, "data", "*", "*.puffin")):
        os.unlink(path)
    messages = everything(damaged, database)
    assert any(".puffin" in message for _, message in messages), messages


def test_damage_in_the_middle_of_the_log(connect, child, database, tmp_path):
    process = child("""
con = connect()
con.execute(f"ATTACH '{sys.argv[2]}' AS m (TYPE merutable)")
con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, s VARCHAR)")
for i in range(24):
    con.execute("INSERT INTO m.t VALUES (?, 'row ' || ?)", [i, i])
say("written")
sys.stdin.read()
""", database)
    process.expect("written")
    process.kill()
    con = connect()
    attach(con, tmp_path / "good", "g")
    con.execute("CREATE TABLE g.t(id INT PRIMARY KEY)")
    con.execute("INSERT INTO g.t VALUES (1)")
    path = max(glob.glob(os.path.join(database, "wal", "*.wal")))
    with open(path, "rb") as file:
        whole = file.read()
    at = whole.index(b"row 5")
    spoil(path, lambda d: d[:at] + bytearray([d[at] ^ 0xFF]) + d[at + 1:])
    message = failing(con, f"ATTACH {literal(database)} AS b (TYPE merutable)", "IO Error")
    assert os.path.basename(path) in message, message
    still_well(con)
    # a torn tail is no damage
    with open(path, "wb") as file:
        file.write(whole.rstrip(b"\0")[:-3])  # the log is longer than what is in it
    attach(con, database, "b")
    assert one(con, "SELECT count(*) FROM b.t") == 23
    con.execute("INSERT INTO b.t VALUES (100, 'after')")
    con.execute("DETACH b")
    attach(con, database, "b")
    assert one(con, "SELECT count(*) FROM b.t") == 24
