/* The slot's payload area: names and arguments of a thread's open scopes, in the order in which
   they began. Scopes that do not nest leave holes when they end. */
#include <prof/profiler.h>

#include "open_stack.h"
#include "payload.h"
#include "site.h"

enum { HOLES_WORTH_CLOSING = 8192, DEEP_WORTH_LOOKING = 1024 };

/* A thread that takes a scope has copied its payload before. */
static bool open_has_payload(const prof_i_open_entry *open) {
  const uint64_t ticks = prof_i_open_entry_ticks(open);
  return prof_i_open_entry_is_open(ticks) && !(ticks & PROF_I_OPEN_TAKEN) &&
         open->packed & PROF_I_TYPE_LONG;
}

/* Of two scopes, or of one and none, the one whose text comes first behind that offset. */
static prof_i_open_entry *nearer_payload(prof_i_open_entry *next, prof_i_open_entry *open,
                                         uint64_t behind) {
  if (!open_has_payload(open) || prof_i_packed_payload_offset(open->packed) <= behind) return next;
  return !next || prof_i_packed_payload_offset(open->packed) <
                      prof_i_packed_payload_offset(next->packed)
             ? open
             : next;
}

/* The scope whose text comes next behind that offset, among the shown ones and the deep ones: from
   *deep on, while their offsets are in order, else of all. NULL: there is no more. */
static prof_i_open_entry *next_payload(prof_i_thread *thread, uint64_t behind, uint64_t *deep) {
  prof_i_thread_slot *const slot = thread->slot;
  prof_i_open_entry *next = NULL;
  for (uint64_t i = 1; i <= slot->depth; i++) {
    prof_i_open_entry *const open = &slot->open[i];
    next = nearer_payload(next, open, behind);
  }
  if (thread->is_slow) {
    for (uint64_t i = 0; i < slot->deep; i++) next = nearer_payload(next, &thread->deep[i], behind);
    return next;
  }
  while (*deep < slot->deep && (!open_has_payload(&thread->deep[*deep]) ||
                                prof_i_packed_payload_offset(thread->deep[*deep].packed) <= behind))
    ++*deep;
  return *deep < slot->deep ? nearer_payload(next, &thread->deep[*deep], behind) : next;
}

/* Is some other begin or end of this thread under way, which we, a handler, have interrupted? An
   entry whose ticks are 0 is being made, or cleared. */
static bool has_interrupted_begin(const prof_i_thread *thread, const prof_i_open_entry *new_entry) {
  const prof_i_thread_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if (&slot->open[i] != new_entry && prof_i_open_entry_ticks(&slot->open[i]) == 0) return true;
  for (uint64_t i = 0; i < slot->deep; i++)
    if (&thread->deep[i] != new_entry && prof_i_open_entry_ticks(&thread->deep[i]) == 0)
      return true;
  return thread->is_text_busy;
}

/* Moves it down to that offset. Meanwhile the entry shows no payload. A reader, or another thread
   that ends the scope, sees that it has changed. A kill in between leaves the scope without its
   details. */
static void move_payload(prof_i_thread_slot *slot, prof_i_open_entry *open, uint64_t to) {
  const uint64_t packed = open->packed, from = prof_i_packed_payload_offset(packed),
                 words = packed >> PROF_I_PACKED_WORDS_SHIFT;
  const uint64_t site =
      packed & ((1u << PROF_I_PACKED_OFFSET_SHIFT) - 1) & ~(uint64_t)PROF_I_TYPE_LONG;
  if (from == to) return;
  __atomic_store_n(&open->packed, site, __ATOMIC_SEQ_CST);
  for (uint64_t i = 0; i < words; i++) {
    uint64_t *const word = (uint64_t *)((char *)slot + to) + i;
    __atomic_store_n(word, ((const uint64_t *)((const char *)slot + from))[i], __ATOMIC_RELAXED);
  }
  __atomic_store_n(&open->packed,
                   site | PROF_I_TYPE_LONG | to << PROF_I_PACKED_OFFSET_SHIFT |
                       words << PROF_I_PACKED_WORDS_SHIFT,
                   __ATOMIC_RELEASE);
}

void prof_i_payload_area_leave_hole(prof_i_thread *thread, uint64_t packed) {
  if (packed & PROF_I_TYPE_LONG)
    __atomic_fetch_add(&thread->hole_bytes, (packed >> PROF_I_PACKED_WORDS_SHIFT) * 8,
                       __ATOMIC_RELAXED);
}

/* Looked for only when scopes have left so much: a text area that is full of open scopes' texts
   costs the scopes inside of them nothing. */
