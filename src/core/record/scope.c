/* Scopes: begin and end, the fast path. What is unusual about them is scope_slow.c's and
   scope_end_slow.c's.

   Budget of prof_i_begin_1 and prof_i_end_1: 1.10x of two counter reads and one 32-byte store
   (bench/scope.c). No lock, no call into the kernel, no allocation, no errno. Order is what makes
   it safe against a handler on the same thread and against death at any instruction:
     begin: take the next open entry by one instruction (depth), fill it, store its ticks last. A
            handler in between takes the entry behind, and puts back no more than it took; but
            before we take ours it may take off entries whose scopes are over.
     end:   claim room by one instruction, write, store the record's first word last; only then
            clear the entry. A reader that finds both the record and the entry shows the record.
   The entry is also the check: it holds this scope's start only if the thread, the session and the
   process are still those of its begin. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <string.h>

#include "../../base/fault.h"
#include "../../format/payload_short.h"
#include "../buffer/arena.h"
#include "../buffer/record.h"
#include "cost_sample.h"
#include "open_stack.h"
#include "scope.h"

/* ---- begin ---- */

static inline __attribute__((always_inline)) uint64_t begin_plain(prof_i_thread *thread,
                                                                  prof_site *site, const char *name,
                                                                  const char *category,
                                                                  uint32_t by_call) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(
          !slot || __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) ||
          slot->depth >= PROF_I_OPEN_COUNT)) {
    const prof_details details = {
        name,
        category,
        PROF_NUL_TERMINATED,
        PROF_NUL_TERMINATED,
        PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | (by_call ? PROF_I_BY_CALL : 0),
        PROF_HOST,
        0,
        0,
        PROF_NO_ARGS};
    return prof_i_scope_begin_slow(site, &details);
  }
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&open->packed, (uint64_t)(uint32_t)state << PROF_I_PACKED_SITE_SHIFT | by_call,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_begin_ticks(thread, prof_i_counter()) << 4;
  prof_i_open_entry_set(open, start);
  return start;
}

uint64_t prof_i_begin_1(prof_site *site, const char *name, const char *category) {
  return begin_plain(prof_i_this_thread, site, name, category, 0);
}

/* own: which of its texts are a site's. */
static PROF_I_COLD uint64_t put_payload(prof_i_thread *thread, prof_i_thread_slot *slot,
                                        const prof_i_open_entry *open, const prof_details *details,
                                        uint32_t own, uint32_t call_site, uint32_t number) {
  prof_details named = *details;
  named.flags |= own;
  return prof_i_payload_area_put(thread, slot, open, &named, call_site, number);
}

/* A short payload's room is taken before it is written, so that a handler's goes behind, and what
   is too much is given back. */
static inline __attribute__((always_inline)) uint64_t put_short_payload(
    prof_i_thread *thread, prof_i_thread_slot *slot, const prof_i_open_entry *open,
    const prof_details *details, uint32_t own, uint32_t call_site, uint32_t number, bool is_twin) {
  const uint64_t top = slot->payload_top, taken = top + PROF_I_SHORT_WORDS * 8;
  if (PROF_I_UNLIKELY(taken > PROF_I_TEXT_END))
    return put_payload(thread, slot, open, details, own, call_site, number);
  __atomic_store_n(&slot->payload_top, taken, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint64_t words =
      prof_i_short_pack((uint64_t *)((char *)slot + top), details, own, call_site);
  PROF_I_SIGNAL_FENCE();
  if (PROF_I_LIKELY(slot->payload_top == taken)) /* else a handler has left something open */
    __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(words == 0)) {
    if (is_twin) return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT;
    return put_payload(thread, slot, open, details, own, call_site, number);
  }
  return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | prof_i_details_by_call(details) |
         PROF_I_TYPE_LONG | top << PROF_I_PACKED_OFFSET_SHIFT | words << PROF_I_PACKED_WORDS_SHIFT;
}

/* The state of a name that is known; NAME_COPIED or, where the slow path must see it, NAME_ASKED.
   Of its own: most scopes have none. */
