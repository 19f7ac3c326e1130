/* See library.h: rows of calls, and their file. */
#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <prof/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sink/sink.h"
#include "hash.h"
#include "library_lines.h"
#include "output.h"

/* ---- a hash table for distinct calls ---- */

/* Open addressing, at most half full. uthash follows chains through all entries, which costs a
   cache miss for each. Here only the entry that is found is read. */

/* Each entry begins with it. */
typedef struct call_key {
  size_t bytes;
  const char *at;
} call_key;

typedef struct call_slot {
  uint64_t hash;
  call_key *entry; /* NULL: the slot is free */
} call_slot;

typedef struct call_table {
  call_slot *slots;
  size_t slot_count;  /* a power of 2, or 0 */
  call_key **entries; /* in the order of insertion */
  size_t count, room;
} call_table;

enum { SLOTS_FIRST = 64 };

static size_t free_slot(const call_table *table, uint64_t hash) {
  size_t at = hash & (table->slot_count - 1);
  while (table->slots[at].entry) at = (at + 1) & (table->slot_count - 1);
  return at;
}

/* Slots are read in no order: with small pages each read would miss the TLB, too. */
static call_slot *make_slots(size_t count) {
  enum { HUGE_TABLE = 2 << 20 };
  const size_t bytes = count * sizeof(call_slot);
  void *made = NULL;
  if (bytes < HUGE_TABLE || posix_memalign(&made, HUGE_TABLE, bytes) != 0)
    return run_make(count, sizeof(call_slot));
  (void)madvise(made, bytes, MADV_HUGEPAGE);
  return memset(made, 0, bytes);
}

static void table_grow(call_table *table) {
  call_table old = *table;
  table->slot_count = old.slot_count ? 2 * old.slot_count : SLOTS_FIRST;
  table->slots = make_slots(table->slot_count);
  for (size_t i = 0; i < old.slot_count; i++)
    if (old.slots[i].entry) table->slots[free_slot(table, old.slots[i].hash)] = old.slots[i];
  free(old.slots);
}

/* The entry, or NULL. */
static call_key *call_table_find(const call_table *table, const char *key, size_t bytes,
                                 uint64_t hash) {
  if (table->slot_count == 0) return NULL;
  const size_t mask = table->slot_count - 1;
  for (size_t at = hash & mask; table->slots[at].entry; at = (at + 1) & mask) {
    if (table->slots[at].hash != hash) continue;
    call_key *const found = table->slots[at].entry;
    if (found->bytes == bytes && memcmp(found->at, key, bytes) == 0) return found;
  }
  return NULL;
}

/* There is no entry with this key. */
static void call_table_add(call_table *table, call_key *entry, uint64_t hash) {
  if (2 * table->count >= table->slot_count) table_grow(table);
  if (table->count == table->room) {
    table->room = table->room ? 2 * table->room : SLOTS_FIRST;
    table->entries = run_grow(table->entries, table->room, sizeof *table->entries);
  }
  table->entries[table->count++] = entry;
  table->slots[free_slot(table, hash)] = (call_slot){hash, entry};
}

/* Does not free the entries. */
static void call_table_free(call_table *table) {
  free(table->slots);
  free(table->entries);
  *table = (call_table){0};
}

/* ---- rows of calls ---- */

enum { CSV_BYTES_MAX = 1 << 30 };

typedef struct call_entry {
  call_key key;
  run_library_row row;
  run_call_event *event; /* or NULL: not made yet */
  char text[];           /* the key: the library in one byte, then the config with its NUL */
} call_entry;

struct run_libraries {
  unsigned wanted;
  call_table entries;
  call_entry **sorted;
  bool is_sorted;
  run_calls *calls; /* or NULL */
  run_blocks blocks;
};

