/* Finds jumps of the counter. A machine that is moved, or sleeps, may get another counter. Its
   ticks then go back, or far ahead, while CLOCK_MONOTONIC continues. The clock pairs show that this
   happened between two of them. A new epoch begins there. Its ticks get a shift, so the time line
   continues. Records are assigned to epochs by their ticks and their order. The time line handles
   small jumps: they may be differences between processors, which no moment divides. */
#include <stdlib.h>

#include <prof/status.h>

#include "../format/parse.h"

static const double jump_ns_min = 20e6;            /* as in the recorder's clock.c */
static const double span_ns_min = 1e6;             /* between pairs that give a rate */
static const double jitter_ns = 2e3, drift = 2e-4; /* the recorder's bounds of a segment */
/* how far an epoch may extend beyond its pairs */
static const double pairs_reach = 1.05, reach_ns = 1e6;
static const double ticks_limit = 0x1p59, ns_bound = 0x1p60;
static const int64_t never_ticks = INT64_C(1) << 61;

static int64_t to_ticks(double ticks) {
  return ticks >= ticks_limit    ? (int64_t)ticks_limit
         : ticks <= -ticks_limit ? -(int64_t)ticks_limit
                                 : (int64_t)ticks;
}

/* Segments rise with time, ticks need not. */
static int pair_compare_time(const void *a, const void *b) {
  const prof_i_time_pair *const x = a, *const y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  if (x->segment != y->segment) return x->segment < y->segment ? -1 : 1;
  return ((int64_t)x->ticks > (int64_t)y->ticks) - ((int64_t)x->ticks < (int64_t)y->ticks);
}

static int clock_change_compare(const void *a, const void *b) {
  const prof_i_change_record *const x = a, *const y = b;
  if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
  return (x->site > y->site) - (x->site < y->site);
}

static double ticks_apart(const prof_i_time_pair *from, const prof_i_time_pair *to) {
  return (double)(int64_t)(to->ticks - from->ticks);
}

/* Ticks for one ns in the segment that ends, or begins, with the pair at `at`; 0: unknown.
   *error_out: its relative error. */
static double clock_rate(const prof_i_time_pair *pairs, uint32_t count, uint32_t at,
                         double *error_out) {
  uint32_t first = at, last = at;
  while (first > 0 && pairs[first - 1].segment == pairs[at].segment) first--;
  while (last + 1 < count && pairs[last + 1].segment == pairs[at].segment) last++;
  const double ns = (double)(pairs[last].ns - pairs[first].ns),
               ticks = ticks_apart(&pairs[first], &pairs[last]);
  if (ns < span_ns_min || ticks <= 0) return 0;
  *error_out = (double)(pairs[first].width_ns + pairs[last].width_ns) / ns;
  return ticks / ns;
}

/* Between two pairs of different segments. */
typedef struct clock_change {
  double passed_ns, ticks;
  double before, after; /* ticks a nanosecond */
  bool is_other_rate;   /* for sure */
  double slack;         /* error of the readings, in ticks */
} clock_change;

static clock_change clock_change_at(const prof_i_time_pair *pairs, uint32_t count, uint32_t at,
                                    double nominal) {
  const prof_i_time_pair *const last = &pairs[at - 1], *const next = &pairs[at];
  double error_before = 1e-2, error_after = 1e-2;
  const double before = clock_rate(pairs, count, at - 1, &error_before),
               after = clock_rate(pairs, count, at, &error_after);
  clock_change c = {.passed_ns = (double)(next->ns - last->ns),
                    .ticks = ticks_apart(last, next),
                    .before = before > 0 ? before : nominal};
  c.after = after > 0 ? after : c.before;
  const double apart = c.after > c.before ? c.after - c.before : c.before - c.after;
  c.is_other_rate = after > 0 && apart > c.before * (drift + 2 * (error_before + error_after));
  c.slack =
      c.before * (jitter_ns + drift * c.passed_ns + (double)(last->width_ns + next->width_ns));
  return c;
}

/* Whether the two rates alone explain the change. *ns_out: when the second began, from the pair
   before. */
