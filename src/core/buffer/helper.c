/* See helper.h. */
#define _GNU_SOURCE
#include "helper.h"

#include <pthread.h>
#include <stdint.h>

#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "chunk.h"
#include "mapping.h"

enum { NAP_NS = 2000000, STACK_BYTES = 256 << 10 };

static struct {
  pthread_t thread;
  bool on;       /* written by a start or a stop, one at a time; read by any thread, relaxed */
  uint32_t quit; /* relaxed; the wake orders it */
  struct prof_i_unmap_list *unused; /* to be unmapped; atomic, exchange */
  int error;                        /* an errno: why the last start made no thread; control lock */
} helper;

static void helper_unmap(void) {
  prof_i_mapping_unmap_list(__atomic_exchange_n(&helper.unused, NULL, __ATOMIC_ACQUIRE));
}

static void *helper_main(void *unused) {
  (void)unused;
  prof_i_port_thread_begin("prof-helper");
  prof_i_this_flags.takes_faults = true;
  for (;;) {
    const uint32_t seen = prof_i_chunk_helper_word(); /* first: a wake comes after what it is for */
    /* A stop waits for one chunk at most. */
    if (__atomic_load_n(&helper.quit, __ATOMIC_ACQUIRE)) break;
    const bool has_made = prof_i_chunk_make_prepared(), has_dropped = prof_i_chunk_trim_one();
    if (has_made || has_dropped) continue;
    helper_unmap();
    prof_i_chunk_helper_sleep(seen, NAP_NS);
  }
  helper_unmap();
  prof_i_chunk_drop_prepared();
  return NULL;
}

/* Nothing is made ready here: until the helper has its stock, threads take their chunks
   themselves. */
void prof_i_helper_start(void) {
  if (helper.on) return;
  helper.quit = 0;
  prof_i_chunk_use_helper(true);
  helper.error = prof_i_port_thread_create(&helper.thread, STACK_BYTES, helper_main, NULL);
  const bool is_there = helper.error == 0;
  __atomic_store_n(&helper.on, is_there, __ATOMIC_RELAXED);
  if (!is_there) prof_i_chunk_use_helper(false);
}

int prof_i_helper_error(void) { return helper.error; }

void prof_i_helper_stop(void) {
  helper.error = 0;
  if (!helper.on) return;
  prof_i_chunk_use_helper(false);
  __atomic_store_n(&helper.quit, 1, __ATOMIC_RELEASE);
  prof_i_chunk_helper_wake();
  pthread_join(helper.thread, NULL);
  __atomic_store_n(&helper.on, false, __ATOMIC_RELAXED);
}

bool prof_i_helper_unmap(struct prof_i_unmap_list *all) {
  struct prof_i_unmap_list *none = NULL;
  if (!helper.on || !__atomic_compare_exchange_n(&helper.unused, &none, all, false,
                                                 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    return false;
  prof_i_chunk_helper_wake();
  return true;
}

void prof_i_helper_forget(void) {
  helper.on = false;
  helper.unused = NULL; /* the child has none of it */
  prof_i_chunk_use_helper(false);
}

bool prof_i_helper_is_on(void) { return __atomic_load_n(&helper.on, __ATOMIC_RELAXED); }
