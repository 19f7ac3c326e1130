/* WITH_GPU_PROFILER: a host scope, and an event on the stream at either end of it. The core records
   the host scope and knows nothing of the events. They are on a small stack of the thread, found by
   the scope's start. If a scope above the ending one was skipped by longjmp(), its pair is returned
   unused. Not for signal handlers, because vendors' calls are not. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "../core/record/site.h"
#include "internal.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

enum { OPEN_MAX = 64, PAIRS_AT_ONCE = 16 };

/* Found by handle and device, which are adjacent members. */
typedef struct listed_thread_stream {
  prof_i_thread_stream thread_stream;
  UT_hash_handle hh;
} listed_thread_stream;
enum { STREAM_KEY_BYTES = sizeof(uint64_t) + sizeof(prof_device) };
_Static_assert(offsetof(prof_i_thread_stream, device) ==
                       offsetof(prof_i_thread_stream, handle) + sizeof(uint64_t) &&
                   sizeof(prof_device) == 2 * sizeof(int32_t),
               "a key without gaps");

/* What a thread has to do with devices. When it ends, the next one that comes takes it, and what
   the collector still has to give back to it. */
typedef struct gpu_thread {
  prof_i_event_pair *open[OPEN_MAX];
  uint32_t depth;
  uint64_t process; /* differs in a forked child */
  listed_thread_stream
      *streams; /* a hash table: of a cluster's devices there may be many thousand */
  prof_i_thread_stream *last_stream; /* used; NULL: none was */
  struct gpu_thread *next;           /* of those whose thread has ended */
} gpu_thread;

static __thread gpu_thread *this_gpu_thread __attribute__((tls_model("initial-exec")));

static struct {
  pthread_once_t once;
  pthread_key_t key;
  bool has_key;
  gpu_thread *ended;    /* of threads that have ended; under the lock */
  pthread_mutex_t lock; /* rank 3. Nothing is called under it */
  uint64_t process;
} gpu_threads = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- threads ---- */

static void put_free_pair(prof_i_event_pair *pair);

static void gpu_thread_exit(void *value) {
  gpu_thread *const h = value;
  if (this_gpu_thread == h) this_gpu_thread = NULL;
  if (h->process != gpu_threads.process) return;
  while (h->depth > 0) put_free_pair(h->open[--h->depth]); /* of scopes that will not end */
  prof_i_thread_lock(&gpu_threads.lock);
  h->next = gpu_threads.ended;
  gpu_threads.ended = h;
  prof_i_thread_unlock(&gpu_threads.lock);
}

static void make_thread_key(void) {
  gpu_threads.has_key = pthread_key_create(&gpu_threads.key, gpu_thread_exit) == 0;
}

static gpu_thread *take_ended_thread(void) {
  prof_i_thread_lock(&gpu_threads.lock);
  gpu_thread *const h = gpu_threads.ended;
  if (h) gpu_threads.ended = h->next;
  prof_i_thread_unlock(&gpu_threads.lock);
  return h;
}

static gpu_thread *attach_gpu_thread(void) {
  PROF_I_INSIDE;
  pthread_once(&gpu_threads.once, make_thread_key);
  gpu_thread *h = take_ended_thread();
  if (!h) {
    h = calloc(1, sizeof *h);
    if (!h) return NULL;
  }
  h->process = gpu_threads.process;
  this_gpu_thread = h;
  if (gpu_threads.has_key) pthread_setspecific(gpu_threads.key, h);
  return h;
}

static gpu_thread *current_gpu_thread(void) {
  gpu_thread *const h = this_gpu_thread;
  return h && h->process == gpu_threads.process ? h : attach_gpu_thread();
}

void prof_i_gpu_scopes_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  gpu_threads.lock = fresh;
  gpu_threads.ended = NULL;
  gpu_threads.process++;
}

/* ---- streams and pairs ---- */

static bool is_stream_at(const prof_i_thread_stream *thread_stream, prof_device device,
                         uint64_t handle) {
  return thread_stream->handle == handle && prof_i_is_same_device(thread_stream->device, device);
}

