/* What the process's malloc and free tell prof: one pool, "malloc", of the host; with
   PROF_MEMORY_MIN "malloc from N bytes on", of the larger blocks alone. Whatever prof allocates
   while it is told stays out, and so does all that comes before it records and after it has
   dumped. */
#ifndef PROF_INJECT_MALLOC_TELL_H
#define PROF_INJECT_MALLOC_TELL_H

#include <prof/memory.h>
#include <stdbool.h>
#include <stddef.h>

#include "next.h"

typedef struct prof_i_telling {
  enum { PROF_I_NOT_TELLING, PROF_I_TELLING, PROF_I_TELLING_WITH_LEFT } state;
  void *left;        /* with WITH_LEFT: to be told when this is done */
  size_t left_bytes; /* asked for */
} prof_i_telling;

/* NULL: nothing is told, or not yet. Atomic, set once: release, pairs with the acquire below */
extern prof_pool *prof_i_malloc_pool;
/* a block that takes less is not told, neither its begin nor its end: what it takes does not
   change. Set before the pool is */
extern size_t prof_i_tell_least_bytes;
extern bool prof_i_tell_has_begun; /* or found that there is nothing to tell. Atomic, relaxed */
extern __thread prof_i_telling prof_i_this_telling __attribute__((tls_model("initial-exec")));

/* Starts prof as the environment says, once libc has it. */
__attribute__((cold)) void prof_i_tell_begin(void);

/* A piece that came while another was told. Most go again at once, but for what glibc makes for a
   thread with more than 32 keys, one of them prof's: that is freed when the thread ends, and so has
   to be told. */
__attribute__((cold)) void prof_i_tell_later(void *piece, size_t bytes);
__attribute__((cold)) void prof_i_tell_left(void);
__attribute__((cold)) void prof_i_tell_no_more(const void *piece);

static inline prof_pool *prof_i_told_pool(void) {
  prof_pool *const pool = __atomic_load_n(&prof_i_malloc_pool, __ATOMIC_ACQUIRE);
  if (__builtin_expect(pool != NULL, 1)) return pool;
  if (!__atomic_load_n(&prof_i_tell_has_begun, __ATOMIC_RELAXED)) prof_i_tell_begin();
  return __atomic_load_n(&prof_i_malloc_pool, __ATOMIC_ACQUIRE);
}

static inline void prof_i_tell_end(void) {
  if (__builtin_expect(prof_i_this_telling.state != PROF_I_TELLING, 0)) prof_i_tell_left();
  prof_i_this_telling.state = PROF_I_NOT_TELLING;
}

/* When it has been handed out. NULL is ignored. */
static inline void prof_i_tell_alloc(void *piece, size_t bytes) {
  if (__builtin_expect(!piece || prof_i_is_first_memory(piece), 0)) return;
  if (__builtin_expect(prof_i_this_telling.state != PROF_I_NOT_TELLING, 0)) {
    prof_i_tell_later(piece, bytes);
    return;
  }
  prof_pool *const pool = prof_i_told_pool();
  if (!pool) return;
  const size_t given_bytes = prof_i_the_next.malloc_usable_size(piece);
  if (given_bytes < prof_i_tell_least_bytes) return;
  prof_i_this_telling.state = PROF_I_TELLING;
  prof_memory_alloc(pool, piece, bytes, given_bytes);
  prof_i_tell_end();
}

/* Before it goes back: after that another thread may be given it. Returns the bytes told, 0 if
   nothing was. */
static inline size_t prof_i_tell_free(void *piece) {
  if (__builtin_expect(prof_i_this_telling.state != PROF_I_NOT_TELLING, 0)) {
    prof_i_tell_no_more(piece);
    return 0;
  }
  prof_pool *const pool = prof_i_told_pool();
  if (!pool) return 0;
  const size_t bytes = prof_i_the_next.malloc_usable_size(piece);
  if (bytes < prof_i_tell_least_bytes) return 0;
  prof_i_this_telling.state = PROF_I_TELLING;
  prof_memory_free(pool, piece, bytes);
  prof_i_tell_end();
  return bytes;
}

#endif
