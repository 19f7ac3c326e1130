/* Plays events of memory in their order: which pieces and blocks there are after each. What is
   wrong is told and not believed: a free of what is not live changes nothing but the pool's own
   count, an alloc of what is live takes the old piece away. */
#include <stdlib.h>

#include "memory.h"

int prof_i_play_init(prof_i_play *play, const prof_memory *memory, uint32_t only) {
  const uint32_t count = memory->trace->catalog.pool_count;
  *play = (prof_i_play){
      .memory = memory, .only = only, .pools = calloc((size_t)count + 1, sizeof *play->pools)};
  if (!play->pools) return PROF_E_NO_MEMORY;
  const uint32_t from = only == UINT32_MAX ? 0 : only, to = only == UINT32_MAX ? count : only + 1;
  for (uint32_t i = from; i < to; i++) {
    const prof_i_pool_seen *const pool = &memory->trace->catalog.pools[i];
    play->pools[i].used = memory->pools[i].begin_used;
    play->pools[i].allocated = memory->pools[i].begin_allocated;
    play->pools[i].before_bytes = pool->used_before;
  }
  return 0;
}

void prof_i_play_fini(prof_i_play *play) {
  for (uint32_t i = 0; play->pools && i < play->memory->trace->catalog.pool_count; i++) {
    free(play->pools[i].live.nodes);
    free(play->pools[i].blocks.nodes);
  }
  free(play->pools);
}

static bool make_room(prof_i_pieces *pieces) {
  if (prof_i_pieces_have_room(pieces)) return true;
  const uint32_t room = pieces->room ? pieces->room * 2 : 64;
  prof_i_piece *const larger =
      room > pieces->room ? realloc(pieces->nodes, room * sizeof *larger) : NULL;
  if (!larger) return false;
  pieces->nodes = larger;
  pieces->room = room;
  return true;
}

/* The event being played. */
typedef struct now {
  prof_i_play *play;
  uint32_t pool, item;
  const prof_i_memory_record *record;
} now;

/* Where an event before this one is missing, what looks wrong may be right. */
static bool is_sure(const now *n, uint32_t pool) {
  return n->play->next <= n->play->memory->pools[pool].sure_until;
}

static void tell_wrong(const now *n, prof_memory_wrong wrong) {
  const prof_i_play_events *const events = &n->play->events;
  if (events->wrong) events->wrong(events->user, n->pool, n->item, wrong, n->record);
}

/* What the alloc of a live piece asked for. */
static uint64_t requested_of(const prof_i_play *play, const prof_i_piece *piece) {
  const uint64_t requested = prof_i_memory_item_read(&play->memory->items[piece->value]).requested;
  return requested < piece->bytes ? requested : piece->bytes;
}

static void drop_live(const prof_i_play *play, prof_i_play_pool *pool, uint32_t at) {
  const prof_i_piece piece = pool->live.nodes[at];
  pool->live_bytes -= piece.bytes;
  pool->requested_bytes -= requested_of(play, &piece);
  prof_i_pieces_take(&pool->live, piece.address);
}

static int play_alloc(const now *n, prof_i_play_pool *pool) {
  const prof_i_memory_record *const record = n->record;
  if (record->bytes == 0) { /* takes no room: two of them may stand at one address */
    pool->empty_count++;
    return 0;
  }
  for (uint32_t at;
       (at = prof_i_pieces_overlap(&pool->live, record->address, record->bytes)) != 0;) {
    if (is_sure(n, n->pool)) tell_wrong(n, PROF_MEMORY_WRONG_OVERLAP);
    drop_live(n->play, pool, at);
  }
  if (!make_room(&pool->live)) return PROF_E_NO_MEMORY;
  const prof_i_piece *const piece =
      &pool->live.nodes[prof_i_pieces_put(&pool->live, record->address, record->bytes, n->item)];
  pool->live_bytes += piece->bytes;
  pool->requested_bytes += requested_of(n->play, piece);
  return 0;
}

/* Is it live in another pool of the same start? */
static bool is_elsewhere(const now *n, uint64_t address) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  const prof_i_pool_seen *const own = &catalog->pools[n->pool];
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].start == own->start && catalog->pools[i].serial != own->serial &&
        is_sure(n, i) && prof_i_pieces_at(&n->play->pools[i].live, address))
      return true;
  return false;
}

/* Was it live when the same pool was recorded before? */
static bool is_older(const now *n, uint64_t address) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  for (uint32_t i = n->pool; i-- > 0;)
    if (catalog->pools[i].serial == catalog->pools[n->pool].serial)
      return prof_i_pieces_at(&n->play->pools[i].live, address) != 0;
  return false;
}

static void play_free(const now *n, prof_i_play_pool *pool) {
  const prof_i_memory_record *const record = n->record;
  const uint32_t at = prof_i_pieces_at(&pool->live, record->address);
  if (record->bytes == 0 && pool->empty_count) {
    pool->empty_count--;
  } else if (at) {
    if (pool->live.nodes[at].bytes != record->bytes && is_sure(n, n->pool))
      tell_wrong(n, PROF_MEMORY_WRONG_SIZE);
    drop_live(n->play, pool, at);
  } else if (record->bytes == 0) {
    return;
  } else if (is_sure(n, n->pool) && is_elsewhere(n, record->address)) {
    tell_wrong(n, PROF_MEMORY_WRONG_POOL);
  } else if (record->bytes <= pool->before_bytes || is_older(n, record->address)) {
    pool->before_bytes -= record->bytes <= pool->before_bytes ? record->bytes : pool->before_bytes;
    if (n->play->events.from_before)
      n->play->events.from_before(n->play->events.user, n->pool, record);
  } else if (is_sure(n, n->pool) && n->play->memory->pools[n->pool].is_begin_known) {
    tell_wrong(n, PROF_MEMORY_WRONG_UNKNOWN);
  } else if (n->play->events.unsure) {
    n->play->events.unsure(n->play->events.user, n->pool, n->item, is_sure(n, n->pool), record);
  }
}

