/* Scopes: begin, end, and all that can be unusual about them.

   The fast path is prof_i_begin_1 and prof_i_end_1: budget 1.10x of two counter reads and one 32-byte store (bench/scope.c). No lock,
   no call into the kernel, no allocation, no errno. Order is what makes it safe against a handler on the same thread and against
   death at any instruction:
     begin: take the next open entry (depth), fill it, store its ticks last. A handler in between takes the entry behind and puts the
            depth back as it saw it.
     end:   claim room by one instruction, write, store the record's first word last; only then clear the entry. A reader that finds
            both the record and the entry shows the record.
   The entry is also the check: it holds this scope's start only if the thread, the session and the process are still those of its
   begin. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "chunk.h"
#include "clock.h"
#include "control.h"
#include "gate.h"
#include "meta.h"
#include "payload.h"
#include "payload_short.h"
#include "port.h"
#include "record.h"
#include "scope.h"
#include "site.h"
#include "thread.h"

enum {
  TYPE_PLAIN = 0,
  TYPE_LONG = 1,
  WHAT_SITE_SHIFT = 4,
  WHAT_OFFSET_SHIFT = 24,
  WHAT_WORDS_SHIFT = 48,
  DEEP_GONE = 1,             /* ticks of an entry beyond the shown ones whose scope is over */
  HOLES_WORTH_CLOSING = 8192 /* bytes of the text area that ended scopes have left between others */
};
static const uint64_t what_mask = ((1u << WHAT_OFFSET_SHIFT) - 1) & ~(uint64_t)PROF_I_OPEN_BY_CALL; /* site and type: the low bits of a record's word 1 */
static const uint32_t by_call_flag = 1u << 31; /* of prof_details.flags, inside this file */

static inline uint64_t offset_of(uint64_t what) { return what >> WHAT_OFFSET_SHIFT & 0xffffff; }
static inline void set_open(prof_i_open *open, uint64_t ticks) { __atomic_store_n(&open->ticks, ticks, __ATOMIC_RELEASE); }

/* ---- begin ---- */

static PROF_I_COLD uint64_t begin_slow(prof_site *site, const prof_details *details);

static inline __attribute__((always_inline)) uint64_t begin_plain(prof_i_thread *thread, prof_site *site, const char *name,
                                                                  const char *category, uint32_t by_call) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth + 1;
  if (PROF_I_UNLIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) || depth > PROF_I_OPEN_COUNT)) {
    const prof_details details = {
        name, category, PROF_NUL_TERMINATED, PROF_NUL_TERMINATED, PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | (by_call ? by_call_flag : 0),
        PROF_HOST, 0, 0, PROF_NO_ARGS};
    return begin_slow(site, &details);
  }
  prof_i_open *const open = &slot->open[depth];
  __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  __atomic_store_n(&open->what, (uint64_t)(uint32_t)state << WHAT_SITE_SHIFT | by_call, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_counter() << 4;
  set_open(open, start);
  return start;
}

uint64_t prof_i_begin_1(prof_site *site, const char *name, const char *category) {
  return begin_plain(prof_i_this_thread, site, name, category, 0);
}

static PROF_I_COLD void close_holes(prof_i_thread *thread, const prof_i_open *own);

static uint64_t put_payload(prof_i_thread *thread, prof_i_slot *slot, const prof_i_open *own, const prof_details *details, uint32_t site);

