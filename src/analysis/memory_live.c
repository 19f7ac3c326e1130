/* What was live at a moment, grouped; used and allocated bytes over time; the sums of a device's
   pools. Each function replays the events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "internal.h"
#include "memory.h"

enum { SIZE_CLASSES = 64 };

/* ---- groups ---- */

/* A row without its texts. */
typedef struct live_sum {
  uint64_t key; /* index of the scope, site of the tag, size class, or address of the allocation */
  uint64_t count, bytes, requested, oldest_ns, newest_ns;
  uint32_t scope, tag;
} live_sum;

typedef struct live_sums {
  live_sum *of;
  uint32_t count, room;
} live_sums;

static uint32_t size_class(uint64_t bytes) {
  return bytes < 2 ? 0 : 63u - (uint32_t)__builtin_clzll(bytes);
}

static uint64_t row_key(prof_memory_by by, const prof_i_memory_item *item,
                        const prof_i_memory_record *record) {
  switch (by) {
    case PROF_MEMORY_BY_SCOPE:
      return item->scope;
    case PROF_MEMORY_BY_TAG:
      return record->tag;
    case PROF_MEMORY_BY_SIZE:
      return size_class(record->requested);
    case PROF_MEMORY_BY_ADDRESS:
      return record->address;
  }
  return 0;
}

static int sum_compare_key(const void *a, const void *b) {
  const live_sum *const x = a, *const y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->oldest_ns > y->oldest_ns) - (x->oldest_ns < y->oldest_ns);
}

static int sum_compare_bytes(const void *a, const void *b) {
  const live_sum *const x = a, *const y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return sum_compare_key(a, b);
}

/* A sum a piece. */
static bool sum_live_blocks(const prof_memory *m, const prof_i_replay_pool *pool, prof_memory_by by,
                            live_sums *s) {
  s->of = malloc(((size_t)pool->live.count + 1) * sizeof *s->of);
  if (!s->of) return false;
  for (uint32_t i = 1; i < pool->live.used; i++) {
    const prof_i_addr_range *const piece = &pool->live.nodes[i];
    if (piece->bytes == 0) continue;
    const prof_i_memory_item *const item = &m->items[piece->value];
    if (!prof_i_memory_filter_takes(m, item)) continue;
    const prof_i_memory_record record = prof_i_memory_item_read(item);
    const uint64_t requested = record.requested < piece->bytes ? record.requested : piece->bytes;
    s->of[s->count++] = (live_sum){row_key(by, item, &record),
                                   1,
                                   piece->bytes,
                                   requested,
                                   item->ns,
                                   item->ns,
                                   item->scope,
                                   record.tag};
  }
  return true;
}

/* Merges neighbours with the same key. */
static void sum_join_equal(live_sums *s) {
  if (s->count == 0) return;
  qsort(s->of, s->count, sizeof *s->of, sum_compare_key);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < s->count; i++) {
    live_sum *const to = &s->of[kept];
    const live_sum *const from = &s->of[i];
    if (to->key != from->key) {
      s->of[++kept] = *from;
      continue;
    }
    to->count += from->count;
    to->bytes += from->bytes;
    to->requested += from->requested;
    if (from->newest_ns > to->newest_ns) to->newest_ns = from->newest_ns;
  }
  s->count = kept + 1;
  qsort(s->of, s->count, sizeof *s->of, sum_compare_bytes);
}

/* ---- labels ---- */

static size_t put_bytes_text(char *to, size_t room, uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  uint32_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    unit++;
  }
  return (size_t)snprintf(to, room, "%llu %s", (unsigned long long)bytes, units[unit]);
}

/* "1 KiB - 2 KiB": the end is not included. */
static size_t put_class(char *to, size_t room, uint64_t class) {
  char low[32], high[32];
  put_bytes_text(low, sizeof low, class ? 1ull << class : 0);
  put_bytes_text(high, sizeof high, class < 63 ? 2ull << class : UINT64_MAX);
  return (size_t)snprintf(to, room, "%s - %s", low, high);
}

