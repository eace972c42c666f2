package metamorphic

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// The columns of the table.
const (
	colGroup = iota
	colID
	colText
	colNumber
	colPayload
	numColumns
)

// schema has a key of two columns whose order is not that of the columns. The group follows from the id, so that rows
// are ordered by the id.
func schema() *engine.Schema {
	return &engine.Schema{
		TableName: "t",
		Columns: []engine.Column{
			{Name: "grp", Type: engine.Type{Kind: engine.KindVarchar}},
			{Name: "id", Type: engine.Type{Kind: engine.KindBigInt}},
			{Name: "text", Type: engine.Type{Kind: engine.KindVarchar}, Nullable: true},
			{Name: "number", Type: engine.Type{Kind: engine.KindDouble}, Nullable: true},
			{Name: "payload", Type: engine.Type{Kind: engine.KindBigInt}},
		},
		PrimaryKey: []int{colID, colGroup},
	}
}

func keyOf(id int64) []engine.Value { return []engine.Value{engine.Int(id), group(id)} }

func group(id int64) engine.Value { return engine.String(fmt.Sprintf("g%d", id%7)) }

// rowOf returns the row of a key with a payload, which everything else in the row follows from.
func rowOf(id, payload int64) []engine.Value {
	text, number := engine.String(fmt.Sprintf("row %d", payload)), engine.Double(float64(payload)/4)
	switch payload % 16 {
	case 0, 5:
		text = engine.Null()
	case 1:
		text = engine.Bytes(noise(payload, 3000))
	case 2:
		number = engine.Null()
	}
	return []engine.Value{group(id), engine.Int(id), text, number, engine.Int(payload)}
}

// noise returns text that does not compress, so that files and memtables fill up.
func noise(seed int64, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	out := make([]byte, n)
	for i := range out {
		out[i] = 'A' + byte(rng.Uint32()%58)
	}
	return out
}

func sameValue(a, b engine.Value) bool {
	return a.Null == b.Null && (a.Null || a.Lo == b.Lo && a.Hi == b.Hi && bytes.Equal(a.Bytes, b.Bytes))
}

// newRow returns the row of a key with a payload that is written to the table of a state.
func (s *state) newRow(id, payload int64) []engine.Value {
	return s.rowAs(id, cell{payload: payload, changed: s.changes + 1})
}

// row returns the row of a key that has one.
func (s *state) row(id int64) []engine.Value { return s.rowAs(id, s.cells[id]) }

func (s *state) rowAs(id int64, c cell) []engine.Value {
	row := rowOf(id, c.payload)
	for _, x := range s.extras {
		row = append(row, x.value(c))
	}
	return row
}

// checkRow compares row i of c, whose columns are those of the projection, with the row of a key in a table without other
// columns.
func checkRow(c *engine.Columns, i int, projection []int, id, payload int64) error {
	return compareRow(c, i, projection, id, rowOf(id, payload))
}

// checkRow compares row i of c, whose columns are those of the projection, with the row of a key.
func (s *state) checkRow(c *engine.Columns, i int, projection []int, id int64) error {
	return compareRow(c, i, projection, id, s.row(id))
}

func compareRow(c *engine.Columns, i int, projection []int, id int64, want []engine.Value) error {
	for j, col := range projection {
		if got := c.Cols[j].Value(i); !sameValue(got, want[col]) {
			return fmt.Errorf("key %d, column %d: %s instead of %s", id, col, show(got), show(want[col]))
		}
	}
	return nil
}

func show(v engine.Value) string {
	switch {
	case v.Null:
		return "NULL"
	case v.Bytes != nil:
		if len(v.Bytes) > 40 {
			return fmt.Sprintf("%q… (%d bytes)", v.Bytes[:40], len(v.Bytes))
		}
		return fmt.Sprintf("%q", v.Bytes)
	}
	return fmt.Sprintf("%d (%#x)", v.Int64(), v.Lo)
}

var allColumns = []int{colGroup, colID, colText, colNumber, colPayload}
