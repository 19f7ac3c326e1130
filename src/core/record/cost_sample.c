/* See cost_sample.h. Without windows the cost that prof reports could be a hundred times too low.
   Most of this file keeps a window from changing what it measures, and its figure within bounds.
   The twin has memory of its own. Handlers and stops may come between any two instructions. */
#include "cost_sample.h"

#include "../../format/state.h"
#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/observer.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "open_stack.h"
#include "scope.h"
#include "site.h"

enum {
  TWINS = 2, /* more threads than that may have windows open: what finds its twin taken waits */
  TWIN_DEPTH = 8,
  TWIN_CHUNK_BYTES = 12288,
  PAGE = 4096,
  PART_BYTES = 16 * PAGE,
  UNTIMED = 4, /* begins and ends of a window that come first */
  TIMED = 4,
  FIRST_SPACING = PROF_I_OWN_TIME_FIRST_EVENTS * 16, /* bytes; doubled until it is */
  MOST_SPACING_EARLY = 1024 * 16,
  MANY_WINDOWS = 40, /* after which it is */
  MOST_SPACING = 16384 * 16,
  AGAIN_SPACING = 256 * 16, /* after a stop at which no window could open */
  WINDOW_EACH_NS = 5000000, /* where FIRST_SPACING or more come in that time */
  LONGEST_NS = 20000,
  STALE_NS = 100000000, /* a window that has been open for so long loses its twin to another */
  TWIN_RUNS = 16,       /* of a calibration's batch */
  BATCHES = 15,
  OTHER_BRANCHES = 48,
  SLOW_WARM = 3,           /* times a warm twin: what the slow path takes in warm caches */
  SLOW_MOST = 2,           /* times the twin: what half of the slow path may count for */
  COUNTED_BYTES = 256 * 16 /* of a stretch: its first records tell how many events it has */
};

/* Each part on pages of its own, as the recorder's are, and far enough from the next that their
   entries in the page table are in different lines. */
typedef struct twin_part {
  _Alignas(PAGE) unsigned char bytes[PART_BYTES];
} twin_part;
enum {
  TWIN_SLOT,
  TWIN_CHUNK,
  TWIN_THREAD,
  TWIN_DATA,
  TWIN_THREAD_DATA,
  TWIN_SITES,
  TWIN_CALLS,
  TWIN_PARTS
};

/* What is not the twin's work, and may be warm. */
typedef struct twin {
  prof_i_twin as_called;
  prof_i_thread_slot *slot;
  prof_i_head *chunk;
  prof_i_thread *thread;
  prof_site *plain, *named; /* named: of scopes that have details, with the number of the host's */
  uint32_t busy;            /* any thread, by exchange: one at a time uses the twin */
  uint32_t depth;
  uint64_t serial;                 /* of the thread whose window it serves; 0: none */
  uint64_t since;                  /* ticks of the window's opening */
  uint64_t starts[TWIN_DEPTH + 1]; /* of the scopes that the twin has open */
} twin;

static twin_part parts[TWINS][TWIN_PARTS];
static twin twins[TWINS];

static struct {
  uint64_t begin_ticks, end_ticks; /* of TWIN_RUNS runs in warm caches. Relaxed */
  uint64_t ps_per_1024_ticks;
  uint64_t scope_ps; /* relaxed */
  uint32_t clock;
} warm_cost;

static bool twin_acquire(twin *t) { return !__atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE); }
static void twin_release(twin *t) { __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE); }

/* The counter, when all before it is done, and before anything behind it. */
static inline uint64_t ticks_serialized(void) {
#if defined(__x86_64__)
  __asm__ __volatile__("lfence" ::: "memory");
  const uint64_t ticks = prof_i_counter();
  __asm__ __volatile__("lfence" ::: "memory");
#else
  __asm__ __volatile__("dsb ish; isb" ::: "memory");
  const uint64_t ticks = prof_i_counter();
  __asm__ __volatile__("isb" ::: "memory");
#endif
  return ticks;
}

/* ---- the twin ---- */

static void site_set_epoch(prof_site *site, uint32_t epoch, uint32_t number) {
  site->state = (uint64_t)epoch << 32 | number;
}

/* Opens one plain scope, for an end that comes before a begin. */
static void twin_open_scope(twin *t) {
  t->slot->depth = 0;
  t->slot->payload_top = PROF_I_TEXT_OFFSET;
  t->starts[1] = prof_i_scope_twin_begin(&t->as_called, t->plain, NULL);
  t->depth = 1;
}

