package sst

import (
	"bytes"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/row"
)

// pageRows returns the first rows, in the row group, of the data pages of a file column.
func (r *Reader) pageRows(g, ordinal int) ([]uint32, error) {
	slot := &r.groups[g].pages[ordinal]
	if p := slot.Load(); p != nil {
		return *p, nil
	}
	lib, err := r.library()
	if err != nil {
		return nil, err
	}
	idx, err := lib.point.GetPageIndexReader().RowGroup(g)
	if err != nil {
		return nil, err
	}
	if idx == nil {
		return nil, base.Errorf(base.CodeCorruption, "row group %d has no page index", g)
	}
	oi, err := idx.GetOffsetIndex(ordinal)
	if err != nil {
		return nil, err
	}
	if oi == nil {
		return nil, base.Errorf(base.CodeCorruption, "row group %d, column %d: no offset index", g, ordinal)
	}
	locations := oi.GetPageLocations()
	rows := make([]uint32, len(locations))
	last := int64(-1)
	for i, l := range locations {
		if l.FirstRowIndex >= r.groups[g].rows || i == 0 && l.FirstRowIndex != 0 || l.FirstRowIndex <= last {
			return nil, base.Errorf(base.CodeCorruption, "row group %d, column %d: page %d starts with row %d of %d", g, ordinal, i,
				l.FirstRowIndex, r.groups[g].rows)
		}
		last = l.FirstRowIndex
		rows[i] = uint32(last)
	}
	if len(rows) == 0 {
		return nil, base.Errorf(base.CodeCorruption, "row group %d, column %d: the offset index is empty", g, ordinal)
	}
	slot.Store(&rows)
	return rows, nil
}

// page is a decoded data page: immutable once made.
type page struct {
	first int64 // row in the file
	rows  int
	col   row.Column
}

func (p *page) bytes() int {
	return len(p.col.Fixed) + len(p.col.Data) + 8*len(p.col.Offsets) + len(p.col.Nulls)
}

// page returns the decoded page of a column that holds a row.
func (r *Reader) page(column int, pos int64) (*page, error) {
	p, _, err := r.cachedPage(column, pos)
	return p, err
}

// cachedPage is page; cached says that it took no reading.
func (r *Reader) cachedPage(column int, pos int64) (p *page, cached bool, err error) {
	c := &r.columns[column]
	g := r.group(pos)
	group := &r.groups[g]
	starts, err := r.pageRows(g, c.ordinal)
	if err != nil {
		return nil, false, err
	}
	i := sort.Search(len(starts), func(i int) bool { return int64(starts[i]) > pos-group.first }) - 1
	start, end := int64(starts[i]), group.rows
	key := cacheKey{reader: r.id, kind: cachedPage, as: c.as, column: uint32(c.ordinal), at: uint64(group.first + start)}
	if v, ok := r.cache.get(key); ok {
		return v.(*page), true, nil
	}
	if i+1 < len(starts) {
		end = int64(starts[i+1])
	}
	if p, err = r.readPage(c, g, start, end); err == nil {
		r.cache.put(key, p, p.bytes())
	}
	return p, false, err
}

// readPage decodes the page of a column that holds the rows of a row group from start to end-1.
func (r *Reader) readPage(c *fileColumn, g int, start, end int64) (p *page, err error) {
	p = &page{first: r.groups[g].first + start, rows: int(end - start), col: newColumn(c.typ)}
	if c.inFile != nil {
		return p, r.readNestedPage(c, g, start, p)
	}
	lib, err := r.library()
	if err != nil {
		return nil, err
	}
	waiting := &lib.groups[g].waiting[c.ordinal]
	cr, ok := waiting.Get().(file.ColumnChunkReader)
	if !ok {
		if cr, err = lib.groups[g].Column(c.ordinal); err != nil {
			return nil, err
		}
	}
	if err := cr.SeekToRow(start); err != nil {
		return nil, err
	}
	s := r.scratch.Get().(*scratch)
	// One row more than the page index says is asked for: a page of another size is damage.
	got, err := c.decodeSome(cr, &p.col, 0, p.rows+1, s)
	r.scratch.Put(s)
	if err == nil && got != p.rows {
		if err = cr.Err(); err == nil {
			err = base.Errorf(base.CodeCorruption, "column %q: the page of row %d has not %d rows", c.name, p.first, p.rows)
		}
	}
	if err != nil {
		return nil, err // the reader is in an unknown state: it does not go back
	}
	waiting.Put(cr)
	r.stats.Pages.Add(1)
	return p, nil
}

