package sst

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// levelChunk is how many levels are read at a time. An odd number: where a page has as many as were asked for, nobody
// knows without a look at the next one that it is at its end.
const levelChunk = 2039

// leafReader reads a leaf of a chunk.
type leafReader struct {
	c  *fileColumn
	cr file.ColumnChunkReader
	// Levels that were read, used up to at; rep is empty where nothing repeats.
	def, rep []int16
	at       int
	// Values that were read, in storage form, used up to value.
	vals  row.Column
	count int
	value int
	// starts is how many rows start in the levels from at on.
	starts int
	done   bool // the chunk has no more
}

// reset makes the reader stand at a row that starts a page, or at the chunk's first row.
func (l *leafReader) reset() {
	l.def, l.rep, l.at = l.def[:0], l.rep[:0], 0
	l.vals = row.Column{Type: l.c.typ, Fixed: l.vals.Fixed[:0], Data: l.vals.Data[:0], Offsets: l.vals.Offsets[:0]}
	if l.c.typ.IsVariable() {
		l.vals.Offsets = append(l.vals.Offsets, 0)
	} else {
		l.vals.Offsets = nil
	}
	l.count, l.value, l.starts, l.done = 0, 0, 0, false
}

// fill reads on until n rows are whole. With page they are known to end with a page, and nothing of the next is read.
func (l *leafReader) fill(n int, page bool, s *scratch) error {
	l.dropUsed()
	need := n
	if l.c.maxRep > 0 {
		need++ // where the next row starts, the last one ends
	}
	for !l.done && l.starts < need {
		got, values, err := l.c.decodeLeaf(l.cr, &l.vals, l.count, levelChunk, s)
		if err != nil {
			return err
		}
		l.count += values
		l.def = append(l.def, s.def[:got]...)
		for _, d := range s.def[:got] {
			if d < 0 || d > l.c.maxDef {
				return base.Errorf(base.CodeCorruption, "field %q has definition level %d of %d", l.c.name, d, l.c.maxDef)
			}
		}
		if l.c.maxRep > 0 {
			l.rep = append(l.rep, s.rep[:got]...)
			for _, r := range s.rep[:got] {
				if r == 0 {
					l.starts++
				}
			}
		} else {
			l.starts += got
		}
		if got == 0 {
			if err := l.cr.Err(); err != nil {
				return err
			}
			l.done = true
		}
		if len(l.def) > base.MaxElements+levelChunk {
			return base.Errorf(base.CodeCorruption, "field %q has more than %d levels in %d rows", l.c.name, base.MaxElements, n)
		}
		if page && got < levelChunk && l.starts >= n {
			break
		}
	}
	if l.starts < n {
		return base.Errorf(base.CodeCorruption, "field %q ends %d rows early", l.c.name, n-l.starts)
	}
	return nil
}

// dropUsed makes room.
func (l *leafReader) dropUsed() {
	l.def = append(l.def[:0], l.def[l.at:]...)
	if l.c.maxRep > 0 {
		l.rep = append(l.rep[:0], l.rep[l.at:]...)
	}
	l.at = 0
	if l.value == 0 {
		return
	}
	v := &l.vals
	if v.Offsets == nil {
		v.Fixed = append(v.Fixed[:0], v.Fixed[l.value*l.c.size:]...)
	} else {
		shift := v.Offsets[l.value]
		v.Data = append(v.Data[:0], v.Data[shift:]...)
		v.Offsets = append(v.Offsets[:0], v.Offsets[l.value:]...)
		for i := range v.Offsets {
			v.Offsets[i] -= shift
		}
	}
	l.count, l.value = l.count-l.value, 0
}

// decodeLeaf reads up to n levels of the current page and appends their values to out, which has count. The levels are
// then in the scratch.
func (c *fileColumn) decodeLeaf(cr file.ColumnChunkReader, out *row.Column, count, n int, s *scratch) (got, values int, err error) {
	s.values = 0
	got, err = c.decodeSome(cr, out, count, n, s)
	return got, s.values, err
}

// nestedReader reads a column of a nested type of one row group.
type nestedReader struct {
	c      *fileColumn
	leaves []*leafReader
	budget int // values that the row at hand may still have
}

func newNestedReader(c *fileColumn) *nestedReader {
	r := &nestedReader{c: c}
	for i := range c.inFile.leaves {
		l := &leafReader{c: &c.inFile.leaves[i]}
		l.reset()
		r.leaves = append(r.leaves, l)
	}
	return r
}

// read appends the next n rows to out, which has rows.
func (r *nestedReader) read(out *row.Column, rows, n int, page bool, s *scratch) error {
	for _, l := range r.leaves {
		if err := l.fill(n, page, s); err != nil {
			return err
		}
	}
	root := r.c.inFile.root
	for i := range n {
		if r.absent(root) {
			// Not what the table says of the column: rows that were deleted before it became NOT NULL may be NULL.
			if !r.c.optional {
				return base.Errorf(base.CodeCorruption, "column %q is NOT NULL and has a NULL", r.c.name)
			}
			if out.Nulls == nil {
				out.Nulls = make([]bool, rows+i, rows+n)
			}
			out.Nulls = append(out.Nulls, true)
			r.skip(root)
		} else {
			if out.Nulls != nil {
				out.Nulls = append(out.Nulls, false)
			}
			r.budget = base.MaxElements
			var err error
			if out.Data, err = r.append(out.Data, root); err != nil {
				return err
			}
		}
		out.Offsets = append(out.Offsets, int64(len(out.Data)))
		if err := r.endRow(); err != nil {
			return err
		}
	}
	return nil
}

