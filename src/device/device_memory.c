/* Memory that vendors' libraries hand out, as pools of prof: one for each device, one for memory
   that both sides share, one for pinned host memory. A back end reports each block late, in the
   order of times. The collector alone.
   A record may come late: a later record may already have freed the same address. The late one
   is then lost and counted, because adding it now would make a peak that never was. A release of
   an unknown address belongs to memory from before the back end began to report. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "../format/addr_map.h"
#include "../memory/internal.h"

enum { FIRST_ROOM = 256, FREED_MAX = 1 << 16 };

typedef struct vendor_pool {
  const prof_i_backend *backend;
  uint32_t place, device;
  prof_pool *pool;
  uint64_t init_count;   /* the pool's; these blocks belong to it */
  prof_i_addr_map live;  /* value: when it was handed out */
  prof_i_addr_map freed; /* what came back last at an address; value: when */
  struct vendor_pool *next;
} vendor_pool;

static struct {
  vendor_pool *first;
  const vendor_pool *inherited; /* of a forked child */
  uint64_t latest_ticks; /* of the virtual thread's last record; later ones are not before it */
  prof_i_virtual_thread line;
} vendor_pools = {.line = {.thread_kind = PROF_I_KIND_OF_THREAD, .name = "devices' memory"}};

static vendor_pool *find_vendor_pool(const prof_i_backend *backend, uint32_t place,
                                     uint32_t device) {
  for (vendor_pool *t = vendor_pools.first; t; t = t->next)
    if (t->backend == backend && t->place == place && t->device == device) return t;
  return NULL;
}

/* ---- pools ---- */

static const char *pool_name_suffix(uint32_t place) {
  return place == PROF_BACKEND_MEMORY_PINNED    ? " pinned"
         : place == PROF_BACKEND_MEMORY_MANAGED ? " managed"
                                                : "";
}

static bool make_vendor_pool(const prof_i_backend *backend, uint32_t place, uint32_t device) {
  char name[64];
  prof_pool *pool = NULL;
  if (find_vendor_pool(backend, place, device)) return true;
  vendor_pool *const t = calloc(1, sizeof *t);
  if (!t) return true; /* what it would have is counted as lost */
  snprintf(name, sizeof name, "%s%s memory", backend->table.name, pool_name_suffix(place));
  if (!prof_i_pool_try_create(name,
                              place == PROF_BACKEND_MEMORY_PINNED
                                  ? PROF_HOST
                                  : (prof_device){backend->table.device_type, (int32_t)device},
                              &pool)) {
    free(t);
    return false;
  }
  *t = (vendor_pool){.backend = backend,
                     .place = place,
                     .device = device,
                     .pool = pool,
                     .next = vendor_pools.first};
  vendor_pools.first = t;
  return true;
}

bool prof_i_device_memory_prepare(prof_i_backend *backend) {
  bool are_made = make_vendor_pool(backend, PROF_BACKEND_MEMORY_PINNED, 0);
  for (uint32_t i = 0; i < backend->device_count && are_made; i++)
    are_made = make_vendor_pool(backend, PROF_BACKEND_MEMORY_DEVICE, i) &&
               make_vendor_pool(backend, PROF_BACKEND_MEMORY_MANAGED, i);
  return are_made;
}

/* ---- what is live ---- */

static bool reserve_range(prof_i_addr_map *pieces) {
  if (prof_i_addr_map_has_room(pieces)) return true;
  const uint32_t room = pieces->room ? 2 * pieces->room : FIRST_ROOM;
  void *const larger =
      room > pieces->room ? realloc(pieces->nodes, room * sizeof *pieces->nodes) : NULL;
  if (!larger) return false;
  pieces->nodes = larger;
  pieces->room = room;
  return true;
}

static void clear_ranges(prof_i_addr_map *pieces) {
  pieces->used = pieces->root = pieces->free = pieces->count = 0;
}

/* Another recording has begun, or the capture was cleared: what is live from before is not known
   there. */
static void follow_session(vendor_pool *t) {
  const uint64_t init_count = __atomic_load_n(&t->pool->init_count, __ATOMIC_ACQUIRE);
  if (init_count == t->init_count) return;
  clear_ranges(&t->live);
  clear_ranges(&t->freed);
  t->init_count = init_count;
}

/* ---- one block ---- */