/* A back end that is missing now may be loaded in a later session. */
static void find_device_stream(prof_i_thread_stream *thread_stream) {
  const uint64_t now = prof_i_arena_session();
  int loss;
  if (thread_stream->stream || thread_stream->unserved_session == now) return;
  thread_stream->stream = prof_i_stream_of(thread_stream->device, thread_stream->handle, &loss);
  if (thread_stream->stream) return;
  if (loss >= 0) { /* the next scope tries again */
    prof_i_collector_count_loss(loss);
    if (loss == PROF_LOSS_DEVICE_TIMES) prof_i_device_state_report_too_early(thread_stream->device);
    return;
  }
  if (!prof_i_registry_is_not_ready(thread_stream->device.type))
    thread_stream->unserved_session = now;
  prof_i_device_state_report_unserved(
      thread_stream->device); /* the capture says why its own times are not there */
}

static prof_i_thread_stream *make_thread_stream(gpu_thread *h, prof_device device,
                                                uint64_t handle) {
  bool is_out_of_memory = false;
  listed_thread_stream *const made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->thread_stream = (prof_i_thread_stream){.handle = handle, .device = device};
  HASH_ADD(hh, h->streams, thread_stream.handle, STREAM_KEY_BYTES, made);
  if (!is_out_of_memory) return &made->thread_stream;
  free(made);
  return NULL;
}

static prof_i_thread_stream *find_thread_stream(gpu_thread *h, prof_device device,
                                                uint64_t handle) {
  listed_thread_stream *found = NULL;
  const prof_i_thread_stream key = {.handle = handle, .device = device};
  HASH_FIND(hh, h->streams, &key.handle, STREAM_KEY_BYTES, found);
  return found ? &found->thread_stream : make_thread_stream(h, device, handle);
}

static prof_i_thread_stream *thread_stream_of(gpu_thread *h, prof_device device, uint64_t handle) {
  prof_i_thread_stream *const thread_stream =
      h->last_stream && is_stream_at(h->last_stream, device, handle)
          ? h->last_stream
          : find_thread_stream(h, device, handle);
  if (!thread_stream) return NULL;
  h->last_stream = thread_stream;
  find_device_stream(thread_stream);
  return thread_stream;
}

static int make_pair_events(prof_i_event_pair *pair, prof_i_stream *stream) {
  const prof_i_backend *const backend = stream->backend;
  int result = backend->table.event_create(backend->self, stream->handle, &pair->events[0]);
  if (result != PROF_BACKEND_OK) return result;
  result = backend->table.event_create(backend->self, stream->handle, &pair->events[1]);
  if (result == PROF_BACKEND_OK)
    pair->stream = stream;
  else
    backend->table.event_destroy(backend->self, pair->events[0]);
  return result;
}

static void make_pairs(prof_i_thread_stream *thread_stream) {
  if (thread_stream->count >= PROF_I_EVENT_PAIRS_MAX) return;
  const size_t bytes = PAIRS_AT_ONCE * sizeof(prof_i_event_pair);
  prof_i_event_pair *const pairs = aligned_alloc(PROF_I_CACHE_LINE_BYTES, bytes);
  if (!pairs) return;
  memset(pairs, 0, bytes);
  for (int i = 0; i < PAIRS_AT_ONCE; i++) {
    prof_i_event_pair *const pair = &pairs[i];
    pair->thread_stream = thread_stream;
    pair->next = thread_stream->free;
    thread_stream->free = pair;
    thread_stream->count++;
  }
}

/* The pair's events belong to a stream. If its handle has become another stream's, new events are
   made. */
static int prepare_pair(prof_i_event_pair *pair, prof_i_stream *stream) {
  if (PROF_I_LIKELY(pair->stream == stream)) return PROF_BACKEND_OK;
  if (pair->stream)
    for (int i = 0; i < 2; i++)
      pair->stream->backend->table.event_destroy(pair->stream->backend->self, pair->events[i]);
  pair->stream = NULL;
  return make_pair_events(pair, stream);
}

/* The collector had the next scope's pair and its events last: they are in the cache of another
   processor. The pair is fetched when a scope begins, and its events when that scope ends. */
static void prefetch_pair(const prof_i_event_pair *pair) {
  if (!pair) return;
  for (size_t i = 0; i < sizeof *pair; i += PROF_I_CACHE_LINE_BYTES)
    __builtin_prefetch((const char *)pair + i, 1);
}
static void prefetch_events(const prof_i_event_pair *pair) {
  if (!pair) return;
  __builtin_prefetch(pair->events[0], 1);
  __builtin_prefetch(pair->events[1], 1);
}

static bool is_stream_refused(prof_i_thread_stream *thread_stream, int result);

