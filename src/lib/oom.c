/* An allocation has failed: what the pools hold is recorded, and told in a text. The record and the
   sums need no memory; what was live is read back from the capture, as far as there is memory for
   that. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../analysis/internal.h"
#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/session.h"
#include "../core/session/control.h"
#include "../memory/internal.h"
#include "../reader/internal.h"

enum { TEXTS_MAX = 8, NUMBERS_END = 10000, ROWS_SHOWN = 10, PATH_ROOM = 4096, DEVICE_ROOM = 32 };

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

static uint64_t texts_written; /* by the process of the upper half: a child begins anew. Atomic */

/* Into the line of each pool of the device. Returns their number. */
static uint32_t record_failure(prof_device device, uint64_t bytes) {
  uint32_t count = 0;
  for (prof_pool *pool = prof_i_pool_first(); pool;
       pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
    if (pool->kind != PROF_MEMORY_POOL || !__atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE) ||
        !prof_i_is_same_device(pool->device, device))
      continue;
    const prof_i_memory_event note = {
        .verb = PROF_I_VERB_OOM, .bytes = bytes, .stream = PROF_NO_STREAM};
    prof_i_memory_event_write(pool, &note);
    count++;
  }
  return count;
}

/* ---- the text ---- */

/* Names, and what went wrong, may hold any bytes: none makes a line of its own, or reaches a
   terminal as a command. */
static const char *sanitize_name(char to[PROF_I_SANITIZED_NAME_BYTES], const char *name) {
  prof_i_sanitize_name(to, name);
  return to;
}

static void put_unknown_failure(FILE *to) {
  char why[PROF_I_SANITIZED_NAME_BYTES];
  fprintf(to, "what was live cannot be told: %s\n", sanitize_name(why, prof_last_error()));
}

static void put_live_rows(FILE *to, const char *title, const prof_memory *memory, uint32_t index,
                          prof_memory_by by) {
  prof_memory_rows *rows = NULL;
  char name[PROF_I_SANITIZED_NAME_BYTES];
  if (prof_i_memory_live(memory, index, PROF_MEMORY_AT_END, 0, by, &rows) != PROF_OK) {
    fprintf(to, "  %s it cannot be told: %s\n", title, sanitize_name(name, prof_last_error()));
    return;
  }
  fprintf(to, "  %s\n", title);
  for (uint64_t i = 0; i < rows->row_count && i < ROWS_SHOWN; i++)
    fprintf(to, "  %16" PRIu64 " bytes in %8" PRIu64 " pieces  %s\n", rows->rows[i].bytes,
            rows->rows[i].count,
            rows->rows[i].label[0] ? sanitize_name(name, rows->rows[i].label) : "(none)");
  if (rows->row_count > ROWS_SHOWN)
    fprintf(to, "  and %" PRIu64 " more\n", rows->row_count - ROWS_SHOWN);
  free(rows);
}

/* Whether it is the fragments' fault. */
static void put_verdict(FILE *to, const prof_memory_info *info, uint64_t bytes) {
  const prof_memory_state *const state = &info->end;
  if (!state->has_ranges && (!info->has_baseline || state->allocated_bytes <= 0 ||
                             state->allocated_bytes < state->used_bytes)) {
    fprintf(to,
            "  where the blocks are is not known: whether it would have fitted cannot be told\n");
    return;
  }
  if (!state->has_ranges) { /* the sums tell */
    const uint64_t free_bytes = (uint64_t)(state->allocated_bytes - state->used_bytes);
    fprintf(to, "  free %" PRIu64 " bytes; not all blocks are known, so not in what stretches\n",
            free_bytes);
    fprintf(to, free_bytes >= bytes ? "  it would have fitted, were what is free in one stretch\n"
                                    : "  it would not have fitted, were what is free in one "
                                      "stretch: too little is reserved\n");
    return;
  }
  fprintf(to,
          "  free in the blocks %" PRIu64 " bytes, in one stretch at most %" PRIu64
          ", fragmentation %.1f %%\n",
          state->free_bytes, state->largest_free_bytes, state->fragmentation * 100);
  fprintf(to, state->largest_free_bytes >= bytes
                  ? "  it would fit into what is free: something else is the matter\n"
              : state->free_bytes >= bytes ? "  it would have fitted, were what is free in one "
                                             "stretch: fragmentation is the matter\n"
                                           : "  it would not have fitted, were what is free in one "
                                             "stretch: too little is reserved\n");
}

