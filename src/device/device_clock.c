/* See device_clock.h. Where the clock can be read, each reading is a knot, and a moment is
   interpolated between those on either side of it. Where it cannot, each event narrows down what
   the distance of the two clocks may be: it is not past before it was recorded, and is past when it
   is found so. The distance is then taken as small as it may be, so that what is told is before its
   launch by nothing, and goes on from there as long as it may be so; what it may be more, or less,
   is the error. Clocks drift, so what is known of the distance grows wider as time passes; a knot
   stands where it was taken anew. */
#include "device_clock.h"

#include <prof/backend.h>

#include "../base/fault.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/gate.h"

enum { STEP_NS = 50000 };
/* a clock may be set back while something is on its way; more than that is nonsense, and would
   spoil the line for what comes */
static const uint64_t ahead_ns = 10000000000;
/* what a clock that is being adjusted, and another, may part by, as a share */
static const double DRIFT = 5e-4;
static const double DRIFT_BETWEEN = 1e-4; /* two oscillators, as a share */
/* a rate that is wrong by more than that, as a share, is measured again: the first of a recording
   is made of some 20 us */
static const double ROUGH = 1e-4;
static const double SLOWER = 5e-4; /* as a share: of a scope of 1 ms, half a microsecond */

static void learn_rate(prof_i_device_clock *clock) {
  if (prof_i_clock_rate_error() > ROUGH && prof_i_gate_enter()) {
    if (prof_i_arena_level() > 0) prof_i_clock_pair(true);
    prof_i_gate_leave();
  }
  clock->rate = prof_i_clock_ticks_per_ns();
  clock->rate_error = prof_i_clock_rate_error();
}

void prof_i_device_clock_begin(prof_i_device_clock *clock, prof_i_back_end *end, uint32_t index) {
  *clock = (prof_i_device_clock){.end = end, .index = index};
  learn_rate(clock);
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static double size_of(double value) { return value < 0 ? -value : value; }
static double ticks_in(const prof_i_device_clock *clock, double ns) { return ns * clock->rate; }
static uint64_t drift_at(uint64_t ticks, double rate_error) {
  const double drift = (double)ticks * (DRIFT + rate_error);
  return drift < (double)INT64_MAX ? (uint64_t)drift + 1 : INT64_MAX;
}
static uint64_t drift_in(const prof_i_device_clock *clock, uint64_t ticks) {
  return drift_at(ticks, clock->rate_error);
}

/* ---- knots ---- */

/* The line's own, which may lie below the floor. */
static uint64_t line_at(const prof_i_clock_knot *knot, uint64_t device_ns, double rate) {
  return knot->ticks + (uint64_t)(int64_t)((double)(int64_t)(device_ns - knot->device_ns) * rate);
}

static uint64_t at_rate(const prof_i_clock_knot *knot, uint64_t device_ns) {
  const uint64_t ticks = line_at(knot, device_ns, knot->rate);
  return device_ns < knot->device_ns ? ticks : later(ticks, knot->floor_ticks);
}

/* Of the older half every second one goes: what lies there is long past, but for the begin of
   something that took all that time. */
static void thin(prof_i_device_clock *clock) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < clock->count; i++) {
    if (i < PROF_I_KNOTS_MAX / 2 && i % 2 == 1) continue;
    clock->knots[kept++] = clock->knots[i];
  }
  for (uint32_t i = 0; i < PROF_I_KNOTS_MAX / 4; i++) {
    prof_i_clock_knot *const knot = &clock->knots[i], *const next = knot + 1;
    knot->error_ticks = later(knot->error_ticks, next->error_ticks);
    /* the floor is where the line before it has come to, so not below this knot */
    knot->rate = (double)(later(next->ticks, next->floor_ticks) - knot->ticks) /
                 (double)(next->device_ns - knot->device_ns);
  }
  clock->count = kept;
}

/* Takes the place of knots behind which nothing was brought over yet. Time does not run back at it:
   it stands, until the new line has come as far. */
static prof_i_clock_knot *put_knot(prof_i_device_clock *clock, uint64_t device_ns, uint64_t ticks,
                                   uint64_t error_ticks, double rate) {
  while (clock->count > 0 && clock->knots[clock->count - 1].device_ns >= device_ns) clock->count--;
  if (clock->count == PROF_I_KNOTS_MAX) thin(clock);
  if (clock->count == 0) {
    clock->before_rate = clock->rate;
    clock->before_rate_error = clock->rate_error;
  }
  prof_i_clock_knot *const knot = &clock->knots[clock->count++];
  *knot = (prof_i_clock_knot){device_ns, ticks, error_ticks,
                              clock->count > 1 ? at_rate(&knot[-1], device_ns) : 0, rate};
  return knot;
}

