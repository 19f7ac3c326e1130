/* See helper.h. It blocks all signals: the host's handlers never run on it. */
#define _GNU_SOURCE
#include "helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "arena.h"
#include "chunk.h"
#include "port.h"

enum { NAP_NS = 2000000 };

static struct {
  pthread_t thread;
  bool on;       /* guarded by the control lock */
  uint32_t quit; /* relaxed; the wake orders it */
} own;

static void *work(void *unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "prof-helper");
  while (!__atomic_load_n(&own.quit, __ATOMIC_ACQUIRE)) {
    uint32_t *const word = prof_i_chunk_helper_word();
    const uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    bool busy = false;
    while (prof_i_chunk_stock()) busy = true;
    while (prof_i_chunk_tidy()) busy = true;
    if (!busy) prof_i_port_wait(word, seen, NAP_NS);
  }
  return NULL;
}

void prof_i_helper_start(void) {
  sigset_t all, before;
  if (own.on) return;
  while (prof_i_chunk_stock()) { /* the first ones are there before the first scope */
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  own.quit = 0;
  own.on = pthread_create(&own.thread, NULL, work, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  prof_i_chunk_use_helper(own.on);
}

void prof_i_helper_stop(void) {
  if (!own.on) return;
  prof_i_chunk_use_helper(false);
  __atomic_store_n(&own.quit, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(prof_i_chunk_helper_word(), 1, __ATOMIC_RELEASE);
  prof_i_port_wake(prof_i_chunk_helper_word());
  pthread_join(own.thread, NULL);
  own.on = false;
}

void prof_i_helper_forget(void) {
  own.on = false;
  prof_i_chunk_use_helper(false);
}

bool prof_i_helper_is_on(void) { return own.on; }
