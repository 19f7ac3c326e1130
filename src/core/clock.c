/* Chooses the counter and keeps (ticks, MONOTONIC, REALTIME) pairs. See clock.h. */
#include "clock.h"

#include <prof/profiler.h>

#include "arena.h"
#include "log.h"
#include "meta.h"
#include "port.h"

enum { TRIES = 5, PAIR_EVERY_NS = 10000000 };
static const uint64_t mask60 = (1ull << 60) - 1;

typedef struct pair {
  uint64_t ticks, monotonic_ns, realtime_ns, width_ns;
} pair;

/* Written by the pair taker, guarded by `busy` (no waiting: a second taker leaves). What is atomic is read anywhere, relaxed. */
static struct {
  uint32_t kind; /* atomic; written while nothing records */
  uint32_t busy;
  uint32_t segments;     /* atomic */
  pair first, last;      /* of the segment */
  uint64_t last_ns;      /* atomic: last.monotonic_ns */
  double ticks_per_ns;   /* atomic */
  uint64_t error_ns;     /* atomic: the worst pair so far */
  uint64_t last_width_ns; /* atomic: last.width_ns */
} own;

static void set_rate(double ticks_per_ns) { __atomic_store(&own.ticks_per_ns, &ticks_per_ns, __ATOMIC_RELAXED); }
static double get_rate(void) {
  double rate;
  __atomic_load(&own.ticks_per_ns, &rate, __ATOMIC_RELAXED);
  return rate;
}

static void set_last(const pair *p) {
  own.last = *p;
  __atomic_store_n(&own.last_ns, p->monotonic_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&own.last_width_ns, p->width_ns, __ATOMIC_RELAXED);
}

int prof_i_clock_choose(uint32_t wanted) {
  const char *why_not = "";
  if (wanted != PROF_CLOCK_MONOTONIC && prof_i_port_counter_is_safe(&why_not)) {
    __atomic_store_n(&own.kind, PROF_CLOCK_TSC, __ATOMIC_RELAXED);
  } else if (wanted == PROF_CLOCK_TSC) {
    return prof_i_fail(PROF_E_UNSUPPORTED, "options.clock: %s; leave it 0 to use CLOCK_MONOTONIC_RAW", why_not);
  } else {
    __atomic_store_n(&own.kind, PROF_CLOCK_MONOTONIC, __ATOMIC_RELAXED);
  }
  return PROF_OK;
}

uint32_t prof_i_clock_kind(void) { return __atomic_load_n(&own.kind, __ATOMIC_RELAXED); }
bool prof_i_clock_is_counter(void) { return prof_i_clock_kind() == PROF_CLOCK_TSC; }

uint64_t prof_i_clock_ticks(void) {
  return (prof_i_clock_kind() == PROF_CLOCK_MONOTONIC ? prof_i_port_raw_ns() : prof_i_counter()) & mask60;
}

/* The tightest of a few readings: the kernel's clock between two of ours. */
static pair take_pair(void) {
  pair best = {0, 0, 0, UINT64_MAX};
  uint64_t best_ticks = UINT64_MAX;
  for (int i = 0; i < TRIES; i++) {
    const uint64_t before = prof_i_clock_ticks();
    const uint64_t monotonic = prof_i_port_monotonic_ns();
    const uint64_t after = prof_i_clock_ticks();
    if (after - before >= best_ticks) continue;
    best_ticks = after - before;
    best.ticks = before + best_ticks / 2;
    best.monotonic_ns = monotonic;
    best.realtime_ns = prof_i_port_realtime_ns();
  }
  best.width_ns = own.ticks_per_ns > 0 ? (uint64_t)((double)best_ticks / own.ticks_per_ns) + 1 : 100;
  return best;
}

static void write_pair(const pair *p) {
  const uint64_t words[] = {p->ticks, p->monotonic_ns, p->realtime_ns, p->width_ns, own.segments};
  prof_i_meta_write(PROF_I_KIND_CLOCK, p->ticks, 0, words, sizeof words / sizeof *words);
}

/* Where the segment's line so far would put these ticks; the error if they stand elsewhere. */
static void extend(const pair *p) {
  const double ticks = (double)(p->ticks - own.first.ticks);
  const double ns = (double)(p->monotonic_ns - own.first.monotonic_ns);
  if (ns < 1e6) return; /* too near to tell the rate */
  const double rate = ticks / ns;
  if (own.ticks_per_ns > 0) {
    const double expected = (double)(p->ticks - own.last.ticks) / own.ticks_per_ns;
    const double off = expected - (double)(p->monotonic_ns - own.last.monotonic_ns);
    const double bound = 2e3 + 2e-4 * expected + (double)(p->width_ns + own.last.width_ns);
    const double distance = off < 0 ? -off : off;
    if (distance > bound) { /* the clock stepped, or the host slept */
      __atomic_fetch_add(&own.segments, 1, __ATOMIC_RELAXED);
      own.first = *p;
      return;
    }
    if ((uint64_t)distance > own.error_ns) __atomic_store_n(&own.error_ns, (uint64_t)distance, __ATOMIC_RELAXED);
  }
  set_rate(rate);
}

void prof_i_clock_begin(void) {
  prof_i_header *const header = prof_i_arena_header();
  __atomic_store_n(&own.segments, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&own.error_ns, 0, __ATOMIC_RELAXED);
  set_rate(own.kind == PROF_CLOCK_MONOTONIC ? 1.0 : 0);
  const pair before = take_pair();
  if (own.ticks_per_ns == 0) { /* a first rate from two readings some 20 us apart; later pairs say it better */
    pair after = before;
    while (after.monotonic_ns - before.monotonic_ns < 20000) after = take_pair();
    header->ticks_hz = (uint64_t)((double)(after.ticks - before.ticks) / (double)(after.monotonic_ns - before.monotonic_ns) * 1e9);
  } else {
    header->ticks_hz = 1000000000u;
  }
  own.first = before;
  set_last(&before);
  header->clock = own.kind;
  header->start_ticks = before.ticks;
  header->start_monotonic_ns = before.monotonic_ns;
  header->start_realtime_ns = before.realtime_ns;
  write_pair(&before);
}

void prof_i_clock_pair(bool rarely) {
  if (rarely && prof_i_port_monotonic_ns() - __atomic_load_n(&own.last_ns, __ATOMIC_RELAXED) < PAIR_EVERY_NS) return;
  if (__atomic_exchange_n(&own.busy, 1, __ATOMIC_ACQUIRE)) return;
  const pair p = take_pair();
  extend(&p);
  set_last(&p);
  write_pair(&p);
  __atomic_store_n(&own.busy, 0, __ATOMIC_RELEASE);
}

double prof_i_clock_ticks_per_ns(void) {
  const double rate = get_rate();
  return rate > 0 ? rate : (prof_i_the_arena.base ? (double)prof_i_arena_header()->ticks_hz / 1e9 : 0);
}

uint64_t prof_i_clock_error_ns(void) {
  return __atomic_load_n(&own.error_ns, __ATOMIC_RELAXED) + __atomic_load_n(&own.last_width_ns, __ATOMIC_RELAXED);
}

uint32_t prof_i_clock_segments(void) { return __atomic_load_n(&own.segments, __ATOMIC_RELAXED) + 1; }