static void close_holes(prof_i_thread *thread, const prof_i_open_entry *new_entry) {
  prof_i_thread_slot *const slot = thread->slot;
  if (thread->is_slow && slot->deep > DEEP_WORTH_LOOKING) return; /* each text would ask them all */
  if (__atomic_load_n(&thread->hole_bytes, __ATOMIC_RELAXED) < HOLES_WORTH_CLOSING) return;
  const uint64_t top = slot->payload_top;
  uint64_t used = 0, behind = 0, deep = 0;
  for (const prof_i_open_entry *open; (open = next_payload(thread, behind, &deep)) != NULL;
       behind = prof_i_packed_payload_offset(open->packed))
    used += (open->packed >> PROF_I_PACKED_WORDS_SHIFT) * 8;
  if (has_interrupted_begin(thread, new_entry)) return;
  __atomic_store_n(&thread->hole_bytes, 0, __ATOMIC_RELAXED);
  if (top < PROF_I_TEXT_OFFSET + used + HOLES_WORTH_CLOSING) {
    __atomic_fetch_add(&thread->hole_bytes, top - PROF_I_TEXT_OFFSET - used, __ATOMIC_RELAXED);
    return;
  }
  /* a handler's payload goes behind the present ones meanwhile, or is cut */
  thread->is_text_busy = true;
  PROF_I_SIGNAL_FENCE();
  uint64_t to = PROF_I_TEXT_OFFSET;
  behind = deep = 0;
  for (prof_i_open_entry *open; (open = next_payload(thread, behind, &deep)) != NULL;) {
    const uint64_t words = open->packed >> PROF_I_PACKED_WORDS_SHIFT;
    behind = prof_i_packed_payload_offset(open->packed);
    move_payload(slot, open, to);
    to += words * 8;
  }
  if (slot->payload_top == top) /* else a handler has left something open */
    __atomic_store_n(&slot->payload_top, to, __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  thread->is_text_busy = false;
}

static void keep_payload_up_to(uint64_t *end, const prof_i_open_entry *open) {
  const uint64_t to = open_has_payload(open) ? prof_i_packed_payload_offset(open->packed) +
                                                   (open->packed >> PROF_I_PACKED_WORDS_SHIFT) * 8
                                             : 0;
  if (to > *end) *end = to;
}

void prof_i_payload_area_trim(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  uint64_t end = PROF_I_TEXT_OFFSET;
  if (slot->payload_top == end || slot->deep || has_interrupted_begin(thread, NULL)) return;
  for (uint64_t i = 1; i <= slot->depth; i++) keep_payload_up_to(&end, &slot->open[i]);
  if (end < slot->payload_top) __atomic_store_n(&slot->payload_top, end, __ATOMIC_RELEASE);
}

void prof_i_payload_area_make_room(prof_i_thread *thread) {
  if (PROF_I_TEXT_END - thread->slot->payload_top >= PROF_I_PAYLOAD_BYTES_MAX) return;
  prof_i_payload_area_trim(thread);
  close_holes(thread, NULL);
}

/* Room in the slot's text area: taken before it is written, so that a handler's goes behind. */
uint64_t prof_i_payload_area_put(prof_i_thread *thread, prof_i_thread_slot *slot,
                                 const prof_i_open_entry *new_entry, const prof_details *details,
                                 uint32_t call_site, uint32_t number) {
  prof_i_payload payload;
  const uint64_t by_call = prof_i_details_by_call(details);
  if (PROF_I_UNLIKELY(PROF_I_TEXT_END - slot->payload_top < PROF_I_PAYLOAD_BYTES_MAX))
    close_holes(thread, new_entry);
  const uint64_t top = slot->payload_top;
  prof_i_payload_measure(
      &payload, details,
      (uint32_t)(top < PROF_I_TEXT_END ? (PROF_I_TEXT_END - top) / 8 < PROF_I_PAYLOAD_BYTES_MAX / 8
                                             ? (PROF_I_TEXT_END - top) / 8
                                             : PROF_I_PAYLOAD_BYTES_MAX / 8
                                       : 0));
  if (top + payload.words * 8ull > PROF_I_TEXT_END) { /* not even a word: the site must do */
    prof_i_claim(&slot->cut_count, 1);
    return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | by_call;
  }
  __atomic_store_n(&slot->payload_top, top + payload.words * 8ull, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint32_t schema =
      payload.arg_count ? prof_i_schema_number(call_site, &details->args, payload.arg_count) : 0;
  /* their room stays taken until the scope ends */
  if (payload.arg_count && !schema) prof_i_payload_leave_args(&payload);
  if (payload.flags & PROF_I_FLAG_CUT) prof_i_claim(&slot->cut_count, 1);
  prof_i_payload_pack(&payload, details,
                      details->flags & PROF_I_ASYNC ? PROF_I_KIND_ASYNC : PROF_I_KIND_SCOPE, schema,
                      (uint64_t *)((char *)slot + top));
  return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | by_call | PROF_I_TYPE_LONG |
         top << PROF_I_PACKED_OFFSET_SHIFT | (uint64_t)payload.words << PROF_I_PACKED_WORDS_SHIFT;
}
