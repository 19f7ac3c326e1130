/* A device's clock beside the host's. If the clock can be read, each reading is a knot, and times
   between two knots are interpolated. If not, each event limits the distance of the two clocks: it
   was not past when it was recorded, and was past when it was polled. The smallest possible
   distance is used, so no time is before its launch. The distance is kept as long as it is
   possible. How far it may be off is the error. Clocks drift, so the limits widen with time. A knot
   is where the distance was chosen anew. */
#include "internal.h"

#include <prof/backend.h>

#include "../base/fault.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"

enum { STEP_NS = 50000 };
/* A clock may be set back while work is under way. More than this is nonsense, and would spoil the
   line for later times. */
static const uint64_t ahead_max_ns = 10000000000;
/* how fast an adjusted clock and another one may part, as a share */
static const double DRIFT_SHARE = 5e-4;
static const double DRIFT_BETWEEN = 1e-4; /* two oscillators, as a share */
/* A rate with a larger error, as a share, is measured again. The first one of a recording comes
   from some 20 us. */
static const double RATE_ERROR_ROUGH = 1e-4;
static const double RATE_SLOWER = 5e-4; /* as a share: of a scope of 1 ms, half a microsecond */

static void learn_rate(prof_i_device_clock *clock) {
  if (prof_i_clock_rate_error() > RATE_ERROR_ROUGH && prof_i_arena_guard_enter()) {
    if (prof_i_arena_level() > 0) prof_i_clock_write_pair(true);
    prof_i_arena_guard_exit();
  }
  clock->rate = prof_i_clock_ticks_per_ns();
  clock->rate_error = prof_i_clock_rate_error();
}

void prof_i_device_clock_init(prof_i_device_clock *clock, prof_i_backend *backend, uint32_t index) {
  *clock = (prof_i_device_clock){.backend = backend, .index = index};
  learn_rate(clock);
}

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }
static double absolute_of(double value) { return value < 0 ? -value : value; }
static double ticks_in_ns(const prof_i_device_clock *clock, double ns) { return ns * clock->rate; }
static uint64_t drift_at_rate(uint64_t ticks, double rate_error) {
  const double drift = (double)ticks * (DRIFT_SHARE + rate_error);
  return drift < (double)INT64_MAX ? (uint64_t)drift + 1 : INT64_MAX;
}
static uint64_t clock_drift_in(const prof_i_device_clock *clock, uint64_t ticks) {
  return drift_at_rate(ticks, clock->rate_error);
}

/* ---- knots ---- */

/* The line's own, which may lie below the floor. */
static uint64_t knot_line_at(const prof_i_clock_knot *knot, uint64_t device_ns, double rate) {
  return knot->ticks + (uint64_t)(int64_t)((double)(int64_t)(device_ns - knot->device_ns) * rate);
}

static uint64_t knot_ticks_at(const prof_i_clock_knot *knot, uint64_t device_ns) {
  const uint64_t ticks = knot_line_at(knot, device_ns, knot->rate);
  return device_ns < knot->device_ns ? ticks : later_of(ticks, knot->floor_ticks);
}

/* Drops every second knot of the older half. Few times are that old: only begins of very long work.
   */
static void thin_knots(prof_i_device_clock *clock) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < clock->count; i++) {
    if (i < PROF_I_CLOCK_KNOTS_MAX / 2 && i % 2 == 1) continue;
    clock->knots[kept++] = clock->knots[i];
  }
  for (uint32_t i = 0; i < PROF_I_CLOCK_KNOTS_MAX / 4; i++) {
    prof_i_clock_knot *const knot = &clock->knots[i], *const next = knot + 1;
    knot->error_ticks = later_of(knot->error_ticks, next->error_ticks);
    /* the floor is where the previous line ended, so not below this knot */
    knot->rate = (double)(later_of(next->ticks, next->floor_ticks) - knot->ticks) /
                 (double)(next->device_ns - knot->device_ns);
  }
  clock->count = kept;
}

/* Replaces knots behind which no time was converted yet. Time does not run backwards at it: it
   stops until the new line has caught up. */
static prof_i_clock_knot *put_knot(prof_i_device_clock *clock, uint64_t device_ns, uint64_t ticks,
                                   uint64_t error_ticks, double rate) {
  while (clock->count > 0 && clock->knots[clock->count - 1].device_ns >= device_ns) clock->count--;
  if (clock->count == PROF_I_CLOCK_KNOTS_MAX) thin_knots(clock);
  if (clock->count == 0) {
    clock->before_rate = clock->rate;
    clock->before_rate_error = clock->rate_error;
  }
  prof_i_clock_knot *const knot = &clock->knots[clock->count++];
  *knot = (prof_i_clock_knot){device_ns, ticks, error_ticks,
                              clock->count > 1 ? knot_ticks_at(&knot[-1], device_ns) : 0, rate};
  return knot;
}