static size_t put_tag(const prof_memory *m, char *to, size_t room, uint32_t tag) {
  if (!tag) return 0;
  const prof_i_text name = prof_i_catalog_site(&m->trace->catalog, tag)->name;
  return prof_i_sanitize_utf8(to, room, name.data, (size_t)name.bytes);
}

/* Writes the label, if there is room. Returns its bytes. */
static size_t put_label(const prof_memory *m, char *to, size_t room, prof_memory_by by,
                        const live_sum *s) {
  char text[96];
  switch (by) {
    case PROF_MEMORY_BY_TAG:
      return put_tag(m, to, room, (uint32_t)s->key);
    case PROF_MEMORY_BY_SIZE: {
      const size_t bytes = put_class(text, sizeof text, s->key);
      memcpy(to, text, bytes < room ? bytes : room);
      return bytes;
    }
    case PROF_MEMORY_BY_SCOPE:
    case PROF_MEMORY_BY_ADDRESS: {
      const char *const scope = m->scopes[s->scope];
      const size_t bytes = strlen(scope);
      memcpy(to, scope, bytes < room ? bytes : room);
      return bytes;
    }
  }
  return 0;
}

/* One block of memory: the head, the rows, their texts. */
static prof_memory_rows *make_memory_rows(const prof_memory *m, prof_memory_by by,
                                          const live_sums *s) {
  size_t bytes = sizeof(prof_memory_rows) + (size_t)s->count * sizeof(prof_memory_row);
  char none[1];
  for (uint32_t i = 0; i < s->count; i++)
    bytes += put_label(m, none, 0, by, &s->of[i]) + 1 +
             (by == PROF_MEMORY_BY_ADDRESS ? put_tag(m, none, 0, s->of[i].tag) : 0) + 1;
  prof_memory_rows *const rows = malloc(bytes);
  if (!rows) return NULL;
  prof_memory_row *const row = (prof_memory_row *)(rows + 1);
  char *to = (char *)(row + s->count);
  *rows = (prof_memory_rows){.rows = row, .row_count = s->count};
  for (uint32_t i = 0; i < s->count; i++) {
    const live_sum *const from = &s->of[i];
    const char *const label = to;
    to += put_label(m, to, SIZE_MAX, by, from);
    *to++ = '\0';
    const char *const tag = to;
    if (by == PROF_MEMORY_BY_ADDRESS) to += put_tag(m, to, SIZE_MAX, from->tag);
    *to++ = '\0';
    row[i] = (prof_memory_row){.label = label,
                               .tag = tag,
                               .count = from->count,
                               .bytes = from->bytes,
                               .requested_bytes = from->requested,
                               .oldest_ns = from->oldest_ns,
                               .newest_ns = from->newest_ns,
                               .address = by == PROF_MEMORY_BY_ADDRESS ? from->key : 0};
    rows->count += from->count;
    rows->bytes += from->bytes;
    rows->requested_bytes += from->requested;
  }
  return rows;
}

/* ---- the moment ---- */

static uint32_t index_at_ns(const prof_memory *m, uint64_t ns) {
  uint32_t place = 0;
  while (place < m->item_count && m->items[m->order[place]].ns <= ns) place++;
  return place;
}

static uint32_t index_of_moment(const prof_memory *m, uint32_t index, prof_memory_moment moment,
                                uint64_t at_ns) {
  switch (moment) {
    case PROF_MEMORY_AT_PEAK_USED:
      return m->pools[index].peak_used_at;
    case PROF_MEMORY_AT_PEAK_ALLOCATED:
      return m->pools[index].peak_allocated_at;
    case PROF_MEMORY_AT_END:
      return m->item_count;
    case PROF_MEMORY_AT_TIME:
      return index_at_ns(m, at_ns);
  }
  return 0;
}

