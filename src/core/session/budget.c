/* The budget: see control.h. Each thread sums up its costs over a window, which ends at the
   thread's first chunk change after one second. The events of all threads are counted in one common
   window. Each thread has a count of its events, and the cursor of its current chunk is added to
   it. The window stores the sum at its begin. A thread that finds the budget exceeded makes one
   step. Then all windows restart, so that costs from before the step do not count again. */
#define _GNU_SOURCE
#include "control.h"

#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/observer.h"
#include "../record/change_log.h"
#include "../record/cost_sample.h"
#include "../record/mute.h"
#include "../record/site.h"

enum {
  WINDOW_NS = 1000000000,
  SURVEY_SITES = 128, /* of the sites of a chunk; what has no place comes too seldom to matter */
  MILLION = 1000000
};

/* All any thread, relaxed: a thread may still be at a chunk change when a session begins. */
static struct {
  uint64_t allowed_ppm, allowed_events; /* 0: no such budget */
  uint32_t budget_action;               /* prof_budget */
  uint64_t scope_ps;
  uint32_t steps;
  uint32_t busy;                 /* one at a time takes a step, or begins a window */
  uint64_t since_ns, sum_before; /* of the window of all events; 0: none has begun */
  uint64_t exited_events;        /* events of threads that have ended */
} budget;

static uint64_t word_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void word_store(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
static uint32_t budget_action(void) {
  return __atomic_load_n(&budget.budget_action, __ATOMIC_RELAXED);
}
static bool budget_is_on(void) {
  return word_load(&budget.allowed_ppm) || word_load(&budget.allowed_events);
}

/* All windows. */
static void begin_all_windows(void) {
  word_store(&budget.since_ns, 0);
  __atomic_fetch_add(&budget.steps, 1, __ATOMIC_RELAXED);
}

void prof_i_budget_begin(const prof_options *options, bool is_new_capture) {
  word_store(&budget.allowed_ppm, options->budget_permille * 1000ull);
  word_store(&budget.allowed_events, options->budget_events);
  __atomic_store_n(&budget.budget_action, options->budget_action, __ATOMIC_RELAXED);
  word_store(&budget.scope_ps, prof_i_cost_at_start().scope_ps);
  prof_i_budget_restart(!is_new_capture);
  if (is_new_capture) prof_i_mute_write_all();
}

void prof_i_budget_restart(bool is_told) {
  prof_i_mute_end_budget(is_told);
  begin_all_windows();
}

/* ---- windows ---- */

static void begin_window(prof_i_overhead *window, uint64_t now) {
  window->since_ns = now;
  window->own_ns = 0;
}

static uint64_t window_ns_at_least(uint64_t ns) { return ns > WINDOW_NS ? ns : WINDOW_NS; }

/* How far the thread has come in the chunk at hand, which may be made anew while we look: once in a
   while the sum is off by a chunk. */
static PROF_I_RACES_BY_DESIGN uint64_t bytes_of_chunk(const prof_i_thread *t) {
  const prof_i_head *const chunk = __atomic_load_n(&t->chunk, __ATOMIC_ACQUIRE);
  const uint64_t cursor = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED), bytes = chunk->bytes;
  return cursor < bytes ? cursor : bytes;
}

/* Of the chunk at hand the records are known only in slots of 16 bytes: as many events as before in
   as many slots. */
static uint64_t thread_events(const prof_i_thread *t) {
  const uint64_t events = word_load(&t->overhead.events), slots = word_load(&t->overhead.slots),
                 from = word_load(&t->overhead.from);
  const uint64_t end = bytes_of_chunk(t), at_hand = end > from ? (end - from) / 16 : 0;
  return events + (slots ? (uint64_t)((double)at_hand * (double)events / (double)slots) : at_hand);
}

static uint64_t all_thread_events(void) {
  uint64_t sum = word_load(&budget.exited_events);
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) == PROF_I_ALIVE &&
        __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number)
      sum += thread_events(t);
  return sum;
}

static bool step_try_begin(void) { return !__atomic_exchange_n(&budget.busy, 1, __ATOMIC_ACQUIRE); }
static void step_end(void) { __atomic_store_n(&budget.busy, 0, __ATOMIC_RELEASE); }

void prof_i_budget_forget(void) { budget.busy = 0; }

/* Events in the window so far, and how long it is. A first look begins it. */
static uint64_t events_in_window(uint64_t now, uint64_t *ns_out) {
  const uint64_t since = word_load(&budget.since_ns), sum = all_thread_events(),
                 before = word_load(&budget.sum_before);
  *ns_out = since && now > since ? now - since : 0;
  if (!since && step_try_begin()) {
    word_store(&budget.sum_before, sum);
    word_store(&budget.since_ns, now);
    step_end();
  }
  return since && sum > before ? sum - before : 0;
}