/* The distance changes at this point. Earlier limits do not apply any more. */
static void restart_clock(prof_i_device_clock *clock) {
  clock->step_count++;
  clock->count = 0;
  clock->mapped_end_ns = 0;
}

/* ---- a clock that can be read ---- */

/* The limits that a reading gives. False: it cannot be read, or is nonsense. */
static bool bound_from_reading(const prof_i_device_clock *clock, const prof_backend_pair *pair,
                               prof_i_clock_bound *bound) {
  uint64_t width;
  if (pair->host_after_ns < pair->host_before_ns || !pair->device_ns) return false;
  *bound = (prof_i_clock_bound){pair->device_ns, pair->host_before_ticks, pair->host_after_ticks};
  if (pair->host_before_ticks && pair->host_after_ticks >= pair->host_before_ticks) return true;
  const uint64_t low_ticks = prof_i_clock_ticks_at(pair->host_before_ns, &width);
  bound->low_ticks = low_ticks - width / 2 - 1;
  bound->high_ticks =
      low_ticks +
      (uint64_t)ticks_in_ns(clock, (double)(pair->host_after_ns - pair->host_before_ns)) +
      width / 2 + 1;
  return true;
}

static bool read_clock_once(prof_i_device_clock *clock, prof_i_clock_bound *bound) {
  prof_backend_pair pair = {.size = sizeof pair};
  return clock->backend->table.clock(clock->backend->self, clock->index, &pair) ==
             PROF_BACKEND_OK &&
         bound_from_reading(clock, &pair, bound);
}

/* The narrowest of some. False: it cannot be read. */
static bool read_clock_narrowest(prof_i_device_clock *clock, prof_i_clock_bound *best) {
  enum { TRIES = 3 };
  prof_i_clock_bound bound;
  bool is_read = false;
  for (int i = 0; i < TRIES && read_clock_once(clock, &bound); i++, is_read = true)
    if (!is_read || bound.high_ticks - bound.low_ticks < best->high_ticks - best->low_ticks)
      *best = bound;
  return is_read;
}

/* True if the clock has advanced like the host's since that knot. The knot may be behind the host's
   time: after a long time without readings, conversions are off by what the clocks have parted. */
static bool is_on_knot_line(const prof_i_device_clock *clock, const prof_i_clock_knot *before,
                            uint64_t device_ns, uint64_t ticks, uint64_t error_ticks) {
  if (device_ns < before->device_ns) return false;
  const int64_t passed = (int64_t)(ticks - before->ticks);
  const double off =
      absolute_of((double)passed - ticks_in_ns(clock, (double)(device_ns - before->device_ns)));
  return off <= (double)(before->error_ticks + error_ticks +
                         clock_drift_in(clock, passed > 0 ? (uint64_t)passed : 0)) +
                    ticks_in_ns(clock, STEP_NS);
}

static void add_reading_knot(prof_i_device_clock *clock, const prof_i_clock_bound *pair) {
  const uint64_t ticks = pair->low_ticks + (pair->high_ticks - pair->low_ticks) / 2,
                 error_ticks = (pair->high_ticks - pair->low_ticks) / 2 + 1;
  prof_i_clock_knot *last = clock->count ? &clock->knots[clock->count - 1] : NULL;
  bool is_carried = false;
  learn_rate(clock);
  if (last && !is_on_knot_line(clock, last, pair->device_ns, ticks, error_ticks)) {
    restart_clock(clock);
    last = NULL;
  }
  /* times beyond the last reading that were converted stay: the line continues from there */
  if (last && clock->mapped_end_ns > last->device_ns) {
    last =
        put_knot(clock, clock->mapped_end_ns, knot_ticks_at(last, clock->mapped_end_ns),
                 last->error_ticks +
                     clock_drift_in(clock, knot_ticks_at(last, clock->mapped_end_ns) - last->ticks),
                 last->rate);
    is_carried = true;
  }
  /* nearer to it than readings can tell */
  if (last && (pair->device_ns <= last->device_ns || (!is_carried && ticks <= last->ticks))) return;
  /* else time stops at it, until the reading's line has caught up */
  if (last && ticks > last->ticks) {
    last->rate = (double)(ticks - last->ticks) / (double)(pair->device_ns - last->device_ns);
    last->error_ticks = later_of(last->error_ticks, error_ticks);
  }
  put_knot(clock, pair->device_ns, ticks, error_ticks, clock->rate);
}

