/* See watch.h. A look is asked for and answered by two words; what is answered lies between
   them. */
#define _GNU_SOURCE
#include "watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../device/registry.h"

enum { CLOCK, THROTTLE, KINDS, METERS_ASKED = 4096 };
static const uint64_t look_every_ns = 20000000, patience_ns = 1000000000 /* with a vendor's call */,
                      longest_ns = 10000000000 /* with all looks */, sleep_ns = 1000000000,
                      nap_ns = 50000000;
static const uint32_t held_down = PROF_BACKEND_THROTTLE_POWER | PROF_BACKEND_THROTTLE_HARDWARE |
                                  PROF_BACKEND_THROTTLE_HEAT | PROF_BACKEND_THROTTLE_HARDWARE_HEAT |
                                  PROF_BACKEND_THROTTLE_POWER_SUPPLY;

/* A device's meters of these two kinds, as its back end has told them: to find them may take it
   many calls, so that it is asked once. */
typedef struct found {
  prof_i_back_end *end;
  uint32_t device, count;
  uint32_t kinds[KINDS];
  prof_backend_metric metrics[KINDS];
  struct found *next;
} found;

static struct { found *all; /* stays. Any thread pushes: release; read: acquire */ } own;

struct prof_i_watch {
  prof_device device;
  bool may_open;
  /* looks; release, acquire: who raises one has written what goes with it */
  uint32_t asked, answered;
  uint32_t is_over; /* release */
  /* since when the thread is at a vendor's meters, or waits for another one that is; 0: it is not,
     and may just have no processor. Relaxed */
  uint64_t called_ns;
  /* the one that measures, and the thread: the last one frees it. Acquire, release */
  uint32_t holders;
  /* The answer. */
  bool has_meters, is_known[KINDS];
  double values[KINDS];
  /* Of the one that measures. */
  prof_i_looks looks;
  uint64_t looked_ns, waited_ns;
  bool is_given_up;
};

static void drop(prof_i_watch *watch) {
  if (__atomic_sub_fetch(&watch->holders, 1, __ATOMIC_ACQ_REL) == 0) free(watch);
}

/* ---- whose meters ---- */

static bool has_meters(const prof_i_back_end *end, int32_t device_type) {
  return end->table.device_type == device_type && end->table.metric && end->table.sample;
}

/* No vendor's library is opened that the program has not, unless it is asked for. */
static bool may_read(const prof_i_back_end *end, bool may_open) {
  if (prof_i_registry_is_open(end)) return end->has_meter;
  if (prof_i_registry_is_shut(end) || end->table.opens_late) return false;
  return may_open || (!end->table.event_record && end->table.in_use && end->table.in_use());
}

static bool has_any(prof_device device, bool may_open) {
  const prof_i_back_end *end;
  if (may_open) prof_i_registry_prepare();
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (has_meters(end, device.type) && may_read(end, may_open)) return true;
  return false;
}

static bool is_none(const void *bytes, size_t count) {
  static const uint8_t zeros[16];
  return memcmp(bytes, zeros, count) == 0;
}

static bool has_place(const prof_backend_device *about) {
  return about->pci_domain || about->pci_bus || about->pci_device;
}

static bool is_same(const prof_backend_device *a, const prof_backend_device *b) {
  if (!is_none(a->uuid, sizeof a->uuid) && !is_none(b->uuid, sizeof b->uuid))
    return memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
  return has_place(a) && has_place(b) && a->pci_domain == b->pci_domain &&
         a->pci_bus == b->pci_bus && a->pci_device == b->pci_device;
}

static const prof_backend_device *describe(prof_device device) {
  const prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.device_type == device.type && end->table.event_record &&
        prof_i_registry_is_open(end) && (uint32_t)device.index < end->device_count)
      return &end->devices[device.index];
  return NULL;
}

/* Its number there, which another back end may count in another order; UINT32_MAX: it is none of
   those. Where nothing is told by which they could be known, the same. */
