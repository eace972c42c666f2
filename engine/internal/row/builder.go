package row

import (
	"encoding/binary"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// Builder gathers records into Columns. It copies what it is given. It is for one goroutine at a time.
type Builder struct {
	layout  *Layout
	project []int
	out     Columns
	bytes   int
	keyVals [][]byte // storage forms of a tombstone's key columns, by schema column; nil for the others
	scratch []byte
}

// NewBuilder makes a builder of the projected columns, in that order; nil means all columns.
func NewBuilder(schema *base.Schema, projection []int) *Builder {
	b := &Builder{
		layout: NewLayout(schema), project: projectionOf(schema, projection), out: *NewColumns(schema, projection),
		keyVals: make([][]byte, len(schema.Columns)),
	}
	b.out.Seqs, b.out.Ops = []base.Seq{}, []base.Op{}
	return b
}

// Len returns how many rows were added since the last Reset.
func (b *Builder) Len() int { return b.out.N }

// Bytes returns about how many bytes these rows take, columns that are not projected included.
func (b *Builder) Bytes() int { return b.bytes }

// Columns returns the rows added, with Seqs and Ops. They are the builder's own memory: valid until the next call that
// adds rows or resets.
func (b *Builder) Columns() *Columns { return &b.out }

// Reset drops all rows and keeps the memory for the next ones.
func (b *Builder) Reset() {
	b.out.Reset()
	b.bytes = 0
}

// perRow is what the hidden columns of a row take.
const perRow = 9

// AppendRecord adds a row from its record.
func (b *Builder) AppendRecord(rec []byte, seq base.Seq, op base.Op) {
	for j, p := range b.project {
		f, col := &b.layout.fields[p], &b.out.Cols[j]
		if b.layout.IsNull(rec, p) {
			col.setNull(b.out.N)
		} else if col.Nulls != nil {
			col.Nulls = append(col.Nulls, false)
		}
		if f.size > 0 {
			col.Fixed = append(col.Fixed, rec[f.off:f.off+f.size]...)
			continue
		}
		start, end := b.layout.varRange(f, rec)
		col.Data = append(col.Data, rec[start:end]...)
		col.Offsets = append(col.Offsets, int64(len(col.Data)))
	}
	b.finish(seq, op, len(rec))
}

func (b *Builder) finish(seq base.Seq, op base.Op, size int) {
	b.out.Seqs = append(b.out.Seqs, seq)
	b.out.Ops = append(b.out.Ops, op)
	b.out.N++
	b.bytes += size + perRow
}

// setNull appends a NULL mark behind n rows.
func (col *Column) setNull(n int) {
	if col.Nulls == nil {
		col.Nulls = make([]bool, n, n+64)
	}
	col.Nulls = append(col.Nulls, true)
}

// blockRows is how many records are transposed at a time: few enough to stay in the processor's cache while the columns
// are taken out of them one after the other.
const blockRows = 256

// AppendRecords adds rows from their records, column at a time, which is faster than one by one. seqs and ops have one
// entry a record. For tombstones use the other methods.
func (b *Builder) AppendRecords(recs [][]byte, seqs []base.Seq, ops []base.Op) {
	for from := 0; from < len(recs); from += blockRows {
		b.layout.appendBlock(&b.out, b.project, recs[from:min(from+blockRows, len(recs))])
	}
	b.out.Seqs = append(b.out.Seqs, seqs[:len(recs)]...)
	b.out.Ops = append(b.out.Ops, ops[:len(recs)]...)
	for _, r := range recs {
		b.bytes += len(r) + perRow
	}
}

// AppendRange adds rows from to to-1 of src, which has the builder's columns; it copies them. Without sequence numbers
// they are 0, without operations all rows are puts.
func (b *Builder) AppendRange(src *Columns, from, to int) {
	if from >= to {
		return
	}
	seqs, ops, first := b.out.Seqs, b.out.Ops, b.out.N
	b.out.Seqs, b.out.Ops = nil, nil // below: src need not have them
	b.out.AppendRange(src, from, to)
	n := to - from
	seqs, ops = slices.Grow(seqs, n)[:first+n], slices.Grow(ops, n)[:first+n]
	if src.Seqs != nil {
		copy(seqs[first:], src.Seqs[from:to])
	} else {
		clear(seqs[first:])
	}
	if src.Ops != nil {
		copy(ops[first:], src.Ops[from:to])
	} else {
		for i := first; i < first+n; i++ {
			ops[i] = base.OpPut
		}
	}
	b.out.Seqs, b.out.Ops = seqs, ops
	for i := range src.Cols {
		b.bytes += src.Cols[i].bytes(from, to)
	}
	b.bytes += n * perRow
}

// bytes returns how many bytes the values from to to-1 take.
func (col *Column) bytes(from, to int) int {
	if col.Offsets != nil {
		return int(col.Offsets[to] - col.Offsets[from])
	}
	return (to - from) * col.Type.FixedSize()
}

// AppendColumns adds rows from their records to dst, whose columns are those of the projection; nil means all. It leaves
// the hidden columns alone: a [Builder] fills them.
func (l *Layout) AppendColumns(dst *Columns, projection []int, recs [][]byte) {
	projection = projectionOf(l.schema, projection)
	for from := 0; from < len(recs); from += blockRows {
		l.appendBlock(dst, projection, recs[from:min(from+blockRows, len(recs))])
	}
}

func (l *Layout) appendBlock(dst *Columns, project []int, recs [][]byte) {
	for j, p := range project {
		f, col := &l.fields[p], &dst.Cols[j]
		if !f.required {
			col.takeNulls(recs, p, dst.N)
		}
		if f.size == 0 {
			col.takeVariable(recs, l, f)
		} else {
			col.takeFixed(recs, f.off, f.size)
		}
	}
	dst.N += len(recs)
}

// takeNulls appends column p's NULL marks of records behind n rows.
func (col *Column) takeNulls(recs [][]byte, p, n int) {
	at, shift := p>>3, p&7
	if col.Nulls == nil {
		var any byte
		for _, r := range recs {
			any |= r[at]
		}
		if any>>shift&1 == 0 {
			return
		}
		col.Nulls = make([]bool, n, n+max(len(recs), 1024))
	}
	for _, r := range recs {
		col.Nulls = append(col.Nulls, r[at]>>shift&1 != 0)
	}
}

func (col *Column) takeFixed(recs [][]byte, off, size int) {
	at := len(col.Fixed)
	col.Fixed = double(col.Fixed, len(recs)*size)[:at+len(recs)*size]
	out := col.Fixed[at:]
	le := binary.LittleEndian
	switch size {
	case 1:
		for i, r := range recs {
			out[i] = r[off]
		}
	case 4:
		for i, r := range recs {
			le.PutUint32(out[i*4:], le.Uint32(r[off:]))
		}
	case 8:
		for i, r := range recs {
			le.PutUint64(out[i*8:], le.Uint64(r[off:]))
		}
	default:
		for i, r := range recs {
			copy(out[i*size:(i+1)*size], r[off:])
		}
	}
}

// double makes room for n more values. Doubling, unlike append, copies each value hardly more than once on the way to a
// full row group.
func double[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, max(2*cap(s), len(s)+n)), s...)
}

