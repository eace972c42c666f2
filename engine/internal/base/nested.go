package base

import (
	"fmt"
	"strings"
)

// Field is a part of a nested type.
type Field struct {
	// Name is a STRUCT field's, distinct without regard to case; the others have the names of Parquet: "element", "key",
	// "value".
	Name string
	Type Type
	// FieldID identifies the field in the data files, like a column's; it comes from the same series.
	FieldID int32
}

// Names of the fields that have none of their own.
const (
	ElementName = "element"
	KeyName     = "key"
	ValueName   = "value"
)

// IsNested reports whether values of the kind are made of values of other types.
func (k Kind) IsNested() bool { return k >= KindStruct && k <= KindMap }

// Struct makes a STRUCT.
func Struct(fields ...Field) Type { return Type{Kind: KindStruct, Fields: fields} }

// List makes a LIST.
func List(element Type) Type {
	return Type{Kind: KindList, Fields: []Field{{Name: ElementName, Type: element}}}
}

// Array makes an ARRAY.
func Array(element Type, length int32) Type {
	return Type{Kind: KindArray, Length: length, Fields: []Field{{Name: ElementName, Type: element}}}
}

// Map makes a MAP.
func Map(key, value Type) Type {
	return Type{Kind: KindMap, Fields: []Field{{Name: KeyName, Type: key}, {Name: ValueName, Type: value}}}
}

// clone returns a deep copy.
func (t Type) clone() Type {
	t.Labels = append([]string(nil), t.Labels...)
	t.Fields = append([]Field(nil), t.Fields...)
	for i := range t.Fields {
		t.Fields[i].Type = t.Fields[i].Type.clone()
	}
	return t
}

// Walk calls visit for the fields of the type and of their types, a parent before its children.
func (t *Type) Walk(visit func(f *Field)) {
	for i := range t.Fields {
		visit(&t.Fields[i])
		t.Fields[i].Type.Walk(visit)
	}
}

func (t Type) nestedString() string {
	if !t.hasFields() {
		return t.Kind.String()
	}
	switch t.Kind {
	case KindList:
		return t.Fields[0].Type.String() + "[]"
	case KindArray:
		return fmt.Sprintf("%s[%d]", t.Fields[0].Type, t.Length)
	case KindMap:
		return fmt.Sprintf("MAP(%s, %s)", t.Fields[0].Type, t.Fields[1].Type)
	}
	fields := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = `"` + strings.ReplaceAll(f.Name, `"`, `""`) + `" ` + f.Type.String()
	}
	return "STRUCT(" + strings.Join(fields, ", ") + ")"
}

// hasFields reports whether the number of fields is one that the kind can have.
func (t Type) hasFields() bool {
	switch t.Kind {
	case KindStruct:
		return len(t.Fields) > 0
	case KindList, KindArray:
		return len(t.Fields) == 1
	case KindMap:
		return len(t.Fields) == 2
	}
	return len(t.Fields) == 0
}

func (t Type) validateNested() error {
	n := 0
	return t.validateFields(1, &n)
}

// validateFields checks a type that stands depth levels deep, counting fields in n.
func (t Type) validateFields(depth int, n *int) error {
	switch {
	case !t.hasFields():
		return Errorf(CodeInvalidArgument, "a %s has %d fields", t.Kind, len(t.Fields))
	case t.Kind == KindArray && (t.Length < 1 || t.Length > MaxArrayLength):
		return Errorf(CodeInvalidArgument, "an ARRAY of %d elements: 1 to %d are allowed", t.Length, MaxArrayLength)
	case t.Kind != KindArray && t.Length != 0:
		return Errorf(CodeInvalidArgument, "a %s has no length", t.Kind)
	case depth > MaxTypeDepth && t.Kind.IsNested():
		return Errorf(CodeInvalidArgument, "types are nested more than %d deep", MaxTypeDepth)
	}
	if *n += len(t.Fields); *n > MaxNestedFields {
		return Errorf(CodeInvalidArgument, "a nested type has more than %d fields", MaxNestedFields)
	}
	names := make(map[string]struct{}, len(t.Fields))
	for _, f := range t.Fields {
		if err := validateName("field", f.Name); err != nil {
			return err
		}
		folded := strings.ToLower(f.Name)
		if _, dup := names[folded]; dup {
			return Errorf(CodeInvalidArgument, "field %q stands twice (names differ by more than case)", f.Name)
		}
		names[folded] = struct{}{}
		if f.Type.Kind == KindFixedBinary {
			// SQL knows it as a BLOB, whose values could be of any length.
			return Errorf(CodeInvalidArgument, "field %q: a %s cannot be part of a nested type, BLOB can", f.Name, f.Type)
		}
		check := f.Type.Validate
		if f.Type.Kind.IsNested() {
			check = func() error { return f.Type.validateFields(depth+1, n) }
		}
		if err := check(); err != nil {
			return Wrapf(CodeInvalidArgument, err, "field %q", f.Name)
		}
	}
	return nil
}
