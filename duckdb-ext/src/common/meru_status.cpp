#include "common/meru_status.hpp"

#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"

namespace duckdb {

void ThrowMeruError(int status, char *message) {
	string text =
		message ? string(message) : "the engine failed without a message (status " + std::to_string(status) + ")";
	meru_free_string(message);
	switch (status) {
	case MeruStatus_ErrInvalidArg:
	case MeruStatus_ErrSchemaMismatch:
	case MeruStatus_ErrUnsupported:
	case MeruStatus_ErrReadOnly:
	case MeruStatus_ErrClosed:
		throw InvalidInputException("%s", text);
	case MeruStatus_ErrNotFound:
	case MeruStatus_ErrAlreadyExists:
		throw CatalogException("%s", text);
	case MeruStatus_ErrCancelled:
		throw InterruptException();
	case MeruStatus_ErrConflict:
		throw TransactionException("%s", text);
	default:
		// Also what nobody foresaw: an INTERNAL error would take the whole DuckDB instance down with it.
		throw IOException("%s", text);
	}
}

} // namespace duckdb
