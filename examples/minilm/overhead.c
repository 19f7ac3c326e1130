/* See overhead.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "overhead.h"

#include <inttypes.h>
#include <math.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "progress.h"
#include "vm.h"

enum { ROUNDS_MIN = 9, ROUNDS_MAX = 1000, LOOP_SCOPES = 2000, LOOP_ROUNDS = 9 };

#define RESOLVED 0.005 /* half width of an interval that says enough */
#define BOUND 0.01     /* of the estimate: what this library promises for such a program */

/* What this runtime records: scopes, by category, and memory. Each kind has its own price. */
enum { SCOPE_KINDS = 3, KIND_PIECE = SCOPE_KINDS, KIND_SAMPLE, KINDS };
static const char *const kinds[SCOPE_KINDS] = {"operator", "vm", "memory"};

typedef struct unit {
  vm *vm;
  const batch *texts;
} unit;

static double thread_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int refuse(failure *why, const char *what, int status) {
  return failure_set(why, "%s: %s (%s)", what, prof_status_text(status), prof_last_error());
}

/* One unit at a level (0: prof is stopped); the time is the work's alone, without starting and
   stopping. */
static int run_unit(const unit *u, int level, double *ns_out, failure *why) {
  const int status = level == 0 ? PROF_OK : prof_start(level);
  if (status != PROF_OK) return refuse(why, "prof_start", status);
  const double start_ns = thread_ns();
  const int result = vm_run(u->vm, u->texts, why);
  *ns_out = thread_ns() - start_ns;
  if (level != 0) prof_stop();
  return result;
}

/* ---- the estimate ---- */

static void record_operators(const int64_t *dims) {
  for (int i = 0; i < LOOP_SCOPES; i++)
    WITH_BASE_PROFILER(PROF_HOST, "dense", "operator",
                       PROF_SHAPES(PROF_TENSOR(dims, 3, PROF_F32), PROF_TENSOR(dims, 2, PROF_F32)),
                       {});
}

static void record_instructions(const char *name) {
  for (int i = 0; i < LOOP_SCOPES; i++)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, name, "vm", PROF_NO_ARGS, {});
}

static void record_requests(void) {
  for (int i = 0; i < LOOP_SCOPES; i++)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "MemoryRequest", "memory", PROF_ARGS("bytes", i), {});
}

/* A piece is recorded when it is handed out, with a tag, and when it comes back: half of both. */
static void record_pieces(prof_pool *pieces) {
  const uint32_t tag = prof_memory_tag("dense");
  for (int i = 0; i < LOOP_SCOPES / 2; i++) {
    prof_memory_alloc_for(pieces, &pieces, 1000, 1024, tag, PROF_NO_STREAM);
    prof_memory_free(pieces, &pieces, 1024);
  }
}

/* With what asking the pool costs. */
static void record_samples(const char *name) {
  for (int i = 0; i < LOOP_SCOPES; i++) PROFILE_MEMORY(PROF_HOST, name);
}

static double time_loop(int kind, const program *p, prof_pool *pieces) {
  static const int64_t dims[] = {4, 64, 384};
  const double start_ns = thread_ns();
  if (kind == 0) record_operators(dims);
  if (kind == 1) record_instructions(p->code[p->instruction_count / 2].name);
  if (kind == 2) record_requests();
  if (kind == KIND_PIECE) record_pieces(pieces);
  if (kind == KIND_SAMPLE) record_samples(p->code[p->instruction_count / 2].name);
  return (thread_ns() - start_ns) / LOOP_SCOPES;
}

