/* Takes the samples. Prepare, warm up, find how many runs make a sample, sample until the median is known or a limit is reached, judge. See op.h. */
#include <stdlib.h>
#include <string.h>

#include "../core/log.h"
#include "../core/options.h"
#include "../core/port.h"
#include "cache.h"
#include "judge.h"
#include "timer.h"
#include "workspace.h"

enum {
  WARMUP = 10, /* as RAF */
  REPEAT = 100000,
  COUNT_MAX = 1 << 24, /* of runs and samples: more is a mistake */
  CONVERGED_MIN = 20,  /* samples before the interval is asked */
  CHAINS_MIN = 5,      /* looks at the processor's speed, 20 ms apart, that say something */
  CHAINS_MAX = 64,
  SURE_TIMES = 1000,    /* a sample's length, in what the timer may be wrong by */
  SURE_TIMES_MIN = 100, /* less is doubted */
  MIB = 1 << 20
};
static const uint64_t chain_every_ns = 20000000, workspace_max_bytes = 1ull << 56;
static const double slow = 1.10;

typedef struct measurement {
  const prof_op *op;
  prof_op_options options;
  prof_op_timer timer;
  prof_i_host_time host;
  uint64_t begun_ns, sampled_ns, chained_ns; /* the whole, the first sample, the last look at the processor's speed */
  int32_t exec;
  double error_us; /* of the timer */
  double *samples;
  size_t count, room;
  double chains[CHAINS_MAX];
  int chain_count;
  unsigned char *flush; /* written over before a cold sample */
  size_t flush_bytes;
  uint64_t workspace_bytes;
  bool has_workspace, is_time_over, is_converged;
} measurement;

/* ---- what is asked for ---- */

static int check_count(const char *name, int32_t count) {
  if (count < 0) return prof_i_fail(PROF_E_INVALID, "%s is %d; it counts", name, count);
  if (count > COUNT_MAX) return prof_i_fail(PROF_E_INVALID, "%s is %d; at most %d", name, count, COUNT_MAX);
  return PROF_OK;
}

static int complete(prof_op_options *options) {
  int status = check_count("options.warmup", options->warmup);
  if (!status) status = check_count("options.exec", options->exec);
  if (!status) status = check_count("options.repeat", options->repeat);
  if (status) return status;
  if (options->no_warmup > 1 || options->repeat_all > 1 || options->no_reuse > 1)
    return prof_i_fail(PROF_E_INVALID, "options.no_warmup, repeat_all and no_reuse are 0 or 1");
  if (options->no_warmup && options->warmup)
    return prof_i_fail(PROF_E_INVALID, "options.warmup is %d, and options.no_warmup is set", options->warmup);
  if (options->caches > PROF_OP_COLD)
    return prof_i_fail(PROF_E_INVALID, "options.caches is %u; 0 warm, 1 cold", options->caches);
  if (options->caches == PROF_OP_COLD && options->exec > 1)
    return prof_i_fail(PROF_E_INVALID,
                       "options.exec is %d, but with cold caches a sample is one run: the next would find them warm",
                       options->exec);
  if (!(options->precision >= 0 && options->precision < 1))
    return prof_i_fail(PROF_E_INVALID, "options.precision is %g; a share from 0 to 1", options->precision);
  if (options->reserved) return prof_i_fail(PROF_E_INVALID, "options.reserved is %u, not 0", options->reserved);
  if (options->caches == PROF_OP_COLD) options->exec = 1;
  if (!options->warmup && !options->no_warmup) options->warmup = WARMUP;
  if (!options->repeat) options->repeat = REPEAT;
  if (!(options->precision > 0)) options->precision = 0.01;
  if (!options->least_ns) options->least_ns = 100000000;
  if (!options->time_limit_ns) options->time_limit_ns = 1000000000;
  return PROF_OK;
}

static int read_operator(prof_op *to, const prof_op *from) {
  if (!from) return prof_i_fail(PROF_E_INVALID, "op is NULL");
  const int status = prof_i_sized_copy(to, sizeof *to, from, "prof_op");
  if (status) return status;
  if (!to->key || !to->key[0])
    return prof_i_fail(PROF_E_INVALID, "op.key is %s; it says what is measured", to->key ? "empty" : "NULL");
  if (!to->run) return prof_i_fail(PROF_E_INVALID, "op.run is NULL: nothing to measure");
  if (to->device.type == 0) to->device = PROF_HOST;
  return PROF_OK;
}

