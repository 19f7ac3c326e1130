/* Fills the pools. The first replay finds peaks, counts and wrong calls. A second one stops at each
   peak, for the state there. */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/options.h"
#include "memory.h"

/* ---- the state at a moment ---- */

typedef struct block_gaps {
  uint64_t free, largest, covered;
} block_gaps;

static void add_gap(block_gaps *g, uint64_t bytes) {
  g->free += bytes;
  if (bytes > g->largest) g->largest = bytes;
}

/* The gaps between the allocations of a block. */
static void gaps_add_block(const prof_i_replay_pool *pool, const prof_i_addr_range *block,
                           block_gaps *g) {
  /* a block may end at the last address */
  const uint64_t last = block->address + (block->bytes - 1);
  uint64_t done = 0; /* of the block's bytes */
  uint32_t next = prof_i_addr_map_find_overlap(&pool->live, block->address, block->bytes);
  while (next && pool->live.nodes[next].address <= last) {
    const prof_i_addr_range *const piece = &pool->live.nodes[next];
    const uint64_t from = piece->address > block->address ? piece->address - block->address : 0;
    const uint64_t piece_last = piece->address + (piece->bytes - 1),
                   to = (piece_last < last ? piece_last : last) - block->address + 1;
    if (from > done) add_gap(g, from - done);
    g->covered += to - from;
    done = to;
    next = prof_i_addr_map_find_after(&pool->live, piece->address);
  }
  if (done < block->bytes) add_gap(g, block->bytes - done);
}

void prof_i_memory_describe(const prof_i_replay_pool *pool, prof_memory_state *state) {
  block_gaps g = {0};
  uint64_t known = 0;
  for (uint32_t i = 1; i < pool->blocks.used; i++) {
    if (pool->blocks.nodes[i].bytes) gaps_add_block(pool, &pool->blocks.nodes[i], &g);
    known += pool->blocks.nodes[i].bytes;
  }
  state->used_bytes = pool->used;
  state->allocated_bytes = pool->allocated;
  state->live_count = pool->live.count;
  state->live_bytes = pool->live_bytes;
  state->requested_bytes = pool->requested_bytes;
  state->has_ranges = pool->blocks.count && prof_i_memory_bytes_bounded(known) == pool->allocated &&
                      g.covered * 2 >= pool->live_bytes;
  if (!state->has_ranges) return;
  state->free_bytes = g.free;
  state->largest_free_bytes = g.largest;
  state->outside_bytes = pool->live_bytes > g.covered ? pool->live_bytes - g.covered : 0;
  state->fragmentation = g.free ? 1.0 - (double)g.largest / (double)g.free : 0;
}

/* ---- the first play ---- */

/* A peak since the last reset, while it is searched. */
typedef struct peak {
  int64_t bytes;
  uint64_t ns;
  uint32_t place; /* 0: none */
} peak;

typedef struct pool_peaks {
  peak used, allocated;
  uint64_t begin_ns; /* of the last reset */
  uint32_t number;   /* its events so far */
  int64_t step_used; /* at the previous step */
  bool has_step;
} pool_peaks;

typedef struct first_replay {
  prof_memory *memory;
  prof_i_replay play;
  pool_peaks *pool_peaks;
  prof_i_unknown_free *unknown; /* in order */
  uint32_t unknown_count, unknown_room;
  int64_t lookups_left; /* back from ends of collections */
  bool is_out_of_memory;
} first_replay;

uint64_t prof_i_memory_ns(const prof_memory *m, uint64_t ticks) {
  return prof_i_trace_ns(m->trace, ticks);
}

static void keep_unknown(first_replay *f, uint32_t pool_index, uint32_t item, bool is_sure,
                         const prof_i_memory_record *record) {
  if (prof_i_make_room((void **)&f->unknown, &f->unknown_room, f->unknown_count,
                       sizeof *f->unknown))
    f->unknown[f->unknown_count++] =
        (prof_i_unknown_free){record->address, item, pool_index, is_sure};
  else
    f->is_out_of_memory = true;
}

