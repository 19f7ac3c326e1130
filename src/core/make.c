/* See make.h. */
#define _GNU_SOURCE
#include "make.h"

#include <errno.h>
#include <unistd.h>

#include "compose.h"
#include "layout.h"
#include "log.h"
#include "options.h"
#include "place.h"
#include "port.h"
#include "rivals.h"

static const uint64_t least_cap = 1 << 20; /* below it no smaller one is tried */

static uint64_t whole_units(uint64_t bytes) { return bytes & ~(uint64_t)(PROF_I_UNIT_BYTES - 1); }

/* Chunks grow from 16 KiB to at most a 64th of the arena; a ring's are all of one size. 64 KiB hold
   the longest record. */
static void choose_chunk_sizes(prof_i_arena *arena) {
  arena->chunk_bytes_min = PROF_I_UNIT_BYTES;
  arena->chunk_bytes_max = PROF_I_CHUNK_BYTES_MAX;
  while (arena->chunk_bytes_max > 4 * PROF_I_UNIT_BYTES &&
         arena->chunk_bytes_max * 64 > arena->cap_bytes)
    arena->chunk_bytes_max /= 4;
  if (arena->policy == PROF_POLICY_RING) arena->chunk_bytes_min = arena->chunk_bytes_max;
}

static int make_memory(prof_i_arena *fresh, const prof_options *options) {
  uint64_t cap = options->cap_bytes;
  const uint64_t limit = prof_i_port_file_size_limit();
  if (cap > limit) { /* past RLIMIT_FSIZE the kernel kills, memfds too */
    cap = whole_units(limit);
    prof_i_compose reason = prof_i_compose_in(fresh->reason, sizeof fresh->reason);
    prof_i_compose_text(&reason, "the cap is ");
    prof_i_compose_number(&reason, cap);
    prof_i_compose_text(&reason, " bytes: RLIMIT_FSIZE");
  }
  if (cap < 4 * PROF_I_SLOT_BYTES)
    return prof_i_fail(PROF_E_NO_SPACE, "RLIMIT_FSIZE of %llu bytes leaves no room to record",
                       (unsigned long long)limit);
  int error = EINVAL;
  const uint32_t policy =
      options->policy == PROF_POLICY_STREAM ? PROF_POLICY_KEEP : options->policy;
  do { /* RLIMIT_AS may refuse the first size */
    if ((error = prof_i_arena_make(fresh, -1, cap, policy)) == 0) return PROF_OK;
    cap = whole_units(cap / 2);
  } while (cap >= least_cap);
  fresh->error = error;
  const int status = prof_i_status_of_errno(error);
  const bool has_no_descriptor = error == EMFILE || error == ENFILE;
  return prof_i_fail(status == PROF_E_IO && !has_no_descriptor ? PROF_E_NO_MEMORY : status,
                     "cannot map %llu bytes to record into: %s",
                     (unsigned long long)options->cap_bytes, prof_i_error_text(error));
}

/* What stands on tmpfs is memory, of which the machine or the control group has only so much. A
   program that names a cap for such a place gets it, as for memory. */
static uint64_t cap_on(int fd, const prof_options *options, bool is_chosen) {
  const uint64_t most = prof_i_options_memory_cap();
  return is_chosen || options->cap_bytes <= most || !prof_i_place_is_memory(fd) ? options->cap_bytes
                                                                                : most;
}

/* A file's cap may be too much for memory. */
static int make_memory_instead(prof_i_arena *fresh, const prof_options *options) {
  const uint64_t most = prof_i_options_memory_cap();
  prof_options in_memory = *options;
  if (in_memory.cap_bytes > most) in_memory.cap_bytes = most;
  return make_memory(fresh, &in_memory);
}

static int make_anywhere(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                         char *output, bool is_child) {
  if (!options->path) return make_memory(fresh, options);
  const int fd = prof_i_place_create(output, is_child, fresh->path, sizeof fresh->path,
                                     fresh->reason, sizeof fresh->reason);
  const int status = is_child ? PROF_OK
                              : prof_i_rivals_settle(output, PROF_I_OUTPUT_ROOM, 0, fd, fresh->path,
                                                     sizeof fresh->path);
  if (status != PROF_OK) {
    if (fd >= 0) close(fd);
    if (fd >= 0) unlink(fresh->path);
    return status;
  }
  if (fd < 0) return make_memory_instead(fresh, options);
  const bool is_elsewhere = fresh->reason[0];
  uint64_t cap = cap_on(fd, options, !has_default_cap && !is_elsewhere);
  int error = 0;
  for (; cap >= least_cap; cap = whole_units(cap / 2))
    if ((error = prof_i_arena_make(fresh, fd, cap, options->policy)) == 0) return PROF_OK;
  close(fd);
  unlink(fresh->path);
  return prof_i_fail(PROF_E_NO_MEMORY, "cannot map the capture '%s': %s", fresh->path,
                     prof_i_error_text(error));
}

int prof_i_make_arena(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                      char *output, bool is_child) {
  const int status = make_anywhere(fresh, options, has_default_cap, output, is_child);
  if (status == PROF_OK) choose_chunk_sizes(fresh);
  return status;
}
