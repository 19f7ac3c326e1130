/* Several measurements in turn. */
#include "internal.h"

#include "../base/port.h"
#include "../sampler/energy.h"

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
      int status = m->count && prof_i_measure_is_at_limit(m) ? PROF_OK : prof_i_measure_sample(m);
      prof_i_measure_charge(m, &from_ns);
      if (!status) status = prof_i_measure_is_done(m, &is_done);
      prof_i_measure_charge(m, &from_ns);
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

static bool is_same_device(const prof_i_measurement *a, const prof_i_measurement *b) {
  return a->op.device.type == b->op.device.type && a->op.device.index == b->op.device.index;
}

/* One for each device: throttling affects all operators that are measured on it. */
static void start_monitors(prof_i_measurement *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t first = 0;
    while (first < i && !is_same_device(&all[first], &all[i])) first++;
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
  for (size_t i = 0; i < count && !status; i++) status = prof_i_measure_prepare(&all[i]);
  if (!status) status = sample_and_monitor(all, count);
  prof_i_workspace_end(&aside);
  for (size_t i = 0; i < count && !status; i++)
    status = prof_i_measure_result(&all[i], &results_out[i]);
  const uint64_t interleave_id =
      count > 1 ? __atomic_add_fetch(&interleave_count, 1, __ATOMIC_RELAXED) : 0;
  for (size_t i = 0; i < count && !status; i++) results_out[i]->interleave_id = interleave_id;
  for (size_t i = count; i > 0; i--) prof_i_measure_fini(&all[i - 1]);
  for (size_t i = 0; i < count && status; i++) {
    prof_op_result_destroy(results_out[i]);
    results_out[i] = NULL;
  }
  return status;
}
