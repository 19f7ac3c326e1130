/* The states of pools: see internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/fault.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/meta.h"
#include "../core/buffer/observer.h"
#include "../core/buffer/session.h"
#include "../core/record/site.h"
#include "../core/session/control.h"

enum {
  WORDS_BEFORE = PROF_I_POOL_STATE_WORD - 3,
  LINE_BYTES = PROF_I_POOL_STATE_ALIGNMENT,
  POOL_WORDS = WORDS_BEFORE + LINE_BYTES / 8 + sizeof(prof_i_pool_state) / 8
};

static struct {
  /* in the order of their making; first by any thread, put behind the last with release */
  prof_pool *first, *last;
  uint64_t serials; /* control lock */
  uint32_t numbers; /* given in this arena. Control lock */
  uint32_t starts;  /* of memory, in this arena. Control lock */
  uint64_t begun;   /* the same over the process's life. Control lock */
} pool_registry;

prof_pool *prof_i_pool_first(void) {
  return __atomic_load_n(&pool_registry.first, __ATOMIC_ACQUIRE);
}

static void renumber(void) { pool_registry.numbers = pool_registry.starts = 0; }

/* ---- a state ---- */

/* What there was before a start. */
typedef struct query_result {
  uint64_t used, allocated;
  prof_i_baseline baseline;
} query_result;

typedef struct pool_init {
  const prof_pool *pool;
  uint64_t *words; /* of the record, once it has its place; not of a spare state */
  prof_i_pool_state *state;
  uint64_t number, session, start, ticks;
  uint64_t used, allocated; /* bytes */
  prof_i_baseline baseline;
} pool_init;

