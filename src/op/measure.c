/* Takes one operator's samples, step by step, so that several can be measured in turn. The steps
   are: read the request, prepare, sample until it is done, clean up, make the result. One thread.
   */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../device/registry.h"
#include "../format/state.h"
#include "../sampler/internal.h"

enum {
  WARMUP = 10, /* as RAF */
  REPEAT = 100000,
  COUNT_MAX = 1 << 24, /* of runs and samples: more is a mistake */
  CONVERGED_MIN = 20,  /* samples before the interval is computed */
  CHAINS_MIN = 5,      /* readings of the processor's speed, 20 ms apart, that suffice */
  SURE_TIMES = 1000,   /* a sample's length, in what the timer may be wrong by */
  INTERVAL_MIN = 6,    /* samples: of fewer no interval of 95 % exists */
  WARMUP_SHARE = 4,    /* of the time limit, a fourth */
  MIB = 1 << 20
};
static const uint64_t chain_every_ns = 20000000,
                      statistics_ns = 250 /* a sample: sorting takes most of it */,
                      workspace_max_bytes = 1ull << 56, usual_limit_ns = 1000000000,
                      /* of what is so slow that the usual limit holds no six samples */
    longest_limit_ns = 10000000000;

/* ---- the request ---- */

static int check_count(const char *name, int32_t count) {
  if (count < 0) return prof_i_fail(PROF_E_INVALID, "%s is %d; it counts", name, count);
  if (count > COUNT_MAX)
    return prof_i_fail(PROF_E_INVALID, "%s is %d; at most %d", name, count, COUNT_MAX);
  return PROF_OK;
}

static int complete_options(prof_op_options *options) {
  int status = check_count("options.warmup", options->warmup);
  if (!status) status = check_count("options.exec", options->exec);
  if (!status) status = check_count("options.repeat", options->repeat);
  if (status) return status;
  if (options->no_warmup > 1 || options->repeat_all > 1 || options->no_reuse > 1)
    return prof_i_fail(PROF_E_INVALID, "options.no_warmup, repeat_all and no_reuse are 0 or 1");
  if (options->vendor_memory > 1 || options->open_meters > 1)
    return prof_i_fail(PROF_E_INVALID, "options.vendor_memory and open_meters are 0 or 1");
  if (options->vendor_memory && options->no_warmup)
    return prof_i_fail(
        PROF_E_INVALID,
        "options.vendor_memory is of the warm-up's first run, and options.no_warmup is set");
  if (options->no_warmup && options->warmup)
    return prof_i_fail(PROF_E_INVALID, "options.warmup is %d, and options.no_warmup is set",
                       options->warmup);
  if (options->caches > PROF_OP_COLD)
    return prof_i_fail(PROF_E_INVALID, "options.caches is %u; 0 warm, 1 cold", options->caches);
  if (options->caches == PROF_OP_COLD && options->exec > 1)
    return prof_i_fail(PROF_E_INVALID,
                       "options.exec is %d, but with cold caches a sample is one run: the next "
                       "would find them warm",
                       options->exec);
  if (!(options->precision >= 0 && options->precision < 1))
    return prof_i_fail(PROF_E_INVALID, "options.precision is %g; a share from 0 to 1",
                       options->precision);
  if (options->reserved)
    return prof_i_fail(PROF_E_INVALID, "options.reserved is %u, not 0", options->reserved);
  if (options->caches == PROF_OP_COLD) options->exec = 1;
  if (!options->warmup && !options->no_warmup) options->warmup = WARMUP;
  if (!options->repeat) options->repeat = REPEAT;
  if (!(options->precision > 0)) options->precision = 0.01;
  if (!options->least_ns) options->least_ns = 100000000;
  return PROF_OK;
}

static int read_operator(prof_op *to, const prof_op *from) {
  if (!from) return prof_i_fail(PROF_E_INVALID, "op is NULL");
  const int status = prof_i_sized_copy(to, sizeof *to, from, "prof_op");
  if (status) return status;
  if (!to->key || !to->key[0])
    return prof_i_fail(PROF_E_INVALID, "op.key is %s; it says what is measured",
                       to->key ? "empty" : "NULL");
  if (!to->run) return prof_i_fail(PROF_E_INVALID, "op.run is NULL: nothing to measure");
  if (to->device.type == 0) to->device = PROF_HOST;
  return PROF_OK;
}