int prof_i_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                       uint64_t at_ns, prof_memory_by by, prof_memory_rows **rows_out) {
  if (!memory || !rows_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_live: %s is NULL",
                       memory ? "rows_out" : "memory");
  if (index >= prof_memory_pool_count(memory) || moment > PROF_MEMORY_AT_TIME ||
      by > PROF_MEMORY_BY_ADDRESS)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_live: index is %u of %u, moment %u, by %u",
                       index, prof_memory_pool_count(memory), (unsigned)moment, (unsigned)by);
  prof_i_replay play;
  live_sums s = {0};
  prof_memory_rows *rows = NULL;
  int status = prof_i_replay_init(&play, memory, index);
  if (!status) status = prof_i_replay_to(&play, index_of_moment(memory, index, moment, at_ns));
  if (!status && sum_live_blocks(memory, &play.pools[index], by, &s)) {
    sum_join_equal(&s);
    rows = make_memory_rows(memory, by, &s);
  }
  free(s.of);
  prof_i_replay_fini(&play);
  if (!rows) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for what was live");
  *rows_out = rows;
  return PROF_OK;
}

int prof_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                     uint64_t at_ns, prof_memory_by by, prof_memory_rows **rows_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_memory_live(memory, index, moment, at_ns, by, rows_out);
}

/* ---- over time ---- */

uint64_t prof_i_memory_begin_ns(const prof_memory *m, uint32_t index) {
  const prof_i_time_line *line = m->trace->timeline.lines;
  return prof_i_timeline_ns(&m->trace->timeline, &line, m->trace->catalog.pools[index].ticks);
}

/* Columns between two events have the value of the first. */
static void fill_columns_to(uint32_t *column, uint32_t to, const prof_i_replay_pool *pool,
                            int64_t *used_out, int64_t *allocated_out) {
  while (*column < to) {
    ++*column;
    used_out[*column] = pool->used;
    allocated_out[*column] = pool->allocated;
  }
}

static int replay_series(prof_i_replay *play, uint32_t index, uint32_t count, int64_t *used_out,
                         int64_t *allocated_out) {
  const prof_memory *const m = play->memory;
  const prof_i_replay_pool *const pool = &play->pools[index];
  const uint64_t begin = prof_i_memory_begin_ns(m, index),
                 span = m->end_ns > begin ? m->end_ns - begin : 1;
  uint32_t column = 0, played;
  used_out[0] = pool->used;
  allocated_out[0] = pool->allocated;
  for (uint32_t place; (place = prof_i_replay_next_index(play)) < m->item_count;) {
    const uint64_t ns = m->items[m->order[place]].ns;
    const double share = ns > begin ? (double)(ns - begin) / (double)span : 0;
    fill_columns_to(&column, share >= 1 ? count - 1 : (uint32_t)(share * count), pool, used_out,
                    allocated_out);
    prof_i_memory_record record;
    const int more = prof_i_replay_next(play, &played, &record);
    if (more < 0) return more;
    if (pool->used > used_out[column]) used_out[column] = pool->used;
    if (pool->allocated > allocated_out[column]) allocated_out[column] = pool->allocated;
  }
  fill_columns_to(&column, count - 1, pool, used_out, allocated_out);
  return 0;
}

int prof_i_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                         int64_t *used_bytes_out, int64_t *allocated_bytes_out) {
  if (!memory || !used_bytes_out || !allocated_bytes_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_series: an argument is NULL");
  if (index >= prof_memory_pool_count(memory) || count == 0)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_series: index is %u of %u, count %u", index,
                       prof_memory_pool_count(memory), count);
  prof_i_replay play;
  int status = prof_i_replay_init(&play, memory, index);
  if (!status) status = replay_series(&play, index, count, used_bytes_out, allocated_bytes_out);
  prof_i_replay_fini(&play);
  return status ? prof_i_fail(status, "no memory to play %u events", memory->item_count) : PROF_OK;
}

int prof_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                       int64_t *used_bytes_out, int64_t *allocated_bytes_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_memory_series(memory, index, count, used_bytes_out, allocated_bytes_out);
}

