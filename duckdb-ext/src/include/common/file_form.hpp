//! The types that Parquet or Arrow has not, or that DuckDB reads from there as something else: kept as bytes or
//! integers.
//!
//! HUGEINT    16 bytes, big-endian, sign bit flipped
//! UHUGEINT   16 bytes, big-endian
//! INTERVAL   months (4 bytes), days (4), microseconds (8), each big-endian with its sign bit flipped
//! BIT        DuckDB's own bytes: the count of padding bits, then the bits
//! BIGNUM     DuckDB's own bytes
//! TIMETZ     a 64-bit integer: what DuckDB orders TIMETZ by
//! TIME_NS    a 64-bit integer: nanoseconds; in Parquet only

#pragma once

#include "duckdb/common/types.hpp"
#include "duckdb/common/types/vector.hpp"

namespace duckdb {

bool HasFileForm(const LogicalType &type);

//! The type as which DuckDB's Parquet reader reads the file form: BLOB or BIGINT.
LogicalType FileFormType(const LogicalType &type);

//! The type as which an encoded vector is handed to DuckDB's Arrow appender, which writes 16 bytes, big-endian with the
//! sign bit flipped, for a UUID: exactly the bytes that are wanted.
LogicalType FileFormCarrier(const LogicalType &type);

//! Makes result, a vector of the carrier type, the file form of input. May reference input.
void EncodeFileForm(Vector &input, Vector &result, idx_t count);

//! Makes result the values whose file form input has.
void DecodeFileForm(Vector &input, Vector &result, idx_t count);

} // namespace duckdb
