/* prof/fiber.h: a fiber is a line of the capture that its thread is for a time. */
#define _GNU_SOURCE
#include <prof/fiber.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/error.h"
#include "../../base/process.h"
#include "../buffer/thread.h"

struct prof_fiber {
  prof_i_virtual_thread virtual_thread;
};

static uint64_t fiber_count; /* any thread, relaxed */

int prof_fiber_create(const char *name, prof_fiber **fiber_out) {
  if (!fiber_out) return prof_i_fail(PROF_E_INVALID, "prof_fiber_create: fiber_out is NULL");
  prof_fiber *const fiber = calloc(1, sizeof *fiber);
  if (!fiber) return prof_i_fail(PROF_E_NO_MEMORY, "prof_fiber_create: no memory for a fiber");
  const uint64_t number = __atomic_add_fetch(&fiber_count, 1, __ATOMIC_RELAXED);
  fiber->virtual_thread.thread_kind = PROF_I_KIND_OF_FIBER;
  fiber->virtual_thread.handle = PROF_I_TID_OF_FIBERS + number % PROF_I_TID_OF_FIBERS;
  if (!name) name = "fiber";
  memcpy(fiber->virtual_thread.name, name, strnlen(name, sizeof fiber->virtual_thread.name - 1));
  *fiber_out = fiber;
  return PROF_OK;
}

/* A forked child's fibers are in no thread but the one that forked. */
static bool fiber_acquire(prof_fiber *fiber) {
  uint64_t on = __atomic_load_n(&fiber->virtual_thread.on, __ATOMIC_RELAXED);
  if (on == prof_i_thread_process()) prof_i_process_is_own();
  const uint64_t here = prof_i_thread_process();
  return on != here && __atomic_compare_exchange_n(&fiber->virtual_thread.on, &on, here, false,
                                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

int prof_fiber_enter(prof_fiber *fiber) {
  if (fiber && prof_i_this_flags.virtual_thread == &fiber->virtual_thread) return PROF_OK;
  if (fiber && !fiber_acquire(fiber))
    return prof_i_fail(PROF_E_INVALID, "prof_fiber_enter: the fiber \"%s\" is on another thread",
                       fiber->virtual_thread.name);
  prof_i_virtual_thread_enter(fiber ? &fiber->virtual_thread : NULL);
  return PROF_OK;
}

void prof_fiber_leave(void) { prof_fiber_enter(NULL); }

int prof_fiber_destroy(prof_fiber *fiber) {
  if (!fiber) return PROF_OK;
  if (prof_i_this_flags.virtual_thread == &fiber->virtual_thread) prof_fiber_leave();
  if (!fiber_acquire(fiber))
    return prof_i_fail(PROF_E_INVALID, "prof_fiber_destroy: the fiber \"%s\" is on another thread",
                       fiber->virtual_thread.name);
  prof_i_virtual_thread_end_fiber(&fiber->virtual_thread);
  free(fiber);
  return PROF_OK;
}