static void twin_create(twin *t, twin_part *of) {
  prof_i_twin_calls *const calls = (prof_i_twin_calls *)(void *)of[TWIN_CALLS].bytes;
  prof_i_twin_data *const its = (prof_i_twin_data *)(void *)of[TWIN_DATA].bytes;
  t->slot = (prof_i_thread_slot *)(void *)of[TWIN_SLOT].bytes;
  t->chunk = (prof_i_head *)(void *)of[TWIN_CHUNK].bytes;
  t->thread = (prof_i_thread *)(void *)of[TWIN_THREAD].bytes;
  t->plain = (prof_site *)(void *)of[TWIN_SITES].bytes;
  t->named = t->plain + 2; /* in another line */
  its->thread = (prof_i_thread **)(void *)of[TWIN_THREAD_DATA].bytes;
  *its->thread = t->thread;
  prof_i_scope_twin_link(calls, its);
  t->as_called = (prof_i_twin){calls, its};
  t->chunk->bytes = TWIN_CHUNK_BYTES;
  t->chunk->limit = TWIN_CHUNK_BYTES - 15;
  t->chunk->generation = 1;
  t->thread->fast = t->thread->slot = t->slot;
  t->thread->chunk = t->chunk;
}

static void twin_prepare(twin *t, uint32_t epoch) {
  if (!t->thread) twin_create(t, parts[t - twins]);
  for (uint64_t i = 1; i <= TWIN_DEPTH; i++) t->slot->open[i].ticks = 0;
  t->chunk->cursor = PAGE; /* as mostly, not on the page of the head */
  t->thread->epoch = epoch;
  site_set_epoch(t->plain, epoch, 1);
  twin_open_scope(t);
}

/* Ticks that a begin takes. */
static uint64_t twin_time_begin(twin *t, prof_site *site, const prof_details *details) {
  if (t->depth == TWIN_DEPTH) twin_open_scope(t);
  const uint64_t begun = ticks_serialized();
  const uint64_t start = prof_i_scope_twin_begin(&t->as_called, site, details);
  const uint64_t ended = ticks_serialized();
  t->starts[++t->depth] = start;
  return ended - begun;
}

/* The same of an end; 0: the scope is too old for that. */
static uint64_t twin_time_end(twin *t) {
  const uint64_t start = t->starts[t->depth];
  uint64_t ticks = 0;
  if (((prof_i_counter() << 4) - start) >> (PROF_I_DURATION_BITS + 3)) {
    t->depth = 0;
  } else {
    const uint64_t begun = ticks_serialized();
    prof_i_scope_twin_end(&t->as_called, start);
    ticks = ticks_serialized() - begun;
    t->depth--;
  }
  if (t->depth == 0) twin_open_scope(t);
  return ticks;
}

/* ---- calibration ---- */

/* Other code between two runs, as the slow path's in a window: branches that cannot be guessed. */
static uint64_t run_other_code(uint64_t seed) {
  uint64_t sum = 0;
  for (int i = 0; i < OTHER_BRANCHES; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    if (seed & 1) {
      __asm__ __volatile__("" : "+r"(sum));
      sum += seed;
    }
  }
  return sum | 1;
}

void prof_i_cost_insert_sorted(uint64_t *values, int count, uint64_t value) {
  int at = count;
  for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
  values[at] = value;
}

/* The lower quartiles of some batches: another program may have had the processor, too. */
static void twin_time_warm(twin *t) {
  uint64_t begins[BATCHES], ends[BATCHES], seed = 88172645463325252u;
  for (int batch = 0; batch < BATCHES; batch++) {
    uint64_t begin_ticks = 0, end_ticks = 0;
    twin_prepare(t, 1);
    for (int i = 0; i < TWIN_RUNS; i++) {
      seed += run_other_code(seed);
      begin_ticks += twin_time_begin(t, t->plain, NULL);
      seed += run_other_code(seed);
      end_ticks += twin_time_end(t);
    }
    prof_i_cost_insert_sorted(begins, batch, begin_ticks);
    prof_i_cost_insert_sorted(ends, batch, end_ticks);
  }
  __atomic_store_n(&warm_cost.begin_ticks, begins[BATCHES / 4], __ATOMIC_RELAXED);
  __atomic_store_n(&warm_cost.end_ticks, ends[BATCHES / 4], __ATOMIC_RELAXED);
}

