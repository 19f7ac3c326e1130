/* See budget.h. What a thread spends is summed up over a window of its own, which ends at the first
   chunk change after a second. Events of all threads are counted in one window: each thread has a
   count of all that it ever recorded, the chunk at hand by its cursor, and the window has the sum
   with which it began. Whoever finds the budget exceeded takes one step; all windows then begin
   anew, so that what came before the step is not held against what is left after it. */
#define _GNU_SOURCE
#include "budget.h"

#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/observer.h"
#include "../record/change.h"
#include "../record/cost.h"
#include "../record/mute.h"
#include "../record/site.h"

enum {
  WINDOW_NS = 1000000000,
  SITES_SEEN = 128, /* of the sites of a chunk; what has no place comes too seldom to matter */
  MILLION = 1000000
};

/* All any thread, relaxed: a thread may still be at a chunk change when a session begins. */
static struct {
  uint64_t allowed_ppm, allowed_events; /* 0: no such budget */
  uint32_t action;                      /* prof_budget */
  uint64_t scope_ps;
  uint32_t steps;
  uint32_t busy;                 /* one at a time takes a step, or begins a window */
  uint64_t since_ns, sum_before; /* of the window of all events; 0: none has begun */
  uint64_t gone;                 /* events of threads that have ended */
} own;

static uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void store(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
static uint32_t action(void) { return __atomic_load_n(&own.action, __ATOMIC_RELAXED); }
static bool is_on(void) { return load(&own.allowed_ppm) || load(&own.allowed_events); }

/* All windows. */
static void begin_anew(void) {
  store(&own.since_ns, 0);
  __atomic_fetch_add(&own.steps, 1, __ATOMIC_RELAXED);
}

void prof_i_budget_begin(const prof_options *options, bool is_new_capture) {
  store(&own.allowed_ppm, options->budget_permille * 1000ull);
  store(&own.allowed_events, options->budget_events);
  __atomic_store_n(&own.action, options->budget_action, __ATOMIC_RELAXED);
  store(&own.scope_ps, prof_i_cost_at_start().scope_ps);
  prof_i_budget_take_back(!is_new_capture);
  if (is_new_capture) prof_i_mute_tell_all();
}

void prof_i_budget_take_back(bool is_told) {
  prof_i_mute_end_budget(is_told);
  begin_anew();
}

/* ---- windows ---- */

static void begin_window(prof_i_spending *window, uint64_t now) {
  window->since_ns = now;
  window->own_ns = 0;
}

static uint64_t at_least_a_window(uint64_t ns) { return ns > WINDOW_NS ? ns : WINDOW_NS; }

/* How far the thread has come in the chunk at hand, which may be made anew while we look: once in a
   while the sum is off by a chunk. */
static PROF_I_RACES_BY_DESIGN uint64_t bytes_of_chunk(const prof_i_thread *t) {
  const prof_i_head *const chunk = __atomic_load_n(&t->chunk, __ATOMIC_ACQUIRE);
  const uint64_t cursor = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED), bytes = chunk->bytes;
  return cursor < bytes ? cursor : bytes;
}

/* Of the chunk at hand the records are known only in slots of 16 bytes: as many events as before in
   as many slots. */
static uint64_t events_of(const prof_i_thread *t) {
  const uint64_t events = load(&t->spending.events), slots = load(&t->spending.slots),
                 from = load(&t->spending.from);
  const uint64_t end = bytes_of_chunk(t), at_hand = end > from ? (end - from) / 16 : 0;
  return events + (slots ? (uint64_t)((double)at_hand * (double)events / (double)slots) : at_hand);
}

static uint64_t events_of_all(void) {
  uint64_t sum = load(&own.gone);
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) == PROF_I_ALIVE &&
        __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number)
      sum += events_of(t);
  return sum;
}

static bool begin_busy(void) { return !__atomic_exchange_n(&own.busy, 1, __ATOMIC_ACQUIRE); }
static void end_busy(void) { __atomic_store_n(&own.busy, 0, __ATOMIC_RELEASE); }

void prof_i_budget_forget(void) { own.busy = 0; }

/* Events in the window so far, and how long it is. A first look begins it. */
static uint64_t events_in_window(uint64_t now, uint64_t *ns_out) {
  const uint64_t since = load(&own.since_ns), sum = events_of_all(), before = load(&own.sum_before);
  *ns_out = since && now > since ? now - since : 0;
  if (!since && begin_busy()) {
    store(&own.sum_before, sum);
    store(&own.since_ns, now);
    end_busy();
  }
  return since && sum > before ? sum - before : 0;
}

