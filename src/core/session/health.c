/* How the profiler itself is. Control path. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdio.h>
#include <string.h>

#include "../../base/error.h"
#include "../../base/options.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../../base/text.h"
#include "../../format/state.h"
#include "../buffer/arena.h"
#include "../buffer/blocks.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/thread.h"
#include "../record/change_log.h"
#include "../record/cost_sample.h"
#include "../record/mute.h"
#include "../record/site.h"
#include "control.h"

/* What stands in this extent, and what it held before. */
static void count_extent(prof_health *health, const prof_i_head *extent, uint64_t clear_ticks,
                         prof_i_counted_chunk *known) {
  const prof_i_chunk_count count = prof_i_chunk_count_events(extent, clear_ticks, known);
  health->recorded_count += count.live;
  health->lost_count[PROF_LOSS_CLEARED] += count.cleared + count.evicted[PROF_I_EVICTED_CLEARED];
  health->lost_count[PROF_LOSS_OVERWRITTEN] += count.evicted[PROF_I_EVICTED_OVERWRITTEN];
}

enum { PACK_TRIES = 1000 }; /* a thread may be stopped while it moves entries */

/* Of a thread that lives: those that have entries. What another thread is just ending is left out:
   it may be recorded. */
static uint64_t count_open_in_slot(const prof_i_thread_slot *slot) {
  if (!__atomic_load_n(&slot->serial, __ATOMIC_ACQUIRE)) return 0;
  uint64_t count, before;
  int tries = 0;
  do { /* entries that move meanwhile are counted again */
    before = __atomic_load_n(&slot->pack_count, __ATOMIC_ACQUIRE);
    const uint64_t depth = __atomic_load_n(&slot->depth, __ATOMIC_RELAXED);
    const uint64_t ledger = prof_i_ledger_of(slot);
    count = 0;
    for (uint64_t i = 1; i <= depth && i <= PROF_I_OPEN_COUNT; i++)
      count += prof_i_slot_entry_is_open(slot, ledger, i) &&
               !(__atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED) & PROF_I_OPEN_TAKEN);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while (++tries < PACK_TRIES &&
           (before % 2 || __atomic_load_n(&slot->pack_count, __ATOMIC_RELAXED) != before));
  return count;
}

static uint64_t resident_bytes(const prof_i_arena_view *view, uint64_t end) {
  const uint64_t most = view->in_place ? PROF_I_BLOCK_BYTES : end;
  uint64_t sum = 0;
  for (uint64_t offset = 0, bytes; offset < end; offset += bytes) {
    const void *const at = prof_i_block_find(view->bytes, view->in_place, offset);
    bytes = end - offset < most ? end - offset : most;
    sum += prof_i_port_resident_bytes((void *)(uintptr_t)at, bytes);
  }
  return sum;
}

typedef struct health_count {
  prof_health *health;
  const prof_i_arena_view *view;
  uint64_t end, cap_bytes, clear_ticks;
  uint64_t in_place_ns, spread_us2; /* what was timed in place, and the sum of its spreads */
  uint64_t wait_ns;
  uint64_t sampled_slots; /* whose threads had a window */
  uint64_t deep_parts;
  bool has_table; /* prof_i_count_cache_acquire() */
} health_count;

/* The extents that hold anything but meta records, one after the other; NULL at the end. */
static const prof_i_head *next_data_extent(const health_count *c, uint64_t *offset) {
  const prof_i_head *head;
  bool is_none;
  do {
    head = prof_i_arena_next_of(c->view->bytes, c->view->in_place, c->view->arena, offset, c->end);
    /* An extent that reaches beyond the readable bytes is being made just now. */
    is_none = head && (prof_i_head_kind(head) == PROF_I_EXTENT_META || *offset > c->end);
  } while (is_none);
  return head;
}

static prof_i_counted_chunk *known_count_of(const health_count *c, const prof_i_head *head) {
  if (!c->has_table) return NULL;
  const uintptr_t at = (uintptr_t)head, place = (uintptr_t)c->view->in_place;
  const bool is_in_place = place && at - place < c->cap_bytes;
  return prof_i_count_cache_find(at - (is_in_place ? place : (uintptr_t)c->view->bytes),
                                 __atomic_load_n(&head->bytes, __ATOMIC_RELAXED));
}

