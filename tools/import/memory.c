/* Memory of a trace: the instants [memory] and [OutOfMemory], and the pools that they tell of. See
   internal.h for the events, and state.h for the pools. */
#include <prof/memory.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

/* ---- pools ---- */

/* The pool's number, from 1; 0: there are too many. */
static uint32_t pools_number(import_pools *pools, bool is_device, int32_t index) {
  for (uint32_t i = 0; i < pools->count; i++)
    if (pools->pools[i].is_device == is_device && pools->pools[i].index == index) return i + 1;
  if (pools->count == IMPORT_POOLS_MAX) return 0;
  pools->pools[pools->count++] = (import_pool){.is_device = is_device, .index = index};
  return pools->count;
}

/* Returns its order. */
static uint64_t add_pool_event(import_pools *pools, const import_pool_event *change) {
  pools->pool_events = import_make_room(pools->pool_events, &pools->pool_event_room,
                                        pools->pool_event_count + 1, sizeof *pools->pool_events);
  pools->pool_events[pools->pool_event_count] = *change;
  pools->pool_events[pools->pool_event_count].order = (uint32_t)pools->pool_event_count;
  return pools->pool_event_count++;
}

/* Fills in words 1 to 3 of its record. The last is the `order` for import_pools_counter(). */
static void pools_add(import_pools *pools, const import_pool_event *change, uint64_t address,
                      uint64_t words[3]) {
  const bool is_free = change->bytes < 0;
  const uint64_t bytes = is_free ? 0 - (uint64_t)change->bytes : (uint64_t)change->bytes;
  words[0] = PROF_I_ALLOC_TYPE | (uint64_t)is_free << PROF_I_ALLOC_VERB_SHIFT |
             (uint64_t)change->pool << PROF_I_ALLOC_POOL_SHIFT | bytes << PROF_I_ALLOC_BYTES_SHIFT;
  words[1] = address;
  words[2] = add_pool_event(pools, change);
}

/* As above, for a change of what is reserved, or a failed allocation (verb, bytes): makes the whole
   record. A trace has sums of blocks, not blocks. They get addresses one behind the other where no
   piece is, and a release takes from their end. */
static void pools_add_note(import_pools *pools, uint32_t pool, uint64_t ticks, prof_i_verb verb,
                           uint64_t bytes, import_record *record) {
  const uint64_t blocks = UINT64_C(1) << 62, reserved = pools->pools[pool - 1].reserved;
  const import_pool_event change = {
      .ticks = ticks, .reserved = (int64_t)reserved, .pool = pool, .total = -1};
  import_record_begin(record);
  import_record_word(record, verb | (uint64_t)pool << 32);
  import_record_word(record,
                     verb == PROF_I_VERB_OOM
                         ? 0
                         : blocks + (verb == PROF_I_VERB_RESERVE ? reserved - bytes : reserved));
  import_record_word(record, bytes);
  import_record_word(record, add_pool_event(pools, &change));
  import_record_word(record, PROF_I_USED_ZERO + reserved);
  import_record_end(record, PROF_I_KIND_MEMORY, 0, 0, 0, 0);
}

/* Sets what is reserved after an event. bytes: by how much the event changed what is used. total:
   the trace's own sum of that (negative: it has none). Returns by how much more is reserved. */
static int64_t pools_reserve(import_pools *pools, uint32_t number, int64_t reserved, int64_t bytes,
                             int64_t total) {
  import_pool *const pool = &pools->pools[number - 1];
  if (reserved < 0 || reserved >= (int64_t)(PROF_I_USED_ZERO / 2)) return 0;
  if (!pool->has_reserved) {
    pool->has_reserved = true;
    /* the pool's first piece of all: its block is new, too */
    pool->reserved_before = pool->reserved = total >= 0 && total == bytes ? 0 : (uint64_t)reserved;
  }
  const int64_t more = reserved - (int64_t)pool->reserved;
  pool->reserved = (uint64_t)reserved;
  return more;
}

/* ---- events ---- */

static import_record memory_record; /* of the event at hand: no stack need hold it */

