package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// evolution is a table of a random history of changes of rows and schema, beside what it must hold. Columns are known by
// their field ids.
type evolution struct {
	t       *testing.T
	rng     *rand.Rand
	db      *DB
	columns []*evolvingColumn // in order
	lastID  int
	rows    map[int64]map[int]Value // by key and field id; the key is no field of it
	key     string
}

type evolvingColumn struct {
	id       int
	name     string
	typ      Type
	nullable bool
}

// widenings are the ways that a type goes, each from a type that random values are made of.
var widenings = [][]Type{
	{{Kind: KindTinyInt}, {Kind: KindSmallInt}, {Kind: KindInteger}, {Kind: KindBigInt}, {Kind: KindHugeInt}},
	{{Kind: KindUTinyInt}, {Kind: KindUInteger}, {Kind: KindBigInt}, {Kind: KindVarchar}},
	{{Kind: KindSmallInt}, {Kind: KindDecimal, Precision: 8, Scale: 1}, {Kind: KindDecimal, Precision: 20, Scale: 3}},
	{{Kind: KindFloat}, {Kind: KindDouble}},
	{{Kind: KindEnum, Labels: []string{"u", "v"}}, {Kind: KindEnum, Labels: []string{"u", "v", "w"}}, {Kind: KindVarchar}},
	{{Kind: KindTimestampS}, {Kind: KindTimestampMS}, {Kind: KindTimestamp}},
	{{Kind: KindVarchar}},
}

// value makes a value that every type of a way has.
func (e *evolution) value(c *evolvingColumn) Value {
	n := e.rng.Int64N(100)
	switch c.typ.Kind {
	case KindFloat:
		return Float(float32(n) / 4)
	case KindDouble:
		return Double(float64(n) / 4)
	case KindVarchar:
		return String(fmt.Sprint(n))
	case KindEnum:
		return Uint(uint64(n) % uint64(len(c.typ.Labels)))
	case KindUTinyInt, KindUInteger:
		return Uint(uint64(n))
	}
	return Int(n)
}

// widened is what becomes of a value, told by other means than the engine's.
func widened(v Value, from, to Type) Value {
	if v.Null {
		return v
	}
	scale := func(v Value, n int64) Value { return Int(v.Int64() * n) }
	switch {
	case to.Kind == KindVarchar && from.Kind == KindEnum:
		return String(from.Labels[v.Lo])
	case to.Kind == KindVarchar:
		return String(fmt.Sprint(v.Int64()))
	case to.Kind == KindDecimal && from.Kind == KindDecimal:
		return scale(v, 100)
	case to.Kind == KindDecimal:
		return scale(v, 10)
	case to.Kind == KindDouble:
		return Double(float64(math.Float32frombits(uint32(v.Lo))))
	case from.Kind == KindTimestampS, from.Kind == KindTimestampMS:
		return scale(v, 1000)
	}
	return v
}

func (e *evolution) write() {
	w, err := e.db.NewWrite()
	must(e.t, err)
	defer w.Close()
	n := e.rng.IntN(30)
	if e.rng.IntN(12) == 0 {
		n = 9000 // a load
	}
	for range n {
		id := e.rng.Int64N(300)
		if e.rng.IntN(5) == 0 {
			must(e.t, w.Delete([]Value{Int(id)}))
			delete(e.rows, id)
			continue
		}
		fields, row := map[int]Value{}, []Value{}
		for _, c := range e.columns {
			v := Int(id)
			if c.name != e.key {
				if v = e.value(c); c.nullable && e.rng.IntN(4) == 0 {
					v = Null()
				}
				fields[c.id] = v
			}
			row = append(row, v)
		}
		must(e.t, w.Put(row))
		e.rows[id] = fields
	}
	_, err = w.Commit()
	must(e.t, err)
}

func (e *evolution) alter() {
	c := e.columns[e.rng.IntN(len(e.columns))]
	switch p := e.rng.IntN(10); {
	case p < 4 && len(e.columns) < 8:
		e.add()
	case p < 5:
		name := fmt.Sprintf("n%d", e.rng.IntN(1000))
		if slices.ContainsFunc(e.columns, func(c *evolvingColumn) bool { return c.name == name }) {
			return
		}
		must(e.t, e.db.Alter(RenameColumn{Name: c.name, NewName: name}))
		if e.key == c.name {
			e.key = name
		}
		c.name = name
	case c.name == e.key:
	case p < 6:
		must(e.t, e.db.Alter(DropColumn{Name: c.name}))
		e.columns = slices.DeleteFunc(e.columns, func(o *evolvingColumn) bool { return o == c })
	case p < 7:
		e.notNull(c)
	default:
		e.widen(c)
	}
}