static void store_relaxed(uint64_t *to, uint64_t value) {
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void begin_peak(prof_i_peak *peak, uint64_t value, uint64_t ticks) {
  store_relaxed(&peak->peak, value);
  store_relaxed(&peak->peak_ticks, ticks);
  store_relaxed(&peak->base, value);
  store_relaxed(&peak->begin_ticks, ticks);
}

static void fill_pool_state(prof_i_pool_state *state, const pool_init *b) {
  const bool is_query = b->pool->kind == PROF_MEMORY_QUERY;
  *state = (prof_i_pool_state){.kind = b->pool->kind,
                               .used = is_query ? 0 : PROF_I_USED_ZERO + b->used,
                               .allocated = PROF_I_USED_ZERO + b->allocated};
  begin_peak(&state->used_peaks[0], state->used, b->ticks);
  begin_peak(&state->allocated_peaks[0], state->allocated, b->ticks);
  state->number = b->number;
}

/* Of a meta record: see PROF_I_KIND_POOL. */
static void *fill_pool_record(uint64_t *words, void *with) {
  pool_init *const b = with;
  const prof_pool *const pool = b->pool;
  b->words = words;
  words[0] = b->number | (uint64_t)pool->kind << 32;
  words[1] = (uint32_t)pool->device.type | (uint64_t)(uint32_t)pool->device.index << 32;
  words[2] = pool->serial | b->session << 32;
  words[3] = b->used;
  words[4] = b->allocated;
  words[5] = b->baseline | b->start << 32;
  prof_i_put_text(words + PROF_I_POOL_NAME_WORD - 3, pool->name, strlen(pool->name));
  const uintptr_t at =
      ((uintptr_t)(words + WORDS_BEFORE) + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1);
  prof_i_pool_state *const state = (prof_i_pool_state *)at;
  fill_pool_state(state, b);
  return state;
}

/* Values from before the start are cut at 2^43 bytes: more cannot be real memory. */
static uint64_t clamp_bytes(uint64_t bytes) {
  return bytes < PROF_I_USED_ZERO / 2 ? bytes : PROF_I_USED_ZERO / 2;
}

/* Into a record and a state that stand, and that others may look at, but nobody adds to yet. */
static void pool_init_update(const pool_init *b) {
  prof_i_pool_state *const state = b->state;
  const uint64_t used = PROF_I_USED_ZERO + b->used, allocated = PROF_I_USED_ZERO + b->allocated;
  if (b->words) {
    store_relaxed(&b->words[3], b->used);
    store_relaxed(&b->words[4], b->allocated);
    store_relaxed(&b->words[5], b->baseline | b->start << 32);
  }
  store_relaxed(&state->used, used);
  store_relaxed(&state->allocated, allocated);
  begin_peak(&state->used_peaks[0], used, b->ticks);
  begin_peak(&state->allocated_peaks[0], allocated, b->ticks);
}

/* What there was before, and when. */
static void pool_init_set_baseline(prof_pool *pool, pool_init *b, const query_result *a) {
  b->ticks = prof_i_clock_ticks();
  b->used = clamp_bytes(a->used);
  b->allocated = clamp_bytes(a->allocated);
  b->baseline = a->baseline;
  if (b->state) pool_init_update(b);
  __atomic_store_n(&pool->before_bytes, b->used, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->knows_before, prof_i_baseline_is_whole(a->baseline), __ATOMIC_RELAXED);
}

/* A state that nobody adds to yet. Control lock held, recording. */
static void pool_create_state(prof_pool *pool, pool_init *b, const query_result *a) {
  pool_init_set_baseline(pool, b, a);
  b->session = prof_i_arena_header()->session;
  b->start = pool_registry.starts;
  b->number = ++pool_registry.numbers;
  b->state = prof_i_meta_place(PROF_I_KIND_POOL, b->ticks, POOL_WORDS, fill_pool_record, b);
  if (!b->state) { /* no room */
    b->state = &pool->spare;
    b->number = 0;
    fill_pool_state(b->state, b);
  }
  pool->start = pool_registry.begun;
  __atomic_store_n(&pool->since_ticks, b->ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->init_count, pool->init_count + 1, __ATOMIC_RELEASE);
  __atomic_store_n(&pool->state, b->state, __ATOMIC_RELEASE);
}

/* The pool's events need no slow path from now on. Control lock held. */
static void pool_open(prof_pool *pool) {
  __atomic_fetch_or(&pool->start_seq, PROF_I_POOL_IS_OPEN, __ATOMIC_SEQ_CST);
  __atomic_store_n(&pool->epoch, prof_i_session_epoch(), __ATOMIC_RELEASE);
}

/* Control lock held, recording. */
static void pool_give_state(prof_pool *pool, const query_result *a) {
  pool_init b = {.pool = pool};
  pool_create_state(pool, &b, a);
  pool_open(pool);
}

void prof_i_pool_follow_epoch(prof_pool *pool) {
  uint64_t was = __atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE);
  if (was)
    __atomic_compare_exchange_n(&pool->epoch, &was, prof_i_session_epoch(), false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

static bool pool_has_state(const prof_pool *pool) {
  return __atomic_load_n(&pool->epoch, __ATOMIC_RELAXED) != 0;
}

/* ---- queries ---- */

enum { POLL_NS = 1000000 };

/* the query that this thread is in */
static __thread prof_i_pool_query *innermost_query __attribute__((tls_model("initial-exec")));

static uint32_t own_query_count(const prof_pool *pool) {
  uint32_t count = 0;
  for (const prof_i_pool_query *at = innermost_query; at; at = at->outer) count += at->pool == pool;
  return count;
}

bool prof_i_pool_begin_query(prof_i_pool_query *asking, prof_pool *pool, uint64_t serial) {
  if (own_query_count(pool)) return false;
  const uint32_t was = __atomic_fetch_add(&pool->asking, 1, __ATOMIC_SEQ_CST);
  *asking = (prof_i_pool_query){pool, innermost_query};
  if (!(was & PROF_I_POOL_QUERY_CLOSED) &&
      __atomic_load_n(&pool->serial, __ATOMIC_SEQ_CST) == serial) {
    innermost_query = asking;
    return true;
  }
  __atomic_fetch_sub(&pool->asking, 1, __ATOMIC_RELEASE);
  return false;
}

void prof_i_pool_end_query(const prof_i_pool_query *asking) {
  innermost_query = asking->outer;
  __atomic_fetch_sub(&asking->pool->asking, 1, __ATOMIC_RELEASE);
}

static void await_no_query(prof_pool *pool) {
  if (own_query_count(pool)) return; /* the query destroys its own pool */
  for (uint32_t asking;
       (asking = __atomic_load_n(&pool->asking, __ATOMIC_ACQUIRE)) & ~PROF_I_POOL_QUERY_CLOSED;)
    prof_i_port_wait(&pool->asking, asking, POLL_NS);
}

prof_pool *prof_i_pool_find_query(prof_device device, uint64_t *serial_out) {
  for (prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
    *serial_out = __atomic_load_n(&pool->serial, __ATOMIC_ACQUIRE);
    if (*serial_out && pool->kind == PROF_MEMORY_QUERY &&
        prof_i_is_same_device(pool->device, device))
      return pool;
  }
  return NULL;
}

/* ---- sessions ---- */

/* With no lock: it is the user's code. */
static query_result query_pool(const prof_pool *pool) {
  query_result a = {0};
  if (pool->kind == PROF_MEMORY_POOL && pool->query &&
      pool->query(pool->user, &a.used, &a.allocated) == 0)
    a.baseline = PROF_I_BASELINE_QUERIED;
  else
    a = (query_result){0};
  return a;
}

static void count_memory_start(void) {
  pool_registry.starts++;
  pool_registry.begun++;
  prof_i_pool_clear_totals();
  prof_i_pool_hide_totals(false);
}

/* A pool may never be quiet during its query. The query is called at least so often and for so
   long, and at most for so long. */
enum { QUERY_TRIES_MIN = 1000, QUERY_NS_MIN = 50000000, QUERY_NS_MAX = 1000000000 };

static bool is_queried_enough(unsigned times, uint64_t since_ns) {
  const uint64_t passed = prof_i_ns_since(since_ns);
  return passed >= (times >= QUERY_TRIES_MIN ? (uint64_t)QUERY_NS_MIN : (uint64_t)QUERY_NS_MAX);
}

static uint64_t start_seq_of(const prof_pool *pool) {
  return __atomic_load_n(&pool->start_seq, __ATOMIC_SEQ_CST);
}

/* Unless it has been stirred since: then *stir says how. */
static bool pool_open_if_unchanged(prof_pool *pool, uint64_t *start_seq) {
  return __atomic_compare_exchange_n(&pool->start_seq, start_seq, *start_seq | PROF_I_POOL_IS_OPEN,
                                     false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Calls the query again as long as events come between its answer and the instruction that opens
   the pool. So answer and events fit together. Events before that instruction are in the answer
   only. No lock held; the state is there, and stays. Ends also when another start has begun. */
static void query_until_quiet(prof_pool *pool, pool_init *b, uint64_t start) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  for (unsigned times = 1;; times++) {
    uint64_t start_seq = start_seq_of(pool);
    if ((start_seq ^ start) & PROF_I_POOL_START_MASK) return;
    query_result a = query_pool(pool);
    const bool is_last = a.baseline != PROF_I_BASELINE_QUERIED || is_queried_enough(times, begun);
    if (a.baseline == PROF_I_BASELINE_QUERIED && is_last) a.baseline = PROF_I_BASELINE_NEAR;
    pool_init_set_baseline(pool, b, &a);
    if (pool_open_if_unchanged(pool, &start_seq)) return;
    while (is_last || PROF_I_FAULT(ASKED_ONCE))
      if (((start_seq ^ start) & PROF_I_POOL_START_MASK) ||
          pool_open_if_unchanged(pool, &start_seq))
        return;
  }
}

/* Does the pool need a state of this session? Control lock held. */
static bool pool_needs_state(const prof_pool *pool, uint64_t serial, uint64_t session) {
  return serial && pool->serial == serial && !pool_has_state(pool) &&
         prof_i_session_is_recording() && prof_i_arena_header()->session == session;
}

/* Gives the pool its state, with what its query says was there before. */
static void begin_pool(prof_pool *pool, uint64_t session) {
  pool_init b = {.pool = pool};
  prof_i_pool_query asking;
  prof_i_control_lock();
  const uint64_t serial = pool->serial, start = start_seq_of(pool);
  const bool is_needed = pool_needs_state(pool, serial, session);
  const bool is_asked = is_needed && pool->kind == PROF_MEMORY_POOL && pool->query &&
                        prof_i_pool_begin_query(&asking, pool, serial);
  if (is_needed) {
    pool_create_state(pool, &b, &(query_result){0});
    if (!is_asked) pool_open(pool);
  }
  prof_i_control_unlock();
  if (!is_asked) return;
  query_until_quiet(pool, &b, start);
  prof_i_pool_end_query(&asking);
  prof_i_control_lock();
  if (pool_needs_state(pool, serial, session) && pool->state == b.state) pool_open(pool);
  prof_i_control_unlock();
}

static bool memory_is_starting(void) {
  return __atomic_load_n(&prof_i_memory_on, __ATOMIC_ACQUIRE) == PROF_I_MEMORY_STARTS;
}

/* Another thread is at it: by the end of it events are as they will be. Not for ever, for what it
   asks may be a program's that waits for us. */
static void await_memory_start(void) {
  enum { PATIENCE_MS = 100 };
  const struct timespec nap = {0, 50000};
  for (const uint64_t begun = prof_i_port_monotonic_ns();
       memory_is_starting() && prof_i_ns_since(begun) < PATIENCE_MS * UINT64_C(1000000);)
    nanosleep(&nap, NULL);
}

static void begin_all(void) {
  prof_i_control_lock();
  const bool is_ours = prof_i_session_is_recording() && !prof_i_session_has_memory();
  const uint64_t session = is_ours ? prof_i_arena_header()->session : 0;
  if (is_ours) {
    count_memory_start();
    for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
      __atomic_store_n(&pool->start_seq,
                       (pool_registry.begun << PROF_I_POOL_START_SHIFT) & PROF_I_POOL_START_MASK,
                       __ATOMIC_SEQ_CST);
    __atomic_store_n(&prof_i_memory_on, PROF_I_MEMORY_STARTS, __ATOMIC_SEQ_CST);
  }
  const uint64_t start = pool_registry.begun;
  prof_i_control_unlock();
  if (!is_ours) {
    if (!prof_i_this_flags.begins_pools) await_memory_start();
    return;
  }
  /* A query, or a signal handler, of this thread cannot wait for the end of this. */
  prof_i_this_flags.begins_pools = true;
  for (prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE))
    begin_pool(pool, session);
  prof_i_control_lock();
  /* unless it was stopped meanwhile, and perhaps begun anew */
  uint32_t starts = PROF_I_MEMORY_STARTS;
  if (prof_i_session_is_recording() && prof_i_arena_header()->session == session &&
      pool_registry.begun == start)
    __atomic_compare_exchange_n(&prof_i_memory_on, &starts, PROF_I_MEMORY_ON, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  prof_i_this_flags.begins_pools = false;
  prof_i_control_unlock();
}

static void begin_child(void) {
  count_memory_start();
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next) {
    if (!pool->serial || pool_has_state(pool)) continue;
    const bool has = pool->inherited_used != 0;
    const int64_t used = prof_i_used_bytes(pool->inherited_used),
                  allocated = prof_i_used_bytes(pool->inherited_allocated);
    pool_give_state(pool, &(query_result){has && used > 0 ? (uint64_t)used : 0,
                                          has && allocated > 0 ? (uint64_t)allocated : 0,
                                          !has                 ? PROF_I_BASELINE_NONE
                                          : pool->knows_before ? PROF_I_BASELINE_INHERITED
                                                               : PROF_I_BASELINE_PART});
  }
  __atomic_store_n(&prof_i_memory_on, PROF_I_MEMORY_ON, __ATOMIC_RELEASE);
}

static void end_all(void) {
  __atomic_store_n(&prof_i_memory_on, PROF_I_MEMORY_OFF, __ATOMIC_RELEASE);
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
    __atomic_store_n(&pool->epoch, 0, __ATOMIC_RELEASE);
}

static void before_fork(void) {
  for (prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
    const prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
    if (!state || !pool_has_state(pool)) continue; /* its arena may be gone */
    __atomic_store_n(&pool->fork_used, __atomic_load_n(&state->used, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&pool->fork_allocated, __atomic_load_n(&state->allocated, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
  }
}

static void forget_all(bool was_before_fork) {
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next) {
    const prof_i_pool_state *const state = pool->state;
    pool->asking = own_query_count(pool);
    pool->lock = 0;
    pool->init_count++;
    if (pool->epoch && state && pool->kind == PROF_MEMORY_POOL) {
      pool->inherited_used =
          was_before_fork ? pool->fork_used : __atomic_load_n(&state->used, __ATOMIC_RELAXED);
      pool->inherited_allocated = was_before_fork
                                      ? pool->fork_allocated
                                      : __atomic_load_n(&state->allocated, __ATOMIC_RELAXED);
    }
    pool->epoch = 0;
    pool->state = NULL;
  }
}

/* The next peak begins from what is used now. An event whose sum is made after the era has changed
   raises the new one. Killed in between, it stands at 0: readers know that it is at least what is
   used, and where it began they find near enough. A query's answer from before the reset may hold
   no more: its peak begins with the next answer. */
static void pool_reset_peaks(prof_pool *pool) {
  prof_i_pool_state *const state = pool->state;
  if (!state || !pool_has_state(pool)) return;
  const uint64_t reset_count = state->reset_count + 1, ticks = prof_i_clock_ticks();
  const bool is_query = state->kind == PROF_MEMORY_QUERY;
  prof_i_peak *const used = &state->used_peaks[reset_count % PROF_I_PEAKS],
                     *const allocated = &state->allocated_peaks[reset_count % PROF_I_PEAKS];
  __atomic_store_n(&used->peak, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&allocated->peak, 0, __ATOMIC_RELAXED);
  uint64_t used_before = 0, allocated_before = PROF_I_USED_ZERO;
  if (!is_query) {
    used_before = __atomic_load_n(&state->used, __ATOMIC_RELAXED);
    allocated_before = __atomic_load_n(&state->allocated, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&used->base, used_before, __ATOMIC_RELAXED);
  __atomic_store_n(&allocated->base, allocated_before, __ATOMIC_RELAXED);
  __atomic_store_n(&used->begin_ticks, ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&allocated->begin_ticks, ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&state->collection_count, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&state->collection_ns, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&state->reset_count, reset_count, __ATOMIC_SEQ_CST);
  if (is_query) return;
  const uint64_t used_now = __atomic_load_n(&state->used, __ATOMIC_SEQ_CST);
  const uint64_t allocated_now = __atomic_load_n(&state->allocated, __ATOMIC_SEQ_CST);
  __atomic_store_n(&used->base, used_now, __ATOMIC_RELAXED);
  __atomic_store_n(&allocated->base, allocated_now, __ATOMIC_RELAXED);
  prof_i_peak_raise(used, used_now, PROF_I_USED_MASK, ticks);
  prof_i_peak_raise(allocated, allocated_now, UINT64_MAX, ticks);
}

static void reset_all(void) {
  prof_i_pool_clear_totals();
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next) pool_reset_peaks(pool);
}

/* ---- pools ---- */

static prof_pool *pool_take_free(void) {
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
    if (!pool->serial &&
        !(__atomic_load_n(&pool->asking, __ATOMIC_ACQUIRE) & ~PROF_I_POOL_QUERY_CLOSED))
      return pool;
  prof_pool *const pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  __atomic_store_n(pool_registry.last ? &pool_registry.last->next : &pool_registry.first, pool,
                   __ATOMIC_RELEASE);
  pool_registry.last = pool;
  return pool;
}

/* What others may have in hand, next, lock and asking, stays. Control lock held. */
static prof_pool *pool_set_up(const prof_pool *wanted, const query_result *a) {
  prof_pool *const pool =
      prof_i_pool_open_total(wanted->device, wanted->kind) ? pool_take_free() : NULL;
  if (!pool) return NULL;
  pool->kind = wanted->kind;
  pool->device = wanted->device;
  pool->query = wanted->query;
  pool->user = wanted->user;
  pool->before_bytes = pool->inherited_used = pool->inherited_allocated = pool->fork_used =
      pool->fork_allocated = 0;
  memcpy(pool->name, wanted->name, sizeof pool->name);
  __atomic_store_n(&pool->state, NULL, __ATOMIC_RELEASE);
  __atomic_fetch_and(&pool->asking, ~PROF_I_POOL_QUERY_CLOSED, __ATOMIC_RELEASE);
  __atomic_store_n(&pool->serial, ++pool_registry.serials, __ATOMIC_SEQ_CST);
  /* While a forked child has no capture yet there is none to be in. */
  if (prof_i_session_has_memory() && prof_i_session_is_recording())
    pool_give_state(pool, &(query_result){a->used, a->allocated,
                                          a->baseline ? a->baseline : PROF_I_BASELINE_EMPTY});
  return pool;
}

/* Control lock held. */
static void pool_tear_down(prof_pool *pool) {
  if (pool->start == pool_registry.begun) prof_i_pool_add_to_total(pool);
  __atomic_store_n(&pool->epoch, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&pool->serial, 0, __ATOMIC_SEQ_CST);
}

static prof_pool pool_template(const char *name, prof_device device) {
  prof_pool wanted = {.kind = PROF_MEMORY_POOL, .device = device};
  memcpy(wanted.name, name, strnlen(name, sizeof wanted.name - 1));
  return wanted;
}

bool prof_i_pool_try_create(const char *name, prof_device device, prof_pool **pool_out) {
  const prof_pool wanted = pool_template(name, device);
  if (!prof_i_control_try_lock()) return false;
  *pool_out = pool_set_up(&wanted, &(query_result){0});
  prof_i_control_unlock();
  return true;
}

prof_pool *prof_i_pool_create(const char *name, prof_device device, prof_memory_query query,
                              void *user) {
  prof_pool wanted = pool_template(name, device);
  wanted.query = query;
  wanted.user = user;
  prof_i_session_ensure(); /* a forked child's own capture */
  const query_result a = prof_i_session_has_memory() ? query_pool(&wanted) : (query_result){0};
  prof_i_control_lock();
  prof_pool *const pool = pool_set_up(&wanted, &a);
  prof_i_control_unlock();
  return pool;
}

void prof_i_pool_destroy(prof_pool *pool) {
  prof_i_control_lock();
  pool_tear_down(pool);
  prof_i_control_unlock();
  await_no_query(pool);
}

/* Control lock held. */
static int set_query(const prof_pool *wanted) {
  uint64_t serial;
  uint32_t nobody = 0;
  prof_pool *const before = prof_i_pool_find_query(wanted->device, &serial);
  if (before && !__atomic_compare_exchange_n(&before->asking, &nobody, PROF_I_POOL_QUERY_CLOSED,
                                             false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return PROF_E_BUSY;
  if (wanted->query && !pool_set_up(wanted, &(query_result){0})) {
    if (before) __atomic_fetch_and(&before->asking, ~PROF_I_POOL_QUERY_CLOSED, __ATOMIC_RELEASE);
    return PROF_E_NO_MEMORY;
  }
  if (before) pool_tear_down(before);
  return PROF_OK;
}

int prof_i_pool_set_query(prof_device device, prof_memory_query query, void *user) {
  const prof_pool wanted = {
      .kind = PROF_MEMORY_QUERY, .device = device, .query = query, .user = user, .name = "query"};
  prof_i_session_ensure(); /* a forked child's own capture */
  prof_i_control_lock();
  const int status = set_query(&wanted);
  prof_i_control_unlock();
  return status;
}

static void hide_sums(void) { prof_i_pool_hide_totals(true); }
const prof_i_memory_hooks prof_i_pool_hooks = {.begin = begin_all,
                                               .begin_child = begin_child,
                                               .end = end_all,
                                               .reset = reset_all,
                                               .hide_sums = hide_sums,
                                               .renumber = renumber,
                                               .before_fork = before_fork,
                                               .forget = forget_all};

/* ---- what an arena that goes leaves mapped ---- */

static size_t count_pools(void) {
  size_t count = 0;
  for (const prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE))
    count++;
  return count;
}

/* A pool's state: whole pages, of which several pools may have the same. */
static void each_state(const char *base, uint64_t bytes, prof_i_kept_sink *sink, void *to) {
  for (const prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
    prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
    if ((const char *)state < base || (const char *)state >= base + bytes) continue;
    const uintptr_t page = 4096, from = (uintptr_t)state & ~(page - 1);
    const uintptr_t end = ((uintptr_t)(state + 1) + page - 1) & ~(page - 1);
    sink(to, (char *)state - ((uintptr_t)state - from), end - from);
  }
}
const prof_i_observer prof_i_pool_observer = {.kept_count = count_pools, .each_kept = each_state};

/* ---- the public calls ---- */

int prof_memory_start(void) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  return prof_i_control_start_memory();
}

int prof_memory_stop(void) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  return prof_i_control_stop_memory();
}

int prof_memory_reset(void) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  return prof_i_control_reset_memory();
}
