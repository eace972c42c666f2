#include "dml/ordered_blocks.hpp"

namespace duckdb {

void OrderedBlocks::Add(idx_t batch, MeruBlockRef block) {
	auto guard = Lock();
	waiting_bytes += block.Size();
	waiting[batch].push_back(std::move(block));
}

void OrderedBlocks::Advance(idx_t first_batch, MeruWriteBatch &write) {
	{
		auto guard = Lock();
		if (first_batch <= first) {
			return;
		}
		first = first_batch;
		UnblockTasks(guard);
	}
	AppendReady(write);
}

bool OrderedBlocks::TakeReady(vector<MeruBlockRef> &result) {
	auto guard = Lock();
	auto entry = waiting.begin();
	if (entry == waiting.end() || entry->first > first) {
		return false;
	}
	result = std::move(entry->second);
	waiting.erase(entry);
	for (auto &block : result) {
		waiting_bytes -= block.Size();
	}
	UnblockTasks(guard);
	return true;
}

void OrderedBlocks::AppendReady(MeruWriteBatch &write) {
	lock_guard<mutex> appending(append_lock);
	vector<MeruBlockRef> blocks;
	while (TakeReady(blocks)) {
		for (auto &block : blocks) {
			write.Append(std::move(block));
		}
	}
}

bool OrderedBlocks::MustWait(idx_t batch, const InterruptState &interrupt_state) {
	auto guard = Lock();
	return batch > first && waiting_bytes >= LIMIT && BlockTask(guard, interrupt_state);
}

} // namespace duckdb
