/* The own arena, pinned for a reader. See control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <prof/profiler.h>

#include "../../base/port.h"
#include "../../format/layout.h"
#include "../buffer/arena.h"
#include "../buffer/blocks.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/session.h"
#include "../buffer/snapshot_pin.h"
#include "../buffer/thread.h"
#include "../record/change_log.h"
#include "internal.h"

/* A file that another process has cut off is as long as it was found. */
uint64_t prof_i_arena_view_readable(const prof_i_arena_view *view) {
  const prof_i_header *const header = (const prof_i_header *)(const void *)view->bytes;
  const uint64_t made = __atomic_load_n(&header->made_bytes, __ATOMIC_ACQUIRE);
  const uint64_t used = __atomic_load_n(&header->used_bytes, __ATOMIC_ACQUIRE);
  const uint64_t there = made < used ? made : used;
  return view->is_cut || there < view->readable ? view->readable : there;
}

/* Lock held. */
static void map_view(prof_i_arena_view *view) {
  enum { MORE_BYTES = 64 << 20, TRIES = 4 };
  const prof_i_arena *const arena = &prof_i_the_arena;
  view->bytes = (const unsigned char *)arena->base;
  /* First: files only grow, unless they are cut off. */
  const uint64_t made = prof_i_arena_view_readable(view);
  view->bytes = NULL;
  view->readable = prof_i_arena_readable_bytes();
  view->is_cut = view->readable < made;
  for (int i = 0; i < TRIES && !view->bytes; i++)
    view->bytes = prof_i_arena_map_readonly(MORE_BYTES, &view->room);
  view->is_locked = !view->bytes;
  if (view->is_locked) {
    view->bytes = (const unsigned char *)arena->base;
    view->room = arena->cap_bytes;
  }
  view->has_more_room = view->room < arena->cap_bytes;
}

void prof_i_arena_prepare_read(void) {
  prof_i_control_resolve_devices();
  prof_i_control_lock();
  const uint64_t arena = prof_i_the_arena.base ? prof_i_the_arena.number : 0;
  prof_i_control_unlock();
  if (arena) prof_i_thread_reap_exited();
  if (arena) prof_i_thread_refresh_names(arena);
}

bool prof_i_arena_view_acquire_locked(prof_i_arena_view *view_out, bool with_pin) {
  *view_out = (prof_i_arena_view){.bytes = NULL};
  if (!prof_i_the_arena.base) return false;
  prof_i_thread_flush_losses();
  map_view(view_out);
  if (prof_i_the_arena.has_blocks) {
    view_out->in_place = (const unsigned char *)prof_i_the_arena.base;
    prof_i_blocks_pin();
  }
  view_out->arena = prof_i_the_arena.number;
  view_out->clears = prof_i_snapshot_pin_clear_count();
  if (with_pin) view_out->snapshot_pin = prof_i_snapshot_pin_begin();
  return true;
}

void prof_i_arena_view_unlock(const prof_i_arena_view *view) {
  if (!view->is_locked) prof_i_control_unlock();
}

int prof_i_arena_view_acquire(prof_i_arena_view *view_out, bool with_pin) {
  prof_i_control_lock();
  if (prof_i_session_is_recording()) {
    prof_i_clock_write_pair(false);
    prof_i_change_log_check_level();
  }
  const bool is_there = prof_i_arena_view_acquire_locked(view_out, with_pin);
  prof_i_arena_view_unlock(view_out);
  return is_there ? PROF_OK : PROF_E_NOT_RUNNING;
}

bool prof_i_arena_view_release(prof_i_arena_view *view, bool wants_pin, bool is_content) {
  if (!view->is_locked) prof_i_port_unmap((void *)(uintptr_t)view->bytes, view->room);
  if (!view->is_locked) prof_i_control_lock();
  const bool is_whole =
      prof_i_the_arena.number != view->arena || prof_i_snapshot_pin_clear_count() == view->clears;
  const bool keeps = wants_pin && (is_whole || is_content);
  if (keeps) prof_i_snapshot_pin_settle(view->snapshot_pin, prof_i_chunk_newest_number());
  const bool is_free = !keeps && prof_i_snapshot_pin_end(view->snapshot_pin, false);
  if (!keeps) view->snapshot_pin = 0;
  struct prof_i_retained_blocks *const left =
      view->in_place ? prof_i_blocks_unpin(view->arena, keeps) : NULL;
  prof_i_control_unlock();
  prof_i_blocks_unmap(left);
  if (is_free) prof_i_clear_free_deferred();
  return is_whole;
}

void prof_i_arena_end_snapshot_pin(uint64_t snapshot_pin) {
  if (!snapshot_pin) return;
  prof_i_control_lock();
  const bool is_free = prof_i_snapshot_pin_end(snapshot_pin, true);
  struct prof_i_retained_blocks *const left =
      prof_i_blocks_release(prof_i_snapshot_pin_arena(snapshot_pin));
  prof_i_control_unlock();
  prof_i_blocks_unmap(left);
  if (is_free) prof_i_clear_free_deferred();
}
