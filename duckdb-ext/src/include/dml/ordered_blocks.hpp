//! Rows that many threads bring, in the order in which they count.

#pragma once

#include "common/meru_handle.hpp"
#include "duckdb/common/map.hpp"
#include "duckdb/common/mutex.hpp"
#include "duckdb/parallel/interrupt.hpp"

namespace duckdb {

//! Each thread works on one of DuckDB's batches at a time, and what comes first in the statement has the lower batch
//! index. Blocks of the first batch that is not over are appended as they come; those of later ones wait, in a bounded
//! amount of memory: a thread that works ahead of the others has to stop when there is no more room.
class OrderedBlocks : public StateWithBlockableTasks {
  public:
	//! Adds a block behind those of its batch. Each batch is one thread's.
	void Add(idx_t batch, MeruBlockRef block);
	//! All batches below this one are over. Appends what that makes ready, and wakes threads that wait.
	void Advance(idx_t first_batch, MeruWriteBatch &write);
	//! Appends what is ready.
	void AppendReady(MeruWriteBatch &write);
	//! Whether a thread must not go on with its batch now. If so, it is woken later.
	bool MustWait(idx_t batch, const InterruptState &interrupt_state);

  private:
	//! What waits may take so many bytes.
	static constexpr idx_t LIMIT = idx_t(64) << 20;

	//! Takes the next block that is ready; false: there is none.
	bool TakeReady(vector<MeruBlockRef> &result);

	//! Held while blocks are appended.
	mutex append_lock;
	//! Guarded by Lock(), like what follows.
	map<idx_t, vector<MeruBlockRef>> waiting;
	idx_t waiting_bytes = 0;
	idx_t first = 0;
};

} // namespace duckdb
