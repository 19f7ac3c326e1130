/* Scopes with arguments, begun by the shortest way: values of a site whose schema is known, or one
   text. PROF_I_NOT_SHORT: the caller begins the scope with prof_i_begin_details_1(). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <string.h>

#include "scope_fast.h"
#include "site.h"

/* Some values are texts. Their lengths are measured first, so that the room is taken before it is
   written. */
static __attribute__((noinline)) uint64_t begin_texts(prof_site *site, uint64_t a, uint64_t b,
                                                      uint64_t c, uint64_t d) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t values[] = {a, b, c, d}, shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED), top = slot->payload_top;
  const uint64_t count = shape >> PROF_I_VALUES_COUNT_SHIFT & 0xff,
                 strings = shape >> PROF_I_VALUES_STRINGS_SHIFT;
  /* a handler may have recorded since */
  if (PROF_I_UNLIKELY(
          !prof_i_scope_can_begin_fast(thread, state, slot->depth, top, PROF_I_VALUES_WORDS)))
    return PROF_I_NOT_SHORT;
  size_t bytes[PROF_I_VALUES_MAX];
  uint64_t words = 1 + count;
  for (uint64_t i = 0; i < count; i++) {
    if (!(strings >> i & 1)) continue;
    if (!values[i] || (bytes[i] = strnlen((const char *)(uintptr_t)values[i],
                                          PROF_I_SHORT_TEXT_BYTES + 1)) > PROF_I_SHORT_TEXT_BYTES)
      return PROF_I_NOT_SHORT;
    words += (bytes[i] + 7) / 8;
  }
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *to = (uint64_t *)((char *)slot + top);
  *to++ = prof_i_scope_long_word(words, 0, (uint32_t)shape);
  for (uint64_t i = 0; i < count; i++) {
    if (strings >> i & 1)
      to = prof_i_short_copy(to, (const char *)(uintptr_t)values[i], (uint32_t)bytes[i]);
    else
      *to++ = values[i];
  }
  return prof_i_scope_open_with(thread, open, state, top, words, 0);
}

uint64_t prof_i_begin_values_1(prof_site *site, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED),
                 shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(
          !prof_i_scope_can_begin_fast(thread, state, slot->depth, top, PROF_I_VALUES_WORDS) ||
          !shape))
    return PROF_I_NOT_SHORT;
  if (shape >> PROF_I_VALUES_STRINGS_SHIFT) return begin_texts(site, a, b, c, d);
  const uint64_t words = 1 + (shape >> PROF_I_VALUES_COUNT_SHIFT);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = prof_i_scope_long_word(words, 0, (uint32_t)shape);
  to[1] = a;
  /* no loop: gcc would make string instructions of it, which take ten times as long */
  switch (words) {
    case 5:
      to[4] = d; /* fall through */
    case 4:
      to[3] = c; /* fall through */
    case 3:
      to[2] = b; /* fall through */
    default:
      break;
  }
  return prof_i_scope_open_with(thread, open, state, top, words, 0);
}

/* Writes a text behind the first four bytes of word 2, which are `head`: see PROF_I_KIND_TEXT.
   Nothing is read beyond the text's end. */
static inline __attribute__((always_inline)) void put_short_text(uint64_t *to, uint32_t head,
                                                                 const char *text, uint32_t bytes) {
  if (PROF_I_UNLIKELY(bytes < 8)) {
    const uint64_t word = bytes ? prof_i_text_tail(text, bytes, bytes) : 0;
    to[0] = head | word << 32;
    if (bytes > 4) to[1] = word >> 32;
    return;
  }
  uint32_t first, left = bytes - 4;
  memcpy(&first, text, 4);
  *to++ = head | (uint64_t)first << 32;
  for (text += 4; left >= 8; left -= 8, text += 8) memcpy(to++, text, 8);
  if (left) *to = prof_i_text_tail(text, left, bytes);
}

/* The only argument is a short text of known length. */
static inline __attribute__((always_inline)) uint64_t begin_short_text(const prof_site *site,
                                                                       const char *text,
                                                                       size_t bytes,
                                                                       uint64_t schema) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(
          !prof_i_scope_can_begin_fast(thread, state, slot->depth, top, PROF_I_VALUES_WORDS)))
    return PROF_I_NOT_SHORT;
  const uint64_t words = prof_i_text_record_words(bytes);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint64_t head =
      bytes | schema << PROF_I_TEXT_SCHEMA_SHIFT | (uint64_t)PROF_I_KIND_TEXT << 16;
  put_short_text((uint64_t *)((char *)slot + top), (uint32_t)head, text, (uint32_t)bytes);
  return prof_i_scope_open_with(thread, open, state, top, words, 0);
}

