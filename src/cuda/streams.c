/* See streams.h. */
#include "streams.h"

#include <stddef.h>

#include "tracer_library.h"

enum { STREAMS_MAX = 4096, CONTEXTS = 256 };
enum { PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD */

typedef struct cuda_stream {
  uint32_t context, stream; /* CUPTI's */
  uint64_t handle;   /* the newest: one stream may have several, as the default one has. Atomic */
  uint32_t is_ready; /* release */
} cuda_stream;

static struct {
  uint32_t generation; /* 0: not tracking; else the number of the current tracking; relaxed */
  uint32_t generation_count;
  uint32_t count; /* entries in use; relaxed */
  cuda_stream all[STREAMS_MAX];
  uint32_t devices[CONTEXTS]; /* the collector's */
} cuda_stream_table;

void prof_i_cuda_streams_set_tracking(bool do_meet) {
  __atomic_store_n(&cuda_stream_table.generation,
                   do_meet ? ++cuda_stream_table.generation_count : 0, __ATOMIC_RELAXED);
}

static uint32_t cuda_stream_count(void) {
  const uint32_t count = __atomic_load_n(&cuda_stream_table.count, __ATOMIC_RELAXED);
  return count < STREAMS_MAX ? count : STREAMS_MAX;
}

static cuda_stream *find_cuda_stream(uint32_t context, uint32_t stream) {
  for (uint32_t i = cuda_stream_count();
       i-- > 0;) { /* of a handle that was given again the later one */
    cuda_stream *const m = &cuda_stream_table.all[i];
    if (__atomic_load_n(&m->is_ready, __ATOMIC_ACQUIRE) && m->context == context &&
        m->stream == stream)
      return m;
  }
  return NULL;
}

void prof_i_cuda_stream_register(prof_i_cu_context context, prof_i_cu_stream stream,
                                 uint32_t *seen) {
  const uint32_t generation = __atomic_load_n(&cuda_stream_table.generation, __ATOMIC_RELAXED);
  const bool is_per_thread = (uintptr_t)stream == PER_THREAD;
  uint32_t context_number = 0, stream_number = 0;
  if (!generation || *seen == generation) return;
  *seen = generation;
  if (prof_i_cupti.cuptiGetContextId(context, &context_number) != 0 ||
      prof_i_cupti.cuptiGetStreamIdEx(context, is_per_thread ? NULL : stream, is_per_thread,
                                      &stream_number) != 0)
    return;
  cuda_stream *const known = find_cuda_stream(context_number, stream_number);
  if (known) __atomic_store_n(&known->handle, (uintptr_t)stream, __ATOMIC_RELAXED);
  if (known) return;
  const uint32_t place = __atomic_fetch_add(&cuda_stream_table.count, 1, __ATOMIC_RELAXED);
  if (place >= STREAMS_MAX) return;
  cuda_stream *const m = &cuda_stream_table.all[place];
  m->context = context_number;
  m->stream = stream_number;
  m->handle = (uintptr_t)stream;
  __atomic_store_n(&m->is_ready, 1, __ATOMIC_RELEASE);
}

uint64_t prof_i_cuda_stream_handle(uint32_t context, uint32_t stream) {
  const cuda_stream *const m = find_cuda_stream(context, stream);
  return m ? __atomic_load_n(&m->handle, __ATOMIC_RELAXED) : (uint64_t)context << 32 | stream;
}

void prof_i_cuda_context_set_device(uint32_t context, uint32_t device) {
  cuda_stream_table.devices[context % CONTEXTS] = device;
}

uint32_t prof_i_cuda_context_device(uint32_t context) {
  return cuda_stream_table.devices[context % CONTEXTS];
}