static uint32_t number_in(const prof_i_back_end *end, prof_device device) {
  const prof_backend_device *const about = end->table.event_record ? NULL : describe(device);
  bool is_told = false;
  for (uint32_t i = 0; about && i < end->device_count; i++) {
    const prof_backend_device *const other = &end->devices[i];
    if (is_same(about, other)) return i;
    is_told |= has_place(other) || !is_none(other->uuid, sizeof other->uuid);
  }
  return is_told && (has_place(about) || !is_none(about->uuid, sizeof about->uuid))
             ? UINT32_MAX
             : (uint32_t)device.index;
}

static bool is_kind(const prof_backend_metric *metric, uint32_t kind) {
  static const char *const names[] = {"clock", "throttle reasons"}, *const units[] = {"Hz", "bits"};
  return !metric->is_total && strncmp(metric->name, names[kind], sizeof metric->name) == 0 &&
         strncmp(metric->unit, units[kind], sizeof metric->unit) == 0;
}

/* Its meters are this thread's. */
static void ask(found *it) {
  for (uint32_t number = 0; number < METERS_ASKED && it->count < KINDS; number++) {
    prof_backend_metric metric = {.size = sizeof metric};
    if (it->end->table.metric(it->end->self, number, &metric) != PROF_BACKEND_OK) return;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
      if (metric.device != it->device || !is_kind(&metric, kind)) continue;
      it->kinds[it->count] = kind;
      it->metrics[it->count++] = metric;
    }
  }
}

static const found *find_in(prof_i_back_end *end, uint32_t device) {
  for (const found *f = __atomic_load_n(&own.all, __ATOMIC_ACQUIRE); f; f = f->next)
    if (f->end == end && f->device == device) return f;
  found *const it = calloc(1, sizeof *it);
  if (!it) return NULL;
  it->end = end;
  it->device = device;
  prof_i_registry_have_meters(end);
  ask(it);
  prof_i_registry_let_meters_go(end);
  if (!it->count) { /* perhaps later */
    free(it);
    return NULL;
  }
  it->next = __atomic_load_n(&own.all, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&own.all, &it->next, it, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return it;
}

static const found *find(const prof_i_watch *watch) {
  prof_i_back_end *end;
  const found *it = NULL;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL && !it; i++) {
    if (!has_meters(end, watch->device.type) || !may_read(end, watch->may_open) ||
        !prof_i_registry_open_meters(end))
      continue;
    const uint32_t number = number_in(end, watch->device);
    if (number != UINT32_MAX) it = find_in(end, number);
  }
  return it;
}

/* ---- the thread ---- */

static void answer(prof_i_watch *watch, const found *it) {
  int64_t values[KINDS] = {0};
  uint64_t known = 0;
  for (uint32_t kind = 0; kind < KINDS; kind++) watch->is_known[kind] = false;
  watch->has_meters = it != NULL;
  if (!it) return;
  prof_i_registry_have_meters(it->end);
  const int result = it->end->table.sample(it->end->self, it->metrics, it->count, values, &known);
  prof_i_registry_let_meters_go(it->end);
  for (uint32_t i = 0; i < it->count && result == PROF_BACKEND_OK; i++) {
    watch->is_known[it->kinds[i]] = known >> i & 1;
    watch->values[it->kinds[i]] = (double)values[i] * it->metrics[i].scale;
  }
}

static void set_called(prof_i_watch *watch, bool is_at_it) {
  __atomic_store_n(&watch->called_ns, is_at_it ? prof_i_port_monotonic_ns() : 0, __ATOMIC_RELAXED);
}

static void *work(void *the_watch) {
  prof_i_watch *const watch = the_watch;
  prof_i_port_thread_begin("prof-op-meters");
  set_called(watch, true);
  const found *const it = find(watch);
  set_called(watch, false);
  for (uint32_t seen = 0;;) {
    const uint32_t asked = __atomic_load_n(&watch->asked, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&watch->is_over, __ATOMIC_ACQUIRE)) break;
    if (asked == seen) {
      prof_i_port_wait(&watch->asked, seen, sleep_ns);
      continue;
    }
    set_called(watch, true);
    answer(watch, it);
    set_called(watch, false);
    seen = asked;
    __atomic_store_n(&watch->answered, seen, __ATOMIC_RELEASE);
    prof_i_port_wake(&watch->answered);
  }
  drop(watch);
  return NULL;
}

