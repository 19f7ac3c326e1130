/* A device's meters while an operator is measured on it: its clock, and what throttles it. A thread
   of the measurement, "prof-op-meters", reads them. It does so only while the measuring thread
   waits between two samples. That thread waits for a vendor's call for one second, ten in all, and
   then goes on without.
   A look is requested and answered by two words; the data of the answer is written between them. */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../base/process.h"
#include "../device/registry.h"

enum { METRIC_CLOCK, METRIC_THROTTLE, METRIC_KINDS, METRICS_TRIED_MAX = 4096 };
static const uint64_t look_every_ns = 20000000, patience_ns = 1000000000 /* with a vendor's call */,
                      longest_ns = 10000000000 /* with all looks */, sleep_ns = 1000000000,
                      nap_ns = 50000000;
static const uint32_t throttle_reasons =
    PROF_BACKEND_THROTTLE_POWER | PROF_BACKEND_THROTTLE_HARDWARE | PROF_BACKEND_THROTTLE_HEAT |
    PROF_BACKEND_THROTTLE_HARDWARE_HEAT | PROF_BACKEND_THROTTLE_POWER_SUPPLY;

/* A device's meters of these two kinds, as its back end lists them. Finding them may take many
   calls, so it is done once. */
typedef struct throttle_meters {
  prof_i_backend *backend;
  uint32_t device, count;
  uint32_t kinds[METRIC_KINDS];
  prof_backend_metric metrics[METRIC_KINDS];
  struct throttle_meters *next;
} throttle_meters;

static struct {
  throttle_meters *all; /* stays. Any thread pushes: release; read: acquire */
} throttle_meters_cache;

struct prof_i_throttle_monitor {
  prof_device device;
  bool may_open;
  /* numbers of looks; release, acquire: the thread that raises one has written its data before */
  uint32_t request_count, answer_count;
  uint32_t is_stopping; /* release */
  /* since when the thread is at a vendor's meters, or waits for another one that is; 0: it is not,
     and may just have no processor. Relaxed */
  uint64_t call_began_ns;
  /* the one that measures, and the thread: the last one frees it. Acquire, release */
  uint32_t reference_count;
  /* The answer. */
  bool has_meters, is_known[METRIC_KINDS];
  double values[METRIC_KINDS];
  /* Of the one that measures. */
  prof_i_throttle_samples looks;
  uint64_t sampled_ns, waited_ns;
  bool is_given_up;
};

static void release_monitor(prof_i_throttle_monitor *monitor) {
  if (__atomic_sub_fetch(&monitor->reference_count, 1, __ATOMIC_ACQ_REL) == 0) free(monitor);
}

/* ---- whose meters ---- */

static bool backend_has_meters(const prof_i_backend *backend, int32_t device_type) {
  return backend->table.device_type == device_type && backend->table.metric &&
         backend->table.sample;
}

/* A vendor's library that the program has not opened is opened only on request. */
static bool may_read_meters(const prof_i_backend *backend, bool may_open) {
  if (prof_i_registry_is_open(backend)) return backend->has_meter;
  if (prof_i_registry_is_unusable(backend) || backend->table.opens_late) return false;
  return may_open ||
         (!backend->table.event_record && backend->table.in_use && backend->table.in_use());
}

static bool has_readable_meters(prof_device device, bool may_open) {
  const prof_i_backend *backend;
  if (may_open) prof_i_registry_prepare();
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend_has_meters(backend, device.type) && may_read_meters(backend, may_open)) return true;
  return false;
}

static bool are_zero_bytes(const void *bytes, size_t count) {
  static const uint8_t zeros[16];
  return memcmp(bytes, zeros, count) == 0;
}

static bool has_pci_address(const prof_backend_device *about) {
  return about->pci_domain || about->pci_bus || about->pci_device;
}

static bool is_same_hardware(const prof_backend_device *a, const prof_backend_device *b) {
  if (!are_zero_bytes(a->uuid, sizeof a->uuid) && !are_zero_bytes(b->uuid, sizeof b->uuid))
    return memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
  return has_pci_address(a) && has_pci_address(b) && a->pci_domain == b->pci_domain &&
         a->pci_bus == b->pci_bus && a->pci_device == b->pci_device;
}

static const prof_backend_device *find_device_info(prof_device device) {
  const prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.device_type == device.type && backend->table.event_record &&
        prof_i_registry_is_open(backend) && (uint32_t)device.index < backend->device_count)
      return &backend->devices[device.index];
  return NULL;
}

/* Its number there, because another back end may count in another order. UINT32_MAX: not listed
   there. The same number if nothing identifies the devices. */