static bool is_rate_change(const clock_change *c, double *ns_out) {
  const double at_most = (c->before > c->after ? c->before : c->after) * c->passed_ns + c->slack;
  const double at_least = (c->before < c->after ? c->before : c->after) * c->passed_ns - c->slack;
  if (!c->is_other_rate || c->ticks < 3 || c->ticks > at_most || c->ticks < at_least) return false;
  const double ns = (c->ticks - c->after * c->passed_ns) / (c->before - c->after);
  *ns_out = ns < 0 ? 0 : ns > c->passed_ns ? c->passed_ns : ns;
  return true;
}

/* By how much the counter is ahead of the earlier rate, in ns. */
static double clock_jump_ns(const clock_change *c) {
  return (c->ticks - c->before * c->passed_ns) / c->before;
}

/* Whether it went back, or far ahead. A counter that only stopped keeps the order, and needs no
   epoch. */
static bool is_epoch_start(const clock_change *c) {
  const double jump = clock_jump_ns(c);
  return c->ticks < 0 ? jump < -jump_ns_min : jump > jump_ns_min;
}

static void note_step(prof_trace *trace, double ns) {
  if (ns > (double)trace->clock_step_ns)
    trace->clock_step_ns = ns < ns_bound ? (uint64_t)ns : (uint64_t)ns_bound;
}

/* False: no room for another epoch, or the time line would be too long. */
static bool begin_epoch(prof_trace *trace, const prof_i_time_pair *last,
                        const prof_i_time_pair *next, const clock_change *c) {
  const int64_t so_far = trace->clock_epochs[trace->clock_epoch_count - 1].shift,
                most = to_ticks(ticks_limit);
  if (trace->clock_epoch_count == PROF_I_CLOCK_EPOCHS_MAX || so_far > most || so_far < -most)
    return false;
  prof_i_clock_epoch *const old = &trace->clock_epochs[trace->clock_epoch_count - 1],
                            *const fresh = &trace->clock_epochs[trace->clock_epoch_count++];
  /* so that nothing in the new one is before anything in the old one */
  const double faster = c->before > c->after ? c->before : c->after;
  old->high = (int64_t)last->ticks + to_ticks(c->before * (pairs_reach * c->passed_ns + reach_ns));
  fresh->low = (int64_t)next->ticks - to_ticks(c->after * (pairs_reach * c->passed_ns + reach_ns));
  fresh->high = INT64_MAX;
  fresh->end = never_ticks;
  fresh->shift =
      old->shift + (int64_t)last->ticks + to_ticks(faster * c->passed_ns) - (int64_t)next->ticks;
  fresh->begin = (int64_t)last->ticks + old->shift;
  old->end = (int64_t)next->ticks + fresh->shift;
  return true;
}

static void note_gap(prof_trace *trace, const clock_change *c) {
  if (c->passed_ns > (double)trace->clock_gap_ns) trace->clock_gap_ns = (uint64_t)c->passed_ns;
}

/* Classifies the change between two pairs. *knee_out, if it has a segment, is the point where the
   rate changed, in the old epoch's ticks. */
static void note_clock_change(prof_trace *trace, uint32_t at, double nominal, double *slowest,
                              prof_i_time_pair *knee_out) {
  const prof_i_time_pair *const pairs = trace->catalog.pairs, *const last = &pairs[at - 1];
  const clock_change c = clock_change_at(pairs, trace->catalog.pair_count, at, nominal);
  double ns;
  if (c.before < *slowest) *slowest = c.before;
  if (c.after < *slowest) *slowest = c.after;
  if (is_rate_change(&c, &ns)) {
    /* between the two */
    const double ticks = c.before * ns < 1             ? 1
                         : c.before * ns > c.ticks - 1 ? c.ticks - 1
                                                       : c.before * ns;
    *knee_out = (prof_i_time_pair){last->ticks + (uint64_t)ticks, last->ns + (uint64_t)ns,
                                   last->width_ns, pairs[at].segment};
    return;
  }
  note_gap(trace, &c);
  const double jump = clock_jump_ns(&c), size = jump < 0 ? -jump : jump;
  if (!(is_epoch_start(&c) && begin_epoch(trace, last, &pairs[at], &c)) && size <= jump_ns_min)
    note_step(trace, size);
}

