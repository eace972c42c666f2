// Package sst writes and reads data files: Parquet, sorted by the encoded primary key, one row a key. A file is
// immutable, and any Parquet reader can read it.
//
// Beside the table's columns a file has two hidden ones, _merutable_seq and _merutable_op. Its footer carries the
// table's schema and a sparse key index, so that a point get reads one page of each key column and one page of each
// wanted column, and never more of the file.
//
// The format is arrow-go's matter: footers, pages, encodings, statistics and bloom filters are written and read by it.
// It reports some kinds of damage by a panic; [guard] turns those into errors at the border of this package.
package sst
