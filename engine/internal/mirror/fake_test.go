package mirror_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// fakeDB is a database without rows: manifests, and files that go as soon as neither the newest manifest nor an open cut
// names them.
type fakeDB struct {
	mu      sync.Mutex
	rng     *rand.Rand
	tables  map[uint32]*fakeTable
	next    uint32
	catalog uint64 // version
	seq     uint64
	commits uint64
	open    int // cuts
	most    int // the most open cuts there ever were
	m       *mirror.Mirror
}

type fakeTable struct {
	db        *fakeDB
	id        uint32
	newest    *manifest.Manifest
	files     map[string][]byte
	manifests map[int64][]byte // those on disk
	history   map[int64][]byte // all of them
	pins      map[*manifest.Manifest]int
	record    []byte
}

func newFakeDB(seed uint64) *fakeDB {
	db := &fakeDB{rng: rand.New(rand.NewPCG(seed, 1)), tables: map[uint32]*fakeTable{}, next: 1}
	db.addTable(0, "root")
	return db
}

func (db *fakeDB) addTable(id uint32, name string) *fakeTable {
	t := &fakeTable{
		db: db, id: id, files: map[string][]byte{}, manifests: map[int64][]byte{}, history: map[int64][]byte{},
		pins: map[*manifest.Manifest]int{},
	}
	t.commit(&manifest.Manifest{Version: 1, TableUUID: db.uuid(), Schema: fakeSchema(name), Properties: map[string]string{}})
	db.tables[id] = t
	return t
}

func fakeSchema(name string) *base.Schema {
	s := &base.Schema{
		TableName: name, Columns: []base.Column{{Name: "k", Type: base.Type{Kind: base.KindBigInt}}}, PrimaryKey: []int{0},
	}
	s.AssignFieldIDs()
	return s
}

func (db *fakeDB) uuid() string {
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", db.rng.Uint32(), db.rng.Uint32()&0xffff, db.rng.Uint32()&0xffff,
		db.rng.Uint32()&0xffff, db.rng.Uint64()&0xffffffffffff)
}

// commit makes m the newest manifest. It runs under mu, or before anyone else knows the table.
func (t *fakeTable) commit(m *manifest.Manifest) {
	data, err := manifest.Encode(m)
	if err != nil {
		panic(err)
	}
	t.newest = m
	t.manifests[m.Version], t.history[m.Version] = data, data
	t.collect()
	t.db.commits++
	t.db.seq++
}

// collect removes what nobody needs.
func (t *fakeTable) collect() {
	needed := map[string]bool{}
	versions := map[int64]bool{}
	keep := func(m *manifest.Manifest) {
		versions[m.Version] = true
		for _, f := range m.Files {
			needed[f.Path], needed[f.DVPath] = true, true
		}
	}
	keep(t.newest)
	for m := range t.pins {
		keep(m)
	}
	for rel := range t.files {
		if !needed[rel] {
			delete(t.files, rel)
		}
	}
	for v := range t.manifests {
		if !versions[v] {
			delete(t.manifests, v)
		}
	}
}

// flush adds files, with a deletion vector for an older one.
func (db *fakeDB) flush(id uint32, files int) {
	db.change(id, func(t *fakeTable, next *manifest.Manifest) {
		for range files {
			next.Files = append(next.Files, t.newFile(10+db.rng.IntN(100)))
		}
		f := *next.Files[0]
		f.DVPath, f.DVLength, f.Deleted = fmt.Sprintf("%s.dv-%d.puffin", strings.TrimSuffix(f.Path, ".parquet"), next.Version), 5, 1
		t.files[f.DVPath] = []byte("dv of " + f.Path)
		next.Files[0] = &f
	})
}

// compact puts one file in the place of all.
func (db *fakeDB) compact(id uint32) {
	db.change(id, func(t *fakeTable, next *manifest.Manifest) {
		next.Files = []*manifest.File{t.newFile(200)}
	})
}

func (t *fakeTable) newFile(size int) *manifest.File {
	f := &manifest.File{Path: "data/L0/" + t.db.uuid() + ".parquet", Size: int64(size), Rows: 10, KeyMin: []byte{1}, KeyMax: []byte{2}}
	t.files[f.Path] = bytes.Repeat([]byte{byte(t.db.rng.Uint32())}, size)
	return f
}

func (db *fakeDB) change(id uint32, fn func(t *fakeTable, next *manifest.Manifest)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[id]
	next := t.newest.Next()
	fn(t, next)
	t.commit(next)
	db.notify()
}

func (db *fakeDB) notify() {
	if db.m != nil {
		db.m.Notify()
	}
}

func (db *fakeDB) create(name string) uint32 {
	db.mu.Lock()
	defer db.mu.Unlock()
	id := db.next
	db.next++
	db.addTable(id, name)
	db.catalog++
	db.notify()
	return id
}

