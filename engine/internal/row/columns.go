package row

import "github.com/merutable/merutable/engine/internal/base"

// Columns is a batch of rows held column by column in storage form: what the Parquet writer takes, what the Parquet
// reader yields and what Arrow batches are made from and read into. Storage form of one value, by kind:
//
//   - BOOLEAN one byte 0 or 1; integers, DATE, TIMEs, TIMESTAMPs, ENUM and DECIMAL little-endian in Type.FixedSize bytes
//     (two's complement where signed); FLOAT and DOUBLE their IEEE bits little-endian
//   - HUGEINT and UHUGEINT 16 bytes little-endian (two's complement for HUGEINT)
//   - INTERVAL months int32, days int32, microseconds int64, each little-endian
//   - UUID 16 bytes as printed (big-endian); FIXED_BINARY its bytes
//   - VARCHAR, JSON, BLOB, BIT, BIGNUM the bytes
//   - STRUCT, LIST, ARRAY, MAP packed form (see packed.go)
type Columns struct {
	// N is the number of rows. Every Cols[i], Seqs and Ops (where not nil) have N entries.
	N    int
	Cols []Column
	// Seqs and Ops are the hidden columns; nil where not asked for.
	Seqs []base.Seq
	Ops  []base.Op
}

// Column is one column of a batch. A column that was not projected has a zero Type.
type Column struct {
	Type base.Type
	// Nulls[i] says that value i is NULL; nil when no value is. A NULL's slot in Fixed is zero, in Data empty.
	Nulls []bool
	// Fixed holds N values of Type.FixedSize bytes, for types of fixed size.
	Fixed []byte
	// Offsets (N+1 entries, from 0) and Data hold the values of types of variable length: value i is
	// Data[Offsets[i]:Offsets[i+1]].
	Offsets []int64
	Data    []byte
}