static int ascending(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* The price of each kind as this runtime writes it: the median of some loops, in a capture of its
   own. */
static int measure_prices(const program *p, prof_pool *pieces, double prices_out[KINDS],
                          failure *why) {
  for (int kind = 0; kind < KINDS; kind++) {
    double ns[LOOP_ROUNDS];
    prof_clear();
    const int status = prof_start(2);
    if (status != PROF_OK) return refuse(why, "prof_start", status);
    for (int i = 0; i < LOOP_ROUNDS; i++) ns[i] = time_loop(kind, p, pieces);
    prof_stop();
    qsort(ns, LOOP_ROUNDS, sizeof ns[0], ascending);
    prices_out[kind] = ns[LOOP_ROUNDS / 2];
  }
  return 0;
}

static int count_memory(const prof_trace *trace, uint64_t counts_out[KINDS]) {
  prof_memory *memory = NULL;
  const int status = prof_memory_read(trace, &memory);
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    if (prof_memory_pool_get(memory, i, &info) != PROF_OK) continue;
    counts_out[KIND_PIECE] +=
        info.alloc_count + info.free_count + info.reserve_count + info.release_count;
    counts_out[KIND_SAMPLE] += info.sample_count;
  }
  prof_memory_destroy(memory);
  return status;
}

static int count_kinds(uint64_t counts_out[KINDS], failure *why) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_CATEGORY, .rows_limit = UINT32_MAX};
  prof_trace *trace = NULL;
  prof_rows *rows = NULL;
  int status = prof_get(&trace);
  if (status == PROF_OK) status = prof_trace_aggregate(trace, &options, &rows);
  for (int kind = 0; kind < KINDS; kind++) counts_out[kind] = 0;
  for (uint64_t i = 0; status == PROF_OK && i < rows->row_count; i++)
    for (int kind = 0; kind < SCOPE_KINDS; kind++)
      if (strcmp(rows->rows[i].category, kinds[kind]) == 0)
        counts_out[kind] = rows->rows[i].calls_count;
  if (status == PROF_OK) status = count_memory(trace, counts_out);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  return status == PROF_OK ? 0 : refuse(why, "prof_get", status);
}

/* The records of one unit and what they cost together, at each level. */
static int price_units(const unit *u, const double prices[KINDS], overhead *o,
                       double cost_ns_out[OVERHEAD_LEVELS], failure *why) {
  for (int level = 1; level <= OVERHEAD_LEVELS; level++) {
    overhead_level *l = &o->levels[level - 1];
    uint64_t counts[KINDS] = {0};
    double ns, cost_ns = 0;
    prof_clear();
    if (run_unit(u, level, &ns, why) != 0 || count_kinds(counts, why) != 0) return -1;
    for (int kind = 0; kind < KINDS; kind++) {
      l->record_count += counts[kind];
      cost_ns += (double)counts[kind] * prices[kind];
    }
    l->record_ns = l->record_count == 0 ? 0 : cost_ns / (double)l->record_count;
    cost_ns_out[level - 1] = cost_ns;
  }
  return 0;
}

/* ---- the experiment ---- */

/* The factor of a 95 % interval with so many degrees of freedom: the first terms of Fisher's
   expansion around the normal quantile; exact to 0.2 % from 8 on. */
