/* Creates the file or memory of a new capture. See arena.h. */
#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../base/log.h"
#include "../../base/options.h"
#include "../../base/port.h"
#include "../../base/text.h"
#include "../../format/layout.h"
#include "capture_file.h"

static const uint64_t cap_bytes_min = 1 << 20; /* below it no smaller one is tried */
/* Of the address space that is free. The sites' tables take a 32nd more, see site.h: both together
   are an eighth at most. */
enum { SPACE_PART = 3, SPACE_PARTS = 32 };

static uint64_t whole_units(uint64_t bytes) { return bytes & ~(uint64_t)(PROF_I_UNIT_BYTES - 1); }

/* A budget of events is judged where a chunk ends. */
static bool chunk_outlasts_budget(uint64_t chunk_bytes, uint64_t budget_events) {
  enum { EVENT_BYTES = 16 };
  return budget_events && chunk_bytes / EVENT_BYTES > budget_events;
}

/* Chunks grow from 16 KiB to at most a 64th of the arena, or a second's budget of events. 64 KiB
   hold the longest record. */
static void choose_chunk_sizes(prof_i_arena *arena, uint64_t budget_events) {
  arena->chunk_bytes_min = PROF_I_UNIT_BYTES;
  arena->chunk_bytes_max = PROF_I_CHUNK_BYTES_MAX;
  while (arena->chunk_bytes_max > 4 * PROF_I_UNIT_BYTES &&
         (arena->chunk_bytes_max * 64 > arena->cap_bytes ||
          chunk_outlasts_budget(arena->chunk_bytes_max, budget_events)))
    arena->chunk_bytes_max /= 4;
}

/* Appends to the reason. limit UINT64_MAX: no limit. */
static void append_cap_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked,
                              const char *limit_name, uint64_t limit, const char *advice) {
  prof_i_compose reason = {fresh->reason, sizeof fresh->reason, strlen(fresh->reason), false};
  if (reason.bytes) prof_i_compose_text(&reason, "; ");
  prof_i_compose_text(&reason, "the cap is ");
  prof_i_compose_number(&reason, cap);
  prof_i_compose_text(&reason, " bytes, not ");
  prof_i_compose_number(&reason, asked);
  prof_i_compose_text(&reason, ": ");
  prof_i_compose_text(&reason, limit_name);
  if (limit != UINT64_MAX) {
    prof_i_compose_text(&reason, " is ");
    prof_i_compose_number(&reason, limit);
    prof_i_compose_text(&reason, " bytes");
  }
  prof_i_compose_text(&reason, advice);
  fresh->is_cap_cut = true;
}

/* The advice stands behind the command that raises the limit. */
static void append_space_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked,
                                const prof_i_space *space, const char *advice) {
  append_cap_reason(fresh, cap, asked, space->name, space->limit_bytes, "; raise it (");
  prof_i_compose reason = {fresh->reason, sizeof fresh->reason, strlen(fresh->reason), false};
  prof_i_compose_text(&reason, space->command);
  prof_i_compose_text(&reason, ")");
  prof_i_compose_text(&reason, advice);
}

/* What prof may take of the address space. The host needs the rest, and a reader a copy. */
static uint64_t space_share(void) {
  const uint64_t left = prof_i_port_space().left_bytes;
  if (left == UINT64_MAX) return UINT64_MAX;
  const uint64_t share = whole_units(left / SPACE_PARTS * SPACE_PART);
  return share < cap_bytes_min ? cap_bytes_min : share;
}

/* The kernel refused `asked` bytes with that error, and gave `cap`. */
static void append_refusal_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked, int error) {
  const uint64_t locked = prof_i_port_locked_memory_limit();
  const prof_i_space space = prof_i_port_space();
  if (error == EAGAIN && locked != UINT64_MAX)
    append_cap_reason(fresh, cap, asked, "mlockall() locks all that is mapped, and RLIMIT_MEMLOCK",
                      locked, "; raise it (ulimit -l) or set a smaller cap");
  else if (error == ENOMEM && space.limit_bytes != UINT64_MAX)
    append_space_reason(fresh, cap, asked, &space, " or set a smaller cap");
  else
    append_cap_reason(fresh, cap, asked, prof_i_error_text(error), UINT64_MAX,
                      "; set a smaller cap");
}

/* Halves the cap until the kernel maps it, and leaves the host its share of the address space.
   Returns 0 or the kernel's last error. */
