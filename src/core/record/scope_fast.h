/* How the short ways of scope.c and scope_argument.c take an open entry and write its payload.
   Static and inline: these functions are parts of the hot path (see scope.c).

   Room in the slot is taken before it is written. So the payload of a handler in between goes
   behind. */
#ifndef PROF_CORE_RECORD_SCOPE_FAST_H
#define PROF_CORE_RECORD_SCOPE_FAST_H

#include <prof/profiler.h>
#include <stdbool.h>

#include "../../format/payload_short.h"
#include "../buffer/arena.h"
#include "../buffer/record.h"
#include "cost_sample.h"
#include "name.h"
#include "open_stack.h"

/* prof_site.values, the shape of a site's arguments: schema | count | strings. */
enum {
  PROF_I_VALUES_COUNT_SHIFT = 32,
  PROF_I_VALUES_STRINGS_SHIFT = 40, /* one bit a value: it is a NUL-terminated text */
  /* of the longest payload */
  PROF_I_VALUES_WORDS = 1 + PROF_I_VALUES_MAX * (1 + PROF_I_SHORT_TEXT_BYTES / 8)
};

/* May the scope take an entry, and `words` of the payload area from `top` on? */
static inline bool prof_i_scope_can_begin_fast(const prof_i_thread *thread, uint64_t state,
                                               uint64_t depth, uint64_t top, uint64_t words) {
  return PROF_I_LIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) ==
                       (uint32_t)(state >> 32)) &&
         PROF_I_LIKELY(depth < PROF_I_OPEN_COUNT) &&
         PROF_I_LIKELY(top + words * 8 <= PROF_I_TEXT_END);
}

static inline uint64_t prof_i_scope_open_with(prof_i_thread *thread, prof_i_open_entry *open,
                                              uint64_t state, uint64_t top, uint64_t words,
                                              uint64_t by_call) {
  __atomic_store_n(&open->packed,
                   (uint64_t)(uint32_t)state << PROF_I_PACKED_SITE_SHIFT | by_call |
                       PROF_I_TYPE_LONG | top << PROF_I_PACKED_OFFSET_SHIFT |
                       words << PROF_I_PACKED_WORDS_SHIFT,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_start_now(thread);
  prof_i_open_entry_set(open, start);
  return start;
}

static inline uint64_t prof_i_scope_long_word(uint64_t words, uint64_t flags, uint64_t schema) {
  return (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 | flags << 24 | schema << 32;
}

/* Copies one text, or two, of known length. two NULL: there is one. */
static inline __attribute__((always_inline)) uint64_t prof_i_scope_begin_copied(
    const prof_site *site, const char *one, size_t one_bytes, const char *two, size_t two_bytes,
    uint64_t flags, uint64_t schema, uint64_t by_call) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(
          !prof_i_scope_can_begin_fast(thread, state, slot->depth, top, PROF_I_VALUES_WORDS)))
    return PROF_I_NOT_SHORT;
  if (PROF_I_UNLIKELY(one_bytes > PROF_I_SHORT_TEXT_BYTES || two_bytes > PROF_I_SHORT_TEXT_BYTES))
    return PROF_I_NOT_SHORT;
  const uint64_t words = 2 + (one_bytes + 7) / 8 + (two ? 1 + (two_bytes + 7) / 8 : 0);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = prof_i_scope_long_word(words, flags, schema);
  uint64_t *const next = prof_i_short_copy(to + 1, one, (uint32_t)one_bytes);
  if (two) prof_i_short_copy(next, two, (uint32_t)two_bytes);
  return prof_i_scope_open_with(thread, open, state, top, words, by_call);
}

/* Opens a scope that adds nothing to its site. */
static inline __attribute__((always_inline)) uint64_t prof_i_scope_open_plain(
    prof_i_thread *thread, prof_i_thread_slot *slot, uint64_t state, uint64_t by_call) {
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  uint64_t site = (uint32_t)state;
  __asm__("" : "+r"(site)); /* gcc would mask it by a constant of ten bytes */
  __atomic_store_n(&open->packed, site << PROF_I_PACKED_SITE_SHIFT | by_call, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_start_now(thread);
  prof_i_open_entry_set(open, start);
  return start;
}

/* Begins a scope with a known name: a plain scope of the name's site. */
static inline __attribute__((always_inline)) uint64_t prof_i_scope_begin_known(
    prof_i_thread *thread, prof_i_thread_slot *slot, const prof_i_name *known, uint64_t by_call) {
  const uint64_t state = __atomic_load_n(&known->state, __ATOMIC_ACQUIRE);
  if (PROF_I_UNLIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) !=
                          (uint32_t)(state >> 32) ||
                      slot->depth >= PROF_I_OPEN_COUNT || !(uint32_t)state))
    return PROF_I_NOT_SHORT;
  return prof_i_scope_open_plain(thread, slot, state, by_call);
}

/* May scopes of this site take the fast path now? Ask before a new text is marked as seen, because
   the slow path would take the mark for one of an earlier scope. */
static inline bool prof_i_scope_is_fast(const prof_i_thread *thread, const prof_i_thread_slot *slot,
                                        uint64_t state) {
  return PROF_I_LIKELY(slot && slot->depth < PROF_I_OPEN_COUNT && (uint32_t)state &&
                       __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) ==
                           (uint32_t)(state >> 32));
}

#endif
