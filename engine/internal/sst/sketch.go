package sst

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/axiomhq/hyperloglog"
	"github.com/zeebo/xxh3"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// A file has a HyperLogLog sketch of each of its columns, from which planners know about how many distinct values a table
// has in it: sketches of several files can be united, counts cannot. They stand in a free entry of the footer, in base64 as
// some readers want text there: of each column its field id, the length of its sketch, both as varints, and the sketch in the
// library's form. Values are hashed by XXH3 in storage form, NULLs are left out.
const (
	sketchesKey = "merutable.sketches"
	// sketchPrecision is for 512 registers of a byte: an error of 5 %.
	sketchPrecision = 9
	// maxSketches bounds what a footer holds of them to 22 KB: the first columns of a table have some.
	maxSketches = 32
	// minSketchRows: files of fewer rows are told apart from the others by their number of rows alone.
	minSketchRows = 1024
)

// Sketch counts distinct values, about.
type Sketch = hyperloglog.Sketch

// NewSketch returns an empty one, to be united with those of files.
func NewSketch() *Sketch {
	s, err := hyperloglog.NewSketch(sketchPrecision, true)
	if err != nil { // only for another precision
		panic(err)
	}
	return s
}

// sketched reports whether a column gets a sketch: not where its type says as much, and not the only column of a key.
func sketched(s *base.Schema, column int) bool {
	c := &s.Columns[column]
	switch c.Type.Kind {
	case base.KindBoolean, base.KindEnum, base.KindStruct, base.KindList, base.KindArray, base.KindMap:
		return false
	}
	return len(s.PrimaryKey) > 1 || !s.IsKey(column)
}

// newSketches returns the sketches of a file, nil for columns that get none.
func newSketches(s *base.Schema) []*Sketch {
	out := make([]*Sketch, len(s.Columns))
	n := 0
	for i := range out {
		if n < maxSketches && sketched(s, i) {
			out[i] = NewSketch()
			n++
		}
	}
	return out
}

// addToSketch adds the values of a column's first n rows.
func addToSketch(s *Sketch, col *row.Column, n int) {
	var last uint64
	add := func(v []byte, i int) {
		if h := xxh3.Hash(v); (h != last || i == 0) && !col.IsNull(i) {
			s.InsertHash(h)
			last = h
		}
	}
	if col.Offsets != nil {
		for i := range n {
			add(col.Data[col.Offsets[i]:col.Offsets[i+1]], i)
		}
		return
	}
	size := col.Type.FixedSize()
	for i := range n {
		add(col.Fixed[i*size:(i+1)*size], i)
	}
}

// encodeSketches returns the entry of the footer.
func encodeSketches(schema *base.Schema, sketches []*Sketch) (string, error) {
	var out []byte
	for i, s := range sketches {
		if s == nil {
			continue
		}
		data, err := s.MarshalBinary()
		if err != nil {
			return "", base.Wrapf(base.CodeParquet, err, "sketch of column %q", schema.Columns[i].Name)
		}
		out = binary.AppendUvarint(out, uint64(uint32(schema.Columns[i].FieldID)))
		out = binary.AppendUvarint(out, uint64(len(data)))
		out = append(out, data...)
	}
	return base64.StdEncoding.EncodeToString(out), nil
}

// Sketch returns what the file has of a column of the table; nil where it has none, as small files do.
func (r *Reader) Sketch(column int) (s *Sketch, err error) {
	c := &r.columns[column]
	if c.colType == nil || c.stored != nil || c.ordinal < 0 { // another type has other bytes
		return nil, nil
	}
	err = guard(r.path, "reading sketches", func() error {
		lib, err := r.library()
		if err != nil {
			return err
		}
		stored := lib.meta.KeyValueMetadata().FindValue(sketchesKey)
		if stored == nil {
			return nil
		}
		s, err = findSketch(*stored, r.schema.Columns[column].FieldID)
		return err
	})
	return s, err
}

func findSketch(stored string, fieldID int32) (*Sketch, error) {
	data, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "the footer's sketches")
	}
	for len(data) > 0 {
		id, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, base.Errorf(base.CodeCorruption, "the footer's sketches are cut off")
		}
		length, m := binary.Uvarint(data[n:])
		if m <= 0 || length > uint64(len(data)-n-m) {
			return nil, base.Errorf(base.CodeCorruption, "the footer's sketches are cut off")
		}
		data = data[n+m:]
		if id == uint64(uint32(fieldID)) {
			s := NewSketch()
			if err := s.UnmarshalBinary(data[:length]); err != nil {
				return nil, base.Wrapf(base.CodeCorruption, err, "the footer's sketch of field %d", id)
			}
			return s, nil
		}
		data = data[length:]
	}
	return nil, nil
}
