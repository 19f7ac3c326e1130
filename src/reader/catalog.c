/* Reads the catalog from meta extents: call sites, argument schemas, names of tracks, clock pairs,
   sessions. Texts stay in the capture. Memory is a small multiple of the records read, whatever
   their numbers are. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "../base/fault.h"
#include "../format/layout.h"
#include "../format/parse.h"

/* ---- processes ---- */

/* Maps a thread of a trace to its process: the capture's process, or one that a record of the
   import names. */

/* Reads a record of the kind PROCESS. 0 or PROF_E_NO_MEMORY. */
static int catalog_add_process(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  const uint64_t *at = words + 5;
  uint64_t left = word_count < 5 ? 0 : word_count - 5;
  prof_i_process_record seen = {.rank = -1};
  if (word_count < 6 || !prof_i_consume_text(&at, &left, &seen.name)) {
    trace->bad_count++;
    return 0;
  }
  seen.serial = words[3];
  seen.pid = (int64_t)words[4];
  if (!prof_i_make_room((void **)&catalog->processes, &catalog->process_room,
                        catalog->process_count, sizeof *catalog->processes))
    return PROF_E_NO_MEMORY;
  catalog->processes[catalog->process_count++] = seen;
  return 0;
}

static int process_compare_serial(const void *a, const void *b) {
  const prof_i_process_record *const x = a, *const y = b;
  if (x->serial != y->serial) return x->serial < y->serial ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

static void catalog_sort_processes(prof_i_catalog *catalog) {
  if (catalog->process_count)
    qsort(catalog->processes, catalog->process_count, sizeof *catalog->processes,
          process_compare_serial);
}

static const prof_i_process_record *process_find(const prof_i_catalog *catalog, uint64_t serial) {
  uint32_t low = 0, high = catalog->process_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (catalog->processes[middle].serial < serial)
      low = middle + 1;
    else
      high = middle;
  }
  return low < catalog->process_count && catalog->processes[low].serial == serial
             ? &catalog->processes[low]
             : NULL;
}

prof_i_process_record prof_i_trace_process(const prof_trace *trace, uint32_t thread) {
  const prof_i_header *const header = &trace->header;
  const prof_i_process_record *const seen =
      process_find(&trace->catalog, trace->threads[thread].serial);
  if (seen) return *seen;
  const size_t bytes = strnlen(header->process_name, sizeof header->process_name);
  return (prof_i_process_record){
      .pid = header->pid,
      .rank = prof_i_world_has_ranks(header->world_size) ? header->rank : -1,
      .name = {header->process_name, bytes}};
}

/* ---- the catalog ---- */

enum { STEP_ROOM = 16, WALL_STEP_NS_MIN = 1000000 };

bool prof_i_make_room(void **array, uint32_t *room, uint32_t count, size_t element_bytes) {
  if (count < *room) return true;
  const uint32_t more = *room < STEP_ROOM         ? STEP_ROOM
                        : *room <= UINT32_MAX / 2 ? *room * 2
                                                  : UINT32_MAX;
  if (count >= more) return false;
  void *const larger = realloc(*array, more * element_bytes);
  if (!larger) return false;
  *array = larger;
  *room = more;
  return true;
}

bool prof_i_make_room_at_index(void **array, uint32_t *room, uint32_t place, size_t element_bytes) {
  if (place < *room) return true;
  uint32_t more = *room ? *room : 64;
  while (more <= place)
    if ((more *= 2) == 0) return false;
  char *const larger = realloc(*array, more * element_bytes);
  if (!larger) return false;
  memset(larger + *room * element_bytes, 0, (more - *room) * element_bytes);
  *array = larger;
  *room = more;
  return true;
}

int prof_i_catalog_init(prof_i_catalog *catalog) {
  static const prof_i_site_info unknown = {{"(unknown)", 9}, {"", 0}, {"", 0}, {"", 0}, 0, 1, NULL};
  memset(catalog, 0, sizeof *catalog);
  if (!prof_i_make_room((void **)&catalog->sites, &catalog->site_room, 0, sizeof *catalog->sites))
    return PROF_E_NO_MEMORY;
  catalog->sites[catalog->site_count++] = unknown;
  return 0;
}

