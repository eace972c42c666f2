package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func evolvingSchema() *Schema {
	return &Schema{
		TableName: "t",
		Columns: []Column{
			{Name: "a", Type: Type{Kind: KindInteger}, Nullable: true},
			{Name: "id", Type: Type{Kind: KindBigInt}},
			{Name: "b", Type: Type{Kind: KindVarchar}, Nullable: true},
		},
		PrimaryKey: []int{1},
	}
}

func openEvolving(t testing.TB, fs vfs.FS, o Options) *DB {
	t.Helper()
	o.fs = fs
	db, err := Open("/db", o)
	must(t, err)
	if !db.HasTable() {
		must(t, db.CreateTable(evolvingSchema()))
	}
	return db
}

// rowPlaces are where rows may be when a table is altered.
var rowPlaces = map[string]func(t *testing.T, db *DB, fs vfs.FS) *DB{
	"memory": func(_ *testing.T, db *DB, _ vfs.FS) *DB { return db },
	"level 0": func(t *testing.T, db *DB, _ vfs.FS) *DB {
		must(t, db.Flush())
		return db
	},
	"compacted": func(t *testing.T, db *DB, _ vfs.FS) *DB {
		must(t, db.Compact())
		return db
	},
	"log": func(t *testing.T, db *DB, fs vfs.FS) *DB {
		db.Free()
		return openEvolving(t, fs, Options{NoAutoCompaction: true})
	},
}

// inPlaces runs a test with the rows (1, 10, 'x'), (2, NULL, 'y'), (3, 30, NULL) in every place.
func inPlaces(t *testing.T, fn func(t *testing.T, db *DB, fs vfs.FS)) {
	for name, move := range rowPlaces {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			db := openEvolving(t, fs, Options{NoAutoCompaction: true})
			_, err := db.PutBatch([][]Value{{Int(10), Int(1), String("x")}, {Null(), Int(2), String("y")}, {Int(30), Int(3), Null()}})
			must(t, err)
			db = move(t, db, fs)
			defer func() { db.Free() }()
			fn(t, db, fs)
		})
	}
}

// rowsText renders what a snapshot shows in every way that rows are read, which must agree.
func rowsText(t testing.TB, s *Snapshot) string {
	t.Helper()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	rows := collect(t, it)
	text := func(rows [][]Value) string {
		out := ""
		for _, r := range rows {
			out += "("
			for i, v := range r {
				if i > 0 {
					out += ", "
				}
				out += shownValue(s.Schema().Columns[i].Type, v)
			}
			out += ")"
		}
		return out
	}
	want := text(rows)
	var got, keys [][]Value
	for _, r := range rows {
		key := []Value{}
		for _, k := range s.Schema().PrimaryKey {
			key = append(key, r[k])
		}
		one, found, err := s.Get(key)
		must(t, err)
		if !found {
			t.Fatalf("get of key %v: no row", key)
		}
		got, keys = append(got, rowOf(one, 0)), append(keys, key)
	}
	if g := text(got); g != want {
		t.Fatalf("gets and a scan differ: %s", difference(g, want))
	}
	many, _, err := s.MultiGet(keys)
	must(t, err)
	got = nil
	for i := range many.N {
		got = append(got, rowOf(many, i))
	}
	if g := text(got); g != want {
		t.Fatalf("multi-get and a scan differ: %s", difference(g, want))
	}
	for c := range s.Schema().Columns {
		it, err := s.Scan(ScanOptions{Projection: []int{c}, Reverse: true})
		must(t, err)
		for i, r := range collect(t, it) {
			if w := rows[len(rows)-1-i][c]; !equalRows(r, []Value{w}) {
				t.Fatalf("column %d alone, downwards: row %d is %v, want %v", c, i, r, w)
			}
		}
	}
	return want
}

func shownValue(t Type, v Value) string {
	switch {
	case v.Null:
		return "NULL"
	case t.IsVariable():
		return string(v.Bytes)
	case t.Kind == KindDouble:
		return fmt.Sprint(doubleOf(v))
	case t.Kind == KindHugeInt && v.Hi != 0 && v.Hi != ^uint64(0):
		return fmt.Sprintf("%x%016x", v.Hi, v.Lo)
	}
	return fmt.Sprint(int64(v.Lo))
}