static int read_timer(prof_i_measurement *m) {
  m->timer = prof_i_host_timer;
  m->timer.user = &m->host;
  const prof_op_timer *const asked = m->op.timer ? m->op.timer : m->options.timer;
  if (!asked) return PROF_OK;
  const int status = prof_i_sized_copy(&m->timer, sizeof m->timer, asked, "prof_op_timer");
  if (status) return status;
  if (!m->timer.name || !m->timer.begin || !m->timer.end)
    return prof_i_fail(PROF_E_INVALID, "timer: name, begin or end is NULL");
  m->has_own_caches = m->timer.cold != NULL;
  return PROF_OK;
}

/* What is cut would be the same as another that is the same so far: a kept result of the wrong
   one. */
static int check_text_bytes(const char *name, const char *text, size_t room) {
  const size_t bytes = text ? strlen(text) : 0;
  if (bytes < room) return PROF_OK;
  return prof_i_fail(PROF_E_INVALID, "%s has %zu bytes; at most %zu, since results are kept for it",
                     name, bytes, room - 1);
}

/* Cold caches are requested, but nothing overwrites them. */
static bool has_warm_device(const prof_i_measurement *m) {
  const bool is_devices = m->op.device.type != PROF_DEVICE_CPU || prof_i_stream_timer_is(&m->timer);
  return m->options.caches == PROF_OP_COLD && is_devices && !m->has_own_caches;
}

static prof_i_op_identity identity_of(const prof_i_measurement *m) {
  prof_i_op_identity identity = {.device = m->op.device,
                                 .warmup = m->options.warmup,
                                 .exec = m->options.exec,
                                 .repeat = m->options.repeat,
                                 .repeat_all = m->options.repeat_all,
                                 .caches = m->options.caches,
                                 .is_device_warm = has_warm_device(m),
                                 .least_ns = m->options.least_ns,
                                 .time_limit_ns = m->options.time_limit_ns,
                                 .precision = m->options.precision,
                                 .vendor_memory = m->options.vendor_memory,
                                 .open_meters = m->options.open_meters};
  strncpy(identity.timer, m->timer.name, sizeof identity.timer - 1);
  if (m->op.driver)
    strncpy(identity.driver, m->op.driver, sizeof identity.driver - 1);
  else if (m->op.device.type == PROF_DEVICE_CPU)
    prof_i_port_processor_name(identity.driver, sizeof identity.driver);
  else
    prof_i_registry_model(m->op.device, identity.driver, sizeof identity.driver);
  return identity;
}

int prof_i_measure_init(prof_i_measurement *m, const prof_op *op, const prof_op_options *options) {
  *m = (prof_i_measurement){.options = {.size = sizeof m->options},
                            .next_check_count = CONVERGED_MIN};
  int status = read_operator(&m->op, op);
  if (!status && options)
    status = prof_i_sized_copy(&m->options, sizeof m->options, options, "prof_op_options");
  if (!status) status = complete_options(&m->options);
  if (!status) status = read_timer(m);
  if (!status) status = check_text_bytes("op.driver", m->op.driver, sizeof m->identity.driver);
  if (!status) status = check_text_bytes("timer.name", m->timer.name, sizeof m->identity.timer);
  if (!status) m->identity = identity_of(m);
  return status;
}

/* ---- running ---- */

static int fail_callback(const prof_i_measurement *m, const char *callback, int code) {
  return prof_i_fail(PROF_E_OPERATOR, "%s: %s returned %d", m->op.key, callback, code);
}

static int fail_timer(const prof_i_measurement *m, const char *callback, int code) {
  const char *const why = m->timer.why ? m->timer.why(m->timer.user) : NULL;
  if (!why || !*why) return fail_callback(m, callback, code);
  return prof_i_fail(PROF_E_OPERATOR, "%s: the timer %s: %s", m->op.key, m->timer.name, why);
}

static int fail_timer_value(const prof_i_measurement *m, double us) {
  PROF_I_DEFAULT_FP;
  return prof_i_fail(PROF_E_OPERATOR, "%s: the timer %s says %g us", m->op.key, m->timer.name, us);
}

/* What passed since *from_ns is this one's; *from_ns is now. */
static void measure_charge(prof_i_measurement *m, uint64_t *from_ns) {
  const uint64_t now_ns = prof_i_port_monotonic_ns();
  if (now_ns > *from_ns) m->spent_ns += now_ns - *from_ns;
  *from_ns = now_ns;
}

