/* See op_memory.h. */
#include "op_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../device/activity.h"
#include "../device/host.h"
#include "../format/pieces.h"

enum { TOLD_MAX = 1 << 16 }; /* of one run: 2.5 MiB, of which what is not used never comes */

typedef struct told {
  uint64_t ns, address, bytes;
  uint32_t number; /* as they came: the order of those of one moment */
  bool is_release;
} told;

struct prof_i_op_memory {
  prof_i_back_end *end;
  uint32_t device;
  uint32_t count;
  uint64_t lost;
  told all[TOLD_MAX];
};

/* One at a time in the process: what a drain hands over says whose it is by its thread alone, and a
   pointer for each thread would take of the little static thread-local storage that there is. */
static struct {
  uint32_t is_had; /* acquire, release: by one measurement, from its begin to its end */
  /* the thread that drains, which writes it; who finds himself there has written it. Relaxed */
  uintptr_t by;
  prof_i_op_memory *drained; /* that thread's */
} own;

static uintptr_t this_thread(void) { return (uintptr_t)pthread_self(); }

static bool have(void) {
  uint32_t is_had = 0;
  return __atomic_compare_exchange_n(&own.is_had, &is_had, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}
static void let_go(void) { __atomic_store_n(&own.is_had, 0, __ATOMIC_RELEASE); }

/* ---- what comes ---- */

static bool is_of_device(const prof_i_op_memory *memory, const prof_backend_memory *it) {
  return it->record.kind == PROF_BACKEND_MEMORY && it->place != PROF_BACKEND_MEMORY_PINNED &&
         it->record.device == memory->device;
}

static void take(prof_i_op_memory *memory, const prof_backend_memory *it) {
  if (!is_of_device(memory, it)) return;
  if (memory->count == TOLD_MAX || (it->record.flags & PROF_BACKEND_NO_TIMES) ||
      (!it->is_release && it->bytes >= UINT64_MAX - it->address)) {
    memory->lost++;
    return;
  }
  memory->all[memory->count] =
      (told){it->record.start, it->address, it->bytes, memory->count, it->is_release != 0};
  memory->count++;
}

/* What this thread drains is its own. */
static bool take_drained(const void *records, size_t bytes) {
  const char *at = records;
  if (__atomic_load_n(&own.by, __ATOMIC_RELAXED) != this_thread()) return false;
  prof_i_op_memory *const drained = own.drained;
  while (bytes >= sizeof(prof_backend_record)) {
    prof_backend_memory it = {.bytes = 0};
    memcpy(&it, at, bytes < sizeof it ? bytes : sizeof it);
    const uint16_t size = it.record.size;
    if (size < sizeof it.record || size > bytes) break;
    if (size < sizeof it && it.record.kind == PROF_BACKEND_MEMORY)
      drained->lost++;
    else
      take(drained, &it);
    at += size;
    bytes -= size;
  }
  if (bytes > 0) drained->lost++;
  return true;
}

static void drain(prof_i_op_memory *memory) {
  uint64_t lost = 0;
  own.drained = memory;
  prof_i_host_divert(take_drained);
  __atomic_store_n(&own.by, this_thread(), __ATOMIC_RELAXED);
  memory->end->table.drain(memory->end->self, PROF_BACKEND_FLUSH, &lost);
  __atomic_store_n(&own.by, 0, __ATOMIC_RELAXED);
  prof_i_host_divert(NULL);
  memory->lost += lost;
}

/* ---- adding it up ---- */

static int by_time(const void *a, const void *b) {
  const told *const first = a, *const second = b;
  if (first->ns != second->ns) return first->ns < second->ns ? -1 : 1;
  return first->number < second->number ? -1 : first->number > second->number;
}

static void take_back(prof_i_pieces *live, uint32_t at, uint64_t *now_bytes) {
  *now_bytes -= live->nodes[at].bytes;
  prof_i_pieces_take(live, live->nodes[at].address);
}

/* A release of what was handed out before is nobody's. A piece at whose place another one comes has
   gone untold. */
static uint64_t peak_of(prof_i_op_memory *memory, prof_i_pieces *live) {
  uint64_t now_bytes = 0, peak_bytes = 0;
  qsort(memory->all, memory->count, sizeof *memory->all, by_time);
  for (uint32_t i = 0, at; i < memory->count; i++) {
    const told *const it = &memory->all[i];
    if (it->is_release && (at = prof_i_pieces_at(live, it->address)) != 0)
      take_back(live, at, &now_bytes);
    if (it->is_release || !it->bytes) continue;
    while ((at = prof_i_pieces_overlap(live, it->address, it->bytes)) != 0)
      take_back(live, at, &now_bytes);
    prof_i_pieces_put(live, it->address, it->bytes, 0);
    now_bytes += it->bytes;
    if (now_bytes > peak_bytes) peak_bytes = now_bytes;
  }
  return peak_bytes;
}

static int add_up(prof_i_op_memory *memory, uint64_t *peak_bytes_out) {
  if (memory->lost)
    return prof_i_fail(PROF_E_UNSUPPORTED, "%s: %llu of the records of memory were lost",
                       memory->end->table.name, (unsigned long long)memory->lost);
  prof_i_pieces live = {.nodes = malloc((memory->count + 1) * sizeof *live.nodes),
                        .room = memory->count + 1};
  if (!live.nodes) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u pieces", memory->count);
  *peak_bytes_out = peak_of(memory, &live);
  free(live.nodes);
  return PROF_OK;
}

/* ---- begin and end ---- */

/* A library that the program has not loaded so far stays where it is. */
static prof_i_back_end *find(int32_t device_type) {
  prof_i_back_end *end;
  prof_i_registry_prepare();
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++) {
    const prof_backend *const table = &end->table;
    if (table->device_type != device_type || !table->records_memory || !table->start ||
        !table->stop || !table->drain)
      continue;
    if ((!table->in_use || table->in_use()) && prof_i_registry_open(device_type) == end) return end;
  }
  return NULL;
}

