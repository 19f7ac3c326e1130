/* WITH_GPU_PROFILER: a host scope, and an event on the stream at either end of it. The host's side
   is the core's and does not know of this; what is told to the device stands on a small stack of
   the thread's, found by the scope's start. A scope that began above one that ends now was skipped
   by longjmp(): its pair goes back unused. Not for signal handlers: vendors' calls are not. */
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
#include "../base/this_thread.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/gate.h"
#include "../core/buffer/thread.h"
#include "../core/record/site.h"
#include "account.h"
#include "collector.h"
#include "side.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

enum { OPEN_MAX = 64, PAIRS_AT_ONCE = 16 };

/* Found by handle and device, which stand beside each other in it. */
typedef struct listed_lot {
  prof_i_lot lot;
  UT_hash_handle hh;
} listed_lot;
enum { LOT_KEY_BYTES = sizeof(uint64_t) + sizeof(prof_device) };
_Static_assert(offsetof(prof_i_lot, device) == offsetof(prof_i_lot, handle) + sizeof(uint64_t) &&
                   sizeof(prof_device) == 2 * sizeof(int32_t),
               "a key without gaps");

/* What a thread has to do with devices. When it ends, the next one that comes takes it, and what
   the collector still has to give back to it. */
typedef struct here {
  prof_i_pair *open[OPEN_MAX];
  uint32_t depth;
  uint64_t process;  /* tells a forked parent's from ours */
  listed_lot *lots;  /* a hash table: of a cluster's devices there may be many thousand */
  prof_i_lot *last;  /* used; NULL: none was */
  struct here *next; /* of those whose thread has ended */
} here;

static __thread here *of_thread __attribute__((tls_model("initial-exec")));

static struct {
  pthread_once_t once;
  pthread_key_t key;
  bool has_key;
  here *left;           /* of threads that have ended; under the lock */
  pthread_mutex_t lock; /* rank 3. Nothing is called under it */
  uint64_t process;
} own = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- threads ---- */

static void put_pair(prof_i_pair *pair);

static void thread_goes(void *value) {
  here *const h = value;
  if (of_thread == h) of_thread = NULL;
  if (h->process != own.process) return;
  while (h->depth > 0) put_pair(h->open[--h->depth]); /* of scopes that nobody will end */
  prof_i_thread_lock(&own.lock);
  h->next = own.left;
  own.left = h;
  prof_i_thread_unlock(&own.lock);
}

static void make_key(void) { own.has_key = pthread_key_create(&own.key, thread_goes) == 0; }

static here *take_left(void) {
  prof_i_thread_lock(&own.lock);
  here *const h = own.left;
  if (h) own.left = h->next;
  prof_i_thread_unlock(&own.lock);
  return h;
}

static here *begin_thread(void) {
  PROF_I_INSIDE;
  pthread_once(&own.once, make_key);
  here *h = take_left();
  if (!h) {
    h = calloc(1, sizeof *h);
    if (!h) return NULL;
  }
  h->process = own.process;
  of_thread = h;
  if (own.has_key) pthread_setspecific(own.key, h);
  return h;
}

static here *get_here(void) {
  here *const h = of_thread;
  return h && h->process == own.process ? h : begin_thread();
}

void prof_i_device_scopes_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.left = NULL;
  own.process++;
}

/* ---- lots and pairs ---- */

static bool is_of(const prof_i_lot *lot, prof_device device, uint64_t handle) {
  return lot->handle == handle && lot->device.type == device.type &&
         lot->device.index == device.index;
}

/* Whoever serves nobody now may do so in a later session: its library may be loaded by then. */
static void look_for_stream(prof_i_lot *lot) {
  const uint64_t now = prof_i_arena_session();
  int loss;
  if (lot->stream || lot->since == now) return;
  lot->stream = prof_i_stream_of(lot->device, lot->handle, &loss);
  if (lot->stream) return;
  if (loss >= 0) { /* the next scope tries again */
    prof_i_collector_lose(loss);
    if (loss == PROF_LOSS_DEVICE_TIMES) prof_i_device_account_too_early(lot->device);
    return;
  }
  if (!prof_i_registry_is_waiting(lot->device.type)) lot->since = now;
  prof_i_device_account_nobody(lot->device); /* the capture says why its own times are not there */
}

