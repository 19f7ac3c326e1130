/* See budget.h. Each thread sums up its events and its own cost over a window, which ends at the first chunk change after a second. Of events a second all
   threads' windows count together, and what threads brought that are gone. Whoever finds the budget exceeded takes one step; every thread then begins its window anew, so that what came
   before the step is not held against what is left after it. */
#define _GNU_SOURCE
#include "budget.h"


#include "arena.h"
#include "change.h"
#include "chunk.h"
#include "control.h"
#include "cost.h"
#include "mute.h"
#include "site.h"

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
  uint64_t step_ns; /* when the last was, or the session began */
  uint32_t stepping; /* one at a time */
  prof_i_spending gone; /* of threads that have ended; events are added by any thread */
} own;

static uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
static uint32_t action(void) { return __atomic_load_n(&own.action, __ATOMIC_RELAXED); }
static bool is_on(void) { return load(&own.allowed_ppm) || load(&own.allowed_events); }

/* All windows. */
static void begin_anew(void) {
  store(&own.step_ns, prof_i_port_monotonic_ns());
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
  store(&window->before_ns, now - load(&window->since_ns));
  store(&window->before_events, load(&window->events));
  store(&window->since_ns, now);
  store(&window->events, 0);
  window->own_ns = 0;
}

static uint64_t at_least_a_window(uint64_t ns) { return ns > WINDOW_NS ? ns : WINDOW_NS; }

/* Events a second, over no less than at_least: of this window, and of the one before as far as this one is short. */
static double rate_of(const prof_i_spending *window, uint64_t now, uint64_t at_least) {
  const uint64_t since = load(&window->since_ns), events = load(&window->events);
  if (!since || now < since) return 0;
  const uint64_t ns = now - since, missing = ns < at_least ? at_least - ns : 0;
  const double before = (double)load(&window->before_events) * (double)missing / (double)at_least_a_window(load(&window->before_ns));
  return ((double)events + before) * 1e9 / (double)(ns + missing);
}

static double rate_of_all(uint64_t now, uint64_t at_least) {
  double rate = rate_of(&own.gone, now, at_least);
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (__atomic_load_n(&t->alive, __ATOMIC_RELAXED) == PROF_I_ALIVE) rate += rate_of(&t->spending, now, at_least);
  return rate;
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
  if (action() == PROF_BUDGET_MUTE || level == 0 || (level == 1 && action() != PROF_BUDGET_LEVEL)) return false;
  const uint32_t before = prof_i_change_begin_level();
  const bool is_lower = prof_i_arena_lower_level(level, level - 1); /* false: somebody else has switched it */
  prof_i_change_end_level(before, is_lower ? change : NULL);
  return is_lower;
}

/* Enough of the sites, the most frequent first, that what is left would have been within the budget. */
static bool mute_most(const prof_i_change *change, survey *s) {
  prof_i_change step = *change;
  uint64_t left = s->events;
  bool any = false;
  step.kind = PROF_CHANGE_MUTED;
  step.level_before = step.level_after = prof_i_arena_level();
  for (uint32_t count; (double)left * (double)change->measured > (double)s->events * (double)change->allowed;) {
    step.site = take_most(s, &count);
    if (!count) break;
    left -= count;
    if (!prof_i_mute_for_budget(step.site)) continue; /* a step, a flow; or what came before it was muted */
    any = true;
    prof_i_change_note(&step);
  }
  if (any) prof_i_site_raise_epoch();
  return any;
}

static void take_step(const prof_i_thread *thread, const excess *e, survey *s) {
  if (__atomic_exchange_n(&own.stepping, 1, __ATOMIC_ACQUIRE)) return;
  const prof_i_change change = {.reason = e->reason, .thread = thread->serial, .measured = e->measured, .allowed = e->allowed};
  if (__atomic_load_n(&own.steps, __ATOMIC_RELAXED) == thread->spending.steps && (step_level(&change) || (action() != PROF_BUDGET_LEVEL && mute_most(&change, s))))
    begin_anew();
  __atomic_store_n(&own.stepping, 0, __ATOMIC_RELEASE);
}

/* ---- judging ---- */

