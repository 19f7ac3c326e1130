/* How many bytes of captures and traces have been read so far, all passes together. A command shows
   it. Any thread. */
#ifndef PROF_BASE_PROGRESS_H
#define PROF_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint64_t prof_i_progress_bytes;

/* For large pieces: it is shared by all threads. Pairs with nothing: a number for people. */
static inline void prof_i_progress_add(uint64_t bytes) {
  atomic_fetch_add_explicit(&prof_i_progress_bytes, bytes, memory_order_relaxed);
}

#endif