void prof_i_cost_sample_calibrate(void) {
  if (!prof_i_clock_is_counter() || warm_cost.clock == prof_i_clock_kind() ||
      !twin_acquire(&twins[0]))
    return;
  twins[0].serial = 0;
  twin_time_warm(&twins[0]);
  twin_release(&twins[0]);
  warm_cost.clock = prof_i_clock_kind();
}

void prof_i_cost_sample_begin_capture(uint64_t scope_ps) {
  PROF_I_DEFAULT_FP;
  const double ticks_per_ns = prof_i_clock_ticks_per_ns();
  const uint64_t ps = ticks_per_ns > 1e-3 ? (uint64_t)(1024e3 / ticks_per_ns) : 0;
  __atomic_store_n(&warm_cost.ps_per_1024_ticks, ps, __ATOMIC_RELAXED);
  __atomic_store_n(&warm_cost.scope_ps, scope_ps, __ATOMIC_RELAXED);
}

void prof_i_cost_sample_forget(void) {
  for (int i = 0; i < TWINS; i++) twins[i].busy = 0;
}

/* ---- windows ----

   The begins and ends of a window run outside the gate. Between any two of their instructions a
   handler may move the thread to another arena, which closes the window and sets what is known of
   it to 0. */

static twin *twin_of(const prof_i_thread *thread) { return &twins[thread->serial % TWINS]; }

/* 0: the rate is not known. */
static uint64_t ticks_of_ns(uint64_t ns) {
  const uint64_t ps = __atomic_load_n(&warm_cost.ps_per_1024_ticks, __ATOMIC_RELAXED);
  return ps ? ns * 1024000 / ps : 0;
}

/* At most INT64_MAX. */
static int64_t ps_of_ticks(uint64_t ticks) {
  const uint64_t ps = __atomic_load_n(&warm_cost.ps_per_1024_ticks, __ATOMIC_RELAXED);
  const uint64_t most = (uint64_t)INT64_MAX;
  if (!ps || ticks / 1024 >= most / ps) return (int64_t)most;
  return (int64_t)(ticks / 1024 * ps + ticks % 1024 * ps / 1024);
}

/* What is left of so many ticks when so many records have their scopes' warm time; for each. */
static int64_t ps_left_of_bound(uint64_t ticks, uint64_t records, uint64_t for_each_of) {
  const int64_t scope_ps = (int64_t)__atomic_load_n(&warm_cost.scope_ps, __ATOMIC_RELAXED);
  const int64_t left = ps_of_ticks(ticks) - (int64_t)records * scope_ps;
  return left > 0 ? left / (int64_t)(for_each_of ? for_each_of : 1) : 0;
}

static int64_t excess_ps(uint64_t ticks, uint64_t runs, uint64_t warm_ticks) {
  const int64_t mean = (int64_t)(ticks * TWIN_RUNS / runs) - (int64_t)warm_ticks;
  return mean * (int64_t)__atomic_load_n(&warm_cost.ps_per_1024_ticks, __ATOMIC_RELAXED) /
         (1024 * TWIN_RUNS);
}

static void report_window_time(prof_i_thread *thread) {
  const uint64_t ns = (uint64_t)ps_of_ticks(thread->timing.window_ticks) / 1000;
  thread->timing.window_ticks = 0;
  if (ns) prof_i_claim(&thread->slot->own_ns, ns);
}

/* What a window itself takes is recording's time, too. A part that was interrupted counts for
   nothing. */
static void count_window_time(prof_i_thread *thread, uint64_t since_ticks) {
  const uint64_t ticks = prof_i_counter() - since_ticks;
  if (ticks < ticks_of_ns(LONGEST_NS)) thread->timing.window_ticks += ticks;
  if (!thread->timing.events_left) report_window_time(thread);
}

static void close_window(prof_i_thread *thread) {
  prof_i_cost_window *const w = &thread->timing;
  w->events_left = 0;
  prof_i_thread_end_deep(thread);
}

/* Adds what this window's part of the sum may be wrong by. Windows stand at equal distances, so the
   variance comes from the differences of neighbours: a program that goes on to other work adds to
   it once. */