/* A short payload's room is taken before it is written, so that a handler's goes behind, and what is too much is given back. */
static inline __attribute__((always_inline)) uint64_t put_short(prof_i_thread *thread, prof_i_slot *slot, const prof_i_open *own,
                                                                const prof_details *details, uint32_t site) {
  const uint64_t top = slot->text_top, taken = top + PROF_I_SHORT_WORDS * 8;
  if (PROF_I_UNLIKELY(taken > PROF_I_TEXT_END)) return put_payload(thread, slot, own, details, site);
  __atomic_store_n(&slot->text_top, taken, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint64_t words = prof_i_short_pack((uint64_t *)((char *)slot + top), details, site);
  PROF_I_SIGNAL_FENCE();
  if (PROF_I_LIKELY(slot->text_top == taken)) __atomic_store_n(&slot->text_top, top + words * 8, __ATOMIC_RELAXED); /* else a handler has left something open */
  if (PROF_I_UNLIKELY(words == 0)) return put_payload(thread, slot, own, details, site);
  return (uint64_t)site << WHAT_SITE_SHIFT | (details->flags & by_call_flag ? PROF_I_OPEN_BY_CALL : 0) | TYPE_LONG |
         top << WHAT_OFFSET_SHIFT | words << WHAT_WORDS_SHIFT;
}

/* Room in the slot's text area: taken before it is written, so that a handler's goes behind. */
static uint64_t put_payload(prof_i_thread *thread, prof_i_slot *slot, const prof_i_open *own, const prof_details *details, uint32_t site) {
  prof_i_payload payload;
  const uint64_t by_call = details->flags & by_call_flag ? PROF_I_OPEN_BY_CALL : 0;
  if (PROF_I_UNLIKELY(PROF_I_TEXT_END - slot->text_top < PROF_I_PAYLOAD_BYTES_MAX)) close_holes(thread, own);
  const uint64_t top = slot->text_top;
  prof_i_payload_measure(&payload, details, (uint32_t)(top < PROF_I_TEXT_END ? (PROF_I_TEXT_END - top) / 8 < PROF_I_PAYLOAD_BYTES_MAX / 8
                                                                                 ? (PROF_I_TEXT_END - top) / 8
                                                                                 : PROF_I_PAYLOAD_BYTES_MAX / 8
                                                                           : 0));
  if (top + payload.words * 8ull > PROF_I_TEXT_END) { /* not even a word: the site must do */
    prof_i_claim(&slot->cut_count, 1);
    return (uint64_t)site << WHAT_SITE_SHIFT | by_call;
  }
  __atomic_store_n(&slot->text_top, top + payload.words * 8ull, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  if (payload.flags & PROF_I_FLAG_CUT) prof_i_claim(&slot->cut_count, 1);
  const uint32_t schema = payload.arg_count ? prof_i_schema_number(site, &details->args, payload.arg_count) : 0;
  if (!schema) payload.arg_count = 0;
  prof_i_payload_pack(&payload, details, PROF_I_KIND_SCOPE, schema, (uint64_t *)((char *)slot + top));
  return (uint64_t)site << WHAT_SITE_SHIFT | by_call | TYPE_LONG | top << WHAT_OFFSET_SHIFT | (uint64_t)payload.words << WHAT_WORDS_SHIFT;
}

static inline __attribute__((always_inline)) uint64_t begin_details(prof_site *site, const prof_details *details) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth + 1;
  if (PROF_I_UNLIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) || depth > PROF_I_OPEN_COUNT)) return begin_slow(site, details);
  prof_i_open *const open = &slot->open[depth];
  __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  __atomic_store_n(&open->what, put_short(thread, slot, open, details, (uint32_t)state), __ATOMIC_RELAXED);
  const uint64_t start = prof_i_counter() << 4;
  set_open(open, start);
  return start;
}

/* ---- begin, by the shortest way ---- */

enum {
  VALUES_COUNT_SHIFT = 32,
  VALUES_STRINGS_SHIFT = 40, /* one bit a value: it is a NUL-terminated text */
  VALUES_WORDS = 1 + PROF_I_VALUES_MAX * (1 + PROF_I_SHORT_TEXT_BYTES / 8)
};

/* What prof_i_begin_values_1() must know of a site: schema | count | strings. The keys are the call site's own, so they stay what they
   are as long as the site does. */
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
    __atomic_store_n(&site->values, schema | (uint64_t)args->count << VALUES_COUNT_SHIFT | strings << VALUES_STRINGS_SHIFT, __ATOMIC_RELAXED);
}

static inline void learn(prof_site *site, const prof_details *details) {
  if (PROF_I_UNLIKELY(details->args.kind & PROF_I_KEYS_LITERAL) && !__atomic_load_n(&site->values, __ATOMIC_RELAXED))
    learn_values(site, &details->args);
}

uint64_t prof_i_begin_details_1(prof_site *site, const prof_details *details) {
  const uint64_t start = begin_details(site, details);
  learn(site, details);
  return start;
}

/* Ready to take the entry at depth and `words` of text from top on? */
static inline bool is_ready(const prof_i_thread *thread, uint64_t state, uint64_t depth, uint64_t top, uint64_t words) {
  return PROF_I_LIKELY(__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == (uint32_t)(state >> 32)) &&
         PROF_I_LIKELY(depth <= PROF_I_OPEN_COUNT) && PROF_I_LIKELY(top + words * 8 <= PROF_I_TEXT_END);
}