/* Keeps the first ones, by time. */
static void add_example(prof_memory *m, prof_i_memory_pool *pool, uint32_t item,
                        prof_memory_wrong wrong, const prof_i_memory_record *record) {
  const prof_i_memory_item *const from = &m->items[item];
  uint32_t at = pool->example_count;
  while (at && pool->examples[at - 1].ns > from->ns) at--;
  if (at == PROF_I_MEMORY_EXAMPLES) return;
  if (pool->example_count < PROF_I_MEMORY_EXAMPLES) pool->example_count++;
  memmove(&pool->examples[at + 1], &pool->examples[at],
          (pool->example_count - 1 - at) * sizeof *pool->examples);
  pool->examples[at] = (prof_memory_example){.wrong = wrong,
                                             .thread = from->thread,
                                             .ns = from->ns,
                                             .address = record->address,
                                             .bytes = record->bytes,
                                             .scope = m->scopes[from->scope]};
}

static void on_wrong(void *user, uint32_t pool_index, uint32_t item, prof_memory_wrong wrong,
                     const prof_i_memory_record *record) {
  first_replay *const f = user;
  prof_i_memory_pool *const pool = &f->memory->pools[pool_index];
  pool->info.wrong_count[wrong]++;
  if (wrong == PROF_MEMORY_WRONG_UNKNOWN && record->verb == PROF_I_VERB_FREE)
    keep_unknown(f, pool_index, item, true, record);
  add_example(f->memory, pool, item, wrong, record);
}

static void on_before(void *user, uint32_t pool_index, const prof_i_memory_record *record) {
  prof_memory_info *const info = &((first_replay *)user)->memory->pools[pool_index].info;
  info->from_before_count++;
  info->from_before_bytes += record->bytes;
}

static void on_unsure(void *user, uint32_t pool_index, uint32_t item, bool is_complete,
                      const prof_i_memory_record *record) {
  first_replay *const f = user;
  prof_memory_info *const info = &f->memory->pools[pool_index].info;
  info->unsure_count++;
  info->unsure_bytes += record->bytes;
  if (is_complete) keep_unknown(f, pool_index, item, false, record);
}

static void count_event(prof_memory_info *info, const prof_i_memory_record *record) {
  switch (record->verb) {
    case PROF_I_VERB_ALLOC:
      info->alloc_count++;
      break;
    case PROF_I_VERB_FREE:
      info->free_count++;
      break;
    case PROF_I_VERB_RESERVE:
      info->reserve_count++;
      break;
    case PROF_I_VERB_RELEASE:
      info->release_count++;
      break;
    case PROF_I_VERB_SAMPLE:
      info->sample_count++;
      break;
    case PROF_I_VERB_OOM:
      info->oom_count++;
      break;
    case PROF_I_VERB_COLLECT: /* the state counts those */
    case PROF_I_VERB_WRONG:
      break;
  }
}

static void peak_raise(peak *p, int64_t bytes, uint64_t ns, uint32_t place) {
  if (p->place && bytes <= p->bytes) return;
  *p = (peak){bytes, ns, place};
}

static uint64_t address_distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* The position of a pool's last reset among its events: after the last event counted before it. The
   number repeats after a million events, so the event nearest to the reset in time is taken. */
static void find_reset(prof_memory *m, uint32_t index, uint64_t begin_ns) {
  const prof_i_pool_record *const seen = &m->trace->catalog.pools[index];
  prof_i_memory_pool *const pool = &m->pools[index];
  pool->since_reset = seen->state.reset_count ? UINT32_MAX : 0;
  if (!seen->state.reset_count || seen->kind == PROF_MEMORY_QUERY) return;
  const uint64_t last =
      seen->state.used_peaks[seen->state.reset_count % PROF_I_PEAKS].base >> PROF_I_USED_BITS;
  uint64_t best = UINT64_MAX;
  for (uint32_t i = 0; i < pool->event_count; i++) {
    const prof_i_memory_item *const item = &m->items[m->order[m->places[pool->first_place + i]]];
    if (prof_i_memory_item_read(item).counter >> PROF_I_USED_BITS != last ||
        address_distance(item->ns, begin_ns) >= best)
      continue;
    best = address_distance(item->ns, begin_ns);
    pool->since_reset = i + 1;
  }
}