// difference renders where two texts begin to differ.
func difference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	part := func(s string) string { return s[max(0, min(i, len(s))-60):min(len(s), i+60)] }
	return fmt.Sprintf("…%s… and …%s…", part(a), part(b))
}

func wantRows(t testing.TB, db *DB, want string) {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	if got := rowsText(t, s); got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
}

// wantRowsAlways checks the rows now, compacted, and opened again.
func wantRowsAlways(t testing.TB, db *DB, fs vfs.FS, want string) {
	t.Helper()
	wantRows(t, db, want)
	must(t, db.Compact())
	wantRows(t, db, want)
	again := openEvolving(t, crashCopy(fs), Options{NoAutoCompaction: true})
	defer again.Free()
	wantRows(t, again, want)
}

// crashCopy is what is on the disk after a power cut.
func crashCopy(fs vfs.FS) vfs.FS { return fs.(*vfs.MemFS).CrashClone(rand.New(rand.NewPCG(1, 1))) }

func storage(t testing.TB, typ Type, v Value) []byte {
	t.Helper()
	b, err := row.AppendStorage([]byte{}, typ, v)
	must(t, err)
	return b
}

func TestAlterAddColumn(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		before, err := db.Snapshot()
		must(t, err)
		defer before.Close()
		typ := Type{Kind: KindSmallInt}
		must(t, db.Alter(
			AddColumn{Column: Column{Name: "c", Type: typ, Nullable: true, InitialDefault: storage(t, typ, Int(-7)), DefaultSQL: "-7"}},
			AddColumn{Column: Column{Name: "d", Type: Type{Kind: KindVarchar}, Nullable: true}},
			AddColumn{Column: Column{Name: "e", Type: Type{Kind: KindVarchar}, InitialDefault: []byte{}}},
		))
		wantRows(t, db, "(10, 1, x, -7, NULL, )(NULL, 2, y, -7, NULL, )(30, 3, NULL, -7, NULL, )")
		_, err = db.Put([]Value{Int(5), Int(2), Null(), Int(1), String("z"), String("e")})
		must(t, err)
		wantRowsAlways(t, db, fs, "(10, 1, x, -7, NULL, )(5, 2, NULL, 1, z, e)(30, 3, NULL, -7, NULL, )")
		if got := rowsText(t, before); got != "(10, 1, x)(NULL, 2, y)(30, 3, NULL)" {
			t.Fatalf("the snapshot from before shows %s", got)
		}
		wantCode(t, db.Alter(AddColumn{Column: Column{Name: "C", Type: typ, Nullable: true}}), CodeAlreadyExists)
		must(t, db.Alter(AddColumn{Column: Column{Name: "C", Type: typ, Nullable: true}, IfNotExists: true}))
		wantCode(t, db.Alter(AddColumn{Column: Column{Name: "f", Type: typ}}), CodeSchemaMismatch)
		wantCode(t, db.Alter(AddColumn{Column: Column{Name: "_merutable_x", Type: typ, Nullable: true}}), CodeInvalidArgument)
		wantCode(t, db.Alter(AddColumn{Column: Column{Name: "f", Type: typ, Nullable: true, InitialDefault: []byte{1}}}), CodeInvalidArgument)
		s, err := db.Schema()
		must(t, err)
		if s.SchemaID != 1 || len(s.Columns) != 6 || s.Columns[5].FieldID != 6 || s.LastColumnID != 6 {
			t.Fatalf("%+v", s)
		}
	})
}

