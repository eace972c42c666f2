#include "common/file_form.hpp"

#include "duckdb/common/bswap.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/types/hugeint.hpp"
#include "duckdb/common/types/interval.hpp"
#include "duckdb/common/types/uhugeint.hpp"
#include "duckdb/common/types/datetime.hpp"
#include "duckdb/common/vector_operations/unary_executor.hpp"

namespace duckdb {

namespace {

constexpr uint64_t SIGN_64 = uint64_t(1) << 63;
constexpr uint32_t SIGN_32 = uint32_t(1) << 31;
constexpr idx_t WIDTH = 16;

uint64_t ReadBigEndian64(const char *data) {
	uint64_t value;
	memcpy(&value, data, sizeof(value));
	return BSwapIfLE(value);
}

uint32_t ReadBigEndian32(const char *data) {
	uint32_t value;
	memcpy(&value, data, sizeof(value));
	return BSwapIfLE(value);
}

const char *CheckWidth(const string_t &bytes, const char *type) {
	if (bytes.GetSize() != WIDTH) {
		throw InvalidInputException("%s stored in %llu bytes: %llu are expected", type,
									static_cast<uint64_t>(bytes.GetSize()), static_cast<uint64_t>(WIDTH));
	}
	return bytes.GetData();
}

//! A UUID's own representation has the sign bit of its upper half flipped, and the appender flips it back.
hugeint_t CarrierOf(uint64_t upper, uint64_t lower) {
	hugeint_t result;
	result.upper = static_cast<int64_t>(upper ^ SIGN_64);
	result.lower = lower;
	return result;
}

void DecodeHugeint(Vector &input, Vector &result, idx_t count) {
	UnaryExecutor::Execute<string_t, hugeint_t>(input, result, count, [](string_t bytes) {
		auto data = CheckWidth(bytes, "HUGEINT");
		hugeint_t value;
		value.upper = static_cast<int64_t>(ReadBigEndian64(data) ^ SIGN_64);
		value.lower = ReadBigEndian64(data + 8);
		return value;
	});
}

void DecodeUhugeint(Vector &input, Vector &result, idx_t count) {
	UnaryExecutor::Execute<string_t, uhugeint_t>(input, result, count, [](string_t bytes) {
		auto data = CheckWidth(bytes, "UHUGEINT");
		uhugeint_t value;
		value.upper = ReadBigEndian64(data);
		value.lower = ReadBigEndian64(data + 8);
		return value;
	});
}

void DecodeInterval(Vector &input, Vector &result, idx_t count) {
	UnaryExecutor::Execute<string_t, interval_t>(input, result, count, [](string_t bytes) {
		auto data = CheckWidth(bytes, "INTERVAL");
		interval_t value;
		value.months = static_cast<int32_t>(ReadBigEndian32(data) ^ SIGN_32);
		value.days = static_cast<int32_t>(ReadBigEndian32(data + 4) ^ SIGN_32);
		value.micros = static_cast<int64_t>(ReadBigEndian64(data + 8) ^ SIGN_64);
		return value;
	});
}

void DecodeBit(Vector &input, Vector &result, idx_t count) {
	UnaryExecutor::Execute<string_t, string_t>(input, result, count, [&](string_t bytes) {
		if (bytes.GetSize() < 2) {
			// No value, but the row of a deletion, which the scan drops after this: any bit string will do.
			return string_t("\x07\xFE", 2);
		}
		// What follows trusts the count of padding bits.
		if (static_cast<uint8_t>(bytes.GetData()[0]) > 7) {
			throw InvalidInputException("BIT stored in bytes that are no bit string");
		}
		return StringVector::AddStringOrBlob(result, bytes);
	});
}

void DecodeTimeTz(Vector &input, Vector &result, idx_t count) {
	UnaryExecutor::Execute<int64_t, dtime_tz_t>(input, result, count, [](int64_t stored) {
		// The offset is in the lower bits; what was added to the time for it comes off again.
		auto bits = static_cast<uint64_t>(stored);
		auto code = bits & dtime_tz_t::OFFSET_MASK;
		return dtime_tz_t(bits - dtime_tz_t::encode_micros(code * dtime_tz_t::OFFSET_MICROS));
	});
}

} // namespace

bool HasFileForm(const LogicalType &type) {
	switch (type.id()) {
	case LogicalTypeId::HUGEINT:
	case LogicalTypeId::UHUGEINT:
	case LogicalTypeId::INTERVAL:
	case LogicalTypeId::BIT:
	case LogicalTypeId::BIGNUM:
	case LogicalTypeId::TIME_TZ:
	case LogicalTypeId::TIME_NS:
		return true;
	default:
		return false;
	}
}

LogicalType FileFormType(const LogicalType &type) {
	auto is_number = type.id() == LogicalTypeId::TIME_TZ || type.id() == LogicalTypeId::TIME_NS;
	return is_number ? LogicalType::BIGINT : LogicalType::BLOB;
}

LogicalType FileFormCarrier(const LogicalType &type) {
	switch (type.id()) {
	case LogicalTypeId::BIT:
	case LogicalTypeId::BIGNUM:
		return LogicalType::BLOB;
	case LogicalTypeId::TIME_TZ:
		return LogicalType::BIGINT;
	case LogicalTypeId::TIME_NS:
		return type;
	default:
		return LogicalType::UUID;
	}
}

void EncodeFileForm(Vector &input, Vector &result, idx_t count) {
	switch (input.GetType().id()) {
	case LogicalTypeId::HUGEINT:
	case LogicalTypeId::BIT:
	case LogicalTypeId::BIGNUM:
	case LogicalTypeId::TIME_NS:
		// The bits are the carrier's already.
		result.Reinterpret(input);
		return;
	case LogicalTypeId::UHUGEINT:
		UnaryExecutor::Execute<uhugeint_t, hugeint_t>(
			input, result, count, [](uhugeint_t value) { return CarrierOf(value.upper, value.lower); });
		return;
	case LogicalTypeId::INTERVAL:
		UnaryExecutor::Execute<interval_t, hugeint_t>(input, result, count, [](interval_t value) {
			auto months = static_cast<uint32_t>(value.months) ^ SIGN_32;
			auto days = static_cast<uint32_t>(value.days) ^ SIGN_32;
			auto micros = static_cast<uint64_t>(value.micros) ^ SIGN_64;
			return CarrierOf(static_cast<uint64_t>(months) << 32 | days, micros);
		});
		return;
	case LogicalTypeId::TIME_TZ:
		UnaryExecutor::Execute<dtime_tz_t, int64_t>(
			input, result, count, [](dtime_tz_t value) { return static_cast<int64_t>(value.sort_key()); });
		return;
	default:
		throw NotImplementedException("%s has no file form", input.GetType().ToString());
	}
}

void DecodeFileForm(Vector &input, Vector &result, idx_t count) {
	switch (result.GetType().id()) {
	case LogicalTypeId::HUGEINT:
		return DecodeHugeint(input, result, count);
	case LogicalTypeId::UHUGEINT:
		return DecodeUhugeint(input, result, count);
	case LogicalTypeId::INTERVAL:
		return DecodeInterval(input, result, count);
	case LogicalTypeId::BIT:
		return DecodeBit(input, result, count);
	case LogicalTypeId::BIGNUM:
	case LogicalTypeId::TIME_NS:
		result.Reinterpret(input);
		return;
	case LogicalTypeId::TIME_TZ:
		return DecodeTimeTz(input, result, count);
	default:
		throw NotImplementedException("%s has no file form", result.GetType().ToString());
	}
}

} // namespace duckdb
