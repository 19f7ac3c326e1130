/* Replays memory events in their order, and keeps the live allocations and blocks. Wrong calls are
   reported to the observer. A free of an address that is not live changes only the pool's own
   count. An alloc over a live allocation replaces it. */
#include <stdlib.h>

#include "memory.h"

int prof_i_replay_init(prof_i_replay *play, const prof_memory *memory, uint32_t only) {
  const uint32_t count = memory->trace->catalog.pool_count;
  *play = (prof_i_replay){
      .memory = memory, .only = only, .pools = calloc((size_t)count + 1, sizeof *play->pools)};
  if (!play->pools) return PROF_E_NO_MEMORY;
  const uint32_t from = only == UINT32_MAX ? 0 : only, to = only == UINT32_MAX ? count : only + 1;
  for (uint32_t i = from; i < to; i++) {
    const prof_i_pool_record *const pool = &memory->trace->catalog.pools[i];
    play->pools[i].used = memory->pools[i].begin_used;
    play->pools[i].allocated = memory->pools[i].begin_allocated;
    play->pools[i].before_bytes = pool->used_before;
  }
  return 0;
}

void prof_i_replay_fini(prof_i_replay *play) {
  for (uint32_t i = 0; play->pools && i < play->memory->trace->catalog.pool_count; i++) {
    free(play->pools[i].live.nodes);
    free(play->pools[i].blocks.nodes);
  }
  free(play->pools);
}

static bool addr_map_make_room(prof_i_addr_map *pieces) {
  if (prof_i_addr_map_has_room(pieces)) return true;
  const uint32_t room = pieces->room ? pieces->room * 2 : 64;
  prof_i_addr_range *const larger =
      room > pieces->room ? realloc(pieces->nodes, room * sizeof *larger) : NULL;
  if (!larger) return false;
  pieces->nodes = larger;
  pieces->room = room;
  return true;
}

/* The current event. */
typedef struct replay_event_state {
  prof_i_replay *play;
  uint32_t pool, item;
  const prof_i_memory_record *record;
} replay_event_state;

/* If an earlier event is missing, a call that seems wrong may be right. */
static bool event_is_sure(const replay_event_state *n, uint32_t pool) {
  return n->play->next <= n->play->memory->pools[pool].sure_until;
}

static void report_wrong(const replay_event_state *n, prof_memory_wrong wrong) {
  const prof_i_replay_observer *const events = &n->play->events;
  if (events->wrong) events->wrong(events->user, n->pool, n->item, wrong, n->record);
}

/* The bytes that the alloc of a live allocation requested. */
static uint64_t live_requested_bytes(const prof_i_replay *play, const prof_i_addr_range *piece) {
  const uint64_t requested = prof_i_memory_item_read(&play->memory->items[piece->value]).requested;
  return requested < piece->bytes ? requested : piece->bytes;
}

static void remove_live(const prof_i_replay *play, prof_i_replay_pool *pool, uint32_t at) {
  const prof_i_addr_range piece = pool->live.nodes[at];
  pool->live_bytes -= piece.bytes;
  pool->requested_bytes -= live_requested_bytes(play, &piece);
  prof_i_addr_map_remove(&pool->live, piece.address);
}

static int replay_alloc(const replay_event_state *n, prof_i_replay_pool *pool) {
  const prof_i_memory_record *const record = n->record;
  if (record->bytes == 0) { /* takes no room: several may have one address */
    pool->empty_count++;
    return 0;
  }
  for (uint32_t at;
       (at = prof_i_addr_map_find_overlap(&pool->live, record->address, record->bytes)) != 0;) {
    if (event_is_sure(n, n->pool)) report_wrong(n, PROF_MEMORY_WRONG_OVERLAP);
    remove_live(n->play, pool, at);
  }
  if (!addr_map_make_room(&pool->live)) return PROF_E_NO_MEMORY;
  const prof_i_addr_range *const piece =
      &pool->live
           .nodes[prof_i_addr_map_insert(&pool->live, record->address, record->bytes, n->item)];
  pool->live_bytes += piece->bytes;
  pool->requested_bytes += live_requested_bytes(n->play, piece);
  return 0;
}

/* Whether it is live in another pool of the same start. */
static bool is_live_elsewhere(const replay_event_state *n, uint64_t address) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  const prof_i_pool_record *const own = &catalog->pools[n->pool];
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].start == own->start && catalog->pools[i].serial != own->serial &&
        event_is_sure(n, i) && prof_i_addr_map_find(&n->play->pools[i].live, address))
      return true;
  return false;
}

/* Whether it was live in an earlier recording of the same pool. */
static bool is_live_in_older_start(const replay_event_state *n, uint64_t address) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  for (uint32_t i = n->pool; i-- > 0;)
    if (catalog->pools[i].serial == catalog->pools[n->pool].serial)
      return prof_i_addr_map_find(&n->play->pools[i].live, address) != 0;
  return false;
}

static void replay_free(const replay_event_state *n, prof_i_replay_pool *pool) {
  const prof_i_memory_record *const record = n->record;
  const uint32_t at = prof_i_addr_map_find(&pool->live, record->address);
  if (record->bytes == 0 && pool->empty_count) {
    pool->empty_count--;
  } else if (at) {
    if (pool->live.nodes[at].bytes != record->bytes && event_is_sure(n, n->pool))
      report_wrong(n, PROF_MEMORY_WRONG_SIZE);
    remove_live(n->play, pool, at);
  } else if (record->bytes == 0) {
    return;
  } else if (event_is_sure(n, n->pool) && is_live_elsewhere(n, record->address)) {
    report_wrong(n, PROF_MEMORY_WRONG_POOL);
  } else if (record->bytes <= pool->before_bytes || is_live_in_older_start(n, record->address)) {
    pool->before_bytes -= record->bytes <= pool->before_bytes ? record->bytes : pool->before_bytes;
    if (n->play->events.from_before)
      n->play->events.from_before(n->play->events.user, n->pool, record);
  } else if (event_is_sure(n, n->pool) && n->play->memory->pools[n->pool].is_begin_known) {
    report_wrong(n, PROF_MEMORY_WRONG_UNKNOWN);
  } else if (n->play->events.unsure) {
    n->play->events.unsure(n->play->events.user, n->pool, n->item, event_is_sure(n, n->pool),
                           record);
  }
}