static inline uint64_t open_with(prof_i_open *open, uint64_t state, uint64_t top, uint64_t words, uint64_t by_call) {
  __atomic_store_n(&open->what,
                   (uint64_t)(uint32_t)state << WHAT_SITE_SHIFT | by_call | TYPE_LONG | top << WHAT_OFFSET_SHIFT | words << WHAT_WORDS_SHIFT,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_counter() << 4;
  set_open(open, start);
  return start;
}

static inline uint64_t first_word(uint64_t words, uint64_t flags, uint64_t schema) {
  return (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 | flags << 24 | schema << 32;
}

/* One text, or two; of known length, so that room is taken before they are written, and a handler's go behind. */
static inline __attribute__((always_inline)) uint64_t begin_copied(const prof_site *site, const char *one, size_t one_bytes, const char *two,
                                                                   size_t two_bytes, uint64_t flags, uint64_t schema, uint64_t by_call) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth + 1, top = slot->text_top;
  if (PROF_I_UNLIKELY(!is_ready(thread, state, depth, top, VALUES_WORDS))) return PROF_I_NOT_SHORT;
  if (PROF_I_UNLIKELY(one_bytes > PROF_I_SHORT_TEXT_BYTES || two_bytes > PROF_I_SHORT_TEXT_BYTES)) return PROF_I_NOT_SHORT;
  const uint64_t words = 2 + (one_bytes + 7) / 8 + (two ? 1 + (two_bytes + 7) / 8 : 0);
  __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->text_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = first_word(words, flags, schema);
  uint64_t *const next = prof_i_short_copy(to + 1, one, (uint32_t)one_bytes);
  if (two) prof_i_short_copy(next, two, (uint32_t)two_bytes);
  return open_with(&slot->open[depth], state, top, words, by_call);
}

uint64_t prof_i_begin_text_1(prof_site *site, const char *text, uint32_t text_bytes) {
  const uint64_t shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(!shape || !text)) return PROF_I_NOT_SHORT;
  return begin_copied(site, text, text_bytes == PROF_NUL_TERMINATED ? strlen(text) : text_bytes, NULL, 0, 0, (uint32_t)shape, 0);
}

/* Some of the values are texts. Measured first, so that their room is taken before they are written, and a handler's go behind. */
static __attribute__((noinline)) uint64_t begin_texts(prof_site *site, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  prof_i_slot *const slot = prof_i_this_thread->fast;
  const uint64_t values[] = {a, b, c, d}, shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED), depth = slot->depth + 1, top = slot->text_top;
  const uint64_t count = shape >> VALUES_COUNT_SHIFT & 0xff, strings = shape >> VALUES_STRINGS_SHIFT;
  size_t bytes[PROF_I_VALUES_MAX];
  uint64_t words = 1 + count;
  for (uint64_t i = 0; i < count; i++) {
    if (!(strings >> i & 1)) continue;
    if (!values[i] || (bytes[i] = strlen((const char *)(uintptr_t)values[i])) > PROF_I_SHORT_TEXT_BYTES) return PROF_I_NOT_SHORT;
    words += (bytes[i] + 7) / 8;
  }
  __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->text_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *to = (uint64_t *)((char *)slot + top);
  *to++ = first_word(words, 0, (uint32_t)shape);
  for (uint64_t i = 0; i < count; i++) {
    if (strings >> i & 1) to = prof_i_short_copy(to, (const char *)(uintptr_t)values[i], (uint32_t)bytes[i]);
    else *to++ = values[i];
  }
  return open_with(&slot->open[depth], state, top, words, 0);
}

uint64_t prof_i_begin_values_1(prof_site *site, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED), shape = __atomic_load_n(&site->values, __ATOMIC_RELAXED);
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth + 1, top = slot->text_top;
  if (PROF_I_UNLIKELY(!is_ready(thread, state, depth, top, VALUES_WORDS) || !shape)) return PROF_I_NOT_SHORT;
  if (shape >> VALUES_STRINGS_SHIFT) return begin_texts(site, a, b, c, d);
  const uint64_t words = 1 + (shape >> VALUES_COUNT_SHIFT);
  __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->text_top, top + words * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  uint64_t *const to = (uint64_t *)((char *)slot + top);
  to[0] = first_word(words, 0, (uint32_t)shape);
  to[1] = a;
  switch (words) { /* no loop: it would become a copy by string instructions, which take ten times as long */
    case 5: to[4] = d; /* fall through */
    case 4: to[3] = c; /* fall through */
    case 3: to[2] = b; /* fall through */
    default: break;
  }
  return open_with(&slot->open[depth], state, top, words, 0);
}

uint64_t prof_i_begin_name_1(prof_site *site, const char *name, uint32_t name_bytes) {
  const size_t bytes = name_bytes != PROF_NUL_TERMINATED ? name_bytes : name ? strlen(name) : SIZE_MAX;
  return begin_copied(site, name, bytes, NULL, 0, PROF_I_FLAG_NAME, 0, 0);
}

static bool is_plain(const prof_details *details) {
  return (details->flags & (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_ON_STREAM)) ==
             (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL) &&
         details->args.count == 0 && details->device.type == PROF_DEVICE_CPU && details->device.index == 0;
}

/* The site's number, asked for once; the answer stands in the caller's descriptor. 0: no number left. */
static uint32_t number_of(prof_site *site, const prof_details *details) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (state >> 32 == prof_i_site_epoch()) return (uint32_t)state;
  const uint32_t number = prof_i_site_number(site, details->flags & PROF_I_NAME_LITERAL ? details->name : NULL,
                                             details->flags & PROF_I_CATEGORY_LITERAL ? details->category : NULL);
  if (number) __atomic_store_n(&site->state, (uint64_t)prof_i_site_epoch() << 32 | number, __ATOMIC_RELAXED);
  return number;
}