static int read_timer(measurement *m) {
  m->timer = prof_i_host_timer;
  m->timer.user = &m->host;
  if (!m->options.timer) return PROF_OK;
  const int status = prof_i_sized_copy(&m->timer, sizeof m->timer, m->options.timer, "prof_op_timer");
  if (status) return status;
  if (!m->timer.name || !m->timer.begin || !m->timer.end)
    return prof_i_fail(PROF_E_INVALID, "timer: name, begin or end is NULL");
  return PROF_OK;
}

static prof_i_op_identity identity_of(const measurement *m) {
  prof_i_op_identity identity = {.device = m->op->device,
                                 .warmup = m->options.warmup,
                                 .exec = m->options.exec,
                                 .repeat = m->options.repeat,
                                 .repeat_all = m->options.repeat_all,
                                 .caches = m->options.caches,
                                 .precision = m->options.precision};
  strncpy(identity.timer, m->timer.name, sizeof identity.timer - 1);
  return identity;
}

/* ---- running ---- */

static int said(const measurement *m, const char *callback, int code) {
  return prof_i_fail(PROF_E_OPERATOR, "%s: %s returned %d", m->op->key, callback, code);
}

static bool is_over(measurement *m) {
  if (prof_i_ns_since(m->begun_ns) < m->options.time_limit_ns) return false;
  m->is_time_over = true;
  return true;
}

static int run_many(const measurement *m, int32_t times) {
  for (int32_t i = 0; i < times; i++) {
    const int code = m->op->run(m->op->user);
    if (code) return said(m, "run", code);
  }
  return PROF_OK;
}

/* Of one sample, all runs together. */
static int time_runs(const measurement *m, int32_t times, double *us_out) {
  if (m->flush) memset(m->flush, (int)(m->count & 255) | 1, m->flush_bytes);
  int code = m->timer.begin(m->timer.user);
  if (code) return said(m, "the timer's begin", code);
  const int status = run_many(m, times);
  code = m->timer.end(m->timer.user, us_out); /* also after an error: what was begun is ended */
  if (status) return status;
  if (code) return said(m, "the timer's end", code);
  if (!prof_i_is_time(*us_out))
    return prof_i_fail(PROF_E_OPERATOR, "%s: the timer %s says %g us", m->op->key, m->timer.name, *us_out);
  return PROF_OK;
}

/* One run at a time, so that the allocator's peak is of one. */
static int warm_up(measurement *m) {
  uint64_t peak = 0;
  bool was_told = false;
  int status = PROF_OK;
  for (int32_t i = 0; !status && i < m->options.warmup && (i == 0 || !is_over(m)); i++) {
    prof_i_workspace workspace;
    prof_i_workspace_begin(&workspace);
    status = run_many(m, 1);
    prof_i_workspace_end(&workspace);
    if (workspace.peak_bytes > peak) peak = workspace.peak_bytes;
    was_told |= workspace.was_told;
  }
  if (m->op->workspace || !was_told) return status;
  m->has_workspace = true;
  m->workspace_bytes = peak;
  return status;
}

static int ask_workspace(measurement *m) {
  if (!m->op->workspace) return PROF_OK;
  const int code = m->op->workspace(m->op->user, &m->workspace_bytes);
  if (code) return said(m, "workspace", code);
  if (m->workspace_bytes > workspace_max_bytes)
    return prof_i_fail(PROF_E_OPERATOR, "%s: workspace says %llu bytes, more than any device has", m->op->key,
                       (unsigned long long)m->workspace_bytes);
  m->has_workspace = true;
  return PROF_OK;
}

/* Doubles the runs of a sample until it is long for the timer. */
static int choose_exec(measurement *m) {
  m->exec = m->options.exec ? m->options.exec : 1;
  while (!m->options.exec && m->exec < COUNT_MAX && !is_over(m)) {
    double us = 0;
    const int status = time_runs(m, m->exec, &us);
    if (status) return status;
    if (us >= SURE_TIMES * m->error_us) break;
    m->exec *= 2;
  }
  m->is_time_over = false; /* there is one sample at least */
  return PROF_OK;
}