void prof_i_catalog_fini(prof_i_catalog *catalog) {
  free(catalog->site_at);
  free(catalog->sites);
  free(catalog->schemas);
  free(catalog->tracks);
  free(catalog->devices);
  free(catalog->pairs);
  free(catalog->marks);
  free(catalog->function_ends);
  free(catalog->changes);
  free(catalog->notes);
  free(catalog->processes);
  free(catalog->pools);
  memset(catalog, 0, sizeof *catalog);
}

/* ---- sites ---- */

/* A record's own name replaces it. If that name was lost, the function at least shows where the
   scope was. PyTorch's ranges may have an empty name, which its tables show as such. */
static prof_i_text name_or_function(const prof_i_site_info *site) {
  static const prof_i_text none = {"(no name)", 9};
  if (site->name.bytes || prof_i_observed_has(site->line, site->file.bytes)) return site->name;
  return site->function.bytes ? site->function : none;
}

/* The record of the site's scopes, which follows the texts, or the rest of a slot. */
static bool next_record(const uint64_t *at, uint64_t left, const uint64_t **record_out) {
  prof_i_long_record record;
  if (left < 4) return true;
  const uint64_t slots = prof_i_long_record_slots(at, left / 2);
  if (!slots || !prof_i_long_record_read(at, slots * 2, &record) ||
      record.kind != PROF_I_KIND_SCOPE || record.flags)
    return false;
  *record_out = at;
  return true;
}

static int add_site(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  const uint32_t number = prof_i_record_site(words[1]);
  const uint64_t *at = words + 4;
  uint64_t left = word_count - 4;
  prof_i_site_info site = {.line = (uint32_t)words[3], .level = (uint32_t)(words[3] >> 32)};
  prof_i_text *const texts[] = {&site.name, &site.category, &site.file, &site.function};
  bool fits = number != 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts && fits; i++)
    fits = prof_i_consume_text(&at, &left, texts[i]);
  if (!fits) {
    trace->bad_count++;
    return 0;
  }
  site.name = name_or_function(&site);
  if (!next_record(at, left, &site.record)) trace->bad_count++;
  if (site.record) trace->has_site_records = true;
  /* The table by number: 4 bytes a number, at most 4 MiB. */
  if (!prof_i_make_room_at_index((void **)&catalog->site_at, &catalog->site_limit, number,
                                 sizeof *catalog->site_at))
    return PROF_E_NO_MEMORY;
  uint32_t place = catalog->site_at[number];
  if (!place) {
    if (!prof_i_make_room((void **)&catalog->sites, &catalog->site_room, catalog->site_count,
                          sizeof *catalog->sites))
      return PROF_E_NO_MEMORY;
    place = catalog->site_at[number] = catalog->site_count++;
  }
  catalog->sites[place] = site;
  return 0;
}

/* ---- schemas ---- */

static int add_schema(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  prof_i_schema schema = {
      .record = words, .number = (uint32_t)words[3], .kind = words[3] >> 32 & 0xff};
  const uint64_t count = words[3] >> 40;
  const uint64_t *at = words + 4;
  uint64_t left = word_count - 4;
  prof_i_text text;
  schema.format = (uint32_t)(at - words);
  bool fits = count <= PROF_ARGS_MAX && schema.number != 0 && schema.kind <= PROF_ARGS_LIST &&
              prof_i_consume_text(&at, &left, &text);
  for (uint64_t i = 0; i < count && fits; i++) {
    fits = left >= 1 && *at >= PROF_ARG_I64 && *at <= PROF_ARG_TENSOR;
    if (!fits) break;
    schema.types[i] = (uint8_t)*at++;
    left--;
    schema.keys[i] = (uint32_t)(at - words);
    fits = prof_i_consume_text(&at, &left, &text);
  }
  if (!fits) {
    trace->bad_count++;
    return 0;
  }
  schema.count = (uint8_t)count;
  if (!prof_i_make_room((void **)&catalog->schemas, &catalog->schema_room, catalog->schema_count,
                        sizeof *catalog->schemas))
    return PROF_E_NO_MEMORY;
  catalog->schemas[catalog->schema_count++] = schema;
  return 0;
}

