package base

import (
	"encoding/json"
	"testing"
)

func nestedTable() *Schema {
	k := func(kind Kind) Type { return Type{Kind: kind} }
	s := &Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []Column{
		{Name: "id", Type: k(KindInteger)},
		{Name: "s", Nullable: true, Type: Struct(Field{Name: "A b", Type: List(k(KindUUID))}, Field{Name: "m", Type: Map(k(KindVarchar), Array(k(KindFloat), 3))})},
		{Name: "e", Nullable: true, Type: List(Type{Kind: KindEnum, Labels: []string{"x", "y"}})},
	}}
	s.AssignFieldIDs()
	return s
}

func TestNestedSchemaJSON(t *testing.T) {
	s := nestedTable()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Schema
	if err := json.Unmarshal(js, &back); err != nil {
		t.Fatal(err)
	}
	if err := s.SameShape(&back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(&back)
	if string(again) != string(js) {
		t.Fatalf("%s\n%s", js, again)
	}
	if got := s.Columns[1].Type.String(); got != `STRUCT("A b" UUID[], "m" MAP(VARCHAR, FLOAT[3]))` {
		t.Error(got)
	}
	c := s.Clone()
	c.Columns[1].Type.Fields[0].Name = "z"
	if s.Columns[1].Type.Fields[0].Name != "A b" {
		t.Error("a clone shares fields")
	}
}

// TestFieldIDsAreDistinct: ids of fields and columns come from one series, and stay.
func TestFieldIDsAreDistinct(t *testing.T) {
	s := nestedTable()
	seen := map[int32]bool{}
	see := func(id int32) {
		if id < 1 || seen[id] {
			t.Errorf("id %d", id)
		}
		seen[id] = true
	}
	for i := range s.Columns {
		see(s.Columns[i].FieldID)
		s.Columns[i].Type.Walk(func(f *Field) { see(f.FieldID) })
	}
	before := s.Clone()
	s.AssignFieldIDs()
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(s)
	if string(a) != string(b) {
		t.Error("ids changed")
	}
}

func TestNestedTypesRefused(t *testing.T) {
	integer := Type{Kind: KindInteger}
	deep := integer
	for range MaxTypeDepth + 1 {
		deep = List(deep)
	}
	for name, typ := range map[string]Type{
		"no fields": {Kind: KindStruct}, "a list of two": {Kind: KindList, Fields: []Field{{Name: "a", Type: integer}, {Name: "b", Type: integer}}},
		"a field twice": Struct(Field{Name: "a", Type: integer}, Field{Name: "A", Type: integer}), "no name": Struct(Field{Type: integer}),
		"no length": Array(integer, 0), "too long": Array(integer, MaxArrayLength+1), "too deep": deep,
		"a fixed binary": List(Type{Kind: KindFixedBinary, Width: 3}), "inside": List(Type{Kind: KindDecimal}), "a scalar with fields": {Kind: KindInteger, Fields: []Field{{Name: "a", Type: integer}}},
		"a scalar with a length": {Kind: KindInteger, Length: 1},
	} {
		if err := typ.Validate(); CodeOf(err) != CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := nestedTable()
	s.PrimaryKey, s.Columns[1].Nullable = []int{1}, false
	if err := s.Validate(); CodeOf(err) != CodeInvalidArgument {
		t.Error(err)
	}
}

func TestTimeTZ(t *testing.T) {
	for _, micros := range []int64{0, 1, microsPerDay} {
		for _, offset := range []int32{-MaxOffset, -3600, 0, 1, MaxOffset} {
			m, o, ok := TimeTZParts(TimeTZ(micros, offset))
			if m != micros || o != offset || !ok {
				t.Errorf("%d%+d: %d%+d %v", micros, offset, m, o, ok)
			}
		}
	}
	// The same instant, from east to west.
	if a, b := TimeTZ(13*3600_000_000, 3600), TimeTZ(12*3600_000_000, 0); a.Int64() >= b.Int64() {
		t.Error("13:00+01 does not stand before 12:00+00")
	}
	for _, bad := range []int64{-1, 1, 1 << 62, 115199} {
		if _, _, ok := TimeTZParts(Int(bad)); ok {
			t.Errorf("%d is a TIMETZ", bad)
		}
	}
}