enum { NAME_COPIED = 0, NAME_ASKED = 1 };
static inline __attribute__((always_inline)) uint64_t look_up_name(prof_i_thread *thread,
                                                                   const prof_details *details,
                                                                   uint32_t site, bool is_twin) {
  const prof_i_name **const recent = prof_i_name_recent(thread, details->name);
  if (PROF_I_LIKELY(*recent && prof_i_name_is_of(*recent, details, site)))
    return __atomic_load_n(&(*recent)->state, __ATOMIC_ACQUIRE);
  prof_i_name_key key;
  if (!prof_i_name_key_of(&key, details, site))
    return __atomic_load_n(&prof_i_the_names.watch, __ATOMIC_RELAXED) ? NAME_ASKED : NAME_COPIED;
  if (is_twin ? *prof_i_name_miss_count(thread, key.of) >= PROF_I_NAME_MISSES_MAX
              : !prof_i_name_is_worth_look_up(thread, key.of))
    return NAME_COPIED;
  const prof_i_name *const name = prof_i_name_find(&key);
  const bool is_new = !name && (is_twin || prof_i_name_is_new(key.hash));
  if (!is_twin) prof_i_name_count_look_up(thread, key.of, is_new);
  if (!name) return is_new ? NAME_COPIED : NAME_ASKED;
  *recent = name;
  return __atomic_load_n(&name->state, __ATOMIC_ACQUIRE);
}
static __attribute__((noinline)) uint64_t state_of_name(prof_i_thread *thread,
                                                        const prof_details *details,
                                                        uint32_t site) {
  return look_up_name(thread, details, site, false);
}

/* is_twin: prof_i_scope_twin_begin(). */
static inline __attribute__((always_inline)) uint64_t begin_details(prof_i_thread *thread,
                                                                    prof_site *site,
                                                                    const prof_details *details,
                                                                    bool is_twin) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  const uint32_t both = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
                 epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot || epoch != (uint32_t)(state >> 32) ||
                      slot->depth >= PROF_I_OPEN_COUNT))
    return prof_i_scope_begin_slow(site, details);
  uint32_t own = details->flags & both, number = (uint32_t)state;
  if (own != both) {
    const uint64_t named = is_twin ? look_up_name(thread, details, number, true)
                                   : state_of_name(thread, details, number);
    if (named != NAME_COPIED) {
      const bool can_begin_fast = PROF_I_LIKELY((uint32_t)(named >> 32) == epoch);
      if (!can_begin_fast && !is_twin) return prof_i_scope_begin_slow_named(site, details, named);
      if (PROF_I_LIKELY((uint32_t)named != 0) && can_begin_fast) {
        own = both;
        number = (uint32_t)named;
      }
    }
  }
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  const uint64_t packed =
      own == both && prof_i_details_are_bare(details)
          ? (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | prof_i_details_by_call(details)
          : put_short_payload(thread, slot, open, details, own, (uint32_t)state, number, is_twin);
  __atomic_store_n(&open->packed, packed, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_begin_ticks(thread, prof_i_counter()) << 4;
  prof_i_open_entry_set(open, start);
  return start;
}

/* ---- begin, by the shortest way ---- */

enum {
  VALUES_COUNT_SHIFT = 32,
  VALUES_STRINGS_SHIFT = 40, /* one bit a value: it is a NUL-terminated text */
  VALUES_WORDS = 1 + PROF_I_VALUES_MAX * (1 + PROF_I_SHORT_TEXT_BYTES / 8)
};

/* What prof_i_begin_values_1() must know of a site: schema | count | strings. The keys are the call
   site's own, so they stay what they are as long as the site does. */
static PROF_I_COLD void learn_values(prof_site *site, const prof_args *args) {
  const uint32_t number = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (args->count == 0 || args->count > PROF_I_VALUES_MAX || !args->items) return;
  uint64_t strings = 0;
  for (uint32_t i = 0; i < args->count; i++) {
    if (args->items[i].type == PROF_ARG_TENSOR) return;
    strings |= (uint64_t)(args->items[i].type == PROF_ARG_STRING) << i;
  }
  const uint64_t schema = prof_i_schema_number(number, args, args->count);
  if (schema)
    __atomic_store_n(
        &site->values,
        schema | (uint64_t)args->count << VALUES_COUNT_SHIFT | strings << VALUES_STRINGS_SHIFT,
        __ATOMIC_RELAXED);
}

static inline void learn_site_values(prof_site *site, const prof_details *details) {
  if (PROF_I_UNLIKELY(details->args.kind & PROF_I_KEYS_LITERAL) &&
      !__atomic_load_n(&site->values, __ATOMIC_RELAXED))
    learn_values(site, &details->args);
}

uint64_t prof_i_begin_details_1(prof_site *site, const prof_details *details) {
  const uint64_t start = begin_details(prof_i_this_thread, site, details, false);
  learn_site_values(site, details);
  return details->flags & PROF_I_BY_CALL ? prof_i_handle_with_tag(start) : start;
}

/* Ready to take an entry and `words` of text from top on? */
static inline bool can_begin_fast(const prof_i_thread *thread, uint64_t state, uint64_t depth,
                                  uint64_t top, uint64_t words) {
  return PROF_I_LIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) ==
                       (uint32_t)(state >> 32)) &&
         PROF_I_LIKELY(depth < PROF_I_OPEN_COUNT) &&
         PROF_I_LIKELY(top + words * 8 <= PROF_I_TEXT_END);
}

