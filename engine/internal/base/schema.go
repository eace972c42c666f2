package base

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column describes one column of a table.
type Column struct {
	Name     string
	Type     Type
	Nullable bool
	// FieldID identifies the column for ever, also in the data files; from 1, never reused.
	FieldID int32
	// DefaultSQL is the column's DEFAULT as an SQL expression text, "" for none. The engine keeps it; SQL hosts
	// evaluate it.
	DefaultSQL string
	// InitialDefault is what rows have that were written before the column was added, WriteDefault what a row API
	// writes for an absent column: one value in storage form (package row), nil for none.
	InitialDefault, WriteDefault []byte
	// Comment is for people.
	Comment string
}

// Schema is a table's: names, types, nullability, defaults, stable field ids and the primary key in declared order.
type Schema struct {
	TableName string
	Columns   []Column
	// PrimaryKey holds column indices in the declared key order.
	PrimaryKey []int
	SchemaID   int32
	// LastColumnID is the largest field id ever given out.
	LastColumnID int32
	// Checks are the conditions of CHECK constraints as SQL expression texts, in declared order. The engine keeps them; SQL
	// hosts enforce them.
	Checks []string
	// Comment is for people.
	Comment string
}

// AssignFieldIDs gives ids to columns, and to fields of nested types, that have none.
func (s *Schema) AssignFieldIDs() {
	assign := func(id *int32) {
		if *id == 0 {
			s.LastColumnID++
			*id = s.LastColumnID
		}
	}
	for i := range s.Columns {
		assign(&s.Columns[i].FieldID)
		t, missing := &s.Columns[i].Type, false
		t.Walk(func(f *Field) { missing = missing || f.FieldID == 0 })
		if missing {
			*t = t.clone() // its fields may be another type's as well
			t.Walk(func(f *Field) { assign(&f.FieldID) })
		}
	}
}

// Validate checks names, types and the key. The error names the column.
func (s *Schema) Validate() error {
	if err := validateName("table", s.TableName); err != nil {
		return err
	}
	if len(s.Columns) == 0 || len(s.Columns) > MaxColumns {
		return Errorf(CodeInvalidArgument, "table %q has %d columns: 1 to %d are allowed", s.TableName, len(s.Columns), MaxColumns)
	}
	names := make(map[string]struct{}, len(s.Columns))
	ids := make(map[int32]struct{}, len(s.Columns))
	for _, c := range s.Columns {
		if err := validateName("column", c.Name); err != nil {
			return err
		}
		folded := strings.ToLower(c.Name)
		if strings.HasPrefix(folded, ReservedPrefix) {
			return Errorf(CodeInvalidArgument, "column %q: names that start with %q are reserved", c.Name, ReservedPrefix)
		}
		if _, dup := names[folded]; dup {
			return Errorf(CodeInvalidArgument, "column %q stands twice (names differ by more than case)", c.Name)
		}
		names[folded] = struct{}{}
		if err := c.Type.Validate(); err != nil {
			return Wrapf(CodeInvalidArgument, err, "column %q", c.Name)
		}
		if err := s.validateFieldIDs(&c, ids); err != nil {
			return err
		}
	}
	if err := s.validateChecks(); err != nil {
		return err
	}
	return s.validateKey()
}

func (s *Schema) validateChecks() error {
	if len(s.Checks) > MaxColumns {
		return Errorf(CodeInvalidArgument, "table %q has %d CHECK constraints: %d are allowed", s.TableName, len(s.Checks), MaxColumns)
	}
	for i, c := range s.Checks {
		if c == "" || !utf8.ValidString(c) || strings.IndexByte(c, 0) >= 0 {
			return Errorf(CodeInvalidArgument, "CHECK constraint %d of table %q is no SQL text", i+1, s.TableName)
		}
	}
	return nil
}

