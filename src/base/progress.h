/* Counts the bytes of captures and traces that have been read, in all passes. A command shows the
   progress. Any thread. */
#ifndef PROF_BASE_PROGRESS_H
#define PROF_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

/* Importing a byte of a trace takes as long as reading so many bytes of a capture, roughly: 3 to 10
   were measured. It counts as so many. */
enum { PROF_I_PROGRESS_IMPORT_WEIGHT = 5 };

extern _Atomic uint64_t prof_i_progress_bytes;

/* Call it once for a large piece, because all threads share the counter. Relaxed: the value is only
   displayed. */
static inline void prof_i_progress_add(uint64_t bytes) {
  atomic_fetch_add_explicit(&prof_i_progress_bytes, bytes, memory_order_relaxed);
}

#endif