static uint64_t time_limit_of(const prof_i_measurement *m) {
  return m->options.time_limit_ns ? m->options.time_limit_ns : usual_limit_ns;
}

/* With what its statistics will take. */
static bool is_past_limit(const prof_i_measurement *m, uint64_t limit_ns) {
  return m->spent_ns + m->count * statistics_ns >= limit_ns;
}

/* True if the time is over. Without a limit from the caller it is over only after enough samples,
   or after far too long. */
static bool is_out_of_time(prof_i_measurement *m) {
  if (!is_past_limit(m, time_limit_of(m))) return false;
  const bool may_go_on = !m->options.time_limit_ns && m->count > 0 && m->count < INTERVAL_MIN;
  if (may_go_on && !is_past_limit(m, longest_limit_ns)) return false;
  m->is_time_over = true;
  return true;
}

static int run_many(const prof_i_measurement *m, int32_t times) {
  for (int32_t i = 0; i < times; i++) {
    const int code = m->op.run(m->op.user);
    if (code) return fail_callback(m, "run", code);
  }
  return PROF_OK;
}

/* One run, of which the allocator's peak is taken. */
static int run_with_workspace(prof_i_measurement *m) {
  prof_i_workspace workspace;
  prof_i_workspace_begin(&workspace);
  m->counted = &workspace;
  const int status = run_many(m, 1);
  m->counted = NULL;
  prof_i_workspace_end(&workspace);
  m->was_counted = true;
  if (m->op.workspace || !workspace.was_reported) return status;
  if (m->workspace_source != PROF_OP_WORKSPACE_TOLD) m->workspace_bytes = 0;
  m->workspace_source = PROF_OP_WORKSPACE_TOLD;
  if (workspace.peak_bytes > m->workspace_bytes) m->workspace_bytes = workspace.peak_bytes;
  return status;
}

/* The first run of all is a counted one, if there was no warm-up. */
static int run_sample(prof_i_measurement *m, int32_t times) {
  if (m->was_counted) return run_many(m, times);
  const int status = run_with_workspace(m);
  return status ? status : run_many(m, times - 1);
}

/* Of a cold sample. */
static int flush_caches(const prof_i_measurement *m) {
  if (m->flush_buffer) memset(m->flush_buffer, (int)(m->count & 255) | 1, m->flush_bytes);
  return m->options.caches == PROF_OP_COLD && m->timer.cold ? m->timer.cold(m->timer.user) : 0;
}

static void prepare_runs(const prof_i_measurement *m) {
  if (m->prepare_runs) m->prepare_runs(m->op.user);
}
static void finish_runs(const prof_i_measurement *m) {
  if (m->finish_runs) m->finish_runs(m->op.user);
}

/* Of one sample, all runs together. Reading the processor time is a system call, at which the
   kernel updates the thread's account. On a busy processor, a thread at the end of its time slice
   is switched out here, between two samples, and not inside of one at the next tick. */
static int time_runs(prof_i_measurement *m, int32_t times, double *us_out) {
  prof_i_port_processor_ns();
  int code = flush_caches(m);
  if (code) return fail_timer(m, "writing the caches over", code);
  prepare_runs(m);
  code = m->timer.begin(m->timer.user);
  if (code) return fail_timer(m, "the timer's begin", code);
  const int status = run_sample(m, times);
  code = m->timer.end(m->timer.user, us_out); /* also after an error: what was begun is ended */
  finish_runs(m);
  if (status) return status;
  if (code) return fail_timer(m, "the timer's end", code);
  return prof_i_is_time(*us_out) ? PROF_OK : fail_timer_value(m, *us_out);
}

/* Would one more run, as long as those before were, take the warm-up past its share? What is slow
   would be warmed up and never measured. */
static bool is_warm_enough(const prof_i_measurement *m) {
  if (m->warmup_count == 0) return m->options.warmup == 0;
  const uint64_t next_ns = m->spent_ns / (uint64_t)m->warmup_count;
  return m->warmup_count >= m->options.warmup ||
         m->spent_ns + next_ns > time_limit_of(m) / WARMUP_SHARE;
}

/* The first run, in which the vendor's library reports what it hands out. Starting and stopping
   that takes ms, which are not charged. */
