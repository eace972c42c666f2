package sst

import "encoding/binary"

// Values in storage form are little-endian and are handed to the Parquet library as numbers without being copied.
func init() {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		panic("sst: this package needs a little-endian machine")
	}
}