static uint32_t device_number_in(const prof_i_backend *backend, prof_device device) {
  const prof_backend_device *const about =
      backend->table.event_record ? NULL : find_device_info(device);
  bool is_told = false;
  for (uint32_t i = 0; about && i < backend->device_count; i++) {
    const prof_backend_device *const other = &backend->devices[i];
    if (is_same_hardware(about, other)) return i;
    is_told |= has_pci_address(other) || !are_zero_bytes(other->uuid, sizeof other->uuid);
  }
  return is_told && (has_pci_address(about) || !are_zero_bytes(about->uuid, sizeof about->uuid))
             ? UINT32_MAX
             : (uint32_t)device.index;
}

static bool is_metric_kind(const prof_backend_metric *metric, uint32_t kind) {
  static const char *const names[] = {"clock", "throttle reasons"}, *const units[] = {"Hz", "bits"};
  return !metric->is_total && strncmp(metric->name, names[kind], sizeof metric->name) == 0 &&
         strncmp(metric->unit, units[kind], sizeof metric->unit) == 0;
}

/* Its meters are this thread's. */
static void find_metrics(throttle_meters *it) {
  for (uint32_t number = 0; number < METRICS_TRIED_MAX && it->count < METRIC_KINDS; number++) {
    prof_backend_metric metric = {.size = sizeof metric};
    if (it->backend->table.metric(it->backend->self, number, &metric) != PROF_BACKEND_OK) return;
    for (uint32_t kind = 0; kind < METRIC_KINDS; kind++) {
      if (metric.device != it->device || !is_metric_kind(&metric, kind)) continue;
      it->kinds[it->count] = kind;
      it->metrics[it->count++] = metric;
    }
  }
}

static const throttle_meters *find_device_meters(prof_i_backend *backend, uint32_t device) {
  for (const throttle_meters *f = __atomic_load_n(&throttle_meters_cache.all, __ATOMIC_ACQUIRE); f;
       f = f->next)
    if (f->backend == backend && f->device == device) return f;
  throttle_meters *const it = calloc(1, sizeof *it);
  if (!it) return NULL;
  it->backend = backend;
  it->device = device;
  prof_i_registry_acquire_meters(backend);
  find_metrics(it);
  prof_i_registry_release_meters(backend);
  if (!it->count) { /* perhaps later */
    free(it);
    return NULL;
  }
  PROF_I_PUSH(&throttle_meters_cache.all, it);
  return it;
}

static const throttle_meters *find_monitor_meters(const prof_i_throttle_monitor *monitor) {
  prof_i_backend *backend;
  const throttle_meters *it = NULL;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL && !it; i++) {
    if (!backend_has_meters(backend, monitor->device.type) ||
        !may_read_meters(backend, monitor->may_open) || !prof_i_registry_open_meters(backend))
      continue;
    const uint32_t number = device_number_in(backend, monitor->device);
    if (number != UINT32_MAX) it = find_device_meters(backend, number);
  }
  return it;
}

/* ---- the thread ---- */

static void answer_request(prof_i_throttle_monitor *monitor, const throttle_meters *it) {
  int64_t values[METRIC_KINDS] = {0};
  uint64_t known = 0;
  for (uint32_t kind = 0; kind < METRIC_KINDS; kind++) monitor->is_known[kind] = false;
  monitor->has_meters = it != NULL;
  if (!it) return;
  prof_i_registry_acquire_meters(it->backend);
  const int result =
      it->backend->table.sample(it->backend->self, it->metrics, it->count, values, &known);
  prof_i_registry_release_meters(it->backend);
  for (uint32_t i = 0; i < it->count && result == PROF_BACKEND_OK; i++) {
    monitor->is_known[it->kinds[i]] = known >> i & 1;
    monitor->values[it->kinds[i]] = (double)values[i] * it->metrics[i].scale;
  }
}

static void set_call_time(prof_i_throttle_monitor *monitor, bool is_at_it) {
  __atomic_store_n(&monitor->call_began_ns, is_at_it ? prof_i_port_monotonic_ns() : 0,
                   __ATOMIC_RELAXED);
}

static void *monitor_main(void *argument) {
  prof_i_throttle_monitor *const monitor = argument;
  prof_i_port_thread_begin("prof-op-meters");
  set_call_time(monitor, true);
  const throttle_meters *const it = find_monitor_meters(monitor);
  set_call_time(monitor, false);
  for (uint32_t seen = 0;;) {
    const uint32_t request_count = __atomic_load_n(&monitor->request_count, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&monitor->is_stopping, __ATOMIC_ACQUIRE)) break;
    if (request_count == seen) {
      prof_i_port_wait(&monitor->request_count, seen, sleep_ns);
      continue;
    }
    set_call_time(monitor, true);
    answer_request(monitor, it);
    set_call_time(monitor, false);
    seen = request_count;
    __atomic_store_n(&monitor->answer_count, seen, __ATOMIC_RELEASE);
    prof_i_port_wake(&monitor->answer_count);
  }
  release_monitor(monitor);
  return NULL;
}