/* ---- what comes most often ---- */

typedef struct survey_site {
  uint32_t site, count;
} survey_site;

typedef struct site_survey {
  survey_site sites[SURVEY_SITES];
  uint64_t events;
} site_survey;

static void survey_add(void *to, uint32_t site) {
  site_survey *const s = to;
  site = prof_i_site_for_budget(site);
  s->events++;
  for (uint32_t i = site, tries = 0; tries < 8; i++, tries++) {
    survey_site *const place = &s->sites[i % SURVEY_SITES];
    if (place->count && place->site != site) continue;
    place->site = site;
    place->count++;
    return;
  }
}

/* The one that comes most often; it is taken off the list. 0: none is left. */
static uint32_t survey_take_most(site_survey *s, uint32_t *count_out) {
  survey_site *most = &s->sites[0];
  for (int i = 1; i < SURVEY_SITES; i++)
    if (s->sites[i].count > most->count) most = &s->sites[i];
  *count_out = most->count;
  most->count = 0;
  return most->site;
}

/* ---- a step ---- */

typedef struct budget_excess {
  prof_change_reason reason;
  uint64_t measured, allowed;
} budget_excess;

static bool step_level(const prof_i_change_entry *change) {
  const uint32_t level = prof_i_arena_level();
  if (budget_action() == PROF_BUDGET_MUTE || level == 0 ||
      (level == 1 && budget_action() != PROF_BUDGET_LEVEL))
    return false;
  const uint32_t before = prof_i_change_log_begin_level();
  /* false: somebody else has switched it */
  const bool is_lower = prof_i_arena_lower_level(level, level - 1);
  prof_i_change_log_end_level(before, is_lower ? change : NULL);
  return is_lower;
}

/* Enough of the sites, the most frequent first, that what is left would have been within the
   budget. */
static bool mute_most_frequent(const prof_i_change_entry *change, site_survey *s) {
  prof_i_change_entry step = *change;
  uint64_t left = s->events;
  bool any = false;
  step.kind = PROF_CHANGE_MUTED;
  step.level_before = step.level_after = prof_i_arena_level();
  for (uint32_t count;
       (double)left * (double)change->measured > (double)s->events * (double)change->allowed;) {
    step.site = survey_take_most(s, &count);
    if (!count) break;
    left -= count;
    /* a step, a flow; or what came before it was muted */
    if (!prof_i_mute_for_budget(step.site)) continue;
    any = true;
    prof_i_change_log_write(&step);
  }
  if (any) prof_i_site_raise_epoch();
  return any;
}

static void take_step(const prof_i_thread *thread, const budget_excess *e, site_survey *s) {
  if (!step_try_begin()) return;
  const prof_i_change_entry change = {.reason = e->reason,
                                      .thread = thread->serial,
                                      .measured = e->measured,
                                      .allowed = e->allowed};
  if (__atomic_load_n(&budget.steps, __ATOMIC_RELAXED) == thread->overhead.steps &&
      (step_level(&change) ||
       (budget_action() != PROF_BUDGET_LEVEL && mute_most_frequent(&change, s))))
    begin_all_windows();
  step_end();
}

/* ---- judging ---- */

/* Judged over a second at least; told over the time that it was. */
static bool is_exceeded(const prof_i_thread *thread, uint64_t now, budget_excess *e) {
  const uint64_t ns = now - thread->overhead.since_ns, own_ns = thread->overhead.own_ns;
  const uint64_t allowed_ppm = word_load(&budget.allowed_ppm),
                 allowed_events = word_load(&budget.allowed_events);
  if (allowed_ppm && own_ns * MILLION / window_ns_at_least(ns) > allowed_ppm) {
    const uint64_t measured = own_ns * MILLION / (ns ? ns : 1);
    *e = (budget_excess){PROF_REASON_TIME, measured < MILLION ? measured : MILLION, allowed_ppm};
    return true;
  }
  if (!allowed_events) return false;
  uint64_t window_ns;
  const uint64_t events = events_in_window(now, &window_ns);
  if ((double)events * 1e9 > (double)allowed_events * (double)window_ns_at_least(window_ns)) {
    *e = (budget_excess){PROF_REASON_EVENTS,
                         (uint64_t)((double)events * 1e9 / (double)(window_ns ? window_ns : 1)),
                         allowed_events};
    return true;
  }
  if (window_ns >= WINDOW_NS) word_store(&budget.since_ns, 0); /* the next look begins another */
  return false;
}