/* Whether the pool's event of this number is after the last reset. */
static bool event_is_since_reset(const prof_i_memory_pool *pool, uint32_t number, uint64_t ns,
                                 uint64_t begin_ns) {
  return pool->since_reset == UINT32_MAX ? ns >= begin_ns : number >= pool->since_reset;
}

/* Passes the steps that ended before the item's event; UINT32_MAX: all. */
static void tops_pass_steps(first_replay *f, uint32_t *step, uint32_t item) {
  const prof_memory *const m = f->memory;
  for (; *step < m->step_count &&
         (item == UINT32_MAX || prof_i_memory_step_is_before(m, &m->steps[*step], item));
       ++*step)
    for (uint32_t i = 0; i < m->trace->catalog.pool_count; i++) {
      pool_peaks *const t = &f->pool_peaks[i];
      prof_memory_info *const info = &m->pools[i].info;
      const int64_t used = f->play.pools[i].used, growth = used - t->step_used;
      if (t->has_step && growth > info->growth_bytes) {
        info->growth_bytes = growth;
        info->growth_step = m->steps[*step].number;
      }
      /* a query is unknown before its first answer */
      t->has_step = m->trace->catalog.pools[i].kind == PROF_MEMORY_POOL || info->sample_count > 0;
      t->step_used = used;
    }
}

/* Released between a collection's begin and its end, which stands at this place. A pool's
   collections are one after the other, so all together look at its events once; a damaged capture
   may say that each was as long as all. */
static uint64_t released_in(first_replay *f, uint32_t index, uint32_t place,
                            const prof_i_memory_record *record) {
  const prof_memory *const m = f->memory;
  const prof_i_memory_item *const end = &m->items[m->order[place]];
  const uint64_t end_ticks = end->words[0] >> 4,
                 begin_ns =
                     prof_i_memory_ns(m, end_ticks > record->extra ? end_ticks - record->extra : 0);
  uint64_t bytes = 0;
  while (place-- > 0 && m->items[m->order[place]].ns >= begin_ns && f->lookups_left-- > 0) {
    const prof_i_memory_record before = prof_i_memory_item_read(&m->items[m->order[place]]);
    if (before.verb == PROF_I_VERB_RELEASE && prof_i_memory_pool_index(m, before.pool) == index)
      bytes += before.bytes;
  }
  return bytes;
}

static void keep_failure(prof_memory *m, uint32_t index, uint32_t item,
                         const prof_i_memory_record *record, const prof_i_replay_pool *now) {
  prof_i_memory_pool *const pool = &m->pools[index];
  if (pool->failure_count == PROF_I_MEMORY_FAILURES) return;
  pool->failures[pool->failure_count++] = (prof_i_memory_failure){
      m->items[item].ns, record->bytes, now->used, now->allocated, m->scopes[m->items[item].scope]};
}

static int replay_all_pools(first_replay *f) {
  prof_memory *const m = f->memory;
  uint32_t step = 0, index;
  prof_i_memory_record record;
  int status = 1;
  while (f->play.next < m->item_count) {
    const uint64_t ns = m->items[m->order[f->play.next]].ns;
    tops_pass_steps(f, &step, m->order[f->play.next]);
    status = prof_i_replay_next(&f->play, &index, &record);
    if (status < 0) return status;
    if (index == UINT32_MAX) continue;
    count_event(&m->pools[index].info, &record);
    const prof_i_replay_pool *const pool = &f->play.pools[index];
    if (record.verb == PROF_I_VERB_COLLECT)
      m->pools[index].info.collection_released_bytes +=
          released_in(f, index, f->play.next - 1, &record);
    if (record.verb == PROF_I_VERB_OOM)
      keep_failure(m, index, m->order[f->play.next - 1], &record, pool);
    const int64_t played = prof_i_memory_bytes_bounded(pool->live_bytes + pool->before_bytes);
    if (!event_is_since_reset(&m->pools[index], f->pool_peaks[index].number++, ns,
                              f->pool_peaks[index].begin_ns))
      continue;
    peak_raise(&f->pool_peaks[index].used, pool->used, ns, f->play.next);
    peak_raise(&f->pool_peaks[index].allocated, pool->allocated, ns, f->play.next);
    if (played > m->pools[index].replayed_peak) m->pools[index].replayed_peak = played;
  }
  tops_pass_steps(f, &step, UINT32_MAX);
  return f->is_out_of_memory ? PROF_E_NO_MEMORY : 0;
}

