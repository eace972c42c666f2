//! Interrupts and progress of a call into the engine that takes long.

#pragma once

#include "duckdb/common/atomic.hpp"
#include "duckdb/main/client_context.hpp"
#include "merutable.h"

namespace duckdb {

//! How far a call is. Written by the thread that calls, read by the one that draws a progress bar.
class MeruProgress {
  public:
	//! 0 to 100, never falling.
	double Percent() const {
		return 100.0 * done.load();
	}
	//! What Set is told from now on is of one of several parts of the whole, the first one being 0.
	void BeginPart(idx_t number, idx_t count) {
		part = 1.0 / static_cast<double>(count);
		before = static_cast<double>(number) * part;
	}
	void Set(double share) {
		done = before + share * part;
	}

  private:
	double before = 0;
	double part = 1;
	atomic<double> done{0};
};

//! A MeruWatch over a client and a progress. It must live as long as the call.
class MeruWatcher {
  public:
	MeruWatcher(ClientContext &context, MeruProgress &progress) : context(context), progress(progress) {
		watch.interrupt = Interrupted;
		watch.progress = Tell;
		watch.ctx = this;
	}
	MeruWatcher(const MeruWatcher &) = delete;
	MeruWatcher &operator=(const MeruWatcher &) = delete;

	const MeruWatch *Get() const {
		return &watch;
	}

  private:
	static int Interrupted(void *self) {
		return static_cast<MeruWatcher *>(self)->context.interrupted ? 1 : 0;
	}
	static void Tell(void *self, double done) {
		static_cast<MeruWatcher *>(self)->progress.Set(done);
	}

	ClientContext &context;
	MeruProgress &progress;
	MeruWatch watch;
};

} // namespace duckdb
