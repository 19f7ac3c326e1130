/* Chooses the counter and keeps (ticks, MONOTONIC, REALTIME) pairs. See clock.h. */
#include "clock.h"

#include <prof/profiler.h>

#include "../../base/error.h"
#include "../../base/fault.h"
#include "../../base/port.h"
#include "arena.h"
#include "meta.h"

enum {
  TRIES = 5,
  START_TRIES = 1 << 18, /* readings until a clock that stands still is believed to: some 0.1 s */
  PAIR_EVERY_NS = 10000000,
  RING_PART_MIN = 128,
  RING_PART_MAX = 1024,
  RING_PART_BYTES = 65536,    /* see is_too_soon() */
  SPAN_NS_MIN = 20000,        /* for a first rate */
  RATE_SPAN_NS_MIN = 1000000, /* for a better one */
  /* times: no machine is moved to one whose counter is faster, or slower, by more */
  RATE_CHANGE_MAX = 8,
  SMALL_JUMP_NS = 20000000 /* what processors' counters may be apart: docs/design.md */
};
static const uint64_t mask60 = (1ull << 60) - 1;
static const double rate_unknown = 1e9;

typedef struct clock_pair {
  uint64_t ticks, monotonic_ns, realtime_ns;
  uint64_t width_ticks, realtime_width_ticks; /* how far the readings may be from ticks */
  uint64_t width_ns;                          /* with what the clock itself does not tell */
} clock_pair;

/* Written by the pair taker, guarded by `busy` (no waiting: a second taker leaves). What is atomic
   is read anywhere, relaxed. */
static struct {
  uint32_t kind; /* atomic; written while nothing records */
  uint32_t busy;
  uint32_t segments; /* atomic */
  /* atomic: since the session began the counter has lost time, more than processors are apart */
  uint32_t went_back;
  clock_pair first, last; /* of the segment */
  uint64_t last_ns;       /* atomic: last.monotonic_ns */
  double ticks_per_ns;    /* atomic; the segment's, or while that is not known the last one's */
  double rate_error;      /* atomic; of ticks_per_ns, as a share; rate_unknown: a guess */
  uint64_t resolution_ns; /* of a CLOCK_MONOTONIC that goes by steps; else 0 */
  uint64_t error_ns;      /* atomic: the worst pair so far */
  uint64_t last_width_ns; /* atomic: last.width_ns */
} clock_state;

static void set_rate(double ticks_per_ns) {
  __atomic_store(&clock_state.ticks_per_ns, &ticks_per_ns, __ATOMIC_RELAXED);
}
static void set_rate_error(double share) {
  __atomic_store(&clock_state.rate_error, &share, __ATOMIC_RELAXED);
}
static double get_rate(void) {
  double rate;
  __atomic_load(&clock_state.ticks_per_ns, &rate, __ATOMIC_RELAXED);
  return rate;
}

static void set_last_pair(const clock_pair *p) {
  clock_state.last = *p;
  __atomic_store_n(&clock_state.last_ns, p->monotonic_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&clock_state.last_width_ns, p->width_ns, __ATOMIC_RELAXED);
}

int prof_i_clock_choose(uint32_t wanted) {
  const char *why_not = "";
  if (wanted != PROF_CLOCK_MONOTONIC && prof_i_port_counter_is_safe(&why_not)) {
    __atomic_store_n(&clock_state.kind, PROF_CLOCK_TSC, __ATOMIC_RELAXED);
  } else if (wanted == PROF_CLOCK_TSC) {
    return prof_i_fail(PROF_E_UNSUPPORTED,
                       "options.clock: %s; leave it 0 to use CLOCK_MONOTONIC_RAW", why_not);
  } else {
    __atomic_store_n(&clock_state.kind, PROF_CLOCK_MONOTONIC, __ATOMIC_RELAXED);
  }
  return PROF_OK;
}

uint32_t prof_i_clock_kind(void) { return __atomic_load_n(&clock_state.kind, __ATOMIC_RELAXED); }
bool prof_i_clock_is_counter(void) { return prof_i_clock_kind() == PROF_CLOCK_TSC; }

static uint64_t read_ticks(uint32_t kind) {
  return (kind == PROF_CLOCK_MONOTONIC ? prof_i_port_raw_ns() : prof_i_counter()) & mask60;
}

uint64_t prof_i_clock_ticks(void) { return read_ticks(prof_i_clock_kind()); }

