/* How the profiler itself is. Control path. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "blocks.h"
#include "change.h"
#include "chunk.h"
#include "clock.h"
#include "control.h"
#include "cost.h"
#include "helper.h"
#include "in_place.h"
#include "log.h"
#include "mute.h"
#include "options.h"
#include "pin.h"
#include "port.h"
#include "site.h"
#include "thread.h"

/* What stands in this extent, and what it held before. */
static void count_extent(prof_health *health, const prof_i_head *extent, uint64_t clear_ticks) {
  const prof_i_chunk_count count = prof_i_chunk_look(extent, clear_ticks);
  health->recorded_count += count.live;
  health->lost_count[PROF_LOSS_CLEARED] += count.cleared + count.gone[PROF_I_GONE_CLEARED];
  health->lost_count[PROF_LOSS_OVERWRITTEN] += count.gone[PROF_I_GONE_OVERWRITTEN];
}

enum { PACK_TRIES = 1000 }; /* a thread may be stopped while it moves entries */

/* Of a thread that lives. */
static uint64_t open_in(const prof_i_slot *slot) {
  if (!__atomic_load_n(&slot->serial, __ATOMIC_ACQUIRE)) return 0;
  uint64_t count, before;
  int tries = 0;
  do { /* entries that move meanwhile are counted again */
    before = __atomic_load_n(&slot->pack_count, __ATOMIC_ACQUIRE);
    const uint64_t depth = __atomic_load_n(&slot->depth, __ATOMIC_RELAXED);
    count = prof_i_slot_deep_open(slot);
    for (uint64_t i = 1; i <= depth && i <= PROF_I_OPEN_COUNT; i++)
      count += prof_i_slot_stands(slot, i) != 0;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while (++tries < PACK_TRIES &&
           (before % 2 || __atomic_load_n(&slot->pack_count, __ATOMIC_RELAXED) != before));
  return prof_i_slot_is_over(slot, __atomic_load_n(&slot->lost[PROF_LOSS_THREAD_ENDED], __ATOMIC_RELAXED)) ? 0 : count;
}

static uint64_t resident_bytes(const prof_i_pinned *pinned, uint64_t end) {
  const uint64_t most = pinned->in_place ? PROF_I_BLOCK_BYTES : end;
  uint64_t sum = 0;
  for (uint64_t offset = 0, bytes; offset < end; offset += bytes) {
    const void *const at = prof_i_block_find(pinned->bytes, pinned->in_place, offset);
    bytes = end - offset < most ? end - offset : most;
    sum += prof_i_port_resident_bytes((void *)(uintptr_t)at, bytes);
  }
  return sum;
}

/* Losses, and records counted by walking the chunks; nobody else waits for that. Returns the sum of
   the spreads of what was timed in place. */
static uint64_t count_records(prof_health *health, const prof_i_pinned *pinned) {
  const prof_i_header *const header = (const prof_i_header *)(const void *)pinned->bytes;
  const uint64_t clear_ticks = __atomic_load_n(&header->clear_ticks, __ATOMIC_RELAXED);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) health->lost_count[i] = __atomic_load_n(&header->unplaced[i], __ATOMIC_RELAXED);
  health->stray_count = __atomic_load_n(&header->stray_count, __ATOMIC_RELAXED);
  uint64_t offset = 0, spread_us2 = 0;
  const uint64_t readable = prof_i_pinned_readable(pinned), end = readable < pinned->room ? readable : pinned->room;
  for (const prof_i_head *head;
       (head = prof_i_arena_next_of(pinned->bytes, pinned->in_place, pinned->arena, &offset,
                                    end)) != NULL;) {
    const prof_i_extent_kind kind = prof_i_head_kind(head);
    if (kind == PROF_I_EXTENT_META || offset > end) continue; /* one that goes on behind what is there is just being made */
    count_extent(health, head, clear_ticks); /* a slot may stand where a chunk was */
    if (kind == PROF_I_EXTENT_SLOT) {
      const prof_i_slot *const slot = (const prof_i_slot *)head;
      for (int i = 0; i < PROF_LOSS_COUNT; i++) health->lost_count[i] += __atomic_load_n(&slot->lost[i], __ATOMIC_RELAXED);
      health->open_count += open_in(slot);
      health->stray_count += __atomic_load_n(&slot->stray_count, __ATOMIC_RELAXED);
      health->deep_count += __atomic_load_n(&slot->deep_count, __ATOMIC_RELAXED);
      health->cut_text_count += __atomic_load_n(&slot->cut_count, __ATOMIC_RELAXED);
      const uint64_t in_place_ns = prof_i_slot_in_place_ns(slot);
      const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
      health->own_ns += own_ns + in_place_ns;
      health->own_least_ns += own_ns;
      spread_us2 += __atomic_load_n(&slot->spread_us2, __ATOMIC_RELAXED);
      const prof_i_head *const reserve = (const prof_i_head *)((const char *)slot + PROF_I_RESERVE_OFFSET);
      if (__atomic_load_n(&reserve->magic, __ATOMIC_ACQUIRE) == PROF_I_EXTENT_MAGIC) count_extent(health, reserve, clear_ticks);
    }
  }
  health->resident_bytes = resident_bytes(pinned, end);
  return spread_us2;
}