static void slot_add_spread(prof_i_thread *thread, int64_t ps) {
  prof_i_cost_window *const w = &thread->timing;
  prof_i_thread_slot *const slot = thread->slot;
  const uint64_t apart_ps = (uint64_t)(ps > w->last_ps ? ps - w->last_ps : w->last_ps - ps);
  const uint64_t us = apart_ps / 1000 * w->stands_for / 1000;
  w->last_ps = ps;
  if (!w->concluded++ || us > UINT32_MAX) return;
  const uint64_t sum = slot->spread_us2, more = us * us / 2;
  const uint64_t spread_us2 = sum + more < sum ? UINT64_MAX : sum + more;
  __atomic_store_n(&slot->spread_us2, spread_us2, __ATOMIC_RELAXED);
}

/* What the slow path took for the host's scope behind the twin, beyond warm caches. It finds the
   lines of the recorder's own data and of the host's site cold, which the twin has its own of. */
static int64_t slow_excess_ps(const prof_i_cost_window *w, uint64_t begin_warm, uint64_t end_warm) {
  int64_t ps = 0;
  if (w->slow_begins) ps += excess_ps(w->slow_begin_ticks, w->slow_begins, SLOW_WARM * begin_warm);
  if (w->slow_ends) ps += excess_ps(w->slow_end_ticks, w->slow_ends, SLOW_WARM * end_warm);
  return ps;
}

/* What the window found a scope to take beyond a warm one, in ps. The twin is the lower end. With
   all of the slow path, which has more code than the fast one, it would be the upper end. So half
   of that path counts. Where the twin is warm it counts for nothing: then it is but long. */
static int64_t window_excess_ps(const prof_i_cost_window *w, uint64_t begins, uint64_t ends) {
  const uint64_t begin_warm = __atomic_load_n(&warm_cost.begin_ticks, __ATOMIC_RELAXED);
  const uint64_t end_warm = __atomic_load_n(&warm_cost.end_ticks, __ATOMIC_RELAXED);
  const int64_t twin_ps =
      excess_ps(w->begin_ticks, begins, begin_warm) + excess_ps(w->end_ticks, ends, end_warm);
  const int64_t slow_ps = slow_excess_ps(w, begin_warm, end_warm) / 2;
  if (twin_ps <= 0 || slow_ps <= 0) return twin_ps;
  return twin_ps + (slow_ps < SLOW_MOST * twin_ps ? slow_ps : SLOW_MOST * twin_ps);
}

/* What a scope took beyond a warm one, for the records that this window stands for. Without a begin
   or an end that was timed the next window stands for them, too. */
static void window_conclude(prof_i_thread *thread) {
  prof_i_cost_window *const w = &thread->timing;
  prof_i_thread_slot *const slot = thread->slot;
  const uint64_t begins = __atomic_load_n(&w->begins, __ATOMIC_RELAXED);
  const uint64_t ends = __atomic_load_n(&w->ends, __ATOMIC_RELAXED);
  if (!begins || !ends) {
    close_window(thread);
    return;
  }
  const int64_t found_ps = window_excess_ps(w, begins, ends);
  const int64_t ps = found_ps < w->most_ps ? found_ps : w->most_ps;
  w->beyond_ps += ps * (int64_t)w->stands_for;
  const uint64_t elsewhere_ns = slot->own_ns - slot->own_ns_before;
  const int64_t left = ps_left_of_bound(prof_i_counter() - w->came_ticks, w->records, 1);
  const int64_t most = left - (int64_t)elsewhere_ns * 1000;
  __atomic_store_n(&slot->beyond_ps, w->beyond_ps < most ? w->beyond_ps : most, __ATOMIC_RELAXED);
  slot_add_spread(thread, ps);
  prof_i_count_up(&slot->window_count);
  w->stands_for = 0;
  close_window(thread);
}

/* Bytes to the next stop. bytes, ticks: since the previous one. A program whose scopes come seldom
   gets a window for fewer of them: it has few, each in caches of its own. */
static uint64_t spacing_after(uint32_t windows, uint64_t bytes, uint64_t ticks) {
  uint64_t spacing = windows < MANY_WINDOWS ? MOST_SPACING_EARLY : MOST_SPACING;
  if (windows < 16 && (uint64_t)FIRST_SPACING << windows < spacing)
    spacing = (uint64_t)FIRST_SPACING << windows;
  const uint64_t in_period = bytes * (ticks_of_ns(WINDOW_EACH_NS) >> 8) / ((ticks >> 8) + 1);
  if (in_period < spacing) spacing = in_period;
  if (windows && bytes * 2 < spacing) spacing = bytes * 2;
  return spacing > FIRST_SPACING ? spacing & ~UINT64_C(15) : FIRST_SPACING;
}