static prof_i_lot *make_lot(here *h, prof_device device, uint64_t handle) {
  bool is_out_of_memory = false;
  listed_lot *const made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->lot = (prof_i_lot){.handle = handle, .device = device};
  HASH_ADD(hh, h->lots, lot.handle, LOT_KEY_BYTES, made);
  if (!is_out_of_memory) return &made->lot;
  free(made);
  return NULL;
}

static prof_i_lot *find_lot(here *h, prof_device device, uint64_t handle) {
  listed_lot *found = NULL;
  const prof_i_lot key = {.handle = handle, .device = device};
  HASH_FIND(hh, h->lots, &key.handle, LOT_KEY_BYTES, found);
  return found ? &found->lot : make_lot(h, device, handle);
}

static prof_i_lot *lot_of(here *h, prof_device device, uint64_t handle) {
  prof_i_lot *const lot =
      h->last && is_of(h->last, device, handle) ? h->last : find_lot(h, device, handle);
  if (!lot) return NULL;
  h->last = lot;
  look_for_stream(lot);
  return lot;
}

static int make_events(prof_i_pair *pair, prof_i_stream *stream) {
  const prof_i_back_end *const end = stream->end;
  int result = end->table.event_create(end->self, stream->handle, &pair->events[0]);
  if (result != PROF_BACKEND_OK) return result;
  result = end->table.event_create(end->self, stream->handle, &pair->events[1]);
  if (result == PROF_BACKEND_OK)
    pair->stream = stream;
  else
    end->table.event_destroy(end->self, pair->events[0]);
  return result;
}

static void make_pairs(prof_i_lot *lot) {
  if (lot->count >= PROF_I_PAIRS_MAX) return;
  const size_t bytes = PAIRS_AT_ONCE * sizeof(prof_i_pair);
  prof_i_pair *const pairs = aligned_alloc(PROF_I_LINE_BYTES, bytes);
  if (!pairs) return;
  memset(pairs, 0, bytes);
  for (int i = 0; i < PAIRS_AT_ONCE; i++) {
    prof_i_pair *const pair = &pairs[i];
    pair->lot = lot;
    pair->next = lot->free;
    lot->free = pair;
    lot->count++;
  }
}

/* Its events are of the lot's stream: one whose handle has become another stream's makes its
   own. */
static int make_ready(prof_i_pair *pair, prof_i_stream *stream) {
  if (PROF_I_LIKELY(pair->stream == stream)) return PROF_BACKEND_OK;
  if (pair->stream)
    for (int i = 0; i < 2; i++)
      pair->stream->end->table.event_destroy(pair->stream->end->self, pair->events[i]);
  pair->stream = NULL;
  return make_events(pair, stream);
}

/* The collector had the next scope's pair and its events last: they are in the cache of another
   processor. The pair is fetched when a scope begins, and its events when that scope ends. */
static void fetch_pair(const prof_i_pair *pair) {
  if (!pair) return;
  for (size_t i = 0; i < sizeof *pair; i += PROF_I_LINE_BYTES)
    __builtin_prefetch((const char *)pair + i, 1);
}
static void fetch_events(const prof_i_pair *pair) {
  if (!pair) return;
  __builtin_prefetch(pair->events[0], 1);
  __builtin_prefetch(pair->events[1], 1);
}

static bool is_refused(prof_i_lot *lot, int result);

/* NULL, and why: there is no room, or the vendor makes no event. */
static prof_i_pair *take_pair(prof_i_lot *lot, int *loss_out) {
  *loss_out = PROF_LOSS_DEVICE_FULL;
  /* pairs with the push in give_back() */
  if (!lot->free) lot->free = __atomic_exchange_n(&lot->back, NULL, __ATOMIC_ACQUIRE);
  if (!lot->free) make_pairs(lot);
  prof_i_pair *const pair = lot->free;
  if (!pair) return NULL;
  *loss_out = PROF_LOSS_DEVICE_TIMES;
  if (is_refused(lot, make_ready(pair, lot->stream))) return NULL;
  lot->free = pair->next;
  fetch_pair(lot->free);
  return pair;
}

