package row

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/merutable/merutable/engine/internal/base"
)

// maxGathered bounds the bytes that a dictionary or an array of views may expand to: their rows can share bytes, so the
// size of the input does not.
const maxGathered = base.MaxBatchBytes

// readStrings reads VARCHAR, BLOB and BIT from any of Arrow's forms of strings.
func (in *arrowIn) readStrings() error {
	var err error
	switch in.data.DataType().ID() {
	case arrow.DICTIONARY:
		return in.readDictionary()
	case arrow.STRING, arrow.BINARY:
		err = in.readOffsets(4)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		err = in.readOffsets(8)
	default:
		err = in.readViews()
	}
	if err != nil {
		return err
	}
	return in.checkStrings()
}

// readOffsets reads strings that lie one behind the other, their offsets being width bytes wide. It shares the bytes.
func (in *arrowIn) readOffsets(width int) error {
	in.out.Offsets = make([]int64, in.n+1)
	if in.n == 0 {
		return nil
	}
	from := in.data.Offset()
	raw, err := in.buffer(1, (from+in.n+1)*width)
	if err != nil {
		return err
	}
	data, err := in.buffer(2, 0)
	if err != nil {
		return err
	}
	raw = raw[from*width : (from+in.n+1)*width]
	out, le := in.out.Offsets, binary.LittleEndian
	var first, last int64
	bad := -1 // the first row that ends before it starts
	if width == 4 {
		first = int64(int32(le.Uint32(raw)))
		last = first
		for i := 1; i < len(out); i++ {
			o := int64(int32(le.Uint32(raw[i*4:])))
			if o < last && bad < 0 {
				bad = i - 1
			}
			out[i], last = o-first, o
		}
	} else {
		first = int64(le.Uint64(raw))
		last = first
		for i := 1; i < len(out); i++ {
			o := int64(le.Uint64(raw[i*8:]))
			if o < last && bad < 0 {
				bad = i - 1
			}
			out[i], last = o-first, o
		}
	}
	switch {
	case bad >= 0:
		return rowError(bad, "the offsets of the Arrow array decrease")
	case first < 0 || last > int64(len(data)):
		return base.Errorf(base.CodeInvalidArgument, "the offsets %d to %d of the Arrow array are not within its %d bytes of data", first, last, len(data))
	}
	in.out.Data = data[first:last:last]
	in.dropNullBytes()
	return nil
}

// dropNullBytes makes NULLs empty, which Arrow does not demand.
func (in *arrowIn) dropNullBytes() {
	o := in.out.Offsets
	some := false
	for i, null := range in.out.Nulls {
		some = some || null && o[i] != o[i+1]
	}
	if !some {
		return
	}
	data := make([]byte, 0, len(in.out.Data))
	start := int64(0)
	for i, null := range in.out.Nulls {
		end := o[i+1]
		if !null {
			data = append(data, in.out.Data[start:end]...)
		}
		o[i+1], start = int64(len(data)), end
	}
	in.out.Data = data
}

const (
	viewBytes  = 16
	viewInline = 12
)

// readViews reads strings that are each held in a view of 16 bytes or lie anywhere in the array's data buffers.
func (in *arrowIn) readViews() error {
	in.out.Offsets = make([]int64, in.n+1)
	if in.n == 0 {
		return nil
	}
	views, err := in.fixed(viewBytes)
	if err != nil {
		return err
	}
	total := int64(0)
	for i := 0; i < in.n; i++ {
		if !in.out.IsNull(i) {
			b, err := in.viewed(views[i*viewBytes : (i+1)*viewBytes])
			if err != nil {
				return base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
			}
			if total += int64(len(b)); total > maxGathered {
				return tooMuchGathered(i)
			}
		}
		in.out.Offsets[i+1] = total
	}
	data := make([]byte, 0, total)
	for i := 0; i < in.n; i++ {
		if !in.out.IsNull(i) {
			b, _ := in.viewed(views[i*viewBytes : (i+1)*viewBytes]) // checked above
			data = append(data, b...)
		}
	}
	in.out.Data = data
	return nil
}

// viewed returns the bytes that a view holds or points at.
func (in *arrowIn) viewed(view []byte) ([]byte, error) {
	const firstData = 2 // behind validity and views
	size := int64(int32(binary.LittleEndian.Uint32(view)))
	switch {
	case size < 0:
		return nil, base.Errorf(base.CodeInvalidArgument, "a view of the Arrow array has length %d", size)
	case size <= viewInline:
		return view[4 : 4+size], nil
	}
	buf, off := int64(int32(binary.LittleEndian.Uint32(view[8:]))), int64(int32(binary.LittleEndian.Uint32(view[12:])))
	bufs := in.data.Buffers()
	if buf < 0 || buf >= int64(len(bufs)-firstData) || bufs[firstData+buf] == nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "a view of the Arrow array names data buffer %d of %d", buf, len(bufs)-firstData)
	}
	b := bufs[firstData+buf].Bytes()
	if off < 0 || off+size > int64(len(b)) {
		return nil, base.Errorf(base.CodeInvalidArgument, "a view of the Arrow array has %d bytes at %d in a data buffer of %d", size, off, len(b))
	}
	return b[off : off+size], nil
}

func tooMuchGathered(row int) error {
	return rowError(row, "the strings of the batch have more than %d bytes: take fewer rows a batch", maxGathered)
}

