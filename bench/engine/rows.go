package main

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine"
)

// The table of all figures: a BIGINT key, a name of 16 bytes, a DOUBLE, a payload of 100 bytes.
const (
	nameBytes    = 16
	payloadBytes = 100
	batchRows    = 2048
)

func schema() *engine.Schema {
	return &engine.Schema{
		TableName: "bench",
		Columns: []engine.Column{
			{Name: "id", Type: engine.Type{Kind: engine.KindBigInt}},
			{Name: "name", Type: engine.Type{Kind: engine.KindVarchar}},
			{Name: "amount", Type: engine.Type{Kind: engine.KindDouble}},
			{Name: "payload", Type: engine.Type{Kind: engine.KindVarchar}},
		},
		PrimaryKey: []int{0},
	}
}

// rowSet is some rows in the form that each engine takes them in, made before the clock runs.
type rowSet struct {
	ids     []int64
	columns *engine.Columns
	values  []byte // the rows' values one after the other, for Pebble
}

const valueBytes = nameBytes + 8 + payloadBytes

func (r *rowSet) value(i int) []byte { return r.values[i*valueBytes : (i+1)*valueBytes] }

// row returns row i as single puts take it.
func (r *rowSet) row(i int) []engine.Value {
	v := r.value(i)
	return []engine.Value{
		engine.Int(r.ids[i]), engine.Bytes(v[:nameBytes]), engine.Double(float64(r.ids[i]) / 7), engine.Bytes(v[nameBytes+8:]),
	}
}

var letters = []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/")

// makeRows makes rows with the given keys and random text.
func makeRows(ids []int64, rng *rand.Rand) *rowSet {
	r := &rowSet{ids: ids, values: make([]byte, len(ids)*valueBytes)}
	b := array.NewRecordBuilder(memory.DefaultAllocator, engine.ArrowSchema(schema(), nil))
	defer b.Release()
	id, name := b.Field(0).(*array.Int64Builder), b.Field(1).(*array.StringBuilder)
	amount, payload := b.Field(2).(*array.Float64Builder), b.Field(3).(*array.StringBuilder)
	for i, k := range ids {
		v := r.value(i)
		text(v, rng)
		binary.LittleEndian.PutUint64(v[nameBytes:], uint64(k))
		id.Append(k)
		name.BinaryBuilder.Append(v[:nameBytes])
		amount.Append(float64(k) / 7)
		payload.BinaryBuilder.Append(v[nameBytes+8:])
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	columns, err := engine.FromArrow(schema(), rec)
	check(err)
	r.columns = columns
	return r
}

func text(p []byte, rng *rand.Rand) {
	var bits uint64
	for i := range p {
		if i%10 == 0 {
			bits = rng.Uint64()
		}
		p[i] = letters[bits&63]
		bits >>= 6
	}
}

// batches makes the keys of n rows, in batches: ascending from 0, or random among them.
func batches(n, size int, random bool, rng *rand.Rand) [][]int64 {
	var out [][]int64
	for at := 0; at < n; at += size {
		ids := make([]int64, min(size, n-at))
		for i := range ids {
			if random {
				ids[i] = rng.Int64N(int64(n))
			} else {
				ids[i] = int64(at + i)
			}
		}
		out = append(out, ids)
	}
	return out
}
