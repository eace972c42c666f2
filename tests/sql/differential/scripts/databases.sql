-- A whole database from and to a native one; EXPLAIN; detached and attached beside others.
CREATE TABLE memory.src(id INTEGER PRIMARY KEY, v VARCHAR NOT NULL DEFAULT 'd', n DECIMAL(9,2));
INSERT INTO memory.src SELECT i, 'v' || i, i / 3 FROM range(50) r(i);
COPY FROM DATABASE memory TO m;
CREATE TABLE m.src2(a VARCHAR, b INTEGER, PRIMARY KEY (b, a));
INSERT INTO m.src2 VALUES ('x', 1), ('y', 2);
FROM src ORDER BY id LIMIT 3;
FROM src2 ORDER BY b;
DESCRIBE src;
INSERT INTO src(id) VALUES (100);
INSERT INTO src(id) VALUES (100);
SELECT count(*), max(v) FROM src;
-- @hold
ATTACH ':memory:' AS back;
COPY FROM DATABASE m TO back;
SELECT count(*), sum(n) FROM back.src;
FROM back.src2 ORDER BY b;
SELECT count(*) FROM back.src b JOIN m.src s USING (id, v);
INSERT INTO back.src(id, v) SELECT id + 1000, v FROM m.src;
INSERT INTO m.src SELECT * FROM back.src WHERE id >= 1000;
SELECT count(*) FROM m.src;
DETACH back;
SELECT count(*) FROM m.src;
CREATE TABLE m.third(k INTEGER PRIMARY KEY);
INSERT INTO third SELECT * FROM generate_series(1, 20);
SELECT count(*) FROM third t JOIN src s ON s.id = t.k JOIN src2 u ON u.b = t.k;
DROP TABLE src2;
DROP TABLE third;
SHOW TABLES;
-- Several tables at a time
ATTACH ':memory:' AS several;
CREATE TABLE several.one(k INTEGER PRIMARY KEY);
CREATE TABLE several.two(k INTEGER PRIMARY KEY);
INSERT INTO several.one VALUES (1), (2);
INSERT INTO several.two SELECT * FROM range(1000);
COPY FROM DATABASE several TO m;
SELECT count(*) FROM m.one JOIN m.two USING (k);
SHOW TABLES;