static void add_reading(prof_i_device_clock *clock, const prof_i_clock_bound *pair) {
  if (!clock->has_readings) clock->count = 0; /* there were bounds alone */
  clock->has_readings = true;
  add_reading_knot(clock, pair);
}

void prof_i_device_clock_add_reading(prof_i_device_clock *clock, const prof_backend_pair *pair) {
  prof_i_clock_bound bound;
  if (!clock->has_readings && !clock->has_distances_only && bound_from_reading(clock, pair, &bound))
    add_reading(clock, &bound);
}

bool prof_i_device_clock_update(prof_i_device_clock *clock, uint64_t device_ns) {
  prof_i_clock_bound pair;
  if (!clock->backend->table.clock || clock->has_distances_only) return true;
  if (clock->has_readings && clock->count > 0 && device_ns &&
      device_ns <= clock->knots[clock->count - 1].device_ns)
    return true;
  if (!read_clock_narrowest(clock, &pair)) return true;
  add_reading(clock, &pair);
  return device_ns < pair.device_ns || device_ns - pair.device_ns < ahead_max_ns;
}

/* ---- a clock that cannot ---- */

/* How far the counter is ahead of the line through the last bound's lower end. */
static int64_t ticks_ahead(const prof_i_device_clock *clock, uint64_t ticks, uint64_t device_ns) {
  return (int64_t)(ticks - clock->zero_ticks) -
         (int64_t)ticks_in_ns(clock, (double)(int64_t)(device_ns - clock->zero_ns));
}

/* Moves the limits to this time. They widen by the possible drift, and by the error of the
   counter's rate, since the last bound. Time since then is the host's, or the device's if many
   events are polled at once. */
static void move_zero_to(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  const int64_t passed = (int64_t)(bound->high_ticks - clock->bound_ticks),
                moved = ticks_ahead(clock, bound->low_ticks, bound->device_ns);
  const double gone = absolute_of(
                   ticks_in_ns(clock, (double)(int64_t)(bound->device_ns - clock->zero_ns))),
               most = gone > (double)passed ? gone : (double)passed;
  const int64_t drift = most > 0 ? (int64_t)(most * (DRIFT_BETWEEN + clock->rate_error)) + 1 : 0;
  clock->low_ticks -= moved + drift;
  clock->high_ticks += drift - moved;
  clock->zero_ns = bound->device_ns;
  clock->zero_ticks = bound->low_ticks;
  learn_rate(clock);
  if (passed > 0) clock->bound_ticks = bound->high_ticks;
}

static void narrow_distance(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  move_zero_to(clock, bound);
  const int64_t high_ticks = (int64_t)(bound->high_ticks - bound->low_ticks),
                gap = clock->low_ticks > high_ticks ? clock->low_ticks - high_ticks
                                                    : -clock->high_ticks;
  if (clock->count > 0 && gap > 0 && (double)gap > ticks_in_ns(clock, STEP_NS))
    restart_clock(clock);
  const bool is_alone = clock->count == 0 || gap > 0;
  if (is_alone || clock->low_ticks < 0) clock->low_ticks = 0;
  if (is_alone || clock->high_ticks > high_ticks) clock->high_ticks = high_ticks;
}

/* True if the line's error is the current one: not less, and not much more. */
static bool is_error_current(const prof_i_clock_knot *last, int64_t below) {
  return below >= 0 && (uint64_t)below <= last->error_ticks &&
         last->error_ticks / 2 <= (uint64_t)below;
}

/* The line continues where it is if that is possible, at the nearest possible value: a step would
   change the length of scopes across it. If the least value is far below, the line approaches it so
   slowly that no length is wrong by more than SLOWER. */
static void continue_line(prof_i_device_clock *clock, const prof_i_clock_knot *last,
                          uint64_t from_ns, int64_t place) {
  const bool is_near = place - clock->low_ticks <= (clock->high_ticks - clock->low_ticks) / 4,
             is_slower = last->rate < clock->rate * (1 - RATE_SLOWER / 2);
  if ((is_near || is_slower) &&
      is_error_current(
          last, is_slower ? clock->high_ticks - clock->low_ticks : clock->high_ticks - place))
    return;
  put_knot(clock, from_ns, knot_ticks_at(last, from_ns),
           (uint64_t)(clock->high_ticks - clock->low_ticks),
           is_near ? clock->rate : clock->rate * (1 - RATE_SLOWER));
}

/* A falling line ends where it meets the least possible value: at the latest at the bound's time,
   also in a pause. */
