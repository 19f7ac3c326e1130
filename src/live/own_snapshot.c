/* prof_get(): a trace of the own capture, while other threads record. It is made of a snapshot of
   the arena. */
#include <prof/profiler.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/blocks.h"
#include "../core/session/control.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "live.h"

enum { TRIES = 8 };

static uint64_t live_bytes_now(const prof_i_live_source *live) {
  return prof_i_arena_view_readable(live->user);
}

static bool may_read_unit(const prof_i_live_source *live, uint64_t offset) {
  const prof_i_arena_view *const pinned = live->user;
  return prof_i_head_map_may_read(pinned->arena, offset);
}

static const unsigned char *find_bytes(const prof_i_live_source *live, uint64_t offset) {
  const prof_i_arena_view *const pinned = live->user;
  return prof_i_block_find(pinned->bytes, pinned->in_place, offset);
}

static void mark_shown_in_place(const unsigned char *chunks, uint64_t bytes) {
  prof_i_blocks_keep_on_fork(chunks, bytes);
}

static int fail_no_capture(int status) {
  char why[512];
  prof_i_control_lock();
  prof_i_control_no_capture_reason(why, sizeof why);
  prof_i_control_unlock();
  return prof_i_fail(status, "there is no capture: %s", why[0] ? why : "nothing has been started");
}

/* False: retry, because of a clear, or because the capture outgrew its pinned part. is_last: accept
   the snapshot in both cases. */
static bool take_snapshot(prof_i_source *source, bool is_last, int *status_out) {
  prof_i_arena_view pinned;
  *status_out = prof_i_arena_view_acquire(&pinned, true);
  if (*status_out) {
    fail_no_capture(*status_out);
    return true;
  }
  const prof_i_live_source live = {.bytes = pinned.bytes,
                                   .room = pinned.room,
                                   .live_bytes_now = live_bytes_now,
                                   .may_read_unit = may_read_unit,
                                   .user = &pinned,
                                   .in_place = pinned.in_place,
                                   .find_bytes = find_bytes,
                                   .mark_shown_in_place = mark_shown_in_place,
                                   .may_map_more = pinned.has_more_room && !is_last};
  const int status = prof_i_source_snapshot(source, &live, true);
  const bool is_whole = prof_i_arena_view_release(&pinned, status == PROF_OK, is_last);
  if (status == PROF_OK)
    source->snapshot_pin = pinned.snapshot_pin,
    source->end_snapshot_pin = prof_i_arena_end_snapshot_pin;
  *status_out = status;
  if (is_last || (status != PROF_I_SNAPSHOT_OUTGROWN && is_whole)) return true;
  if (status == PROF_OK) prof_i_source_fini(source);
  return status != PROF_OK && status != PROF_I_SNAPSHOT_OUTGROWN;
}

int prof_i_trace_take(prof_trace **trace_out) {
  prof_i_source source = {.bytes = NULL};
  int status = PROF_OK;
  prof_i_arena_prepare_read();
  for (int i = 1; !take_snapshot(&source, i >= TRIES, &status); i++) {
  }
  return status ? status : prof_i_trace_make(&source, trace_out);
}

int prof_get(prof_trace **trace_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!trace_out) return prof_i_fail(PROF_E_INVALID, "prof_get: trace_out is NULL");
  PROF_I_INSIDE;
  return prof_i_trace_take(trace_out);
}