static inline uint64_t open_entry_with(prof_i_thread *thread, prof_i_open_entry *open,
                                       uint64_t state, uint64_t top, uint64_t words,
                                       uint64_t by_call) {
  __atomic_store_n(&open->packed,
                   (uint64_t)(uint32_t)state << PROF_I_PACKED_SITE_SHIFT | by_call |
                       PROF_I_TYPE_LONG | top << PROF_I_PACKED_OFFSET_SHIFT |
                       words << PROF_I_PACKED_WORDS_SHIFT,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_begin_ticks(thread, prof_i_counter()) << 4;
  prof_i_open_entry_set(open, start);
  return start;
}

static inline uint64_t long_record_word(uint64_t words, uint64_t flags, uint64_t schema) {
  return (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 | flags << 24 | schema << 32;
}

/* One text, or two; of known length, so that room is taken before they are written, and a handler's
   go behind. */
static inline __attribute__((always_inline)) uint64_t begin_copied(
    const prof_site *site, const char *one, size_t one_bytes, const char *two, size_t two_bytes,
    uint64_t flags, uint64_t schema, uint64_t by_call) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(!can_begin_fast(thread, state, slot->depth, top, VALUES_WORDS)))
    return PROF_I_NOT_SHORT;
  if (PROF_I_UNLIKELY(one_bytes > PROF_I_SHORT_TEXT_BYTES || two_bytes > PROF_I_SHORT_TEXT_BYTES))
    return PROF_I_NOT_SHORT;
  const uint64_t words = 2 + (one_bytes + 7) / 8 + (two ? 1 + (two_bytes + 7) / 8 : 0);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = long_record_word(words, flags, schema);
  uint64_t *const next = prof_i_short_copy(to + 1, one, (uint32_t)one_bytes);
  if (two) prof_i_short_copy(next, two, (uint32_t)two_bytes);
  return open_entry_with(thread, open, state, top, words, by_call);
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

/* The only argument, a short text of known length. */
static inline __attribute__((always_inline)) uint64_t begin_short_text(const prof_site *site,
                                                                       const char *text,
                                                                       size_t bytes,
                                                                       uint64_t schema) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(!can_begin_fast(thread, state, slot->depth, top, VALUES_WORDS)))
    return PROF_I_NOT_SHORT;
  const uint64_t words = prof_i_text_record_words(bytes);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint64_t head =
      bytes | schema << PROF_I_TEXT_SCHEMA_SHIFT | (uint64_t)PROF_I_KIND_TEXT << 16;
  put_short_text((uint64_t *)((char *)slot + top), (uint32_t)head, text, (uint32_t)bytes);
  return open_entry_with(thread, open, state, top, words, 0);
}

/* Some of the values are texts. Measured first, so that their room is taken before they are
   written, and a handler's go behind. */
static __attribute__((noinline)) uint64_t begin_texts(prof_site *site, uint64_t a, uint64_t b,
                                                      uint64_t c, uint64_t d) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t values[] = {a, b, c, d}, shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED), top = slot->payload_top;
  const uint64_t count = shape >> VALUES_COUNT_SHIFT & 0xff,
                 strings = shape >> VALUES_STRINGS_SHIFT;
  /* a handler may have come since */
  if (PROF_I_UNLIKELY(!can_begin_fast(thread, state, slot->depth, top, VALUES_WORDS)))
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
  *to++ = long_record_word(words, 0, (uint32_t)shape);
  for (uint64_t i = 0; i < count; i++) {
    if (strings >> i & 1)
      to = prof_i_short_copy(to, (const char *)(uintptr_t)values[i], (uint32_t)bytes[i]);
    else
      *to++ = values[i];
  }
  return open_entry_with(thread, open, state, top, words, 0);
}