/* Of a chunk that a stop has taken out meanwhile, or cleared memory, the limit stays as it is. */
static void chunk_set_limit(const prof_i_cost_window *w, prof_i_head *chunk) {
  const uint64_t bytes = chunk->bytes;
  uint64_t limit = __atomic_load_n(&chunk->limit, __ATOMIC_RELAXED);
  const uint64_t left = w->spacing > w->since ? w->spacing - w->since : 16;
  /* The plain record that fills the stretch begins there. */
  const uint64_t window_stop = w->from + left - 16;
  if (!limit || !bytes) return;
  __atomic_compare_exchange_n(&chunk->limit, &limit,
                              window_stop < bytes - 15 ? window_stop : bytes - 15, false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Its twin, in use; NULL: no window may open now. */
static twin *thread_acquire_twin(const prof_i_thread *thread) {
  if (!thread->slot || thread->fast != thread->slot || thread->timing.events_left) return NULL;
  if (prof_i_thread_kind_is_virtual(thread->thread_kind) || !prof_i_clock_is_counter()) return NULL;
  if (!__atomic_load_n(&warm_cost.begin_ticks, __ATOMIC_RELAXED) || !ticks_of_ns(STALE_NS))
    return NULL;
  const uint64_t now = prof_i_counter();
  /* The counter went back: then the slow path looks at the clock at each end. */
  if (prof_i_clock_is_before(now, prof_i_session_since())) return NULL;
  twin *const t = twin_of(thread);
  if (!twin_acquire(t)) return NULL;
  const bool is_ours = t->serial == thread->serial; /* of a window that a stop has closed */
  if (!t->serial || is_ours || now - t->since > ticks_of_ns(STALE_NS)) {
    t->serial = thread->serial;
    t->since = now;
    return t;
  }
  twin_release(t);
  return NULL;
}

static void open_window(prof_i_thread *thread, twin *t) {
  prof_i_cost_window *const w = &thread->timing;
  w->epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  w->begins = w->ends = 0;
  w->begin_ticks = w->end_ticks = 0;
  w->slow_begins = w->slow_ends = 0;
  w->slow_begin_ticks = w->slow_end_ticks = 0;
  twin_prepare(t, w->epoch);
  twin_release(t);
  w->events_left = UNTIMED + TIMED;
  PROF_I_SIGNAL_FENCE();
  prof_i_thread_begin_deep(thread);
}

static void count_bytes(prof_i_cost_window *w, uint64_t cursor) {
  if (cursor > w->from) w->since += cursor - w->from;
  w->from = cursor;
}

/* Events in so many bytes, by the records from w->from on to `to`. */
static uint64_t estimate_events(const prof_i_cost_window *w, const prof_i_head *chunk, uint64_t to,
                                uint64_t bytes) {
  const uint64_t end = to > w->from + COUNTED_BYTES ? w->from + COUNTED_BYTES : to;
  const uint64_t events = prof_i_chunk_events_between(chunk, w->from, end, NULL, NULL);
  return end > w->from && events ? bytes * events / (end - w->from) : bytes / 16;
}

/* at: of the claim that has reached the limit. What stands before it is written. */
static void window_stop(prof_i_thread *thread, prof_i_head *chunk, uint64_t at, uint64_t cursor) {
  prof_i_cost_window *const w = &thread->timing;
  twin *const t = thread_acquire_twin(thread);
  const uint64_t since = w->since + (cursor > w->from ? cursor - w->from : 0);
  if (t) {
    const uint64_t now = t->since; /* once it is open the twin may go to another thread */
    const uint64_t ticks = now - w->at_ticks, before = w->count ? since / 2 : since;
    const uint64_t events = estimate_events(w, chunk, at, since);
    w->spacing = spacing_after(w->count++, since, ticks);
    w->at_ticks = now;
    w->records += events;
    w->most_ps = ps_left_of_bound(ticks, events, events);
    w->stands_for += since ? (before + w->spacing / 2) * events / since : 0;
    w->since = 0;
    open_window(thread, t);
    count_window_time(thread, now);
  } else {
    w->since = since;
    w->spacing = since + AGAIN_SPACING;
  }
  w->from = cursor;
  chunk_set_limit(w, chunk);
}

static void begin_thread(prof_i_thread *thread) {
  const uint64_t now = prof_i_clock_is_counter() ? prof_i_counter() : 0;
  thread->timing =
      (prof_i_cost_window){.spacing = FIRST_SPACING, .at_ticks = now, .came_ticks = now};
}

static void end_thread(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  report_window_time(thread);
  const uint64_t all_ns = prof_i_slot_in_place_ns(slot);
  __atomic_store_n(&slot->beyond_ps, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->in_place_ns, all_ns, __ATOMIC_RELAXED);
}

static void leave_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  const uint64_t cursor = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED);
  count_bytes(&thread->timing, cursor < chunk->bytes ? cursor : chunk->bytes);
}