static void put_failed_pool(FILE *to, const prof_memory *memory, uint32_t index, uint64_t bytes) {
  prof_memory_info info = {.size = sizeof info};
  char name[PROF_I_SANITIZED_NAME_BYTES];
  if (prof_memory_pool_get(memory, index, &info) != PROF_OK) return;
  fprintf(to,
          "pool %s: used %" PRId64 " bytes, allocated %" PRId64 ", peaks %" PRId64 " and %" PRId64
          "\n",
          sanitize_name(name, info.name), info.end.used_bytes, info.end.allocated_bytes,
          info.peak_used.used_bytes, info.peak_allocated.allocated_bytes);
  if (info.missing_count)
    fprintf(to, "  %" PRIu64 " events were not recorded: what was live is not complete\n",
            info.missing_count);
  put_verdict(to, &info, bytes);
  if (info.end.used_bytes > (int64_t)info.end.live_bytes)
    fprintf(to,
            "  %" PRIu64
            " bytes of it are from before the start, or their records are lost; the tables have "
            "the rest\n",
            (uint64_t)info.end.used_bytes - info.end.live_bytes);
  put_live_rows(to, "live, by scope:", memory, index, PROF_MEMORY_BY_SCOPE);
  put_live_rows(to, "live, by tag:", memory, index, PROF_MEMORY_BY_TAG);
  put_live_rows(to, "live, by size:", memory, index, PROF_MEMORY_BY_SIZE);
}

/* Pools of this session that are still there. */
static void put_failed_pools(FILE *to, const prof_memory *memory, prof_device device,
                             uint64_t bytes) {
  prof_memory_info last = {.size = sizeof last};
  if (prof_memory_device_get(memory, device, PROF_MEMORY_POOL, &last) != PROF_OK) {
    put_unknown_failure(to);
    return;
  }
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    if (prof_memory_pool_get(memory, i, &info) == PROF_OK && info.source == PROF_MEMORY_POOL &&
        info.session == last.session && prof_i_is_same_device(info.device, device))
      put_failed_pool(to, memory, i, bytes);
  }
}

static int put_oom_text(FILE *to, prof_device device, uint64_t bytes) {
  prof_memory_max max = {.size = sizeof max};
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  char device_name[DEVICE_ROOM];
  prof_i_put_device(device_name, sizeof device_name, device);
  fprintf(to, "out of memory: %" PRIu64 " bytes of device %s\n", bytes, device_name);
  if (prof_i_memory_max(device, PROF_MEMORY_POOL, &max) == PROF_OK)
    fprintf(to, "used %" PRIu64 " bytes, allocated %" PRIu64 "\n", max.used_bytes,
            max.allocated_bytes);
  int status = prof_i_trace_take(&trace);
  if (status == PROF_OK) status = prof_i_memory_of(trace, &memory);
  if (status == PROF_OK)
    put_failed_pools(to, memory, device, bytes);
  else
    put_unknown_failure(to);
  prof_i_memory_destroy(memory);
  prof_i_trace_destroy(trace);
  return ferror(to) ? prof_i_fail(PROF_E_IO, "cannot write what was live: %s", strerror(errno))
                    : PROF_OK;
}

/* ---- where it goes ---- */

/* On the heap: some 12 KiB, and whose allocation has failed may have a small stack. */
typedef struct oom_paths {
  char output[PATH_ROOM], path[PATH_ROOM], temporary[PATH_ROOM];
} oom_paths;

/* Without the ending that says its kind: ".json", ".json.gz". A number is no such ending, but tells
   children apart. */
static int output_stem_bytes(const char *output) {
  const char *const slash = strrchr(output, '/'), *const base = slash ? slash + 1 : output;
  size_t bytes = strlen(output);
  if (bytes >= 3 && strcmp(output + bytes - 3, ".gz") == 0) bytes -= 3;
  const char *const dot = memrchr(base, '.', (size_t)(output + bytes - base));
  const bool is_number = dot && dot + 1 + strspn(dot + 1, "0123456789") == output + bytes;
  return (int)(dot && dot != base && !is_number ? (size_t)(dot - output) : bytes);
}

/* trace.json: trace.oom.txt, then trace.oom-2.txt. */
static bool name_text(oom_paths *p, uint32_t number) {
  const int stem = output_stem_bytes(p->output);
  const int bytes = number > 1
                        ? snprintf(p->path, PATH_ROOM, "%.*s.oom-%u.txt", stem, p->output, number)
                        : snprintf(p->path, PATH_ROOM, "%.*s.oom.txt", stem, p->output);
  return bytes > 0 && bytes < PATH_ROOM;
}