uint64_t prof_i_begin_values_1(prof_site *site, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED),
                 shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) return PROF_I_NOT_SHORT;
  const uint64_t top = slot->payload_top;
  if (PROF_I_UNLIKELY(!can_begin_fast(thread, state, slot->depth, top, VALUES_WORDS) || !shape))
    return PROF_I_NOT_SHORT;
  if (shape >> VALUES_STRINGS_SHIFT) return begin_texts(site, a, b, c, d);
  const uint64_t words = 1 + (shape >> VALUES_COUNT_SHIFT);
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = long_record_word(words, 0, (uint32_t)shape);
  to[1] = a;
  /* no loop: it would become a copy by string instructions, which take ten times as long */
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
  return open_entry_with(thread, open, state, top, words, 0);
}

/* A scope of a name that is known is a plain one of the name's site. */
static inline __attribute__((always_inline)) uint64_t begin_known_name(prof_i_thread *thread,
                                                                       prof_i_thread_slot *slot,
                                                                       const prof_i_name *known,
                                                                       uint64_t by_call) {
  const uint64_t state = __atomic_load_n(&known->state, __ATOMIC_ACQUIRE);
  if (PROF_I_UNLIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) !=
                          (uint32_t)(state >> 32) ||
                      slot->depth >= PROF_I_OPEN_COUNT || !(uint32_t)state))
    return PROF_I_NOT_SHORT;
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  __atomic_store_n(&open->packed, (uint64_t)(uint32_t)state << PROF_I_PACKED_SITE_SHIFT | by_call,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_begin_ticks(thread, prof_i_counter()) << 4;
  prof_i_open_entry_set(open, start);
  return start;
}

/* May scopes of this site go by the fast path now? Before a new text is marked as seen: the slow
   path would take the mark for one of an earlier scope. */
static inline bool fast_path_is_open(const prof_i_thread *thread, const prof_i_thread_slot *slot,
                                     uint64_t state) {
  return PROF_I_LIKELY(slot && slot->depth < PROF_I_OPEN_COUNT && (uint32_t)state &&
                       __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) ==
                           (uint32_t)(state >> 32));
}

/* Writes a long record. Not inlined, because it is rare. */
static __attribute__((noinline)) uint64_t begin_long_argument(const prof_site *site,
                                                              const char *text, size_t bytes,
                                                              uint64_t schema) {
  return begin_copied(site, text, bytes, NULL, 0, 0, schema, 0);
}

/* A scope whose argument's text is not looked up, or not known. */
static inline __attribute__((always_inline)) uint64_t begin_new_argument(const prof_site *site,
                                                                         const char *text,
                                                                         size_t bytes,
                                                                         uint64_t schema) {
  if (PROF_I_LIKELY(bytes <= PROF_I_SHORT_TEXT_BYTES && schema <= PROF_I_TEXT_SCHEMA_MAX))
    return begin_short_text(site, text, bytes, schema);
  return begin_long_argument(site, text, bytes, schema);
}

/* Looks up the argument's text. A text that is new, or has no place in the table, is copied. */
static __attribute__((noinline)) uint64_t look_up_argument(const prof_site *site, const char *text,
                                                           size_t bytes, uint64_t of) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!fast_path_is_open(thread, slot, state)) return PROF_I_NOT_SHORT;
  prof_i_name_key key = {text, "", (uint32_t)bytes, 0, of, 0};
  prof_i_name_hash(&key);
  const prof_i_name *const known = prof_i_name_find(&key);
  const bool comes_again = !known && prof_i_name_is_repeated(key.hash);
  prof_i_name_count_look_up(thread, of, !known && !comes_again);
  if (PROF_I_LIKELY(known != NULL)) {
    const uint64_t start = begin_known_name(thread, slot, known, 0);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) {
      *prof_i_name_recent(thread, text) = known; /* its own: it is attached */
      return start;
    }
    prof_i_name_look_up_argument(&key);
  } else if (comes_again) {
    prof_i_name_look_up_argument(&key); /* its next scope is a plain one */
  }
  return begin_new_argument(site, text, bytes, of >> 32);
}

