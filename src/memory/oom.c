/* An allocation has failed: what the pools hold is recorded, and told in a text. The record and the sums need no memory; what was live is read back from the capture, as far as there is memory for
   that. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/control.h"
#include "../core/log.h"
#include "note.h"

enum { TEXTS_MAX = 8, ROWS_SHOWN = 10, PATH_ROOM = 4096 };

static uint32_t texts_written; /* atomic */

static bool is_same(prof_device a, prof_device b) { return a.type == b.type && a.index == b.index; }

/* Into the line of each pool of the device. Returns their number. */
static uint32_t record(prof_device device, uint64_t bytes) {
  uint32_t count = 0;
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
    if (pool->kind != PROF_MEMORY_POOL || !__atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE) || !is_same(pool->device, device)) continue;
    const prof_i_note note = {.verb = PROF_I_VERB_OOM, .bytes = bytes, .stream = PROF_NO_STREAM};
    prof_i_note_slowly(pool, &note);
    count++;
  }
  return count;
}

/* ---- the text ---- */

static void put_rows(FILE *to, const char *title, const prof_memory *memory, uint32_t index, prof_memory_by by) {
  prof_memory_rows *rows = NULL;
  if (prof_memory_live(memory, index, PROF_MEMORY_AT_END, 0, by, &rows) != PROF_OK) {
    fprintf(to, "  %s it cannot be told: %s\n", title, prof_last_error());
    return;
  }
  fprintf(to, "  %s\n", title);
  for (uint64_t i = 0; i < rows->row_count && i < ROWS_SHOWN; i++)
    fprintf(to, "  %16" PRIu64 " bytes in %8" PRIu64 " pieces  %s\n", rows->rows[i].bytes, rows->rows[i].count, rows->rows[i].label[0] ? rows->rows[i].label : "(none)");
  if (rows->row_count > ROWS_SHOWN) fprintf(to, "  and %" PRIu64 " more\n", rows->row_count - ROWS_SHOWN);
  prof_free(rows);
}

/* Whether it is the fragments' fault. */
static void put_verdict(FILE *to, const prof_memory_state *state, uint64_t bytes) {
  if (!state->has_ranges) {
    fprintf(to, "  where the blocks are is not known: whether it would have fitted cannot be told\n");
    return;
  }
  fprintf(to, "  free in the blocks %" PRIu64 " bytes, in one stretch at most %" PRIu64 ", fragmentation %.1f %%\n", state->free_bytes, state->largest_free_bytes,
          state->fragmentation * 100);
  fprintf(to, state->largest_free_bytes >= bytes ? "  it would fit into what is free: something else is the matter\n"
              : state->free_bytes >= bytes       ? "  it would have fitted, were what is free in one stretch: fragmentation is the matter\n"
                                                 : "  it would not have fitted, were what is free in one stretch: too little is reserved\n");
}

static void put_pool(FILE *to, const prof_memory *memory, uint32_t index, uint64_t bytes) {
  prof_memory_info info = {.size = sizeof info};
  if (prof_memory_pool_get(memory, index, &info) != PROF_OK) return;
  fprintf(to, "pool %s: used %" PRId64 " bytes, allocated %" PRId64 ", peaks %" PRId64 " and %" PRId64 "\n", info.name, info.end.used_bytes, info.end.allocated_bytes,
          info.peak_used.used_bytes, info.peak_allocated.allocated_bytes);
  if (info.missing_count) fprintf(to, "  %" PRIu64 " events were not recorded: what was live is not complete\n", info.missing_count);
  put_verdict(to, &info.end, bytes);
  put_rows(to, "live, by scope:", memory, index, PROF_MEMORY_BY_SCOPE);
  put_rows(to, "live, by tag:", memory, index, PROF_MEMORY_BY_TAG);
  put_rows(to, "live, by size:", memory, index, PROF_MEMORY_BY_SIZE);
}

/* Pools of this session that are still there. */
static void put_pools(FILE *to, const prof_memory *memory, prof_device device, uint64_t bytes) {
  prof_memory_info last = {.size = sizeof last};
  if (prof_memory_device_get(memory, device, PROF_MEMORY_POOL, &last) != PROF_OK) {
    fprintf(to, "what was live cannot be told: %s\n", prof_last_error());
    return;
  }
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    if (prof_memory_pool_get(memory, i, &info) == PROF_OK && info.source == PROF_MEMORY_POOL && info.session == last.session && is_same(info.device, device))
      put_pool(to, memory, i, bytes);
  }
}

