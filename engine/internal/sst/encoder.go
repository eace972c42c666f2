package sst

import (
	"bufio"
	"encoding/json"
	"hash/crc32"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// encoder writes row groups and the footer of one file.
type encoder struct {
	path  string
	o     WriterOptions
	sink  countingWriter
	types []*colType // the table's columns, then the hidden ones
	nan   []bool     // by column of the table: a NaN was seen in some row group
	isKey []bool
	// sketches are of the columns of the table; nil for those that get none.
	sketches []*Sketch
	rows     int
	plans    []plan // of the row group at hand, by column of the table
	// Of columns of nested types, what the row group at hand has of their leaves, and their plans.
	shredded  []shredder
	leafPlans [][]plan
	// shared are paths that two columns have, as the field a of s and the column "s.a": the library tells columns apart
	// by their path alone, so these get no choices of their own.
	shared map[string]bool
	props  *parquet.WriterProperties
	pq     *file.Writer
	pages  pageWriter
	sums   checksums
	// blooms is the bytes of the bloom filters, which stand in the tail.
	blooms int64
}

// countingWriter counts what is written and sums it up. Once hold is set it keeps what is written: the tail of the
// file, which gets its checksum before it goes out.
type countingWriter struct {
	w    *bufio.Writer
	n    int64
	crc  uint32 // CRC-32C since the last row group's end
	hold bool
	tail []byte
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if c.hold {
		c.tail = append(c.tail, p...)
		c.n += int64(len(p))
		return len(p), nil
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.crc = crc32.Update(c.crc, castagnoli, p[:n])
	return n, err
}

// init starts a file. Nothing is written before the first row group.
func (w *encoder) init(f vfs.File) {
	w.sink.w = bufio.NewWriterSize(f, 256<<10)
	n := len(w.o.Schema.Columns)
	w.types = columnTypes(w.o.Schema)
	w.nan, w.isKey, w.plans = make([]bool, n), make([]bool, n), make([]plan, n)
	w.shredded, w.leafPlans = make([]shredder, n), make([][]plan, n)
	w.shared = sharedPaths(w.types)
	w.sketches = newSketches(w.o.Schema)
	for i := range w.isKey {
		w.isKey[i] = w.o.Schema.IsKey(i)
	}
}

// sharedPaths returns the paths that more than one leaf has.
func sharedPaths(types []*colType) map[string]bool {
	seen, shared := map[string]bool{}, map[string]bool{}
	for _, t := range types {
		leaves := []*colType{t}
		if t.nested != nil {
			leaves = t.nested.leaves
		}
		for _, l := range leaves {
			shared[l.path] = shared[l.path] || seen[l.path]
			seen[l.path] = true
		}
	}
	return shared
}

// size returns what the row groups written so far take in the file, with their part of the tail as far as that is
// large.
func (w *encoder) size() int64 { return w.sink.n + w.blooms }

// nanColumns returns the columns in which a NaN was seen.
func (w *encoder) nanColumns() []int {
	var out []int
	for i, seen := range w.nan {
		if seen {
			out = append(out, i)
		}
	}
	return out
}

// rowGroup writes the rows gathered. Every row group gets dictionaries, encodings and bloom filters by its own rows:
// those of a compaction's output may have nothing in common.
func (w *encoder) rowGroup(g *group) error {
	cols := g.builder.Columns()
	return guardWrite(w.path, func() error {
		for i := range cols.Cols {
			var err error
			if w.types[i].nested != nil {
				if err = w.shred(i, &cols.Cols[i], cols.N); err != nil {
					return base.Wrapf(codeOr(err, base.CodeParquet), err, "column %q", w.types[i].name)
				}
				continue
			}
			if w.plans[i], err = planColumn(w.types[i], &cols.Cols[i], cols.N, w.isKey[i], w.o.codec()); err != nil {
				return err
			}
			if w.sketches[i] != nil {
				addToSketch(w.sketches[i], &cols.Cols[i], cols.N)
			}
		}
		w.rows += cols.N
		props := parquet.NewWriterProperties(w.properties()...)
		if w.pq == nil {
			w.props = props
			if err := w.open(); err != nil {
				return err
			}
		}
		*w.props = *props // the library looks each row group's up here
		return w.write(g, cols)
	})
}

// shred takes a column of a nested type apart and plans its leaves.
func (w *encoder) shred(column int, col *row.Column, n int) error {
	t, s := w.types[column], &w.shredded[column]
	if err := s.shred(t, col, pageEnds(t, col, n, w.o.PageBytes)); err != nil {
		return err
	}
	w.leafPlans[column] = w.leafPlans[column][:0]
	for i := range s.leaves {
		l := &s.leaves[i]
		p, err := planColumn(t.nested.leaves[i], &l.col, l.values, false, w.o.codec())
		if err != nil {
			return err
		}
		w.leafPlans[column] = append(w.leafPlans[column], p)
	}
	return nil
}

// properties says how a row group is written.
func (w *encoder) properties() []parquet.WriterProperty {
	props := []parquet.WriterProperty{
		parquet.WithCreatedBy("merutable"), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithCompression(w.o.codec()), parquet.WithAllocator(memory.DefaultAllocator),
		// Pages end where pageWriter says, not by the library's own count of bytes.
		parquet.WithDataPageSize(1 << 40), parquet.WithBatchSize(1 << 30),
		parquet.WithDictionaryDefault(false), parquet.WithDictionaryPageSizeLimit(maxDictionaryBytes),
		parquet.WithPageIndexEnabled(true), parquet.WithStats(true), parquet.WithMaxStatsSize(maxBoundBytes),
		parquet.WithBloomFilterFPP(bloomFPP), parquet.WithMaxBloomFilterBytes(maxBloomBytes),
	}
	for i, t := range w.types {
		if t.nested != nil {
			props = append(props, w.leafProperties(i)...)
			continue
		}
		if !t.bounds || w.shared[t.path] {
			props = append(props, parquet.WithStatsFor(t.name, false))
		}
		if w.shared[t.path] {
			continue
		}
		if i < len(w.plans) {
			p := &w.plans[i]
			if p.noStatistics {
				props = append(props, parquet.WithStatsFor(t.name, false))
			}
			if w.isKey[i] && t.bloom {
				props = append(props, parquet.WithBloomFilterEnabledFor(t.name, true),
					parquet.WithBloomFilterNDVFor(t.name, int64(p.distinct)))
			}
			props = append(props, parquet.WithDictionaryFor(t.name, p.dictionary), parquet.WithEncodingFor(t.name, p.encoding),
				parquet.WithCompressionFor(t.name, p.codec))
		}
	}
	// Sequence numbers ascend or come from a small range; operations are nearly always the same.
	return append(props, parquet.WithEncodingFor(base.SeqColumn, parquet.Encodings.DeltaBinaryPacked),
		parquet.WithCompressionFor(base.SeqColumn, compress.Codecs.Uncompressed),
		parquet.WithDictionaryFor(base.OpColumn, true), parquet.WithCompressionFor(base.OpColumn, compress.Codecs.Uncompressed),
		parquet.WithSortingColumns(w.sorting()))
}

func (w *encoder) leafProperties(column int) (props []parquet.WriterProperty) {
	for i, l := range w.types[column].nested.leaves {
		// No bounds: what they are of NULLs and empty lists in between is told differently by every reader.
		props = append(props, parquet.WithStatsFor(l.path, false))
		if p := &w.leafPlans[column][i]; !w.shared[l.path] {
			props = append(props, parquet.WithDictionaryFor(l.path, p.dictionary), parquet.WithEncodingFor(l.path, p.encoding),
				parquet.WithCompressionFor(l.path, p.codec))
		}
	}
	return props
}

// open starts the file.
func (w *encoder) open() error {
	fields := make(schema.FieldList, 0, len(w.types))
	for _, t := range w.types {
		node, err := t.node()
		if err != nil {
			return err
		}
		fields = append(fields, node)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return err
	}
	w.pq, err = file.NewParquetWriterWithError(&w.sink, root, file.WithWriterProps(w.props))
	return err
}

// sorting names the columns by which the rows ascend in the order that Parquet gives the types: the key columns up to
// the first of a type that has another order.
func (w *encoder) sorting() []parquet.SortingColumn {
	ordinals := make([]int32, 0, len(w.types)) // among the file's columns
	next := int32(0)
	for _, t := range w.types {
		ordinals = append(ordinals, next)
		if next++; t.nested != nil {
			next += int32(len(t.nested.leaves)) - 1
		}
	}
	var out []parquet.SortingColumn
	for _, k := range w.o.Schema.PrimaryKey {
		if !w.types[k].sorted {
			break
		}
		out = append(out, parquet.SortingColumn{ColumnIdx: ordinals[k]})
	}
	return out
}

func (w *encoder) write(g *group, cols *row.Columns) error {
	rg, err := w.pq.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	for i, t := range w.types {
		if t.nested != nil {
			if err := w.writeNested(rg, i); err != nil {
				return base.Wrapf(codeOr(err, base.CodeParquet), err, "column %q", t.name)
			}
			continue
		}
		cw, err := rg.NextColumn()
		if err != nil {
			return err
		}
		switch i - len(cols.Cols) {
		case 0:
			err = w.pages.writeSeqs(cw, cols.Seqs, w.o.PageBytes)
		case 1:
			err = w.pages.writeOps(cw, cols.Ops)
		default:
			if bf := cw.GetBloomFilter(); bf != nil {
				w.blooms += bf.Size()
			}
			err = w.pages.write(cw, t, &cols.Cols[i], cols.N, w.shape(i, &cols.Cols[i], g.blocks))
		}
		if err != nil {
			return base.Wrapf(codeOr(err, base.CodeParquet), err, "column %q", t.name)
		}
	}
	if err := rg.Close(); err != nil {
		return err
	}
	w.sums = append(w.sums, checksum{end: w.sink.n, crc: w.sink.crc})
	w.sink.crc = 0
	return nil
}

func (w *encoder) writeNested(rg file.SerialRowGroupWriter, column int) error {
	for i, l := range w.types[column].nested.leaves {
		cw, err := rg.NextColumn()
		if err != nil {
			return err
		}
		if err := w.pages.writeLeaf(cw, l, &w.shredded[column].leaves[i]); err != nil {
			return base.Wrapf(codeOr(err, base.CodeParquet), err, "field %q", l.name)
		}
	}
	return nil
}

func (w *encoder) shape(column int, col *row.Column, blocks []int) pageShape {
	s := pageShape{bytes: w.o.PageBytes, noBounds: holdsNaN(w.types[column], col)}
	w.nan[column] = w.nan[column] || s.noBounds
	if w.isKey[column] {
		s.starts = blocks
	}
	if w.plans[column].dictionary && !w.isKey[column] {
		s.rows = dictionaryPageRows
	}
	if w.plans[column].codec == compress.Codecs.Uncompressed {
		s.bytes = min(s.bytes, uncompressedPageBytes)
	}
	return s
}

// finish writes the footer and returns the size of the file.
func (w *encoder) finish(keyIndex string) (int64, error) {
	js, err := json.Marshal(w.o.Schema)
	if err != nil {
		return 0, base.Wrapf(base.CodeInvalidArgument, err, "%s: schema", w.path)
	}
	err = guardWrite(w.path, func() error {
		if err := w.pq.AppendKeyValueMetadata(schemaKey, string(js)); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(keyIndexKey, keyIndex); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(checksumsKey, w.sums.encode()); err != nil {
			return err
		}
		if err := w.addSketches(); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(tailKey, tailBlank); err != nil {
			return err
		}
		w.sink.hold = true
		if err := w.pq.Close(); err != nil {
			return err
		}
		if err := sealTail(w.sink.tail); err != nil {
			return err
		}
		if _, err := w.sink.w.Write(w.sink.tail); err != nil {
			return err
		}
		return w.sink.w.Flush()
	})
	return w.sink.n, err
}

func (w *encoder) addSketches() error {
	if w.rows < minSketchRows {
		return nil
	}
	sketches, err := encodeSketches(w.o.Schema, w.sketches)
	if err != nil {
		return err
	}
	return w.pq.AppendKeyValueMetadata(sketchesKey, sketches)
}