/* 60 bits that may wrap: negative where the counter went back. */
static int64_t ticks_since(uint64_t from, uint64_t to) { return (int64_t)((to - from) << 4) >> 4; }

static uint64_t ns_of_ticks(uint64_t ticks) {
  return clock_state.ticks_per_ns > 0 ? (uint64_t)((double)ticks / clock_state.ticks_per_ns) + 1
                                      : 0;
}

/* Some virtual machines' clocks run back a little now and then: what a reading is off another one,
   more than either can be wrong by, is the clock's own. */
static uint64_t clock_jitter_ns(const clock_pair *best, const clock_pair *tries, int count) {
  uint64_t most = 0;
  for (int i = 0; i < count && clock_state.ticks_per_ns > 0; i++) {
    const double by_counter =
        (double)ticks_since(best->ticks, tries[i].ticks) / clock_state.ticks_per_ns;
    const double off = by_counter - (double)(int64_t)(tries[i].monotonic_ns - best->monotonic_ns),
                 size = off < 0 ? -off : off;
    const double readings =
        (double)(best->width_ticks + tries[i].width_ticks) / 2 / clock_state.ticks_per_ns;
    if (size > readings + 1 && (uint64_t)(size + readings) > most)
      most = (uint64_t)(size + readings);
  }
  return most;
}

/* The tightest of a few readings: the kernel's clocks between two of ours. False: the counter went
   back in each of them. */
static bool read_pair(clock_pair *out) {
  uint64_t best = mask60 / 2;
  clock_pair tries[TRIES];
  int count = 0;
  for (int i = 0; i < TRIES; i++) {
    const uint64_t before = prof_i_clock_ticks();
    const uint64_t monotonic = prof_i_port_monotonic_ns();
    const uint64_t between = prof_i_clock_ticks();
    const uint64_t realtime = prof_i_port_realtime_ns();
    const uint64_t after = prof_i_clock_ticks();
    const uint64_t width = (between - before) & mask60, whole = (after - before) & mask60;
    if (whole >= mask60 / 2 || width > whole) continue;
    tries[count++] =
        (clock_pair){(before + width / 2) & mask60, monotonic, realtime, width, whole, 0};
    if (whole >= best) continue;
    best = whole;
    *out = tries[count - 1];
  }
  if (count)
    out->width_ns = ns_of_ticks(out->width_ticks) + (clock_state.resolution_ns
                                                         ? clock_state.resolution_ns
                                                         : clock_jitter_ns(out, tries, count));
  return count > 0;
}

static void write_pair(const clock_pair *p) {
  const uint64_t words[] = {p->ticks,
                            p->monotonic_ns,
                            p->realtime_ns,
                            p->width_ns,
                            clock_state.segments,
                            ns_of_ticks(p->realtime_width_ticks) + clock_state.resolution_ns};
  prof_i_meta_write(PROF_I_KIND_CLOCK, p->ticks, 0, words, sizeof words / sizeof *words);
}

static void begin_segment(const clock_pair *p, double off_ns) {
  __atomic_fetch_add(&clock_state.segments, 1, __ATOMIC_RELAXED);
  clock_state.first = *p;
  set_rate_error(rate_unknown);
  if (off_ns <= SMALL_JUMP_NS && (uint64_t)off_ns > clock_state.error_ns)
    __atomic_store_n(&clock_state.error_ns, (uint64_t)off_ns, __ATOMIC_RELAXED);
}

/* The segment's rate by its first pair and this one, when they say it better than is known. */
static void better_rate(const clock_pair *p) {
  const double ns = (double)(p->monotonic_ns - clock_state.first.monotonic_ns);
  const int64_t ticks = ticks_since(clock_state.first.ticks, p->ticks);
  if (ns < RATE_SPAN_NS_MIN || ticks <= 0) return;
  const double error = (double)(p->width_ns + clock_state.first.width_ns) / ns;
  if (error > clock_state.rate_error && error > 1e-4) return;
  set_rate((double)ticks / ns);
  set_rate_error(error);
}

/* Does the pair stand on the segment's line? If not by more than it and the rate may be wrong, a
   new segment begins with it: the clock stepped, the rate changed, or the host slept. */
