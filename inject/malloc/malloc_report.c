/* See malloc_report.h. The first call of malloc starts everything. It comes from some library's
   constructor, long before this library's own constructor, which serves programs that allocate
   late. */
#define _GNU_SOURCE
#include "malloc_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

prof_pool *prof_i_malloc_pool;
size_t prof_i_malloc_report_min_bytes;
bool prof_i_malloc_report_is_started;
__thread prof_i_malloc_report prof_i_this_malloc_report __attribute__((tls_model("initial-exec")));

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
  prof_i_malloc_report_min_bytes = text ? (size_t)strtoull(text, NULL, 10) : 0;
  if (prof_i_malloc_report_min_bytes)
    snprintf(name, room, "malloc from %zu bytes on", prof_i_malloc_report_min_bytes);
}

/* The dynamic linker allocates before libc is set up and knows the environment: that passes. */
void __attribute__((constructor)) prof_i_malloc_report_start(void) {
  if (!environ || __atomic_exchange_n(&prof_i_malloc_report_is_started, true, __ATOMIC_RELAXED))
    return;
  const int saved = errno;
  prof_pool *pool;
  prof_i_this_malloc_report.state = PROF_I_REPORT_ACTIVE;
  char name[64] = "malloc";
  const prof_pool_options options = {.size = sizeof options, .name = name};
  const int is_on = prof_i_start_early();
  if (is_on > 0) read_min_bytes(name, sizeof name);
  /* prof's own allocation: the next one begins */
  if (is_on < 0) __atomic_store_n(&prof_i_malloc_report_is_started, false, __ATOMIC_RELAXED);
  if (is_on > 0 && can_report_sizes() && prof_pool_create(&options, &pool) == PROF_OK)
    __atomic_store_n(&prof_i_malloc_pool, pool, __ATOMIC_RELEASE);
  prof_i_this_malloc_report.state = PROF_I_REPORT_IDLE;
  errno = saved;
}

/* For bindings/python/prof/_torch_found.py: 1 if the process's allocations are reported. */
__attribute__((visibility("default"))) int prof_i_malloc_is_told_1(void);
int prof_i_malloc_is_told_1(void) {
  return __atomic_load_n(&prof_i_malloc_pool, __ATOMIC_ACQUIRE) != NULL;
}

/* One a thread: prof allocates nothing else that stays. Nothing before the pool is there: prof's
   own start. */
void prof_i_malloc_report_defer(void *piece, size_t bytes) {
  prof_i_malloc_report *const telling = &prof_i_this_malloc_report;
  if (telling->state != PROF_I_REPORT_ACTIVE ||
      !__atomic_load_n(&prof_i_malloc_pool, __ATOMIC_RELAXED))
    return;
  telling->deferred = piece;
  telling->deferred_bytes = bytes;
  telling->state = PROF_I_REPORT_WITH_DEFERRED;
}

void prof_i_malloc_report_cancel(const void *piece) {
  prof_i_malloc_report *const telling = &prof_i_this_malloc_report;
  if (telling->state == PROF_I_REPORT_WITH_DEFERRED && telling->deferred == piece)
    telling->state = PROF_I_REPORT_ACTIVE;
}

void prof_i_malloc_report_deferred(void) {
  prof_i_malloc_report *const telling = &prof_i_this_malloc_report;
  void *const piece = telling->deferred;
  const size_t given_bytes = prof_i_next_functions.malloc_usable_size(piece);
  if (given_bytes >= prof_i_malloc_report_min_bytes)
    prof_memory_alloc(prof_i_malloc_pool, piece, telling->deferred_bytes, given_bytes);
}