/* Control lock held. */
static void describe_arena(prof_health *health) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  health->arena_bytes = prof_i_arena_taken_bytes();
  health->cap_bytes = arena->cap_bytes;
  health->policy = arena->policy;
  health->survives_kill = arena->is_file;
  health->is_full = prof_i_arena_full_loss() >= 0;
  snprintf(health->capture_path, sizeof health->capture_path, "%s", arena->path);
  snprintf(health->reason, sizeof health->reason, "%s", arena->reason);
}

/* What does not take long. Control lock held. */
static void describe(prof_health *health) {
  describe_arena(health);
  health->clock = prof_i_clock_kind();
  health->clock_segments_count = prof_i_clock_segments();
  health->ticks_per_ns = prof_i_clock_ticks_per_ns();
  health->clock_error_ns = prof_i_clock_error_ns();
  health->threads_seen_count = (uint32_t)prof_i_thread_seen_count();
  health->threads_alive_count = (uint32_t)prof_i_thread_alive_count();
  health->helper_thread = prof_i_helper_is_on();
  const prof_i_chunk_times times = prof_i_chunk_change_times();
  health->chunk_changes_count = times.count;
  health->chunk_change_median_ns = times.median_ns;
  health->chunk_change_p99_ns = times.p99_ns;
  health->chunk_change_max_ns = times.max_ns;
  const prof_i_cost cost = prof_i_cost_measure();
  health->scope_cost_ns = (double)cost.scope_ps / 1e3;
  health->muted_sites_count = prof_i_mute_count();
  health->changes_count = prof_i_change_count();
}

/* What recording took beside chunk changes, and the bounds; see prof_trace_thread.own_ns. */
static void add_scopes_cost(prof_health *health, const prof_i_header *header, uint64_t spread_us2) {
  const uint64_t *const lost = health->lost_count;
  const double left_out = (double)lost[PROF_LOSS_MUTED] + (double)lost[PROF_LOSS_FULL] + (double)lost[PROF_LOSS_DISK];
  double events = (double)health->recorded_count - left_out;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) events += (double)lost[i];
  const double ps = events * (double)header->scope_cost_ps +
                    left_out * (double)header->left_out_cost_ps;
  health->own_ns += (uint64_t)(ps / 1e3);
  health->own_least_ns += (uint64_t)(ps / 1e3);
  health->own_most_ns = prof_i_in_place_most_ns(
      health->own_ns, health->own_ns - health->own_least_ns, spread_us2);
  const uint64_t time_ns = prof_i_ns_since(header->start_monotonic_ns);
  const uint64_t threads = __atomic_load_n(&header->thread_count, __ATOMIC_RELAXED);
  health->own_ns = prof_i_in_place_bound(health->own_ns, time_ns, threads);
  health->own_least_ns = prof_i_in_place_bound(health->own_least_ns, time_ns, threads);
  health->own_most_ns = prof_i_in_place_bound(health->own_most_ns, time_ns, threads);
}

int prof_health_get(prof_health *health_out) {
  PROF_I_HOLD_FP;
  if (!health_out) return prof_i_fail(PROF_E_INVALID, "prof_health: health_out is NULL");
  PROF_I_HOLD_CANCEL;
  PROF_I_INSIDE;
  prof_health health = {.size = sizeof health};
  prof_i_pinned pinned;
  prof_i_thread_notice_ends();
  prof_i_control_lock();
  health.level = prof_i_arena_level();
  health.sites_count = prof_i_site_count();
  const bool is_there = prof_i_arena_pin_held(&pinned, false);
  if (is_there) {
    describe(&health);
    prof_i_control_device_warning(health.device_warning, sizeof health.device_warning);
  } else {
    prof_i_control_why_none(health.reason, sizeof health.reason);
  }
  prof_i_pinned_unlock(&pinned);
  if (is_there) {
    const uint64_t spread_us2 = count_records(&health, &pinned);
    add_scopes_cost(&health, (const prof_i_header *)(const void *)pinned.bytes, spread_us2);
    prof_i_arena_unpin(&pinned, false, false);
  }
  return prof_i_sized_give(health_out, &health, sizeof health, "prof_health");
}