/* ---- what comes most often ---- */

typedef struct seen {
  uint32_t site, count;
} seen;

typedef struct survey {
  seen sites[SITES_SEEN];
  uint64_t events;
} survey;

static void see(void *to, uint32_t site) {
  survey *const s = to;
  site = prof_i_site_judged(site);
  s->events++;
  for (uint32_t i = site, tries = 0; tries < 8; i++, tries++) {
    seen *const place = &s->sites[i % SITES_SEEN];
    if (place->count && place->site != site) continue;
    place->site = site;
    place->count++;
    return;
  }
}

/* The one that comes most often; it is taken off the list. 0: none is left. */
static uint32_t take_most(survey *s, uint32_t *count_out) {
  seen *most = &s->sites[0];
  for (int i = 1; i < SITES_SEEN; i++)
    if (s->sites[i].count > most->count) most = &s->sites[i];
  *count_out = most->count;
  most->count = 0;
  return most->site;
}

/* ---- a step ---- */

typedef struct excess {
  prof_change_reason reason;
  uint64_t measured, allowed;
} excess;

static bool step_level(const prof_i_change *change) {
  const uint32_t level = prof_i_arena_level();
  if (action() == PROF_BUDGET_MUTE || level == 0 || (level == 1 && action() != PROF_BUDGET_LEVEL))
    return false;
  const uint32_t before = prof_i_change_begin_level();
  /* false: somebody else has switched it */
  const bool is_lower = prof_i_arena_lower_level(level, level - 1);
  prof_i_change_end_level(before, is_lower ? change : NULL);
  return is_lower;
}

/* Enough of the sites, the most frequent first, that what is left would have been within the
   budget. */
static bool mute_most(const prof_i_change *change, survey *s) {
  prof_i_change step = *change;
  uint64_t left = s->events;
  bool any = false;
  step.kind = PROF_CHANGE_MUTED;
  step.level_before = step.level_after = prof_i_arena_level();
  for (uint32_t count;
       (double)left * (double)change->measured > (double)s->events * (double)change->allowed;) {
    step.site = take_most(s, &count);
    if (!count) break;
    left -= count;
    /* a step, a flow; or what came before it was muted */
    if (!prof_i_mute_for_budget(step.site)) continue;
    any = true;
    prof_i_change_note(&step);
  }
  if (any) prof_i_site_raise_epoch();
  return any;
}

static void take_step(const prof_i_thread *thread, const excess *e, survey *s) {
  if (!begin_busy()) return;
  const prof_i_change change = {.reason = e->reason,
                                .thread = thread->serial,
                                .measured = e->measured,
                                .allowed = e->allowed};
  if (__atomic_load_n(&own.steps, __ATOMIC_RELAXED) == thread->spending.steps &&
      (step_level(&change) || (action() != PROF_BUDGET_LEVEL && mute_most(&change, s))))
    begin_anew();
  end_busy();
}

/* ---- judging ---- */

/* Judged over a second at least; told over the time that it was. */
static bool is_exceeded(const prof_i_thread *thread, uint64_t now, excess *e) {
  const uint64_t ns = now - thread->spending.since_ns, own_ns = thread->spending.own_ns;
  const uint64_t allowed_ppm = load(&own.allowed_ppm), allowed_events = load(&own.allowed_events);
  if (allowed_ppm && own_ns * MILLION / at_least_a_window(ns) > allowed_ppm) {
    const uint64_t measured = own_ns * MILLION / (ns ? ns : 1);
    *e = (excess){PROF_REASON_TIME, measured < MILLION ? measured : MILLION, allowed_ppm};
    return true;
  }
  if (!allowed_events) return false;
  uint64_t window_ns;
  const uint64_t events = events_in_window(now, &window_ns);
  if ((double)events * 1e9 > (double)allowed_events * (double)at_least_a_window(window_ns)) {
    *e = (excess){PROF_REASON_EVENTS,
                  (uint64_t)((double)events * 1e9 / (double)(window_ns ? window_ns : 1)),
                  allowed_events};
    return true;
  }
  if (window_ns >= WINDOW_NS) store(&own.since_ns, 0); /* the next look begins another */
  return false;
}