static int run_with_vendor_memory(prof_i_measurement *m, uint64_t *from_ns) {
  prof_i_op_memory *memory = NULL;
  uint64_t peak_bytes = 0;
  m->workspace_status = prof_i_op_memory_begin(m->op.device, &memory);
  prepare_runs(m);
  *from_ns = prof_i_port_monotonic_ns();
  const int status = run_with_workspace(m);
  m->warmup_count++;
  measure_charge(m, from_ns);
  finish_runs(m);
  if (memory) m->workspace_status = prof_i_op_memory_end(memory, &peak_bytes);
  if (memory && m->workspace_status == PROF_OK &&
      m->workspace_source == PROF_OP_WORKSPACE_UNKNOWN) {
    m->workspace_source = PROF_OP_WORKSPACE_VENDOR;
    m->workspace_bytes = peak_bytes;
  }
  *from_ns = prof_i_port_monotonic_ns();
  return status;
}

static int warm_up(prof_i_measurement *m, uint64_t *from_ns) {
  int status =
      m->options.vendor_memory && !m->op.workspace ? run_with_vendor_memory(m, from_ns) : PROF_OK;
  prepare_runs(m);
  while (!status && !is_warm_enough(m)) {
    status = run_with_workspace(m);
    m->warmup_count++;
    measure_charge(m, from_ns);
  }
  finish_runs(m);
  return status;
}

static int query_workspace(prof_i_measurement *m) {
  if (!m->op.workspace) return PROF_OK;
  const int code = m->op.workspace(m->op.user, &m->workspace_bytes);
  if (code) return fail_callback(m, "workspace", code);
  if (m->workspace_bytes > workspace_max_bytes)
    return prof_i_fail(PROF_E_OPERATOR, "%s: workspace says %llu bytes, more than any device has",
                       m->op.key, (unsigned long long)m->workspace_bytes);
  m->workspace_source = PROF_OP_WORKSPACE_SAID;
  return PROF_OK;
}

/* Doubles the runs of a sample until it is long for the timer. */
static int choose_exec(prof_i_measurement *m, uint64_t *from_ns) {
  m->exec = m->options.exec ? m->options.exec : 1;
  while (!m->options.exec && m->exec < COUNT_MAX && !is_out_of_time(m)) {
    double us = 0;
    const int status = time_runs(m, m->exec, &us);
    measure_charge(m, from_ns);
    if (status) return status;
    if (us >= SURE_TIMES * m->timer_error_us) break;
    m->exec *= 2;
  }
  return PROF_OK;
}

/* Twice the last level's size, or what is enough where that is not known. */
static int make_flush_buffer(prof_i_measurement *m) {
  if (m->options.caches != PROF_OP_COLD || m->has_own_caches) return PROF_OK;
  const uint64_t last_level = prof_i_port_cache_bytes();
  m->flush_bytes =
      last_level > 0 && last_level < 128ull * MIB ? 2 * (size_t)last_level : (size_t)64 * MIB;
  m->flush_buffer = malloc(m->flush_bytes);
  return m->flush_buffer
             ? PROF_OK
             : prof_i_fail(PROF_E_NO_MEMORY,
                           "no memory for %zu bytes to write the caches over with", m->flush_bytes);
}

/* Prepares the operator, queries its workspace, warms it up, and finds how many runs make a sample.
   */
static int measure_prepare(prof_i_measurement *m) {
  int code = prof_i_timer_error(&m->timer, &m->timer_error_us);
  if (code) return fail_timer(m, m->timer.name, code);
  if (!prof_i_is_time(m->timer_error_us)) return fail_timer_value(m, m->timer_error_us);
  if (m->op.prepare && (code = m->op.prepare(m->op.user)) != 0)
    return fail_callback(m, "prepare", code);
  m->is_prepared = true;
  int status = query_workspace(m);
  if (!status) status = make_flush_buffer(m);
  uint64_t from_ns = prof_i_port_monotonic_ns();
  if (!status) status = warm_up(m, &from_ns);
  if (!status) status = choose_exec(m, &from_ns);
  m->is_time_over = false; /* there is one sample at least */
  m->sampling_ns = m->spent_ns;
  return status;
}

/* Cleans up if it was prepared, and gives back what is held. */
static void measure_fini(prof_i_measurement *m) {
  if (m->is_prepared && m->op.cleanup) m->op.cleanup(m->op.user);
  m->is_prepared = false;
  free(m->flush_buffer);
  free(m->samples);
  m->flush_buffer = NULL;
  m->samples = NULL;
}