/* None of the thread's recent texts. */
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
    const uint64_t start = begin_known_name(thread, thread->fast, recent, 0);
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

/* Looks up the name. A name that is new, or has no place in the table, is copied. category NULL:
   the call site's own. */
static __attribute__((noinline)) uint64_t look_up_named(const prof_site *site, const char *name,
                                                        size_t name_bytes, const char *category,
                                                        size_t category_bytes, uint64_t by_call) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!fast_path_is_open(thread, slot, state)) return PROF_I_NOT_SHORT;
  prof_i_name_key key = {
      name, category, (uint32_t)name_bytes, (uint32_t)category_bytes, (uint32_t)state, 0};
  prof_i_name_hash(&key);
  const prof_i_name *const known = prof_i_name_find(&key);
  const bool is_new = !known && prof_i_name_is_new(key.hash);
  prof_i_name_count_look_up(thread, key.of, is_new);
  if (known) {
    const uint64_t start = begin_known_name(thread, slot, known, by_call);
    if (start != PROF_I_NOT_SHORT)
      *prof_i_name_recent(thread, name) = known; /* its own: it is attached */
    return start;
  }
  if (!is_new) return PROF_I_NOT_SHORT;
  const uint64_t flags = PROF_I_FLAG_NAME | (category ? PROF_I_FLAG_CATEGORY : 0);
  return begin_copied(site, name, name_bytes, category, category_bytes, flags, 0, by_call);
}

/* None of the thread's recent names. */
static __attribute__((noinline)) uint64_t begin_name(const prof_site *site, const char *name,
                                                     uint32_t name_bytes) {
  const size_t bytes =
      name_bytes != PROF_NUL_TERMINATED ? name_bytes : strnlen(name, PROF_I_NAME_TEXT_BYTES + 1);
  if (PROF_I_UNLIKELY(bytes - 1 >= PROF_I_NAME_TEXT_BYTES)) return PROF_I_NOT_SHORT;
  const uint32_t number = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(prof_i_name_is_worth_look_up(prof_i_this_thread, number)))
    return look_up_named(site, name, bytes, NULL, 0, 0);
  return begin_copied(site, name, bytes, NULL, 0, PROF_I_FLAG_NAME, 0, 0);
}

/* Not inlined: see begin_recent_argument(). */
static __attribute__((noinline)) uint64_t begin_recent_name(const prof_site *site, const char *name,
                                                            uint32_t name_bytes,
                                                            const prof_i_name *recent) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (PROF_I_LIKELY(
          prof_i_name_is_given((const char *)recent->words, recent->name_bytes, name, name_bytes)))
    return begin_known_name(thread, thread->fast, recent, 0);
  return begin_name(site, name, name_bytes);
}

uint64_t prof_i_begin_name_1(prof_site *site, const char *name, uint32_t name_bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  const prof_i_name *const recent = *prof_i_name_recent(thread, name);
  if (PROF_I_UNLIKELY(!thread->fast || !name)) return PROF_I_NOT_SHORT;
  if (PROF_I_LIKELY(recent &&
                    recent->of == (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED)))
    return begin_recent_name(site, name, name_bytes, recent);
  return begin_name(site, name, name_bytes);
}

/* None of the thread's recent names, with a category. */
static uint64_t begin_named(const prof_site *site, const char *name, size_t name_bytes,
                            const char *category, size_t category_bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(name_bytes - 1 >= PROF_I_NAME_TEXT_BYTES ||
                      category_bytes > PROF_I_NAME_TEXT_BYTES))
    return PROF_I_NOT_SHORT;
  if (!fast_path_is_open(thread, thread->fast, state)) return PROF_I_NOT_SHORT;
  if (PROF_I_LIKELY(prof_i_name_is_worth_look_up(thread, (uint32_t)state)))
    return look_up_named(site, name, name_bytes, category, category_bytes, PROF_I_OPEN_BY_CALL);
  return begin_copied(site, name, name_bytes, category, category_bytes,
                      PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY, 0, PROF_I_OPEN_BY_CALL);
}

