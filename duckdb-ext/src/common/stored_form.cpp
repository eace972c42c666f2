#include "common/stored_form.hpp"

#include "common/file_form.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/function/scalar_function.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"

namespace duckdb {

namespace {

//! A type with each scalar in it replaced.
template <class CHANGE>
LogicalType ChangeScalars(const LogicalType &type, CHANGE &&change) {
	switch (type.id()) {
	case LogicalTypeId::STRUCT: {
		child_list_t<LogicalType> fields;
		for (auto &field : StructType::GetChildTypes(type)) {
			fields.emplace_back(field.first, ChangeScalars(field.second, change));
		}
		return LogicalType::STRUCT(std::move(fields));
	}
	case LogicalTypeId::LIST:
		return LogicalType::LIST(ChangeScalars(ListType::GetChildType(type), change));
	case LogicalTypeId::ARRAY:
		return LogicalType::ARRAY(ChangeScalars(ArrayType::GetChildType(type), change), ArrayType::GetSize(type));
	case LogicalTypeId::MAP:
		return LogicalType::MAP(ChangeScalars(MapType::KeyType(type), change),
								ChangeScalars(MapType::ValueType(type), change));
	default:
		return change(type);
	}
}

//! Whether values of a type stand for those of another in its file form. A column that became a HUGEINT may be of
//! narrower integers in older files.
bool IsFileForm(const LogicalType &from, const LogicalType &to) {
	return HasFileForm(to) && from == FileFormType(to);
}

//! Makes result, a vector of a nested type with the shape of input's, of converted children.
template <class CONVERT>
void ConvertChildren(Vector &input, Vector &result, idx_t count, CONVERT &&convert) {
	input.Flatten(count);
	result.SetVectorType(VectorType::FLAT_VECTOR);
	FlatVector::SetValidity(result, FlatVector::Validity(input));
	switch (result.GetType().InternalType()) {
	case PhysicalType::STRUCT: {
		auto &from = StructVector::GetEntries(input);
		auto &to = StructVector::GetEntries(result);
		for (idx_t i = 0; i < to.size(); i++) {
			convert(*from[i], *to[i], count);
		}
		return;
	}
	case PhysicalType::LIST: {
		auto size = ListVector::GetListSize(input);
		ListVector::Reserve(result, size);
		ListVector::SetListSize(result, size);
		memcpy(FlatVector::GetData<list_entry_t>(result), FlatVector::GetData<list_entry_t>(input),
			   count * sizeof(list_entry_t));
		convert(ListVector::GetEntry(input), ListVector::GetEntry(result), size);
		return;
	}
	case PhysicalType::ARRAY:
		convert(ArrayVector::GetEntry(input), ArrayVector::GetEntry(result),
				count * ArrayType::GetSize(result.GetType()));
		return;
	default:
		throw NotImplementedException("Values of type %s have no children", result.GetType().ToString());
	}
}

//! Parquet has no arrays of a fixed size, but lists.
void DecodeArray(Vector &input, Vector &result, idx_t count) {
	auto size = ArrayType::GetSize(result.GetType());
	input.Flatten(count);
	auto lists = FlatVector::GetData<list_entry_t>(input);
	auto &validity = FlatVector::Validity(input);
	bool in_place = true;
	for (idx_t i = 0; i < count; i++) {
		if (!validity.RowIsValid(i)) {
			in_place = false;
			continue;
		}
		if (lists[i].length != size) {
			throw InvalidInputException("%s stored as a list of %llu elements", result.GetType().ToString(),
										static_cast<uint64_t>(lists[i].length));
		}
		in_place = in_place && lists[i].offset == i * size;
	}
	result.SetVectorType(VectorType::FLAT_VECTOR);
	FlatVector::SetValidity(result, validity);
	auto &target = ArrayVector::GetEntry(result);
	auto &elements = ListVector::GetEntry(input);
	if (in_place) {
		StoredForm::Decode(elements, target, count * size);
		return;
	}
	auto stored = ListVector::GetListSize(input);
	Vector decoded(target.GetType(), MaxValue<idx_t>(stored, 1));
	StoredForm::Decode(elements, decoded, stored);
	for (idx_t i = 0; i < count; i++) {
		if (validity.RowIsValid(i)) {
			VectorOperations::Copy(decoded, target, lists[i].offset + size, lists[i].offset, i * size);
			continue;
		}
		for (idx_t j = 0; j < size; j++) {
			FlatVector::SetNull(target, i * size + j, true);
		}
	}
}

void DecodeFunction(DataChunk &args, ExpressionState &, Vector &result) {
	StoredForm::Decode(args.data[0], result, args.size());
}

} // namespace

LogicalType StoredForm::ArrowType(const LogicalType &type) {
	return ChangeScalars(type, [](const LogicalType &scalar) -> LogicalType {
		if (scalar.id() == LogicalTypeId::ENUM || scalar.IsJSONType()) {
			return LogicalType::VARCHAR;
		}
		if (scalar.id() == LogicalTypeId::TIME_NS || !HasFileForm(scalar)) {
			return scalar;
		}
		return FileFormType(scalar);
	});
}

LogicalType StoredForm::ParquetType(const LogicalType &type) {
	if (type.id() == LogicalTypeId::ARRAY) {
		return LogicalType::LIST(ParquetType(ArrayType::GetChildType(type)));
	}
	return ChangeScalars(type, [](const LogicalType &scalar) -> LogicalType {
		switch (scalar.id()) {
		case LogicalTypeId::ENUM:
			return LogicalType::VARCHAR;
		case LogicalTypeId::TIMESTAMP_SEC:
		case LogicalTypeId::TIMESTAMP_MS:
			return LogicalType::TIMESTAMP;
		default:
			return HasFileForm(scalar) ? FileFormType(scalar) : scalar;
		}
	});
}

LogicalType StoredForm::AppenderType(const LogicalType &type) {
	return ChangeScalars(type, [](const LogicalType &scalar) -> LogicalType {
		if (scalar.id() == LogicalTypeId::ENUM || scalar.IsJSONType()) {
			return LogicalType::VARCHAR;
		}
		return HasFileForm(scalar) ? FileFormCarrier(scalar) : scalar;
	});
}

void StoredForm::Encode(ClientContext &context, Vector &input, Vector &result, idx_t count) {
	auto &type = input.GetType();
	if (HasFileForm(type)) {
		EncodeFileForm(input, result, count);
	} else if (type == result.GetType()) {
		result.Reference(input);
	} else if (type.IsNested()) {
		ConvertChildren(input, result, count,
						[&](Vector &from, Vector &to, idx_t size) { Encode(context, from, to, size); });
	} else if (type.id() == LogicalTypeId::ENUM) {
		VectorOperations::Cast(context, input, result, count);
	} else {
		result.Reinterpret(input); // JSON
	}
}

void StoredForm::Decode(Vector &input, Vector &result, idx_t count) {
	auto &from = input.GetType();
	auto &to = result.GetType();
	if (from == to) {
		result.Reference(input);
	} else if (to.id() == LogicalTypeId::ARRAY && from.id() == LogicalTypeId::LIST) {
		DecodeArray(input, result, count);
	} else if (to.IsNested()) {
		ConvertChildren(input, result, count,
						[&](Vector &child, Vector &target, idx_t size) { Decode(child, target, size); });
	} else if (IsFileForm(from, to)) {
		DecodeFileForm(input, result, count);
	} else if (to.IsJSONType()) {
		result.Reinterpret(input);
	} else {
		VectorOperations::DefaultCast(input, result, count);
	}
}

bool StoredForm::NeedsDecoder(const LogicalType &from, const LogicalType &to) {
	return from != to && (to.IsNested() || IsFileForm(from, to) || to.IsJSONType());
}

unique_ptr<Expression> StoredForm::MakeDecoder(unique_ptr<Expression> stored, const LogicalType &type) {
	ScalarFunction function("merutable_decode", {stored->return_type}, type, DecodeFunction);
	function.SetFallible();
	vector<unique_ptr<Expression>> children;
	children.push_back(std::move(stored));
	return make_uniq<BoundFunctionExpression>(type, std::move(function), std::move(children), nullptr);
}

} // namespace duckdb