/* ---- samples ---- */

static void time_chain(prof_i_measurement *m) {
  if (m->chain_count && (m->chain_count >= PROF_I_CHAIN_TIMES_MAX ||
                         prof_i_ns_since(m->chain_timed_ns) < chain_every_ns))
    return;
  m->chain_times_us[m->chain_count++] = prof_i_chain_us();
  m->chain_timed_ns = prof_i_port_monotonic_ns();
}

static bool reserve_sample(prof_i_measurement *m) {
  if (m->count < m->room) return true;
  const size_t room = m->room ? m->room * 2 : 64;
  double *const larger = realloc(m->samples, room * sizeof *larger);
  if (!larger) return false;
  m->samples = larger;
  m->room = room;
  return true;
}

/* One sample. */
static int measure_sample(prof_i_measurement *m) {
  double us = 0;
  if (!reserve_sample(m))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", m->room * 2);
  time_chain(m);
  const int status = time_runs(m, m->exec, &us);
  if (!status) m->samples[m->count++] = us / m->exec;
  return status;
}

/* Checks whether the median is known to the requested precision. */
static int check_median(prof_i_measurement *m) {
  PROF_I_DEFAULT_FP;
  prof_i_series series;
  double low, high;
  m->next_check_count = m->count + m->count / 4;
  if (!prof_i_series_init(&series, m->samples, m->count))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", m->count);
  prof_i_median_interval(&series, &low, &high);
  const double median = prof_i_quantile(series.sorted, series.count, 0.5);
  m->is_converged = (high - low) / 2 <= m->options.precision * median;
  prof_i_series_fini(&series);
  return PROF_OK;
}

/* True if it has the requested number of samples, or took the requested time. */
static bool measure_is_at_limit(prof_i_measurement *m) {
  return m->count >= (size_t)m->options.repeat || is_out_of_time(m);
}

/* True if the median is known, or a limit is reached. Checks the samples less and less often. */
static int measure_is_done(prof_i_measurement *m, bool *is_done_out) {
  int status = PROF_OK;
  *is_done_out = measure_is_at_limit(m);
  if (*is_done_out || m->options.repeat_all) return PROF_OK;
  if (m->count >= m->next_check_count && m->spent_ns - m->sampling_ns >= m->options.least_ns)
    status = check_median(m);
  *is_done_out = m->is_converged;
  return status;
}

/* ---- what they say ---- */

/* The slowest tenth of the readings of the processor's speed, against the best one. */
static double slowdown_of(prof_i_measurement *m) {
  PROF_I_DEFAULT_FP;
  const size_t count = (size_t)m->chain_count;
  if (m->chain_count < CHAINS_MIN) return 1;
  const double usual = prof_i_quantile_among(m->chain_times_us, count, 0.9),
               best = prof_i_quantile_among(m->chain_times_us, count, 0);
  return best > 0 ? usual / best : 1;
}

/* Nothing is known of an allocator that does not report. */
static uint32_t workspace_source_of(const prof_i_measurement *m) {
  if (m->workspace_source != PROF_OP_WORKSPACE_UNKNOWN) return m->workspace_source;
  return prof_i_workspace_is_hooked() ? PROF_OP_WORKSPACE_TOLD : PROF_OP_WORKSPACE_UNKNOWN;
}

/* Makes the result of the samples. */
static int measure_result(prof_i_measurement *m, prof_op_result **result_out) {
  const prof_i_facts facts = {.samples = m->samples,
                              .count = m->count,
                              .exec = m->exec,
                              .warmup = m->warmup_count,
                              .workspace_bytes = m->workspace_bytes,
                              .has_workspace = workspace_source_of(m) != PROF_OP_WORKSPACE_UNKNOWN,
                              .workspace_source = workspace_source_of(m),
                              .workspace_status = m->workspace_status,
                              .looks = m->looks,
                              .is_time_over = m->is_time_over && !m->is_converged,
                              .has_energy = m->has_energy,
                              .energy_uj = m->energy_uj,
                              .timer_us = m->timer_error_us,
                              .slowdown = slowdown_of(m)};
  *result_out = prof_i_result_create(&m->identity, m->op.key, &facts);
  return *result_out
             ? PROF_OK
             : prof_i_fail(PROF_E_NO_MEMORY, "no memory for a result of %zu samples", m->count);
}