static int write_memory_event(vendor_pool *t, prof_i_verb verb, uint64_t address, uint64_t bytes,
                              uint64_t ticks) {
  const prof_i_memory_event what = {.verb = verb,
                                    .address = address,
                                    .bytes = bytes,
                                    .requested = bytes,
                                    .stream = PROF_NO_STREAM};
  prof_i_thread *const thread = prof_i_virtual_thread_attach(&vendor_pools.line);
  if (!thread) return PROF_LOSS_NO_THREAD;
  if (prof_i_clock_is_before(ticks, vendor_pools.latest_ticks)) ticks = vendor_pools.latest_ticks;
  vendor_pools.latest_ticks = ticks;
  return prof_i_memory_event_write_at(t->pool, &what, ticks, thread);
}

static int write_free_event(vendor_pool *t, uint32_t at, uint64_t ticks) {
  const prof_i_addr_range piece = t->live.nodes[at];
  prof_i_addr_map_remove(&t->live, piece.address);
  return write_memory_event(t, PROF_I_VERB_FREE, piece.address, piece.bytes, ticks);
}

static void remember_freed(vendor_pool *t, uint64_t address, uint64_t ticks) {
  const uint32_t at = prof_i_addr_map_find(&t->freed, address);
  if (t->freed.count >= FREED_MAX)
    clear_ranges(&t->freed);
  else if (at)
    prof_i_addr_map_remove(&t->freed, address);
  if (reserve_range(&t->freed)) prof_i_addr_map_insert(&t->freed, address, 1, ticks);
}

/* True if a block that was handed out at that time was freed by an earlier report. */
static bool was_freed_since(const vendor_pool *t, const prof_backend_memory *it, uint64_t ticks) {
  const uint32_t last = prof_i_addr_map_find(&t->freed, it->address),
                 other = prof_i_addr_map_find_overlap(&t->live, it->address, it->bytes);
  return (last && prof_i_clock_is_before(ticks, t->freed.nodes[last].value)) ||
         (other && prof_i_clock_is_before(ticks, t->live.nodes[other].value));
}

static int handle_alloc(vendor_pool *t, const prof_backend_memory *it, uint64_t ticks) {
  if (was_freed_since(t, it, ticks)) return PROF_LOSS_DEVICE_LATE;
  /* its release was not reported */
  for (uint32_t at; (at = prof_i_addr_map_find_overlap(&t->live, it->address, it->bytes)) != 0;)
    write_free_event(t, at, ticks);
  if (!reserve_range(&t->live)) return PROF_LOSS_DEVICE_FULL;
  prof_i_addr_map_insert(&t->live, it->address, it->bytes, ticks);
  return write_memory_event(t, PROF_I_VERB_ALLOC, it->address, it->bytes, ticks);
}

static int handle_free(vendor_pool *t, uint64_t address, uint64_t ticks) {
  const uint32_t at = prof_i_addr_map_find(&t->live, address);
  /* it was let go when another one came there */
  const bool is_late = at && prof_i_clock_is_before(ticks, t->live.nodes[at].value);
  remember_freed(t, address, ticks);
  return at && !is_late ? write_free_event(t, at, ticks) : -1;
}

int prof_i_device_memory_write(const prof_i_backend *backend, const prof_backend_memory *it,
                               uint64_t ticks) {
  vendor_pool *const t = find_vendor_pool(
      backend, it->place, it->place == PROF_BACKEND_MEMORY_PINNED ? 0 : it->record.device);
  if (!t || !t->pool || it->place > PROF_BACKEND_MEMORY_MANAGED) return PROF_LOSS_DEVICE_FULL;
  follow_session(t);
  if (!it->address ||
      prof_i_clock_is_before(ticks, __atomic_load_n(&t->pool->since_ticks, __ATOMIC_RELAXED)))
    return -1;
  if (it->is_release) return handle_free(t, it->address, ticks);
  return it->bytes && it->bytes < PROF_I_ALLOC_BYTES_END ? handle_alloc(t, it, ticks)
                                                         : PROF_LOSS_DEVICE_FULL;
}

void prof_i_device_memory_end_thread(void) {
  prof_i_virtual_thread_end(&vendor_pools.line);
  vendor_pools.latest_ticks = 0;
}

void prof_i_device_memory_forget(void) {
  vendor_pools.inherited = vendor_pools.first; /* their memory stays, and is not lost */
  vendor_pools.first = NULL;
  vendor_pools.line.thread = NULL;
  vendor_pools.latest_ticks = 0;
}