/* The distance is another one from here on: what was known before tells nothing of what comes. */
static void begin_anew(prof_i_device_clock *clock) {
  clock->steps++;
  clock->count = 0;
  clock->edge_ns = 0;
}

/* ---- a clock that can be read ---- */

/* What a look says. False: nothing, or nonsense. */
static bool take_pair(const prof_i_device_clock *clock, const prof_backend_pair *pair,
                      prof_i_clock_bound *bound) {
  uint64_t width;
  if (pair->host_after_ns < pair->host_before_ns || !pair->device_ns) return false;
  *bound = (prof_i_clock_bound){pair->device_ns, pair->host_before_ticks, pair->host_after_ticks};
  if (pair->host_before_ticks && pair->host_after_ticks >= pair->host_before_ticks) return true;
  const uint64_t low = prof_i_clock_ticks_at(pair->host_before_ns, &width);
  bound->low_ticks = low - width / 2 - 1;
  bound->high_ticks =
      low + (uint64_t)ticks_in(clock, (double)(pair->host_after_ns - pair->host_before_ns)) +
      width / 2 + 1;
  return true;
}

static bool read_once(prof_i_device_clock *clock, prof_i_clock_bound *bound) {
  prof_backend_pair pair = {.size = sizeof pair};
  return clock->end->table.clock(clock->end->self, clock->index, &pair) == PROF_BACKEND_OK &&
         take_pair(clock, &pair, bound);
}

/* The narrowest of some. False: it cannot be read. */
static bool read_pair(prof_i_device_clock *clock, prof_i_clock_bound *best) {
  enum { TRIES = 3 };
  prof_i_clock_bound bound;
  bool is_read = false;
  for (int i = 0; i < TRIES && read_once(clock, &bound); i++, is_read = true)
    if (!is_read || bound.high_ticks - bound.low_ticks < best->high_ticks - best->low_ticks)
      *best = bound;
  return is_read;
}

/* Has the clock gone on as the host's since that knot? That may stand behind where the host is now:
   what was brought over when nobody had looked for long is off by what the two have parted
   meanwhile. */
static bool is_on_line(const prof_i_device_clock *clock, const prof_i_clock_knot *before,
                       uint64_t device_ns, uint64_t ticks, uint64_t error_ticks) {
  if (device_ns < before->device_ns) return false;
  const int64_t passed = (int64_t)(ticks - before->ticks);
  const double off =
      size_of((double)passed - ticks_in(clock, (double)(device_ns - before->device_ns)));
  return off <= (double)(before->error_ticks + error_ticks +
                         drift_in(clock, passed > 0 ? (uint64_t)passed : 0)) +
                    ticks_in(clock, STEP_NS);
}

static void add_reading(prof_i_device_clock *clock, const prof_i_clock_bound *pair) {
  const uint64_t ticks = pair->low_ticks + (pair->high_ticks - pair->low_ticks) / 2,
                 error_ticks = (pair->high_ticks - pair->low_ticks) / 2 + 1;
  prof_i_clock_knot *last = clock->count ? &clock->knots[clock->count - 1] : NULL;
  bool is_carried = false;
  learn_rate(clock);
  if (last && !is_on_line(clock, last, pair->device_ns, ticks, error_ticks)) {
    begin_anew(clock);
    last = NULL;
  }
  /* what was brought over beyond the last reading stays: the line goes on from there */
  if (last && clock->edge_ns > last->device_ns) {
    last =
        put_knot(clock, clock->edge_ns, at_rate(last, clock->edge_ns),
                 last->error_ticks + drift_in(clock, at_rate(last, clock->edge_ns) - last->ticks),
                 last->rate);
    is_carried = true;
  }
  /* nearer to it than readings can tell */
  if (last && (pair->device_ns <= last->device_ns || (!is_carried && ticks <= last->ticks))) return;
  /* else time stands at it, until the reading's line has come as far */
  if (last && ticks > last->ticks) {
    last->rate = (double)(ticks - last->ticks) / (double)(pair->device_ns - last->device_ns);
    last->error_ticks = later(last->error_ticks, error_ticks);
  }
  put_knot(clock, pair->device_ns, ticks, error_ticks, clock->rate);
}

