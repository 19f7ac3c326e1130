/* Which clock an OpenCL device's times are of. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <time.h>

/* In the order in which they are taken where several fit: CLOCK_MONOTONIC and its raw kin are one
   until the first adjustment, and then part. */
static const clockid_t host_clocks[PROF_I_OPENCL_HOST_CLOCKS] = {
    CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME};
enum { MONOTONIC = 1, ALL_FIT = (1 << PROF_I_OPENCL_HOST_CLOCKS) - 1 };

static uint64_t read_host_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

prof_i_opencl_host_reading prof_i_opencl_read_host_clocks(void) {
  prof_i_opencl_host_reading look;
  for (int i = 0; i < PROF_I_OPENCL_HOST_CLOCKS; i++) look.ns[i] = read_host_clock(host_clocks[i]);
  return look;
}

void prof_i_opencl_clock_init(prof_i_opencl_clock *clock, bool has_timer, uint64_t resolution_ns) {
  enum { COARSEST_NS = 10000 };
  *clock =
      (prof_i_opencl_clock){.lock = PTHREAD_MUTEX_INITIALIZER,
                            .slack_ns = resolution_ns < COARSEST_NS ? resolution_ns : COARSEST_NS,
                            .matching_clocks = ALL_FIT,
                            .has_timer = has_timer};
}

static bool lies_between(uint64_t ns, uint64_t low, uint64_t high, uint64_t slack) {
  return ns + slack >= low && ns <= high + slack;
}

void prof_i_opencl_clock_add_sample(const prof_i_opencl_sample *sample, uint64_t queued_ns,
                                    uint64_t end_ns) {
  const prof_i_opencl_host_reading now = prof_i_opencl_read_host_clocks();
  prof_i_opencl_clock *const clock = sample->clock;
  uint32_t matching_clocks = 0;
  for (uint32_t i = 0; i < PROF_I_OPENCL_HOST_CLOCKS; i++) {
    const uint64_t before = sample->before.ns[i];
    /* Both: some drivers stamp QUEUED by the host's clock and END by the device's. */
    if (lies_between(queued_ns, before, sample->after.ns[i], clock->slack_ns) &&
        lies_between(end_ns, before, now.ns[i], clock->slack_ns))
      matching_clocks |= 1u << i;
  }
  pthread_mutex_lock(&clock->lock);
  clock->matching_clocks &= matching_clocks;
  clock->sample_count++;
  clock->end_ns = end_ns;
  clock->from_ns = sample->before.ns[MONOTONIC];
  clock->to_ns = now.ns[MONOTONIC];
  pthread_mutex_unlock(&clock->lock);
}

static prof_i_opencl_clock copy_clock(prof_i_opencl_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  const prof_i_opencl_clock copy = *clock;
  pthread_mutex_unlock(&clock->lock);
  return copy;
}

bool prof_i_opencl_clock_has_sample(prof_i_opencl_clock *clock) {
  return copy_clock(clock).sample_count > 0;
}

/* ---- the driver's own reading ---- */

/* The host's time that the driver gave is of a clock we know, and not of this moment: then the
   device's is as old. Of a clock that we do not know nothing can be said. */
static bool is_host_time_stale(const prof_i_opencl_host_reading *before,
                               const prof_i_opencl_host_reading *after, uint64_t host_ns,
                               uint64_t slack_ns) {
  enum { NEAR_NS = 1000000000 };
  bool is_near = false;
  for (int i = 0; i < PROF_I_OPENCL_HOST_CLOCKS; i++) {
    if (lies_between(host_ns, before->ns[i], after->ns[i], slack_ns)) return false;
    is_near |= lies_between(host_ns, before->ns[i], after->ns[i], NEAR_NS);
  }
  return is_near;
}

/* Is that the clock of events? As much time must have passed by it since the last sample as by the
   host's. */
static bool timer_agrees(const prof_i_opencl_clock *clock, uint64_t device_ns, uint64_t before_ns,
                         uint64_t after_ns) {
  enum { SLACK_NS = 1000000, DRIFT = 1000 };
  const int64_t passed = (int64_t)(device_ns - clock->end_ns),
                least = (int64_t)(before_ns - clock->to_ns),
                most = (int64_t)(after_ns - clock->from_ns);
  const int64_t slack = SLACK_NS + most / DRIFT;
  return passed >= least - slack && passed <= most + slack;
}

static bool read_device_timer(const prof_i_opencl_clock *clock, prof_i_cl_device device,
                              prof_backend_pair *out) {
  uint64_t device_ns = 0, host_ns = 0;
  const prof_i_opencl_host_reading before = prof_i_opencl_read_host_clocks();
  out->host_before_ns = read_host_clock(CLOCK_MONOTONIC);
  const int32_t error = prof_i_opencl.clGetDeviceAndHostTimer(device, &device_ns, &host_ns);
  out->host_after_ns = read_host_clock(CLOCK_MONOTONIC);
  out->device_ns = device_ns;
  if (error != 0 || device_ns == 0) return false;
  const prof_i_opencl_host_reading after = prof_i_opencl_read_host_clocks();
  return !is_host_time_stale(&before, &after, host_ns, clock->slack_ns) &&
         timer_agrees(clock, device_ns, out->host_before_ns, out->host_after_ns);
}

static void disable_timer(prof_i_opencl_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  clock->has_timer = false;
  pthread_mutex_unlock(&clock->lock);
}

int prof_i_opencl_clock_read(prof_i_opencl_clock *clock, prof_i_cl_device device,
                             prof_backend_pair *out) {
  const prof_i_opencl_clock now = copy_clock(clock);
  if (now.sample_count == 0)
    return prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED,
                                    "no event of the device is past yet: its clock is not known");
  if (now.has_timer) {
    if (read_device_timer(&now, device, out)) return PROF_BACKEND_OK;
    disable_timer(clock);
  }
  if (!now.matching_clocks)
    return prof_i_backend_fail_text(
        PROF_BACKEND_UNSUPPORTED,
        "the driver does not read its device's clock, and no clock of the host is the same");
  out->host_before_ns = read_host_clock(CLOCK_MONOTONIC);
  out->device_ns = read_host_clock(host_clocks[__builtin_ctz(now.matching_clocks)]);
  out->host_after_ns = read_host_clock(CLOCK_MONOTONIC);
  return PROF_BACKEND_OK;
}