/* Two epochs may have the same ticks. For a scope that spans the jump, and is longer than it, the
   epoch of its begin is then unknown. */
static void note_overlap(prof_trace *trace, double slowest) {
  for (uint32_t late = 1; late < trace->clock_epoch_count; late++) {
    for (uint32_t early = 0; early < late; early++) {
      const prof_i_clock_epoch *const x = &trace->clock_epochs[early],
                                      *const y = &trace->clock_epochs[late];
      if (x->low > y->high || y->low > x->high) continue;
      const double ns = (double)(y->shift - x->shift) / slowest;
      note_step(trace, ns < 0 ? -ns : ns);
    }
  }
}

/* The first epoch begins with the capture. The last one extends beyond its last pair, because a
   process that was killed has later ticks. */
static void bound_epochs(prof_trace *trace, double nominal, double slowest) {
  const prof_i_time_pair *const last = &trace->catalog.pairs[trace->catalog.pair_count - 1];
  prof_i_clock_epoch *const epoch = &trace->clock_epochs[trace->clock_epoch_count - 1];
  const double day_ns = 86400e9;
  if (trace->clock_epoch_count == 1) return;
  /* another processor's counter may have been behind at the start */
  trace->clock_epochs[0].low = -to_ticks(nominal * jump_ns_min);
  epoch->high = (int64_t)last->ticks + to_ticks(nominal * reach_ns);
  note_overlap(trace, slowest);
  epoch->high = (int64_t)last->ticks + to_ticks(nominal * day_ns);
}

/* A pair of another segment that is not after the previous pair describes the same moment for
   another processor. */
static void move_pairs(prof_trace *trace, const uint8_t *epoch_of, prof_i_time_pair *knees,
                       uint32_t knee_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < catalog->pair_count; i++) {
    prof_i_time_pair pair = catalog->pairs[i];
    const int64_t ticks = (int64_t)pair.ticks + trace->clock_epochs[epoch_of[i]].shift;
    const bool is_other = kept > 0 && pair.segment != catalog->pairs[kept - 1].segment;
    if (ticks < 0 || (is_other && (uint64_t)ticks <= catalog->pairs[kept - 1].ticks)) {
      /* too large for a difference between processors */
      trace->bad_count += !is_other && (double)-ticks > jump_ns_min;
      continue;
    }
    pair.ticks = (uint64_t)ticks;
    catalog->pairs[kept++] = pair;
  }
  for (uint32_t i = 0; i < knee_count; i++) catalog->pairs[kept++] = knees[i];
  catalog->pair_count = kept;
}

static int find_epochs(prof_trace *trace) {
  prof_i_catalog *const catalog = &trace->catalog;
  const double nominal = trace->header.ticks_hz ? (double)trace->header.ticks_hz / 1e9 : 1;
  const uint32_t count = catalog->pair_count;
  trace->clock_epoch_count = 1;
  trace->clock_epochs[0] = (prof_i_clock_epoch){INT64_MIN, INT64_MAX, 0, -never_ticks, never_ticks};
  if (count == 0) return 0;
  qsort(catalog->pairs, count, sizeof *catalog->pairs, pair_compare_time);
  uint32_t changes = 0;
  for (uint32_t i = 1; i < count; i++)
    changes += catalog->pairs[i].segment != catalog->pairs[i - 1].segment;
  uint8_t *const epoch_of = calloc(count, sizeof *epoch_of);
  prof_i_time_pair *const knees = malloc((changes + 1) * sizeof *knees);
  prof_i_time_pair *const larger = realloc(catalog->pairs, (count + changes + 1) * sizeof *larger);
  if (larger) {
    catalog->pairs = larger;
    catalog->pair_room = count + changes + 1;
  }
  uint32_t knee_count = 0;
  double slowest = nominal;
  if (epoch_of && knees && larger) {
    for (uint32_t i = 1; i < count; i++) {
      prof_i_time_pair knee = {0, 0, 0, UINT64_MAX};
      if (catalog->pairs[i].segment != catalog->pairs[i - 1].segment)
        note_clock_change(trace, i, nominal, &slowest, &knee);
      epoch_of[i] = (uint8_t)(trace->clock_epoch_count - 1);
      const int64_t knee_ticks = (int64_t)knee.ticks + trace->clock_epochs[epoch_of[i]].shift;
      if (knee.segment == UINT64_MAX || knee_ticks < 0) continue;
      knee.ticks = (uint64_t)knee_ticks;
      knees[knee_count++] = knee;
    }
    bound_epochs(trace, nominal, slowest);
    move_pairs(trace, epoch_of, knees, knee_count);
  }
  const bool is_done = epoch_of && knees && larger;
  free(epoch_of);
  free(knees);
  return is_done ? 0 : PROF_E_NO_MEMORY;
}

