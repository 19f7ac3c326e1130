/* What the process's malloc and free report to prof: one pool of the host, "malloc". With
   PROF_MEMORY_MIN it is "malloc from N bytes on" and has only larger blocks. Left out: what prof
   allocates during a report, and all that comes before it records or after it has dumped. */
#ifndef PROF_INJECT_MALLOC_MALLOC_REPORT_H
#define PROF_INJECT_MALLOC_MALLOC_REPORT_H

#include <prof/memory.h>
#include <stdbool.h>
#include <stddef.h>

#include "next_allocator.h"

typedef struct prof_i_malloc_report {
  enum { PROF_I_REPORT_IDLE, PROF_I_REPORT_ACTIVE, PROF_I_REPORT_WITH_DEFERRED } state;
  void *deferred;        /* a block that is reported when this report is done */
  size_t deferred_bytes; /* asked for */
} prof_i_malloc_report;

/* NULL: no reports, or not yet. Atomic, set once: release, pairs with the acquire below */
extern prof_pool *prof_i_malloc_pool;
/* Smaller blocks are not reported: neither alloc nor free, as a block's size does not change. Set
   before the pool is */
extern size_t prof_i_malloc_report_min_bytes;
extern bool
    prof_i_malloc_report_is_started; /* or found that nothing is to be reported. Atomic, relaxed */
extern __thread prof_i_malloc_report prof_i_this_malloc_report
    __attribute__((tls_model("initial-exec")));

/* Starts prof as the environment says, once libc has it. */
__attribute__((cold)) void prof_i_malloc_report_start(void);

/* A block that was allocated during a report. Most are freed soon. But glibc allocates one for a
   thread with more than 32 keys, one of them prof's. It is freed when the thread ends, so it must
   be reported. */
__attribute__((cold)) void prof_i_malloc_report_defer(void *piece, size_t bytes);
__attribute__((cold)) void prof_i_malloc_report_deferred(void);
__attribute__((cold)) void prof_i_malloc_report_cancel(const void *piece);

static inline prof_pool *prof_i_malloc_report_pool(void) {
  prof_pool *const pool = __atomic_load_n(&prof_i_malloc_pool, __ATOMIC_ACQUIRE);
  if (__builtin_expect(pool != NULL, 1)) return pool;
  if (!__atomic_load_n(&prof_i_malloc_report_is_started, __ATOMIC_RELAXED))
    prof_i_malloc_report_start();
  return __atomic_load_n(&prof_i_malloc_pool, __ATOMIC_ACQUIRE);
}

static inline void prof_i_malloc_report_finish(void) {
  if (__builtin_expect(prof_i_this_malloc_report.state != PROF_I_REPORT_ACTIVE, 0))
    prof_i_malloc_report_deferred();
  prof_i_this_malloc_report.state = PROF_I_REPORT_IDLE;
}

/* When it has been handed out. NULL is ignored. */
static inline void prof_i_malloc_report_alloc(void *piece, size_t bytes) {
  if (__builtin_expect(!piece || prof_i_is_bootstrap_memory(piece), 0)) return;
  if (__builtin_expect(prof_i_this_malloc_report.state != PROF_I_REPORT_IDLE, 0)) {
    prof_i_malloc_report_defer(piece, bytes);
    return;
  }
  prof_pool *const pool = prof_i_malloc_report_pool();
  if (!pool) return;
  const size_t given_bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (given_bytes < prof_i_malloc_report_min_bytes) return;
  prof_i_this_malloc_report.state = PROF_I_REPORT_ACTIVE;
  prof_memory_alloc(pool, piece, bytes, given_bytes);
  prof_i_malloc_report_finish();
}

/* Before the block is freed, because afterwards another thread may get it. Returns the bytes
   reported, or 0. */
static inline size_t prof_i_malloc_report_free(void *piece) {
  if (__builtin_expect(prof_i_this_malloc_report.state != PROF_I_REPORT_IDLE, 0)) {
    prof_i_malloc_report_cancel(piece);
    return 0;
  }
  prof_pool *const pool = prof_i_malloc_report_pool();
  if (!pool) return 0;
  const size_t bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (bytes < prof_i_malloc_report_min_bytes) return 0;
  prof_i_this_malloc_report.state = PROF_I_REPORT_ACTIVE;
  prof_memory_free(pool, piece, bytes);
  prof_i_malloc_report_finish();
  return bytes;
}

#endif