static void add_pair(prof_i_device_clock *clock, const prof_i_clock_bound *pair) {
  if (!clock->has_pairs) clock->count = 0; /* there were bounds alone */
  clock->has_pairs = true;
  add_reading(clock, pair);
}

void prof_i_device_clock_add(prof_i_device_clock *clock, const prof_backend_pair *pair) {
  prof_i_clock_bound bound;
  if (!clock->has_pairs && !clock->is_of_distances && take_pair(clock, pair, &bound))
    add_pair(clock, &bound);
}

bool prof_i_device_clock_look(prof_i_device_clock *clock, uint64_t device_ns) {
  prof_i_clock_bound pair;
  if (!clock->end->table.clock || clock->is_of_distances) return true;
  if (clock->has_pairs && clock->count > 0 && device_ns &&
      device_ns <= clock->knots[clock->count - 1].device_ns)
    return true;
  if (!read_pair(clock, &pair)) return true;
  add_pair(clock, &pair);
  return device_ns < pair.device_ns || device_ns - pair.device_ns < ahead_ns;
}

/* ---- a clock that cannot ---- */

/* How far the counter is ahead of the line through the last bound's lower end. */
static int64_t ahead(const prof_i_device_clock *clock, uint64_t ticks, uint64_t device_ns) {
  return (int64_t)(ticks - clock->zero_ticks) -
         (int64_t)ticks_in(clock, (double)(int64_t)(device_ns - clock->zero_ns));
}

/* What was known is told from there, and is so much wider as the two may have drifted, and the
   counter's rate is wrong, since the last bound: by the host's clock, and where many are looked at
   at once, by the device's. */
static void go_to(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  const int64_t passed = (int64_t)(bound->high_ticks - clock->bound_ticks),
                moved = ahead(clock, bound->low_ticks, bound->device_ns);
  const double gone =
                   size_of(ticks_in(clock, (double)(int64_t)(bound->device_ns - clock->zero_ns))),
               most = gone > (double)passed ? gone : (double)passed;
  const int64_t drift = most > 0 ? (int64_t)(most * (DRIFT_BETWEEN + clock->rate_error)) + 1 : 0;
  clock->low -= moved + drift;
  clock->high += drift - moved;
  clock->zero_ns = bound->device_ns;
  clock->zero_ticks = bound->low_ticks;
  learn_rate(clock);
  if (passed > 0) clock->bound_ticks = bound->high_ticks;
}

static void narrow(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  go_to(clock, bound);
  const int64_t high = (int64_t)(bound->high_ticks - bound->low_ticks),
                gap = clock->low > high ? clock->low - high : -clock->high;
  if (clock->count > 0 && gap > 0 && (double)gap > ticks_in(clock, STEP_NS)) begin_anew(clock);
  const bool is_alone = clock->count == 0 || gap > 0;
  if (is_alone || clock->low < 0) clock->low = 0;
  if (is_alone || clock->high > high) clock->high = high;
}

/* Is the line's own error what is known now: not less, and not much more? */
static bool has_error(const prof_i_clock_knot *last, int64_t below) {
  return below >= 0 && (uint64_t)below <= last->error_ticks &&
         last->error_ticks / 2 <= (uint64_t)below;
}

/* What the line says from there on is one of what may be: it goes on from where it is, whatever it
   says is nearest, because a step would make what spans it longer or shorter. Where the least lies
   far below, it goes down to it so slowly that no length is wrong by more than SLOWER. */
static void go_on(prof_i_device_clock *clock, const prof_i_clock_knot *last, uint64_t from_ns,
                  int64_t place) {
  const bool is_near = place - clock->low <= (clock->high - clock->low) / 4,
             is_slower = last->rate < clock->rate * (1 - SLOWER / 2);
  if ((is_near || is_slower) &&
      has_error(last, is_slower ? clock->high - clock->low : clock->high - place))
    return;
  put_knot(clock, from_ns, at_rate(last, from_ns), (uint64_t)(clock->high - clock->low),
           is_near ? clock->rate : clock->rate * (1 - SLOWER));
}

/* Where a line that goes down has come to the least that may be, it ends: up to the bound's moment
   that may be within, also in a pause. */