static int map_as_large(prof_i_arena *fresh, int fd, uint64_t asked, uint32_t policy) {
  int error = 0, refused = 0;
  for (uint64_t cap = asked; cap == asked || cap >= cap_bytes_min; cap = whole_units(cap / 2)) {
    const uint64_t share = refused == ENOMEM ? space_share() : UINT64_MAX;
    if (cap > share) cap = share;
    error = prof_i_arena_map(fresh, fd, cap, policy);
    if (!error && refused) append_refusal_reason(fresh, cap, asked, refused);
    if (!error) return 0;
    refused = error;
  }
  return error;
}

static int map_status(int error) {
  const int status = prof_i_status_of_errno(error);
  const bool has_no_descriptor = error == EMFILE || error == ENFILE;
  return status == PROF_E_IO && !has_no_descriptor ? PROF_E_NO_MEMORY : status;
}

static int map_memory(prof_i_arena *fresh, const prof_options *options) {
  uint64_t cap = options->cap_bytes;
  const uint64_t limit = prof_i_port_file_size_limit();
  if (cap > limit) { /* past RLIMIT_FSIZE the kernel kills, memfds too */
    cap = whole_units(limit);
    append_cap_reason(fresh, cap, options->cap_bytes, "RLIMIT_FSIZE", limit,
                      "; raise it (ulimit -f)");
  }
  if (cap < 4 * PROF_I_SLOT_BYTES)
    return prof_i_fail(PROF_E_NO_SPACE, "RLIMIT_FSIZE of %llu bytes leaves no room to record",
                       (unsigned long long)limit);
  const uint32_t policy =
      options->policy == PROF_POLICY_STREAM ? PROF_POLICY_KEEP : options->policy;
  const int error = map_as_large(fresh, -1, cap, policy);
  if (!error) return PROF_OK;
  fresh->error = error;
  return prof_i_fail(map_status(error), "cannot map %llu bytes to record into: %s",
                     (unsigned long long)options->cap_bytes, prof_i_error_text(error));
}

/* What stands on tmpfs is memory, of which the machine or the control group has only so much. A
   program that names a cap for such a place gets it, as for memory. */
static uint64_t cap_of_file(int fd, const prof_options *options, bool is_chosen) {
  const uint64_t most = prof_i_options_memory_cap();
  return is_chosen || options->cap_bytes <= most || !prof_i_capture_file_is_memory(fd)
             ? options->cap_bytes
             : most;
}

/* A file's cap may be too much for memory. */
static int map_memory_instead(prof_i_arena *fresh, const prof_options *options) {
  const uint64_t most = prof_i_options_memory_cap();
  prof_options in_memory = *options;
  if (in_memory.cap_bytes > most) in_memory.cap_bytes = most;
  return map_memory(fresh, &in_memory);
}

static int map_anywhere(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child) {
  if (!options->path) return map_memory(fresh, options);
  const int fd = prof_i_capture_file_create(output, is_child, fresh->path, sizeof fresh->path,
                                            fresh->reason, sizeof fresh->reason);
  const int status = is_child ? PROF_OK
                              : prof_i_output_claim_settle(output, PROF_I_OUTPUT_ROOM, 0, fd,
                                                           fresh->path, sizeof fresh->path);
  if (status != PROF_OK) {
    if (fd >= 0) close(fd);
    if (fd >= 0) unlink(fresh->path);
    return status;
  }
  if (fd < 0) return map_memory_instead(fresh, options);
  const bool is_elsewhere = fresh->reason[0];
  const uint64_t cap = cap_of_file(fd, options, !has_default_cap && !is_elsewhere);
  const int error = map_as_large(fresh, fd, cap, options->policy);
  if (!error) return PROF_OK;
  close(fd);
  unlink(fresh->path);
  return prof_i_fail(map_status(error), "cannot map the capture '%s': %s", fresh->path,
                     prof_i_error_text(error));
}

int prof_i_arena_create(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child) {
  const uint64_t usual = options->cap_bytes, share = has_default_cap ? space_share() : UINT64_MAX;
  prof_options made = *options;
  if (share < usual) made.cap_bytes = share;
  const int status = map_anywhere(fresh, &made, has_default_cap, output, is_child);
  if (status != PROF_OK) return status;
  choose_chunk_sizes(fresh, options->budget_events);
  if (share >= usual || fresh->cap_bytes != share || fresh->is_cap_cut) return PROF_OK;
  const prof_i_space space = prof_i_port_space();
  append_space_reason(fresh, share, usual, &space, " or set a cap");
  return PROF_OK;
}