static const struct {
  const char *library, *tool;
} library_names[RUN_LIBRARIES] = {
    [RUN_LIBRARY_ROCBLAS] = {"rocblas", "rocblas_trace"},
    [RUN_LIBRARY_HIPBLASLT] = {"hipblaslt", "hipblaslt_trace"},
    [RUN_LIBRARY_ROCBLAS_FUNCTION] = {"rocblas_function", "rocblas_trace"},
    [RUN_LIBRARY_MIOPEN] = {"miopen", "miopen_trace"},
    [RUN_LIBRARY_TENSILE] = {"tensile", "tensile_trace"},
    [RUN_LIBRARY_MIOPEN_FIND] = {"miopen_find", "miopen_trace"},
    [RUN_LIBRARY_RCCL] = {"rccl", "rccl_trace"},
    [RUN_LIBRARY_NCCL] = {"nccl", "nccl_trace"},
    [RUN_LIBRARY_CUBLAS] = {"cublas", "cublas_trace"},
    [RUN_LIBRARY_CUBLASLT] = {"cublaslt", "cublaslt_trace"},
    [RUN_LIBRARY_CUDNN] = {"cudnn", "cudnn_trace"},
};

const char *run_library_name(run_library library) { return library_names[library].library; }

unsigned run_library_wanted(const char *tool) {
  unsigned wanted = 0;
  for (unsigned i = 0; i < RUN_LIBRARIES; i++)
    if (strcmp(library_names[i].tool, tool) == 0) wanted |= 1u << i;
  return wanted;
}

run_libraries *run_libraries_create(unsigned wanted) {
  run_libraries *const libraries = run_make(1, sizeof *libraries);
  libraries->wanted = wanted;
  return libraries;
}

void run_libraries_record(run_libraries *libraries, run_calls *calls) { libraries->calls = calls; }

/* In the order of insertion. */
static call_entry *call_entry_at(const run_libraries *libraries, size_t index) {
  return (call_entry *)libraries->entries.entries[index]; /* it begins with its key */
}

void run_libraries_destroy(run_libraries *libraries) {
  for (size_t i = 0; i < libraries->entries.count; i++) {
    call_entry *const each = call_entry_at(libraries, i);
    free(each->event);
    free(each);
  }
  call_table_free(&libraries->entries);
  free(libraries->sorted);
  run_blocks_destroy(&libraries->blocks);
  free(libraries);
}

/* RCCL prints the same lines as NCCL. The active tool decides which library it is. */
static run_library call_library(const run_libraries *libraries, const run_call *call) {
  const bool is_nccl =
      call->library == RUN_LIBRARY_RCCL && !(libraries->wanted & 1u << RUN_LIBRARY_RCCL);
  return is_nccl ? RUN_LIBRARY_NCCL : call->library;
}

/* The row of a call, made if it is new. */
static call_entry *find_entry(run_libraries *libraries, run_library library, run_line config) {
  const size_t key_bytes = 1 + config.bytes;
  char key[RUN_CONFIG_BYTES_MAX + 1];
  key[0] = (char)library;
  memcpy(key + 1, config.at, config.bytes);
  const uint64_t hash = run_hash_64(key, key_bytes);
  call_entry *const found =
      (call_entry *)call_table_find(&libraries->entries, key, key_bytes, hash);
  if (found) return found;
  call_entry *const made = run_make(1, sizeof *made + key_bytes + 1);
  memcpy(made->text, key, key_bytes);
  made->key = (call_key){key_bytes, made->text};
  made->row = (run_library_row){library, made->text + 1, 0};
  call_table_add(&libraries->entries, &made->key, hash);
  libraries->is_sorted = false;
  return made;
}

static void count_library_call(run_libraries *libraries, run_library library, run_line config,
                               uint64_t calls, const run_line_source *from) {
  if (!(libraries->wanted & 1u << library)) return;
  if (config.bytes > RUN_CONFIG_BYTES_MAX) config.bytes = RUN_CONFIG_BYTES_MAX;
  call_entry *const found = find_entry(libraries, library, config);
  if (__builtin_add_overflow(found->row.calls, calls, &found->row.calls))
    found->row.calls = UINT64_MAX;
  if (!libraries->calls || library == RUN_LIBRARY_ROCBLAS_FUNCTION) return;
  if (!found->event) found->event = run_call_event_create(&found->row);
  run_calls_add(libraries->calls, found->event, &from->origin, from->stream);
}

/* What the line itself has counts first, then what a launcher put in front. */
static run_line_source line_source(const run_line_source *from, run_origin of_line, int64_t rank) {
  run_line_source source = *from;
  if (of_line.rank >= 0)
    source.origin.rank = of_line.rank;
  else if (rank >= 0)
    source.origin.rank = rank;
  if (of_line.pid >= 0) source.origin.pid = of_line.pid;
  return source;
}