static void look_at_speed(measurement *m) {
  if (m->chain_count && (m->chain_count >= CHAINS_MAX || prof_i_ns_since(m->chained_ns) < chain_every_ns)) return;
  m->chains[m->chain_count++] = prof_i_chain_us();
  m->chained_ns = prof_i_port_monotonic_ns();
}

static bool make_room(measurement *m) {
  if (m->count < m->room) return true;
  const size_t room = m->room ? m->room * 2 : 64;
  double *const larger = realloc(m->samples, room * sizeof *larger);
  if (!larger) return false;
  m->samples = larger;
  m->room = room;
  return true;
}

/* Is the median known to the precision asked for? Looked at less and less often. */
static int look_at_median(measurement *m, size_t *next_look) {
  prof_i_series series;
  double low, high;
  if (m->count < *next_look || prof_i_ns_since(m->sampled_ns) < m->options.least_ns) return PROF_OK;
  *next_look = m->count + m->count / 4;
  if (!prof_i_series_init(&series, m->samples, m->count))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", m->count);
  prof_i_median_interval(&series, &low, &high);
  const double median = prof_i_quantile(series.sorted, series.count, 0.5);
  m->is_converged = (high - low) / 2 <= m->options.precision * median;
  prof_i_series_fini(&series);
  return PROF_OK;
}

static int take_samples(measurement *m) {
  size_t next_look = CONVERGED_MIN;
  m->sampled_ns = prof_i_port_monotonic_ns();
  for (;;) {
    double us = 0;
    if (!make_room(m)) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", m->room * 2);
    look_at_speed(m);
    int status = time_runs(m, m->exec, &us);
    if (status) return status;
    m->samples[m->count++] = us / m->exec;
    if (m->count >= (size_t)m->options.repeat) return PROF_OK;
    if (is_over(m)) return PROF_OK;
    if (m->options.repeat_all) continue;
    status = look_at_median(m, &next_look);
    if (status || m->is_converged) return status;
  }
}

/* Twice the last level's size, or what is enough where that is not known. */
static int make_flush(measurement *m) {
  if (m->options.caches != PROF_OP_COLD) return PROF_OK;
  const uint64_t last_level = prof_i_port_cache_bytes();
  m->flush_bytes = last_level > 0 && last_level < 128ull * MIB ? 2 * (size_t)last_level : (size_t)64 * MIB;
  m->flush = malloc(m->flush_bytes);
  return m->flush ? PROF_OK
                  : prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu bytes to write the caches over with", m->flush_bytes);
}

static int run_prepared(measurement *m) {
  int status = ask_workspace(m);
  if (!status) status = make_flush(m);
  if (!status) status = warm_up(m);
  if (!status) status = choose_exec(m);
  if (!status) status = take_samples(m);
  free(m->flush);
  return status;
}

/* ---- what it says ---- */

static void fill_slowdown(prof_op_info *info, measurement *m) {
  info->slowdown = 1;
  if (m->chain_count < CHAINS_MIN) return;
  const double usual = prof_i_quantile_among(m->chains, (size_t)m->chain_count, 0.9),
               best = prof_i_quantile_among(m->chains, (size_t)m->chain_count, 0);
  if (best > 0) info->slowdown = usual / best;
  if (info->slowdown > slow) info->doubts |= PROF_OP_THROTTLED;
}

static bool fill_statistics(prof_op_result *result) {
  prof_op_info *const info = &result->info;
  const prof_i_series series = {result->samples, result->sorted, result->count};
  prof_i_drift drift;
  prof_i_modes modes;
  if (!prof_i_judge(&series, &info->doubts, &drift, &modes)) return false;
  info->min_us = series.sorted[0];
  info->max_us = series.sorted[series.count - 1];
  info->mean_us = prof_i_mean(&series);
  info->stddev_us = prof_i_deviation(&series, info->mean_us);
  info->median_us = prof_op_quantile(result, 0.5);
  info->confidence = prof_i_median_interval(&series, &info->median_low_us, &info->median_high_us);
  info->q05_us = prof_op_quantile(result, 0.05);
  info->q25_us = prof_op_quantile(result, 0.25);
  info->q75_us = prof_op_quantile(result, 0.75);
  info->q95_us = prof_op_quantile(result, 0.95);
  info->q99_us = prof_op_quantile(result, 0.99);
  info->drift = drift.share;
  info->outlier_share = prof_i_outlier_share(&series);
  if (!modes.are_two) return true;
  info->low_mode_us = modes.low;
  info->high_mode_us = modes.high;
  info->high_mode_share = modes.high_share;
  return true;
}