/* ---- frees of what is not live: had it been handed out? ---- */

static void make_double_free(prof_memory *m, const prof_i_unknown_free *unknown,
                             const prof_i_memory_record *record) {
  prof_i_memory_pool *const pool = &m->pools[unknown->pool];
  pool->info.wrong_count[PROF_MEMORY_WRONG_DOUBLE]++;
  if (!unknown->is_sure) {
    pool->info.unsure_count--;
    pool->info.unsure_bytes -= record->bytes;
    add_example(m, pool, unknown->item, PROF_MEMORY_WRONG_DOUBLE, record);
    return;
  }
  pool->info.wrong_count[PROF_MEMORY_WRONG_UNKNOWN]--;
  for (uint32_t i = 0; i < pool->example_count; i++) {
    prof_memory_example *const example = &pool->examples[i];
    if (example->wrong == PROF_MEMORY_WRONG_UNKNOWN && example->address == unknown->address &&
        example->ns == m->items[unknown->item].ns)
      example->wrong = PROF_MEMORY_WRONG_DOUBLE;
  }
}

/* Addresses of unknown frees. The value is 1 + the pool that last allocated them. */
static bool gather_addresses(const first_replay *f, prof_i_addr_map *addresses) {
  addresses->room = f->unknown_count + 1;
  addresses->nodes = malloc(addresses->room * sizeof *addresses->nodes);
  if (!addresses->nodes) return false;
  for (uint32_t i = 0; i < f->unknown_count; i++)
    if (!prof_i_addr_map_find(addresses, f->unknown[i].address))
      prof_i_addr_map_insert(addresses, f->unknown[i].address, 1, 0);
  return true;
}

static int find_double_frees(const first_replay *f) {
  prof_memory *const m = f->memory;
  prof_i_addr_map addresses = {0};
  if (f->unknown_count == 0) return 0;
  if (!gather_addresses(f, &addresses)) return PROF_E_NO_MEMORY;
  uint32_t next = 0;
  for (uint32_t i = 0; i < m->item_count && next < f->unknown_count; i++) {
    const prof_i_memory_record record = prof_i_memory_item_read(&m->items[m->order[i]]);
    const prof_i_unknown_free *const unknown = &f->unknown[next];
    const uint32_t at = prof_i_addr_map_find(&addresses, record.address);
    if (at && record.verb == PROF_I_VERB_ALLOC)
      addresses.nodes[at].value = prof_i_memory_pool_index(m, record.pool) + 1ull;
    if (m->order[i] != unknown->item) continue;
    if (at && addresses.nodes[at].value == unknown->pool + 1ull)
      make_double_free(m, unknown, &record);
    next++;
  }
  free(addresses.nodes);
  return 0;
}

/* ---- the pools ---- */

static void describe_pool(const prof_memory *m, uint32_t index) {
  const prof_i_pool_record *const seen = &m->trace->catalog.pools[index];
  prof_memory_info *const info = &m->pools[index].info;
  info->size = sizeof *info;
  const size_t most = sizeof info->name - 1,
               bytes = seen->name.bytes < most ? (size_t)seen->name.bytes : most;
  memcpy(info->name, seen->name.data, bytes);
  info->device = seen->device;
  info->source = seen->kind;
  info->session = prof_i_pool_start_number(seen);
  info->pool = seen->number;
  info->has_baseline = prof_i_pool_knows_baseline(seen);
  info->used_before_bytes = seen->used_before;
  info->allocated_before_bytes = seen->allocated_before;
  info->collection_count = seen->state.collection_count;
  info->collection_ns = seen->state.collection_ns;
  info->refused_count = seen->state.refused_count;
  info->unchecked_count = seen->state.unchecked_count;
}