static void put_memory_mark(import_state *state, const import_event *event, uint64_t at,
                            const uint64_t *words, uint32_t count) {
  import_thread *const thread = import_host_thread(state, event);
  const uint64_t place = import_spool_add(&state->spool, words + 1, count - 1, IMPORT_ENTRY_MARK);
  import_thread_add(thread, (import_entry){at, at, place, state->order});
}

static void put_memory_note(import_state *state, const import_event *event, uint64_t at,
                            uint32_t pool, prof_i_verb verb, uint64_t bytes) {
  pools_add_note(&state->pools, pool, at, verb, bytes, &memory_record);
  put_memory_mark(state, event, at, memory_record.words, memory_record.count);
  state->counts->memory_events++;
}

/* A trace has no events of the blocks that an allocator reserves. An event may have their sum. If
   the sum has changed, a reserve or a release is recorded before the event. */
static void convert_reserved(import_state *state, const import_event *event,
                             const import_pool_event *change) {
  int64_t reserved = -1;
  import_read_arg(event, "Total Reserved", &reserved);
  const int64_t more =
      pools_reserve(&state->pools, change->pool, reserved, change->bytes, change->total);
  if (more > 0)
    put_memory_note(state, event, change->ticks, change->pool, PROF_I_VERB_RESERVE, (uint64_t)more);
  else if (more < 0)
    put_memory_note(state, event, change->ticks, change->pool, PROF_I_VERB_RELEASE,
                    0 - (uint64_t)more);
}

static uint32_t event_pool(import_state *state, const import_event *event) {
  int64_t type = 0, index = 0;
  import_read_arg(event, "Device Type", &type);
  import_read_arg(event, "Device Id", &index);
  const bool is_device = type != 0;
  return pools_number(&state->pools, is_device,
                      is_device && index > 0 && index <= INT32_MAX ? (int32_t)index : 0);
}

void import_convert_out_of_memory(import_state *state, const import_event *event, uint64_t at) {
  import_pool_event change = {.ticks = at, .pool = event_pool(state, event), .total = -1};
  int64_t bytes = 0;
  if (change.pool == 0 || !import_read_arg(event, "Bytes", &bytes) || bytes <= 0) {
    import_count_dropped(state, IMPORT_MISS_MEMORY);
    return;
  }
  convert_reserved(state, event, &change);
  put_memory_note(state, event, at, change.pool, PROF_I_VERB_OOM, (uint64_t)bytes);
}

/* One behind 2^63 is no i64. */
static bool read_address(const import_event *event, uint64_t *out) {
  const import_value *const value = import_event_arg(event, "Addr");
  int64_t number;
  if (!value) return false;
  if (import_number_u64(import_text_of(event, value), out)) return true;
  if (!import_read_arg(event, "Addr", &number) || number < 0) return false;
  *out = (uint64_t)number;
  return true;
}

void import_convert_memory(import_state *state, const import_event *event, uint64_t at) {
  const int64_t bytes_max = INT64_C(1) << (PROF_I_USED_BITS - 1);
  import_pool_event change = {.ticks = at, .total = -1};
  uint64_t address = 0, words[4] = {0};
  if (!read_address(event, &address) || !import_read_arg(event, "Bytes", &change.bytes) ||
      change.bytes == 0 || change.bytes >= bytes_max || change.bytes <= -bytes_max) {
    import_count_dropped(state, IMPORT_MISS_MEMORY);
    return;
  }
  import_read_arg(event, "Total Allocated", &change.total);
  change.pool = event_pool(state, event);
  if (change.pool == 0) {
    import_count_dropped(state, IMPORT_MISS_MEMORY);
    return;
  }
  convert_reserved(state, event, &change);
  pools_add(&state->pools, &change, address, words + 1);
  put_memory_mark(state, event, at, words, 4);
  state->counts->memory_events++;
}

/* ---- the order of a pool's events ---- */