/* NULL, and why: there is no room, or the vendor makes no event. */
static prof_i_event_pair *take_free_pair(prof_i_thread_stream *thread_stream, int *loss_out) {
  *loss_out = PROF_LOSS_DEVICE_FULL;
  /* pairs with the push in give_back() */
  if (!thread_stream->free)
    thread_stream->free = __atomic_exchange_n(&thread_stream->returned, NULL, __ATOMIC_ACQUIRE);
  if (!thread_stream->free) make_pairs(thread_stream);
  prof_i_event_pair *const pair = thread_stream->free;
  if (!pair) return NULL;
  *loss_out = PROF_LOSS_DEVICE_TIMES;
  if (is_stream_refused(thread_stream, prepare_pair(pair, thread_stream->stream))) return NULL;
  thread_stream->free = pair->next;
  prefetch_pair(thread_stream->free);
  return pair;
}

static void put_free_pair(prof_i_event_pair *pair) {
  pair->next = pair->thread_stream->free;
  pair->thread_stream->free = pair;
}

void prof_i_event_pair_give_back(prof_i_event_pair *pair, bool is_read) {
  const prof_i_backend *const backend = pair->stream->backend;
  /* It is not queried any more. But a vendor whose event keeps the stream alive releases it when it
     sees that the event is past */
  if (!is_read) backend->table.event_query(backend->self, pair->events[0]);
  prof_i_event_pair **const returned = &pair->thread_stream->returned;
  pair->next = __atomic_load_n(returned, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(returned, &pair->next, pair, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

static void push_done_pair(prof_i_event_pair *pair) {
  prof_i_event_pair **const done = &pair->stream->done;
  pair->next = __atomic_load_n(done, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(done, &pair->next, pair, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  prof_i_collector_wake();
}

/* ---- begin and end ---- */

/* Copies a text made at run time. It is cut if there is no room for all of it. */
static uint32_t copy_pair_text(prof_i_event_pair *pair, uint32_t at, const char *text,
                               uint32_t bytes) {
  const size_t all = bytes == PROF_NUL_TERMINATED ? strnlen(text, PROF_I_EVENT_PAIR_NAME_BYTES + 1)
                                                  : bytes,
               room = PROF_I_EVENT_PAIR_NAME_BYTES - at;
  const size_t kept = all < room ? all : room;
  memcpy(pair->names + at, text, kept);
  if (kept < all) pair->flags |= PROF_I_FLAG_CUT;
  return (uint32_t)kept;
}

static void fill_pair(prof_i_event_pair *pair, const prof_site *site, const prof_details *details,
                      uint64_t start) {
  pair->start = start;
  pair->launch_serial = prof_i_this_thread->serial;
  pair->arena = prof_i_this_thread->arena;
  pair->session = prof_i_arena_session();
  pair->site = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  pair->flags = pair->name_bytes = pair->category_bytes = pair->is_late = 0;
  pair->pending_ticks = 0;
  const bool has_name = !(details->flags & PROF_I_NAME_LITERAL) && details->name,
             has_category = !(details->flags & PROF_I_CATEGORY_LITERAL) && details->category;
  if (!has_name && !has_category) return;
  if (!pair->names && !(pair->names = malloc(PROF_I_EVENT_PAIR_NAME_BYTES))) {
    pair->flags |= PROF_I_FLAG_NO_DETAILS;
    return;
  }
  if (has_name) {
    pair->flags |= PROF_I_FLAG_NAME;
    pair->name_bytes = copy_pair_text(pair, 0, details->name, details->name_bytes);
  }
  if (has_category) {
    pair->flags |= PROF_I_FLAG_CATEGORY;
    pair->category_bytes =
        copy_pair_text(pair, pair->name_bytes, details->category, details->category_bytes);
  }
}

/* Each reason is reported once in a session, not at each scope. */
static bool is_stream_refused(prof_i_thread_stream *thread_stream, int result) {
  if (PROF_I_LIKELY(result == PROF_BACKEND_OK)) return false;
  const uint64_t now = prof_i_arena_session();
  if (result != thread_stream->reported_result || now != thread_stream->reported_session)
    prof_i_stream_report_error(thread_stream->stream, result);
  thread_stream->reported_result = result;
  thread_stream->reported_session = now;
  return true;
}

static bool record_pair_event(prof_i_event_pair *pair, int which) {
  const prof_i_backend *const backend = pair->stream->backend;
  pair->ticks[which] = prof_i_clock_ticks();
  return !is_stream_refused(pair->thread_stream,
                            backend->table.event_record(backend->self, pair->thread_stream->handle,
                                                        &pair->events[which]));
}

/* The work becomes part of a graph, and so would the events. Reported, but no loss. */
static void count_captured_scope(const prof_i_thread_stream *thread_stream) {
  if (!prof_i_arena_guard_enter()) return;
  prof_i_device_state *const state =
      prof_i_device_state_get(thread_stream->stream->device, thread_stream->stream->backend);
  if (state) prof_i_device_count_add(&state->captured_count, 1);
  prof_i_arena_guard_exit();
}

/* The stream is another device's than the program says, or than it was: the back end knows. */
static bool move_to_device(prof_i_thread_stream *thread_stream, uint32_t index) {
  int loss;
  prof_i_stream *const stream = prof_i_stream_of(
      (prof_device){thread_stream->device.type, (int32_t)index}, thread_stream->handle, &loss);
  if (!stream) {
    /* below 0: its back end has gone since, as in a forked child */
    prof_i_collector_count_loss(loss < 0 ? PROF_LOSS_DEVICE_TIMES : loss);
    return false;
  }
  thread_stream->stream = stream;
  return true;
}

/* May events be put on it now? */
static bool is_stream_usable(prof_i_thread_stream *thread_stream) {
  const prof_i_backend *const backend = thread_stream->stream->backend;
  uint32_t device = 0, is_capturing = 0;
  if (!backend->table.stream_of) return true;
  if (is_stream_refused(
          thread_stream,
          backend->table.stream_of(backend->self, thread_stream->handle, &device, &is_capturing))) {
    prof_i_collector_count_loss(PROF_LOSS_DEVICE_TIMES);
    return false;
  }
  if (PROF_I_UNLIKELY(device != (uint32_t)thread_stream->stream->device.index) &&
      !move_to_device(thread_stream, device))
    return false;
  if (is_capturing) count_captured_scope(thread_stream);
  return !is_capturing;
}

static void begin_gpu_scope(prof_site *site, const prof_details *details, uint64_t start) {
  gpu_thread *const h = current_gpu_thread();
  prof_i_thread_stream *const thread_stream =
      h ? thread_stream_of(h, details->device, details->stream) : NULL;
  /* no memory; whose it is has not been asked */
  if (!thread_stream) prof_i_collector_count_loss(PROF_LOSS_DEVICE_FULL);
  if (!thread_stream || !thread_stream->stream) return;
  /* another thread makes it right now, or one of before hangs in a vendor's call */
  if (!prof_i_collector_ensure()) {
    prof_i_collector_count_loss(PROF_LOSS_DEVICE_TIMES);
    return;
  }
  if (!is_stream_usable(thread_stream)) return;
  int loss = PROF_LOSS_DEVICE_FULL;
  prof_i_event_pair *const pair = h->depth < OPEN_MAX ? take_free_pair(thread_stream, &loss) : NULL;
  if (!pair) {
    prof_i_collector_count_loss(loss);
    return;
  }
  fill_pair(pair, site, details, start);
  if (record_pair_event(pair, 0)) {
    h->open[h->depth++] = pair;
  } else {
    put_free_pair(pair);
    prof_i_collector_count_loss(PROF_LOSS_DEVICE_TIMES);
  }
}

static void end_gpu_scope(uint64_t start) {
  gpu_thread *const h = this_gpu_thread;
  if (!h || h->process != gpu_threads.process) return;
  uint32_t at = h->depth;
  while (at > 0 && h->open[at - 1]->start != start) at--;
  if (at == 0) return; /* it has no device times, or is another thread's */
  while (h->depth > at) put_free_pair(h->open[--h->depth]);
  prof_i_event_pair *const pair = h->open[--h->depth];
  prefetch_events(pair->thread_stream->free);
  if (record_pair_event(pair, 1)) {
    push_done_pair(pair);
  } else {
    put_free_pair(pair);
    prof_i_collector_count_loss(PROF_LOSS_DEVICE_TIMES);
  }
}

uint64_t prof_i_gpu_begin_1(prof_site *site, const prof_details *details) {
  const uint64_t start = prof_i_begin_details_1(site, details);
  if (!start) return 0;
  const int saved = errno;
  begin_gpu_scope(site, details, start);
  errno = saved;
  return start;
}

void prof_i_gpu_end_1(uint64_t start) {
  const int saved = errno;
  end_gpu_scope(start);
  errno = saved;
  prof_i_end_1(start);
}