/* A name and a category, both made at run time and NUL-terminated. */
static inline uint64_t begin_texts_by_call(prof_i_thread *thread, const prof_site *site,
                                           const char *name, const char *category) {
  prof_i_thread_slot *const slot = thread->fast;
  const prof_i_name *const recent = *prof_i_name_recent(thread, name);
  if (PROF_I_LIKELY(slot && recent &&
                    recent->of == (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED)) &&
      PROF_I_LIKELY(strcmp((const char *)recent->words, name) == 0 &&
                    strcmp(prof_i_name_category(recent), category) == 0))
    return begin_known_name(thread, slot, recent, PROF_I_OPEN_BY_CALL);
  return begin_named(site, name, strnlen(name, PROF_I_NAME_TEXT_BYTES + 1), category,
                     strnlen(category, PROF_I_NAME_TEXT_BYTES + 1));
}

/* ---- end ---- */

/* The scope is over. Its text goes too, in this order: a reader that finds the entry as it was,
   after it has read payload_top, has copied the payload. Release: pairs with its acquire load of
   payload_top. */
static inline void close_top_entry(prof_i_thread_slot *slot, uint64_t depth) {
  PROF_I_SIGNAL_FENCE();
  __atomic_store_n(&slot->open[depth].ticks, 0, __ATOMIC_RELEASE);
  if (!PROF_I_FAULT(DEPTH)) __atomic_store_n(&slot->depth, depth - 1, __ATOMIC_RELAXED);
}

/* A scope whose payload waits in the slot. Of its own, so that the plain end saves no registers. */
static inline __attribute__((always_inline)) void write_long_end(
    prof_i_thread_slot *slot, uint64_t depth, uint64_t start, uint64_t ticks,
    const prof_i_head *chunk, uint64_t *record, uint64_t packed) {
  prof_i_open_entry *const open = &slot->open[depth];
  const uint64_t words = packed >> PROF_I_PACKED_WORDS_SHIFT;
  const uint64_t duration4 = (ticks << 4) - start;
  record[1] = duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed);
  for (;;) {
    const uint64_t *const payload =
        (const uint64_t *)((const char *)slot + prof_i_packed_payload_offset(packed));
    /* Word 3 always exists. As padding it has the bytes behind the payload. */
    record[2] = __atomic_load_n(&payload[0], __ATOMIC_RELAXED);
    record[3] = __atomic_load_n(&payload[1], __ATOMIC_RELAXED);
    if (words > 2) { /* so are words 4 and 5 */
      record[4] = __atomic_load_n(&payload[2], __ATOMIC_RELAXED);
      record[5] = __atomic_load_n(&payload[3], __ATOMIC_RELAXED);
    }
    for (uint64_t i = 4; i < words; i++) /* else it becomes a memcpy() */
      record[2 + i] = __atomic_load_n(&payload[i], __ATOMIC_RELAXED);
    PROF_I_SIGNAL_FENCE();
    const uint64_t now = __atomic_load_n(&open->packed, __ATOMIC_RELAXED);
    if (PROF_I_LIKELY(now == packed)) break;
    packed = now; /* a handler has moved it: see close_holes() */
  }
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  prof_i_open_entry_set(open, 0);
  __atomic_store_n(&slot->payload_top, prof_i_packed_payload_offset(packed), __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  if (!PROF_I_FAULT(DEPTH)) __atomic_store_n(&slot->depth, depth - 1, __ATOMIC_RELAXED);
}

static uint64_t bytes_of_long(uint64_t packed) {
  return (2 + (packed >> PROF_I_PACKED_WORDS_SHIFT) + 1) / 2 * 16;
}

/* The claim may have met a stop on the way (cost_sample.h). Of its own: end_long() saves fewer
   registers. */
static PROF_I_COLD void end_long_at_limit(prof_i_head *chunk, prof_i_thread_slot *slot,
                                          uint64_t depth, uint64_t start, uint64_t ticks,
                                          uint64_t at) {
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  uint64_t *const record = prof_i_record_take(chunk, at, bytes_of_long(packed));
  if (record) {
    write_long_end(slot, depth, start, ticks, chunk, record, packed);
    return;
  }
  prof_i_scope_note_failed_claim(prof_i_this_thread, chunk, at, start);
  prof_i_scope_end_slow(start, ticks);
}

