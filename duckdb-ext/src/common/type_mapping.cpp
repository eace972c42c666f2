#include "common/type_mapping.hpp"

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
	{LogicalTypeId::TIME_TZ, MeruColumnType_TimeTz},
	{LogicalTypeId::TIME_NS, MeruColumnType_TimeNs},
	{LogicalTypeId::BIGNUM, MeruColumnType_Bignum},
};

bool PlainToEngine(const LogicalType &type, MeruColumnInfo &info) {
	if (type.IsJSONType()) {
		info.type = MeruColumnType_Json;
		return true;
	}
	if (type.HasAlias()) {
		// Another name for a type: what is stored would come back without it.
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

bool IsNestedType(const LogicalType &type) {
	switch (type.id()) {
	case LogicalTypeId::STRUCT:
	case LogicalTypeId::LIST:
	case LogicalTypeId::ARRAY:
	case LogicalTypeId::MAP:
		return !type.HasAlias();
	default:
		return false;
	}
}

} // namespace

void MeruTypeInfo::Set(const string &column, const LogicalType &type) {
	if (type.id() == LogicalTypeId::ENUM) {
		SetLabels(column, type);
	} else if (IsNestedType(type)) {
		SetFields(column, type);
	} else if (!PlainToEngine(type, info)) {
		throw NotImplementedException("Column \"%s\": type %s is not supported in merutable tables", column,
									  type.ToString());
	}
}

void MeruTypeInfo::SetLabels(const string &column, const LogicalType &type) {
	// An ENUM may have a name of its own, which is DuckDB's affair: the labels are the type.
	auto count = EnumType::GetSize(type);
	auto data = FlatVector::GetData<string_t>(EnumType::GetValuesInsertOrder(type));
	for (idx_t i = 0; i < count; i++) {
		texts.push_back(data[i].GetString());
		if (texts.back().find('\0') != string::npos) {
			throw InvalidInputException("Column \"%s\": ENUM labels with a zero byte are not supported", column);
		}
	}
	for (auto &label : texts) {
		labels.push_back(label.c_str());
	}
	info.type = MeruColumnType_Enum;
	info.labels = labels.data();
	info.label_count = labels.size();
}

void MeruTypeInfo::SetFields(const string &column, const LogicalType &type) {
	switch (type.id()) {
	case LogicalTypeId::STRUCT:
		info.type = MeruColumnType_Struct;
		for (auto &field : StructType::GetChildTypes(type)) {
			if (field.first.empty()) {
				throw NotImplementedException("Column \"%s\": a STRUCT whose fields have no names is not supported in "
											  "merutable tables",
											  column);
			}
			AddField(column, field.first, field.second);
		}
		break;
	case LogicalTypeId::MAP:
		info.type = MeruColumnType_Map;
		AddField(column, "key", MapType::KeyType(type));
		AddField(column, "value", MapType::ValueType(type));
		break;
	case LogicalTypeId::ARRAY:
		info.type = MeruColumnType_Array;
		info.array_length = NumericCast<int32_t>(ArrayType::GetSize(type));
		AddField(column, "element", ArrayType::GetChildType(type));
		break;
	default:
		info.type = MeruColumnType_List;
		AddField(column, "element", ListType::GetChildType(type));
		break;
	}
	for (auto &part : parts) {
		fields.push_back(part->info);
	}
	info.fields = fields.data();
	info.field_count = fields.size();
}

void MeruTypeInfo::AddField(const string &column, const string &name, const LogicalType &type) {
	if (name.find('\0') != string::npos) {
		throw InvalidInputException("Column \"%s\": field names with a zero byte are not supported", column);
	}
	auto part = make_uniq<MeruTypeInfo>();
	part->name = name;
	part->info.name = part->name.c_str();
	part->Set(column, type);
	parts.push_back(std::move(part));
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
	case MeruColumnType_Json:
		return LogicalType::JSON();
	case MeruColumnType_Struct: {
		child_list_t<LogicalType> fields;
		for (idx_t i = 0; i < info.field_count; i++) {
			fields.emplace_back(info.fields[i].name, FromEngine(info.fields[i]));
		}
		return LogicalType::STRUCT(std::move(fields));
	}
	case MeruColumnType_List:
		return LogicalType::LIST(FromEngine(info.fields[0]));
	case MeruColumnType_Array:
		return LogicalType::ARRAY(FromEngine(info.fields[0]), NumericCast<idx_t>(info.array_length));
	case MeruColumnType_Map:
		return LogicalType::MAP(FromEngine(info.fields[0]), FromEngine(info.fields[1]));
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

} // namespace duckdb
