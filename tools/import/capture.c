/* The capture of a trace. One extent after another: first what the capture says about itself, then
   each thread's chunks. The header comes last, into the room that was left for it. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  CHUNK_GENERATION = 1,
  META_BYTES = 4 * PROF_I_UNIT_BYTES,
  OWNER_WORDS = 6 + PROF_I_NAME_BYTES / 8,
  SESSION_NUMBER = 1,
  LEVEL_OPERATOR = 1,
  LEVEL_RUNTIME = 2,
  STATE_STOPPED = 0,
  STATE_STARTED = 1
};

/* An extent under construction. */
typedef struct capture_writer {
  import_state *state;
  import_output *output;
  uint64_t *extent; /* PROF_I_CHUNK_BYTES_MAX; its first words are the head */
  uint64_t bytes;   /* of it; 0: none is open */
  uint64_t cursor;
  prof_i_extent_kind kind;
  uint64_t serial, sequence;
  uint64_t thread_count;
} capture_writer;

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* ---- extents ---- */

static void begin_extent(capture_writer *w, prof_i_extent_kind kind, uint64_t bytes) {
  memset(w->extent, 0, bytes);
  w->kind = kind;
  w->bytes = bytes;
  w->cursor = PROF_I_HEAD_BYTES;
}

static void end_extent(capture_writer *w) {
  if (w->bytes == 0) return;
  const prof_i_head head = {
      .cursor = w->cursor,
      .limit = w->bytes - 15,
      .generation = CHUNK_GENERATION,
      .magic = PROF_I_EXTENT_MAGIC,
      .kind = (uint16_t)w->kind,
      .state = w->kind == PROF_I_EXTENT_CHUNK ? PROF_I_CHUNK_RETIRED : PROF_I_CHUNK_OWNED,
      .bytes = w->bytes,
      .sequence = w->kind == PROF_I_EXTENT_CHUNK ? ++w->sequence << 1 : 0,
      .owner = w->kind == PROF_I_EXTENT_META ? 0 : w->serial,
      .check = w->output->bytes ^ w->bytes ^ (uint64_t)w->kind ^ PROF_I_MAGIC};
  memcpy(w->extent, &head, sizeof head);
  import_output_write(w->output, w->extent, w->bytes);
  w->bytes = 0;
}

static bool chunk_has_room(const capture_writer *w, uint32_t words) {
  return w->bytes > 0 && w->cursor + round_up(words * 8ull, 16) <= w->bytes - 15;
}

/* words: of the record from the second on. Returns them, where they stand now. */
static uint64_t *put_record(capture_writer *w, uint64_t ticks, const uint64_t *words,
                            uint32_t count) {
  uint64_t *const to = w->extent + w->cursor / 8;
  memcpy(to + 1, words, count * sizeof *words);
  to[0] = ticks << 4 | CHUNK_GENERATION;
  w->cursor += round_up((count + 1) * 8ull, 16);
  return to;
}

/* ---- what the capture says about itself ---- */

static void put_meta_record(capture_writer *w, uint64_t ticks, const import_record *record) {
  if (!chunk_has_room(w, record->count)) {
    end_extent(w);
    begin_extent(w, PROF_I_EXTENT_META, META_BYTES);
  }
  put_record(w, ticks, record->words + 1, record->count - 1);
}

static void begin_meta(void *user, import_record *record) {
  capture_writer *const w = user;
  put_meta_record(w, w->state->begin_ticks, record);
}

static uint64_t unix_ns(const import_state *state, uint64_t ticks) {
  int64_t ns = import_times_ns(ticks + state->times.shift);
  if (__builtin_add_overflow(ns, state->base_ns, &ns)) return 0;
  return ns > 0 ? (uint64_t)ns : 0;
}

static void put_session(capture_writer *w, import_record *record, uint64_t ticks, uint64_t what) {
  import_record_begin(record);
  import_record_word(record, SESSION_NUMBER);
  import_record_word(record, LEVEL_RUNTIME);
  import_record_word(record, what);
  import_record_end(record, PROF_I_KIND_SESSION, 0, 0, 0, 0);
  put_meta_record(w, ticks, record);
}

static void put_clock(capture_writer *w, import_record *record, uint64_t ticks) {
  import_record_begin(record);
  import_record_word(record, ticks);
  import_record_word(record, ticks); /* CLOCK_MONOTONIC counts as the ticks do */
  import_record_word(record, unix_ns(w->state, ticks));
  import_record_word(record, 0);
  import_record_word(record, 0);
  import_record_word(record, 0);
  import_record_end(record, PROF_I_KIND_CLOCK, 0, 0, 0, 0);
  put_meta_record(w, ticks, record);
}