/* Writes a long record. Not inlined, because it is rare. */
static __attribute__((noinline)) uint64_t begin_long_argument(const prof_site *site,
                                                              const char *text, size_t bytes,
                                                              uint64_t schema) {
  return prof_i_scope_begin_copied(site, text, bytes, NULL, 0, 0, schema, 0);
}

/* The text is copied: it is not looked up, or not in the table. */
static inline __attribute__((always_inline)) uint64_t begin_new_argument(const prof_site *site,
                                                                         const char *text,
                                                                         size_t bytes,
                                                                         uint64_t schema) {
  if (PROF_I_LIKELY(bytes <= PROF_I_SHORT_TEXT_BYTES && schema <= PROF_I_TEXT_SCHEMA_MAX))
    return begin_short_text(site, text, bytes, schema);
  return begin_long_argument(site, text, bytes, schema);
}

/* Looks up the argument's text. A text that is new, or that the table cannot hold, is copied. */
static __attribute__((noinline)) uint64_t look_up_argument(const prof_site *site, const char *text,
                                                           size_t bytes, uint64_t of) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!prof_i_scope_is_fast(thread, slot, state)) return PROF_I_NOT_SHORT;
  prof_i_name_key key = {text, "", (uint32_t)bytes, 0, of, 0};
  prof_i_name_hash(&key);
  const prof_i_name *const known = prof_i_name_find(&key);
  const bool comes_again = !known && prof_i_name_is_repeated(key.hash);
  prof_i_name_count_look_up(thread, of, !known && !comes_again);
  if (PROF_I_LIKELY(known != NULL)) {
    const uint64_t start = prof_i_scope_begin_known(thread, slot, known, 0);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) {
      *prof_i_name_recent(thread, text) = known; /* attached: not prof_i_no_thread */
      return start;
    }
    prof_i_name_look_up_argument(&key);
  } else if (comes_again) {
    prof_i_name_look_up_argument(&key); /* enters it: its next scope is a plain one */
  }
  return begin_new_argument(site, text, bytes, of >> 32);
}

/* The text is not among the thread's recent ones. */
static __attribute__((noinline)) uint64_t begin_argument(const prof_site *site, const char *text,
                                                         uint32_t text_bytes, uint64_t of) {
  const size_t bytes =
      text_bytes != PROF_NUL_TERMINATED ? text_bytes : strnlen(text, PROF_I_SHORT_TEXT_BYTES + 1);
  if (PROF_I_LIKELY(bytes <= PROF_I_NAME_TEXT_BYTES) &&
      PROF_I_UNLIKELY(prof_i_name_is_worth_look_up(prof_i_this_thread, of)))
    return look_up_argument(site, text, bytes, of);
  return begin_new_argument(site, text, bytes, of >> 32);
}

/* Begins with a recent text. Not inlined, so that other texts save no registers twice. */
static __attribute__((noinline)) uint64_t begin_recent_argument(const prof_site *site,
                                                                const char *text,
                                                                uint32_t text_bytes, uint64_t of,
                                                                const prof_i_name *recent) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (PROF_I_LIKELY(prof_i_name_is_given((const char *)recent->words, recent->name_bytes, text,
                                         text_bytes))) {
    const uint64_t start = prof_i_scope_begin_known(thread, thread->fast, recent, 0);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) return start;
  }
  return begin_argument(site, text, text_bytes, of);
}

uint64_t prof_i_begin_text_1(prof_site *site, const char *text, uint32_t text_bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t schema = (uint32_t)__atomic_load_n(&site->values, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(!thread->fast || !schema || !text)) return PROF_I_NOT_SHORT;
  const prof_i_name *const recent = *prof_i_name_recent(thread, text);
  const uint64_t of = schema << 32 | (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (PROF_I_LIKELY(recent && recent->of == of))
    return begin_recent_argument(site, text, text_bytes, of, recent);
  return begin_argument(site, text, text_bytes, of);
}