static void end_going_down(prof_i_device_clock *clock, uint64_t from_ns, uint64_t device_ns) {
  const prof_i_clock_knot *const last = &clock->knots[clock->count - 1];
  const int64_t below = clock->low - ahead(clock, at_rate(last, device_ns), device_ns);
  if (last->rate >= clock->rate * (1 - SLOWER / 2) || device_ns <= from_ns || below <= 0) return;
  const double back_ns = (double)below / (clock->rate - last->rate);
  const uint64_t there_ns =
      back_ns >= (double)(device_ns - from_ns) ? from_ns : device_ns - (uint64_t)back_ns;
  put_knot(clock, there_ns, at_rate(last, there_ns), (uint64_t)(clock->high - clock->low),
           clock->rate);
}

/* What was not brought over yet; before anything was, all. */
static uint64_t fresh_from(const prof_i_device_clock *clock) {
  return clock->edge_ns ? clock->edge_ns + 1
         : clock->count ? clock->knots[0].device_ns
                        : clock->zero_ns;
}

void prof_i_device_clock_bound(prof_i_device_clock *clock, const prof_i_clock_bound *bound) {
  if (clock->has_pairs) return;
  if (!clock->zero_ns) {
    clock->zero_ns = bound->device_ns;
    clock->zero_ticks = clock->bound_ticks = bound->low_ticks;
  }
  narrow(clock, bound);
  const uint64_t from_ns = fresh_from(clock);
  const uint64_t least =
      clock->zero_ticks +
      (uint64_t)((int64_t)ticks_in(clock, (double)(int64_t)(from_ns - clock->zero_ns)) +
                 clock->low);
  const prof_i_clock_knot *const last = clock->count ? &clock->knots[clock->count - 1] : NULL;
  const int64_t place = last ? ahead(clock, at_rate(last, from_ns), from_ns) : 0;
  if (last && place >= clock->low && place <= clock->high)
    go_on(clock, last, from_ns, place);
  else
    put_knot(clock, from_ns, least, (uint64_t)(clock->high - clock->low), clock->rate);
  end_going_down(clock, from_ns, bound->device_ns);
}

/* ---- the host's time ---- */

static const prof_i_clock_knot *piece_of(const prof_i_device_clock *clock, uint64_t device_ns) {
  const prof_i_clock_knot *knot = &clock->knots[clock->count - 1];
  while (knot > clock->knots && knot->device_ns > device_ns) knot--;
  return knot;
}

static uint64_t told_error(uint64_t error_ticks) { return PROF_I_FAULT(SURE) ? 0 : error_ticks; }

bool prof_i_device_clock_host(prof_i_device_clock *clock, uint64_t device_ns, uint64_t *ticks_out,
                              uint64_t *error_ticks_out) {
  if (clock->count == 0) return false;
  const prof_i_clock_knot *const knot = piece_of(clock, device_ns),
                                 *const last = &clock->knots[clock->count - 1];
  /* of two readings that stand close to each other the rate says nothing of what lies far off */
  const bool is_before_all = device_ns < knot->device_ns;
  const uint64_t line = line_at(knot, device_ns, is_before_all ? clock->before_rate : knot->rate);
  uint64_t ticks = is_before_all ? line : later(line, knot->floor_ticks);
  if (knot < last && ticks > knot[1].floor_ticks) ticks = knot[1].floor_ticks;
  const uint64_t beyond = is_before_all  ? knot->device_ns - device_ns
                          : knot == last ? device_ns - knot->device_ns
                                         : 0;
  *ticks_out = ticks;
  *error_ticks_out = told_error(
      knot->error_ticks + (ticks > line ? ticks - line : 0) +
      (clock->has_pairs ? drift_at((uint64_t)ticks_in(clock, (double)beyond),
                                   is_before_all ? clock->before_rate_error : clock->rate_error)
                        : 0));
  if (device_ns > clock->edge_ns) clock->edge_ns = device_ns;
  return true;
}

bool prof_i_device_clock_begin_of(prof_i_device_clock *clock, uint64_t device_ns,
                                  uint64_t *ticks_out, uint64_t *error_ticks_out) {
  const prof_i_clock_knot *const behind = clock->count > 0 ? piece_of(clock, device_ns + 1) : NULL;
  if (!behind || behind->device_ns != device_ns + 1)
    return prof_i_device_clock_host(clock, device_ns, ticks_out, error_ticks_out);
  *ticks_out = at_rate(behind, behind->device_ns);
  *error_ticks_out = told_error(behind->error_ticks);
  return true;
}