func TestAlterDropColumn(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		must(t, db.Alter(DropColumn{Name: "A"}))
		wantRows(t, db, "(1, x)(2, y)(3, NULL)")
		// A column of the same name is another one: the old values do not come back.
		must(t, db.Alter(AddColumn{Column: Column{Name: "a", Type: Type{Kind: KindInteger}, Nullable: true}}))
		wantRowsAlways(t, db, fs, "(1, x, NULL)(2, y, NULL)(3, NULL, NULL)")
		wantCode(t, db.Alter(DropColumn{Name: "id"}), CodeInvalidArgument)
		wantCode(t, db.Alter(DropColumn{Name: "nix"}), CodeNotFound)
		must(t, db.Alter(DropColumn{Name: "nix", IfExists: true}))
		must(t, db.Alter(DropColumn{Name: "a"}, DropColumn{Name: "b"}))
		wantRowsAlways(t, db, fs, "(1)(2)(3)")
		if s, err := db.Schema(); err != nil || s.PrimaryKey[0] != 0 || s.LastColumnID != 4 {
			t.Fatalf("%+v %v", s, err)
		}
	})
}

func TestAlterNames(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		must(t, db.Alter(RenameColumn{Name: "a", NewName: "A"}, RenameColumn{Name: "id", NewName: "key"}, RenameTable{NewName: "u"}))
		s, err := db.Schema()
		must(t, err)
		if s.TableName != "u" || s.Columns[0].Name != "A" || s.Columns[1].Name != "key" || s.SchemaID != 1 {
			t.Fatalf("%+v", s)
		}
		wantRowsAlways(t, db, fs, "(10, 1, x)(NULL, 2, y)(30, 3, NULL)")
		wantCode(t, db.Alter(RenameColumn{Name: "a", NewName: "B"}), CodeAlreadyExists)
		wantCode(t, db.Alter(RenameColumn{Name: "id", NewName: "x"}), CodeNotFound)
		wantCode(t, db.Alter(RenameColumn{Name: "a", NewName: ""}), CodeInvalidArgument)
		// All or nothing.
		wantCode(t, db.Alter(RenameColumn{Name: "a", NewName: "x"}, DropColumn{Name: "nix"}), CodeNotFound)
		if now, _ := db.Schema(); now != s {
			t.Fatal("a change that failed left a trace")
		}
	})
}

func TestAlterDefaultsAndComments(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		must(t, db.Alter(SetDefault{Name: "a", SQL: "42"}, SetComment{Comment: "a table"}, SetComment{Column: "b", Comment: "a column"}))
		must(t, db.Alter(SetDefault{Name: "b", SQL: "'d'"}, SetDefault{Name: "a"}))
		again := openEvolving(t, crashCopy(fs), Options{})
		defer again.Free()
		for _, db := range []*DB{db, again} {
			s, err := db.Schema()
			must(t, err)
			if s.Columns[0].DefaultSQL != "" || s.Columns[2].DefaultSQL != "'d'" || s.Comment != "a table" || s.Columns[2].Comment != "a column" {
				t.Fatalf("%+v", s)
			}
			wantRows(t, db, "(10, 1, x)(NULL, 2, y)(30, 3, NULL)")
		}
	})
}

func TestAlterNotNull(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		wantCode(t, db.Alter(SetNotNull{Name: "a", NotNull: true}), CodeSchemaMismatch)
		_, err := db.Put([]Value{Int(20), Int(2), String("y")})
		must(t, err)
		_, err = db.Delete([]Value{Int(3)})
		must(t, err)
		must(t, db.Alter(SetNotNull{Name: "a", NotNull: true}, SetNotNull{Name: "b", NotNull: true}))
		_, err = db.Put([]Value{Null(), Int(4), String("z")})
		wantCode(t, err, CodeInvalidArgument)
		wantRowsAlways(t, db, fs, "(10, 1, x)(20, 2, y)")
		must(t, db.Alter(SetNotNull{Name: "a"}))
		_, err = db.Put([]Value{Null(), Int(4), String("z")})
		must(t, err)
		wantRowsAlways(t, db, fs, "(10, 1, x)(20, 2, y)(NULL, 4, z)")
		wantCode(t, db.Alter(SetNotNull{Name: "id"}), CodeInvalidArgument)
		// A column that old files do not have is NULL there.
		must(t, db.Alter(AddColumn{Column: Column{Name: "c", Type: Type{Kind: KindDouble}, Nullable: true}}))
		wantCode(t, db.Alter(SetNotNull{Name: "c", NotNull: true}), CodeSchemaMismatch)
	})
}