static void end_slow_line(prof_i_device_clock *clock, uint64_t from_ns, uint64_t device_ns) {
  const prof_i_clock_knot *const last = &clock->knots[clock->count - 1];
  const int64_t below =
      clock->low_ticks - ticks_ahead(clock, knot_ticks_at(last, device_ns), device_ns);
  if (last->rate >= clock->rate * (1 - RATE_SLOWER / 2) || device_ns <= from_ns || below <= 0)
    return;
  const double back_ns = (double)below / (clock->rate - last->rate);
  const uint64_t there_ns =
      back_ns >= (double)(device_ns - from_ns) ? from_ns : device_ns - (uint64_t)back_ns;
  put_knot(clock, there_ns, knot_ticks_at(last, there_ns),
           (uint64_t)(clock->high_ticks - clock->low_ticks), clock->rate);
}

/* Where times begin that were not converted yet; all, before the first conversion. */
static uint64_t unmapped_from_ns(const prof_i_device_clock *clock) {
  return clock->mapped_end_ns ? clock->mapped_end_ns + 1
         : clock->count       ? clock->knots[0].device_ns
                              : clock->zero_ns;
}

void prof_i_device_clock_add_bound(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  if (clock->has_readings) return;
  if (!clock->zero_ns) {
    clock->zero_ns = bound->device_ns;
    clock->zero_ticks = clock->bound_ticks = bound->low_ticks;
  }
  narrow_distance(clock, bound);
  const uint64_t from_ns = unmapped_from_ns(clock);
  const uint64_t least =
      clock->zero_ticks +
      (uint64_t)((int64_t)ticks_in_ns(clock, (double)(int64_t)(from_ns - clock->zero_ns)) +
                 clock->low_ticks);
  const prof_i_clock_knot *const last = clock->count ? &clock->knots[clock->count - 1] : NULL;
  const int64_t place = last ? ticks_ahead(clock, knot_ticks_at(last, from_ns), from_ns) : 0;
  if (last && place >= clock->low_ticks && place <= clock->high_ticks)
    continue_line(clock, last, from_ns, place);
  else
    put_knot(clock, from_ns, least, (uint64_t)(clock->high_ticks - clock->low_ticks), clock->rate);
  end_slow_line(clock, from_ns, bound->device_ns);
}

/* ---- the host's time ---- */

static const prof_i_clock_knot *knot_of(const prof_i_device_clock *clock, uint64_t device_ns) {
  const prof_i_clock_knot *knot = &clock->knots[clock->count - 1];
  while (knot > clock->knots && knot->device_ns > device_ns) knot--;
  return knot;
}

static uint64_t reported_error(uint64_t error_ticks) {
  return PROF_I_FAULT(SURE) ? 0 : error_ticks;
}

bool prof_i_device_clock_to_host(prof_i_device_clock *clock, uint64_t device_ns,
                                 uint64_t *ticks_out, uint64_t *error_ticks_out) {
  if (clock->count == 0) return false;
  const prof_i_clock_knot *const knot = knot_of(clock, device_ns),
                                 *const last = &clock->knots[clock->count - 1];
  /* the rate of two close readings says nothing of distant times */
  const bool is_before_all = device_ns < knot->device_ns;
  const uint64_t line =
      knot_line_at(knot, device_ns, is_before_all ? clock->before_rate : knot->rate);
  uint64_t ticks = is_before_all ? line : later_of(line, knot->floor_ticks);
  if (knot < last && ticks > knot[1].floor_ticks) ticks = knot[1].floor_ticks;
  const uint64_t beyond = is_before_all  ? knot->device_ns - device_ns
                          : knot == last ? device_ns - knot->device_ns
                                         : 0;
  *ticks_out = ticks;
  *error_ticks_out = reported_error(
      knot->error_ticks + (ticks > line ? ticks - line : 0) +
      (clock->has_readings
           ? drift_at_rate((uint64_t)ticks_in_ns(clock, (double)beyond),
                           is_before_all ? clock->before_rate_error : clock->rate_error)
           : 0));
  if (device_ns > clock->mapped_end_ns) clock->mapped_end_ns = device_ns;
  return true;
}

bool prof_i_device_clock_to_host_begin(prof_i_device_clock *clock, uint64_t device_ns,
                                       uint64_t *ticks_out, uint64_t *error_ticks_out) {
  const prof_i_clock_knot *const behind = clock->count > 0 ? knot_of(clock, device_ns + 1) : NULL;
  if (!behind || behind->device_ns != device_ns + 1)
    return prof_i_device_clock_to_host(clock, device_ns, ticks_out, error_ticks_out);
  *ticks_out = knot_ticks_at(behind, behind->device_ns);
  *error_ticks_out = reported_error(behind->error_ticks);
  return true;
}