// endRow checks that all leaves are at the end of a row.
func (r *nestedReader) endRow() error {
	for _, l := range r.leaves {
		l.starts--
		if l.at > len(l.def) || l.c.maxRep > 0 && l.at < len(l.rep) && l.rep[l.at] != 0 {
			return base.Errorf(base.CodeCorruption, "the fields of column %q do not agree on where a row ends", r.c.name)
		}
	}
	return nil
}

func (r *nestedReader) close() {
	for _, l := range r.leaves {
		if l.cr != nil {
			_ = l.cr.Close() // it only frees buffers
		}
	}
}

// seek makes the reader stand at a row of its row group.
func (r *nestedReader) seek(f *Reader, g int, at int64, s *scratch) error {
	starts, err := f.pageRows(g, r.c.ordinal)
	if err != nil {
		return err
	}
	i, found := slices.BinarySearch(starts, uint32(at))
	if !found {
		i--
	}
	for _, l := range r.leaves {
		own, err := f.pageRows(g, l.c.ordinal)
		if err != nil {
			return err
		}
		if _, found := slices.BinarySearch(own, starts[i]); !found {
			return base.Errorf(base.CodeCorruption, "column %q: the pages of field %q start with other rows", r.c.name, l.c.name)
		}
		if err := l.cr.SeekToRow(int64(starts[i])); err != nil {
			return err
		}
		l.reset()
	}
	return r.skipRows(int(at-int64(starts[i])), s)
}

// skipRows passes over rows.
func (r *nestedReader) skipRows(n int, s *scratch) error {
	var passed row.Column
	for n > 0 {
		step := min(n, levelChunk)
		passed = row.Column{Data: passed.Data[:0], Offsets: passed.Offsets[:0]}
		if err := r.read(&passed, 0, step, false, s); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// absent reports whether the next value of a node is not there. Past the end it is.
func (r *nestedReader) absent(n *levelNode) bool {
	l := r.leaves[n.first]
	return l.at >= len(l.def) || l.def[l.at] < n.def
}

// skip passes over one level of all leaves of a node.
func (r *nestedReader) skip(n *levelNode) {
	for _, l := range r.leaves[n.first : n.last+1] {
		l.at++
	}
}

// append appends the next value of a node, which is there, in packed form (see package row).
func (r *nestedReader) append(dst []byte, n *levelNode) ([]byte, error) {
	switch n.typ.Kind {
	case base.KindStruct:
		marks := len(dst)
		dst = append(dst, make([]byte, (len(n.children)+7)/8)...)
		for i, c := range n.children {
			var err error
			if dst, err = r.field(dst, c, marks, i); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case base.KindList, base.KindArray, base.KindMap:
		return r.elements(dst, n)
	}
	l := r.leaves[n.first]
	if l.at >= len(l.def) || l.value >= l.count || l.def[l.at] != n.def {
		return dst, base.Errorf(base.CodeCorruption, "field %q has fewer values than its levels say", l.c.name)
	}
	v := l.vals.Storage(l.value)
	l.at++
	l.value++
	if l.vals.Offsets != nil {
		dst = binary.AppendUvarint(dst, uint64(len(v)))
	}
	return append(dst, v...), nil
}

// field appends the next value of a node, or sets its NULL mark.
func (r *nestedReader) field(dst []byte, n *levelNode, marks, i int) ([]byte, error) {
	if r.absent(n) {
		dst[marks+i/8] |= 1 << (i % 8)
		r.skip(n)
		return dst, nil
	}
	return r.append(dst, n)
}

func (r *nestedReader) elements(dst []byte, n *levelNode) ([]byte, error) {
	count := r.count(n)
	if r.budget -= count; r.budget < 0 {
		return dst, base.Errorf(base.CodeCorruption, "a value of column %q is made of more than %d values", r.c.name, base.MaxElements)
	}
	if n.typ.Kind == base.KindArray {
		if count != int(n.typ.Length) {
			return dst, base.Errorf(base.CodeCorruption, "column %q has an array of %d elements, not %d", r.c.name, count, n.typ.Length)
		}
	} else {
		dst = binary.AppendUvarint(dst, uint64(count))
	}
	if count == 0 {
		r.skip(n)
		return dst, nil
	}
	marks := len(dst)
	dst = slices.Grow(dst, (count+7)/8)[:marks+(count+7)/8]
	clear(dst[marks:])
	var err error
	for i := 0; i < count && err == nil; i++ {
		c := n.children[0]
		if n.typ.Kind == base.KindMap {
			if r.absent(c) {
				return dst, base.Errorf(base.CodeCorruption, "column %q has a map with a NULL key", r.c.name)
			}
			dst, err = r.append(dst, c)
			c = n.children[1]
		}
		if err == nil {
			dst, err = r.field(dst, c, marks, i)
		}
	}
	return dst, err
}

// count returns how many elements the next value of a node has.
func (r *nestedReader) count(n *levelNode) int {
	l := r.leaves[n.first]
	if l.def[l.at] <= n.def {
		return 0
	}
	count := 1
	for _, rep := range l.rep[l.at+1:] {
		if rep < n.rep {
			break
		}
		if rep == n.rep {
			count++
		}
	}
	return count
}