static void enter_chunk(prof_i_thread *thread, prof_i_head *chunk) {
  thread->timing.from = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED);
  chunk_set_limit(&thread->timing, chunk);
}

/* ---- the begins and ends of a window ---- */

bool prof_i_cost_sample_give_up(prof_i_thread *thread) {
  if (thread->timing.events_left) close_window(thread);
  return thread->fast == thread->slot;
}

static bool epoch_is_of_window(const prof_i_thread *thread, const twin *t) {
  return t->serial == thread->serial &&
         __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == thread->timing.epoch;
}

static void count_run(prof_i_thread *thread, twin *t, uint64_t ticks, uint32_t *runs,
                      uint64_t *sum) {
  if (ticks && ticks < ticks_of_ns(LONGEST_NS) && thread->timing.events_left <= TIMED) {
    *sum += ticks;
    ++*runs;
  }
  if (!thread->timing.events_left || --thread->timing.events_left) return; /* 0: it is closed */
  t->serial = 0;
  window_conclude(thread);
}

uint64_t prof_i_cost_sample_begin(prof_i_thread *thread, const prof_site *site,
                                  const prof_details *details) {
  const uint64_t since = prof_i_counter();
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  twin *const t = twin_of(thread);
  if ((state >> 32 & PROF_I_EPOCH_MUTED) || !twin_acquire(t)) return 0;
  prof_i_cost_window *const w = &thread->timing;
  if (!epoch_is_of_window(thread, t)) {
    close_window(thread);
  } else if (prof_i_details_are_plain(details) || !(uint32_t)state) {
    count_run(thread, t, twin_time_begin(t, t->plain, NULL), &w->begins, &w->begin_ticks);
  } else {
    site_set_epoch(t->named, w->epoch, (uint32_t)state);
    count_run(thread, t, twin_time_begin(t, t->named, details), &w->begins, &w->begin_ticks);
  }
  twin_release(t);
  count_window_time(thread, since);
  return w->events_left && w->events_left <= TIMED ? ticks_serialized() : 0;
}

uint64_t prof_i_cost_sample_end(prof_i_thread *thread) {
  const uint64_t since = prof_i_counter();
  prof_i_cost_window *const w = &thread->timing;
  twin *const t = twin_of(thread);
  if (!twin_acquire(t)) return 0;
  if (epoch_is_of_window(thread, t))
    count_run(thread, t, twin_time_end(t), &w->ends, &w->end_ticks);
  else
    close_window(thread);
  twin_release(t);
  count_window_time(thread, since);
  return w->events_left && w->events_left <= TIMED ? ticks_serialized() : 0;
}

/* The window that is open now may be a later one: its time is as good. */
static void count_slow(const prof_i_cost_window *w, uint64_t since, uint32_t *runs, uint64_t *sum) {
  if (!since || !w->events_left) return;
  const uint64_t ticks = ticks_serialized() - since;
  if (ticks >= ticks_of_ns(LONGEST_NS)) return;
  *sum += ticks;
  ++*runs;
}

void prof_i_cost_sample_after_begin(prof_i_thread *thread, uint64_t since_ticks) {
  prof_i_cost_window *const w = &thread->timing;
  count_slow(w, since_ticks, &w->slow_begins, &w->slow_begin_ticks);
}

void prof_i_cost_sample_after_end(prof_i_thread *thread, uint64_t since_ticks) {
  prof_i_cost_window *const w = &thread->timing;
  count_slow(w, since_ticks, &w->slow_ends, &w->slow_end_ticks);
}

static void change_chunk(prof_i_thread *thread, prof_i_head *old, prof_i_head *fresh) {
  if (old) leave_chunk(thread, old);
  enter_chunk(thread, fresh);
}

const prof_i_observer prof_i_cost_sample_observer = {.thread_attached = begin_thread,
                                                     .chunk_changed = change_chunk,
                                                     .limit_reached = window_stop,
                                                     .thread_left = end_thread};