// readNestedPage decodes the page of each leaf and puts them together.
func (r *Reader) readNestedPage(c *fileColumn, g int, start int64, p *page) error {
	lib, err := r.library()
	if err != nil {
		return err
	}
	nr := newNestedReader(c)
	for _, l := range nr.leaves {
		starts, err := r.pageRows(g, l.c.ordinal)
		if err != nil {
			return err
		}
		i, found := slices.BinarySearch(starts, uint32(start))
		end := start + int64(p.rows)
		if !found || i+1 < len(starts) && int64(starts[i+1]) != end || i+1 == len(starts) && end != r.groups[g].rows {
			return base.Errorf(base.CodeCorruption, "column %q: the pages of field %q end with other rows", c.name, l.c.name)
		}
		var ok bool
		if l.cr, ok = lib.groups[g].waiting[l.c.ordinal].Get().(file.ColumnChunkReader); !ok {
			if l.cr, err = lib.groups[g].Column(l.c.ordinal); err != nil {
				return err
			}
		}
		if err := l.cr.SeekToRow(start); err != nil {
			return err
		}
	}
	s := r.scratch.Get().(*scratch)
	err = nr.read(&p.col, 0, p.rows, true, s)
	r.scratch.Put(s)
	if err != nil {
		return err
	}
	for _, l := range nr.leaves {
		lib.groups[g].waiting[l.c.ordinal].Put(l.cr)
		r.stats.Pages.Add(1)
	}
	return nil
}

func newColumn(t base.Type) row.Column {
	c := row.Column{Type: t}
	if t.IsVariable() {
		c.Offsets = []int64{0}
	}
	return c
}

// keyBlock gives the encoded keys of a block of rows, of which it holds the key columns.
type keyBlock struct {
	first int64
	cols  row.Columns
	which []int
	buf   []byte // the key made last
	// Space for cols and buf, for most keys.
	colSpace [2]row.Column
	keySpace [32]byte
}

// key encodes the key of row i of the block; valid until the next call.
func (b *keyBlock) key(i int) []byte {
	b.buf = b.cols.AppendKey(b.buf[:0], b.which, i)
	return b.buf
}

// seek returns the first row of the block, counted from its start, at or above from, whose key is not below key, and
// whether it is the key.
func (b *keyBlock) seek(key []byte, from int) (i int, exact bool) {
	n := b.cols.N
	// Double the step from where the last key was: sorted keys are near each other.
	step, low := 1, from
	for low+step < n && bytes.Compare(b.key(low+step), key) < 0 {
		low += step
		step *= 2
	}
	return b.search(key, low, min(n, low+step+1))
}

// search is seek among the rows from low to high-1, of which it returns high where all are below the key.
func (b *keyBlock) search(key []byte, low, high int) (i int, exact bool) {
	i = low + sort.Search(high-low, func(j int) bool { return bytes.Compare(b.key(low+j), key) >= 0 })
	return i, i < b.cols.N && bytes.Equal(b.key(i), key)
}

// block returns the keys of a block of the key index.
func (r *Reader) block(b int) (*keyBlock, error) {
	first, end := r.index.rows[b], r.index.rows[b+1]
	out := &keyBlock{first: first, cols: row.Columns{N: int(end - first)}, which: r.keyPlaces}
	out.buf, out.cols.Cols = out.keySpace[:0], out.colSpace[:0]
	for _, k := range r.keyCols {
		col, err := r.rowsOf(k, first, end)
		if err != nil {
			return nil, err
		}
		out.cols.Cols = append(out.cols.Cols, col)
	}
	if !bytes.Equal(out.key(0), r.index.key(b)) {
		return nil, base.Errorf(base.CodeCorruption, "row %d has not the key that the key index says", first)
	}
	return out, nil
}