static int play_reserve(prof_i_pieces *blocks, const prof_i_memory_record *record) {
  if (record->bytes == 0) return 0;
  for (uint32_t at; (at = prof_i_pieces_overlap(blocks, record->address, record->bytes)) != 0;)
    prof_i_pieces_take(blocks, blocks->nodes[at].address);
  if (!make_room(blocks)) return PROF_E_NO_MEMORY;
  prof_i_pieces_put(blocks, record->address, record->bytes, 0);
  return 0;
}

/* A part of a block may go, too; what is left of it on either side stays. */
static int play_release(prof_i_pieces *blocks, const prof_i_memory_record *record) {
  const uint64_t from = record->address, bytes = record->bytes ? record->bytes : 1;
  for (uint32_t at; (at = prof_i_pieces_overlap(blocks, from, bytes)) != 0;) {
    const prof_i_piece block = blocks->nodes[at];
    prof_i_pieces_take(blocks, block.address);
    if (!make_room(blocks)) return PROF_E_NO_MEMORY;
    if (block.address < from) prof_i_pieces_put(blocks, block.address, from - block.address, 0);
    /* of the block's bytes, how many are gone or before */
    const uint64_t behind = from + bytes - block.address;
    if (!make_room(blocks)) return PROF_E_NO_MEMORY;
    if (record->bytes && behind < block.bytes)
      prof_i_pieces_put(blocks, from + bytes, block.bytes - behind, 0);
  }
  return 0;
}

/* A device's query that another one has taken the place of says nothing any more. */
static void replace_queries(const now *n) {
  const prof_i_catalog *const catalog = &n->play->memory->trace->catalog;
  const prof_i_pool_seen *const own = &catalog->pools[n->pool];
  for (uint32_t i = 0; n->play->only == UINT32_MAX && i < catalog->pool_count; i++) {
    const prof_i_pool_seen *const other = &catalog->pools[i];
    if (i != n->pool && other->kind == PROF_MEMORY_QUERY &&
        other->device.type == own->device.type && other->device.index == own->device.index)
      n->play->pools[i].used = n->play->pools[i].allocated = 0;
  }
}

static int play_one(const now *n) {
  prof_i_play_pool *const pool = &n->play->pools[n->pool];
  const prof_i_memory_record *const record = n->record;
  if (record->verb == PROF_I_VERB_SAMPLE) replace_queries(n);
  if (record->verb == PROF_I_VERB_SAMPLE)
    pool->used = prof_i_memory_bounded(record->bytes);
  else
    pool->used = prof_i_used_bytes(record->counter);
  if (record->verb >= PROF_I_VERB_RESERVE)
    pool->allocated = prof_i_memory_bounded(record->allocated - PROF_I_USED_ZERO);
  switch (record->verb) {
    case PROF_I_VERB_ALLOC:
      return play_alloc(n, pool);
    case PROF_I_VERB_FREE:
      play_free(n, pool);
      return 0;
    case PROF_I_VERB_RESERVE:
      return play_reserve(&pool->blocks, record);
    case PROF_I_VERB_RELEASE:
      return play_release(&pool->blocks, record);
    case PROF_I_VERB_WRONG:
      tell_wrong(n, record->extra < PROF_MEMORY_WRONG_COUNT ? (prof_memory_wrong)record->extra
                                                            : PROF_MEMORY_WRONG_UNKNOWN);
      return 0;
    case PROF_I_VERB_COLLECT:
    case PROF_I_VERB_OOM:
    case PROF_I_VERB_SAMPLE:
      return 0;
  }
  return 0;
}

uint32_t prof_i_play_upcoming(const prof_i_play *play) {
  const prof_memory *const m = play->memory;
  if (play->only == UINT32_MAX) return play->next;
  const prof_i_memory_pool *const pool = &m->pools[play->only];
  return play->next_own < pool->event_count ? m->places[pool->first_place + play->next_own]
                                            : m->item_count;
}

int prof_i_play_next(prof_i_play *play, uint32_t *pool_out, prof_i_memory_record *record_out) {
  const uint32_t place = prof_i_play_upcoming(play);
  if (place == play->memory->item_count) return 0;
  play->next = place + 1;
  play->next_own++;
  const uint32_t item = play->memory->order[place];
  *record_out = prof_i_memory_item_read(&play->memory->items[item]);
  *pool_out = prof_i_memory_pool_index(play->memory, record_out->pool);
  if (*pool_out == UINT32_MAX) return 1;
  const now n = {play, *pool_out, item, record_out};
  const int status = play_one(&n);
  return status ? status : 1;
}

int prof_i_play_to(prof_i_play *play, uint32_t place) {
  uint32_t pool;
  prof_i_memory_record record;
  int status = 1;
  while (status > 0 && prof_i_play_upcoming(play) < place)
    status = prof_i_play_next(play, &pool, &record);
  return status < 0 ? status : 0;
}
