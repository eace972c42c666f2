#include "common/type_mapping.hpp"

#include "common/file_form.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/extra_type_info.hpp"
#include "duckdb/common/types/vector.hpp"

namespace duckdb {

namespace {

struct PlainType {
	LogicalTypeId id;
	MeruColumnType engine;
};

//! The types without parameters. An ENUM and a DECIMAL are dealt with below, FixedLenBytes has no type of its own here.
constexpr PlainType PLAIN_TYPES[] = {
	{LogicalTypeId::BOOLEAN, MeruColumnType_Boolean},
	{LogicalTypeId::TINYINT, MeruColumnType_Int8},
	{LogicalTypeId::SMALLINT, MeruColumnType_Int16},
	{LogicalTypeId::INTEGER, MeruColumnType_Int32},
	{LogicalTypeId::BIGINT, MeruColumnType_Int64},
	{LogicalTypeId::HUGEINT, MeruColumnType_Int128},
	{LogicalTypeId::UTINYINT, MeruColumnType_UInt8},
	{LogicalTypeId::USMALLINT, MeruColumnType_UInt16},
	{LogicalTypeId::UINTEGER, MeruColumnType_UInt32},
	{LogicalTypeId::UBIGINT, MeruColumnType_UInt64},
	{LogicalTypeId::UHUGEINT, MeruColumnType_UInt128},
	{LogicalTypeId::FLOAT, MeruColumnType_Float},
	{LogicalTypeId::DOUBLE, MeruColumnType_Double},
	{LogicalTypeId::VARCHAR, MeruColumnType_Utf8},
	{LogicalTypeId::BLOB, MeruColumnType_ByteArray},
	{LogicalTypeId::DATE, MeruColumnType_Date},
	{LogicalTypeId::TIME, MeruColumnType_Time},
	{LogicalTypeId::TIMESTAMP_SEC, MeruColumnType_TimestampS},
	{LogicalTypeId::TIMESTAMP_MS, MeruColumnType_TimestampMs},
	{LogicalTypeId::TIMESTAMP, MeruColumnType_TimestampUs},
	{LogicalTypeId::TIMESTAMP_NS, MeruColumnType_TimestampNs},
	{LogicalTypeId::TIMESTAMP_TZ, MeruColumnType_TimestampTz},
	{LogicalTypeId::INTERVAL, MeruColumnType_Interval},
	{LogicalTypeId::UUID, MeruColumnType_Uuid},
	{LogicalTypeId::BIT, MeruColumnType_Bit},
};

} // namespace

bool MeruTypeMapping::ToEngine(const LogicalType &type, MeruColumnInfo &info, vector<string> &label_storage,
							   vector<const char *> &labels) {
	if (type.id() == LogicalTypeId::ENUM) {
		// An ENUM may have a name of its own, which is DuckDB's affair: the labels are the type.
		auto &values = EnumType::GetValuesInsertOrder(type);
		auto count = EnumType::GetSize(type);
		auto data = FlatVector::GetData<string_t>(values);
		label_storage.clear();
		labels.clear();
		for (idx_t i = 0; i < count; i++) {
			label_storage.push_back(data[i].GetString());
		}
		for (auto &label : label_storage) {
			labels.push_back(label.c_str());
		}
		info.type = MeruColumnType_Enum;
		info.labels = labels.data();
		info.label_count = labels.size();
		return true;
	}
	if (type.HasAlias()) {
		// JSON and other names for a type: what is stored would come back without its name.
		return false;
	}
	if (type.id() == LogicalTypeId::DECIMAL) {
		info.type = MeruColumnType_Decimal;
		info.precision = DecimalType::GetWidth(type);
		info.scale = DecimalType::GetScale(type);
		return true;
	}
	if (type.id() == LogicalTypeId::VARCHAR && !StringType::GetCollation(type).empty()) {
		// Keys and order would have to follow the collation.
		return false;
	}
	for (auto &entry : PLAIN_TYPES) {
		if (entry.id == type.id()) {
			info.type = entry.engine;
			return true;
		}
	}
	return false;
}

LogicalType MeruTypeMapping::FromEngine(const MeruColumnInfo &info) {
	switch (info.type) {
	case MeruColumnType_Decimal:
		return LogicalType::DECIMAL(NumericCast<uint8_t>(info.precision), NumericCast<uint8_t>(info.scale));
	case MeruColumnType_FixedLenBytes:
		return LogicalType::BLOB;
	case MeruColumnType_Enum: {
		Vector labels(LogicalType::VARCHAR, info.label_count);
		auto data = FlatVector::GetData<string_t>(labels);
		for (idx_t i = 0; i < info.label_count; i++) {
			data[i] = StringVector::AddString(labels, info.labels[i]);
		}
		return LogicalType::ENUM(labels, info.label_count);
	}
	default:
		break;
	}
	for (auto &entry : PLAIN_TYPES) {
		if (entry.engine == info.type) {
			return LogicalType(entry.id);
		}
	}
	throw InvalidInputException("Column \"%s\" has a type (number %d) that this version does not know", info.name,
								static_cast<int>(info.type));
}

LogicalType MeruTypeMapping::ArrowType(const LogicalType &type) {
	if (HasFileForm(type)) {
		return LogicalType::BLOB;
	}
	if (type.id() == LogicalTypeId::ENUM) {
		return LogicalType::VARCHAR;
	}
	return type;
}

} // namespace duckdb