func (col *Column) takeVariable(recs [][]byte, l *Layout, f *field) {
	at := len(col.Offsets)
	col.Offsets = double(col.Offsets, len(recs))[:at+len(recs)]
	ends := col.Offsets[at:]
	size := 0
	for _, r := range recs {
		start, end := l.varRange(f, r)
		size += end - start
	}
	data := double(col.Data, size)
	for i, r := range recs {
		start, end := l.varRange(f, r)
		data = append(data, r[start:end]...)
		ends[i] = int64(len(data))
	}
	col.Data = data
}

// AppendTombstone adds a deleted row, of which only the key is known: the other columns are NULL, or zero or empty where
// NOT NULL. keyVals are the key's values in key order, as keyenc.Codec.Decode returns them.
func (b *Builder) AppendTombstone(keyVals []base.Value, seq base.Seq) {
	b.scratch = b.scratch[:0]
	for i, k := range b.layout.keys {
		at := len(b.scratch)
		b.scratch = keyenc.AppendValueStorage(b.scratch, b.layout.fields[k].typ, keyVals[i])
		b.keyVals[k] = b.scratch[at:]
	}
	b.appendKeyOnly(seq)
}

// AppendTombstoneKey is [Builder.AppendTombstone] from the encoded key. A key that is not one of the table's gives
// CodeCorruption and adds nothing.
func (b *Builder) AppendTombstoneKey(key []byte, seq base.Seq) error {
	rest := key
	b.scratch = b.scratch[:0]
	for _, k := range b.layout.keys {
		at := len(b.scratch)
		var err error
		if b.scratch, rest, err = keyenc.DecodeStorage(b.scratch, b.layout.fields[k].typ, rest); err != nil {
			return base.Wrapf(base.CodeCorruption, err, "key column %q at byte %d of an encoded key of %d", b.layout.fields[k].name, len(key)-len(rest), len(key))
		}
		b.keyVals[k] = b.scratch[at:]
	}
	if len(rest) > 0 {
		return base.Errorf(base.CodeCorruption, "encoded key of %d bytes: %d bytes are left behind the last column", len(key), len(rest))
	}
	b.appendKeyOnly(seq)
	return nil
}

func (b *Builder) appendKeyOnly(seq base.Seq) {
	for j, p := range b.project {
		f, col := &b.layout.fields[p], &b.out.Cols[j]
		value := b.keyVals[p]
		switch {
		case !f.required:
			col.setNull(b.out.N)
		case col.Nulls != nil:
			col.Nulls = append(col.Nulls, false)
		}
		if f.size > 0 {
			if value == nil {
				at := len(col.Fixed)
				col.Fixed = slices.Grow(col.Fixed, f.size)[:at+f.size]
				clear(col.Fixed[at:])
			} else {
				col.Fixed = append(col.Fixed, value...)
			}
			continue
		}
		if value == nil && f.required {
			value = zeroOf(&f.typ)
		}
		col.Data = append(col.Data, value...)
		col.Offsets = append(col.Offsets, int64(len(col.Data)))
	}
	b.finish(seq, base.OpDelete, len(b.scratch))
}

// Values that stand in rows of deletions, where some value must.
var (
	emptyBit   = []byte{0} // the BIT without bits
	zeroBignum = []byte{0x80, 0, 1, 0}
	nullJSON   = []byte("null") // readers of files look at the syntax
)

// zeroOf returns a value of a type of variable size: the one without content.
func zeroOf(t *base.Type) []byte {
	switch t.Kind {
	case base.KindBit:
		return emptyBit
	case base.KindBignum:
		return zeroBignum
	case base.KindJSON:
		return nullJSON
	}
	if t.Kind.IsNested() {
		return emptyPacked(t)
	}
	return nil
}
