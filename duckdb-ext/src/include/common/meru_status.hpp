//! Errors of the engine as DuckDB's exceptions.

#pragma once

#include "merutable.h"

namespace duckdb {

//! Throws the exception that fits a status other than Ok. Takes the engine's message.
[[noreturn]] void ThrowMeruError(int status, char *message);

//! Calls a function of the engine, given as a lambda over its `char **err`, and throws when it fails.
template <class CALL>
void MeruCall(CALL &&call) {
	char *message = nullptr;
	auto status = call(&message);
	if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
}

//! The same, but returns false where the engine answers ErrNotFound.
template <class CALL>
bool MeruCallIfFound(CALL &&call) {
	char *message = nullptr;
	auto status = call(&message);
	if (status == MeruStatus_ErrNotFound) {
		meru_free_string(message);
		return false;
	}
	if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
	return true;
}

} // namespace duckdb