/* Judged over a second at least; told over the time that it was: a thread's, or since the last step. */
static bool is_exceeded(const prof_i_thread *thread, uint64_t now, excess *e) {
  const uint64_t ns = now - load(&thread->spending.since_ns), own_ns = thread->spending.own_ns;
  const uint64_t allowed_ppm = load(&own.allowed_ppm), allowed_events = load(&own.allowed_events);
  if (allowed_ppm && own_ns * MILLION / at_least_a_window(ns) > allowed_ppm) {
    const uint64_t measured = own_ns * MILLION / (ns ? ns : 1);
    *e = (excess){PROF_REASON_TIME, measured < MILLION ? measured : MILLION, allowed_ppm};
    return true;
  }
  if (!allowed_events || rate_of_all(now, WINDOW_NS) <= (double)allowed_events) return false;
  const uint64_t since = now - load(&own.step_ns);
  *e = (excess){PROF_REASON_EVENTS, (uint64_t)rate_of_all(now, since < WINDOW_NS ? since + 1 : WINDOW_NS), allowed_events};
  return true;
}

/* True: the window has been begun anew, and what came before must not be judged. */
static bool is_new_window(prof_i_spending *window, uint64_t now) {
  const uint32_t steps = __atomic_load_n(&own.steps, __ATOMIC_RELAXED);
  if (load(&window->since_ns) && window->steps == steps) return false;
  window->steps = steps;
  begin_window(window, now);
  store(&window->before_events, 0);
  return true;
}

/* Any thread; one at a time. What is added in between is of either window. */
static void renew_gone(uint64_t now) {
  const uint32_t steps = __atomic_load_n(&own.steps, __ATOMIC_RELAXED);
  const bool is_old = !load(&own.gone.since_ns) || __atomic_load_n(&own.gone.steps, __ATOMIC_RELAXED) != steps;
  if (!is_old && now - load(&own.gone.since_ns) < WINDOW_NS) return;
  if (__atomic_exchange_n(&own.stepping, 1, __ATOMIC_ACQUIRE)) return;
  __atomic_store_n(&own.gone.steps, steps, __ATOMIC_RELAXED);
  store(&own.gone.before_ns, now - load(&own.gone.since_ns));
  store(&own.gone.since_ns, now);
  const uint64_t events = __atomic_exchange_n(&own.gone.events, 0, __ATOMIC_RELAXED);
  store(&own.gone.before_events, is_old ? 0 : events);
  __atomic_store_n(&own.stepping, 0, __ATOMIC_RELEASE);
}

static void judge(prof_i_thread *thread, const prof_i_head *chunk, uint64_t events, uint64_t own_ns) {
  const uint64_t now = prof_i_port_monotonic_ns();
  prof_i_spending *const window = &thread->spending;
  excess e;
  renew_gone(now);
  if (is_new_window(window, now)) return;
  store(&window->events, load(&window->events) + events);
  window->own_ns += own_ns;
  if (is_exceeded(thread, now, &e)) {
    survey s = {.events = 0};
    prof_i_chunk_events_from(chunk, thread->spending.from, see, &s);
    take_step(thread, &e, &s);
    return;
  }
  if (now - load(&window->since_ns) >= WINDOW_NS) begin_window(window, now);
}

void prof_i_budget_enter_chunk(prof_i_thread *thread, const prof_i_head *chunk) {
  thread->spending.from = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED);
  if (is_on() && !load(&thread->spending.since_ns)) is_new_window(&thread->spending, prof_i_port_monotonic_ns());
}

void prof_i_budget_leave_chunk(prof_i_thread *thread, const prof_i_head *chunk, uint64_t change_ns) {
  if (!is_on()) return;
  const uint64_t begun = prof_i_port_monotonic_ns();
  const uint64_t events = prof_i_chunk_events_from(chunk, thread->spending.from, NULL, NULL);
  const uint64_t count_ns = prof_i_ns_since(begun);
  prof_i_claim(&thread->slot->own_ns, count_ns);
  judge(thread, chunk, events, events * load(&own.scope_ps) / 1000 + change_ns + count_ns);
}

void prof_i_budget_thread_goes(prof_i_thread *thread, const prof_i_head *chunk) {
  if (!is_on()) return;
  const uint64_t events = chunk ? prof_i_chunk_events_from(chunk, thread->spending.from, NULL, NULL) : 0;
  if (chunk) judge(thread, chunk, events, events * load(&own.scope_ps) / 1000);
  __atomic_fetch_add(&own.gone.events, load(&thread->spending.events), __ATOMIC_RELAXED);
  store(&thread->spending.events, 0);
}
