// The extension in Node: the surface, errors, and connections that work at the same time.
//   node host.mjs path/to/merutable.duckdb_extension path/of/database
import assert from 'node:assert/strict';
import { DuckDBInstance } from '@duckdb/node-api';

const [extension, path] = process.argv.slice(2);
const literal = (text) => `'${text.replaceAll("'", "''")}'`;

const instance = await DuckDBInstance.create(':memory:', { allow_unsigned_extensions: 'true' });
const connection = await instance.connect();
const rows = async (sql, on = connection) => (await on.runAndReadAll(sql)).getRowsJson();
const fails = async (sql, pattern) => {
  await assert.rejects(rows(sql), (error) => {
    assert.match(error.message, pattern);
    assert.doesNotMatch(error.message, /INTERNAL|FATAL/);
    return true;
  });
  assert.deepEqual(await rows('SELECT 42'), [[42]]);
};

await connection.run(`LOAD ${literal(extension)}`);
await connection.run(`ATTACH ${literal(path)} AS m (TYPE merutable)`);
await connection.run(`CREATE TABLE m.t(w INTEGER, id BIGINT, s VARCHAR, d DECIMAL(9,2), u UUID, ts TIMESTAMP, PRIMARY KEY (id, w))`);
await connection.run(`INSERT INTO m.t SELECT 1, i, 's' || i, i / 4, md5(i::VARCHAR)::UUID, TIMESTAMP '2024-01-01' + to_seconds(i) FROM range(10000) r(i)`);
assert.deepEqual(await rows('SELECT count(*), sum(id), max(s) FROM m.t'), [['10000', '49995000', 's9999']]);
await connection.run(`INSERT INTO m.t VALUES (1, 5, 'upserted', 1.25, NULL, NULL)`);
assert.deepEqual(await rows(`SELECT s, d FROM merutable_get(${literal(path)}, 5, 1)`), [['upserted', '1.25']]);
await connection.run(`CALL merutable_flush('m')`);
assert.deepEqual(await rows('SELECT count(*) FROM m.t WHERE u IS NULL'), [['1']]);
assert.deepEqual(await rows(`DELETE FROM m.t WHERE id < 10`), [['10']]);
assert.deepEqual(await rows(`SELECT count(*) FROM merutable_scan(${literal(path)})`), [['9990']]);

const statement = await connection.prepare('SELECT s FROM m.t WHERE id = $1 AND w = $2');
for (let i = 10; i < 110; i++) {
  statement.bindBigInt(1, BigInt(i));
  statement.bindInteger(2, 1);
  assert.deepEqual((await statement.runAndReadAll()).getRowsJson(), [[`s${i}`]]);
}

await fails('SELECT * FROM m.nosuch', /Catalog Error/);
await fails(`INSERT INTO m.t(w) VALUES (1)`, /Constraint Error/);
await fails(`SELECT * FROM merutable_get(${literal(path)}, 5)`, /Error/);
await fails(`SELECT * FROM merutable_scan('/nowhere/at/all')`, /nowhere/);

const connections = await Promise.all(Array.from({ length: 8 }, () => instance.connect()));
await Promise.all(connections.map(async (one, w) => {
  for (let i = 0; i < 25; i++) {
    await one.run(`INSERT INTO m.t(w, id, s) VALUES (${w + 100}, ${i}, 'w${w}')`);
    assert.deepEqual(await rows(`SELECT count(*) FROM m.t WHERE w = ${w + 100}`, one), [[String(i + 1)]]);
  }
}));
assert.deepEqual(await rows('SELECT count(*), count(DISTINCT w) FROM m.t WHERE w >= 100'), [['200', '8']]);

await connection.run('DETACH m');
await connection.run(`ATTACH ${literal(path)} AS m (TYPE merutable)`);
assert.deepEqual(await rows('SELECT count(*) FROM m.t'), [['10190']]);
console.log('node: all checks passed');