// rowsOf returns rows from first to end-1 of a column; in one page, as for the blocks of key columns, without a copy.
func (r *Reader) rowsOf(column int, first, end int64) (row.Column, error) {
	p, err := r.page(column, first)
	if err != nil {
		return row.Column{}, err
	}
	if p.first == first && int64(p.rows) >= end-first {
		return p.col, nil
	}
	out := row.Columns{Cols: []row.Column{newColumn(r.columns[column].typ)}}
	for at := first; at < end; {
		if p, err = r.page(column, at); err != nil {
			return row.Column{}, err
		}
		to := min(end, p.first+int64(p.rows))
		out.AppendRange(&row.Columns{N: p.rows, Cols: []row.Column{p.col}}, int(at-p.first), int(to-p.first))
		at = to
	}
	return out.Cols[0], nil
}

// Find returns the position of the row with the key.
func (r *Reader) Find(key []byte) (pos int64, found bool, err error) {
	err = guard(r.path, "finding a key", func() error {
		b := r.index.find(key)
		if b < 0 {
			return nil
		}
		// Without a cache the filter would be read for each key, which takes longer than the page.
		var held filters
		if r.cache.enabled() {
			may, err := r.mayContain(b, key, &held)
			if err != nil || !may {
				return err
			}
		}
		block, err := r.block(b)
		if err != nil {
			return err
		}
		i, exact := block.search(key, 0, block.cols.N)
		pos, found = block.first+int64(i), exact
		r.countFound(&held, found)
		return nil
	})
	if err != nil || !found {
		return 0, false, err
	}
	return pos, true, nil
}

// FindMany finds many keys in one walk over the file. keys yields them in ascending order, each valid until the next
// call; hit is called for each one that the file has, before the next one is asked for, with its number in that order and
// its position. An error of hit ends the walk and is returned.
func (r *Reader) FindMany(keys func() ([]byte, bool), hit func(i int, pos int64) error) error {
	var hitErr error
	err := guard(r.path, "finding keys", func() error {
		b, at := -1, 0
		var block *keyBlock
		var held filters
		for i := 0; ; i++ {
			key, ok := keys()
			if !ok {
				return nil
			}
			if b < 0 || b+1 < r.index.blocks() && bytes.Compare(key, r.index.key(b+1)) >= 0 || bytes.Compare(key, r.index.last) > 0 {
				if b = r.index.find(key); b < 0 {
					continue
				}
				block, at = nil, 0
			}
			var exact, asked bool
			if block == nil {
				asked = true
				may, err := r.mayContain(b, key, &held)
				if err != nil {
					return err
				}
				if !may {
					continue
				}
				if block, err = r.block(b); err != nil {
					return err
				}
			}
			at, exact = block.seek(key, at)
			if asked {
				r.countFound(&held, exact)
			}
			if exact {
				if hitErr = hit(i, block.first+int64(at)); hitErr != nil {
					return nil
				}
			}
		}
	})
	if hitErr != nil {
		return hitErr
	}
	return err
}

// filters holds the bloom filters of the row group asked last.
type filters struct {
	group int // number plus one
	byKey []metadata.BloomFilter
	space [2]metadata.BloomFilter // of byKey, for most keys
	any   bool                    // some key column has a filter
}

// countFound counts what became of a key that the filters let pass.
func (r *Reader) countFound(held *filters, found bool) {
	if held.any && !found {
		r.stats.FalsePositives.Add(1)
	}
}

// mayContain asks the bloom filters of the key columns whether the row group of a block may hold the key.
func (r *Reader) mayContain(block int, key []byte, held *filters) (bool, error) {
	if g := r.group(r.index.rows[block]); held.group != g+1 {
		held.group, held.byKey, held.any = g+1, held.space[:0], false
		for _, k := range r.keyCols {
			bf, err := r.bloom(g, &r.columns[k])
			if err != nil {
				return false, err
			}
			held.byKey = append(held.byKey, bf)
			held.any = held.any || bf != nil
		}
	}
	if !held.any {
		return true, nil
	}
	r.stats.Probes.Add(1)
	var storage, value [64]byte
	rest := key
	for i, k := range r.keyCols {
		c, bf := &r.columns[k], held.byKey[i]
		var v []byte
		var err error
		if v, rest, err = keyenc.DecodeStorage(storage[:0], c.typ, rest); err != nil {
			return false, base.Wrapf(base.CodeInvalidArgument, err, "part %d of the key", i)
		}
		if bf == nil {
			continue
		}
		if c.form == formLabel {
			v = c.labels[cast[uint32](v)[0]]
		} else if c.size > 0 {
			v = c.appendPage(value[:0], v)
		}
		if !bf.CheckHash(bf.Hasher().Sum64(v)) {
			r.stats.Negatives.Add(1)
			return false, nil
		}
	}
	return true, nil
}