static int put_text(FILE *to, prof_device device, uint64_t bytes) {
  prof_memory_max max = {.size = sizeof max};
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  fprintf(to, "out of memory: %" PRIu64 " bytes of device %d:%d\n", bytes, device.type, device.index);
  if (prof_memory_max_get(device, PROF_MEMORY_POOL, &max) == PROF_OK)
    fprintf(to, "used %" PRIu64 " bytes, allocated %" PRIu64 "\n", max.used_bytes, max.allocated_bytes);
  int status = prof_get(&trace);
  if (status == PROF_OK) status = prof_memory_read(trace, &memory);
  if (status == PROF_OK) put_pools(to, memory, device, bytes);
  else fprintf(to, "what was live cannot be told: %s\n", prof_last_error());
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return ferror(to) ? prof_i_fail(PROF_E_IO, "cannot write what was live: %s", strerror(errno)) : PROF_OK;
}

/* ---- where it goes ---- */

/* trace.json: trace.oom.txt, then trace.oom-2.txt. */
static bool name_text(const char *output, uint32_t number, char *path, size_t room) {
  const char *const slash = strrchr(output, '/'), *const base = slash ? slash + 1 : output;
  const char *dot = strchr(base, '.');
  if (dot == base) dot = NULL;
  const int stem = (int)(dot ? (size_t)(dot - output) : strlen(output));
  const int bytes = number > 1 ? snprintf(path, room, "%.*s.oom-%u.txt", stem, output, number) : snprintf(path, room, "%.*s.oom.txt", stem, output);
  return bytes > 0 && (size_t)bytes < room;
}

/* Under another name first, so that none ever stands half written. */
static int write_file(const char *path, const char *text) {
  char unfinished[PATH_ROOM + 8];
  snprintf(unfinished, sizeof unfinished, "%s.tmp", path);
  FILE *const to = fopen(unfinished, "we");
  if (!to) return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': %s", unfinished, strerror(errno));
  const bool is_written = fputs(text, to) >= 0;
  if ((fclose(to) == 0 && is_written) && rename(unfinished, path) == 0) return PROF_OK;
  const int error = errno;
  remove(unfinished);
  return prof_i_fail(prof_i_status_of_errno(error), "cannot write '%s': %s", path, strerror(error));
}

/* A line at a time: names in it may not make lines of their own. */
static void say_lines(const char *text) {
  for (size_t bytes; *text; text += bytes + (text[bytes] == '\n')) {
    bytes = strcspn(text, "\n");
    prof_i_say("%.*s", (int)bytes, text);
  }
}

static int tell(prof_device device, uint64_t bytes, uint32_t number) {
  char *text = NULL;
  size_t count = 0;
  FILE *const to = open_memstream(&text, &count);
  if (!to) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to say what was live");
  int status = put_text(to, device, bytes);
  const bool is_whole = fclose(to) == 0 && text; /* glibc's fclose() says 0 even if it had no memory for the text */
  if (!is_whole && status == PROF_OK) status = prof_i_fail(PROF_E_NO_MEMORY, "no memory to say what was live");
  char output[PATH_ROOM], path[PATH_ROOM];
  const bool has_output = prof_i_output_path(output, sizeof output) && name_text(output, number, path, sizeof path);
  if (status == PROF_OK && has_output) status = write_file(path, text);
  else if (status == PROF_OK) say_lines(text);
  free(text);
  return status;
}

int prof_memory_oom(prof_device device, uint64_t bytes) {
  if (device.type == 0) device = PROF_HOST;
  const int saved = errno;
  int status = prof_i_memory_is_on() ? PROF_OK : prof_i_fail(PROF_E_NOT_RUNNING, "memory is not recorded");
  if (status == PROF_OK && record(device, bytes) == 0) status = prof_i_fail(PROF_E_NOT_FOUND, "device %d:%d has no pool", device.type, device.index);
  const uint32_t number = status == PROF_OK ? __atomic_add_fetch(&texts_written, 1, __ATOMIC_RELAXED) : 0;
  if (status == PROF_OK && number <= TEXTS_MAX) status = tell(device, bytes, number);
  errno = saved;
  return status;
}