func (db *fakeDB) drop(id uint32) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.tables, id)
	db.catalog++
	db.commits++
	db.notify()
}

func (db *fakeDB) rename(id uint32, name string) {
	db.change(id, func(_ *fakeTable, next *manifest.Manifest) { next.Schema = fakeSchema(name) })
}

func (db *fakeDB) catalogText() []byte {
	if db.catalog == 0 {
		return nil
	}
	text := fmt.Sprintf("version %d\n", db.catalog)
	for _, id := range db.ids() {
		if id != 0 {
			text += fmt.Sprintf("table %d tables/%d\n", id, id)
		}
	}
	return []byte(text)
}

func (db *fakeDB) ids() []uint32 {
	var ids []uint32
	for id := range db.tables {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Cut implements [mirror.Source].
func (db *fakeDB) Cut() (*mirror.Cut, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	cut := &mirror.Cut{Seq: db.seq, Commit: db.commits, NextTable: db.next, Catalog: db.catalogText()}
	pinned := map[*fakeTable]*manifest.Manifest{}
	for _, id := range db.ids() {
		t := db.tables[id]
		t.pins[t.newest]++
		pinned[t] = t.newest
		cut.Tables = append(cut.Tables, &mirror.Table{ID: id, Manifest: t.newest, Dir: t})
	}
	db.open++
	db.most = max(db.most, db.open)
	cut.Close = func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.open--
		for t, m := range pinned {
			if t.pins[m]--; t.pins[m] == 0 {
				delete(t.pins, m)
			}
			t.collect()
		}
	}
	return cut, nil
}

// CatalogVersion implements [mirror.Source].
func (db *fakeDB) CatalogVersion(data []byte) (version uint64, err error) {
	_, err = fmt.Sscanf(string(data), "version %d\n", &version)
	return version, err
}

// Open implements [mirror.TableDir].
func (t *fakeTable) Open(rel string) (mirror.File, error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	data, ok := t.files[rel]
	if !ok {
		return nil, base.Errorf(base.CodeNotFound, "%s is gone", rel)
	}
	return fakeFile{bytes.NewReader(data)}, nil
}

// ManifestBytes implements [mirror.TableDir].
func (t *fakeTable) ManifestBytes(version int64) ([]byte, error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	data, ok := t.manifests[version]
	if !ok {
		return nil, base.Errorf(base.CodeNotFound, "version %d is gone", version)
	}
	return data, nil
}

// Record implements [mirror.TableDir].
func (t *fakeTable) Record() ([]byte, error) {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	return t.record, nil
}

// SetRecord implements [mirror.TableDir].
func (t *fakeTable) SetRecord(data []byte) error {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	t.record = data
	return nil
}

type fakeFile struct{ *bytes.Reader }

func (f fakeFile) Size() (int64, error) { return f.Reader.Size(), nil }
func (f fakeFile) Close() error         { return nil }

// start begins to mirror the database.
func (db *fakeDB) start(store objstore.Store, retain time.Duration) *mirror.Mirror {
	m := mirror.Start(store, db, mirror.Options{Parallelism: 3, Retain: retain})
	db.mu.Lock()
	db.m = m
	db.mu.Unlock()
	return m
}

// settle waits until the store has all there is.
func (db *fakeDB) settle(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		db.mu.Lock()
		m, seq, commits := db.m, db.seq, db.commits
		db.mu.Unlock()
		s := m.Status()
		if s.State == mirror.Stopped {
			t.Fatalf("it stopped: %s", s.LastError)
		}
		if s.Seq >= seq && s.Commit >= commits {
			return
		}
		if time.Since(begin) > time.Hour {
			t.Fatalf("it does not get there: %+v", s)
		}
	}
}

// check compares what a reader of the store finds with the newest snapshot of every table.
func (db *fakeDB) check(t *testing.T, store objstore.Store) {
	t.Helper()
	ctx := context.Background()
	get := func(key string) []byte {
		data, err := objstore.ReadAll(ctx, store, key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if want := db.catalogText(); want != nil && !bytes.Equal(get("TABLES"), want) {
		t.Fatalf("TABLES is %q, want %q", get("TABLES"), want)
	}
	for id, table := range db.tables {
		prefix := ""
		if id != 0 {
			prefix = fmt.Sprintf("tables/%d/", id)
		}
		v := table.newest.Version
		if !bytes.Equal(get(prefix+"metadata/"+manifest.FileName(v)), table.history[v]) {
			t.Fatalf("the manifest of table %d is another one", id)
		}
		for rel, data := range table.files {
			if !bytes.Equal(get(prefix+rel), data) {
				t.Fatalf("%s%s differs", prefix, rel)
			}
		}
	}
}

// objects returns how many objects the store has.
func objects(store objstore.Store) (n int) {
	_ = objstore.ListAll(context.Background(), store, "", func(objstore.Info) error {
		n++
		return nil
	})
	return n
}
