/* See pin.h. */
#define _GNU_SOURCE
#include "pin.h"

#include <prof/profiler.h>

#include "../../base/port.h"
#include "../../format/layout.h"
#include "../buffer/arena.h"
#include "../buffer/blocks.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/lease.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "../record/change.h"
#include "clear.h"
#include "control.h"

/* A file that another process has cut off is as long as it was found. */
uint64_t prof_i_pinned_readable(const prof_i_pinned *pinned) {
  const prof_i_header *const header = (const prof_i_header *)(const void *)pinned->bytes;
  const uint64_t made = __atomic_load_n(&header->made_bytes, __ATOMIC_ACQUIRE);
  const uint64_t used = __atomic_load_n(&header->used_bytes, __ATOMIC_ACQUIRE);
  const uint64_t there = made < used ? made : used;
  return pinned->is_cut || there < pinned->readable ? pinned->readable : there;
}

/* Lock held. */
static void map_pinned(prof_i_pinned *pinned) {
  enum { MORE_BYTES = 64 << 20, TRIES = 4 };
  const prof_i_arena *const arena = &prof_i_the_arena;
  pinned->bytes = (const unsigned char *)arena->base;
  /* First: files only grow, unless they are cut off. */
  const uint64_t made = prof_i_pinned_readable(pinned);
  pinned->bytes = NULL;
  pinned->readable = prof_i_arena_readable_bytes();
  pinned->is_cut = pinned->readable < made;
  for (int i = 0; i < TRIES && !pinned->bytes; i++)
    pinned->bytes = prof_i_arena_map_again(MORE_BYTES, &pinned->room);
  pinned->is_locked = !pinned->bytes;
  if (pinned->is_locked) {
    pinned->bytes = (const unsigned char *)arena->base;
    pinned->room = arena->cap_bytes;
  }
  pinned->has_more_room = pinned->room < arena->cap_bytes;
}

void prof_i_arena_prepare_read(void) {
  prof_i_control_harvest();
  prof_i_control_lock();
  const uint64_t arena = prof_i_the_arena.base ? prof_i_the_arena.number : 0;
  prof_i_control_unlock();
  if (arena) prof_i_thread_notice_ends();
  if (arena) prof_i_thread_refresh_names(arena);
}

bool prof_i_arena_pin_held(prof_i_pinned *pinned_out, bool with_lease) {
  *pinned_out = (prof_i_pinned){.bytes = NULL};
  if (!prof_i_the_arena.base) return false;
  prof_i_thread_place_losses();
  map_pinned(pinned_out);
  if (prof_i_the_arena.has_blocks) {
    pinned_out->in_place = (const unsigned char *)prof_i_the_arena.base;
    prof_i_blocks_pin();
  }
  pinned_out->arena = prof_i_the_arena.number;
  pinned_out->clears = prof_i_lease_clears();
  if (with_lease) pinned_out->lease = prof_i_lease_begin();
  return true;
}

void prof_i_pinned_unlock(const prof_i_pinned *pinned) {
  if (!pinned->is_locked) prof_i_control_unlock();
}

int prof_i_arena_pin(prof_i_pinned *pinned_out, bool with_lease) {
  prof_i_control_lock();
  if (prof_i_session_is_recording()) {
    prof_i_clock_pair(false);
    prof_i_change_look_at_level();
  }
  const bool is_there = prof_i_arena_pin_held(pinned_out, with_lease);
  prof_i_pinned_unlock(pinned_out);
  return is_there ? PROF_OK : PROF_E_NOT_RUNNING;
}

bool prof_i_arena_unpin(prof_i_pinned *pinned, bool wants_lease, bool is_content) {
  if (!pinned->is_locked) prof_i_port_unmap((void *)(uintptr_t)pinned->bytes, pinned->room);
  if (!pinned->is_locked) prof_i_control_lock();
  const bool is_whole =
      prof_i_the_arena.number != pinned->arena || prof_i_lease_clears() == pinned->clears;
  const bool keeps = wants_lease && (is_whole || is_content);
  if (keeps) prof_i_lease_settle(pinned->lease, prof_i_chunk_newest());
  const bool is_free = !keeps && prof_i_lease_end(pinned->lease, false);
  if (!keeps) pinned->lease = 0;
  struct prof_i_held_blocks *const left =
      pinned->in_place ? prof_i_blocks_unpin(pinned->arena, keeps) : NULL;
  prof_i_control_unlock();
  prof_i_blocks_unmap(left);
  if (is_free) prof_i_clear_give_back();
  return is_whole;
}

void prof_i_arena_end_lease(uint64_t lease) {
  if (!lease) return;
  prof_i_control_lock();
  const bool is_free = prof_i_lease_end(lease, true);
  struct prof_i_held_blocks *const left = prof_i_blocks_release(prof_i_lease_arena(lease));
  prof_i_control_unlock();
  prof_i_blocks_unmap(left);
  if (is_free) prof_i_clear_give_back();
}