// validateFieldIDs checks the ids of a column and of what it is made of; seen are those of the columns before.
func (s *Schema) validateFieldIDs(c *Column, seen map[int32]struct{}) (err error) {
	check := func(id int32) {
		if _, dup := seen[id]; err == nil && dup {
			err = Errorf(CodeInvalidArgument, "column %q: field id %d stands twice", c.Name, id)
		}
		if err == nil && (id < 1 || id > s.LastColumnID) {
			err = Errorf(CodeInvalidArgument, "column %q: field id %d is not in 1..%d", c.Name, id, s.LastColumnID)
		}
		seen[id] = struct{}{}
	}
	check(c.FieldID)
	c.Type.Walk(func(f *Field) { check(f.FieldID) })
	return err
}

func (s *Schema) validateKey() error {
	if len(s.PrimaryKey) == 0 {
		return Errorf(CodeInvalidArgument, "table %q has no primary key", s.TableName)
	}
	seen := make(map[int]struct{}, len(s.PrimaryKey))
	for _, i := range s.PrimaryKey {
		if i < 0 || i >= len(s.Columns) {
			return Errorf(CodeInvalidArgument, "primary key column index %d is not in 0..%d", i, len(s.Columns)-1)
		}
		if _, dup := seen[i]; dup {
			return Errorf(CodeInvalidArgument, "column %q stands twice in the primary key", s.Columns[i].Name)
		}
		seen[i] = struct{}{}
		if s.Columns[i].Nullable {
			return Errorf(CodeInvalidArgument, "primary key column %q must be NOT NULL", s.Columns[i].Name)
		}
		if k := s.Columns[i].Type.Kind; k.IsNested() {
			return Errorf(CodeInvalidArgument, "primary key column %q is %s: nested types cannot be part of a key", s.Columns[i].Name, k)
		}
	}
	return nil
}

func validateName(what, name string) error {
	switch {
	case name == "":
		return Errorf(CodeInvalidArgument, "a %s name is empty", what)
	case len(name) > MaxNameBytes:
		return Errorf(CodeInvalidArgument, "a %s name has %d bytes: the limit is %d", what, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return Errorf(CodeInvalidArgument, "%s name %q is not valid UTF-8", what, name)
	case strings.IndexByte(name, 0) >= 0:
		return Errorf(CodeInvalidArgument, "%s name %q holds a zero byte", what, name)
	}
	return nil
}

// ColumnIndex returns the index of the column of that name (exact, then ignoring ASCII case), or -1.
func (s *Schema) ColumnIndex(name string) int {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return i
		}
	}
	for i := range s.Columns {
		if strings.EqualFold(s.Columns[i].Name, name) {
			return i
		}
	}
	return -1
}

// IndexOfField returns the index of the column with a field id, or -1.
func (s *Schema) IndexOfField(id int32) int {
	for i := range s.Columns {
		if s.Columns[i].FieldID == id {
			return i
		}
	}
	return -1
}

// IsKey reports whether column i is part of the primary key.
func (s *Schema) IsKey(i int) bool {
	for _, k := range s.PrimaryKey {
		if k == i {
			return true
		}
	}
	return false
}

// SameShape reports, as an error that names the first difference, whether o has the same columns (names, types,
// nullability, in order) and the same key.
func (s *Schema) SameShape(o *Schema) error {
	if len(s.Columns) != len(o.Columns) {
		return Errorf(CodeSchemaMismatch, "table %q has %d columns, not %d", s.TableName, len(s.Columns), len(o.Columns))
	}
	for i := range s.Columns {
		a, b := &s.Columns[i], &o.Columns[i]
		switch {
		case a.Name != b.Name:
			return Errorf(CodeSchemaMismatch, "column %d of table %q is %q, not %q", i+1, s.TableName, a.Name, b.Name)
		case !a.Type.Equal(b.Type):
			return Errorf(CodeSchemaMismatch, "column %q of table %q is %s, not %s", a.Name, s.TableName, a.Type, b.Type)
		case a.Nullable != b.Nullable:
			return Errorf(CodeSchemaMismatch, "column %q of table %q differs in NOT NULL", a.Name, s.TableName)
		}
	}
	if len(s.PrimaryKey) != len(o.PrimaryKey) {
		return Errorf(CodeSchemaMismatch, "the primary key of table %q has %d columns, not %d", s.TableName, len(s.PrimaryKey), len(o.PrimaryKey))
	}
	for i := range s.PrimaryKey {
		if s.PrimaryKey[i] != o.PrimaryKey[i] {
			return Errorf(CodeSchemaMismatch, "part %d of the primary key of table %q is %q, not %q", i+1, s.TableName,
				s.Columns[s.PrimaryKey[i]].Name, o.Columns[o.PrimaryKey[i]].Name)
		}
	}
	return nil
}