static int status_of(int result) {
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
static int borrow(const prof_i_back_end *end) {
  if (!have())
    return prof_i_fail(PROF_E_BUSY,
                       "%s: what its library hands out is being told to another measurement",
                       end->table.name);
  if (prof_i_activity_borrow(end)) return PROF_OK;
  let_go();
  return prof_i_fail(
      PROF_E_BUSY, "%s: its devices are being recorded: what its library hands out is told to that",
      end->table.name);
}

static void give_back(const prof_i_back_end *end) {
  prof_i_activity_give_back(end);
  let_go();
}

/* Whose tracing is the caller's by now. */
static int start(prof_i_back_end *end) {
  const uint32_t kinds = 1u << PROF_BACKEND_MEMORY;
  uint32_t can = 0;
  const int result = end->table.start(end->self, kinds, &can);
  if (result != PROF_BACKEND_OK)
    return prof_i_fail(status_of(result), "%s: %s", end->table.name,
                       prof_i_registry_words(end, result));
  if (can & kinds) return PROF_OK;
  end->table.stop(end->self);
  return prof_i_fail(PROF_E_UNSUPPORTED, "%s: it does not record what its library hands out",
                     end->table.name);
}

int prof_i_op_memory_begin(prof_device device, prof_i_op_memory **memory_out) {
  prof_i_back_end *const end = find(device.type);
  if (!end)
    return prof_i_fail(
        PROF_E_UNSUPPORTED,
        "device %d:%d: no back end that is in use records what its library hands out", device.type,
        device.index);
  int status = borrow(end);
  if (status != PROF_OK) return status;
  prof_i_op_memory *const memory = malloc(sizeof *memory);
  status =
      memory ? start(end)
             : prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu bytes of records", sizeof *memory);
  if (!memory || status != PROF_OK) {
    give_back(end);
    free(memory);
    return status;
  }
  memory->end = end;
  memory->device = (uint32_t)device.index;
  memory->count = 0;
  memory->lost = 0;
  *memory_out = memory;
  return PROF_OK;
}

int prof_i_op_memory_end(prof_i_op_memory *memory, uint64_t *peak_bytes_out) {
  prof_i_back_end *const end = memory->end;
  drain(memory);
  end->table.stop(end->self);
  drain(memory);
  give_back(end);
  const int status = add_up(memory, peak_bytes_out);
  free(memory);
  return status;
}