static double student_t(int freedom) {
  const double z = 1.959964, n = freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

/* Running sums, so that a round is added in constant time. */
typedef struct sums {
  double total, squares;
} sums;

static void add(sums *s, double value) {
  s->total += value;
  s->squares += value * value;
}

static double half_width(const sums *s, int count) {
  const double variance = (s->squares - s->total * s->total / count) / (count - 1);
  return student_t(count - 1) * sqrt(fmax(variance, 0) / count);
}

/* One unit at each level; which comes first changes from round to round, so that none has the
   better place. */
static int run_round(const unit *u, int round, double ns_out[OVERHEAD_LEVELS + 1], failure *why) {
  prof_clear();
  for (int i = 0; i <= OVERHEAD_LEVELS; i++) {
    /* Both directions of the three rotations: 012 120 201, 021 102 210. */
    const int step = round / 3 % 2 == 0 ? i : OVERHEAD_LEVELS + 1 - i;
    const int level = (round + step) % (OVERHEAD_LEVELS + 1);
    if (run_unit(u, level, &ns_out[level], why) != 0) return -1;
  }
  return 0;
}

static int run_rounds(const unit *u, double budget_s, overhead *o, failure *why) {
  sums base = {0, 0}, differences[OVERHEAD_LEVELS] = {{0, 0}};
  progress p = progress_begin("% of the time set aside for measuring prof's cost", 100);
  double ns[OVERHEAD_LEVELS + 1] = {0}, widest = INFINITY;
  const double end_s = progress_now_s() + budget_s;
  if (run_round(u, 0, ns, why) != 0) return -1; /* warms the caches and the pool; not counted */
  while (o->round_count < ROUNDS_MAX &&
         (o->round_count < ROUNDS_MIN || (widest > RESOLVED && progress_now_s() < end_s))) {
    if (run_round(u, o->round_count, ns, why) != 0) return -1;
    o->round_count++;
    add(&base, ns[0]);
    o->unit_ns = base.total / o->round_count;
    widest = 0;
    for (int i = 0; i < OVERHEAD_LEVELS; i++) {
      add(&differences[i], ns[i + 1] - ns[0]);
      o->levels[i].difference = differences[i].total / o->round_count / o->unit_ns;
      o->levels[i].half_width =
          o->round_count < 2 ? INFINITY : half_width(&differences[i], o->round_count) / o->unit_ns;
      widest = fmax(widest, o->levels[i].half_width);
    }
    progress_show(&p, (int64_t)fmin(100, 100 * (1 - (end_s - progress_now_s()) / budget_s)));
  }
  progress_end(&p);
  return 0;
}

int overhead_measure(const model *m, pool *memory, const batches *all, double budget_s,
                     overhead *result_out, failure *why) {
  double prices[KINDS] = {0}, cost_ns[OVERHEAD_LEVELS] = {0};
  /* Batches are sorted by length. This is one of the short ones: many scopes for little work is the
     hard case for a profiler. Short units of work let the three levels follow each other before the
     machine's speed drifts. */
  unit u = {.texts = &all->items[all->count * 9 / 10]};
  overhead o = {.text_count = u.texts->count};
  if (vm_create(m->program, engine_host(), memory, &u.vm, why) != 0) return -1;
  prof_pool *pieces = NULL;
  if (prof_pool_create(NULL, &pieces) != PROF_OK) {
    vm_destroy(u.vm);
    return failure_set(why, "no pool for the experiment: %s", prof_last_error());
  }
  prof_health health = {.size = sizeof health};
  if (prof_health(&health) == PROF_OK) o.plain_ns = health.scope_cost_ns;
  int status = measure_prices(m->program, pieces, prices, why);
  if (status == 0) status = price_units(&u, prices, &o, cost_ns, why);
  if (status == 0) status = run_rounds(&u, budget_s, &o, why);
  for (int i = 0; status == 0 && i < OVERHEAD_LEVELS; i++)
    o.levels[i].estimate = cost_ns[i] / o.unit_ns;
  prof_clear();
  prof_pool_destroy(pieces);
  vm_destroy(u.vm);
  if (status == 0) *result_out = o;
  return status;
}

static void print_level(const overhead *o, int i) {
  const overhead_level *l = &o->levels[i];
  printf("  level %d  %6" PRIu64
         " records x %4.0f ns  estimate %6.3f %% (%s the bound of %.0f %%)   measured %+6.2f %% +- "
         "%.2f %%: ",
         i + 1, l->record_count, l->record_ns, 100 * l->estimate,
         l->estimate <= BOUND ? "within" : "OVER", 100 * BOUND, 100 * l->difference,
         100 * l->half_width);
  if (l->half_width > RESOLVED)
    printf("not resolved (this machine is too busy for +-%.1f %%)\n", 100 * RESOLVED);
  else
    printf("the interval %s the estimate\n",
           fabs(l->difference - l->estimate) > l->half_width ? "EXCLUDES" : "holds");
}

void overhead_print(const overhead *o) {
  printf("\nWhat recording costs (unit of work: %" PRId64
         " paragraphs, %.1f ms of thread CPU time; %d rounds of levels 0, 1, 2"
         " in turn)\n\n",
         o->text_count, o->unit_ns / 1e6, o->round_count);
  for (int i = 0; i < OVERHEAD_LEVELS; i++) print_level(o, i);
  if (o->plain_ns > 0)
    printf(
        "  Priced by the records of this program: operators with shapes, names made at run time, "
        "tagged pieces of memory. A scope with a\n"
        "  literal name and no arguments costs %.0f ns here.\n",
        o->plain_ns);
}