static void extend_segment(clock_pair *p) {
  /* some virtual machines' clocks run back a little: the reading is less sure by that */
  if (p->monotonic_ns < clock_state.last.monotonic_ns) {
    p->width_ns += clock_state.last.monotonic_ns - p->monotonic_ns;
    p->monotonic_ns = clock_state.last.monotonic_ns;
  }
  const int64_t ticks = ticks_since(clock_state.last.ticks, p->ticks);
  const double passed = (double)(p->monotonic_ns - clock_state.last.monotonic_ns),
               expected = (double)ticks / clock_state.ticks_per_ns;
  const double off = expected - passed, distance = off < 0 ? -off : off,
               longer = expected > passed ? expected : passed;
  if (off < -SMALL_JUMP_NS) __atomic_store_n(&clock_state.went_back, 1, __ATOMIC_RELAXED);
  const double readings = 2e3 + (double)(p->width_ns + clock_state.last.width_ns);
  const bool is_known = clock_state.rate_error < rate_unknown;
  const bool is_off = is_known ? distance > readings + (2e-4 + clock_state.rate_error) * longer
                               : longer > RATE_CHANGE_MAX * (expected + passed - longer) +
                                              RATE_SPAN_NS_MIN + readings;
  if ((ticks < 0 || is_off) && !PROF_I_FAULT(ONE_SEGMENT)) {
    begin_segment(p, distance);
    return;
  }
  if (clock_state.rate_error < 1e-3 && (uint64_t)distance > clock_state.error_ns)
    __atomic_store_n(&clock_state.error_ns, (uint64_t)distance, __ATOMIC_RELAXED);
  better_rate(p);
}

/* Readings until two are far enough apart for a first rate; *start is the first of them. A clock
   that goes by steps is read from one step to the next, and its pairs are known no better than to a
   step. One that stands still has no rate: 1 is as good as any. */
static void measure_rate(clock_pair *start) {
  clock_pair now, before = *start;
  bool stands = false;
  for (int i = 0; i < START_TRIES; i++) {
    if (!read_pair(&now)) continue;
    const uint64_t step = now.monotonic_ns - before.monotonic_ns;
    const uint64_t passed = now.monotonic_ns - start->monotonic_ns;
    const int64_t ticks = ticks_since(start->ticks, now.ticks);
    before = now;
    if (step == 0) {
      stands = true;
    } else if ((int64_t)step < 0 || ticks < 0 || (stands && clock_state.resolution_ns == 0)) {
      /* the begin of a step is sharp */
      if ((int64_t)step > 0 && ticks >= 0) clock_state.resolution_ns = step;
      *start = now;
    } else if (passed >= SPAN_NS_MIN && ticks > 0) {
      set_rate((double)ticks / (double)passed);
      set_rate_error((double)(ns_of_ticks(start->width_ticks) + ns_of_ticks(now.width_ticks)) /
                     (double)passed);
      return;
    }
  }
  set_rate(1.0);
  set_rate_error(rate_unknown);
  clock_state.resolution_ns = (uint64_t)ticks_since(start->ticks, before.ticks);
}

void prof_i_clock_begin(void) {
  PROF_I_DEFAULT_FP;
  prof_i_header *const header = prof_i_arena_header();
  __atomic_store_n(&clock_state.segments, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&clock_state.error_ns, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&clock_state.went_back, 0, __ATOMIC_RELAXED);
  clock_state.resolution_ns = 0;
  set_rate(0);
  clock_pair start = {.ticks = prof_i_clock_ticks(),
                      .monotonic_ns = prof_i_port_monotonic_ns(),
                      .realtime_ns = prof_i_port_realtime_ns()};
  read_pair(&start);
  measure_rate(&start);
  /* CLOCK_MONOTONIC is CLOCK_MONOTONIC_RAW, but for what is being adjusted: 500 ppm at most */
  if (clock_state.kind == PROF_CLOCK_MONOTONIC) {
    set_rate(1.0);
    set_rate_error(6e-4);
  }
  start.width_ns = ns_of_ticks(start.width_ticks) + clock_state.resolution_ns;
  clock_state.first = start;
  set_last_pair(&start);
  header->clock = clock_state.kind;
  header->ticks_hz = (uint64_t)(clock_state.ticks_per_ns * 1e9);
  header->start_ticks = start.ticks;
  header->start_monotonic_ns = start.monotonic_ns;
  header->start_realtime_ns = start.realtime_ns;
  write_pair(&start);
}

/* Every 10 ms is enough. A ring evicts records but not pairs, so pairs become rarer with the time
   since its start: a month has not three times the pairs of an hour. Otherwise they would fill the
   room of later threads and call sites. */