static const import_device *thread_device(const import_state *state, const import_thread *thread) {
  return &state->devices.all[thread->device];
}

static void put_device_record(capture_writer *w, import_record *record,
                              const import_device *device) {
  prof_i_device_state about = {.type = device->type,
                               .index = device->index,
                               .flags = PROF_I_DEVICE_READ,
                               .scope_count = device->scope_count,
                               .record_count = device->record_count,
                               .back_end = "imported"};
  snprintf(about.name, sizeof about.name, "%s", device->name);
  import_record_begin(record);
  memcpy(record->words + record->count, &about, sizeof about);
  record->count += sizeof about / 8;
  import_record_end(record, PROF_I_KIND_DEVICE, 0, 0, 0, 0);
  begin_meta(w, record);
}

/* A stream's own name stands behind "stream 7: ". Empty: it has none. */
static import_text stream_name(const import_state *state, const import_thread *thread) {
  const import_text name = import_threads_name_of(&state->threads, thread->called);
  int64_t number;
  bool is_whole = false;
  if (import_row_read_stream(name, &number, &is_whole) && is_whole &&
      number == thread->key.id.tid && !import_text_begins(name, "CUDA"))
    return (import_text){"", 0};
  const char *const colon = name.bytes ? memmem(name.data, name.bytes, ": ", 2) : NULL;
  if (!import_text_begins(name, "stream ")) return name;
  if (!colon) return (import_text){"", 0};
  return (import_text){colon + 2, name.bytes - (size_t)(colon + 2 - name.data)};
}

static void put_track(capture_writer *w, import_record *record, const import_thread *thread) {
  const import_text name = stream_name(w->state, thread);
  if (name.bytes == 0) return;
  import_record_begin(record);
  const import_device *const device = thread_device(w->state, thread);
  import_record_word(record, (uint32_t)device->type | (uint64_t)(uint32_t)device->index << 32);
  import_record_word(record, (uint64_t)thread->key.id.tid);
  import_record_text(record, name);
  import_record_end(record, PROF_I_KIND_TRACK, 0, 0, 0, 0);
  begin_meta(w, record);
}

/* A pool's state is aligned where it stands, so the place must be known first. */
static void put_pool_record(capture_writer *w, import_record *record, uint32_t number) {
  enum { WORDS_MAX = 128 };
  if (!chunk_has_room(w, WORDS_MAX)) {
    end_extent(w);
    begin_extent(w, PROF_I_EXTENT_META, META_BYTES);
  }
  import_pools_record(&w->state->pools, number, import_devices_type(&w->state->devices),
                      w->output->bytes + w->cursor, record);
  begin_meta(w, record);
}

/* What the import has dropped, or taken otherwise. */
static void put_note_records(capture_writer *w, import_record *record) {
  char text[IMPORT_NOTE_BYTES];
  for (int i = 0; i < IMPORT_NOTES_MAX; i++) {
    if (!import_note(w->state->result, i, text)) continue;
    import_record_begin(record);
    import_record_text(record, (import_text){text, strlen(text)});
    import_record_end(record, PROF_I_KIND_NOTE, 0, 0, 0, 0);
    begin_meta(w, record);
  }
}

static void put_meta(capture_writer *w) {
  import_state *const state = w->state;
  import_record *const record = import_make(sizeof *record);
  put_session(w, record, state->begin_ticks, STATE_STARTED);
  put_clock(w, record, state->end_ticks);
  import_names_each(state->names, state->devices.is_of_prof ? LEVEL_OPERATOR : LEVEL_RUNTIME,
                    begin_meta, w);
  for (size_t i = 0; i < state->devices.count; i++)
    put_device_record(w, record, &state->devices.all[i]);
  for (const import_thread *thread = state->threads.all; thread; thread = thread->hh.next)
    if (thread->key.device >= 0 && thread->count) put_track(w, record, thread);
  for (uint32_t i = 1; i <= state->pools.count; i++) put_pool_record(w, record, i);
  put_note_records(w, record);
  put_session(w, record, state->end_ticks, STATE_STOPPED);
  end_extent(w);
  free(record);
}

/* ---- processes ---- */