/* Scopes below the 64 shown: their site is remembered in memory of the thread's own. NULL: deeper than that, or no memory. */
static prof_i_open *deep_entry(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  if (!thread->deep) {
    void *const memory = mmap(NULL, PROF_I_DEEP_COUNT * sizeof *thread->deep, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    thread->deep = memory;
  }
  if (slot->deep >= PROF_I_DEEP_COUNT) return NULL;
  prof_i_claim(&slot->deep_count, 1);
  thread->deep[slot->deep].ticks = 0;
  return &thread->deep[slot->deep++];
}

/* An entry below the topmost whose scope is over: of scopes that do not nest, the entries pile up. */
static prof_i_open *entry_between(prof_i_thread *thread) {
  const uint64_t gone = __atomic_load_n(&thread->gone, __ATOMIC_RELAXED);
  if (!gone) return NULL;
  const int i = __builtin_ctzll(gone);
  __atomic_fetch_and(&thread->gone, ~(1ull << i), __ATOMIC_RELAXED);
  prof_i_open *const open = &thread->slot->open[i + 1];
  return open->ticks == 0 ? open : NULL;
}

/* Without a number there is no site to keep the name: it is copied, as one made at run time. */
static prof_details with_own_name(const prof_details *details) {
  prof_details named = *details;
  named.flags &= ~(uint32_t)(PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL);
  return named;
}

/* Takes entries off the top whose scopes are over without their end here. Not whatever is empty: this may be a handler that came in
   the midst of a begin, whose entry has no start yet. */
static void trim(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  while (slot->deep > 0 && thread->deep[slot->deep - 1].ticks == DEEP_GONE) slot->deep--;
  for (uint64_t depth; (depth = slot->depth) > 0; slot->depth = depth - 1) {
    const uint64_t bit = 1ull << (depth - 1);
    if (!(__atomic_fetch_and(&thread->gone, ~bit, __ATOMIC_RELAXED) & bit) || slot->open[depth].ticks != 0) break;
  }
  if (slot->depth == 0 && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
}

/* Do all scopes that stand open have entries, in the order in which they began? */
static bool is_in_order(const prof_i_thread *thread) {
  const prof_i_slot *const slot = thread->slot;
  uint64_t latest = 0;
  for (uint64_t i = 1; i <= slot->depth; i++) {
    const uint64_t ticks = slot->open[i].ticks;
    if (ticks && ticks < latest) return false;
    if (ticks) latest = ticks;
  }
  return slot->deep == 0;
}

static uint64_t begin_unusual(prof_site *site, const prof_details *details) {
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) {
    prof_i_thread_lose(&prof_i_no_thread, PROF_LOSS_NO_THREAD, 1);
    return 0;
  }
  prof_i_slot *const slot = thread->slot;
  if (thread->is_slow && is_in_order(thread)) prof_i_thread_be_slow(thread, false);
  const uint32_t number = number_of(site, details);
  prof_details named;
  if (!number) {
    named = with_own_name(details);
    details = &named;
  }
  prof_i_open *open;
  if (slot->depth == PROF_I_OPEN_COUNT) trim(thread); /* of scopes that are handed to other threads, the entries pile up */
  if (slot->depth < PROF_I_OPEN_COUNT) {
    const uint64_t depth = slot->depth + 1;
    open = &slot->open[depth];
    __atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
    PROF_I_SIGNAL_FENCE();
    if (depth == 1 && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
  } else if ((open = entry_between(thread)) != NULL || (open = deep_entry(thread)) != NULL) {
    /* The topmost may end before it: then the fast path would take its text for free. */
    if (thread->gone || details->flags & by_call_flag) prof_i_thread_be_slow(thread, true);
  } else {
    prof_i_thread_lose(thread, PROF_LOSS_LOST_STATE, 1);
    return 0;
  }
  __atomic_store_n(&open->what, is_plain(details) ? (uint64_t)number << WHAT_SITE_SHIFT | (details->flags & by_call_flag ? PROF_I_OPEN_BY_CALL : 0)
                                                : put_payload(thread, slot, open, details, number),
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_clock_ticks() << 4;
  set_open(open, start);
  return start;
}

static uint64_t begin_slow(prof_site *site, const prof_details *details) {
  const int saved = errno;
  uint64_t start = 0;
  prof_i_control_ensure(); /* a forked child makes its own capture here */
  if (!prof_i_gate_enter()) {
    prof_i_thread_lose_unplaced(prof_i_control_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE);
  } else {
    if (prof_i_control_is_recording()) start = begin_unusual(site, details);
    else prof_i_thread_lose(prof_i_this_thread, PROF_LOSS_LATE, 1); /* it saw the level on, but the stop was faster */
    prof_i_gate_leave();
  }
  errno = saved;
  return start;
}

/* ---- end ---- */

static PROF_I_COLD void end_slow(uint64_t start, uint64_t ticks);

/* The scope is over. Its text goes too, in this order: a reader that finds the entry as it was, after it has read text_top, has copied the
   payload. Release: pairs with its acquire load of text_top. */
static inline void close_top(prof_i_slot *slot, uint64_t depth) {
  PROF_I_SIGNAL_FENCE();
  __atomic_store_n(&slot->open[depth].ticks, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&slot->depth, depth - 1, __ATOMIC_RELAXED);
}

/* A scope whose payload waits in the slot. Of its own, so that the plain end saves no registers. */
static __attribute__((noinline)) void end_long(prof_i_thread *thread, uint64_t start, uint64_t ticks) {
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth;
  const prof_i_open *const open = &slot->open[depth];
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  uint64_t what = __atomic_load_n(&open->what, __ATOMIC_RELAXED);
  const uint64_t words = what >> WHAT_WORDS_SHIFT, duration = ticks - (start >> 4);
  uint64_t *const record = prof_i_record_claim(chunk, (2 + words + 1) / 2 * 16);
  if (PROF_I_UNLIKELY(!record)) {
    end_slow(start, ticks);
    return;
  }
  record[1] = duration << PROF_I_DURATION_SHIFT | (what & what_mask);
  for (;;) {
    const uint64_t *const payload = (const uint64_t *)((const char *)slot + offset_of(what));
    for (uint64_t i = 0; i < words; i++) record[2 + i] = __atomic_load_n(&payload[i], __ATOMIC_RELAXED); /* else it becomes a memcpy() */
    PROF_I_SIGNAL_FENCE();
    const uint64_t now = __atomic_load_n(&open->what, __ATOMIC_RELAXED);
    if (now == what) break;
    what = now; /* a handler has moved it: see close_holes() */
  }
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  set_open(&slot->open[depth], 0);
  __atomic_store_n(&slot->text_top, offset_of(what), __ATOMIC_RELEASE);
  close_top(slot, depth);
}

static inline __attribute__((always_inline)) void end_any(prof_i_thread *thread, uint64_t start) {
  prof_i_slot *const slot = thread->fast;
  const uint64_t depth = slot->depth;
  prof_i_open *const open = &slot->open[depth];
  if (PROF_I_UNLIKELY(__atomic_load_n(&open->ticks, __ATOMIC_RELAXED) != start)) {
    end_slow(start, 0);
    return;
  }
  const uint64_t ticks = prof_i_counter();
  const uint64_t what = __atomic_load_n(&open->what, __ATOMIC_RELAXED);
  const uint64_t duration = ticks - (start >> 4);
  const uint64_t duration_what = duration << PROF_I_DURATION_SHIFT | (what & what_mask);
  if (PROF_I_UNLIKELY(duration >> PROF_I_DURATION_BITS)) {
    end_slow(start, ticks);
    return;
  }
  if (what & TYPE_LONG) {
    end_long(thread, start, ticks);
    return;
  }
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
#ifdef PROF_FAULT_EARLY_CLEAR /* the scope is not open any more, and not recorded yet */
  set_open(open, 0);
#endif
#ifdef PROF_FAULT_LOST /* store, then advance: a handler in between is written over */
  const uint64_t at = __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED);
#else
  const uint64_t at = prof_i_claim(&chunk->cursor, 16);
#endif
  if (PROF_I_UNLIKELY(at >= chunk->limit)) {
    end_slow(start, ticks);
    return;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
#ifdef PROF_FAULT_LATE_COMMIT /* the commit before what it commits */
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
#endif
  __atomic_store_n(&record[1], duration_what, __ATOMIC_RELAXED);
  /* The commit. Release: pairs with the reader's acquire load of this word. */
#ifdef PROF_FAULT_RELAXED
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELAXED);
#else
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
#endif
#ifdef PROF_FAULT_LOST
  __atomic_store_n(&chunk->cursor, at + 16, __ATOMIC_RELAXED);
#endif
  close_top(slot, depth);
}

void prof_i_end_1(uint64_t start) { end_any(prof_i_this_thread, start); }

static __attribute__((noinline)) uint64_t begin_called(prof_i_thread *thread, prof_site *site) { return begin_plain(thread, site, "", "", 0); }
static __attribute__((noinline)) void end_called(prof_i_thread *thread, uint64_t start) { end_any(thread, start); }

void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count) {
  for (int i = 0; i < count; i++) end_called(thread, begin_called(thread, site));
}

/* What the end needs of a scope, wherever its entry was. */
typedef struct found {
  uint64_t start, end; /* ticks << 4; ticks */
  uint64_t what;
  uint32_t flags;     /* PROF_I_FLAG_OTHER_THREAD, PROF_I_FLAG_NO_DETAILS */
  uint64_t *payload;  /* own copy, in the own slot's text area; NULL: none */
  uint64_t scratch;   /* text_top before the copy was put there, or 0 */
  bool is_deep;       /* it had no entry in the slot */
  uint64_t index;     /* of its entry, or in thread->deep */
} found;

/* A block has ended: blocks that began after it, and have not, were skipped by longjmp or pthread_exit. */
static void give_up_later(prof_i_thread *thread, uint64_t start) {
  prof_i_slot *const slot = thread->slot;
  for (uint64_t i = slot->depth; i > 0; i--) {
    prof_i_open *const open = &slot->open[i];
    if (open->ticks < start + 16 || open->what & PROF_I_OPEN_BY_CALL) continue;
    set_open(open, 0);
    __atomic_fetch_or(&thread->gone, 1ull << (i - 1), __ATOMIC_RELAXED);
  }
  for (uint64_t i = slot->deep; i > 0; i--) {
    prof_i_open *const open = &thread->deep[i - 1];
    if (open->ticks >= start + 16 && !(open->what & PROF_I_OPEN_BY_CALL)) open->ticks = DEEP_GONE;
  }
}

/* Own entries from the top down. */
static bool find_own(prof_i_thread *thread, found *f) {
  prof_i_slot *const slot = thread->slot;
  for (uint64_t i = slot->deep; i > 0 && !f->index; i--) {
    if (thread->deep[i - 1].ticks != f->start) continue;
    f->what = thread->deep[i - 1].what;
    f->is_deep = true;
    f->index = i;
  }
  for (uint64_t i = slot->depth; i > 0 && !f->index; i--) {
    if ((slot->open[i].ticks & ~(uint64_t)PROF_I_OPEN_OLD) != f->start) continue;
    f->what = slot->open[i].what;
    f->index = i; /* the entry itself is cleared when its record stands */
  }
  if (!f->index) return false;
  if (!(f->what & PROF_I_OPEN_BY_CALL)) give_up_later(thread, f->start);
  trim(thread);
  return true;
}

/* The payload into the own slot's text area, behind what stands there, with a word to spare: stacks may be a handler's, and small. */
static void copy_payload(prof_i_slot *own_slot, const prof_i_slot *from, found *f) {
  const uint64_t words = f->what >> WHAT_WORDS_SHIFT, offset = f->what >> WHAT_OFFSET_SHIFT & 0xffffff;
  f->payload = NULL;
  if (!(f->what & TYPE_LONG)) return;
  const uint64_t top = f->scratch ? f->scratch : own_slot->text_top;
  if (offset + words * 8 > PROF_I_TEXT_END || top + (words + 1) * 8 > PROF_I_TEXT_END) {
    f->flags |= PROF_I_FLAG_NO_DETAILS;
    return;
  }
  f->scratch = top;
  f->payload = (uint64_t *)((char *)own_slot + top);
  __atomic_store_n(&own_slot->text_top, top + (words + 1) * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  for (uint64_t i = 0; i < words; i++) f->payload[i] = __atomic_load_n((const uint64_t *)((const char *)from + offset) + i, __ATOMIC_RELAXED);
}

/* ---- text that ended scopes have left between others ---- */

static bool has_text(const prof_i_open *open) { return open->ticks > DEEP_GONE && open->what & TYPE_LONG; }

/* The scope whose text comes next behind that offset, among the shown ones and, by their offsets in order, the deep ones from *deep on.
   NULL: there is no more. */
static prof_i_open *next_text(prof_i_thread *thread, uint64_t behind, uint64_t *deep) {
  prof_i_slot *const slot = thread->slot;
  prof_i_open *next = NULL;
  for (uint64_t i = 1; i <= slot->depth; i++) {
    prof_i_open *const open = &slot->open[i];
    if (has_text(open) && offset_of(open->what) > behind && (!next || offset_of(open->what) < offset_of(next->what))) next = open;
  }
  while (*deep < slot->deep && (!has_text(&thread->deep[*deep]) || offset_of(thread->deep[*deep].what) <= behind)) ++*deep;
  prof_i_open *const other = *deep < slot->deep ? &thread->deep[*deep] : NULL;
  return other && (!next || offset_of(other->what) < offset_of(next->what)) ? other : next;
}

/* Is some other begin or end of this thread under way, which we, a handler, have interrupted? An entry that is not gone and has no start
   is being made, or cleared. */
static bool has_interrupted(const prof_i_thread *thread, const prof_i_open *own) {
  const prof_i_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if (&slot->open[i] != own && slot->open[i].ticks == 0 && !(__atomic_load_n(&thread->gone, __ATOMIC_RELAXED) >> (i - 1) & 1)) return true;
  return thread->is_text_busy;
}

/* Down to that offset. While it moves the entry shows no text: a reader, or another thread that ends the scope, sees that it changed,
   and a kill in between leaves the scope without its details. */
static void move_text(prof_i_slot *slot, prof_i_open *open, uint64_t to) {
  const uint64_t what = open->what, from = offset_of(what), words = what >> WHAT_WORDS_SHIFT;
  const uint64_t site = what & (what_mask | PROF_I_OPEN_BY_CALL) & ~(uint64_t)TYPE_LONG;
  if (from == to) return;
  __atomic_store_n(&open->what, site, __ATOMIC_SEQ_CST);
  for (uint64_t i = 0; i < words; i++) {
    uint64_t *const word = (uint64_t *)((char *)slot + to) + i;
    __atomic_store_n(word, ((const uint64_t *)((const char *)slot + from))[i], __ATOMIC_RELAXED);
  }
  __atomic_store_n(&open->what, site | TYPE_LONG | to << WHAT_OFFSET_SHIFT | words << WHAT_WORDS_SHIFT, __ATOMIC_RELEASE);
}

static void close_holes(prof_i_thread *thread, const prof_i_open *own) {
  prof_i_slot *const slot = thread->slot;
  const uint64_t top = slot->text_top;
  uint64_t used = 0, behind = 0, deep = 0;
  for (const prof_i_open *open; (open = next_text(thread, behind, &deep)) != NULL; behind = offset_of(open->what))
    used += (open->what >> WHAT_WORDS_SHIFT) * 8;
  if (top < PROF_I_TEXT_OFFSET + used + HOLES_WORTH_CLOSING || has_interrupted(thread, own)) return;
  thread->is_text_busy = true; /* a handler that comes meanwhile goes behind what stands there, or cuts */
  PROF_I_SIGNAL_FENCE();
  uint64_t to = PROF_I_TEXT_OFFSET;
  behind = deep = 0;
  for (prof_i_open *open; (open = next_text(thread, behind, &deep)) != NULL;) {
    const uint64_t words = open->what >> WHAT_WORDS_SHIFT;
    behind = offset_of(open->what);
    move_text(slot, open, to);
    to += words * 8;
  }
  if (slot->text_top == top) __atomic_store_n(&slot->text_top, to, __ATOMIC_RELEASE); /* else a handler has left something open */
  PROF_I_SIGNAL_FENCE();
  thread->is_text_busy = false;
}

/* The scope began on another thread: take it out of that thread's entries. The one who swaps it to 0 has it. */
static bool find_elsewhere(prof_i_thread *thread, found *f) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (t == thread || __atomic_load_n(&t->arena, __ATOMIC_ACQUIRE) != prof_i_the_arena.number || !t->slot) continue;
    for (uint64_t i = 1; i <= PROF_I_OPEN_COUNT; i++) {
      prof_i_open *const open = &t->slot->open[i];
      uint64_t ticks = __atomic_load_n(&open->ticks, __ATOMIC_ACQUIRE);
      if ((ticks & ~(uint64_t)PROF_I_OPEN_OLD) != f->start) continue;
      do {
        f->what = __atomic_load_n(&open->what, __ATOMIC_ACQUIRE);
        copy_payload(thread->slot, t->slot, f);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
      } while (__atomic_load_n(&open->what, __ATOMIC_RELAXED) != f->what); /* its text was moved meanwhile */
      if (!__atomic_compare_exchange_n(&open->ticks, &ticks, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
      __atomic_fetch_or(&t->gone, 1ull << (i - 1), __ATOMIC_RELAXED);
      f->flags = PROF_I_FLAG_OTHER_THREAD;
      return true;
    }
  }
  return false;
}

/* Writes what was found, as a plain record if it can be one. The loss, or -1. */
static int write_found(prof_i_thread *thread, prof_i_slot *slot, found *f) {
  const uint64_t duration = f->end - (f->start >> 4);
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  const uint64_t site = f->what >> WHAT_SITE_SHIFT & PROF_I_SITE_COUNT_MAX;
  if (!f->payload) copy_payload(slot, slot, f);
  if (!f->payload && !is_long && !f->flags)
    return prof_i_record_write(thread, f->start, f->start, duration << PROF_I_DURATION_SHIFT | site << WHAT_SITE_SHIFT, NULL, 0);
  uint64_t bare[2] = {(uint64_t)PROF_I_KIND_SCOPE << 16, 0};
  uint64_t *const payload = f->payload ? f->payload : bare;
  uint64_t words = f->payload ? f->what >> WHAT_WORDS_SHIFT : 1;
  payload[0] |= (uint64_t)f->flags << 24;
  if (is_long) { /* the duration goes behind device and stream */
    const uint64_t before = 1 + (payload[0] >> 24 & 1) + (payload[0] >> 25 & 1);
    memmove(payload + before + 1, payload + before, (words - before) * 8);
    payload[before] = duration;
    payload[0] |= (uint64_t)PROF_I_FLAG_LONG << 24;
    words++;
  }
  payload[0] = (payload[0] & ~0xffffull) | (2 + words + 1) / 2;
  const uint64_t word1 = (is_long ? 0 : duration << PROF_I_DURATION_SHIFT) | site << WHAT_SITE_SHIFT | TYPE_LONG;
  return prof_i_record_write(thread, f->start, f->start, word1, payload, words);
}

/* What find_own() found goes, once its record stands or its loss is certain. The depth comes last: at depth 0 a handler would take
   the text area from its start. Text goes with the topmost scope; what others leave are holes. */
static bool is_newest_of(const prof_i_thread *thread, const found *f) {
  const prof_i_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if (slot->open[i].ticks >= f->start + 16) return false;
  return slot->deep == (f->is_deep ? f->index : 0); /* the deep ones are in order */
}

static void close_own(prof_i_thread *thread, const found *f) {
  prof_i_slot *const slot = thread->slot;
  const bool is_newest = is_newest_of(thread, f);
  if (f->is_deep) thread->deep[f->index - 1].ticks = DEEP_GONE;
  else set_open(&slot->open[f->index], 0);
  if (is_newest && f->what & TYPE_LONG) slot->text_top = offset_of(f->what);
  PROF_I_SIGNAL_FENCE();
  if (!f->is_deep) __atomic_fetch_or(&thread->gone, 1ull << (f->index - 1), __ATOMIC_RELAXED);
  trim(thread);
}

/* Past the gate. The loss, or -1 when the scope stands in the capture. */
static int end_unusual(uint64_t start, uint64_t ticks) {
  if (!prof_i_the_arena.base) return start >> 4 < prof_i_control_forked_at() ? PROF_LOSS_FORKED : PROF_LOSS_LATE;
  const prof_i_header *const header = prof_i_arena_header();
  if (start >> 4 < prof_i_control_forked_at()) return PROF_LOSS_FORKED;
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) return PROF_LOSS_NO_THREAD;
  prof_i_slot *const slot = thread->slot;
  found f = {.start = start, .end = ticks ? ticks : prof_i_clock_ticks()};
  const bool was_busy = thread->is_text_busy;
  thread->is_text_busy = true;
  PROF_I_SIGNAL_FENCE();
  const bool mine = find_own(thread, &f);
  const uint64_t depth = mine ? 0 : prof_i_slot_hold(slot);
  const bool is_found = mine || find_elsewhere(thread, &f);
  int loss = -1;
  if (!prof_i_control_is_recording() || start >> 4 < __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED)) loss = PROF_LOSS_LATE;
  else if (!is_found) loss = PROF_LOSS_LOST_STATE;
  else loss = write_found(thread, slot, &f);
  if (f.scratch) slot->text_top = f.scratch;
  thread->is_text_busy = was_busy;
  if (mine) {
    close_own(thread, &f);
  } else {
    prof_i_slot_let_go(slot, depth);
    trim(thread);
  }
  return loss;
}

