/* Device memory of an operator, from two sources: what its own allocator requests, and what a
   vendor's library hands out. See <prof/op.h>. */
#include "internal.h"

#include <prof/op.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../device/internal.h"
#include "../format/addr_map.h"

/* ---- requests of an operator's allocator ---- */

static __thread prof_i_workspace *innermost_workspace __attribute__((tls_model("initial-exec")));
static bool
    workspace_is_hooked; /* any thread, relaxed: only ever set, and nothing else hangs on it */

void prof_i_workspace_begin(prof_i_workspace *workspace) {
  *workspace = (prof_i_workspace){.outer = innermost_workspace};
  innermost_workspace = workspace;
}

void prof_i_workspace_begin_part(prof_i_workspace *part, prof_i_workspace *whole) {
  *part = (prof_i_workspace){.outer = innermost_workspace, .whole = whole};
  innermost_workspace = part;
}

void prof_i_workspace_end(prof_i_workspace *workspace) { innermost_workspace = workspace->outer; }

static uint64_t saturating_sum(uint64_t a, uint64_t b) { return a + b < b ? UINT64_MAX : a + b; }
static uint64_t saturating_difference(uint64_t a, uint64_t b) { return a - (b < a ? b : a); }

static void alloc_in_whole(prof_i_workspace *w, uint64_t bytes) {
  uint64_t now = __atomic_load_n(&w->now_bytes, __ATOMIC_RELAXED),
           peak = __atomic_load_n(&w->peak_bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&w->was_reported, true, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&w->now_bytes, &now, saturating_sum(now, bytes), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  now = saturating_sum(now, bytes);
  while (now > peak && !__atomic_compare_exchange_n(&w->peak_bytes, &peak, now, true,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

static void free_in_whole(prof_i_workspace *w, uint64_t bytes) {
  uint64_t now = __atomic_load_n(&w->now_bytes, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&w->now_bytes, &now, saturating_difference(now, bytes), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

bool prof_i_workspace_is_hooked(void) {
  return __atomic_load_n(&workspace_is_hooked, __ATOMIC_RELAXED);
}

void prof_op_workspace_alloc(uint64_t bytes) {
  prof_i_workspace *const w = innermost_workspace;
  if (!prof_i_workspace_is_hooked()) __atomic_store_n(&workspace_is_hooked, true, __ATOMIC_RELAXED);
  if (!w) return;
  w->was_reported = true;
  w->now_bytes = saturating_sum(w->now_bytes, bytes);
  if (w->now_bytes > w->peak_bytes) w->peak_bytes = w->now_bytes;
  if (w->whole) alloc_in_whole(w->whole, bytes);
}

void prof_op_workspace_free(uint64_t bytes) {
  prof_i_workspace *const w = innermost_workspace;
  if (!w) return;
  /* of before the run: not the run's */
  const uint64_t own_bytes = bytes < w->now_bytes ? bytes : w->now_bytes;
  w->now_bytes -= own_bytes;
  if (w->whole) free_in_whole(w->whole, own_bytes);
}

/* ---- memory that a vendor's library hands out ---- */

enum { EVENTS_MAX = 1 << 16 }; /* of one run: 2.5 MiB of address space */

typedef struct run_event {
  uint64_t ns, address, bytes;
  uint32_t number; /* as they came: the order of those of one moment */
  bool is_release;
} run_event;

struct prof_i_op_memory {
  prof_i_backend *backend;
  uint32_t device;
  uint32_t count;
  uint64_t lost;
  run_event all[EVENTS_MAX];
};

/* One at a time in the process: a drained record identifies its measurement only by its thread. A
   pointer for each thread would use scarce static thread-local storage. */
static struct {
  uint32_t is_claimed; /* acquire, release: by one measurement, from its begin to its end */
  /* the thread that drains, which writes it. A thread that reads its own id is that one. Relaxed */
  uintptr_t thread_id;
  prof_i_op_memory *drained; /* that thread's */
} drain_owner;

static uintptr_t this_thread_id(void) { return (uintptr_t)pthread_self(); }

static bool try_claim_drain(void) {
  uint32_t is_claimed = 0;
  return __atomic_compare_exchange_n(&drain_owner.is_claimed, &is_claimed, 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static void release_drain(void) { __atomic_store_n(&drain_owner.is_claimed, 0, __ATOMIC_RELEASE); }

/* ---- what comes ---- */

static bool is_device_memory(const prof_i_op_memory *memory, const prof_backend_memory *it) {
  return it->record.kind == PROF_BACKEND_MEMORY && it->place != PROF_BACKEND_MEMORY_PINNED &&
         it->record.device == memory->device;
}

static void add_run_event(prof_i_op_memory *memory, const prof_backend_memory *it) {
  if (!is_device_memory(memory, it)) return;
  if (memory->count == EVENTS_MAX || (it->record.flags & PROF_BACKEND_NO_TIMES) ||
      (!it->is_release && it->bytes >= UINT64_MAX - it->address)) {
    memory->lost++;
    return;
  }
  memory->all[memory->count] =
      (run_event){it->record.start, it->address, it->bytes, memory->count, it->is_release != 0};
  memory->count++;
}

/* What this thread drains is its own. */
static bool take_drained(const void *records, size_t bytes) {
  const char *at = records;
  if (__atomic_load_n(&drain_owner.thread_id, __ATOMIC_RELAXED) != this_thread_id()) return false;
  prof_i_op_memory *const drained = drain_owner.drained;
  while (bytes >= sizeof(prof_backend_record)) {
    prof_backend_memory it = {.bytes = 0};
    memcpy(&it, at, bytes < sizeof it ? bytes : sizeof it);
    const uint16_t size = it.record.size;
    if (size < sizeof it.record || size > bytes) break;
    if (size < sizeof it && it.record.kind == PROF_BACKEND_MEMORY)
      drained->lost++;
    else
      add_run_event(drained, &it);
    at += size;
    bytes -= size;
  }
  if (bytes > 0) drained->lost++;
  return true;
}

static void drain_memory(prof_i_op_memory *memory) {
  uint64_t lost = 0;
  drain_owner.drained = memory;
  prof_i_host_set_first_sink(take_drained);
  __atomic_store_n(&drain_owner.thread_id, this_thread_id(), __ATOMIC_RELAXED);
  memory->backend->table.drain(memory->backend->self, PROF_BACKEND_FLUSH, &lost);
  __atomic_store_n(&drain_owner.thread_id, 0, __ATOMIC_RELAXED);
  prof_i_host_set_first_sink(NULL);
  memory->lost += lost;
}

/* ---- adding it up ---- */

static int compare_run_events(const void *a, const void *b) {
  const run_event *const first = a, *const second = b;
  if (first->ns != second->ns) return first->ns < second->ns ? -1 : 1;
  return first->number < second->number ? -1 : first->number > second->number;
}

static void free_live_range(prof_i_addr_map *live, uint32_t at, uint64_t *now_bytes) {
  *now_bytes -= live->nodes[at].bytes;
  prof_i_addr_map_remove(live, live->nodes[at].address);
}

/* A release of memory from before the measurement is ignored. If a new block comes at the place of
   another one, a report was missed. */
static uint64_t find_peak_bytes(prof_i_op_memory *memory, prof_i_addr_map *live) {
  uint64_t now_bytes = 0, peak_bytes = 0;
  qsort(memory->all, memory->count, sizeof *memory->all, compare_run_events);
  for (uint32_t i = 0, at; i < memory->count; i++) {
    const run_event *const it = &memory->all[i];
    if (it->is_release && (at = prof_i_addr_map_find(live, it->address)) != 0)
      free_live_range(live, at, &now_bytes);
    if (it->is_release || !it->bytes) continue;
    while ((at = prof_i_addr_map_find_overlap(live, it->address, it->bytes)) != 0)
      free_live_range(live, at, &now_bytes);
    prof_i_addr_map_insert(live, it->address, it->bytes, 0);
    now_bytes += it->bytes;
    if (now_bytes > peak_bytes) peak_bytes = now_bytes;
  }
  return peak_bytes;
}

static int compute_peak(prof_i_op_memory *memory, uint64_t *peak_bytes_out) {
  if (memory->lost)
    return prof_i_fail(PROF_E_UNSUPPORTED, "%s: %llu of the records of memory were lost",
                       memory->backend->table.name, (unsigned long long)memory->lost);
  prof_i_addr_map live = {.nodes = malloc((memory->count + 1) * sizeof *live.nodes),
                          .room = memory->count + 1};
  if (!live.nodes) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u pieces", memory->count);
  *peak_bytes_out = find_peak_bytes(memory, &live);
  free(live.nodes);
  return PROF_OK;
}

/* ---- begin and end ---- */

/* A library that the program has not loaded so far stays where it is. */
static prof_i_backend *find_memory_backend(int32_t device_type) {
  prof_i_backend *backend;
  prof_i_registry_prepare();
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++) {
    const prof_backend *const table = &backend->table;
    if (table->device_type != device_type || !table->records_memory || !table->start ||
        !table->stop || !table->drain)
      continue;
    if ((!table->in_use || table->in_use()) && prof_i_registry_open(device_type) == backend)
      return backend;
  }
  return NULL;
}

static int status_of_result(int result) {
  switch (result) {
    case PROF_BACKEND_BUSY:
      return PROF_E_BUSY;
    case PROF_BACKEND_PERMISSION:
      return PROF_E_PERMISSION;
    case PROF_BACKEND_NO_MEMORY:
      return PROF_E_NO_MEMORY;
    default:
      return PROF_E_UNSUPPORTED;
  }
}

/* It and its tracing are the caller's. */
static int acquire_backend(const prof_i_backend *backend) {
  if (!try_claim_drain())
    return prof_i_fail(PROF_E_BUSY,
                       "%s: what its library hands out is being told to another measurement",
                       backend->table.name);
  if (prof_i_activity_acquire(backend)) return PROF_OK;
  release_drain();
  return prof_i_fail(
      PROF_E_BUSY,
      "%s: its devices are being recorded, and that recording gets what its library reports",
      backend->table.name);
}

static void release_backend(const prof_i_backend *backend) {
  prof_i_activity_release(backend);
  release_drain();
}

/* The caller has claimed its tracing. */
static int start_memory(prof_i_backend *backend) {
  const uint32_t kinds = 1u << PROF_BACKEND_MEMORY;
  uint32_t can = 0;
  const int result = backend->table.start(backend->self, kinds, &can);
  if (result != PROF_BACKEND_OK)
    return prof_i_fail(status_of_result(result), "%s: %s", backend->table.name,
                       prof_i_registry_error_text(backend, result));
  if (can & kinds) return PROF_OK;
  backend->table.stop(backend->self);
  return prof_i_fail(PROF_E_UNSUPPORTED, "%s: it does not record what its library hands out",
                     backend->table.name);
}

int prof_i_op_memory_begin(prof_device device, prof_i_op_memory **memory_out) {
  prof_i_backend *const backend = find_memory_backend(device.type);
  if (!backend)
    return prof_i_fail(
        PROF_E_UNSUPPORTED,
        "device %d:%d: no back end that is in use records what its library hands out", device.type,
        device.index);
  int status = acquire_backend(backend);
  if (status != PROF_OK) return status;
  prof_i_op_memory *const memory = malloc(sizeof *memory);
  status =
      memory ? start_memory(backend)
             : prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu bytes of records", sizeof *memory);
  if (!memory || status != PROF_OK) {
    release_backend(backend);
    free(memory);
    return status;
  }
  memory->backend = backend;
  memory->device = (uint32_t)device.index;
  memory->count = 0;
  memory->lost = 0;
  *memory_out = memory;
  return PROF_OK;
}

int prof_i_op_memory_end(prof_i_op_memory *memory, uint64_t *peak_bytes_out) {
  prof_i_backend *const backend = memory->backend;
  drain_memory(memory);
  backend->table.stop(backend->self);
  drain_memory(memory);
  release_backend(backend);
  const int status = compute_peak(memory, peak_bytes_out);
  free(memory);
  return status;
}