/* ---- a device ---- */

static bool pool_is_of_source(const prof_i_pool_record *pool, prof_device device, uint32_t source,
                              uint32_t session) {
  return prof_i_is_same_device(pool->device, device) && pool->kind == source &&
         (!session || prof_i_pool_start_number(pool) == session);
}

static void add_info(prof_memory_info *to, const prof_memory_info *from) {
  to->has_baseline &= from->has_baseline;
  to->used_before_bytes += from->used_before_bytes;
  to->allocated_before_bytes += from->allocated_before_bytes;
  to->alloc_count += from->alloc_count;
  to->free_count += from->free_count;
  to->reserve_count += from->reserve_count;
  to->release_count += from->release_count;
  to->sample_count += from->sample_count;
  to->collection_count += from->collection_count;
  to->collection_ns += from->collection_ns;
  to->collection_released_bytes += from->collection_released_bytes;
  to->oom_count += from->oom_count;
  to->missing_count += from->missing_count;
  to->refused_count += from->refused_count;
  to->unchecked_count += from->unchecked_count;
  to->from_before_count += from->from_before_count;
  to->from_before_bytes += from->from_before_bytes;
  to->unsure_count += from->unsure_count;
  to->unsure_bytes += from->unsure_bytes;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) to->wrong_count[i] += from->wrong_count[i];
}

static void add_state(prof_memory_state *to, const prof_i_replay_pool *pool) {
  prof_memory_state own = {0};
  prof_i_memory_describe(pool, &own);
  to->used_bytes += own.used_bytes;
  to->allocated_bytes += own.allocated_bytes;
  to->live_count += own.live_count;
  to->live_bytes += own.live_bytes;
  to->requested_bytes += own.requested_bytes;
  to->free_bytes += own.free_bytes;
  if (own.largest_free_bytes > to->largest_free_bytes)
    to->largest_free_bytes = own.largest_free_bytes;
  to->outside_bytes += own.outside_bytes;
  to->has_ranges |= own.has_ranges;
  to->fragmentation =
      to->free_bytes ? 1.0 - (double)to->largest_free_bytes / (double)to->free_bytes : 0;
}

static void describe_device(const prof_i_replay *play, prof_device device, uint32_t source,
                            uint32_t session, prof_memory_state *state) {
  for (uint32_t i = 0; i < play->memory->trace->catalog.pool_count; i++)
    if (pool_is_of_source(&play->memory->trace->catalog.pools[i], device, source, session))
      add_state(state, &play->pools[i]);
}

static int describe_device_at(const prof_memory *m, uint32_t place, prof_device device,
                              uint32_t source, uint32_t session, prof_memory_state *state) {
  prof_i_replay play;
  int status = prof_i_replay_init(&play, m, UINT32_MAX);
  if (!status) status = prof_i_replay_to(&play, place);
  if (!status) describe_device(&play, device, source, session, state);
  prof_i_replay_fini(&play);
  return status;
}

/* The time of the last reset; 0: none. */
static uint64_t peaks_from(const prof_memory *m, prof_device device, uint32_t source,
                           uint32_t session) {
  uint64_t from_ns = 0;
  for (uint32_t i = 0; i < m->trace->catalog.pool_count; i++) {
    const prof_i_pool_record *const pool = &m->trace->catalog.pools[i];
    if (!pool_is_of_source(pool, device, source, session) || pool->state.reset_count == 0) continue;
    const uint64_t ns = prof_i_memory_ns(
        m, pool->state.used_peaks[pool->state.reset_count % PROF_I_PEAKS].begin_ticks);
    if (ns > from_ns) from_ns = ns;
  }
  return from_ns;
}

/* Growth between two steps, of several pools together. */
typedef struct step_growth {
  uint32_t step;
  int64_t used; /* at the mark before */
  bool has_mark;
} step_growth;