static void count_block(run_libraries *libraries, const run_block *block, int stream) {
  const run_line_source from = {stream, {block->rank, block->pid}};
  count_library_call(libraries, block->library, (run_line){block->text, block->bytes}, 1, &from);
}

static bool wants_blocks(const run_libraries *libraries) {
  return libraries->wanted & (1u << RUN_LIBRARY_CUBLAS | 1u << RUN_LIBRARY_CUDNN);
}

void run_libraries_take(run_libraries *libraries, const run_line_source *from, const char *line,
                        size_t bytes) {
  run_call call;
  const run_line text = {line, bytes};
  if (wants_blocks(libraries)) {
    static run_block before;
    const run_block_part part = run_blocks_take(&libraries->blocks, from->stream, text, &before);
    if (before.bytes > 0) count_block(libraries, &before, from->stream);
    if (part != RUN_BLOCK_NONE) return;
  }
  if (!run_line_is_call(text, libraries->wanted, &call)) return;
  const run_line_source source =
      line_source(from, call.origin, run_origin_rank(line, call.prefix_bytes));
  count_library_call(libraries, call_library(libraries, &call), call.config, call.calls, &source);
}

void run_libraries_finish(run_libraries *libraries) {
  static run_block before;
  for (int stream; (stream = run_blocks_end(&libraries->blocks, &before)) > 0;)
    count_block(libraries, &before, stream);
}

size_t run_libraries_count(const run_libraries *libraries) { return libraries->entries.count; }

/* Sorts by library; rows of one library keep their order. */
static void sort_entries(run_libraries *libraries) {
  size_t next[RUN_LIBRARIES + 1] = {0};
  free(libraries->sorted);
  const size_t count = libraries->entries.count;
  libraries->sorted = run_make(count, sizeof(call_entry *));
  for (size_t i = 0; i < count; i++) next[call_entry_at(libraries, i)->row.library + 1]++;
  for (unsigned i = 0; i < RUN_LIBRARIES; i++) next[i + 1] += next[i];
  for (size_t i = 0; i < count; i++)
    libraries->sorted[next[call_entry_at(libraries, i)->row.library]++] =
        call_entry_at(libraries, i);
  libraries->is_sorted = true;
}

/* By library, then by first appearance. */
static const run_library_row *library_row(const run_libraries *libraries, size_t index) {
  if (!libraries->is_sorted) sort_entries((run_libraries *)libraries);
  return &libraries->sorted[index]->row;
}

/* ---- CSV ---- */

static const char *variable_or(const char *name, const char *otherwise) {
  const char *const value = getenv(name);
  return value && *value ? value : otherwise;
}

static void put_rows(prof_i_sink *sink, const run_libraries *libraries) {
  char date[32];
  const time_t now = time(NULL);
  struct tm local;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
  prof_i_sink_text(sink, "jobid,created_date,model,library,config,calls\r\n");
  for (size_t i = 0; i < libraries->entries.count; i++) {
    const run_library_row *const row = library_row(libraries, i);
    prof_i_sink_csv_bare(sink, variable_or("JENKINS_BUILD_NUMBER", "0"));
    prof_i_sink_text(sink, ",");
    prof_i_sink_text(sink, date);
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, variable_or("MAD_MODEL_NAME", ""));
    prof_i_sink_text(sink, ",");
    prof_i_sink_text(sink, run_library_name(row->library));
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, row->config);
    prof_i_sink_text(sink, ",");
    prof_i_sink_u64(sink, row->calls);
    prof_i_sink_text(sink, "\r\n");
  }
}

void run_libraries_put(FILE *to, const void *context) {
  prof_i_sink sink;
  char *text = NULL;
  size_t bytes = 0;
  if (prof_i_sink_open_memory(&sink, CSV_BYTES_MAX) != PROF_OK)
    run_fail("no memory for %zu rows of CSV", run_libraries_count(context));
  put_rows(&sink, context);
  if (prof_i_sink_take(&sink, &text, &bytes) != PROF_OK)
    run_fail("no memory for %zu rows of CSV", run_libraries_count(context));
  fwrite(text, 1, bytes, to);
  free(text);
}

bool run_libraries_write(const run_libraries *libraries, const char *path) {
  FILE *const to = run_output_begin(path);
  if (to) run_libraries_put(to, libraries);
  return run_output_end(to, path);
}
