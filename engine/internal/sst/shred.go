package sst

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// leafValues is a leaf of the rows of a row group: its levels, and the values that are there.
type leafValues struct {
	def, rep []int16 // rep is empty where nothing repeats
	col      row.Column
	values   int
	repeats  bool
	maxDef   int16
	pages    []leafPage
}

// leafPage is where a page ends.
type leafPage struct{ levels, values int }

// shredder takes columns of nested types apart.
type shredder struct {
	leaves []leafValues
	rest   []byte // of the value at hand
}

// shred takes apart rows of a column, of which each entry of ends ends a page.
func (s *shredder) shred(t *colType, col *row.Column, ends []int) error {
	root := t.nested.root(t.nullable)
	s.reset(t, root)
	from := 0
	for _, to := range ends {
		for i := from; i < to; i++ {
			if t.nullable && col.IsNull(i) {
				s.absent(root, root.def-1, 0)
				continue
			}
			s.rest = col.Storage(i)
			if err := s.value(root, 0); err != nil {
				return base.Wrapf(base.CodeCorruption, err, "row %d of the row group", i)
			}
		}
		for i := range s.leaves {
			l := &s.leaves[i]
			l.pages = append(l.pages, leafPage{levels: len(l.def), values: l.values})
		}
		from = to
	}
	return nil
}

func (s *shredder) reset(t *colType, root *levelNode) {
	for len(s.leaves) < len(t.nested.leaves) {
		s.leaves = append(s.leaves, leafValues{})
	}
	s.leaves = s.leaves[:len(t.nested.leaves)]
	for i := range s.leaves {
		l, typ := &s.leaves[i], t.nested.leaves[i].typ
		def, rep := root.leafLevels(i)
		*l = leafValues{
			def: l.def[:0], rep: l.rep[:0], pages: l.pages[:0], repeats: rep > 0, maxDef: def,
			col: row.Column{Type: typ, Fixed: l.col.Fixed[:0], Data: l.col.Data[:0]},
		}
		if typ.IsVariable() {
			l.col.Offsets = []int64{0}
		}
	}
}

func (l *leafValues) level(def, rep int16) {
	l.def = append(l.def, def)
	if l.repeats {
		l.rep = append(l.rep, rep)
	}
}

// absent notes, for all leaves of a node, that there is no value of it.
func (s *shredder) absent(n *levelNode, def, rep int16) {
	for i := n.first; i <= n.last; i++ {
		s.leaves[i].level(def, rep)
	}
}

var errPacked = base.Errorf(base.CodeCorruption, "a nested value ends early")

func (s *shredder) take(n int) ([]byte, error) {
	if n < 0 || n > len(s.rest) {
		return nil, errPacked
	}
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b, nil
}

func (s *shredder) length() (int, error) {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 || v > base.MaxValueBytes*8 {
		return 0, errPacked
	}
	s.rest = s.rest[n:]
	return int(v), nil
}

// value takes one value in packed form (see package row), which is not NULL.
func (s *shredder) value(n *levelNode, rep int16) (err error) {
	switch n.typ.Kind {
	case base.KindStruct:
		return s.fields(n, rep)
	case base.KindList, base.KindArray, base.KindMap:
		return s.elements(n, rep)
	}
	l := &s.leaves[n.first]
	size := n.typ.FixedSize()
	if size == 0 {
		if size, err = s.length(); err != nil {
			return err
		}
	}
	b, err := s.take(size)
	if err != nil {
		return err
	}
	l.level(n.def, rep)
	l.values++
	if l.col.Offsets == nil {
		l.col.Fixed = append(l.col.Fixed, b...)
		return nil
	}
	l.col.Data = append(l.col.Data, b...)
	l.col.Offsets = append(l.col.Offsets, int64(len(l.col.Data)))
	return nil
}

func (s *shredder) fields(n *levelNode, rep int16) error {
	nulls, err := s.take((len(n.children) + 7) / 8)
	for i := 0; i < len(n.children) && err == nil; i++ {
		err = s.field(n.children[i], rep, nulls[i/8]>>(i%8)&1 != 0)
	}
	return err
}

func (s *shredder) field(n *levelNode, rep int16, null bool) error {
	if null {
		s.absent(n, n.def-1, rep)
		return nil
	}
	return s.value(n, rep)
}

func (s *shredder) elements(n *levelNode, rep int16) (err error) {
	count := int(n.typ.Length)
	if n.typ.Kind != base.KindArray {
		if count, err = s.length(); err != nil {
			return err
		}
	}
	nulls, err := s.take((count + 7) / 8)
	if err == nil && count == 0 {
		s.absent(n, n.def, rep)
	}
	for i := 0; i < count && err == nil; i++ {
		c := n.children[0]
		if n.typ.Kind == base.KindMap {
			err = s.value(c, rep)
			c = n.children[1]
		}
		if err == nil {
			err = s.field(c, rep, nulls[i/8]>>(i%8)&1 != 0)
		}
		rep = n.rep
	}
	return err
}

// pageEnds returns the rows behind the pages of a column.
func pageEnds(t *colType, col *row.Column, n int, bytes int) []int {
	var ends []int
	for from := 0; from < n; {
		from = pageEnd(t, col, from, n, bytes)
		ends = append(ends, from)
	}
	return ends
}

// writeLeaf writes the pages of a leaf.
func (p *pageWriter) writeLeaf(cw file.ColumnChunkWriter, t *colType, l *leafValues) error {
	w, ok := cw.(chunkWriter)
	if !ok {
		return base.Errorf(base.CodeParquet, "unknown column writer %T", cw)
	}
	from := leafPage{}
	for _, to := range l.pages {
		lv := levels{def: l.def[from.levels:to.levels]}
		if l.repeats {
			lv.rep = l.rep[from.levels:to.levels]
		}
		if err := p.writeValues(cw, t, &l.col, from.values, to.values, lv); err != nil {
			return err
		}
		if err := w.FlushCurrentPage(); err != nil {
			return err
		}
		from = to
	}
	return nil
}
