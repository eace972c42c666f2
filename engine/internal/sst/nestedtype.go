package sst

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/merutable/merutable/engine/internal/base"
)

// A column of a nested type has a Parquet column for each scalar in it, its leaves, in the standard forms: groups for
// STRUCT, lists of three levels for LIST and ARRAY, key_value groups for MAP. The pages of all leaves of a column end with
// the same rows, so that they are one page for whoever asks for a row.

// levelNode is a type within a nested one with the levels that say what is there of it.
type levelNode struct {
	typ *base.Type
	// def is the definition level of a value that is not NULL; elements are there from def+1 on.
	def int16
	// rep is the repetition level of the elements, of a LIST, an ARRAY and a MAP.
	rep         int16
	first, last int // its leaves
	children    []*levelNode
}

// nestedType is what a colType of a nested type has in addition.
type nestedType struct {
	leaves []*colType
	// The root for a file in which the column is required, and for one in which it is optional.
	roots [2]*levelNode
}

func newNestedType(name string, t *base.Type) *nestedType {
	n := &nestedType{leaves: leavesOf(nil, name, t)}
	for optional := range n.roots {
		next := 0
		n.roots[optional] = newLevelNode(t, int16(optional), 0, &next)
	}
	return n
}

// root returns the levels for a file in which the column is optional or not.
func (n *nestedType) root(optional bool) *levelNode {
	if optional {
		return n.roots[1]
	}
	return n.roots[0]
}

// leavesOf appends the leaves of a type that stands at a path.
func leavesOf(leaves []*colType, path string, t *base.Type) []*colType {
	between := ""
	switch t.Kind {
	case base.KindList, base.KindArray:
		between = ".list"
	case base.KindMap:
		between = ".key_value"
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		at := path + between + "." + f.Name
		if f.Type.Kind.IsNested() {
			leaves = leavesOf(leaves, at, &f.Type)
			continue
		}
		leaf := newColType(&base.Column{Name: f.Name, Type: f.Type, FieldID: f.FieldID})
		leaf.path, leaf.leaf, leaf.bounds, leaf.bloom = at, true, false, false
		leaves = append(leaves, leaf)
	}
	return leaves
}

func newLevelNode(t *base.Type, def, rep int16, next *int) *levelNode {
	n := &levelNode{typ: t, def: def, first: *next}
	if !t.Kind.IsNested() {
		*next++
		n.last = n.first
		return n
	}
	inside := def
	if t.Kind != base.KindStruct {
		rep++
		n.rep = rep
		inside++
	}
	for i := range t.Fields {
		d := inside + 1
		if t.Kind == base.KindMap && i == 0 {
			d = inside // a key is required
		}
		n.children = append(n.children, newLevelNode(&t.Fields[i].Type, d, rep, next))
	}
	n.last = *next - 1
	return n
}

// nestedNode returns the schema of a nested type.
func nestedNode(name string, t *base.Type, repetition parquet.Repetition, fieldID int32) (schema.Node, error) {
	fields := make(schema.FieldList, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		r := parquet.Repetitions.Optional
		if t.Kind == base.KindMap && i == 0 {
			r = parquet.Repetitions.Required
		}
		var err error
		if f.Type.Kind.IsNested() {
			fields[i], err = nestedNode(f.Name, &f.Type, r, f.FieldID)
		} else {
			leaf := newColType(&base.Column{Name: f.Name, Type: f.Type, FieldID: f.FieldID})
			leaf.nullable = r == parquet.Repetitions.Optional
			fields[i], err = leaf.node()
		}
		if err != nil {
			return nil, err
		}
	}
	var logical schema.LogicalType
	repeated := ""
	switch t.Kind {
	case base.KindStruct:
		return schema.NewGroupNode(name, repetition, fields, fieldID)
	case base.KindMap:
		logical, repeated = schema.MapLogicalType{}, "key_value"
	default:
		logical, repeated = schema.NewListLogicalType(), "list"
	}
	group, err := schema.NewGroupNode(repeated, parquet.Repetitions.Repeated, fields, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(name, repetition, schema.FieldList{group}, logical, fieldID)
}

// fileNested is a nested column in a file.
type fileNested struct {
	root   *levelNode
	leaves []fileColumn
}

// nestedIn finds the leaves of a nested column in a file, nil where the file has none of it.
func (c *colType) nestedIn(fileSchema *schema.Schema, byID map[int32]int) (*fileNested, error) {
	n := &fileNested{}
	for i, leaf := range c.nested.leaves {
		ordinal, ok := byID[leaf.fieldID]
		if !ok {
			if i == 0 {
				return nil, nil
			}
			return nil, base.Errorf(base.CodeSchemaMismatch, "the file has no field %q of column %q (field id %d)", leaf.name, c.name, leaf.fieldID)
		}
		d := fileSchema.Column(ordinal)
		if i == 0 {
			n.root = c.nested.root(d.MaxDefinitionLevel() == c.nested.root(true).leafNode(0).def)
		}
		if err := leaf.matchesForm(d); err != nil {
			return nil, err
		}
		def, rep := n.root.leafLevels(i)
		if d.MaxDefinitionLevel() != def || d.MaxRepetitionLevel() != rep {
			return nil, base.Errorf(base.CodeSchemaMismatch, "field %q of column %q has levels %d and %d, not %d and %d", leaf.name, c.name,
				d.MaxDefinitionLevel(), d.MaxRepetitionLevel(), def, rep)
		}
		n.leaves = append(n.leaves, fileColumn{colType: leaf, ordinal: ordinal, maxDef: def, maxRep: rep})
	}
	return n, nil
}

// leafNode returns the node of a leaf.
func (n *levelNode) leafNode(leaf int) *levelNode {
	for len(n.children) > 0 {
		for _, c := range n.children {
			if leaf <= c.last {
				n = c
				break
			}
		}
	}
	return n
}

// leafLevels returns the largest levels of a leaf.
func (n *levelNode) leafLevels(leaf int) (def, rep int16) {
	for len(n.children) > 0 {
		rep = max(rep, n.rep)
		for _, c := range n.children {
			if leaf <= c.last {
				n = c
				break
			}
		}
	}
	return n.def, rep
}
