package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// tablesHistory is a random history of many tables against a model. Everything is durable when it returns, so after a
// power cut all of it is there.
type tablesHistory struct {
	t      *testing.T
	rng    *rand.Rand
	mem    *vfs.MemFS
	o      Options
	db     *DB
	reader *DB
	want   map[string]model
	last   int64
	log    []string
}

func (h *tablesHistory) pick() string {
	names := slices.Sorted(maps.Keys(h.want))
	if len(names) == 0 {
		return ""
	}
	return names[h.rng.IntN(len(names))]
}

func (h *tablesHistory) write(name string, n int) (*Write, func()) {
	table := openTable(h.t, h.db, name)
	defer table.Free()
	w, err := table.NewWrite()
	must(h.t, err)
	m := maps.Clone(h.want[name])
	for range n {
		id := h.rng.Int64N(400)
		if h.rng.IntN(4) == 0 {
			must(h.t, w.Delete(testKey(id)))
			delete(m, id)
		} else {
			h.last++
			must(h.t, w.Put(testRow(id, h.last)))
			m[id] = h.last
		}
	}
	return w, func() { h.want[name] = m }
}

// together writes to some tables at once, to some of them much.
func (h *tablesHistory) together() {
	var writes []*Write
	var noted []func()
	for name := range h.want {
		if h.rng.IntN(2) == 0 {
			n := 1 + h.rng.IntN(60)
			if h.rng.IntN(6) == 0 {
				n = largeRows
			}
			w, note := h.write(name, n)
			writes, noted = append(writes, w), append(noted, note)
		}
	}
	if h.rng.IntN(4) == 0 {
		name := fmt.Sprintf("n%d", h.rng.IntN(12))
		if _, there := h.want[name]; !there {
			w, err := h.db.NewTableWrite(namedSchema(name), false)
			must(h.t, err)
			h.last++
			payload := h.last
			must(h.t, w.Put(testRow(7, payload)))
			writes, noted = append(writes, w), append(noted, func() { h.want[name] = model{7: payload} })
		}
	}
	var drops []droppedTable
	if name := h.pick(); name != "" && h.rng.IntN(5) == 0 && !slices.ContainsFunc(writes, func(w *Write) bool { return w.table.schema.TableName == name }) {
		table := openTable(h.t, h.db, name)
		drops = append(drops, droppedTable{table.c, table.c.table})
		table.Free()
		noted = append(noted, func() { delete(h.want, name) })
	}
	_, err := h.db.c.commitTogether(writes, drops...)
	must(h.t, err)
	for _, note := range noted {
		note()
	}
}

func (h *tablesHistory) onTable(fn func(table *DB, name string)) {
	if name := h.pick(); name != "" {
		table := openTable(h.t, h.db, name)
		defer table.Free()
		fn(table, name)
	}
}

func (h *tablesHistory) reopen() {
	switch h.rng.IntN(3) {
	case 0:
		must(h.t, h.db.Close())
		h.db.Free()
	case 1:
		killed(h.db)
	default:
		h.db.c.stopMirror() // it ends at the same moment as all else
		left := h.mem.CrashClone(h.rng)
		killed(h.db)
		h.mem = left
		h.reader.c.release()
		h.reader.c.drop()
		h.reader = nil
	}
	h.open()
}

func (h *tablesHistory) open() {
	o := h.o
	o.fs = h.mem
	var err error
	h.db, err = Open("/db", o)
	must(h.t, err)
	if h.reader == nil {
		if h.db.CatalogVersion() == 1 { // no table, and perhaps no manifest yet
			must(h.t, h.db.CreateTable(namedSchema("n0")))
			h.want["n0"] = model{}
		}
		h.reader = otherProcess(h.t, h.mem)
	}
}

func (h *tablesHistory) step() {
	note := func(what string) { h.log = append(h.log, what) }
	switch k := h.rng.IntN(22); {
	case k >= 20:
		note("transaction")
		h.transaction()
	case k < 6:
		note("write")
		if name := h.pick(); name != "" {
			n := 1 + h.rng.IntN(80)
			if h.rng.IntN(10) == 0 {
				n = largeRows
			}
			w, done := h.write(name, n)
			_, err := w.Commit()
			must(h.t, err)
			done()
		}
	case k < 10:
		note("together")
		h.together()
	case k < 12:
		note("create")
		name := fmt.Sprintf("n%d", h.rng.IntN(12))
		err := h.db.CreateTable(namedSchema(name))
		if _, there := h.want[name]; there {
			wantCode(h.t, err, CodeAlreadyExists)
			return
		}
		must(h.t, err)
		h.want[name] = model{}
	case k < 13:
		note("drop")
		h.onTable(func(table *DB, name string) {
			must(h.t, table.DropTable())
			delete(h.want, name)
		})
	case k < 14:
		note("rename")
		h.onTable(func(table *DB, name string) {
			next := fmt.Sprintf("n%d", h.rng.IntN(12))
			err := table.RenameTable(next)
			if _, there := h.want[next]; there && next != name {
				wantCode(h.t, err, CodeAlreadyExists)
				return
			}
			must(h.t, err)
			m := h.want[name]
			delete(h.want, name)
			h.want[next] = m
		})
	case k < 16:
		note("flush")
		h.onTable(func(table *DB, _ string) { must(h.t, table.c.flushAll()) })
	case k < 17:
		note("compact")
		h.onTable(func(table *DB, _ string) { must(h.t, table.Compact()) })
	case k < 18:
		note("gc")
		_, err := h.db.CollectGarbage(false)
		must(h.t, err)
	default:
		note("reopen")
		h.reopen()
	}
}

func (h *tablesHistory) check(db *DB) {
	h.t.Helper()
	all, err := db.c.acquireAll()
	must(h.t, err)
	if len(all) != len(h.want) {
		h.t.Fatalf("%d tables, want %d: %s", len(all), len(h.want), tableNames(db))
	}
	for _, s := range all {
		m, there := h.want[s.Schema().TableName]
		if !there {
			h.t.Fatalf("table %q", s.Schema().TableName)
		}
		checkSnapshot(h.t, s, m)
		s.Close()
	}
}

// TestTablesRandom runs random histories of many tables, with a reader in another process beside them.
func TestTablesRandom(t *testing.T) {
	histories, steps := 8, 60
	if testing.Short() {
		histories = 2
	}
	for seed := range histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &tablesHistory{
				t: t, rng: rand.New(rand.NewPCG(uint64(seed), 99)), mem: vfs.NewMem(), want: map[string]model{},
				o: Options{MemtableBytes: minMemtableBytes, GCGrace: -1, L0Files: 2},
			}
			defer func() {
				if t.Failed() {
					t.Log(h.log)
				}
			}()
			h.open()
			for range steps {
				h.step()
				h.check(h.db)
				if h.rng.IntN(3) == 0 {
					must(t, h.reader.Refresh())
					h.check(h.reader)
				}
			}
			h.reader.c.release()
			h.reader.c.drop()
			must(t, h.db.Close())
			h.db.Free()
		})
	}
}
