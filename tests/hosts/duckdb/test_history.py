"""Older versions of a table keep what they held, whatever is deleted, written again and compacted after them."""

import random

from support import attach, one


def test_versions_match_the_model_of_their_time(connect, database):
    con = connect(threads=2)
    attach(con, database, options=", auto_compaction false, retain_versions 1000, retain_secs 3600, gc_grace_secs 0")
    con.execute("CREATE TABLE m.t(id INT PRIMARY KEY, v INT)")
    con.execute("INSERT INTO m.t SELECT i, 0 FROM range(2000) r(i)")
    con.execute("CALL merutable_flush('m')")
    model = {i: 0 for i in range(2000)}
    seen = {}
    rng = random.Random(41)
    for step in range(1, 121):
        some = sorted(rng.sample(range(2000), 20))
        keys = ", ".join(map(str, some))
        if rng.random() < 0.5:
            assert one(con, f"DELETE FROM m.t WHERE id IN ({keys})") == sum(k in model for k in some)
            for key in some:
                model.pop(key, None)
        else:
            assert one(con, f"INSERT INTO m.t SELECT unnest([{keys}]), {step}") == 20
            model.update((key, step) for key in some)
        con.execute("CALL merutable_flush('m')")
        if step % 7 == 0:
            con.execute("CALL merutable_compact('m')")
        if step % 10 == 0:
            con.execute("CALL merutable_gc('m')")
        counts = con.execute("SELECT count(*), count(DISTINCT id), sum(v) FROM m.t").fetchone()
        assert counts == (len(model), len(model), sum(model.values())), (step, counts)
        seen[one(con, "SELECT max(version) FROM merutable_snapshots('m')")] = dict(model)
    for version, wanted in seen.items():
        assert dict(con.execute(f"FROM m.t AT (VERSION => {version})").fetchall()) == wanted, version
    con.execute("DETACH m")
    attach(con, database, options=", READ_ONLY")
    for version, wanted in list(seen.items())[::5]:
        assert dict(con.execute(f"FROM m.t AT (VERSION => {version})").fetchall()) == wanted, version
    assert dict(con.execute("FROM m.t").fetchall()) == model
