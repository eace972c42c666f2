package metamorphic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// extra is a column that was added to those of the schema.
type extra struct {
	name string
	// seed is what the values of rows follow from, besides their payload.
	seed int64
	// added is the change that it came with: rows that were written before have the initial value.
	added   int
	initial int64 // negative: NULL
	wide    bool  // a BIGINT, else an INTEGER
}

func (x extra) value(c cell) engine.Value {
	v := (c.payload + x.seed) % 1000
	if c.changed <= x.added {
		v = x.initial
	} else if v%5 == 0 {
		v = -1
	}
	if v < 0 {
		return engine.Null()
	}
	return engine.Int(v)
}

// mostExtras is how many columns are added at most.
const mostExtras = 4

// alteration is a change of the schema, to the engine and to the model.
type alteration struct {
	op     engine.Alteration
	change func(extras []extra, change int) []extra
}

// altered applies a change of the schema.
func (s *state) altered(a alteration) *state {
	next := s.with(nil)
	next.alters++
	next.extras = a.change(slices.Clone(s.extras), next.changes)
	return next
}

// projection returns all columns.
func (s *state) projection() []int {
	all := allColumns[:len(allColumns):len(allColumns)]
	for i := range s.extras {
		all = append(all, numColumns+i)
	}
	return all
}

// shape describes the columns that were added.
func (s *state) shape() (text string) {
	for _, x := range s.extras {
		text += shapeOf(x.name, x.wide)
	}
	return text
}

func shapeOf(name string, wide bool) string { return fmt.Sprintf("%s wide=%v ", name, wide) }

// shapeOfSchema is shape of what the engine has.
func shapeOfSchema(s *engine.Schema) (text string) {
	for _, c := range s.Columns[numColumns:] {
		text += shapeOf(c.Name, c.Type.Kind == engine.KindBigInt)
	}
	return text
}

// randomAlteration makes up a change of the schema of a state.
func randomAlteration(s *state, rng *rand.Rand) alteration {
	kind := rng.IntN(4)
	if len(s.extras) == 0 || kind == 0 && len(s.extras) < mostExtras {
		return randomColumn(s, rng)
	}
	i := rng.IntN(len(s.extras))
	name := s.extras[i].name
	switch kind {
	case 1:
		next := freeName(s, rng)
		return alteration{engine.RenameColumn{Name: name, NewName: next}, func(extras []extra, _ int) []extra {
			extras[i].name = next
			return extras
		}}
	case 2:
		return alteration{engine.SetType{Name: name, Type: engine.Type{Kind: engine.KindBigInt}}, func(extras []extra, _ int) []extra {
			extras[i].wide = true
			return extras
		}}
	}
	return alteration{engine.DropColumn{Name: name}, func(extras []extra, _ int) []extra {
		return slices.Delete(extras, i, i+1)
	}}
}

func randomColumn(s *state, rng *rand.Rand) alteration {
	x := extra{name: freeName(s, rng), seed: rng.Int64N(1000), initial: rng.Int64N(10) - 3}
	column := engine.Column{Name: x.name, Type: engine.Type{Kind: engine.KindInteger}, Nullable: true}
	if x.initial >= 0 {
		column.InitialDefault = binary.LittleEndian.AppendUint32(nil, uint32(x.initial))
	}
	return alteration{engine.AddColumn{Column: column}, func(extras []extra, change int) []extra {
		x.added = change
		return append(extras, x)
	}}
}

// freeName returns one of a few names, so that columns meet the names of those that were dropped.
func freeName(s *state, rng *rand.Rand) string {
	for {
		name := fmt.Sprintf("extra%d", rng.IntN(mostExtras+2))
		if !slices.ContainsFunc(s.extras, func(x extra) bool { return x.name == name }) {
			return name
		}
	}
}

// alter changes the schema, in a transaction now and then.
func (r *run) alter(rng *rand.Rand) error {
	if len(r.txns) > 0 && rng.IntN(4) > 0 {
		return r.alterTxn(r.txns[rng.IntN(len(r.txns))], rng)
	}
	if !r.current().hasTable {
		return nil
	}
	a := randomAlteration(r.current(), rng)
	r.begin(r.current().altered(a))
	err := r.db.Alter(a.op)
	if err == nil {
		r.saw("changes of the schema", 1)
	}
	return r.definition(err)
}

func (r *run) alterTxn(o *openTxn, rng *rand.Rand) error {
	a := randomAlteration(o.sees, rng)
	if err := o.t.Alter(r.db, a.op); err != nil {
		return err
	}
	o.did(func(s *state) *state { return s.altered(a) })
	o.alters = true
	return nil
}