static __attribute__((noinline)) void end_long(prof_i_thread *thread, prof_i_thread_slot *slot,
                                               uint64_t depth, uint64_t start, uint64_t ticks) {
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  const uint64_t bytes = bytes_of_long(packed), at = prof_i_claim(&chunk->cursor, bytes);
  if (PROF_I_UNLIKELY(!prof_i_record_fits(chunk, at, bytes))) {
    end_long_at_limit(chunk, slot, depth, start, ticks, at);
    return;
  }
  write_long_end(slot, depth, start, ticks, chunk, prof_i_record_mark(chunk, at, bytes), packed);
}

/* The claim has reached the chunk's limit. It fits all the same where that is but a stop on the way
   (cost_sample.h). Slot and depth are those that were looked at: by now the arena may be another,
   and these zeros. */
static PROF_I_COLD void end_at_limit(prof_i_head *chunk, prof_i_thread_slot *slot, uint64_t depth,
                                     uint64_t start, uint64_t ticks, uint64_t at) {
  if (!prof_i_record_extends(chunk, at, 16)) {
    prof_i_scope_note_failed_claim(prof_i_this_thread, chunk, at, start);
    prof_i_scope_end_slow(start, ticks);
    return;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  const uint64_t duration4 = (ticks << 4) - start;
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  __atomic_store_n(&record[1],
                   duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  close_top_entry(slot, depth);
}

static inline __attribute__((always_inline)) void end_any(prof_i_thread *thread, uint64_t start) {
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) {
    prof_i_scope_end_slow(start, 0);
    return;
  }
  const uint64_t depth = slot->depth;
  prof_i_open_entry *const open = &slot->open[depth];
  if (PROF_I_UNLIKELY(__atomic_load_n(&open->ticks, __ATOMIC_RELAXED) != start)) {
    prof_i_scope_end_slow(start, 0);
    return;
  }
  const uint64_t ticks = prof_i_scope_end_ticks(thread, prof_i_counter());
  const uint64_t packed = __atomic_load_n(&open->packed, __ATOMIC_RELAXED);
  /* as start, so that a counter past 60 bits, or one that wraps, is no matter */
  const uint64_t duration4 = (ticks << 4) - start;
  const uint64_t duration_what =
      duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed);
  if (PROF_I_UNLIKELY(duration4 >> (PROF_I_DURATION_BITS + 4))) {
    prof_i_scope_end_slow(start, ticks);
    return;
  }
  if (packed & PROF_I_TYPE_LONG) {
    end_long(thread, slot, depth, start, ticks);
    return;
  }
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  if (PROF_I_FAULT(EARLY_CLEAR)) prof_i_open_entry_set(open, 0);
  if (PROF_I_FAULT(HOT_CALL)) prof_i_port_tid();
  const uint64_t at = PROF_I_FAULT(LOST) ? __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED)
                                         : prof_i_claim(&chunk->cursor, 16);
  if (PROF_I_UNLIKELY(at >= chunk->limit)) {
    end_at_limit(chunk, slot, depth, start, ticks, at);
    return;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  if (PROF_I_FAULT(LATE_COMMIT)) {
    __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
    PROF_I_SIGNAL_FENCE();
  }
  __atomic_store_n(&record[1], duration_what, __ATOMIC_RELAXED);
  /* The commit. Release: pairs with the reader's acquire load of this word. */
  __atomic_store_n(&record[0], start | chunk->generation,
                   PROF_I_FAULT(RELAXED) ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
  if (PROF_I_FAULT(LOST)) __atomic_store_n(&chunk->cursor, at + 16, __ATOMIC_RELAXED);
  close_top_entry(slot, depth);
}

void prof_i_end_1(uint64_t start) { end_any(prof_i_this_thread, start); }

static __attribute__((noinline)) uint64_t begin_called(prof_i_thread *thread, prof_site *site) {
  return begin_plain(thread, site, "", "", 0);
}
static __attribute__((noinline)) void end_called(prof_i_thread *thread, uint64_t start) {
  end_any(thread, start);
}

void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count) {
  for (int i = 0; i < count; i++) end_called(thread, begin_called(thread, site));
}

/* ---- the twin: see scope.h ---- */