static int replay_reserve(prof_i_addr_map *blocks, const prof_i_memory_record *record) {
  if (record->bytes == 0) return 0;
  for (uint32_t at;
       (at = prof_i_addr_map_find_overlap(blocks, record->address, record->bytes)) != 0;)
    prof_i_addr_map_remove(blocks, blocks->nodes[at].address);
  if (!addr_map_make_room(blocks)) return PROF_E_NO_MEMORY;
  prof_i_addr_map_insert(blocks, record->address, record->bytes, 0);
  return 0;
}

/* A part of a block may be released, too. The rest on either side remains. */
static int replay_release(prof_i_addr_map *blocks, const prof_i_memory_record *record) {
  const uint64_t from = record->address, bytes = record->bytes ? record->bytes : 1;
  for (uint32_t at; (at = prof_i_addr_map_find_overlap(blocks, from, bytes)) != 0;) {
    const prof_i_addr_range block = blocks->nodes[at];
    prof_i_addr_map_remove(blocks, block.address);
    if (!addr_map_make_room(blocks)) return PROF_E_NO_MEMORY;
    if (block.address < from)
      prof_i_addr_map_insert(blocks, block.address, from - block.address, 0);
    /* bytes of the block that are released, or from before the start */
    const uint64_t behind = from + bytes - block.address;
    if (!addr_map_make_room(blocks)) return PROF_E_NO_MEMORY;
    if (record->bytes && behind < block.bytes)
      prof_i_addr_map_insert(blocks, from + bytes, block.bytes - behind, 0);
  }
  return 0;
}

/* A query that another one of the device has replaced no longer counts. */
static void replace_queries(const replay_event_state *n) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  const prof_i_pool_record *const own = &catalog->pools[n->pool];
  for (uint32_t i = 0; n->play->only == UINT32_MAX && i < catalog->pool_count; i++) {
    const prof_i_pool_record *const other = &catalog->pools[i];
    if (i != n->pool && other->kind == PROF_MEMORY_QUERY &&
        prof_i_is_same_device(other->device, own->device))
      n->play->pools[i].used = n->play->pools[i].allocated = 0;
  }
}

static int replay_event(const replay_event_state *n) {
  prof_i_replay_pool *const pool = &n->play->pools[n->pool];
  const prof_i_memory_record *const record = n->record;
  if (record->verb == PROF_I_VERB_SAMPLE) replace_queries(n);
  if (record->verb == PROF_I_VERB_SAMPLE)
    pool->used = prof_i_memory_bytes_bounded(record->bytes);
  else
    pool->used = prof_i_used_bytes(record->counter);
  if (record->verb >= PROF_I_VERB_RESERVE)
    pool->allocated = prof_i_memory_bytes_bounded(record->allocated - PROF_I_USED_ZERO);
  switch (record->verb) {
    case PROF_I_VERB_ALLOC:
      return replay_alloc(n, pool);
    case PROF_I_VERB_FREE:
      replay_free(n, pool);
      return 0;
    case PROF_I_VERB_RESERVE:
      return replay_reserve(&pool->blocks, record);
    case PROF_I_VERB_RELEASE:
      return replay_release(&pool->blocks, record);
    case PROF_I_VERB_WRONG:
      report_wrong(n, record->extra < PROF_MEMORY_WRONG_COUNT ? (prof_memory_wrong)record->extra
                                                              : PROF_MEMORY_WRONG_UNKNOWN);
      return 0;
    case PROF_I_VERB_COLLECT:
    case PROF_I_VERB_OOM:
    case PROF_I_VERB_SAMPLE:
      return 0;
  }
  return 0;
}

uint32_t prof_i_replay_next_index(const prof_i_replay *play) {
  const prof_memory *const m = play->memory;
  if (play->only == UINT32_MAX) return play->next;
  const prof_i_memory_pool *const pool = &m->pools[play->only];
  return play->next_own < pool->event_count ? m->places[pool->first_place + play->next_own]
                                            : m->item_count;
}

int prof_i_replay_next(prof_i_replay *play, uint32_t *pool_out, prof_i_memory_record *record_out) {
  const uint32_t place = prof_i_replay_next_index(play);
  if (place == play->memory->item_count) return 0;
  play->next = place + 1;
  play->next_own++;
  const uint32_t item = play->memory->order[place];
  *record_out = prof_i_memory_item_read(&play->memory->items[item]);
  *pool_out = prof_i_memory_pool_index(play->memory, record_out->pool);
  if (*pool_out == UINT32_MAX) return 1;
  const replay_event_state n = {play, *pool_out, item, record_out};
  const int status = replay_event(&n);
  return status ? status : 1;
}

int prof_i_replay_to(prof_i_replay *play, uint32_t place) {
  uint32_t pool;
  prof_i_memory_record record;
  int status = 1;
  while (status > 0 && prof_i_replay_next_index(play) < place)
    status = prof_i_replay_next(play, &pool, &record);
  return status < 0 ? status : 0;
}