/* True: the window has been begun anew, and what came before must not be judged. */
static bool is_new_window(prof_i_spending *window, uint64_t now) {
  const uint32_t steps = __atomic_load_n(&own.steps, __ATOMIC_RELAXED);
  if (window->since_ns && window->steps == steps) return false;
  window->steps = steps;
  begin_window(window, now);
  return true;
}

static void judge(prof_i_thread *thread, const prof_i_head *chunk, uint64_t own_ns) {
  PROF_I_HOLD_FP;
  const uint64_t now = prof_i_port_monotonic_ns();
  prof_i_spending *const window = &thread->spending;
  excess e;
  if (is_new_window(window, now)) return;
  window->own_ns += own_ns;
  if (is_exceeded(thread, now, &e)) {
    survey s = {.events = 0};
    prof_i_chunk_events_between(chunk, load(&window->from), UINT64_MAX, see, &s);
    take_step(thread, &e, &s);
    return;
  }
  if (now - window->since_ns >= WINDOW_NS) begin_window(window, now);
}

/* What it recorded into another arena is not of this window. */
static void begin_thread(prof_i_thread *thread) {
  store(&thread->spending.events, 0);
  store(&thread->spending.slots, 0);
  store(&thread->spending.from, UINT64_MAX);
  thread->spending.since_ns = 0;
  thread->spending.beyond_ps = 0;
  thread->spending.slow_ns = 0;
}

static void enter_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  uint64_t window_ns;
  store(&thread->spending.from, load(&chunk->cursor));
  if (!is_on() || thread->spending.since_ns) return;
  const uint64_t now = prof_i_port_monotonic_ns();
  is_new_window(&thread->spending, now);
  if (!load(&own.since_ns)) events_in_window(now, &window_ns);
}

/* What the chunk has of the thread is counted; returns the events. */
static uint64_t count_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  prof_i_spending *const window = &thread->spending;
  const uint64_t cursor = load(&chunk->cursor), end = cursor < chunk->bytes ? cursor : chunk->bytes,
                 from = load(&window->from);
  const uint64_t events = prof_i_chunk_events_between(chunk, from, UINT64_MAX, NULL, NULL);
  store(&window->events, load(&window->events) + events);
  store(&window->slots, load(&window->slots) + (end > from ? (end - from) / 16 : 0));
  return events;
}

/* What the thread's scopes took, as many as stand in that many events: at the calibrated cost, and
   what was timed in place beyond it since the last look. */
static uint64_t scopes_ns(prof_i_thread *thread, uint64_t events) {
  const int64_t beyond_ps = thread->slot->beyond_ps;
  const int64_t more_ps = beyond_ps - thread->spending.beyond_ps;
  thread->spending.beyond_ps = beyond_ps;
  const uint64_t slow_ns = __atomic_exchange_n(&thread->spending.slow_ns, 0, __ATOMIC_RELAXED);
  return events * load(&own.scope_ps) / 1000 + (more_ps > 0 ? (uint64_t)more_ps / 1000 : 0) +
         slow_ns;
}

static void leave_chunk(prof_i_thread *thread, const prof_i_head *chunk, uint64_t change_ns) {
  if (!is_on()) return;
  const uint64_t begun = prof_i_port_monotonic_ns();
  const uint64_t events = count_chunk(thread, chunk);
  const uint64_t count_ns = prof_i_ns_since(begun);
  prof_i_claim(&thread->slot->own_ns, count_ns);
  /* The count takes half a nanosecond each. */
  judge(thread, chunk, scopes_ns(thread, events) + change_ns + events / 2);
}

static void end_thread(prof_i_thread *thread, const prof_i_head *chunk) {
  if (!is_on()) return;
  if (chunk) judge(thread, chunk, scopes_ns(thread, count_chunk(thread, chunk)));
  __atomic_fetch_add(&own.gone, load(&thread->spending.events), __ATOMIC_RELAXED);
  store(&thread->spending.events, 0);
  store(&thread->spending.from, UINT64_MAX); /* the rest of the chunk is another's */
}

static const prof_i_observer budget_observer = {.thread_attached = begin_thread,
                                                .chunk_entered = enter_chunk,
                                                .chunk_filled = leave_chunk,
                                                .thread_ended = end_thread};
PROF_I_OBSERVE(budget_observer);
