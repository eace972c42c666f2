package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// schema is the table of the design's figures: a key, a short name, a number, 100 bytes that do not compress well.
func schema() *engine.Schema {
	return &engine.Schema{
		TableName: "t",
		Columns: []engine.Column{
			{Name: "id", Type: engine.Type{Kind: engine.KindBigInt}},
			{Name: "name", Type: engine.Type{Kind: engine.KindVarchar}},
			{Name: "x", Type: engine.Type{Kind: engine.KindDouble}},
			{Name: "payload", Type: engine.Type{Kind: engine.KindVarchar}},
		},
		PrimaryKey: []int{0},
	}
}

const (
	rowBytes  = 8 + 16 + 8 + 100
	batchRows = 2048
)

// generator makes rows with ascending keys.
type generator struct {
	rng   *rand.Rand
	texts []byte
	batch [][]engine.Value
	rows  int64
	bytes int64
}

func newGenerator(seed uint64) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), batch: make([][]engine.Value, batchRows)}
	raw := make([]byte, 3<<20)
	for i := range raw {
		raw[i] = byte(g.rng.Uint32())
	}
	g.texts = []byte(base64.StdEncoding.EncodeToString(raw))
	return g
}

// put writes the next batch durably.
func (g *generator) put(db *engine.DB) {
	for i := range g.batch {
		id := g.rows + int64(i)
		at := g.rng.IntN(len(g.texts) - 100)
		g.batch[i] = []engine.Value{
			engine.Int(id), engine.String(fmt.Sprintf("name %011d", id%1_000_000)), engine.Double(g.rng.Float64()), engine.Bytes(g.texts[at : at+100]),
		}
	}
	_, err := db.PutBatch(g.batch)
	check(err)
	g.rows += batchRows
	g.bytes += batchRows * rowBytes
}
