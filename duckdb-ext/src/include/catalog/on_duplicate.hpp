//! What INSERT does with a row whose key is there already: option ON_DUPLICATE of ATTACH.

#pragma once

namespace duckdb {

enum class OnDuplicate {
	//! The new row takes the place of the old one; of several in one statement the last one stays.
	REPLACE,
	//! A constraint error.
	ERROR,
	//! The old row stays; of several in one statement the first one.
	IGNORE
};

} // namespace duckdb