/* True: the window has been begun anew, and what came before must not be judged. */
static bool is_new_window(prof_i_overhead *window, uint64_t now) {
  const uint32_t steps = __atomic_load_n(&budget.steps, __ATOMIC_RELAXED);
  if (window->since_ns && window->steps == steps) return false;
  window->steps = steps;
  begin_window(window, now);
  return true;
}

static void check_thread(prof_i_thread *thread, const prof_i_head *chunk, uint64_t own_ns) {
  PROF_I_DEFAULT_FP;
  const uint64_t now = prof_i_port_monotonic_ns();
  prof_i_overhead *const window = &thread->overhead;
  budget_excess e;
  if (is_new_window(window, now)) return;
  window->own_ns += own_ns;
  if (is_exceeded(thread, now, &e)) {
    site_survey s = {.events = 0};
    prof_i_chunk_events_between(chunk, word_load(&window->from), UINT64_MAX, survey_add, &s);
    take_step(thread, &e, &s);
    return;
  }
  if (now - window->since_ns >= WINDOW_NS) begin_window(window, now);
}

/* What it recorded into another arena is not of this window. */
static void begin_thread(prof_i_thread *thread) {
  word_store(&thread->overhead.events, 0);
  word_store(&thread->overhead.slots, 0);
  word_store(&thread->overhead.from, UINT64_MAX);
  thread->overhead.since_ns = 0;
  thread->overhead.beyond_ps = 0;
  thread->overhead.slow_ns = 0;
}

static void enter_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  uint64_t window_ns;
  word_store(&thread->overhead.from, word_load(&chunk->cursor));
  if (!budget_is_on() || thread->overhead.since_ns) return;
  const uint64_t now = prof_i_port_monotonic_ns();
  is_new_window(&thread->overhead, now);
  if (!word_load(&budget.since_ns)) events_in_window(now, &window_ns);
}

/* What the chunk has of the thread is counted; returns the events. */
static uint64_t count_thread_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  prof_i_overhead *const window = &thread->overhead;
  const uint64_t cursor = word_load(&chunk->cursor),
                 end = cursor < chunk->bytes ? cursor : chunk->bytes,
                 from = word_load(&window->from);
  const uint64_t events = prof_i_chunk_events_between(chunk, from, UINT64_MAX, NULL, NULL);
  word_store(&window->events, word_load(&window->events) + events);
  word_store(&window->slots, word_load(&window->slots) + (end > from ? (end - from) / 16 : 0));
  return events;
}

/* What the thread's scopes took, as many as stand in that many events: at the calibrated cost, and
   what was timed in place beyond it since the last look. */
static uint64_t scopes_ns(prof_i_thread *thread, uint64_t events) {
  const int64_t beyond_ps = thread->slot->beyond_ps;
  const int64_t more_ps = beyond_ps - thread->overhead.beyond_ps;
  thread->overhead.beyond_ps = beyond_ps;
  const uint64_t slow_ns = __atomic_exchange_n(&thread->overhead.slow_ns, 0, __ATOMIC_RELAXED);
  return events * word_load(&budget.scope_ps) / 1000 +
         (more_ps > 0 ? (uint64_t)more_ps / 1000 : 0) + slow_ns;
}

static void leave_chunk(prof_i_thread *thread, const prof_i_head *chunk, uint64_t change_ns) {
  if (!budget_is_on()) return;
  const uint64_t begun = prof_i_port_monotonic_ns();
  const uint64_t events = count_thread_chunk(thread, chunk);
  const uint64_t count_ns = prof_i_ns_since(begun);
  prof_i_claim(&thread->slot->own_ns, count_ns);
  /* The count takes half a nanosecond each. */
  check_thread(thread, chunk, scopes_ns(thread, events) + change_ns + events / 2);
}

static void end_thread(prof_i_thread *thread, const prof_i_head *chunk) {
  if (!budget_is_on()) return;
  if (chunk) check_thread(thread, chunk, scopes_ns(thread, count_thread_chunk(thread, chunk)));
  __atomic_fetch_add(&budget.exited_events, word_load(&thread->overhead.events), __ATOMIC_RELAXED);
  word_store(&thread->overhead.events, 0);
  word_store(&thread->overhead.from, UINT64_MAX); /* the rest of the chunk is another's */
}

const prof_i_observer prof_i_budget_observer = {.thread_attached = begin_thread,
                                                .chunk_entered = enter_chunk,
                                                .chunk_filled = leave_chunk,
                                                .thread_ended = end_thread};