func TestAlterType(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		typ := Type{Kind: KindInteger}
		must(t, db.Alter(AddColumn{Column: Column{Name: "c", Type: typ, Nullable: true, InitialDefault: storage(t, typ, Int(-1))}}))
		must(t, db.Alter(SetType{Name: "a", Type: Type{Kind: KindBigInt}}, SetType{Name: "c", Type: Type{Kind: KindVarchar}}))
		_, err := db.Put([]Value{Int(1 << 40), Int(4), String("z"), String("c")})
		must(t, err)
		wantRows(t, db, "(10, 1, x, -1)(NULL, 2, y, -1)(30, 3, NULL, -1)(1099511627776, 4, z, c)")
		must(t, db.Flush())
		must(t, db.Alter(SetType{Name: "a", Type: Type{Kind: KindHugeInt}}))
		wantRowsAlways(t, db, fs, "(10, 1, x, -1)(NULL, 2, y, -1)(30, 3, NULL, -1)(1099511627776, 4, z, c)")
		for _, kind := range []Kind{KindBigInt, KindDouble, KindVarchar} {
			wantCode(t, db.Alter(SetType{Name: "a", Type: Type{Kind: kind}}), CodeUnsupported)
		}
		wantCode(t, db.Alter(SetType{Name: "id", Type: Type{Kind: KindHugeInt}}), CodeUnsupported)
		must(t, db.Alter(SetType{Name: "id", Type: Type{Kind: KindBigInt}}))
	})
}

func TestAlterDate(t *testing.T) {
	fs := vfs.NewMem()
	db := openEvolving(t, fs, Options{NoAutoCompaction: true})
	defer db.Free()
	must(t, db.Alter(AddColumn{Column: Column{Name: "d", Type: Type{Kind: KindDate}, Nullable: true}}))
	put := func(id, day int64) {
		_, err := db.Put([]Value{Null(), Int(id), Null(), Int(day)})
		must(t, err)
		must(t, db.Flush())
	}
	put(1, 1)
	put(2, -2147483647)
	put(3, base.MaxTimestampDay+1)
	wantCode(t, db.Alter(SetType{Name: "d", Type: Type{Kind: KindTimestamp}}), CodeSchemaMismatch)
	put(3, base.MinTimestampDay)
	wantCode(t, db.Alter(SetType{Name: "d", Type: Type{Kind: KindTimestamp}}), CodeSchemaMismatch)
	must(t, db.Compact())
	must(t, db.Alter(SetType{Name: "d", Type: Type{Kind: KindTimestamp}}))
	wantRowsAlways(t, db, fs, "(NULL, 1, NULL, 86400000000)(NULL, 2, NULL, -9223372036854775807)(NULL, 3, NULL, -9223372022400000000)")
}

// TestAlterMeanwhile: what was begun with the old schema does not come into the new one.
func TestAlterMeanwhile(t *testing.T) {
	db := openEvolving(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	small, err := db.NewWrite()
	must(t, err)
	defer small.Close()
	must(t, small.Put([]Value{Int(1), Int(1), Null()}))
	large, err := db.NewWrite()
	must(t, err)
	defer large.Close()
	for i := range int64(30_000) {
		must(t, large.Put([]Value{Int(i), Int(i), String("a text of some length")}))
	}
	must(t, db.Alter(AddColumn{Column: Column{Name: "c", Type: Type{Kind: KindInteger}, Nullable: true}}))
	for _, w := range []*Write{small, large} {
		_, err := w.Commit()
		wantCode(t, err, CodeConflict)
	}
	wantRows(t, db, "")
	_, err = db.Put([]Value{Int(1), Int(1), Null(), Int(2)})
	must(t, err)
	wantRows(t, db, "(1, 1, NULL, 2)")
}

// TestAlterReadOnly: a reader in another process goes from the old schema to the new one as a whole, log included.
func TestAlterReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	db := openEvolving(t, fs, Options{})
	defer db.Free()
	_, err := db.Put([]Value{Int(1), Int(1), String("x")})
	must(t, err)
	reader := otherProcess(t, fs)
	see := func(want string) {
		t.Helper()
		must(t, reader.c.refresh())
		wantRows(t, reader, want)
	}
	see("(1, 1, x)")
	must(t, db.Alter(DropColumn{Name: "a"}, AddColumn{Column: Column{Name: "c", Type: Type{Kind: KindInteger}, Nullable: true}}))
	see("(1, x, NULL)")
	_, err = db.Put([]Value{Int(2), String("y"), Int(3)})
	must(t, err)
	see("(1, x, NULL)(2, y, 3)")
	must(t, db.Alter(SetType{Name: "c", Type: Type{Kind: KindVarchar}}))
	see("(1, x, NULL)(2, y, 3)")
}