/* ---- which era ---- */

/* Records are in the order of their ends, except those that handlers recorded between another
   scope's clock and its record. */
static const int64_t disorder_ticks = 3000000;

static bool epoch_can_hold(const prof_trace *trace, uint32_t epoch, int64_t ticks) {
  return ticks >= trace->clock_epochs[epoch].low && ticks <= trace->clock_epochs[epoch].high;
}

uint32_t prof_i_clock_epoch_of(const prof_trace *trace, int64_t ticks) {
  for (uint32_t epoch = 0; epoch < trace->clock_epoch_count; epoch++)
    if (epoch_can_hold(trace, epoch, ticks)) return epoch;
  return 0;
}

uint32_t prof_i_clock_epoch_of_end(const prof_trace *trace, uint32_t from, int64_t ticks,
                                   int64_t latest) {
  uint32_t later = from + 1;
  while (later < trace->clock_epoch_count && !epoch_can_hold(trace, later, ticks)) later++;
  if (epoch_can_hold(trace, from, ticks) &&
      (ticks >= latest - disorder_ticks || later == trace->clock_epoch_count))
    return from;
  return later < trace->clock_epoch_count ? later : prof_i_clock_epoch_of(trace, ticks);
}

uint32_t prof_i_clock_epoch_of_start(const prof_trace *trace, uint32_t end_era, int64_t start,
                                     int64_t end) {
  if (start <= end && epoch_can_hold(trace, end_era, start)) return end_era;
  for (uint32_t epoch = 0; epoch < end_era; epoch++)
    if (epoch_can_hold(trace, epoch, start)) return epoch;
  return end_era;
}

/* Marks, changes and pools are not in the order of records. If two epochs have their ticks, the
   earlier one counts. */
static uint64_t place_recorded_ticks(const prof_trace *trace, uint64_t recorded) {
  return prof_i_clock_epoch_ticks(trace, prof_i_clock_epoch_of(trace, (int64_t)recorded),
                                  (int64_t)recorded);
}

int prof_i_clock_epochs_find(prof_trace *trace) {
  prof_i_catalog *const catalog = &trace->catalog;
  const int status = find_epochs(trace);
  if (status) return status;
  for (uint32_t i = 0; i < catalog->mark_count; i++)
    catalog->marks[i] = place_recorded_ticks(trace, catalog->marks[i]);
  for (uint32_t i = 0; i < catalog->function_end_count; i++)
    catalog->function_ends[i] = place_recorded_ticks(trace, catalog->function_ends[i]);
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    catalog->pools[i].ticks = place_recorded_ticks(trace, catalog->pools[i].ticks);
  for (uint32_t i = 0; i < catalog->change_count; i++)
    catalog->changes[i].ticks = place_recorded_ticks(trace, catalog->changes[i].ticks);
  if (catalog->change_count)
    qsort(catalog->changes, catalog->change_count, sizeof *catalog->changes, clock_change_compare);
  return 0;
}

uint64_t prof_i_trace_ns(const prof_trace *trace, uint64_t ticks) {
  const prof_i_time_line *line = trace->timeline.lines;
  const int64_t since = prof_i_ticks_since(ticks << 4, trace->header.start_ticks);
  return prof_i_timeline_ns(
      &trace->timeline, &line,
      prof_i_clock_epoch_ticks(trace, prof_i_clock_epoch_of(trace, since), since));
}