/* The pool's own peak is right whatever was lost. If the event that made it is known, so is the
   state then. */
static void set_peak(const prof_memory *m, const prof_i_peak *kept, int64_t kept_bytes,
                     int64_t begin_bytes, const peak *found, prof_memory_state *state,
                     uint32_t *place) {
  *place = found->place;
  const bool is_found = found->place && found->bytes == kept_bytes,
             is_begin = !is_found && kept_bytes <= begin_bytes;
  state->is_exact = is_found || is_begin;
  state->ns =
      is_found ? found->ns : prof_i_memory_ns(m, is_begin ? kept->begin_ticks : kept->peak_ticks);
  if (is_found) return;
  uint32_t low = 0; /* the events up to that time */
  while (low < m->item_count && m->items[m->order[low]].ns <= state->ns) low++;
  *place = low;
}

/* At least the present value. The writer may have been killed between the sum and the peak, or
   before a reset had found where the peak begins. */
static prof_i_peak at_least_zero(const prof_i_peak *kept, uint64_t now, uint64_t mask) {
  prof_i_peak reached = *kept;
  if (reached.peak_ticks < reached.begin_ticks) reached.peak_ticks = reached.begin_ticks;
  if ((now & mask) > (reached.peak & mask)) reached.peak = now;
  return reached;
}

static void set_peaks(const prof_memory *m, uint32_t index, const pool_peaks *t) {
  const prof_i_pool_record *const seen = &m->trace->catalog.pools[index];
  prof_i_memory_pool *const pool = &m->pools[index];
  const uint64_t reset_count = seen->state.reset_count % PROF_I_PEAKS;
  const prof_i_pool_state *const state = &seen->state;
  const bool is_query = seen->kind == PROF_MEMORY_QUERY;
  const prof_i_peak used =
      at_least_zero(&state->used_peaks[reset_count], is_query ? state->used_now : state->used,
                    is_query ? UINT64_MAX : PROF_I_USED_MASK);
  const prof_i_peak allocated =
      at_least_zero(&state->allocated_peaks[reset_count], state->allocated, UINT64_MAX);
  const int64_t used_bytes =
      is_query ? prof_i_memory_bytes_bounded(used.peak) : prof_i_used_bytes(used.peak);
  const int64_t allocated_bytes = prof_i_memory_bytes_bounded(allocated.peak - PROF_I_USED_ZERO);
  const int64_t used_begin = is_query ? prof_i_memory_bytes_bounded(used.base)
                                      : prof_i_used_bytes(used.base),
                allocated_begin = prof_i_memory_bytes_bounded(allocated.base - PROF_I_USED_ZERO);
  set_peak(m, &used, used_bytes, used_begin, &t->used, &pool->info.peak_used, &pool->peak_used_at);
  set_peak(m, &allocated, allocated_bytes, allocated_begin, &t->allocated,
           &pool->info.peak_allocated, &pool->peak_allocated_at);
  pool->info.peak_used.used_bytes = used_bytes;
  pool->info.peak_allocated.allocated_bytes = allocated_bytes;
}

/* Fills the state at an index in order. The pool's own peak stays. */
static void fill_state(const prof_i_replay_pool *pool, prof_memory_state *state, bool is_used) {
  const int64_t used = state->used_bytes, allocated = state->allocated_bytes;
  const uint64_t ns = state->ns;
  const uint32_t is_exact = state->is_exact;
  prof_i_memory_describe(pool, state);
  state->ns = ns;
  state->is_exact = is_exact;
  if (is_used)
    state->used_bytes = used;
  else
    state->allocated_bytes = allocated;
}

typedef struct replay_stop {
  uint32_t place, pool;
  bool is_used;
} replay_stop;

static int stop_compare_index(const void *a, const void *b) {
  const replay_stop *const x = a, *const y = b;
  return (x->place > y->place) - (x->place < y->place);
}

