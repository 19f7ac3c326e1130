/* Counts the bytes of captures and traces that have been read, in all passes. A command shows the
   progress. Any thread. */
#ifndef PROF_BASE_PROGRESS_H
#define PROF_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

/* A byte of an imported trace counts as this many bytes of a capture, because importing takes
   longer than reading. Factors of 3 to 10 were measured. */
enum { PROF_I_PROGRESS_IMPORT_WEIGHT = 5 };

extern _Atomic uint64_t prof_i_progress_bytes;

/* Call it once for a large piece, because all threads share the counter. Relaxed: the value is only
   displayed. */
static inline void prof_i_progress_add(uint64_t bytes) {
  atomic_fetch_add_explicit(&prof_i_progress_bytes, bytes, memory_order_relaxed);
}

#endif
