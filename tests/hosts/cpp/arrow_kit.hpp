// Arrow arrays and schemas built by hand, with their releases counted, and accessors for what comes back.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrow_abi.hpp"

namespace arrow_kit {

// Releases of arrays made here: of whole trees, and of schemas.
inline std::atomic<int> arrays_released{0}, schemas_released{0};

// One array under construction, and what its ArrowArray points to once it is out.
struct Node {
	std::vector<std::vector<uint8_t>> buffers;
	std::vector<bool> buffer_is_null;
	std::vector<Node> children;
	int64_t length = 0, null_count = 0, offset = 0;
};

struct Held {
	Node node;
	std::vector<const void *> buffers;
	std::vector<std::unique_ptr<ArrowArray>> children;
	std::vector<ArrowArray *> child_pointers;
	bool top = false;
};

inline void ReleaseArray(ArrowArray *a) {
	auto held = static_cast<Held *>(a->private_data);
	for (auto &c : held->children) {
		if (c->release) {
			c->release(c.get());
		}
	}
	if (held->top) {
		arrays_released++;
	}
	delete held;
	a->release = nullptr;
}

inline void Export(Node node, ArrowArray *out, bool top = true) {
	auto held = new Held;
	held->top = top;
	held->node = std::move(node);
	Node &n = held->node;
	for (size_t i = 0; i < n.buffers.size(); i++) {
		bool null = i < n.buffer_is_null.size() && n.buffer_is_null[i];
		held->buffers.push_back(null ? nullptr : n.buffers[i].data());
	}
	for (auto &c : n.children) {
		held->children.push_back(std::make_unique<ArrowArray>());
		Export(std::move(c), held->children.back().get(), false);
		held->child_pointers.push_back(held->children.back().get());
	}
	*out = ArrowArray{n.length,
					  n.null_count,
					  n.offset,
					  int64_t(n.buffers.size()),
					  int64_t(held->child_pointers.size()),
					  held->buffers.data(),
					  held->child_pointers.data(),
					  nullptr,
					  ReleaseArray,
					  held};
}

inline std::vector<uint8_t> Bitmap(const std::vector<bool> &bits) {
	std::vector<uint8_t> out((bits.size() + 7) / 8 + 1);
	for (size_t i = 0; i < bits.size(); i++) {
		out[i / 8] |= uint8_t(bits[i]) << (i % 8);
	}
	return out;
}

// Sets length, validity bitmap and null count; no nulls: no bitmap.
inline Node WithValidity(size_t n, const std::vector<bool> &valid) {
	Node node;
	node.length = int64_t(n);
	node.buffers.emplace_back();
	node.buffer_is_null.push_back(valid.empty());
	if (!valid.empty()) {
		node.buffers[0] = Bitmap(valid);
		for (bool v : valid) {
			node.null_count += !v;
		}
	}
	return node;
}

template <class T>
Node Fixed(const std::vector<T> &values, const std::vector<bool> &valid = {}) {
	Node node = WithValidity(values.size(), valid);
	std::vector<uint8_t> data(values.size() * sizeof(T) + 1);
	if (!values.empty()) {
		memcpy(data.data(), values.data(), values.size() * sizeof(T));
	}
	node.buffers.push_back(std::move(data));
	node.buffer_is_null.push_back(false);
	return node;
}

inline Node Bools(const std::vector<bool> &values, const std::vector<bool> &valid = {}) {
	Node node = WithValidity(values.size(), valid);
	node.buffers.push_back(Bitmap(values));
	node.buffer_is_null.push_back(false);
	return node;
}

template <class Offset>
Node Strings(const std::vector<std::string> &values, const std::vector<bool> &valid = {}) {
	Node node = WithValidity(values.size(), valid);
	std::vector<Offset> offsets{0};
	std::string data;
	for (auto &v : values) {
		data += v;
		offsets.push_back(Offset(data.size()));
	}
	std::vector<uint8_t> raw(offsets.size() * sizeof(Offset));
	memcpy(raw.data(), offsets.data(), raw.size());
	node.buffers.push_back(std::move(raw));
	node.buffers.emplace_back(data.begin(), data.end());
	node.buffers.back().push_back(0);
	node.buffer_is_null.insert(node.buffer_is_null.end(), {false, false});
	return node;
}

inline Node Struct(std::vector<Node> children, size_t n) {
	Node node = WithValidity(n, {});
	node.children = std::move(children);
	return node;
}

// A schema by hand: a struct of named columns.
struct HeldSchema {
	std::vector<std::string> texts;
	std::vector<std::unique_ptr<ArrowSchema>> children;
	std::vector<ArrowSchema *> pointers;
};

inline void ReleaseSchema(ArrowSchema *s) {
	auto held = static_cast<HeldSchema *>(s->private_data);
	if (held) {
		for (auto &c : held->children) {
			if (c->release) {
				c->release(c.get());
			}
		}
		schemas_released++;
		delete held;
	}
	s->release = nullptr;
}

inline void MakeSchema(const std::vector<std::pair<std::string, std::string>> &columns, ArrowSchema *out) {
	auto held = new HeldSchema;
	held->texts.reserve(columns.size() * 2);
	for (auto &c : columns) {
		auto child = std::make_unique<ArrowSchema>();
		*child = ArrowSchema{};
		held->texts.push_back(c.first);
		child->name = held->texts.back().c_str();
		held->texts.push_back(c.second);
		child->format = held->texts.back().c_str();
		child->flags = 2;
		child->release = ReleaseSchema;
		held->pointers.push_back(child.get());
		held->children.push_back(std::move(child));
	}
	*out =
		ArrowSchema{"+s", "", nullptr, 0, int64_t(columns.size()), held->pointers.data(), nullptr, ReleaseSchema, held};
}

// ---- reading ----

inline bool IsValid(const ArrowArray &a, int64_t i) {
	auto bits = static_cast<const uint8_t *>(a.buffers[0]);
	i += a.offset;
	return !bits || bits[i / 8] >> (i % 8) & 1;
}

template <class T>
T At(const ArrowArray &a, int64_t i) {
	T v;
	memcpy(&v, static_cast<const uint8_t *>(a.buffers[1]) + (i + a.offset) * sizeof(T), sizeof(T));
	return v;
}

inline bool BoolAt(const ArrowArray &a, int64_t i) {
	i += a.offset;
	return static_cast<const uint8_t *>(a.buffers[1])[i / 8] >> (i % 8) & 1;
}

inline std::string BytesAt(const ArrowArray &a, int64_t i, size_t width) {
	return std::string(static_cast<const char *>(a.buffers[1]) + (i + a.offset) * int64_t(width), width);
}

inline std::string StringAt(const ArrowArray &a, int64_t i) {
	auto offsets = static_cast<const int32_t *>(a.buffers[1]) + a.offset;
	return std::string(static_cast<const char *>(a.buffers[2]) + offsets[i], size_t(offsets[i + 1] - offsets[i]));
}

inline void Release(ArrowArray &a) {
	if (a.release) {
		a.release(&a);
	}
}
inline void Release(ArrowSchema &s) {
	if (s.release) {
		s.release(&s);
	}
}
inline void Release(ArrowArrayStream &s) {
	if (s.release) {
		s.release(&s);
	}
}

} // namespace arrow_kit