static int pool_event_compare(const void *a, const void *b) {
  const import_pool_event *const x = a, *const y = b;
  if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static void begin_pool(import_pool *pool, const import_pool_event *first, uint32_t number,
                       uint64_t start_ticks) {
  prof_i_pool_state *const state = &pool->state;
  pool->is_known = first->total >= first->bytes && first->total >= 0;
  pool->used_before = pool->is_known ? (uint64_t)(first->total - first->bytes) : 0;
  if (pool->used_before >= PROF_I_USED_ZERO / 2) pool->used_before = 0, pool->is_known = false;
  *state = (prof_i_pool_state){.used = PROF_I_USED_ZERO + pool->used_before,
                               .number = number,
                               .kind = PROF_MEMORY_POOL,
                               .allocated = PROF_I_USED_ZERO + pool->reserved_before};
  state->used_peaks[0] = (prof_i_peak){state->used, start_ticks, state->used, start_ticks};
  state->allocated_peaks[0] =
      (prof_i_peak){state->allocated, start_ticks, state->allocated, start_ticks};
}

static void apply_pool_event(prof_i_pool_state *state, const import_pool_event *change) {
  const uint64_t before = state->used;
  state->used += PROF_I_USED_ONE_EVENT + (uint64_t)change->bytes;
  state->rounds += state->used < before;
  if (change->bytes == 0) state->allocated = PROF_I_USED_ZERO + (uint64_t)change->reserved;
  if (state->allocated > state->allocated_peaks[0].peak) {
    state->allocated_peaks[0].peak = state->allocated;
    state->allocated_peaks[0].peak_ticks = change->ticks;
  }
  if (prof_i_used_bytes(state->used) <= prof_i_used_bytes(state->used_peaks[0].peak)) return;
  state->used_peaks[0].peak = state->used;
  state->used_peaks[0].peak_ticks = change->ticks;
}

void import_pools_resolve_times(import_pools *pools, const import_times *times) {
  for (size_t i = 0; i < pools->pool_event_count; i++) {
    import_pool_event *const change = &pools->pool_events[i];
    if (!import_times_has(times, change->ticks)) change->pool = 0;
    change->ticks = import_times_ticks(times, change->ticks);
  }
}

void import_pools_finish(import_pools *pools, uint64_t start_ticks) {
  if (pools->pool_event_count == 0) return;
  pools->counters = import_make(pools->pool_event_count * sizeof *pools->counters);
  qsort(pools->pool_events, pools->pool_event_count, sizeof *pools->pool_events,
        pool_event_compare);
  for (size_t i = 0; i < pools->pool_event_count; i++) {
    const import_pool_event *const change = &pools->pool_events[i];
    if (change->pool == 0) continue;
    import_pool *const pool = &pools->pools[change->pool - 1];
    if (pool->state.number == 0) begin_pool(pool, change, change->pool, start_ticks);
    apply_pool_event(&pool->state, change);
    pools->counters[change->order] = pool->state.used;
  }
}

void import_pools_record(const import_pools *pools, uint32_t number, int32_t device_type,
                         uint64_t at, import_record *record) {
  const import_pool *const pool = &pools->pools[number - 1];
  const uint64_t line = PROF_I_POOL_STATE_ALIGNMENT, from = at + PROF_I_POOL_STATE_WORD * 8;
  const uint32_t to_state =
      PROF_I_POOL_STATE_WORD + (uint32_t)(((from + line - 1) / line * line - from) / 8);
  char name[PROF_I_NAME_BYTES];
  const int bytes = pool->is_device ? snprintf(name, sizeof name, "[memory] of GPU %d", pool->index)
                                    : snprintf(name, sizeof name, "[memory] of the host");
  import_record_begin(record);
  import_record_word(record, number | (uint64_t)PROF_MEMORY_POOL << 32);
  import_record_word(record, (uint32_t)(pool->is_device ? device_type : PROF_DEVICE_CPU) |
                                 (uint64_t)(uint32_t)(pool->is_device ? pool->index : 0) << 32);
  import_record_word(record, number | UINT64_C(1) << 32);
  import_record_word(record, pool->used_before);
  import_record_word(record, pool->reserved_before);
  import_record_word(record, pool->is_known ? PROF_I_BASELINE_QUERIED : PROF_I_BASELINE_NONE);
  import_record_text(record, (import_text){name, (size_t)bytes});
  while (record->count < to_state) import_record_word(record, 0);
  memcpy(record->words + record->count, &pool->state, sizeof pool->state);
  record->count += sizeof pool->state / 8;
  import_record_end(record, PROF_I_KIND_POOL, 0, 0, 0, 0);
}

void import_pools_fini(import_pools *pools) {
  free(pools->pool_events);
  free(pools->counters);
}