static void count_chunk_extent(health_count *c, const prof_i_head *head) {
  /* a slot may stand where a chunk was */
  count_extent(c->health, head, c->clear_ticks, known_count_of(c, head));
  if (prof_i_head_kind(head) != PROF_I_EXTENT_SLOT) return;
  const prof_i_head *const reserve =
      (const prof_i_head *)((const char *)head + PROF_I_RESERVE_OFFSET);
  if (__atomic_load_n(&reserve->magic, __ATOMIC_ACQUIRE) == PROF_I_EXTENT_MAGIC)
    count_extent(c->health, reserve, c->clear_ticks, NULL);
}

/* What the threads that had the slot have lost, as of one moment. */
static uint64_t count_losses(const prof_i_thread_slot *slot, uint64_t *lost_out) {
  enum { LEDGER_TRIES = 1000 };
  uint64_t ledger;
  int tries = 0;
  do {
    ledger = prof_i_ledger_of(slot);
    for (int i = 0; i < PROF_LOSS_COUNT; i++) lost_out[i] = prof_i_slot_lost(slot, ledger, i);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while (prof_i_ledger_of(slot) != ledger && ++tries < LEDGER_TRIES);
  return ledger;
}

static void count_slot(health_count *c, const prof_i_thread_slot *slot) {
  prof_health *const health = c->health;
  uint64_t lost[PROF_LOSS_COUNT];
  c->deep_parts -= count_losses(slot, lost) >> PROF_I_LEDGER_DEEP_SHIFT;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) health->lost_count[i] += lost[i];
  health->stray_count += __atomic_load_n(&slot->stray_count, __ATOMIC_RELAXED);
  health->cut_text_count += __atomic_load_n(&slot->cut_count, __ATOMIC_RELAXED);
  const uint64_t in_place_ns = prof_i_slot_in_place_ns(slot);
  const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
  health->own_ns += own_ns + in_place_ns;
  health->own_least_ns += own_ns;
  c->in_place_ns += in_place_ns;
  if (__atomic_load_n(&slot->window_count, __ATOMIC_RELAXED)) c->sampled_slots++;
  c->wait_ns += __atomic_load_n(&slot->wait_ns, __ATOMIC_RELAXED);
  c->spread_us2 += __atomic_load_n(&slot->spread_us2, __ATOMIC_RELAXED);
}

/* After what is over: a scope that ends meanwhile is not counted twice. */
static void count_open(health_count *c, const prof_i_thread_slot *slot) {
  const uint64_t deep = __atomic_load_n(&slot->deep_count, __ATOMIC_RELAXED);
  c->health->deep_count += deep;
  c->deep_parts += deep;
  c->health->open_count += count_open_in_slot(slot);
}

/* Of threads without a window. How many events each has is not known here: as many as it may. */
static uint64_t few_events_ns_max(const health_count *c) {
  const uint64_t all = c->health->recorded_count, first = PROF_I_OWN_TIME_FIRST_EVENTS;
  const uint64_t sampled = c->sampled_slots * first, seen = c->health->threads_seen_count;
  if (!c->sampled_slots || all <= sampled || seen <= c->sampled_slots) return 0;
  const uint64_t few_at_most = (seen - c->sampled_slots) * (first - 1);
  const uint64_t few = few_at_most < all - sampled ? few_at_most : all - sampled;
  return prof_i_own_time_few_most_ns(c->in_place_ns, few, all - few);
}

/* Walks the records that were not counted before, then adds losses and open scopes. No other call
   waits for this. */
static void count_records(prof_health *health, const prof_i_arena_view *view) {
  const prof_i_header *const header = (const prof_i_header *)(const void *)view->bytes;
  const uint64_t readable = prof_i_arena_view_readable(view);
  health_count c = {.health = health,
                    .view = view,
                    .end = readable < view->room ? readable : view->room,
                    .cap_bytes = header->cap_bytes,
                    .clear_ticks = __atomic_load_n(&header->clear_ticks, __ATOMIC_RELAXED)};
  const prof_i_head *head;
  c.has_table = prof_i_count_cache_acquire(view->arena, c.cap_bytes);
  for (uint64_t offset = 0; (head = next_data_extent(&c, &offset)) != NULL;)
    count_chunk_extent(&c, head);
  if (c.has_table) prof_i_count_cache_release();
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    health->lost_count[i] += __atomic_load_n(&header->unattributed[i], __ATOMIC_RELAXED);
  health->stray_count = __atomic_load_n(&header->stray_count, __ATOMIC_RELAXED);
  const uint64_t deep_over = __atomic_load_n(&header->deep_over, __ATOMIC_RELAXED);
  for (uint64_t offset = 0; (head = next_data_extent(&c, &offset)) != NULL;)
    if (prof_i_head_kind(head) == PROF_I_EXTENT_SLOT)
      count_slot(&c, (const prof_i_thread_slot *)head);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (uint64_t offset = 0; (head = next_data_extent(&c, &offset)) != NULL;)
    if (prof_i_head_kind(head) == PROF_I_EXTENT_SLOT)
      count_open(&c, (const prof_i_thread_slot *)head);
  c.deep_parts -= deep_over;
  health->open_count += prof_i_deep_sum(c.deep_parts);
  health->resident_bytes = resident_bytes(view, c.end);
  health->is_own_sampled = c.sampled_slots != 0;
  health->own_most_ns = c.wait_ns +
                        prof_i_own_time_most_ns(health->own_ns, c.in_place_ns, c.spread_us2) +
                        few_events_ns_max(&c);
}