// TestAlterCrash cuts the power after every system call of ALTERs with rows in files, deletion vectors, memory and log:
// there is what the statement that was under way left or found, never a mix, and the database goes on.
func TestAlterCrash(t *testing.T) {
	type step struct {
		do   func(db *DB) error
		want string // what there is behind it
	}
	put := func(rows ...[]Value) func(db *DB) error {
		return func(db *DB) error {
			_, err := db.PutBatch(rows)
			return err
		}
	}
	alter := func(ops ...Alteration) func(db *DB) error {
		return func(db *DB) error { return db.Alter(ops...) }
	}
	nine := []byte{9, 0, 0, 0}
	steps := []step{
		{put([]Value{Int(1), Int(1), String("x")}, []Value{Int(2), Int(2), String("y")}), "(1, 1, x)(2, 2, y)"},
		{func(db *DB) error { return db.Flush() }, "(1, 1, x)(2, 2, y)"},
		{put([]Value{Int(3), Int(1), Null()}), "(3, 1, NULL)(2, 2, y)"},
		{
			alter(DropColumn{Name: "a"}, AddColumn{Column: Column{Name: "a", Type: Type{Kind: KindInteger}, InitialDefault: nine}}),
			"(1, NULL, 9)(2, y, 9)",
		},
		{put([]Value{Int(2), String("z"), Int(4)}), "(1, NULL, 9)(2, z, 4)"},
		{alter(SetType{Name: "a", Type: Type{Kind: KindVarchar}}), "(1, NULL, 9)(2, z, 4)"},
		{put([]Value{Int(2), String("z"), String("q")}), "(1, NULL, 9)(2, z, q)"},
		{func(db *DB) error { return db.Compact() }, "(1, NULL, 9)(2, z, q)"},
	}
	cutEverywhere(t, 7, func(at int) int {
		mem := vfs.NewMem()
		fs := vfs.NewCountingFS(mem)
		var mu sync.Mutex
		n, found, left := 0, "", ""
		var clone *vfs.MemFS
		var wantFound, wantLeft string
		fs.SetHook(func(vfs.Op, string) {
			mu.Lock()
			defer mu.Unlock()
			if n == at {
				clone = mem.CrashClone(rand.New(rand.NewPCG(uint64(at), 1)))
				wantFound, wantLeft = found, left
			}
			n++
		})
		db := openEvolving(t, fs, Options{NoAutoCompaction: true})
		for _, s := range steps {
			mu.Lock()
			left = s.want
			mu.Unlock()
			must(t, s.do(db))
			mu.Lock()
			found = s.want
			mu.Unlock()
		}
		fs.SetHook(nil)
		db.Free()
		if clone == nil {
			return n
		}
		again := openEvolving(t, clone, Options{NoAutoCompaction: true})
		defer again.Free()
		s, err := again.Snapshot()
		must(t, err)
		defer s.Close()
		if got := rowsText(t, s); got != wantFound && got != wantLeft {
			t.Fatalf("power cut at operation %d: %s, want %s or %s", at, got, wantFound, wantLeft)
		}
		must(t, again.Alter(AddColumn{Column: Column{Name: "more", Type: Type{Kind: KindInteger}, InitialDefault: nine}}))
		must(t, again.Compact())
		must(t, again.Alter(DropColumn{Name: "more"}))
		wantRows(t, again, rowsText(t, s))
		return n
	})
}