// SameRows reports whether a file's rows read the same with both schemas: same columns by field id, name, type, nullability
// and initial default, in the same order, and the same key.
func (s *Schema) SameRows(o *Schema) bool {
	if s == o {
		return true
	}
	return slices.Equal(s.PrimaryKey, o.PrimaryKey) && slices.EqualFunc(s.Columns, o.Columns, func(a, b Column) bool {
		return a.FieldID == b.FieldID && a.Name == b.Name && a.Nullable == b.Nullable && a.Type.Equal(b.Type) &&
			(a.InitialDefault == nil) == (b.InitialDefault == nil) && bytes.Equal(a.InitialDefault, b.InitialDefault)
	})
}

// Equal reports whether both schemas are stored the same.
func (s *Schema) Equal(o *Schema) bool {
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(o)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Clone returns a deep copy.
func (s *Schema) Clone() *Schema {
	c := *s
	c.Columns = append([]Column(nil), s.Columns...)
	for i := range c.Columns {
		c.Columns[i].Type = s.Columns[i].Type.clone()
	}
	c.PrimaryKey = append([]int(nil), s.PrimaryKey...)
	c.Checks = append([]string(nil), s.Checks...)
	return &c
}

// jsonColumn and jsonSchema are the stored form (manifest property merutable.schema.json). col_type keeps the seven
// type names of the first generation, so that its readers find what they know; logical_type is the exact type.
type jsonColumn struct {
	Name           string           `json:"name"`
	ColType        any              `json:"col_type"`
	LogicalType    *jsonLogicalType `json:"logical_type,omitempty"`
	Nullable       bool             `json:"nullable"`
	FieldID        int32            `json:"field_id"`
	InitialDefault []byte           `json:"initial_default"`
	WriteDefault   []byte           `json:"write_default"`
	DefaultSQL     string           `json:"default_sql,omitempty"`
	Comment        string           `json:"comment,omitempty"`
}

type jsonLogicalType struct {
	Kind      string   `json:"kind"`
	Precision uint8    `json:"precision,omitempty"`
	Scale     uint8    `json:"scale,omitempty"`
	Width     int32    `json:"width,omitempty"`
	Labels    []string `json:"labels,omitempty"`
	// Length and Fields are of nested types.
	Length int32       `json:"length,omitempty"`
	Fields []jsonField `json:"fields,omitempty"`
}

type jsonField struct {
	Name        string          `json:"name"`
	FieldID     int32           `json:"field_id"`
	LogicalType jsonLogicalType `json:"logical_type"`
}

type jsonSchema struct {
	TableName    string       `json:"table_name"`
	Columns      []jsonColumn `json:"columns"`
	PrimaryKey   []int        `json:"primary_key"`
	SchemaID     int32        `json:"schema_id"`
	LastColumnID int32        `json:"last_column_id"`
	Checks       []string     `json:"checks,omitempty"`
	Comment      string       `json:"comment,omitempty"`
}

// MarshalJSON renders the stored form (FORMAT.md, "Schema JSON").
func (s *Schema) MarshalJSON() ([]byte, error) {
	js := jsonSchema{
		TableName: s.TableName, PrimaryKey: s.PrimaryKey, SchemaID: s.SchemaID, LastColumnID: s.LastColumnID, Comment: s.Comment,
		Checks: s.Checks,
	}
	for _, c := range s.Columns {
		js.Columns = append(js.Columns, jsonColumn{
			Name: c.Name, ColType: storedColType(c.Type), Nullable: c.Nullable, FieldID: c.FieldID,
			InitialDefault: c.InitialDefault, WriteDefault: c.WriteDefault, DefaultSQL: c.DefaultSQL,
			Comment: c.Comment, LogicalType: storedType(c.Type),
		})
	}
	return json.Marshal(js)
}

func storedType(t Type) *jsonLogicalType {
	l := &jsonLogicalType{
		Kind: t.Kind.String(), Precision: t.Precision, Scale: t.Scale, Width: t.Width, Labels: t.Labels, Length: t.Length,
	}
	for _, f := range t.Fields {
		l.Fields = append(l.Fields, jsonField{Name: f.Name, FieldID: f.FieldID, LogicalType: *storedType(f.Type)})
	}
	return l
}

// UnmarshalJSON reads the stored form and validates it.
func (s *Schema) UnmarshalJSON(data []byte) error {
	var js jsonSchema
	if err := json.Unmarshal(data, &js); err != nil {
		return Wrapf(CodeCorruption, err, "schema JSON")
	}
	*s = Schema{
		TableName: js.TableName, PrimaryKey: js.PrimaryKey, SchemaID: js.SchemaID, LastColumnID: js.LastColumnID, Comment: js.Comment,
		Checks: js.Checks,
	}
	for _, c := range js.Columns {
		t, err := typeOfStored(c)
		if err != nil {
			return err
		}
		s.Columns = append(s.Columns, Column{
			Name: c.Name, Type: t, Nullable: c.Nullable, FieldID: c.FieldID, DefaultSQL: c.DefaultSQL,
			InitialDefault: c.InitialDefault, WriteDefault: c.WriteDefault, Comment: c.Comment,
		})
	}
	return s.Validate()
}

func storedColType(t Type) any {
	switch t.Kind {
	case KindBoolean:
		return "Boolean"
	case KindTinyInt, KindSmallInt, KindInteger, KindUTinyInt, KindUSmallInt, KindDate:
		return "Int32"
	case KindBigInt, KindUInteger, KindUBigInt, KindTime, KindTimestampS, KindTimestampMS, KindTimestamp,
		KindTimestampNS, KindTimestampTZ, KindTimeTZ, KindTimeNS:
		return "Int64"
	case KindFloat:
		return "Float"
	case KindDouble:
		return "Double"
	case KindHugeInt, KindUHugeInt, KindInterval, KindUUID:
		return map[string]int{"FixedLenByteArray": 16}
	case KindFixedBinary:
		return map[string]int{"FixedLenByteArray": int(t.Width)}
	case KindDecimal:
		switch t.FixedSize() {
		case 4:
			return "Int32"
		case 8:
			return "Int64"
		}
		return map[string]int{"FixedLenByteArray": 16}
	}
	return "ByteArray"
}

// logicalType is the inverse of storedType, for the column of that name.
func (l *jsonLogicalType) logicalType(column string) (Type, error) {
	k, ok := KindByName(l.Kind)
	if !ok {
		return Type{}, Errorf(CodeUnsupported, "column %q has type %q, which this version does not know", column, l.Kind)
	}
	t := Type{Kind: k, Precision: l.Precision, Scale: l.Scale, Width: l.Width, Labels: l.Labels, Length: l.Length}
	for i := range l.Fields {
		f := &l.Fields[i]
		ft, err := f.LogicalType.logicalType(column)
		if err != nil {
			return Type{}, err
		}
		t.Fields = append(t.Fields, Field{Name: f.Name, FieldID: f.FieldID, Type: ft})
	}
	return t, nil
}

func typeOfStored(c jsonColumn) (Type, error) {
	if l := c.LogicalType; l != nil {
		return l.logicalType(c.Name)
	}
	switch v := c.ColType.(type) {
	case string:
		switch v {
		case "Boolean":
			return Type{Kind: KindBoolean}, nil
		case "Int32":
			return Type{Kind: KindInteger}, nil
		case "Int64":
			return Type{Kind: KindBigInt}, nil
		case "Float":
			return Type{Kind: KindFloat}, nil
		case "Double":
			return Type{Kind: KindDouble}, nil
		case "ByteArray":
			return Type{Kind: KindBlob}, nil
		}
	case map[string]any:
		if w, ok := v["FixedLenByteArray"].(float64); ok {
			return Type{Kind: KindFixedBinary, Width: int32(w)}, nil
		}
	}
	return Type{}, Errorf(CodeCorruption, "column %q: unknown col_type %v", c.Name, c.ColType)
}