/* Replays up to each peak. */
static int replay_to_peaks(prof_memory *m) {
  const uint32_t count_of_pools = m->trace->catalog.pool_count;
  replay_stop *const stops = malloc(((size_t)count_of_pools * 2 + 1) * sizeof *stops);
  prof_i_replay play;
  int status = prof_i_replay_init(&play, m, UINT32_MAX);
  if (!stops) status = PROF_E_NO_MEMORY;
  for (uint32_t i = 0; !status && i < count_of_pools; i++) {
    stops[i * 2] = (replay_stop){m->pools[i].peak_used_at, i, true};
    stops[i * 2 + 1] = (replay_stop){m->pools[i].peak_allocated_at, i, false};
  }
  if (!status && count_of_pools)
    qsort(stops, (size_t)count_of_pools * 2, sizeof *stops, stop_compare_index);
  for (uint32_t i = 0; !status && i < count_of_pools * 2; i++) {
    prof_memory_info *const info = &m->pools[stops[i].pool].info;
    status = prof_i_replay_to(&play, stops[i].place);
    if (!status)
      fill_state(&play.pools[stops[i].pool],
                 stops[i].is_used ? &info->peak_used : &info->peak_allocated, stops[i].is_used);
  }
  free(stops);
  prof_i_replay_fini(&play);
  return status;
}

/* Lists each pool's events, for a replay of one pool. */
static bool list_pool_events(prof_memory *m) {
  const uint32_t count_of_pools = m->trace->catalog.pool_count;
  m->places = malloc(((size_t)m->item_count + 1) * sizeof *m->places);
  if (!m->places) return false;
  for (int is_second = 0; is_second < 2; is_second++) {
    uint32_t first = 0;
    for (uint32_t i = 0; is_second && i < count_of_pools; i++) {
      m->pools[i].first_place = first;
      first += m->pools[i].event_count;
      m->pools[i].event_count = 0;
    }
    for (uint32_t place = 0; place < m->item_count; place++) {
      const uint32_t index =
          prof_i_memory_pool_index(m, prof_i_memory_item_read(&m->items[m->order[place]]).pool);
      if (index == UINT32_MAX) continue;
      prof_i_memory_pool *const pool = &m->pools[index];
      if (is_second) m->places[pool->first_place + pool->event_count] = place;
      pool->event_count++;
    }
  }
  return true;
}

/* The bytes that an event adds, modulo 2^64, because a damaged capture may have any number. */
static uint64_t used_delta(const prof_i_memory_record *record) {
  return record->verb == PROF_I_VERB_ALLOC  ? record->bytes
         : record->verb == PROF_I_VERB_FREE ? 0 - record->bytes
                                            : 0;
}
static uint64_t allocated_delta(const prof_i_memory_record *record) {
  return record->verb == PROF_I_VERB_RESERVE   ? record->bytes
         : record->verb == PROF_I_VERB_RELEASE ? 0 - record->bytes
                                               : 0;
}

/* A pool's bytes before its first event in the capture, by the sums in that event. So they are
   right after a clear, and in a ring. Without events: its present bytes. */
static void find_begin(prof_memory *m, uint32_t index) {
  const prof_i_pool_record *const seen = &m->trace->catalog.pools[index];
  prof_i_memory_pool *const pool = &m->pools[index];
  const bool is_query = seen->kind == PROF_MEMORY_QUERY;
  pool->begin_used = is_query ? 0 : prof_i_used_bytes(seen->state.used);
  pool->begin_allocated =
      is_query ? prof_i_memory_bytes_bounded(seen->allocated_before)
               : prof_i_memory_bytes_bounded(seen->state.allocated - PROF_I_USED_ZERO);
  bool has_used = is_query, has_allocated = is_query;
  for (uint32_t i = 0; i < pool->event_count && !(has_used && has_allocated); i++) {
    const prof_i_memory_record record =
        prof_i_memory_item_read(&m->items[m->order[m->places[pool->first_place + i]]]);
    if (!has_used)
      pool->begin_used = prof_i_memory_bytes_bounded((uint64_t)prof_i_used_bytes(record.counter) -
                                                     used_delta(&record));
    has_used = true;
    if (record.verb < PROF_I_VERB_RESERVE) continue;
    pool->begin_allocated =
        prof_i_memory_bytes_bounded(record.allocated - PROF_I_USED_ZERO - allocated_delta(&record));
    has_allocated = true;
  }
}