static const import_row_owner *said_owner(const import_state *state, const import_thread *thread) {
  if (thread->key.device < 0 || !state->devices.is_of_prof) return NULL;
  return import_threads_owner(&state->threads, thread->called);
}

/* Of a stream: that launches what runs there. False: the capture's own, or the trace's own row. */
static bool thread_has_other_process(const import_state *state, const import_thread *thread,
                                     int64_t *pid_out) {
  const import_row_owner *const said = said_owner(state, thread);
  *pid_out = said ? said->pid : thread->called.pid;
  if (said) return said->pid != state->pid;
  if (*pid_out == INT64_MAX) return false;
  if (thread->key.device >= 0) {
    import_process *of;
    HASH_FIND(hh, state->devices.processes, &thread->called.pid, sizeof thread->called.pid, of);
    if (of && of->has_owner)
      *pid_out = of->owner;
    else if (of && (of->is_device || state->devices.is_of_prof))
      return false; /* an export calls devices by names of its own */
  }
  return import_is_elsewhere(state, *pid_out);
}

static void put_process_record(capture_writer *w, import_record *record,
                               const import_thread *thread) {
  const import_threads *const threads = &w->state->threads;
  int64_t pid;
  if (!thread_has_other_process(w->state, thread, &pid)) return;
  const import_row_owner *const said = said_owner(w->state, thread);
  import_text name = import_threads_name_of(threads, (import_thread_id){pid, INT64_MIN});
  if (!name.bytes) name = import_threads_pid_text(threads, pid);
  if (said) name = (import_text){said->name, said->bytes};
  import_record_begin(record);
  import_record_word(record, thread->serial);
  import_record_word(record, (uint64_t)(said ? pid : import_threads_process_number(threads, pid)));
  import_record_text(record, import_text_cut(name, PROF_I_NAME_BYTES - 1));
  import_record_end(record, PROF_I_KIND_PROCESS, 0, 0, 0, 0);
  begin_meta(w, record);
}

/* Behind the threads: a thread whose events overlap gets further lines while it is written. */
static void put_process_records(capture_writer *w) {
  import_record *const record = import_make(sizeof *record);
  end_extent(w);
  for (const import_thread *thread = w->state->threads.all; thread; thread = thread->hh.next)
    put_process_record(w, record, thread);
  end_extent(w);
  free(record);
}

/* ---- threads ---- */

/* Of another process than the capture's: with that one's number and name. */
static void name_elsewhere(const import_state *state, const import_thread *thread, import_text name,
                           char to[PROF_I_NAME_BYTES]) {
  enum { PROCESS_BYTES = 24 };
  const import_thread_id process = {thread->called.pid, INT64_MIN};
  const import_text called =
      import_text_cut(import_threads_name_of(&state->threads, process), PROCESS_BYTES);
  char about[IMPORT_PROCESS_BYTES];
  import_threads_put_process(&state->threads, process.pid, about);
  int used = snprintf(to, PROF_I_NAME_BYTES, "%s", about);
  if (called.bytes)
    used += snprintf(to + used, PROF_I_NAME_BYTES - (size_t)used, " (%.*s)", (int)called.bytes,
                     called.data);
  const import_text kept = import_text_cut(name, PROF_I_NAME_BYTES - 3 - (size_t)used);
  if (kept.bytes)
    snprintf(to + used, PROF_I_NAME_BYTES - (size_t)used, ", %.*s", (int)kept.bytes, kept.data);
}

static void name_thread(const import_state *state, const import_thread *thread,
                        char to[PROF_I_NAME_BYTES]) {
  const import_text said = thread->key.device >= 0
                               ? stream_name(state, thread)
                               : import_threads_name_of(&state->threads, thread->called);
  char beside[PROF_I_NAME_BYTES] = "";
  import_text name = import_text_cut(said, PROF_I_NAME_BYTES - 1);
  if (thread->key.device == IMPORT_PYTHON) {
    const int bytes = snprintf(beside, sizeof beside, "Python, %.*s", (int)name.bytes, name.data);
    name = import_text_cut((import_text){beside, (size_t)bytes}, PROF_I_NAME_BYTES - 1);
  }
  const bool is_elsewhere =
      import_is_elsewhere(state, thread->called.pid) && thread->called.pid != INT64_MAX &&
      thread->key.device < 0 &&
      import_threads_process_number(&state->threads, thread->called.pid) == thread->called.pid;
  memset(to, 0, PROF_I_NAME_BYTES);
  if (thread->called.pid == INT64_MAX)
    snprintf(to, PROF_I_NAME_BYTES, "the trace");
  else if (is_elsewhere)
    name_elsewhere(state, thread, name, to);
  else if (thread->key.device >= 0 && name.bytes == 0)
    snprintf(to, PROF_I_NAME_BYTES, "stream %lld", (long long)thread->key.id.tid);
  else if (name.bytes)
    memcpy(to, name.data, name.bytes);
}

