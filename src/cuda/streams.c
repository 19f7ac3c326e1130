/* See streams.h. */
#include "streams.h"

#include <stddef.h>

#include "cupti_library.h"

enum { STREAMS_MAX = 4096, CONTEXTS = 256 };
enum { PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD */

typedef struct met {
  uint32_t context, stream; /* CUPTI's */
  uint64_t handle;   /* the newest: one stream may have several, as the default one has. Atomic */
  uint32_t is_there; /* release */
} met;

static struct {
  uint32_t turn; /* 0: nobody wants to know; else how often somebody has begun to; relaxed */
  uint32_t turns;
  uint32_t count; /* places taken; relaxed */
  met all[STREAMS_MAX];
  uint32_t devices[CONTEXTS]; /* the collector's */
} own;

void prof_i_cuda_streams_meet_them(bool do_meet) {
  __atomic_store_n(&own.turn, do_meet ? ++own.turns : 0, __ATOMIC_RELAXED);
}

static uint32_t count_of(void) {
  const uint32_t count = __atomic_load_n(&own.count, __ATOMIC_RELAXED);
  return count < STREAMS_MAX ? count : STREAMS_MAX;
}

static met *find(uint32_t context, uint32_t stream) {
  for (uint32_t i = count_of(); i-- > 0;) { /* of a handle that was given again the later one */
    met *const m = &own.all[i];
    if (__atomic_load_n(&m->is_there, __ATOMIC_ACQUIRE) && m->context == context &&
        m->stream == stream)
      return m;
  }
  return NULL;
}

void prof_i_cuda_stream_meet(prof_i_cu_context context, prof_i_cu_stream stream, uint32_t *seen) {
  const uint32_t turn = __atomic_load_n(&own.turn, __ATOMIC_RELAXED);
  const bool is_per_thread = (uintptr_t)stream == PER_THREAD;
  uint32_t context_number = 0, stream_number = 0;
  if (!turn || *seen == turn) return;
  *seen = turn;
  if (prof_i_cupti.cuptiGetContextId(context, &context_number) != 0 ||
      prof_i_cupti.cuptiGetStreamIdEx(context, is_per_thread ? NULL : stream, is_per_thread,
                                      &stream_number) != 0)
    return;
  met *const known = find(context_number, stream_number);
  if (known) __atomic_store_n(&known->handle, (uintptr_t)stream, __ATOMIC_RELAXED);
  if (known) return;
  const uint32_t place = __atomic_fetch_add(&own.count, 1, __ATOMIC_RELAXED);
  if (place >= STREAMS_MAX) return;
  met *const m = &own.all[place];
  m->context = context_number;
  m->stream = stream_number;
  m->handle = (uintptr_t)stream;
  __atomic_store_n(&m->is_there, 1, __ATOMIC_RELEASE);
}

uint64_t prof_i_cuda_stream_handle(uint32_t context, uint32_t stream) {
  const met *const m = find(context, stream);
  return m ? __atomic_load_n(&m->handle, __ATOMIC_RELAXED) : (uint64_t)context << 32 | stream;
}

void prof_i_cuda_context_is_of(uint32_t context, uint32_t device) {
  own.devices[context % CONTEXTS] = device;
}

uint32_t prof_i_cuda_context_device(uint32_t context) { return own.devices[context % CONTEXTS]; }