/* Passes the steps that ended before the item's event; UINT32_MAX: all. */
static void growth_pass_steps(const prof_memory *m, step_growth *g, uint32_t item, int64_t used,
                              bool has_answer, prof_memory_info *info) {
  for (; g->step < m->step_count &&
         (item == UINT32_MAX || prof_i_memory_step_is_before(m, &m->steps[g->step], item));
       g->step++) {
    if (g->has_mark && used - g->used > info->growth_bytes) {
      info->growth_bytes = used - g->used;
      info->growth_step = m->steps[g->step].number;
    }
    g->has_mark = info->source == PROF_MEMORY_POOL || has_answer;
    g->used = used;
  }
}

/* Finds the peaks of the sums of several pools since the reset, and the step with the largest
   growth. */
static int find_peaks(const prof_memory *m, prof_memory_info *info, uint32_t *used_at,
                      uint32_t *allocated_at) {
  const prof_device device = info->device;
  const uint32_t source = info->source, session = info->session;
  step_growth grown = {0};
  bool has_answer = false; /* of a query */
  prof_i_replay play;
  int status = prof_i_replay_init(&play, m, UINT32_MAX);
  int64_t used = 0, allocated = 0;
  for (uint32_t i = 0; !status && i < m->trace->catalog.pool_count; i++) {
    if (!pool_is_of_source(&m->trace->catalog.pools[i], device, source, session)) continue;
    used += play.pools[i].used;
    allocated += play.pools[i].allocated;
  }
  const uint64_t from_ns = peaks_from(m, device, source, session);
  int64_t used_peak = used, allocated_peak = allocated;
  bool has_begun = from_ns == 0;
  *used_at = *allocated_at = 0;
  while (!status && play.next < m->item_count) {
    growth_pass_steps(m, &grown, m->order[play.next], used, has_answer, info);
    if (!has_begun && m->items[m->order[play.next]].ns > from_ns) {
      has_begun = true;
      used_peak = used;
      allocated_peak = allocated;
      *used_at = *allocated_at = play.next;
    }
    uint32_t index =
        prof_i_memory_pool_index(m, prof_i_memory_item_read(&m->items[m->order[play.next]]).pool);
    const bool counts = index != UINT32_MAX &&
                        pool_is_of_source(&m->trace->catalog.pools[index], device, source, session);
    const prof_i_replay_pool *const pool = counts ? &play.pools[index] : NULL;
    const int64_t used_before = counts ? pool->used : 0,
                  allocated_before = counts ? pool->allocated : 0;
    prof_i_memory_record record;
    const int more = prof_i_replay_next(&play, &index, &record);
    if (more < 0) status = more;
    if (!counts || status) continue;
    has_answer = true;
    /* one query answers at a time */
    used = source == PROF_MEMORY_QUERY ? pool->used : used + pool->used - used_before;
    allocated = source == PROF_MEMORY_QUERY ? pool->allocated
                                            : allocated + pool->allocated - allocated_before;
    if (!has_begun || used > used_peak) used_peak = used, *used_at = play.next;
    if (!has_begun || allocated > allocated_peak)
      allocated_peak = allocated, *allocated_at = play.next;
  }
  growth_pass_steps(m, &grown, UINT32_MAX, used, has_answer, info);
  prof_i_replay_fini(&play);
  return status;
}

static uint64_t ns_after_index(const prof_memory *m, uint32_t place) {
  return place ? m->items[m->order[place - 1]].ns : 0;
}

/* Applies the pools' own counts, which are right whatever was lost. The end is the sum of their
   ends; for queries, the last answer. The peak is at least the end, and at least each pool's
   peak. */
