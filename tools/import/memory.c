/* Memory of a trace: [memory] and [OutOfMemory]. See internal.h. */
#include "internal.h"

#include "event.h"

static import_record memory_record; /* of the event at hand: no stack need hold it */

static void put_memory_mark(import_state *state, const import_event *event, uint64_t at,
                            const uint64_t *words, uint32_t count) {
  import_thread *const thread = import_host_thread(state, event);
  const uint64_t place = import_spool_add(&state->spool, words + 1, count - 1, IMPORT_ENTRY_MARK);
  import_thread_add(thread, (import_entry){at, at, place, state->order});
}

static void put_memory_note(import_state *state, const import_event *event, uint64_t at,
                            uint32_t pool, prof_i_verb verb, uint64_t bytes) {
  import_pools_note(&state->pools, pool, at, verb, bytes, &memory_record);
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
      import_pools_reserve(&state->pools, change->pool, reserved, change->bytes, change->total);
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
  return import_pools_get(&state->pools, is_device,
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
  import_pools_add(&state->pools, &change, address, words + 1);
  put_memory_mark(state, event, at, words, 4);
  state->counts->memory_events++;
}