static int schema_compare_number(const void *a, const void *b) {
  const prof_i_schema *const x = a, *const y = b;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  return (x->record > y->record) - (x->record < y->record);
}

const prof_i_schema *prof_i_catalog_schema(const prof_i_catalog *catalog, uint32_t number) {
  /* Numbers are given one after another, so the guess is nearly always right. */
  if (number && number <= catalog->schema_count && catalog->schemas[number - 1].number == number)
    return &catalog->schemas[number - 1];
  uint32_t low = 0, high = catalog->schema_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (catalog->schemas[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < catalog->schema_count && catalog->schemas[low].number == number
             ? &catalog->schemas[low]
             : NULL;
}

/* ---- tracks, clock pairs, sessions ---- */

static int add_track(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  prof_i_track track = {.device = {(int32_t)(uint32_t)words[3], (int32_t)(words[3] >> 32)}};
  const uint64_t *at = words + 5;
  uint64_t left = word_count - 5;
  if (word_count < 6 || !prof_i_consume_text(&at, &left, &track.name)) {
    trace->bad_count++;
    return 0;
  }
  track.stream = words[4];
  if (!prof_i_make_room((void **)&catalog->tracks, &catalog->track_room, catalog->track_count,
                        sizeof *catalog->tracks))
    return PROF_E_NO_MEMORY;
  catalog->tracks[catalog->track_count++] = track;
  return 0;
}

static int track_compare(const void *a, const void *b) {
  const prof_i_track *const x = a, *const y = b;
  if (x->device.type != y->device.type) return x->device.type < y->device.type ? -1 : 1;
  if (x->device.index != y->device.index) return x->device.index < y->device.index ? -1 : 1;
  if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
  return (x->name.data > y->name.data) - (x->name.data < y->name.data);
}

/* The last name of a track counts. Meta extents are read in the order of their creation. */
static void drop_older_track_names(prof_i_catalog *catalog) {
  if (catalog->track_count == 0) return;
  qsort(catalog->tracks, catalog->track_count, sizeof *catalog->tracks, track_compare);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < catalog->track_count; i++) {
    const prof_i_track *const last = &catalog->tracks[kept], *const track = &catalog->tracks[i];
    const bool same =
        prof_i_is_same_device(last->device, track->device) && last->stream == track->stream;
    kept += !same;
    catalog->tracks[kept] = *track;
  }
  catalog->track_count = kept + 1;
}

/* How much CLOCK_REALTIME has moved against CLOCK_MONOTONIC since the start. Both are adjusted
   alike, so only steps and sleeps of the machine change it. */
static void note_wall_clock(prof_i_catalog *catalog, int64_t ahead_ns, uint64_t width_ns) {
  const uint64_t bound = width_ns / 2 + catalog->wall_width_ns / 2 < UINT64_MAX / 4
                             ? width_ns + catalog->wall_width_ns + WALL_STEP_NS_MIN
                             : UINT64_MAX;
  const uint64_t moved = ahead_ns > catalog->wall_ns
                             ? (uint64_t)ahead_ns - (uint64_t)catalog->wall_ns
                             : (uint64_t)catalog->wall_ns - (uint64_t)ahead_ns;
  if (moved > bound) {
    catalog->wall_step_count++;
    catalog->wall_ns = ahead_ns;
  }
  catalog->wall_width_ns = width_ns;
}

static int add_pair(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  if (word_count < 8) {
    trace->bad_count++;
    return 0;
  }
  const int64_t ticks = prof_i_ticks_since(words[3] << 4, trace->header.start_ticks);
  const int64_t ns = (int64_t)(words[4] - trace->header.start_monotonic_ns);
  if (ns < 0) {
    trace->bad_count++;
    return 0;
  }
  note_wall_clock(catalog, (int64_t)(words[5] - trace->header.start_realtime_ns - (uint64_t)ns),
                  word_count > 8 ? words[8] : words[6]);
  if (!prof_i_make_room((void **)&catalog->pairs, &catalog->pair_room, catalog->pair_count,
                        sizeof *catalog->pairs))
    return PROF_E_NO_MEMORY;
  catalog->pairs[catalog->pair_count++] =
      (prof_i_time_pair){(uint64_t)ticks, (uint64_t)ns, words[6], words[7]};
  return 0;
}

/* As recorded, until the epochs are known: clock_epoch.c. */
static int add_ticks(uint64_t **moments, uint32_t *room, uint32_t *count, int64_t ticks) {
  if (!prof_i_make_room((void **)moments, room, *count, sizeof **moments)) return PROF_E_NO_MEMORY;
  (*moments)[(*count)++] = (uint64_t)ticks;
  return 0;
}

static int add_session(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  if (word_count < 6) {
    trace->bad_count++;
    return 0;
  }
  if (words[5] == 2 && word_count > 6 && words[6] > catalog->first_session)
    catalog->first_session = words[6];
  const int64_t ticks = prof_i_ticks_since(words[0], trace->header.start_ticks);
  if (words[5] == PROF_I_SESSION_FUNCTIONS_END)
    return add_ticks(&catalog->function_ends, &catalog->function_end_room,
                     &catalog->function_end_count, ticks);
  if (words[5] != 1) return 0;
  catalog->last_level = (uint32_t)words[4];
  return add_ticks(&catalog->marks, &catalog->mark_room, &catalog->mark_count, ticks);
}

/* ---- changes ---- */

static int add_change(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  const bool is_whole = word_count >= 9 && words[3] >= PROF_CHANGE_LEVEL &&
                        words[3] <= PROF_CHANGE_HEARD && words[4] >= PROF_REASON_ASKED &&
                        words[4] <= PROF_REASON_OUTSIDE;
  if (!is_whole) {
    trace->bad_count++;
    return 0;
  }
  if (!prof_i_make_room((void **)&catalog->changes, &catalog->change_room, catalog->change_count,
                        sizeof *catalog->changes))
    return PROF_E_NO_MEMORY;
  const int64_t ticks = prof_i_ticks_since(words[0], trace->header.start_ticks);
  /* as marks */
  catalog->changes[catalog->change_count++] =
      (prof_i_change_record){.ticks = (uint64_t)ticks,
                             .kind = (uint32_t)words[3],
                             .reason = (uint32_t)words[4],
                             .site = prof_i_record_site(words[1]),
                             .level_before = (uint32_t)words[5],
                             .level_after = (uint32_t)(words[5] >> 32),
                             .serial = words[6],
                             .measured = words[7],
                             .allowed = words[8]};
  prof_i_change_record *const seen = &catalog->changes[catalog->change_count - 1];
  if (seen->kind == PROF_CHANGE_LEVEL && seen->level_after) catalog->last_level = seen->level_after;
  if (seen->reason != PROF_REASON_OUTSIDE) return 0;
  seen->monotonic_ns = seen->measured;
  if (seen->allowed > catalog->outside_count) catalog->outside_count = seen->allowed;
  seen->measured = seen->allowed = 0;
  return 0;
}

/* ---- pools of memory ---- */

static int add_pool(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  /* as marks */
  prof_i_pool_record pool = {.ticks =
                                 (uint64_t)prof_i_ticks_since(words[0], trace->header.start_ticks)};
  const uint64_t from = (uint64_t)((const unsigned char *)(words + PROF_I_POOL_STATE_WORD) -
                                   trace->source.bytes),
                 line = PROF_I_POOL_STATE_ALIGNMENT;
  const uint64_t to_state = PROF_I_POOL_STATE_WORD + ((from + line - 1) / line * line - from) / 8;
  const uint64_t *at = words + PROF_I_POOL_NAME_WORD;
  uint64_t left =
      word_count < PROF_I_POOL_STATE_WORD ? 0 : PROF_I_POOL_STATE_WORD - PROF_I_POOL_NAME_WORD;
  const bool is_whole =
      word_count >= to_state + sizeof pool.state / 8 && words[3] >> 32 >= PROF_MEMORY_POOL &&
      words[3] >> 32 <= PROF_MEMORY_QUERY && (uint32_t)words[3] != 0 && (uint32_t)words[4] != 0 &&
      (uint32_t)words[8] <= PROF_I_BASELINE_PART && prof_i_consume_text(&at, &left, &pool.name);
  if (!is_whole) {
    trace->bad_count++;
    return 0;
  }
  pool.number = (uint32_t)words[3];
  pool.kind = (uint32_t)(words[3] >> 32);
  pool.device = (prof_device){(int32_t)(uint32_t)words[4], (int32_t)(words[4] >> 32)};
  pool.serial = (uint32_t)words[5];
  pool.session = (uint32_t)(words[5] >> 32);
  pool.used_before = words[6];
  pool.allocated_before = words[7];
  pool.baseline = (uint32_t)words[8];
  pool.start = (uint32_t)(words[8] >> 32);
  memcpy(&pool.state, words + to_state, sizeof pool.state);
  if (!prof_i_make_room((void **)&catalog->pools, &catalog->pool_room, catalog->pool_count,
                        sizeof *catalog->pools))
    return PROF_E_NO_MEMORY;
  catalog->pools[catalog->pool_count++] = pool;
  return 0;
}

static int pool_compare_number(const void *a, const void *b) {
  const prof_i_pool_record *const x = a, *const y = b;
  return (x->number > y->number) - (x->number < y->number);
}

const prof_i_pool_record *prof_i_catalog_pool(const prof_i_catalog *catalog, uint32_t number) {
  uint32_t low = 0, high = catalog->pool_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (catalog->pools[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < catalog->pool_count && catalog->pools[low].number == number ? &catalog->pools[low]
                                                                           : NULL;
}

/* ---- devices ---- */

static int add_device(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  /* members that the record lacks are 0 */
  enum { LEAST_BYTES = offsetof(prof_i_device_state, record_count) };
  prof_i_device_state state = {0};
  if (word_count < 3 + LEAST_BYTES / 8) {
    trace->bad_count++;
    return 0;
  }
  memcpy(&state, words + 3,
         (word_count - 3) * 8 < sizeof state ? (word_count - 3) * 8 : sizeof state);
  if (!prof_i_make_room((void **)&catalog->devices, &catalog->device_room, catalog->device_count,
                        sizeof *catalog->devices))
    return PROF_E_NO_MEMORY;
  catalog->devices[catalog->device_count++] = state;
  return 0;
}

static int device_compare(const prof_i_device_state *x, const prof_i_device_state *y) {
  return x->type != y->type ? (x->type < y->type ? -1 : 1)
                            : (x->index > y->index) - (x->index < y->index);
}

/* The last record of a device counts. */
static int device_compare_for_sort(const void *a, const void *b) {
  const prof_i_device_state *const x = a, *const y = b;
  const int order = device_compare(x, y);
  return order ? order : (x->result == 0) - (y->result == 0);
}

static void drop_older_devices(prof_i_catalog *catalog) {
  if (catalog->device_count == 0) return;
  qsort(catalog->devices, catalog->device_count, sizeof *catalog->devices, device_compare_for_sort);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < catalog->device_count; i++) {
    kept += device_compare(&catalog->devices[kept], &catalog->devices[i]) != 0;
    catalog->devices[kept] = catalog->devices[i];
  }
  catalog->device_count = kept + 1;
}

/* ---- notes ---- */

static int add_note(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  prof_i_catalog *const catalog = &trace->catalog;
  const uint64_t *at = words + 3;
  uint64_t left = word_count - 3;
  prof_i_text note;
  if (!prof_i_consume_text(&at, &left, &note)) {
    trace->bad_count++;
    return 0;
  }
  if (!prof_i_make_room((void **)&catalog->notes, &catalog->note_room, catalog->note_count,
                        sizeof *catalog->notes))
    return PROF_E_NO_MEMORY;
  catalog->notes[catalog->note_count++] = note;
  return 0;
}

/* ---- an extent ---- */

static int add_record(prof_trace *trace, const uint64_t *words, uint64_t word_count) {
  switch (word_count < 4 ? 0 : prof_i_word_kind(words[2])) {
    case PROF_I_KIND_SITE:
      return add_site(trace, words, word_count);
    case PROF_I_KIND_SCHEMA:
      return add_schema(trace, words, word_count);
    case PROF_I_KIND_TRACK:
      return add_track(trace, words, word_count);
    case PROF_I_KIND_CLOCK:
      return add_pair(trace, words, word_count);
    case PROF_I_KIND_SESSION:
      return add_session(trace, words, word_count);
    case PROF_I_KIND_POOL:
      return add_pool(trace, words, word_count);
    case PROF_I_KIND_CHANGE:
      return add_change(trace, words, word_count);
    case PROF_I_KIND_DEVICE:
      return add_device(trace, words, word_count);
    case PROF_I_KIND_NOTE:
      return add_note(trace, words, word_count);
    case PROF_I_KIND_PROCESS:
      return catalog_add_process(trace, words, word_count);
    default:
      trace->bad_count++;
      return 0; /* a number from the file, not an enum */
  }
}

int prof_i_catalog_read(prof_trace *trace, const prof_i_extent *extent) {
  const uint64_t generation = extent->head->generation;
  const uint64_t *at = (const uint64_t *)(extent->head + 1);
  uint64_t left = prof_i_extent_claimed(extent);
  const bool is_cut = extent->bytes < extent->head->bytes;
  /* after an unreadable record, words are not counted as new damage */
  bool is_lost = false;
  for (uint64_t slots; left > 0; at += slots * 2, left -= slots) {
    /* the end of an extent, or a writer that died: not counted */
    if (!prof_i_is_committed(at[0], generation)) {
      prof_i_parse_uncommitted(at[0], PROF_I_FAULT(HALF_READ) ? 1 : left, generation, &slots);
      continue;
    }
    slots = (at[1] & 15) == 1 ? prof_i_long_record_slots(at, left) : 0;
    trace->bad_count += slots == 0 && !is_lost;
    is_lost = slots == 0;
    if (is_lost) {
      if (is_cut && (at[1] & 15) == 1) break; /* the cut is inside of it: the rest is its payload */
      slots = 1;
      continue;
    }
    const int status = add_record(trace, at, slots * 2);
    if (status) return status;
  }
  return 0;
}

static void drop_cleared_pools(prof_i_catalog *catalog) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].session >= catalog->first_session)
      catalog->pools[kept++] = catalog->pools[i];
  catalog->pool_count = kept;
}

/* The same schema may have been written twice, by two threads at once. */
static void sort_schemas(prof_i_catalog *catalog) {
  if (catalog->schema_count == 0) return;
  qsort(catalog->schemas, catalog->schema_count, sizeof *catalog->schemas, schema_compare_number);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < catalog->schema_count; i++) {
    kept += catalog->schemas[kept].number != catalog->schemas[i].number;
    catalog->schemas[kept] = catalog->schemas[i];
  }
  catalog->schema_count = kept + 1;
}

void prof_i_catalog_finish(prof_i_catalog *catalog) {
  sort_schemas(catalog);
  drop_older_track_names(catalog);
  drop_older_devices(catalog);
  drop_cleared_pools(catalog);
  catalog_sort_processes(catalog);
  if (catalog->pool_count)
    qsort(catalog->pools, catalog->pool_count, sizeof *catalog->pools, pool_compare_number);
}