static void raise_to_pool_peaks(const prof_memory *m, prof_memory_info *info) {
  info->end.used_bytes = info->end.allocated_bytes = 0;
  for (uint32_t i = 0; i < m->trace->catalog.pool_count; i++) {
    if (!pool_is_of_source(&m->trace->catalog.pools[i], info->device, info->source, info->session))
      continue;
    const prof_memory_info *const pool = &m->pools[i].info;
    if (info->source == PROF_MEMORY_QUERY && pool->sample_count)
      info->end.used_bytes = info->end.allocated_bytes = 0;
    if (info->source == PROF_MEMORY_QUERY && !pool->sample_count) continue;
    info->end.used_bytes += pool->end.used_bytes;
    info->end.allocated_bytes += pool->end.allocated_bytes;
    if (pool->peak_used.used_bytes > info->peak_used.used_bytes) info->peak_used = pool->peak_used;
    if (pool->peak_allocated.allocated_bytes > info->peak_allocated.allocated_bytes)
      info->peak_allocated = pool->peak_allocated;
  }
  if (info->end.used_bytes > info->peak_used.used_bytes) info->peak_used = info->end;
  if (info->end.allocated_bytes > info->peak_allocated.allocated_bytes)
    info->peak_allocated = info->end;
}

static int fill_device(const prof_memory *m, prof_memory_info *info) {
  uint32_t used_at, allocated_at;
  int status = find_peaks(m, info, &used_at, &allocated_at);
  if (!status)
    status =
        describe_device_at(m, used_at, info->device, info->source, info->session, &info->peak_used);
  if (!status)
    status = describe_device_at(m, allocated_at, info->device, info->source, info->session,
                                &info->peak_allocated);
  if (!status)
    status =
        describe_device_at(m, m->item_count, info->device, info->source, info->session, &info->end);
  info->peak_used.ns = ns_after_index(m, used_at);
  info->peak_allocated.ns = ns_after_index(m, allocated_at);
  info->end.ns = m->end_ns;
  if (!status) raise_to_pool_peaks(m, info);
  info->peak_used.is_exact = info->peak_allocated.is_exact = info->end.is_exact =
      info->missing_count == 0;
  return status;
}

int prof_memory_device_get(const prof_memory *memory, prof_device device, prof_memory_source source,
                           prof_memory_info *info_out) {
  PROF_I_DEFAULT_FP;
  if (!memory || !info_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_device_get: %s is NULL",
                       memory ? "info_out" : "memory");
  if (device.type == 0) device = PROF_HOST;
  prof_memory_info info = {.size = sizeof info, .name = "device", .device = device};
  uint32_t pool_count = 0, last = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    const prof_i_pool_record *const pool = &memory->trace->catalog.pools[i];
    const bool better = source == PROF_MEMORY_ANY && info.source != PROF_MEMORY_POOL;
    if (!pool_is_of_source(pool, device, source == PROF_MEMORY_ANY ? pool->kind : source, 0))
      continue;
    if (!info.source || (better && pool->kind == PROF_MEMORY_POOL))
      info.source = pool->kind, info.session = 0;
    if (pool->kind == info.source && prof_i_pool_start_number(pool) > info.session)
      info.session = prof_i_pool_start_number(pool);
  }
  for (uint32_t i = 0; info.source && i < prof_memory_pool_count(memory); i++) {
    if (!pool_is_of_source(&memory->trace->catalog.pools[i], device, info.source, info.session))
      continue;
    if (pool_count == 0) info.has_baseline = 1; /* until one has none */
    add_info(&info, &memory->pools[i].info);
    pool_count++;
    last = i;
  }
  if (!pool_count)
    return prof_i_fail(PROF_E_NOT_FOUND, "the trace has no memory of device %d:%d", device.type,
                       device.index);
  if (pool_count == 1) { /* its own count is right whatever is lost */
    const uint32_t source_of = info.source, session = info.session;
    info = memory->pools[last].info;
    info.source = source_of;
    info.session = session;
    info.pool = 0;
    snprintf(info.name, sizeof info.name, "device");
  } else {
    const int status = fill_device(memory, &info);
    if (status) return prof_i_fail(status, "no memory to play %u events", memory->item_count);
  }
  return prof_i_sized_copy_out(info_out, &info, sizeof info, "prof_memory_info");
}