/* What is lost comes first: the rest may be cut. Control lock held. */
static void describe_reason(char *to, size_t room) {
  const struct {
    const char *packed;
    int error;
  } errors[] = {{"no room for more scopes: ", prof_i_arena_refusal()},
                {"no helper thread: ", prof_i_helper_error()}};
  prof_i_compose text = prof_i_compose_in(to, room);
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    if (!errors[i].error) continue;
    if (text.bytes) prof_i_compose_text(&text, "; ");
    prof_i_compose_text(&text, errors[i].packed);
    prof_i_compose_text(&text, prof_i_error_text(errors[i].error));
  }
  if (text.bytes && prof_i_the_arena.reason[0]) prof_i_compose_text(&text, "; ");
  prof_i_compose_text(&text, prof_i_the_arena.reason);
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
  describe_reason(health->reason, sizeof health->reason);
}

/* What does not take long. Control lock held. */
static void describe_quick(prof_health *health) {
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
  health->changes_count = prof_i_change_log_count();
}

/* What recording took beside chunk changes, and the bounds; see prof_trace_thread.own_ns. */
static void add_scopes_cost(prof_health *health, const prof_i_header *header) {
  const uint64_t *const lost = health->lost_count;
  const double left_out =
      (double)lost[PROF_LOSS_MUTED] + (double)lost[PROF_LOSS_FULL] + (double)lost[PROF_LOSS_DISK];
  double events = (double)health->recorded_count - left_out;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) events += (double)lost[i];
  const double ps =
      events * (double)header->scope_cost_ps + left_out * (double)header->left_out_cost_ps;
  health->own_ns += (uint64_t)(ps / 1e3);
  health->own_least_ns += (uint64_t)(ps / 1e3);
  health->own_most_ns += (uint64_t)(ps / 1e3);
  const uint64_t time_ns = prof_i_ns_since(header->start_monotonic_ns);
  const uint64_t threads = __atomic_load_n(&header->thread_count, __ATOMIC_RELAXED);
  health->own_ns = prof_i_own_time_bound(health->own_ns, time_ns, threads);
  health->own_least_ns = prof_i_own_time_bound(health->own_least_ns, time_ns, threads);
  health->own_most_ns = prof_i_own_time_bound(health->own_most_ns, time_ns, threads);
}

int prof_health_get(prof_health *health_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!health_out) return prof_i_fail(PROF_E_INVALID, "prof_health: health_out is NULL");
  PROF_I_DISABLE_CANCEL;
  PROF_I_INSIDE;
  prof_health health = {.size = sizeof health};
  prof_i_arena_view view;
  prof_i_thread_reap_exited();
  prof_i_control_lock();
  health.level = prof_i_arena_level();
  health.sites_count = prof_i_site_count();
  const bool is_there = prof_i_arena_view_acquire_locked(&view, false);
  if (is_there) {
    describe_quick(&health);
    prof_i_control_device_warning(health.device_warning, sizeof health.device_warning);
  } else {
    prof_i_control_no_capture_reason(health.reason, sizeof health.reason);
  }
  prof_i_arena_view_unlock(&view);
  if (is_there) {
    count_records(&health, &view);
    add_scopes_cost(&health, (const prof_i_header *)(const void *)view.bytes);
    prof_i_arena_view_release(&view, false, false);
  }
  return prof_i_sized_copy_out(health_out, &health, sizeof health, "prof_health");
}