static void put_pair(prof_i_pair *pair) {
  pair->next = pair->lot->free;
  pair->lot->free = pair;
}

void prof_i_pair_give_back(prof_i_pair *pair, bool is_read) {
  const prof_i_back_end *const end = pair->stream->end;
  /* nobody asks it any more: a vendor whose event keeps the stream alive sees that it is past, and
     lets go */
  if (!is_read) end->table.event_query(end->self, pair->events[0]);
  prof_i_pair **const back = &pair->lot->back;
  pair->next = __atomic_load_n(back, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(back, &pair->next, pair, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

static void push_done(prof_i_pair *pair) {
  prof_i_pair **const done = &pair->stream->done;
  pair->next = __atomic_load_n(done, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(done, &pair->next, pair, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  prof_i_collector_wake();
}

/* ---- begin and end ---- */

/* A text made at run time, cut at the room that there is. */
static uint32_t copy_text(prof_i_pair *pair, uint32_t at, const char *text, uint32_t bytes) {
  const size_t all =
                   bytes == PROF_NUL_TERMINATED ? strnlen(text, PROF_I_SIDE_NAME_BYTES + 1) : bytes,
               room = PROF_I_SIDE_NAME_BYTES - at;
  const size_t kept = all < room ? all : room;
  memcpy(pair->names + at, text, kept);
  if (kept < all) pair->flags |= PROF_I_FLAG_CUT;
  return (uint32_t)kept;
}

static void describe(prof_i_pair *pair, const prof_site *site, const prof_details *details,
                     uint64_t start) {
  pair->start = start;
  pair->launch = prof_i_this_thread->serial;
  pair->arena = prof_i_this_thread->arena;
  pair->session = prof_i_arena_session();
  pair->site = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  pair->flags = pair->name_bytes = pair->category_bytes = pair->is_late = 0;
  pair->waited = 0;
  const bool has_name = !(details->flags & PROF_I_NAME_LITERAL) && details->name,
             has_category = !(details->flags & PROF_I_CATEGORY_LITERAL) && details->category;
  if (!has_name && !has_category) return;
  if (!pair->names && !(pair->names = malloc(PROF_I_SIDE_NAME_BYTES))) {
    pair->flags |= PROF_I_FLAG_NO_DETAILS;
    return;
  }
  if (has_name) {
    pair->flags |= PROF_I_FLAG_NAME;
    pair->name_bytes = copy_text(pair, 0, details->name, details->name_bytes);
  }
  if (has_category) {
    pair->flags |= PROF_I_FLAG_CATEGORY;
    pair->category_bytes =
        copy_text(pair, pair->name_bytes, details->category, details->category_bytes);
  }
}

static void tell_refused(const prof_i_lot *lot, int result) {
  const prof_i_stream *const stream = lot->stream;
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, "stream 0x%llx: %s", (unsigned long long)lot->handle,
           prof_i_registry_words(stream->end, result));
  prof_i_registry_tell(stream->end, lot->handle, result);
  if (!prof_i_gate_enter()) return;
  prof_i_device_account_why_not(stream->device, stream->end, result, reason);
  prof_i_gate_leave();
}

/* Why the stream has no device side can be asked: each reason is told once a session, not at each
   scope. */
static bool is_refused(prof_i_lot *lot, int result) {
  if (PROF_I_LIKELY(result == PROF_BACKEND_OK)) return false;
  const uint64_t now = prof_i_arena_session();
  if (result != lot->told || now != lot->told_in) tell_refused(lot, result);
  lot->told = result;
  lot->told_in = now;
  return true;
}

static bool record(prof_i_pair *pair, int which) {
  const prof_i_back_end *const end = pair->stream->end;
  pair->ticks[which] = prof_i_clock_ticks();
  return !is_refused(pair->lot,
                     end->table.event_record(end->self, pair->lot->handle, &pair->events[which]));
}

/* Work that becomes part of a graph: its events would, too. No loss, but told. */
static void tell_captured(const prof_i_lot *lot) {
  if (!prof_i_gate_enter()) return;
  prof_i_device_state *const state = prof_i_device_account(lot->stream->device, lot->stream->end);
  if (state) prof_i_account_add(&state->captured_count, 1);
  prof_i_gate_leave();
}

/* The stream is another device's than the program says, or than it was: the back end knows. */
static bool go_to_device(prof_i_lot *lot, uint32_t index) {
  int loss;
  prof_i_stream *const stream =
      prof_i_stream_of((prof_device){lot->device.type, (int32_t)index}, lot->handle, &loss);
  if (!stream) {
    /* below 0: its back end has gone since, as in a forked child */
    prof_i_collector_lose(loss < 0 ? PROF_LOSS_DEVICE_TIMES : loss);
    return false;
  }
  lot->stream = stream;
  return true;
}

/* May events be put on it now? */
static bool is_usable(prof_i_lot *lot) {
  const prof_i_back_end *const end = lot->stream->end;
  uint32_t device = 0, is_capturing = 0;
  if (!end->table.stream_of) return true;
  if (is_refused(lot, end->table.stream_of(end->self, lot->handle, &device, &is_capturing))) {
    prof_i_collector_lose(PROF_LOSS_DEVICE_TIMES);
    return false;
  }
  if (PROF_I_UNLIKELY(device != (uint32_t)lot->stream->device.index) && !go_to_device(lot, device))
    return false;
  if (is_capturing) tell_captured(lot);
  return !is_capturing;
}

static void begin_side(prof_site *site, const prof_details *details, uint64_t start) {
  here *const h = get_here();
  prof_i_lot *const lot = h ? lot_of(h, details->device, details->stream) : NULL;
  /* no memory; whose it is has not been asked */
  if (!lot) prof_i_collector_lose(PROF_LOSS_DEVICE_FULL);
  if (!lot || !lot->stream) return;
  /* another thread makes it right now, or one of before hangs in a vendor's call */
  if (!prof_i_collector_is_wanted()) {
    prof_i_collector_lose(PROF_LOSS_DEVICE_TIMES);
    return;
  }
  if (!is_usable(lot)) return;
  int loss = PROF_LOSS_DEVICE_FULL;
  prof_i_pair *const pair = h->depth < OPEN_MAX ? take_pair(lot, &loss) : NULL;
  if (!pair) {
    prof_i_collector_lose(loss);
    return;
  }
  describe(pair, site, details, start);
  if (record(pair, 0)) {
    h->open[h->depth++] = pair;
  } else {
    put_pair(pair);
    prof_i_collector_lose(PROF_LOSS_DEVICE_TIMES);
  }
}

static void end_side(uint64_t start) {
  here *const h = of_thread;
  if (!h || h->process != own.process) return;
  uint32_t at = h->depth;
  while (at > 0 && h->open[at - 1]->start != start) at--;
  if (at == 0) return; /* it had no such side, or is another thread's */
  while (h->depth > at) put_pair(h->open[--h->depth]);
  prof_i_pair *const pair = h->open[--h->depth];
  fetch_events(pair->lot->free);
  if (record(pair, 1)) {
    push_done(pair);
  } else {
    put_pair(pair);
    prof_i_collector_lose(PROF_LOSS_DEVICE_TIMES);
  }
}

uint64_t prof_i_gpu_begin_1(prof_site *site, const prof_details *details) {
  const uint64_t start = prof_i_begin_details_1(site, details);
  if (!start) return 0;
  const int saved = errno;
  begin_side(site, details, start);
  errno = saved;
  return start;
}

void prof_i_gpu_end_1(uint64_t start) {
  const int saved = errno;
  end_side(start);
  errno = saved;
  prof_i_end_1(start);
}
