/* The names that the process calls in place of libc's. Each calls the next allocator, and reports
   to prof: an alloc afterwards, a free before. A realloc is a free and an alloc. A pair costs at
   most 60 ns more than without (bench/preload.c); if PROF_MEMORY is not set, 3 to 4. The library is
   linked to libprof.so, so that the process has one prof. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/memory.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define SHOWN __attribute__((visibility("default")))

/* ---- reports ---- */

/* The reports go to one pool of the host, "malloc". With PROF_MEMORY_MIN it is "malloc from N bytes
   on" and has only larger blocks. Left out: what prof allocates during a report, and all that comes
   before it records or after it has dumped. */

typedef struct malloc_report {
  enum { REPORT_IDLE, REPORT_ACTIVE, REPORT_WITH_DEFERRED } state;
  void *deferred;        /* a block that is reported when this report is done */
  size_t deferred_bytes; /* asked for */
} malloc_report;

/* NULL: no reports, or not yet. Atomic, set once: release, pairs with the acquire below */
static prof_pool *malloc_pool;
/* Smaller blocks are not reported: neither alloc nor free, as a block's size does not change. Set
   before the pool is */
static size_t report_min_bytes;
/* Or found that nothing is to be reported. Atomic, relaxed. */
static bool report_is_started;
static __thread malloc_report this_report __attribute__((tls_model("initial-exec")));

/* stdio would allocate. */
static bool can_report_sizes(void) {
  static const char text[] =
      "prof: PROF_MEMORY: the allocator behind libprof_memory.so has no malloc_usable_size(); "
      "malloc() is not recorded\n";
  if (prof_i_next_allocator()->malloc_usable_size) return true;
  return write(STDERR_FILENO, text, sizeof text - 1) < 0 && false;
}

/* PROF_MEMORY_MIN, which prof_i_start_early() has found to be a number. The pool's name says what
   is missing in it. */
static void read_min_bytes(char *name, size_t room) {
  const char *const text = secure_getenv("PROF_MEMORY_MIN");
  report_min_bytes = text ? (size_t)strtoull(text, NULL, 10) : 0;
  if (report_min_bytes) snprintf(name, room, "malloc from %zu bytes on", report_min_bytes);
}

/* Starts prof as the environment says. The first call of malloc does it: that call comes from some
   library's constructor, long before this one, which serves programs that allocate late. Calls
   before libc knows the environment are the dynamic linker's, and start nothing. */
static void __attribute__((constructor, cold)) report_start(void) {
  if (!environ || __atomic_exchange_n(&report_is_started, true, __ATOMIC_RELAXED)) return;
  const int saved = errno;
  prof_pool *pool;
  this_report.state = REPORT_ACTIVE;
  char name[64] = "malloc";
  const prof_pool_options options = {.size = sizeof options, .name = name};
  const int is_on = prof_i_start_early();
  if (is_on > 0) read_min_bytes(name, sizeof name);
  /* prof's own allocation: the next one begins */
  if (is_on < 0) __atomic_store_n(&report_is_started, false, __ATOMIC_RELAXED);
  if (is_on > 0 && can_report_sizes() && prof_pool_create(&options, &pool) == PROF_OK)
    __atomic_store_n(&malloc_pool, pool, __ATOMIC_RELEASE);
  this_report.state = REPORT_IDLE;
  errno = saved;
}

/* For bindings/python/prof/_torch_found.py: 1 if the process's allocations are reported. */
SHOWN int prof_i_malloc_is_reported_1(void);
int prof_i_malloc_is_reported_1(void) {
  return __atomic_load_n(&malloc_pool, __ATOMIC_ACQUIRE) != NULL;
}

/* A block that was allocated during a report. Most are freed soon. But glibc allocates one for a
   thread with more than 32 keys, one of them prof's. It is freed when the thread ends, so it must
   be reported. One block a thread: prof allocates nothing else that stays. None before the pool
   exists: prof starts then. */
static __attribute__((cold)) void report_defer(void *piece, size_t bytes) {
  malloc_report *const report = &this_report;
  if (report->state != REPORT_ACTIVE || !__atomic_load_n(&malloc_pool, __ATOMIC_RELAXED)) return;
  report->deferred = piece;
  report->deferred_bytes = bytes;
  report->state = REPORT_WITH_DEFERRED;
}

static __attribute__((cold)) void report_cancel(const void *piece) {
  malloc_report *const report = &this_report;
  if (report->state == REPORT_WITH_DEFERRED && report->deferred == piece)
    report->state = REPORT_ACTIVE;
}

static __attribute__((cold)) void report_deferred(void) {
  malloc_report *const report = &this_report;
  void *const piece = report->deferred;
  const size_t given_bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (given_bytes >= report_min_bytes)
    prof_memory_alloc(malloc_pool, piece, report->deferred_bytes, given_bytes);
}

static inline prof_pool *report_pool(void) {
  prof_pool *const pool = __atomic_load_n(&malloc_pool, __ATOMIC_ACQUIRE);
  if (__builtin_expect(pool != NULL, 1)) return pool;
  if (!__atomic_load_n(&report_is_started, __ATOMIC_RELAXED)) report_start();
  return __atomic_load_n(&malloc_pool, __ATOMIC_ACQUIRE);
}