static bool make_monitor_thread(prof_i_throttle_monitor *monitor) {
  pthread_t thread;
  const int error = prof_i_port_thread_create(&thread, 0, monitor_main, monitor);
  if (error == 0) pthread_detach(thread);
  return error == 0;
}

/* ---- the one that measures ---- */

prof_i_throttle_monitor *prof_i_throttle_monitor_start(prof_device device, bool may_open) {
  if (device.type == PROF_DEVICE_CPU || device.index < 0 || !has_readable_meters(device, may_open))
    return NULL;
  prof_i_throttle_monitor *const monitor = calloc(1, sizeof *monitor);
  if (!monitor) return NULL;
  monitor->device = device;
  monitor->may_open = may_open;
  monitor->reference_count = 2;
  if (make_monitor_thread(monitor)) return monitor;
  free(monitor);
  return NULL;
}

/* A vendor hangs, or it has been too long in all. */
static bool is_wait_too_long(const prof_i_throttle_monitor *monitor, uint64_t begun_ns) {
  const uint64_t call_began_ns = __atomic_load_n(&monitor->call_began_ns, __ATOMIC_RELAXED);
  return (call_began_ns && prof_i_ns_since(call_began_ns) >= patience_ns) ||
         monitor->waited_ns + prof_i_ns_since(begun_ns) >= longest_ns;
}

/* After a meter stops answering, nothing more is known. Earlier findings stay. */
static bool await_answer(prof_i_throttle_monitor *monitor, uint32_t number) {
  const uint64_t begun_ns = prof_i_port_monotonic_ns();
  uint32_t answer_count;
  while ((answer_count = __atomic_load_n(&monitor->answer_count, __ATOMIC_ACQUIRE)) != number &&
         !is_wait_too_long(monitor, begun_ns))
    prof_i_port_wait(&monitor->answer_count, answer_count, nap_ns);
  monitor->waited_ns += prof_i_ns_since(begun_ns);
  return answer_count == number;
}

static void add_throttle_sample(prof_i_throttle_monitor *monitor) {
  prof_i_throttle_samples *const looks = &monitor->looks;
  const double hz = monitor->values[METRIC_CLOCK], bits = monitor->values[METRIC_THROTTLE];
  if (monitor->is_known[METRIC_THROTTLE] && bits >= 0 && bits < 9e15)
    looks->throttle |= (uint32_t)((uint64_t)bits & throttle_reasons);
  if (monitor->is_known[METRIC_CLOCK] && hz > 0 &&
      (!(looks->clock_low_hz > 0) || hz < looks->clock_low_hz))
    looks->clock_low_hz = hz;
  if (monitor->is_known[METRIC_CLOCK] && hz > looks->clock_high_hz) looks->clock_high_hz = hz;
  looks->count += monitor->is_known[METRIC_THROTTLE] || monitor->is_known[METRIC_CLOCK];
}

static void request_sample(prof_i_throttle_monitor *monitor) {
  if (monitor->is_given_up) return;
  const uint32_t number = __atomic_add_fetch(&monitor->request_count, 1, __ATOMIC_RELEASE);
  prof_i_port_wake(&monitor->request_count);
  const bool is_answered = await_answer(monitor, number);
  monitor->is_given_up = !is_answered || monitor->waited_ns >= longest_ns || !monitor->has_meters;
  if (!is_answered) return;
  add_throttle_sample(monitor);
  monitor->sampled_ns = prof_i_port_monotonic_ns();
}

void prof_i_throttle_monitor_sample(prof_i_throttle_monitor *monitor) {
  if (monitor && (!monitor->sampled_ns || prof_i_ns_since(monitor->sampled_ns) >= look_every_ns))
    request_sample(monitor);
}

prof_i_throttle_samples prof_i_throttle_monitor_stop(prof_i_throttle_monitor *monitor) {
  if (!monitor) return (prof_i_throttle_samples){.count = 0};
  request_sample(monitor);
  const prof_i_throttle_samples looks = monitor->looks;
  __atomic_store_n(&monitor->is_stopping, 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&monitor->request_count, 1, __ATOMIC_RELEASE);
  prof_i_port_wake(&monitor->request_count);
  release_monitor(monitor);
  return looks;
}
