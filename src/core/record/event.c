/* Everything recorded that is no scope: instants, counters, flows, steps, names. Slower than a
   scope, and past the gate each time. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <string.h>

#include "../../base/error.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/meta.h"
#include "../buffer/record.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "name.h"
#include "open_stack.h"
#include "payload.h"
#include "site.h"

enum { NAME_WORDS = 1 + PROF_I_NAME_BYTES / 8 };

/* Writes a long record at this moment; counts the loss. */
static void write_event(prof_i_thread *thread, uint32_t site, const uint64_t *more,
                        uint64_t words) {
  const uint64_t now = prof_i_clock_ticks() << 4;
  const int loss = prof_i_record_write(thread, now, now, (uint64_t)site << 4 | 1, more, words);
  if (loss >= 0) prof_i_thread_lose(thread, loss, 1);
}

/* The thread, past the gate and recording; NULL: leave at once. Every non-NULL return needs
   leave(). */
static prof_i_thread *event_enter(void) {
  if (!prof_i_process_is_own()) return NULL;
  prof_i_session_ensure();
  if (!prof_i_arena_guard_enter()) {
    prof_i_thread_lose_unattributed(
        prof_i_session_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE, 1);
    return NULL;
  }
  const bool is_recording = prof_i_session_is_recording();
  prof_i_thread *const thread = is_recording ? prof_i_thread_attach() : NULL;
  if (!thread) {
    prof_i_thread_lose(prof_i_this_thread, is_recording ? PROF_LOSS_NO_THREAD : PROF_LOSS_LATE, 1);
    prof_i_arena_guard_exit();
  }
  return thread;
}

/* Is the site muted? Then it is counted. */
static bool site_is_muted(prof_i_thread *thread, const prof_site *site, prof_i_name_route way) {
  if (!prof_i_site_is_muted(site) && way != PROF_I_NAME_MUTED) return false;
  prof_i_thread_lose(thread, PROF_LOSS_MUTED, 1);
  return true;
}

void prof_i_instant_1(prof_site *site, const prof_details *details) {
  const int saved = errno;
  prof_i_thread *const thread = event_enter();
  if (thread) {
    prof_i_thread_slot *const slot = thread->slot;
    const uint32_t number =
        prof_i_site_look_up(site, details->flags & PROF_I_NAME_LITERAL ? details->name : NULL,
                            details->flags & PROF_I_CATEGORY_LITERAL ? details->category : NULL);
    uint32_t shown = number;
    const prof_i_name_route way =
        number ? prof_i_name_look_up(site, number, details, &shown) : PROF_I_NAME_COPY;
    if (site_is_muted(thread, site, way)) {
      prof_i_arena_guard_exit();
      errno = saved;
      return;
    }
    prof_details named = *details;
    if (!number)
      named.flags &= ~(
          uint32_t)(PROF_I_NAME_LITERAL |
                    PROF_I_CATEGORY_LITERAL); /* there is no site to keep the name: it is copied */
    if (way == PROF_I_NAME_SITE)
      named.flags |= PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
    else
      shown = number;
    details = &named;
    const prof_i_kind kind =
        details->flags & PROF_I_NO_DURATION ? PROF_I_KIND_SCOPE : PROF_I_KIND_INSTANT;
    prof_i_payload_area_make_room(thread);
    const prof_i_hold hold = prof_i_thread_hold(thread);
    const bool was_busy = thread->is_text_busy;
    thread->is_text_busy = true;
    PROF_I_SIGNAL_FENCE();
    const uint64_t top = slot->payload_top;
    const uint64_t room = top < PROF_I_TEXT_END ? (PROF_I_TEXT_END - top) / 8 : 0;
    prof_i_payload payload;
    prof_i_payload_measure(
        &payload, details,
        (uint32_t)(room < PROF_I_PAYLOAD_BYTES_MAX / 8 ? room : PROF_I_PAYLOAD_BYTES_MAX / 8));
    if (payload.words > room) {
      prof_i_thread_lose(thread, PROF_LOSS_LOST_STATE, 1);
    } else {
      uint64_t *const words = (uint64_t *)((char *)slot + top);
      slot->payload_top = top + payload.words * 8ull;
      PROF_I_SIGNAL_FENCE();
      const uint32_t schema =
          payload.arg_count ? prof_i_schema_number_inside(number, &details->args, payload.arg_count)
                            : 0;
      if (payload.arg_count && !schema) prof_i_payload_leave_args(&payload);
      if (payload.flags & PROF_I_FLAG_CUT) prof_i_claim(&slot->cut_count, 1);
      prof_i_payload_pack(&payload, details, kind, schema, words);
      write_event(thread, shown, words, payload.words);
      slot->payload_top = top;
    }
    thread->is_text_busy = was_busy;
    prof_i_thread_unhold(thread, hold);
    prof_i_arena_guard_exit();
  }
  errno = saved;
}

/* Writes a short record if no device is given. */
static void write_counter(prof_site *site, const char *name, double value, uint64_t device) {
  const int saved = errno;
  prof_i_thread *const thread = event_enter();
  if (thread) {
    const uint64_t flags = device ? PROF_I_FLAG_DEVICE : 0, slots = device ? 3 : 2;
    uint64_t words[4] = {slots | (uint64_t)PROF_I_KIND_COUNTER << 16 | flags << 24, 0, device, 0};
    memcpy(&words[1], &value, sizeof value);
    const uint32_t number = prof_i_site_look_up(site, name, "counter");
    if (!site_is_muted(thread, site, PROF_I_NAME_COPY))
      write_event(thread, number, words, 2 * slots - 2);
    prof_i_arena_guard_exit();
  }
  errno = saved;
}

void prof_i_counter_1(prof_site *site, const char *name, double value) {
  write_counter(site, name, value, 0);
}

void prof_i_counter_of(prof_site *site, const char *name, double value, prof_device device) {
  write_counter(site, name, value, (uint32_t)device.type | (uint64_t)(uint32_t)device.index << 32);
}

static void write_flow(uint64_t id, const char *name, uint64_t is_end) {
  const int saved = errno;
  prof_i_thread *const thread = prof_i_arena_level() ? event_enter() : NULL;
  if (thread) {
    uint64_t words[3 + NAME_WORDS];
    words[1] = id;
    words[2] = is_end;
    const size_t bytes = name ? strnlen(name, PROF_I_NAME_BYTES) : 0;
    const size_t count = 3 + prof_i_put_text(words + 3, name ? name : "", bytes);
    words[0] = (2 + count + 1) / 2 | (uint64_t)PROF_I_KIND_FLOW << 16;
    write_event(thread, 0, words, count);
    prof_i_arena_guard_exit();
  }
  errno = saved;
}

void prof_flow_begin(uint64_t id, const char *name) { write_flow(id, name, 0); }
void prof_flow_end(uint64_t id, const char *name) { write_flow(id, name, 1); }

void prof_step(void) {
  const int saved = errno;
  prof_i_thread *const thread = prof_i_arena_level() ? event_enter() : NULL;
  if (thread) {
    const uint64_t step =
        __atomic_fetch_add(&prof_i_arena_header()->step_count, 1, __ATOMIC_RELAXED);
    const uint64_t words[2] = {2 | (uint64_t)PROF_I_KIND_STEP << 16, step};
    write_event(thread, 0, words, 2);
    prof_i_arena_guard_exit();
  }
  errno = saved;
}

/* ---- names ---- */

int prof_thread_set_name(const char *name) {
  if (!name) return prof_i_fail(PROF_E_INVALID, "prof_thread_set_name: name is NULL");
  prof_i_thread_store_own_name(name);
  return PROF_OK;
}
