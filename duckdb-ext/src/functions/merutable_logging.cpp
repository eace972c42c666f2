#include "functions/merutable_logging.hpp"

#include "common/meru_status.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/logging/log_manager.hpp"
#include "duckdb/logging/log_type.hpp"
#include "duckdb/logging/logger.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/storage/object_cache.hpp"

namespace duckdb {

namespace {

constexpr const char *LOG_TYPE_NAME = "merutable";

LogicalType MessageType() {
	return LogicalType::STRUCT({{"event", LogicalType::VARCHAR},
								{"path", LogicalType::VARCHAR},
								{"message", LogicalType::VARCHAR},
								{"fields", LogicalType::VARCHAR}});
}

//! Events come at levels of their own; this is the one that CALL enable_logging('merutable') has to let through.
class MerutableLogType : public LogType {
  public:
	MerutableLogType() : LogType(LOG_TYPE_NAME, LogLevel::LOG_INFO, MessageType()) {
	}
};

LogLevel ToLogLevel(int32_t level) {
	switch (level) {
	case 0:
		return LogLevel::LOG_DEBUG;
	case 1:
		return LogLevel::LOG_INFO;
	case 2:
		return LogLevel::LOG_WARNING;
	default:
		return LogLevel::LOG_ERROR;
	}
}

//! Hands the engine's events to one DuckDB instance. The instance owns it, by way of its cache of objects, and gives it
//! up before its log: until then the engine's thread may use both.
class LogBridge : public ObjectCacheEntry {
  public:
	explicit LogBridge(DatabaseInstance &instance) : instance(instance) {
		MeruCall([&](char **err) { return meru_log_subscribe(Tell, this, &subscription, err); });
	}
	~LogBridge() override {
		// Waits for an event that is being told.
		meru_log_unsubscribe(subscription);
	}

	static string ObjectType() {
		return "merutable_log_bridge";
	}
	string GetObjectType() override {
		return ObjectType();
	}
	//! None, so that it is never evicted.
	optional_idx GetEstimatedCacheMemory() const override {
		return optional_idx();
	}

  private:
	static void Tell(void *self, const MeruLogEvent *event) {
		try {
			auto &logger = Logger::Get(static_cast<LogBridge *>(self)->instance);
			auto level = ToLogLevel(event->level);
			if (!logger.ShouldLog(LOG_TYPE_NAME, level)) {
				return;
			}
			auto message = Value::STRUCT({{"event", Value(event->event)},
										  {"path", Value(event->path)},
										  {"message", Value(event->message)},
										  {"fields", Value(event->fields)}});
			logger.WriteLog(LOG_TYPE_NAME, level, message.ToString());
		} catch (...) { // NOLINT: a full disk, or warnings_as_errors: nobody is there to be told
		}
	}

	DatabaseInstance &instance;
	uint64_t subscription = 0;
};

} // namespace

void MerutableLogging::Register(ExtensionLoader &loader) {
	auto &instance = loader.GetDatabaseInstance();
	auto &manager = instance.GetLogManager();
	if (!manager.LookupLogType(LOG_TYPE_NAME)) {
		manager.RegisterLogType(make_uniq<MerutableLogType>());
	}
	instance.GetObjectCache().GetOrCreate<LogBridge>(LogBridge::ObjectType(), instance);
}

} // namespace duckdb