static bool make_thread(prof_i_watch *watch) {
  pthread_t thread;
  const int error = prof_i_port_thread_create(&thread, 0, work, watch);
  if (error == 0) pthread_detach(thread);
  return error == 0;
}

/* ---- the one that measures ---- */

prof_i_watch *prof_i_watch_begin(prof_device device, bool may_open) {
  if (device.type == PROF_DEVICE_CPU || device.index < 0 || !has_any(device, may_open)) return NULL;
  prof_i_watch *const watch = calloc(1, sizeof *watch);
  if (!watch) return NULL;
  watch->device = device;
  watch->may_open = may_open;
  watch->holders = 2;
  if (make_thread(watch)) return watch;
  free(watch);
  return NULL;
}

/* A vendor hangs, or it has been too long in all. */
static bool is_too_long(const prof_i_watch *watch, uint64_t begun_ns) {
  const uint64_t called_ns = __atomic_load_n(&watch->called_ns, __ATOMIC_RELAXED);
  return (called_ns && prof_i_ns_since(called_ns) >= patience_ns) ||
         watch->waited_ns + prof_i_ns_since(begun_ns) >= longest_ns;
}

/* Of what does not answer any more nothing is known from here on: what was seen before stands. */
static bool await(prof_i_watch *watch, uint32_t number) {
  const uint64_t begun_ns = prof_i_port_monotonic_ns();
  uint32_t answered;
  while ((answered = __atomic_load_n(&watch->answered, __ATOMIC_ACQUIRE)) != number &&
         !is_too_long(watch, begun_ns))
    prof_i_port_wait(&watch->answered, answered, nap_ns);
  watch->waited_ns += prof_i_ns_since(begun_ns);
  return answered == number;
}

static void add(prof_i_watch *watch) {
  prof_i_looks *const looks = &watch->looks;
  const double hz = watch->values[CLOCK], bits = watch->values[THROTTLE];
  if (watch->is_known[THROTTLE] && bits >= 0 && bits < 9e15)
    looks->throttle |= (uint32_t)((uint64_t)bits & held_down);
  if (watch->is_known[CLOCK] && hz > 0 && (!(looks->clock_low_hz > 0) || hz < looks->clock_low_hz))
    looks->clock_low_hz = hz;
  if (watch->is_known[CLOCK] && hz > looks->clock_high_hz) looks->clock_high_hz = hz;
  looks->count += watch->is_known[THROTTLE] || watch->is_known[CLOCK];
}

static void look(prof_i_watch *watch) {
  if (watch->is_given_up) return;
  const uint32_t number = __atomic_add_fetch(&watch->asked, 1, __ATOMIC_RELEASE);
  prof_i_port_wake(&watch->asked);
  const bool is_answered = await(watch, number);
  watch->is_given_up = !is_answered || watch->waited_ns >= longest_ns || !watch->has_meters;
  if (!is_answered) return;
  add(watch);
  watch->looked_ns = prof_i_port_monotonic_ns();
}

void prof_i_watch_look(prof_i_watch *watch) {
  if (watch && (!watch->looked_ns || prof_i_ns_since(watch->looked_ns) >= look_every_ns))
    look(watch);
}

prof_i_looks prof_i_watch_end(prof_i_watch *watch) {
  if (!watch) return (prof_i_looks){.count = 0};
  look(watch);
  const prof_i_looks looks = watch->looks;
  __atomic_store_n(&watch->is_over, 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&watch->asked, 1, __ATOMIC_RELEASE);
  prof_i_port_wake(&watch->asked);
  drop(watch);
  return looks;
}
