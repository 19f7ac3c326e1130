/* The queues of examples/backend. The work is copies, as many as probably take so long. How long
   they took say fences of the engine around them: a machine may copy faster than when it was
   measured. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../../../examples/backend/engine.h"
#include "stage.h"

enum { BYTES = 4 << 20, CALLS = 50 };
static unsigned char *from, *to;
static uint64_t copy_us; /* of all of them, at least */
static engine_fence *fences[CALLS][2];
static int calls; /* of work(), from any thread */

static uint64_t create(void) {
  engine_queue *const queue = engine_queue_create();
  if (!queue || from) return (uintptr_t)queue;
  from = calloc(1, BYTES);
  to = malloc(BYTES);
  if (!from || !to) abort();
  memset(from, 1, BYTES);
  memset(to, 2, BYTES);
  for (int i = 0; i < 20; i++) {
    const uint64_t begun = engine_now_ns();
    memcpy(to, from, BYTES);
    const uint64_t us = (engine_now_ns() - begun) / 1000;
    if (copy_us == 0 || us < copy_us) copy_us = us;
  }
  return (uintptr_t)queue;
}
static void destroy(uint64_t stream) { engine_queue_destroy((engine_queue *)(uintptr_t)stream); }
/* Only the first calls have fences. */
static void put_fence(uint64_t stream, int call, int end) {
  if (call >= CALLS) return;
  fences[call][end] = engine_fence_create();
  if (!fences[call][end]) abort();
  engine_fence_put((engine_queue *)(uintptr_t)stream, fences[call][end]);
}
static void work(uint64_t stream, uint64_t least_us) {
  const int call = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  put_fence(stream, call, 0);
  for (uint64_t done = 0; done < 2 * least_us; done += copy_us)
    engine_copy((engine_queue *)(uintptr_t)stream, to, from, BYTES);
  put_fence(stream, call, 1);
}
static uint64_t worked_ns(int call) {
  return engine_fence_ns(fences[call][1]) - engine_fence_ns(fences[call][0]);
}
static void wait_for(uint64_t stream) { engine_finish((engine_queue *)(uintptr_t)stream); }

/* of examples/backend/backend.c, which is linked to this */
const prof_backend *prof_backend_entry(uint32_t major, uint32_t minor);
static conformance_stage stage = {"engine", NULL,     {12, 0}, NULL, create,   destroy,
                                  work,     wait_for, 0,       0,    worked_ns};
const conformance_stage *conformance_stage_get(void) {
  stage.table = prof_backend_entry(PROF_BACKEND_MAJOR, PROF_BACKEND_MINOR);
  return &stage;
}