// readDictionary reads strings that are given as indices into distinct values.
func (in *arrowIn) readDictionary() error {
	dict, err := in.dictionary()
	if err != nil {
		return err
	}
	index, err := in.indices(dict)
	if err != nil {
		return err
	}
	in.out.Offsets = make([]int64, in.n+1)
	total := int64(0)
	for i := 0; i < in.n; i++ {
		if k := index[i]; k >= 0 {
			if total += dict.Offsets[k+1] - dict.Offsets[k]; total > maxGathered {
				return tooMuchGathered(i)
			}
		}
		in.out.Offsets[i+1] = total
	}
	data := make([]byte, 0, total)
	for _, k := range index {
		if k >= 0 {
			data = append(data, dict.Storage(int(k))...)
		}
	}
	in.out.Data = data
	return nil
}

// dictionary reads and checks the values of a dictionary as a column of the same kind; for an ENUM they are the labels.
func (in *arrowIn) dictionary() (*Column, error) {
	values := in.data.Dictionary()
	if values == nil || values.Len() == 0 {
		// Fine where every row is NULL.
		return &Column{Offsets: []int64{0}}, nil
	}
	t := in.t
	if t.Kind == base.KindEnum {
		t = base.Type{Kind: base.KindVarchar}
	}
	col := &Column{Type: t}
	sub, err := newArrowIn(t, values, col)
	if err == nil {
		err = sub.readStrings()
	}
	return col, base.Wrapf(base.CodeInvalidArgument, err, "dictionary")
}

// indices returns for each row its index into the dictionary, -1 for NULL, and marks the rows NULL whose value in the
// dictionary is.
func (in *arrowIn) indices(dict *Column) ([]int32, error) {
	width := in.data.DataType().(*arrow.DictionaryType).IndexType.(arrow.FixedWidthDataType).BitWidth() / 8
	raw, err := in.fixed(width)
	if err != nil {
		return nil, err
	}
	size := uint64(len(dict.Offsets) - 1)
	index, le := make([]int32, in.n), binary.LittleEndian
	for i := range index {
		if in.out.IsNull(i) {
			index[i] = -1
			continue
		}
		// A negative index is a large one here, and refused all the same.
		var k uint64
		switch width {
		case 1:
			k = uint64(raw[i])
		case 2:
			k = uint64(le.Uint16(raw[i*2:]))
		case 4:
			k = uint64(le.Uint32(raw[i*4:]))
		default:
			k = le.Uint64(raw[i*8:])
		}
		if k >= size || k > math.MaxInt32 {
			return nil, rowError(i, "index %d into a dictionary of %d values", k, size)
		}
		index[i] = int32(k)
		if dict.IsNull(int(k)) {
			index[i] = -1
			if in.out.Nulls == nil {
				in.out.Nulls = make([]bool, in.n)
			}
			in.out.Nulls[i] = true
		}
	}
	return index, nil
}

// checkStrings checks UTF-8 and the form of BITs. The offsets are right by now.
func (in *arrowIn) checkStrings() error {
	switch in.t.Kind {
	case base.KindVarchar, base.KindJSON:
		if validUTF8(in.out.Data, in.out.Offsets) {
			return nil
		}
	case base.KindBlob:
		return nil
	}
	for i := 0; i < in.n; i++ {
		if !in.out.IsNull(i) {
			if err := checkStorage(in.t, in.out.Storage(i)); err != nil {
				return base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
			}
		}
	}
	return nil
}

// validUTF8 reports whether every string is valid: all bytes together are, and no string starts inside a character.
func validUTF8(data []byte, offsets []int64) bool {
	if isASCII(data) {
		return true
	}
	if !utf8.Valid(data) {
		return false
	}
	for _, o := range offsets {
		if o < int64(len(data)) && !utf8.RuneStart(data[o]) {
			return false
		}
	}
	return true
}

// readLabels turns the labels of an ENUM into indices.
func (in *arrowIn) readLabels() error {
	known := enumIndices(in.t)
	in.out.Fixed = make([]byte, in.n*4)
	if in.data.DataType().ID() == arrow.DICTIONARY {
		return in.readLabelDictionary(known)
	}
	text := arrowIn{t: base.Type{Kind: base.KindVarchar}, data: in.data, n: in.n, out: &Column{Nulls: in.out.Nulls}}
	if err := text.readStrings(); err != nil {
		return err
	}
	for i := 0; i < in.n; i++ {
		if in.out.IsNull(i) {
			continue
		}
		k, ok := known[string(text.out.Storage(i))]
		if !ok {
			return unknownLabel(i, text.out.Storage(i), in.t)
		}
		binary.LittleEndian.PutUint32(in.out.Fixed[i*4:], k)
	}
	return nil
}

func (in *arrowIn) readLabelDictionary(known map[string]uint32) error {
	dict, err := in.dictionary()
	if err != nil {
		return err
	}
	index, err := in.indices(dict)
	if err != nil {
		return err
	}
	// Only labels that rows use must be known.
	const unknown = math.MaxUint32
	labels := make([]uint32, len(dict.Offsets)-1)
	for k := range labels {
		label, ok := known[string(dict.Storage(k))]
		if !ok {
			label = unknown
		}
		labels[k] = label
	}
	for i, k := range index {
		if k < 0 {
			continue
		}
		if labels[k] == unknown {
			return unknownLabel(i, dict.Storage(int(k)), in.t)
		}
		binary.LittleEndian.PutUint32(in.out.Fixed[i*4:], labels[k])
	}
	return nil
}

func unknownLabel(row int, label []byte, t base.Type) error {
	const shown = 100
	if len(label) > shown {
		return rowError(row, "a label of %d bytes that starts with %q is none of the ENUM's %d", len(label), label[:shown], len(t.Labels))
	}
	return rowError(row, "label %q is none of the ENUM's %d", label, len(t.Labels))
}
