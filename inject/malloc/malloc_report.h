/* What the process's malloc and free tell prof: one pool, "malloc", of the host; with
   PROF_MEMORY_MIN "malloc from N bytes on", of the larger blocks alone. Whatever prof allocates
   while it is told stays out, and so does all that comes before it records and after it has
   dumped. */
#ifndef PROF_INJECT_MALLOC_MALLOC_REPORT_H
#define PROF_INJECT_MALLOC_MALLOC_REPORT_H

#include <prof/memory.h>
#include <stdbool.h>
#include <stddef.h>

#include "next_allocator.h"

typedef struct prof_i_malloc_report {
  enum { PROF_I_REPORT_IDLE, PROF_I_REPORT_ACTIVE, PROF_I_REPORT_WITH_DEFERRED } state;
  void *deferred;        /* with WITH_LEFT: to be told when this is done */
  size_t deferred_bytes; /* asked for */
} prof_i_malloc_report;

/* NULL: nothing is told, or not yet. Atomic, set once: release, pairs with the acquire below */
extern prof_pool *prof_i_malloc_pool;
/* a block that takes less is not told, neither its begin nor its end: what it takes does not
   change. Set before the pool is */
extern size_t prof_i_malloc_report_min_bytes;
extern bool
    prof_i_malloc_report_is_started; /* or found that there is nothing to tell. Atomic, relaxed */
extern __thread prof_i_malloc_report prof_i_this_malloc_report
    __attribute__((tls_model("initial-exec")));

/* Starts prof as the environment says, once libc has it. */
__attribute__((cold)) void prof_i_malloc_report_start(void);

/* A piece that came while another was told. Most go again at once, but for what glibc makes for a
   thread with more than 32 keys, one of them prof's: that is freed when the thread ends, and so has
   to be told. */
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

/* Before it goes back: after that another thread may be given it. Returns the bytes told, 0 if
   nothing was. */
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