bool prof_i_memory_find_begins(prof_memory *m) {
  if (!list_pool_events(m)) return false;
  for (uint32_t i = 0; i < m->trace->catalog.pool_count; i++) find_begin(m, i);
  return true;
}

int prof_i_memory_replay_all(prof_memory *m) {
  const uint32_t count_of_pools = m->trace->catalog.pool_count;
  if (!prof_i_memory_find_begins(m)) return PROF_E_NO_MEMORY;
  enum { LOOKUPS_PER_FREE = 64 }; /* pools that may collect at once */
  first_replay f = {.memory = m,
                    .lookups_left = (int64_t)m->item_count * LOOKUPS_PER_FREE,
                    .pool_peaks = calloc((size_t)count_of_pools + 1, sizeof *f.pool_peaks)};
  int status = prof_i_replay_init(&f.play, m, UINT32_MAX);
  if (!f.pool_peaks) status = PROF_E_NO_MEMORY;
  f.play.events = (prof_i_replay_observer){
      .wrong = on_wrong, .from_before = on_before, .unsure = on_unsure, .user = &f};
  for (uint32_t i = 0; i < count_of_pools && !status; i++) {
    const prof_i_pool_state *const state = &m->trace->catalog.pools[i].state;
    f.pool_peaks[i].begin_ns =
        prof_i_memory_ns(m, state->used_peaks[state->reset_count % PROF_I_PEAKS].begin_ticks);
    describe_pool(m, i);
    find_reset(m, i, f.pool_peaks[i].begin_ns);
  }
  if (!status) status = replay_all_pools(&f);
  if (!status) status = find_double_frees(&f);
  for (uint32_t i = 0; !status && i < count_of_pools; i++) {
    set_peaks(m, i, &f.pool_peaks[i]);
    prof_memory_state *const end = &m->pools[i].info.end;
    prof_i_memory_describe(&f.play.pools[i], end);
    const prof_i_pool_record *const seen = &m->trace->catalog.pools[i];
    end->ns = m->end_ns;
    end->is_exact = m->pools[i].info.missing_count == 0;
    end->used_bytes = seen->kind == PROF_MEMORY_QUERY
                          ? prof_i_memory_bytes_bounded(seen->state.used_now)
                          : prof_i_used_bytes(seen->state.used);
    end->allocated_bytes = prof_i_memory_bytes_bounded(seen->state.allocated - PROF_I_USED_ZERO);
    m->pools[i].replayed_end =
        prof_i_memory_bytes_bounded(f.play.pools[i].live_bytes + f.play.pools[i].before_bytes);
  }
  if (!status) status = replay_to_peaks(m);
  free(f.pool_peaks);
  free(f.unknown);
  prof_i_replay_fini(&f.play);
  return status;
}

/* ---- what is handed out ---- */

uint32_t prof_memory_pool_count(const prof_memory *memory) {
  return memory ? memory->trace->catalog.pool_count : 0;
}

int prof_memory_pool_get(const prof_memory *memory, uint32_t index, prof_memory_info *info_out) {
  if (!memory || !info_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_pool_get: %s is NULL",
                       memory ? "info_out" : "memory");
  if (index >= prof_memory_pool_count(memory))
    return prof_i_fail(PROF_E_INVALID, "prof_memory_pool_get: index is %u; there are %u pools",
                       index, prof_memory_pool_count(memory));
  return prof_i_sized_copy_out(info_out, &memory->pools[index].info,
                               sizeof memory->pools[index].info, "prof_memory_info");
}

int prof_memory_example_get(const prof_memory *memory, uint32_t pool_index, uint32_t index,
                            prof_memory_example *example_out) {
  if (!memory || !example_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_example_get: %s is NULL",
                       memory ? "example_out" : "memory");
  if (pool_index >= prof_memory_pool_count(memory) ||
      index >= memory->pools[pool_index].example_count)
    return prof_i_fail(PROF_E_NOT_FOUND, "there is no wrong call %u of pool %u", index, pool_index);
  *example_out = memory->pools[pool_index].examples[index];
  return PROF_OK;
}
