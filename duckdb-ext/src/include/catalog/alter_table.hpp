//! ALTER TABLE and COMMENT ON: DuckDB's descriptions of a change as the engine's.

#pragma once

#include "common/table_schema.hpp"

namespace duckdb {
class ClientContext;
class MerutableTableEntry;
struct AlterInfo;

//! Owner of the engine's object.
class MeruAlterHandle {
  public:
	MeruAlterHandle() : alter(meru_alter_new()) {
	}
	~MeruAlterHandle() {
		meru_alter_free(alter);
	}
	MeruAlterHandle(const MeruAlterHandle &) = delete;
	MeruAlterHandle &operator=(const MeruAlterHandle &) = delete;
	MeruAlter *Get() const {
		return alter;
	}

  private:
	MeruAlter *alter;
};

struct AlterTable {
	//! Adds what info says to a change of the table. Throws where it cannot be made without looking at the table's
	//! rows, naming what can. What depends on the table's state of that moment is left to the engine.
	static void Translate(ClientContext &context, const MerutableTableEntry &table, AlterInfo &info,
						  MeruAlterHandle &alter);
	//! The name that the table has after a change.
	static string NameAfter(AlterInfo &info);
	//! The exception for a status of meru_alter_table(). Takes the message.
	[[noreturn]] static void ThrowError(int status, char *message);
};

} // namespace duckdb