// bloom returns the filter of a column of a row group, nil where it has none.
func (r *Reader) bloom(g int, c *fileColumn) (metadata.BloomFilter, error) {
	if !c.bloom {
		return nil, nil
	}
	key := cacheKey{reader: r.id, kind: cachedBloom, column: uint32(c.ordinal), at: uint64(g)}
	if v, ok := r.cache.get(key); ok {
		return v.(metadata.BloomFilter), nil
	}
	lib, err := r.library()
	if err != nil {
		return nil, err
	}
	rg, err := lib.blooms.RowGroup(g)
	if err != nil {
		return nil, err
	}
	bf, err := rg.GetColumnBloomFilter(c.ordinal)
	if err != nil || bf == nil {
		return nil, err
	}
	r.cache.put(key, bf, int(bf.Size()))
	return bf, nil
}

// ReadRow returns one row: the projected columns in that order, nil for all. The hidden columns are not read: see
// ReadVersion.
func (r *Reader) ReadRow(pos int64, projection []int) (*row.Columns, error) {
	if pos < 0 || pos >= r.rows {
		return nil, base.Errorf(base.CodeInvalidArgument, "%s: row %d of %d", r.path, pos, r.rows)
	}
	if err := r.checkProjection(projection); err != nil {
		return nil, err
	}
	out := row.NewColumns(r.schema, projection)
	err := guard(r.path, "reading a row", func() error {
		for i := range out.Cols {
			column := i
			if projection != nil {
				column = projection[i]
			}
			if err := r.appendValue(&out.Cols[i], column, pos); err != nil {
				return base.Wrapf(codeOr(err, base.CodeCorruption), err, "row %d, column %q", pos, r.columns[column].name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.N = 1
	return out, nil
}

func (r *Reader) checkProjection(projection []int) error {
	for _, c := range projection {
		if c < 0 || c >= len(r.schema.Columns) {
			return base.Errorf(base.CodeInvalidArgument, "%s: column %d is not in 0..%d", r.path, c, len(r.schema.Columns)-1)
		}
	}
	return nil
}

func (r *Reader) appendValue(out *row.Column, column int, pos int64) error {
	c := &r.columns[column]
	if c.ordinal < 0 {
		return c.fill(out, 0, 1)
	}
	p, err := r.page(column, pos)
	if err != nil {
		return err
	}
	i := int(pos - p.first)
	if p.col.IsNull(i) {
		out.Nulls = []bool{true}
	}
	v := p.col.Storage(i)
	if c.size > 0 {
		out.Fixed = append(out.Fixed, v...)
		return nil
	}
	out.Data = append(out.Data, v...)
	out.Offsets = append(out.Offsets, int64(len(out.Data)))
	return nil
}

// ReadVersion returns the sequence number and the operation of a row.
func (r *Reader) ReadVersion(pos int64) (seq base.Seq, op base.Op, err error) {
	if pos < 0 || pos >= r.rows {
		return 0, 0, base.Errorf(base.CodeInvalidArgument, "%s: row %d of %d", r.path, pos, r.rows)
	}
	err = guard(r.path, "reading a row", func() error {
		p, err := r.page(len(r.schema.Columns), pos)
		if err != nil {
			return err
		}
		seq = cast[base.Seq](p.col.Fixed)[pos-p.first]
		if p, err = r.page(len(r.schema.Columns)+1, pos); err != nil {
			return err
		}
		op, err = toOp(cast[int32](p.col.Fixed)[pos-p.first])
		return err
	})
	return seq, op, err
}

func toOp(v int32) (base.Op, error) {
	if v != int32(base.OpPut) && v != int32(base.OpDelete) {
		return 0, base.Errorf(base.CodeCorruption, "column %q holds %d", base.OpColumn, v)
	}
	return base.Op(v), nil
}