/* Creates a new file, replaces an old one, and never follows a link. */
static int open_temporary(oom_paths *p) {
  for (int turn = 1; turn < NUMBERS_END; turn++) {
    const int bytes = snprintf(p->temporary, PATH_ROOM, "%.*s.oom-%ld-%d.tmp",
                               output_stem_bytes(p->output), p->output, (long)getpid(), turn);
    if (bytes < 0 || bytes >= PATH_ROOM) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int fd = open(p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

static bool write_text(int fd, const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    const ssize_t written = write(fd, text, left);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) {
      text += written;
      left -= (size_t)written;
    }
  }
  return true;
}

/* To where nothing stands: in one step, or by a link where this file system does not do that. */
static bool move_new(const char *from, const char *to) {
  if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST || link(from, to) != 0) return false;
  unlink(from);
  return true;
}

/* Takes the first free number, from that one on: texts of others stay. */
static bool move_to_free_name(oom_paths *p, uint32_t number) {
  for (; number < NUMBERS_END; number++) {
    if (!name_text(p, number)) {
      errno = ENAMETOOLONG;
      return false;
    }
    if (move_new(p->temporary, p->path)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

/* Under another name first, so that none ever stands half written. */
static int write_file(oom_paths *p, const char *text, uint32_t number) {
  const int fd = open_temporary(p);
  if (fd < 0)
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': %s", p->temporary,
                       strerror(errno));
  bool is_written = write_text(fd, text);
  int error = errno;
  if (close(fd) != 0 && is_written) {
    is_written = false;
    error = errno;
  }
  if (is_written && move_to_free_name(p, number)) return PROF_OK;
  if (is_written) error = errno;
  unlink(p->temporary);
  return prof_i_fail(prof_i_status_of_errno(error), "cannot write what was live beside '%s': %s",
                     p->output, strerror(error));
}

/* A line at a time: names in it may not make lines of their own. */
static void log_lines(const char *text) {
  for (size_t bytes; *text; text += bytes + (text[bytes] == '\n')) {
    bytes = strcspn(text, "\n");
    prof_i_log("%.*s", (int)bytes, text);
  }
}

static int put_where_it_goes(const char *text, uint32_t number) {
  oom_paths *const p = malloc(sizeof *p);
  if (!p) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to say what was live");
  int status = PROF_OK;
  if (prof_i_output_path(p->output, sizeof p->output))
    status = write_file(p, text, number);
  else
    log_lines(text);
  free(p);
  return status;
}

static int write_oom_text(prof_device device, uint64_t bytes, uint32_t number) {
  char *text = NULL;
  size_t count = 0;
  FILE *const to = open_memstream(&text, &count);
  if (!to) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to say what was live");
  int status = put_oom_text(to, device, bytes);
  /* glibc's fclose() says 0 even if it had no memory for the text */
  const bool is_whole = fclose(to) == 0 && text;
  if (!is_whole && status == PROF_OK)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory to say what was live");
  if (is_whole && status == PROF_OK) status = put_where_it_goes(text, number);
  free(text);
  return status;
}

static uint32_t count_text(void) {
  const uint64_t process = (uint64_t)getpid() << 32;
  uint64_t was = __atomic_load_n(&texts_written, __ATOMIC_RELAXED), now;
  do now = was >> 32 == process >> 32 ? was + 1 : process + 1;
  while (!__atomic_compare_exchange_n(&texts_written, &was, now, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return (uint32_t)now;
}

static int fail_without_pool(prof_device device) {
  char name[DEVICE_ROOM];
  prof_i_put_device(name, sizeof name, device);
  return prof_i_fail(PROF_E_NOT_FOUND, "device %s has no pool", name);
}

int prof_memory_oom(prof_device device, uint64_t bytes) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (device.type == 0) device = PROF_HOST;
  const int saved = errno;
  prof_i_session_ensure(); /* a forked child's own capture, and output */
  int status = prof_i_session_has_memory()
                   ? PROF_OK
                   : prof_i_fail(PROF_E_NOT_RUNNING, "memory is not recorded");
  if (status == PROF_OK && record_failure(device, bytes) == 0) status = fail_without_pool(device);
  const uint32_t number = status == PROF_OK ? count_text() : 0;
  if (status == PROF_OK && number <= TEXTS_MAX) status = write_oom_text(device, bytes, number);
  errno = saved;
  return status;
}
