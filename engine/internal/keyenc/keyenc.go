// Package keyenc encodes primary keys as byte strings whose order is the order of the values: bytes.Compare on two
// encoded keys says what DuckDB's comparison says on the values, column by column in the declared key order. Values that
// compare equal (-0.0 and 0.0, every NaN, intervals of one length) have one encoding.
//
// Each column's encoding delimits itself: no encoded value is a proper prefix of another of its type. So a composite key
// is the concatenation of its parts, and a byte prefix that ends between two columns is a prefix of the key.
//
//	BOOLEAN                      one byte, 0 or 1
//	signed integers, DATE, TIME,
//	TIMESTAMPs, DECIMAL          big-endian in the type's storage width, sign bit flipped
//	unsigned integers, ENUM      big-endian
//	HUGEINT, UHUGEINT            16 bytes big-endian, the sign bit of HUGEINT flipped
//	FLOAT, DOUBLE                IEEE bits big-endian: all inverted where negative, else the sign bit flipped; -0.0 as
//	                             0.0, NaN as the one positive quiet NaN, which is the greatest
//	INTERVAL                     microseconds in all (a month has 30 days, a day 24 hours): 16 bytes big-endian, sign flipped
//	UUID, FIXED_BINARY           the bytes
//	VARCHAR, BLOB, BIT           the bytes, 00 as 00 FF, then 00 00
package keyenc

import "github.com/merutable/merutable/engine/internal/base"

// Codec encodes and decodes the primary keys of one table. It is immutable and safe for concurrent use.
type Codec struct {
	cols []base.Column // the key columns in key order
}

// NewCodec makes the codec of a table's primary key. The error names a key column that cannot be one.
func NewCodec(schema *base.Schema) (*Codec, error) {
	if len(schema.PrimaryKey) == 0 {
		return nil, base.Errorf(base.CodeInvalidArgument, "table %q has no primary key", schema.TableName)
	}
	c := &Codec{cols: make([]base.Column, 0, len(schema.PrimaryKey))}
	for _, i := range schema.PrimaryKey {
		if i < 0 || i >= len(schema.Columns) {
			return nil, base.Errorf(base.CodeInvalidArgument, "primary key column index %d is not in 0..%d", i, len(schema.Columns)-1)
		}
		col := schema.Columns[i]
		if err := col.Type.Validate(); err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "key column %q", col.Name)
		}
		c.cols = append(c.cols, col)
	}
	return c, nil
}

// Append appends the encoding of a key, given in key order, to dst and returns it. An error names the column: a NULL, a
// value that its type cannot hold, a key above base.MaxKeyBytes; dst is then returned as it was.
func (c *Codec) Append(dst []byte, key []base.Value) ([]byte, error) {
	if len(key) != len(c.cols) {
		return dst, base.Errorf(base.CodeInvalidArgument, "the primary key has %d columns, not %d", len(c.cols), len(key))
	}
	start := len(dst)
	for i := range c.cols {
		col := &c.cols[i]
		if key[i].Null {
			return dst[:start], base.Errorf(base.CodeInvalidArgument, "NOT NULL constraint failed: key column %q is NULL", col.Name)
		}
		if err := CheckValue(col.Type, key[i]); err != nil {
			return dst[:start], base.Wrapf(base.CodeInvalidArgument, err, "key column %q", col.Name)
		}
		// The raw length comes first: nothing above the limit is copied.
		if n := len(dst) - start + len(key[i].Bytes); n > base.MaxKeyBytes {
			return dst[:start], KeyTooLong(n, col.Name)
		}
		dst = AppendValue(dst, col.Type, key[i])
		if n := len(dst) - start; n > base.MaxKeyBytes {
			return dst[:start], KeyTooLong(n, col.Name)
		}
	}
	return dst, nil
}

// KeyTooLong is the error for a key whose encoding has n bytes or more up to a column: too many.
func KeyTooLong(n int, column string) error {
	return base.Errorf(base.CodeInvalidArgument, "the encoded primary key has at least %d bytes at key column %q: the limit is %d", n, column, base.MaxKeyBytes)
}

// Decode returns the values of an encoded key in key order. Bytes of values may alias key. An encoding that is not one
// of this table's keys gives CodeCorruption, naming column and offset.
func (c *Codec) Decode(key []byte) ([]base.Value, error) {
	vals := make([]base.Value, len(c.cols))
	rest := key
	for i := range c.cols {
		v, r, err := DecodeValue(c.cols[i].Type, rest)
		if err != nil {
			return nil, base.Wrapf(base.CodeCorruption, err, "key column %q at byte %d of an encoded key of %d", c.cols[i].Name, len(key)-len(rest), len(key))
		}
		vals[i], rest = v, r
	}
	if len(rest) != 0 {
		return nil, base.Errorf(base.CodeCorruption, "encoded key of %d bytes: %d bytes are left behind the last column", len(key), len(rest))
	}
	return vals, nil
}
