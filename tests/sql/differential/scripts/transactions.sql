-- BEGIN, COMMIT, ROLLBACK; a transaction sees its own writes.
CREATE TABLE acc(id INTEGER PRIMARY KEY, owner VARCHAR, balance DECIMAL(18,2));
CREATE TABLE moves(id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, amount DECIMAL(18,2));
INSERT INTO acc VALUES (1, 'ann', 100), (2, 'bob', 50), (3, 'cy', 0);
BEGIN;
UPDATE acc SET balance = balance - 30 WHERE id = 1;
UPDATE acc SET balance = balance + 30 WHERE id = 2;
INSERT INTO moves VALUES (1, 1, 2, 30);
SELECT * FROM acc ORDER BY id;
SELECT owner, amount FROM moves JOIN acc ON acc.id = moves.to_id;
COMMIT;
FROM acc ORDER BY id;
BEGIN TRANSACTION;
DELETE FROM acc;
INSERT INTO moves SELECT i, 1, 1, i FROM range(10, 400) r(i);
SELECT count(*) FROM acc;
SELECT count(*), sum(amount) FROM moves;
ROLLBACK;
SELECT count(*), sum(balance) FROM acc;
SELECT count(*) FROM moves;
BEGIN;
INSERT INTO acc VALUES (4, 'dee', 1);
DELETE FROM acc WHERE id = 4 RETURNING *;
INSERT INTO acc VALUES (4, 'dee2', 2);
UPDATE acc SET owner = owner || '!' WHERE id = 4;
UPDATE acc SET id = 5 WHERE id = 4;
INSERT INTO acc VALUES (4, 'dee3', 3) RETURNING owner;
SELECT * FROM acc WHERE id >= 4 ORDER BY id;
SELECT * FROM acc WHERE id = 5;
SELECT * FROM acc WHERE id IN (1, 4, 5) AND balance > 1 ORDER BY id DESC;
SELECT max(id), min(id), count(*) FROM acc;
COMMIT;
FROM acc ORDER BY id;
-- An error ends the transaction, and nothing of it stays
BEGIN;
INSERT INTO acc VALUES (50, 'x', 0);
INSERT INTO acc VALUES (1, 'dup', 0);
SELECT 1;
COMMIT;
SELECT count(*) FROM acc;
ROLLBACK;
BEGIN;
INSERT INTO acc VALUES (51, 'x', 0);
SELECT nothing FROM acc;
ROLLBACK;
SELECT count(*) FROM acc WHERE id >= 50;
-- Two connections
-- @on a
BEGIN;
-- @on a
SELECT count(*) FROM acc;
-- @on b
INSERT INTO acc SELECT i, 'b', i FROM range(100, 110) r(i);
-- @flush
-- @compact
-- @on a
SELECT count(*) FROM acc;
-- @on a
COMMIT;
-- @on a
SELECT count(*) FROM acc;
-- @on a
BEGIN;
-- @on a
UPDATE acc SET balance = 1 WHERE id = 100;
-- @on b
SELECT balance FROM acc WHERE id = 100;
-- @on a
ROLLBACK;
-- @on b
SELECT balance FROM acc WHERE id = 100;
-- @race
-- @on a
BEGIN;
-- @on b
BEGIN;
-- @on a
UPDATE acc SET balance = balance + 1 WHERE id = 1;
-- @on b
UPDATE acc SET balance = balance + 10 WHERE id = 1;
-- @on a
COMMIT;
-- @on b
COMMIT;
-- @end
-- @check
-- @race
-- @on a
BEGIN;
-- @on b
BEGIN;
-- @on a
UPDATE acc SET balance = balance + 1 WHERE id = 1;
-- @on b
UPDATE acc SET balance = balance + 10 WHERE id = 2;
-- @on b
SELECT * FROM acc WHERE id < 3;
-- @on a
COMMIT;
-- @on b
SELECT * FROM acc WHERE id < 3;
-- @on b
COMMIT;
-- @end
-- @check
-- @race
-- @on a
BEGIN;
-- @on b
BEGIN;
-- @on a
INSERT INTO acc VALUES (200, 'a', 1);
-- @on b
INSERT INTO acc VALUES (200, 'b', 2);
-- @on b
COMMIT;
-- @on a
COMMIT;
-- @end
-- @check
-- DDL in a transaction
BEGIN;
CREATE TABLE fresh(k INTEGER PRIMARY KEY, v VARCHAR);
INSERT INTO fresh VALUES (1, 'a'), (2, 'b');
FROM fresh ORDER BY k;
COMMIT;
FROM fresh ORDER BY k;
BEGIN;
CREATE TABLE other(k INTEGER PRIMARY KEY);
INSERT INTO other VALUES (1);
INSERT INTO fresh VALUES (3, 'c');
ROLLBACK;
FROM other;
FROM fresh ORDER BY k;
BEGIN;
DROP TABLE fresh;
FROM fresh;
ROLLBACK;
FROM fresh ORDER BY k;
BEGIN;
ALTER TABLE fresh ADD COLUMN w INTEGER DEFAULT 7;
INSERT INTO fresh VALUES (4, 'd', 8);
UPDATE fresh SET w = 9 WHERE k = 1;
FROM fresh ORDER BY k;
ROLLBACK;
BEGIN;
ALTER TABLE fresh RENAME TO stale;
FROM fresh ORDER BY k;
INSERT INTO stale VALUES (5, 'e');
FROM stale ORDER BY k;
ROLLBACK;
FROM stale;
FROM fresh ORDER BY k;
BEGIN;
ALTER TABLE fresh RENAME TO stale;
CREATE TABLE fresh(k INTEGER PRIMARY KEY);
ALTER TABLE stale RENAME TO FRESH;
ROLLBACK;
BEGIN;
ALTER TABLE fresh RENAME TO stale;
CREATE TABLE fresh(k INTEGER PRIMARY KEY);
INSERT INTO fresh VALUES (7);
COMMIT;
FROM fresh;
FROM stale ORDER BY k;
BEGIN;
DROP TABLE fresh;
ALTER TABLE stale RENAME TO fresh;
COMMIT;
FROM fresh ORDER BY k;
FROM stale;
-- What a native table cannot commit as one: the harness has it do the statements one by one.
BEGIN;
UPDATE fresh SET v = 'updated' WHERE k = 1;
ALTER TABLE fresh ADD COLUMN w INTEGER DEFAULT 7;
INSERT INTO fresh VALUES (9, 'i', 8);
UPDATE fresh SET w = 6 WHERE k = 2;
COMMIT;
FROM fresh ORDER BY k;
BEGIN;
DELETE FROM fresh WHERE k = 9;
ALTER TABLE fresh DROP COLUMN w;
ROLLBACK;
FROM fresh ORDER BY k;
BEGIN;
DELETE FROM fresh WHERE k = 9;
ALTER TABLE fresh DROP COLUMN w;
COMMIT;
FROM fresh ORDER BY k;
COMMIT;
ROLLBACK;
BEGIN;
BEGIN;
ROLLBACK;
BEGIN READ ONLY;
SELECT count(*) FROM fresh;
COMMIT;
