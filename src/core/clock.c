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

/* Written by the pair taker, guarded by `busy` (no waiting: a second taker leaves). Read anywhere, relaxed. */
static struct {
  uint32_t kind;
  uint32_t busy;
  uint32_t segments;
  pair first, last; /* of the segment */
  double ticks_per_ns;
  uint64_t error_ns;
} own;

int prof_i_clock_choose(uint32_t wanted) {
  const char *why_not = "";
  if (wanted != PROF_CLOCK_MONOTONIC && prof_i_port_counter_is_safe(&why_not)) {
    own.kind = PROF_CLOCK_TSC;
  } else if (wanted == PROF_CLOCK_TSC) {
    return prof_i_fail(PROF_E_UNSUPPORTED, "options.clock: %s; leave it 0 to use CLOCK_MONOTONIC_RAW", why_not);
  } else {
    own.kind = PROF_CLOCK_MONOTONIC;
  }
  return PROF_OK;
}

uint32_t prof_i_clock_kind(void) { return own.kind; }
bool prof_i_clock_is_counter(void) { return own.kind == PROF_CLOCK_TSC; }

uint64_t prof_i_clock_ticks(void) {
  return (own.kind == PROF_CLOCK_MONOTONIC ? prof_i_port_raw_ns() : prof_i_counter()) & mask60;
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
      own.segments++;
      own.first = *p;
      return;
    }
    if ((uint64_t)distance > own.error_ns) own.error_ns = (uint64_t)distance;
  }
  own.ticks_per_ns = rate;
}

void prof_i_clock_begin(void) {
  prof_i_header *const header = prof_i_arena_header();
  own.segments = 0;
  own.error_ns = 0;
  own.ticks_per_ns = own.kind == PROF_CLOCK_MONOTONIC ? 1.0 : 0;
  const pair before = take_pair();
  if (own.ticks_per_ns == 0) { /* a first rate from two readings some 20 us apart; later pairs say it better */
    pair after = before;
    while (after.monotonic_ns - before.monotonic_ns < 20000) after = take_pair();
    own.ticks_per_ns = (double)(after.ticks - before.ticks) / (double)(after.monotonic_ns - before.monotonic_ns);
    header->ticks_hz = (uint64_t)(own.ticks_per_ns * 1e9);
    own.ticks_per_ns = 0;
  } else {
    header->ticks_hz = 1000000000u;
  }
  own.first = own.last = before;
  header->clock = own.kind;
  header->start_ticks = before.ticks;
  header->start_monotonic_ns = before.monotonic_ns;
  header->start_realtime_ns = before.realtime_ns;
  write_pair(&before);
}

void prof_i_clock_pair(bool rarely) {
  if (rarely && prof_i_port_monotonic_ns() - __atomic_load_n(&own.last.monotonic_ns, __ATOMIC_RELAXED) < PAIR_EVERY_NS) return;
  if (__atomic_exchange_n(&own.busy, 1, __ATOMIC_ACQUIRE)) return;
  const pair p = take_pair();
  extend(&p);
  own.last = p;
  write_pair(&p);
  __atomic_store_n(&own.busy, 0, __ATOMIC_RELEASE);
}

double prof_i_clock_ticks_per_ns(void) {
  return own.ticks_per_ns > 0 ? own.ticks_per_ns : (prof_i_the_arena.base ? (double)prof_i_arena_header()->ticks_hz / 1e9 : 0);
}
uint64_t prof_i_clock_error_ns(void) { return own.error_ns + own.last.width_ns; }
uint32_t prof_i_clock_segments(void) { return own.segments + 1; }
