/* See tell.h. The first call of malloc begins: that is a constructor's of some library, long before this library's own comes, which is there for
   programs that allocate late. */
#define _GNU_SOURCE
#include "tell.h"

#include <errno.h>
#include <unistd.h>

prof_pool *prof_i_malloc_pool;
bool prof_i_tell_has_begun;
__thread bool prof_i_is_telling __attribute__((tls_model("initial-exec")));

/* The dynamic linker allocates before libc is set up and knows the environment: that passes. */
void __attribute__((constructor)) prof_i_tell_begin(void) {
  if (!environ || __atomic_exchange_n(&prof_i_tell_has_begun, true, __ATOMIC_RELAXED)) return;
  const int saved = errno;
  prof_pool *pool;
  prof_i_is_telling = true;
  const prof_pool_options options = {.size = sizeof options, .name = "malloc"};
  const int is_on = prof_i_start_early();
  if (is_on < 0) __atomic_store_n(&prof_i_tell_has_begun, false, __ATOMIC_RELAXED); /* prof's own allocation: the next one begins */
  if (is_on > 0 && prof_pool_create(&options, &pool) == PROF_OK) __atomic_store_n(&prof_i_malloc_pool, pool, __ATOMIC_RELEASE);
  prof_i_is_telling = false;
  errno = saved;
}