static uint64_t thread_kind_of(const import_state *state, const import_thread *thread) {
  if (thread->key.device >= 0)
    return PROF_I_KIND_OF_STREAM |
           (uint64_t)thread_device(state, thread)->type << PROF_I_THREAD_KIND_TYPE_SHIFT |
           (uint64_t)thread_device(state, thread)->index << PROF_I_THREAD_KIND_INDEX_SHIFT;
  return thread->key.device == IMPORT_HOST && state->has_pid && thread->called.pid == state->pid &&
                 thread->called.tid == state->pid
             ? PROF_I_KIND_OF_MAIN
             : PROF_I_KIND_OF_THREAD;
}

static uint64_t thread_tid(const import_state *state, const import_thread *thread) {
  if (thread->key.device >= 0) return (uint64_t)thread->key.id.tid;
  const int64_t said = import_threads_number_of(&state->threads, thread->called, -1);
  if (said >= 0 && thread->key.device == IMPORT_HOST) return (uint64_t)said;
  if (state->devices.is_of_prof && import_threads_is_made(thread->called.tid)) return 0;
  return thread->key.device == IMPORT_HOST && thread->called.tid > 0 &&
                 thread->called.tid < INT64_MAX
             ? (uint64_t)thread->called.tid
             : 0;
}

static void put_owner(capture_writer *w, const import_thread *thread) {
  uint64_t words[OWNER_WORDS] = {0};
  char name[PROF_I_NAME_BYTES];
  name_thread(w->state, thread, name);
  words[1] = 1;
  words[2] = OWNER_WORDS / 2 | (uint64_t)PROF_I_KIND_OWNER << 16;
  words[3] = thread->serial;
  words[4] = thread_tid(w->state, thread);
  words[5] = thread_kind_of(w->state, thread);
  memcpy(words + 6, name, sizeof name);
  w->serial = thread->serial;
  put_record(w, w->state->begin_ticks, words + 1, OWNER_WORDS - 1);
}

static void begin_chunk(capture_writer *w, const import_thread *thread, uint64_t left_bytes) {
  const uint64_t wanted = left_bytes + PROF_I_HEAD_BYTES + OWNER_WORDS * 8 + 16;
  uint64_t bytes = PROF_I_UNIT_BYTES;
  while (bytes < wanted && bytes < PROF_I_CHUNK_BYTES_MAX) bytes *= 4;
  begin_extent(w, PROF_I_EXTENT_CHUNK, bytes);
  put_owner(w, thread);
}

static void put_entry(capture_writer *w, const import_entry *entry, const uint64_t *from,
                      uint32_t count) {
  /* a step has its start for its place among the others */
  const uint64_t ticks = entry->place & IMPORT_ENTRY_MARK ? entry->end : entry->start;
  uint64_t *const words =
      put_record(w, ticks ? ticks : w->state->begin_ticks /* of metadata */, from, count);
  if ((words[1] & 15) == PROF_I_ALLOC_TYPE)
    words[3] = import_pools_counter(&w->state->pools, words[3]);
  else if (import_record_kind(words) == PROF_I_KIND_MEMORY)
    words[6] = import_pools_counter(&w->state->pools, words[6]);
}

static void put_slot(capture_writer *w, uint64_t serial) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)w->extent;
  slot->serial = w->serial = serial;
  slot->ledger = PROF_I_LEDGER_KEPT;
  slot->deep_count = w->state->open_below_count;
  w->state->open_below_count = 0;
  end_extent(w);
}

/* The thread's slot, if it has scopes that had not ended. */
static void put_open_scopes(capture_writer *w, import_thread *thread) {
  if (!import_open_has(thread)) return;
  end_extent(w);
  begin_extent(w, PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES);
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)w->extent;
  import_open_take(w->state, thread, slot);
  slot->tid = thread_tid(w->state, thread);
  slot->thread_kind = thread_kind_of(w->state, thread);
  name_thread(w->state, thread, slot->name);
  put_slot(w, thread->serial);
}