static int make_result(measurement *m, const prof_i_op_identity *identity, prof_op_result **result_out) {
  prof_op_result *const result = prof_i_result_make(identity, m->op->key, m->samples, m->count);
  if (!result || !fill_statistics(result)) {
    free(result);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a result of %zu samples", m->count);
  }
  prof_op_info *const info = &result->info;
  info->size = sizeof *info;
  info->workspace_bytes = m->workspace_bytes;
  info->has_workspace = m->has_workspace;
  info->sample_count = (uint32_t)m->count;
  info->exec = (uint32_t)m->exec;
  info->warmup = (uint32_t)m->options.warmup;
  info->caches = m->options.caches;
  info->device = m->op->device;
  info->timer_us = m->error_us;
  fill_slowdown(info, m);
  if (m->is_time_over) info->doubts |= PROF_OP_TIME_OVER;
  if (info->median_us * m->exec < SURE_TIMES_MIN * m->error_us) info->doubts |= PROF_OP_TOO_SHORT;
  if ((info->median_high_us - info->median_low_us) / 2 > m->options.precision * info->median_us || info->sample_count < 6)
    info->doubts |= PROF_OP_NOT_CONVERGED;
  *result_out = result;
  return PROF_OK;
}

static int run_all(measurement *m) {
  int code = prof_i_timer_error(&m->timer, &m->error_us);
  if (code) return said(m, m->timer.name, code);
  if (m->op->prepare && (code = m->op->prepare(m->op->user)) != 0) return said(m, "prepare", code);
  const int status = run_prepared(m);
  if (m->op->cleanup) m->op->cleanup(m->op->user);
  return status;
}

static int measure(measurement *m, const prof_i_op_identity *identity, prof_op_result **result_out) {
  prof_i_workspace aside; /* what is asked for here is not of an operator inside of which this one is measured */
  m->begun_ns = prof_i_port_monotonic_ns();
  prof_i_workspace_begin(&aside);
  int status = run_all(m);
  prof_i_workspace_end(&aside);
  if (!status) status = make_result(m, identity, result_out);
  free(m->samples);
  return status;
}

int prof_op_profile(const prof_op *op, const prof_op_options *options, prof_op_result **result_out) {
  prof_op own;
  measurement m = {.op = &own, .options = {.size = sizeof m.options}};
  if (!result_out) return prof_i_fail(PROF_E_INVALID, "prof_op_profile: result_out is NULL");
  *result_out = NULL;
  int status = read_operator(&own, op);
  if (!status && options) status = prof_i_sized_copy(&m.options, sizeof m.options, options, "prof_op_options");
  if (!status) status = complete(&m.options);
  if (!status) status = read_timer(&m);
  if (status) return status;
  const prof_i_op_identity identity = identity_of(&m);
  if (!m.options.no_reuse) *result_out = prof_i_cache_find(&identity, own.key);
  if (*result_out) return PROF_OK;
  status = measure(&m, &identity, result_out);
  if (!status) prof_i_cache_keep(*result_out);
  return status;
}

int prof_op_latency(const prof_op *op, int warmup, int exec, int repeat, double *us_out, uint64_t *workspace_bytes_out) {
  prof_op_result *result = NULL;
  if (!us_out) return prof_i_fail(PROF_E_INVALID, "prof_op_latency: us_out is NULL");
  if (warmup < 0 || exec < 1 || repeat < 1)
    return prof_i_fail(PROF_E_INVALID,
                       "warmup %d, exec %d, repeat %d: none is negative, and one run and one sample are the least", warmup,
                       exec, repeat);
  const prof_op_options options = {.size = sizeof options,
                                   .warmup = warmup,
                                   .no_warmup = warmup == 0,
                                   .exec = exec,
                                   .repeat = repeat,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX};
  const int status = prof_op_profile(op, &options, &result);
  if (status) return status;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): PROF_OK comes with a result */
  memcpy(us_out, result->samples, result->count * sizeof *us_out);
  if (workspace_bytes_out) *workspace_bytes_out = result->info.workspace_bytes;
  prof_op_result_destroy(result);
  return PROF_OK;
}
