// Stands in for z/OS's <zos-tls.h>.
//
// DuckDB's pg_functions.cpp keeps 8 KiB of parser state in a thread_local, far more than fits the static TLS block that
// the Go archive needs (see jemalloc_shim.c). Its z/OS branch (__MVS__) reaches the same state through
// __tlssim<T>::access(), so that upstream's file compiles unmodified with the state on the heap and one pointer in TLS.
#pragma once

#include <memory>

template <class T>
struct __tlssim {
	T *access() {
		static thread_local std::unique_ptr<T> state;
		if (!state) {
			state = std::unique_ptr<T>(new T());
		}
		return state.get();
	}
};