/* On pages of their own: the recorder's code is not in the near caches either. */
#define TWIN_PAGE(name) __attribute__((noinline, aligned(64), section(".text.prof_i_twin_" name)))
#define TWIN_PAGE_FIRST(name) \
  __attribute__((noinline, aligned(4096), section(".text.prof_i_twin_" name)))

static TWIN_PAGE_FIRST("library") uint64_t
    twin_begin(const prof_i_twin_data *own, prof_site *site) {
  return begin_plain(*own->thread, site, "", "", 0);
}
static TWIN_PAGE("library") uint64_t
    twin_begin_details(const prof_i_twin_data *own, prof_site *site, const prof_details *details) {
  return begin_details(*own->thread, site, details, true);
}
static TWIN_PAGE("library") void twin_end(const prof_i_twin_data *own, uint64_t start) {
  end_any(*own->thread, start);
}

/* As the linker's stubs, by which the host calls a library. */
static TWIN_PAGE_FIRST("stubs") uint64_t stub_begin(const prof_i_twin_data *own, prof_site *site) {
  return own->calls.begin(own, site);
}
static TWIN_PAGE("stubs") uint64_t
    stub_begin_details(const prof_i_twin_data *own, prof_site *site, const prof_details *details) {
  return own->calls.begin_details(own, site, details);
}
static TWIN_PAGE("stubs") void stub_end(const prof_i_twin_data *own, uint64_t start) {
  own->calls.end(own, start);
}

void prof_i_scope_twin_link(prof_i_twin_calls *stubs, prof_i_twin_data *own) {
  *stubs = (prof_i_twin_calls){stub_begin, stub_begin_details, stub_end};
  own->calls = (prof_i_twin_calls){twin_begin, twin_begin_details, twin_end};
}

TWIN_PAGE_FIRST("host")
uint64_t prof_i_scope_twin_begin(const prof_i_twin *twin, prof_site *site,
                                 const prof_details *details) {
  return details ? twin->calls->begin_details(twin->own, site, details)
                 : twin->calls->begin(twin->own, site);
}
TWIN_PAGE("host") void prof_i_scope_twin_end(const prof_i_twin *twin, uint64_t start) {
  twin->calls->end(twin->own, start);
}

/* ---- by calls, for other languages ---- */

static prof_site by_call[3] = {{.file = "", .function = ""},
                               {.file = "", .function = "prof_scope_begin", .level = 1},
                               {.file = "", .function = "prof_scope_begin", .level = 2}};

uint64_t prof_scope_begin(int level, const char *name, const char *category,
                          const prof_args *args) {
  if (level < 1 || level > 2 || (uint32_t)level > prof_i_arena_level()) return 0;
  name = name ? name : "";
  category = category ? category : "";
  if (!args || args->count == 0) {
    prof_i_thread *const thread = prof_i_this_thread;
    const uint64_t start = begin_texts_by_call(thread, &by_call[level], name, category);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) return start | thread->tag;
  }
  const prof_details details = {
      name, category, PROF_NUL_TERMINATED,        PROF_NUL_TERMINATED, PROF_I_BY_CALL, PROF_HOST,
      0,    0,        args ? *args : PROF_NO_ARGS};
  return prof_i_handle_with_tag(
      begin_details(prof_i_this_thread, &by_call[level], &details, false));
}

uint64_t prof_scope_begin_at(prof_site *site, const char *name, const char *category) {
  const uint32_t level = site && site->level ? site->level : 1;
  if (!site || level > prof_i_arena_level()) return 0;
  return prof_i_handle_with_tag(begin_plain(prof_i_this_thread, site, name ? name : "",
                                            category ? category : "", PROF_I_OPEN_BY_CALL));
}

static __attribute__((noinline)) void end_without_own_tag(prof_i_thread *thread, uint64_t handle) {
  if (prof_i_handle_tag(handle))
    prof_i_scope_end_slow(handle, 0);
  else if (handle)
    end_any(thread, handle);
}

/* An empty entry has start 0. */
void prof_scope_end(uint64_t handle) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t start = prof_i_open_entry_start(handle);
  if (PROF_I_LIKELY(prof_i_handle_tag(handle) == thread->tag) && PROF_I_LIKELY(start != 0))
    end_any(thread, start);
  else
    end_without_own_tag(thread, handle);
}