static bool is_too_soon(void) {
  const uint64_t now = prof_i_port_monotonic_ns(),
                 since = now - __atomic_load_n(&clock_state.last_ns, __ATOMIC_RELAXED);
  if (since < PAIR_EVERY_NS || prof_i_the_arena.policy != PROF_POLICY_RING)
    return since < PAIR_EVERY_NS;
  uint64_t part = prof_i_the_arena.cap_bytes / RING_PART_BYTES;
  part = part < RING_PART_MIN ? RING_PART_MIN : part > RING_PART_MAX ? RING_PART_MAX : part;
  return since < (now - prof_i_arena_header()->start_monotonic_ns) / part;
}

void prof_i_clock_write_pair(bool rarely) {
  PROF_I_DEFAULT_FP;
  if (rarely && is_too_soon()) return;
  if (__atomic_exchange_n(&clock_state.busy, 1, __ATOMIC_ACQUIRE)) return;
  clock_pair p;
  if (read_pair(&p)) {
    extend_segment(&p);
    set_last_pair(&p);
    write_pair(&p);
  }
  __atomic_store_n(&clock_state.busy, 0, __ATOMIC_RELEASE);
}

bool prof_i_clock_is_before(uint64_t ticks, uint64_t since) {
  return ticks_since(since, ticks) < 0;
}

/* Looked at where a scope seems to be of a time before: rarely. */
bool prof_i_clock_went_back(uint64_t since) {
  prof_i_clock_write_pair(false);
  return __atomic_load_n(&clock_state.went_back, __ATOMIC_RELAXED) != 0 ||
         prof_i_clock_is_before(prof_i_clock_ticks(), since);
}

void prof_i_clock_begin_session(void) {
  PROF_I_DEFAULT_FP;
  prof_i_clock_write_pair(false);
  __atomic_store_n(&clock_state.went_back, 0, __ATOMIC_RELAXED);
}

void prof_i_clock_forget(void) { __atomic_store_n(&clock_state.busy, 0, __ATOMIC_RELAXED); }

double prof_i_clock_rate_error(void) {
  double share;
  __atomic_load(&clock_state.rate_error, &share, __ATOMIC_RELAXED);
  return share;
}
double prof_i_clock_ticks_per_ns(void) {
  const double rate = get_rate();
  return rate > 0 ? rate
                  : (prof_i_the_arena.base ? (double)prof_i_arena_header()->ticks_hz / 1e9 : 0);
}

uint64_t prof_i_clock_ticks_at(uint64_t monotonic_ns, uint64_t *width_out) {
  enum { TRIES_SIDE_BY_SIDE = 3 };
  const double rate = prof_i_clock_ticks_per_ns();
  uint64_t ticks = 0;
  *width_out = UINT64_MAX;
  for (int i = 0; i < TRIES_SIDE_BY_SIDE; i++) {
    const uint64_t before = prof_i_clock_ticks(), now_ns = prof_i_port_monotonic_ns(),
                   after = prof_i_clock_ticks();
    if (after - before >= *width_out) continue;
    *width_out = after - before;
    ticks = before + (after - before) / 2 -
            (uint64_t)(int64_t)((double)(int64_t)(now_ns - monotonic_ns) * rate);
  }
  return ticks;
}

prof_i_clock_reading prof_i_clock_read(uint32_t kind) {
  const char *why_not;
  prof_i_clock_reading best = {.monotonic_ns = prof_i_port_monotonic_ns()};
  if (kind != PROF_CLOCK_MONOTONIC && !prof_i_port_counter_is_safe(&why_not)) return best;
  for (int i = 0; i < TRIES; i++) {
    const uint64_t before = read_ticks(kind), monotonic_ns = prof_i_port_monotonic_ns();
    const uint64_t width = (read_ticks(kind) - before) & mask60;
    if (width >= mask60 / 2 || (best.ticks && width >= best.width_ticks)) continue;
    best = (prof_i_clock_reading){(before + width / 2) & mask60, width, monotonic_ns};
  }
  return best;
}

uint64_t prof_i_clock_error_ns(void) {
  return __atomic_load_n(&clock_state.error_ns, __ATOMIC_RELAXED) +
         __atomic_load_n(&clock_state.last_width_ns, __ATOMIC_RELAXED);
}

uint32_t prof_i_clock_segments(void) {
  return __atomic_load_n(&clock_state.segments, __ATOMIC_RELAXED) + 1;
}
