//! The types that neither Parquet nor Arrow has: HUGEINT, UHUGEINT, INTERVAL and BIT are kept as bytes.
//!
//! HUGEINT    16 bytes, big-endian, sign bit flipped
//! UHUGEINT   16 bytes, big-endian
//! INTERVAL   months (4 bytes), days (4), microseconds (8), each big-endian with its sign bit flipped
//! BIT        DuckDB's own bytes: the count of padding bits, then the bits

#pragma once

#include "duckdb/common/types.hpp"
#include "duckdb/common/types/vector.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {

bool HasFileForm(const LogicalType &type);

//! The type as which an encoded vector is handed to DuckDB's Arrow appender, which writes 16 bytes, big-endian with the
//! sign bit flipped, for a UUID: exactly the bytes that are wanted. BLOB for BIT.
LogicalType FileFormCarrier(const LogicalType &type);

//! Makes result, a vector of the carrier type, the file form of input. May reference input.
void EncodeFileForm(Vector &input, Vector &result, idx_t count);

//! An expression that gives values of the type for one that gives their file form as BLOB.
unique_ptr<Expression> MakeFileFormDecoder(unique_ptr<Expression> bytes, const LogicalType &type);

} // namespace duckdb