static inline void report_finish(void) {
  if (__builtin_expect(this_report.state != REPORT_ACTIVE, 0)) report_deferred();
  this_report.state = REPORT_IDLE;
}

/* When it has been handed out. NULL is ignored. */
static inline void report_alloc(void *piece, size_t bytes) {
  if (__builtin_expect(!piece || prof_i_is_bootstrap_memory(piece), 0)) return;
  if (__builtin_expect(this_report.state != REPORT_IDLE, 0)) {
    report_defer(piece, bytes);
    return;
  }
  prof_pool *const pool = report_pool();
  if (!pool) return;
  const size_t given_bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (given_bytes < report_min_bytes) return;
  this_report.state = REPORT_ACTIVE;
  prof_memory_alloc(pool, piece, bytes, given_bytes);
  report_finish();
}

/* Before the block is freed, because afterwards another thread may get it. Returns the bytes
   reported, or 0. */
static inline size_t report_free(void *piece) {
  if (__builtin_expect(this_report.state != REPORT_IDLE, 0)) {
    report_cancel(piece);
    return 0;
  }
  prof_pool *const pool = report_pool();
  if (!pool) return 0;
  const size_t bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (bytes < report_min_bytes) return 0;
  this_report.state = REPORT_ACTIVE;
  prof_memory_free(pool, piece, bytes);
  report_finish();
  return bytes;
}

/* ---- the names ---- */

/* libc's headers declare only some of them, by standard and version, with other parameters' names.
   NOLINTBEGIN(readability-redundant-declaration,
               readability-inconsistent-declaration-parameter-name) */
SHOWN void *malloc(size_t bytes);
SHOWN void *calloc(size_t count, size_t bytes);
SHOWN void *realloc(void *piece, size_t bytes);
SHOWN void *reallocarray(void *piece, size_t count, size_t bytes);
SHOWN void free(void *piece);
SHOWN void free_sized(void *piece, size_t bytes);
SHOWN void free_aligned_sized(void *piece, size_t alignment, size_t bytes);
SHOWN void *memalign(size_t alignment, size_t bytes);
SHOWN void *aligned_alloc(size_t alignment, size_t bytes);
SHOWN int posix_memalign(void **piece_out, size_t alignment, size_t bytes);
SHOWN void *valloc(size_t bytes);
SHOWN void *pvalloc(size_t bytes);

void *malloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->malloc(bytes);
  report_alloc(piece, bytes);
  return piece;
}

void *calloc(size_t count, size_t bytes) {
  void *const piece = prof_i_next_allocator()->calloc(count, bytes);
  report_alloc(piece, count * bytes); /* it has fitted */
  return piece;
}

void free(void *piece) {
  if (!piece || prof_i_is_bootstrap_memory(piece)) return;
  const prof_i_malloc_functions *const next = prof_i_next_allocator();
  report_free(piece);
  next->free(piece);
}

void free_sized(void *piece, size_t bytes) {
  (void)bytes;
  free(piece);
}

void free_aligned_sized(void *piece, size_t alignment, size_t bytes) {
  (void)alignment;
  (void)bytes;
  free(piece);
}

static void *move_from_bootstrap(void *piece, size_t bytes) {
  void *const fresh = malloc(bytes);
  const size_t most = prof_i_bootstrap_bytes_at(piece);
  if (fresh) memcpy(fresh, piece, most < bytes ? most : bytes);
  return fresh;
}

/* Reports the free before the call: the block may move, and another thread may get its place before
   the call returns. A failed call leaves the block as it was. The size that its alloc requested is
   not known here, so its real size is reported. With 0 bytes NULL is a free. */
void *realloc(void *piece, size_t bytes) {
  if (!piece) return malloc(bytes);
  if (prof_i_is_bootstrap_memory(piece)) return move_from_bootstrap(piece, bytes);
  const prof_i_malloc_functions *const next = prof_i_next_allocator();
  const size_t reported_bytes = report_free(piece);
  void *const fresh = next->realloc(piece, bytes);
  if (fresh)
    report_alloc(fresh, bytes);
  else if (bytes && reported_bytes)
    report_alloc(piece, reported_bytes);
  return fresh;
}

void *reallocarray(void *piece, size_t count, size_t bytes) {
  size_t all;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(piece, all);
  errno = ENOMEM;
  return NULL;
}

void *memalign(size_t alignment, size_t bytes) {
  void *const piece = prof_i_next_allocator()->memalign(alignment, bytes);
  report_alloc(piece, bytes);
  return piece;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  void *const piece = prof_i_next_allocator()->aligned_alloc(alignment, bytes);
  report_alloc(piece, bytes);
  return piece;
}

int posix_memalign(void **piece_out, size_t alignment, size_t bytes) {
  const int error = prof_i_next_allocator()->posix_memalign(piece_out, alignment, bytes);
  if (!error) report_alloc(*piece_out, bytes);
  return error;
}

void *valloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->valloc(bytes);
  report_alloc(piece, bytes);
  return piece;
}

void *pvalloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->pvalloc(bytes);
  report_alloc(piece, bytes);
  return piece;
}
/* NOLINTEND(readability-redundant-declaration,
             readability-inconsistent-declaration-parameter-name) */