/* Those below 64 others, if no thread has a slot: in one of no thread. */
static void put_open_below(capture_writer *w) {
  if (w->state->open_below_count == 0) return;
  end_extent(w);
  begin_extent(w, PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES);
  put_slot(w, 0);
}

static void put_thread_records(capture_writer *w, import_thread *thread) {
  uint64_t left_bytes = 0;
  uint32_t count;
  /* prof puts what overlaps on rows of its own, which have come together again */
  if (!w->state->devices.is_of_prof) import_thread_part(&w->state->threads, thread);
  if (thread->count == 0) return;
  put_open_scopes(w, thread);
  import_thread_sort(thread);
  for (size_t i = 0; i < thread->count; i++) {
    import_entry_words(&w->state->spool, &thread->entries[i], &count);
    left_bytes += round_up((count + 1) * 8ull, 16);
  }
  for (size_t i = 0; i < thread->count; i++) {
    const uint64_t *const from = import_entry_words(&w->state->spool, &thread->entries[i], &count);
    /* from a thread with little to say: a chunk for each would be 16 KiB a thread */
    const bool is_taken_over = w->serial != thread->serial;
    if (!chunk_has_room(w, count + 1 + (is_taken_over ? OWNER_WORDS : 0))) {
      end_extent(w);
      begin_chunk(w, thread, left_bytes);
    } else if (is_taken_over) {
      put_owner(w, thread);
    }
    put_entry(w, &thread->entries[i], from, count);
    left_bytes -= round_up((count + 1) * 8ull, 16);
  }
  free(thread->entries);
  thread->entries = NULL;
  thread->count = thread->room = 0;
  w->thread_count++;
  if (thread->key.device >= 0)
    w->state->counts->streams++;
  else
    w->state->counts->threads++;
}

/* ---- the header ---- */

/* A process of number 0 that stands for a device is not the capture's. */
static bool pid_is_device_only(const import_state *state) {
  import_process *found;
  HASH_FIND(hh, state->devices.processes, &state->pid, sizeof state->pid, found);
  return !state->has_pid && found && found->is_device;
}

static void write_header(const capture_writer *w) {
  const import_state *const state = w->state;
  const import_thread_id process = {state->pid, INT64_MIN};
  const bool is_device = pid_is_device_only(state);
  const import_text called = import_threads_name_of(&state->threads, process);
  const import_text name = import_text_cut(called, is_device ? 0 : PROF_I_NAME_BYTES - 1);
  prof_i_header header = {.magic = PROF_I_MAGIC,
                          .version = PROF_I_FORMAT_VERSION,
                          .header_bytes = PROF_I_HEADER_BYTES,
                          .level = LEVEL_RUNTIME,
                          .state = PROF_I_STATE_STOPPED,
                          .cap_bytes = w->output->bytes,
                          .used_bytes = w->output->bytes,
                          .made_bytes = w->output->bytes,
                          .unit_bytes = PROF_I_UNIT_BYTES,
                          .policy = PROF_POLICY_KEEP,
                          .pid = (uint32_t)state->pid,
                          .clock = PROF_CLOCK_MONOTONIC,
                          .session = SESSION_NUMBER,
                          .session_ticks = state->begin_ticks,
                          .ticks_hz = 1000000000,
                          .start_ticks = state->begin_ticks,
                          .start_monotonic_ns = state->begin_ticks,
                          .start_realtime_ns = unix_ns(state, state->begin_ticks),
                          .rank = state->rank,
                          .world_size = state->world_size,
                          .step_count = state->counts->steps,
                          .thread_count = w->thread_count};
  memcpy(header.host, state->host, sizeof header.host - 1);
  if (name.bytes) memcpy(header.process_name, name.data, name.bytes);
  import_output_write_first(w->output, &header, sizeof header);
}

void import_capture_write(import_state *state, import_output *output) {
  capture_writer w = {
      .state = state, .output = output, .extent = import_make(PROF_I_CHUNK_BYTES_MAX)};
  import_pools_finish(&state->pools, state->begin_ticks);
  import_open_choose(state);
  import_output_write(output, w.extent, PROF_I_FIRST_UNIT_OFFSET);
  put_meta(&w);
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next)
    put_thread_records(&w, thread);
  put_open_below(&w);
  put_process_records(&w);
  write_header(&w);
  free(w.extent);
}