/* The gate is closed: somebody starts another capture, or clears. The slot is the thread's own, and always mapped. */
static void end_outside(uint64_t start) {
  prof_i_thread *const thread = prof_i_this_thread;
  found f = {.start = start};
  if (find_own(thread, &f)) close_own(thread, &f);
  prof_i_thread_lose_unplaced(prof_i_control_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE);
}

static void end_slow(uint64_t start, uint64_t ticks) {
  if (!start) return;
  const int saved = errno;
  if (!prof_i_gate_enter()) {
    end_outside(start);
  } else {
    const int loss = end_unusual(start, ticks);
    if (loss >= 0) prof_i_thread_lose(prof_i_this_thread, loss, 1);
    prof_i_gate_leave();
  }
  errno = saved;
}

/* ---- by calls, for other languages ---- */

static prof_site by_call[3] = {{0, "", "", 0, 0, 0}, {0, "", "", 0, 1, 0}, {0, "", "", 0, 2, 0}};

uint64_t prof_scope_begin(int level, const char *name, const char *category, const prof_args *args) {
  if (level < 1 || level > 2 || (uint32_t)level > prof_i_arena_level()) return 0;
  name = name ? name : "";
  category = category ? category : "";
  if (!args || args->count == 0) {
    const uint64_t start = begin_copied(&by_call[level], name, strlen(name), category, strlen(category), PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY, 0,
                                        PROF_I_OPEN_BY_CALL);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) return start;
  }
  const prof_details details = {name, category, PROF_NUL_TERMINATED, PROF_NUL_TERMINATED, by_call_flag, PROF_HOST, 0, 0,
                                args ? *args : PROF_NO_ARGS};
  return begin_details(&by_call[level], &details);
}

uint64_t prof_scope_begin_at(prof_site *site, const char *name, const char *category) {
  const uint32_t level = site && site->level ? site->level : 1;
  return site && level <= prof_i_arena_level() ? begin_plain(prof_i_this_thread, site, name ? name : "", category ? category : "", PROF_I_OPEN_BY_CALL) : 0;
}

void prof_scope_end(uint64_t start) {
  if (start) prof_i_end_1(start);
}