/* ---- several in turn ---- */

int prof_i_measure_init_all(prof_i_measurement *all, const prof_op *ops, size_t count,
                            const prof_op_options *options) {
  const unsigned char *at = (const unsigned char *)ops; /* an older header's are shorter */
  int status = PROF_OK;
  for (size_t i = 0; i < count && !status; i++, at += ops->size)
    status = prof_i_measure_init(&all[i], (const prof_op *)(const void *)at, options);
  return status;
}

/* Rounds of one sample each, forwards and backwards in turn. So even drift, and what one operator
   leaves in the caches for the next, affect all alike. An operator at its limit is left out. One
   whose median is known goes on while another one's is not. */
static int sample_all(prof_i_measurement *all, size_t count) {
  uint64_t from_ns = prof_i_port_monotonic_ns();
  for (size_t round = 0;; round++) {
    bool are_done = true;
    for (size_t i = 0; i < count; i++) {
      prof_i_measurement *const m = &all[round % 2 ? count - 1 - i : i];
      bool is_done = false;
      if (m->monitor) {
        prof_i_throttle_monitor_sample(m->monitor);
        from_ns = prof_i_port_monotonic_ns(); /* time of the meters is not charged */
      }
      int status = m->count && measure_is_at_limit(m) ? PROF_OK : measure_sample(m);
      measure_charge(m, &from_ns);
      if (!status) status = measure_is_done(m, &is_done);
      measure_charge(m, &from_ns);
      if (status) return status;
      are_done &= is_done;
    }
    if (are_done) return PROF_OK;
  }
}

/* Only for one operator: the counters are too slow to separate two samples. */
static int sample_with_energy(prof_i_measurement *all, size_t count) {
  prof_i_energy energy = {.count = 0};
  uint64_t uj = 0;
  if (count == 1) prof_i_energy_begin(&energy, PROF_I_POWERCAP);
  const int status = sample_all(all, count);
  if (status || !prof_i_energy_end(&energy, PROF_I_POWERCAP, &uj)) return status;
  all->has_energy = true;
  all->energy_uj = (double)uj / ((double)all->count * all->exec);
  return PROF_OK;
}

/* ---- meters ---- */

/* One for each device: throttling affects all operators that are measured on it. */
static void start_monitors(prof_i_measurement *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t first = 0;
    while (first < i && !prof_i_is_same_device(all[first].op.device, all[i].op.device)) first++;
    all[i].monitor =
        first < i ? all[first].monitor
                  : prof_i_throttle_monitor_start(all[i].op.device, all[i].options.open_meters);
  }
}

static void stop_monitors(prof_i_measurement *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    prof_i_throttle_monitor *const monitor = all[i].monitor;
    if (!monitor) continue;
    const prof_i_throttle_samples looks = prof_i_throttle_monitor_stop(monitor);
    for (size_t j = i; j < count; j++) {
      if (all[j].monitor != monitor) continue;
      all[j].looks = looks;
      all[j].monitor = NULL;
    }
  }
}

static int sample_and_monitor(prof_i_measurement *all, size_t count) {
  start_monitors(all, count);
  const int status = sample_with_energy(all, count);
  stop_monitors(all, count);
  return status;
}

static uint64_t interleave_count; /* any thread */

int prof_i_measure_interleaved(prof_i_measurement *all, size_t count,
                               prof_op_result **results_out) {
  /* allocations here do not belong to an operator that contains these */
  prof_i_workspace aside;
  int status = PROF_OK;
  prof_i_workspace_begin(&aside);
  for (size_t i = 0; i < count && !status; i++) status = measure_prepare(&all[i]);
  if (!status) status = sample_and_monitor(all, count);
  prof_i_workspace_end(&aside);
  for (size_t i = 0; i < count && !status; i++) status = measure_result(&all[i], &results_out[i]);
  const uint64_t interleave_id =
      count > 1 ? __atomic_add_fetch(&interleave_count, 1, __ATOMIC_RELAXED) : 0;
  for (size_t i = 0; i < count && !status; i++) results_out[i]->interleave_id = interleave_id;
  for (size_t i = count; i > 0; i--) measure_fini(&all[i - 1]);
  for (size_t i = 0; i < count && status; i++) {
    prof_op_result_destroy(results_out[i]);
    results_out[i] = NULL;
  }
  return status;
}