func (e *evolution) add() {
	e.lastID++
	way := widenings[e.rng.IntN(len(widenings))]
	c := &evolvingColumn{id: e.lastID, name: fmt.Sprintf("c%d", e.rng.IntN(12)), typ: way[0], nullable: e.rng.IntN(3) > 0}
	if slices.ContainsFunc(e.columns, func(o *evolvingColumn) bool { return o.name == c.name }) {
		e.lastID--
		return
	}
	initial := Null()
	column := Column{Name: c.name, Type: c.typ, Nullable: c.nullable}
	if !c.nullable || e.rng.IntN(2) == 0 {
		initial = e.value(c)
		column.InitialDefault = storage(e.t, c.typ, initial)
	}
	must(e.t, e.db.Alter(AddColumn{Column: column}))
	e.columns = append(e.columns, c)
	for _, r := range e.rows {
		r[c.id] = initial
	}
}

func (e *evolution) notNull(c *evolvingColumn) {
	null := false
	for _, r := range e.rows {
		null = null || r[c.id].Null
	}
	err := e.db.Alter(SetNotNull{Name: c.name, NotNull: c.nullable})
	if c.nullable && null {
		wantCode(e.t, err, CodeSchemaMismatch)
		return
	}
	must(e.t, err)
	c.nullable = !c.nullable
}

func (e *evolution) widen(c *evolvingColumn) {
	for _, way := range widenings {
		i := slices.IndexFunc(way, c.typ.Equal)
		if i < 0 || i == len(way)-1 {
			continue
		}
		to := way[i+1]
		must(e.t, e.db.Alter(SetType{Name: c.name, Type: to}))
		for _, r := range e.rows {
			r[c.id] = widened(r[c.id], c.typ, to)
		}
		c.typ = to
		return
	}
}

// text is what rowsText must yield.
func (e *evolution) text() string {
	var out strings.Builder
	ids := []int64{}
	for id := range e.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for i, c := range e.columns {
			sep := ", "
			if i == 0 {
				sep = "("
			}
			v := Int(id)
			if c.name != e.key {
				v = e.rows[id][c.id]
			}
			out.WriteString(sep + shownValue(c.typ, v))
		}
		out.WriteString(")")
	}
	return out.String()
}

// TestAlterRandom compares random histories of rows and schemas with a model, in snapshots that are held as well.
func TestAlterRandom(t *testing.T) {
	for seed := range uint64(unlessShort(6, 2)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { runEvolution(t, seed, 120) })
	}
}

func runEvolution(t *testing.T, seed uint64, steps int) {
	fs := vfs.NewMem()
	o := Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: seed%3 == 0, CacheBytes: int64(seed%2) << 20}
	open := func() *DB { return openEvolving(t, fs, o) }
	e := &evolution{t: t, rng: rand.New(rand.NewPCG(seed, 9)), db: open(), lastID: 3, rows: map[int64]map[int]Value{}, key: "id"}
	defer func() { e.db.Free() }()
	for i, c := range evolvingSchema().Columns {
		e.columns = append(e.columns, &evolvingColumn{id: i + 1, name: c.Name, typ: c.Type, nullable: c.Nullable})
	}
	type held struct {
		s    *Snapshot
		want string
	}
	var snaps []held
	see := func(h held) {
		t.Helper()
		if got := rowsText(t, h.s); got != h.want {
			t.Fatalf("schema %d: %s", h.s.Schema().SchemaID, difference(got, h.want))
		}
	}
	now := func() held {
		s, err := e.db.Snapshot()
		must(t, err)
		return held{s, e.text()}
	}
	for range steps {
		switch p := e.rng.IntN(100); {
		case p < 30:
			e.write()
		case p < 60:
			e.alter()
		case p < 65:
			must(t, e.db.Flush())
		case p < 68:
			must(t, e.db.Compact())
		case p < 80:
			snaps = append(snaps, now())
		case p < 88 && len(snaps) > 0:
			see(snaps[0])
			snaps[0].s.Close()
			snaps = snaps[1:]
		case p < 96:
			h := now()
			see(h)
			h.s.Close()
		default: // the log brings the rows back
			e.db.Free()
			e.db = open()
		}
	}
	for _, h := range append(snaps, now()) {
		see(h)
		h.s.Close()
	}
}
