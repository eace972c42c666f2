#include "common/table_version.hpp"

#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/common/types/timestamp.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

namespace {

Value CastTo(ClientContext &context, const string &what, const Value &value, const LogicalType &type) {
	if (value.IsNull()) {
		throw BinderException("%s is NULL", what);
	}
	Value result;
	string error;
	if (!value.TryCastAs(context, type, result, &error) || result.IsNull()) {
		throw BinderException("%s is a %s: cannot take %s of type %s", what, type.ToString(), value.ToSQLString(),
							  value.type().ToString());
	}
	return result;
}

int64_t ToVersion(ClientContext &context, const string &what, const Value &value) {
	auto result = CastTo(context, what, value, LogicalType::BIGINT);
	// 2.5 is no version.
	Value back;
	string error;
	if (value.type().IsNumeric() &&
		!(result.TryCastAs(context, value.type(), back, &error) && Value::NotDistinctFrom(back, value))) {
		throw BinderException("%s is a whole number, not %s", what, value.ToString());
	}
	return BigIntValue::Get(result);
}

int64_t ToMicroseconds(ClientContext &context, const string &what, const Value &value) {
	// A number is no time, though DuckDB would take it for one.
	if (value.type().IsNumeric()) {
		throw BinderException("%s is a point in time, not %s of type %s", what, value.ToString(),
							  value.type().ToString());
	}
	auto result = TimestampTZValue::Get(CastTo(context, what, value, LogicalType::TIMESTAMP_TZ));
	if (!Timestamp::IsFinite(result)) {
		throw BinderException("%s is a point in time, not %s", what, value.ToString());
	}
	return Timestamp::GetEpochMicroSeconds(result);
}

} // namespace

MeruTableVersion::MeruTableVersion(ClientContext &context, const string &what, const string &unit, const Value &given)
	: is_timestamp(StringUtil::CIEquals(unit, "timestamp")) {
	if (is_timestamp) {
		value = ToMicroseconds(context, what, given);
	} else if (StringUtil::CIEquals(unit, "version")) {
		value = ToVersion(context, what, given);
	} else {
		throw BinderException("%s: the unit is VERSION or TIMESTAMP, not %s", what, unit);
	}
}

shared_ptr<MeruSnapshotRef> MeruTableVersion::Acquire(shared_ptr<MeruDatabase> database) const {
	MeruSnapshot *snapshot = nullptr;
	MeruCall([&](char **err) {
		return is_timestamp ? meru_snapshot_as_of(database->Get(), value, &snapshot, err)
							: meru_snapshot_at(database->Get(), value, &snapshot, err);
	});
	return make_shared_ptr<MeruSnapshotRef>(std::move(database), snapshot);
}

string MeruTableVersion::Key() const {
	return (is_timestamp ? "timestamp " : "version ") + std::to_string(value);
}

} // namespace duckdb
